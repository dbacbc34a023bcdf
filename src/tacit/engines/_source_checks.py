"""What is checked of a source before an account is opened: its width, names that stand twice, its form."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.engines._sources import ParquetSource, schema_reader
from tacit.engines._values import family
from tacit.errors import TacitError
from tacit.fixes import Say

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tacit.engines._sources import Source, SourceTable
    from tacit.engines._values import ColumnTypes

#: DuckDB holds a row of at most 262,136 bytes: 16 for a text, 8 for a number and a bit for each. Ranking rows
#: of this length takes it about a minute; longer ones take several.
_MAX_ROW = 160_000
_TEXT, _NUMBER = 16, 8
_SHORT = frozenset({"number", "boolean", "moment"})
_LONG = ("DECIMAL", "HUGEINT", "UHUGEINT")
_TREE = "SELECT name, coalesce(num_children, 0) FROM parquet_schema($path)"


def check_sources(tables: Mapping[str, SourceTable]) -> None:
    """Refuse, before an account is opened, what no question could read, or would read wrongly.

    A source without columns; one in which a column that names the owner of a row stands twice; and a CSV
    file that is not well formed. The last refusal depends on rows: it is for the curator.
    """
    for name, table in tables.items():
        _check_columns(table.source, name)
        check_sole(table.source, table.unit or ())
        table.source.check_form()


def _check_columns(source: Source, name: str) -> None:
    if source.columns() == ():
        raise TacitError(
            "bad-parameter",
            f"the source of {name!r} has no columns",
            why="a CSV file starts with a header line that names its columns",
            fix="give a source with at least one column",
        )


def check_width(name: str, typed: ColumnTypes) -> None:
    """Refuse a table whose rows are longer than DuckDB can hold, as its columns and their types show."""
    row = sum(_width(kind) for _, kind in typed)
    if row > _MAX_ROW:
        raise TacitError(
            "bad-parameter",
            f"the source of {name!r} has {len(typed):,} columns, and a row of them is too long for DuckDB",
            why=f"every question would fail after its charge; Tacit reads at most {_MAX_ROW // _TEXT:,} "
            f"columns of text, or {_MAX_ROW // _NUMBER:,} columns of numbers in a source with a schema",
            fix="keep only the columns that questions need, for example in a Parquet file",
        )


def _width(kind: str) -> int:
    return _NUMBER if family(kind) in _SHORT and not kind.startswith(_LONG) else _TEXT


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
    if not isinstance(source, ParquetSource) or not source.is_there or source.is_remote:
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
