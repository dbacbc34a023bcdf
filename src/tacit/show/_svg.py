"""Figures as SVG: one column of panels, narrow enough for a phone, without styles or scripts.

Text and rules take the colour of the page around them (``currentColor``), and the colours of marks are
visible on white and on dark paper, so a drawing needs no stylesheet: not on a light page, not on a dark one
and not in print. A file has its own white paper. Elements are values, and every text and attribute is escaped
when it is written.
"""

from __future__ import annotations

import math
import re
import textwrap
import unicodedata
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tacit.show._figures import Chart, ChartSeries, Figure, Matrix, RegionMap, block_means, shortened
from tacit.show._safe_text import visible
from tacit.show._scales import Scale1D, are_between, colour, scale_of, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})
#: What XML does not allow, not even escaped: control characters, lone surrogates, two non-characters.
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9:-]*")


@dataclass(frozen=True, slots=True)
class SvgElement:
    """An element with its attributes and its children: other elements, or plain text.

    Guarantee: what is written contains no markup but the tags and attributes that code named. Text stays
    text, whatever it holds.

    Examples
    --------
    >>> str(element("text", "<script>", x=1, text_anchor="end"))
    '<text x="1" text-anchor="end">&lt;script&gt;</text>'
    """

    tag: str
    attributes: tuple[tuple[str, str], ...] = ()
    children: tuple[SvgElement | str, ...] = ()

    def __post_init__(self) -> None:
        for name in (self.tag, *(name for name, _ in self.attributes)):
            if not _NAME.fullmatch(name):
                raise ValueError("a tag or an attribute of SVG has letters, digits, hyphens and colons")

    def __str__(self) -> str:
        return "".join(self._parts())

    def __html__(self) -> str:
        """Let a template write the element as it is: it escapes by itself."""
        return str(self)

    def _parts(self) -> Iterator[str]:
        attributes = "".join(f' {name}="{_escaped(value)}"' for name, value in self.attributes)
        if not self.children:
            yield f"<{self.tag}{attributes}/>"
            return
        yield f"<{self.tag}{attributes}>"
        for child in self.children:
            if isinstance(child, SvgElement):
                yield from child._parts()  # noqa: SLF001 - the same class
            else:
                yield _escaped(child)
        yield f"</{self.tag}>"


def element(tag: str, *children: SvgElement | str, **attributes: object) -> SvgElement:
    """Return an element; ``text_anchor=`` becomes ``text-anchor``, ``class_=`` becomes ``class``.

    Attributes that are None are not written; numbers are written with at most two decimals.
    """
    pairs = (
        (name.rstrip("_").replace("_", "-"), _value(value))
        for name, value in attributes.items()
        if value is not None
    )
    return SvgElement(tag, tuple((("viewBox" if n == "viewbox" else n), v) for n, v in pairs), children)


def number(value: float) -> str:
    """Write a coordinate with at most two decimals.

    Examples
    --------
    >>> number(3.0), number(0.1234), number(-0.0001)
    ('3', '0.12', '0')
    """
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _value(value: object) -> str:
    return number(value) if isinstance(value, float) else str(value)


def _escaped(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text).translate(_ESCAPES)


WIDTH: Final = 440.0
_RIGHT: Final = 14.0
_LEFT: Final = 50.0
_SIZE, _SMALL = 13, 12
_PLOT: Final = 190.0  # height of a chart with two numeric axes
_ROW: Final = 24.0
_MOST_LABEL: Final = 165.0  # width of the names of rows
_LETTERS = 64  # of a line across the drawing
_MOST_CELLS: Final = 10_000  # of a matrix or a map
_MOST_JOINED: Final = 150  # points with an interval each; more are a line with a band
_Elements = list[SvgElement]


