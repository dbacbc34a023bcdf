"""Exact counts of small subgraphs, and how far one edge or one node moves them.

Degrees, wedges, stars and triangles are counted together with what one edge can make or break. For the node
level, a linear programme gives the largest weighted count of triangles in which no node takes part in more
than tau. It is solved by the simplex method in whole numbers: slow, exact, and certain to end.
"""

from __future__ import annotations

from fractions import Fraction
from math import comb
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from tacit.graphs._edges import EdgeArrays


#: How many paths of two edges a block holds at most, if one row alone does not hold more: 12 bytes each in a
#: product of matrices, 60 in a list.
_PATHS = 4_000_000
_LISTED_PATHS = 1_000_000


def top_degree(edges: EdgeArrays) -> int:
    """Return the largest degree. One edge moves it by at most 1.

    Examples
    --------
    >>> from tacit.graphs._edges import EdgeArrays
    >>> top_degree(EdgeArrays(4, [0, 0, 0], [1, 2, 3]))
    3
    """
    return int(np.max(edges.degrees(), initial=0))


def count_wedges(edges: EdgeArrays) -> int:
    """Return the number of wedges: pairs of edges that share a node.

    Examples
    --------
    >>> from tacit.graphs._edges import EdgeArrays
    >>> count_wedges(EdgeArrays(4, [0, 0, 0], [1, 2, 3]))
    3
    """
    return count_stars(edges, 2)


def count_stars(edges: EdgeArrays, legs: int) -> int:
    """Return the number of stars: a node with a set of `legs` of its edges.

    Examples
    --------
    >>> from tacit.graphs._edges import EdgeArrays
    >>> count_stars(EdgeArrays(5, [0, 0, 0, 0], [1, 2, 3, 4]), 3)
    4
    """
    nodes_of_degree = np.bincount(edges.degrees()).tolist()
    return sum(number * comb(degree, legs) for degree, number in enumerate(nodes_of_degree) if number)


def largest_wedge_change(edges: EdgeArrays, *, unseen: bool = False) -> int:
    """Return how many wedges one edge more or less can make or break.

    An edge between two nodes is in as many wedges as the two have other edges. The largest number is thus the
    largest sum of the degrees of two nodes, minus 2 if they are connected. One edge moves it by at most 1.

    The two largest degrees, of sum s, give s - 2 at least. Only two nodes that are not connected can give
    more, with a sum of s or s - 1. Such two exist if more pairs than edges have that sum.

    ``unseen``: whether there may be nodes that no edge mentions. The next edge may lead to one of them, so
    one node without edges is added to the others.

    Examples
    --------
    >>> from tacit.graphs._edges import EdgeArrays
    >>> star = EdgeArrays(4, [0, 0, 0], [1, 2, 3])
    >>> largest_wedge_change(star), largest_wedge_change(star, unseen=True)
    (2, 3)
    """
    degrees = np.append(edges.degrees(), 0) if unseen else edges.degrees()
    if len(degrees) < 2:
        return 0
    top = int(np.partition(degrees, -2)[-2:].sum())
    nodes_of_degree = np.bincount(degrees)
    sums = degrees[edges.source] + degrees[edges.target]
    for total in (top, top - 1):
        if total >= 0 and _pairs_of_sum(nodes_of_degree, total) > int(np.count_nonzero(sums == total)):
            return total
    return top - 2


