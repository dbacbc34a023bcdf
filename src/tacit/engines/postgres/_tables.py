"""Tables of a PostgreSQL database: which can be a source, what is refused, and how their columns are read.

No row is read to find a table. The types of its columns decide which are read, as what, and by which SQL. A
statement starts with the table's rows with their owners and with the first rows of every owner, as common
table expressions that the server merges into it: a role needs no right to create anything.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from tacit.algebra import choose_name
from tacit.engines._values import GENERATED, MOST_TEXT
from tacit.engines.sources._sources import computes_rows
from tacit.errors import TacitError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tacit.engines.postgres._sessions import Session
    from tacit.engines.sql._dialect import Dialect, Part, StoredType


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
_MAX_BYTES = 4 * MOST_TEXT
#: A larger document is missing. Each number in it takes 16 bytes at least, and its text may have 147,458
#: characters (1e131071 has 131,072), and the server holds no text of more than a gigabyte.
_MAX_DOCUMENT = 65_536
#: Bytes of UTF-8 without NUL, as pairs of hexadecimal digits.
_UTF8 = (
    "^(?:0[1-9a-f]|[1-7][0-9a-f]|(?:c[2-9a-f]|d[0-9a-f])[89ab][0-9a-f]|e0[ab][0-9a-f][89ab][0-9a-f]"
    "|e[1-9abcef](?:[89ab][0-9a-f]){2}|ed[89][0-9a-f][89ab][0-9a-f]|f0[9ab][0-9a-f](?:[89ab][0-9a-f]){2}"
    "|f[1-3](?:[89ab][0-9a-f]){3}|f48[0-9a-f](?:[89ab][0-9a-f]){2})*$"
)
_PLACES = """SELECT c.oid, n.nspname::text, c.relname::text, c.relkind::text,
has_schema_privilege(n.oid, 'USAGE')
AND has_any_column_privilege(c.oid, 'SELECT'), has_table_privilege(c.oid, 'SELECT'),
row_security_active(c.oid) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
WHERE relkind IN ('r', 'p', 'v', 'm', 'f') AND nspname = ANY($1) AND relname = $2
AND relpersistence <> 't' -- of another session
ORDER BY array_position($1, nspname::text) LIMIT 1"""
_BELOW = """WITH RECURSIVE below(relid) AS (SELECT inhrelid FROM pg_inherits WHERE inhparent = $1
UNION SELECT inhrelid FROM pg_inherits JOIN below ON inhparent = relid)
SELECT count(*) FROM below JOIN pg_class ON oid = relid WHERE relkind NOT IN ('r', 'p')"""
#: Of a table that others inherit from, a key holds in its own rows alone.
_KEYS = """SELECT array(
SELECT attname::text FROM pg_attribute WHERE attrelid = conrelid AND attnum = ANY(conkey))
FROM pg_constraint c JOIN pg_class t ON t.oid = conrelid
WHERE conrelid = $1 AND contype IN ('p', 'u') AND NOT condeferrable AND convalidated
AND (relkind = 'p' OR NOT EXISTS (SELECT 1 FROM pg_inherits WHERE inhparent = conrelid))"""
_SAME_FILES = """WITH RECURSIVE below(relid) AS (SELECT $1::oid
UNION SELECT inhrelid FROM pg_inherits JOIN below ON inhparent = relid)
SELECT bool_and(pg_relation_filenode(oid) IS NOT DISTINCT FROM nullif(relfilenode, 0))
FROM below JOIN pg_class ON oid = relid"""
_OTHERS = """SELECT CASE WHEN nspname = ANY($1) THEN relname::text ELSE nspname || '.' || relname END,
relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
WHERE relkind IN ('r', 'p') AND NOT relispartition AND has_schema_privilege(n.oid, 'USAGE')
AND has_any_column_privilege(c.oid, 'SELECT')
AND nspname <> ALL(ARRAY['pg_catalog', 'information_schema']) AND nspname NOT LIKE 'pg\\_%'
ORDER BY nspname <> ALL($1), 1 LIMIT 1000"""
_REFUSED = {
    "v": ("a view", "a view computes its rows when it is read"),
    "m": ("a materialized view", "its rows were computed by a query"),
    "f": ("a foreign table", "its rows are computed elsewhere when it is read, and not at one moment"),
}


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
            return f'(substring({_complete_text(column, c)}, 1, {MOST_TEXT}) COLLATE "C")'
        case _:
            return c


def _inside(c: str, kind: str, value: str, zone: str) -> str:
    earliest, latest = f"'0001-01-01 00:00:00{zone}'::{kind}", f"'9999-12-31 23:59:59.999999{zone}'::{kind}"
    return f"CASE WHEN {c} BETWEEN {earliest} AND {latest} THEN {value} END"


def _complete_text(column: StoredColumn, c: str) -> str:
    """Write the whole text of a value that is not bytes."""
    if column.base == "jsonb":
        size = f"pg_column_size(ARRAY[{c}::jsonb])"  # an array holds it as it is without compression
        small = f"CASE WHEN pg_column_size({c}) <= {_MAX_DOCUMENT} THEN {size} <= {_MAX_DOCUMENT} END"
        return f"CASE WHEN {small} THEN {c}::text END"
    return f"{c}::text"


def _is_utf8(c: str) -> str:
    return f"encode({c}, 'hex') ~ '{_UTF8}'"


def _text_of_bytes(c: str) -> str:
    """Write the text that bytes are; bytes that are not UTF-8, or contain NUL, are written out."""
    cut = f"substring({c}, 1, {_MAX_BYTES})"
    byte = "CASE WHEN b BETWEEN 32 AND 126 AND b NOT IN (34, 39, 92) THEN chr(b) ELSE '\\x' || upper(lpad(to_hex(b), 2, '0')) END"  # noqa: E501
    prefix = f"SELECT substring({c}, 1, {MOST_TEXT}) AS s OFFSET 0"  # taken once, not for every byte
    bytes_sql = f"SELECT i, get_byte(s, i) AS b FROM ({prefix}) t, generate_series(0, length(s) - 1) i"
    text = f"(SELECT coalesce(string_agg({byte}, '' ORDER BY i), '') FROM ({bytes_sql} OFFSET 0) t)"
    decoded = f"convert_from({cut}, 'UTF8')"
    return (
        f"CASE WHEN length({c}) <= {_MAX_BYTES} AND {_is_utf8(cut)} THEN {decoded} "
        f"WHEN {c} IS NOT NULL THEN {text} END"
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
    *parts_before, last_part = (dialect.owner_text(part) for part in parts)
    sized = "".join(f"octet_length({text})::text || ':' || {text} || " for text in parts_before)
    return f'({sized}{last_part} COLLATE "C")'


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
            text = f"convert_from(CASE WHEN length({c}) <= {_MAX_BYTES} THEN {c} END, 'UTF8')"
            digest = f"'sha256:' || encode(sha256({c}), 'hex')"
            hashed = _hashed(text, text)
            valid = f"length({c}) <= {_MAX_BYTES} AND {_is_utf8(f'substring({c}, 1, {_MAX_BYTES})')}"
            return f'(CASE WHEN {valid} THEN {hashed} WHEN {c} IS NOT NULL THEN {digest} END COLLATE "C")'
        case _:
            text = f"({_complete_text(column, c)})"
            return _hashed(text, text)


def _hashed(text: str, complete: str) -> str:
    """Write a name, or its hash where it is too long or could be taken for one; no short name is a digest."""
    size, digest = (
        f"octet_length({text})",
        f"'sha256:' || encode(sha256(convert_to({complete}, 'UTF8')), 'hex')",
    )
    long = f"{size} >= 71 AND ({size} > {MOST_TEXT} OR starts_with({text}, 'sha256:'))"
    return f'(CASE WHEN {long} THEN {digest} ELSE {text} END COLLATE "C")'


def key_text(key: int) -> str:
    """Write the secret that orders a unit's rows, as the first part of what is hashed.

    Examples
    --------
    >>> key_text(12345)
    '12345|,'
    """
    return f"{key}|,"


@dataclass(frozen=True, slots=True)
class TableView:
    """A table as statements read it.

    Parameters
    ----------
    dialect
        The SQL of the server.
    within
        Schema and name of the table.
    columns
        Its columns.
    unit
        The columns that name the owner; none where each row stands for itself. None for a public table.
    grids
        Further columns by name: the column whose values they hold on a public grid, and the SQL of the grid
        over its value.
    """

    dialect: Dialect
    within: tuple[str, str]
    columns: tuple[StoredColumn, ...]
    unit: tuple[str, ...] | None
    grids: Mapping[str, str] = field(default_factory=dict)

    @property
    def types(self) -> dict[str, StoredType | None]:
        """The types of the view's columns; text where a column is never read, and missing everywhere."""
        return {column.name: column.stored or "text" for column in self.columns}

    @property
    def names(self) -> list[str]:
        """The view's columns, quoted: the owner, the columns, the values on their grids."""
        quote = self.dialect.quote
        return ["tacit_u", *(quote(c.name) for c in self.columns), *(quote(g) for g in self.grids)]

    @property
    def rows(self) -> str:
        """The rows with their owners; those without an owner are dropped."""
        quote = self.dialect.quote
        columns = [f"{value_sql(c, self.dialect)} AS {quote(c.name)}" for c in self.columns]
        table = ".".join(map(quote, self.within))
        by_name = {column.name: column for column in self.columns}
        if self.unit:
            owner = owner_sql([by_name[c] for c in self.unit], self.dialect)
            owned = ", ".join([f"{owner} AS tacit_u", *columns])
            rows = f"SELECT {owned} FROM {table} WHERE {owner} IS NOT NULL"
        else:
            rows = f"SELECT {', '.join(['0::bigint AS tacit_u', *columns])} FROM {table}"
        if not self.grids:
            return rows
        grids = ", ".join(f"{sql} AS {quote(name)}" for name, sql in self.grids.items())
        return f"SELECT *, {grids} FROM ({rows}) t"

    def ranked(self, table: str) -> str:
        """Write all rows with their rank among the rows of their owner.

        Rows are ordered by a keyed hash of the owner and all values, then by the values themselves. Rows that
        are equal in every value are interchangeable: whichever of them comes first, the same multiset is
        kept.
        """
        rank = f"row_number() OVER (PARTITION BY tacit_u ORDER BY {self._order('{}')})"
        return f"SELECT {', '.join(self.names)}, {rank} AS tacit_r FROM {table}"

    def _order(self, hashed: str) -> str:
        """Write the order of an owner's rows, with the hash put into ``hashed``."""
        quote = self.dialect.quote
        parts: list[Part] = [(quote(c.name), c.stored or "text") for c in self.columns]
        column = self.unit[0] if self.unit is not None and len(self.unit) == 1 else None
        values = [quote(c.name) for c in self.columns if c.stored and (c.name, c.stored) != (column, "whole")]
        hashed_rank = hashed.replace("{}", self.dialect.ranked(parts))
        return ", ".join([hashed_rank, *([self.dialect.order(values)] if values else [])])

    def first(self, table: str, rows: int) -> str:
        """Write each unit's first rows. The hash is computed for units that have more rows than that."""
        names = ", ".join(self.names)
        with_counts = f"SELECT {names}, count(*) OVER (PARTITION BY tacit_u) AS tacit_c FROM {table}"
        order = self._order(f"CASE WHEN tacit_c > {rows} THEN {{}} END")
        rank = f"row_number() OVER (PARTITION BY tacit_u ORDER BY {order})"
        ranked = f"SELECT {names}, {rank} AS tacit_r FROM ({with_counts}) t"
        return f"SELECT {names} FROM ({ranked}) t WHERE tacit_r <= {rows}"

    def snapshot_columns(self) -> Sequence[str]:
        """Return the definitions of the columns of a snapshot: those of the view, and the rank."""
        types = {
            "whole": "bigint", "float": "float8", "digits": "numeric", "boolean": "boolean",
            "text": 'text COLLATE "C"', "moment": "timestamp",
        }  # fmt: skip
        quote = self.dialect.quote
        unit = self.unit or ()
        is_integer = not unit or (len(unit) == 1 and self.types[unit[0]] == "whole")
        owner = "bigint" if is_integer else types["text"]
        return [
            f"tacit_u {owner}",
            *(f"{quote(name)} {types[stored or 'text']}" for name, stored in self.types.items()),
            *(f"{quote(name)} bigint" for name in self.grids),
            "tacit_r bigint",
        ]