def figure_svg(figure: Figure, *, file: bool = False) -> SvgElement:
    """Return a figure as one SVG element, which scales with its page; with ``file``, as a file of its own."""
    parts, top = _lines(figure.title, figure.words)
    for panel in figure.panels:
        heading, used = _lines("", (), panel.title)
        parts += [_moved(one, top) for one in heading]
        match panel:
            case Chart():
                elements, height = _rows(panel) if _has_rows(panel) else _chart(panel)
            case Matrix():
                elements, height = _matrix(panel)
            case _:
                elements, height = _map(panel)
        parts.append(element("g", *elements, transform=f"translate(0 {number(top + used)})"))
        top += used + height + 10
    head = [element("title", visible(figure.title)), element("desc", visible(figure.alt))]
    paper: dict[str, object] = {}
    if file:
        paper = {"width": 2 * WIDTH * 0.75, "color": "#1c2427"}
        head.append(element("rect", width=WIDTH, height=top, fill="#ffffff"))
    return element(
        "svg", *head, *parts, xmlns="http://www.w3.org/2000/svg", viewbox=f"0 0 {WIDTH:g} {number(top)}",
        role="img", font_family="system-ui, sans-serif", font_size=_SIZE, fill="currentColor", **paper,
    )  # fmt: skip


def meter_svg(share: float, title: str, words: str) -> SvgElement:
    """Return a bar of which a share is full."""
    full = 199 * min(1.0, max(0.0, share))
    return element(
        "svg", element("title", visible(title)), element("desc", visible(words)),
        element("rect", x=0.5, y=0.5, width=199, height=7, fill="currentColor", fill_opacity="0.08",
                stroke="currentColor", stroke_opacity="0.5"),
        element("rect", x=0.5, y=0.5, width=full, height=7, fill=colour(0)),
        xmlns="http://www.w3.org/2000/svg", viewbox="0 0 200 8", role="img", preserveAspectRatio="none",
    )  # fmt: skip


# heads


def _lines(title: str, words: Sequence[str], panel: str = "") -> tuple[_Elements, float]:
    """Return the lines above a drawing, and how much room they take."""
    lines = [(line, 600) for line in textwrap.wrap(visible(title), _LETTERS - 4)]
    lines += [(line, 400) for text_line in words for line in textwrap.wrap(visible(text_line), _LETTERS)]
    for number_, text_line in enumerate(panel.splitlines()):
        weight = 600 if not number_ else 400
        lines += [(line, weight) for line in textwrap.wrap(visible(text_line), _LETTERS - 4)]
    parts = [
        _text(line, 2, 15 + 17 * place, size=_SIZE if weight == 600 else _SMALL, font_weight=weight)
        for place, (line, weight) in enumerate(lines)
    ]
    return parts, 17.0 * len(lines) + (8 if lines else 0)


def _legend(items: Sequence[tuple[int, str]], heading: str, top: float) -> tuple[_Elements, float]:
    """Return the names of the series beside their colours, in as many lines as they need."""
    if not items:
        return [], top
    parts, x = [], 2.0
    if heading:
        parts.append(_text(visible(heading), x, top + 12, soft=True))
        x += _width(visible(heading)) + 10
    for mark, words in items:
        words = shortened(visible(words), 44)
        if x + 16 + _width(words) > WIDTH - 4 and x > 2:
            x, top = 2.0, top + 17
        parts.append(element("rect", x=x, y=top + 4, width=9, height=9, rx=2, fill=colour(mark)))
        parts.append(_text(words, x + 13, top + 12.5))
        x += 27 + _width(words)
    return parts, top + 22


def _legend_of(chart: Chart, top: float) -> tuple[_Elements, float]:
    items = dict.fromkeys((one.colour, one.label) for one in chart.series if one.label)
    return _legend(list(items), chart.legend, top)


# charts with a row for each name


def _has_rows(chart: Chart) -> bool:
    """Whether each name has a row: lines and bands need places side by side."""
    return bool(chart.x.names) and not {one.mark for one in chart.series} & {"line", "steps"}


