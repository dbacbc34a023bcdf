"""Statements bound before the charge, to empty tables with the columns of the real ones. No row is read."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from tacit.engines._source_arguments import read_source
from tacit.engines._sources import SourceTable
from tacit.engines._values import family, quote
from tacit.errors import TacitError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tacit.algebra import TableQuestion, ValueGrid
    from tacit.engines._duckdb import DuckDB
    from tacit.engines._sql_statements import Statement
    from tacit.engines._values import ColumnTypes

_MOST_KEYS = 1000  # enough to see their types

#: A table's name, its columns with their types, the columns of its unit, and its columns on grids.
_Form: TypeAlias = (
    "tuple[str, tuple[tuple[str, str], ...], tuple[str, ...] | None, "
    "tuple[tuple[str, tuple[str, ValueGrid]], ...]]"
)


def empty_engine(
    tables: Mapping[str, SourceTable], types: Mapping[str, ColumnTypes], *, portable: bool
) -> DuckDB:
    """Return an engine over tables without rows that have the columns of others, of their declared types.

    Where a source declares no types, as CSV files and data frames, every column is text: the statements are
    written for columns of any type. Datasets of one form share it, within a process.
    """
    forms = [
        (
            name,
            tuple((column, kind) for column, kind in typed),
            None if (unit := tables[name].unit) is None else tuple(unit),
            tuple(tables[name].grids.items()),
        )
        for name, typed in types.items()
    ]
    return _engine_of(tuple(forms), portable, os.getpid())


@lru_cache(maxsize=16)
def _engine_of(forms: tuple[_Form, ...], portable: bool, process: int) -> DuckDB:  # noqa: FBT001
    import duckdb

    from tacit.engines._duckdb import DuckDB

    del process  # a child process does not use its parent's connection
    database = duckdb.connect(config={"threads": 1, "memory_limit": "256MB"})
    tables = {}
    for name, typed, unit, grids in forms:
        columns = ", ".join(f"{quote(c)} {kind if family(kind) else 'VARCHAR'}" for c, kind in typed)
        database.execute(f"CREATE TABLE {quote(name)} ({columns})")
        tables[name] = SourceTable(read_source((database, name)), unit, dict(grids))
    return DuckDB(tables, key=0, snapshot=None, portable=portable)


def bind(empty: DuckDB, question: TableQuestion, statements: Sequence[Statement]) -> None:
    """Let DuckDB bind every name and type of the statements; refuse what it refuses."""
    import duckdb

    small: dict[str, Sequence[Sequence[object]]] = {}
    if question.by and question.keys:
        small["tacit_keys"] = question.keys[:_MOST_KEYS]
    if question.sample is not None:
        small["tacit_sample"] = (("",),)
    try:
        for one in statements:
            empty.rows(f"DESCRIBE {one.sql}", small, one.limited)
    except duckdb.Error as error:
        raise TacitError(
            "bad-expression",
            "DuckDB cannot run this question, so nothing was charged",
            why=f"it refuses the statement with {type(error).__name__}",
            fix="ask in a simpler way, and report this as a defect of Tacit",
        ) from None
