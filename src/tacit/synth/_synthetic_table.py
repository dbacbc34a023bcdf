"""The content of a release of synthetic rows: noisy tables and choices. Rows are a free view of them.

Its report says what was measured, how well rows agree, and what is not covered. Its tables are the measured
ones, with intervals, and others from the model. Its figures show bars with intervals, and pairs as matrices
in which noise is hatched.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from itertools import product
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tacit.core import AnswerTable, Cells, Content, needs, write_csv
from tacit.errors import TacitError, bad_parameter
from tacit.exact import count, read_fraction
from tacit.fixes import Choose, Set
from tacit.report import Report, ReportTable, short_percent
from tacit.show import Chart, ChartAxis, ChartSeries, Figure, Matrix, chosen
from tacit.synth._choices import MOST_CELLS, SynthDesign, columns_in, subsets_of
from tacit.synth._columns import SyntheticColumn
from tacit.synth._facts import METHODS, covering, half_width, interval_level, table_name
from tacit.synth._fit import NoisyTable, fit, total_of
from tacit.synth._model import summed
from tacit.synth._rows import draw_codes, gradual_codes
from tacit.tables import CrossNoise

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from numpy.typing import NDArray

    from tacit.core import JSON, Certificate
    from tacit.synth._model import Columns, GraphicalModel


_FAR = 1.5  # a model that is further from a measurement, in units of its noise, is too small
_LISTED = 60


def distance(content: SyntheticTable, table: NoisyTable) -> float:
    """Return how far rows are from a measurement: the root mean square over its cells, in units of the noise.

    About 1 or less where only noise is between them.
    """
    if content.model is not None:
        expected = content.model.table(table.columns)
    else:
        codes = content.codes()
        at = np.ravel_multi_index(tuple(codes[:, c] for c in table.columns), table.counts.shape)
        counts = np.bincount(at, minlength=table.counts.size)
        expected = counts.reshape(table.counts.shape).astype(np.float64)
    return float(np.sqrt(np.mean((expected - table.counts) ** 2))) / table.sigma


def summary_of(content: SyntheticTable) -> Report:
    """Return what was measured, without a fit."""
    return Report(_title(content), _lead(content), (_listed(content, None),), tuple(_notes(content)))


def report_of(content: SyntheticTable) -> Report:
    """Return the whole report; it needs the fit, and nothing but the release."""
    tables = _listed(content, lambda table: distance(content, table))
    far = [t for t in content.measured[:_LISTED] if distance(content, t) > _FAR]
    notes = _notes(content)
    if far:
        names = ", ".join(dict.fromkeys(table_name(content.columns, t.columns) for t in far))
        notes.insert(
            0,
            f"the rows miss {names} by more than {_FAR} times the noise: the model is "
            "too small (a larger size helps), or what was declared impossible does occur",
        )
    return Report(_title(content), _lead(content), (tables,), tuple(notes))


def _title(content: SyntheticTable) -> str:
    many = max(0, round(content.total))
    return f"Synthetic rows: about {many:,} rows, {len(content.columns)} columns"


def _lead(content: SyntheticTable) -> tuple[str, ...]:
    z = NormalDist().inv_cdf((1 + content.confidence) / 2)
    chosen = sum(step[0] == "choice" for step in content.steps)
    sentence = f"{METHODS[content.design.method]}."
    choices = f" {chosen} choices were made." if chosen else ""
    total = f"{content.total:,.0f} +/- {z * content.total_error:,.0f}"
    return (f"{sentence}{choices} The number of rows is noisy: {total}.",)


def _listed(content: SyntheticTable, away: Callable[[NoisyTable], float] | None) -> ReportTable:
    """List the measurements in their order."""
    header = ("table", "cells", "+/-", "covers", "cells below 2 sigma")
    rows = []
    for table in content.measured[:_LISTED]:
        width, level = _width(content, table)
        small = int((table.counts < 2 * table.sigma).sum())
        line = [
            table_name(content.columns, table.columns),
            f"{table.counts.size:,}",
            f"{width:,.0f}",
            f"{math.floor(1000 * level + 1e-6) / 10:.1f} %",
            f"{small:,}",
        ]
        rows.append((*line, f"{away(table):.2f}") if away else tuple(line))
    more = len(content.measured) - _LISTED
    title = "Measured tables" + (f" (the first {_LISTED}; {more:,} more)" if more > 0 else "")
    return ReportTable(title, (*header, "distance in sigma") if away else header, tuple(rows))


def _width(content: SyntheticTable, table: NoisyTable) -> tuple[float, float]:
    """Return the half-width of a cell of one measurement and how often it covers; or that from residuals."""
    if content.together is not None:
        return content.together.half_width(table.columns, content.confidence), content.confidence
    return half_width(table.sigma, 1, content.confidence), covering(table.sigma, 1, content.confidence)


def _notes(content: SyntheticTable) -> list[str]:
    covered = short_percent(content.confidence, 4)
    if content.together is None:
        covered = f"at least {covered} of the time (half-widths are whole numbers; the table says how often)"
    else:
        covered += " of the time"
    notes = [
        (
            f"+/- covers the noise on one measured cell, {covered}. Tables that are neither "
            "measured nor sums of measured tables are not covered: there, the rows follow the model, and no "
            "measurement supports the model. Errors that treat the rows as real data are too small."
        ),
        "Cells below 2 sigma cannot be distinguished from empty cells: small groups are lost first.",
    ]
    if invented := [column.name for column in content.columns if column.invented]:
        notes.append(f"Values of {', '.join(invented)} inside a cell are invented evenly.")
    if content.design.zeros:
        cells = sum(int(mask.sum()) for mask in content.design.zeros.values())
        combinations = (
            "the combination that was" if cells == 1 else f"one of the {cells:,} combinations that were"
        )
        notes.append(f"No row has {combinations} declared impossible.")
    return [*notes, *content.left_out]


def csv_text(columns: Mapping[str, NDArray[Any]]) -> str:
    r"""Return columns as CSV; a missing value is an empty field.

    Text that a spreadsheet would compute gets an apostrophe in front, as in every CSV file of a release.

    Examples
    --------
    >>> csv_text({"age": np.array([41.0, np.nan]), "sex": np.array(["F", None], object)}).split()
    ['age,sex', '41,F', ',']
    """
    from tacit.core import for_spreadsheet

    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow([for_spreadsheet(name) for name in columns])
    cells = [[for_spreadsheet(one) for one in _texts(values)] for values in columns.values()]
    writer.writerows(zip(*cells, strict=True))
    return out.getvalue()


def _texts(values: NDArray[Any]) -> list[str]:
    if values.dtype.kind == "M":
        return ["" if np.isnat(one) else str(one) for one in values]
    if values.dtype.kind == "f":
        return ["" if np.isnan(one) else repr(float(one)).removesuffix(".0") for one in values]
    return ["" if one is None else str(one) for one in values.tolist()]


_MOST_ROWS = 10_000_000  # where nobody says how many: beyond it, the total is noise


@dataclass(frozen=True, eq=False, repr=False)
class SyntheticTable(Content):
    """Noisy tables, and synthetic rows that agree with them.

    Everything that it shows is a function of what it stores: the design, the noisy integers, the chosen
    tables and the noise. The same release gives the same rows.

    Parameters
    ----------
    columns
        The columns with their public places.
    design
        What decided which tables could be measured: public facts.
    steps
        The choices and the noisy tables, in their order.
    confidence
        How often the interval of a measured cell covers the noise.
    left_out
        Which rows of the data are not counted.
    """

    kind: ClassVar[str] = "synthetic-table"
    described: ClassVar[str] = "the noisy tables from which synthetic rows are made"

    columns: tuple[SyntheticColumn, ...]
    design: SynthDesign
    steps: tuple[list[Any], ...]
    confidence: float
    left_out: tuple[str, ...] = ()

    @cached_property
    def together(self) -> CrossNoise | None:
        """The noise of tables whose residuals were measured at once; None where there were steps."""
        sets = [(tuple(at), Fraction(level)) for kind, at, level, *_ in self.steps if kind == "residual"]
        if not sets:
            return None
        columns, sigmas = zip(*sets, strict=True)
        return CrossNoise(self.design.sizes, "gaussian", columns, sigmas)

    @cached_property
    def numbers(self) -> tuple[NDArray[np.float64], ...]:
        """The noisy numbers of each step that has some."""
        cell_counts = [(at, cells[0]) for _, at, _, *cells in self.steps if cells]
        return tuple(
            np.array(c, np.float64).reshape([self.design.sizes[i] for i in at]) for at, c in cell_counts
        )

    @cached_property
    def measured(self) -> tuple[NoisyTable, ...]:
        """The noisy tables, in the order in which they were measured; or rebuilt from residuals."""
        if self.together is not None:
            noise = self.together
            return tuple(
                NoisyTable(at, noise.estimate(at, self.numbers), math.sqrt(noise.variance(at)))
                for at in self.design.all_tables()
            )
        tables = []
        steps = [(columns, level) for kind, columns, level, *_ in self.steps if kind == "table"]
        for (columns, level), counts in zip(steps, self.numbers, strict=True):
            tables.append(NoisyTable(tuple(columns), counts, float(Fraction(level))))
        return tuple(tables)

    @cached_property
    def total(self) -> float:
        """The noisy number of rows, the mean of the tables' sums by precision; it may be negative."""
        if self.together is not None:
            return float(self.together.estimate((), self.numbers))
        return total_of(self.measured)

    @property
    def total_error(self) -> float:
        """The standard deviation of the noise on the total."""
        if self.together is not None:
            return math.sqrt(self.together.variance(()))
        return float(sum(1 / (t.sigma**2 * t.counts.size) for t in self.measured) ** -0.5)

    @cached_property
    def model(self) -> GraphicalModel | None:
        """The model that was fitted to the tables; None where rows come from a gradual update instead."""
        if (
            not self.design.fits([table.columns for table in self.measured])
            and self.design.method == "tables"
        ):
            return None
        return fit(self.measured, self.design.sizes, self.design.zeros).model

    @property
    def tables(self) -> MeasuredViews:
        """The tables by their columns: measured ones with intervals, others from the model, not covered."""
        return MeasuredViews(self)

    def _generator(self, rows: int, draw: int) -> np.random.Generator:
        """Return a generator whose public seed is a hash of what is stored."""
        text = json.dumps([self.to_json(), rows, draw], sort_keys=True)
        digest = hashlib.sha256(text.encode()).digest()
        return np.random.default_rng(np.frombuffer(digest, np.uint32))

    def codes(self, rows: int | None = None, draw: int = 0) -> NDArray[np.int32]:
        """Return synthetic rows as places on each column; see `to_dict`."""
        return self._coded(rows, draw)[0]

    def _coded(self, rows: int | None, draw: int) -> tuple[NDArray[np.int32], np.random.Generator]:
        many = min(max(0, round(self.total)), _MOST_ROWS) if rows is None else count("rows", rows)
        by = self._generator(many, count("draw", draw))
        if self.model is None:
            return gradual_codes(self.measured, self.design.sizes, many, by, self.design.zeros), by
        return draw_codes(self.model, many, by), by

    def to_dict(self, rows: int | None = None, draw: int = 0) -> dict[str, NDArray[Any]]:
        """Return synthetic rows, as one array for each column: a view of the release, at no cost.

        Parameters
        ----------
        rows
            How many; by default the noisy total. More rows than the data has say nothing more about it.
        draw
            The number of the draw: 0, 1, 2 ... give different rows from the same release, each repeatable.
        """
        codes, by = self._coded(rows, draw)
        return {column.name: column.values(codes[:, i], by) for i, column in enumerate(self.columns)}

    def to_pandas(self, rows: int | None = None, draw: int = 0) -> pd.DataFrame:
        """Return synthetic rows as a pandas data frame (extra ``pandas``); see `to_dict`."""
        needs("to_pandas", "pandas", "tacit[pandas]")
        import pandas as pd

        return pd.DataFrame(self.to_dict(rows, draw))

    def to_arrow(self, rows: int | None = None, draw: int = 0) -> pa.Table:
        """Return synthetic rows as an Arrow table (extra ``pandas``); see `to_dict`."""
        needs("to_arrow", "pyarrow", "tacit[pandas]")
        import pyarrow as pa

        arrays = self.to_dict(rows, draw)
        return pa.table({name: pa.array(values, from_pandas=True) for name, values in arrays.items()})

    def to_csv(
        self,
        path: str | Path | None = None,
        rows: int | None = None,
        draw: int = 0,
        *,
        certificate: Certificate | None = None,
    ) -> str:
        """Return synthetic rows as CSV text, and write them to a file if a path is given; see `to_dict`.

        The facts of the release are written beside the file, as ``NAME.csv-metadata.json``.
        """
        text = csv_text(self.to_dict(rows, draw))
        if path is not None:
            promise = {} if certificate is None else certificate.facts
            write_csv(path, text, {**promise, "notes": ["the rows are invented: no row is a person"]})
        return text

    def to_polars(self, rows: int | None = None, draw: int = 0) -> pl.DataFrame:
        """Return synthetic rows as a Polars data frame (``pip install polars``); see `to_dict`."""
        needs("to_polars", "polars", "polars")
        import polars as pl

        return pl.DataFrame(self.to_dict(rows, draw), strict=False)

    def to_parquet(self, path: str | Path, rows: int | None = None, draw: int = 0) -> None:
        """Write synthetic rows to a Parquet file (extra ``pandas``); see `to_dict`."""
        needs("to_parquet", "pyarrow", "tacit[pandas]")
        from pyarrow import parquet

        parquet.write_table(self.to_arrow(rows, draw), path)

    def report(self) -> Report:
        """Say what was measured, how far rows are from it and what is not covered, from the release alone."""
        return report_of(self)

    def text(self, marks: tuple[str, ...] = ()) -> str:
        """Write what was measured for a terminal."""
        return "\n".join([summary_of(self).text(), *marks])

    def html(self, marks: tuple[str, ...] = ()) -> str:
        """Write what was measured for a notebook."""
        from html import escape

        return summary_of(self).html() + "".join(f"<p>{escape(mark)}</p>" for mark in marks)

    def answer_tables(self) -> Iterator[tuple[str, AnswerTable]]:
        """Yield the measured tables."""
        for names in self.tables:
            yield " x ".join(names) or "all rows", self.tables[names]

    def figures(self, what: Any = None) -> tuple[Figure, ...]:
        """Return measured tables with their noise: one by its name ("age x sex"), or the measured pairs."""
        return table_figures(self, what)

    def __repr__(self) -> str:
        return self.text()

    def to_json(self) -> dict[str, JSON]:
        """Return the content as JSON: columns, design, and the steps as the ledger stores them."""
        return {
            "columns": [column.to_json() for column in self.columns],
            "design": self.design.to_json(),
            "steps": [list(step) for step in self.steps],
            "confidence": self.confidence,
            "left_out": list(self.left_out),
        }

    @classmethod
    def from_json(cls, document: Any) -> SyntheticTable:
        """Read the content back; raises ``ValueError`` where it is not one."""
        columns = tuple(SyntheticColumn.from_json(one) for one in document["columns"])
        design = SynthDesign.from_json(document["design"])
        if tuple(column.size for column in columns) != design.sizes:
            raise ValueError("the columns do not have the places of the design")
        steps = tuple(_step(one, design) for one in document["steps"])
        confidence = float(document["confidence"])
        if not 0 < confidence < 1 or len({column.name for column in columns}) < len(columns):
            raise ValueError("not a synthetic table")
        measured_columns = [tuple(step[1]) for step in steps if step[0] == "table"]
        fits = design.method == "tables" or (bool(measured_columns) and design.fits(measured_columns, 4.0))
        if not fits or not _complete(steps, design):
            raise ValueError("not a synthetic table")
        return cls(columns, design, steps, confidence, tuple(str(one) for one in document["left_out"]))


