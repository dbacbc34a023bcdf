"""Questions about a graph: neighbours, plans that round-trip, releases (docs/proofs/graphs.md)."""

import re
from fractions import Fraction
from math import comb

import networkx as nx
import numpy as np
import pytest

import tacit as tc
from support.exact_integers import exact_of, exact_of_plan
from tacit.core import members_of

BUDGET = tc.Budget(epsilon=10_000, delta=1e-3)
CLUBS = {0: "a", 1: "a", 2: "a", 3: "b", 4: "b", 5: "b", 6: "b", 7: "a"}


def small(pairs, unit="edge", **facts):
    given = {"nodes": range(8), "groups": {"club": CLUBS}} | facts
    rows = [(u, v, 1.5 * (u + 2)) for u, v in pairs]
    graph = (nx.DiGraph if facts.get("directed") else nx.Graph)()
    graph.add_weighted_edges_from(rows)
    return tc.graph(graph, name="g", unit=unit, budget=BUDGET, weight=("weight", (0, 10)), **given)


QUESTIONS = {
    "edges": lambda g, **c: g.edges().plan(**c),
    "degrees": lambda g, **c: g.degrees().plan(**c),
    "degree_histogram": lambda g, **c: g.degree_histogram(largest=3).plan(**c),
    "mixing": lambda g, **c: g.mixing("club").plan(**c),
    "degrees_by": lambda g, **c: g.degrees_by("club", largest=2).plan(**c),
    "weights": lambda g, **c: g.weights().plan(**c),
}
PURE = {
    "triangles": lambda g, **c: g.triangles().plan(**c),
    "wedges": lambda g, **c: g.wedges().plan(**c),
    "clustering": lambda g, **c: g.clustering().plan(**c),
    "densest": lambda g, **c: g.densest("club").plan(**c),
}
BY_NODE = {
    "edges": lambda g, **c: g.edges().plan(**c),
    "degrees": lambda g, **c: g.degrees().plan(**c),
    "degree_histogram": lambda g, **c: g.degree_histogram().plan(**c),
    "degrees_by": lambda g, **c: g.degrees_by("club").plan(**c),
    "triangles": lambda g, **c: g.triangles(tau=2).plan(**c),
}


exact = exact_of_plan


def random_pairs(rng, n=8, directed=False):
    share = rng.uniform(0.1, 0.9)
    return {
        (u, v)
        for u in range(n)
        for v in range(n)
        if (u < v or (directed and u != v)) and rng.random() < share
    }


def moved(a, b):
    apart = np.abs(np.asarray(a, dtype=object).ravel() - np.asarray(b, dtype=object).ravel())
    return int(apart.sum()), int((apart**2).sum())


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", QUESTIONS)
def test_one_edge_moves_the_integers_by_no_more_than_the_sensitivity(name, directed):
    rng = np.random.default_rng(7)
    for _ in range(120):
        pairs = random_pairs(rng, directed=directed)
        extra = tuple(int(i) for i in rng.choice(8, 2, replace=False))
        one = extra if directed else tuple(sorted(extra))
        plans = [
            QUESTIONS[name](small(p, directed=directed), epsilon=1) for p in (pairs - {one}, pairs | {one})
        ]
        l1, squared = moved(exact(plans[0])[0], exact(plans[1])[0])
        task = members_of(plans[0])[0].task
        assert l1 <= task.mechanisms[0].sensitivity
        gaussian = members_of(QUESTIONS[name](small(pairs, directed=directed), rho=1))[0].task.mechanisms[0]
        assert squared <= gaussian.sensitivity_squared