def _rows(chart: Chart) -> tuple[_Elements, float]:
    """Draw one row for each name, with its values and intervals from left to right."""
    parts, top = _legend_of(chart, 0.0)
    names = [shortened(visible(name), 26) for name in chart.x.names]
    left = min(_MOST_LABEL, max([_width(name) for name in names], default=0.0) + 12)
    zero = any(series.mark in {"bars", "points", "joined"} for series in chart.series)
    scale = scale_of(chart.y, _values(chart), left, WIDTH - _RIGHT, zero=zero)
    beside = max(_beside(chart, index) for index in range(len(names)))
    row = max(_ROW, 11.0 * beside)
    bottom = top + row * len(names)
    parts += _grid_down(scale, top, bottom)
    for index, name in enumerate(names):
        y = top + row * (index + 0.5)
        parts.append(_text(name, left - 8, y + 4.5, text_anchor="end"))
        if _is_empty(chart, index):
            parts.append(_text("no value", left + 6, y + 4.5, soft=True))
    for series in chart.series:
        parts += _row_marks(series, scale, lambda x: top + row * (x + 0.5), (top, bottom, row))
    if chart.note:
        parts.append(_text(visible(chart.note), left + 6, bottom - 4, soft=True))
    axis_name = [_text(visible(chart.y.name), (left + WIDTH - _RIGHT) / 2, bottom + 34, text_anchor="middle",
                   soft=True)] if chart.y.name else []  # fmt: skip
    return [*parts, *axis_name], bottom + (42 if chart.y.name else 26)


def _is_empty(chart: Chart, index: int) -> bool:
    """Whether a name has neither a value nor an interval."""
    parts = [(one.y, one.low, one.high) for one in chart.series if one.mark not in {"across", "upright"}]
    xs = [one.x for one in chart.series if one.mark not in {"across", "upright"}]
    return bool(parts) and not any(
        ends[i] is not None
        for x, kinds in zip(xs, parts, strict=True)
        for ends in kinds
        if ends
        for i, at in enumerate(x)
        if round(at) == index
    )


def _beside(chart: Chart, index: int) -> int:
    """Count the series that stand beside each other in one row."""
    return len({x for one in chart.series for x in one.x if one.mark != "upright" and round(x) == index})


def _row_marks(
    series: ChartSeries, scale: Scale1D, y_of: Any, frame: tuple[float, float, float]
) -> _Elements:
    top, bottom, row = frame
    tone, parts = colour(series.colour), []
    if series.mark == "across":
        at = scale.at(float(series.y[0] or 0))
        return [_rule(at, top, at, bottom, tone, dashed=series.dashed, width=1.5)]
    for i, x in enumerate(series.x):
        y, value = y_of(x), series.y[i]
        if value is None:  # the noise may hide a value that has an interval
            parts += _whisker(series, i, scale, y, tone)
            continue
        at = scale.at(value)
        if series.mark == "bars":
            start = scale.at(series.base[i] if series.base else 0.0)
            high = min(row * series.width * 0.8, 16.0)
            box = (
                {"fill": "none", "stroke": tone, "stroke_dasharray": "4 3"}
                if series.dashed
                else {"fill": tone}
            )
            parts.append(element("rect", x=min(start, at), y=y - high / 2, width=abs(at - start), height=high,
                                 fill_opacity="0.75", **box))  # fmt: skip
        parts += _whisker(series, i, scale, y, "currentColor" if series.mark == "bars" else tone)
        if series.mark == "bounds":
            parts.append(_rule(at, y - 8, at, y + 8, tone, width=2))
        elif series.mark != "bars":
            parts.append(_dot(at, y, tone))
    return parts


def _whisker(series: ChartSeries, i: int, scale: Scale1D, y: float, tone: str) -> _Elements:
    """Draw the interval of a value in a row; an open end goes to the edge and has no bar across it."""
    low, high = (ends[i] if ends else None for ends in (series.low, series.high))
    if low is None and high is None:
        return []
    left, right = scale.at(scale.low if low is None else low), scale.at(scale.high if high is None else high)
    parts = [_rule(left, y, right, y, tone, width=1.8)]
    closed = [at for end, at in ((low, left), (high, right)) if end is not None]
    return parts + [_rule(at, y - 4, at, y + 4, tone, width=1.8) for at in closed]


# charts with two axes


