"""Transformers of features: standardisation and principal components, from noisy sums and products.

Principal components take noisy means first, then noisy products of all pairs of features around them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from tacit.core import Step
from tacit.learn.estimators._declared_bounds import bounds_document, read_feature_bounds, refuse_wide
from tacit.learn.estimators._estimator import PrivateEstimator
from tacit.learn.estimators._fits import FitSteps, share_of_noise
from tacit.learn.estimators._rows import (
    MOVED_MEANS,
    PRODUCT,
    RADIUS,
    SQUARE,
    around,
    centre_and_radius,
    finite_features,
    least_variance,
    moment_matrix,
    moment_step,
    read_grid,
    weighted_moments,
)
from tacit.learn.estimators._whole_features import FEATURE_STEPS, as_numbers, counted_rows, whole_features
from tacit.mechanisms import RoundedGaussian
from tacit.parameters import Integer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from tacit.learn._examples import Examples
    from tacit.learn.estimators._fitted_numbers import FittedNumbers
    from tacit.learn.estimators._rows import RowGrid


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


_MEANS = Fraction(1, 10)  # the share of the means
_MAX_FEATURES = 2_000  # features
_MAX_CORRECTION = 4.0  # clipping to the radius is made good up to this factor
MOVED_PRODUCTS = SQUARE * RADIUS**2


def _clipped_away(moments: Any, deviation: float, explained: float) -> float:
    """Return by what factor clipping to the radius shrank the variance that is seen, as far as it is sure."""
    return min(max(1.0, least_variance(moments, deviation) / max(1e-9, explained)), _MAX_CORRECTION)


@np.errstate(divide="ignore")
def _lost_to_noise(levels: NDArray[np.float64], components: int, deviation: float) -> NDArray[np.float64]:
    """Return what noise takes from each component, to first order: its variance over squared gaps."""
    gaps = levels[:, None] - levels[None, :components]
    far = np.where(gaps == 0, 1, gaps) ** 2
    return np.asarray(np.where(gaps == 0, 0.0, deviation**2 / far).sum(axis=0))


def component_steps(
    data: Examples, noise: Fraction, grid: RowGrid, components: int | None
) -> FitSteps[NDArray[np.int64]]:
    """Return the steps of principal components.

    One row of length at most RADIUS moves count, sum and squared length by at most RADIUS each. Around the
    noisy centre it is scaled so that the noisy radius has RADIUS steps, and clipped to it; its weighted
    products then move by at most 29 RADIUS^2.
    """
    features = len(grid.low)
    refuse_wide(features, _MAX_FEATURES)
    k = Integer(1, features, f"the number of features is {features:,}", instead=features).read(
        "n_components", features if components is None else components
    )
    sensitivities = MOVED_MEANS * data.per_unit, MOVED_PRODUCTS * data.per_unit
    means = share_of_noise(noise, _MEANS, sensitivities[0])
    products = share_of_noise(noise, 1 - _MEANS, sensitivities[1])

    def load() -> NDArray[np.int64]:
        rows, good = grid.whole(counted_rows(data)[0])
        return rows[good]

    def products_of(rows: NDArray[np.int64], noisy: Sequence[Any]) -> NDArray[np.int64]:
        _, centre, radius = centre_and_radius(noisy[0])
        return weighted_moments(around(rows, centre, radius), RADIUS)

    def reading(noisy: Sequence[Any], confidence: Fraction) -> Mapping[str, NDArray[Any]]:
        del confidence
        rows, centre, radius = centre_and_radius(noisy[0])
        step = (radius / RADIUS) * (grid.clip / RADIUS)  # of a row around the centre, in feature units
        levels, vectors = np.linalg.eigh(moment_matrix(noisy[1], features))
        levels, vectors = levels[::-1], vectors[:, ::-1]
        largest = np.abs(vectors).argmax(axis=0)
        vectors = vectors * np.where(vectors[largest, range(features)] < 0, -1, 1)
        spoiled = float(products) / PRODUCT
        lost = _lost_to_noise(levels, k, spoiled)
        explained = float(levels.sum()) / rows * (radius / RADIUS) ** 2
        scale = step**2 / rows * _clipped_away(noisy[0], float(means), explained)
        return {
            "components": vectors[:, :k].T.copy(),
            "mean": grid.features(centre),
            "explained_variance": np.maximum(levels[:k], 0) * scale,
            "explained_variance_ratio": np.maximum(levels[:k], 0)
            / max(float(np.maximum(levels, 0).sum()), 1e-9),
            "agreement": np.where(levels[:k] > 0, np.maximum(1 - lost, 0), 0),
            "noise_variance": np.asarray(2 * spoiled * math.sqrt(features) * scale),
        }

    return FitSteps(
        settings={
            "n_components": k, "bounds": bounds_document(grid.low, grid.high), "clip": grid.clip,
            "per_unit": data.per_unit, "features": features,
        },
        load=load,
        steps=(
            moment_step(means, data.per_unit),
            Step(RoundedGaussian(sigma=products, sensitivity=sensitivities[1]), products_of,
                 {"statistic": "products of pairs of features around the noisy mean"}),
        ),
        reading=reading,
    )  # fmt: skip


@dataclass(kw_only=True, eq=False, repr=False)
class PCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PrivateEstimator):  # type: ignore[misc]
    """Principal components that protect each unit by (epsilon, delta).

    Guarantee: noisy moments give a centre and a radius. Around this centre each row is clipped to the radius,
    and the products of all pairs of features get Gaussian noise. Both together cost one Gaussian of the
    promise.

    Parameters
    ----------
    n_components
        How many components are kept; by default all.
    bounds
        Public bounds of the features: two numbers, or two lists with one number for each feature.
    clip
        The longest distance of a row from the middle of the bounds; by default that of a corner.
    epsilon, delta, dataset, ledger, budget, size, unit, per_unit, version
        See `PrivateEstimator`.

    Attributes
    ----------
    components_, mean_, explained_variance_, explained_variance_ratio_
        As in scikit-learn, from noisy numbers. Rows beyond the radius are clipped to it, which takes variance
        from components with long tails. The sum of all variances is scaled to the noisy total, where the
        noise leaves no doubt that it is larger.
    agreement_
        About the squared cosine of each component with that of the exact data, to first order in the noise; 0
        where the component cannot be told from noise.
    noise_variance_
        The variance that the largest component of noise alone seems to explain.

    Examples
    --------
    >>> import numpy as np, tacit as tc
    >>> X = np.outer(np.tile([-1.0, 1.0], 5000), [3.0, 4.0])
    >>> model = tc.learn.PCA(
    ...     n_components=1, bounds=(-5, 5), epsilon=8, delta=1e-6, size=10_000,
    ...     dataset="doctest of components", budget=tc.Budget(epsilon=10, delta=1e-6),
    ... )
    >>> bool(abs(model.fit(X).components_[0] @ [0.6, 0.8]) > 0.99)
    True
    """

    n_components: int | None = None
    bounds: tuple[Any, Any] | None = None
    clip: float | None = None

    kind: ClassVar[str] = "principal components"

    def _fit_steps(self, data: Examples, noise: Fraction) -> FitSteps[Any]:
        grid = read_grid(self.bounds, self.clip, self.n_features_in_, RADIUS)
        return component_steps(data, noise, grid, self.n_components)

    def _learned(self, fitted: FittedNumbers) -> None:
        for name, array in fitted.numbers.items():
            setattr(self, f"{name}_", array if array.shape else float(array))
        self.n_components_ = self._n_features_out = len(self.components_)

    @np.errstate(all="ignore")  # a warning would say something about one value
    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return the scores of each row on the components, to the last bit the same beside any other rows.

        A product of matrices adds up in an order that depends on the number of rows. The next step of a
        pipeline would then read everybody's scores differently because of one patient.
        """
        middle = self.mean_ if hasattr(self, "mean_") else np.zeros(1)
        centred = finite_features(self, X, middle) - self.mean_
        scores = np.zeros((len(centred), len(self.components_)))
        for column, weights in zip(centred.T, self.components_.T, strict=True):
            scores += column[:, None] * weights
        return scores

    def inverse_transform(self, X: Any) -> NDArray[np.float64]:
        """Return features for scores."""
        check_is_fitted(self)
        return np.asarray(self.mean_ + check_array(X) @ self.components_)