@pytest.mark.parametrize("nodes", [range(8), 8, None], ids=["listed", "number", "not declared"])
@pytest.mark.parametrize("name", ["triangles", "wedges", "stars"])
def test_one_edge_moves_a_count_by_at_most_the_smaller_width_whatever_is_known_about_the_nodes(name, nodes):
    rng = np.random.default_rng(8)
    star = {(0, v) for v in range(1, 7)}
    others = [random_pairs(rng, n=int(rng.integers(2, 9))) for _ in range(150)]
    for pairs in [star, *others]:
        one = (0, 7) if pairs is star else tuple(sorted(rng.choice(8, 2, replace=False).tolist()))
        graphs = [
            tc.graph([*p], unit="edge", nodes=nodes, budget=BUDGET) for p in (pairs - {one}, pairs | {one})
        ]
        asked = [
            g.stars(3).plan(epsilon=1) if name == "stars" else getattr(g, name)().plan(epsilon=1)
            for g in graphs
        ]
        (f, a), (f2, a2) = (exact(plan)[-1] for plan in asked)
        smaller = min(a, a2)
        assert abs(f - f2) <= (2 * comb(smaller, 2) if name == "stars" else smaller)
        assert abs(a - a2) <= 1


def test_sensitivities_of_edges_are_the_smallest():
    """The search above would not notice a sensitivity that is too large."""
    rng = np.random.default_rng(3)
    most = dict.fromkeys(QUESTIONS, 0)
    for _ in range(200):
        pairs = random_pairs(rng)
        one = tuple(sorted(int(i) for i in rng.choice(8, 2, replace=False)))
        for name, ask in QUESTIONS.items():
            a, b = (exact(ask(small(p), epsilon=1))[0] for p in (pairs - {one}, pairs | {one}))
            most[name] = max(most[name], moved(a, b)[0])
    assert most == {
        "edges": 1, "degrees": 2, "degree_histogram": 2, "mixing": 1, "degrees_by": 2, "weights": 1000,
    }  # fmt: skip


def without(pairs, node):
    return {pair for pair in pairs if node not in pair}


@pytest.mark.parametrize("name", BY_NODE)
def test_one_node_moves_the_integers_by_no_more_than_the_sensitivity(name):
    rng = np.random.default_rng(11)
    for _ in range(120):
        pairs, node, bound = random_pairs(rng), int(rng.integers(8)), int(rng.integers(1, 5))
        plans = [
            BY_NODE[name](small(p, unit="node", degree_bound=bound), epsilon=1)
            for p in (pairs, without(pairs, node))
        ]
        l1, squared = moved(*(exact(plan)[0] for plan in plans))
        assert l1 <= members_of(plans[0])[0].task.mechanisms[0].sensitivity
        gaussian = BY_NODE[name](small(pairs, unit="node", degree_bound=bound), rho=1)
        assert squared <= members_of(gaussian)[0].task.mechanisms[0].sensitivity_squared


PROMISED = {
    "mixing": lambda g, **c: g.mixing("club").plan(**c),
    "weights": lambda g, **c: g.weights().plan(**c),
    "triangles": lambda g, **c: g.triangles().plan(**c),
    "wedges": lambda g, **c: g.wedges().plan(**c),
    "stars": lambda g, **c: g.stars(3).plan(**c),
}


@pytest.mark.parametrize("name", PROMISED)
def test_under_a_promised_degree_one_node_moves_the_integers_by_no_more_than_the_sensitivity(name):
    rng = np.random.default_rng(5)
    for _ in range(100):
        pairs, node = random_pairs(rng), int(rng.integers(8))
        degrees = np.bincount(np.array(sorted(pairs)).ravel(), minlength=8) if pairs else np.ones(1)
        facts = {"unit": "node", "degree_bound": int(max(degrees.max(), 1)), "promised": True}
        plans = [PROMISED[name](small(p, **facts), epsilon=1) for p in (pairs, without(pairs, node))]
        l1, _ = moved(*(exact(plan)[0] for plan in plans))
        assert l1 <= members_of(plans[0])[0].task.mechanisms[0].sensitivity


