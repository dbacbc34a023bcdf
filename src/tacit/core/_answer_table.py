"""The core's answer table: one line per group, per column a value with its interval.

Behind the columns are the noisy integers, with what they count and the law of their noise. These integers are
what the mechanisms put out, and the ledger stores them. The privacy guarantee is stated for exactly them, and
every number of a release is computed from them alone. So a release may carry them: whoever sees them learns
nothing that the certificate does not cover.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

from tacit.core._found_bounds import FoundBounds
from tacit.core._release import Content
from tacit.core._shown_digits import least_shown, refuse_hidden, without_hidden
from tacit.core._tabular import lacking, needs, write_csv
from tacit.errors import TacitError
from tacit.exact import read_fraction
from tacit.fixes import Choose, Code

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from tacit.core._certificate import Certificate
    from tacit.core._protocols import JSON
    from tacit.show import Figure


_LAWS = ("laplace", "gaussian")
#: What is divided by the sum of a line's integers, but for these columns.
_DIVIDED = frozenset({"moments", "squares", "products"})
_TOTALS = frozenset({"count", "sum"})


@dataclass(frozen=True, slots=True)
class MeasuredIntegers:
    """The noisy integers of one step, for each line of the answer.

    Parameters
    ----------
    statistic
        What they count, in a word: ``rows``, ``units``, ``cells``, ``moments``, ``squares``.
    columns
        The columns that are read off them: of each its aggregate (``mean``) and the place of its integer.
    integers
        The integers of each line.
    noise
        The law of the noise on each integer: its name and its scale (of a Gaussian, its sigma), one for each
        member that added noise.
    weight
        What one row adds to the integers of a line, all together.
    ranges
        The ends of the grid of each value that enters, in the column's own units.
    cells
        The public values or lower edges of cells.
    rows_per_unit
        How many rows of one unit count at most; None where the rows of different units may belong together.
    yes_no
        Whether the value can only be 0 or 1.
    """

    statistic: str
    columns: Mapping[str, tuple[str, int]]
    integers: tuple[tuple[int, ...], ...]
    noise: tuple[tuple[str, Fraction], ...]
    weight: int = 1
    ranges: tuple[tuple[float, float], ...] = ()
    cells: tuple[float | str | bool, ...] = ()
    rows_per_unit: int | None = 1
    yes_no: bool = False

    def shown(self, names: Mapping[str, Sequence[str]], lines: Sequence[int]) -> MeasuredIntegers | None:
        """Return what is left where columns are renamed (old name to new ones) and lines reordered."""
        columns = {new: self.columns[old] for old in self.columns for new in names.get(old, ())}
        integers = tuple(self.integers[i] for i in lines)
        return replace(self, columns=columns, integers=integers) if columns else None

    def without_hidden(self, columns: Mapping[str, Cells]) -> dict[str, Cells]:
        """Return the columns that are read off these integers without the values that the noise hides."""
        columns_without_totals = {
            name: columns[name] for name, (word, _) in self.columns.items() if word not in _TOTALS
        }
        if self.statistic not in _DIVIDED or not columns_without_totals:
            return {}
        return {name: without_hidden(cells, self.hidden) for name, cells in columns_without_totals.items()}

    @property
    def hidden(self) -> list[bool]:
        """Return of each line whether the noise hides what is divided by the sum of its integers."""
        each = sum((scale**2 * (1 if law == "gaussian" else 2) for law, scale in self.noise), Fraction(0))
        shown = least_shown(max(map(len, self.integers), default=0) * each)  # all lines are equally long
        return [sum(line) < shown for line in self.integers]

    def to_json(self) -> dict[str, JSON]:
        """Return the integers and what they are as JSON."""
        return {
            "statistic": self.statistic,
            "columns": {name: list(what) for name, what in self.columns.items()},
            "integers": [list(line) for line in self.integers],
            "noise": [[law, str(scale)] for law, scale in self.noise],
            "weight": self.weight,
            "ranges": [list(ends) for ends in self.ranges],
            "cells": list(self.cells),
            "rows_per_unit": self.rows_per_unit,
            "yes_no": self.yes_no,
        }

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Read the integers back; raises ``ValueError`` where they are not ones."""
        rows = document["rows_per_unit"]
        integers = cls(
            str(document["statistic"]),
            {str(name): (str(word), int(place)) for name, (word, place) in document["columns"].items()},
            tuple(tuple(line) for line in document["integers"]),
            tuple((str(law), read_fraction(scale)) for law, scale in document["noise"]),
            int(document["weight"]),
            tuple((float(low), float(high)) for low, high in document["ranges"]),
            tuple(document["cells"]),
            None if rows is None else int(rows),
            document["yes_no"] is True,
        )
        are_integers = all(type(n) is int for line in integers.integers for n in line)
        laws = all(law in _LAWS and scale > 0 for law, scale in integers.noise)
        sizes = {len(line) for line in integers.integers}
        size = max(sizes, default=0)
        placed = all(0 <= place < max(size, 1) for _, place in integers.columns.values())
        if not (are_integers and laws and placed) or len(sizes) > 1 or integers.weight < 1:
            raise ValueError("not the integers of an answer")
        return integers