class FoundTable(NamedTuple):
    """A table of the database; ``whole`` if the role may read all its columns."""

    oid: int
    schema: str
    name: str
    whole: bool

    @property
    def within(self) -> tuple[str, str]:
        """Schema and name."""
        return self.schema, self.name


def find_table(session: Session, source: str, path: Sequence[str]) -> FoundTable:
    """Find a table that a role may read, or refuse it.

    Parameters
    ----------
    session
        A session on the database.
    path
        The name, or schema and name with a point between them.
    path
        The schemas in which a name without a schema is looked for.
    """
    schema, _, name = source.rpartition(".")
    for where, which in ((list(path), source), ([schema], name)):
        for spelled in dict.fromkeys((which, which.lower())):
            lines = session.execute(_PLACES, (where, spelled)).fetchall()
            if lines:
                return _checked(session, source, lines[0])
    raise _unknown(session, source, path)


def _unknown(session: Session, source: str, path: Sequence[str]) -> TacitError:
    """Refuse a name that no table has; offer the tables that the role may read."""
    lines = [(str(known), str(name)) for known, name in session.execute(_OTHERS, (list(path),)).fetchall()]
    bare = source.replace('"', "")
    fix = choose_name(bare, tuple(known for known, _ in lines))
    elsewhere = next((known for known, name in lines if name.lower() == bare.lower()), "")
    where = "" if "." in source else f" in the search path ({', '.join(path)})"
    return TacitError(
        "unknown-table",
        f"the database has no table {source!r}{where}",
        why="Tacit reads a name as it is stored, without quotes" if bare != source else "",
        fix=replace(fix, given=source, close=elsewhere or fix.close)
        if lines
        else "the name of a table that the role may read, with its schema",
    )


