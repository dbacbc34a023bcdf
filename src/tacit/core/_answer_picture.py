"""An answer as a picture: one column with error bars over its groups, and a title that says what it shows."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING

from tacit.core._answer_display import nothing_to_show
from tacit.core._hidden import hidden_values
from tacit.core._safe_text import visible
from tacit.errors import TacitError
from tacit.fixes import Choose

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from tacit.core._answer_table import AnswerTable, Cells, Value
    from tacit.core._certificate import Certificate
    from tacit.picture import Picture

_MOST = 60  # groups in one picture: more cannot be told apart
_MOST_SERIES = 8  # colours that can be told apart
_LONG = 24  # letters of a group's label
_LETTERS = 13  # letters of the title in an inch
_COLOURS = ("#0b7285", "#c25e00", "#1b7f4b", "#b3261e", "#5f3dc4", "#555555", "#a61e4d", "#7a5c00")
_CELL = re.compile(r"(.+)\[[^\[\]]*[\])]")  # stay[0, 5)


@dataclass(frozen=True, slots=True)
class _Point:
    """One value with its interval: where it stands, and in which series."""

    place: str
    series: str
    value: float | None
    low: float | None
    high: float | None

    @property
    def middle(self) -> float:
        """Where the bar is drawn from: the value, or the middle of an interval whose value is hidden."""
        return ((self.low or 0.0) + (self.high or 0.0)) / 2 if self.value is None else self.value


def plots_of(answer: AnswerTable) -> list[str]:
    """List what can be drawn: columns of numbers, the cells of a histogram as one picture."""
    found: dict[str, None] = {}
    for name, cells in answer.columns.items():
        if _is_drawn(cells):
            cell = _CELL.fullmatch(name)
            found[cell[1] if cell and len(_cells_of(answer, cell[1])) > 1 else name] = None
    return list(found)


def figure_width(answer: AnswerTable) -> float:
    """Return a width in inches at which the labels of the groups can be read."""
    cells = max((len(_cells_of(answer, name)) for name in plots_of(answer)), default=1)
    places = [place for place, _ in _places(answer)]
    if _days(places) is not None:
        return 8.0
    return min(max(5.5, 0.6 * len(set(places)) * max(cells, 1)), 0.35 * _MOST)


def plot_answer(
    answer: AnswerTable, column: str | None, ax: Axes | None, certificate: Certificate
) -> Axes | Picture:
    """Draw one column, or one histogram, with error bars over its groups."""
    if ax is None:
        from tacit.picture import Picture

        picture = Picture(figure_width(answer), 3.8)
        plot_answer(answer, column, picture.subplots(), certificate)
        return picture
    axes, (name, points) = ax, _points(answer, column)
    letters = max(40, int(_LETTERS * axes.figure.bbox.width / axes.figure.dpi))
    said = (_about(answer, name, certificate), _covers(answer, name))
    title = "\n".join(textwrap.fill(visible(line), letters) for line in said)
    axes.set_title(_plain(title), fontsize=9, loc="left")
    axes.set_ylabel(_plain(visible(name)))
    axes.spines[["top", "right"]].set_visible(False)
    if not points:
        words = textwrap.fill(nothing_to_show(()), 50)
        axes.text(0.5, 0.5, _plain(words), ha="center", va="center", transform=axes.transAxes)
        axes.set(xticks=[], yticks=[])
    else:
        _draw(axes, points)
        axes.grid(axis="y", alpha=0.3)
        below = _below(answer, points)
        axes.set_xlabel(_plain(visible(below)))
        if legend := axes.get_legend():
            keys = ", ".join(key for key in answer.keys if key != below)
            legend.set_title(_plain(visible(keys)))
            legend.get_title().set_fontsize(8)
        if _cells_of(answer, name):  # the shape of a histogram is read from zero
            axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    return axes


def _points(answer: AnswerTable, column: str | None) -> tuple[str, list[_Point]]:
    """Return what is drawn, and its points: a column over its groups, or the cells of a histogram."""
    known = plots_of(answer)
    if column is None and not known:
        raise TacitError("bad-parameter", "the answer has no numbers to draw", fix="print it instead")
    name = known[0] if column is None else column
    cells = _cells_of(answer, name)
    if not cells:
        if not _is_drawn(answer[name], _MOST):
            raise TacitError(
                "bad-parameter", f"{name} has no numbers to draw", fix=Choose(tuple(known), given=name)
            )
        places = _places(answer)
        return name, _of(answer, name, places)
    labels = ["" if not answer.keys else _label(answer, i) for i in range(len(answer))]
    points = []
    for cell in cells:
        place = visible(cell.removeprefix(name))
        points += _of(answer, cell, [(place, label) for label in labels[:_MOST_SERIES]])
    return name, points


def _of(answer: AnswerTable, column: str, places: Sequence[tuple[str, str]]) -> list[_Point]:
    cells = answer[column]
    return [
        _Point(place, series, None if value is None else float(value), cells.low[i], cells.high[i])
        for i, ((place, series), value) in enumerate(zip(places, cells.value, strict=False))
        if isinstance(value, int | float) or (value is None and cells.low[i] is not None)
    ]


def _places(answer: AnswerTable) -> list[tuple[str, str]]:
    """Say where each group stands, and in which series: of two keys, the one with fewer values colours."""
    whole = [(_label(answer, i), "") for i in range(len(answer))]
    if len(answer.keys) == 2:
        first, second = (answer.shown_keys(key) for key in answer.keys)
        if len(set(first)) < len(set(second)):
            first, second = second, first
        few = len(set(first)) <= _MOST or _days(first) is not None
        if few and 1 < len(set(second)) <= _MOST_SERIES:
            return [(_cut(place), _cut(series)) for place, series in zip(first, second, strict=True)]
    return whole if _days([place for place, _ in whole]) is not None else whole[:_MOST]


def _draw(axes: Axes, points: list[_Point]) -> None:
    places = list(dict.fromkeys(point.place for point in points))
    series = list(dict.fromkeys(point.series for point in points))
    days = _days(places)
    at = dict(zip(places, range(len(places)) if days is None else days, strict=True))
    least = 1.0 if days is None else min(b - a for a, b in pairwise(sorted(days)))
    gap = least * (0.5 if days is None else 0.2) / len(series)  # bars of two series stand side by side
    for i, one in enumerate(series):
        own = [point for point in points if point.series == one]
        shift = gap * (i - (len(series) - 1) / 2)
        for fmt in ("o" if days is None else ".-", "none"):  # a value that the noise hides has only its bar
            part = [point for point in own if (point.value is None) == (fmt == "none")]
            if not part:
                continue
            axes.errorbar(
                [at[point.place] + shift for point in part],
                [point.middle for point in part],
                yerr=_bars(part),
                fmt=fmt,
                linewidth=None if days is None else 0.8,
                capsize=4 if len(own) <= _MOST else 0,
                color=_COLOURS[i % len(_COLOURS)],
                label=_plain(one) if fmt != "none" else None,
            )
    if days is None:
        _name_places(axes, places)
    else:
        _name_days(axes)
    if len(series) > 1:
        axes.legend(fontsize=8, frameon=False)


def _bars(points: list[_Point]) -> list[list[float]] | None:
    """Return how far the interval of each point reaches down and up; None where one has no interval."""
    ends = [(p.middle, p.low, p.high) for p in points]
    known = [(value - low, high - value) for value, low, high in ends if low is not None and high is not None]
    return [list(side) for side in zip(*known, strict=True)] if len(known) == len(ends) else None


def _name_places(axes: Axes, places: list[str]) -> None:
    slanted = len(places) > 4 or max(map(len, places)) > 12
    axes.set_xticks(
        range(len(places)),
        [_plain(place) for place in places],
        rotation=45 if slanted else 0,
        ha="right" if slanted else "center",
    )
    axes.set_xlim(-0.6, len(places) - 0.4)


def _name_days(axes: Axes) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator()  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]


def _days(places: Sequence[str]) -> list[float] | None:
    """Return days since 1970 where every group is a date (2026-03-01) or a time; two make no axis."""
    if len(places) < 3 or not all(re.match(r"\d{4}-\d\d-\d\d", place) for place in places):
        return None
    start = datetime(1970, 1, 1)  # noqa: DTZ001 - dates as they were released, without a zone
    try:
        moments = [datetime.fromisoformat(place).replace(tzinfo=None) for place in places]
    except ValueError:
        return None
    return [(moment - start).total_seconds() / 86_400 for moment in moments]


def _cells_of(answer: AnswerTable, name: str) -> list[str]:
    """Return the columns that are cells of a histogram of this name, in order."""
    if name in answer.columns:
        return []
    found = [(column, _CELL.fullmatch(column)) for column in answer.columns]
    return [column for column, cell in found if cell and cell[1] == name]


def _is_drawn(cells: Cells, most: int | None = None) -> bool:
    """Whether the first values of a column are numbers, or hidden ones that have an interval."""
    hidden = hidden_values(cells)
    return all(_is_number(one) or gone for one, gone in zip(cells.value[:most], hidden, strict=False))


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _about(answer: AnswerTable, name: str, certificate: Certificate) -> str:
    """Say which dataset, which column, by which keys, at which cost."""
    by = f" by {', '.join(answer.keys)}" if answer.keys else ""
    return about_release(f"{name}{by}", certificate)


def about_release(what: str, certificate: Certificate) -> str:
    """Return the line of a picture that says which dataset it shows, what of it, and what this cost."""
    promised = certificate.fields.get("promised")
    cost = (
        ", ".join(f"{key} {_short(str(value))}" for key, value in promised.items())
        if isinstance(promised, Mapping)
        else ""
    )
    return ", ".join(part for part in (f"{certificate.names}: {what}".strip(": "), cost) if part)


def _covers(answer: AnswerTable, name: str) -> str:
    columns = _cells_of(answer, name) or [name]
    stands_for = answer.notes.get(columns[0], "")
    only = "noise only" if answer.covers == "noise" else answer.covers
    interval = f"bars: {answer.confidence * 100:g} % interval for the {only}"
    bars = "no interval" if any(None in answer[column].low for column in columns) else interval
    most = len(_places(answer)) if columns == [name] else _MOST_SERIES
    more = [f"first {most} of {len(answer)} groups"] if len(answer) > most else []
    return "; ".join(part for part in (stands_for, bars if len(answer) else "", *more) if part)


def _below(answer: AnswerTable, points: list[_Point]) -> str:
    """Name the axis; the key that colours the series is named in the legend."""
    if len(answer.keys) == 2 and any(point.series for point in points):
        first, second = answer.keys
        return second if len(set(answer.keys[first])) < len(set(answer.keys[second])) else first
    return ", ".join(answer.keys) if not _CELL.fullmatch(f"x{points[0].place}") else ""


def _label(answer: AnswerTable, i: int) -> str:
    if not answer.keys:
        return visible(next(iter(answer.columns)))
    return _cut(" / ".join(answer.shown_keys(key)[i] for key in answer.keys))


def _cut(label: str) -> str:
    label = visible(label)
    return label if len(label) <= _LONG else label[: _LONG - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _short(exact: str) -> str:
    """Write an exact fraction in a few digits."""
    from fractions import Fraction

    return f"{float(Fraction(exact)):g}"


def _plain(text: str) -> str:
    """Keep names from being read as formulae."""
    return text.replace("$", r"\$")