def _pairs_of_sum(nodes_of_degree: NDArray[np.int64], total: int) -> int:
    """Return how many pairs of nodes have degrees of this sum, if none has a degree beyond the list."""
    low, high = max(0, total - len(nodes_of_degree) + 1), min(total, len(nodes_of_degree) - 1)
    low_nodes = nodes_of_degree[low : high + 1]
    ordered = int(np.dot(low_nodes, low_nodes[::-1]))
    same = int(nodes_of_degree[total // 2]) if total % 2 == 0 and total // 2 < len(nodes_of_degree) else 0
    return (ordered - same) // 2


def count_triangles(edges: EdgeArrays) -> int:
    """Return the number of triangles: three nodes, each pair of which is connected.

    Every edge points from the end of smaller degree to the other, so that no node has more than
    ``sqrt(2 * edges.size)`` edges out (Chiba and Nishizeki 1985).

    Examples
    --------
    >>> from tacit.graphs._edges import EdgeArrays
    >>> count_triangles(EdgeArrays(4, [0, 0, 0, 1, 1, 2], [1, 2, 3, 2, 3, 3]))
    4
    """
    out = _outward(edges)
    total = 0
    for start, end in _blocks(out @ _row_sizes(out)):
        rows = out[start:end]
        total += int((rows @ out).multiply(rows).sum(dtype=np.int64))
    return total


def list_triangles(edges: EdgeArrays) -> NDArray[np.int64]:
    """Return the triangles as rows of three codes, each row and the rows in order.

    Examples
    --------
    >>> from tacit.graphs._edges import EdgeArrays
    >>> list_triangles(EdgeArrays(4, [0, 0, 1, 1, 2], [1, 2, 2, 3, 3])).tolist()
    [[0, 1, 2], [1, 2, 3]]
    """
    order = _by_degree(edges)[::-1]
    out = _outward(edges)
    starts, sizes = out.indptr.astype(np.int64), _row_sizes(out)
    u = np.repeat(np.arange(edges.nodes), sizes)
    v = out.indices.astype(np.int64)
    keys = u * max(edges.nodes, 1) + v
    batches = [np.empty((0, 3), dtype=np.int64)]
    for start, end in _blocks(sizes[v], _LISTED_PATHS):
        repeats = sizes[v[start:end]]
        path = np.repeat(np.arange(start, end), repeats)
        step = np.arange(len(path)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
        w = v[starts[v[path]] + step]
        closing = u[path] * edges.nodes + w
        positions = np.minimum(np.searchsorted(keys, closing), edges.size - 1)
        closed = keys[positions] == closing
        batches.append(order[np.column_stack([u[path][closed], v[path][closed], w[closed]])])
    rows = np.sort(np.concatenate(batches), axis=1)
    return rows[np.lexsort((rows[:, 2], rows[:, 1], rows[:, 0]))]


def largest_common(edges: EdgeArrays) -> int:
    """Return the largest number of common neighbours of two nodes, connected or not.

    This is how many triangles one edge more or less can make or break. One edge moves it by at most 1.

    Two nodes have no more common neighbours than edges. So the nodes come in the order of their degrees, and
    the search ends at the first node whose degree is not above the number that was found.

    Examples
    --------
    >>> from tacit.graphs._edges import EdgeArrays
    >>> largest_common(EdgeArrays(5, [0, 0, 0, 1, 1, 1], [2, 3, 4, 2, 3, 4]))
    3
    """
    order = _by_degree(edges)
    rank = np.empty(edges.nodes, dtype=np.int64)
    rank[order] = np.arange(edges.nodes)
    u, v = rank[edges.source], rank[edges.target]
    adjacency = _matrix(np.concatenate([u, v]), np.concatenate([v, u]), edges.nodes)
    degrees = _row_sizes(adjacency)
    best = 0
    for start, end in _blocks(adjacency @ degrees):
        if degrees[start] <= best:
            break
        stop = start + int(np.searchsorted(-degrees[start:end], -best))  # the first of degree `best` or less
        common = adjacency[start:stop] @ adjacency[:, :stop]
        row = np.repeat(np.arange(start, stop, dtype=common.indices.dtype), _row_sizes(common))
        best = max(best, int(np.max(common.data, where=common.indices < row, initial=0)))
    return best


def _by_degree(edges: EdgeArrays) -> NDArray[np.int64]:
    """Return the nodes, largest degree first."""
    return np.argsort(-edges.degrees(), kind="stable")


def _outward(edges: EdgeArrays) -> csr_array:
    """Return the matrix of the edges, each from its end of smaller degree; nodes in the order of degrees."""
    rank = np.empty(edges.nodes, dtype=np.int64)
    rank[_by_degree(edges)[::-1]] = np.arange(edges.nodes)
    u, v = rank[edges.source], rank[edges.target]
    return _matrix(np.minimum(u, v), np.maximum(u, v), edges.nodes)


def _matrix(rows: NDArray[np.int64], columns: NDArray[np.int64], nodes: int) -> csr_array:
    from scipy.sparse import csr_array

    ones = np.ones(len(rows), dtype=np.int32)
    matrix = csr_array((ones, (rows, columns)), shape=(nodes, nodes))
    matrix.sort_indices()
    return matrix


def _row_sizes(matrix: csr_array) -> NDArray[np.int64]:
    sizes: NDArray[np.int64] = np.diff(matrix.indptr).astype(np.int64)
    return sizes


def _blocks(work: NDArray[np.int64], max_work: int = _PATHS) -> Iterator[tuple[int, int]]:
    """Split rows into blocks of about equal work; a row with more work is a block of its own."""
    total = np.concatenate([[0], np.cumsum(work)])
    start = 0
    while start < len(work):
        end = int(np.searchsorted(total, total[start] + max_work, side="right")) - 1
        end = max(end, start + 1)
        yield start, end
        start = end


def largest_sum(rows: NDArray[np.int64], limits: Sequence[int]) -> Fraction:
    """Return the largest sum of numbers x >= 0 with ``rows @ x <= limits``, as an exact fraction.

    Guarantee: it always ends (Bland 1977). Limits are not negative, and every number has a limit. Divisions
    in the table are exact (Edmonds 1967), so that it holds whole numbers alone.

    Examples
    --------
    >>> largest_sum(np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1]]), [1, 1, 1])
    Fraction(3, 2)
    """
    height, width = rows.shape
    table = np.zeros((height + 1, width + height + 1), dtype=object)
    table[:height, :width] = rows.astype(object)
    table[:height, width:-1] = np.eye(height, dtype=np.int64).astype(object)
    table[:height, -1] = list(limits)
    table[-1, :width] = -1
    basis, scale = list(range(width, width + height)), 1
    while True:
        enters = next((j for j in range(width + height) if table[-1, j] < 0), None)
        if enters is None:
            return Fraction(int(table[-1, -1]), scale)
        candidates = [i for i in range(height) if table[i, enters] > 0]
        leaves = min(candidates, key=lambda i: (Fraction(table[i, -1], table[i, enters]), basis[i]))
        pivot_row, pivot = table[leaves].copy(), table[leaves, enters]
        table = (table * pivot - np.outer(table[:, enters], pivot_row)) // scale
        table[leaves] = pivot_row
        basis[leaves], scale = enters, pivot


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
    row_of_node = np.where(crowded, np.cumsum(crowded) - 1, -1)  # limits of crowded nodes alone can bind
    ends = row_of_node[triangles[contested]]
    ends, multiplicity = np.unique(
        np.sort(ends, axis=1), axis=0, return_counts=True
    )  # triangles with the same limits
    if not len(ends):
        return free
    for solver in _SOLVERS:
        bounds = _bounds(ends, multiplicity, tau, solver)
        if bounds is not None and 2 * (bounds[1] - bounds[0]) <= _UNIT:
            return free + (sum(bounds) + _UNIT) // (2 * _UNIT)
    return free + int(_solve_exactly(ends, multiplicity, tau) + Fraction(1, 2))


def _bounds(
    ends: NDArray[np.int64], multiplicity: NDArray[np.int64], tau: int, solver: str
) -> tuple[int, int] | None:
    """Return proven bounds of the optimum in units of 2^-30, or nothing if the solver finds no solution.

    Below: weights that keep all limits. Above, for any prices y >= 0 of the nodes: the sum of tau y over
    nodes and of max(0, 1 - prices of its nodes) over triangles (weak duality).
    """
    limits = _limits(ends)
    solution = _solve(limits, multiplicity, tau, solver)
    if solution is None:
        return None
    weights, prices = (
        np.clip(np.nan_to_num(solution[0]), 0, multiplicity),
        np.clip(np.nan_to_num(solution[1]), 0, 1),
    )
    fitting = tau / np.maximum(limits @ weights, max(tau, 1)) * (1 - 1e-12)
    share = np.min(np.where(ends >= 0, fitting[ends], 1), axis=1)
    units = np.floor(weights * share * _UNIT).astype(np.int64)
    if np.any(limits @ units > tau * _UNIT):
        return None
    price = np.floor(prices * _UNIT).astype(np.int64)
    saved = np.maximum(0, _UNIT - price @ limits)
    return int(units.sum()), tau * int(price.sum()) + int((saved * multiplicity).sum())


def _limits(ends: NDArray[np.int64]) -> csr_array:
    """Return which group of triangles (columns) counts towards the limit of which node (rows)."""
    from scipy.sparse import csr_array

    group, corner = np.nonzero(ends >= 0)
    ones = np.ones(len(group), dtype=np.int64)
    return csr_array((ones, (ends[group, corner], group)), shape=(int(ends.max()) + 1, len(ends)))


def _solve(
    limits: csr_array, multiplicity: NDArray[np.int64], tau: int, solver: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Return the solver's weights of the groups and prices of the nodes, whatever they are worth."""
    from scipy.optimize import linprog

    bounds = np.column_stack([np.zeros(len(multiplicity)), multiplicity])
    solution = linprog(
        -np.ones(len(multiplicity)), limits, np.full(limits.shape[0], tau), bounds=bounds, method=solver
    )
    if solution.x is None or solution.ineqlin.marginals is None:
        return None
    return np.asarray(solution.x), -np.asarray(solution.ineqlin.marginals)


def _solve_exactly(ends: NDArray[np.int64], multiplicity: NDArray[np.int64], tau: int) -> Fraction:
    """Return the exact optimum."""
    limits = _limits(ends).toarray()
    rows = np.concatenate([limits, np.eye(len(multiplicity), dtype=np.int64)])
    return largest_sum(rows, [tau] * len(limits) + multiplicity.tolist())
