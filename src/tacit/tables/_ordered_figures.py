"""The figures of ordered counts: the running totals or the cells, with the noise as a band."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tacit.show import MOST_SERIES, Chart, ChartAxis, ChartSeries, Figure, chosen

if TYPE_CHECKING:
    from tacit.tables._ordered_counts import OrderedCounts


def ordered_figures(counts: OrderedCounts, what: str | None) -> tuple[Figure, ...]:
    """Return one line or one row of steps for each group; at most 8 groups, the first ones."""
    return chosen(what, {name: partial(_figure, counts, name) for name in ("distribution", "histogram")})


def _figure(counts: OrderedCounts, name: str) -> Figure:
    n, totals = len(counts), name == "distribution"
    cells = (counts.distribution if totals else counts.counts).columns["n"]
    numeric = bool(counts.cuts) and all(isinstance(cut, float) for cut in counts.cuts)
    edges = [float(cut) for cut in counts.cuts] if numeric else [i - 0.5 for i in range(n + 1)]
    series = []
    for i, group in enumerate(counts.groups[:MOST_SERIES]):
        start = (0.0,) if totals else ()
        ends = ((*start, *part[i * n : (i + 1) * n]) for part in (cells.value, cells.low, cells.high))
        label = str(group) if counts.by else ""
        series.append(ChartSeries.of("line" if totals else "steps", edges, ends, label=label, colour=i))
    every = -(-n // 12)  # names on the axis
    ticks = () if numeric else tuple((float(i), str(counts.places[i])) for i in range(0, n, every))
    what = f"rows {'below' if totals else 'by'} {counts.column}"
    words = f"the band is the {counts.confidence * 100:g} % interval for the noise, one place at a time"
    chart = Chart(
        tuple(series), ChartAxis(counts.column, ticks=ticks), ChartAxis("rows"), legend=counts.by or ""
    )
    return Figure(what, (chart,), (words, *counts.notes))
