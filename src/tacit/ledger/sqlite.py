"""The default store: one SQLite file, durable on every commit, shared by the processes of one machine."""

from __future__ import annotations

import ctypes
import os
import sqlite3
import time
from contextlib import contextmanager, suppress
from threading import Lock
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import quote

from tacit.errors import TacitError
from tacit.ledger.chain import Row
from tacit.ledger.store import VERSION, Begun, Meta, SqlReader

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tacit.ledger.store import AccountRow, ReleaseRow, Tip

__all__ = ["SqliteStore"]

_APPLICATION = 0x54414349  # "TACI"

_SCHEMA = f"""
CREATE TABLE ledger_meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE ledger_entries (
  seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, account INTEGER NOT NULL, levels TEXT NOT NULL,
  spend TEXT NOT NULL, plan TEXT NOT NULL, idem TEXT NOT NULL, body TEXT NOT NULL, mac BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX entries_idem ON ledger_entries (idem) WHERE idem <> '';
CREATE INDEX entries_plan ON ledger_entries (plan) WHERE plan <> '';
CREATE TABLE ledger_accounts (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, parent INTEGER NOT NULL, facts TEXT NOT NULL,
  state TEXT NOT NULL
) STRICT;
CREATE TABLE ledger_releases (
  receipt INTEGER PRIMARY KEY, root INTEGER NOT NULL, version INTEGER NOT NULL, plan TEXT NOT NULL,
  payload BLOB NOT NULL, seq INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX releases_plan ON ledger_releases (root, version, plan) WHERE plan <> '';
CREATE TRIGGER entries_keep BEFORE DELETE ON ledger_entries BEGIN SELECT RAISE(ABORT, 'append only'); END;
CREATE TRIGGER entries_stay BEFORE UPDATE ON ledger_entries BEGIN SELECT RAISE(ABORT, 'append only'); END;
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {VERSION};
"""

_INSERT_ENTRY = "INSERT INTO ledger_entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_INSERT_RELEASE = "INSERT INTO ledger_releases VALUES (?, ?, ?, ?, ?, ?)"
_PUT_ACCOUNT = (
    "INSERT INTO ledger_accounts VALUES (?, ?, ?, ?, ?) "
    "ON CONFLICT (id) DO UPDATE SET facts = excluded.facts, state = excluded.state"
)


