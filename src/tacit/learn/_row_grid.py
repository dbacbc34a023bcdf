"""Rows on a grid: each row of features becomes whole numbers whose length is at most a public radius."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class RowGrid:
    """Public facts that turn features into whole numbers: bounds, what one unit of a feature is, the radius.

    Parameters
    ----------
    low, high
        Declared bounds; values beyond them count as the bound.
    units
        How many units of each feature have the same weight: 1 for all keeps the features' own units.
    clip
        The longest row around the middle of the bounds, in these units; longer rows are shortened.
    steps
        How many grid steps the longest row has.

    Examples
    --------
    >>> grid = RowGrid(np.zeros(2), np.full(2, 10.0), np.ones(2), 5.0, 1000)
    >>> rows, good = grid.whole(np.array([[10.0, 5.0], [99.0, 10.0], [np.nan, 0.0]]))
    >>> rows.tolist(), good.tolist()
    ([[1000, 0], [706, 706], [0, 0]], [True, True, False])
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    units: NDArray[np.float64]
    clip: float
    steps: int

    @property
    def middle(self) -> NDArray[np.float64]:
        """The middle of the bounds."""
        return (self.low + self.high) / 2

    def whole(self, features: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return whole rows, and which rows count: one with a feature that is not finite does not.

        Each row is a function of itself alone: operations are elementwise, and sums are of whole numbers.
        """
        good = np.asarray(np.isfinite(features).all(axis=1), np.bool_)
        held = np.clip(np.where(good[:, None], features, self.middle), self.low, self.high)
        most = math.isqrt(2**62 // max(1, len(self.low)))
        with np.errstate(over="ignore"):
            scaled = np.trunc((held - self.middle) / self.units * (self.steps / self.clip))
        return clipped_rows(np.clip(scaled, -most, most).astype(np.int64), self.steps), good

    def features(self, rows: Any) -> NDArray[np.float64]:
        """Return rows of whole or real grid steps in the units of the features."""
        found: NDArray[np.float64] = self.middle + np.asarray(rows) * self.units * (self.clip / self.steps)
        return found


def lengths_squared(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the squared length of each row, exactly."""
    return np.asarray(np.einsum("ij,ij->i", rows, rows), np.int64)


def clipped_rows(rows: NDArray[np.int64], longest: int) -> NDArray[np.int64]:
    """Shorten rows that are longer than this, toward zero; whole numbers prove that none is longer after it.

    Examples
    --------
    >>> clipped_rows(np.array([[3, 4], [30, 40]]), 5).tolist()
    [[3, 4], [2, 3]]
    """
    squared = lengths_squared(rows)
    far = squared > longest**2
    if far.any():
        rows = rows.copy()
        scale = longest / (np.sqrt(squared[far].astype(np.float64)) + 1)
        rows[far] = np.trunc(rows[far] * scale[:, None]).astype(np.int64)
        rows[lengths_squared(rows) > longest**2] = 0  # never, by the margin above: a second lock
    return rows


def sums_by(group: NDArray[np.int64], rows: NDArray[np.int64], groups: int) -> NDArray[np.int64]:
    """Return the sum of the rows of each group, exactly: floats of whole numbers below 2^53 are exact."""
    columns = [np.bincount(group, rows[:, j].astype(np.float64), groups) for j in range(rows.shape[1])]
    return np.stack(columns, axis=1).astype(np.int64)
