"""What pages show of a release of any kind: lines with intervals where it has them, else its own words."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from tacit.core import AnswerTable, Release, shown_cell, visible
from tacit.service._interval_charts import intervals_chart
from tacit.service._region_charts import region_chart
from tacit.service._release_tables import joined, tables_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.service._chart_panels import Chart

_MOST_LINES: Final = 500  # of a page; downloads have all
_MOST_TABLES: Final = 40  # of a page
_MOST_TEXT: Final = 20_000
_WORDS: Final = {
    "answer-table": "a table of answers",
    "batch": "several answers that were paid for together",
    "cross-tables": "cross tables that agree with each other",
    "degree-table": "a table of degrees",
    "evaluation": "an evaluation of a model",
    "fitted-numbers": "a fitted model",
    "flow-table": "a table of trips between regions",
    "hierarchy-counts": "counts of areas and their parts",
    "ordered-counts": "counts along one column",
    "regression": "a regression table",
    "series": "a series of a stream",
    "shape-functions": "an explainable model",
    "surface": "a surface over a map",
    "surface-difference": "the difference of two surfaces",
    "survival-curves": "survival curves",
    "synthetic-table": "the noisy tables from which synthetic rows are made",
    "trained-model": "a trained model",
}


def kind_words(kind: str) -> str:
    """Say what a release holds.

    Examples
    --------
    >>> kind_words("surface"), kind_words("noisy-labels")
    ('a surface over a map', 'noisy labels')
    """
    return _WORDS.get(kind, kind.replace("-", " "))


def lines_of(document: Mapping[str, Any]) -> AnswerTable | None:
    """Return the lines of a release: its content, all regions of a surface, all tables of a book."""
    return joined(tables_of(Release.from_json(document).content))


def text_of(document: Mapping[str, Any]) -> str:
    """Return how a release of another kind than tables shows itself in a terminal; of a table, nothing."""
    release = Release.from_json(document)
    return (
        "" if isinstance(release.content, AnswerTable) else release.content.text(release.marks)[:_MOST_TEXT]
    )


def chart_of(document: Mapping[str, Any]) -> Chart | None:
    """Draw a release: intervals of its lines, or a map of its regions; None if neither fits."""
    content: Any = Release.from_json(document).content
    if content.kind == "surface":
        return region_chart(content)
    if isinstance(content, AnswerTable):
        return intervals_chart(content.to_json())  # type: ignore[arg-type]
    lines = content.distribution if content.kind == "ordered-counts" else getattr(content, "daily", None)
    return intervals_chart(lines.to_json()) if isinstance(lines, AnswerTable) else None  # type: ignore[arg-type]


def value_tables(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the values and intervals of a release as a page shows them; of one without lines, nothing.

    A page has a few hundred lines. The last table says how many lines it leaves out, or that more follow.
    """
    shown: list[dict[str, Any]] = []
    room = _MOST_LINES
    for caption, lines in tables_of(Release.from_json(document).content):
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
