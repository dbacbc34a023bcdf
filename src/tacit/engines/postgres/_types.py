"""The types of PostgreSQL's columns: which are read, as what, and the SQL that reads each."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tacit.engines._values import GENERATED, MOST_TEXT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.engines._dialect import Dialect, StoredType

#: The columns of a table that the role may read, in order: name, type as people write it, the type that it
#: stands for (of a domain, the one below it), whether it is computed when it is read, the limits of that type
#: (-1: none). An enumeration that has a cast of its own to text is not read: the cast runs its owner's code.
DESCRIBED = """WITH RECURSIVE base(attnum, attname, attgenerated, shown, typ, typmod) AS (
SELECT attnum, attname::text, attgenerated, format_type(atttypid, atttypmod), atttypid, atttypmod
FROM pg_attribute
WHERE attrelid = $1 AND attnum > 0 AND NOT attisdropped AND has_column_privilege(attrelid, attnum, 'SELECT')
UNION ALL SELECT attnum, attname, attgenerated, shown, typbasetype, typtypmod
FROM base JOIN pg_type ON oid = typ
WHERE typtype = 'd')
SELECT attname, shown, CASE WHEN typtype = 'e' THEN CASE WHEN EXISTS (SELECT 1 FROM pg_cast
WHERE castsource = t.oid AND casttarget = 'text'::regtype) THEN '' ELSE 'enum' END
WHEN typnamespace = 'pg_catalog'::regnamespace THEN typname
WHEN EXISTS (SELECT 1 FROM pg_cast WHERE castsource = t.oid AND casttarget = 'text'::regtype
AND castmethod = 'b') THEN 'text' ELSE '' END::text, attgenerated = 'v' OR EXISTS (
WITH RECURSIVE below(relid) AS (SELECT inhrelid FROM pg_inherits WHERE inhparent = $1
UNION SELECT inhrelid FROM pg_inherits JOIN below ON inhparent = relid)
SELECT 1 FROM below JOIN pg_attribute a ON a.attrelid = relid WHERE a.attname = base.attname
AND a.attgenerated = 'v'), typmod
FROM base JOIN pg_type t ON t.oid = typ WHERE typtype <> 'd' ORDER BY attnum"""

_STORED: dict[str, StoredType] = {
    **dict.fromkeys(("int2", "int4", "int8"), "whole"),
    **dict.fromkeys(("float4", "float8"), "float"),
    "numeric": "digits", "bool": "boolean",
    **dict.fromkeys(("text", "varchar", "bpchar", "name", "uuid", "enum", "bytea", "json", "jsonb"), "text"),
    **dict.fromkeys(("date", "timestamp", "timestamptz"), "moment"),
}  # fmt: skip
#: Bytes beyond these are not looked at; no text of the longest length has more.
_MOST_BYTES = 4 * MOST_TEXT
#: A larger document is missing. Each number in it takes 16 bytes at least, and its text may have 147,458
#: characters (1e131071 has 131,072), and the server holds no text of more than a gigabyte.
_MOST_DOCUMENT = 65_536
#: Bytes of UTF-8 without NUL, as pairs of hexadecimal digits.
_UTF8 = (
    "^(?:0[1-9a-f]|[1-7][0-9a-f]|(?:c[2-9a-f]|d[0-9a-f])[89ab][0-9a-f]|e0[ab][0-9a-f][89ab][0-9a-f]"
    "|e[1-9abcef](?:[89ab][0-9a-f]){2}|ed[89][0-9a-f][89ab][0-9a-f]|f0[9ab][0-9a-f](?:[89ab][0-9a-f]){2}"
    "|f[1-3](?:[89ab][0-9a-f]){3}|f48[0-9a-f](?:[89ab][0-9a-f]){2})*$"
)


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """A column of a table.

    Parameters
    ----------
    name
        Its name.
    declared
        Its type, as people write it; or why it is never read.
    base
        The type's name in the catalog; that of the type below it for a domain; ``enum`` for enumerations;
        empty for types that are never read.
    scaled
        Whether that type fixes the number of decimals.
    """

    name: str
    declared: str
    base: str
    scaled: bool = False

    @property
    def stored(self) -> StoredType | None:
        """The type of the column in the view of its table; None if it is never read."""
        return _STORED.get(self.base)


def read_column(line: Sequence[object]) -> StoredColumn:
    """Read a line of `DESCRIBED`."""
    name, declared, base, computed, limited = line
    if computed:
        return StoredColumn(str(name), GENERATED, "")
    return StoredColumn(str(name), str(declared), str(base) if str(base) in _STORED else "", limited != -1)


def value_sql(column: StoredColumn, dialect: Dialect) -> str:
    """Write a value in one of a few types: moments of the years 1 to 9999 without a time zone, bounded texts.

    Text is compared byte by byte, whatever collation its column has.
    """
    c = dialect.quote(column.name)
    match column.base:
        case "":
            return 'NULL::text COLLATE "C"'
        case "float4":
            return f"{c}::float8"
        case "date":
            return f"CASE WHEN {c} BETWEEN '0001-01-01'::date AND '9999-12-31'::date THEN {c}::timestamp END"
        case "timestamp":
            return _inside(c, "timestamp", c, "")
        case "timestamptz":
            return _inside(c, "timestamptz", f"{c} AT TIME ZONE 'UTC'", "+00")
        case "text" | "varchar" | "json":
            text = f"{c}::text"
            return (
                f"(CASE WHEN octet_length({text}) <= {MOST_TEXT} THEN {text} "
                f'ELSE substring({text}, 1, {MOST_TEXT}) END COLLATE "C")'
            )
        case "numeric" if not column.scaled:  # without a scale, 1.5 and 1.50 are stored apart
            return f"trim_scale({c})"
        case "bytea":
            return f'(substring({_text_of_bytes(c)}, 1, {MOST_TEXT}) COLLATE "C")'
        case _ if column.stored == "text":
            return f'(substring({_whole_text(column, c)}, 1, {MOST_TEXT}) COLLATE "C")'
        case _:
            return c


def _inside(c: str, kind: str, value: str, zone: str) -> str:
    first, last = f"'0001-01-01 00:00:00{zone}'::{kind}", f"'9999-12-31 23:59:59.999999{zone}'::{kind}"
    return f"CASE WHEN {c} BETWEEN {first} AND {last} THEN {value} END"


def _whole_text(column: StoredColumn, c: str) -> str:
    """Write the whole text of a value that is not bytes."""
    if column.base == "jsonb":
        whole = f"pg_column_size(ARRAY[{c}::jsonb])"  # an array holds it as it is without compression
        small = f"CASE WHEN pg_column_size({c}) <= {_MOST_DOCUMENT} THEN {whole} <= {_MOST_DOCUMENT} END"
        return f"CASE WHEN {small} THEN {c}::text END"
    return f"{c}::text"


def _is_utf8(c: str) -> str:
    return f"encode({c}, 'hex') ~ '{_UTF8}'"


def _text_of_bytes(c: str) -> str:
    """Write the text that bytes are; bytes that are not UTF-8, or contain NUL, are written out."""
    cut = f"substring({c}, 1, {_MOST_BYTES})"
    byte = "CASE WHEN b BETWEEN 32 AND 126 AND b NOT IN (34, 39, 92) THEN chr(b) ELSE '\\x' || upper(lpad(to_hex(b), 2, '0')) END"  # noqa: E501
    first = f"SELECT substring({c}, 1, {MOST_TEXT}) AS s OFFSET 0"  # taken once, not for every byte
    listed = f"SELECT i, get_byte(s, i) AS b FROM ({first}) t, generate_series(0, length(s) - 1) i"
    written = f"(SELECT coalesce(string_agg({byte}, '' ORDER BY i), '') FROM ({listed} OFFSET 0) t)"
    decoded = f"convert_from({cut}, 'UTF8')"
    return (
        f"CASE WHEN length({c}) <= {_MOST_BYTES} AND {_is_utf8(cut)} THEN {decoded} "
        f"WHEN {c} IS NOT NULL THEN {written} END"
    )


def owner_sql(columns: Sequence[StoredColumn], dialect: Dialect) -> str:
    """Write the owner of a row: the unit that one column names, or several columns together.

    The names are those of the other engines (`tacit.engines.owner_sql` has the guarantee): 1, 1.0 and '1' are
    one unit, a longer text is named by its hash, and every name but the last of several has its length before
    it. The owner is NULL if one of the columns names nothing.
    """
    parts = [_name(column, dialect) for column in columns]
    if len(parts) == 1:
        return parts[0]
    *first, last = (dialect.owner_text(part) for part in parts)
    sized = "".join(f"octet_length({text})::text || ':' || {text} || " for text in first)
    return f'({sized}{last} COLLATE "C")'


def _name(column: StoredColumn, dialect: Dialect) -> str:
    c = dialect.quote(column.name)
    match column.stored:
        case "whole":
            return f"{c}::bigint"
        case "float":
            number = f"{c}::float8"
            digits = f"ltrim(to_char({number}, '9.{'9' * 17}EEEE'))"
            large = f"WHEN abs({number}) BETWEEN {2**63} AND '{sys.float_info.max}'::float8 THEN {digits}"
            text = dialect.text(number, "float")
            return f"(CASE WHEN {number} = 'NaN'::float8 THEN NULL {large} ELSE {text} END COLLATE \"C\")"
        case "digits":
            infinite = "WHEN 'Infinity'::numeric THEN 'inf' WHEN '-Infinity'::numeric THEN '-inf'"
            text = f"CASE {c} WHEN 'NaN'::numeric THEN NULL {infinite} ELSE trim_scale({c})::text END"
            return _hashed(f"({text})", f"({text})")
        case "moment":
            return dialect.text(f"({value_sql(column, dialect)})", "moment")
        case "text" if column.base == "bytea":
            text = f"convert_from(CASE WHEN length({c}) <= {_MOST_BYTES} THEN {c} END, 'UTF8')"
            digest = f"'sha256:' || encode(sha256({c}), 'hex')"
            named = _hashed(text, text)
            valid = f"length({c}) <= {_MOST_BYTES} AND {_is_utf8(f'substring({c}, 1, {_MOST_BYTES})')}"
            return f'(CASE WHEN {valid} THEN {named} WHEN {c} IS NOT NULL THEN {digest} END COLLATE "C")'
        case _:
            text = f"({_whole_text(column, c)})"
            return _hashed(text, text)


def _hashed(text: str, whole: str) -> str:
    """Write a name, or its hash where it is too long or could be taken for one; no short name is a digest."""
    size, digest = f"octet_length({text})", f"'sha256:' || encode(sha256(convert_to({whole}, 'UTF8')), 'hex')"
    long = f"{size} >= 71 AND ({size} > {MOST_TEXT} OR starts_with({text}, 'sha256:'))"
    return f'(CASE WHEN {long} THEN {digest} ELSE {text} END COLLATE "C")'
