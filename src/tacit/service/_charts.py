"""Charts that the server draws as SVG: intervals of a release, the burn-down of a budget, odds, attacks.

Each chart has a title and a description for screen readers, and the table of what it shows. Elements carry
classes, which the stylesheet of the service colours for light and dark pages, and attributes with colours,
which count where a saved file has no stylesheet.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.service._chart_panels import (
    ACCENT,
    AXIS,
    LINE_HEIGHT,
    RIGHT,
    WIDTH,
    Chart,
    ChartLine,
    drawing,
    horizontal_grid,
    lines_panel,
    vertical_labels,
)  # fmt: skip
from tacit.service._scales import days_scale, number_scale, read_moment, shown, shown_moment
from tacit.service._svg import element

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def burn_down_chart(points: Sequence[Mapping[str, Any]], budget: object, unit: str = "epsilon") -> Chart:
    """Draw what is left of a budget over time, as steps.

    Parameters
    ----------
    points
        Mappings with ``at`` (ISO text or seconds since 1970) and ``spent`` (a number, or an exact text such
        as ``"1/2"``), in the order of time.
    budget
        The whole budget, in the same form as ``spent``.
    unit
        What is counted.

    Examples
    --------
    >>> chart = burn_down_chart([{"at": "2026-01-05T10:00:00Z", "spent": "1/2"}], 2)
    >>> chart.summary
    '1.5 of 2 epsilon are left.'
    """
    whole = _real(budget)
    moments = [_seconds(point["at"]) for point in points]
    left = [max(0.0, whole - _real(point["spent"])) for point in points]
    now = left[-1] if left else whole
    title = f"What is left of the budget ({unit})"
    summary = f"{shown(now)} of {shown(whole)} {unit} {'is' if now == 1 else 'are'} left."
    x = days_scale(_with_room(moments), 56.0, WIDTH - RIGHT)
    y = number_scale([0.0, whole or 1.0], LINE_HEIGHT - 34, 14.0)
    steps = [(x.low, whole), *zip(moments, left, strict=True)] if moments else [(x.low, whole)]
    path = f"M{x.at(steps[0][0]):.1f} {y.at(steps[0][1]):.1f}"
    path += "".join(f"H{x.at(at):.1f}V{y.at(value):.1f}" for at, value in steps[1:]) + f"H{WIDTH - RIGHT:.1f}"
    base = y.at(0)
    area = f"{path}V{base:.1f}H{x.at(steps[0][0]):.1f}Z"
    parts = [
        *horizontal_grid(y, 56.0), *(vertical_labels(x, LINE_HEIGHT - 14) if points else ()),
        element("path", d=area, class_="c-band", fill=ACCENT, fill_opacity="0.14"),
        element("path", d=path, class_="c-line", fill="none", stroke=ACCENT, stroke_width=2),
    ]  # fmt: skip
    rows = tuple(
        (shown_moment(point["at"]), shown(_real(point["spent"])), shown(rest))
        for point, rest in zip(points, left, strict=True)
    )
    return Chart(
        drawing(title, summary, LINE_HEIGHT, parts), title, summary, ("when", "spent", "left"), rows, (1, 2)
    )


def _with_room(moments: Sequence[float]) -> list[float]:
    """Return the first and the last moment with a little time before and after."""
    first, last = (min(moments), max(moments)) if moments else (0.0, 0.0)
    room = max((last - first) / 25, 3600.0)
    return [first - room, last + room]


def odds_chart(beliefs: Sequence[Mapping[str, Any]]) -> Chart:
    """Draw what an attacker believed before, and the range of what the attacker can believe afterwards.

    Parameters
    ----------
    beliefs
        Mappings with ``prior``, ``at_least`` and ``at_most``, all from 0 to 1.

    Examples
    --------
    >>> odds_chart([{"prior": 0.5, "at_least": 0.3775, "at_most": 0.6225}]).rows
    (('50 %', '37.7 %', '62.3 %'),)
    """
    title = "What an attacker can believe about one person"
    summary = (
        "The point is the belief before any answer; the bar is the range that all answers together allow."
    )
    lines = [
        ChartLine(
            f"before: {_percent(one['prior'])}",
            float(one["at_least"]),
            float(one["prior"]),
            float(one["at_most"]),
        )
        for one in beliefs
    ]
    panel, height = lines_panel(lines, "", 4.0, scale=(0.0, 1.0), percent=True)
    rows = tuple(
        (_percent(one["prior"]), _percent(one["at_least"], -1), _percent(one["at_most"], 1))
        for one in beliefs
    )
    words = " ".join(f"Before {before}: between {low} and {high}." for before, low, high in rows)
    header = ("before", "after, at least", "after, at most")
    return Chart(
        drawing(title, f"{summary} {words}", height + 4, [panel]), title, summary, header, rows, (0, 1, 2)
    )


def attack_chart(
    points: Sequence[Mapping[str, Any]], title: str = "How often the attacker is right"
) -> Chart:
    """Draw how often an attacker was right at each epsilon, with its interval and the proven limit.

    Parameters
    ----------
    points
        Mappings with ``epsilon``, ``low``, ``right``, ``high`` and ``limit``; all but epsilon from 0 to 1.
    title
        What was attacked.

    Examples
    --------
    >>> attack_chart([{"epsilon": 1, "low": 0.71, "right": 0.73, "high": 0.75, "limit": 0.7311}]).rows
    (('1', '73 %', '71 %', '75 %', '73.2 %'),)
    """
    summary = (
        "The point is how often the attacker was right in our trials, the line is its interval, and the "
        "upright mark is the limit that no attack can pass. A coin is right half of the time."
    )
    lines = [
        ChartLine(
            str(one.get("label") or f"epsilon {shown(float(one['epsilon']))}"),
            *(float(one[n]) for n in ("low", "right", "high", "limit")),
        )
        for one in points
    ]
    panel, height = lines_panel(lines, "", 4.0, scale=(0.5, 1.0), percent=True)
    rows = tuple(
        (
            shown(float(one["epsilon"])), _percent(one["right"]), _percent(one["low"], -1),
            _percent(one["high"], 1), _percent(one["limit"], 1),
        )
        for one in points
    )  # fmt: skip
    words = " ".join(f"Epsilon {row[0]}: {row[1]}, limit {row[4]}." for row in rows)
    header = ("epsilon", "right", "at least", "at most", "limit for every attack")
    return Chart(
        drawing(title, f"{summary} {words}", height + 4, [panel]),
        title,
        summary,
        header,
        rows,
        (0, 1, 2, 3, 4),
    )


def budget_bar(spent: object, budget: object, unit: str = "epsilon") -> Chart:
    """Draw how much of a budget is spent, and say it in words.

    Examples
    --------
    >>> budget_bar("3/4", 3).summary
    '0.75 of 3 epsilon spent, 2.25 left.'
    """
    whole, gone = _real(budget), _real(spent)
    left = max(Fraction(0), _exact(budget) - _exact(spent)) if math.isfinite(whole) else whole
    share = min(1.0, max(0.0, gone / whole)) if whole > 0 else 1.0
    title = f"Budget in {unit}"
    summary = f"{shown(gone)} of {shown(whole)} {unit} spent, {shown(float(left))} left."
    parts = (
        element("title", title), element("desc", summary),
        element("rect", x=0.5, y=0.5, width=199, height=7, class_="c-track", fill="#f1efe9", stroke=AXIS),
        element("rect", x=0.5, y=0.5, width=199 * share, height=7, class_="c-band", fill=ACCENT),
    )  # fmt: skip
    bar = element(
        "svg", *parts, xmlns="http://www.w3.org/2000/svg", viewbox="0 0 200 8", role="img",
        preserveAspectRatio="none",
    )  # fmt: skip
    return Chart(bar, title, summary)


def _percent(share: object, towards: int = 0) -> str:
    """Write a share as a percentage with one decimal; a limit is rounded outwards (-1 down, 1 up)."""
    tenths = 1000 * float(share)  # type: ignore[arg-type]
    whole = (
        math.floor(tenths + 1e-9)
        if towards < 0
        else math.ceil(tenths - 1e-9)
        if towards > 0
        else round(tenths)
    )
    return f"{whole / 10:g} %"


def _exact(value: object) -> Fraction:
    """Read an exact number: a text such as ``1/2``, or a number that JSON or Python gives."""
    return Fraction(str(value)) if not isinstance(value, int | Fraction) else Fraction(value)


def _real(value: object) -> float:
    return math.inf if value in {None, "inf"} else float(_exact(value))


def _seconds(moment: object) -> float:
    return read_moment(moment).timestamp()
