"""Declaring a graph: every kind of source gives the same graph, and refusals come before anything is read."""

import duckdb
import igraph
import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse

import tacit as tc
from tacit import TacitError
from tacit.core import members_of
from tacit.fixes import Set

BUDGET = tc.Budget(epsilon=1000, delta=1e-3)
PAIRS = [(0, 1), (1, 2), (0, 2), (2, 3), (3, 2), (4, 4), (10, 2)]
E = {"epsilon": 100}


def exact_edges(graph):
    loaded = members_of(graph.edges().plan(**E))[0].task.open(None)
    return {tuple(loaded.names[i] for i in pair) for pair in loaded.edges.pairs()}


def as_frame(pairs=PAIRS):
    return pd.DataFrame(pairs, columns=["a", "b"])


def as_igraph(directed=False):
    graph = igraph.Graph(n=11, directed=directed)
    graph.add_edges(PAIRS)
    return graph


def as_matrix():
    u, v = np.array(PAIRS).T
    return scipy.sparse.coo_array((np.ones(len(u)), (u, v)), shape=(11, 11)).tocsr()


def as_networkx(kind=nx.MultiGraph):
    graph = kind()
    graph.add_edges_from(PAIRS)
    return graph


def in_duckdb():
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE friends AS SELECT * FROM (VALUES (0,1),(1,2),(0,2),(2,3),(3,2),(4,4),(10,2)) t(a, b)"
    )
    return connection, "friends"


SOURCES = {
    "list": lambda _: PAIRS,
    "array": lambda _: np.array(PAIRS),
    "float array": lambda _: np.array(PAIRS, dtype=float),
    "text array": lambda _: np.array(PAIRS).astype(str),
    "networkx": lambda _: as_networkx(),
    "igraph": lambda _: as_igraph(),
    "matrix": lambda _: as_matrix(),
    "pandas": lambda _: as_frame(),
    "polars": lambda _: pl.DataFrame(PAIRS, schema=["a", "b"], orient="row"),
    "duckdb": lambda _: in_duckdb(),
    "csv": lambda folder: as_frame().to_csv(folder / "e.csv", index=False) or folder / "e.csv",
    "parquet": lambda folder: as_frame().to_parquet(folder / "e.parquet") or folder / "e.parquet",
}


@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_gives_the_same_graph(kind, tmp_path):
    graph = tc.graph(SOURCES[kind](tmp_path), unit="edge", nodes=11, budget=BUDGET)
    found = {frozenset(pair) for pair in exact_edges(graph)}
    assert found == {frozenset(p) for p in [("0", "1"), ("1", "2"), ("0", "2"), ("2", "3"), ("10", "2")]}
    listed = tc.graph(SOURCES[kind](tmp_path), unit="edge", nodes=[0, 1, 2, 3], budget=BUDGET)
    assert exact_edges(listed) == {("0", "1"), ("1", "2"), ("0", "2"), ("2", "3")}


def test_a_directed_graph_keeps_both_arrows():
    for source in (as_frame(), as_networkx(nx.DiGraph), as_igraph(directed=True), as_matrix(), PAIRS):
        graph = tc.graph(source, unit="edge", nodes=range(11), directed=True, budget=BUDGET)
        assert {("2", "3"), ("3", "2")} <= exact_edges(graph)
        found = graph.reciprocity().plan(**E).release()
        assert found["mutual"].value[0] == 1
        assert abs(found["reciprocity"].value[0] - 2 / 6) < 0.05
        assert found["reciprocity"].low[0] <= 2 / 6 <= found["reciprocity"].high[0]


