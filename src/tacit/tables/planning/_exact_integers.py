"""Exact integers of a table question by statistic and group; they never leave the process without noise.

Private groups are selected with noise, however many groups there are. While there are few, the engine returns
them all. Where there are more, it counts the small ones by size; the selection has the same law
(docs/proofs/mechanisms.md, "Keys by size") and asks only for groups that it shows. Whatever is measured
beyond the first statement is read for groups that are shown; where these are at least half of all groups, for
all of them. Each way gives the same integers.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.algebra import (
    BinCounts,
    DistinctCounts,
    FewGroups,
    GroupsAtRanks,
    GroupsBySize,
    ListedGroups,
    kind_of,
    part_of,
)
from tacit.mechanisms import KeysBySize
from tacit.tables.planning._steps import drawn_sample

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tacit.algebra import Statistic, TableQuestion
    from tacit.engines import Engine, EngineTransaction

    ExactIntegers = dict[Statistic, dict[tuple[object, ...], list[int]]]
    _Tables = Mapping[str, Sequence[Sequence[object]]]


GroupKey = tuple[object, ...]
#: The engine returns so many groups at most, unless it is asked for them by their keys.
MAX_READ = 100_000
_MAX_CELLS = 1 << 18  # lines of small groups that the engine returns at most
_HIGHEST = 1 << 40  # a threshold from which groups are never read by size


def public_tables(question: TableQuestion) -> dict[str, Sequence[Sequence[object]]]:
    """Return the small tables that a question reads: its public keys, and the coin of its sample."""
    tables: dict[str, Sequence[Sequence[object]]] = {}
    if question.by and question.keys is not None:
        tables["tacit_keys"] = question.keys
    if question.sample is not None:
        tables["tacit_sample"] = drawn_sample()
    return tables


def exact_integers(
    data: EngineTransaction,
    question: TableQuestion,
    statistics: tuple[Statistic, ...],
    tables: _Tables | None = None,
) -> ExactIntegers:
    """Compute each statistic's exact integers per group."""
    public = public_tables(question) if tables is None else tables
    integers: ExactIntegers = {}
    for statistics_read, lines in data.integers(question, statistics, public):
        integers |= by_group(statistics_read, lines, len(question.by))
    return integers


def by_group(
    statistics: tuple[Statistic, ...], lines: Iterable[tuple[object, ...]], width: int
) -> ExactIntegers:
    """Read the lines of one statement: a key of ``width`` columns, then the integers of each statistic."""
    integers: ExactIntegers = {statistic: {} for statistic in statistics}
    for line in lines:
        key, numbers = line[:width], [int(str(n)) for n in line[width:]]
        for statistic in statistics:
            if isinstance(statistic, BinCounts):
                cells = integers[statistic].setdefault(key, [0] * statistic.size)
                cells[numbers[0]] += numbers[1]
            else:
                integers[statistic][key] = statistic.vector(numbers[: statistic.columns])
                numbers = numbers[statistic.columns :]
    return integers


def private_sql(
    engine: Engine, question: TableQuestion, statistics: tuple[Statistic, ...], threshold: int
) -> tuple[str, ...]:
    """Write the statements that run while there are few groups, and most of them are shown."""
    counted_once, by_cell = _split(statistics)
    few = engine.sql(part_of(question, FewGroups(_max_size(threshold))), counted_once)
    return (*few, *(engine.sql(question, by_cell) if by_cell else ()))


def _max_size(threshold: int) -> int:
    """Return how many groups may be read one by one: a function of public facts."""
    return MAX_READ if threshold < _HIGHEST else _HIGHEST


class PrivateGroups:
    """One reading of private groups: their sizes first, then whatever else is measured of those shown.

    Parameters
    ----------
    data
        The reading of the engine.
    question
        The question.
    statistics
        Those of all steps; the first is the size, by which groups are selected.
    threshold
        From which noisy size on a group is shown.
    """

    def __init__(
        self,
        data: EngineTransaction,
        question: TableQuestion,
        statistics: tuple[Statistic, ...],
        threshold: int,
    ) -> None:
        self._data, self._question, self._statistics = data, question, statistics
        self._threshold, self._tables = threshold, public_tables(question)
        self._exact: ExactIntegers = {}
        self._all_read = False

    def sizes(self) -> dict[GroupKey, int] | KeysBySize[GroupKey]:
        """Read the sizes of all groups, or the small ones by size if there are very many groups."""
        size, question = self._statistics[0], self._question
        counted_once, _ = _split(tuple(dict.fromkeys(self._statistics)))
        max_size = _max_size(self._threshold)
        [(_, lines)] = self._data.integers(part_of(question, FewGroups(max_size)), counted_once, self._tables)
        if len(lines) <= max_size:
            self._exact = by_group(counted_once, lines, len(question.by))
            return {key: vector[0] for key, vector in self._exact[size].items()}
        del lines
        return _SizedGroups(self._data, question, size, self._threshold, self._tables).keys()

    def integers(self, statistic: Statistic, groups: Sequence[Any]) -> Any:
        """Return a statistic's integers for the groups that are shown, as pairs of key and noisy size."""
        keys: list[GroupKey] = [tuple(key) for key, _ in groups]
        if not self._all_read:
            self._read_rest(keys)
        integers = self._exact.get(statistic, {})
        return [integers.get(key, [0] * statistic.size) for key in keys] or np.zeros(
            (0, statistic.size), dtype=np.int64
        )

    def _read_rest(self, keys: list[GroupKey]) -> None:
        """Read what the first statement did not return."""
        self._all_read = True
        missing = tuple(s for s in dict.fromkeys(self._statistics[1:]) if s not in self._exact)
        if not missing or not keys:
            return
        question, sizes = self._question, self._exact.get(self._statistics[0], {})
        if 0 < len(sizes) <= 2 * len(keys):  # quicker than to pick the few that are shown
            self._exact |= exact_integers(self._data, question, missing, self._tables)
            return
        tables = {**self._tables, "tacit_keys": _typed(question, keys)}
        self._exact |= exact_integers(self._data, part_of(question, ListedGroups()), missing, tables)


