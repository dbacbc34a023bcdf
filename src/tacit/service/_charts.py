"""Charts of the service's pages: the figures of a release, the burn-down of a budget, odds, attacks.

Each chart has the words and the table of what it shows. `tacit.show` draws it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.service._moments import read_moment, shown_moment
from tacit.show import RED, Chart, ChartAxis, ChartSeries, Figure, days_of, meter_svg, shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class PageChart:
    """A figure with its table; in a template, it writes itself as SVG.

    Attributes
    ----------
    figure
        What is drawn.
    summary
        One sentence with its main facts.
    header, rows, numeric
        The same facts as a table, and which of its columns hold numbers.
    """

    figure: Figure
    summary: str
    header: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    numeric: tuple[int, ...] = ()

    @property
    def title(self) -> str:
        """What the chart shows."""
        return self.figure.title

    def __html__(self) -> str:
        """Let a template write the drawing as it is: it escapes by itself."""
        return self.figure.svg()

    def file(self) -> str:
        """Return the drawing as a file of its own."""
        return f'<?xml version="1.0" encoding="UTF-8"?>\n{self.figure.svg(file=True)}\n'


@dataclass(frozen=True, slots=True)
class BudgetBar:
    """How much of a budget is spent: a bar and its words."""

    share: float
    title: str
    summary: str

    def __html__(self) -> str:
        """Let a template write the drawing as it is: it escapes by itself."""
        return str(meter_svg(self.share, self.title, self.summary))


def burn_down_chart(points: Sequence[Mapping[str, Any]], budget: object, unit: str = "epsilon") -> PageChart:
    """Show what is left of a budget over time, as steps.

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
    moments = [days_of(read_moment(point["at"])) for point in points]
    left = [max(0.0, whole - _real(point["spent"])) for point in points]
    now = left[-1] if left else whole
    summary = f"{shown(now)} of {shown(whole)} {unit} {'is' if now == 1 else 'are'} left."
    room = max((moments[-1] - moments[0]) / 25, 1 / 24) if moments else 1.0
    start, end = (moments[0] - room, moments[-1] + room) if moments else (0.0, 1.0)
    heights = [whole, *left]
    steps = ChartSeries("steps", [start, *moments, end], heights, [0.0] * len(heights), heights)
    axis = ChartAxis(kind="dates") if points else ChartAxis(ticks=((-1.0, ""),))
    figure = Figure(
        f"What is left of the budget ({unit})", (Chart((steps,), axis, ChartAxis(unit)),), (summary,)
    )
    rows = tuple(
        (shown_moment(point["at"]), shown(_real(point["spent"])), shown(rest))
        for point, rest in zip(points, left, strict=True)
    )
    return PageChart(figure, summary, ("when", "spent", "left"), rows, (1, 2))


def odds_chart(beliefs: Sequence[Mapping[str, Any]]) -> PageChart:
    """Show what an attacker believed before, and the range of what the attacker can believe afterwards.

    Parameters
    ----------
    beliefs
        Mappings with ``prior``, ``at_least`` and ``at_most``, all from 0 to 1.

    Examples
    --------
    >>> odds_chart([{"prior": 0.5, "at_least": 0.3775, "at_most": 0.6225}]).rows
    (('50 %', '37.7 %', '62.3 %'),)
    """
    summary = (
        "The point is the belief before any answer; the bar is the range that all answers together allow."
    )
    points = _points(beliefs, ("prior", "at_least", "at_most"))
    names = tuple(f"before: {_percent(one['prior'])}" for one in beliefs)
    chart = Chart((points,), ChartAxis("", names), ChartAxis("belief", kind="shares", ends=(0.0, 1.0)))
    rows = tuple(
        (_percent(one["prior"]), _percent(one["at_least"], -1), _percent(one["at_most"], 1))
        for one in beliefs
    )
    words = tuple(f"before {before}: between {low} and {high}" for before, low, high in rows)
    figure = Figure("What an attacker can believe about one person", (chart,), words)
    return PageChart(figure, summary, ("before", "after, at least", "after, at most"), rows, (0, 1, 2))


def attack_chart(
    points: Sequence[Mapping[str, Any]], title: str = "How often the attacker is right"
) -> PageChart:
    """Show how often an attacker was right at each epsilon, with its interval and the proven limit.

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
    limits = ChartSeries("bounds", range(len(points)), [float(one["limit"]) for one in points],
                    label="limit for every attack", colour=RED)  # fmt: skip
    names = tuple(str(one.get("label") or f"epsilon {shown(float(one['epsilon']))}") for one in points)
    axis = ChartAxis("right", kind="shares", ends=(0.5, 1.0))
    chart = Chart((limits, _points(points, ("right", "low", "high"))), ChartAxis("", names), axis)
    rows = tuple(
        (
            shown(float(one["epsilon"])), _percent(one["right"]), _percent(one["low"], -1),
            _percent(one["high"], 1), _percent(one["limit"], 1),
        )
        for one in points
    )  # fmt: skip
    header = ("epsilon", "right", "at least", "at most", "limit for every attack")
    return PageChart(Figure(title, (chart,)), summary, header, rows, (0, 1, 2, 3, 4))


def _points(found: Sequence[Mapping[str, Any]], names: tuple[str, str, str]) -> ChartSeries:
    return ChartSeries.of(
        "points", range(len(found)), ((float(one[name]) for one in found) for name in names)
    )


def budget_bar(spent: object, budget: object, unit: str = "epsilon") -> BudgetBar:
    """Show how much of a budget is spent, and say it in words.

    Examples
    --------
    >>> budget_bar("3/4", 3).summary
    '0.75 of 3 epsilon spent, 2.25 left.'
    """
    whole, gone = _real(budget), _real(spent)
    left = max(Fraction(0), _exact(budget) - _exact(spent)) if math.isfinite(whole) else whole
    summary = f"{shown(gone)} of {shown(whole)} {unit} spent, {shown(float(left))} left."
    return BudgetBar(gone / whole if whole > 0 else 1.0, f"Budget in {unit}", summary)


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
