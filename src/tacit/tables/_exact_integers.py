"""Exact integers of a table question by statistic and group; they never leave the process without noise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.algebra import BinCounts
from tacit.tables._sampling import drawn_sample

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tacit.algebra import Statistic, TableQuestion
    from tacit.engines import EngineTransaction

    #: For each statistic its integers by group.
    ExactIntegers = dict[Statistic, dict[tuple[object, ...], list[int]]]
    _Tables = Mapping[str, Sequence[Sequence[object]]]

GroupKey = tuple[object, ...]


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
    given = public_tables(question) if tables is None else tables
    found: ExactIntegers = {}
    for together, lines in data.integers(question, statistics, given):
        found |= by_group(together, lines, len(question.by))
    return found


def by_group(
    statistics: tuple[Statistic, ...], lines: Iterable[tuple[object, ...]], width: int
) -> ExactIntegers:
    """Read the lines of one statement: a key of ``width`` columns, then the integers of each statistic."""
    found: ExactIntegers = {statistic: {} for statistic in statistics}
    for line in lines:
        key, numbers = line[:width], [int(str(n)) for n in line[width:]]
        for statistic in statistics:
            if isinstance(statistic, BinCounts):
                cells = found[statistic].setdefault(key, [0] * statistic.size)
                cells[numbers[0]] += numbers[1]
            else:
                found[statistic][key] = statistic.vector(numbers[: statistic.columns])
                numbers = numbers[statistic.columns :]
    return found
