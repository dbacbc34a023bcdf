"""The figures of a survey's results: bars with intervals, raw rates of reports against corrected shares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.show import GREY, MOST_SERIES, Chart, ChartAxis, ChartSeries, Figure, Matrix, shortened

if TYPE_CHECKING:
    from tacit.surveys._results import CrossTable, MeanTable, ShareTable

_MOST = 40  # bars in one figure; more cannot be read


def shares_figure(table: ShareTable) -> Figure:
    """Return shares as bars with intervals, and the rate of reports behind each as a mark."""
    groups = list(dict.fromkeys(row.group for row in table.rows))[:MOST_SERIES]
    answers = _shown_answers(table)
    width = 0.8 / len(groups)
    series = []
    for number, group in enumerate(groups):
        rows = {row.answer: row for row in table.rows if row.group == group}
        own = [(i, rows[answer]) for i, answer in enumerate(answers) if answer in rows]
        x = [i + width * (number - (len(groups) - 1) / 2) for i, _ in own]
        ends = ((100 * getattr(row, end) for _, row in own) for end in ("value", "low", "high"))
        label = group if table.by else "estimated"
        series.append(ChartSeries.of("bars", x, ends, label=label, colour=number, width=0.9 * width))
        raw = [100 * row.raw for _, row in own]
        series.append(ChartSeries("bounds", x, raw, label="in the reports (raw)", colour=GREY))
    names = tuple(_name(answer) for answer in answers)
    chart = Chart(tuple(series), ChartAxis(table.question, names), ChartAxis("share in %"), legend=table.by)
    return Figure(f"{table.question}: epsilon {table.epsilon:g}", (chart,), (_covers(table),))


def _shown_answers(table: ShareTable) -> list[Any]:
    """Return the answers in their order, or the most common ones if there are too many."""
    answers = list(dict.fromkeys(row.answer for row in table.rows))
    if len(answers) <= _MOST:
        return answers
    best = sorted(table.rows, key=lambda row: -row.value)
    return list(dict.fromkeys(row.answer for row in best))[:_MOST]


def means_figure(table: MeanTable) -> Figure:
    """Return means with their intervals, one for each group."""
    rows = table.rows[:_MOST]
    ends = ((getattr(row, end) for row in rows) for end in ("value", "low", "high"))
    names = tuple(str(row.group or "all") for row in rows)
    chart = Chart(
        (ChartSeries.of("points", range(len(rows)), ends),), ChartAxis(table.by, names), ChartAxis("mean")
    )
    return Figure(f"{table.question}: epsilon {table.epsilon:g}", (chart,), (_covers(table),))


def cells_figure(table: CrossTable) -> Figure:
    """Return a cross-table as a matrix: one cell for each pair of answers, with its share and interval."""
    down = list(dict.fromkeys(cell.row for cell in table.rows))[:_MOST]
    across = list(dict.fromkeys(cell.column for cell in table.rows))[:_MOST]
    cells = {(cell.row, cell.column): cell for cell in table.rows}
    values = np.array([[cells[r, c].value for c in across] for r in down], np.float64)
    words = tuple(
        tuple(
            f"{100 * cell.value:z.1f} %\n[{100 * cell.low:.1f}, {100 * cell.high:.1f}]"
            for cell in (cells[r, c] for c in across)
        )
        for r in down
    )
    names = (tuple(map(_name, down)), tuple(map(_name, across)))
    top = 1.6 * max(values.max(), 0.01)  # dark text stays readable
    matrix = Matrix(np.maximum(values, 0), *names, *table.questions, words=words, top=top)
    return Figure(f"{' by '.join(table.questions)}: epsilon {table.epsilon:g}", (matrix,), (_covers(table),))


def _covers(table: ShareTable | MeanTable | CrossTable) -> str:
    covered = "coins and sampling" if table.of == "population" else "coins"
    return f"{table.confidence * 100:g} % intervals for {covered}"


def _name(answer: Any) -> str:
    return shortened(", ".join(map(str, answer)) if isinstance(answer, tuple) else str(answer))
