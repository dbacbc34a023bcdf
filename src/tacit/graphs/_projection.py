"""Projection of a graph to one in which no node has more than a public number of edges."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tacit.graphs._edges import EdgeArrays

if TYPE_CHECKING:
    from numpy.typing import NDArray


def project_greedily(edges: EdgeArrays, bound: int) -> EdgeArrays:
    """Keep each edge, in the order of the pairs, if both of its ends have fewer than `bound` edges so far.

    Guarantee: if a node with all its edges joins or leaves, the degrees of all other nodes together move by
    at most `bound`. So the edge count moves by at most `bound`, the degree histogram by ``2 * bound + 1``
    (L1) and the cumulative one by ``bound + 1``. Nothing else is bounded: the set of kept edges, triangles
    and mixing matrices can change everywhere (docs/proofs/graphs.md, "Node level"; Day, Li and Lyu 2016).

    Of a directed graph, a degree counts the edges of both directions: out-degrees alone are not bounded.

    The order of two pairs must not depend on other nodes: codes must follow `name_rank`.

    Examples
    --------
    >>> project_greedily(EdgeArrays(4, [0, 0, 0, 1, 2], [1, 2, 3, 2, 3]), bound=2).pairs()
    [(0, 1), (0, 2), (1, 2)]
    """
    crowded = edges.degrees() > bound
    contested = crowded[edges.source] | crowded[edges.target]  # all other edges are kept in any case
    room = np.where(crowded, bound, edges.size).tolist()
    kept = ~contested
    where = np.flatnonzero(contested)
    taken = []
    for u, v in zip(edges.source[where].tolist(), edges.target[where].tolist(), strict=True):
        fits = room[u] > 0 and room[v] > 0
        if fits:
            room[u] -= 1
            room[v] -= 1
        taken.append(fits)
    kept[where] = taken
    return EdgeArrays(edges.nodes, edges.source[kept], edges.target[kept], directed=edges.directed)


def cumulative_histogram(histogram: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many nodes have at most 0, 1, ... edges.

    Examples
    --------
    >>> cumulative_histogram(np.array([1, 3, 1])).tolist()
    [1, 4, 5]
    """
    return np.cumsum(histogram)
