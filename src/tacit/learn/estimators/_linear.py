"""Linear and ridge regression: one noisy release of all moments, then exact algebra.

The moments are sums of products of all columns, as exact whole numbers. The fit from noisy moments has an
adaptive penalty, and intervals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tacit.core import Step
from tacit.exact import rational
from tacit.learn.estimators._declared_bounds import (
    bounds_document,
    read_feature_bounds,
    read_target_bounds,
    refuse_wide,
)
from tacit.learn.estimators._estimator import PrivateRegressor
from tacit.learn.estimators._fits import FitSteps, share_of_noise
from tacit.learn.estimators._rows import PRODUCT, SQUARE, moment_matrix, weighted_moments
from tacit.learn.estimators._whole_features import (
    FEATURE_STEPS,
    as_numbers,
    scaled_features,
    whole_features,
    whole_targets,
)
from tacit.mechanisms import RoundedGaussian
from tacit.parameters import RealNumber

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from tacit.learn._examples import Examples
    from tacit.learn.estimators._fitted_numbers import FittedNumbers


#: The largest norm of scaled features, and the most features.
MAX_CLIP, MAX_FEATURES = 64, 4096


@dataclass(frozen=True)
class MomentGrid:
    """Public facts of the moments: how rows become whole numbers, and how far one unit moves the moments.

    A row is the features, scaled down to the norm ``reach`` where it is longer; a constant ``side`` if there
    is an intercept; and the target, from -side to side.

    Examples
    --------
    >>> grid = MomentGrid(features=2, intercept=True, clip=1.0, per_unit=1)
    >>> grid.reach, grid.side, grid.columns, grid.sensitivity == 29 * (4096**2 + 2 * 2048**2)
    (4096, 2048, 4, True)
    """

    features: int
    intercept: bool
    clip: float
    per_unit: int

    @property
    def reach(self) -> int:
        """The largest norm of whole features."""
        return math.floor(self.clip * FEATURE_STEPS)

    @property
    def side(self) -> int:
        """The constant column, and the largest target."""
        return max(1, self.reach // 2)

    @property
    def columns(self) -> int:
        """The number of columns: features, constant, target."""
        return self.features + self.intercept + 1

    @property
    def sensitivity(self) -> int:
        """How far one unit moves the weighted moments, in L2."""
        return self.per_unit * SQUARE * (self.reach**2 + (1 + self.intercept) * self.side**2)

    def rows(
        self,
        features: Any,
        target: Any,
        low: NDArray[np.float64],
        high: NDArray[np.float64],
        target_bounds: tuple[float, float],
    ) -> NDArray[np.float64]:
        """Return whole rows; each is a function of its own example, and zero where a value is not finite.

        Truncation never makes a row longer. Squares of whole numbers are summed exactly, and a row that is
        still too long after scaling counts as zero.
        """
        features_in_steps = whole_features(features, low, high, intercept=False)
        squared = np.square(features_in_steps).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = np.minimum(1.0, self.reach / np.sqrt(squared))
        clipped = np.trunc(features_in_steps * factor[:, None])
        goal = whole_targets(target, *target_bounds, self.side)
        constant = np.full((len(clipped), int(self.intercept)), float(self.side))
        rows = np.concatenate([clipped, constant, np.nan_to_num(goal)[:, None]], axis=1)
        finite = np.isfinite(as_numbers(features)).all(axis=1) & np.isfinite(goal)
        valid = finite & (np.square(clipped).sum(axis=1) <= self.reach**2)
        return np.where(valid[:, None], rows, 0.0)

    def moments(self, rows: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the weighted upper triangle of the sum of products."""
        return weighted_moments(rows, self.reach)

    def deviation(self, sigma: float) -> float:
        """Return the standard deviation of the noise of one product, with features from -1 to 1."""
        return sigma / PRODUCT / FEATURE_STEPS**2


#: Intervals are stated where the smallest eigenvalue is at least so many times the reach of the noise.
_CLEAR = 3.0


