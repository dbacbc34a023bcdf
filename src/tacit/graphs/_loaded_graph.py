"""A graph in memory: read once, after the first charge, and kept for later questions."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tacit.errors import TacitError
from tacit.graphs._edges import EdgeArrays

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.graphs._edge_sources import EdgeSource, NamedPairs
    from tacit.graphs._edge_weights import WeightFact
    from tacit.graphs._graph_facts import GraphFacts


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
        return TacitError(
            "unknown-table",
            f"the file of the edges does not exist: {path}",
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
        left, right = facts.nodes, facts.target_nodes or facts.nodes
        names = list(pairs.names if left.listed is None else left.listed)
        sources = len(names)
        u = np.append(left.codes(pairs.names), -1)[pairs.source]
        v = np.append(right.codes(pairs.names), -1)[pairs.target]
        if facts.bipartite:
            v = np.where(v >= 0, v + sources, -1)
            names += list(pairs.names if right.listed is None else right.listed)
        edges = EdgeArrays(len(names), u, v, directed=facts.directed or facts.bipartite)
        weights = None
        if self._weight is not None and pairs.weights is not None:
            weights = self._weight.steps(edges, (u, v), pairs.weights, symmetric=pairs.symmetric)
        return LoadedGraph(edges, tuple(names), sources, weights, left.listed is not None)
