"""Whole moments: sums of products of all columns, as exact whole numbers, for linear regression."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.learn._whole_features import FEATURE_STEPS, as_numbers, whole_features, whole_targets

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: The largest norm of scaled features, and the most features.
MOST_CLIP, MOST_FEATURES = 64, 4096
#: Weights of squares and of products of two columns: 41^2 <= 2 * 29^2, so that the weighted vector of a row's
#: products is at most 29 times the square of the row's norm.
_SQUARE, _PRODUCT = 29, 41


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
        return self.per_unit * _SQUARE * (self.reach**2 + (1 + self.intercept) * self.side**2)

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
        whole = whole_features(features, low, high, intercept=False)
        squared = np.square(whole).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = np.minimum(1.0, self.reach / np.sqrt(squared))
        kept = np.trunc(whole * factor[:, None])
        goal = whole_targets(target, *target_bounds, self.side)
        constant = np.full((len(kept), int(self.intercept)), float(self.side))
        rows = np.concatenate([kept, constant, np.nan_to_num(goal)[:, None]], axis=1)
        finite = np.isfinite(as_numbers(features)).all(axis=1) & np.isfinite(goal)
        valid = finite & (np.square(kept).sum(axis=1) <= self.reach**2)
        return np.where(valid[:, None], rows, 0.0)

    def moments(self, rows: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the weighted upper triangle of the sum of products.

        Sums of a block stay below 2^53, so they are exact in any order; blocks are added as whole numbers of
        any length. Numbers beyond 2^62 count as 2^62, which brings no two sums further apart.
        """
        block = min(2**16, 2**52 // self.reach**2)
        above = np.triu_indices(self.columns)
        total = np.zeros(len(above[0]), dtype=object)
        for start in range(0, len(rows), block):
            part = rows[start : start + block]
            total = total + (part.T @ part)[above].astype(np.int64)
        weighted = total * np.where(above[0] == above[1], _SQUARE, _PRODUCT)
        return np.asarray(np.clip(weighted, -(2**62), 2**62), dtype=np.int64)

    def deviation(self, sigma: float) -> float:
        """Return the standard deviation of the noise of one product, with features from -1 to 1."""
        return sigma / _PRODUCT / FEATURE_STEPS**2


def moment_matrix(noisy: Any, columns: int) -> NDArray[np.float64]:
    """Return the symmetric matrix of noisy sums of products, with features from -1 to 1.

    Examples
    --------
    >>> (moment_matrix([29 * 4096**2, 41 * 4096**2, 0], 2)).tolist()
    [[1.0, 1.0], [1.0, 0.0]]
    """
    above = np.triu_indices(columns)
    weights = np.where(above[0] == above[1], _SQUARE, _PRODUCT) * float(FEATURE_STEPS) ** 2
    matrix = np.zeros((columns, columns))
    matrix[above] = np.asarray(noisy, dtype=np.float64) / weights
    return matrix + np.triu(matrix, 1).T
