"""The densest public community, picked privately."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.core import AnswerTable, Cells, Forecast
from tacit.errors import TacitError
from tacit.fixes import Say
from tacit.graphs._counts import PATH_WITNESS
from tacit.graphs._graph_draft import graph_draft, graph_step, pure_goal
from tacit.mechanisms import Exponential
from tacit.report import percent

if TYPE_CHECKING:
    from fractions import Fraction

    from tacit.core import Draft, Goal
    from tacit.graphs._graph import Graph
    from tacit.graphs._loaded_graph import LoadedGraph

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
    least, moved = min(pairs.values()), facts.bound("edges") if facts.by_node else 1
    noise = Exponential(
        epsilon=pure.epsilon, sensitivity=_SCALE * moved, monotone=True, grid=1, adjacency=graph.adjacency
    )
    labels = [groups.labels[g] for g in pairs]

    def exact(loaded: LoadedGraph) -> list[int]:
        of = groups.codes(loaded.names)
        u, v = of[loaded.edges.source], of[loaded.edges.target]
        inside = np.bincount(u[(u == v) & (u >= 0)], minlength=len(sizes)).tolist()
        return [_SCALE * least * inside[g] // p for g, p in pairs.items()]

    def reading(noisy: Any, level: Fraction) -> AnswerTable:
        note = f"picked from {len(labels)} groups; denser groups are more likely"
        cells = Cells((labels[int(noisy[0])],), (None,), (None,))
        return AnswerTable({}, {"densest": cells}, float(level), {"densest": note})

    lead = noise.lead_for(pure.confidence, len(labels)) / (_SCALE * least)
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
