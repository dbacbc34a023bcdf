"""The fit of linear and ridge regression from noisy moments: adaptive penalty, and intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.learn._whole_features import FEATURE_STEPS
from tacit.learn._whole_moments import moment_matrix

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.learn._whole_moments import MomentGrid

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
        matrix = moment_matrix(noisy, self.grid.columns)
        own, cross, square = matrix[:-1, :-1], matrix[:-1, -1], matrix[-1, -1]
        noise = self.grid.deviation(self.sigma)
        edge = 2 * noise * math.sqrt(self.grid.columns)  # the largest eigenvalue of the noise, about
        fixed = own + self._ridge()
        least = float(np.linalg.eigvalsh(fixed)[0])
        added = max(0.0, edge - least)
        inverse = np.linalg.inv(fixed + added * np.eye(len(own)))
        theta = inverse @ cross
        scale = self._user_units()
        found = scale @ theta
        if least < _CLEAR * edge:
            width = np.full(len(found), np.inf)
        else:
            spread = (
                noise**2
                * inverse
                @ ((1 + theta @ theta) * np.eye(len(theta)) + np.outer(theta, theta))
                @ inverse
            )
            if not self.penalty:
                left = max(0.0, float(square - 2 * theta @ cross + theta @ own @ theta)) / self._rows(own)
                spread = spread + self.grid.per_unit * left * inverse  # a unit's rows may all go together
            spread = (1 + (edge / least) ** 2) * spread  # the inverse is noisy too, to second order
            width = _normal(confidence) * np.sqrt(np.einsum("ij,jk,ik->i", scale, spread, scale))
        found[-1] += sum(self.target_bounds) / 2
        named = {"coef": found[:-1], "low": found[:-1] - width[:-1], "high": found[:-1] + width[:-1]}
        return {**named, "intercept": np.array([found[-1], found[-1] - width[-1], found[-1] + width[-1]])}

    def _rows(self, own: NDArray[np.float64]) -> float:
        """Return the number of rows: noisy, from the constant column, and at most as declared."""
        if not self.grid.intercept:
            return float(self.size)
        noisy = float(own[-1, -1]) / (self.grid.side / FEATURE_STEPS) ** 2
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