def test_a_promise_stands_in_plan_and_certificate_and_only_where_it_is_needed():
    graph = small({(0, 1), (1, 2)}, unit="node", degree_bound=4, promised=True)
    plan = graph.wedges().plan(epsilon=1)
    assert ("holds if", "no node has more than 4 edges") in plan.facts
    assert plan.mechanisms[0]["assumes"] == "no node has more than 4 edges"
    assert "no node has more than 4 edges" in repr(plan.release().certificate)
    assert "assumes" not in graph.edges().plan(epsilon=1).mechanisms[0]


def test_the_score_of_a_group_moves_by_no_more_than_its_sensitivity_and_never_falls():
    rng = np.random.default_rng(2)
    for _ in range(200):
        pairs = random_pairs(rng)
        one = tuple(sorted(int(i) for i in rng.choice(8, 2, replace=False)))
        a, b = (
            np.array(exact(small(p).densest("club").plan(epsilon=1))[0])
            for p in (pairs - {one}, pairs | {one})
        )
        assert (b >= a).all()
        assert (b - a).max() <= 10**6


def every_plan():
    edge, node = small({(0, 1), (1, 2), (0, 2)}), small({(0, 1)}, unit="node", degree_bound=3)
    promised = small({(0, 1)}, unit="node", degree_bound=3, promised=True)
    arrows = small({(0, 1), (1, 0)}, directed=True)
    yield from ((edge, ask(edge, epsilon=1)) for ask in (QUESTIONS | PURE).values())
    yield from ((edge, ask(edge, rho=0.5)) for ask in QUESTIONS.values())
    yield from ((edge, ask(edge, epsilon=1, delta=1e-6, confidence=0.9)) for ask in QUESTIONS.values())
    yield edge, edge.stars(2).plan(epsilon=1)
    yield edge, edge.stars(3).plan(epsilon=1)
    yield from ((node, ask(node, epsilon=1)) for ask in BY_NODE.values())
    yield from ((promised, ask(promised, epsilon=1)) for ask in PROMISED.values())
    yield from ((promised, ask(promised, epsilon=1)) for ask in PURE.values())
    yield arrows, arrows.reciprocity().plan(epsilon=1)
    yield from ((arrows, arrows.degrees(of=end).plan(epsilon=1)) for end in ("source", "target"))
    yield from ((arrows, arrows.degree_histogram(of=end).plan(epsilon=1)) for end in ("source", "target"))


def test_every_plan_round_trips_prints_and_is_released():
    seen = set()
    for graph, plan in every_plan():
        again = graph.plan_from(plan.to_json())
        assert again.hash == plan.hash
        assert again.forecast == plan.forecast
        assert plan.forecast
        assert "neighbours:" in repr(plan)
        release = plan.release()
        assert repr(release)
        assert type(release.content).from_json(release.content.to_json()) == release.content
        seen.add(plan.question["ask"])
    assert len(seen) == 12


def test_a_plan_costs_what_was_promised():
    for _, plan in every_plan():
        if set(plan.promised) == {"epsilon"}:
            assert plan.cost.epsilon(delta=0) <= plan.promised["epsilon"] * (1 + Fraction(1, 10**9))


def test_values_are_close_at_a_large_epsilon():
    graph = nx.les_miserables_graph()
    book = tc.graph(
        graph,
        unit="edge",
        nodes=list(graph),
        budget=tc.Budget(epsilon=10**6, delta=1e-3),
        weight=("weight", (0, 40)),
    )
    e = {"epsilon": 1000}
    assert book.edges().plan(**e).release().value == 254
    assert book.triangles().plan(**e).release().value == 467
    assert book.wedges().plan(**e).release().value == 2808
    assert abs(book.clustering().plan(**e).release()["clustering"].value[0] - nx.transitivity(graph)) < 1e-9
    assert book.stars(2).plan(**e).release().value == 2808
    assert abs(book.stars(3).plan(**e).release().value - sum(comb(d, 3) for _, d in graph.degree())) < 30
    assert abs(book.weights().plan(**e).release().value - 820) < 1
    degrees = sorted((d for _, d in graph.degree()), reverse=True)
    assert list(book.degrees().plan(**e).release()["degree"].value) == degrees
    found = book.degree_histogram(largest=40).plan(**e).release()
    assert list(found["nodes"].value) == [degrees.count(k) for k in range(41)]
    assert list(found["or_more"].value) == [sum(d >= k for d in degrees) for k in range(41)]


