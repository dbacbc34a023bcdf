"""Figures as text for terminals and logs: a line for each value with its interval as a bar, or a curve."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tacit.show._figures import Chart, Figure, Matrix, RegionMap, block_means, shortened
from tacit.show._safe_text import visible
from tacit.show._scales import day_words, decimals, rounded_end, scale_of, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tacit.show._figures import ChartAxis, ChartSeries, Panel


_MOST: Final = 24  # lines of a preview
_BAR: Final = 36
_SHADES: Final = " .:-=+*#%@"
_HIGH: Final = 20  # lines of shades


def figure_text(figure: Figure, width: int = 80) -> str:
    """Return the title, the words and a preview of each panel."""
    lines = [*figure.title.splitlines(), *figure.words]
    for panel in figure.panels:
        lines += [*panel.title.splitlines(), *preview(panel, width)]
    return "\n".join(visible(line).rstrip() for line in lines)


def preview(panel: Panel, width: int = 80) -> list[str]:
    """Return a panel as lines for a terminal."""
    draw: Any = {Chart: _chart_lines, Matrix: _matrix_lines, RegionMap: _map_lines}[type(panel)]
    return list(draw(panel, width))


def _chart_lines(chart: Chart, width: int) -> Iterator[str]:
    """Write a line for each value: its name, its place between the ends, and the number."""
    ends = [
        float(v)
        for series in chart.series
        for part in (series.y, series.low, series.high)
        for v in part
        if v is not None
    ]
    scale = scale_of(chart.y, ends, 0, min(_BAR, max(10, width - 44)) - 1, zero=True)
    if chart.note:
        yield chart.note
    for series in chart.series:
        if series.mark in {"across", "upright"}:
            if series.label:
                level = float(series.y[0] or 0) if series.mark == "across" else series.x[0]
                yield f"  {series.label}: {shown(level)}"
            continue
        if series.label:
            yield f"{f'{chart.legend} ' if chart.legend else ''}{series.label}"
        step = max(1, math.ceil(len(series.y) / _MOST))
        chosen_places = _few(series, step)
        names = [shortened(_place(chart.x, series, i), 22) for i in chosen_places]
        width_of_names = max(map(len, names), default=0)
        for name, i in zip(names, chosen_places, strict=True):
            yield f"  {name.rjust(width_of_names)} {_bar(series, i, scale)} {_value(series, i)}"
        if step > 1:
            which = "the largest" if series.mark == "points" else "the last"
            yield f"  (of each {step} values, {which} is shown)"


def _few(series: ChartSeries, step: int) -> list[int]:
    """Return one of each so many values: of points the largest, which must not be missed, else the last."""
    many = len(series.y)
    blocks = [range(max(0, end - step), end) for end in range(many, 0, -step)][::-1]
    if series.mark != "points":
        return [block[-1] for block in blocks]
    return [max(block, key=lambda i: -math.inf if (y := series.y[i]) is None else y) for block in blocks]


def _place(axis: ChartAxis, series: ChartSeries, i: int) -> str:
    """Say where a value stands: its name or day, its number, or from where to where its step goes."""
    x = float(series.x[i])
    if axis.names:
        return axis.names[min(max(round(x), 0), len(axis.names) - 1)]
    if axis.kind == "dates":
        return day_words(x)
    if series.mark == "steps" and len(series.x) > len(series.y):
        return _step_place(dict(axis.ticks), x, float(series.x[i + 1]))
    shift = x - round(x)  # points of several series at one place stand beside each other
    if all(abs(one - round(one) - shift) < 1e-9 for one in series.x):
        return shown(float(round(x)))
    return shown(x)


def _step_place(ticks: Mapping[float, str], start: float, end: float) -> str:
    if start == end:
        return shown(start)
    middle = (start + end) / 2
    if middle in ticks:
        return ticks[middle]
    if start in ticks or end in ticks:
        words = [ticks.get(at, "") for at in (start, end)]
        return " to ".join(words) if all(words) else f"from {words[0]}" if words[0] else f"to {words[1]}"
    if ticks:
        return ""
    return shown(middle) if middle.is_integer() and end - start == 1 else f"{shown(start)} to {shown(end)}"


def _bar(series: ChartSeries, i: int, scale: object) -> str:
    from tacit.show._scales import Scale1D

    assert isinstance(scale, Scale1D)  # noqa: S101 - the caller's
    cells = [" "] * (round(scale.end) + 1)
    value = series.y[i]
    low, high = (part[i] if part else None for part in (series.low, series.high))
    if series.mark == "bars" and value is not None:
        low, high = sorted((series.base[i] if series.base else 0.0, value))
    if low is not None or high is not None:
        start, end = (
            scale.at(scale.low if low is None else low),
            scale.at(scale.high if high is None else high),
        )
        for at in range(round(start), round(end) + 1):
            cells[at] = "█" if series.mark == "bars" else "─"
    if value is not None and series.mark != "bars":
        cells[round(scale.at(value))] = "●"
    return "".join(cells)


def _value(series: ChartSeries, i: int) -> str:
    value = series.y[i]
    low, high = (part[i] if part else None for part in (series.low, series.high))
    if low is None and high is None:
        return "no value" if value is None else shown(float(value))
    whole = all(float(one).is_integer() for one in (value, low, high) if one is not None)
    places = None if whole else decimals(low, high)
    value_text, low_text, high_text = (
        absent if one is None else shown(float(one)) if places is None else rounded_end(one, places, how)
        for one, absent, how in (
            (value, "", ROUND_HALF_EVEN),
            (low, "open", ROUND_FLOOR),
            (high, "open", ROUND_CEILING),
        )
    )
    return f"{value_text} [{low_text}, {high_text}]".lstrip()


def _matrix_lines(matrix: Matrix, width: int) -> Iterator[str]:
    """Shade the cells; what may be noise alone is left blank."""
    values = np.nan_to_num(np.asarray(matrix.values, np.float64))
    if matrix.unclear is not None:
        values = np.where(matrix.unclear, 0, values)
    lines, _, _ = _shaded(values, matrix.top, max(20, width - 24))
    names = (
        [shortened(name, 18) for name in matrix.rows] if len(lines) == len(matrix.rows) else [""] * len(lines)
    )
    width_of_names = max(map(len, names), default=0)
    for name, line in zip(names, lines, strict=True):
        yield f"  {name.rjust(width_of_names)} |{line}|"
    if matrix.columns:
        yield f"  from left to right: {', '.join(shortened(name, 14) for name in matrix.columns[:_MOST])}"


def _shaded(
    values: np.ndarray, top: float | None, width: int, most_each: int = 6
) -> tuple[list[str], str, float]:
    """Return lines of shades, what one shade stands for, and the number of the darkest one.

    A shade of a large matrix stands for the mean of a block of cells.
    """
    down, across = (
        max(1, -(-size // largest)) for size, largest in zip(values.shape, (_HIGH, width), strict=True)
    )
    few = block_means(values, down, across)
    largest = top if top is not None else max(float(np.abs(few).max(initial=0.0)), 1e-300)
    level = np.clip(np.ceil(np.abs(few) / largest * (len(_SHADES) - 1)), 0, len(_SHADES) - 1).astype(int)
    each = max(1, min(most_each, width // max(1, few.shape[1])))
    cell_words = "a cell" if down == across == 1 else f"a cell, in the mean over {down} x {across} cells"
    return ["".join(_SHADES[one] * each for one in row) for row in level], cell_words, largest


def _map_lines(regions: RegionMap, width: int) -> Iterator[str]:
    """Shade the cells of a grid, north first; of other regions, list those with the largest numbers."""
    if regions.grid is not None:
        shape = (len(regions.grid[1]) - 1, len(regions.grid[0]) - 1)
        values = regions.values if regions.ends[0] < 0 else np.maximum(regions.values, 0)
        lines, cell_words, top = _shaded(values.reshape(shape)[::-1], None, min(width - 4, 60), 2)
        yield "+" + "-" * len(lines[0]) + "+"
        yield from (f"|{line}|" for line in lines)
        yield "+" + "-" * len(lines[0]) + "+"
        yield f"north at the top; {_SHADES[-1]} stands for {shown(round(top, 3))} in {cell_words}"
        return
    wide = max(22, min(38, width - 42))
    for i in np.argsort(-np.abs(regions.values), kind="stable")[:_MOST]:
        share = abs(float(regions.values[i])) / max(regions.ends[1], 1e-300)
        bar, name = "█" * round(20 * min(share, 1)), shortened(regions.names(int(i)), wide)
        yield f"  {name:{wide}} {bar:20} {shown(float(regions.values[i]))}"


def draw_curve(
    x: Sequence[float],
    y: Sequence[float],
    *,
    xlabel: str,
    ylabel: str,
    mark: tuple[float, float] | None = None,
    width: int = 60,
    height: int = 14,
) -> str:
    """Draw positive points on two logarithmic axes; `mark` is drawn as ``X``.

    Examples
    --------
    >>> print(draw_curve([1, 10, 100], [100, 10, 1], xlabel="n", ylabel="error", width=21, height=3))
    error
        100 |*
            |          *
          1 |                    *
            +---------------------
             1                 100   n
    """
    lows, highs = (min(x), min(y)), (max(x), max(y))
    rows = [[" "] * width for _ in range(height)]

    def put(px: float, py: float, sign: str) -> None:
        across = _cell(px, lows[0], highs[0], width)
        up = _cell(py, lows[1], highs[1], height)
        rows[height - 1 - up][across] = sign

    for px, py in zip(x, y, strict=True):
        put(px, py, "*")
    if mark is not None and lows[0] <= mark[0] <= highs[0] and lows[1] <= mark[1] <= highs[1]:
        put(*mark, "X")
    top, bottom = f"{highs[1]:.3g}", f"{lows[1]:.3g}"
    labels = [top, *[""] * (height - 2), bottom]
    lines = [
        ylabel,
        *(f"{label:>7} |{''.join(row)}".rstrip() for label, row in zip(labels, rows, strict=True)),
    ]
    left, right = f"{lows[0]:.3g}", f"{highs[0]:.3g}"
    lines += ["        +" + "-" * width, "         " + left + right.rjust(width - len(left)) + "   " + xlabel]
    return "\n".join(lines)


def _cell(value: float, low: float, high: float, cells: int) -> int:
    """Return the number of the cell that holds a value on a logarithmic axis."""
    if low == high:
        return 0
    share = (math.log(value) - math.log(low)) / (math.log(high) - math.log(low))
    return min(cells - 1, max(0, round(share * (cells - 1))))
