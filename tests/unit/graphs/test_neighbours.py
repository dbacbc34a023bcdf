"""Every sensitivity of docs/proofs/graphs.md holds, and is reached, on all labelled graphs of 5 nodes."""

from __future__ import annotations

import numpy as np
import pytest

from support.graph_neighbours import (
    EDGE_LEVEL,
    all_graphs,
    degree_histogram,
    distances,
    flipped,
    node_level,
    programme,
    random_graph,
    without_node,
    worst_edge,
    worst_node,
)
from tacit.graphs._edges import project_greedily
from tacit.graphs._subgraphs import (
    count_triangles,
    count_wedges,
    largest_common,
    largest_wedge_change,
)


@pytest.mark.parametrize("statistic", EDGE_LEVEL, ids=lambda s: s.name)
def test_one_edge(statistic):
    l1, l2_squared = worst_edge(5, statistic)
    assert l1 == statistic.l1(5)
    assert statistic.l2_squared is None or l2_squared == statistic.l2_squared(5)


@pytest.mark.parametrize("bound", [1, 2, 3])
def test_one_node_after_greedy_projection(bound):
    for statistic in node_level(bound):
        assert worst_node(5, statistic) == statistic.l1(5), statistic.name


@pytest.mark.parametrize("tau", [1, 2, 3])
def test_one_node_in_the_programme_for_triangles(tau):
    assert tau <= worst_node(5, programme(tau)) <= tau + 1


@pytest.mark.parametrize(
    ("count", "width"), [(count_triangles, largest_common), (count_wedges, largest_wedge_change)]
)
def test_one_edge_moves_a_count_by_at_most_the_smaller_width(count, width):
    rng = np.random.default_rng(31)
    for _ in range(500):
        edges = random_graph(rng, 12)
        other = flipped(edges, *rng.choice(edges.nodes, 2, replace=False))
        assert abs(count(edges) - count(other)) <= min(width(edges), width(other))
        assert abs(width(edges) - width(other)) <= 1


@pytest.mark.parametrize("bound", [1, 2, 3])
def test_a_node_of_a_public_list_loses_its_edges_but_stays(bound):
    """The histogram then moves by 2 bound + 2, the cumulative one by 2 bound, the edge count by bound."""
    worst = np.zeros(3, dtype=int)
    for edges in all_graphs(5):
        for node in range(5):
            kept = (edges.source != node) & (edges.target != node)
            alone = type(edges)(5, edges.source[kept], edges.target[kept])
            one, other = (project_greedily(g, bound) for g in (edges, alone))
            bars, others = degree_histogram(one, bound), degree_histogram(other, bound)
            l1 = distances(bars, others)[0]
            cumulative = distances(np.cumsum(bars), np.cumsum(others))[0]
            worst = np.maximum(worst, [one.size - other.size, l1, cumulative])
    assert worst.tolist() == [bound, 2 * bound + 2, 2 * bound]


def test_random_graphs_up_to_40_nodes():
    rng = np.random.default_rng(32)
    for _ in range(60):
        edges = random_graph(rng)
        other = flipped(edges, *rng.choice(edges.nodes, 2, replace=False))
        n = edges.nodes
        for statistic in EDGE_LEVEL:
            l1, l2_squared = distances(statistic.read(edges, n), statistic.read(other, n))
            assert l1 <= statistic.l1(n), statistic.name
            assert statistic.l2_squared is None or l2_squared <= statistic.l2_squared(n)
        smaller = without_node(edges, int(rng.integers(n)))
        for statistic in [*node_level(int(rng.integers(1, 8))), programme(int(rng.integers(1, 9)))]:
            assert distances(statistic.read(edges, n), statistic.read(smaller, n))[0] <= statistic.l1(n)
