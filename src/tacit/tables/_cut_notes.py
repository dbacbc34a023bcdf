"""Notes on what a table's limits and bounds cut, as a release estimated it, for later captions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tacit.algebra import Column, scans_of
from tacit.core import HIDDEN
from tacit.errors import TacitError
from tacit.fixes import Code

if TYPE_CHECKING:
    from collections.abc import Iterator
    from fractions import Fraction

    from tacit.algebra import TableQuestion
    from tacit.core import AnswerTable, Cells, Release
    from tacit.tables._dataset import TableDataset

#: The released columns: the share of rows beyond a limit, and of values outside bounds.
BEYOND, OUTSIDE = "rows_beyond_limit", "values_outside_bounds"


@dataclass(frozen=True, slots=True)
class CutNote:
    """What one limit, or the bounds of one column, cut; the text is what a release estimated.

    ``rows`` is the limit; or ``column`` has these ``bounds``.
    """

    table: str
    rows: int | None = None
    column: str = ""
    bounds: tuple[Fraction, Fraction] | None = None
    text: str = ""

    @property
    def meaning(self) -> str:
        """What the share is a share of, in words; a function of public facts."""
        if self.bounds is None:
            few = "1 row" if self.rows == 1 else f"{self.rows:,} rows"
            return f"of the rows of {self.table} are beyond the limit of {few}"
        low, high = (f"{float(bound):g}" for bound in self.bounds)
        return f"of the values of {self.column} in {self.table} are outside the bounds {low} to {high}"

    def concerns(self, question: TableQuestion) -> bool:
        """Whether a question reads the table under this limit, or the column with these bounds."""
        scans = [scan for scan in scans_of(question.input) if scan.table.name == self.table]
        if self.bounds is None:
            return any(scan.rows == self.rows for scan in scans)
        asked = [(a.argument, getattr(a, "bounds", None)) for _, a in question.aggregates]
        named = any(isinstance(e, Column) and e.name == self.column and b == self.bounds for e, b in asked)
        return bool(scans) and named


def percent(cells: Cells) -> str:
    """Write a released share as a percentage, its interval rounded outwards, with decimals if it is small.

    Examples
    --------
    >>> from tacit.core import Cells
    >>> percent(Cells((0.1934,), (0.1851,), (0.1963,))), percent(Cells((0.0041,), (0.0,), (0.0084,)))
    ('19 % [18, 20]', '0.4 % [0, 0.9]')
    """
    value, low, high = (100 * float(end[0] or 0) for end in (cells.value, cells.low, cells.high))
    if cells.value[0] is None:
        return f"{HIDDEN} [{math.floor(low)}, {math.ceil(high)}] %"
    tenths = 10 if value < 10 else 1
    rounded = (round(value * tenths), math.floor(low * tenths), math.ceil(high * tenths))
    shown = [f"{number / tenths:g}" for number in rounded]
    return f"{shown[0]} % [{shown[1]}, {shown[2]}]"


def cut_lines(question: TableQuestion, dataset: TableDataset) -> list[str]:
    """Return what the dataset's notes say about a question."""
    return [note.text for note in dataset.noted if note.concerns(question)]


def cut_note(dataset: TableDataset, release: Release[AnswerTable]) -> CutNote:
    """Turn a release of `TableDataset.measure_cut` into a note; refuse one of other data or limits.

    The release itself says which limit or bounds it measured; only those that still hold are noted.
    """
    fields = release.certificate.fields
    columns, notes = getattr(release.content, "columns", {}), getattr(release.content, "notes", {})
    name = next((c for c in (BEYOND, OUTSIDE) if c in columns), None)
    own = fields.get("dataset") == dataset.identity.document()
    known = [note for note in _possible(dataset) if name and notes.get(name, "").endswith(note.meaning)]
    if name is None or not own or not known:
        raise TacitError(
            "bad-parameter",
            "this release does not measure what the limits and bounds of this dataset cut",
            why="a caption must describe the data, limits and bounds of its own dataset",
            fix=Code("visits.noting(visits.measure_cut(epsilon=0.05).release())"),
        )
    cells, paid = columns[name], fields.get("ledger")
    entry = f" (entry {paid['entry']})" if isinstance(paid, dict) else ""
    one = known[0]
    text = f"{percent(cells)} {one.meaning}{entry}"
    return CutNote(one.table, one.rows, one.column, one.bounds, text)


def _possible(dataset: TableDataset) -> Iterator[CutNote]:
    """Return the limits and bounds that a release can have measured, as they are declared now."""
    for name, table in dataset.tables.items():
        if table.key is not None:
            continue
        rows = dataset.limits.rows_of(name)
        if rows is not None:
            yield CutNote(name, rows)
        for column, fact in table.facts.items():
            if fact.bounds is not None:
                yield CutNote(name, None, column, fact.bounds)