def test_intervals_of_degrees_cover_and_hold_their_value():
    graph = nx.karate_club_graph()
    truth = np.array(sorted((d for _, d in graph.degree()), reverse=True))
    club = tc.graph(graph, unit="edge", nodes=34, budget=BUDGET)
    task = members_of(club.degrees().plan(epsilon=1))[0].task
    covered = []
    for _ in range(100):
        table = task.reading([task.mechanisms[0].release(truth).tolist()], Fraction(95, 100))
        value, low, high = (np.array(getattr(table["degree"], end)) for end in ("value", "low", "high"))
        assert (low <= value).all()
        assert (value <= high).all()
        covered.append(((low <= truth) & (truth <= high)).mean())
    assert np.mean(covered) >= 0.95


def test_intervals_of_triangles_cover():
    graph = nx.karate_club_graph()
    for facts in ({}, {"degree_bound": 17}):
        club = tc.graph(graph, unit="edge", nodes=34, budget=BUDGET, **facts)
        task = members_of(club.triangles().plan(epsilon=1))[0].task
        truth = exact_of(task)
        hits = 0
        for _ in range(300):
            drawn = [m.release(x) for m, x in zip(task.mechanisms, truth, strict=True)]
            table = task.reading(drawn, Fraction(95, 100))
            hits += table.low <= 45 <= table.high
        assert hits >= 300 * 0.95 - 12


def test_an_isolated_node_counts_only_if_it_is_declared():
    pairs = [("ana", "ben")]
    for nodes, zero in ((["ana", "ben", "eva"], 1), (["ana", "ben"], 0), (5, 3)):
        graph = tc.graph(pairs, unit="edge", nodes=nodes, budget=BUDGET)
        assert graph.degree_histogram().plan(epsilon=1000).release()["nodes"].value[0] == zero


def test_releases_have_pictures(tmp_path):
    graph = small({(0, 1), (1, 2), (3, 4)})
    for plan in (
        graph.mixing("club").plan(epsilon=1),
        graph.degrees().plan(epsilon=1),
        graph.degrees_by("club").plan(epsilon=1),
    ):
        plan.release().plot().savefig(tmp_path / "picture.png")
    labels, matrix = graph.mixing("club").plan(epsilon=1000).release().matrix()
    assert labels == ("a", "b")
    assert matrix.tolist() == [[2, 0], [0, 1]]


def test_a_verdict_rests_on_declared_facts():
    club = tc.graph([], unit="edge", nodes=34, mean_degree=4.6, budget=BUDGET)
    assert club.verdict(epsilon=1).word == "rough"
    assert club.verdict(epsilon=0.1).text.endswith("too small")
    assert dict(club.triangles().plan(epsilon=0.1).facts)["verdict"].endswith("at epsilon 0.1: too small")


def test_the_plan_of_triangles_forecasts_the_interval_that_a_release_has():
    edges = [(i, (i + step) % 200) for i in range(200) for step in (1, 2)]  # two nodes share at most 2
    graph = tc.graph(edges, unit="edge", nodes=range(200), budget=tc.Budget(epsilon=9))
    plan = graph.triangles().plan(epsilon=1)
    expected = int(re.match(r"about ([\d,]+) if", plan.forecast[0].note)[1].replace(",", ""))
    found = plan.release()
    half = (found.high - found.low) / 2
    assert expected == pytest.approx(169, rel=0.05)  # the noise alone would be 55
    assert half < 2.5 * expected
    assert "a public degree bound would make the interval narrower" in dict(plan.facts)["interval"]
