"""A package outside Tacit: it adds a kind of dataset with one question, through entry points alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tacit import core
from tacit.engines import SourceColumns, empty_table
from tacit.ledger import open_ledger
from tacit.parameters import ColumnName, Integer


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

    step = core.Step(noise, lambda weights, _: int((weights >= least).sum()))
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
    """One edge in each row, with a column of weights."""

    kind: ClassVar[str] = "weighted-graph"
    questions: ClassVar = (COUNT,)
    _source: SourceColumns
    _weight: str

    def _weights(self) -> Any:
        return self._source.read().numbers[self._weight]


def declare(source: Any, *, name: str, policy: Any, facts: Any, ledger: Any) -> WeightedGraph:
    """Declare a table of edges; one edge is protected."""
    weight = facts["weight"]
    columns = SourceColumns(source, {weight: "number"})
    identity = core.read_identity(name=name, unit=core.Unit.edge(), version=policy.get("version", 1))
    store = open_ledger(ledger)
    core.open_account(identity, core.budget_of(policy), store)
    return WeightedGraph(identity, store, columns, weight)


def stand_in(facts: Any) -> object:
    """Return a table without rows that has the declared column."""
    return empty_table({facts["weight"]: "DOUBLE"})


def trial() -> WeightedGraph:
    """Return an invented graph, on which a service tries the questions."""
    facts = {"weight": "weight"}
    policy = {"budget": {"epsilon": "9"}}
    return declare(stand_in(facts), name="trial", policy=policy, facts=facts, ledger=None)


WEIGHTED_GRAPH = core.DatasetKind(
    name="weighted-graph", label="a graph with weights", questions=(COUNT,), declare=declare,
    facts=(core.Argument("weight", ColumnName(), needed=True, words="the column of weights"),),
    stand_in=stand_in, trial=trial,
)  # fmt: skip
