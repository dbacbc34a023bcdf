"""Linear and ridge regression in learning: one noisy release of all moments, then exact algebra."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tacit.core import Step
from tacit.exact import rational
from tacit.learn._declared_bounds import bounds_document, read_feature_bounds, read_target_bounds, refuse_wide
from tacit.learn._estimator import PrivateRegressor
from tacit.learn._fit_noise import share_of_noise
from tacit.learn._fit_steps import FitSteps
from tacit.learn._moment_fit import MomentFit
from tacit.learn._whole_features import FEATURE_STEPS, scaled_features
from tacit.learn._whole_moments import MOST_CLIP, MOST_FEATURES, MomentGrid
from tacit.mechanisms import RoundedGaussian
from tacit.parameters import RealNumber

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from tacit.learn._examples import Examples
    from tacit.learn._fitted_numbers import FittedNumbers


@dataclass(kw_only=True, eq=False, repr=False)
class LinearRegression(PrivateRegressor):
    """Linear regression from noisy moments, with intervals for the coefficients.

    Guarantee: one unit moves the exact moments, whole numbers, by at most a norm that follows from ``clip``
    and ``per_unit``; rounded Gaussian noise is added once. Everything else is post-processing: the penalty
    that keeps a weakly determined solution stable follows from the noisy moments (AdaSSP, Wang 2018).

    ``coef_intervals_`` and ``intercept_interval_`` cover noise and sampling at 95 %, to first order and for
    residuals of constant variance; clipping is not included. Without an intercept they need a right
    ``size``. Where the noise is too large to state an interval, it is from minus to plus infinity.

    Parameters
    ----------
    bounds, target_bounds
        Public bounds of the features (two numbers, or two lists) and of the target.
    clip
        The largest norm of an example's features, scaled to -1 .. 1; a longer example is shortened, which
        distorts the coefficients. By default nobody is clipped. With many features a smaller clip, near the
        norm of a usual example, lowers the noise a lot.
    fit_intercept
        Whether the model has an intercept.
    epsilon, delta, dataset, ledger, budget, size, unit, per_unit, version
        See `PrivateEstimator`.

    Examples
    --------
    >>> import numpy as np, tacit as tc
    >>> X = np.linspace(-1, 1, 5000)[:, None]
    >>> model = tc.learn.LinearRegression(
    ...     epsilon=4, delta=1e-6, bounds=(-1, 1), target_bounds=(-3, 3), clip=1, size=5000,
    ...     dataset="doctest of linear regression", budget=tc.Budget(epsilon=9, delta=1e-5),
    ... )
    >>> round(float(model.fit(X, 2 * X[:, 0] + 0.5).predict([[0.75]])[0]), 0)
    2.0
    """

    bounds: tuple[Any, Any] | None = None
    target_bounds: tuple[float, float] | None = None
    clip: float | None = None
    fit_intercept: bool = True

    kind: ClassVar[str] = "linear regression"

    def _fit_steps(self, data: Examples, noise: Fraction) -> FitSteps[NDArray[np.float64]]:
        low, high = read_feature_bounds(self.bounds, self.n_features_in_)
        target_bounds = read_target_bounds(self.target_bounds)
        refuse_wide(self.n_features_in_, MOST_FEATURES)
        clip = math.sqrt(self.n_features_in_) if self.clip is None else self.clip
        clip = float(RealNumber(least=1 / FEATURE_STEPS, most=MOST_CLIP, instead=1).read("clip", clip))
        grid = MomentGrid(self.n_features_in_, bool(self.fit_intercept), clip, data.per_unit)
        sigma = math.ceil(share_of_noise(noise, 1, grid.sensitivity))
        penalty = self._penalty()
        fit = MomentFit(grid, low, high, target_bounds, penalty, data.size, sigma)

        def load() -> NDArray[np.float64]:
            features, target = data._arrays  # noqa: SLF001 - the parts of a dataset
            rows = grid.rows(features, target, low, high, target_bounds)
            places = data.units().ravel()
            return rows[places[places >= 0]]

        def reading(noisy: Sequence[Any], confidence: Fraction) -> dict[str, NDArray[Any]]:
            return fit.numbers(noisy[0], float(confidence))

        return FitSteps(
            {"features": self.n_features_in_, "bounds": bounds_document(low, high),
             "target_bounds": list(target_bounds), "clip": clip, "intercept": bool(self.fit_intercept),
             "penalty": penalty, "per_unit": data.per_unit, "size": data.size},
            load,
            (Step(RoundedGaussian(sigma=sigma, sensitivity=grid.sensitivity),
                  lambda rows, _: grid.moments(rows),
                  {"statistic": "sums of products of features and target"}),),
            reading,
        )  # fmt: skip

    def _penalty(self) -> float:
        """Return the declared penalty: none."""
        return 0.0

    def _score_bounds(self) -> tuple[float, float]:
        return read_target_bounds(self.target_bounds)

    def _learned(self, fitted: FittedNumbers) -> None:
        numbers = fitted.numbers
        self._low, self._high = read_feature_bounds(fitted.settings["bounds"], self.n_features_in_)
        self.coef_ = numbers["coef"]
        self.coef_intervals_ = np.stack([numbers["low"], numbers["high"]], axis=1)
        self.intercept_ = float(numbers["intercept"][0])
        self.intercept_interval_ = numbers["intercept"][1:]

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the expected target of each example; features beyond their bounds count as the bound."""
        held = self._seen(X)
        middle, half = (self._low + self._high) / 2, (self._high - self._low) / 2
        within = scaled_features(held, self._low, self._high) * half + middle
        return np.asarray(within @ self.coef_ + self.intercept_)


@dataclass(kw_only=True, eq=False, repr=False)
class Ridge(LinearRegression):
    """Linear regression with a declared penalty on the coefficients.

    Guarantee: as for `LinearRegression`. The intervals cover the noise alone: they are for the coefficients
    that the same penalty gives without noise.

    Parameters
    ----------
    penalty
        Weight of the squared norm of the coefficients of scaled features, for each unit of the size.
    bounds, target_bounds, clip, fit_intercept
        See `LinearRegression`.
    epsilon, delta, dataset, ledger, budget, size, unit, per_unit, version
        See `PrivateEstimator`.

    Examples
    --------
    >>> import numpy as np, tacit as tc
    >>> X = np.linspace(-1, 1, 5000)[:, None]
    >>> model = tc.learn.Ridge(
    ...     penalty=0.01, epsilon=4, delta=1e-6, bounds=(-1, 1), target_bounds=(-3, 3), clip=1, size=5000,
    ...     dataset="doctest of ridge", budget=tc.Budget(epsilon=9, delta=1e-5),
    ... )
    >>> 1 < model.fit(X, 2 * X[:, 0]).coef_[0] < 3
    np.True_
    """

    penalty: float = 0.01

    kind: ClassVar[str] = "ridge regression"

    def _penalty(self) -> float:
        """Return the declared penalty."""
        return float(rational("penalty", self.penalty, zero=True))