def _chart(chart: Chart) -> tuple[_Elements, float]:
    """Draw numbers over numbers, days or names from left to right."""
    parts, top = _legend_of(chart, 0.0)
    if chart.y.name:
        parts.append(_text(visible(chart.y.name), 2, top + 12, soft=True))
        top += 25
    bottom = top + _PLOT
    xs = [float(x) for series in chart.series for x in series.x]
    if chart.x.names:
        x = Scale1D(-0.6, len(chart.x.names) - 0.4, _LEFT, WIDTH - _RIGHT, tuple(enumerate(chart.x.names)))
    else:
        x = _across(chart, xs)
    y = scale_of(chart.y, _values(chart), bottom, top, zero=True)
    parts += _grid_across(y)
    for series in chart.series:
        parts += _marks(series, x, y)
    if chart.note:
        lines = [line for series in chart.note.splitlines() for line in textwrap.wrap(series, 50)]
        parts += [_text(visible(line), _LEFT + 10, top + 16 + 16 * i) for i, line in enumerate(lines)]
    below, used = _names_below(x, bottom)
    parts += below
    if chart.x.name:
        middle = (_LEFT + WIDTH - _RIGHT) / 2
        parts.append(
            _text(visible(chart.x.name), middle, bottom + used + 13, text_anchor="middle", soft=True)
        )
        used += 18
    return parts, bottom + used


def _across(chart: Chart, xs: list[float]) -> Scale1D:
    """Return the axis of numbers or days: as long as the values need, with room for points and bars."""
    if chart.x.kind not in {"numbers", "dates"} or chart.x.ends != (None, None) or not xs:
        return scale_of(chart.x, xs, _LEFT + 4, WIDTH - _RIGHT)
    marks = {one.mark for one in chart.series if len(one.x)}
    room = 0.5 if "bars" in marks else 0.03 * (max(xs) - min(xs)) if marks & {"points", "joined"} else 0.0
    room = room if min(xs) + room < max(xs) + room else 0.5
    low, high = min(xs) - room, max(xs) + room
    ticks = scale_of(chart.x, [math.ceil(x) for x in xs] if are_between(xs) else xs, 0, 1).ticks
    return Scale1D(low, high, _LEFT + 4, WIDTH - _RIGHT, tuple(one for one in ticks if low <= one[0] <= high))


def _values(chart: Chart) -> list[float]:
    """Return all values and ends that the value axis must show."""
    parts = (part for one in chart.series if one.mark != "upright" for part in (one.y, one.low, one.high))
    numbers = [float(value) for part in parts for value in part if value is not None]
    bars = [one for one in chart.series if one.mark == "bars"]
    return [*numbers, *(start for one in bars for start in (one.base or (0.0,)))]


def _names_below(x: Scale1D, bottom: float) -> tuple[_Elements, float]:
    """Write the ticks below a chart: level where they fit, slanted where they do not."""
    ticks = [(x.at(at), shortened(visible(words), 16)) for at, words in x.ticks]
    every = max(1, math.ceil(len(ticks) / 24))
    ticks = ticks[::every]
    width = max((_width(words) for _, words in ticks), default=0.0)
    nearest = min((abs(b - a) for (a, _), (b, _) in pairwise(ticks)), default=WIDTH)
    if width + 6 <= nearest:
        parts = [_text(words, _inside(at, _width(words)), bottom + 17, text_anchor="middle", soft=True)
                 for at, words in ticks]  # fmt: skip
        return parts, 22.0
    if any(not words.replace(",", "").replace(".", "").strip("-%MB ").isdigit() for _, words in ticks):
        parts = [
            _text(words, at + 3, bottom + 14, text_anchor="end", soft=True,
                  transform=f"rotate(-35 {number(at + 3)} {number(bottom + 14)})")
            for at, words in ticks
        ]  # fmt: skip
        return parts, 16 + 0.6 * width
    few = ticks[:: math.ceil((width + 8) / max(nearest, 1e-9))]
    return [_text(words, _inside(at, _width(words)), bottom + 17, text_anchor="middle", soft=True)
            for at, words in few], 22.0  # fmt: skip


def _inside(at: float, width: float) -> float:
    return min(max(at, width / 2 + 2), WIDTH - width / 2 - 2)


