"""The task of a table plan: exact integers from the engine, and columns read off the noisy ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tacit.algebra import document, kind_of, sources_of
from tacit.core import AnswerTable, Cells
from tacit.errors import TacitError
from tacit.fixes import Declare
from tacit.mechanisms import KeySelection
from tacit.tables._exact_integers import exact_integers
from tacit.tables._levels import lines_of, read_levels
from tacit.tables._measured_steps import measured_steps
from tacit.tables._private_groups import private_integers, private_sql

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from fractions import Fraction

    from tacit.algebra import Statistic, TableQuestion
    from tacit.core import JSON, Value
    from tacit.engines import Engine, EngineTransaction
    from tacit.mechanisms import IntegerMechanism
    from tacit.tables._exact_integers import ExactIntegers
    from tacit.tables._lowering import ReleasedColumn
    from tacit.tables._readings import StepNoise
    from tacit.tables._steps import Step

__all__ = ["TableTask", "unavailable_source"]

_MIDNIGHT = " 00:00:00"


@dataclass(frozen=True, slots=True)
class TableTask:
    """The task of a table plan.

    Parameters
    ----------
    asked
        The question.
    steps
        The steps, in the order in which they run.
    mechanisms
        The mechanism of each step.
    labels
        What each mechanism's integers count, and what one of them is worth in the column's own units.
    noises
        For each step the noise on what is read: the step's own, or that of all members together.
    columns
        What is read off the steps.
    notes
        What a released column is, where its name may promise more.
    left_out
        Which rows are not counted and which groups are not shown, in words.
    engine
        Where the data is.
    blocks
        The blocks of the data that the question reads; none stands for all of it.
    sampled
        The probability with which a unit is in the sample; None where all units are read.
    rows_per_unit
        How many rows one unit adds at most; None where rows of different units may belong together.
    """

    asked: TableQuestion
    steps: tuple[Step, ...]
    mechanisms: tuple[IntegerMechanism, ...]
    labels: tuple[dict[str, JSON], ...]
    noises: tuple[StepNoise, ...]
    columns: tuple[ReleasedColumn, ...]
    notes: dict[str, str]
    left_out: tuple[str, ...]
    engine: Engine
    blocks: tuple[str, ...] = ()
    sampled: Fraction | None = None
    rows_per_unit: int | None = None

    @property
    def question(self) -> JSON:
        """What is measured of which rows in which groups; names of columns and their order are not in it."""
        return {
            "rows": document(self.asked.input),
            "by": document([node for _, node in self.asked.by]),
            "keys": document(self.asked.keys),
            "groups": self.asked.groups,
            "per_group": self.asked.per_group,
            **({"missing": True} if self.asked.missing else {}),
            **({} if self.asked.sample is None else {"sample": self.asked.sample}),
            "steps": document(self.steps),
        }

    @property
    def sql(self) -> tuple[str, ...]:
        """The statements that will run; very many private groups are read by size, with others."""
        if (selection := self._selection) is not None:
            return private_sql(self.engine, self.asked, self.statistics, selection.threshold)
        return self.engine.sql(self.asked, self.statistics)

    @property
    def _selection(self) -> KeySelection | None:
        """The mechanism that selects the groups; None where they are public."""
        first = self.mechanisms[0]
        return first if isinstance(first, KeySelection) else None

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """The statistics whose exact integers the steps need."""
        return tuple(dict.fromkeys(step.statistic for step in self.steps))

    def on(self, engine: Engine) -> Self:
        """Return the same task on invented rows, for an attack, which throws the coins of a sample."""
        return replace(self, engine=engine, asked=replace(self.asked, sample=None))

    def unavailable(self) -> TacitError | None:
        """Return why nothing can be drawn: a file is gone, or a table's columns were never known.

        Whether a file exists says nothing about its rows, so this is checked before the charge.
        """
        return unavailable_source(self.engine, self.asked, self.statistics)

    def integers(self) -> Generator[Any, Any, None]:
        """Yield each step's exact integers for every group.

        Private groups are yielded with their sizes, and the groups shown are those that come back.
        """
        if self._selection is not None:
            with self.engine.transaction() as data:
                yield from self.integers_in(data)
            return
        with self.engine.transaction() as data:
            exact = exact_integers(data, self.asked, self.statistics)
        yield from self._by_step(exact)

    def integers_in(self, data: EngineTransaction) -> Generator[Any, Any, None]:
        """Yield the same integers from a reading that others share."""
        if (selection := self._selection) is not None:
            statistics = [step.statistic for step in self.steps]
            yield from private_integers(data, self.asked, statistics, selection.threshold)
            return
        yield from self._by_step(exact_integers(data, self.asked, self.statistics))

    def _by_step(self, exact: ExactIntegers) -> Generator[Any, Any, None]:
        keys: list[tuple[object, ...]] = [()] if not self.asked.by else list(self.asked.keys or ())
        for step in self.steps:
            found, size = exact[step.statistic], step.statistic.size
            yield [found.get(key, [0] * size) for key in keys] or np.zeros((0, size), dtype=np.int64)

    def read(self, noisy: Sequence[Any], confidence: Fraction) -> AnswerTable:
        """Read values and intervals off the noisy integers."""
        if self._selection is not None:
            keys = [key for key, _ in noisy[0]]
            noisy = [[[units] for _, units in noisy[0]], *noisy[1:]]
        else:
            keys = [list(key) for key in (self.asked.keys or ())] if self.asked.by else [[]]
        groups: list[list[int]] = []
        if self.asked.levels:
            keys, groups = lines_of(keys, self.asked.levels)
        columns = {}
        for column in self.columns:
            noise = self.noises[column.step]
            lines = [
                line if isinstance(line, list) else [line] for line in noisy[column.step]
            ]  # a choice is one index
            cells = (
                read_levels(column.reading, noise, lines, groups, confidence)
                if groups
                else column.reading.read(noise, lines, confidence)
            )
            columns[column.name] = Cells(
                tuple(c.value for c in cells), tuple(c.low for c in cells), tuple(c.high for c in cells)
            )
        measured = () if groups else measured_steps(self.columns, self.noises, noisy, self.rows_per_unit)
        return self.answer(keys, columns, confidence, measured)

    def answer(
        self,
        keys: list[list[object]],
        columns: dict[str, Cells],
        confidence: Fraction,
        measured: tuple[Any, ...] = (),
    ) -> AnswerTable:
        """Put the lines of the answer together: their keys, None for what is summed over, and cells."""
        dates = tuple(name for name, node in self.asked.by if kind_of(node) == "date")
        shown = {
            name: _shown([key[i] for key in keys], dates=name in dates)
            for i, (name, _) in enumerate(self.asked.by)
        }
        return AnswerTable(
            shown,
            columns,
            float(confidence),
            notes=self.notes,
            left_out=self.left_out,
            counts=tuple(c.name for c in self.columns if c.aggregate.counts),
            dates=dates,
            totals=bool(self.asked.levels),
            measured=measured,
        )


def unavailable_source(
    engine: Engine, question: TableQuestion, statistics: tuple[Statistic, ...]
) -> TacitError | None:
    """Return why nothing can be drawn of a question now; nothing of it depends on rows."""
    unknown = None
    for table in sources_of(question.input):
        if path := engine.missing_file(table.name):
            return TacitError(
                "unknown-table",
                f"the file of the table {table.name!r} does not exist: {path}",
                why="nothing was charged; the file was moved or deleted after the dataset was declared",
                fix="put the file back, or declare the dataset with its new path",
            )
        if table.columns is None and engine.columns(table.name) is None:
            unknown = TacitError(
                "unknown-table",
                f"the source of the table {table.name!r} cannot be read, so nothing was charged",
                why="it was not available when the dataset was declared, and it is not available now",
                fix=Declare("source", "path/of/visits.parquet"),
            )
    try:
        engine.check(question, statistics)
    except TacitError as refusal:  # in the engine's own words
        return refusal
    return unknown


def _shown(keys: list[object], *, dates: bool) -> tuple[Value, ...]:
    """Return the keys of a column as the release shows them: days without the time that all of them share."""
    plain = [k if isinstance(k, str | float | bool) or k is None else str(k) for k in keys]
    if dates and all(k is None or str(k).endswith(_MIDNIGHT) for k in plain):
        return tuple(None if k is None else str(k).removesuffix(_MIDNIGHT) for k in plain)
    return tuple(plain)
