"""A question whose answer is one table: its steps get exact integers, and columns are read off noisy ones.

Levels that are planned together: GROUPING SETS, CUBE and ROLLUP of counts. Where the noise may be Gaussian
and the keys are all combinations of their values, the levels are cross tables. They are measured by their
residuals if that is better than sums of the finest groups: the widest level is narrower, and so are the
levels on average (in the geometric mean of their variances).

A release also carries noisy integers for inference, with what they are. Only numbers that got additive noise
are carried, and only where a reading of inference exists: counts, parts of moments and products, and the
cells of histograms. They are post-processing of what the ledger stores.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tacit.accounting import rho_cap
from tacit.algebra import (
    BinCounts,
    Column,
    MomentSums,
    ProductSums,
    RowCounts,
    UnitCounts,
    UnitsWith,
    document,
    kind_of,
    scope,
)
from tacit.core import AnswerTable, Cells, Forecast, MeasuredIntegers, Step, Task
from tacit.mechanisms import DiscreteGaussian, DiscreteLaplace, KeySelection
from tacit.tables.planning._exact_integers import PrivateGroups, exact_integers, private_sql
from tacit.tables.questions._aggregates import is_yes_no
from tacit.tables.questions._keys import lines_of, read_levels
from tacit.tables.questions._rows_questions import RowsSubject
from tacit.tables.reading._quantile_readings import hide_picks
from tacit.tables.reading._readings import CellReading, NumberReading
from tacit.tables.workloads._crosstabs import CrossWorkload, PaidNoise

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from fractions import Fraction

    from tacit.algebra import Statistic, TableQuestion, ValueGrid
    from tacit.core import JSON, FoundBounds, SharedReadings, Value
    from tacit.engines import Engine
    from tacit.mechanisms import IntegerMechanism
    from tacit.tables.planning._exact_integers import ExactIntegers
    from tacit.tables.planning._minimum_people import MinimumPeople
    from tacit.tables.planning._pricing import Pricing, ReleasedColumn
    from tacit.tables.planning._steps import Ask, MeasuredStep, PaidStep
    from tacit.tables.reading._readings import Cell, StepNoise
    from tacit.tables.workloads._cross_tables import CrossNoise


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
    minimum
        How many people a line needs to be shown; None where every line is.
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
    minimum: MinimumPeople | None = None

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
            **({} if self.minimum is None else {"minimum_people": self.minimum.people}),
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
        mechanism = self.mechanisms[0]
        return mechanism if isinstance(mechanism, KeySelection) else None

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
            [statistic] = self.statistics
            return (level_step(self.asked, self.levels, lambda exact: self._lines(exact, statistic)),)
        share = {} if self.sampled is None else {"sampled": str(self.sampled)}
        return tuple(
            Step(
                mechanism,
                self._exact(step.statistic, place),
                {"statistic": step.statistic.word, "step": str(step.statistic.step), **share},
            )
            for place, (step, mechanism) in enumerate(zip(self.steps, self.mechanisms, strict=True))
        )

    def _exact(self, statistic: Statistic, index: int) -> Callable[[Any, Sequence[Any]], Any]:
        if self._selection is None:
            return lambda exact, _: self._lines(exact, statistic)
        if index == 0:
            return lambda groups, _: groups.sizes()
        return lambda groups, noisy: groups.integers(statistic, noisy[0])

    def _lines(self, exact: ExactIntegers, statistic: Statistic) -> Any:
        """Return a statistic's integers: one line for each public group."""
        integers, size = exact[statistic], statistic.size
        keys: list[tuple[object, ...]] = [()] if not self.asked.by else list(self.asked.keys or ())
        return [integers.get(key, [0] * size) for key in keys] or np.zeros((0, size), dtype=np.int64)

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
            lines = [
                line if isinstance(line, list) else [line] for line in noisy[column.step]
            ]  # a choice is one index
            cells = self._read(column, lines, groups, confidence, noisy)
            columns[column.name] = Cells(
                tuple(c.value for c in cells), tuple(c.low for c in cells), tuple(c.high for c in cells)
            )
        columns = self._without_hidden_picks(columns)
        measurements = () if groups else self._measured(noisy)
        shown = None
        if self.minimum is not None and not self.minimum.exact:
            step = self.minimum.step
            shown = self.minimum.shown(self.noises[step], noisy[step], groups)
        return self._answer(keys, columns, confidence, measurements, self._found(noisy), shown)

    def _read(
        self,
        column: ReleasedColumn,
        lines: list[list[int]],
        groups: list[list[int]],
        confidence: Fraction,
        noisy: Sequence[Any],
    ) -> list[Cell]:
        """Read a column off the noisy lines of its step; ``groups`` are added up for each line shown."""
        del noisy
        noise = self.noises[column.step]
        if groups:
            return read_levels(column.reading, noise, lines, groups, confidence)
        return column.reading.shown(noise, lines, confidence)

    def _measured(self, noisy: Sequence[Any]) -> tuple[MeasuredIntegers, ...]:
        """Return the noisy integers that inference can read."""
        return measured_steps(self.columns, self.noises, noisy, self.rows_per_unit)

    def _found(self, noisy: Sequence[Any]) -> tuple[FoundBounds, ...]:
        """Return the bounds that the plan found."""
        del noisy
        return ()

    def _without_hidden_picks(self, columns: dict[str, Cells]) -> dict[str, Cells]:
        """Return the columns without picked quantiles that the noise hides, where rows are counted beside."""
        row_counts = (c.name for c in self.columns if self.noises[c.step].statistic.word == "rows")
        if (name := next(row_counts, None)) is None:
            return columns
        rows = columns[name].value
        return {
            c.name: hide_picks(c.reading, self.noises[c.step], columns[c.name], rows) for c in self.columns
        }

    def _read_levels(self, noisy: Sequence[Any], confidence: Fraction) -> AnswerTable:
        """Read totals and groups that were measured together off the noisy residuals."""
        noise = cast("PaidNoise", self.levels)
        lines, cells = read_level_tables(self.asked, noise.noise, noisy[0], confidence)
        return self._answer(lines, {column.name: cells for column in self.columns}, confidence)

    def _answer(
        self,
        keys: list[list[object]],
        columns: dict[str, Cells],
        confidence: Fraction,
        measurements: tuple[MeasuredIntegers, ...] = (),
        found: tuple[FoundBounds, ...] = (),
        shown: list[int] | None = None,
    ) -> AnswerTable:
        """Put the lines of the answer together: their keys, None for what is summed over, and cells."""
        dates = tuple(name for name, node in self.asked.by if kind_of(node) == "date")
        answer_columns = {
            name: _shown([key[i] for key in keys], dates=name in dates)
            for i, (name, _) in enumerate(self.asked.by)
        }
        answer = AnswerTable(
            answer_columns,
            columns,
            float(confidence),
            notes=self.captions(),
            left_out=self.omissions(),
            counts=tuple(c.name for c in self.columns if c.aggregate.counts),
            dates=dates,
            totals=bool(self.asked.levels),
            measured=measurements,
            found=found,
        )
        if shown is not None:
            answer, keys = answer.with_lines(shown), [keys[place] for place in shown]
        return self._in_declared_order(answer, keys)

    def _in_declared_order(self, answer: AnswerTable, keys: list[list[object]]) -> AnswerTable:
        """Return the answer with its lines in the order in which the curator listed the keys of each column.

        Keys that are not listed come after those that are, as they stand; totals stay below their groups.
        """
        facts = scope(self.asked.input)
        orders = [
            facts[node.name].order if isinstance(node, Column) and node.name in facts else ()
            for _, node in self.asked.by
        ]
        if not any(orders):
            return answer
        totals = bool(self.asked.levels)
        levels = list(dict.fromkeys(_level(key) for key in keys)) if totals else []
        key_orders = [
            {key: i for i, key in enumerate(dict.fromkeys((*order, *column)))}
            for order, column in zip(orders, zip(*keys, strict=True), strict=True)
        ]

        def place(i: int) -> tuple[int, ...]:
            level = levels.index(_level(keys[i])) if totals else 0
            return level, *(places[key] for key, places in zip(keys[i], key_orders, strict=True))

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


