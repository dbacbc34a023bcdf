"""The ledger's SQLite store, the default: one file, durable on every commit, shared by one machine."""

from __future__ import annotations

import ctypes
import os
import sqlite3
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import quote

from tacit.errors import TacitError
from tacit.fixes import Do
from tacit.ledger import _refusals
from tacit.ledger._artifact_files import ArtifactFiles
from tacit.ledger._ledger_file import LedgerFile
from tacit.ledger._rows import EntryRow
from tacit.ledger._run_lock import RunLock
from tacit.ledger._schema import SQLITE_APPLICATION, SQLITE_SCHEMA, SQLITE_UPGRADE, VERSION
from tacit.ledger._sql_reader import SqlReader
from tacit.ledger._sqlite_errors import refusal_of
from tacit.ledger._store import LedgerIdentity, TransactionStart

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tacit.ledger._rows import AccountRow, StoreChanges, Tip

_INSERT_ENTRY = "INSERT INTO ledger_entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_INSERT_RELEASE = "INSERT INTO ledger_releases VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_PUT_ACCOUNT = (  # the last value is the schema of the program that wrote the row
    f"INSERT INTO ledger_accounts VALUES (?, ?, ?, ?, ?, ?, ?, {VERSION}) "  # noqa: S608
    "ON CONFLICT (id) DO UPDATE SET "
    "facts = excluded.facts, state = excluded.state, seq = excluded.seq, seal = excluded.seal, "
    "schema = excluded.schema"
)
_PUT_BLOCK = (
    "INSERT INTO ledger_blocks VALUES (?, ?, ?, ?, ?) ON CONFLICT (account, block) DO UPDATE SET "
    "state = excluded.state, seq = excluded.seq, seal = excluded.seal"
)
_PUT_RUN = (
    "INSERT INTO ledger_runs VALUES (?, ?) ON CONFLICT (receipt) DO UPDATE SET secret = excluded.secret"
)


