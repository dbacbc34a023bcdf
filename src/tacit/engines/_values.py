"""Values as the DuckDB engine reads them: SQL for owners and columns, and which types are safe to read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

#: The columns of a source in order, each with its DuckDB type.
ColumnTypes: TypeAlias = Sequence[tuple[str, str]]
#: Lists of columns, each of which the catalogue of a database keeps unique.
UniqueColumns: TypeAlias = Sequence[tuple[str, ...]]
#: How values of a type are read.
TypeFamily: TypeAlias = Literal["number", "text", "boolean", "moment"]
TYPE_FAMILIES: tuple[TypeFamily, ...] = ("number", "text", "boolean", "moment")

_WHOLE = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
_HUGE = {"UBIGINT", "HUGEINT", "UHUGEINT"}
_FLOATS = {"FLOAT", "DOUBLE"}
_NANO = {"TIMESTAMP_NS", "TIMESTAMPTZ_NS"}
_TEXTS = ("VARCHAR", "ENUM", "UUID", "BLOB", "JSON", "BIT")

#: Longer texts are cut, so that no chain of operators can grow one row until the query fails.
MOST_TEXT = 65_536
_EXACT = "-?[1-9][.][0-9]{17}e[+][0-9]{2,3}"  # printf('%.17e')
#: The type of a column that DuckDB raises on where one of its moments is out of range: it is never read.
UNREADABLE = "TIMESTAMP in milliseconds"
#: The type of a column that DuckDB computes when it reads it, and may raise on: it is never read.
GENERATED = "a generated column"
NEVER_READ = frozenset({UNREADABLE, GENERATED})


#: ``tacit_grid``: floor(x/step + 1/2), with x clipped to the ends of the grid and ``halves`` = 2/step, a
#: power of two: the product is exact, and floor((floor(2y) + 1) / 2) = floor(y + 1/2). NULL and NaN: NULL.
#: ``tacit_text``, ``tacit_number``, ``tacit_truth``: one reading of a value, whatever type its column has: 1
#: and 1.0 are the text '1', TRUE and 'true' the number 1, every number but 0 is true. The type is known
#: before any row is read, so each is a plain cast where the type needs no more.
#: ``tacit_digits``: a double's shortest text, or all its digits where DuckDB writes another double's (2^81).
#: ``tacit_short``: a value, or NULL for a text of more bytes.
MACROS = """
CREATE OR REPLACE TEMP MACRO tacit_grid(x, first, last, halves) AS
CASE WHEN NOT isnan(x)
THEN (TRY_CAST(floor(least(greatest(x, first), last) * halves) AS BIGINT) + 1) >> 1 END;
CREATE OR REPLACE TEMP MACRO tacit_digits(x) AS
CASE WHEN isnan(x) OR TRY_CAST(CAST(x AS VARCHAR) AS DOUBLE) = x THEN CAST(x AS VARCHAR)
ELSE printf('%.17e', x) END;
CREATE OR REPLACE TEMP MACRO tacit_text(x) AS
CASE WHEN typeof(x) NOT IN ('FLOAT', 'DOUBLE') THEN TRY_CAST(x AS VARCHAR)
WHEN TRY_CAST(x AS DOUBLE) = trunc(TRY_CAST(x AS DOUBLE))
AND abs(TRY_CAST(x AS DOUBLE)) < 9223372036854775808e0
THEN CAST(TRY_CAST(TRY_CAST(x AS DOUBLE) AS BIGINT) AS VARCHAR)
ELSE tacit_digits(TRY_CAST(x AS DOUBLE)) END;
CREATE OR REPLACE TEMP MACRO tacit_short(x, most) AS
CASE WHEN typeof(x) <> 'VARCHAR' OR strlen(TRY_CAST(x AS VARCHAR)) <= most THEN x END;
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


def string(text: str) -> str:
    """Quote a text constant."""
    return "'" + text.replace("'", "''") + "'"


