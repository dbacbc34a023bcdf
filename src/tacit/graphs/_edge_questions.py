"""Questions that one edge moves by a known amount: edges, weights, mixing matrices, reciprocity.

The densest public group is picked by the edges inside each group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.core import AnswerTable, Cells, Forecast, swamped, without_hidden
from tacit.errors import TacitError
from tacit.fixes import Say, Set
from tacit.graphs._edges import project_greedily
from tacit.graphs._graph_draft import MixingTable, check_cells, graph_draft, graph_step, one_number, pure_goal
from tacit.graphs._graph_facts import WEIGHT_STEPS
from tacit.mechanisms import Exponential
from tacit.report import percent

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from tacit.core import Draft, Goal
    from tacit.graphs._edges import LoadedGraph
    from tacit.graphs._graph import Graph
    from tacit.graphs._graph_facts import GraphFacts, NodeGroups


#: Why a degree bound does not make sums over edges private for a node.
PATH_WITNESS = "on a path of 40 nodes with a degree bound of 1, the first node decides which edges are kept"


def projection_facts(facts: GraphFacts) -> list[tuple[str, str]]:
    """Say which edges are kept under the degree bound; nothing if edges are protected."""
    bound = facts.degree_bound
    if not facts.by_node or bound is None:
        return []
    edges = "1 edge" if bound == 1 else f"{bound:,} edges"
    rule = f"in the order of names, an edge is kept if both nodes have fewer than {edges} so far"
    lines = [("degree bound", f"{rule}; intervals do not cover the edges that are dropped")]
    if facts.positions is not None:
        order = "the source calls nodes by their positions; others must keep their order if a node leaves"
        lines.append(("names", order))
    return lines


def projected(facts: GraphFacts) -> tuple[str, ...]:
    """Say in an answer which edges count under the degree bound; nothing if edges are protected."""
    bound = facts.degree_bound
    if not facts.by_node or bound is None:
        return ()
    return (
        f"at most {bound:,} edge{'' if bound == 1 else 's'} of each node count{'s' if bound == 1 else ''}",
    )


def draft_edges(graph: Graph, goal: Goal) -> Draft[AnswerTable]:
    """Draft the number of edges: one edge moves it by 1; under a degree bound, one node by that bound."""
    facts = graph.facts
    sensitivity = facts.bound("edges") if facts.by_node else 1
    noise = goal.noise(l1=sensitivity, l2_squared=sensitivity**2, adjacency=graph.adjacency)

    def exact(loaded: LoadedGraph) -> int:
        return (project_greedily(loaded.edges, sensitivity) if facts.by_node else loaded.edges).size

    return graph_draft(
        graph, goal, ask="edges", words="the number of edges", about=facts.projection,
        facts=projection_facts(facts),
        steps=[graph_step("edges", noise, exact)],
        reading=lambda noisy, level: one_number(
            "edges", noisy[0], noise.half_width(level), level, left_out=projected(facts)
        ),
        forecast=[Forecast("edges", "number of edges", noise.describe(), noise.half_width(goal.confidence))],
    )  # fmt: skip


def draft_weights(graph: Graph, goal: Goal) -> Draft[AnswerTable]:
    """Draft the sum of all weights: one edge moves it by the largest weight."""
    facts = graph.facts
    facts.edge_level("the sum of weights", PATH_WITNESS)
    fact = facts.weight
    if fact is None:
        raise TacitError(
            "missing-bounds",
            "the graph has no weights",
            why="the largest weight of a pair must be public",
            fix=Set(weight=("minutes", (0, 60))),
        )
    sensitivity = WEIGHT_STEPS * (facts.degree_bound or 1 if facts.by_node else 1)
    noise = goal.noise(l1=sensitivity, l2_squared=sensitivity**2, adjacency=graph.adjacency)
    step = fact.step

    def reading(noisy: Any, level: Fraction) -> AnswerTable:
        half = float(noise.half_width(level) * step)
        note = f"the weight of each pair is cut at {float(fact.most):g}"
        return one_number("weight", float(noisy[0] * step), half, level, note=note)

    return graph_draft(
        graph, goal, ask="weights", words=f"the sum of {fact.column} over all edges", assumed=True,
        about={"weight": [fact.column, str(fact.most), WEIGHT_STEPS]},
        facts=[("weights", (f"{fact.column}: the rows of a pair are added up and clipped to "
                           f"[0, {float(fact.most):g}], on a grid of {float(step):g}"))],
        steps=[graph_step("weights", noise, lambda loaded: int(_all_steps(loaded.weights).sum()))],
        reading=reading,
        forecast=[Forecast("weight", f"sum of {fact.column}", noise.describe(step),
                           float(noise.half_width(goal.confidence) * step))],
    )  # fmt: skip


def _all_steps(weights: NDArray[np.int64] | None) -> NDArray[np.int64]:
    return np.zeros(0, dtype=np.int64) if weights is None else weights


def mixing_counts(loaded: LoadedGraph, groups: NodeGroups, *, directed: bool) -> NDArray[np.int64]:
    """Return the number of edges between each two groups, row by row; undirected: each two once."""
    of, k = groups.codes(loaded.names), len(groups.labels)
    u, v = of[loaded.edges.source], of[loaded.edges.target]
    grouped = (u >= 0) & (v >= 0)
    u, v = u[grouped], v[grouped]
    if not directed:
        u, v = np.minimum(u, v), np.maximum(u, v)
    cells = np.bincount(u * k + v, minlength=k * k).reshape(k, k)
    return cells.reshape(-1) if directed else cells[np.triu_indices(k)]


def draft_mixing(graph: Graph, goal: Goal, group: str) -> Draft[AnswerTable]:
    """Draft the mixing matrix of public groups: one edge is in one cell."""
    facts = graph.facts
    facts.edge_level("a mixing matrix", PATH_WITNESS)
    groups = facts.group(group)
    check_cells(len(groups.labels) ** 2, Say("declare fewer groups"))
    sensitivity = _promised_degree(facts)
    noise = goal.noise(l1=sensitivity, l2_squared=sensitivity**2, adjacency=graph.adjacency)
    k = len(groups.labels)
    rows, columns = np.divmod(np.arange(k * k), k) if facts.directed else np.triu_indices(k)
    names = [tuple(groups.labels[i] for i in place) for place in (rows.tolist(), columns.tolist())]

    def reading(noisy: Any, level: Fraction) -> AnswerTable:
        half = noise.half_width(level)
        values = tuple(noisy[0])
        cells = Cells(values, tuple(v - half for v in values), tuple(v + half for v in values))
        return MixingTable(
            {group: names[0], f"{group}_2": names[1]}, {"edges": cells}, float(level), counts=("edges",)
        )

    return graph_draft(
        graph, goal, ask="mixing", words=f"edges between groups of {group}",
        about={"groups": groups.document}, assumed=True,
        facts=[("groups", f"{k} public groups of {group}; edges of nodes without a group are not counted")],
        steps=[graph_step("edges between groups", noise,
                          lambda loaded: mixing_counts(loaded, groups, directed=facts.directed))],
        reading=reading,
        forecast=[Forecast("edges", f"edges between two groups of {group}", noise.describe(),
                           noise.half_width(goal.confidence))],
    )  # fmt: skip


def _promised_degree(facts: GraphFacts) -> int:
    """Return by how many edges neighbours differ at most."""
    return facts.bound("edges") if facts.by_node else 1


def draft_reciprocity(graph: Graph, goal: Goal) -> Draft[AnswerTable]:
    """Draft the share of edges that are answered: one edge moves the edges by 1 and mutual pairs by 1."""
    if not graph.facts.directed:
        raise TacitError(
            "not-allowed",
            "reciprocity is a share of the edges of a directed graph",
            why="edges of an undirected graph have no direction, so no edge can answer another",
            fix=Set(directed=True),
        )
    noise = goal.noise(l1=2, l2_squared=2, adjacency=graph.adjacency)

    def exact(loaded: LoadedGraph) -> list[int]:
        edges = loaded.edges
        back = edges.places(edges.target, edges.source)
        return [edges.size, int((back >= 0).sum()) // 2]

    def reading(noisy: Any, level: Fraction) -> AnswerTable:
        edges, mutual = noisy[0]
        half = noise.half_width(1 - (1 - level) / 2)
        edge_half = noise.half_width(level)
        share = ratio_cells((2 * mutual, 2 * half), (edges, half))
        share = without_hidden(share, [swamped(edges, edge_half, float(level))])
        columns = {
            "edges": Cells((edges,), (edges - edge_half,), (edges + edge_half,)),
            "mutual": Cells((mutual,), (mutual - edge_half,), (mutual + edge_half,)),
            "reciprocity": share,
        }
        notes = {"mutual": "pairs with edges in both directions"}
        return AnswerTable({}, columns, float(level), notes, counts=("edges", "mutual"))

    half = noise.half_width(goal.confidence)
    return graph_draft(
        graph, goal, ask="reciprocity", words="the share of edges that are answered",
        steps=[graph_step("edges and mutual pairs", noise, exact)], reading=reading,
        forecast=[
            Forecast("edges", "number of edges", noise.describe(), half),
            Forecast("mutual", "pairs with edges in both directions", noise.describe(), half),
            Forecast("reciprocity", "share of edges that are answered", "from the two above", None,
                     "depends on the number of edges"),
        ],
    )  # fmt: skip


def ratio_cells(above: tuple[float, float], below: tuple[float, float]) -> Cells:
    """Return a ratio in [0, 1] from two numbers with half-widths: the hull of all ratios of the intervals.

    Examples
    --------
    >>> ratio_cells((50, 5), (100, 10))
    Cells(value=(0.5,), low=(0.4090909090909091,), high=(0.6111111111111112,))
    >>> ratio_cells((50, 5), (100, 100))
    Cells(value=(0.5,), low=(0.0,), high=(1.0,))
    """
    (top, top_half), (bottom, bottom_half) = above, below
    value = min(max(top / bottom, 0.0), 1.0) if bottom > 0 else 0.0
    if bottom - bottom_half <= 0:
        return Cells((value,), (0.0,), (1.0,))
    low = min(max((top - top_half) / (bottom + bottom_half), 0.0), 1.0)
    high = min(max((top + top_half) / (bottom - bottom_half), 0.0), 1.0)
    return Cells((value,), (low,), (high,))


#: The score of one edge in the smallest group: fine enough that rounding does not matter.
_SCALE = 10**6


def draft_densest(graph: Graph, goal: Goal, group: str) -> Draft[AnswerTable]:
    """Draft the choice of the group with the largest density: its edges over its pairs of nodes.

    Sensitivity: with p_g pairs in group g and p the smallest of them, the score is floor(S p m_g / p_g), S =
    10^6, for m_g edges inside g. One edge is inside at most one group and raises its m_g by 1, so its score
    by at most ceil(S p / p_g) <= S, and lowers none: monotone. Nodes per group are public.
    """
    facts = graph.facts
    facts.edge_level("the densest group", PATH_WITNESS)
    groups = facts.group(group)
    sizes = groups.sizes
    ways = 1 if facts.directed else 2  # two arrows fit between two nodes
    pairs = {g: int(n) * (int(n) - 1) // ways for g, n in enumerate(sizes) if n > 1}
    if len(pairs) < 2:
        raise TacitError(
            "bad-parameter",
            f"{group} has fewer than two groups with at least two nodes",
            why="a choice needs at least two candidates, and a group of one node has no pairs",
            fix=Say("declare groups with more nodes"),
        )
    pure = pure_goal(goal, "a choice")
    assert pure.epsilon is not None  # noqa: S101 - pure_goal
    fewest_pairs, sensitivity = min(pairs.values()), facts.bound("edges") if facts.by_node else 1
    noise = Exponential(
        epsilon=pure.epsilon,
        sensitivity=_SCALE * sensitivity,
        monotone=True,
        grid=1,
        adjacency=graph.adjacency,
    )
    labels = [groups.labels[g] for g in pairs]

    def exact(loaded: LoadedGraph) -> list[int]:
        of = groups.codes(loaded.names)
        u, v = of[loaded.edges.source], of[loaded.edges.target]
        inside = np.bincount(u[(u == v) & (u >= 0)], minlength=len(sizes)).tolist()
        return [_SCALE * fewest_pairs * inside[g] // p for g, p in pairs.items()]

    def reading(noisy: Any, level: Fraction) -> AnswerTable:
        note = f"picked from {len(labels)} groups; denser groups are more likely"
        cells = Cells((labels[int(noisy[0])],), (None,), (None,))
        return AnswerTable({}, {"densest": cells}, float(level), {"densest": note})

    lead = noise.lead_for(pure.confidence, len(labels)) / (_SCALE * fewest_pairs)
    return graph_draft(
        graph, pure, ask="densest", words=f"the densest {group}", assumed=True,
        about={"groups": groups.document, "scale": _SCALE},
        facts=[("groups", f"{len(labels)} groups of {group} with at least two nodes")],
        steps=[graph_step("density of groups", noise, exact)], reading=reading,
        forecast=[Forecast("densest", "group with the most edges for its number of pairs",
                           f"{noise.describe()}", None,
                           "the densest group is picked with probability "
                           f"{percent(float(pure.confidence), 0)} if its density is "
                           f"{min(lead, 1):.2g} higher than that of the others" if lead <= 1 else
                           "the choice is mostly chance at this epsilon: the groups are too small")],
    )  # fmt: skip
