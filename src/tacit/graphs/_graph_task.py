"""The task of a question about a graph, and how its plan is made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tacit.core import AnswerTable, Cells, Forecast, Plan
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Set

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence
    from fractions import Fraction

    from tacit.core import JSON, Measurement, PlanGoal
    from tacit.fixes import Fix
    from tacit.graphs._graph import Graph
    from tacit.graphs._loaded_graph import GraphReader, LoadedGraph

__all__ = ["GraphStep", "GraphTask", "check_cells", "make_graph_plan", "one_number", "pure_goal"]

_MOST_CELLS = 1_000_000


@dataclass(frozen=True, slots=True, eq=False)
class GraphStep:
    """One mechanism of a question, and the exact integers that it gets.

    Parameters
    ----------
    statistic
        What the integers are, for the certificate.
    mechanism
        The noise.
    exact
        Computes them from the graph. What one edge, or one node, changes in them is proven in
        docs/proofs/graphs.md.
    """

    statistic: str
    mechanism: Measurement
    exact: Callable[[LoadedGraph], Any]


@dataclass(frozen=True, slots=True, eq=False)
class GraphTask:
    """A question about a graph: public facts, steps, and how the noisy integers are read."""

    question: JSON
    steps: tuple[GraphStep, ...]
    assumes: Mapping[str, JSON]
    reading: Callable[[Sequence[Any], Fraction], AnswerTable]
    reader: GraphReader

    @property
    def mechanisms(self) -> tuple[Measurement, ...]:
        """The mechanisms in the order in which they run."""
        return tuple(step.mechanism for step in self.steps)

    @property
    def labels(self) -> tuple[Mapping[str, JSON], ...]:
        """What the integers of each mechanism are, and what the guarantee assumes."""
        return tuple({"statistic": step.statistic, **self.assumes} for step in self.steps)

    def unavailable(self) -> TacitError | None:
        """Return why nothing can be drawn, before the charge."""
        return self.reader.unavailable()

    def integers(self) -> Generator[Any, Any, None]:
        """Read the graph, and yield the exact integers of each step."""
        graph = self.reader.load()
        for step in self.steps:
            yield step.exact(graph)

    def read(self, noisy: Sequence[Any], confidence: Fraction) -> AnswerTable:
        """Read values and intervals off the noisy integers."""
        return self.reading(noisy, confidence)


def make_graph_plan(
    graph: Graph,
    goal: PlanGoal,
    *,
    ask: str,
    words: str,
    steps: Sequence[GraphStep],
    reading: Callable[[Sequence[Any], Fraction], AnswerTable],
    forecast: Sequence[Forecast],
    facts: Sequence[tuple[str, str]] = (),
    about: Mapping[str, JSON] | None = None,
    given: Mapping[str, JSON] | None = None,
    assumed: bool = False,
) -> Plan[AnswerTable]:
    """Make the plan of a question.

    Parameters
    ----------
    ask, given
        The method that asks, and its arguments, from which the plan is made again.
    words
        The question in words.
    about
        What the question's document holds beside its name: facts that the integers depend on.
    assumed
        Whether the guarantee rests on the promised degree.
    """
    declared = graph.facts
    document: dict[str, JSON] = {"ask": ask, **declared.document, **(about or {})}
    task = GraphTask(document, tuple(steps), declared.assumes if assumed else {}, reading, graph._reader)  # noqa: SLF001
    request: dict[str, JSON] = {"ask": ask, "goal": goal.to_json(), "given": dict(given or {})}
    return Plan.of(
        graph,
        task,
        promised=goal.promised,
        forecast=list(forecast),
        facts=[*declared.words(assumed=assumed), *facts],
        confidence=float(goal.confidence),
        asked=words,
        request=lambda: request,
    )


def check_cells(number: int, fix: Fix) -> None:
    """Refuse an answer with more than a million cells, before anything is charged."""
    if number > _MOST_CELLS:
        raise TacitError(
            "question-too-large", f"the answer has {number:,} cells, more than {_MOST_CELLS:,}", fix=fix
        )


def one_number(
    name: str, value: float, half: float, confidence: Fraction, *, note: str = "",
    left_out: tuple[str, ...] = (),
) -> AnswerTable:  # fmt: skip
    """Return an answer with one cell."""
    cells = Cells((value,), (value - half,), (value + half,))
    notes = {name: note} if note else {}
    return AnswerTable({}, {name: cells}, float(confidence), notes, left_out, counts=(name,))


def pure_goal(goal: PlanGoal, what: str) -> PlanGoal:
    """Return the goal without its delta, which is not needed; refuse rho."""
    from dataclasses import replace

    if goal.rho is not None:
        raise bad_parameter(
            "rho", "replaced by epsilon here", str(goal.rho),
            why=f"the noise for {what} follows the graph, and its guarantee is pure epsilon",
            fix=Set(epsilon=1),
        )  # fmt: skip
    return replace(goal, delta=goal.delta * 0)
