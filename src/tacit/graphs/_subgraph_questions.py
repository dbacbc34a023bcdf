"""Triangles, wedges, stars and the clustering coefficient: counts whose noise follows the graph."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import comb
from typing import TYPE_CHECKING, Any

from tacit.core import AnswerTable, Cells, Forecast, swamped, without_hidden
from tacit.fixes import Set
from tacit.graphs._edge_questions import ratio_cells
from tacit.graphs._graph_draft import graph_draft, graph_step, one_number, pure_goal
from tacit.graphs._subgraphs import (
    count_stars,
    count_triangles,
    count_wedges,
    largest_common,
    largest_wedge_change,
    top_degree,
    triangle_programme,
)
from tacit.graphs._verdict import verdict_of
from tacit.mechanisms import DiscreteLaplace, LadderNoise, StarLadder
from tacit.parameters import Integer, Omitted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tacit.core import Draft, Goal, Step
    from tacit.graphs._edges import EdgeArrays, LoadedGraph
    from tacit.graphs._graph import Graph
    from tacit.graphs._graph_facts import GraphFacts

_FOR_WIDTH = Fraction(15, 100)  # of epsilon, for the width that an interval needs
_FOR_TRIANGLES = Fraction(3, 5)  # of epsilon, in a clustering coefficient
_HUB = "one node that is connected to all others closes a triangle with every edge between them"


@dataclass(frozen=True, slots=True, eq=False)
class _Ladder:
    """A count whose noise follows its local sensitivity, at edge level; or has a known one, at node level.

    Parameters
    ----------
    name
        The column.
    exact, width
        The count, and how far one edge can move it; the width moves by at most 1.
    shared
        What the width is, in words: "two nodes have at most {} neighbours in common".
    per_degree
        The largest width for each edge of a node: widths are at most this often the largest degree.
    by_node
        How far one node moves the count, if no node has more edges than a bound.
    legs
        Of stars with three edges or more, how many; their width is the largest degree.
    """

    name: str
    exact: Callable[[EdgeArrays], int]
    width: Callable[[LoadedGraph], int]
    shared: str
    per_degree: int
    by_node: Callable[[int], int]
    legs: int = 2

    def most(self, facts: GraphFacts) -> int | None:
        """Return the largest possible width, where the list of nodes guarantees it."""
        n = facts.nodes.most
        return None if n is None else max(self.per_degree * (n - 2), 1)

    def floor(self, facts: GraphFacts, epsilon: Fraction) -> int:
        """Return the public floor of the ladder: about 10 / sqrt(epsilon); 5 times that for wedges."""
        usual = LadderNoise.default_floor(epsilon) * (5 if self.per_degree > 1 else 1)
        n = facts.nodes.number
        return usual if n is None else max(1, min(usual, self.per_degree * (n - 2)))


_TRIANGLES = _Ladder(
    "triangles", count_triangles, lambda loaded: largest_common(loaded.edges),
    "two nodes have at most {} neighbours in common", 1, lambda bound: comb(bound, 2),
)  # fmt: skip
_WEDGES = _Ladder(
    "wedges", count_wedges, lambda loaded: largest_wedge_change(loaded.edges, unseen=not loaded.listed),
    "two nodes have at most {} edges to others together", 2, lambda bound: 3 * comb(bound, 2),
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class _Measurement:
    """The steps of one count, and how its noisy integers become a value with a half-width."""

    ladder: _Ladder
    steps: tuple[Step[LoadedGraph], ...]
    half: Callable[[Sequence[Any], Fraction], int]

    def value(self, noisy: Sequence[Any]) -> int:
        return int(noisy[len(self.steps) - 1])


def _measurement(graph: Graph, ladder: _Ladder, epsilon: Fraction) -> _Measurement:
    """Return the steps of a count: at edge level the ladder, and a paid width unless a bound is declared."""
    facts = graph.facts
    if facts.by_node:
        sensitivity = max(1, ladder.by_node(facts.bound(ladder.name)))
        noise = DiscreteLaplace(epsilon=epsilon, sensitivity=sensitivity, adjacency=graph.adjacency)
        step = graph_step(ladder.name, noise, lambda loaded: ladder.exact(loaded.edges))
        return _Measurement(ladder, (step,), lambda _, level: noise.half_width(level))
    bound = facts.degree_bound
    share = Fraction(0) if bound is not None else _FOR_WIDTH
    rest = epsilon * (1 - share)
    law = _law(graph, ladder, rest)
    main = graph_step(ladder.name, law, lambda loaded: (ladder.exact(loaded.edges), ladder.width(loaded)))
    if bound is not None:
        stated = _capped(ladder, facts, ladder.per_degree * bound)
        return _Measurement(ladder, (main,), lambda _, level: law.half_width(level, width=stated))
    width = DiscreteLaplace(epsilon=epsilon * share, sensitivity=1, adjacency=graph.adjacency)
    width_step = graph_step(f"width of {ladder.name}", width, ladder.width)

    def half(noisy: Sequence[Any], level: Fraction) -> int:
        """Use a fifth of the chance to fail for the width (one side), and the rest for the count."""
        miss = 1 - level
        upper = int(noisy[0]) + width.half_width(1 - 2 * miss / 5)
        return law.half_width(1 - miss * 4 / 5, width=_capped(ladder, facts, max(0, upper)))

    return _Measurement(ladder, (width_step, main), half)


def _law(graph: Graph, ladder: _Ladder, epsilon: Fraction) -> LadderNoise | StarLadder:
    """Return the ladder of a count, with a public floor, and a cap where a list of nodes guarantees it."""
    facts, max_width = graph.facts, ladder.most(graph.facts)
    if ladder.legs > 2:
        return StarLadder(epsilon, stars=ladder.legs, most=max_width, adjacency=graph.adjacency)
    floor = ladder.floor(facts, epsilon)
    return LadderNoise(epsilon, floor=floor, most=max_width, adjacency=graph.adjacency)


def _capped(ladder: _Ladder, facts: GraphFacts, width: int) -> int:
    n = facts.nodes.number
    if n is None:
        return width
    return min(width, n - 1 if ladder.legs > 2 else ladder.per_degree * max(n - 2, 0))


def _forecast(measurement: _Measurement, facts: GraphFacts, goal: Goal, words: str) -> Forecast:
    """Say which interval to expect; if the width is private, for a noisy width at the floor."""
    ladder, law = measurement.ladder, measurement.steps[-1].mechanism
    describe = law.describe()  # type: ignore[attr-defined]
    if facts.by_node or facts.degree_bound is not None:
        return Forecast(ladder.name, words, describe, measurement.half((0,), goal.confidence))
    assert isinstance(law, LadderNoise | StarLadder)  # noqa: S101 - edge level
    half = measurement.half((law.floor,), goal.confidence)
    note = f"about {half:,} if {ladder.shared.format(law.floor)}, more in denser graphs"
    return Forecast(ladder.name, words, describe, None, note)


def _facts(measurement: _Measurement, facts: GraphFacts) -> list[tuple[str, str]]:
    """Say where the interval comes from."""
    if facts.by_node:
        return []
    if facts.degree_bound is not None:
        return [("interval", (f"holds if no node has more than {facts.degree_bound:,} edges, as declared; "
                             "privacy does not depend on it"))]  # fmt: skip
    width_note = f"15 % of epsilon measure how far one edge can move the {measurement.ladder.name}"
    return [("interval", f"{width_note}; a public degree bound would make the interval narrower")]


def _draft_count(
    graph: Graph, goal: Goal, ladder: _Ladder, words: str, about: dict[str, int] | None = None
) -> Draft[AnswerTable]:
    facts = graph.facts
    pure = pure_goal(goal, ladder.name)
    assert pure.epsilon is not None  # noqa: S101 - pure_goal
    measurement = _measurement(graph, ladder, pure.epsilon)

    def reading(noisy: Any, level: Fraction) -> AnswerTable:
        return one_number(ladder.name, measurement.value(noisy), measurement.half(noisy, level), level)

    return graph_draft(
        graph, pure, ask=ladder.name, words=words, steps=measurement.steps, reading=reading, assumed=True,
        about={**_interval_bound(facts), **(about or {})},
        facts=[*_facts(measurement, facts), *(_verdict(facts, pure.epsilon) if ladder is _TRIANGLES else [])],
        forecast=[_forecast(measurement, facts, pure, words.removeprefix("the "))],
    )  # fmt: skip


def _verdict(facts: GraphFacts, epsilon: Fraction) -> list[tuple[str, str]]:
    """Say whether a graph of the declared size has enough triangles."""
    if facts.by_node:
        return []
    if facts.nodes.number is None or facts.mean_degree is None:
        missing = "nodes" if facts.nodes.number is None else "mean_degree"
        return [("verdict", f"not known: {missing} is not declared")]
    rest = epsilon if facts.degree_bound is not None else epsilon * (1 - _FOR_WIDTH)
    verdict = verdict_of(facts.nodes.number, facts.mean_degree, epsilon=rest)
    return [("verdict", replace(verdict, epsilon=float(epsilon)).text)]


def _interval_bound(facts: GraphFacts) -> dict[str, int]:
    return {} if facts.degree_bound is None else {"degree_bound": facts.degree_bound}


def draft_triangles(graph: Graph, goal: Goal, tau: int | None) -> Draft[AnswerTable]:
    """Draft the number of triangles: the ladder for edges; for nodes the linear programme with a bound."""
    facts = graph.facts
    facts.undirected("triangles")
    if not facts.by_node:
        Omitted("unless nodes are protected").read("tau", tau)
    if tau is None:
        facts.edge_level("triangles", _HUB, also=Set(tau=64))
        return _draft_count(graph, goal, _TRIANGLES, "the number of triangles")
    noise = goal.noise(l1=tau + 1, l2_squared=(tau + 1) ** 2, adjacency=graph.adjacency)
    half = noise.half_width(goal.confidence)
    note = f"at most {tau:,} triangles of each node count; the interval covers the noise only"
    return graph_draft(
        graph, goal, ask="triangles", words="the number of triangles",
        about={"tau": tau}, facts=[("tau", f"{note}; choose it from public knowledge")],
        steps=[graph_step("triangles", noise, lambda loaded: triangle_programme(loaded.edges, tau))],
        reading=lambda noisy, level: one_number(
            "triangles", noisy[0], noise.half_width(level), level, note=note
        ),
        forecast=[Forecast("triangles", "number of triangles", noise.describe(), half)],
    )  # fmt: skip


def draft_wedges(graph: Graph, goal: Goal) -> Draft[AnswerTable]:
    """Draft the number of wedges: paths of two edges."""
    graph.facts.undirected("wedges")
    graph.facts.edge_level(
        "wedges", "one node with all others as neighbours is the middle of all their pairs"
    )
    return _draft_count(graph, goal, _WEDGES, "the number of wedges (paths of two edges)")


def draft_clustering(graph: Graph, goal: Goal) -> Draft[AnswerTable]:
    """Draft the clustering coefficient: three times the triangles, over the wedges."""
    facts = graph.facts
    facts.undirected("triangles")
    facts.edge_level("the clustering coefficient", _HUB)
    pure = pure_goal(goal, "triangles")
    assert pure.epsilon is not None  # noqa: S101 - pure_goal
    parts = [
        _measurement(graph, _TRIANGLES, pure.epsilon * _FOR_TRIANGLES),
        _measurement(graph, _WEDGES, pure.epsilon * (1 - _FOR_TRIANGLES)),
    ]
    cut = len(parts[0].steps)

    def reading(noisy: Any, level: Fraction) -> AnswerTable:
        part_level = 1 - (1 - level) / 2
        noisy_parts = noisy[:cut], noisy[cut:]
        estimates = [
            (part.value(n), part.half(n, part_level)) for part, n in zip(parts, noisy_parts, strict=True)
        ]
        (triangles, triangles_half), (wedges, wedges_half) = estimates
        share = ratio_cells((3 * triangles, 3 * triangles_half), (wedges, wedges_half))
        columns = {"clustering": without_hidden(share, [swamped(wedges, wedges_half, float(part_level))])}
        for part, n in zip(parts, noisy_parts, strict=True):
            value, half = part.value(n), part.half(n, level)
            columns[part.ladder.name] = Cells((value,), (value - half,), (value + half,))
        return AnswerTable({}, columns, float(level), {}, counts=("triangles", "wedges"))

    return graph_draft(
        graph, pure, ask="clustering", words="the clustering coefficient", assumed=True,
        about=_interval_bound(facts), facts=_facts(parts[0], facts)[:1],
        steps=[*parts[0].steps, *parts[1].steps], reading=reading,
        forecast=[
            Forecast("clustering", "three times the triangles, over the wedges", "from the two below", None,
                     "depends on the number of wedges"),
            _forecast(parts[0], facts, pure, "number of triangles"),
            _forecast(parts[1], facts, pure, "number of wedges"),
        ],
    )  # fmt: skip


def check_stars(graph: Graph) -> None:
    """Refuse stars of a graph whose directions or protected nodes do not allow them."""
    graph.facts.undirected("stars")
    graph.facts.edge_level("stars", "one node with all others as neighbours is the middle of all their stars")


def draft_stars(graph: Graph, goal: Goal, k: int) -> Draft[AnswerTable]:
    """Draft the number of k-stars: nodes with k of their neighbours."""
    facts = graph.facts
    check_stars(graph)
    if k == 2:
        return draft_wedges(graph, goal)
    n = facts.nodes.number
    if n is not None:
        Integer(2, n - 1, f"the number of nodes is {n:,}", instead=max(2, min(3, n - 1))).read("k", k)
    stars = _Ladder(
        "stars", lambda edges: count_stars(edges, k), lambda loaded: top_degree(loaded.edges),
        "no node has more than {} edges", 1,
        lambda bound: comb(bound, k) + bound * comb(bound - 1, k - 1), k,
    )  # fmt: skip
    return _draft_count(graph, goal, stars, f"the number of {k}-stars", {"k": k})