def _step(document: Any, design: SynthDesign) -> list[Any]:
    """Read a choice or a noisy table."""
    kind, columns, level, *cells = document
    is_total = kind == "residual" and columns == []  # the number of rows
    at, exact = [] if is_total else list(columns_in(columns, len(design.sizes))), read_fraction(level)
    kinds = {("choice", 0), ("table", 1), ("residual", 1)}
    if not 2**-100 < exact < 2**100 or (kind, len(cells)) not in kinds:
        raise ValueError("not a step")
    if kind == "choice":
        return [kind, at, str(exact)]
    [counts] = cells
    if len(counts) != design.cells(tuple(at)) or not all(
        type(one) is int and abs(one) < 2**100 for one in counts
    ):
        raise ValueError("not a noisy table")
    return [kind, at, str(exact), list(counts)]


def _complete(steps: tuple[list[Any], ...], design: SynthDesign) -> bool:
    """Return whether there is a table, or each residual that the tables of the design need, once."""
    if design.method != "tables":
        kinds = {step[0] for step in steps}
        return "table" in kinds and "residual" not in kinds
    if design.parts() > MOST_CELLS:
        return False
    residuals = [tuple(step[1]) for step in steps if step[0] == "residual"]
    needed = {part for one in design.all_tables() for part in subsets_of(one, design.sizes)}
    return len(residuals) == len(steps) == len(needed) and set(residuals) == needed


