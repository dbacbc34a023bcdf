"""The service's own database: people, policies, requests and the states of queries; SQLite or PostgreSQL.

Budgets and totals are not in it: the ledger decides, the service remembers. Statements have ``?`` for each
value in both dialects. A change is one transaction, and changes are made one after another.

The tables are written as numbered migrations; a published one never changes. Times are ISO texts in UTC,
documents are JSON texts, ticks and counts are whole numbers. ``dataset = ''`` in a grant stands for all
datasets.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypeAlias, TypeVar

from tacit.errors import TacitError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


_FIRST = """
CREATE TABLE users (
    id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, shown TEXT NOT NULL, password TEXT NOT NULL DEFAULT '',
    subject TEXT UNIQUE, created TEXT NOT NULL, disabled INTEGER NOT NULL DEFAULT 0,
    erased INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE grants (
    person TEXT NOT NULL REFERENCES users (id), dataset TEXT NOT NULL, role TEXT NOT NULL,
    granted_by TEXT NOT NULL, granted TEXT NOT NULL, PRIMARY KEY (person, dataset, role)
);
CREATE TABLE tokens (
    id TEXT PRIMARY KEY, person TEXT NOT NULL REFERENCES users (id), label TEXT NOT NULL,
    digest TEXT NOT NULL UNIQUE,
    scopes TEXT NOT NULL, dataset TEXT NOT NULL DEFAULT '', created TEXT NOT NULL, expires TEXT NOT NULL,
    revoked INTEGER NOT NULL DEFAULT 0, parent TEXT NOT NULL DEFAULT ''
);
CREATE INDEX tokens_person ON tokens (person);
CREATE INDEX tokens_parent ON tokens (parent);
CREATE TABLE sessions (
    digest TEXT PRIMARY KEY, person TEXT NOT NULL REFERENCES users (id), csrf TEXT NOT NULL,
    created TEXT NOT NULL,
    expires TEXT NOT NULL
);
CREATE TABLE links (
    digest TEXT PRIMARY KEY, person TEXT NOT NULL REFERENCES users (id), expires TEXT NOT NULL,
    used INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX sessions_person ON sessions (person);
CREATE INDEX links_person ON links (person);
CREATE TABLE devices (
    digest TEXT PRIMARY KEY, person TEXT NOT NULL REFERENCES users (id), created TEXT NOT NULL
);
CREATE INDEX devices_person ON devices (person);
CREATE TABLE attempts (
    subject TEXT PRIMARY KEY, failures INTEGER NOT NULL, free_at DOUBLE PRECISION NOT NULL,
    seen DOUBLE PRECISION NOT NULL
);
CREATE INDEX attempts_seen ON attempts (seen);
CREATE TABLE sign_ons (
    digest TEXT PRIMARY KEY, nonce TEXT NOT NULL, verifier TEXT NOT NULL, next TEXT NOT NULL,
    expires TEXT NOT NULL
);
CREATE TABLE datasets (
    name TEXT PRIMARY KEY, kind TEXT NOT NULL, policy INTEGER NOT NULL, created_by TEXT NOT NULL,
    created TEXT NOT NULL, paused TEXT NOT NULL DEFAULT ''
);
CREATE TABLE policies (
    dataset TEXT NOT NULL REFERENCES datasets (name), number INTEGER NOT NULL, document TEXT NOT NULL,
    facts TEXT NOT NULL, created_by TEXT NOT NULL, created TEXT NOT NULL, PRIMARY KEY (dataset, number)
);
CREATE TABLE accounts (
    name TEXT PRIMARY KEY, dataset TEXT NOT NULL, person TEXT NOT NULL, purpose TEXT NOT NULL,
    request TEXT NOT NULL DEFAULT '', plan TEXT NOT NULL DEFAULT '', created TEXT NOT NULL
);
CREATE TABLE requests (
    id TEXT PRIMARY KEY, kind TEXT NOT NULL, dataset TEXT NOT NULL, asked_by TEXT NOT NULL,
    document TEXT NOT NULL,
    state TEXT NOT NULL, decided_by TEXT NOT NULL DEFAULT '', decided TEXT NOT NULL DEFAULT '',
    reason TEXT NOT NULL DEFAULT '', created TEXT NOT NULL
);
CREATE TABLE queries (
    id TEXT PRIMARY KEY, dataset TEXT NOT NULL, policy INTEGER NOT NULL, person TEXT NOT NULL,
    account TEXT NOT NULL,
    ask TEXT NOT NULL, plan TEXT NOT NULL, purpose TEXT NOT NULL, retry_key TEXT NOT NULL,
    state TEXT NOT NULL,
    created TEXT NOT NULL, admitted BIGINT, answer_at DOUBLE PRECISION, code TEXT NOT NULL DEFAULT '',
    problem TEXT NOT NULL DEFAULT '', release TEXT NOT NULL DEFAULT '', position INTEGER NOT NULL,
    asked TEXT NOT NULL DEFAULT '',
    UNIQUE (person, dataset, retry_key)
);
CREATE INDEX queries_waiting ON queries (state, dataset, position);
CREATE INDEX queries_person ON queries (person, position);
CREATE INDEX queries_position ON queries (position);
CREATE INDEX queries_plan ON queries (plan, dataset);
CREATE INDEX queries_asked ON queries (asked, dataset, policy);
CREATE TABLE releases (
    id TEXT PRIMARY KEY, query TEXT NOT NULL, dataset TEXT NOT NULL, person TEXT NOT NULL,
    account TEXT NOT NULL,
    plan TEXT NOT NULL, document TEXT NOT NULL, created TEXT NOT NULL, shown_from DOUBLE PRECISION NOT NULL,
    position INTEGER NOT NULL
);
CREATE INDEX releases_dataset ON releases (dataset, position);
CREATE INDEX releases_person ON releases (person, position);
CREATE INDEX releases_position ON releases (position);
CREATE INDEX releases_paid ON releases (plan, account);
CREATE TABLE publications (
    id TEXT PRIMARY KEY, release TEXT NOT NULL REFERENCES releases (id), title TEXT NOT NULL,
    about TEXT NOT NULL,
    published_by TEXT NOT NULL, created TEXT NOT NULL, withdrawn TEXT NOT NULL DEFAULT ''
);
CREATE TABLE jobs (
    id TEXT PRIMARY KEY, kind TEXT NOT NULL, document TEXT NOT NULL, state TEXT NOT NULL,
    result TEXT NOT NULL DEFAULT '', created TEXT NOT NULL
);
CREATE INDEX jobs_waiting ON jobs (state);
CREATE TABLE events (
    position INTEGER PRIMARY KEY, at TEXT NOT NULL, person TEXT NOT NULL, what TEXT NOT NULL,
    about TEXT NOT NULL,
    request TEXT NOT NULL
);
CREATE TABLE facts (name TEXT PRIMARY KEY, fact TEXT NOT NULL)
"""

_REGISTRATIONS = """
CREATE TABLE registrations (
    release TEXT PRIMARY KEY REFERENCES releases (id), dataset TEXT NOT NULL, person TEXT NOT NULL,
    kind TEXT NOT NULL, digest TEXT NOT NULL, charge TEXT NOT NULL, note TEXT NOT NULL,
    created TEXT NOT NULL,
    UNIQUE (dataset, digest)
)
"""

_DAYS = """
CREATE TABLE days (
    dataset TEXT NOT NULL, version INTEGER NOT NULL, through TEXT NOT NULL,
    shown_from DOUBLE PRECISION NOT NULL, person TEXT NOT NULL, created TEXT NOT NULL,
    files TEXT NOT NULL DEFAULT '{}', PRIMARY KEY (dataset, version, through)
)
"""

_WORK = "ALTER TABLE queries ADD COLUMN work INTEGER NOT NULL DEFAULT 0"

_MADE_LINKS = """
CREATE TABLE made_links (
    digest TEXT PRIMARY KEY, person TEXT NOT NULL REFERENCES users (id), made_by TEXT NOT NULL,
    made TEXT NOT NULL, used TEXT NOT NULL DEFAULT ''
);
CREATE INDEX made_links_person ON made_links (person)
"""

#: Each is applied once, in its own transaction.
MIGRATIONS: Final = (_FIRST, _REGISTRATIONS, _DAYS, _WORK, _MADE_LINKS)


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
        row = self._connection.execute(sql.replace("?", self._mark), values).fetchone()
        return None if row is None else dict(row)


class Database:
    """The service's database; each thread has its own connection."""

    def __init__(self, address: str) -> None:
        self._place = address
        self._on_server = address.startswith(("postgresql://", "postgres://"))
        self._mark = "%s" if self._on_server else "?"
        self._own = threading.local()
        self._all: list[_Connection] = []
        self._lock = threading.Lock()

    @classmethod
    def open(cls, address: str) -> Self:
        """Open the database, make it if it does not exist, and bring it to the newest form."""
        database = cls(address)
        if not database._on_server:
            Path(address).parent.mkdir(parents=True, exist_ok=True)
            Path(address).touch(mode=0o600)  # SQLite gives its other files the same mode
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

    def _read(self, query: Callable[[Change], R]) -> R:
        """Read; on a server whose connection was dropped, once more on a new connection."""
        connection = self._connection()
        try:
            return query(Change(connection, self._mark))
        except Exception:
            if not self._on_server:
                raise
            return query(Change(self._reopened(connection), self._mark))

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
        connection: _Connection | None = getattr(self._own, "connection", None)
        if connection is None:
            connection = self._own.connection = self._connect()
            with self._lock:
                self._all.append(connection)
        return connection

    def _connect(self) -> _Connection:
        if self._on_server:
            import psycopg
            from psycopg.rows import dict_row

            server: Any = psycopg.connect(self._place, autocommit=True, row_factory=dict_row)
            return server  # type: ignore[no-any-return]
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
