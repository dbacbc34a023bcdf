"""The edges of a graph as arrays of whole numbers, in one form whatever the source looked like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tacit.errors import bad_parameter
from tacit.fixes import Set

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def _codes(name: str, nodes: ArrayLike) -> NDArray[np.int64]:
    """Read codes of nodes; they are not shown, because they may be private."""
    try:
        return np.asarray(nodes, dtype=np.int64)
    except (TypeError, ValueError, OverflowError):
        raise bad_parameter(name, "whole numbers", "others", fix=Set(**{name: [0, 1]})) from None


def _both(source: ArrayLike, target: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Read the two ends of edges."""
    u, v = _codes("source", source), _codes("target", target)
    if u.shape != v.shape:
        fix = Set(source=[0, 1], target=[1, 2])
        raise bad_parameter("source and target", "of one length", [u.shape, v.shape], fix=fix)
    return u, v


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class EdgeArrays:
    """The edges of a graph: each pair of nodes once, in the order of the pairs.

    Guarantee: any pair of code columns of equal length gives a graph. Four public rules say which: an edge
    from a node to itself is dropped; an edge is dropped if one of its ends is not a node (missing ends have
    the code -1); an edge that is listed twice counts once; and without a direction, ``(u, v)`` and ``(v, u)``
    are the same edge, written with ``u < v``. So the graph is a function of the set of pairs: the order of
    the rows does not matter, and one more pair adds at most one edge.

    Parameters
    ----------
    nodes
        The number of nodes; their codes are 0, 1, ..., nodes - 1. Nodes without edges count too.
    source, target
        The ends of the edges, as codes.
    directed
        Whether ``(u, v)`` and ``(v, u)`` are two edges.

    Examples
    --------
    >>> edges = EdgeArrays(4, [2, 0, 1, 1, -1, 3], [0, 2, 1, 0, 2, 2])
    >>> edges.pairs()
    [(0, 1), (0, 2), (2, 3)]
    >>> edges.size, edges.degrees().tolist()
    (3, [2, 1, 2, 1])
    """

    nodes: int
    source: NDArray[np.int64]
    target: NDArray[np.int64]
    directed: bool = False

    def __init__(self, nodes: int, source: ArrayLike, target: ArrayLike, *, directed: bool = False) -> None:
        u, v = _both(source, target)
        if not directed:
            u, v = np.minimum(u, v), np.maximum(u, v)
        kept = (u != v) & (np.minimum(u, v) >= 0) & (np.maximum(u, v) < nodes)
        keys = np.sort(u[kept] * max(nodes, 1) + v[kept])
        keys = keys[np.diff(keys, prepend=-1) > 0]
        object.__setattr__(self, "nodes", int(nodes))
        object.__setattr__(self, "source", keys // max(nodes, 1))
        object.__setattr__(self, "target", keys % max(nodes, 1))
        object.__setattr__(self, "directed", directed)

    def __repr__(self) -> str:
        return "EdgeArrays(private)"

    @property
    def size(self) -> int:
        """The number of edges."""
        return len(self.source)

    def pairs(self) -> list[tuple[int, int]]:
        """Return the edges as pairs of codes, sorted."""
        return list(zip(self.source.tolist(), self.target.tolist(), strict=True))

    def degrees(self) -> NDArray[np.int64]:
        """Return the number of edges at each node; of a directed graph, those that go out and come in."""
        return self.out_degrees() + self.in_degrees()

    def out_degrees(self) -> NDArray[np.int64]:
        """Return the number of edges that leave each node: of an undirected graph, to later nodes."""
        return np.bincount(self.source, minlength=self.nodes)

    def in_degrees(self) -> NDArray[np.int64]:
        """Return the number of edges that enter each node: of an undirected graph, from earlier nodes."""
        return np.bincount(self.target, minlength=self.nodes)

    def undirected(self) -> EdgeArrays:
        """Return the graph without directions: two nodes are connected if an edge goes either way."""
        return EdgeArrays(self.nodes, self.source, self.target) if self.directed else self

    def places(self, source: ArrayLike, target: ArrayLike) -> NDArray[np.int64]:
        """Return which edge each pair of codes is, as its place here; -1 for a pair that is not an edge.

        Examples
        --------
        >>> EdgeArrays(3, [0, 1], [1, 2]).places([1, 2, 0, -1], [0, 1, 2, 0]).tolist()
        [0, 1, -1, -1]
        """
        u, v = _both(source, target)
        if not self.directed:
            u, v = np.minimum(u, v), np.maximum(u, v)
        if not self.size:
            return np.full(len(u), -1, dtype=np.int64)
        inside = (np.minimum(u, v) >= 0) & (np.maximum(u, v) < self.nodes)
        wanted = np.where(inside, u * self.nodes + v, -1)
        keys = self.source * self.nodes + self.target
        found = np.minimum(np.searchsorted(keys, wanted), self.size - 1)
        return np.where(keys[found] == wanted, found, -1)
