"""The PostgreSQL engine: reads tables of a database in place, and returns integers.

What it guarantees to the plan
------------------------------
* All statements of a plan read the database at one moment, in one transaction that cannot write.
* The owner of a row, its values as the plan reads them and its rank among the rows of its owner are functions
  of that owner's rows and of a secret key. Settings of the server, of the database and of the role do not
  change them.
* No value makes a statement fail.
* A table whose columns have changed since the dataset was declared is not read.

Temporary tables (*snapshots*) hold a table's rows with their ranks, so that later questions do not sort them
again. A transaction that only reads may not create a table, but it may fill a temporary one. So a snapshot is
created empty before the transaction and filled within it, with the rows that the transaction sees. A later
transaction uses it only if it sees the same versions of the same rows.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from tacit.algebra import Column
from tacit.core import is_writable
from tacit.engines.postgres._dialect import PostgresDialect
from tacit.engines.postgres._sessions import PostgresPlace, Session, open_session, why_not
from tacit.engines.postgres._tables import (
    FoundTable,
    TableView,
    described_columns,
    find_table,
    hold_tables,
    key_text,
    unique_columns,
)
from tacit.engines.sql._relations import SqlWriter
from tacit.engines.sql._statements import public_values_sql, statements
from tacit.errors import TacitError
from tacit.fixes import Declare

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tacit.algebra import Node, Statistic, TableQuestion
    from tacit.engines._interface import SmallTables, StatementRows
    from tacit.engines._values import TypeFamily, UniqueColumns
    from tacit.engines.sources._sources import SourceTable
    from tacit.engines.sql._statements import Statement


_MAY_KEEP = """SELECT has_database_privilege(current_database(), 'TEMP') AND NOT pg_is_in_recovery()
AND current_setting('default_transaction_read_only') = 'off'"""
_MOMENT = "SELECT pg_current_snapshot()::text"
#: The versions of all rows that a transaction sees: place and writing transaction name a version of a row.
_VERSION = "hashtidextended(ctid, xmin::text::bigint + (tableoid::bigint << 32))"
_STAMP = f"SELECT count(*), bit_xor({_VERSION})::text FROM {{}}"
#: What can change the values of a row without a new version of it: its columns (a new one may have a value
#: for every row), and the labels of enumerations.
_SHAPE = """WITH RECURSIVE below(relid) AS (SELECT $1::oid
UNION SELECT inhrelid FROM pg_inherits JOIN below ON inhparent = relid)
SELECT (SELECT md5(string_agg(concat_ws(' ', attrelid, attnum, a.xmin), ',' ORDER BY attrelid, attnum))
FROM below JOIN pg_attribute a ON attrelid = relid WHERE attnum > 0),
(SELECT md5(string_agg(concat_ws(' ', oid, enumlabel), ',' ORDER BY oid)) FROM pg_enum)"""


@dataclass(slots=True)
class _Snapshot:
    """A temporary table: of which view, whether it is filled, and what the transaction that filled it saw."""

    table: str
    view: TableView
    filled: bool = False
    stamp: tuple[object, ...] = ()
    moment: str = ""


class Snapshots:
    """The snapshots of one session.

    Parameters
    ----------
    after
        After how many questions about a table to make one; None: never.
    """

    def __init__(self, after: int | None) -> None:
        self._after = after
        self._uses: dict[str, int] = {}
        self._by_table: dict[str, _Snapshot] = {}
        self._number = 0
        self._outdated: list[str] = []
        self._may_keep: bool | None = None
        self._current: set[str] = set()

    def prepare(self, session: Session, views: Mapping[str, TableView]) -> None:
        """Create what the coming transaction may fill, and drop what earlier ones gave up."""
        import psycopg

        self._current.clear()
        if self._after is None:
            return
        if self._may_keep is None:
            [(self._may_keep,)] = session.execute(_MAY_KEEP).fetchall()
        while self._outdated:
            session.execute(f"DROP TABLE IF EXISTS {self._outdated.pop()}")
        for name, view in views.items():
            self._uses[name] = self._uses.get(name, 0) + 1
            if name not in self._by_table and self._may_keep and self._uses[name] > self._after:
                self._number += 1
                table = f"pg_temp.tacit_snapshot_{self._number}"
                try:
                    session.execute(f"CREATE TEMPORARY TABLE {table} ({', '.join(view.snapshot_columns())})")
                except psycopg.Error:  # such as a trigger of the administrators that allows no tables
                    self._may_keep = False
                else:
                    self._by_table[name] = _Snapshot(table, view)

    def fill(self, session: Session, name: str, view: TableView, table: FoundTable, key: str) -> None:
        """Fill a snapshot within a transaction, or give up one that shows other rows than the transaction.

        Only after that may the transaction use it.
        """
        snapshot = self._by_table.get(name)
        if snapshot is None or name in self._current:
            return
        # a role that may read some columns sees no versions of rows
        if snapshot.view != view or not table.whole:
            self.forget(name)
            return
        [(moment,)] = session.execute(_MOMENT).fetchall()
        if snapshot.filled and snapshot.moment == moment:
            self._current.add(name)
            return
        quote = view.dialect.quote
        [rows] = session.execute(_STAMP.format(".".join(map(quote, table.within)))).fetchall()
        [shape] = session.execute(_SHAPE, (table.oid,)).fetchall()
        stamp = (*rows, *shape)
        if not snapshot.filled:
            if not _filled(session, snapshot, view, key):
                self._may_keep = False
                self.forget(name)
                return
            snapshot.filled, snapshot.stamp = True, stamp
        elif snapshot.stamp != stamp:
            self.forget(name)
            return
        snapshot.moment = str(moment)
        self._current.add(name)

    def table(self, name: str) -> str | None:
        """Return the temporary table that the current transaction may read instead of a table, if any."""
        return self._by_table[name].table if name in self._current else None

    def forget(self, name: str) -> None:
        """Give up a snapshot."""
        self._current.discard(name)
        snapshot = self._by_table.pop(name, None)
        if snapshot is not None:
            self._outdated.append(snapshot.table)

    def forget_all(self) -> None:
        """Forget the snapshots of a session that has ended."""
        self._by_table.clear()
        self._current.clear()
        self._outdated.clear()
        self._may_keep = None


def _filled(session: Session, snapshot: _Snapshot, view: TableView, key: str) -> bool:
    """Fill a temporary table; return whether there was room for it. The transaction goes on either way."""
    import psycopg

    source = 'WITH tacit_key AS NOT MATERIALIZED (SELECT $1::text COLLATE "C" AS k0)'
    session.execute("SAVEPOINT tacit_fill")
    try:
        session.execute(f"{source} INSERT INTO {snapshot.table} {view.ranked(f'({view.rows}) t')}", (key,))
    except psycopg.OperationalError:
        session.execute("ROLLBACK TO SAVEPOINT tacit_fill")
        return False
    session.execute("RELEASE SAVEPOINT tacit_fill")
    return True


_FAMILIES: dict[str, TypeFamily] = {
    "whole": "number", "float": "number", "digits": "number", "text": "text", "boolean": "boolean",
    "moment": "moment",
}  # fmt: skip
_ARRAYS = {str: "text", float: "float8", bool: "boolean"}
_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"


class PostgresEngine:
    """The engine of tables in a PostgreSQL database.

    Parameters
    ----------
    tables
        The declared tables by name, all in one database.
    key
        The secret that orders each unit's rows and groups; one per dataset and session.
    snapshot
        After how many questions about a table to make a temporary table of its ranked rows, if the role may;
        None: never.
    """

    def __init__(self, tables: Mapping[str, SourceTable], *, key: int, snapshot: int | None = 1) -> None:
        self._tables = dict(tables)
        self._place = _one_place(tables)  # refuses what is no place
        self._key = key
        self.dialect = PostgresDialect()
        self._lock = threading.RLock()
        self._session: Session | None = None
        self._located: dict[str, FoundTable] = {}
        self._views: dict[str, TableView] = {}
        self._snapshots = Snapshots(snapshot)

    # Before a charge ----------------------------------------------------------------------------------------

    def columns(self, table: str) -> dict[str, str] | None:
        """Return a table's columns, or None where the server cannot be reached. Reads no row.

        Beside each column stands the type that keeps it from being read. Columns that the role may not read
        are left out.
        """
        import psycopg

        with self._lock:
            try:
                view = self._described(self._opened(), table)
            except psycopg.Error:
                self._drop()
                return None
        return {column.name: "" if column.stored else column.declared for column in view.columns}

    def stored_as(self, table: str) -> dict[str, TypeFamily]:
        """Return the declared types of a table's columns, as `columns` found them. Reads nothing."""
        view = self._views.get(table)
        columns = () if view is None else view.columns
        return {column.name: _FAMILIES[column.stored] for column in columns if column.stored}

    def unique(self, table: str) -> UniqueColumns:
        """Return the columns of each PRIMARY KEY and each UNIQUE constraint of a table. Reads no row."""
        import psycopg

        with self._lock:
            try:
                session = self._opened()
                self._described(session, table)
                return unique_columns(session, self._located[table])
            except psycopg.Error:
                self._drop()
                return ()

    def missing_file(self, table: str) -> str:
        """Return nothing: a table of a database is no file."""
        del table
        return ""

    def public_values(
        self, table: str, value: Node, most: int, *, where: Node | None = None, aggregate: str | None = None
    ) -> list[object] | None:
        """Return the different values of an expression over a public table; None where it is not available.

        A protected table is refused.
        """
        if self._tables[table].unit is not None:
            raise TacitError(
                "not-allowed",
                f"the table {table!r} is protected",
                why="only a public table can be read without a charge",
                fix=Declare("public", ("hospitals", "hospital"), column="hospitals"),
            )
        import psycopg

        with self._lock:
            try:
                session = self._opened()
                self._described(session, table)
                sql = public_values_sql(self.writer(), table, value, most, where, aggregate)
                return [line[0] for line in self._rows(session, sql, {})]
            except psycopg.Error:
                self._drop()
                return None

    def sql(self, question: TableQuestion, statistics: tuple[Statistic, ...]) -> tuple[str, ...]:
        """Write the statements that will run, without the relations that stand for the tables."""
        return tuple(one.sql for one in statements(self.writer(), question, statistics))

    def check(self, question: TableQuestion, statistics: tuple[Statistic, ...]) -> None:
        """Let the server analyse the statements; no row is read."""
        import psycopg

        with self._lock:
            for is_retry in (False, True):  # a server may have ended an idle session
                try:
                    self._explain(question, statistics)
                except psycopg.Error as error:
                    self._drop()
                    if is_retry:
                        why, fix = why_not(error)
                        raise TacitError(
                            "unknown-table",
                            f"{self._place.name} cannot answer this question now, so nothing was charged",
                            why=why,
                            fix=fix,
                        ) from None
                else:
                    return

    def _explain(self, question: TableQuestion, statistics: tuple[Statistic, ...]) -> None:
        session = self._opened()
        session.check_settings()
        for name in self._tables:
            self._described(session, name)
        tables: dict[str, Sequence[Sequence[object]]] = {}
        if question.by and question.keys is not None:
            tables["tacit_keys"] = list(question.keys)[:1000]
        if question.sample is not None:
            tables["tacit_sample"] = (("",),)
        for statement in statements(self.writer(), question, statistics):
            self._rows(session, statement.sql, tables, statement.limited, explain=True)

    # After a charge -----------------------------------------------------------------------------------------

    @contextmanager
    def transaction(self) -> Iterator[PostgresTransaction]:
        """Begin one reading of the database at one moment. The session is given up after any failure."""
        with self._lock:
            reading = PostgresTransaction(self)
            try:
                yield reading
                reading.end()
            except BaseException:
                self._drop()
                raise

    def prepare(self) -> None:
        """Do nothing: what lasts is made with the first question, where the tables are."""

    def close(self) -> None:
        """Close the session; temporary tables go with it."""
        with self._lock:
            self._drop()

    def begin(self, names: Sequence[str]) -> Session:
        """Begin a transaction on the tables as they are now; create the snapshots of these tables."""
        session = self._opened()
        for name in self._tables:
            if name not in self._located:
                self._described(session, name)
        self._snapshots.prepare(session, {name: self._views[name] for name in names})
        session.execute(_BEGIN)
        hold_tables(session, list(self._located.values()), self.dialect.quote)
        session.check_settings()
        for name, before in list(self._views.items()):
            now = self._described(session, name)
            if now != before:
                self._snapshots.forget(name)
        return session

    def look(self, session: Session, names: Sequence[str]) -> None:
        """Fill or check the snapshots of these tables within a transaction."""
        for name in names:
            self._snapshots.fill(session, name, self._views[name], self._located[name], key_text(self._key))

    def run(self, session: Session, statement: Statement, tables: SmallTables) -> list[tuple[object, ...]]:
        """Run one statement within the transaction."""
        return self._rows(session, statement.sql, tables, statement.limited)

    def written(self, question: TableQuestion, statistics: tuple[Statistic, ...]) -> tuple[Statement, ...]:
        """Write the statements for the tables as they were described last."""
        return statements(self.writer(), question, statistics)

    # Within -------------------------------------------------------------------------------------------------

    def _opened(self) -> Session:
        if self._session is None or self._session.closed:
            self._drop()
            self._session = open_session(self._place)
            self.dialect = PostgresDialect(self._session.cases)
        return self._session

    def _drop(self) -> None:
        session, self._session = self._session, None
        self._snapshots.forget_all()
        self._located.clear()
        if session is not None:
            with suppress(Exception):
                session.close()

    def _described(self, session: Session, name: str) -> TableView:
        """Find a table and its columns; refuse one whose columns have other names than those declared."""
        table = self._tables[name]
        located = find_table(session, table.source.table or name, session.path)
        columns = described_columns(session, located)
        before = self._views.get(name)
        if before is not None and [c.name for c in before.columns] != [c.name for c in columns]:
            raise TacitError(
                "unknown-table",
                f"the table {name!r} does not have the columns that it had when the dataset was declared",
                why="a question was asked about those columns",
                fix="declare the dataset again",
            )
        types = {column.name: column.stored or "text" for column in columns}
        writer = SqlWriter(self.dialect, {name: types})
        grids = {
            grid: writer.quantised(writer.expression(Column(of, "number"), types), values)
            for grid, (of, values) in table.grids.items()
            if of in types
        }
        view = TableView(self.dialect, located.within, columns, table.unit, grids)
        self._located[name], self._views[name] = located, view
        return view

    def writer(self) -> SqlWriter:
        """Return the writer of the SQL: the dialect, and the types of the columns that are known so far."""
        return SqlWriter(self.dialect, {name: view.types for name, view in self._views.items()})

    def _rows(
        self,
        session: Session,
        sql: str,
        tables: SmallTables,
        limited: Iterable[tuple[str, int]] = (),
        *,
        explain: bool = False,
    ) -> list[tuple[object, ...]]:
        """Run a statement with the relations that it reads before it."""
        parameters: list[object] = [key_text(self._key)]
        small = ['tacit_key AS NOT MATERIALIZED (SELECT $1::text COLLATE "C" AS k0)']
        small += [self._small(name, lines, parameters) for name, lines in tables.items()]
        before = [*small, *self._relations(sql, limited, explain=explain)]
        statement = f"{'EXPLAIN ' if explain else ''}WITH {', '.join(before)} {sql}"
        rows = session.execute(statement, parameters).fetchall()
        return [tuple(_plain(cell) for cell in line) for line in rows]

    def _relations(self, sql: str, limited: Iterable[tuple[str, int]], *, explain: bool) -> list[str]:
        """Write the tables that a statement reads, and their first rows, from a snapshot if there is one."""
        quote = self.dialect.quote
        plain = {name for name in self._views if quote(name) in sql}
        firsts: dict[str, str] = {}
        for name, rows in sorted(limited):
            view, stored = self._views[name], None if explain else self._snapshots.table(name)
            if stored is None:
                plain.add(name)
                firsts[f"{name} first {rows}"] = view.first(quote(name), rows)
            else:
                names = ", ".join(view.names)
                firsts[f"{name} first {rows}"] = f"SELECT {names} FROM {stored} WHERE tacit_r <= {rows}"
        relations = {name: self._views[name].rows for name in sorted(plain)} | firsts
        return [f"{quote(name)} AS NOT MATERIALIZED ({rows})" for name, rows in relations.items()]

    def _small(self, name: str, lines: Sequence[Sequence[object]], parameters: list[object]) -> str:
        """Write a small public table, whose columns are parameters."""
        width = len(lines[0]) if lines else 1
        storable = [line for line in lines if all(map(_is_storable, line))]
        columns = list(zip(*storable, strict=True)) or [()] * width
        kinds = [_ARRAYS[next((type(key) for key in c if key is not None), str)] for c in columns]
        offset = len(parameters) + 1
        parameters += [list(column) for column in columns]
        arrays = ", ".join(f"${offset + i}::{kind}[]" for i, kind in enumerate(kinds))
        compared = (f"c{i}" + (' COLLATE "C"' if kind == "text" else "") for i, kind in enumerate(kinds))
        columns_sql = ", ".join(f"{column} AS k{i}" for i, column in enumerate(compared))
        names = ", ".join(f"c{i}" for i in range(len(kinds)))
        return f"{name} AS NOT MATERIALIZED (SELECT {columns_sql} FROM unnest({arrays}) t({names}))"