_MOST = 9  # tables in one figure
_WORDS = ("measured counts; hatched cells are below 2 standard deviations of the noise",)


class MeasuredViews:
    """Tables by their columns, in any order: ``tables["age"]``, ``tables[("age", "sex")]``.

    A measured table, and every sum of one, has an interval for the noise on each cell, one cell at a time.
    Any other table comes from the model and has none.
    """

    def __init__(self, content: SyntheticTable) -> None:
        self._held = content

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        """Iterate over the names of the measured tables, each once."""
        names = [column.name for column in self._held.columns]
        tables = dict.fromkeys(table.columns for table in self._held.measured)
        return iter([tuple(names[i] for i in columns) for columns in tables])

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __contains__(self, table: object) -> bool:
        """Return whether a table is covered: measured, or a sum of a measured one."""
        try:
            return source_of(self._held, tuple(sorted(self._columns(table)))) is not None  # type: ignore[arg-type]
        except TacitError:
            return False

    def __getitem__(self, table: str | Sequence[str]) -> AnswerTable:
        content = self._held
        names = self._columns(table)
        rising = tuple(sorted(names))
        order = [rising.index(c) for c in names]
        source = source_of(content, rising)
        ends: tuple[tuple[float | None, ...], tuple[float | None, ...]]
        if source is None:
            values = self._expected(rising)
            ends = ((None,) * values.size,) * 2
            note = "not covered: this table was not measured; its numbers come from the model"
        else:
            values, width = source.counts, source.width
            ends = _flat(values - width, order), _flat(values + width, order)
            level = short_percent(content.confidence, 4)
            if content.together is None:  # else the law of the noise is approximate
                level = f"at least {level}"
            note = f"{level} intervals for the noise, one cell at a time"
        keys = list(zip(*product(*(content.columns[c].places for c in names)), strict=True))
        return AnswerTable(
            {content.columns[c].name: tuple(keys[i]) for i, c in enumerate(names)},
            {"rows": Cells(_flat(values, order), *ends)},
            content.confidence,
            notes={"rows": note},
            left_out=content.left_out,
            counts=("rows",),
        )

    def _expected(self, rising: Columns) -> NDArray[np.float64]:
        """Return a table of the model; of rows that were drawn where there is no model."""
        content = self._held
        if content.model is not None:
            return content.model.table(rising)
        codes = content.codes()
        shape = [content.design.sizes[c] for c in rising]
        at = np.ravel_multi_index(tuple(codes[:, c] for c in rising), shape)
        return np.bincount(at, minlength=math.prod(shape)).reshape(shape).astype(np.float64)

    def _columns(self, table: str | Sequence[str]) -> list[int]:
        names = [column.name for column in self._held.columns]
        names_asked = [table] if isinstance(table, str) else list(table)
        for name in names_asked:
            if name not in names:
                raise TacitError(
                    "unknown-column",
                    f"the release has no column {name!r}",
                    fix=Choose(tuple(names), given=str(name)),
                )
        if not names_asked or len(set(names_asked)) != len(names_asked):
            raise bad_parameter("table", "different columns", table, fix=Set(table=names[:2]))
        return [names.index(name) for name in names_asked]


