"""Advice on a table's limits: questions about how much units have and what limits cut, and their captions.

Each is a plan like any other: its cost is stated first, then it is charged and released with noise. The
sentences are written from released numbers and public facts alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tacit.algebra import choose_name
from tacit.core import HIDDEN
from tacit.errors import TacitError
from tacit.fixes import Declare
from tacit.tables import _aggregate_functions as ask
from tacit.tables._cut_notes import BEYOND, OUTSIDE, CutNote, percent
from tacit.tables._cut_shares import share_beyond
from tacit.tables._python_expressions import col, when

if TYPE_CHECKING:
    from collections.abc import Iterable
    from fractions import Fraction

    from tacit.algebra import TableQuestion
    from tacit.core import AnswerTable, Cells, Release
    from tacit.tables._dataset import TableDataset

_LEVELS = (0.5, 0.9, 0.95, 0.99)
_SUGGESTED = "0.95"
_UNSURE = 3  # ends of an interval that differ by more than this factor
_FINE, _COARSE = (12, 15, 20, 30, 40, 50, 70), (1, 1.5, 2, 3, 5, 7)


@dataclass(frozen=True, slots=True)
class LimitCaption:
    """Writes what was found about the rows and groups of units, and which limits follow from it.

    Parameters
    ----------
    units
        What the units are called, in the plural.
    rows_of
        The table whose rows were counted.
    by
        The column whose values were counted, or empty.
    most
        The largest number that can be found.
    """

    units: str
    rows_of: str
    by: str
    most: int

    def check_columns(self, known: Iterable[str]) -> None:
        """Accept every release: columns that it lacks are not spoken of."""

    def apply(self, release: Release[AnswerTable]) -> Release[AnswerTable]:
        """Return the release with the advice in its caption."""
        answer = release.content
        counted = {"rows": f"rows in {self.rows_of}", "groups": f"values of {self.by}"}
        said = [
            self._sentence(name, answer.columns[f"{name}_{_SUGGESTED}"], what)
            for name, what in counted.items()
            if f"{name}_{_SUGGESTED}" in answer.columns
        ]
        said.append("a smaller limit means less noise and more dropped rows; measure_cut estimates how many")
        return replace(release, content=replace(answer, left_out=(*said, *answer.left_out)))

    def _sentence(self, name: str, cells: Cells, what: str) -> str:
        if cells.value[0] is None:
            return f"the {what} are {HIDDEN}: use a larger epsilon"
        value = max(1, math.ceil(float(cells.value[0])))
        low = max(1, math.ceil(float(cells.low[0] or 1)))  # numbers of rows are whole
        high = max(1, math.floor(float(cells.high[0] or 1)))
        text = (
            f"95 % of {self.units} have at most about {value:,} [{low:,}, {high:,}] {what}: "
            f'limits={{"{name}": {value}}} would keep all {name} of about 95 % of {self.units}'
        )
        if value >= self.most:
            return f"{text}; no larger number was looked for"
        return (
            f"{text}; the interval is wide, but a larger epsilon would narrow it"
            if high > _UNSURE * low
            else text
        )


@dataclass(frozen=True, slots=True)
class CutCaption:
    """Writes which share of the rows a limit cuts, or of the values bounds clip.

    Parameters
    ----------
    meaning
        What the share is a share of.
    cap
        How many rows of one unit were looked at; 0 if all that count.
    unit
        What the unit is called.
    """

    meaning: str
    cap: int
    unit: str

    def check_columns(self, known: Iterable[str]) -> None:
        """Accept every release: columns that it lacks are not spoken of."""

    def apply(self, release: Release[AnswerTable]) -> Release[AnswerTable]:
        """Return the release with the share in words."""
        answer = release.content
        notes, said = dict(answer.notes), []
        for name in (BEYOND, OUTSIDE):
            if name in answer.columns:
                notes[name] = f"{percent(answer.columns[name])} {self.meaning}"
                if self.cap:
                    said.append(
                        f"more than {self.cap:,} rows of one {self.unit} count as {self.cap:,} here, so the "
                        "share may be larger"
                    )
        return replace(release, content=replace(answer, notes=notes, left_out=(*said, *answer.left_out)))


def limit_query(
    dataset: TableDataset, *, by: str | None, table: str | None, most: int
) -> tuple[TableQuestion, LimitCaption]:
    """Return the question for private quantiles of the rows, and of the groups, that units have."""
    _check_unit(dataset)
    numbers, name = _round_numbers(most), table or dataset.main
    measures = {"rows": ask.count(), **({} if by is None else {"groups": ask.count_distinct(by)})}
    asked = {n: ask.quantiles(n, _LEVELS, bounds=(0, most), candidates=numbers) for n in measures}
    query = dataset[name].per_unit((), **measures).agg(**asked)
    return query.question, LimitCaption(f"{dataset.unit.noun}s", name, by or "", most)


def cut_query(
    dataset: TableDataset, *, column: str | None, table: str | None, cap: int | None
) -> tuple[TableQuestion, CutCaption]:
    """Return the question for the share of rows beyond the limit, or of values outside a column's bounds."""
    name, noun = table or dataset.main, dataset.unit.noun
    rows = dataset[name]
    if column is not None:
        bounds = _declared_bounds(dataset, name, column)
        value, low, high = col(column), *map(float, bounds)
        inside = when((value >= low) & (value <= high), 0)
        outside = ask.mean(when((value < low) | (value > high), 1, inside), bounds=(0, 1))
        caption = CutCaption(CutNote(name, None, column, bounds).meaning, 0, noun)
        return rows.agg(**{OUTSIDE: outside}).question, caption
    _check_unit(dataset)
    limit = dataset.limits.rows_of(name)
    if limit is None:
        raise TacitError(
            "missing-limit",
            f"no limit cuts the rows of {name!r}",
            fix=Declare("limits", 10, column="rows"),
        )
    most = 10 * limit if cap is None else cap
    query = rows.per_unit(rows=ask.count()).agg(**{BEYOND: share_beyond("rows", limit, most)})
    return query.question, CutCaption(CutNote(name, limit).meaning, most, noun)


def _check_unit(dataset: TableDataset) -> None:
    if dataset.unit.is_row:
        raise TacitError(
            "not-allowed",
            "there are no limits to choose",
            why="each unit is a single row, so nothing is cut",
            fix=Declare("unit", "patient_id"),
        )


def _declared_bounds(dataset: TableDataset, table: str, column: str) -> tuple[Fraction, Fraction]:
    """Return the declared bounds of a column, or refuse."""
    facts = dataset.tables[table].facts
    known = tuple(dataset[table].columns) or tuple(facts)
    if column not in known:
        raise TacitError(
            "unknown-column",
            f"the table {table!r} has no column {column!r}",
            fix=choose_name(column, known),
        )
    fact = facts.get(column)
    if fact is None or fact.bounds is None:
        raise TacitError(
            "missing-bounds",
            f"no bounds of {column!r} are declared, so nothing is clipped",
            fix=Declare("bounds", (0, 30), column=column),
        )
    return fact.bounds


def _round_numbers(most: int) -> list[float]:
    """Return the candidates: all numbers to 10, then round ones, so that few share the noise.

    Examples
    --------
    >>> _round_numbers(25)[9:]
    [10.0, 12.0, 15.0, 20.0, 25.0]
    """
    found = {*range(1, 11), *_FINE}
    found |= {int(digit * 10**power) for power in range(2, len(str(most))) for digit in _COARSE}
    return [float(n) for n in sorted({n for n in found if n < most} | {most})]
