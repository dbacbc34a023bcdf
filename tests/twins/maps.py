"""Broken twins of maps, as functions ``f(points, size)`` that return `size` independent outputs."""

from __future__ import annotations

import numpy as np

from twins.broken import integer_laplace

CELLS = 4


def nonempty_cells_only(points, size):
    """Adds noise to the cells that hold a point and lists no others: which cells are listed is exact."""
    counts = np.bincount(points, minlength=CELLS)
    noisy = counts + integer_laplace(1, (size, CELLS))
    return np.where(counts > 0, noisy, -(10**6))


def limit_by_place_in_file(owners, cells, rows):
    """Keeps the first ``rows`` points of the file, not of each owner: one pushes out another's."""
    kept = np.arange(len(owners)) < rows
    return np.bincount(cells[kept], minlength=CELLS)


def unlimited(owners, cells):
    """Counts all points of a unit, but states the sensitivity of one point."""
    del owners
    return np.bincount(cells, minlength=CELLS)


def cell_order_by_all(owners, cells, groups):
    """Keeps each owner's cells that are most visited by all: the choice depends on other people."""
    popular = np.argsort(-np.bincount(cells, minlength=CELLS), kind="stable")
    rank = np.empty(CELLS, dtype=int)
    rank[popular] = np.arange(CELLS)
    found = np.zeros(CELLS, dtype=int)
    for owner in np.unique(owners):
        own = np.unique(cells[owners == owner])
        found[own[np.argsort(rank[own])][:groups]] += 1
    return found
