"""Neighbours of graphs: all small ones, random ones and witnesses; how far statistics move between them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING

import numpy as np

from tacit.graphs._edges import EdgeArrays, project_greedily
from tacit.graphs._subgraphs import (
    count_stars,
    count_triangles,
    count_wedges,
    largest_common,
    largest_wedge_change,
    top_degree,
    triangle_programme,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(frozen=True)
class Statistic:
    """A statistic of a graph on at most `n` nodes, and how far one edge, or one node, may move it."""

    name: str
    read: Callable[[EdgeArrays, int], object]
    l1: Callable[[int], int]
    l2_squared: Callable[[int], int] | None = None


def degree_histogram(edges: EdgeArrays, largest: int) -> np.ndarray:
    """Return how many nodes have degree 0, 1, ..., `largest`; nodes of larger degree stand at `largest`."""
    return np.bincount(np.minimum(edges.degrees(), largest), minlength=largest + 1)


def mixing(edges: EdgeArrays, n: int) -> np.ndarray:
    """Return edges between three public groups of nodes."""
    groups = np.sort(np.column_stack([edges.source % 3, edges.target % 3]), axis=1)
    return np.bincount(groups[:, 0] * 3 + groups[:, 1], minlength=9)


#: docs/proofs/graphs.md, "Edge level": one edge joins or leaves, the nodes stay.
EDGE_LEVEL = [
    Statistic("edges", lambda e, n: e.size, lambda n: 1),
    Statistic("mixing", mixing, lambda n: 1, lambda n: 1),
    Statistic("triangles", lambda e, n: count_triangles(e), lambda n: n - 2),
    Statistic("largest common", lambda e, n: largest_common(e), lambda n: 1),
    Statistic("wedges", lambda e, n: count_wedges(e), lambda n: 2 * (n - 2)),
    Statistic("largest wedge change", lambda e, n: largest_wedge_change(e), lambda n: 1),
    Statistic("3-stars", lambda e, n: count_stars(e, 3), lambda n: 2 * comb(n - 2, 2)),
    Statistic("top degree", lambda e, n: top_degree(e), lambda n: 1),
    Statistic("histogram", lambda e, n: degree_histogram(e, n - 1), lambda n: 4, lambda n: 8),
    Statistic("cumulative", lambda e, n: np.cumsum(degree_histogram(e, n)), lambda n: 2, lambda n: 4),
    Statistic("sorted degrees", lambda e, n: np.sort(e.degrees()), lambda n: 2, lambda n: 2),
]


def node_level(bound: int) -> list[Statistic]:
    """Return docs/proofs/graphs.md, "Node level": one node joins or leaves with all its edges."""

    def kept(edges: EdgeArrays) -> np.ndarray:
        return degree_histogram(project_greedily(edges, bound), bound)

    return [
        Statistic("edges", lambda e, n: project_greedily(e, bound).size, lambda n: bound),
        Statistic("histogram", lambda e, n: kept(e), lambda n: 2 * bound + 1),
        Statistic("cumulative", lambda e, n: np.cumsum(kept(e)), lambda n: bound + 1),
    ]


def programme(tau: int) -> Statistic:
    """Return triangles for the node level, whose limit per node is `tau`."""
    return Statistic("triangles", lambda e, n: triangle_programme(e, tau), lambda n: tau + 1)


# neighbours


def graph(nodes: int, pairs: str | list[tuple[int, int]]) -> EdgeArrays:
    """Return a graph from pairs, or from text such as "01 12"."""
    read = [(int(p[0]), int(p[1])) for p in pairs.split()] if isinstance(pairs, str) else pairs
    return EdgeArrays(nodes, [u for u, _ in read], [v for _, v in read])


def without_node(edges: EdgeArrays, node: int) -> EdgeArrays:
    """Return the graph without a node: the codes of later names fall by 1, their order stays."""
    kept = (edges.source != node) & (edges.target != node)
    u, v = edges.source[kept], edges.target[kept]
    return EdgeArrays(edges.nodes - 1, u - (u > node), v - (v > node))


def flipped(edges: EdgeArrays, u: int, v: int) -> EdgeArrays:
    """Return the graph with the edge of two nodes removed if it was there, added if not."""
    place = int(edges.places([u], [v])[0])
    if place < 0:
        return EdgeArrays(edges.nodes, np.append(edges.source, u), np.append(edges.target, v))
    return EdgeArrays(edges.nodes, np.delete(edges.source, place), np.delete(edges.target, place))


def random_graph(rng: np.random.Generator, most: int = 40) -> EdgeArrays:
    """Return a graph of any density on up to `most` nodes; every second one has hubs."""
    nodes = int(rng.integers(3, most + 1))
    rows, columns = np.triu_indices(nodes, 1)
    weight = rng.random(nodes) ** 3 if rng.random() < 0.5 else np.ones(nodes)
    kept = rng.random(len(rows)) < rng.random() * 2 * np.sqrt(weight[rows] * weight[columns])
    return EdgeArrays(nodes, rows[kept], columns[kept])


def all_graphs(nodes: int) -> Iterator[EdgeArrays]:
    """Return every labelled graph, in the order of the number whose bits are the pairs in their order."""
    rows, columns = np.triu_indices(nodes, 1)
    bits = np.arange(len(rows))
    for number in range(1 << len(rows)):
        kept = (number >> bits & 1).astype(bool)
        yield EdgeArrays(nodes, rows[kept], columns[kept])


# how far statistics move


def distances(one: object, other: object) -> tuple[int, int]:
    """Return the L1 distance and the squared L2 distance."""
    moved = np.abs(np.asarray(one, dtype=np.int64) - np.asarray(other, dtype=np.int64))
    return int(moved.sum()), int((moved**2).sum())


def table(nodes: int, statistic: Statistic, size: int | None = None) -> np.ndarray:
    """Return the statistic of every labelled graph, one row each."""
    rows = [np.atleast_1d(statistic.read(e, size or nodes)) for e in all_graphs(nodes)]
    return np.array(rows, dtype=np.int64)


def worst_edge(nodes: int, statistic: Statistic) -> tuple[int, int]:
    """Return the largest L1 and squared L2 distance over all graphs and all edges."""
    values = table(nodes, statistic)
    numbers = np.arange(len(values))
    worst = (0, 0)
    for bit in range(comb(nodes, 2)):
        moved = np.abs(values - values[numbers ^ (1 << bit)])
        worst = max(worst[0], int(moved.sum(axis=1).max())), max(worst[1], int((moved**2).sum(axis=1).max()))
    return worst


def worst_node(nodes: int, statistic: Statistic) -> int:
    """Return the largest L1 distance over all graphs and all nodes that leave."""
    values, smaller = table(nodes, statistic), table(nodes - 1, statistic, nodes)
    place = {pair: i for i, pair in enumerate(combinations(range(nodes), 2))}
    numbers, worst = np.arange(len(values)), 0
    for node in range(nodes):
        left = [u for u in range(nodes) if u != node]
        bits = [place[pair] for pair in combinations(left, 2)]
        rest = sum((numbers >> bit & 1) << i for i, bit in enumerate(bits))
        worst = max(worst, int(np.abs(values - smaller[rest]).sum(axis=1).max()))
    return worst


# witnesses: pairs of neighbours on which broken counts move too far; the nodes of small graphs hide them

#: Greedy projection to 2 edges per node: node 0 leaves, two triangles change.
NODE_WITNESS = graph(6, "01 02 12 25 34 35 45")
#: Greedy projection to 2 edges per node: the edge 02 joins, three triangles change.
EDGE_WITNESS = graph(9, "04 05 16 17 23 28 38 45 57 67")


def hub(size: int) -> EdgeArrays:
    """Return a hub, node 0, whose neighbours have one other neighbour each."""
    near = range(1, size + 1)
    return graph(2 * size + 1, [(0, i) for i in near] + [(i, i + size) for i in near])


def path(nodes: int) -> EdgeArrays:
    """Return a path in the order of the codes."""
    return graph(nodes, [(i, i + 1) for i in range(nodes - 1)])


def chain(blocks: int) -> EdgeArrays:
    """Return triangles in a row: if greedy projection to 2 edges loses one of them, it loses all the next.

    A link leads from each to the last node of the next one. It is kept only if its start has room.
    """
    triangles = [(3 * j + u, 3 * j + v) for j in range(blocks) for u, v in ((0, 1), (0, 2), (1, 2))]
    links = [(2 if j == 0 else 3 * j + 1, 3 * j + 5) for j in range(blocks - 1)]
    return graph(3 * blocks, triangles + links)
