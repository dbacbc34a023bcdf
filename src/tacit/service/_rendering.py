"""Pages from templates, and what they show of a release of any kind.

Templates are always escaped, and an unknown name in a template is an error. A release is shown as lines with
intervals where it has them, else in its own words.

Beside releases, pages have charts of the burn-down of a budget, of odds and of attacks. Each chart has the
words and the table of what it shows. `tacit.show` draws it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from tacit.core import AnswerTable, Release, content_named, joined, shown_cell, visible
from tacit.report import short_percent
from tacit.service._times import read_moment, shown_moment
from tacit.show import RED, Chart, ChartAxis, ChartSeries, Figure, days_of, meter_svg, shown, together

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tacit.service._operations import ServiceCall

_MAX_LINES: Final = 500  # of a page; downloads have all
_MAX_TABLES: Final = 40  # of a page
_MAX_TEXT: Final = 20_000
_MAX_PANELS: Final = 24  # of a chart


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
    total = _real(budget)
    moments = [days_of(read_moment(point["at"])) for point in points]
    remaining = [max(0.0, total - _real(point["spent"])) for point in points]
    now = remaining[-1] if remaining else total
    summary = f"{shown(now)} of {shown(total)} {unit} {'is' if now == 1 else 'are'} left."
    room = max((moments[-1] - moments[0]) / 25, 1 / 24) if moments else 1.0
    start, end = (moments[0] - room, moments[-1] + room) if moments else (0.0, 1.0)
    heights = [total, *remaining]
    steps = ChartSeries("steps", [start, *moments, end], heights, [0.0] * len(heights), heights)
    axis = ChartAxis(kind="dates") if points else ChartAxis(ticks=((-1.0, ""),))
    figure = Figure(
        f"What is left of the budget ({unit})", (Chart((steps,), axis, ChartAxis(unit)),), (summary,)
    )
    rows = tuple(
        (shown_moment(point["at"]), shown(_real(point["spent"])), shown(rest))
        for point, rest in zip(points, remaining, strict=True)
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
    names = tuple(f"before: {_tenths(one['prior'])}" for one in beliefs)
    chart = Chart((points,), ChartAxis("", names), ChartAxis("belief", kind="shares", ends=(0.0, 1.0)))
    rows = tuple(
        (_tenths(one["prior"]), _tenths(one["at_least"], -1), _tenths(one["at_most"], 1)) for one in beliefs
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
            shown(float(one["epsilon"])), _tenths(one["right"]), _tenths(one["low"], -1),
            _tenths(one["high"], 1), _tenths(one["limit"], 1),
        )
        for one in points
    )  # fmt: skip
    header = ("epsilon", "right", "at least", "at most", "limit for every attack")
    return PageChart(Figure(title, (chart,)), summary, header, rows, (0, 1, 2, 3, 4))


def _points(points: Sequence[Mapping[str, Any]], names: tuple[str, str, str]) -> ChartSeries:
    return ChartSeries.of(
        "points", range(len(points)), ((float(one[name]) for one in points) for name in names)
    )


def budget_bar(spent: object, budget: object, unit: str = "epsilon") -> BudgetBar:
    """Show how much of a budget is spent, and say it in words.

    Examples
    --------
    >>> budget_bar("3/4", 3).summary
    '0.75 of 3 epsilon spent, 2.25 left.'
    """
    total, gone = _real(budget), _real(spent)
    remaining = max(Fraction(0), _exact(budget) - _exact(spent)) if math.isfinite(total) else total
    summary = f"{shown(gone)} of {shown(total)} {unit} spent, {shown(float(remaining))} left."
    return BudgetBar(gone / total if total > 0 else 1.0, f"Budget in {unit}", summary)


def _tenths(share: object, towards: int = 0) -> str:
    """Write a share as a percentage with one decimal; a limit is rounded outwards (-1 down, 1 up)."""
    tenths = 1000 * float(share)  # type: ignore[arg-type]
    rounded = (
        math.floor(tenths + 1e-9)
        if towards < 0
        else math.ceil(tenths - 1e-9)
        if towards > 0
        else round(tenths)
    )
    return f"{rounded / 10:g} %"


def _exact(value: object) -> Fraction:
    """Read an exact number: a text such as ``1/2``, or a number that JSON or Python gives."""
    return Fraction(str(value)) if not isinstance(value, int | Fraction) else Fraction(value)


def _real(value: object) -> float:
    return math.inf if value in {None, "inf"} else float(_exact(value))


def kind_words(kind: str) -> str:
    """Say what a release holds.

    Examples
    --------
    >>> kind_words("surface"), kind_words("noisy-labels")
    ('a surface over a map', 'noisy labels')
    """
    content = content_named(kind)
    return (content.described if content else "") or kind.replace("-", " ")


def lines_of(document: Mapping[str, Any]) -> AnswerTable | None:
    """Return the lines of a release: its content, all regions of a surface, all tables of a book."""
    return joined(Release.from_json(document).content.answer_tables())


def text_of(document: Mapping[str, Any]) -> str:
    """Return how a release of another kind than tables shows itself in a terminal; of a table, nothing."""
    release = Release.from_json(document)
    return "" if isinstance(release.content, AnswerTable) else release.content.text(release.marks)[:_MAX_TEXT]


def chart_of(document: Mapping[str, Any]) -> PageChart | None:
    """Draw a release; None if it has nothing to draw."""
    return _chart(Release.from_json(document).figures())


def answer_chart(content: Mapping[str, Any]) -> PageChart | None:
    """Draw an answer that has no certificate, and list its lines beside it."""
    answer = AnswerTable.from_json(content)
    chart, lines = _chart(answer.figures()), _page_lines(answer, _MAX_LINES)
    if chart is None:
        return None
    rows = tuple(map(tuple, lines["rows"]))
    return replace(chart, header=tuple(lines["header"]), rows=rows, numeric=tuple(lines["numeric"]))


def _chart(figures: tuple[Figure, ...]) -> PageChart | None:
    if not figures:
        return None
    figure = together(figures, f"{len(figures)} figures")
    summary = "; ".join(dict.fromkeys(line for one in figures for line in one.words))
    return PageChart(
        replace(figure, panels=figure.panels[:_MAX_PANELS]), f"{summary[:1].upper()}{summary[1:]}"
    )


def value_tables(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the values and intervals of a release as a page shows them; of one without lines, nothing.

    A page has a few hundred lines. The last table says how many lines it leaves out, or that more follow.
    """
    tables: list[dict[str, Any]] = []
    room = _MAX_LINES
    for caption, lines in Release.from_json(document).content.answer_tables():
        if room <= 0 or len(tables) == _MAX_TABLES:
            tables[-1]["tables"] = True
            break
        tables.append({"caption": _headed(caption), **_page_lines(lines, room), "tables": False})
        room -= len(lines)
    return tables