def _marks(series: ChartSeries, x: Scale1D, y: Scale1D) -> _Elements:
    tone = colour(series.colour)
    if series.mark == "across":
        at = y.at(float(series.y[0] or 0))
        return [_rule(x.start, at, x.end, at, tone, dashed=series.dashed, width=1.5)]
    if series.mark == "upright":
        at = x.at(series.x[0])
        return [_rule(at, y.start, at, y.end, tone, dashed=series.dashed, width=1.5)]
    if series.mark in {"line", "steps"} or (series.mark == "joined" and len(series.x) > _MOST_JOINED):
        return _line(series, x, y, tone)
    parts: _Elements = []
    if series.mark == "joined":
        points = [
            (x.at(at), y.at(value)) for at, value in zip(series.x, series.y, strict=True) if value is not None
        ]
        route = " ".join(f"{number(at)},{number(place)}" for at, place in points)
        parts.append(element("polyline", points=route, fill="none", stroke=tone, stroke_opacity="0.5"))
    for i in range(len(series.x)):
        parts += _mark(series, i, x, y)
    return parts


def _mark(series: ChartSeries, i: int, x: Scale1D, y: Scale1D) -> _Elements:
    """Draw one value with its interval; a value that the noise hides has its interval only."""
    at, value, tone = x.at(series.x[i]), series.y[i], colour(series.colour)
    low, high = (ends[i] if ends else None for ends in (series.low, series.high))
    parts: _Elements = []
    if low is not None or high is not None:
        ends = (y.at(y.low if low is None else low), y.at(y.high if high is None else high))
        parts.append(_rule(at, ends[0], at, ends[1], tone, width=1.6))
    if value is None:
        return parts
    height = y.at(value)
    if series.mark == "bars":
        start = y.at(series.base[i] if series.base else 0.0)
        half = series.width / 2 * (x.end - x.start) / (x.high - x.low)
        left, right = max(at - half, x.start), min(at + half, x.end)
        bar = element("rect", x=left, y=min(start, height), width=right - left, height=abs(height - start),
                      fill=tone, fill_opacity="0.75")  # fmt: skip
        return [bar, *parts]
    if series.mark == "bounds":
        return [*parts, _rule(at - 7, height, at + 7, height, tone, width=2)]
    radius = 3.4 if len(series.x) <= 80 else 2.2 if len(series.x) <= 400 else 1.4
    return [*parts, _dot(at, height, tone, radius)]


def _line(series: ChartSeries, x: Scale1D, y: Scale1D, tone: str) -> _Elements:
    """Draw a line or steps with the band of the intervals; a gap stays where a value is missing."""
    parts: _Elements = []
    if series.low and series.high:
        for run in _runs(series, (series.low, series.high)):
            above = [(at, y.at(float(series.high[i] or 0))) for at, i in run]
            below = [(at, y.at(float(series.low[i] or 0))) for at, i in run]
            route = _route([(x.at(at), place) for at, place in (*above, *below[::-1])])
            parts.append(element("path", d=f"{route}Z", fill=tone, fill_opacity="0.2"))
    for run in _runs(series, (series.y,)):
        route = _route([(x.at(at), y.at(float(series.y[i] or 0))) for at, i in run])
        dashes = "5 4" if series.dashed else None
        parts.append(element("path", d=route, fill="none", stroke=tone, stroke_width=1.8,
                             stroke_dasharray=dashes, stroke_linejoin="round"))  # fmt: skip
    return parts


def _runs(series: ChartSeries, needed: Sequence[Sequence[float | None]]) -> list[list[tuple[float, int]]]:
    """Return places with the number of their value, in runs without a gap; a step has both its edges."""
    runs: list[list[tuple[float, int]]] = [[]]
    for i in range(len(series.y)):
        if any(values[i] is None for values in needed):
            runs.append([])
        elif series.mark == "steps":
            runs[-1] += [(float(series.x[i]), i), (float(series.x[i + 1]), i)]
        else:
            runs[-1].append((float(series.x[i]), i))
    return [run for run in runs if run]


