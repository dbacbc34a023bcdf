"""The core's display of answers: the table of a release in a terminal and in a notebook, and its figures.

Each column is a figure with intervals over its groups; a histogram is one figure.
"""

from __future__ import annotations

import re
from datetime import datetime
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from tacit.core._display import fitted, in_html, rendered, shown_cell
from tacit.core._found_bounds import RARE_CUT
from tacit.core._shown_digits import HIDDEN, hidden_values
from tacit.core._tabular import NO_INTERVAL, lacking
from tacit.fixes import Choose
from tacit.report import short_percent
from tacit.show import (
    MOST_SERIES,
    Chart,
    ChartAxis,
    ChartSeries,
    Figure,
    Mark,
    chosen,
    days_of,
    numbers,
    visible,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.table import Table

    from tacit.core._answer_table import AnswerTable, Cells
    from tacit.core._found_bounds import FoundBounds


_LINES = 40
_COVERED = {"noise": "noise", "noise and sampling": "noise and for the chance in who was included"}
#: A long key is broken into lines, so that it does not push the values off the page.
_KEY_STYLE = "text-align:left;min-width:min(6em,18vw);max-width:24em;overflow-wrap:anywhere"
_NUMBER_STYLE = "white-space:nowrap;text-align:right"
_WIDE = 6  # columns of one line that stand side by side in a notebook


def _table(
    answer: AnswerTable, between: str = "  ", max_lines: int = _LINES
) -> tuple[list[str], list[list[str]]]:
    """Return the head and the first lines; ``between`` stands between a value and its interval."""
    found = answer.found if len(answer) > 1 else ()  # the caption of a single line has its bounds
    cut = [f"{one.of} cut to" for one in found]
    head = [visible(name) for name in (*answer.keys, *answer.columns, *cut)]
    lines = []
    keys = [answer.shown_keys(key) for key in answer.keys]
    for i in range(min(len(answer), max_lines)):
        line = [visible(values[i]) for values in keys]
        for name, cells in answer.columns.items():
            low, high = cells.low[i], cells.high[i]
            value_text, *ends = shown_cell(cells.value[i], low, high, whole=name in answer.counts)
            line.append(visible(value_text) + (f"{between}[{', '.join(ends)}]" if low is not None else ""))
        line += [visible(one.in_words(i)) for one in found]
        lines.append(line)
    return head, lines


def nothing_to_show(marks: tuple[str, ...]) -> str:
    """Say why there is no line: public groups are always shown, so these were selected privately."""
    if marks:
        text = "there is no line to show: none met the condition, or no group was large enough"
        return "; ".join([text, *marks])
    return (
        "no group was large enough to be shown; to see more, use coarser groups or a larger epsilon or "
        "delta, or declare the groups that are public (keys)"
    )


def caption_of(answer: AnswerTable, marks: tuple[str, ...] = ()) -> list[str]:
    """Say what the intervals cover, and of each column what it stands for and why it may have none."""
    if not len(answer):
        return [nothing_to_show(marks), *answer.left_out]
    without = [name for name, cells in answer.columns.items() if cells.lack_intervals]
    bounded = any(low is not None for cells in answer.columns.values() for low in cells.low)
    text = (
        f"value [low, high]; {short_percent(answer.confidence)} intervals for the {_COVERED[answer.covers]}; "
        "dropped rows and clipping are not included"
    )
    more = len(answer) - _LINES
    parts = [*([text] if bounded else []), *marks]
    parts += [f"{more} more lines"] if more > 0 else []
    return [
        *(["; ".join(parts)] if parts else []),
        *answer.left_out,
        *_cut_to_found_bounds(answer),
        *_hidden(answer),
        *_below_zero(answer),
        *_notes(answer, without),
    ]


def _cut_to_found_bounds(answer: AnswerTable) -> list[str]:
    """Say to which bounds values were cut that the plan found, and what no interval covers."""
    sentences = []
    for one in answer.found:
        names, lacking_range = ", ".join(one.columns), [i for i, end in enumerate(one.low) if end is None]
        if len(lacking_range) < len(one.low):
            ends = one.in_words(0) if len(one.low) == 1 else "the bounds of its line"
            sentences.append(
                f"{names}: values of {one.of} are cut to {ends} (bounds found privately): values "
                f"beyond count as the end of the range; {_true_value(one)}"
                f"{'' if one.cut is None else f'; {RARE_CUT}'}"
            )
        sentences += _at_least(answer, one)
        if lacking_range:
            rows = [one.rows[i] for i in lacking_range]
            about = f", among about {max(0, round(rows[0])):,} values" if len(rows) == 1 and rows[0] else ""
            lines = "" if len(one.low) == 1 else f" in {len(lacking_range):,} of {len(one.low):,} lines"
            sentences.append(
                f"{names}: no range found for {one.of}{lines}{about}; the cost stays; more rows, a larger "
                "epsilon or declared bounds would help; in a file, the values may be text: check the column, "
                "the decimal mark (--decimal) and the spelling of the groups"
            )
    return sentences


def _true_value(bounds: FoundBounds) -> str:
    """Say in plain words in which direction the cut can move a value: towards 0 where one end is 0."""
    if all(low in {None, 0} for low in bounds.low):
        return "large values were counted at the end of the range, so the true value may be higher"
    if all(high in {None, 0} for high in bounds.high):
        return (
            "values far below 0 were counted at the end of the range, so the true value may be further from 0"
        )
    return "values were counted at both ends of the range, so the true value may be lower or higher"


def _at_least(answer: AnswerTable, bounds: FoundBounds) -> list[str]:
    """Say the one-sided truth about values that are never below 0: a cut can only make a mean smaller."""
    if any(low not in {None, 0} for low in bounds.low):
        return []
    sure = f"({(1 + answer.confidence) * 50:g} %)"
    sentences = []
    for name in bounds.lowered:
        cells = answer.columns[name]
        least = "the lower end of its interval"
        if len(cells.low) == 1:
            _, least, *_ = (*shown_cell(cells.value[0], cells.low[0], cells.high[0]), "")
        if any(low is not None for low in cells.low):
            sentences.append(f"{name}: without the cut it is at least {least} {sure}; no value is below 0")
    return sentences


def _hidden(answer: AnswerTable) -> list[str]:
    """Explain a value that the noise hides, where there is one."""
    if not any(any(hidden_values(cells)) for cells in answer.columns.values()):
        return []
    spelling = "; a group that is not in the data looks like this too: check its spelling"
    words = f"{HIDDEN}: the number of rows behind the value may be noise alone; its interval holds"
    return [words + (spelling if answer.keys else "")]


def _below_zero(answer: AnswerTable) -> list[str]:
    """Explain a negative count, where there is one."""
    names = [
        name
        for name, cells in answer.columns.items()
        if name in answer.counts and any(isinstance(v, int | float) and v < 0 for v in cells.value)
    ]
    why = (
        "noise can push small counts below 0; if you set them to 0 before you add up, the total is too large"
    )
    return [f"{', '.join(names)} below 0: {why}"] if names else []


def _notes(answer: AnswerTable, without: list[str]) -> list[str]:
    bare = [name for name in without if answer.notes.get(name) == NO_INTERVAL]
    lines = [
        f"{name}: {answer.notes[name]}"
        for name in answer.columns
        if answer.notes.get(name, NO_INTERVAL) != NO_INTERVAL
    ]
    lines += [f"{NO_INTERVAL} for {', '.join(bare)}"] if bare else []
    values = {name: [v for v in answer.columns[name].value if v is not None] for name in without}
    without = [name for name in without if "no interval" not in answer.notes.get(name, "")]
    numbers = [name for name in without if all(isinstance(value, int | float) for value in values[name])]
    words = [name for name in without if name not in numbers]
    picked = [name for name in numbers if "picked from" in answer.notes.get(name, "")]
    numbers = [name for name in numbers if name not in picked]
    why = "the error depends on how close together the values lie, which is private"
    lines += [f"no interval for {', '.join(numbers)}: {why}"] if numbers else []
    best = "one candidate was picked, and how close the others came is private"
    lines += [f"no interval for {', '.join(picked)}: {best}"] if picked else []
    return lines + ([f"no interval for {', '.join(words)}: the values are not numbers"] if words else [])


def answer_text(answer: AnswerTable, marks: tuple[str, ...]) -> str:
    """Write an answer for the terminal: as a table, or where that is too wide, one cell below the other."""
    from rich.text import Text

    side_by_side, stacked = (_drawn(answer, between) for between in ("  ", "\n"))
    table = side_by_side if fitted(side_by_side) else stacked
    return rendered(table, *(Text(visible(line)) for line in caption_of(answer, marks)))


def _drawn(answer: AnswerTable, between: str) -> Table:
    from rich.table import Table
    from rich.text import Text

    head, lines = _table(answer, between)
    table = Table()
    for i, name in enumerate(head):
        is_key = i < len(answer.keys)
        side: Literal["left", "right"] = "left" if is_key else "right"
        table.add_column(Text(name), justify=side, no_wrap=not is_key, overflow="fold")
    for line in lines:
        table.add_row(*(Text(t) for t in line))
    return table


def answer_html(answer: AnswerTable, marks: tuple[str, ...]) -> str:
    """Write an answer for a notebook."""
    caption = "<br>".join(in_html(visible(line)) for line in caption_of(answer, marks))
    return f"{lines_html(answer)}<i>{caption}</i>"


def lines_html(answer: AnswerTable, max_lines: int = _LINES) -> str:
    """Write the first lines of an answer as a table of HTML."""
    head, lines = _table(answer, max_lines=max_lines)
    keys = len(answer.keys)
    if len(lines) == 1 and len(head) > _WIDE:  # such as a histogram: one cell below the other
        lines, head, keys = [list(pair) for pair in zip(head, lines[0], strict=True)], [], 1
    sides = ["left" if i < keys else "right" for i in range(max(len(head), 2))]
    top = "".join(
        f'<th style="text-align:{side}"><bdi>{in_html(name)}</bdi></th>'
        for name, side in zip(head, sides, strict=False)
    )
    styles = [_KEY_STYLE if i < keys else _NUMBER_STYLE for i in range(len(sides))]
    rows = (
        "".join(
            f'<td style="{style}"><bdi>{in_html(cell)}</bdi></td>'
            for cell, style in zip(line, styles, strict=False)
        )
        for line in lines
    )
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f"<table>{f'<tr>{top}</tr>' if top else ''}{body}</table>"


_MAX_GROUPS = 60  # groups in one figure: more cannot be told apart
_CELL = re.compile(r"(.+)\[[^\[\]]*[\])]")  # stay[0, 5)
_Places = list[tuple[str, str]]


def answer_figures(answer: AnswerTable, name_of_figure: str | None = None) -> tuple[Figure, ...]:
    """Return a figure for each column of numbers; the cells of a histogram are one figure."""
    names: dict[str, None] = {}
    for name, cells in answer.columns.items():
        if _is_drawn(cells):
            cell = _CELL.fullmatch(name)
            names[cell[1] if cell and len(_cells_of(answer, cell[1])) > 1 else name] = None
    if name_of_figure is not None and name_of_figure not in names:
        answer[name_of_figure]  # refuses a column that is not there
        raise lacking(name_of_figure, "numbers to draw", Choose(tuple(names), given=name_of_figure))
    return chosen(name_of_figure, {name: partial(_figure, answer, name) for name in names})


def interval_words(answer: AnswerTable, what: str = "bars") -> str:
    """Say what the intervals of a figure cover."""
    only = "noise only" if answer.covers == "noise" else answer.covers
    return f"{what}: {short_percent(answer.confidence)} interval for the {only}"


def placed_series(
    places: Sequence[tuple[str, str]], ends: Sequence[tuple[object, object, object]], mark: Mark = "points"
) -> tuple[tuple[str, ...], tuple[ChartSeries, ...]]:
    """Return names for an axis, and series of (value, low, high) on it that stand beside each other.

    Each place is a name and the name of its series.
    """
    names = tuple(dict.fromkeys(name for name, _ in places))
    return names, _series(places, ends, dict(zip(names, range(len(names)), strict=True)), 0.5, mark)


def _series(
    places: Sequence[tuple[str, str]],
    ends: Sequence[tuple[object, object, object]],
    at: dict[str, float],
    room: float,
    mark: Mark,
) -> tuple[ChartSeries, ...]:
    labels = list(dict.fromkeys(label for _, label in places))
    gap = room / len(labels) if labels else 0.0  # bars of two series stand side by side
    series = []
    for number, label in enumerate(labels):
        indices = [i for i, (_, one) in enumerate(places) if one == label]
        shift = gap * (number - (len(labels) - 1) / 2)
        value, low, high = (numbers(ends[i][end] for i in indices) for end in range(3))
        has_intervals = any(one is not None for one in (*low, *high))
        x = tuple(at[places[i][0]] + shift for i in indices)
        width = 0.8 if len(labels) == 1 else 1.6 * gap
        series.append(
            ChartSeries(
                mark,
                x,
                value,
                low if has_intervals else (),
                high if has_intervals else (),
                label,
                number,
                width=width,
            )
        )
    return tuple(series)


def _figure(answer: AnswerTable, name: str) -> Figure:
    """Return the figure of one column, or of one histogram."""
    points = _points(answer, name)
    by = f" by {', '.join(answer.keys)}" if answer.keys else ""
    return Figure(f"{name}{by}", (_chart(answer, name, *points),), _words(answer, name))


def _chart(
    answer: AnswerTable, name: str, places: _Places, ends: list[tuple[object, object, object]]
) -> Chart:
    if not places:
        return Chart((), ChartAxis(), ChartAxis(name), note=nothing_to_show(()))
    days = _days([place for place, _ in places])
    cells = _cells_of(answer, name)
    key, colours = _key_names(answer, places, histogram=bool(cells))
    if days is None:
        names, series = placed_series(places, ends)
        x = ChartAxis(key, names)
    else:
        shortest_gap = min(b - a for a, b in pairwise(sorted(set(days.values()))))
        series = _series(places, ends, days, 0.2 * shortest_gap, "joined")
        x = ChartAxis(key, kind="dates")
    lowest = min((low for one in series for low in (*one.y, *one.low) if low is not None), default=0.0)
    bottom = 0.0 if cells and lowest >= 0 else None  # the shape of a histogram is read from zero
    return Chart(series, x, ChartAxis(name, ends=(bottom, None)), legend=colours)


def _points(answer: AnswerTable, name: str) -> tuple[_Places, list[tuple[object, object, object]]]:
    """Return places and ends: of a column over its groups, or of the cells of a histogram."""
    cells = _cells_of(answer, name)
    if not cells:
        places = _places(answer)
        return places, list(_ends(answer.columns[name]))[: len(places)]
    labels = ["" if not answer.keys else _label(answer, i) for i in range(len(answer))][:MOST_SERIES]
    points = [((visible(cell.removeprefix(name)), label), ends) for cell in cells
             for label, ends in zip(labels, _ends(answer.columns[cell]), strict=False)]  # fmt: skip
    return [place for place, _ in points], [ends for _, ends in points]


def _ends(cells: Cells) -> Iterator[tuple[object, object, object]]:
    return zip(cells.value, cells.low, cells.high, strict=True)


def _places(answer: AnswerTable) -> _Places:
    """Say where each group stands, and in which series: of two keys, the one with fewer values colours."""
    labels = [(_label(answer, i), "") for i in range(len(answer))]
    if len(answer.keys) == 2:
        outer, inner = (answer.shown_keys(key) for key in answer.keys)
        if len(set(outer)) < len(set(inner)):
            outer, inner = inner, outer
        few = len(set(outer)) <= _MAX_GROUPS or _days(outer) is not None
        if few and 1 < len(set(inner)) <= MOST_SERIES:
            return [(visible(place), visible(series)) for place, series in zip(outer, inner, strict=True)]
    return labels if _days([place for place, _ in labels]) is not None else labels[:_MAX_GROUPS]


def _key_names(answer: AnswerTable, places: _Places, *, histogram: bool) -> tuple[str, str]:
    """Name the axis of the groups, and the key that colours the series."""
    keys = ", ".join(answer.keys)
    if histogram:
        return "", keys
    if len(answer.keys) == 2 and any(series for _, series in places):
        outer, inner = answer.keys
        below = inner if len(set(answer.keys[outer])) < len(set(answer.keys[inner])) else outer
        return below, outer if below == inner else inner
    return keys, ""


def _days(places: Sequence[str]) -> dict[str, float] | None:
    """Return days since 1970 where every group is a date (2026-03-01) or a time; two make no axis."""
    if len(places) < 3 or not all(re.match(r"\d{4}-\d\d-\d\d", place) for place in places):
        return None
    try:
        days = {place: days_of(datetime.fromisoformat(place).replace(tzinfo=None)) for place in places}
    except ValueError:
        return None
    return days if len(set(days.values())) > 1 else None


def _cells_of(answer: AnswerTable, name: str) -> list[str]:
    """Return the columns that are cells of a histogram of this name, in order."""
    if name in answer.columns:
        return []
    matches = [(column, _CELL.fullmatch(column)) for column in answer.columns]
    return [column for column, cell in matches if cell and cell[1] == name]


def _is_drawn(cells: Cells) -> bool:
    """Return whether a column has numbers, or intervals without values; figures skip missing values."""
    values = [value for value in cells.value if value is not None]
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in values):
        return False
    return bool(values) or not cells.value or any(low is not None for low in cells.low)


def _words(answer: AnswerTable, name: str) -> tuple[str, ...]:
    """Say what the column stands for, what the bars cover, and how many groups are drawn."""
    columns = _cells_of(answer, name) or [name]
    stands_for = answer.notes.get(columns[0], "")
    ends = [low for column in columns for low in answer[column].low]
    bars = interval_words(answer) if any(low is not None for low in ends) else "no interval"
    max_series = len(_places(answer)) if columns == [name] else MOST_SERIES
    more = [f"first {max_series} of {len(answer)} groups"] if len(answer) > max_series else []
    caption = "; ".join(part for part in (stands_for, bars if len(answer) else "", *more) if part)
    return (caption,) if caption else ()


def _label(answer: AnswerTable, i: int) -> str:
    if not answer.keys:
        return visible(next(iter(answer.columns)))
    return visible(" / ".join(answer.shown_keys(key)[i] for key in answer.keys))
