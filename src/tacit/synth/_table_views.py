"""The tables of a release of synthetic rows: measured ones with intervals, others from the model.

Figures show bars with intervals, and pairs as matrices in which noise is hatched.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from itertools import product
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from tacit.core import AnswerTable, Cells
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Choose, Set
from tacit.show import Chart, ChartAxis, ChartSeries, Figure, Matrix, chosen
from tacit.synth._facts import covering, half_width, interval_level, table_name
from tacit.synth._model import summed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from tacit.synth._model import Columns
    from tacit.synth._synthetic_table import SyntheticTable


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
            at_least = (
                "at least " if content.together is None else ""
            )  # else the law of the noise is approximate
            note = f"{at_least}{content.confidence * 100:.4g} % intervals for the noise, one cell at a time"
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
