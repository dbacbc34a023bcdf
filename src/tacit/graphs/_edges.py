"""The edges of a graph in memory, as arrays of whole numbers, in one form whatever the source looked like.

A graph is read once, after the first charge, and kept for later questions. It can be projected to a graph in
which no node has more than a public number of edges.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tacit.errors import TacitError, bad_parameter, missing_file
from tacit.fixes import Set

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from tacit.graphs._edge_sources import EdgeSource, NamedPairs
    from tacit.graphs._graph_facts import GraphFacts, WeightFact


def _read_codes(name: str, nodes: ArrayLike) -> NDArray[np.int64]:
    """Read codes of nodes; they are not shown, because they may be private."""
    try:
        return np.asarray(nodes, dtype=np.int64)
    except (TypeError, ValueError, OverflowError):
        raise bad_parameter(name, "whole numbers", "others", fix=Set(**{name: [0, 1]})) from None


def _read_ends(source: ArrayLike, target: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Read the two ends of edges."""
    u, v = _read_codes("source", source), _read_codes("target", target)
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
        u, v = _read_ends(source, target)
        if not directed:
            u, v = np.minimum(u, v), np.maximum(u, v)
        valid = (u != v) & (np.minimum(u, v) >= 0) & (np.maximum(u, v) < nodes)
        keys = np.sort(u[valid] * max(nodes, 1) + v[valid])
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
        u, v = _read_ends(source, target)
        if not self.directed:
            u, v = np.minimum(u, v), np.maximum(u, v)
        if not self.size:
            return np.full(len(u), -1, dtype=np.int64)
        inside = (np.minimum(u, v) >= 0) & (np.maximum(u, v) < self.nodes)
        codes = np.where(inside, u * self.nodes + v, -1)
        keys = self.source * self.nodes + self.target
        positions = np.minimum(np.searchsorted(keys, codes), self.size - 1)
        return np.where(keys[positions] == codes, positions, -1)


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
    selected = ~contested
    where = np.flatnonzero(contested)
    accepted = []
    for u, v in zip(edges.source[where].tolist(), edges.target[where].tolist(), strict=True):
        fits = room[u] > 0 and room[v] > 0
        if fits:
            room[u] -= 1
            room[v] -= 1
        accepted.append(fits)
    selected[where] = accepted
    return EdgeArrays(edges.nodes, edges.source[selected], edges.target[selected], directed=edges.directed)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LoadedGraph:
    """The edges, the names of their nodes and their weights.

    Parameters
    ----------
    edges
        The edges. Of a bipartite graph, they lead from the first ``sources`` nodes to the others.
    names
        The name of each node.
    sources
        How many nodes stand on the side of the sources; all of them unless the graph is bipartite.
    weights
        The weight of each edge in steps of the grid; None where there are none.
    listed
        Whether a public list says which nodes there are. Otherwise there may be nodes that no edge mentions.
    """

    edges: EdgeArrays
    names: tuple[str, ...]
    sources: int
    weights: NDArray[np.int64] | None = None
    listed: bool = False


class GraphReader:
    """Reads a source of edges when it is first needed, by the declared public rules."""

    def __init__(self, source: EdgeSource, facts: GraphFacts, weight: WeightFact | None) -> None:
        self._source, self._facts, self._weight = source, facts, weight
        self._lock = threading.Lock()
        self._loaded: LoadedGraph | None = None

    def unavailable(self) -> TacitError | None:
        """Return why nothing can be drawn: the file of the edges is not there."""
        path = "" if self._loaded is not None else self._source.missing_file
        if not path:
            return None
        return missing_file(
            path,
            "unknown-table",
            why="nothing was charged; the file was moved or deleted after the graph was declared",
            fix="put the file back, or declare the graph with its new path",
        )

    def load(self) -> LoadedGraph:
        """Return the graph; only tasks call this, after the charge."""
        with self._lock:
            if self._loaded is None:
                self._loaded = self._made(self._source.read())
            return self._loaded

    def _made(self, pairs: NamedPairs) -> LoadedGraph:
        facts = self._facts
        pairs = pairs.in_order() if facts.by_node else pairs
        source_facts, targets = facts.nodes, facts.target_nodes or facts.nodes
        names = list(pairs.names if source_facts.listed is None else source_facts.listed)
        sources = len(names)
        u = np.append(source_facts.codes(pairs.names), -1)[pairs.source]
        v = np.append(targets.codes(pairs.names), -1)[pairs.target]
        if facts.bipartite:
            v = np.where(v >= 0, v + sources, -1)
            names += list(pairs.names if targets.listed is None else targets.listed)
        edges = EdgeArrays(len(names), u, v, directed=facts.directed or facts.bipartite)
        weights = None
        if self._weight is not None and pairs.weights is not None:
            weights = self._weight.steps(edges, (u, v), pairs.weights, symmetric=pairs.symmetric)
        return LoadedGraph(edges, tuple(names), sources, weights, source_facts.listed is not None)