def _flat(values: NDArray[np.float64], order: list[int]) -> tuple[float, ...]:
    return tuple(np.transpose(values, order).ravel().tolist())


@dataclass(frozen=True, slots=True, eq=False)
class CoveredTable:
    """A measured table, or a sum of one.

    Parameters
    ----------
    counts
        The noisy counts.
    sigma
        The standard deviation of their noise.
    width
        The half-width of their intervals.
    level
        How often such an interval covers if it is fixed before the noise is drawn: at least the confidence,
        and more where half-widths are whole numbers, or where a table was measured again.
    """

    counts: NDArray[np.float64]
    sigma: float
    width: float
    level: float


def source_of(content: SyntheticTable, rising: Columns) -> CoveredTable | None:
    """Return what covers a table; None if nothing does.

    Of several measurements that hold the table, AIM shows the one with the narrowest interval. Otherwise the
    table's own comes first, then the one whose sums have the least noise.
    """
    if content.together is not None:
        if not content.together.covers(rising):
            return None
        counts = content.together.estimate(rising, content.numbers)
        largest_half_width = content.together.half_width(rising, content.confidence)
        return CoveredTable(
            counts, math.sqrt(content.together.variance(rising)), largest_half_width, content.confidence
        )
    cells = content.design.cells(rising)
    covering_tables = [table for table in content.measured if set(rising) <= set(table.columns)]
    if not covering_tables:
        return None
    levels = [
        interval_level(content.design.method, content.confidence, i, final=table is content.measured[-1])
        for i, table in enumerate(covering_tables, 1)
    ]
    sums = [table.counts.size // cells for table in covering_tables]
    if content.design.method == "aim":
        about = [
            NormalDist().inv_cdf((1 + float(level)) / 2) * table.sigma * math.sqrt(many)
            for table, level, many in zip(covering_tables, levels, sums, strict=True)
        ]
        best = int(np.argmin(about))
    else:
        best = min(
            range(len(covering_tables)),
            key=lambda i: (
                covering_tables[i].columns != rising,
                covering_tables[i].sigma ** 2 * covering_tables[i].counts.size,
            ),
        )
    table, many = covering_tables[best], sums[best]
    return CoveredTable(
        summed(table.counts, table.columns, rising),
        table.sigma * math.sqrt(many),
        half_width(table.sigma, many, levels[best]),
        covering(table.sigma, many, levels[best]),
    )


def table_figures(content: SyntheticTable, what: str | None) -> tuple[Figure, ...]:
    """Return one measured table of one or two columns, or the measured pairs in one figure."""
    drawable = _drawable(content)
    names = {table_name(content.columns, columns): columns for columns in drawable}
    if what is not None:
        return chosen(what, {name: partial(_figure, content, [columns]) for name, columns in names.items()})
    pairs: list[Columns] = [columns for columns in drawable if len(columns) == 2]
    tables_drawn = (pairs or drawable)[:_MOST]
    return (_figure(content, tables_drawn),) if tables_drawn else ()


def _figure(content: SyntheticTable, tables: list[Columns]) -> Figure:
    panels = tuple(_panel(content, columns) for columns in tables)
    return Figure("synthetic rows", panels, _WORDS, across=min(3, len(panels)))


def _drawable(content: SyntheticTable) -> list[Columns]:
    """Return the measured tables of one or two columns, each once, and the pairs inside larger ones."""
    tables: dict[Columns, None] = {}
    for table in content.measured:
        if len(table.columns) <= 2:
            tables[table.columns] = None
        else:
            tables |= {(a, b): None for a in table.columns for b in table.columns if a < b}
    return list(tables)


def _panel(content: SyntheticTable, columns: Columns) -> Chart | Matrix:
    source = source_of(content, columns)
    if source is None:  # pragma: no cover - only measured tables are drawn
        raise TacitError("bad-parameter", "this table was not measured")
    values, title = np.asarray(source.counts, np.float64), table_name(content.columns, columns)
    labels = [tuple(content.columns[c].labels) for c in columns]
    names = [content.columns[c].name for c in columns]
    if len(columns) == 1:
        bars = ChartSeries.of(
            "bars", range(values.size), (values, values - source.width, values + source.width)
        )
        return Chart((bars,), ChartAxis(names[0], labels[0]), ChartAxis("rows"), title)
    (rows, across), (down, along) = labels, names
    unclear = values < 2 * source.sigma
    return Matrix(np.maximum(values, 0), rows, across, down, along, "rows", unclear, title=title)
