"""A question for one table whose plan finds bounds before it measures on them.

The second and the third statement are written once the noisy counts of the first are known, and read the
same consistent state of the data. The integers of groups with different bounds come from one statement: it
sums the values on the bounds of every group, and each group takes the sums on its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tacit.algebra import (
    BinCounts,
    Column,
    FoundCells,
    MomentSums,
    OctaveBins,
    PartBins,
    RowCounts,
    Sums,
    bounds_of,
    scope,
    source_of,
    words_of,
)
from tacit.core import FoundBounds, Step
from tacit.tables.planning._bounds_search import (
    cut_of,
    is_open,
    on_bounds,
    searches_of,
    without_range,
)
from tacit.tables.planning._exact_integers import exact_integers, public_tables
from tacit.tables.planning._table_subject import TableSubject, measured_steps
from tacit.tables.questions._keys import lines_of, read_levels
from tacit.tables.reading._quantile_readings import BracketedQuantile, QuantileFromCounts, hidden_pick
from tacit.tables.reading._readings import Cell, PartsCount

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tacit.algebra import Node, Statistic, TableQuestion
    from tacit.core import JSON, Cells, MeasuredIntegers, SharedReadings
    from tacit.engines import EngineTransaction
    from tacit.tables.planning._bounds_search import BoundsSearch
    from tacit.tables.planning._exact_integers import ExactIntegers
    from tacit.tables.planning._pricing import ReleasedColumn
    from tacit.tables.questions._aggregates import Range
    from tacit.tables.reading._readings import Reading, StepNoise


#: The rule that reads bounds off noisy counts, part of the identity of every plan that uses it.
_RULE = "octaves, version 1"
_EXAMPLE_ENDS = tuple(i / 16 for i in range(17))
#: The most columns that one statement sums on found bounds; PostgreSQL takes 1,664.
_MOST_COLUMNS = 600


class AdaptiveReading:
    """One consistent reading of the data, in which later statistics depend on noisy results of earlier ones.

    Parameters
    ----------
    data
        The reading of the engine.
    question
        The question; a sample is drawn once for all statements.
    """

    def __init__(self, data: EngineTransaction, question: TableQuestion) -> None:
        self._data, self._question = data, question
        self._tables, self._exact = public_tables(question), dict[Any, Any]()

    def of(self, statistics: Sequence[Statistic]) -> ExactIntegers:
        """Return the exact integers of statistics; those that were not read before are read together.

        Very many are read in several statements, because databases limit the columns of one.
        """
        missing = tuple(one for one in dict.fromkeys(statistics) if one not in self._exact)
        for part in _parts_of(missing):
            self._exact |= exact_integers(self._data, self._question, part, self._tables)
        return self._exact


def _parts_of(statistics: Sequence[Statistic]) -> list[tuple[Statistic, ...]]:
    """Split statistics, in their order, into parts of at most `_MOST_COLUMNS` columns."""
    parts: list[list[Statistic]] = []
    columns = 0
    for one in statistics:
        columns += one.columns
        if not parts or columns > _MOST_COLUMNS:
            parts.append([])
            columns = one.columns
        parts[-1].append(one)
    return [tuple(part) for part in parts]


@dataclass(frozen=True, eq=False, kw_only=True)
class FoundBoundsSubject(TableSubject):
    """A question whose answer is one table, on bounds that its plan finds."""

    @cached_property
    def searches(self) -> dict[Node, BoundsSearch]:
        """How the bounds of each expression are found."""
        return searches_of(self.asked, self.steps, self.mechanisms)

    @property
    def searched(self) -> tuple[str, ...]:
        """The expressions whose bounds are found, in words."""
        return tuple(words_of(node) for node in self.searches)

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """The statistics that are read; on example bounds where a step has to find them first."""
        return tuple(dict.fromkeys(_example(step.statistic) for step in self.steps))

    @property
    def document(self) -> dict[str, JSON]:
        """What is measured, and the rule by which bounds are found."""
        declared = {
            words_of(node): [str(end) for end in one.declared]
            for node, one in self.searches.items()
            if one.declared is not None
        }
        return {**super().document, "found": _RULE, **({"within": declared} if declared else {})}

    def columns_of(self, statistic: Statistic) -> str:
        """Name the columns that a statistic is read for; of a search, those that are cut to its bounds."""
        argument = statistic.argument
        if isinstance(getattr(statistic, "bins", None), OctaveBins | FoundCells | PartBins):
            return ", ".join(c.name for c in self._on(argument))
        open_steps = [i for i, step in enumerate(self.steps) if _example(step.statistic) == statistic]
        return ", ".join(column.name for column in self.columns if column.step in open_steps)

    def _on(self, argument: Node | None) -> list[ReleasedColumn]:
        """Return the columns that are measured on the bounds of an expression."""
        statistics = [step.statistic for step in self.steps]
        return [
            c for c in self.columns if is_open(statistics[c.step]) and statistics[c.step].argument == argument
        ]

    @cached_property
    def sql(self) -> tuple[str, ...]:
        """The statements that will run; those on bounds that are found later have example bounds."""
        known = tuple(one.statistic for one in self.steps if _example(one.statistic) == one.statistic)
        later = tuple(one for one in self.statistics if one not in known)
        note = "-- once bounds are found, with them in place of 0 and 1\n"
        return (
            *self.engine.sql(self.asked, tuple(dict.fromkeys(known))),
            *(note + sql for sql in self.engine.sql(self.asked, later)),
        )

    def _opened(self, readings: SharedReadings) -> Any:
        return AdaptiveReading(readings.of(self.engine), self.asked)

    @property
    def _bound(self) -> tuple[Step[Any], ...]:
        """The steps; the integers of the later ones depend on the noisy integers of the earlier ones."""
        share = {} if self.sampled is None else {"sampled": str(self.sampled)}
        return tuple(
            Step(
                mechanism,
                self._exact_of(step.statistic),
                {"statistic": step.statistic.word, "step": str(step.statistic.step), **share},
            )
            for step, mechanism in zip(self.steps, self.mechanisms, strict=True)
        )

    def _exact_of(self, statistic: Statistic) -> Callable[[AdaptiveReading, Sequence[Any]], Any]:
        """Return how a step computes its integers."""
        if isinstance(statistic, BinCounts) and isinstance(statistic.bins, FoundCells):
            search = self.searches[statistic.argument]
            return lambda data, noisy: self._parts(data, search, noisy)
        if is_open(statistic):
            return lambda data, noisy: self._on_found_bounds(data, statistic, noisy)
        known = tuple(one.statistic for one in self.steps if _example(one.statistic) == one.statistic)
        pooled = isinstance(statistic, BinCounts) and isinstance(statistic.bins, OctaveBins)
        if pooled and self.searches[statistic.argument].pooled:  # type: ignore[index]
            return lambda data, _: _pooled(self._lines(data.of(known), statistic))
        return lambda data, _: self._lines(data.of(known), statistic)

    def _parts(self, data: AdaptiveReading, search: BoundsSearch, noisy: Sequence[Any]) -> list[list[int]]:
        """Count the values in the cells of each group's range; zeros where it is not narrowed."""
        bins = search.part_bins(noisy)
        counts = {one: BinCounts(search.argument, one) for one in bins if one is not None}
        exact, size = data.of(tuple(counts.values())), search.part_count
        lines = []
        for key, one in zip(self._keys, bins, strict=True):
            numbers = [] if one is None else exact[counts[one]].get(key, [])
            lines.append([*numbers, *[0] * (size - len(numbers))])
        return _pooled(lines) if search.pooled else lines

    def _on_found_bounds(
        self, data: AdaptiveReading, statistic: Statistic, noisy: Sequence[Any]
    ) -> list[list[int]]:
        """Compute the integers of an answer, those of each group on its own bounds."""
        open_statistics = [step.statistic for step in self.steps if is_open(step.statistic)]
        exact = data.of([on for one in open_statistics for on in self._found_statistics(one, noisy)])
        lines = []
        for key, one in zip(self._keys, self._found_statistics(statistic, noisy), strict=True):
            numbers = exact[one].get(key, [0] * one.size)
            if isinstance(one, RowCounts):
                numbers = without_range(statistic, numbers[0])
            lines.append([*numbers, *[0] * (statistic.size - len(numbers))])  # candidates may be fewer
        return lines

    @property
    def _keys(self) -> list[tuple[object, ...]]:
        return list(self.asked.keys or ()) if self.asked.by else [()]

    def _bounds(self, statistic: Statistic, noisy: Sequence[Any]) -> list[Range | None]:
        """Return the bounds of each group for a statistic."""
        return self.searches[statistic.argument].bounds(noisy, cut_of(statistic))  # type: ignore[index]

    def _found_statistics(self, statistic: Statistic, noisy: Sequence[Any]) -> list[Any]:
        """Return a statistic on the bounds of each group."""
        bounds = self._bounds(statistic, noisy)
        statistics = {ends: on_bounds(statistic, ends) for ends in dict.fromkeys(bounds)}
        return [statistics[ends] for ends in bounds]

    def _read(
        self,
        column: ReleasedColumn,
        lines: list[list[int]],
        groups: list[list[int]],
        confidence: Fraction,
        noisy: Sequence[Any],
    ) -> list[Cell]:
        """Read a column; each line on its own bounds, and without a value where no range was found."""
        noise = self.noises[column.step]
        if not is_open(noise.statistic):
            return super()._read(column, lines, groups, confidence, noisy)
        bounds = self._bounds(noise.statistic, noisy)
        if groups:  # all groups share one range, so that they can be added up
            reading, own, lines = _on_range(column.reading, noise, bounds[0], lines)
            if reading is None:
                return [Cell(None)] * len(groups)
            return read_levels(reading, own, lines, groups, confidence)
        rows = next(
            (noisy[c.step] for c in self.columns if self.noises[c.step].statistic.word == "rows"), None
        )
        cells: list[Cell] = [Cell(None)] * len(lines)
        for ends in dict.fromkeys(bounds):
            places = [i for i, other in enumerate(bounds) if other == ends]
            reading, own, chosen = _on_range(column.reading, noise, ends, [lines[i] for i in places])
            if reading is None:
                continue
            for place, cell in zip(places, reading.shown(own, chosen, confidence), strict=True):
                cells[place] = cell if rows is None else hidden_pick(reading, own, cell, rows[place][0])
        return cells

    def _without_hidden_picks(self, columns: dict[str, Cells]) -> dict[str, Cells]:
        """Return the columns without picks that the noise hides; `_read` hid those on found bounds."""
        is_known = {c.name: not is_open(self.noises[c.step].statistic) for c in self.columns}
        known = tuple(c for c in self.columns if is_known[c.name])
        hidden = replace(self, columns=known)._hidden_on_known_bounds(columns)
        return {name: hidden.get(name, cells) for name, cells in columns.items()}

    def _hidden_on_known_bounds(self, columns: dict[str, Cells]) -> dict[str, Cells]:
        return super()._without_hidden_picks(columns)

    def _measured(self, noisy: Sequence[Any]) -> tuple[MeasuredIntegers, ...]:
        """Return the noisy integers that inference can read: of a found range, where all lines share it."""
        noises, columns = list(self.noises), []
        for column in self.columns:
            noise = self.noises[column.step]
            if is_open(noise.statistic):
                statistics = dict.fromkeys(self._found_statistics(noise.statistic, noisy))
                [one, *others] = statistics
                if others or isinstance(one, RowCounts):
                    continue
                noises[column.step] = replace(noise, statistic=one)
            columns.append(column)
        return measured_steps(columns, noises, noisy, self.rows_per_unit)

    def _lowered(self, argument: Node, columns: Sequence[ReleasedColumn]) -> tuple[str, ...]:
        """Name the means and sums of values that are declared to be at least 0."""
        bounds = bounds_of(argument, scope(self.asked.input))
        if bounds is None or bounds[0] < 0:
            return ()
        return tuple(c.name for c in columns if c.aggregate.word in {"mean", "sum"})

    def _cut_columns(self, argument: Node, cut: str | None) -> list[ReleasedColumn]:
        """Return the columns that are computed from values cut to the same bounds of an expression."""
        return [
            c
            for c in self._on(argument)
            if not isinstance(c.reading, PartsCount) and cut_of(self.noises[c.step].statistic) == cut
        ]

    def _found(self, noisy: Sequence[Any]) -> tuple[FoundBounds, ...]:
        """Return the bounds that were found, for each line of the groups."""
        found = []
        for argument, cut in [(node, cut) for node, one in self.searches.items() for cut in one.cuts]:
            columns = self._cut_columns(argument, cut)
            steps = {c.step: self.noises[c.step].statistic for c in columns}
            bounds = self.searches[argument].bounds(noisy, cut)
            if self.asked.levels:
                bounds = bounds[:1] * len(lines_of(self._keys, self.asked.levels)[0])
            totals = all(isinstance(one, Sums) for one in steps.values())
            rows: tuple[float | None, ...] = (None,) * len(bounds)
            counting = [(i, one) for i, one in steps.items() if isinstance(one, MomentSums)]
            if counting and not self.asked.levels:
                [(step, one), *_] = counting
                rows = tuple(sum(line) / one.weight for line in noisy[step])
            if totals:
                bounds = [ends and (min(ends[0], Fraction(0)), max(ends[1], Fraction(0))) for ends in bounds]
            found.append(
                FoundBounds(
                    words_of(argument),
                    tuple(c.name for c in columns),
                    tuple(None if ends is None else float(ends[0]) for ends in bounds),
                    tuple(None if ends is None else float(ends[1]) for ends in bounds),
                    rows,
                    self._lowered(argument, columns),
                    source=source_of(self.asked.input, argument.name)
                    if isinstance(argument, Column)
                    else None,
                    cut=cut,
                )
            )
        return tuple(found)


