"""Uniform random subsets for `SubsetSelection`, many rows at a time, exactly uniform."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tacit import noise

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["subsets_of_others"]

_CELLS = 1 << 21  # of a table of rows and answers: small enough for the cache


def subsets_of_others(truths: NDArray[np.int64], size: int, subset: int) -> NDArray[np.int32]:
    """Draw for each row `subset` answers other than its truth, every set alike; rows are sorted."""
    out = np.empty((truths.size, subset), np.int32)
    if not subset:
        return out
    sparse = subset * (subset - 1) <= size
    step = max(1, _CELLS // (subset if sparse else size))
    for start in range(0, truths.size, step):
        part = truths[start : start + step]
        drawn = _by_rejection(part, size, subset) if sparse else _by_floyd(part, size, subset)
        out[start : start + step] = drawn
    return out


def _others(truths: NDArray[np.int64], drawn: NDArray[np.int64]) -> NDArray[np.int64]:
    """Turn places among the other answers into answers, by skipping the truth."""
    return drawn + (drawn >= truths)


def _by_rejection(truths: NDArray[np.int64], size: int, subset: int) -> NDArray[np.int64]:
    """Draw with replacement; rows with a repeated answer are drawn again, so that all sets are alike."""
    out = np.empty((truths.size, subset), np.int64)
    left = np.arange(truths.size)
    while left.size:
        drawn = noise.uniform_below(size - 1, (left.size, subset))
        if subset > 1:
            drawn.sort(axis=1)
        out[left] = _others(truths[left, None], drawn)
        left = left[(drawn[:, 1:] == drawn[:, :-1]).any(axis=1)]
    return out


def _by_floyd(truths: NDArray[np.int64], size: int, subset: int) -> NDArray[np.int64]:
    """Draw without replacement by Floyd's algorithm (Bentley and Floyd 1987), on a table of members.

    Step i draws from the first top + 1 others; where the draw is taken, the last of them is added, which no
    earlier step could reach. After each step all sets of that size within these others are alike.
    """
    member = np.zeros(truths.size * size, np.bool_)
    base = np.arange(truths.size) * size
    for top in range(size - 1 - subset, size - 1):
        place = base + _others(truths, noise.uniform_below(top + 1, truths.size))
        last = base + _others(truths, np.int64(top))
        member[np.where(member[place], last, place)] = True
    return np.flatnonzero(member).reshape(truths.size, subset) - base[:, None]
