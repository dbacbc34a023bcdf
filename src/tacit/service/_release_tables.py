"""The tables of a release of any kind: a book of tables, a regression, survival curves, a batch of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tacit.core import AnswerTable, Cells

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tacit.core import Value


def tables_of(content: Any) -> Iterator[tuple[str, AnswerTable]]:
    """Yield the tables of a content with what each of them is; nothing, if it has none.

    Of synthetic rows these are the measured tables. The rows themselves need a model, which takes time to
    fit, so a service leaves them to whoever downloads the release.
    """
    if isinstance(content, AnswerTable):
        yield "", content
        return
    match content.kind:
        case "cross-tables" | "synthetic-table":
            for names in content.tables:
                yield " x ".join(names) or "all rows", content.tables[names]
        case "ordered-counts":
            yield "each cell", content.counts
            yield "running totals", content.distribution
        case "regression":
            named = {**content.coefficients, "(intercept)": content.intercept}
            yield "coefficients", _estimates({"column": tuple(named)}, "coefficient", list(named.values()))
        case "survival-curves":
            yield f"share without {content.event}", _curves(content)
        case "batch":
            for answer in content.answers:
                for caption, table in tables_of(answer.content):
                    yield f"{answer.name}: {caption}" if caption else answer.name, table
        case _:
            for name in ("table", "history"):
                found = getattr(content, name, None)
                if isinstance(found, AnswerTable):
                    yield "", found
                    return


def joined(tables: Iterable[tuple[str, AnswerTable]]) -> AnswerTable | None:
    """Return all tables as one, for a file: a column says from which table a line is.

    Keys are text in it, because a column may have keys of several types; where a table lacks a column, it is
    empty.
    """
    listed = list(tables)
    if len(listed) <= 1:
        return listed[0][1] if listed else None
    names = list(dict.fromkeys(key for _, one in listed for key in one.keys))
    first = "table"
    while first in names:
        first += "_"
    keys: dict[str, tuple[Value, ...]] = {
        first: tuple(caption for caption, one in listed for _ in range(len(one)))
    }
    for name in names:
        keys[name] = tuple(
            text
            for _, one in listed
            for text in (one.shown_keys(name) if name in one.keys else ("",) * len(one))
        )
    columns = {
        name: Cells(*(_column(listed, name, end) for end in ("value", "low", "high")))
        for name in dict.fromkeys(column for _, one in listed for column in one.columns)
    }
    said = tuple(dict.fromkeys(line for _, one in listed for line in one.left_out))
    return AnswerTable(keys, columns, listed[0][1].confidence, left_out=said)


def _column(listed: Sequence[tuple[str, AnswerTable]], name: str, end: str) -> tuple[Any, ...]:
    """Return one part of a column of all tables; a table without the column has nothing there."""
    return tuple(
        value
        for _, one in listed
        for value in (getattr(one.columns[name], end) if name in one.columns else (None,) * len(one))
    )


def _curves(content: Any) -> AnswerTable:
    """Return the points of all curves, one line for each group and time."""
    by, times = content.by or "group", content.cuts[1:]
    keys = {
        by: tuple(group for group in content.groups for _ in times),
        content.time if content.time != by else f"{content.time} (time)": tuple(times) * len(content.groups),
    }
    return _estimates(keys, "share", [one for group in content.groups for one in content.curves[group]])


def _estimates(keys: dict[str, tuple[Any, ...]], name: str, found: Sequence[Any]) -> AnswerTable:
    """Return estimates as lines; an end that is open or hidden by the noise is empty."""
    cells = Cells(*(tuple(_finite(getattr(one, end)) for one in found) for end in ("value", "low", "high")))
    columns = {name: cells}
    if any(one.p_value is not None for one in found):
        nothing = (None,) * len(found)
        columns["p"] = Cells(tuple(one.p_value for one in found), nothing, nothing)
    level, covers = (found[0].level, found[0].covers) if found else (0.95, "noise")
    return AnswerTable(keys, columns, float(level), covers=covers)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
