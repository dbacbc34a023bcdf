"""The DuckDB engine's views: a table's rows with their owners, and the first rows of every owner by rank."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tacit.engines._values import (
    NEVER_READ,
    family,
    frame_value_sql,
    owner_sql,
    quote,
    stays_typed,
    value_sql,
)
from tacit.engines.sources._sources import CsvSource, FrameSource
from tacit.engines.sql._dialect import numbered

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tacit.engines._values import ColumnTypes
    from tacit.engines.duckdb._dialect import DuckDBDialect
    from tacit.engines.sources._sources import Source

#: The parts of a date in the order of ISO 8601.
DATE_PARTS = ("year", "month", "day")


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
    value = frame_value_sql if isinstance(source, FrameSource) else value_sql
    values = [(c, value(c, t)) for c, t in types]
    if isinstance(source, CsvSource):
        values = [(c, as_declared(sql, source)) for c, sql in values]
    columns = ", ".join(f"{sql} AS {quote(c)}" for c, sql in values)
    readable = [quote(c) for c, t in types if t not in NEVER_READ]
    raw = source.sql(name)
    if len(readable) < len(types):  # DuckDB then does not read the other columns, not even their statistics
        raw = raw.replace("SELECT *", f"SELECT {', '.join(readable) or 'NULL'}", 1)
    rows = f"SELECT 0 AS tacit_u, {columns} FROM ({raw})"
    if unit:
        owner = owner_sql(unit, types)
        rows = f"SELECT {owner} AS tacit_u, {columns} FROM ({raw}) WHERE {owner} IS NOT NULL"
    if grids:
        on_grid = ", ".join(f"{sql} AS {quote(g)}" for g, sql in grids.items())
        rows = f"SELECT *, {on_grid} FROM ({rows})"
    return f"CREATE OR REPLACE TEMP VIEW {quote(name)} AS {rows}"


def as_declared(value: str, source: CsvSource) -> str:
    """Read a cell of a CSV file as its reading facts say.

    A row's owner is named by the cell itself, so that ``1,5`` and ``1.5`` are different units.
    """
    if source.decimal == ",":
        value = _with_point(value)
    return _with_year_first(value, source.dates) if source.dates else value


def _with_year_first(value: str, order: str) -> str:
    """Write a date with its parts in another order as ``year-month-day``; other text stays as it is.

    A time may follow the date. A day that does not exist, such as 31.02.2024, is later read as missing.
    """
    parts = re.split(r"[./-]", order)
    sign = order[len(parts[0])]
    width = {"day": "[0-9]{1,2}", "month": "[0-9]{1,2}", "year": "[0-9]{4}"}
    form = rf"\s*{f'[{sign}]'.join(f'({width[part]})' for part in parts)}([ T][0-9:.]+)?\s*"
    year, month, day = (f"regexp_extract({value}, '{form}', {parts.index(p) + 1})" for p in DATE_PARTS)
    iso = f"{year} || '-' || lpad({month}, 2, '0') || '-' || lpad({day}, 2, '0')"
    short = f"length({value}) <= 64 AND regexp_full_match({value}, '{form}')"
    return f"CASE WHEN {short} THEN {iso} || regexp_extract({value}, '{form}', 4) ELSE {value} END"


def _with_point(value: str) -> str:
    """Write a number with a decimal comma with a point instead; other text stays as it is."""
    form = r"\s*[+-]?[0-9]*,[0-9]+([eE][+-]?[0-9]+)?\s*"
    short = f"length({value}) <= 64 AND regexp_full_match({value}, '{form}')"
    return f"CASE WHEN {short} THEN replace({value}, ',', '.') ELSE {value} END"


def limited_view(
    name: str,
    rows: int,
    types: ColumnTypes,
    rank: str,
    grids: Sequence[str] = (),
) -> str:
    """Write the view of each unit's first rows. Only units with more rows than that are ranked."""
    table, columns = quote(name), _columns(types, grids)
    return (
        f"CREATE OR REPLACE TEMP VIEW {quote(f'{name} first {rows}')} AS "
        f"WITH tacit_heavy AS MATERIALIZED "
        f"(SELECT tacit_u FROM {table} GROUP BY tacit_u HAVING count(*) > {rows}) "
        f"SELECT {columns} FROM {table} WHERE tacit_u NOT IN (SELECT tacit_u FROM tacit_heavy) "
        f"UNION ALL SELECT {columns} FROM (SELECT {columns}, {rank} AS tacit_r "
        f"FROM {table} WHERE tacit_u IN (SELECT tacit_u FROM tacit_heavy)) WHERE tacit_r <= {rows}"
    )