def _checked(session: Session, source: str, line: Sequence[object]) -> FoundTable:
    oid, schema, name, kind, readable, all_columns, secured = line
    table = FoundTable(int(str(oid)), str(schema), str(name), bool(all_columns))
    if str(kind) in _REFUSED:
        kind_in_words, why = _REFUSED[str(kind)]
        raise computes_rows(
            f"the source {source!r} is {kind_in_words}, not a table",
            why,
            f'store its rows: CREATE TABLE "{name}_rows" AS SELECT * FROM "{schema}"."{name}"',
        )
    if not readable:
        raise TacitError(
            "bad-parameter",
            f"the role may not read the table {source!r}",
            fix=f'grant it: GRANT SELECT ON "{schema}"."{name}" TO the role, and USAGE on its schema',
        )
    if secured:
        raise TacitError(
            "bad-parameter",
            f"row-level security hides rows of {source!r} from this role",
            why="a policy may look at the rows of other people, so one person could decide "
            "whether the rows of another are counted",
            fix="use a role with BYPASSRLS, or a table that holds the rows that may be counted",
        )
    if session.execute(_BELOW, (oid,)).fetchall() != [(0,)]:
        raise TacitError(
            "bad-parameter",
            f"a part of the table {source!r} is a foreign table",
            why=_REFUSED["f"][1],
            fix="a table whose parts are all stored in this database",
        )
    return table