def test_a_bipartite_graph_has_two_kinds_of_names():
    loans = pd.DataFrame({"person": [1, 1, 2], "book": [1, 2, 2]})
    graph = tc.graph(loans, unit="edge", bipartite=True, nodes=(3, 2), budget=BUDGET)
    assert graph.edges().plan(**E).release().value == 3
    assert list(graph.degrees(of="source").plan(**E).release()["degree"].value) == [2, 1, 0]
    assert list(graph.degrees(of="target").plan(**E).release()["degree"].value) == [2, 1]
    with pytest.raises(tc.TacitError) as refused:
        graph.triangles().plan(epsilon=1)
    assert refused.value.code == "not-allowed"
    with pytest.raises(tc.TacitError, match="is a table") as refused:
        tc.graph(loans, unit="node", bipartite=True, budget=BUDGET)
    assert "tc.protect" in str(refused.value.fix)


@pytest.mark.parametrize(
    "bad",
    [
        [(0, 1), (None, 2), (float("nan"), 1), (1,), "ab", 7, None, (2, 2), (1, 0), (object(), 3)],
        pd.DataFrame({"a": [0, None, 2, 1], "b": [1, 2, 2, 0]}),
        np.array([[0.0, 1.0], [np.nan, 2.0], [2.0, 2.0], [1.0, 0.0]]),
    ],
)
def test_loops_duplicates_and_missing_names_follow_fixed_rules(bad):
    graph = tc.graph(bad, unit="edge", nodes=[0, 1, 2, 3], budget=BUDGET)
    assert exact_edges(graph) == {("0", "1")}


def test_weights_of_a_pair_are_added_up_and_clipped():
    rows = pd.DataFrame({"a": [0, 1, 0, 2, 3], "b": [1, 0, 2, 3, 4], "minutes": [3, 4, 100, None, -5]})
    graph = tc.graph(rows, unit="edge", nodes=5, weight=("minutes", (0, 10)), budget=BUDGET)
    assert abs(graph.weights().plan(epsilon=400).release().value - 17) < 1
    symmetric = scipy.sparse.csr_array(np.array([[0, 3.0], [3.0, 0]]))
    same = tc.graph(symmetric, unit="edge", weight=("weight", (0, 10)), budget=BUDGET)
    assert abs(same.weights().plan(epsilon=400).release().value - 3) < 1


def test_the_weight_is_not_one_of_the_first_two_columns():
    rows = pd.DataFrame({"minutes": [3, 4], "a": ["ana", "ben"], "b": ["ben", "eva"]})
    graph = tc.graph(rows, unit="edge", weight=("minutes", (0, 10)), budget=BUDGET)
    assert graph.facts.columns == ("a", "b")
    assert abs(graph.weights().plan(epsilon=400).release().value - 7) < 1


def test_rows_of_a_list_are_pairs_with_or_without_more_values():
    rows = [("ana", "ben", 30), np.array(["ben", "eva"]), ["eva", "ana"], ("tom",), np.array(5), "xy"]
    assert tc.graph(rows, unit="edge", budget=BUDGET).edges().plan(**E).release().value == 3


def test_a_set_of_nodes_is_a_list_in_the_order_of_names():
    names = {f"n{i}" for i in range(50)}
    graph = tc.graph([], unit="edge", nodes=names, budget=BUDGET)
    assert graph.facts.nodes.listed == tuple(sorted(names))


def test_later_changes_of_the_source_do_not_count():
    source = nx.path_graph(5)
    graph = tc.graph(source, unit="edge", nodes=range(9), budget=BUDGET)
    assert graph.edges().plan(**E).release().value == 4
    source.add_edges_from([(0, 7), (0, 8)])
    assert graph.edges().plan(epsilon=400).release().value == 4


@pytest.mark.parametrize(
    "ask",
    [
        lambda g: g.degree_histogram(largest=10**7).plan(epsilon=1),
        lambda g: g.degrees().plan(epsilon=1),
        lambda g: g.degrees_by("club", largest=10**4).plan(epsilon=1),
        lambda g: g.mixing("club").plan(epsilon=1),
    ],
)
def test_an_answer_with_too_many_cells_is_refused_before_the_charge(ask):
    clubs = {"club": {i: i for i in range(1_001)}}
    graph = tc.graph(PAIRS, unit="edge", nodes=10**8, groups=clubs, budget=BUDGET)
    with pytest.raises(tc.TacitError) as error:
        ask(graph)
    assert error.value.code == "question-too-large"