def _split(statistics: tuple[Statistic, ...]) -> tuple[tuple[Statistic, ...], tuple[Statistic, ...]]:
    """Tell the statistics that one statement sums together from those that need one each."""
    by_cell = tuple(s for s in statistics if isinstance(s, BinCounts | DistinctCounts))
    return tuple(s for s in statistics if s not in by_cell), by_cell


def _typed(question: TableQuestion, keys: list[GroupKey]) -> list[GroupKey]:
    """Return the keys as lines of a table; a column of missing values alone gets a value that shows its type.

    The group of this value, if there is one, is read in vain.
    """
    examples = {"number": 0.0, "boolean": False}
    placeholders = tuple(examples.get(kind_of(node) or "text", "") for _, node in question.by)
    untyped = any(all(key[i] is None for key in keys) for i in range(len(placeholders)))
    return [*keys, placeholders] if untyped and placeholders not in keys else keys


@dataclass(frozen=True, slots=True)
class _SizedGroups:
    """Very many private groups: the large ones with their keys, the others counted by size and cell."""

    data: EngineTransaction
    question: TableQuestion
    size: Statistic
    threshold: int
    tables: Mapping[str, Sequence[Sequence[object]]]

    @property
    def _digits(self) -> int:
        """How finely sizes are split into cells: few lines return, and few groups need an order."""
        digits = 3
        while digits and self.threshold * 16**digits > _MAX_CELLS:
            digits -= 1
        return digits

    def keys(self) -> KeysBySize[GroupKey]:
        """Read the sizes of all groups."""
        width = len(self.question.by)
        question = part_of(self.question, GroupsBySize(self.threshold, self._digits))
        [(_, lines)] = self.data.integers(question, (self.size,), self.tables)
        large: dict[GroupKey, int] = {}
        cells: dict[int, dict[str, int]] = {}
        for line in lines:
            key, (units, cell, number) = line[:width], line[width:]
            if int(str(units)) >= self.threshold:
                large[key] = int(str(units))
            else:
                cells.setdefault(int(str(units)), {})[str(cell)] = int(str(number))
        sizes = {units: sum(numbers.values()) for units, numbers in cells.items()}
        return KeysBySize(large, sizes, lambda ranks: self._find(ranks, cells))

    def _find(
        self, ranks: Mapping[int, Sequence[int]], cells: Mapping[int, Mapping[str, int]]
    ) -> dict[int, list[GroupKey]]:
        """Return the groups at some ranks: cells in the order of their names, then groups in that of keys."""
        width = len(self.question.by)
        places = {units: _places(some, cells[units]) for units, some in ranks.items()}
        lines = [(float(n), cell, float(rank)) for n, some in places.items() for cell, rank in some]
        question = part_of(self.question, GroupsAtRanks(self.threshold, self._digits))
        tables = {**self.tables, "tacit_ranks": lines}
        [(_, answers)] = self.data.integers(question, (self.size,), tables)
        keys: dict[tuple[int, str, int], GroupKey] = {}
        for line in answers:
            key, (units, cell, rank, number) = line[:width], line[width:]
            if cells[int(units)][str(cell)] != int(str(number)):  # type: ignore[call-overload]
                raise RuntimeError("the groups changed while they were read")
            keys[int(units), str(cell), int(rank)] = key  # type: ignore[call-overload]
        return {n: [keys[n, cell, rank] for cell, rank in some] for n, some in places.items()}


def _places(ranks: Sequence[int], cells: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return for each rank from 0 its cell, and its rank from 1 within the cell.

    Examples
    --------
    >>> _places([0, 4, 5], {"a": 3, "b": 2, "c": 9})
    [('a', 1), ('b', 2), ('c', 1)]
    """
    names = sorted(cells)
    ends = list(accumulate(cells[name] for name in names))
    places = []
    for rank in ranks:
        i = bisect_right(ends, rank)
        places.append((names[i], rank + 1 - (ends[i] - cells[names[i]])))
    return places
