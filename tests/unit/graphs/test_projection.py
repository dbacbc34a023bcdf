"""A projected graph has the promised degrees, and the programme for triangles the promised value."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import linprog

from tacit.graphs import _subgraphs
from tacit.graphs._edges import EdgeArrays, project_greedily
from tacit.graphs._subgraphs import count_triangles, largest_sum, list_triangles, triangle_programme


def random_graph(rng, nodes, density=None):
    rows, columns = np.triu_indices(nodes, 1)
    kept = rng.random(len(rows)) < (rng.random() if density is None else density)
    return EdgeArrays(nodes, rows[kept], columns[kept])


# projection


def kept_by_definition(edges, bound):
    degree, kept = [0] * edges.nodes, []
    for u, v in edges.pairs():
        if degree[u] < bound and degree[v] < bound:
            degree[u] += 1
            degree[v] += 1
            kept.append((u, v))
    return kept


def test_edges_are_kept_in_order_while_both_ends_have_room():
    rng = np.random.default_rng(21)
    for _ in range(300):
        edges = random_graph(rng, int(rng.integers(0, 15)))
        for bound in (0, 1, 2, 5, 20):
            projected = project_greedily(edges, bound)
            assert projected.pairs() == kept_by_definition(edges, bound)
            assert np.max(projected.degrees(), initial=0) <= bound


def test_a_directed_graph_stays_directed_and_counts_both_directions():
    projected = project_greedily(EdgeArrays(3, [0, 1, 1, 2], [1, 0, 2, 1], directed=True), 2)
    assert projected.directed
    assert projected.pairs() == [(0, 1), (1, 0)]


def test_a_new_name_does_not_change_the_order_of_the_others():
    rng = np.random.default_rng(22)
    for _ in range(100):
        edges = random_graph(rng, 9)
        place = int(
            rng.integers(0, 10)
        )  # the new node, without edges, stands here: all later codes rise by 1
        code = np.arange(9) + (np.arange(9) >= place)
        longer = EdgeArrays(10, code[edges.source], code[edges.target])
        kept = project_greedily(edges, 2).pairs()
        assert project_greedily(longer, 2).pairs() == [(code[u], code[v]) for u, v in kept]


# programme


def relaxed_optimum(edges, tau):
    """Return the optimum as a float, by another way of writing the programme."""
    triangles = list_triangles(edges)
    if not len(triangles):
        return 0.0
    limits = np.array([[v in row for row in triangles.tolist()] for v in range(edges.nodes)], dtype=float)
    return -linprog(-np.ones(len(triangles)), limits, [tau] * edges.nodes, bounds=(0, 1)).fun


def test_the_programme_rounds_its_optimum():
    rng = np.random.default_rng(23)
    for _ in range(60):
        edges = random_graph(rng, int(rng.integers(3, 11)))
        for tau in (0, 1, 2, 5):
            assert abs(triangle_programme(edges, tau) - relaxed_optimum(edges, tau)) <= 0.75


def test_without_a_crowded_node_it_is_the_number_of_triangles():
    edges = random_graph(np.random.default_rng(24), 40, 0.3)
    assert triangle_programme(edges, 10_000) == count_triangles(edges) > 0


@pytest.mark.parametrize("broken", ["nothing", "zeros", "nan", "too much", "no prices"])
def test_a_solver_that_is_wrong_changes_nothing(monkeypatch, broken):
    rng = np.random.default_rng(25)
    graphs = [random_graph(rng, 7, 0.7) for _ in range(8)]
    expected = [triangle_programme(edges, 2) for edges in graphs]

    def solved(limits, most, tau, solver):
        size, nodes = len(most), limits.shape[0]
        if broken == "nothing":
            return None
        if broken == "nan":
            return np.full(size, np.nan), np.full(nodes, np.nan)
        if broken == "too much":
            return np.full(size, 1e6), np.full(nodes, -1.0)
        return np.zeros(size) if broken == "zeros" else np.full(size, 0.5), np.zeros(nodes)

    monkeypatch.setattr(_subgraphs, "_solve", solved)
    exact = []
    monkeypatch.setattr(_subgraphs, "largest_sum", lambda *a: exact.append(1) or largest_sum(*a))
    for edges, value in zip(graphs, expected, strict=True):
        assert abs(triangle_programme(edges, 2) - value) <= 1  # both lie within 3/4 of the optimum
    assert exact


def test_bounds_are_proven_whatever_the_solver_says(monkeypatch):
    rng = np.random.default_rng(26)
    for _ in range(100):
        edges = random_graph(rng, 7, 0.8)
        ends, most, tau = list_triangles(edges), None, int(rng.integers(1, 4))
        if not len(ends):
            continue
        most = np.ones(len(ends), dtype=np.int64)
        nonsense = rng.random(len(ends)) * 3 - 0.5, rng.random(edges.nodes) * 2 - 0.5
        monkeypatch.setattr(
            _subgraphs, "_solve", lambda limits, *a, n=nonsense: (n[0], n[1][: limits.shape[0]])
        )
        bounds = _subgraphs._bounds(ends, most, tau, "highs-ipm")
        optimum = _subgraphs._solve_exactly(ends, most, tau)
        assert bounds is not None
        assert Fraction(bounds[0], 1 << 30) <= optimum <= Fraction(bounds[1], 1 << 30)


def test_the_exact_method_agrees_with_the_solver():
    rng = np.random.default_rng(27)
    for _ in range(50):
        rows = rng.integers(0, 2, (int(rng.integers(1, 7)), int(rng.integers(1, 9))))
        rows = np.concatenate([rows, np.eye(rows.shape[1], dtype=np.int64)])
        limits = rng.integers(0, 4, len(rows)).tolist()
        found = linprog(-np.ones(rows.shape[1]), rows, limits, bounds=(0, None))
        assert float(largest_sum(rows, limits)) == pytest.approx(-found.fun, abs=1e-6)


def test_the_exact_method_gives_fractions():
    triangle = np.array([list(map(int, (0 in p, 1 in p, 2 in p))) for p in combinations(range(3), 2)]).T
    assert largest_sum(triangle, [1, 1, 1]) == Fraction(3, 2)