def test_a_parent_pays_for_all_days_of_a_contact_log():
    ledger = tc.Ledger.memory()
    ledger.create_account("contacts", unit=str(tc.Unit.edge()), budget=tc.Budget(epsilon=3))
    days = [
        tc.graph(
            PAIRS,
            name=f"day-{day}",
            unit="edge",
            budget=tc.Budget(epsilon=2),
            ledger=ledger,
            parent="contacts",
        )
        for day in (1, 2)
    ]
    days[0].edges().plan(epsilon=2).release()
    assert (days[0].remaining.epsilon, days[1].remaining.epsilon) == (0, 2)
    assert ledger.remaining("contacts").epsilon == 1
    with pytest.raises(tc.TacitError) as error:
        days[1].edges().plan(epsilon=2).release()
    assert error.value.code == "budget-exceeded"


def test_what_the_room_holds_of_the_edges_shows_nothing():
    graph = tc.graph([("ana", "ben")], unit="edge", budget=BUDGET)
    loaded = graph._reader.load()
    held = (graph, graph._reader, graph._reader._source, graph._reader._source.read(), loaded)
    assert not any("ana" in repr(one) for one in held)


def refused(*, source=PAIRS, **facts):
    with pytest.raises(tc.TacitError) as error:
        tc.graph(source, **({"unit": "edge", "budget": BUDGET} | facts))
    return error.value


@pytest.mark.parametrize(
    ("facts", "code"),
    [
        ({"unit": "person"}, "bad-parameter"),
        ({"unit": tc.Unit("pid")}, "bad-parameter"),
        ({"unit": None}, "bad-parameter"),
        ({"nodes": -3}, "bad-parameter"),
        ({"nodes": 1}, "bad-parameter"),
        ({"nodes": 2.5}, "bad-parameter"),
        ({"nodes": "ana"}, "bad-parameter"),
        ({"nodes": ["a", "a"]}, "bad-parameter"),
        ({"nodes": [1, "1"]}, "bad-parameter"),
        ({"nodes": ["a", None]}, "bad-parameter"),
        ({"nodes": np.zeros((3, 2))}, "bad-parameter"),
        ({"nodes": ["a", pd.NA]}, "bad-parameter"),
        ({"nodes": pd.DataFrame({"name": ["a", "b"], "age": [1, 2]})}, "bad-parameter"),
        ({"groups": {"degree": {"ana": "x"}}}, "bad-parameter"),
        ({"groups": {"": {"ana": "x"}}}, "bad-parameter"),
        ({"groups": {"club": {"": "x"}}, "nodes": ["ben", "eva"]}, "bad-parameter"),
        (
            {"source": as_frame(), "source_column": "a", "target_column": "b", "weight": ("a", (0, 5))},
            "bad-parameter",
        ),
        ({"degree_bound": 0}, "bad-parameter"),
        ({"degree_bound": 5, "promised": True}, "bad-parameter"),
        ({"unit": "node", "promised": True}, "bad-parameter"),
        ({"unit": "node", "directed": True}, "not-allowed"),
        ({"bipartite": True, "directed": True}, "bad-parameter"),
        ({"bipartite": True, "nodes": 5}, "bad-parameter"),
        ({"groups": {"club": {"ana": "x"}}, "nodes": ["ben", "eva"]}, "bad-parameter"),
        ({"groups": {"club": ["x", "y"]}, "nodes": 2}, "bad-parameter"),
        ({"groups": ["club"]}, "bad-parameter"),
        ({"weight": "minutes"}, "missing-bounds"),
        ({"weight": ("minutes", (1, 5)), "source": as_frame()}, "missing-bounds"),
        ({"weight": ("minutes", (0, 5))}, "bad-parameter"),
        ({"source": np.zeros((4, 3))}, "bad-parameter"),
        ({"source": np.zeros(4)}, "bad-parameter"),
        ({"source": scipy.sparse.csr_array((3, 4))}, "bad-parameter"),
        ({"source": as_igraph(directed=True)}, "bad-parameter"),
        ({"source": as_networkx(nx.DiGraph)}, "bad-parameter"),
        ({"source": as_networkx(nx.Graph), "directed": True}, "bad-parameter"),
        ({"source": as_frame(), "source_column": "a", "target_column": "c"}, "unknown-column"),
        ({"source": as_frame(), "source_column": "a", "target_column": "a"}, "bad-parameter"),
        ({"source": as_frame(), "source_column": "a"}, "bad-parameter"),
        ({"source": as_frame()[["a"]]}, "unknown-column"),
        ({"source": as_frame(), "weight": ("minutes", (0, 5))}, "unknown-column"),
        ({"source": 5}, "bad-parameter"),
        ({"source_column": "a"}, "bad-parameter"),
        ({"source": as_networkx(), "bipartite": True}, "bad-parameter"),
        ({"source": as_matrix(), "bipartite": True}, "bad-parameter"),
        ({"budget": 1}, "bad-parameter"),
        ({"mean_degree": -1}, "bad-parameter"),
    ],
)
def test_a_wrong_declaration_is_refused_with_a_way_out(facts, code):
    error = refused(**facts)
    assert error.code == code
    assert str(error.fix)