class SqliteStore:
    """WAL journal, ``synchronous=FULL``: a commit returns after the log is on the disk."""

    def __init__(self, path: Path, *, create: bool, wait: float) -> None:
        self.name = str(path)
        self._path = path
        self._wait = wait
        self._mark = path.with_name(path.name + ".sealed")
        self._mark_name = str(self._mark)  # looked for on every commit
        self._read_lock = Lock()
        if not create and not path.exists():
            raise TacitError(
                "not-a-ledger", f"there is no ledger at {path}", fix=f"Ledger.open({str(path)!r}) makes one"
            )
        if (
            path.is_file() and 0 < path.stat().st_size < 512
        ):  # SQLite would take it for empty and write over it
            raise TacitError("not-a-ledger", f"{path} is no ledger", why="nothing was changed in it")
        self._write = self._connect(create=create)
        try:
            self._prepare()
            self._read = self._connect(create=False)
        except BaseException:
            self._write.close()
            raise

    def _connect(self, *, create: bool) -> sqlite3.Connection:
        uri = f"file:{quote(str(self._path.absolute()))}?mode={'rwc' if create else 'rw'}"
        connection: sqlite3.Connection | None = None
        try:
            connection = sqlite3.connect(
                uri, uri=True, isolation_level=None, check_same_thread=False, timeout=0, cached_statements=64
            )
            connection.execute("PRAGMA trusted_schema = OFF")
            self._patiently(connection, "PRAGMA synchronous = FULL")
            connection.execute("PRAGMA fullfsync = ON")
            connection.execute("PRAGMA checkpoint_fullfsync = ON")
        except sqlite3.Error as error:
            if connection is not None:
                connection.close()
            self._fail(error)
        return connection

    def _prepare(self) -> None:
        """Refuse what is no ledger or a newer one before anything is written to it."""
        try:
            self._write.execute("BEGIN")  # one moment for all three
            tables = self._number("SELECT count(*) FROM sqlite_schema")
            application = self._number("PRAGMA application_id")
            version = self._number("PRAGMA user_version")
            self._write.execute("COMMIT")
            if (application, version) != (0, 0) or tables:
                if application != _APPLICATION:
                    raise TacitError(
                        "not-a-ledger",
                        f"{self._path} is a database of something else",
                        why="nothing was changed in it",
                        fix="Ledger.open('another/path.ledger')",
                    )
                if version > VERSION:
                    raise TacitError(
                        "ledger-newer",
                        f"{self._path} has form {version}, this Tacit reads up to {VERSION}",
                        why="an older program could misread what a newer one recorded",
                        fix="pip install --upgrade tacit",
                    )
            mode = self._patiently(self._write, "PRAGMA journal_mode = WAL").fetchone()[0]
            if tables:
                self._insist_on_all_pages()
        except sqlite3.Error as error:
            self._fail(error)
        if mode != "wal":
            raise TacitError(
                "not-durable",
                f"{self._path} cannot keep a write-ahead log (journal mode {mode})",
                why="the file system does not offer what a durable commit needs",
                fix="keep the ledger on a local disk",
            )

    def _insist_on_all_pages(self) -> None:
        """Compare the file's size with its header, where nobody writes and the log is empty."""
        log = self._path.with_name(self._path.name + "-wal")
        try:
            self._write.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
                return  # somebody is writing, and so has opened it whole
            raise
        try:
            if log.exists() and log.stat().st_size > 0:
                return  # the file may be behind its log
            pages = self._number("PRAGMA page_count") * self._number("PRAGMA page_size")
            size = self._path.stat().st_size
        finally:
            self.rollback()
        if size < pages:
            raise TacitError(
                "ledger-damaged",
                f"{self._path} has {size} bytes and should have {pages}",
                why="a truncated ledger cannot say what was spent",
                fix="restore a copy and check it with `tacit budget verify` against the witness",
            )

    def _number(self, sql: str) -> int:
        value = self._patiently(self._write, sql).fetchone()[0]
        return int(value)

    def meta(self) -> Meta | None:
        """Return the ledger's identity, or None where nothing was ever stored."""
        try:
            if not self._number("SELECT count(*) FROM sqlite_schema WHERE name = 'ledger_meta'"):
                return None
            found = dict(self._write.execute("SELECT name, value FROM ledger_meta").fetchall())
        except sqlite3.Error as error:
            self._fail(error)
        return Meta(found["ledger"], found["fingerprint"]) if "ledger" in found else None

    def create(self, meta: Meta) -> Meta:
        """Lay the store out, unless another process just did; return the identity that holds."""
        try:
            self._patiently(self._write, "BEGIN IMMEDIATE")
            try:
                found = self.meta()
                if found is None:
                    for statement in _statements(_SCHEMA):
                        self._write.execute(statement)
                    self._write.executemany("INSERT INTO ledger_meta VALUES (?, ?)", meta._asdict().items())
                    self._write.execute("COMMIT")
                    return meta
            finally:
                self.rollback()
        except sqlite3.Error as error:
            self._fail(error)
        return found

    def begin(self, keys: Sequence[str], guess: Tip | None, attempt: int) -> Begun:  # noqa: ARG002
        """Take the write lock and return what the transaction starts from."""
        try:
            self._patiently(self._write, "BEGIN IMMEDIATE")
            known: dict[str, Row] = {}
            for key in keys:
                sql = "SELECT * FROM ledger_entries WHERE idem = ? AND idem <> ''"
                found = self._write.execute(sql, (key,)).fetchone()
                if found is not None:
                    known[key] = Row(*found)
            return Begun(self.inside().tip(), known, self.sealed())
        except sqlite3.Error as error:
            self.rollback()
            self._fail(error)

    def inside(self) -> SqlReader:
        """Look things up inside the transaction."""
        return _Reader(self._write, self)

    def commit(
        self,
        begun: Begun,  # noqa: ARG002 - the lock has kept everybody else away
        keys: Sequence[str],  # noqa: ARG002
        rows: Sequence[Row],
        accounts: Sequence[AccountRow],
        releases: Sequence[ReleaseRow],
    ) -> bool:
        """Write everything and return when it is durable."""
        if not rows:
            self.rollback()
            return True
        try:
            self._write.executemany(_INSERT_ENTRY, rows)
            self._write.executemany(_PUT_ACCOUNT, accounts)
            if releases:
                self._write.executemany(_INSERT_RELEASE, releases)
            self._write.execute("COMMIT")
        except sqlite3.Error as error:
            self.rollback()
            self._fail(error)
        return True

    def rollback(self) -> None:
        """Leave the transaction without a trace; never raises."""
        if self._write.in_transaction:
            with suppress(sqlite3.Error):
                self._write.execute("ROLLBACK")

    @contextmanager
    def reading(self) -> Iterator[SqlReader]:
        """Look committed things up; short, shared by the threads."""
        with self._read_lock:
            yield _Reader(self._read, self)

    @contextmanager
    def snapshot(self) -> Iterator[SqlReader]:
        """Look committed things up as of one moment, on a connection of its own."""
        connection = self._connect(create=False)
        try:
            try:
                connection.execute("BEGIN")
            except sqlite3.Error as error:
                self._fail(error)
            yield _Reader(connection, self)
        finally:
            connection.close()

    def sealed(self) -> str | None:
        """Return why the store is sealed, or None; the mark is a file, so every process sees it."""
        if not os.path.lexists(self._mark_name):
            return None
        try:
            return self._mark.read_text("utf-8").strip() or "unknown"
        except OSError as error:
            return f"the seal cannot be read: {error.strerror}"

    def seal(self, why: str) -> None:
        """Mark the store as not to be written again; best effort, never raises."""
        with suppress(OSError):
            self._mark.write_text(why + "\n", "utf-8")

    def unseal(self) -> None:
        """Take the mark away."""
        self._mark.unlink(missing_ok=True)

    def close(self) -> None:
        """Let go of both connections."""
        with self._read_lock:
            self._read.close()
        self._write.close()

    def abandon(self) -> None:
        """Keep the parent's connections alive for ever: closing them here would fold the parent's log."""
        for connection in (self._read, self._write):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
        self._read_lock = Lock()
        self._write = self._connect(create=False)
        self._read = self._connect(create=False)

    def _patiently(self, connection: sqlite3.Connection, sql: str) -> sqlite3.Cursor:
        """Run a statement that may find the file locked, with short pauses until the time is up.

        SQLite's own busy handler sleeps up to 100 ms at a time; under contention that wastes most of it.
        """
        deadline = time.monotonic() + self._wait
        pause = 0.0002
        while True:
            try:
                return connection.execute(sql)
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF not in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
                    raise
                if time.monotonic() > deadline:
                    raise
            time.sleep(pause)
            pause = min(pause * 1.5, 0.005)

    def _fail(self, error: sqlite3.Error) -> NoReturn:
        """Say in our words what SQLite met; an input or output error seals the ledger."""
        code = getattr(error, "sqlite_errorcode", None)
        name = getattr(error, "sqlite_errorname", None) or str(error)
        here = self.name
        match None if code is None else code & 0xFF:
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                refusal = TacitError(
                    "ledger-locked",
                    f"another process has held {here} for more than {self._wait:g} s",
                    why="nothing was charged",
                    fix="try again, or Ledger.open(..., wait=30)",
                )
            case sqlite3.SQLITE_FULL:
                refusal = TacitError(
                    "disk-full",
                    f"no room is left for {here}",
                    why="nothing was charged",
                    fix="free some space",
                )
            case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
                refusal = TacitError(
                    "ledger-read-only",
                    f"{here} cannot be written",
                    why="a charge must be recorded before the data is touched",
                    fix=f"chmod u+w {here} and its folder",
                )
            case sqlite3.SQLITE_CANTOPEN:
                refusal = TacitError(
                    "ledger-unavailable",
                    f"{here} cannot be opened",
                    why="the folder is missing, or you may not write in it",
                    fix="name a file in a folder that you may write",
                )
            case sqlite3.SQLITE_NOTADB:
                refusal = TacitError(
                    "not-a-ledger",
                    f"{here} is no ledger",
                    why="nothing was changed in it",
                    fix="check the path",
                )
            case sqlite3.SQLITE_CORRUPT:
                refusal = TacitError(
                    "ledger-damaged",
                    f"{here} is damaged: {error}",
                    why="a damaged ledger cannot say what was spent",
                    fix="restore a copy and check it with `tacit budget verify` against the witness",
                )
            case sqlite3.SQLITE_IOERR:
                why = f"{name} on {here}"
                self.seal(why)
                refusal = TacitError(
                    "ledger-sealed",
                    f"the disk failed: {why}",
                    why="nobody can say what is on the disk after a failed write, so every change is refused",
                    fix="check the disk, then ledger.unseal(statement=..., who=...)",
                )
            case _:
                refusal = TacitError(
                    "ledger-unavailable", f"{here} did not take the change: {name}", why="nothing was charged"
                )
        raise refusal from None


class _Reader(SqlReader):
    """Lookups on one connection, failures in our words."""

    def __init__(self, connection: sqlite3.Connection, store: SqliteStore) -> None:
        self._connection = connection
        self._store = store
        super().__init__(self._run)

    def _run(self, sql: str, values: tuple[object, ...]) -> Iterator[tuple[object, ...]]:
        try:
            yield from self._connection.execute(sql, values)
        except sqlite3.Error as error:
            self._store._fail(error)  # noqa: SLF001 - the reader is part of the store

    def check(self) -> list[str]:
        """Let SQLite compare every page and index with its table."""
        found = [str(line) for (line,) in self._run("PRAGMA integrity_check", ())]
        return [] if found == ["ok"] else found


def _statements(script: str) -> list[str]:
    """Split a script where each statement ends a line; `executescript` would commit the transaction."""
    return [part for part in script.strip().split(";\n") if part]
