"""Plans and releases for people: terminal and notebook."""

from __future__ import annotations

import io
import math
import shutil
import sys
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType

    from tacit.core.plan import Forecast, Plan
    from tacit.core.release import Release, Value

__all__ = ["nothing_to_show", "plan_html", "plan_text", "release_html", "release_text", "shown_key"]

_LINES = 40
_KEPT = "\ue000"  # keeps an interval on one line, where a space would break it; shown as a space


def _rendered(*parts: RenderableType) -> str:
    """Lay out for the terminal at hand; without one for COLUMNS, or 80 columns."""
    from rich.box import ASCII
    from rich.console import Console
    from rich.table import Table

    unicode = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().startswith("utf")
    width = min(max(shutil.get_terminal_size().columns, 40), 160)
    out = io.StringIO()
    console = Console(
        file=out, width=width, color_system=None, legacy_windows=False, markup=False, highlight=False
    )
    for part in parts:
        if isinstance(part, Table) and not unicode:
            part.box = ASCII
        console.print(part)
    text = out.getvalue().replace(_KEPT, " ")
    return "\n".join(line.rstrip() for line in text.splitlines())


def shown(value: Value) -> str:
    """Write a released value in a few digits."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return "" if value is None else str(value)
    if abs(value) >= 1e15 or not math.isfinite(value):
        return f"{value:.4g}"
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 10_000 else f"{value:,.4g}"


def shown_interval(low: float, high: float) -> str:
    """Write an interval in as many digits, rounded outwards: it covers what it covered.

    Examples
    --------
    >>> shown_interval(1907.63, 6554.2).replace(_KEPT, " ")
    '[1,907, 6,555]'
    """
    return f"[{shown(_outwards(low, ROUND_FLOOR))},{_KEPT}{shown(_outwards(high, ROUND_CEILING))}]"


def _outwards(end: float, rounding: str) -> float:
    if not math.isfinite(end) or (end == int(end) and abs(end) < 1e15):
        return end
    if 10_000 <= abs(end) < 1e15:
        return math.floor(end) if rounding == ROUND_FLOOR else math.ceil(end)
    return float(Context(prec=4, rounding=rounding).create_decimal(Decimal(end)))


def shown_key(value: Value) -> str:
    """Write a group's key as it is: a year has no thousands."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return "" if value is None else f"{value:.15g}" if isinstance(value, float) else str(value)


def _cost(plan: Plan) -> str:
    return ", ".join(f"{name} {float(value):g}" for name, value in plan.promised.items())


def _meaning(plan: Plan) -> str:
    """Say what the total means in odds; with delta only what holds except with that probability."""
    epsilon = plan.promised.get("epsilon")
    if epsilon is None:
        return "rho has no fixed factor of odds; explain reads it as an epsilon at a delta"
    text = f"nobody's odds (of being in the data, of any fact) move by more than a factor {_factor(epsilon)}"
    return text if "delta" not in plan.promised else f"{text}, up to delta {float(plan.promised['delta']):g}"


def _factor(epsilon: object) -> str:
    """Show exp(epsilon) in four digits, rounded up: a bound is never shown smaller than it is."""
    value = float(epsilon)  # type: ignore[arg-type]
    if value >= 50:
        return f"exp({value:g})"
    up = Context(prec=4, rounding=ROUND_CEILING).create_decimal_from_float(math.exp(value) * (1 + 2**-50))
    return f"{float(up):g}"


def _expected(column: Forecast) -> str:
    """Write the error to expect, rounded up as the interval will be; or why there is none."""
    return column.note if column.error is None else shown(_outwards(column.error, ROUND_CEILING))


