"""The parts of charts: a drawing with its words and table, lines with intervals, days along an axis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tacit.service._scales import Scale1D, days_scale, number_scale, short_number, with_zero
from tacit.service._svg import SvgElement, element

if TYPE_CHECKING:
    from collections.abc import Sequence

WIDTH: Final = 720.0
_LABELS: Final = 200.0
RIGHT: Final = 30.0
_ROW: Final = 24.0
_LETTERS: Final = 22
LINE_HEIGHT: Final = 250.0
_INK, _SOFT, _GRID, AXIS, ACCENT, _BAD = "#1c2427", "#566066", "#d9d6cd", "#7d868a", "#0b5f6b", "#a3241c"


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing with its words and its table; in a template, it writes itself as SVG.

    Attributes
    ----------
    drawing
        The SVG.
    title, summary
        What the chart shows, and one sentence with its main facts.
    header, rows, numeric
        The same facts as a table, and which of its columns hold numbers.
    """

    drawing: SvgElement
    title: str
    summary: str
    header: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    numeric: tuple[int, ...] = ()

    def __html__(self) -> str:
        """Let a template write the drawing as it is: it escapes by itself."""
        return str(self.drawing)

    def file(self) -> str:
        """Return the drawing as a file of its own, with its own colours."""
        return f'<?xml version="1.0" encoding="UTF-8"?>\n{self.drawing}\n'


@dataclass(frozen=True, slots=True)
class ChartLine:
    """One line of a chart of intervals: a label, an interval, a value in it, and a limit to compare with."""

    label: str
    low: float | None
    value: float | None
    high: float | None
    limit: float | None = None


def lines_panel(
    lines: Sequence[ChartLine],
    heading: str,
    top: float,
    *,
    scale: tuple[float, float] | None = None,
    percent: bool = False,
) -> tuple[SvgElement, float]:
    """Draw one line per group: its label, its interval and its value; return it and its height."""
    if not lines:
        return element("g"), 0.0
    ends = [e for line in lines for e in (line.low, line.value, line.high) if e is not None]
    x = number_scale(scale or with_zero(ends), _LABELS, WIDTH - RIGHT)
    start = top + (28.0 if heading else 6.0)
    bottom = start + _ROW * len(lines)
    parts = [_text(heading, _LABELS, top + 17, class_="c-text", font_weight=600)] if heading else []
    for tick in x.ticks():
        at = x.at(tick)
        parts.append(
            _rule(at, start, at, bottom, "c-axis" if tick == 0 else "c-grid", AXIS if tick == 0 else _GRID)
        )
        words = f"{100 * tick:g} %" if percent else short_number(tick)
        parts.append(_text(words, at, bottom + 18, text_anchor="middle", class_="c-soft", fill=_SOFT))
    for place, line in enumerate(lines):
        parts += _interval(line, x, start + _ROW * (place + 0.5))
    return element("g", *parts), bottom - top + 34


def _interval(line: ChartLine, x: Scale1D, y: float) -> list[SvgElement]:
    """Draw one value with its interval; an end that is open goes to the edge and has no bar across it."""
    parts = [_text(_short(line.label), _LABELS - 14, y + 4.5, text_anchor="end", class_="c-text")]
    if line.value is None and line.low is None:
        return [*parts, _text("no value", _LABELS + 8, y + 4.5, class_="c-soft", fill=_SOFT)]
    low = x.at(x.low if line.low is None else line.low)
    high = x.at(x.high if line.high is None else line.high)
    if line.low is not None or line.high is not None:
        parts.append(_rule(low, y, high, y, "c-line", ACCENT, 2))
    for end, at in ((line.low, low), (line.high, high)):
        if end is not None:
            parts.append(_rule(at, y - 5, at, y + 5, "c-line", ACCENT, 2))
    if line.limit is not None:
        at = x.at(line.limit)
        parts.append(_rule(at, y - 9, at, y + 9, "c-bad", _BAD, 2))
    if line.value is not None:  # the noise hides it
        parts.append(_dot(x.at(line.value), y))
    return parts


def days_panel(
    lines: Sequence[ChartLine], moments: Sequence[float], name: str, top: float
) -> tuple[SvgElement, float]:
    """Draw days along the axis: the values as a line, the intervals as upright lines."""
    ends = [e for line in lines for e in (line.low, line.value, line.high) if e is not None]
    x = days_scale(moments, 64.0, WIDTH - RIGHT)
    y = number_scale(with_zero(ends), top + LINE_HEIGHT - 34, top + 34)
    parts = [_text(name, 64.0, top + 17, class_="c-text", font_weight=600)]
    parts += [*horizontal_grid(y, 64.0), *vertical_labels(x, top + LINE_HEIGHT - 14)]
    drawn = [(x.at(at), line) for at, line in zip(moments, lines, strict=True)]
    known = [(at, line) for at, line in drawn if line.value is not None or line.low is not None]
    route = " ".join(f"{at:.1f},{y.at(line.value):.1f}" for at, line in known if line.value is not None)
    parts.append(
        element("polyline", points=route, class_="c-line", fill="none", stroke=ACCENT, stroke_opacity="0.45")
    )
    for at, line in known:
        low, high = (end if end is not None else far for end, far in ((line.low, y.low), (line.high, y.high)))
        if line.low is not None or line.high is not None:
            parts.append(_rule(at, y.at(low), at, y.at(high), "c-line", ACCENT, 2))
        if line.value is not None:  # the noise hides it
            parts.append(_dot(at, y.at(line.value), 3.4))
    return element("g", *parts), LINE_HEIGHT + 8


def horizontal_grid(y: Scale1D, left: float) -> list[SvgElement]:
    parts = []
    for tick in y.ticks():
        at = y.at(tick)
        kind, colour = ("c-axis", AXIS) if tick == 0 else ("c-grid", _GRID)
        parts.append(_rule(left, at, WIDTH - RIGHT, at, kind, colour))
        parts.append(
            _text(short_number(tick), left - 8, at + 4.5, text_anchor="end", class_="c-soft", fill=_SOFT)
        )
    return parts


def vertical_labels(x: Scale1D, y: float) -> list[SvgElement]:
    last = len(x.marks) - 1
    return [
        _text(
            words, x.at(at), y, class_="c-soft", fill=_SOFT,
            text_anchor="start" if not place else "end" if place == last else "middle",
        )
        for place, (at, words) in enumerate(x.marks)
    ]  # fmt: skip


def drawing(title: str, summary: str, height: float, parts: Sequence[SvgElement]) -> SvgElement:
    paper = element("rect", width=WIDTH, height=float(height), class_="c-paper", fill="#ffffff")
    return element(
        "svg", element("title", title), element("desc", summary), paper, *parts,
        xmlns="http://www.w3.org/2000/svg", viewbox=f"0 0 {WIDTH:g} {height:g}", role="img",
        font_family="system-ui, sans-serif", font_size=14,
    )  # fmt: skip


def _text(words: str, x: float, y: float, **attributes: object) -> SvgElement:
    return element("text", words, x=x, y=y, **({"fill": _INK} | attributes))


def _rule(x1: float, y1: float, x2: float, y2: float, kind: str, colour: str, width: float = 1) -> SvgElement:
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=kind, stroke=colour, stroke_width=width)


def _dot(x: float, y: float, radius: float = 4.5) -> SvgElement:
    return element(
        "circle", cx=x, cy=y, r=radius, class_="c-dot", fill=ACCENT, stroke="#ffffff", stroke_width=1.5
    )


def _short(label: str) -> str:
    return label if len(label) <= _LETTERS else f"{label[: _LETTERS - 1]}…"
