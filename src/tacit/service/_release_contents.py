"""What pages show of a release of any kind: lines with intervals where it has them, else its own words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tacit.core import AnswerTable, Release
from tacit.service._interval_charts import intervals_chart
from tacit.service._region_charts import region_chart

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.service._chart_panels import Chart

__all__ = ["chart_of", "kind_words", "lines_of", "text_of", "value_table"]

_MOST_LINES: Final = 500  # of a page; downloads have all
_MOST_TEXT: Final = 20_000
_WORDS: Final = {
    "answer-table": "a table of answers",
    "degree-table": "a table of degrees",
    "evaluation": "an evaluation of a model",
    "fitted-numbers": "a fitted model",
    "flow-table": "a table of trips between regions",
    "series": "a series of a stream",
    "shape-functions": "an explainable model",
    "surface": "a surface over a map",
    "surface-difference": "the difference of two surfaces",
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
    """Return the lines of a release: its content, all regions of a surface, all days of a series."""
    return _lines(Release.from_json(document).content)


def _lines(content: Any) -> AnswerTable | None:
    if isinstance(content, AnswerTable):
        return content
    for name in ("table", "history"):
        found = getattr(content, name, None)
        if isinstance(found, AnswerTable):
            return found
    return None


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
    lines = getattr(content, "daily", None)
    return intervals_chart(lines.to_json()) if isinstance(lines, AnswerTable) else None  # type: ignore[arg-type]


def value_table(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values and intervals of a release as a page shows them; of one without lines, nothing."""
    lines = lines_of(document)
    if lines is None:
        return {"header": [], "rows": [], "numeric": [], "more": 0}
    columns = [lines.shown_keys(name)[:_MOST_LINES] for name in lines.keys]
    header, numeric = list(lines.keys), []
    for name, cells in lines.columns.items():
        for head, values in ((name, cells.value), ("low", cells.low), ("high", cells.high)):
            numeric.append(len(header))
            header.append(head if head == name else f"{name}, {head}")
            columns.append([_shown(value) for value in values[:_MOST_LINES]])
    rows = [list(line) for line in zip(*columns, strict=True)]
    return {"header": header, "rows": rows, "numeric": numeric, "more": max(0, len(lines) - _MOST_LINES)}


def _shown(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "–" if value is None else str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"
