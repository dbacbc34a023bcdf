"""The views that DuckDB lays over a source: owners, values, and the keyed order of each owner's rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tacit.engines._sources import Source


__all__ = [
    "MACROS",
    "MOST_TEXT",
    "UNREADABLE",
    "bytes_view",
    "limited_view",
    "quote",
    "ranked_table",
    "ranked_view",
    "readable",
    "source_sql",
    "view_sql",
]

_WHOLE = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
_HUGE = {"UBIGINT", "HUGEINT", "UHUGEINT"}
_FLOATS = {"FLOAT", "DOUBLE"}
_NANO = {"TIMESTAMP_NS", "TIMESTAMPTZ_NS"}
_TEXTS = ("VARCHAR", "ENUM", "UUID", "BLOB", "JSON", "BIT")

#: Longer texts are cut, so that no chain of operators can grow one row until the query fails.
MOST_TEXT = 65_536
#: The type of a column that cannot be read without a conversion that may raise: all its values are missing.
UNREADABLE = "UNREADABLE"


#: ``tacit_grid``: floor(x/step + 1/2), with x clipped to the ends of the grid and ``halves`` = 2/step, a
#: power of two: the product is exact, and floor((floor(2y) + 1) / 2) = floor(y + 1/2). NULL and NaN: NULL.
#: ``tacit_text``, ``tacit_number``, ``tacit_truth``: one reading of a value, whatever type its column has: 1
#: and 1.0 are the text '1', TRUE and 'true' the number 1, every number but 0 is true. The type is settled
#: before any row is read, so each is a plain cast where the type needs no more.
MACROS = """
CREATE OR REPLACE TEMP MACRO tacit_grid(x, first, last, halves) AS
CASE WHEN NOT isnan(x)
THEN (TRY_CAST(floor(least(greatest(x, first), last) * halves) AS BIGINT) + 1) >> 1 END;
CREATE OR REPLACE TEMP MACRO tacit_text(x) AS
CASE WHEN typeof(x) NOT IN ('FLOAT', 'DOUBLE') THEN TRY_CAST(x AS VARCHAR)
WHEN TRY_CAST(x AS DOUBLE) = trunc(TRY_CAST(x AS DOUBLE))
AND abs(TRY_CAST(x AS DOUBLE)) < 9223372036854775808e0
THEN CAST(TRY_CAST(TRY_CAST(x AS DOUBLE) AS BIGINT) AS VARCHAR)
ELSE CAST(TRY_CAST(x AS DOUBLE) AS VARCHAR) END;
CREATE OR REPLACE TEMP MACRO tacit_number(x) AS
CASE WHEN typeof(x) <> 'VARCHAR' THEN TRY_CAST(x AS DOUBLE)
ELSE coalesce(TRY_CAST(x AS DOUBLE),
CASE TRY_CAST(x AS VARCHAR) WHEN 'true' THEN 1e0 WHEN 'false' THEN 0e0 END) END;
CREATE OR REPLACE TEMP MACRO tacit_truth(x) AS
CASE WHEN typeof(x) <> 'VARCHAR' THEN TRY_CAST(x AS BOOLEAN)
ELSE coalesce(TRY_CAST(x AS BOOLEAN),
CASE WHEN NOT isnan(TRY_CAST(x AS DOUBLE)) THEN TRY_CAST(x AS DOUBLE) <> 0e0 END) END;
"""


def quote(name: str) -> str:
    """Quote an identifier."""
    return '"' + name.replace('"', '""') + '"'


def source_sql(source: Source, name: str) -> str:
    """Write the source as a relation.

    CSV cells are read as text; lines that cannot be read are left out, none aborts.
    """
    path = _text(str(source.place)) if source.kind in {"parquet", "csv"} else ""
    match source.kind:
        case "parquet":
            return f"SELECT * FROM read_parquet({path})"
        case "csv":
            return (
                f"SELECT * FROM read_csv({path}, header = true, all_varchar = true, "
                f"delim = '{source.delimiter}', "
                "quote = '\"', escape = '\"', strict_mode = false, null_padding = true, "
                "ignore_errors = true, parallel = false, "
                f"max_line_size = 67108864, auto_detect = false, columns = {_text_columns(source)})"
            )
        case "database":
            return f"SELECT * FROM {quote('tacit db ' + name)}.{quote(source.table or name)}"
        case "connection":
            return f"SELECT * FROM {'.'.join(map(quote, (*source.within, source.table or name)))}"
        case _:
            return f"SELECT * FROM {quote('tacit raw ' + name)}"


def _text_columns(source: Source) -> str:
    columns = source.columns() or ("column0",)
    listed = ", ".join(f"{_text(c)}: 'VARCHAR'" for c in columns)
    return "{" + listed + "}"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def view_sql(
    name: str,
    source: Source,
    unit: str | None,
    types: list[tuple[str, str]],
    grids: Mapping[str, str] | None = None,
) -> str:
    """Write the view of a table: its owner in ``tacit_u`` (rows without one are dropped) and its columns."""
    value = _frame_value if source.kind == "frame" else _value
    columns = ", ".join(f"{value(c, t)} AS {quote(c)}" for c, t in types)
    readable = [quote(c) for c, t in types if t != UNREADABLE]
    raw = source_sql(source, name)
    if len(readable) < len(types):  # what is not selected is not read, not even for its statistics
        raw = raw.replace("SELECT *", f"SELECT {', '.join(readable) or 'NULL'}", 1)
    if grids:
        on_grid = ", ".join(f"{sql} AS {quote(g)}" for g, sql in grids.items())
        inner = view_sql(name, source, unit, types).split(" AS ", 1)[1]
        return f"CREATE OR REPLACE TEMP VIEW {quote(name)} AS SELECT *, {on_grid} FROM ({inner})"
    if not unit:
        return f"CREATE OR REPLACE TEMP VIEW {quote(name)} AS SELECT 0 AS tacit_u, {columns} FROM ({raw})"
    owner = _owner(unit, next(t for c, t in types if c.lower() == unit.lower()))
    return (
        f"CREATE OR REPLACE TEMP VIEW {quote(name)} AS SELECT {owner} AS tacit_u, {columns} "
        f"FROM ({raw}) WHERE {owner} IS NOT NULL"
    )


def bytes_view(name: str, path: str, types: list[tuple[str, str]]) -> str:
    """Write the view of a Parquet file that has bytes where its texts were: each is decoded by itself.

    Bytes that are no text are written out, so that different ones stay different.
    """
    listed = ", ".join(
        f"coalesce(TRY(decode({quote(c)})), CAST({quote(c)} AS VARCHAR)) AS {quote(c)}"
        if t in {"VARCHAR", "JSON"}
        else quote(c)
        for c, t in types
        if t != UNREADABLE
    )
    raw = quote("tacit raw " + name)
    return f"CREATE OR REPLACE TEMP VIEW {raw} AS SELECT {listed or 'NULL'} FROM read_parquet({_text(path)})"


def _owner(column: str, kind: str) -> str:
    """Write the owner, so that two names are one owner only if they name one unit.

    Whole numbers as they are; floats, decimals and days in their one text (``tacit_text``), so that 1, 1.0
    and '1' name one unit alike, whatever the types of their columns. Texts whole, those beyond the limit by
    their hash; moments with all their digits.
    """
    c = quote(column)
    if kind in _WHOLE:
        return f"CAST({c} AS BIGINT)"
    if kind in _FLOATS:
        return f"(CASE WHEN NOT isnan({c}) THEN tacit_text({c}) END COLLATE C)"
    if kind.startswith("DECIMAL"):
        return _digits(c)
    if kind in _NANO:  # a whole number of microseconds is written as any other moment is
        return f"(TRY_CAST({_nano(c, kind)} AS VARCHAR) COLLATE C)"
    if kind == "DATE" or kind.startswith("TIMESTAMP"):
        return _value(column, kind)
    if not _as_text(kind):
        return "CAST(NULL AS VARCHAR)"
    text = f"TRY_CAST({c} AS VARCHAR)"
    size, digest = f"strlen({text})", f"'sha256:' || sha256({text})"  # 71 bytes; no short name is a digest
    hashed = f"{size} >= 71 AND ({size} > {MOST_TEXT} OR starts_with({text}, 'sha256:'))"
    return f"(CASE WHEN {hashed} THEN {digest} ELSE {text} END COLLATE C)"


def _digits(column: str) -> str:
    """Write a decimal or huge number by its digits, without zeros at the end of a fraction."""
    text = f"TRY_CAST({column} AS VARCHAR)"
    return f"(CASE WHEN contains({text}, '.') THEN rtrim(rtrim({text}, '0'), '.') ELSE {text} END COLLATE C)"


def _frame_value(column: str, kind: str) -> str:
    """Write a value of a frame, whose types may follow from other rows: the same in every type it may have.

    NaN is missing as it is in a column of objects; decimals and huge numbers are their digits.
    """
    c = quote(column)
    if kind in _FLOATS:
        return f"CASE WHEN NOT isnan({c}) THEN CAST({c} AS DOUBLE) + 0e0 END"
    if kind.startswith(("DECIMAL", "HUGEINT", "UHUGEINT")):
        return _digits(c)
    return _value(column, kind)


def _value(column: str, kind: str) -> str:
    """Write a value in one of few types.

    Floats with one zero and one NaN, moments without zone, texts of bounded length that are compared byte by
    byte, whatever collation their column or the connection has (which spelling stands for a group of equal
    ones would be decided by the order of the rows). Types whose conversion
    can raise on some value (clock times, spans, nested ones) are read as missing: one hostile row must not
    make a query fail.
    """
    c = quote(column)
    if kind in _FLOATS:
        return f"CASE WHEN isnan({c}) THEN CAST('nan' AS DOUBLE) ELSE CAST({c} AS DOUBLE) + 0e0 END"
    if kind == "TIMESTAMP WITH TIME ZONE":
        return _in_calendar(f"TRY(make_timestamp(epoch_us({c})))")
    if kind in _NANO:
        return _in_calendar(f"TRY_CAST({_nano(c, kind)} AS TIMESTAMP)")
    if kind == "DATE" or kind.startswith("TIMESTAMP"):
        return _in_calendar(f"TRY_CAST({c} AS TIMESTAMP)")
    if kind in _WHOLE or kind in _HUGE or kind == "BOOLEAN" or kind.startswith("DECIMAL"):
        return c
    return _text_of(c, kind)


def _nano(column: str, kind: str) -> str:
    """Write a moment in nanoseconds; the last hours of what 64 bits can hold cannot always be converted."""
    moment = column if kind == "TIMESTAMP_NS" else f"TRY(make_timestamp_ns(epoch_ns({column})))"
    first, last = "TIMESTAMP_NS '1677-09-22'", "TIMESTAMP_NS '2262-04-11'"
    return f"CASE WHEN {moment} >= {first} AND {moment} < {last} THEN {moment} END"


def _in_calendar(moment: str) -> str:
    """Write a moment of the years 1 to 9999; outside of them DuckDB cannot even write every one as text."""
    first, last = "TIMESTAMP '0001-01-01'", "TIMESTAMP '9999-12-31 23:59:59.999999'"
    return f"CASE WHEN {moment} BETWEEN {first} AND {last} THEN {moment} END"


def _text_of(column: str, kind: str) -> str:
    if _as_text(kind):
        return f"(substring(TRY_CAST({column} AS VARCHAR), 1, {MOST_TEXT}) COLLATE C)"
    return "CAST(NULL AS VARCHAR)"


def _as_text(kind: str) -> bool:
    return _is_text(kind) or kind in _HUGE or kind in {"BOOLEAN", "DATE"} or kind.startswith("DECIMAL")


def _is_text(kind: str) -> bool:
    return kind.startswith(_TEXTS) and not kind.endswith("]")


def readable(kind: str) -> bool:
    """Tell whether values of a type are read; those of others are missing."""
    moment = kind == "DATE" or kind.startswith("TIMESTAMP")
    return kind == "BOOLEAN" or moment or _is_text(kind) or _numeric(kind)


def _numeric(kind: str) -> bool:
    return kind in _WHOLE or kind in _HUGE or kind in _FLOATS or kind.startswith("DECIMAL")


def _rank(types: list[tuple[str, str]], key: int, *, inferred: bool = False) -> str:
    """Write the rank of a row among the rows of its owner.

    Ordered by a keyed hash of the owner and all values, then by the values themselves. Rows that are equal in
    every value are interchangeable: whichever of them is numbered first, the same multiset is kept.

    Where types are ``inferred`` (a frame), one row of another unit may turn whole numbers into floats or
    texts. Then what is hashed is the number that a value is, else its text; ties are broken in that order.
    """
    if inferred:
        hashed = ", ".join(_inferred_hash(c, t) for c, t in types)
        natives = ", ".join(_inferred_order(c, t) for c, t in types)
    else:
        natives = ", ".join(quote(c) for c, _ in types)
        hashed = ", ".join(f"CAST({quote(c)} AS {'DOUBLE' if _numeric(t) else 'VARCHAR'})" for c, t in types)
    order = f"hash({key}::UBIGINT, CAST(tacit_u AS VARCHAR), {hashed}), {natives}"
    return f"row_number() OVER (PARTITION BY tacit_u ORDER BY {order})"


def _inferred_hash(column: str, kind: str) -> str:
    c = quote(column)
    if _plain(kind):
        return f"hash(CAST({c} AS DOUBLE))"
    if kind == "DATE" or kind.startswith("TIMESTAMP"):  # a moment's text is no number
        return f"hash(CAST({c} AS VARCHAR))"
    return f"CASE WHEN NOT isnan(tacit_number({c})) THEN hash(tacit_number({c})) ELSE hash({c}) END"


def _inferred_order(column: str, kind: str) -> str:
    """Order by the number, where two are one double by the whole number, and by the text."""
    c = quote(column)
    if _plain(kind) or kind == "DATE" or kind.startswith("TIMESTAMP"):
        return c
    return f"tacit_number({c}), TRY_CAST({c} AS HUGEINT), {c}"


def _plain(kind: str) -> bool:
    """Tell whether a frame's values of a type stay numbers or booleans in its view."""
    return kind in _WHOLE or kind in _FLOATS or kind in {"UBIGINT", "BOOLEAN"}


