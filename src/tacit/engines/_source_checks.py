"""What is checked of a source before an account is opened, beside its columns: width, names that stand twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.engines._sources import schema_reader
from tacit.engines._values import family
from tacit.errors import TacitError
from tacit.fixes import Say

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tacit.engines._sources import Source
    from tacit.engines._values import ColumnTypes

__all__ = ["check_readable", "check_sole", "check_width"]

#: DuckDB holds a row of at most 262,136 bytes: 16 for a text, at most 8 for a number, and a bit for each.
_MAX_ROW = 240_000
_TEXT, _NUMBER = 16, 8
_SHORT = frozenset({"number", "boolean", "moment"})
_TREE = "SELECT name, coalesce(num_children, 0) FROM parquet_schema($path)"


def check_readable(source: Source, name: str) -> None:
    """Refuse a source without columns, and a CSV file that is not well formed."""
    if source.columns() == ():
        raise TacitError(
            "bad-parameter",
            f"the source of {name!r} has no columns",
            why="a CSV file starts with a header line that names its columns, and a frame has columns with names",
            fix="give a source with at least one column",
        )
    source.check_form()


def check_width(name: str, typed: ColumnTypes) -> None:
    """Refuse a table whose rows are longer than DuckDB can hold, as its columns and their types show."""
    row = sum(_NUMBER if family(kind) in _SHORT else _TEXT for _, kind in typed)
    if row > _MAX_ROW:
        raise TacitError(
            "bad-parameter",
            f"the source of {name!r} has {len(typed):,} columns, and a row of them is too long for DuckDB",
            why=f"every question would fail after its charge; at most {_MAX_ROW // _TEXT:,} columns of text, or "
            f"{_MAX_ROW // _NUMBER:,} of numbers in a source with a schema, can be read",
            fix="keep only the columns that questions need, for example in a Parquet file",
        )


def check_sole(source: Source, columns: Iterable[str]) -> None:
    """Refuse a column that says whose a row is, if the source has two of its name."""
    names = _written_names(source)
    twice = next((column for column in columns if names.count(column) > 1), None)
    if twice is not None:
        raise TacitError(
            "bad-parameter",
            f"the source has {names.count(twice):,} columns named {twice!r}",
            why="the column says to whom a row belongs, and it is not clear which of them is meant",
            fix=Say("rename all of them but one"),
        )


def _written_names(source: Source) -> list[str]:
    """Return the names of columns as the source writes them; of a database none, where all differ."""
    if source.kind != "parquet" or not source.is_there or source.is_remote:
        return source.written_names() or []
    import duckdb

    try:
        lines = schema_reader().cursor().execute(_TREE, {"path": source.files[0]}).fetchall()
    except duckdb.Error:
        return []
    names, skipped = [], 0
    for name, children in lines[1:]:  # a tree, written from its root; the columns are the root's children
        if skipped:
            skipped += int(children) - 1
            continue
        names.append(str(name))
        skipped = int(children)
    return names
