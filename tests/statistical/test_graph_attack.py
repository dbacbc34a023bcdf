"""The attack on counts of graphs: no neighbour moves a count too far, and broken twins are caught."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from support.graph_neighbours import (
    EDGE_LEVEL,
    EDGE_WITNESS,
    NODE_WITNESS,
    Statistic,
    chain,
    degree_histogram,
    distances,
    flipped,
    graph,
    hub,
    node_level,
    path,
    random_graph,
    without_node,
    worst_edge,
    worst_node,
)
from tacit.graphs._edges import EdgeArrays, project_greedily
from tacit.graphs._subgraphs import (
    count_triangles,
    count_wedges,
    largest_common,
    largest_wedge_change,
    triangle_programme,
)
from twins.graph_kernels import (
    bound_from_the_data,
    greedy_mixing,
    greedy_triangles,
    mutual_top_edges,
    without_crowded_nodes,
)


def node_pairs(sizes=(2, 3, 5, 10, 100)):
    """Return the witnesses and, for growing sizes, hubs and paths, each with a node that leaves."""
    yield NODE_WITNESS, 0
    for size in sizes:
        yield chain(size), 0
        yield hub(size), 0
        yield path(size + 1), 0
        star = graph(size + 1, [(0, i) for i in range(1, size + 1)])
        yield star, 0
        yield nx_edges(nx.complete_graph(min(size, 20) + 1)), 0
        yield graph(size + 2, [(0, i) for i in range(2, size + 2)] + [(1, i) for i in range(2, size + 2)]), 1


def nx_edges(made):
    return graph(made.number_of_nodes(), list(made.edges))


def furthest(count, claim, pairs):
    """Return by how much a count moves beyond its claim over pairs of a graph and a node that leaves."""
    return max(abs(count(one) - count(without_node(one, node))) - claim for one, node in pairs)


# broken twins: each must be caught, and the right code in its place must not


@pytest.mark.parametrize(
    ("twin", "right", "bound", "claim"),
    [
        (greedy_triangles, triangle_programme, 2, 3),
        (mutual_top_edges, lambda e, bound: project_greedily(e, bound).size, 1, 1),
        (without_crowded_nodes, lambda e, bound: project_greedily(e, bound).size, 2, 2),
    ],
    ids=["greedy triangles", "mutual top-D", "dropped nodes"],
)
def test_twins_of_the_node_level_are_caught(twin, right, bound, claim):
    pairs = list(node_pairs())
    assert furthest(lambda e: twin(e, bound), claim, pairs) > 0
    assert furthest(lambda e: right(e, bound), claim, pairs) <= 0


def test_greedy_triangles_are_caught_at_the_edge_level():
    """The claim is 2 (D - 1) = 2, which mutual top-D would keep."""
    joined = flipped(EDGE_WITNESS, 0, 2)
    assert abs(greedy_triangles(EDGE_WITNESS, 2) - greedy_triangles(joined, 2)) == 3
    right = abs(count_triangles(EDGE_WITNESS) - count_triangles(joined))
    assert right <= min(largest_common(EDGE_WITNESS), largest_common(joined)) < 3


@pytest.mark.parametrize("blocks", [2, 3, 4, 30])
def test_greedy_triangles_move_by_any_number(blocks):
    """Node 0, or the edge 02 alone, moves every triangle of the chain; the first one holds node 0."""
    edges = chain(blocks)
    assert greedy_triangles(edges, 2) == count_triangles(edges) == blocks
    assert greedy_triangles(without_node(edges, 0), 2) == 0
    assert greedy_triangles(flipped(edges, 0, 2), 2) == 0
    assert triangle_programme(edges, 2) - triangle_programme(without_node(edges, 0), 2) == 1


def test_small_graphs_miss_the_twins():
    """Why the witnesses are here: on 5 nodes these twins keep their claim."""
    triangles = Statistic("twin", lambda e, n: greedy_triangles(e, 2), lambda n: 1)
    assert worst_node(5, triangles) <= 1
    assert worst_edge(5, triangles)[0] <= 2
    top = Statistic("twin", lambda e, n: mutual_top_edges(e, 2), lambda n: 2)
    assert worst_node(5, top) <= 2


@pytest.mark.parametrize("nodes", [6, 20, 40])
def test_a_mixing_matrix_after_projection_moves_everywhere(nodes):
    edges, names = path(nodes), np.arange(nodes)
    smaller = without_node(edges, 0)
    assert distances(greedy_mixing(edges, 1, names), greedy_mixing(smaller, 1, names[1:]))[0] == nodes - 1
    assert project_greedily(edges, 1).size - project_greedily(smaller, 1).size <= 1


def test_out_degrees_after_projection_move_everywhere():
    """Each edge of a path leads to the next node: without the first node, the others keep an edge out."""
    edges = EdgeArrays(40, np.arange(39), np.arange(1, 40), directed=True)
    smaller = EdgeArrays(40, np.arange(1, 39), np.arange(2, 40), directed=True)
    kept, others = project_greedily(edges, 1), project_greedily(smaller, 1)
    assert distances(kept.out_degrees(), others.out_degrees())[0] == 39
    assert distances(kept.degrees()[1:], others.degrees()[1:])[0] <= 1


def test_a_degree_bound_from_the_data_is_caught():
    """A sensitivity must hold for both neighbours: the hub moves 100 edges, the graph without it claims 1."""
    one, other = hub(100), without_node(hub(100), 0)
    (count, bound), (other_count, other_bound) = bound_from_the_data(one, 0), bound_from_the_data(other, 0)
    assert abs(count - other_count) > min(bound, other_bound)
    public = project_greedily(one, 5).size - project_greedily(other, 5).size
    assert 0 <= public <= 5


@pytest.mark.parametrize("size", [2, 10, 100])
def test_no_projection_turns_a_degree_bound_into_a_group_cost(size):
    """After greedy projection, graphs that differ in one node can differ in any number of edges."""
    edges = path(size + 1)
    kept = set(project_greedily(edges, 1).pairs())
    shifted = {(u + 1, v + 1) for u, v in project_greedily(without_node(edges, 0), 1).pairs()}
    assert len(kept ^ shifted) == size


# the right code, on many neighbours


@pytest.mark.parametrize("statistic", EDGE_LEVEL, ids=lambda s: s.name)
@pytest.mark.long
def test_one_edge_in_every_graph_of_six_nodes(statistic):
    l1, l2_squared = worst_edge(6, statistic)
    assert l1 == statistic.l1(6)
    assert statistic.l2_squared is None or l2_squared == statistic.l2_squared(6)


@pytest.mark.parametrize("bound", [1, 2, 3, 4])
@pytest.mark.long
def test_one_node_in_every_graph_of_six_nodes(bound):
    for statistic in node_level(bound):
        assert worst_node(6, statistic) == statistic.l1(6), statistic.name


@pytest.mark.long
def test_six_nodes_find_the_greedy_twin():
    twin = Statistic("twin", lambda e, n: greedy_triangles(e, 2), lambda n: 1)
    assert worst_node(6, twin) == 2


@pytest.mark.parametrize("tau", [1, 2, 3, 5])
@pytest.mark.long
def test_the_programme_on_every_graph_of_seven_nodes(tau):
    """Up to the names of nodes, which do not matter to it: the atlas has each such graph once."""
    for made in nx.graph_atlas_g():
        edges = nx_edges(made)
        value = triangle_programme(edges, tau)
        for node in range(edges.nodes):
            assert -1 <= value - triangle_programme(without_node(edges, node), tau) <= tau + 1


@pytest.mark.long
def test_thousands_of_random_graphs():
    rng = np.random.default_rng(41)
    for _ in range(4_000):
        edges = random_graph(rng)
        n = edges.nodes
        other = flipped(edges, *rng.choice(n, 2, replace=False))
        for statistic in EDGE_LEVEL:
            l1, l2_squared = distances(statistic.read(edges, n), statistic.read(other, n))
            assert l1 <= statistic.l1(n), (statistic.name, edges.pairs())
            assert statistic.l2_squared is None or l2_squared <= statistic.l2_squared(n), statistic.name
        for count, width in ((count_triangles, largest_common), (count_wedges, largest_wedge_change)):
            assert abs(count(edges) - count(other)) <= min(width(edges), width(other)), edges.pairs()


@pytest.mark.long
def test_nodes_that_leave_thousands_of_random_graphs():
    rng = np.random.default_rng(42)
    for _ in range(4_000):
        edges = random_graph(rng)
        smaller = without_node(edges, int(rng.integers(edges.nodes)))
        for statistic in node_level(int(rng.integers(1, 10))):
            one, other = (statistic.read(g, edges.nodes) for g in (edges, smaller))
            assert distances(one, other)[0] <= statistic.l1(0), (statistic.name, edges.pairs())


@pytest.mark.long
def test_the_programme_on_random_graphs():
    rng = np.random.default_rng(43)
    for _ in range(500):
        edges = random_graph(rng, 25)
        smaller, tau = without_node(edges, int(rng.integers(edges.nodes))), int(rng.integers(1, 30))
        assert abs(triangle_programme(edges, tau) - triangle_programme(smaller, tau)) <= tau + 1


@pytest.mark.long
def test_nodes_that_are_rewired():
    """Node set fixed, all edges of a node replaced: edges D, histogram 4 D and cumulative 2 D at most."""
    rng = np.random.default_rng(44)
    worst = np.zeros(3, dtype=int)
    for _ in range(4_000):
        edges, bound = random_graph(rng, 12), 2
        node = int(rng.integers(edges.nodes))
        rest = (edges.source != node) & (edges.target != node)
        near = np.flatnonzero(rng.random(edges.nodes) < rng.random())
        source = np.append(edges.source[rest], np.full(len(near), node))
        other = EdgeArrays(edges.nodes, source, np.append(edges.target[rest], near))
        bars = [degree_histogram(project_greedily(g, bound), bound) for g in (edges, other)]
        sums = [np.cumsum(b) for b in bars]
        moved = abs(project_greedily(edges, bound).size - project_greedily(other, bound).size)
        worst = np.maximum(worst, [moved, distances(*bars)[0], distances(*sums)[0]])
    assert np.all(worst <= [2, 8, 4])
