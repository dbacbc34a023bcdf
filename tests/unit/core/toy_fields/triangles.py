"""A toy graph field: the number of triangles of a graph with public nodes, private for one edge."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import ClassVar

from tacit.core import Content, Dataset, Forecast, Plan, Unit, open_account, read_identity
from tacit.exact import rational
from tacit.ledger import open_ledger
from tacit.mechanisms import DiscreteLaplace


@dataclass(frozen=True, slots=True)
class CountWithInterval(Content):
    """One whole number with its interval."""

    kind: ClassVar[str] = "toy-count"
    value: int
    low: int
    high: int

    def to_json(self):
        return [self.value, self.low, self.high]

    @classmethod
    def from_json(cls, document):
        return cls(*document)

    def text(self, marks=()):
        return "\n".join([f"{self.value} [{self.low}, {self.high}]", *marks])


@dataclass(frozen=True, slots=True)
class TriangleTask:
    """One edge closes at most a triangle with each of the other nodes: sensitivity nodes - 2."""

    nodes: int
    edges: frozenset
    epsilon: Fraction

    @property
    def question(self):
        return {"count": "triangles", "nodes": self.nodes}

    @property
    def mechanisms(self):
        return [DiscreteLaplace(epsilon=self.epsilon, sensitivity=self.nodes - 2)]

    def integers(self):
        linked = {frozenset(edge) for edge in self.edges}
        triples = combinations(range(self.nodes), 3)
        yield sum(all(frozenset(pair) in linked for pair in combinations(t, 2)) for t in triples)

    def read(self, noisy, confidence):
        half = self.mechanisms[0].half_width(confidence)
        return CountWithInterval(noisy[0], noisy[0] - half, noisy[0] + half)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Graph(Dataset):
    """Public nodes 0, 1, 2 ... and private edges between them."""

    nodes: int
    _edges: frozenset

    def triangles(self, *, epsilon):
        task = TriangleTask(self.nodes, self._edges, rational("epsilon", epsilon))
        law = task.mechanisms[0]
        return Plan.of(
            self,
            task,
            promised={"epsilon": task.epsilon},
            forecast=[Forecast("triangles", "triangles", law.describe(), law.half_width(Fraction(95, 100)))],
            facts=[("neighbours", "one edge is added or removed"), ("nodes", f"{self.nodes} public nodes")],
            asked="triangles",
            request=lambda: {"epsilon": str(task.epsilon)},
        )

    def _rebuild(self, request):
        return self.triangles().plan(epsilon=Fraction(request["epsilon"]))


def graph(edges, *, nodes, budget, name="graph", ledger=None):
    identity = read_identity(name=name, unit=Unit.edge())
    book = open_ledger(ledger)
    open_account(identity, budget, book)
    return Graph(identity, book, nodes, frozenset(tuple(sorted(edge)) for edge in edges))
