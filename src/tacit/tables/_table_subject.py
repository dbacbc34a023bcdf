"""A question whose answer is one table: its steps get exact integers, and columns are read off noisy ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tacit.algebra import Column, document, kind_of, scope
from tacit.core import AnswerTable, Cells, Step, Task
from tacit.mechanisms import KeySelection
from tacit.tables._exact_integers import exact_integers
from tacit.tables._level_tables import level_step, read_level_tables
from tacit.tables._levels import lines_of, read_levels
from tacit.tables._measured_steps import measured_steps
from tacit.tables._private_groups import PrivateGroups, private_sql
from tacit.tables._quantile_readings import hide_picks
from tacit.tables._rows_subject import RowsSubject

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from fractions import Fraction

    from tacit.algebra import Statistic
    from tacit.core import JSON, MeasuredIntegers, SharedReadings, Value
    from tacit.engines import Engine
    from tacit.mechanisms import IntegerMechanism
    from tacit.tables._cross_workload import PaidNoise
    from tacit.tables._exact_integers import ExactIntegers
    from tacit.tables._lowering import ReleasedColumn
    from tacit.tables._readings import StepNoise
    from tacit.tables._steps import MeasuredStep

_MIDNIGHT = " 00:00:00"


@dataclass(frozen=True, eq=False, kw_only=True)
class TableSubject(RowsSubject):
    """A question whose answer is one table.

    Parameters
    ----------
    steps
        The steps, in the order in which they run.
    mechanisms
        The mechanism of each step.
    noises
        For each step the noise on what is read: the step's own, or that of all members together.
    columns
        What is read off the steps.
    captions
        Returns what a released column is, where its name may promise more.
    omissions
        Returns which rows are not counted and which groups are not shown, in words.
    sampled
        The probability with which a unit is in the sample; None where all units are read.
    rows_per_unit
        How many rows one unit adds at most; None where rows of different units may belong together.
    levels
        The noise of totals that are planned together with their groups; None where sums of groups do.
    """

    steps: tuple[MeasuredStep, ...]
    mechanisms: tuple[IntegerMechanism, ...]
    noises: tuple[StepNoise, ...] = ()
    columns: tuple[ReleasedColumn, ...] = ()
    captions: Callable[[], dict[str, str]] = dict
    omissions: Callable[[], tuple[str, ...]] = tuple
    sampled: Fraction | None = None
    rows_per_unit: int | None = None
    levels: PaidNoise | None = None

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """The statistics whose exact integers the steps need."""
        return tuple(dict.fromkeys(step.statistic for step in self.steps))

    @property
    def document(self) -> dict[str, JSON]:
        """What is measured of which rows in which groups; names of columns and their order are not in it."""
        return {
            "rows": document(self.asked.input),
            "by": document([node for _, node in self.asked.by]),
            "keys": document(self.asked.keys),
            "groups": self.asked.groups,
            "per_group": self.asked.per_group,
            **({"missing": True} if self.asked.missing else {}),
            **({} if self.asked.sample is None else {"sample": self.asked.sample}),
            "steps": [step.document for step in self.steps],
            **({} if self.levels is None else {"levels": [list(one) for one in self.levels.noise.sets]}),
        }

    @property
    def task(self) -> Task[Any, AnswerTable]:
        """The task of this question."""
        return Task(
            document=lambda: self.document,
            open=self._opened,
            steps=self._bound,
            reading=self.read if self.levels is None else self._read_levels,
            blocks=self.blocks,
            statements=lambda: self.sql,
            left_out=self.omissions,
            unavailable=self.unavailable,
            sampled=self.sampled,
            subject=self,
        )

    def on(self, engine: Engine) -> Task[Any, AnswerTable]:
        """Return the task on invented rows, for an attack, which throws the coins of a sample itself."""
        return replace(self, engine=engine, asked=replace(self.asked, sample=None)).task

    def columns_of(self, statistic: Statistic) -> str:
        """Name the released columns that a statistic is read for."""
        steps = [i for i, step in enumerate(self.steps) if step.statistic == statistic]
        return ", ".join(column.name for column in self.columns if column.step in steps)

    @cached_property
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

    def _opened(self, readings: SharedReadings) -> ExactIntegers | PrivateGroups:
        data = readings.of(self.engine)
        if (selection := self._selection) is not None:
            statistics = tuple(step.statistic for step in self.steps)
            return PrivateGroups(data, self.asked, statistics, selection.threshold)
        return exact_integers(data, self.asked, self.statistics)

    @property
    def _bound(self) -> tuple[Step[Any], ...]:
        """The steps, each with the exact integers that its mechanism gets: those of every group."""
        if self.levels is not None:
            [counted] = self.statistics
            return (level_step(self.asked, self.levels, lambda exact: self._lines(exact, counted)),)
        share = {} if self.sampled is None else {"sampled": str(self.sampled)}
        return tuple(
            Step(
                mechanism,
                self._exact(step.statistic, place),
                {"statistic": step.statistic.word, "step": str(step.statistic.step), **share},
            )
            for place, (step, mechanism) in enumerate(zip(self.steps, self.mechanisms, strict=True))
        )

    def _exact(self, statistic: Statistic, place: int) -> Callable[[Any, Sequence[Any]], Any]:
        if self._selection is None:
            return lambda exact, _: self._lines(exact, statistic)
        if place == 0:
            return lambda groups, _: groups.sizes()
        return lambda groups, noisy: groups.integers(statistic, noisy[0])

    def _lines(self, exact: ExactIntegers, statistic: Statistic) -> Any:
        """Return a statistic's integers: one line for each public group."""
        found, size = exact[statistic], statistic.size
        keys: list[tuple[object, ...]] = [()] if not self.asked.by else list(self.asked.keys or ())
        return [found.get(key, [0] * size) for key in keys] or np.zeros((0, size), dtype=np.int64)

    def read(self, noisy: Sequence[Any], confidence: Fraction) -> AnswerTable:
        """Read values and intervals off the noisy integers of the steps."""
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
                else column.reading.shown(noise, lines, confidence)
            )
            columns[column.name] = Cells(
                tuple(c.value for c in cells), tuple(c.low for c in cells), tuple(c.high for c in cells)
            )
        columns = self._without_hidden_picks(columns)
        measured = () if groups else measured_steps(self.columns, self.noises, noisy, self.rows_per_unit)
        return self._answer(keys, columns, confidence, measured)

    def _without_hidden_picks(self, columns: dict[str, Cells]) -> dict[str, Cells]:
        """Return the columns without picked quantiles that the noise hides, where rows are counted beside."""
        counted = (c.name for c in self.columns if self.noises[c.step].statistic.word == "rows")
        if (name := next(counted, None)) is None:
            return columns
        rows = columns[name].value
        return {
            c.name: hide_picks(c.reading, self.noises[c.step], columns[c.name], rows) for c in self.columns
        }

    def _read_levels(self, noisy: Sequence[Any], confidence: Fraction) -> AnswerTable:
        """Read totals and groups that were measured together off the noisy residuals."""
        paid = cast("PaidNoise", self.levels)
        lines, cells = read_level_tables(self.asked, paid.noise, noisy[0], confidence)
        return self._answer(lines, {column.name: cells for column in self.columns}, confidence)

    def _answer(
        self,
        keys: list[list[object]],
        columns: dict[str, Cells],
        confidence: Fraction,
        measured: tuple[MeasuredIntegers, ...] = (),
    ) -> AnswerTable:
        """Put the lines of the answer together: their keys, None for what is summed over, and cells."""
        dates = tuple(name for name, node in self.asked.by if kind_of(node) == "date")
        shown = {
            name: _shown([key[i] for key in keys], dates=name in dates)
            for i, (name, _) in enumerate(self.asked.by)
        }
        answer = AnswerTable(
            shown,
            columns,
            float(confidence),
            notes=self.captions(),
            left_out=self.omissions(),
            counts=tuple(c.name for c in self.columns if c.aggregate.counts),
            dates=dates,
            totals=bool(self.asked.levels),
            measured=measured,
        )
        return self._in_declared_order(answer, keys)

    def _in_declared_order(self, answer: AnswerTable, keys: list[list[object]]) -> AnswerTable:
        """Return the answer with its lines in the order in which the curator listed the keys of each column.

        Keys that are not listed come after those that are, as they stand; totals stay below their groups.
        """
        known = scope(self.asked.input)
        orders = [
            known[node.name].order if isinstance(node, Column) and node.name in known else ()
            for _, node in self.asked.by
        ]
        if not any(orders):
            return answer
        totals = bool(self.asked.levels)
        levels = list(dict.fromkeys(_level(key) for key in keys)) if totals else []
        listed = [
            {key: i for i, key in enumerate(dict.fromkeys((*order, *column)))}
            for order, column in zip(orders, zip(*keys, strict=True), strict=True)
        ]

        def place(i: int) -> tuple[int, ...]:
            level = levels.index(_level(keys[i])) if totals else 0
            return level, *(places[key] for key, places in zip(keys[i], listed, strict=True))

        return answer.with_lines(sorted(range(len(keys)), key=place))


def _level(key: list[object]) -> tuple[bool, ...]:
    """Return which columns of a line are summed over."""
    return tuple(one is None for one in key)


def _shown(keys: list[object], *, dates: bool) -> tuple[Value, ...]:
    """Return the keys of a column as the release shows them: days without the time that all of them share."""
    plain = [k if isinstance(k, str | float | bool) or k is None else str(k) for k in keys]
    if dates and all(k is None or str(k).endswith(_MIDNIGHT) for k in plain):
        return tuple(None if k is None else str(k).removesuffix(_MIDNIGHT) for k in plain)
    return tuple(plain)