def _on_range(
    reading: Reading, noise: StepNoise, bounds: Range | None, lines: list[list[int]]
) -> tuple[Reading | None, StepNoise, list[list[int]]]:
    """Return how lines of one range are read: None where there is none, but for the number of values."""
    if bounds is None:
        return reading if isinstance(reading, PartsCount) else None, noise, lines
    statistic = on_bounds(noise.statistic, bounds)
    if isinstance(reading, BracketedQuantile | QuantileFromCounts):
        reading = replace(reading, bounds=bounds)
    if isinstance(reading, QuantileFromCounts):
        lines = [line[: statistic.size] for line in lines]
    elif isinstance(statistic, BinCounts):  # a pick beyond the last candidate stands for the last one
        lines = [[min(place, statistic.size - 1) for place in line] for line in lines]
    return reading, replace(noise, statistic=statistic), lines


def _pooled(lines: Any) -> list[list[int]]:
    """Add up the counts of all groups: one line."""
    return [[sum(column) for column in zip(*lines, strict=True)]]


def _example(statistic: Any) -> Any:
    """Return a statistic that can be written: where bounds are found later, with example bounds."""
    if is_open(statistic):
        return on_bounds(statistic, (Fraction(0), Fraction(1)))
    if isinstance(statistic, BinCounts) and isinstance(statistic.bins, FoundCells):
        return BinCounts(statistic.argument, PartBins(_EXAMPLE_ENDS))
    return statistic