def owner_sql(unit: Sequence[str], types: ColumnTypes) -> str:
    """Write the owner of a row: the unit that one column names, or several columns together.

    Guarantee
    ---------
    Two rows have one owner only if every column of the unit names the same thing in both; the owner is NULL
    if one of these columns names nothing (NULL, NaN, or a value that cannot be read). For several columns,
    every name but the last is written with its length in bytes before it. So the text can be taken apart
    again in one way only: the digits up to the first colon say where the first name ends. The names
    ("a|b", "c") and ("a", "b|c") become ``3:a|bc`` and ``1:ab|c``.
    """
    parts = [_name(column, next(t for c, t in types if c.lower() == column.lower())) for column in unit]
    if len(parts) == 1:
        return parts[0]
    *parts_before, last_part = (f"CAST({part} AS VARCHAR)" for part in parts)
    sized = "".join(f"CAST(strlen({text}) AS VARCHAR) || ':' || {text} || " for text in parts_before)
    return f"({sized}{last_part} COLLATE C)"


def _name(column: str, kind: str) -> str:
    r"""Write what a column names, so that two names are equal only if they name one unit.

    Whole numbers stay as they are. Floats, decimals and days become their one text (``tacit_text``), so that
    1, 1.0 and '1' name the same unit, whatever the types of their columns. Text is kept whole, or becomes its
    hash where it exceeds the limit. Bytes that are UTF-8 name what their text names; other bytes become their
    hash, so that the text that spells them (``\xFF``) names another unit. Moments keep all their digits.
    """
    c = quote(column)
    if kind in _WHOLE:
        return f"CAST({c} AS BIGINT)"
    if kind in _FLOATS:
        # DuckDB gives 2^81 the text of 2^82: a double beyond all whole numbers of 64 bits has all its digits
        large = f"WHEN abs({c}) >= 9223372036854775808e0 THEN printf('%.17e', CAST({c} AS DOUBLE))"
        return f"(CASE WHEN isnan({c}) THEN NULL {large} ELSE tacit_text({c}) END COLLATE C)"
    if kind.startswith("DECIMAL"):
        return _digits(c)
    if kind in _NANO:  # a whole number of microseconds is written like any other moment
        return f"(TRY_CAST({_nano(c, kind)} AS VARCHAR) COLLATE C)"
    if family(kind) == "moment":
        return value_sql(column, kind)
    if family(kind) is None:
        return "CAST(NULL AS VARCHAR)"
    text = _decoded(c) if kind == "BLOB" else f"TRY_CAST({c} AS VARCHAR)"
    size, digest = f"strlen({text})", f"'sha256:' || sha256({text})"  # 71 bytes; no short name is a digest
    hashed = f"{size} >= 71 AND ({size} > {MOST_TEXT} OR starts_with({text}, 'sha256:'))"
    name = f"CASE WHEN {hashed} THEN {digest} ELSE {text} END"
    if kind == "BLOB":  # bytes that are not a text are named by their digest, which no text is named by
        name = f"CASE WHEN {text} IS NULL THEN 'sha256:' || sha256({c}) ELSE {name} END"
    return f"({name} COLLATE C)"


def frame_value_sql(column: str, kind: str) -> str:
    """Write a value of a frame, whose types may follow from other rows: the same in every type it may have.

    NaN is missing, as it is in a column of objects. Decimals and huge numbers become their digits.
    """
    c = quote(column)
    if kind in _FLOATS:
        return f"CASE WHEN NOT isnan({c}) THEN CAST({c} AS DOUBLE) + 0e0 END"
    if kind.startswith(("DECIMAL", "HUGEINT", "UHUGEINT")):
        return _digits(c)
    if kind == "VARCHAR":  # a double of 2^63 or more has the text of owners in a column of objects
        exact = f"strlen({c}) BETWEEN 23 AND 25 AND regexp_full_match({c}, '{_EXACT}')"
        short = f"tacit_digits(TRY_CAST({c} AS DOUBLE))"
        return f"(CASE WHEN {exact} THEN {short} ELSE {value_sql(column, kind)} END COLLATE C)"
    return value_sql(column, kind)


