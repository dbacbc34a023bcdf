"""Figures as previews for a terminal: a line for each value, with its interval as a bar."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from tacit.show._figures import Chart, Figure, Matrix, RegionMap, shortened
from tacit.show._safe_text import visible
from tacit.show._scales import days_scale, scale_of, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tacit.show._figures import ChartAxis, ChartSeries

_MOST: Final = 24  # lines of a preview
_BAR: Final = 36
_SHADES: Final = " ░▒▓█"


def figure_text(figure: Figure, width: int = 80) -> str:
    """Return the title, the words and a preview of each panel."""
    lines = [*figure.title.splitlines(), *figure.words]
    for panel in figure.panels:
        lines += [*panel.title.splitlines()]
        match panel:
            case Chart():
                lines += _chart_lines(panel, width)
            case Matrix():
                lines += _matrix_lines(panel, width)
            case _:
                lines += _map_lines(panel, width)
    return "\n".join(visible(line).rstrip() for line in lines)


def _chart_lines(chart: Chart, width: int) -> Iterator[str]:
    """Write a line for each value: its name, its place between the ends, and the number."""
    ends = [
        float(v) for one in chart.series for part in (one.y, one.low, one.high) for v in part if v is not None
    ]
    scale = scale_of(chart.y, ends, 0, min(_BAR, max(10, width - 44)) - 1, zero=True)
    if chart.note:
        yield chart.note
    for one in chart.series:
        if one.mark in {"across", "upright"}:
            if one.label:
                yield f"  {one.label}: {shown(float(one.y[0] or 0) if one.mark == 'across' else one.x[0])}"
            continue
        if one.label:
            yield f"{f'{chart.legend} ' if chart.legend else ''}{one.label}"
        step = max(1, math.ceil(len(one.y) / _MOST))
        names = [shortened(_place(chart.x, one.x[i]), 22) for i in range(0, len(one.y), step)]
        wide = max(map(len, names), default=0)
        for name, i in zip(names, range(0, len(one.y), step), strict=True):
            yield f"  {name.rjust(wide)} {_bar(one, i, scale)} {_value(one, i)}"
        if step > 1:
            yield f"  (every {step}th of {len(one.y)} values)"


def _place(axis: ChartAxis, x: float) -> str:
    if axis.names:
        return axis.names[min(max(round(x), 0), len(axis.names) - 1)]
    return days_scale([x], 0, 1).ticks[0][1] if axis.kind == "dates" else shown(float(x))


def _bar(one: ChartSeries, i: int, scale: object) -> str:
    from tacit.show._scales import Scale1D

    assert isinstance(scale, Scale1D)  # noqa: S101 - the caller's
    cells = [" "] * (round(scale.end) + 1)
    value = one.y[i]
    low, high = (part[i] if part else None for part in (one.low, one.high))
    if one.mark == "bars" and value is not None:
        low, high = sorted((one.base[i] if one.base else 0.0, value))
    if low is not None or high is not None:
        start, end = (
            scale.at(scale.low if low is None else low),
            scale.at(scale.high if high is None else high),
        )
        for at in range(round(start), round(end) + 1):
            cells[at] = "█" if one.mark == "bars" else "─"
    if value is not None and one.mark != "bars":
        cells[round(scale.at(value))] = "●"
    return "".join(cells)


def _value(one: ChartSeries, i: int) -> str:
    value = one.y[i]
    low, high = (part[i] if part else None for part in (one.low, one.high))
    interval = f" [{_end(low)}, {_end(high)}]" if low is not None or high is not None else ""
    return (
        "no value" if value is None and not interval else "" if value is None else shown(float(value))
    ) + interval


def _end(value: float | None) -> str:
    return "open" if value is None else shown(float(value))


def _matrix_lines(matrix: Matrix, width: int) -> Iterator[str]:
    """Shade the cells; what may be noise alone is left blank."""
    values = np.nan_to_num(np.asarray(matrix.values, np.float64))
    if matrix.unclear is not None:
        values = np.where(matrix.unclear, 0, values)
    names = [shortened(name, 18) for name in matrix.rows]
    wide = max(map(len, names), default=0)
    each = max(1, min(6, (width - wide - 4) // max(1, values.shape[1])))
    for i, line in enumerate(_shaded(values, matrix.top, width)):
        name = names[i] if len(names) == values.shape[0] and i < len(names) else ""
        yield f"  {name.rjust(wide)} " + "".join(char * (each if matrix.columns else 2) for char in line)
    if matrix.columns:
        yield f"  from left to right: {', '.join(shortened(name, 14) for name in matrix.columns[:_MOST])}"


def _shaded(values: np.ndarray, top: float | None, width: int) -> list[str]:
    """Return the cells as letters; a large matrix is thinned."""
    step = max(1, math.ceil(max(values.shape[0] / 40, values.shape[1] / max(1, (width - 4) // 2))))
    few = values[::step, ::step]
    most = max(top if top is not None else float(np.abs(few).max(initial=0.0)), 1e-300)
    level = np.clip(np.ceil(np.abs(few) / most * (len(_SHADES) - 1)), 0, len(_SHADES) - 1).astype(int)
    return ["".join(_SHADES[one] for one in row) for row in level]


def _map_lines(regions: RegionMap, width: int) -> Iterator[str]:
    """Shade the cells of a grid, north first; of other regions, list those with the largest numbers."""
    known = np.where(regions.unclear, 0, regions.values)
    if regions.grid is not None:
        shape = (len(regions.grid[1]) - 1, len(regions.grid[0]) - 1)
        for line in _shaded(known.reshape(shape)[::-1], regions.ends[1], width):
            yield "  " + "".join(char * 2 for char in line)
        return
    for i in np.argsort(-np.abs(regions.values), kind="stable")[:_MOST]:
        share = abs(float(regions.values[i])) / max(regions.ends[1], 1e-300)
        bar, name = "█" * round(20 * min(share, 1)), shortened(regions.names(int(i)), 22)
        yield f"  {name:22} {bar:20} {shown(float(regions.values[i]))}"
