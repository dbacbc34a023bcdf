"""The service's own database: people, policies, requests and the states of queries; SQLite or PostgreSQL.

Budgets and totals are not in it: the ledger decides, the service remembers. Statements have ``?`` for each
value in both dialects. A change is one transaction, and changes are made one after another.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias, TypeVar

from tacit.errors import TacitError
from tacit.service._migrations import MIGRATIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: One row of the service's database, by column.
ServiceRow: TypeAlias = dict[str, Any]
R = TypeVar("R")
_WAIT = 10.0  # seconds to wait for another process that writes
_LOCK = 7_223_061_809  # PostgreSQL: the advisory lock that makes changes follow each other


class _Connection(Protocol):
    def execute(self, sql: str, values: Any = ..., /) -> Any: ...
    def close(self) -> None: ...


class Change:
    """One transaction that may write."""

    def __init__(self, connection: _Connection, mark: str) -> None:
        self._connection, self._mark = connection, mark

    def run(self, sql: str, *values: object) -> int:
        """Run a statement; return how many rows it changed."""
        return int(self._connection.execute(sql.replace("?", self._mark), values).rowcount)

    def rows(self, sql: str, *values: object) -> list[ServiceRow]:
        """Return all rows of a query."""
        return [
            dict(row) for row in self._connection.execute(sql.replace("?", self._mark), values).fetchall()
        ]

    def row(self, sql: str, *values: object) -> ServiceRow | None:
        """Return the first row of a query, or None."""
        found = self._connection.execute(sql.replace("?", self._mark), values).fetchone()
        return None if found is None else dict(found)


class Database:
    """The service's database; each thread has its own connection."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._on_server = place.startswith(("postgresql://", "postgres://"))
        self._mark = "%s" if self._on_server else "?"
        self._own = threading.local()
        self._all: list[_Connection] = []
        self._lock = threading.Lock()

    @classmethod
    def open(cls, place: str) -> Self:
        """Open the database, make it if it does not exist, and bring it to the newest form."""
        database = cls(place)
        if not database._on_server:
            Path(place).parent.mkdir(parents=True, exist_ok=True)
            Path(place).touch(mode=0o600)  # SQLite gives its other files the same mode
        try:
            database.migrate()
        except BaseException:
            database.close()
            raise
        return database

    def rows(self, sql: str, *values: object) -> list[ServiceRow]:
        """Return all rows of a query."""
        return self._read(lambda reader: reader.rows(sql, *values))

    def row(self, sql: str, *values: object) -> ServiceRow | None:
        """Return the first row of a query, or None."""
        return self._read(lambda reader: reader.row(sql, *values))

    @contextmanager
    def change(self) -> Iterator[Change]:
        """Begin one transaction; it is undone if an error leaves the block."""
        connection = self._begin()
        try:
            if self._on_server:
                connection.execute(f"SELECT pg_advisory_xact_lock({_LOCK})")
            yield Change(connection, self._mark)
        except BaseException:
            with suppress(Exception):  # a connection that broke has undone the change already
                connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")

    def _begin(self) -> _Connection:
        """Begin a transaction; on a server whose connection was dropped, on a new connection."""
        connection = self._connection()
        if not self._on_server:
            connection.execute("BEGIN IMMEDIATE")
            return connection
        try:
            connection.execute("BEGIN")
        except Exception:  # noqa: BLE001 - raised again unless the connection broke
            connection = self._reopened(connection)
            connection.execute("BEGIN")
        return connection

    def _read(self, read: Callable[[Change], R]) -> R:
        """Read; on a server whose connection was dropped, once more on a new connection."""
        connection = self._connection()
        try:
            return read(Change(connection, self._mark))
        except Exception:
            if not self._on_server:
                raise
            return read(Change(self._reopened(connection), self._mark))

    def _reopened(self, connection: Any) -> _Connection:
        """Return a new connection in place of one that broke; an error of another kind is raised again."""
        if not connection.broken:
            raise  # noqa: PLE0704 - the error that is being handled
        with self._lock:
            self._all.remove(connection)
        del self._own.connection
        return self._connection()

    @property
    def number(self) -> int:
        """The number of the last migration that the database has."""
        row = self.row("SELECT MAX(number) AS last FROM migrations")
        return int(row["last"] or 0) if row is not None else 0

    def migrate(self) -> int:
        """Apply the migrations that are missing, each in its own transaction; return the last number.

        A database that a newer version has changed is refused: this version does not know what is in it.
        """
        with self.change() as change:
            change.run("CREATE TABLE IF NOT EXISTS migrations (number INTEGER PRIMARY KEY)")
        if self.number > len(MIGRATIONS):
            raise TacitError(
                "unknown-version",
                "the service's database was written by a newer version of Tacit",
                fix="install that version, or restore a backup that was made before it",
            )
        for number, statements in enumerate(MIGRATIONS, 1):
            with self.change() as change:
                if change.row("SELECT number FROM migrations WHERE number = ?", number) is None:
                    for statement in statements.split(";"):
                        if statement.strip():
                            change.run(statement)
                    change.run("INSERT INTO migrations (number) VALUES (?)", number)
        return len(MIGRATIONS)

    def forget_deleted(self) -> None:
        """Take deleted texts out of the database's files; on a server, its own cleaning does that later."""
        if not self._on_server:
            self._connection().execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close the connections of all threads."""
        with self._lock:
            for connection in self._all:
                connection.close()
            self._all.clear()
        self._own = threading.local()

    def _connection(self) -> _Connection:
        found: _Connection | None = getattr(self._own, "connection", None)
        if found is None:
            found = self._own.connection = self._connect()
            with self._lock:
                self._all.append(found)
        return found

    def _connect(self) -> _Connection:
        if self._on_server:
            import psycopg
            from psycopg.rows import dict_row

            opened: Any = psycopg.connect(self._place, autocommit=True, row_factory=dict_row)
            return opened  # type: ignore[no-any-return]
        connection = sqlite3.connect(
            self._place, timeout=_WAIT, isolation_level=None, check_same_thread=False
        )
        connection.row_factory = sqlite3.Row
        _use_log(connection)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA secure_delete = ON")  # an erased name must not stay in a free page
        return connection


def _use_log(connection: sqlite3.Connection) -> None:
    """Let readers and a writer work side by side; SQLite itself does not wait while others do this too."""
    end = time.monotonic() + _WAIT
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)
        else:
            return