_BETTER = 0.95  # of the variance: less than that is not worth another plan


def levels_together(pricing: Pricing, ask: Ask, paid_steps: tuple[PaidStep, ...]) -> PaidNoise | None:
    """Return the noise of levels that are planned together; None where sums of the finest groups do."""
    question, columns = pricing.question, pricing.columns
    if not question.levels or question.sample is not None or not question.keys or len(paid_steps) != 1:
        return None
    if pricing.minimum is not None:  # the rule reads the number of people of every group
        return None
    only_rows = pricing.steps[0].statistic == RowCounts()
    if not only_rows or any(not isinstance(column.reading, NumberReading) for column in columns):
        return None
    rho = ask.rho
    if rho is None and ask.epsilon is not None:
        rho = rho_cap(ask.epsilon, ask.delta)  # 0 without a delta
    sizes = tuple(len(values) for values in _values(question.keys))
    if not rho or math.prod(sizes) != len(question.keys):
        return None
    mechanism = paid_steps[0].mechanism
    if not isinstance(mechanism, DiscreteGaussian | DiscreteLaplace):
        return None
    parts = [math.prod(n for i, n in enumerate(sizes) if i not in one) for one in question.levels]
    sums = mechanism.variance * np.array(parts, np.float64)
    work = CrossWorkload(sizes, question.levels, (1.0,) * len(question.levels), "largest", pricing.who)
    promised = {k: v for k, v in (("epsilon", ask.epsilon), ("delta", ask.delta), ("rho", ask.rho)) if v}
    variances = work.gaussian_variances(rho)
    narrower = variances.max() < sums.max() and np.log(variances).mean() < np.log(_BETTER * sums).mean()
    return work.gaussian(rho, promised) if narrower else None


