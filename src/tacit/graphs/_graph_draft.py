"""What every question about a graph shares: its steps, its document, and how it is drafted.

Two kinds of answers have figures of their own: a mixing matrix, and degrees.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tacit.core import AnswerTable, Cells, Draft, Forecast, Step, Task
from tacit.errors import TacitError
from tacit.fixes import Set
from tacit.parameters import Omitted
from tacit.report import short_percent
from tacit.show import MOST_SERIES, Chart, ChartAxis, ChartSeries, Figure, Matrix, chosen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from fractions import Fraction

    from tacit.core import JSON, Goal, Measurement
    from tacit.fixes import Fix
    from tacit.graphs._edges import LoadedGraph
    from tacit.graphs._graph import Graph


_MAX_CELLS = 1_000_000


class MixingTable(AnswerTable):
    """The number of edges between each two public groups; its figure is a matrix."""

    kind: ClassVar[str] = "mixing-table"
    described: ClassVar[str] = "a table of edges between groups"
    __slots__ = ()

    def matrix(self) -> tuple[tuple[str, ...], np.ndarray[Any, Any]]:
        """Return the groups and the matrix of the values; an undirected one is symmetric."""
        rows, columns = (list(map(str, values)) for values in self.keys.values())
        labels = tuple(dict.fromkeys(rows + columns))
        index = {label: i for i, label in enumerate(labels)}
        cells = np.full((len(labels), len(labels)), np.nan)
        for row, column, value in zip(rows, columns, self.columns["edges"].value, strict=True):
            cells[index[row], index[column]] = value
        return labels, np.where(np.isnan(cells), cells.T, cells)

    def figures(self, what: Any = None) -> tuple[Figure, ...]:
        """Return the matrix."""
        del what
        labels, cells = self.matrix()
        ends, name = self.columns["edges"], next(iter(self.keys))
        half = (float(ends.high[0] or 0) - float(ends.low[0] or 0)) / 2
        matrix = Matrix(cells, labels, labels, name, name, "edges", np.abs(cells) <= half, "z,.0f")
        sure = f"each cell +/- {half:g} at {short_percent(self.confidence)}"
        return (Figure("edges between groups", (matrix,), (f"{sure}; hatched: the interval contains 0",)),)


class DegreeTable(AnswerTable):
    """Numbers by degree, or degrees by rank; its figure has a numeric axis and a band for the intervals."""

    kind: ClassVar[str] = "degree-table"
    described: ClassVar[str] = "a table of degrees"
    __slots__ = ()

    def figures(self, what: Any = None) -> tuple[Figure, ...]:
        """Return each column as steps with a band, one line for each group."""
        return chosen(what, {name: partial(self._figure, name) for name in self.columns})

    def _figure(self, column: str) -> Figure:
        cells, axis = self[column], list(self.keys)[-1]
        groups = self.shown_keys(next(iter(self.keys))) if len(self.keys) > 1 else [""] * len(self)
        series = []
        for number, group in enumerate(list(dict.fromkeys(groups))[:MOST_SERIES]):
            at = [i for i, one in enumerate(groups) if one == group]
            x = np.array([self.keys[axis][i] for i in at], np.float64)
            edges = np.concatenate([x[:1] - 0.5, (x[1:] + x[:-1]) / 2, x[-1:] + 0.5]).tolist()
            ends = ((part[i] for i in at) for part in (cells.value, cells.low, cells.high))
            series.append(ChartSeries.of("steps", edges, ends, label=group, colour=number))
        words = f"the band is the {short_percent(self.confidence)} interval for the noise"
        legend = next(iter(self.keys)) if len(self.keys) > 1 else ""
        chart = Chart(tuple(series), ChartAxis(axis), ChartAxis(column, ends=(0.0, None)), legend=legend)
        return Figure(f"{column} by {axis}", (chart,), (words,))


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


def pure_goal(goal: Goal, subject: str) -> Goal:
    """Return the goal without its delta, which is not needed; refuse rho."""
    from dataclasses import replace

    why = f"the noise for {subject} follows the graph, and its guarantee is pure epsilon"
    omitted = Omitted(f"for {subject}", why=why, fix=Set(epsilon=1))
    omitted.read("rho", None if goal.rho is None else str(goal.rho))
    return replace(goal, delta=goal.delta * 0)
