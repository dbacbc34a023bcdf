"""The figures of a series: one line over the days for each group, with the intervals as a band around it."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from tacit.show import MOST_SERIES, Chart, ChartAxis, ChartSeries, Figure, chosen, days_of

if TYPE_CHECKING:
    from tacit.core import AnswerTable


def series_figures(table: AnswerTable, what: str | None) -> tuple[Figure, ...]:
    """Return a figure for each column; at most 8 groups, the first ones."""
    if what is not None:
        table[what]  # refuses a column that is not there
    return chosen(what, {name: partial(_figure, table, name) for name in table.columns})


def _figure(table: AnswerTable, column: str) -> Figure:
    cells, others = table.columns[column], [name for name in table.keys if name != "day"]
    labels = [", ".join(str(table.keys[name][i]) for name in others) for i in range(len(table))]
    series = []
    for number, group in enumerate(list(dict.fromkeys(labels))[:MOST_SERIES]):
        at = [i for i, label in enumerate(labels) if label == group]
        days = [days_of(datetime.fromisoformat(str(table.keys["day"][i])[:10])) for i in at]
        ends = ((part[i] for i in at) for part in (cells.value, cells.low, cells.high))
        series.append(ChartSeries.of("line", days, ends, label=group, colour=number))
    words = f"the band is the {table.confidence * 100:g} % interval for the noise"
    chart = Chart(tuple(series), ChartAxis("", kind="dates"), ChartAxis(column), legend=", ".join(others))
    return Figure(column, (chart,), (words,))
