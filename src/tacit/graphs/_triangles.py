"""Triangles of a graph, and how many of them one edge can make or break."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from tacit.graphs._edges import EdgeArrays

#: How many paths of two edges a block holds at most, if one row alone does not hold more: 12 bytes each in a
#: product of matrices, 60 in a list.
_PATHS = 4_000_000
_LISTED_PATHS = 1_000_000


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
    found = 0
    for start, end in _blocks(out @ _row_sizes(out)):
        rows = out[start:end]
        found += int((rows @ out).multiply(rows).sum(dtype=np.int64))
    return found


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
    found = [np.empty((0, 3), dtype=np.int64)]
    for start, end in _blocks(sizes[v], _LISTED_PATHS):
        repeats = sizes[v[start:end]]
        path = np.repeat(np.arange(start, end), repeats)
        step = np.arange(len(path)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
        w = v[starts[v[path]] + step]
        wanted = u[path] * edges.nodes + w
        place = np.minimum(np.searchsorted(keys, wanted), edges.size - 1)
        closed = keys[place] == wanted
        found.append(order[np.column_stack([u[path][closed], v[path][closed], w[closed]])])
    rows = np.sort(np.concatenate(found), axis=1)
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
    place = np.empty(edges.nodes, dtype=np.int64)
    place[order] = np.arange(edges.nodes)
    u, v = place[edges.source], place[edges.target]
    both = _matrix(np.concatenate([u, v]), np.concatenate([v, u]), edges.nodes)
    degrees = _row_sizes(both)
    best = 0
    for start, end in _blocks(both @ degrees):
        if degrees[start] <= best:
            break
        last = start + int(np.searchsorted(-degrees[start:end], -best))  # the first of degree `best` or less
        common = both[start:last] @ both[:, :last]
        row = np.repeat(np.arange(start, last, dtype=common.indices.dtype), _row_sizes(common))
        best = max(best, int(np.max(common.data, where=common.indices < row, initial=0)))
    return best


def _by_degree(edges: EdgeArrays) -> NDArray[np.int64]:
    """Return the nodes, largest degree first."""
    return np.argsort(-edges.degrees(), kind="stable")


def _outward(edges: EdgeArrays) -> csr_array:
    """Return the matrix of the edges, each from its end of smaller degree; nodes in the order of degrees."""
    place = np.empty(edges.nodes, dtype=np.int64)
    place[_by_degree(edges)[::-1]] = np.arange(edges.nodes)
    u, v = place[edges.source], place[edges.target]
    return _matrix(np.minimum(u, v), np.maximum(u, v), edges.nodes)


def _matrix(rows: NDArray[np.int64], columns: NDArray[np.int64], nodes: int) -> csr_array:
    from scipy.sparse import csr_array

    ones = np.ones(len(rows), dtype=np.int32)
    made = csr_array((ones, (rows, columns)), shape=(nodes, nodes))
    made.sort_indices()
    return made


def _row_sizes(matrix: csr_array) -> NDArray[np.int64]:
    sizes: NDArray[np.int64] = np.diff(matrix.indptr).astype(np.int64)
    return sizes


def _blocks(work: NDArray[np.int64], most: int = _PATHS) -> Iterator[tuple[int, int]]:
    """Split rows into blocks of about equal work; a row with more work is a block of its own."""
    total = np.concatenate([[0], np.cumsum(work)])
    start = 0
    while start < len(work):
        end = int(np.searchsorted(total, total[start] + most, side="right")) - 1
        end = max(end, start + 1)
        yield start, end
        start = end
