"""The ladder on every labelled graph with up to 5 nodes, by exact laws (docs/proofs/graphs.md).

Everything is counted here by brute force, without the graphs of Tacit.
"""

import itertools
import math
from functools import cache

import numpy as np
import pytest

import tacit as tc
from support.ladder_laws import log_law

m = tc.mechanisms
NODES = (3, 4, 5)


@cache
def every_graph(n):
    """The numbers of all graphs on n nodes; graph `mask` has edge i if bit i is set."""
    pairs = list(itertools.combinations(range(n), 2))
    found = []
    for mask in range(1 << len(pairs)):
        edges = np.zeros((n, n), dtype=int)
        for i, (u, v) in enumerate(pairs):
            edges[u, v] = edges[v, u] = mask >> i & 1
        common, degree = edges @ edges, edges.sum(axis=0)
        found.append({
            "triangles": int((common * edges).sum()) // 6,
            "all pairs": max(int(common[pair]) for pair in pairs),
            "adjacent pairs": max((int(common[pair]) for pair in pairs if edges[pair]), default=0),
            "wedges": sum(math.comb(int(d), 2) for d in degree),
            "degrees": max(int(degree[u] + degree[v]) - 2 * int(edges[u, v]) for u, v in pairs),
            "degrees with the edge": max(int(degree[u] + degree[v]) for u, v in pairs),
        })  # fmt: skip
    return len(pairs), found


@cache
def neighbouring_values(n, number, width):
    """The different (f, a, f', a') of all graphs and all flips of one edge."""
    flips, found = every_graph(n)
    return {
        (found[mask][number], found[mask][width], found[mask ^ 1 << i][number], found[mask ^ 1 << i][width])
        for mask in range(len(found))
        for i in range(flips)
    }


def largest_loss(n, number, width, ladder_of):
    x = np.arange(-100, 131)
    return max(
        (log_law(ladder_of(a), f, a, x) - log_law(ladder_of(b), g, b, x)).max()
        for f, a, g, b in neighbouring_values(n, number, width)
    )


@pytest.mark.parametrize("n", NODES)
@pytest.mark.parametrize(("number", "width"), [("triangles", "all pairs"), ("wedges", "degrees")])
def test_the_premises_of_the_ladder_hold(n, number, width):
    most = n - 2 if number == "triangles" else 2 * (n - 2)
    values = neighbouring_values(n, number, width)
    assert all(abs(f - g) <= min(a, b) and abs(a - b) <= 1 for f, a, g, b in values)
    assert max(abs(f - g) for f, _, g, _ in values) == most == max(a for _, a, _, _ in values)


SETTINGS = [
    (n, epsilon, floor)
    for n in NODES
    for epsilon in (0.1, 0.5, 1, 2, 5)
    for floor in range(n - 1)  # 45 settings for triangles
]


@pytest.mark.parametrize(("n", "epsilon", "floor"), SETTINGS, ids=str)
def test_no_edge_of_a_graph_costs_more_than_epsilon_for_triangles(n, epsilon, floor):
    for most in (n - 2, None):
        ladder = m.LadderNoise(epsilon, floor=floor, most=most)
        assert largest_loss(n, "triangles", "all pairs", lambda _, one=ladder: one) <= epsilon + 1e-9


@pytest.mark.parametrize("floor", [0, 1, 2, 3])
@pytest.mark.parametrize("epsilon", [0.1, 1, 3])
@pytest.mark.parametrize("n", [4, 5])
def test_no_edge_of_a_graph_costs_more_than_epsilon_for_wedges(n, epsilon, floor):
    for most in (2 * (n - 2), None):
        ladder = m.LadderNoise(epsilon, floor=floor, most=most)
        assert largest_loss(n, "wedges", "degrees", lambda _, one=ladder: one) <= epsilon + 1e-9


def test_some_graphs_reach_epsilon_and_the_broken_widths_pass_it():
    ladder = m.LadderNoise(1, floor=2, most=3)
    assert largest_loss(5, "triangles", "all pairs", lambda _: ladder) == pytest.approx(1)
    assert largest_loss(5, "triangles", "adjacent pairs", lambda _: ladder) > 1.4
    wide = m.LadderNoise(1, floor=2, most=6)
    assert largest_loss(5, "wedges", "degrees", lambda _: wide) == pytest.approx(1)
    assert largest_loss(5, "wedges", "degrees with the edge", lambda _: wide) > 1.2
    assert largest_loss(5, "triangles", "all pairs", lambda a: m.LadderNoise(1, floor=a)) > 1.3


def test_random_graphs_of_up_to_30_nodes_keep_the_premises():
    rng = np.random.default_rng(7)
    for _ in range(400):
        n = int(rng.integers(6, 31))
        upper = np.triu(rng.random((n, n)) < rng.random(), 1).astype(int)
        edges = upper + upper.T
        u, v = sorted(rng.choice(n, 2, replace=False))
        flipped = edges.copy()
        flipped[u, v] = flipped[v, u] = 1 - edges[u, v]
        (t, a, s, w), (t2, a2, s2, w2) = _numbers(edges), _numbers(flipped)
        assert abs(t - t2) <= min(a, a2)
        assert abs(s - s2) <= min(w, w2)
        assert abs(a - a2) <= 1
        assert abs(w - w2) <= 1


def _numbers(edges):
    common, degree = edges @ edges, edges.sum(axis=0)
    apart = ~np.eye(len(edges), dtype=bool)
    sums = degree[:, None] + degree[None, :] - 2 * edges
    wedges = int((degree * (degree - 1) // 2).sum())
    return int((common * edges).sum()) // 6, common[apart].max(), wedges, sums[apart].max()