def value_sql(column: str, kind: str) -> str:
    """Write a value in one of a few types.

    Floats have one zero and one NaN, moments have no time zone. Text has a bounded length and is compared
    byte by byte, whatever collation its column or the connection has; otherwise the order of the rows would
    decide which spelling stands for a group of equal ones. Types whose conversion can raise on some value
    (clock times, spans, nested types) are read as missing, because one hostile row must not make a query
    fail. Bytes are the text that they encode; bytes that are not UTF-8 are written out.
    """
    c = quote(column)
    if kind in _FLOATS:
        return f"CASE WHEN isnan({c}) THEN CAST('nan' AS DOUBLE) ELSE CAST({c} AS DOUBLE) + 0e0 END"
    if kind == "TIMESTAMP WITH TIME ZONE":
        return _in_calendar(f"TRY(make_timestamp(epoch_us({c})))")
    if kind in _NANO:
        return _in_calendar(f"TRY_CAST({_nano(c, kind)} AS TIMESTAMP)")
    match family(kind):
        case "moment":
            return _in_calendar(f"TRY_CAST({c} AS TIMESTAMP)")
        case "number" | "boolean":
            return c
        case "text":
            text = (
                f"coalesce({_decoded(c)}, CAST({c} AS VARCHAR))"
                if kind == "BLOB"
                else f"TRY_CAST({c} AS VARCHAR)"
            )
            return f"(substring({text}, 1, {MOST_TEXT}) COLLATE C)"
        case None:
            return "CAST(NULL AS VARCHAR)"


def family(kind: str) -> TypeFamily | None:
    """Return how values of a type are read; None where they never are, so that all of them are missing."""
    if kind == "BOOLEAN":
        return "boolean"
    if kind in _WHOLE or kind in _HUGE or kind in _FLOATS or kind.startswith("DECIMAL"):
        return "number"
    if kind.startswith(_TEXTS) and not kind.endswith("]"):
        return "text"
    moment = kind == "DATE" or (kind.startswith("TIMESTAMP") and kind != UNREADABLE)
    return "moment" if moment else None


def stays_typed(kind: str) -> bool:
    """Return whether a frame's values of a type stay numbers or booleans in its view."""
    return kind in _WHOLE or kind in _FLOATS or kind in {"UBIGINT", "BOOLEAN"}


def _decoded(column: str) -> str:
    """Write the text that bytes are; NULL where they are not UTF-8."""
    return f"TRY(decode({column}))"


def _digits(column: str) -> str:
    """Write a decimal or huge number by its digits, without zeros at the end of a fraction."""
    text = f"TRY_CAST({column} AS VARCHAR)"
    return f"(CASE WHEN contains({text}, '.') THEN rtrim(rtrim({text}, '0'), '.') ELSE {text} END COLLATE C)"


def _nano(column: str, kind: str) -> str:
    """Write a moment in nanoseconds; the last hours that 64 bits can hold cannot always be converted."""
    moment = column if kind == "TIMESTAMP_NS" else f"TRY(make_timestamp_ns(epoch_ns({column})))"
    earliest, latest = "TIMESTAMP_NS '1677-09-22'", "TIMESTAMP_NS '2262-04-11'"
    return f"CASE WHEN {moment} >= {earliest} AND {moment} < {latest} THEN {moment} END"


def _in_calendar(moment: str) -> str:
    """Write a moment of the years 1 to 9999; outside of them DuckDB cannot write every moment as text."""
    earliest, latest = "TIMESTAMP '0001-01-01'", "TIMESTAMP '9999-12-31 23:59:59.999999'"
    return f"CASE WHEN {moment} BETWEEN {earliest} AND {latest} THEN {moment} END"
