"""The figures of measured tables: bars with intervals, and pairs as matrices in which noise is hatched."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tacit.errors import TacitError
from tacit.show import Chart, ChartAxis, ChartSeries, Figure, Matrix, chosen
from tacit.synth._facts import table_name
from tacit.synth._table_views import source_of

if TYPE_CHECKING:
    from tacit.synth._model import Columns
    from tacit.synth._synthetic_table import SyntheticTable

_MOST = 9  # tables in one figure
_WORDS = ("measured counts; hatched cells are below 2 standard deviations of the noise",)


def table_figures(held: SyntheticTable, what: str | None) -> tuple[Figure, ...]:
    """Return one measured table of one or two columns, or the measured pairs in one figure."""
    found = _drawable(held)
    names = {table_name(held.columns, columns): columns for columns in found}
    if what is not None:
        return chosen(what, {name: partial(_figure, held, [columns]) for name, columns in names.items()})
    pairs: list[Columns] = [columns for columns in found if len(columns) == 2]
    drawn = (pairs or found)[:_MOST]
    return (_figure(held, drawn),) if drawn else ()


def _figure(held: SyntheticTable, drawn: list[Columns]) -> Figure:
    panels = tuple(_panel(held, columns) for columns in drawn)
    return Figure("synthetic rows", panels, _WORDS, across=min(3, len(panels)))


def _drawable(held: SyntheticTable) -> list[Columns]:
    """Return the measured tables of one or two columns, each once, and the pairs inside larger ones."""
    found: dict[Columns, None] = {}
    for table in held.measured:
        if len(table.columns) <= 2:
            found[table.columns] = None
        else:
            found |= {(a, b): None for a in table.columns for b in table.columns if a < b}
    return list(found)


def _panel(held: SyntheticTable, columns: Columns) -> Chart | Matrix:
    source = source_of(held, columns)
    if source is None:  # pragma: no cover - only measured tables are drawn
        raise TacitError("bad-parameter", "this table was not measured")
    values, title = np.asarray(source.counts, np.float64), table_name(held.columns, columns)
    labels = [tuple(held.columns[c].labels) for c in columns]
    names = [held.columns[c].name for c in columns]
    if len(columns) == 1:
        bars = ChartSeries.of(
            "bars", range(values.size), (values, values - source.width, values + source.width)
        )
        return Chart((bars,), ChartAxis(names[0], labels[0]), ChartAxis("rows"), title)
    (rows, across), (down, along) = labels, names
    unclear = values < 2 * source.sigma
    return Matrix(np.maximum(values, 0), rows, across, down, along, "rows", unclear, title=title)