def _route(corners: Iterable[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{number(a)} {number(b)}" for a, b in corners)


def _grid_across(y: Scale1D) -> _Elements:
    parts = []
    for value, words in y.ticks:
        at = y.at(value)
        parts.append(_rule(_LEFT, at, WIDTH - _RIGHT, at, "currentColor", faint=value != 0))
        parts.append(_text(words, _LEFT - 6, at + 4.5, text_anchor="end", soft=True))
    return [*parts, _rule(_LEFT, y.start, WIDTH - _RIGHT, y.start, "currentColor")]


def _grid_down(x: Scale1D, top: float, bottom: float) -> _Elements:
    parts = []
    width = max((_width(words) + 8 for _, words in x.ticks), default=1.0)
    every = max(1, math.ceil(len(x.ticks) * width / (x.end - x.start)))
    zero = next((i for i, (value, _) in enumerate(x.ticks) if value == 0), 0)
    for index, (value, words) in enumerate(x.ticks):
        at = x.at(value)
        parts.append(_rule(at, top, at, bottom, "currentColor", faint=value != 0))
        if (index - zero) % every == 0:
            parts.append(
                _text(words, _inside(at, _width(words)), bottom + 16, text_anchor="middle", soft=True)
            )
    return parts


# matrices and maps


def _matrix(matrix: Matrix) -> tuple[_Elements, float]:
    """Draw cells in colours, with their words where there is room."""
    down, across = matrix.values.shape
    rows, columns = ([shortened(visible(name), 18) for name in names] for names in
                     (matrix.rows, matrix.columns))  # fmt: skip
    left = min(_MOST_LABEL, max(map(_width, rows)) + 12) if rows else 2.0
    high = _cell_height(matrix, (WIDTH - _RIGHT - left) / max(across, 1))
    parts, top = _matrix_head(matrix)
    x, y = np.linspace(left, WIDTH - _RIGHT, across + 1), top + high * np.arange(down + 1)
    parts += _cells(_strengths(matrix.values, matrix.top), x, y)
    if matrix.unclear is not None:
        parts += _hatched(matrix.unclear, x, y)
    parts += _cell_words(matrix, x, y, high)
    some = max(1, math.ceil(17 / high))
    parts += [_text(name, left - 8, (y[i] + y[i + 1]) / 2 + 4.5, text_anchor="end")
              for i, name in enumerate(rows) if i % some == 0]  # fmt: skip
    for index, (_, spots) in enumerate(matrix.spots):
        parts += [_spot((x[c] + x[c + 1]) / 2, (y[r] + y[r + 1]) / 2, index) for r, c in spots]
    names = Scale1D(-0.5, across - 0.5, left, WIDTH - _RIGHT, tuple(enumerate(columns)))
    below, used = _names_below(names, float(y[-1])) if columns else ([], 4.0)
    items = [(_SPOTS[i], label) for i, (label, _) in enumerate(matrix.spots)]
    legend, end = _legend(items, "", float(y[-1]) + used)
    return [*parts, *below, *legend], end


def _cell_height(matrix: Matrix, side: float) -> float:
    """Return how high a cell is: room for its words, and square in an image."""
    if not matrix.rows:
        return min(max(side, 0.5), 60.0)
    return 34.0 if any("\n" in word for row in matrix.words for word in row) else min(max(side, 17.0), 34.0)


def _matrix_head(matrix: Matrix) -> tuple[_Elements, float]:
    """Say what the numbers, the rows and the columns are."""
    across = f"{matrix.column_name} (across)" if matrix.column_name else ""
    lines = [matrix.label, " by ".join(part for part in (matrix.row_name, across) if part)]
    lines = [visible(line) for line in lines if line]
    return [_text(line, 2, 12 + 17 * i, soft=True) for i, line in enumerate(lines)], 17.0 * len(lines) + 3


_SPOTS: Final = (1, 4)


def _spot(x: float, y: float, index: int) -> SvgElement:
    tone = colour(_SPOTS[index])
    if not index:
        return element("circle", cx=x, cy=y, r=1.8, fill=tone)
    return element("circle", cx=x, cy=y, r=5.0, fill="none", stroke=tone, stroke_width=1.4)


def _strengths(values: Any, top: float | None) -> Any:
    """Return numbers from -1 to 1: the share of the largest one; what is missing is 0."""
    finite = np.nan_to_num(np.asarray(values, np.float64))
    largest = top if top is not None else float(np.abs(finite).max(initial=0.0))
    return np.clip(finite / max(largest, 1e-300), -1, 1)


def _coarser(values: Any, x: Any, y: Any) -> tuple[Any, Any, Any]:
    """Return a large matrix with the means of blocks of cells, and the edges of the blocks."""
    step = math.ceil(math.sqrt(values.size / _MOST_CELLS))
    if step <= 1:
        return values, x, y
    return block_means(values, step, step), np.append(x[:-1:step], x[-1]), np.append(y[:-1:step], y[-1])


def _cells(strength: Any, x: Any, y: Any) -> _Elements:
    """Draw cells as rectangles; neighbours with the same colour are one rectangle."""
    strength, x, y = _coarser(strength, x, y)
    level = np.rint(strength * 40).astype(int)
    parts = []
    for i, row in enumerate(level):
        starts = [0, *(int(at) + 1 for at in np.flatnonzero(row[1:] != row[:-1])), len(row)]
        for a, b in pairwise(starts):
            if row[a]:
                parts.append(element(
                    "rect", x=float(x[a]), y=float(min(y[i], y[i + 1])), width=float(x[b] - x[a]),
                    height=float(abs(y[i + 1] - y[i])), fill=colour(0 if row[a] > 0 else 1),
                    fill_opacity=f"{abs(row[a]) / 40:.3g}",
                ))  # fmt: skip
    frame = element("rect", x=float(x[0]), y=float(min(y[0], y[-1])), width=float(x[-1] - x[0]),
                    height=float(abs(y[-1] - y[0])), fill="none", stroke="currentColor",
                    stroke_opacity="0.3")  # fmt: skip
    return [*parts, frame]


def _hatched(unclear: Any, x: Any, y: Any) -> _Elements:
    """Draw slanted lines over two corners of each cell whose number may be noise alone."""
    if unclear.size > _MOST_CELLS or not unclear.any():
        return []
    corner = 0.4 * min(abs(float(x[1] - x[0])), abs(float(y[1] - y[0])))
    lines = []
    for i, j in np.argwhere(unclear):
        left, right = float(x[j]), float(x[j + 1])
        upper, lower = sorted((float(y[i]), float(y[i + 1])))
        lines.append(_route([(left, upper + corner), (left + corner, upper)]))
        lines.append(_route([(right - corner, lower), (right, lower - corner)]))
    return [element("path", d="".join(lines), stroke="currentColor", stroke_opacity="0.35", fill="none")]


def _cell_words(matrix: Matrix, x: Any, y: Any, high: float) -> _Elements:
    rows = [[word.split("\n") for word in row] for row in matrix.written]
    words = [word for row in rows for word in row]
    widest = max((_width(line, 11) for word in words for line in word), default=math.inf)
    if widest + 4 > x[1] - x[0] or high < 13 * max(map(len, words)):
        return []
    parts = []
    for i, row in enumerate(rows):
        for j, cell in enumerate(row):
            start = (y[i] + y[i + 1]) / 2 + 4 - 6.5 * (len(cell) - 1)
            parts += [_text(visible(line), (x[j] + x[j + 1]) / 2, start + 13 * place, size=11,
                            text_anchor="middle") for place, line in enumerate(cell)]  # fmt: skip
    return parts


def _map(regions: RegionMap) -> tuple[_Elements, float]:
    """Draw regions in colours; north is at the top, and a degree of latitude is as long as it is there."""
    west, south, east, north = regions.box
    ratio = 1 / max(math.cos(math.radians((south + north) / 2)), 0.05)
    unit = min((WIDTH - 4) / max(east - west, 1e-9), 420 / max((north - south) * ratio, 1e-9))
    strength = np.clip(regions.values / max(regions.ends[1], 1e-300), -1 if regions.ends[0] < 0 else 0, 1)
    parts: _Elements = []
    top = 24.0

    def x_of(lon: Any) -> Any:
        return 2 + (lon - west) * unit

    def y_of(lat: Any) -> Any:
        return top + (north - lat) * unit * ratio

    if regions.grid is not None:
        lon, lat = regions.grid
        shape = (len(lat) - 1, len(lon) - 1)
        x, y = x_of(np.asarray(lon)), y_of(np.asarray(lat))
        parts += [*_cells(strength.reshape(shape), x, y), *_hatched(regions.unclear.reshape(shape), x, y)]
    elif len(regions.shapes) <= _MOST_CELLS // 2:
        parts += _outlines(regions, strength, x_of, y_of)
    else:
        parts.append(
            _text(f"{len(regions.shapes):,} regions are too many to draw here", 8, top + 16, soft=True)
        )
    low = shown(regions.ends[0]) if regions.ends[0] < 0 else "0"
    key = [_text(f"{visible(regions.label)}: {low}", 2, 12, soft=True)]
    start = 8 + _width(f"{regions.label}: {low}")
    for step in range(8):
        share = -1 + 2 * step / 7 if regions.ends[0] < 0 else (step + 1) / 8
        key.append(element("rect", x=start + 9 * step, y=3, width=9, height=10,
                           fill=colour(0 if share > 0 else 1), fill_opacity=f"{abs(share):.3g}"))  # fmt: skip
    key.append(_text(shown(regions.ends[1]), start + 76, 12, soft=True))
    return [*key, *parts], top + (north - south) * unit * ratio + 4


def _outlines(regions: RegionMap, strength: Any, x_of: Any, y_of: Any) -> _Elements:
    """Draw each region as a path, and a slanted line over the middle of those that are unclear."""
    parts, hatches = [], []
    for i, rings in enumerate(regions.shapes):
        routes = [[(float(x_of(lon)), float(y_of(lat))) for lon, lat in ring] for ring in rings]
        parts.append(element(
            "path", element("title", f"{visible(regions.names(i))}: {shown(float(regions.values[i]))}"),
            d="".join(f"{_route(route)}Z" for route in routes), fill=colour(0 if strength[i] >= 0 else 1),
            fill_opacity=f"{abs(float(strength[i])):.3g}", stroke="currentColor", stroke_opacity="0.3",
            stroke_width="0.6", fill_rule="evenodd",
        ))  # fmt: skip
        if regions.unclear[i]:
            x, y = np.array(routes[0]).T
            reach = min(float(np.ptp(x)), float(np.ptp(y))) / 4
            middle = (float(x.min() + x.max()) / 2, float(y.min() + y.max()) / 2)
            hatches.append(
                _route([(middle[0] - reach, middle[1] + reach), (middle[0] + reach, middle[1] - reach)])
            )
    if hatches:
        hatch = {"stroke": "currentColor", "stroke_opacity": "0.35", "fill": "none"}
        parts.append(element("path", d="".join(hatches), **hatch))
    return parts


# marks


def _text(
    words: str, x: float, y: float, *, size: int = _SMALL, soft: bool = False, **more: Any
) -> SvgElement:
    return element("text", words, x=float(x), y=float(y), font_size=size,
                   fill_opacity="0.75" if soft else None, **more)  # fmt: skip


def _rule(x1: float, y1: float, x2: float, y2: float, tone: str, *, width: float = 1, dashed: bool = False,
          faint: bool = False) -> SvgElement:  # fmt: skip
    strong = tone != "currentColor"
    return element(
        "line", x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2), stroke=tone, stroke_width=width,
        stroke_opacity=None if strong else "0.14" if faint else "0.5",
        stroke_dasharray="5 4" if dashed else None,
    )  # fmt: skip


def _dot(x: float, y: float, tone: str, radius: float = 4.2) -> SvgElement:
    return element("circle", cx=float(x), cy=float(y), r=radius, fill=tone)


def _moved(one: SvgElement, down: float) -> SvgElement:
    return element("g", one, transform=f"translate(0 {number(down)})")


def _width(words: str, size: int = _SMALL) -> float:
    """Return about how wide a text is; letters of East Asia are twice as wide."""
    return size * sum(1.0 if unicodedata.east_asian_width(char) in "WF" else 0.56 for char in words)