EDGE_LEVEL = {
    "mixing": lambda g: g.mixing("club").plan(epsilon=1),
    "wedges": lambda g: g.wedges().plan(epsilon=1),
    "clustering": lambda g: g.clustering().plan(epsilon=1),
    "stars": lambda g: g.stars(3).plan(epsilon=1, delta=1e-6),
    "densest": lambda g: g.densest("club").plan(epsilon=1),
    "weights": lambda g: g.weights().plan(epsilon=1),
    "triangles": lambda g: g.triangles().plan(epsilon=1),
}


@pytest.mark.parametrize("name", EDGE_LEVEL)
def test_edge_level_questions_are_refused_for_nodes(name):
    graph = tc.graph(
        as_frame().assign(w=1), unit="node", nodes=range(11), degree_bound=3, budget=BUDGET,
        groups={"club": {0: "x", 1: "x", 2: "y", 3: "y"}}, weight=("w", (0, 1)),
    )  # fmt: skip
    with pytest.raises(tc.TacitError, match="cannot be released if nodes are protected") as error:
        EDGE_LEVEL[name](graph)
    assert error.value.code == "missing-limit"
    assert "promised=True" in str(error.value.fix)
    assert graph.remaining.epsilon == 1000


@pytest.mark.parametrize(
    ("ask", "code"),
    [
        (lambda g: g.edges().plan(epsilon=1, rho=1), "bad-parameter"),
        (lambda g: g.edges().plan(epsilon=0), "bad-parameter"),
        (lambda g: g.triangles().plan(rho=1), "bad-parameter"),
        (lambda g: g.triangles(tau=3).plan(epsilon=1), "bad-parameter"),
        (lambda g: g.degrees().plan(epsilon=1), "missing-limit"),
        (lambda g: g.degree_histogram().plan(epsilon=1), "missing-limit"),
        (lambda g: g.mixing("club").plan(epsilon=1), "unknown-column"),
        (lambda g: g.weights().plan(epsilon=1), "missing-bounds"),
        (lambda g: g.reciprocity().plan(epsilon=1), "not-allowed"),
        (lambda g: g.stars(3).plan(rho=1), "bad-parameter"),
        (lambda g: g.stars(1).plan(epsilon=1), "bad-parameter"),
        (lambda g: g.stars(21).plan(epsilon=1), "bad-parameter"),
        (lambda g: g.degrees(of="source").plan(epsilon=1), "bad-parameter"),
        (lambda g: g.verdict(epsilon=1), "bad-parameter"),
    ],
)
def test_a_question_without_its_public_facts_is_refused(ask, code):
    graph = tc.graph(PAIRS, unit="edge", budget=BUDGET)
    with pytest.raises(tc.TacitError) as error:
        ask(graph)
    assert error.value.code == code
    assert str(error.value.fix)