def hold_tables(session: Session, tables: Sequence[FoundTable], quote: Callable[[str], str]) -> None:
    """Keep tables as they are until the transaction ends: others may write rows, but not change columns.

    Raises an error where a table was rewritten after the moment that the transaction sees: to it, the table
    would look empty.
    """
    import psycopg

    places = {table: ".".join(map(quote, table.within)) for table in tables}
    names = [places[table] for table in tables if table.whole]
    if names:  # before anything else, because this statement does not fix the moment
        session.execute(f"LOCK TABLE {', '.join(names)} IN ACCESS SHARE MODE")
    for table in tables:
        if not table.whole:  # a role that may read some columns may not say LOCK
            session.execute(f"SELECT 1 FROM {places[table]} WHERE FALSE")
        if session.execute(_SAME_FILES, (table.oid,)).fetchall() != [(True,)]:
            raise psycopg.OperationalError("the table was rewritten")


def unique_columns(session: Session, table: FoundTable) -> tuple[tuple[str, ...], ...]:
    """Return the columns of each key that holds in all rows of a table."""
    return tuple(tuple(names) for (names,) in session.execute(_KEYS, (table.oid,)).fetchall())


def described_columns(session: Session, table: FoundTable) -> tuple[StoredColumn, ...]:
    """Return the columns of a table that the role may read."""
    return tuple(read_column(line) for line in session.execute(DESCRIBED, (table.oid,)).fetchall())