def ranked_table(
    name: str,
    types: ColumnTypes,
    rank: str,
    grids: Sequence[str] = (),
    *,
    temporary: bool = False,
) -> str:
    """Write the snapshot: every row with its rank, sorted by rank, so that a row limit is a short scan."""
    kind = "TEMP TABLE" if temporary else "TABLE"
    return (
        f"CREATE OR REPLACE {kind} {quote('tacit snapshot ' + name)} AS SELECT {_columns(types, grids)}, "
        f"CAST({rank} AS UINTEGER) AS tacit_r FROM {quote(name)} ORDER BY tacit_r"
    )


def ranked_view(name: str, rows: int) -> str:
    """Write the view of each unit's first rows over the snapshot."""
    stored = quote("tacit snapshot " + name)
    view = quote(f"{name} first {rows}")
    return f"CREATE OR REPLACE TEMP VIEW {view} AS SELECT * FROM {stored} WHERE tacit_r <= {rows}"


def _columns(types: ColumnTypes, grids: Sequence[str]) -> str:
    return ", ".join(["tacit_u", *(quote(c) for c, _ in types), *(quote(g) for g in grids)])


def rank_sql(types: ColumnTypes, key: int, *, inferred: bool = False) -> str:
    """Write the rank of a row among the rows of its owner.

    Rows are ordered by a keyed hash of the owner and all values, then by the values themselves. Rows that are
    equal in every value are interchangeable: whichever of them comes first, the same multiset is kept.

    Where types are ``inferred`` (a frame), one row of another unit may turn whole numbers into floats or
    text. Then the hash takes the number that a value is, or else its text; ties are broken in that order.
    """
    if inferred:
        hashed = ", ".join(_inferred_hash(c, t) for c, t in types)
        natives = ", ".join(_inferred_order(c, t) for c, t in types)
    else:
        natives = ", ".join(quote(c) for c, _ in types)
        hashed = ", ".join(
            f"CAST({quote(c)} AS {'DOUBLE' if family(t) == 'number' else 'VARCHAR'})" for c, t in types
        )
    order = f"hash({key}::UBIGINT, CAST(tacit_u AS VARCHAR), {hashed}), {natives}"
    return f"row_number() OVER (PARTITION BY tacit_u ORDER BY {order})"


def portable_rank_sql(dialect: DuckDBDialect, types: ColumnTypes) -> str:
    """Write the rank of a row among the rows of its owner, as every other engine ranks it."""
    texts = [dialect.text(quote(c), None) for c, _ in types]
    return numbered(["tacit_u"], ", ".join([dialect.ranked([(text, "text") for text in texts]), *texts]))


def _inferred_hash(column: str, kind: str) -> str:
    c = quote(column)
    if stays_typed(kind):
        return f"hash(CAST({c} AS DOUBLE))"
    if family(kind) == "moment":  # the text of a moment is not a number
        return f"hash(CAST({c} AS VARCHAR))"
    return f"CASE WHEN NOT isnan(tacit_number({c})) THEN hash(tacit_number({c})) ELSE hash({c}) END"


def _inferred_order(column: str, kind: str) -> str:
    """Order by the number, then by the whole number (two of them may be one double), then by the text."""
    c = quote(column)
    if stays_typed(kind) or family(kind) == "moment":
        return c
    return f"tacit_number({c}), TRY_CAST({c} AS HUGEINT), {c}"
