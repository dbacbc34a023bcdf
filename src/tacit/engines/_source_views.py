"""The DuckDB engine's views over a source: one row for each row that has an owner, with its values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.engines._values import UNREADABLE, frame_value_sql, owner_sql, quote, string, value_sql

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tacit.engines._sources import Source
    from tacit.engines._values import ColumnTypes

__all__ = ["bytes_view", "view_sql"]


def view_sql(
    name: str,
    source: Source,
    unit: Sequence[str] | None,
    types: ColumnTypes,
    grids: Mapping[str, str] | None = None,
) -> str:
    """Write the view of a table: its columns, and the owner of each row in ``tacit_u``.

    Rows without an owner are dropped. In a public table, and where the unit is the row (``unit`` is empty),
    the owner is 0.
    """
    value = frame_value_sql if source.kind == "frame" else value_sql
    columns = ", ".join(f"{value(c, t)} AS {quote(c)}" for c, t in types)
    readable = [quote(c) for c, t in types if t != UNREADABLE]
    raw = source.sql(name)
    if len(readable) < len(types):  # DuckDB then does not read the other columns, not even their statistics
        raw = raw.replace("SELECT *", f"SELECT {', '.join(readable) or 'NULL'}", 1)
    if grids:
        on_grid = ", ".join(f"{sql} AS {quote(g)}" for g, sql in grids.items())
        inner = view_sql(name, source, unit, types).split(" AS ", 1)[1]
        return f"CREATE OR REPLACE TEMP VIEW {quote(name)} AS SELECT *, {on_grid} FROM ({inner})"
    if not unit:
        return f"CREATE OR REPLACE TEMP VIEW {quote(name)} AS SELECT 0 AS tacit_u, {columns} FROM ({raw})"
    owner = owner_sql(unit, types)
    return (
        f"CREATE OR REPLACE TEMP VIEW {quote(name)} AS SELECT {owner} AS tacit_u, {columns} "
        f"FROM ({raw}) WHERE {owner} IS NOT NULL"
    )


def bytes_view(name: str, path: str, types: ColumnTypes) -> str:
    """Write the view of a Parquet file that has bytes in place of text: each value is decoded on its own.

    Bytes that are not UTF-8 are written out, so that different ones stay different.
    """
    listed = ", ".join(
        f"coalesce(TRY(decode({quote(c)})), CAST({quote(c)} AS VARCHAR)) AS {quote(c)}"
        if t in {"VARCHAR", "JSON"}
        else quote(c)
        for c, t in types
        if t != UNREADABLE
    )
    raw = quote("tacit raw " + name)
    return f"CREATE OR REPLACE TEMP VIEW {raw} AS SELECT {listed or 'NULL'} FROM read_parquet({string(path)})"
