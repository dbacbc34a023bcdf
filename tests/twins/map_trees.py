"""Broken trees and cell lists of maps, as functions ``f(counts, size)`` that return `size` outputs."""

from __future__ import annotations

import numpy as np

from tacit.mechanisms import SplittingTree
from tacit.mechanisms.choices._thresholds import price_of_path
from twins.broken import integer_laplace


class DecayRoundedDown(SplittingTree):
    """PrivTree on integers with the decay of the real-valued formula, rounded down; it claims epsilon."""

    __slots__ = ()

    def __init__(self, **parameters) -> None:
        super().__init__(**parameters)
        object.__setattr__(self, "decay", self.decay - 1)

    @property
    def price(self):
        return self.epsilon

    def true_price(self):
        return self.sensitivity * price_of_path(self.scale, self.decay, self.depth)


def tree_of_exact_counts(counts, size):
    """A tree of one level that splits where more than 5 points are, without noise; noisy counts of leaves."""
    grid = np.asarray(counts).reshape(-1)
    split = grid.sum() > 5
    cells = grid if split else np.array([grid.sum(), 0, 0, 0])
    noisy = cells + integer_laplace(1, (size, 4))
    return np.column_stack([np.full(size, int(split)), noisy])


def non_empty_cells(counts, size):
    """Noisy counts of the cells that hold a point; empty cells are not listed (written as -10^6)."""
    grid = np.asarray(counts).reshape(-1)
    noisy = grid + integer_laplace(1, (size, grid.size))
    return np.where(grid > 0, noisy, -(10**6))
