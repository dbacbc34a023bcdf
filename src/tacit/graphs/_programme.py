"""Triangles for the node level: the largest weighted count in which no node takes part in more than tau."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from tacit.graphs._simplex import largest_sum
from tacit.graphs._triangles import list_triangles

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from tacit.graphs._edges import EdgeArrays

#: Weights are checked as whole numbers, in units of 2^-30.
_UNIT = 1 << 30
_SOLVERS = ("highs-ipm", "highs-ds")


def triangle_programme(edges: EdgeArrays, tau: int) -> int:
    """Return the largest sum of weights in [0, 1] on triangles with at most `tau` at every node, rounded.

    It is the number of triangles if no node is in more than `tau`.

    Guarantee: it moves by at most ``tau + 1`` if a node joins or leaves with all its edges. The solver is not
    trusted: its weights and prices prove a lower and an upper bound of the optimum, in whole numbers, and the
    middle of the two is rounded only if they are at most 1/2 apart. If no solver reaches that, an exact
    method follows. It is slow but always ends: no graph makes this function fail, and no answer is further
    from the optimum than 3/4 (docs/proofs/graphs.md, "Node level"; Kasiviswanathan and others 2013).

    Examples
    --------
    >>> from tacit.graphs._edges import EdgeArrays
    >>> book = EdgeArrays(6, [0, 0, 0, 0, 0, 1, 1, 1, 1], [1, 2, 3, 4, 5, 2, 3, 4, 5])  # four on one edge
    >>> triangle_programme(book, tau=10), triangle_programme(book, tau=3)
    (4, 3)
    """
    triangles = list_triangles(edges)
    crowded = np.bincount(triangles.ravel(), minlength=edges.nodes) > tau
    contested = crowded[triangles].any(axis=1)
    free = int(np.count_nonzero(~contested))
    place = np.where(crowded, np.cumsum(crowded) - 1, -1)  # limits of crowded nodes alone can bind
    ends = place[triangles[contested]]
    ends, most = np.unique(
        np.sort(ends, axis=1), axis=0, return_counts=True
    )  # triangles with the same limits
    if not len(ends):
        return free
    for solver in _SOLVERS:
        bounds = _bounds(ends, most, tau, solver)
        if bounds is not None and 2 * (bounds[1] - bounds[0]) <= _UNIT:
            return free + (sum(bounds) + _UNIT) // (2 * _UNIT)
    return free + int(_optimum(ends, most, tau) + Fraction(1, 2))


def _bounds(
    ends: NDArray[np.int64], most: NDArray[np.int64], tau: int, solver: str
) -> tuple[int, int] | None:
    """Return proven bounds of the optimum in units of 2^-30, or nothing if the solver finds no solution.

    Below: weights that keep all limits. Above, for any prices y >= 0 of the nodes: the sum of tau y over
    nodes and of max(0, 1 - prices of its nodes) over triangles (weak duality).
    """
    limits = _limits(ends)
    found = _solved(limits, most, tau, solver)
    if found is None:
        return None
    weights, prices = np.clip(np.nan_to_num(found[0]), 0, most), np.clip(np.nan_to_num(found[1]), 0, 1)
    fitting = tau / np.maximum(limits @ weights, max(tau, 1)) * (1 - 1e-12)
    share = np.min(np.where(ends >= 0, fitting[ends], 1), axis=1)
    whole = np.floor(weights * share * _UNIT).astype(np.int64)
    if np.any(limits @ whole > tau * _UNIT):
        return None
    price = np.floor(prices * _UNIT).astype(np.int64)
    saved = np.maximum(0, _UNIT - price @ limits)
    return int(whole.sum()), tau * int(price.sum()) + int((saved * most).sum())


def _limits(ends: NDArray[np.int64]) -> csr_array:
    """Return which group of triangles (columns) counts towards the limit of which node (rows)."""
    from scipy.sparse import csr_array

    group, corner = np.nonzero(ends >= 0)
    ones = np.ones(len(group), dtype=np.int64)
    return csr_array((ones, (ends[group, corner], group)), shape=(int(ends.max()) + 1, len(ends)))


def _solved(
    limits: csr_array, most: NDArray[np.int64], tau: int, solver: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Return the solver's weights of the groups and prices of the nodes, whatever they are worth."""
    from scipy.optimize import linprog

    bounds = np.column_stack([np.zeros(len(most)), most])
    found = linprog(-np.ones(len(most)), limits, np.full(limits.shape[0], tau), bounds=bounds, method=solver)
    if found.x is None or found.ineqlin.marginals is None:
        return None
    return np.asarray(found.x), -np.asarray(found.ineqlin.marginals)


def _optimum(ends: NDArray[np.int64], most: NDArray[np.int64], tau: int) -> Fraction:
    """Return the exact optimum."""
    limits = _limits(ends).toarray()
    rows = np.concatenate([limits, np.eye(len(most), dtype=np.int64)])
    return largest_sum(rows, [tau] * len(limits) + most.tolist())