def _columns(types: list[tuple[str, str]], grids: Sequence[str]) -> str:
    return ", ".join(["tacit_u", *(quote(c) for c, _ in types), *(quote(g) for g in grids)])


def limited_view(
    name: str,
    rows: int,
    types: list[tuple[str, str]],
    key: int,
    grids: Sequence[str] = (),
    *,
    inferred: bool = False,
) -> str:
    """Write the view of each unit's first rows. Only units with more rows than that are ranked."""
    table, columns = quote(name), _columns(types, grids)
    rank = _rank(types, key, inferred=inferred)
    return (
        f"CREATE OR REPLACE TEMP VIEW {quote(f'{name} first {rows}')} AS "
        f"WITH heavy AS MATERIALIZED (SELECT tacit_u FROM {table} GROUP BY tacit_u HAVING count(*) > {rows}) "
        f"SELECT {columns} FROM {table} WHERE tacit_u NOT IN (SELECT tacit_u FROM heavy) "
        f"UNION ALL SELECT {columns} FROM (SELECT {columns}, {rank} AS tacit_r "
        f"FROM {table} WHERE tacit_u IN (SELECT tacit_u FROM heavy)) WHERE tacit_r <= {rows}"
    )


def ranked_table(
    name: str,
    types: list[tuple[str, str]],
    key: int,
    grids: Sequence[str] = (),
    *,
    temporary: bool = False,
    inferred: bool = False,
) -> str:
    """Write the snapshot: every row with its rank, sorted by it, so that a limit is a short scan."""
    kind = "TEMP TABLE" if temporary else "TABLE"
    rank = _rank(types, key, inferred=inferred)
    return (
        f"CREATE OR REPLACE {kind} {quote('tacit snapshot ' + name)} AS SELECT {_columns(types, grids)}, "
        f"CAST({rank} AS UINTEGER) AS tacit_r FROM {quote(name)} ORDER BY tacit_r"
    )


def ranked_view(name: str, rows: int) -> str:
    """Write the view of each unit's first rows over the snapshot."""
    stored = quote("tacit snapshot " + name)
    view = quote(f"{name} first {rows}")
    return f"CREATE OR REPLACE TEMP VIEW {view} AS SELECT * FROM {stored} WHERE tacit_r <= {rows}"
