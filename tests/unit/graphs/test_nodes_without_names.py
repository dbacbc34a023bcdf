"""Sources that call nodes by their positions: if one node leaves, the order of all others must stay."""

import igraph
import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import tacit as tc
from support.exact_integers import exact_of
from support.graph_neighbours import distances
from tacit import TacitError
from tacit.core import members_of
from tacit.graphs._graph_facts import name_rank
from twins.graph_kernels import text_ordered_edges

BUDGET = tc.Budget(epsilon=1000)


def without(pairs, node):
    """Return the pairs after a node left: the positions behind it fall by 1."""
    return [(u - (u > node), v - (v > node)) for u, v in pairs if node not in {u, v}]


def matrix(pairs, nodes):
    u, v = np.array(pairs).T
    return scipy.sparse.coo_array((np.ones(len(u)), (u, v)), shape=(nodes, nodes)).tocsr()


def drop_row_and_column(pairs, nodes, node):
    stay = np.delete(np.arange(nodes), node)
    full = matrix(pairs, nodes)
    return full, full[stay][:, stay]


def drop_vertex(pairs, nodes, node):
    full = igraph.Graph(n=nodes, edges=pairs)
    less = full.copy()
    less.delete_vertices([node])
    return full, less


def relabel(pairs, nodes, node):
    full = nx.Graph()
    full.add_nodes_from(range(nodes))
    full.add_edges_from(pairs)
    less = full.copy()
    less.remove_node(node)
    return full, nx.convert_node_labels_to_integers(less)


#: How each source loses a node. Arrays, lists and frames hold positions as PyG's edge_index does.
SOURCES = {
    "array": lambda pairs, nodes, node: (np.array(pairs), np.array(without(pairs, node))),
    "float array": lambda pairs, nodes, node: (np.array(pairs) * 1.0, np.array(without(pairs, node)) * 1.0),
    "list": lambda pairs, nodes, node: (pairs, without(pairs, node)),
    "frame": lambda pairs, nodes, node: (
        pd.DataFrame(pairs, columns=["a", "b"]),
        pd.DataFrame(without(pairs, node), columns=["a", "b"]),
    ),
    "scipy.sparse": drop_row_and_column,
    "igraph": drop_vertex,
    "networkx": relabel,
}


def integers(source, question, bound):
    graph = tc.graph(source, unit="node", degree_bound=bound, nodes=3000, budget=BUDGET)
    task = members_of(getattr(graph, question)().plan(epsilon=1))[0].task
    return exact_of(task)[0], task.mechanisms[0].sensitivity


