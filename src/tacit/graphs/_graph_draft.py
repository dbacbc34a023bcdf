"""What every question about a graph shares: its steps, its document, and how it is drafted."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tacit.core import AnswerTable, Cells, Draft, Forecast, Step, Task
from tacit.errors import TacitError
from tacit.fixes import Set
from tacit.parameters import Omitted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from fractions import Fraction

    from tacit.core import JSON, Goal, Measurement
    from tacit.fixes import Fix
    from tacit.graphs._graph import Graph
    from tacit.graphs._loaded_graph import LoadedGraph

_MAX_CELLS = 1_000_000


def graph_step(
    statistic: str, mechanism: Measurement, exact: Callable[[LoadedGraph], Any]
) -> Step[LoadedGraph]:
    """Return a step that needs nothing but the graph.

    What one edge, or one node, changes in its integers is proven in docs/proofs/graphs.md.
    """
    return Step(mechanism, lambda graph, _: exact(graph), {"statistic": statistic})


def graph_draft(
    graph: Graph,
    goal: Goal,
    *,
    ask: str,
    words: str,
    steps: Sequence[Step[LoadedGraph]],
    reading: Callable[[Sequence[Any], Fraction], AnswerTable],
    forecast: Sequence[Forecast],
    facts: Sequence[tuple[str, str]] = (),
    about: Mapping[str, JSON] | None = None,
    assumed: bool = False,
) -> Draft[AnswerTable]:
    """Draft the plan of a question.

    Parameters
    ----------
    ask, words
        The question's name, and the question in words.
    about
        What the question's document holds beside its name: facts that the integers depend on.
    assumed
        Whether the guarantee rests on the promised degree.
    """
    declared, reader = graph.facts, graph._reader  # noqa: SLF001 - a part of the graph
    assumes = declared.assumes if assumed else {}
    task = Task(
        document={"ask": ask, **declared.document, **(about or {})},
        open=lambda _: reader.load(),
        steps=tuple(replace(step, label={**step.label, **assumes}) for step in steps),
        reading=reading,
        unavailable=reader.unavailable,
    )
    return Draft(
        task=task, asked=words, forecast=forecast, goal=goal,
        facts=[*declared.words(assumed=assumed), *facts],
    )  # fmt: skip


def check_cells(number: int, fix: Fix) -> None:
    """Refuse an answer with more than a million cells, before anything is charged."""
    if number > _MAX_CELLS:
        raise TacitError(
            "question-too-large", f"the answer has {number:,} cells, more than {_MAX_CELLS:,}", fix=fix
        )


def one_number(
    name: str, value: float, half: float, confidence: Fraction, *, note: str = "",
    left_out: tuple[str, ...] = (),
) -> AnswerTable:  # fmt: skip
    """Return an answer with one cell."""
    cells = Cells((value,), (value - half,), (value + half,))
    notes = {name: note} if note else {}
    return AnswerTable({}, {name: cells}, float(confidence), notes, left_out, counts=(name,))


def pure_goal(goal: Goal, what: str) -> Goal:
    """Return the goal without its delta, which is not needed; refuse rho."""
    from dataclasses import replace

    why = f"the noise for {what} follows the graph, and its guarantee is pure epsilon"
    omitted = Omitted(f"for {what}", why=why, fix=Set(epsilon=1))
    omitted.read("rho", None if goal.rho is None else str(goal.rho))
    return replace(goal, delta=goal.delta * 0)