class PostgresTransaction:
    """One reading of the database, for one plan. It begins with the first question."""

    def __init__(self, engine: PostgresEngine) -> None:
        self._engine = engine
        self._session: Session | None = None

    def integers(
        self, question: TableQuestion, statistics: tuple[Statistic, ...], tables: SmallTables
    ) -> list[StatementRows]:
        """Compute exact integers for every group. The plan reports every failure as one opaque error."""
        engine = self._engine
        sql_statements = engine.written(question, statistics)
        names = sorted({name for one in sql_statements for name, _ in one.limited})
        if self._session is None:
            self._session = engine.begin(names)
        session = self._session
        engine.look(session, names)
        return [
            (one.statistics, engine.run(session, one, tables)) for one in engine.written(question, statistics)
        ]

    def end(self) -> None:
        """End the transaction."""
        if self._session is not None:
            self._session.execute("COMMIT")
            self._session = None


def _is_storable(key: object) -> bool:
    """Return whether a database can hold a key; one that it cannot hold is in no row."""
    return not isinstance(key, str) or ("\x00" not in key and is_writable(key))


def _plain(cell: object) -> object:
    """Return a whole number as an integer, any other exact number as a double."""
    if isinstance(cell, Decimal):
        return int(cell) if cell == cell.to_integral_value() else float(cell)
    return cell


def _one_place(tables: Mapping[str, SourceTable]) -> PostgresPlace:
    """Return the database of all tables, or refuse several."""
    places = {id(t.source.place): t.source.place for t in tables.values()}
    database, *others = (PostgresPlace.of(place) for place in places.values())
    if any(other != database for other in others):
        raise TacitError(
            "bad-parameter",
            "the tables are in several databases",
            why="one statement reads one database at one moment",
            fix="give every table by its name, with one connection or address for all of them",
        )
    return database
