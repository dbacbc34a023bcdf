"""Broken twins of cross tables, as functions ``f(cells, size)`` that return `size` independent outputs.

``cells`` are the places of rows in a table of one column with three public values.
"""

from __future__ import annotations

import math

import numpy as np

from tacit.mechanisms import ResidualNoise

SIZES = (3,)
NOISE = ResidualNoise(SIZES, {(): 3, (0,): 9})


def tables(cells):
    counts = np.bincount(cells, minlength=SIZES[0])
    return [np.array(len(cells)), counts]


def honest(cells, size):
    """Releases the noisy total and the noisy residual."""
    return NOISE.release_many(tables(cells), size)


def rows_counted_exactly(cells, size):
    """Scales the residual's table to the exact number of rows, and shows it."""
    return np.column_stack([np.full(size, len(cells)), honest(cells, size)[:, 1:]])


def categories_from_the_data(cells, size):
    """Lists the values that occur and no others: which are listed is exact."""
    noisy = honest(cells, size)
    return np.where(np.isin([-1, 0, 1, 2], [-1, *cells]), noisy, -(10**6))


class OneNormTooSmall(ResidualNoise):
    """Charges the residual of a column as if one row moved it by the root of n - 1, not of n (n - 1)."""

    def norm(self, one):
        return math.prod(self.sizes[i] - 1 for i in one)


TOO_CHEAP = OneNormTooSmall(SIZES, {(): 30, (0,): 3})
CLAIMED = NOISE.cost
