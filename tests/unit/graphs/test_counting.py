"""Triangles, wedges and stars equal what a slow count by definition finds."""

from __future__ import annotations

from itertools import combinations
from math import comb

import networkx as nx
import numpy as np
import pytest

from tacit.graphs import _subgraphs
from tacit.graphs._edges import EdgeArrays
from tacit.graphs._subgraphs import (
    count_stars,
    count_triangles,
    count_wedges,
    largest_common,
    largest_wedge_change,
    list_triangles,
    top_degree,
)


def random_graph(rng, nodes):
    """Return a graph of any density, with hubs in every second one."""
    rows, columns = np.triu_indices(nodes, 1)
    weight = rng.random(nodes) ** 3 if rng.random() < 0.5 else np.ones(nodes)
    kept = rng.random(len(rows)) < rng.random() * 2 * np.sqrt(weight[rows] * weight[columns])
    return EdgeArrays(nodes, rows[kept], columns[kept])


def adjacency(edges):
    square = np.zeros((edges.nodes, edges.nodes), dtype=np.int64)
    square[edges.source, edges.target] = square[edges.target, edges.source] = 1
    return square


def by_definition(edges):
    """Return triangles, the largest number of common neighbours, wedges and their largest change."""
    square = adjacency(edges)
    common, degree = square @ square, square.sum(axis=0)
    pairs = list(combinations(range(edges.nodes), 2))
    return (
        sum(square[u, v] * square[v, w] * square[u, w] for u, v, w in combinations(range(edges.nodes), 3)),
        max((common[u, v] for u, v in pairs), default=0),
        sum(comb(int(d), 2) for d in degree),
        max((degree[u] + degree[v] - 2 * square[u, v] for u, v in pairs), default=0),
    )


def counted(edges):
    return (
        count_triangles(edges),
        largest_common(edges),
        count_wedges(edges),
        largest_wedge_change(edges),
    )


def test_every_graph_of_five_nodes():
    pairs = list(combinations(range(5), 2))
    for chosen in range(2 ** len(pairs)):
        kept = [pair for i, pair in enumerate(pairs) if chosen >> i & 1]
        edges = EdgeArrays(5, [u for u, _ in kept], [v for _, v in kept])
        assert counted(edges) == by_definition(edges), kept


@pytest.mark.parametrize("paths", [4_000_000, 7])
def test_random_graphs_in_one_block_and_in_many(monkeypatch, paths):
    monkeypatch.setattr(_subgraphs._blocks, "__defaults__", (paths,))
    rng = np.random.default_rng(11)
    for _ in range(300):
        edges = random_graph(rng, int(rng.integers(0, 16)))
        assert counted(edges) == by_definition(edges), edges.pairs()


@pytest.mark.long
def test_thousands_of_larger_random_graphs(monkeypatch):
    monkeypatch.setattr(_subgraphs._blocks, "__defaults__", (50,))
    rng = np.random.default_rng(12)
    for _ in range(3_000):
        edges = random_graph(rng, int(rng.integers(2, 41)))
        square = adjacency(edges)
        common = square @ square
        np.fill_diagonal(common, 0)
        assert count_triangles(edges) == np.trace(square @ square @ square) // 6
        assert largest_common(edges) == common.max()
        degree = square.sum(axis=0)
        reach = degree[:, None] + degree - 2 * square
        np.fill_diagonal(reach, 0)
        assert largest_wedge_change(edges) == reach.max()


@pytest.mark.parametrize("paths", [1_000_000, 5])
def test_the_list_of_triangles_is_complete_and_in_order(monkeypatch, paths):
    monkeypatch.setattr(_subgraphs, "_LISTED_PATHS", paths)
    rng = np.random.default_rng(13)
    for _ in range(100):
        edges = random_graph(rng, int(rng.integers(0, 14)))
        square = adjacency(edges)
        rows = [
            [u, v, w]
            for u, v, w in combinations(range(edges.nodes), 3)
            if square[u, v] * square[v, w] * square[u, w]
        ]
        assert list_triangles(edges).tolist() == rows


@pytest.mark.parametrize(
    ("graph", "triangles", "common"), [(nx.karate_club_graph, 45, 10), (nx.les_miserables_graph, 467, 16)]
)
def test_well_known_graphs(graph, triangles, common):
    square = nx.to_scipy_sparse_array(graph(), weight=None).tocoo()
    edges = EdgeArrays(square.shape[0], *square.coords)
    assert (count_triangles(edges), largest_common(edges)) == (triangles, common)


def test_stars_and_degrees():
    rng = np.random.default_rng(14)
    for _ in range(50):
        edges = random_graph(rng, int(rng.integers(0, 30)))
        degree = adjacency(edges).sum(axis=0)
        assert top_degree(edges) == max(degree, default=0)
        assert edges.degrees().tolist() == degree.tolist()
        for legs in range(1, 6):
            assert count_stars(edges, legs) == sum(comb(int(d), legs) for d in degree)


def test_stars_of_a_large_hub_do_not_overflow():
    hub = EdgeArrays(5_001, np.zeros(5_000), np.arange(1, 5_001))
    assert count_stars(hub, 40) == comb(5_000, 40)
