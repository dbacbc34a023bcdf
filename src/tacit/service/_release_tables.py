"""The tables of a release as one, for a file: a column says from which table a line is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tacit.core import AnswerTable, Cells

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tacit.core import Value


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
