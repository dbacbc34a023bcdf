"""The core's display of answers: the table of a release in a terminal and in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from tacit.core._display import fitted, in_html, rendered, shown_cell
from tacit.core._hidden import HIDDEN, hidden_values
from tacit.show import visible

if TYPE_CHECKING:
    from rich.table import Table

    from tacit.core._answer_table import AnswerTable

_LINES = 40
_COVERED = {"noise": "noise", "noise and sampling": "noise and for the chance in who was included"}
#: A long key is broken into lines, so that it does not push the values off the page.
_KEY_STYLE = "text-align:left;min-width:6em;max-width:24em;overflow-wrap:anywhere"
_NUMBER_STYLE = "white-space:nowrap;text-align:right"
_WIDE = 6  # columns of one line that stand side by side in a notebook


def _table(answer: AnswerTable, between: str = "  ", most: int = _LINES) -> tuple[list[str], list[list[str]]]:
    """Return the head and the first lines; ``between`` stands between a value and its interval."""
    head = [visible(name) for name in (*answer.keys, *answer.columns)]
    lines = []
    keys = [answer.shown_keys(key) for key in answer.keys]
    for i in range(min(len(answer), most)):
        line = [visible(values[i]) for values in keys]
        for name, cells in answer.columns.items():
            low, high = cells.low[i], cells.high[i]
            said, *ends = shown_cell(cells.value[i], low, high, whole=name in answer.counts)
            line.append(visible(said) + (f"{between}[{', '.join(ends)}]" if low is not None else ""))
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
        f"value [low, high]; {answer.confidence * 100:g} % intervals for the {_COVERED[answer.covers]}; "
        "dropped rows and clipping are not included"
    )
    more = len(answer) - _LINES
    parts = [*([text] if bounded else []), *marks]
    parts += [f"{more} more lines"] if more > 0 else []
    return [
        *(["; ".join(parts)] if parts else []),
        *answer.left_out,
        *_hidden(answer),
        *_below_zero(answer),
        *_notes(answer, without),
    ]


def _hidden(answer: AnswerTable) -> list[str]:
    """Explain a value that the noise hides, where there is one."""
    if not any(any(hidden_values(cells)) for cells in answer.columns.values()):
        return []
    return [f"{HIDDEN}: the number of rows behind the value may be noise alone; its interval holds"]


def _below_zero(answer: AnswerTable) -> list[str]:
    """Explain a negative count, where there is one."""
    found = [
        name
        for name, cells in answer.columns.items()
        if name in answer.counts and any(isinstance(v, int | float) and v < 0 for v in cells.value)
    ]
    why = (
        "noise can push small counts below 0; if you set them to 0 before you add up, the total is too large"
    )
    return [f"{', '.join(found)} below 0: {why}"] if found else []


def _notes(answer: AnswerTable, without: list[str]) -> list[str]:
    lines = [f"{name}: {answer.notes[name]}" for name in answer.columns if name in answer.notes]
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


def lines_html(answer: AnswerTable, most: int = _LINES) -> str:
    """Write the first lines of an answer as a table of HTML."""
    head, lines = _table(answer, most=most)
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
