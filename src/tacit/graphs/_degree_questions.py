"""Questions about degrees: their sequence, their histogram, and the histogram of each public group.

The noisy degrees are fitted by a sequence that falls, with an interval for each entry.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from tacit.core import AnswerTable, Cells, Forecast
from tacit.fixes import Say, Set
from tacit.graphs._edge_questions import projected, projection_facts
from tacit.graphs._edges import project_greedily
from tacit.graphs._graph_draft import DegreeTable, check_cells, graph_draft, graph_step
from tacit.mechanisms import DiscreteGaussian, LinearNoise
from tacit.parameters import Omitted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from tacit.core import Draft, Goal
    from tacit.graphs._edges import LoadedGraph
    from tacit.graphs._graph import Graph
    from tacit.graphs._graph_facts import GraphFacts
    from tacit.mechanisms import DiscreteLaplace


FallingFit = tuple["NDArray[np.float64]", "NDArray[np.float64]", "NDArray[np.float64]"]


def fit_falling(
    noisy: NDArray[np.float64], mechanism: DiscreteLaplace | DiscreteGaussian, confidence: Fraction, top: int
) -> FallingFit:
    """Fit a sequence of whole numbers in [0, top] that never rises to noisy ones; return value, low, high.

    Guarantee: each interval covers its entry with at least the confidence.

    Argument: where a sequence falls, an entry is at least the mean of itself and the m - 1 entries after it,
    and at most the mean of itself and the m - 1 entries before it. The mean of m noisy numbers has less noise
    than one of them. Every m = 1, 2, 4, ... gives a bound, the chance to fail is split over all of them, and
    the best bound counts. The value is the nearest falling sequence (Hay and others 2009); an interval is
    widened where it does not hold the value.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from tacit.mechanisms import DiscreteLaplace
    >>> noise = DiscreteLaplace(epsilon=2, sensitivity=2)
    >>> value, low, high = fit_falling(np.array([9.0, 4, 5, 4, 3, 5, 4, 4]), noise, Fraction(19, 20), 10)
    >>> value.round(2).tolist()
    [9.0, 4.5, 4.5, 4.0, 4.0, 4.0, 4.0, 4.0]
    >>> low.tolist()[:4], high.tolist()[:4]
    ([5.0, 3.0, 3.0, 3.0], [10.0, 8.0, 7.0, 7.0])
    """
    from scipy.optimize import isotonic_regression

    n = len(noisy)
    if not n:
        empty = np.zeros(0)
        return empty, empty, empty
    noise = _noise_of(mechanism)
    windows = [2**j for j in range(n.bit_length()) if 2**j <= n]
    failing = float(1 - confidence) / len(windows)
    sums = np.concatenate([[0.0], np.cumsum(noisy)])
    low, high = np.full(n, 0.0), np.full(n, float(top))
    for m in windows:
        mean = (sums[m:] - sums[:-m]) / m
        half = float(noise.half_width(failing, np.ones(1), times=np.full(1, float(m)))) / m
        low[: n - m + 1] = np.maximum(low[: n - m + 1], mean - half)
        high[m - 1 :] = np.minimum(high[m - 1 :], mean + half)
    value = np.clip(isotonic_regression(noisy, increasing=False).x, 0, top)
    low, high = np.ceil(low - 1e-9) + 0.0, np.floor(high + 1e-9)
    return value, np.clip(np.minimum(low, value), 0, top) + 0.0, np.clip(np.maximum(high, value), 0, top)


def half_width_of_difference(mechanism: DiscreteLaplace | DiscreteGaussian, confidence: Fraction) -> int:
    """Return how far the difference of two noisy numbers may lie from the true one.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from tacit.mechanisms import DiscreteLaplace
    >>> half_width_of_difference(DiscreteLaplace(epsilon=1, sensitivity=2), Fraction(19, 20))
    9
    """
    return math.ceil(float(_noise_of(mechanism).half_width(float(1 - confidence), np.ones(2))))


def _noise_of(mechanism: DiscreteLaplace | DiscreteGaussian) -> LinearNoise:
    if isinstance(mechanism, DiscreteGaussian):
        return LinearNoise(normal=float(mechanism.sigma))
    return LinearNoise(laplace=(float(mechanism.scale),))


#: Whose edges count in a graph with directions: those that leave a node, or those that arrive.
DegreeEnd: TypeAlias = Literal["source", "target"]
_UNBOUNDED_DEGREE = 2**31  # edges of a node where nothing bounds them
_USUAL_DEGREE = 100  # degrees that a histogram shows where nothing else is declared


def _read_end(facts: GraphFacts, of: str | None) -> str | None:
    """Read whose degrees are meant."""
    if not (facts.directed or facts.bipartite):
        Omitted("for an undirected graph").read("of", of)
        return None
    return of or "source"


def _number(facts: GraphFacts, end: str | None) -> int:
    """Return the declared number of nodes whose degrees are meant."""
    if facts.target_nodes is not None and end == "target":
        from dataclasses import replace

        return replace(facts, nodes=facts.target_nodes).number()
    return facts.number()


def _max_edges(facts: GraphFacts, end: str | None) -> int:
    """Return how many edges a node can have, as far as the declared nodes say."""
    if facts.target_nodes is None:
        number = facts.nodes.number
        return _UNBOUNDED_DEGREE if number is None else number - 1
    other = facts.nodes if end == "target" else facts.target_nodes
    return _UNBOUNDED_DEGREE if other.number is None else other.number


def _degrees(loaded: LoadedGraph, facts: GraphFacts, end: str | None) -> NDArray[np.int64]:
    """Return the degrees of the nodes that are meant, under the degree bound of a node-level graph."""
    edges = loaded.edges
    if facts.by_node:
        edges = project_greedily(edges, facts.bound("degrees"))
    match end:
        case None:
            return edges.degrees()
        case "source":
            return edges.out_degrees()[: loaded.sources]
        case _:
            return edges.in_degrees()[loaded.sources if facts.bipartite else 0 :]


def draft_degrees(graph: Graph, goal: Goal, of: str | None) -> Draft[AnswerTable]:
    """Draft the sorted degrees: one edge moves two of them by 1 (with a direction, one)."""
    facts = graph.facts
    end = _read_end(facts, of)
    n = _number(facts, end)
    check_cells(n, Say("ask for the degree histogram"))
    nodes_per_edge = 1 if end else 2
    l1, l2_squared = nodes_per_edge, nodes_per_edge
    if facts.by_node:
        bound = facts.bound("degrees")
        l1, l2_squared = 2 * bound, 2 * bound**2
    noise = goal.noise(l1=l1, l2_squared=l2_squared, adjacency=graph.adjacency)

    def exact(loaded: LoadedGraph) -> NDArray[np.int64]:
        degrees = np.sort(_degrees(loaded, facts, end))[::-1][:n]
        return np.concatenate([degrees, np.zeros(n - len(degrees), dtype=np.int64)])

    def reading(noisy: Any, level: Fraction) -> AnswerTable:
        fitted = fit_falling(np.asarray(noisy[0], dtype=np.float64), noise, level, _max_edges(facts, end))
        cells = Cells(*(tuple(part.tolist()) for part in fitted))
        note = "the falling sequence nearest to the noisy degrees"
        return DegreeTable(
            {"rank": tuple(range(1, n + 1))},
            {"degree": cells},
            float(level),
            {"degree": note},
            projected(facts),
        )

    half = noise.half_width(goal.confidence)
    return graph_draft(
        graph, goal, ask="degrees", words="the degrees of all nodes, sorted",
        about={"of": end, **facts.projection}, facts=projection_facts(facts),
        steps=[graph_step("sorted degrees", noise, exact)], reading=reading,
        forecast=[Forecast("degree", "degree of the node at each rank", noise.describe(), half,
                           caution="the fit makes the error smaller where many nodes have the same degree")],
    )  # fmt: skip


def _largest(facts: GraphFacts, largest: int | None, end: str | None) -> int:
    """Read the largest degree that a histogram shows."""
    limit = largest if largest is not None else facts.degree_bound or _USUAL_DEGREE
    if facts.by_node:
        limit = min(limit, facts.bound("degrees"))
    return min(limit, _max_edges(facts, end))


def draft_degree_histogram(
    graph: Graph, goal: Goal, largest: int | None, of: str | None
) -> Draft[AnswerTable]:
    """Draft the number of nodes of each degree."""
    facts = graph.facts
    end = _read_end(facts, of)
    n = None if facts.by_node else _number(facts, end)
    top = _largest(facts, largest, end)
    return _histograms(
        graph, goal, top, end, ask="degree_histogram", words="how many nodes have each degree",
        sizes=None if n is None else [n],
    )  # fmt: skip


def draft_degrees_by(
    graph: Graph, goal: Goal, group: str, largest: int | None, of: str | None
) -> Draft[AnswerTable]:
    """Draft the degree histogram of each public group of nodes."""
    facts = graph.facts
    end = _read_end(facts, of)
    groups = facts.group(group)
    top = _largest(facts, largest, end)
    return _histograms(
        graph, goal, top, end, ask="degrees_by", words=f"how many nodes of each {group} have each degree",
        sizes=None if facts.by_node else groups.sizes.tolist(), by=group,
    )  # fmt: skip


def _histograms(
    graph: Graph, goal: Goal, top: int, end: str | None, *, ask: str, words: str,
    sizes: Sequence[int] | None, by: str = "",
) -> Draft[AnswerTable]:  # fmt: skip
    """Draft histograms, one for each group.

    At edge level the numbers of nodes with at least 1, 2, ... edges are measured: one edge moves them by 2 in
    L1 and by 4 in squared L2 (with a direction, by 1), half of what it moves in a histogram. At node level
    the histogram itself is, without nodes of degree 0: one node moves it by 2D + 1 in L1.
    """
    facts = graph.facts
    groups = facts.group(by) if by else None
    labels = groups.labels if groups else ("",)
    check_cells(len(labels) * (top + 1), Set(largest=100))
    if facts.by_node:
        bound = facts.bound("degrees")
        l1, l2_squared = 2 * bound + 1, (bound + 1) ** 2 + bound**2
    else:
        l1, l2_squared = (1, 1) if end else (2, 4)
    noise = goal.noise(l1=l1, l2_squared=l2_squared, adjacency=graph.adjacency)
    cells = top if facts.by_node else top + 1

    def exact(loaded: LoadedGraph) -> NDArray[np.int64]:
        degrees = np.minimum(_degrees(loaded, facts, end), cells + 1)
        of = np.zeros(len(degrees), dtype=np.int64) if groups is None else groups.codes(loaded.names)
        grouped = of[: len(degrees)] >= 0
        size = (len(labels), cells + 2)
        flat = of[: len(degrees)][grouped] * size[1] + degrees[grouped]
        table = np.bincount(flat, minlength=size[0] * size[1]).reshape(size)
        if facts.by_node:
            return table[:, 1 : cells + 1]
        return table[:, ::-1].cumsum(axis=1)[:, ::-1][:, 1 : cells + 1]  # with at least 1, 2, ... edges

    reading = _reading_of(noise, labels, sizes, top, by, projected(facts))
    half = (
        noise.half_width(goal.confidence)
        if facts.by_node
        else half_width_of_difference(noise, goal.confidence)
    )
    fall = [] if facts.by_node else [
        Forecast("or_more", "number of nodes with this degree or more", noise.describe(),
                 noise.half_width(goal.confidence))
    ]  # fmt: skip
    return graph_draft(
        graph, goal, ask=ask, words=words, facts=projection_facts(facts),
        about={
            "of": end, "cells": cells, **facts.projection, **({"groups": groups.document} if groups else {}),
        },
        steps=[graph_step("degree histogram", noise, exact)], reading=reading,
        forecast=[Forecast("nodes", "number of nodes with this degree", noise.describe(), half), *fall],
    )  # fmt: skip


def _reading_of(
    noise: Any,
    labels: Sequence[str],
    sizes: Sequence[int] | None,
    top: int,
    by: str,
    left_out: tuple[str, ...],
) -> Callable[[Sequence[Any], Fraction], AnswerTable]:
    """Return how the noisy numbers become histograms; ``left_out`` says what a degree bound drops."""

    def reading(noisy: Sequence[Any], level: Fraction) -> AnswerTable:
        lines = np.asarray(noisy[0], dtype=np.float64).reshape(len(labels), -1)
        lowest = 1 if sizes is None else 0
        keys = {by: tuple(label for label in labels for _ in range(lowest, top + 1))} if by else {}
        keys |= {"degree": tuple(range(lowest, top + 1)) * len(labels)}  # type: ignore[dict-item]
        if sizes is None:
            half = noise.half_width(level)
            flat = lines.reshape(-1).astype(np.int64)
            columns = {"nodes": _cells(flat, flat - half, flat + half)}
            notes = {"nodes": "nodes that keep an edge under the degree bound; the others are not counted"}
            return DegreeTable(keys, columns, float(level), notes, left_out, counts=("nodes",))
        parts = [_from_falling(line, noise, level, n) for line, n in zip(lines, sizes, strict=True)]
        nodes, more = (
            [np.concatenate(end) for end in zip(*one, strict=True)] for one in zip(*parts, strict=True)
        )
        notes = {"or_more": "fitted so that it never rises with the degree; nodes is its difference"}
        return DegreeTable(
            keys, {"nodes": _cells(*nodes), "or_more": _cells(*more)}, float(level), notes, counts=()
        )

    return reading


def _from_falling(line: NDArray[np.float64], noise: Any, level: Fraction, n: int) -> Any:
    """Return (value, low, high) of the nodes with each degree, and of those with this degree or more."""
    value, low, high = fit_falling(line, noise, level, n)
    single, two = noise.half_width(level), half_width_of_difference(noise, level)
    raw = np.concatenate([[n - line[0]], line[:-1] - line[1:]])
    half = np.full(len(raw), float(two))
    half[0] = single
    extended = np.concatenate([[n], value])
    exact = extended[:-1] - extended[1:]
    nodes = (
        exact,
        np.minimum(np.clip(raw - half, 0, n), exact),
        np.maximum(np.clip(raw + half, 0, n), exact),
    )
    more = tuple(np.concatenate([[n], end[:-1]]) for end in (value, low, high))
    return nodes, more


def _cells(*ends: NDArray[Any]) -> Cells:
    return Cells(*(tuple(end.tolist()) for end in ends))
