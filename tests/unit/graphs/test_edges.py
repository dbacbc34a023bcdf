"""Any two columns of codes give a graph, by fixed rules."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.graphs._edges import EdgeArrays


def test_loops_missing_ends_and_repeated_edges_are_dropped():
    edges = EdgeArrays(4, [3, 0, 0, 1, 2, -1, 4, 1], [0, 3, 3, 1, 1, 2, 0, -1])
    assert edges.pairs() == [(0, 3), (1, 2)]


def test_a_directed_graph_keeps_both_directions_and_can_forget_them():
    edges = EdgeArrays(3, [1, 0, 2, 2], [0, 1, 2, 0], directed=True)
    assert edges.pairs() == [(0, 1), (1, 0), (2, 0)]
    assert edges.out_degrees().tolist() == [1, 1, 1]
    assert edges.in_degrees().tolist() == [2, 1, 0]
    assert edges.undirected().pairs() == [(0, 1), (0, 2)]


@pytest.mark.parametrize("nodes", [0, 1, 5])
def test_a_graph_may_have_no_edges(nodes):
    edges = EdgeArrays(nodes, [], [])
    assert (edges.size, edges.pairs(), edges.degrees().tolist()) == (0, [], [0] * nodes)
    assert edges.places([0, 3], [1, 1]).tolist() == [-1, -1]


def test_the_order_of_rows_does_not_matter_and_one_more_row_adds_at_most_one_edge():
    rng = np.random.default_rng(5)
    for _ in range(200):
        rows = rng.integers(-1, 6, (2, rng.integers(0, 20)))
        edges = EdgeArrays(6, *rows)
        assert edges.pairs() == sorted(
            {tuple(sorted(p)) for p in rows.T.tolist() if p[0] != p[1] and min(p) >= 0}
        )
        assert EdgeArrays(6, *rows[:, rng.permutation(rows.shape[1])]).pairs() == edges.pairs()
        more = EdgeArrays(6, *np.column_stack([rows, rng.integers(-1, 6, 2)]))
        assert set(more.pairs()) >= set(edges.pairs())
        assert more.size - edges.size in (0, 1)


@pytest.mark.parametrize("directed", [False, True])
def test_each_row_finds_its_edge(directed):
    rng = np.random.default_rng(6)
    u, v = rng.integers(-2, 9, (2, 60))
    edges = EdgeArrays(8, u, v, directed=directed)
    for a, b, place in zip(u, v, edges.places(u, v), strict=True):
        pair = (a, b) if directed else (min(a, b), max(a, b))
        assert place == (edges.pairs().index(pair) if pair in edges.pairs() else -1)


def test_a_message_that_shows_a_graph_shows_nothing_of_it():
    assert repr(EdgeArrays(3, [0], [1])) == repr(EdgeArrays(4, [], []))
