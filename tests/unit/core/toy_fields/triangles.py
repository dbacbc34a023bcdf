"""A toy graph field: the number of triangles of a graph with public nodes, private for one edge."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

from tacit import core
from tacit.ledger import open_ledger


@dataclass(frozen=True, slots=True)
class CountWithInterval(core.Content):
    kind: ClassVar[str] = "toy-count"
    value: int
    low: int
    high: int

    def text(self, marks=()):
        return "\n".join([f"{self.value} [{self.low}, {self.high}]", *marks])


def triangles_of(edges, nodes):
    threes = combinations(range(nodes), 3)
    return sum(all(pair in edges for pair in combinations(three, 2)) for three in threes)


def draft(graph, goal):
    """One edge closes at most a triangle with each of the other nodes: sensitivity nodes - 2."""
    nodes, noise = graph.nodes, goal.noise(l1=graph.nodes - 2, l2_squared=(graph.nodes - 2) ** 2)

    def read(noisy, confidence):
        half = noise.half_width(confidence)
        return CountWithInterval(noisy[0], noisy[0] - half, noisy[0] + half)

    step = core.Step(noise, lambda edges, _: triangles_of(edges, nodes))
    asked = {"count": "triangles", "nodes": nodes}
    task = core.Task(document=asked, open=lambda _: graph._edges, steps=(step,), reading=read)
    forecast = core.Forecast("triangles", "triangles", noise.describe(), noise.half_width(goal.confidence))
    facts = [("neighbours", "one edge is added or removed"), ("nodes", f"{nodes} public nodes")]
    return core.Draft(task=task, asked="triangles", forecast=[forecast], facts=facts)


TRIANGLES = core.QuestionKind(name="triangles", words="Count the triangles", draft=draft)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Graph(core.Dataset):
    questions = (TRIANGLES,)
    nodes: int
    _edges: frozenset


def graph(edges, *, nodes, budget, name="graph", ledger=None):
    identity, book = core.read_identity(name=name, unit=core.Unit.edge()), open_ledger(ledger)
    core.open_account(identity, budget, book)
    return Graph(identity, book, nodes, frozenset(tuple(sorted(edge)) for edge in edges))
