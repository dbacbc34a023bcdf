"""A package outside Tacit: it adds a kind of dataset with one question, through entry points alone."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from tacit import core
from tacit.ledger import open_ledger
from tacit.parameters import Integer


@dataclass(frozen=True, slots=True)
class EdgeCount(core.Content):
    """The number of edges, with its interval."""

    kind: ClassVar[str] = "edge-count"
    value: int
    low: int
    high: int


def draft(graph: Any, goal: core.Goal, least: int) -> core.Draft[EdgeCount]:
    """One edge changes the number of edges by 1."""
    noise = goal.noise(l1=1, l2_squared=1, adjacency=graph.adjacency)

    def read(noisy: Any, confidence: Any) -> EdgeCount:
        half = noise.half_width(confidence)
        return EdgeCount(noisy[0], noisy[0] - half, noisy[0] + half)

    step = core.Step(noise, lambda weights, _: sum(weight >= least for weight in weights))
    task = core.Task(
        document={"count": "edges", "least": least},
        open=lambda _: graph._weights(),
        steps=(step,),
        reading=read,
    )
    forecast = core.Forecast("value", "number of edges", noise.describe(), noise.half_width(goal.confidence))
    return core.Draft(task=task, asked=f"edges with a weight of at least {least}", forecast=[forecast])


COUNT = core.QuestionKind(
    name="count", words="Count the edges", draft=draft,
    arguments=(core.Argument("least", Integer(1, 100), default=1, words="the smallest weight that counts"),),
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WeightedGraph(core.Dataset):
    """Edges with weights in a CSV file: from, to, weight."""

    kind: ClassVar[str] = "weighted-graph"
    questions: ClassVar = (COUNT,)
    _source: Any

    def prepare(self) -> None:
        """Read nothing: each draw reads the file."""

    def _weights(self) -> list[int]:
        if isinstance(self._source, list):
            return self._source
        with Path(self._source).open(newline="") as file:
            return [int(weight) for _, _, weight in list(csv.reader(file))[1:]]


def declare(source: Any, *, name: str, policy: Any, facts: Any, ledger: Any) -> WeightedGraph:
    """Declare a file of edges; one edge is protected."""
    del facts
    identity, store = core.read_identity(name=name, unit=core.Unit.edge()), open_ledger(ledger)
    core.open_account(identity, core.budget_of(policy), store)
    return WeightedGraph(identity, store, source)


WEIGHTED_GRAPH = core.DatasetKind(
    name="weighted-graph", label="a graph with weights", questions=(COUNT,), declare=declare,
    stand_in=lambda facts: [],
    trial=lambda: declare([1, 2], name="trial", policy={"budget": {"epsilon": "9"}}, facts={}, ledger=None),
)  # fmt: skip
