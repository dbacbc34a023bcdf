"""Degrees, wedges and stars of a graph, and how far one edge moves them."""

from __future__ import annotations

from math import comb
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.graphs._edges import EdgeArrays


def top_degree(edges: EdgeArrays) -> int:
    """Return the largest degree. One edge moves it by at most 1.

    Examples
    --------
    >>> from tacit.graphs._edges import EdgeArrays
    >>> top_degree(EdgeArrays(4, [0, 0, 0], [1, 2, 3]))
    3
    """
    return int(np.max(edges.degrees(), initial=0))


def sorted_degrees(edges: EdgeArrays) -> NDArray[np.int64]:
    """Return the degrees of all nodes, smallest first.

    Guarantee: one edge moves two places by 1 each (L1 distance 2, squared L2 distance 2).

    Examples
    --------
    >>> from tacit.graphs._edges import EdgeArrays
    >>> sorted_degrees(EdgeArrays(4, [0, 0, 0], [1, 2, 3])).tolist()
    [1, 1, 1, 3]
    """
    return np.sort(edges.degrees())


def degree_histogram(edges: EdgeArrays, largest: int) -> NDArray[np.int64]:
    """Return how many nodes have degree 0, 1, ..., `largest`; nodes of larger degree stand at `largest`.

    Guarantee: one edge moves it by at most 4 (L1) and 8 (squared L2), since two nodes of equal degree can
    move together.

    Examples
    --------
    >>> from tacit.graphs._edges import EdgeArrays
    >>> degree_histogram(EdgeArrays(5, [0, 0, 0], [1, 2, 3]), largest=2).tolist()
    [1, 3, 1]
    """
    return np.bincount(np.minimum(edges.degrees(), largest), minlength=largest + 1)


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
    first = nodes_of_degree[low : high + 1]
    ordered = int(np.dot(first, first[::-1]))
    same = int(nodes_of_degree[total // 2]) if total % 2 == 0 and total // 2 < len(nodes_of_degree) else 0
    return (ordered - same) // 2