class SqliteStore:
    """WAL journal, ``synchronous=FULL``: a commit returns after the log is on the disk."""

    read_only = False

    def __init__(self, path: Path, *, create: bool, wait: float) -> None:
        self.name = str(path)
        self.file = LedgerFile(path)
        self._path = path
        self._wait = wait
        self._mark = path.with_name(path.name + ".sealed")
        self._mark_name = str(self._mark)  # every commit looks for it
        self._read_lock = Lock()
        self._artifacts = ArtifactFiles(path.with_name(path.name + ".artifacts"))
        self.keep_artifact, self.artifact = self._artifacts.keep, self._artifacts.read
        self._runs = RunLock(path.with_name(path.name + ".runs"), wait=wait)
        self.hold_run = self._runs.hold
        if not self.file.look() and not create:
            raise TacitError(
                "not-a-ledger",
                f"there is no ledger at {path}",
                fix=Do("open-ledger", path=str(path), create=True),
            )
        if path.is_file() and 0 < path.stat().st_size < 512:  # SQLite would overwrite it as if it were empty
            raise _refusals.not_a_ledger(self.name)
        self._claim()
        before = self.file.identity()
        self._write = self._read = self._connect(create=create)
        try:
            self._prepare()
            self._read = self._connect(create=False)
            self.file.opened(before)
        except BaseException:
            self._read.close()
            self._write.close()
            raise

    def _claim(self) -> None:
        """Make sure that the file system keeps other programs out while this one writes."""
        self.file.require_locks()

    def _connect(self, *, create: bool) -> sqlite3.Connection:
        uri = f"file:{quote(self.file.where)}?mode={'rwc' if create else 'rw'}"
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
        """Check, before anything is written, that the file is new or a ledger that this version can read."""
        try:
            tables, _ = self._check_header()
            mode = self._patiently(self._write, "PRAGMA journal_mode = WAL").fetchone()[0]
            if tables:
                self._check_size()
        except sqlite3.Error as error:
            self._fail(error)
        if mode != "wal":
            raise TacitError(
                "not-durable",
                f"{self._path} cannot keep a write-ahead log (journal mode {mode})",
                why="the file system does not offer what a durable commit needs",
                fix="keep the ledger on a local disk",
            )

    def _check_header(self) -> tuple[int, int]:
        """Return how many tables and indexes the file has, and its schema; refuse what is not a ledger."""
        self._write.execute("BEGIN")  # one moment for all three
        tables = self._number("SELECT count(*) FROM sqlite_schema")
        application = self._number("PRAGMA application_id")
        version = self._number("PRAGMA user_version")
        self._write.execute("COMMIT")
        if (application, version) != (0, 0) or tables:
            if application != SQLITE_APPLICATION:
                raise _refusals.not_a_ledger(
                    self.name,
                    why="it is the database of another program",
                    fix=Do("open-ledger", path="another/path.ledger"),
                )
            if version > VERSION:
                raise _refusals.newer(self.name, version, VERSION)
            if version < 1:
                raise _refusals.damaged(f"{self.name} does not say which schema it has")
        return tables, version

    def _check_size(self) -> None:
        """Compare the file's size with its header, if nobody is writing and the write-ahead log is empty."""
        log = Path(self.file.log)
        try:
            self._write.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
                return  # another process is writing, so it has checked the file
            raise
        try:
            if log.exists() and log.stat().st_size > 0:
                return  # the file may be behind its log
            pages = self._number("PRAGMA page_count") * self._number("PRAGMA page_size")
            size = self._path.stat().st_size
        finally:
            self.rollback()
        if size < pages:
            raise _refusals.damaged(f"{self._path} has {size} bytes and should have {pages}")

    def _number(self, sql: str) -> int:
        value = self._patiently(self._write, sql).fetchone()[0]
        return int(value)

    def identity(self) -> LedgerIdentity | None:
        """Return the ledger's identity, or None if the store is new."""
        try:
            if not self._number("SELECT count(*) FROM sqlite_schema WHERE name = 'ledger_meta'"):
                return None
            found = dict(self._write.execute("SELECT name, value FROM ledger_meta").fetchall())
        except sqlite3.Error as error:
            self._fail(error)
        if not found:
            return None
        if not {"ledger", "fingerprint"} <= found.keys():
            raise _refusals.damaged(f"{self.name} does not say which ledger it is")
        return LedgerIdentity(found["ledger"], found["fingerprint"])

    def create(self, identity: LedgerIdentity) -> LedgerIdentity:
        """Create the tables, unless another process just did; return the identity that holds."""
        try:
            self._patiently(self._write, "BEGIN IMMEDIATE")
            try:
                found = self.identity()
                if found is None:
                    for statement in _statements(SQLITE_SCHEMA):
                        self._write.execute(statement)
                    facts = identity._asdict().items()
                    self._write.executemany("INSERT INTO ledger_meta VALUES (?, ?)", facts)
                    self._write.execute("COMMIT")
                    return identity
            finally:
                self.rollback()
        except sqlite3.Error as error:
            self._fail(error, writing=True)
        return found

    def upgrade(self, check: Callable[[SqlReader], Sequence[AccountRow]]) -> None:
        """Bring an older schema up to date in one transaction, unless another process just did."""
        try:
            if self._number("PRAGMA user_version") == VERSION:
                return
            self._patiently(self._write, "BEGIN IMMEDIATE")
            try:
                version = self._number("PRAGMA user_version")
                if version < VERSION:
                    for statement in _statements(SQLITE_UPGRADE[version]):
                        self._write.execute(statement)
                    if version == 1:
                        self._write.executemany(_PUT_ACCOUNT, check(self.transaction_reader()))
                    self._write.execute("COMMIT")
            finally:
                self.rollback()
        except sqlite3.Error as error:
            self._fail(error, writing=True)

    def has_witness(self) -> bool:
        """Whether a witness was kept beside this file."""
        try:
            return self._number("SELECT count(*) FROM ledger_meta WHERE name = 'witness'") > 0
        except sqlite3.Error as error:
            self._fail(error)

    def record_witness(self) -> None:
        """Record that a witness is kept beside this file, in the file itself and not only in its log.

        Best effort: a file that is locked or sealed now is marked when it is opened the next time.
        """
        if self.sealed() is not None:
            return
        with suppress(sqlite3.Error):
            self._write.execute("INSERT INTO ledger_meta VALUES ('witness', 'beside') ON CONFLICT DO NOTHING")
            self._write.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def begin(self, keys: Sequence[str], guess: Tip | None, attempt: int) -> TransactionStart:  # noqa: ARG002
        """Take the write lock and return what the transaction starts from."""
        try:
            self._patiently(self._write, "BEGIN IMMEDIATE")
            self._require_same()
            version = self._number("PRAGMA user_version")
            if version > VERSION:  # another program has upgraded the file since it was opened
                self.rollback()
                raise _refusals.newer(self.name, version, VERSION)
            known: dict[str, EntryRow] = {}
            for key in keys:
                sql = "SELECT * FROM ledger_entries WHERE idem = ? AND idem <> ''"
                found = self._write.execute(sql, (key,)).fetchone()
                if found is not None:
                    known[key] = EntryRow(*found)
            tip, last = self.transaction_reader().end()
            return TransactionStart(tip, known, self.sealed(), last)
        except sqlite3.Error as error:
            self.rollback()
            self._fail(error)

    def transaction_reader(self) -> SqlReader:
        """Read inside the transaction."""
        return SqliteReader(self._write, self)

    def commit(
        self,
        start: TransactionStart,  # noqa: ARG002 - the lock has kept every other writer out
        keys: Sequence[str],  # noqa: ARG002
        changes: StoreChanges,
    ) -> bool:
        """Write everything and return when it is durable."""
        if not changes.entries:
            self.rollback()
            return True
        try:
            self._write.executemany(_INSERT_ENTRY, changes.entries)
            self._write.executemany(_PUT_ACCOUNT, changes.accounts)
            if changes.releases:
                self._write.executemany(_INSERT_RELEASE, changes.releases)
            if changes.blocks:
                self._write.executemany(_PUT_BLOCK, changes.blocks)
            if changes.runs:
                self._write.executemany(_PUT_RUN, changes.runs)
            self._write.execute("COMMIT")
        except sqlite3.Error as error:
            self.rollback()
            self._fail(error, writing=True)
        self.file.require_same()  # else the change is in a file that nobody else sees
        return True

    def _require_same(self) -> None:
        try:
            self.file.require_same()
        except TacitError:
            self.rollback()
            raise

    def rollback(self) -> None:
        """Leave the transaction without a trace; never raises."""
        if self._write.in_transaction:
            with suppress(sqlite3.Error):
                self._write.execute("ROLLBACK")

    @contextmanager
    def reading(self) -> Iterator[SqlReader]:
        """Read what is committed; for short reads, shared by the threads."""
        with self._read_lock:
            yield SqliteReader(self._read, self)

    @contextmanager
    def snapshot(self) -> Iterator[SqlReader]:
        """Read what is committed as of one moment, on a connection of its own."""
        connection = self._connect(create=False)
        try:
            self.file.require_same(log=False)
            try:
                connection.execute("BEGIN")
            except sqlite3.Error as error:
                self._fail(error)
            yield SqliteReader(connection, self)
        finally:
            connection.close()

    def replaced(self) -> TacitError | None:
        """Return the refusal of every change if the file or its log is not the one that was opened."""
        try:
            self.file.require_same()
        except TacitError as refusal:
            return refusal
        return None

    def sealed(self) -> str | None:
        """Return why the store is sealed, or None; the mark is a file, so every process sees it."""
        if not os.path.lexists(self._mark_name):
            return None
        try:
            return self._mark.read_text("utf-8").strip() or "unknown"
        except OSError as error:
            return f"the seal cannot be read: {error.strerror}"

    def seal(self, why: str) -> None:
        """Mark the store so that nobody writes to it again; best effort, never raises."""
        with suppress(OSError):
            self._mark.write_text(why + "\n", "utf-8")

    def unseal(self) -> None:
        """Remove that mark."""
        self._mark.unlink(missing_ok=True)

    def close(self) -> None:
        """Close both connections."""
        self._runs.close()
        with self._read_lock:
            self._read.close()
        self._write.close()

    def after_fork(self) -> None:
        """Keep the parent's connections alive for ever: closing them here would fold the parent's log."""
        for connection in (self._read, self._write):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
        self._read_lock = Lock()
        self._write = self._connect(create=False)
        self._read = self._connect(create=False)

    def _patiently(self, connection: sqlite3.Connection, sql: str) -> sqlite3.Cursor:
        """Run a statement that may find the file locked; retry with short pauses until the time is up.

        SQLite's own busy handler sleeps up to 100 ms at a time, which wastes most of it under contention.
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

    def _fail(self, error: sqlite3.Error, *, writing: bool = False) -> NoReturn:
        """Raise SQLite's error as a refusal; a write that failed seals the ledger."""
        refusal = refusal_of(error, self.file, wait=self._wait, writing=writing)
        if refusal.code == "ledger-sealed":
            self.seal(refusal.what)
        raise refusal from None


class SqliteReader(SqlReader):
    """Read on one connection; a failure becomes a refusal."""

    def __init__(self, connection: sqlite3.Connection, store: SqliteStore) -> None:
        self._connection = connection
        self._store = store
        super().__init__(self._run)

    def _run(self, sql: str, values: tuple[object, ...]) -> Iterator[tuple[object, ...]]:
        try:
            for row in self._connection.execute(sql, values):  # noqa: UP028 - it would close a lost cursor late
                yield row
        except sqlite3.Error as error:
            self._store._fail(error)  # noqa: SLF001 - the reader is part of the store

    def check(self) -> list[str]:
        """Let SQLite compare every page and every index with its table."""
        found = [str(line) for (line,) in self._run("PRAGMA integrity_check", ())]
        return [] if found == ["ok"] else found


def _statements(script: str) -> list[str]:
    """Split a script where each statement ends a line; `executescript` would commit the transaction."""
    return [part for part in script.strip().split(";\n") if part]