def test_without_declared_nodes_edges_and_triangles_are_counted():
    graph = tc.graph(PAIRS, unit="edge", budget=BUDGET)
    assert graph.triangles().plan(**E).release().value == 1
    assert graph.edges().plan(**E).release().value == 5


def test_a_node_level_question_without_a_bound_is_refused():
    graph = tc.graph(PAIRS, unit="node", nodes=11, budget=BUDGET)
    for ask in (graph.edges, graph.degrees, graph.degree_histogram):
        with pytest.raises(tc.TacitError) as error:
            ask().plan(epsilon=1)
        assert error.value.code == "missing-limit"


def test_a_missing_file_is_refused_before_the_charge(tmp_path):
    file = tmp_path / "friends.csv"
    as_frame().to_csv(file, index=False)
    graph = tc.graph(file, unit="edge", nodes=11, budget=tc.Budget(epsilon=1))
    file.unlink()
    with pytest.raises(tc.TacitError) as error:
        graph.edges().plan(epsilon=1).release()
    assert error.value.code == "unknown-table"
    assert graph.remaining.epsilon == 1


def test_plans_and_errors_do_not_depend_on_the_edges():
    def facts(pairs):
        graph = tc.graph(pairs, unit="edge", nodes=11, budget=BUDGET)
        plan = graph.triangles().plan(epsilon=1)
        return plan.hash, repr(plan), plan.to_json()

    assert facts([]) == facts(PAIRS) == facts([(i, j) for i in range(11) for j in range(i)])


def test_other_public_nodes_or_groups_are_another_question():
    def plan(nodes, labels="ab"):
        groups = {"club": dict(zip(range(4), labels * 2, strict=True))}
        return (
            tc.graph(PAIRS, unit="edge", nodes=nodes, groups=groups, budget=BUDGET)
            .mixing("club")
            .plan(epsilon=1)
        )

    three = pd.DataFrame({"a": [1], "b": [2], "c": [3]})
    ends = [("a", "b"), ("a", "c"), (None, None)]
    graphs = [tc.graph(three, unit="edge", source_column=s, target_column=t, budget=BUDGET) for s, t in ends]
    assert [one.edges().plan(epsilon=1) == graphs[0].edges().plan(epsilon=1) for one in graphs] == [
        True,
        False,
        True,
    ]
    assert plan(range(11)).hash == plan(list(range(11))).hash
    assert len({plan(range(11)).hash, plan(range(12)).hash, plan(11).hash, plan(11, "ac").hash}) == 4


@pytest.mark.parametrize(
    ("columns", "fix"),
    [
        (["id", "date", "from", "to"], ("from", "to")),
        (["", "a", "b"], ("a", "b")),
        (["a", "b", "source", "target"], ("source", "target")),
    ],
)
def test_first_columns_that_are_not_nodes_are_refused_before_a_charge(columns, fix):
    table = pd.DataFrame([list(range(len(columns)))], columns=columns)
    with pytest.raises(TacitError, match="do not look like the two nodes") as refused:
        tc.graph(table, unit="edge", budget=BUDGET)
    assert Set(source_column=fix[0], target_column=fix[1]) in refused.value.fix.fixes
    first, second = fix
    named = tc.graph(table, unit="edge", source_column=first, target_column=second, budget=BUDGET)
    assert f"edges: from the columns {first!r} and {second!r}" in str(named.edges().plan(epsilon=1))


def test_a_column_of_weights_is_not_a_column_of_nodes():
    table = pd.DataFrame([[9, 1, 2]], columns=["hours", "a", "b"])
    found = tc.graph(table, unit="edge", weight=("hours", (0, 20)), budget=BUDGET)
    assert "'a' and 'b'" in str(found.edges().plan(epsilon=1))
