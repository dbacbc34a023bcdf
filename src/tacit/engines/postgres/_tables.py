"""Tables of a PostgreSQL database: which can be a source, and what is refused. No row is read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from tacit.algebra import choose_name
from tacit.engines.postgres._types import DESCRIBED, read_column
from tacit.errors import TacitError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tacit.engines.postgres._sessions import Session
    from tacit.engines.postgres._types import StoredColumn

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


def find_table(session: Session, written: str, path: Sequence[str]) -> FoundTable:
    """Find a table that a role may read, or refuse it.

    Parameters
    ----------
    session
        A session on the database.
    written
        The name, or schema and name with a point between them.
    path
        The schemas in which a name without a schema is looked for.
    """
    schema, _, name = written.rpartition(".")
    for where, which in ((list(path), written), ([schema], name)):
        for spelled in dict.fromkeys((which, which.lower())):
            lines = session.execute(_PLACES, (where, spelled)).fetchall()
            if lines:
                return _checked(session, written, lines[0])
    raise _unknown(session, written, path)


def _unknown(session: Session, written: str, path: Sequence[str]) -> TacitError:
    """Refuse a name that no table has; offer the tables that the role may read."""
    lines = [(str(known), str(name)) for known, name in session.execute(_OTHERS, (list(path),)).fetchall()]
    bare = written.replace('"', "")
    fix = choose_name(bare, tuple(known for known, _ in lines))
    elsewhere = next((known for known, name in lines if name.lower() == bare.lower()), "")
    where = "" if "." in written else f" in the search path ({', '.join(path)})"
    return TacitError(
        "unknown-table",
        f"the database has no table {written!r}{where}",
        why="Tacit reads a name as it is stored, without quotes" if bare != written else "",
        fix=replace(fix, given=written, close=elsewhere or fix.close)
        if lines
        else "the name of a table that the role may read, with its schema",
    )


def _checked(session: Session, written: str, line: Sequence[object]) -> FoundTable:
    oid, schema, name, kind, readable, whole, secured = line
    found = FoundTable(int(str(oid)), str(schema), str(name), bool(whole))
    if str(kind) in _REFUSED:
        what, why = _REFUSED[str(kind)]
        raise TacitError(
            "bad-parameter",
            f"the source {written!r} is {what}, not a table",
            why=f"{why}; it can mix the rows of several people, "
            "and a row on which it fails would make every query fail, which reveals the row",
            fix=f'store its rows: CREATE TABLE "{name}_rows" AS SELECT * FROM "{schema}"."{name}"',
        )
    if not readable:
        raise TacitError(
            "bad-parameter",
            f"the role may not read the table {written!r}",
            fix=f'grant it: GRANT SELECT ON "{schema}"."{name}" TO the role, and USAGE on its schema',
        )
    if secured:
        raise TacitError(
            "bad-parameter",
            f"row-level security hides rows of {written!r} from this role",
            why="a policy may look at the rows of other people, so one person could decide "
            "whether the rows of another are counted",
            fix="use a role with BYPASSRLS, or a table that holds the rows that may be counted",
        )
    if session.execute(_BELOW, (oid,)).fetchall() != [(0,)]:
        raise TacitError(
            "bad-parameter",
            f"a part of the table {written!r} is a foreign table",
            why=_REFUSED["f"][1],
            fix="a table whose parts are all stored in this database",
        )
    return found


def hold_tables(session: Session, tables: Sequence[FoundTable], quote: Callable[[str], str]) -> None:
    """Keep tables as they are until the transaction ends: others may write rows, but not change columns.

    Raises an error where a table was rewritten after the moment that the transaction sees: to it, the table
    would look empty.
    """
    import psycopg

    places = {table: ".".join(map(quote, table.within)) for table in tables}
    whole = [places[table] for table in tables if table.whole]
    if whole:  # before anything else, because this statement does not fix the moment
        session.execute(f"LOCK TABLE {', '.join(whole)} IN ACCESS SHARE MODE")
    for table in tables:
        if not table.whole:  # a role that may read some columns may not say LOCK
            session.execute(f"SELECT 1 FROM {places[table]} WHERE FALSE")
        if session.execute(_SAME_FILES, (table.oid,)).fetchall() != [(True,)]:
            raise psycopg.OperationalError("the table was rewritten")


def described_columns(session: Session, table: FoundTable) -> tuple[StoredColumn, ...]:
    """Return the columns of a table that the role may read."""
    return tuple(read_column(line) for line in session.execute(DESCRIBED, (table.oid,)).fetchall())
