"""Standardisation in learning: noisy means and variances of features with declared bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from tacit.core import Step
from tacit.learn.estimators._declared_bounds import bounds_document, read_feature_bounds
from tacit.learn.estimators._estimator import PrivateEstimator
from tacit.learn.estimators._fits import FitSteps, share_of_noise
from tacit.learn.estimators._whole_features import FEATURE_STEPS, as_numbers, whole_features
from tacit.mechanisms import RoundedGaussian

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tacit.learn._examples import Examples
    from tacit.learn.estimators._fitted_numbers import FittedNumbers


@dataclass(kw_only=True, eq=False, repr=False)
class Standardiser(OneToOneFeatureMixin, TransformerMixin, PrivateEstimator):  # type: ignore[misc]
    """Centre features and divide them by their standard deviation, both measured with noise.

    Guarantee: one unit moves the exact sums and sums of squares of all features by at most ``per_unit`` times
    the root of 2 x features, in units of half a range; rounded Gaussian noise is added once. What is
    transformed is not a release: only mean and scale are.

    Parameters
    ----------
    bounds
        Public bounds of the features: two numbers, or two lists with one number for each feature.
    epsilon, delta, dataset, ledger, budget, size, unit, per_unit, version
        See `PrivateEstimator`. Means are divided by the declared size.

    Examples
    --------
    >>> import numpy as np, tacit as tc
    >>> X = np.repeat([[2.0], [4.0]], 5000, axis=0)
    >>> scaler = tc.learn.Standardiser(
    ...     epsilon=4, delta=1e-6, bounds=(0, 10), size=10_000,
    ...     dataset="doctest of standardisation", budget=tc.Budget(epsilon=9, delta=1e-5),
    ... )
    >>> scaler.fit_transform(X).round(0).ravel()[[0, -1]].tolist()
    [-1.0, 1.0]
    """

    bounds: tuple[Any, Any] | None = None

    kind: ClassVar[str] = "standardisation"

    def _fit_steps(self, data: Examples, noise: Fraction) -> FitSteps[NDArray[np.int64]]:
        low, high = read_feature_bounds(self.bounds, self.n_features_in_)
        # one row: |x| <= F and x^2 / F <= F for each feature, F = FEATURE_STEPS
        squared = 2 * self.n_features_in_ * FEATURE_STEPS**2
        sensitivity = data.per_unit * (math.isqrt(squared - 1) + 1)
        sigma = share_of_noise(noise, Fraction(1), sensitivity)

        def load() -> NDArray[np.int64]:
            places = data.units().ravel()
            features = as_numbers(data._arrays[0])[places[places >= 0]]  # noqa: SLF001 - a dataset's parts
            return whole_features(features, low, high, intercept=False).astype(np.int64)

        def sums_of(rows: NDArray[np.int64], _: Sequence[Any]) -> NDArray[np.int64]:
            return np.concatenate([rows.sum(axis=0), (np.square(rows) // FEATURE_STEPS).sum(axis=0)])

        def reading(noisy: Sequence[Any], confidence: Fraction) -> dict[str, NDArray[Any]]:
            del confidence
            sums, squares = np.asarray(noisy[0], dtype=np.float64).reshape(2, -1) / FEATURE_STEPS / data.size
            mean = np.clip(sums, -1.0, 1.0)
            spread = float(sigma) / FEATURE_STEPS / data.size
            floor = max(2 * spread, 1 / FEATURE_STEPS)  # no variance below what the noise can show
            half = (high - low) / 2
            variance = np.clip(squares - mean**2, floor, 1.0)
            return {"mean": (low + high) / 2 + half * mean, "scale": half * np.sqrt(variance)}

        return FitSteps(
            {"features": self.n_features_in_, "bounds": bounds_document(low, high),
             "per_unit": data.per_unit, "size": data.size},
            load,
            (Step(RoundedGaussian(sigma=sigma, sensitivity=sensitivity), sums_of,
                  {"statistic": "sums and sums of squares of features"}),),
            reading,
        )  # fmt: skip

    def _learned(self, fitted: FittedNumbers) -> None:
        self.mean_, self.scale_ = fitted.numbers["mean"], fitted.numbers["scale"]
        self.var_ = self.scale_**2

    @np.errstate(all="ignore")  # a warning would say something about one value
    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return (X - mean) / scale."""
        check_is_fitted(self)
        features = validate_data(self, X, reset=False, ensure_all_finite=False, dtype=None)
        return np.asarray((as_numbers(features) - self.mean_) / self.scale_)

    def inverse_transform(self, X: Any) -> NDArray[np.float64]:
        """Return X * scale + mean."""
        check_is_fitted(self)
        return np.asarray(as_numbers(X) * self.scale_ + self.mean_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        return tags
