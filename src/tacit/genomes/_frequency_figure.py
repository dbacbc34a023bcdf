"""The figure of frequencies: one point with its interval for each variant, a colour for each cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.core import interval_words
from tacit.show import MOST_SERIES, Chart, ChartAxis, ChartSeries, Figure

if TYPE_CHECKING:
    from tacit.genomes._frequency_table import AlleleFrequencies

_MOST = 100  # variants in one figure: more cannot be told apart


def frequency_figure(table: AlleleFrequencies) -> Figure:
    """Return the first 100 variants; at most 8 clusters."""
    cells = table.columns["frequency"]
    labels = [str(one) for one in table.keys.get("cluster", ("",) * len(table))]
    clusters = list(dict.fromkeys(labels))
    most = min(_MOST, len(table) // max(1, len(clusters)))
    series = []
    for number, cluster in enumerate(clusters[:MOST_SERIES]):
        own = [i for i, label in enumerate(labels) if label == cluster][:most]
        at = [place + 0.3 * (number - (len(clusters) - 1) / 2) for place in range(1, len(own) + 1)]
        ends = ((part[i] for i in own) for part in (cells.value, cells.low, cells.high))
        series.append(ChartSeries.of("points", at, ends, label=cluster, colour=number))
    top = min(1.0, 1.15 * max((high or 0 for high in cells.high), default=1.0))
    legend = "cluster" if clusters != [""] else ""
    x, y = ChartAxis("variant", ends=(0.0, most + 1.0)), ChartAxis("frequency", ends=(0.0, top))
    more = "" if most * max(1, len(clusters)) == len(table) else f" of the first {most} variants"
    chart = Chart(tuple(series), x, y, legend=legend)
    return Figure(f"allele frequencies{more}", (chart,), (interval_words(table),))