Value: TypeAlias = float | str | bool | None
_ENDS = ("value", "low", "high")
_SUFFIXES = ("", "_low", "_high")


@dataclass(frozen=True, slots=True)
class Cells:
    """One column: values, and the interval of each."""

    value: tuple[Value, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]

    @property
    def lack_intervals(self) -> bool:
        """Whether there is a value without an interval."""
        cells = zip(self.value, self.low, strict=True)
        return any(value is not None and low is None for value, low in cells)


@dataclass(frozen=True, slots=True, repr=False)
class AnswerTable(Content):
    """An answer: one line for each group, and in each column a value with ``low`` and ``high``.

    The interval covers the noise with the stated confidence; it says nothing about what clipping and limits
    dropped. A value that was picked from candidates may have none (``low`` and ``high`` are None), and the
    printed release says so.

    Parameters
    ----------
    keys
        The groups, by name of the key column.
    columns
        The released columns by name. A value is None where the noise hides it; its interval is not.
    confidence
        How often each interval covers the noise.
    notes
        What a column stands for if its name may promise more: a maximum, for example, is a quantile.
    left_out
        Which rows are not counted and which groups are not shown, by the plan.
    counts
        The columns that count; noise may push them below zero.
    dates
        The key columns that hold dates, as ISO text; data frames get them as dates.
    totals
        Whether a key that is None marks a total; otherwise it is the group of missing values.
    measured
        The noisy integers that the columns are read off, where inference can use them; `tacit.inference`
        reads them.
    covers
        What the intervals cover: ``"noise"``, or ``"noise and sampling"`` in a view that says so.
    found
        The bounds that the plan found privately, of each expression whose values it cut to them.
    """

    kind: ClassVar[str] = "answer-table"
    described: ClassVar[str] = "a table of answers"

    keys: Mapping[str, tuple[Value, ...]]
    columns: Mapping[str, Cells]
    confidence: float
    notes: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    counts: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()
    totals: bool = False
    measured: tuple[MeasuredIntegers, ...] = ()
    covers: str = "noise"
    found: tuple[FoundBounds, ...] = ()
    #: The columns without what the noise hides, and as a file has them that an older version wrote.
    _written: tuple[Mapping[str, Cells], Mapping[str, Cells]] | None = field(default=None, compare=False)

    def __len__(self) -> int:
        return max((len(cells.value) for cells in self.columns.values()), default=0)

    def __getitem__(self, column: str) -> Cells:
        try:
            return self.columns[column]
        except KeyError:
            raise TacitError(
                "unknown-column",
                f"the release has no column {column!r}",
                fix=Choose(tuple(self.columns), given=str(column)),
            ) from None

    def _found_ends(self) -> dict[str, tuple[float | None, ...]]:
        """Return the bounds that were found, as columns of data frames and files."""
        return {
            f"{name}_{end}_bound": ends
            for one in self.found
            for name in one.columns
            for end, ends in (("low", one.low), ("high", one.high))
        }

    def found_for(self, column: str) -> FoundBounds | None:
        """Return the bounds that were found for a column; None where its bounds were declared or given."""
        return next((one for one in self.found if column in one.columns), None)

    def __iter__(self) -> Iterator[dict[str, Value]]:
        """Iterate over the lines as dictionaries: keys, then value, low and high of each column.

        Bounds that the plan found privately come last.
        """
        keys = {name: whole_keys(values) for name, values in self.keys.items()}
        for i in range(len(self)):
            line: dict[str, Value] = {name: values[i] for name, values in keys.items()}
            for name, cells in self.columns.items():
                line |= {name: cells.value[i], f"{name}_low": cells.low[i], f"{name}_high": cells.high[i]}
            line |= {name: ends[i] for name, ends in self._found_ends().items()}
            yield line

    @property
    def value(self) -> Value:
        """The one number of an answer with one cell; refused where the noise hides it."""
        cells = self._only()
        refuse_hidden(next(iter(self.columns)), cells)
        return cells.value[0]

    @property
    def low(self) -> float | None:
        """The lower end of the interval of an answer with one cell."""
        return self._only().low[0]

    @property
    def high(self) -> float | None:
        """The upper end of the interval of an answer with one cell."""
        return self._only().high[0]

    def _only(self) -> Cells:
        if len(self) != 1 or len(self.columns) != 1:
            raise TacitError(
                "bad-parameter",
                f"the release has {len(self)} x {len(self.columns)} cells",
                fix=Code('release["n"]'),
            )
        return next(iter(self.columns.values()))

    def rounded(self, *columns: str) -> tuple[AnswerTable, tuple[str, ...]]:
        """Return the answer with these columns (all, if none is named) as non-negative whole numbers."""
        chosen = columns or tuple(self.columns)
        changed = {
            name: Cells(tuple(_whole(v) for v in cells.value), cells.low, cells.high)
            if name in chosen
            else cells
            for name, cells in self.columns.items()
        }
        return replace(self, columns=changed), chosen

    def with_lines(self, chosen: Sequence[int]) -> Self:
        """Return the answer with these of its lines, in this order."""
        if list(chosen) == list(range(len(self))):
            return self
        keys = {name: tuple(values[i] for i in chosen) for name, values in self.keys.items()}
        columns = {
            name: Cells(*(tuple(getattr(cells, end)[i] for i in chosen) for end in _ENDS))
            for name, cells in self.columns.items()
        }
        same = {name: (name,) for name in self.columns}
        measured = (one.shown(same, chosen) for one in self.measured)
        found = (one.shown(same, chosen) for one in self.found)
        return replace(
            self,
            keys=keys,
            columns=columns,
            measured=tuple(one for one in measured if one is not None),
            found=tuple(one for one in found if one is not None),
        )

    def shown_keys(self, key: str) -> list[str]:
        """Return the groups of one key as people read them: "(missing)", and "(all)" for a total."""
        from tacit.core._display import shown_key

        return [shown_key(value, totals=self.totals) for value in self.keys[key]]

    def to_json(self) -> JSON:
        """Return the answer as JSON."""
        document = self._written
        columns = document[1] if document is not None and document[0] is self.columns else self.columns
        return {
            "keys": {name: list(values) for name, values in self.keys.items()},
            "columns": {
                name: {"value": list(cells.value), "low": list(cells.low), "high": list(cells.high)}
                for name, cells in columns.items()
            },
            "confidence": self.confidence,
            "notes": dict(self.notes),
            "left_out": list(self.left_out),
            "counts": list(self.counts),
            **({"dates": list(self.dates)} if self.dates else {}),
            **({"totals": True} if self.totals else {}),
            **({"measured": [one.to_json() for one in self.measured]} if self.measured else {}),
            **({"covers": self.covers} if self.covers != "noise" else {}),
            **({"found": [one.to_json() for one in self.found]} if self.found else {}),
        }

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Read the answer back; raises ``ValueError`` where it is not one."""
        answer = cls(
            {name: tuple(values) for name, values in document["keys"].items()},
            {
                name: Cells(tuple(cells["value"]), tuple(cells["low"]), tuple(cells["high"]))
                for name, cells in document["columns"].items()
            },
            float(document["confidence"]),
            dict(document["notes"]),
            tuple(str(line) for line in document["left_out"]),
            tuple(str(name) for name in document["counts"]),
            tuple(str(name) for name in document.get("dates", ())),
            document.get("totals") is True,
            tuple(MeasuredIntegers.from_json(one) for one in document.get("measured", ())),
            str(document.get("covers", "noise")),
            tuple(FoundBounds.from_json(one) for one in document.get("found", ())),
        )
        parts = [*answer.keys.values(), *(getattr(c, e) for c in answer.columns.values() for e in _ENDS)]
        plain = all(one is None or isinstance(one, str | int | float) for part in parts for one in part)
        noted = all(isinstance(note, str) for note in answer.notes.values())
        if len({len(part) for part in parts}) > 1 or not plain or not noted or not 0 < answer.confidence < 1:
            raise ValueError("not an answer")
        answer._check_parts()
        for cells in answer.columns.values():
            _check_interval(cells)
        answer._dates()  # raises where a date is none
        return answer._without_hidden()

    def _check_parts(self) -> None:
        """Raise ``ValueError`` where integers or bounds belong to another answer."""
        sizes = [len(one.integers) for one in self.measured] + [len(one.low) for one in self.found]
        names = [name for one in self.measured for name in one.columns]
        names += [name for one in self.found for name in one.columns]
        if any(size != len(self) for size in sizes) or not {*names} <= {*self.columns}:
            raise ValueError("the integers or bounds belong to another answer")

    def _without_hidden(self) -> Self:
        """Return the answer without values that the noise hides, as an older version released them."""
        hidden = {
            name: cells for one in self.measured for name, cells in one.without_hidden(self.columns).items()
        }
        columns = {**self.columns, **hidden}
        return (
            self
            if columns == self.columns
            else replace(self, columns=columns, _written=(columns, self.columns))
        )

    def to_dict(self) -> dict[str, list[Value]]:
        """Return columns by name: keys, then ``name``, ``name_low``, ``name_high``."""
        lines = list(self)
        names = [*self.keys, *(f"{c}{suffix}" for c in self.columns for suffix in _SUFFIXES)]
        return {name: [line[name] for line in lines] for name in (*names, *self._found_ends())}

    def to_pandas(self) -> pd.DataFrame:
        """Return a pandas data frame (extra ``pandas``); groups that are dates become timestamps."""
        needs("to_pandas", "pandas", "tacit[pandas]")
        import numpy as np
        import pandas as pd

        moments = {name: np.array(values, "datetime64[us]") for name, values in self._dates().items()}
        frame = pd.DataFrame(self.to_dict() | moments)
        integer_keys = [name for name, values in self.keys.items() if None in values and is_whole(values)]
        types = dict.fromkeys(self._missing(), "float64") | dict.fromkeys(integer_keys, "Int64")
        return frame.astype(types)

    def to_polars(self) -> pl.DataFrame:
        """Return a Polars data frame (``pip install polars``)."""
        needs("to_polars", "polars", "polars")
        import polars as pl

        types = dict.fromkeys(self._missing(), pl.Float64)
        return pl.DataFrame(self.to_dict() | self._dates(), strict=False, schema_overrides=types)

    def to_arrow(self) -> pa.Table:
        """Return an Arrow table (extra ``pandas``)."""
        needs("to_arrow", "pyarrow", "tacit[pandas]")
        import pyarrow as pa

        data: dict[str, Any] = self.to_dict() | self._dates()
        return pa.table(data | {name: pa.array(data[name], pa.float64()) for name in self._missing()})

    def _missing(self) -> list[str]:
        """Return the columns of frames in which every number is missing."""
        ends = {name: (cells.value, cells.low, cells.high) for name, cells in self.columns.items()}
        names = (
            (name + end, part)
            for name, parts in ends.items()
            for end, part in zip(_SUFFIXES, parts, strict=True)
        )
        parts = [*names, *self._found_ends().items()]
        return [name for name, part in parts if part and all(one is None for one in part)]

    def _dates(self) -> dict[str, list[date | None]]:
        """Return the groups that are dates, as days or, where one has a time of day, as moments."""
        dates = {}
        for name in self.dates:
            days = all(v is None or len(str(v)) == 10 for v in self.keys[name])
            parse = date.fromisoformat if days else datetime.fromisoformat
            dates[name] = [None if v is None else parse(str(v)) for v in self.keys[name]]
        return dates

    def to_csv(self, path: str | Path | None = None, *, certificate: Certificate | None = None) -> str:
        """Return the answer as CSV text, and write it to a file if a path is given.

        What a reader of the file has to know (dataset, unit, plan, cost, limits, what the intervals cover) is
        written beside it, as ``NAME.csv-metadata.json``.

        Numbers show only the digits that are meaningful despite the noise (a thousandth of the narrowest
        interval of their column), ``low`` rounded down and ``high`` up; `to_parquet` and `to_dict` keep all
        digits. People open CSV files in spreadsheets, so an apostrophe stands before text that a spreadsheet
        would compute (it starts with ``=``, ``+``, ``-``, ``@``, a tab or a line break); `to_parquet`,
        `to_dict` and the data frames keep the text as it is.
        """
        from tacit.core._shown_digits import meaningful
        from tacit.core._tabular import for_spreadsheet

        columns = {name: [whole_keys((one,))[0] for one in values] for name, values in self.keys.items()}
        for name, cells in self.columns.items():
            columns |= dict(zip((name, f"{name}_low", f"{name}_high"), meaningful(cells), strict=True))
        columns |= {name: list(ends) for name, ends in self._found_ends().items()}
        lines = (columns, *zip(*columns.values(), strict=True))
        text = "".join(_csv_line([for_spreadsheet(cell) for cell in line]) for line in lines)
        if path is not None:
            from tacit.core._answer_display import caption_of

            promise = {} if certificate is None else certificate.facts
            write_csv(path, text, {**promise, "confidence": self.confidence, "notes": caption_of(self)})
        return text

    def to_parquet(self, path: str | Path) -> None:
        """Write the answer to a Parquet file (extra ``pandas``)."""
        needs("to_parquet", "pyarrow", "tacit[pandas]")
        from pyarrow import parquet

        parquet.write_table(self.to_arrow(), path)

    def text(self, marks: tuple[str, ...] = ()) -> str:
        """Write the answer for a terminal."""
        from tacit.core._answer_display import answer_text

        return answer_text(self, marks)

    def html(self, marks: tuple[str, ...] = ()) -> str:
        """Write the answer for a notebook."""
        from tacit.core._answer_display import answer_html

        return answer_html(self, marks)

    def answer_tables(self) -> Iterator[tuple[str, AnswerTable]]:
        """Yield the answer itself."""
        yield "", self

    def figures(self, what: Any = None) -> tuple[Figure, ...]:
        """Return a figure for each column of numbers, with intervals over its groups."""
        from tacit.core._answer_display import answer_figures

        return answer_figures(self, what)

    def without_figure(self) -> TacitError:
        """Say that no column has numbers."""
        return lacking("the answer", "numbers to draw", "print it instead")

    def __repr__(self) -> str:
        return self.text()


def _check_interval(cells: Cells) -> None:
    """Raise ``ValueError`` or ``OverflowError`` for what is no interval, or too large for a number."""
    for low, high in zip(cells.low, cells.high, strict=True):
        if (low is None) != (high is None) or "str" in {type(low).__name__, type(high).__name__}:
            raise ValueError("not an interval")
    for number in (*cells.value, *cells.low, *cells.high):
        float(0 if number is None or isinstance(number, str) else number)


def _whole(value: Value) -> Value:
    return max(0, round(value)) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _csv_line(cells: Sequence[object]) -> str:
    r"""Write one line; a cell with ``\r`` or ``\n`` is quoted, as Python does for signs of the line end."""
    line = io.StringIO()
    csv.writer(line, lineterminator="\r\n").writerow(cells)
    return line.getvalue()[:-2] + "\n"


def is_whole(keys: Sequence[Value]) -> bool:
    """Return whether the keys of a column are whole numbers, which the engine wrote with a point."""
    present = [key for key in keys if key is not None]
    return bool(present) and all(
        isinstance(key, float) and key.is_integer() and abs(key) < 2**53 for key in present
    )


def whole_keys(keys: tuple[Value, ...]) -> tuple[Value, ...]:
    """Return the year 2024 as 2024, not as 2024.0."""
    return tuple(None if key is None else int(key) for key in keys) if is_whole(keys) else keys