@dataclass(frozen=True, eq=False)
class MomentFit:
    """Coefficients from noisy moments: post-processing (AdaSSP, Wang 2018, with one Gaussian for all).

    Parameters
    ----------
    grid
        The public facts of the moments.
    low, high, target_bounds
        The public bounds.
    penalty
        A penalty in units of the declared size; 0 for linear regression.
    size
        The declared number of units.
    sigma
        The noise of the weighted moments, in grid steps.
    """

    grid: MomentGrid
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    target_bounds: tuple[float, float]
    penalty: float
    size: int
    sigma: float

    def numbers(self, noisy: Any, confidence: float) -> dict[str, NDArray[np.float64]]:
        """Return coefficients and intercept in the user's units, with intervals where they can be stated.

        With noisy moments A = X'X + E and b = X'y + e, the exact solution t of the moments without noise has
        b - A t = e - E t, whose covariance is s^2 ((1 + |t|^2) I + t t') for noise of deviation s beside the
        diagonal and sqrt(2) s on it. Sampling adds the residual variance times the inverse of A,
        times the rows of a unit, which may all say the same.
        """
        matrix = moment_matrix(noisy, self.grid.columns) / FEATURE_STEPS**2  # features from -1 to 1
        gram, cross, square = matrix[:-1, :-1], matrix[:-1, -1], matrix[-1, -1]
        noise = self.grid.deviation(self.sigma)
        edge = 2 * noise * math.sqrt(self.grid.columns)  # the largest eigenvalue of the noise, about
        fixed = gram + self._ridge()
        smallest = float(np.linalg.eigvalsh(fixed)[0])
        ridge = max(0.0, edge - smallest)
        inverse = np.linalg.inv(fixed + ridge * np.eye(len(gram)))
        theta = inverse @ cross
        scale = self._user_units()
        coefficients = scale @ theta
        if smallest < _CLEAR * edge:
            width = np.full(len(coefficients), np.inf)
        else:
            spread = (
                noise**2
                * inverse
                @ ((1 + theta @ theta) * np.eye(len(theta)) + np.outer(theta, theta))
                @ inverse
            )
            if not self.penalty:
                residual = max(0.0, float(square - 2 * theta @ cross + theta @ gram @ theta)) / self._rows(
                    gram
                )
                spread = spread + self.grid.per_unit * residual * inverse  # a unit's rows may all go together
            spread = (1 + (edge / smallest) ** 2) * spread  # the inverse is noisy too, to second order
            width = _normal(confidence) * np.sqrt(np.einsum("ij,jk,ik->i", scale, spread, scale))
        coefficients[-1] += sum(self.target_bounds) / 2
        arrays = {
            "coef": coefficients[:-1],
            "low": coefficients[:-1] - width[:-1],
            "high": coefficients[:-1] + width[:-1],
        }
        return {
            **arrays,
            "intercept": np.array(
                [coefficients[-1], coefficients[-1] - width[-1], coefficients[-1] + width[-1]]
            ),
        }

    def _rows(self, gram: NDArray[np.float64]) -> float:
        """Return the number of rows: noisy, from the constant column, and at most as declared."""
        if not self.grid.intercept:
            return float(self.size)
        noisy = float(gram[-1, -1]) / (self.grid.side / FEATURE_STEPS) ** 2
        return min(max(1.0, noisy), float(self.size * self.grid.per_unit))

    def _ridge(self) -> NDArray[np.float64]:
        """Return the declared penalty as a matrix; the constant column has none."""
        ones = np.ones(self.grid.columns - 1)
        if self.grid.intercept:
            ones[-1] = 0.0
        return np.diag(self.penalty * self.size * ones)

    def _user_units(self) -> NDArray[np.float64]:
        """Return the matrix that turns scaled coefficients into coefficients and an intercept."""
        side = self.grid.side / FEATURE_STEPS
        half_target = (self.target_bounds[1] - self.target_bounds[0]) / 2
        middle, half = (self.low + self.high) / 2, (self.high - self.low) / 2
        count = self.grid.features
        turn = np.zeros((count + 1, self.grid.columns - 1))
        turn[:count, :count] = np.diag(half_target / side / half)
        turn[count, :count] = -half_target / side / half * middle
        if self.grid.intercept:
            turn[count, count] = half_target
        return turn


def _normal(confidence: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(0.5 + confidence / 2))


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
        refuse_wide(self.n_features_in_, MAX_FEATURES)
        clip = math.sqrt(self.n_features_in_) if self.clip is None else self.clip
        clip = float(RealNumber(least=1 / FEATURE_STEPS, most=MAX_CLIP, instead=1).read("clip", clip))
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
        features = self._seen(X)
        middle, half = (self._low + self._high) / 2, (self._high - self._low) / 2
        within = scaled_features(features, self._low, self._high) * half + middle
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