def forecast_of_levels(
    question: TableQuestion, columns: Sequence[ReleasedColumn], noise: PaidNoise, level: Fraction
) -> list[Forecast]:
    """Say what to expect of each column: the widest level, and which levels there are."""
    widths = [(noise.noise.half_width(one, float(level)), one) for one in question.levels]
    names = [name for name, _ in question.by]
    level_names = ", ".join(
        f"+/- {wide:,.4g} {'by ' + ' and '.join(names[i] for i in one) if one else 'in all'}"
        for wide, one in widths[:8]
    )
    law = noise.mechanisms[0].describe()
    widest = max(widths)[0]
    return [Forecast(c.name, c.aggregate.words, law, widest, caution=level_names) for c in columns]


def _values(keys: Sequence[Sequence[object]]) -> list[dict[object, int]]:
    """Return the place of each value of each key column, in the order in which they come."""
    positions: list[dict[object, int]] = [{} for _ in keys[0]]
    for key in keys:
        for places, value in zip(positions, key, strict=True):
            places.setdefault(value, len(places))
    return positions


def level_step(
    question: TableQuestion, level_noise: PaidNoise, counts: Callable[[ExactIntegers], Any]
) -> Step[ExactIntegers]:
    """Return the step that measures the tables of all levels together, as sums of the finest groups.

    Parameters
    ----------
    question
        The question of the finest groups.
    level_noise
        The mechanism that measures residuals, and what it leaves on each level.
    counts
        Returns the exact count of each of the finest groups, in the order of the keys.
    """
    keys, noise = question.keys or (), level_noise.noise
    [mechanism] = level_noise.mechanisms

    def tables(exact: ExactIntegers, _: object) -> list[Any]:
        finest, places = np.zeros(noise.sizes, np.int64), _values(keys)
        for key, (count,) in zip(keys, counts(exact), strict=True):
            finest[tuple(at[value] for at, value in zip(places, key, strict=True))] = count
        columns = range(len(places))
        return [finest.sum(axis=tuple(i for i in columns if i not in one)) for one in noise.sets]

    return Step(mechanism, tables, {"statistic": "residuals of cross tables"})


def read_level_tables(
    question: TableQuestion, noise: CrossNoise, residuals: Sequence[Any], confidence: Fraction
) -> tuple[list[list[object]], Cells]:
    """Read the lines of all levels and their cells off the noisy residuals."""
    tables = [np.array(one) for one in residuals]
    keys = question.keys or ()
    places = _values(keys)
    lines_shown: list[list[object]] = []
    value: list[float] = []
    half_widths: list[float] = []
    for level in question.levels:
        estimates = noise.estimate(level, tables)
        half = noise.half_width(level, float(confidence))
        lines, _ = lines_of(keys, (level,))
        lines_shown += lines
        value += [float(estimates[tuple(places[i][line[i]] for i in level)]) for line in lines]
        half_widths += [half] * len(lines)
    low, high = np.array(value) - half_widths, np.array(value) + half_widths
    return lines_shown, Cells(tuple(value), tuple(low.tolist()), tuple(high.tolist()))


_CARRIED = (RowCounts, UnitCounts, UnitsWith, MomentSums, ProductSums)


def measured_steps(
    columns: Sequence[ReleasedColumn],
    noises: Sequence[StepNoise],
    noisy: Sequence[Any],
    rows_per_unit: int | None,
) -> tuple[MeasuredIntegers, ...]:
    """Return the integers of each step that inference can read, for every group."""
    outputs: dict[int, dict[str, tuple[str, int]]] = {}
    for column in columns:
        cell = column.reading.at if isinstance(column.reading, CellReading) else 0
        statistic = noises[column.step].statistic
        if isinstance(column.reading, CellReading) or isinstance(statistic, _CARRIED):
            outputs.setdefault(column.step, {})[column.name] = (column.aggregate.word, cell)
    measurements = []
    for step, names in outputs.items():
        laws = noises[step].mechanisms
        if all(isinstance(law, DiscreteLaplace | DiscreteGaussian) for law in laws):
            lines = tuple(
                tuple(int(n) for n in (line if isinstance(line, list) else [line])) for line in noisy[step]
            )
            noise = tuple(
                ("gaussian" if isinstance(law, DiscreteGaussian) else "laplace", law.scale) for law in laws
            )
            measurements.append(_described(noises[step].statistic, names, lines, noise, rows_per_unit))
    return tuple(measurements)


def _described(
    statistic: Statistic,
    names: dict[str, tuple[str, int]],
    lines: tuple[tuple[int, ...], ...],
    noise: Any,
    rows_per_unit: int | None,
) -> MeasuredIntegers:
    grids = [statistic.grid, getattr(statistic, "other_grid", None)]
    return MeasuredIntegers(
        statistic.word,
        names,
        lines,
        noise,
        statistic.weight,
        tuple(_ends(grid) for grid in grids if grid is not None),
        statistic.bins.values if isinstance(statistic, BinCounts) else (),
        rows_per_unit,
        is_yes_no(statistic.argument),
    )


def _ends(grid: ValueGrid) -> tuple[float, float]:
    return float(grid.lo * grid.step), float(grid.hi * grid.step)