def _headed(caption: str) -> str:
    return f"Values and intervals: {caption}" if caption else "Values and intervals"


def _page_lines(lines: AnswerTable, max_lines: int) -> dict[str, Any]:
    columns = [[visible(key) for key in lines.shown_keys(name)[:max_lines]] for name in lines.keys]
    header, numeric = [visible(name) for name in lines.keys], []
    for name, cells in lines.columns.items():
        is_count = name in lines.counts
        texts = [
            shown_cell(*cell, whole=is_count)
            for cell in islice(zip(cells.value, cells.low, cells.high, strict=True), max_lines)
        ]
        ends = (name, "low", "high") if any(v is not None for v in cells.low) or name != "p" else (name,)
        for i, head in enumerate(ends):
            numeric.append(len(header))
            header.append(visible(head if head == name else f"{name}, {head}"))
            columns.append([cell[i] or "–" for cell in texts])
    rows = [list(line) for line in zip(*columns, strict=True)]
    return {"header": header, "rows": rows, "numeric": numeric, "more": max(0, len(lines) - max_lines)}


@cache
def environment() -> Environment:
    """Return the templates; every text is escaped.

    Templates see the drawings ``charts.answer``, ``charts.burn_down``, ``charts.odds``, ``charts.attack``,
    ``charts.budget`` and ``charts.release``, and the filters ``moment``, ``iso``, ``shown`` and ``percent``.

    Examples
    --------
    >>> environment().from_string("{{ doc }} {{ '1/3' | shown }}").render(doc="<b>")
    '&lt;b&gt; 1/3 (0.3333)'
    """
    templates = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    templates.globals["charts"] = SimpleNamespace(
        answer=answer_chart,
        attack=attack_chart,
        budget=budget_bar,
        burn_down=burn_down_chart,
        odds=odds_chart,
        release=chart_of,
    )
    templates.filters |= {
        "combine": _combine,
        "iso": _iso,
        "moment": shown_moment,
        "percent": _percent,
        "percent_up": _percent_up,
        "full_sentence": _full_sentence,
        "sentence": _sentence,
        "shown": _shown,
    }
    return templates


def render(template: str, call: ServiceCall, document: Mapping[str, Any]) -> bytes:
    """Render a page: templates see the operation's document, the call, and the name of the service."""
    name = call.service.settings.name
    text = environment().get_template(template).render(doc=document, call=call, service_name=name)
    return text.encode("utf-8")


def _combine(base: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    return {**base, **second}


def _iso(moment: object) -> str:
    return read_moment(moment).isoformat(timespec="seconds").replace("+00:00", "Z")


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _full_sentence(text: str) -> str:
    """Write words as a sentence of its own: with a full stop too, unless it has one."""
    return _sentence(text) + ("" if text[-1:] in ".!?" else ".")


def _percent(share: object) -> str:
    return short_percent(float(Fraction(str(share))), 3)


def _percent_up(share: float) -> str:
    """Write an upper bound as a percentage, rounded up, so that it never looks better than it is."""
    return f"{math.ceil(10_000 * share - 1e-9) / 100:g} %"


def _shown(value: object) -> str:
    """Write a number for people; an exact text such as 1/3 gets its decimals beside it."""
    if value is None:
        return "–"
    text = shown(float(Fraction(str(value))))
    return f"{value} ({text})" if isinstance(value, str) and "/" in value else text