def crafted():
    """Return paths of three edges. By text, their middle edge is the first only while node 0 is there.

    Node 0 has no edge. So in the order of text each path keeps 1 edge with it, and 2 edges without it.
    """
    rng = np.random.default_rng(11)
    pairs = []
    for start in range(100, 1900, 200):
        nodes = set(range(start, start + 200)) | set(range(start // 10, start // 10 + 20))
        left = sorted(nodes - {node for pair in pairs for node in pair})
        for _ in range(300):
            a, b, c, d = rng.choice(left, 4, replace=False).tolist()
            path = [(a, b), (b, c), (c, d)]
            if text_ordered_edges(path, 1) == 1 and text_ordered_edges(without(path, 0), 1) == 2:
                pairs += path
                left = [node for node in left if node not in {a, b, c, d}]
    return pairs


def random_cases(count, seed):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        nodes = int(rng.integers(110, 400))
        pairs = [(u, v) for u, v in rng.integers(0, nodes, (4 * nodes, 2)).tolist() if u != v]
        yield pairs, nodes, int(rng.integers(nodes)), int(rng.integers(1, 5))


@pytest.mark.parametrize("kind", SOURCES)
def test_a_node_that_leaves_moves_the_integers_by_no_more_than_the_sensitivity(kind):
    paths = crafted()
    cases = [(paths, 2100, 0, 1), *random_cases(4, 5)]
    for pairs, nodes, node, bound in cases:
        sources = SOURCES[kind](pairs, nodes, node)
        for question in ("edges", "degrees", "degree_histogram"):
            (full, sensitivity), (less, _) = (integers(source, question, bound) for source in sources)
            assert distances(full, less)[0] <= sensitivity, (question, nodes, node, bound)


def test_positions_in_the_order_of_text_are_caught():
    """The broken twin: the same search finds it on crafted graphs, and on random ones too."""
    paths = crafted()
    assert text_ordered_edges(without(paths, 0), 1) - text_ordered_edges(paths, 1) > 5
    moved = [
        abs(text_ordered_edges(pairs, bound) - text_ordered_edges(without(pairs, node), bound)) > bound
        for pairs, _, node, bound in random_cases(100, 5)
    ]
    assert any(moved)


def test_the_order_of_two_names_depends_on_them_alone_and_stays_if_a_position_is_taken_out():
    names = [str(place) for place in range(1200)]
    for node in (0, 5, 10, 99, 101, 1000):
        order = sorted((name for name in names if int(name) != node), key=name_rank)
        shifted = sorted(names[:-1], key=name_rank)
        assert [str(int(name) - (int(name) > node)) for name in order] == shifted
    hostile = ["", "٣", "²", "1e3", "-1", "01", "9" * 5000, "é", "0", "10"]
    assert sorted(hostile, key=name_rank)[:3] == ["0", "10", "9" * 5000]
    assert len({name_rank(name) for name in hostile}) == len(hostile)


@pytest.mark.parametrize("facts", [{"nodes": [0, 1, 2]}, {"groups": {"side": {0: "a", 3: "b"}}}])
def test_facts_about_single_nodes_need_names_or_public_positions(facts):
    pairs = [(0, 1), (1, 2), (2, 3)]
    sources = matrix(pairs, 4), igraph.Graph(n=4, edges=pairs)
    for source in sources:
        with pytest.raises(TacitError, match="the source has no names of nodes"):
            tc.graph(source, unit="node", degree_bound=2, budget=BUDGET, **facts)
        tc.graph(source, name="edges", unit="edge", budget=BUDGET, **facts)
        public = facts | {"nodes": {3, 2, 1, 0}}
        tc.graph(source, name="nodes", unit="node", degree_bound=2, budget=BUDGET, **public)
    named = igraph.Graph(n=4, edges=pairs, vertex_attrs={"name": ["0", "1", "2", "3"]})
    tc.graph(named, unit="node", degree_bound=2, budget=BUDGET, **facts)


def test_plans_whose_order_of_edges_did_not_change_keep_their_hash():
    """Names did not change; positions did, and answers in the order of text must not stand for them."""

    def documents(source):
        graph = tc.graph(source, name="g", unit="node", degree_bound=2, nodes=4, budget=BUDGET)
        plans = [
            graph.edges().plan(epsilon=1),
            graph.degree_histogram().plan(epsilon=1),
            graph.triangles(tau=1).plan(epsilon=1),
        ]
        return [members_of(plan)[0].task.question.get("order") for plan in plans]

    pairs = [(0, 1), (1, 2), (2, 3)]
    assert documents(pairs) == documents(nx.Graph(pairs)) == [None, None, None]
    assert documents(matrix(pairs, 4)) == ["positions", "positions", None]


def test_every_answer_of_protected_nodes_names_the_degree_bound():
    graph = tc.graph(
        [("ana", "ben"), ("ben", "eva")], unit="node", degree_bound=3, nodes=3, budget=BUDGET,
        groups={"class": {"ana": 1, "ben": 2}},
    )  # fmt: skip
    plans = [
        graph.edges().plan(epsilon=1), graph.degrees().plan(epsilon=1),
        graph.degree_histogram().plan(epsilon=1), graph.degrees_by("class").plan(epsilon=1),
    ]  # fmt: skip
    for plan in plans:
        release = plan.release()
        assert "at most 3 edges of each node count" in repr(release)
        assert "at most 3 edges of each node count" in release._repr_html_()
        assert tc.Release.from_json(release.to_json()).content == release.content
    by_edge = tc.graph([("ana", "ben")], unit="edge", degree_bound=3, nodes=3, budget=BUDGET)
    assert "at most" not in repr(by_edge.edges().plan(epsilon=1).release())
