"""The chart of a release: its values with their intervals, one line per group, or days along an axis."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from tacit.core import AnswerTable
from tacit.service._chart_panels import Chart, ChartLine, days_panel, drawing, lines_panel
from tacit.service._scales import read_moment, shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tacit.service._svg import SvgElement

#: How many groups a chart draws.
MOST_MARKS: Final = 60
#: How many groups the table beside it lists; a page is for reading, and downloads have all of them.
MOST_ROWS: Final = 500
_ENDS: Final = ("value", "low", "high")


def intervals_chart(document: Mapping[str, Any]) -> Chart:
    """Draw the values of a release with their intervals: one line per group, days along an axis.

    Parameters
    ----------
    document
        A release of a table question: its content (``keys``, ``columns``, ``confidence``), or a document that
        has it under ``content``. Of a stream, the figures of each day are drawn.

    Examples
    --------
    >>> content = {"keys": {"ward": ["A", "B"]}, "confidence": 0.95,
    ...            "columns": {"n": {"value": [4, 9], "low": [1, 6], "high": [7, 12]}}}
    >>> intervals_chart(content).rows
    (('A', '4', '1', '7'), ('B', '9', '6', '12'))
    """
    content = document.get("content", document)
    content = content.get("tables", {}).get("day", content)
    keys, columns = content["keys"], _numeric_columns(content["columns"])
    sure = f"{100 * float(content['confidence']):g} %"
    title = f"{', '.join(columns) or 'No numbers'}, with {sure} intervals"
    named = AnswerTable(
        {name: tuple(values) for name, values in keys.items()}, {}, 0.5, totals=content.get("totals") is True
    )
    groups = list(zip(*(named.shown_keys(name) for name in keys), strict=True))
    days = _days(content, keys)
    most = MOST_MARKS if days else max(1, MOST_MARKS // max(1, len(columns)))
    panels, height = _panels(columns, [" · ".join(group) for group in groups] if keys else None, days, most)
    summary = f"A point is the released value; the line around it is the {sure} interval for the noise."
    if not columns:
        summary = "This release has no numbers to draw."
    elif len(groups) > most:
        part = f"the {'last' if days else 'first'} {most} of {len(groups)} groups"
        listed = "all of them" if len(groups) <= MOST_ROWS else f"{MOST_ROWS}, and the downloads have all"
        summary += f" The chart shows {part}; the table has {listed}."
    header = (*keys, *(head for name in columns for head in (name, f"{name}, low", f"{name}, high")))
    first = len(keys) or 1
    return Chart(
        drawing(title, f"{summary} {_range_words(columns)}".strip(), height, panels),
        title,
        summary,
        header if keys else ("column", *_ENDS),
        _table(groups, columns, last=bool(days)) if keys else _single_table(columns),
        tuple(range(first, first + 3 * (len(columns) if keys else 1))),
    )


def _panels(
    columns: Mapping[str, Mapping[str, Sequence[Any]]],
    labels: Sequence[str] | None,
    days: Sequence[float],
    most: int,
) -> tuple[list[SvgElement], float]:
    """Draw one panel for each column; without groups, a column is a single line with its name."""
    panels: list[SvgElement] = []
    top = 4.0
    for name, cells in columns.items():
        named = [name] if labels is None else labels
        lines = [ChartLine(*row) for row in zip(named, *_cells(cells), strict=True)]
        if days:
            drawn, used = days_panel(lines[-most:], days[-most:], name, top)
        else:
            heading = name if labels is not None and len(columns) > 1 else ""
            drawn, used = lines_panel(lines[:most], heading, top)
        panels.append(drawn)
        top += used
    return panels, top


def _numeric_columns(columns: Mapping[str, Any]) -> dict[str, Mapping[str, Sequence[Any]]]:
    """Return the columns whose values are numbers or missing."""
    return {
        str(name): cells
        for name, cells in columns.items()
        if all(one is None or _is_number(one) for one in cells["value"])
    }


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cells(
    cells: Mapping[str, Sequence[Any]],
) -> tuple[list[float | None], list[float | None], list[float | None]]:
    low, value, high = (
        [float(one) if _is_number(one) and math.isfinite(one) else None for one in cells[end]]
        for end in ("low", "value", "high")
    )
    return low, value, high


def _days(content: Mapping[str, Any], keys: Mapping[str, Sequence[Any]]) -> list[float]:
    """Return the moments of the groups where the only key is a date and no moment is missing."""
    dates = content.get("dates", ())
    if len(keys) != 1 or next(iter(keys)) not in dates:
        return []
    try:
        moments = [read_moment(value).timestamp() for value in next(iter(keys.values()))]
    except (TypeError, ValueError):
        return []
    return moments if len(moments) > 1 and moments == sorted(moments) else []


def _table(
    groups: Sequence[tuple[str, ...]], columns: Mapping[str, Mapping[str, Sequence[Any]]], *, last: bool
) -> tuple[tuple[str, ...], ...]:
    """Return the first groups, or the last ones, as rows."""
    start = max(0, len(groups) - MOST_ROWS) if last else 0
    return tuple(
        (*group, *(_cell(cells[end][place]) for cells in columns.values() for end in _ENDS))
        for place, group in enumerate(groups[start : start + MOST_ROWS], start)
    )


def _single_table(columns: Mapping[str, Mapping[str, Sequence[Any]]]) -> tuple[tuple[str, ...], ...]:
    return tuple((name, *(_cell(cells[end][0]) for end in _ENDS)) for name, cells in columns.items())


def _cell(value: object) -> str:
    return shown(float(value)) if isinstance(value, int | float) else "–"


def _range_words(columns: Mapping[str, Mapping[str, Sequence[Any]]]) -> str:
    """Say from where to where the values go, for whoever cannot see the chart."""
    words = []
    for name, cells in columns.items():
        known = [value for value in _cells(cells)[1] if value is not None]
        if known:
            words.append(f"{name} goes from {shown(min(known))} to {shown(max(known))}.")
    return " ".join(words)