def plan_text(plan: Plan) -> str:
    """Write a plan for the terminal."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(f"plan for {plan.identity.name}: {_cost(plan)}"), title_justify="left")
    for name in ("column", "what", "noise", f"+/- at {plan.confidence:.0%}"):
        table.add_column(Text(name))
    for column in plan.columns:
        error = _expected(column)
        table.add_row(*(Text(t) for t in (column.column, column.meaning, column.mechanism, error)))
    lines = [f"{name}: {text}" for name, text in plan.facts]
    lines += [f"meaning: {_meaning(plan)}", f"unit: {plan.identity.unit}; hash {plan.hash[:16]}"]
    return _rendered(table, "\n".join(lines))


def plan_html(plan: Plan) -> str:
    """Write a plan for a notebook."""
    rows = "".join(
        f"<tr><td>{escape(c.column)}</td><td>{escape(c.meaning)}</td><td>{escape(c.mechanism)}</td>"
        f"<td>{escape(_expected(c))}</td></tr>"
        for c in plan.columns
    )
    facts = "".join(f"<li><b>{escape(name)}</b>: {escape(text)}</li>" for name, text in plan.facts)
    return (
        f"<b>Plan for {escape(plan.identity.name)}: {escape(_cost(plan))}</b>"
        "<table><tr><th>column</th><th>what</th><th>noise</th>"
        f"<th>&plusmn; at {plan.confidence:.0%}</th></tr>{rows}</table>"
        f"<ul>{facts}<li>{escape(_meaning(plan))}</li></ul>"
    )


def _table(release: Release) -> tuple[list[str], list[list[str]]]:
    head = [*release.keys, *release.columns]
    lines = []
    for i in range(min(len(release), _LINES)):
        line = [shown_key(values[i]) for values in release.keys.values()]
        for cells in release.columns.values():
            low, high = cells.low[i], cells.high[i]
            interval = "" if low is None or high is None else f"  {shown_interval(low, high)}"
            line.append(shown(cells.value[i]) + interval)
        lines.append(line)
    return head, lines


def nothing_to_show(release: Release) -> str:
    """Say why there is no line: groups that are public are always shown, so these were selected privately."""
    if release.marks:
        text = "no line to show: none met the condition, or no group was large enough"
        return "; ".join([text, *release.marks])
    return (
        "no group was large enough to be shown; coarser groups, a larger epsilon or delta, or declaring "
        "the groups that are public (keys) shows more"
    )


def _caption(release: Release) -> list[str]:
    """Say what the intervals cover, and of each column what it stands for and why it may have none."""
    if not len(release):
        return [nothing_to_show(release), *release.left_out]
    without = [name for name, cells in release.columns.items() if None in cells.low]
    text = (
        f"value [low, high]; intervals cover the noise with {release.confidence:.0%}, "
        "not rows beyond a unit's limit or values outside the bounds"
    )
    more = len(release) - _LINES
    parts = [*([text] if len(without) < len(release.columns) else []), *release.marks]
    parts += [f"{more} more lines"] if more > 0 else []
    return [
        *(["; ".join(parts)] if parts else []),
        *release.left_out,
        *_below_zero(release),
        *_notes(release, without),
    ]


def _below_zero(release: Release) -> list[str]:
    """Explain a negative count, where there is one."""
    found = [
        name
        for name, cells in release.columns.items()
        if name in release.counts and any(isinstance(v, int | float) and v < 0 for v in cells.value)
    ]
    why = "noise pushes small counts below 0; add up first, then cut off, or the total is too large"
    return [f"{', '.join(found)} below 0: {why}"] if found else []


def _notes(release: Release, without: list[str]) -> list[str]:
    told = [f"{name}: {release.notes[name]}" for name in release.columns if name in release.notes]
    values = {name: release.columns[name].value for name in without}
    numbers = [name for name in without if all(isinstance(value, int | float) for value in values[name])]
    words = [name for name in without if name not in numbers]
    why = "how far off it may be depends on how close the values lie, which is private"
    told += [f"no interval for {', '.join(numbers)}: {why}"] if numbers else []
    return told + ([f"no interval for {', '.join(words)}: it is no number"] if words else [])


def release_text(release: Release) -> str:
    """Write a release for the terminal."""
    from rich.table import Table
    from rich.text import Text

    head, lines = _table(release)
    table = Table()
    for i, name in enumerate(head):
        table.add_column(Text(name), justify="left" if i < len(release.keys) else "right")
    for line in lines:
        table.add_row(*(Text(t) for t in line))
    return _rendered(table, *(Text(line) for line in _caption(release)))


def release_html(release: Release) -> str:
    """Write a release for a notebook."""
    head, lines = _table(release)
    top = "".join(f"<th>{escape(h)}</th>" for h in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(c)}</td>" for c in line) + "</tr>" for line in lines)
    return (
        f"<table><tr>{top}</tr>{body}</table><i>{'<br>'.join(escape(line) for line in _caption(release))}</i>"
    )
