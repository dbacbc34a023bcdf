"""What pages show of a release of any kind: lines with intervals where it has them, else its own words."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from tacit.core import AnswerTable, Release, content_named, joined, shown_cell, visible
from tacit.service._charts import PageChart
from tacit.show import together

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.show import Figure

_MOST_LINES: Final = 500  # of a page; downloads have all
_MOST_TABLES: Final = 40  # of a page
_MOST_TEXT: Final = 20_000
_MOST_PANELS: Final = 24  # of a chart


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
    return (
        "" if isinstance(release.content, AnswerTable) else release.content.text(release.marks)[:_MOST_TEXT]
    )


def chart_of(document: Mapping[str, Any]) -> PageChart | None:
    """Draw a release; None if it has nothing to draw."""
    return _chart(Release.from_json(document).figures())


def answer_chart(content: Mapping[str, Any]) -> PageChart | None:
    """Draw an answer that has no certificate, and list its lines beside it."""
    answer = AnswerTable.from_json(content)
    drawn, lines = _chart(answer.figures()), _page_lines(answer, _MOST_LINES)
    if drawn is None:
        return None
    rows = tuple(map(tuple, lines["rows"]))
    return replace(drawn, header=tuple(lines["header"]), rows=rows, numeric=tuple(lines["numeric"]))


def _chart(figures: tuple[Figure, ...]) -> PageChart | None:
    if not figures:
        return None
    whole = together(figures, f"{len(figures)} figures")
    summary = "; ".join(dict.fromkeys(line for one in figures for line in one.words))
    return PageChart(
        replace(whole, panels=whole.panels[:_MOST_PANELS]), f"{summary[:1].upper()}{summary[1:]}"
    )


def value_tables(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the values and intervals of a release as a page shows them; of one without lines, nothing.

    A page has a few hundred lines. The last table says how many lines it leaves out, or that more follow.
    """
    shown: list[dict[str, Any]] = []
    room = _MOST_LINES
    for caption, lines in Release.from_json(document).content.answer_tables():
        if room <= 0 or len(shown) == _MOST_TABLES:
            shown[-1]["tables"] = True
            break
        shown.append({"caption": _headed(caption), **_page_lines(lines, room), "tables": False})
        room -= len(lines)
    return shown


def _headed(caption: str) -> str:
    return f"Values and intervals: {caption}" if caption else "Values and intervals"


def _page_lines(lines: AnswerTable, most: int) -> dict[str, Any]:
    columns = [[visible(key) for key in lines.shown_keys(name)[:most]] for name in lines.keys]
    header, numeric = [visible(name) for name in lines.keys], []
    for name, cells in lines.columns.items():
        whole = name in lines.counts
        shown = [
            shown_cell(*cell, whole=whole)
            for cell in islice(zip(cells.value, cells.low, cells.high, strict=True), most)
        ]
        ends = (name, "low", "high") if any(v is not None for v in cells.low) or name != "p" else (name,)
        for i, head in enumerate(ends):
            numeric.append(len(header))
            header.append(visible(head if head == name else f"{name}, {head}"))
            columns.append([cell[i] or "–" for cell in shown])
    rows = [list(line) for line in zip(*columns, strict=True)]
    return {"header": header, "rows": rows, "numeric": numeric, "more": max(0, len(lines) - most)}
