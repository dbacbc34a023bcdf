"""Counts without negative ones, and whole ones: the nearest point, in least squares, with the same total."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def nonnegative_counts(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the nearest counts that are not negative and have the same total; all 0 if that is negative.

    The projection onto a simplex (Duchi et al. 2008): the same amount is taken from all counts, and what
    falls below 0 becomes 0.

    Examples
    --------
    >>> nonnegative_counts(np.array([3.0, 3.0, -1.0, 0.0])).tolist()
    [2.5, 2.5, 0.0, 0.0]
    """
    total = counts.sum()
    if total <= 0:
        return np.zeros(len(counts))
    falling = -np.sort(-counts)
    lowered = (np.cumsum(falling) - total) / np.arange(1, len(counts) + 1)
    above = np.flatnonzero(falling > lowered)
    last = above[-1] if len(above) else 0  # none where the total is smaller than what rounding lost
    return np.asarray(np.maximum(counts - lowered[last], 0.0))


def whole_counts(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return whole numbers near counts that are not negative; their sum is the rounded total.

    All are rounded down, and the largest remainders get one more.

    Examples
    --------
    >>> whole_counts(np.array([2.5, 2.4, 0.3])).tolist()
    [3.0, 2.0, 0.0]
    """
    down = np.floor(counts)
    missing = round(float(counts.sum())) - int(down.sum())
    order = np.argsort(down - counts, kind="stable")
    down[order[:missing]] += 1
    return down
