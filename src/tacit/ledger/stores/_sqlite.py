"""The ledger's SQLite store, the default: one file, durable on every commit, shared by one machine.

SQLite's errors become refusals of the ledger. Where nobody may write (an auditor's snapshot, a read-only
disk), `ReadOnlySqliteStore` reads the file as it is.
"""

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
from tacit.ledger.stores._artifacts import ArtifactFiles
from tacit.ledger.stores._files import LedgerFile, RunLock
from tacit.ledger.stores._sql import SQLITE_APPLICATION, SQLITE_SCHEMA, SQLITE_UPGRADE, VERSION, SqlReader
from tacit.ledger.stores._store import EntryRow, LedgerIdentity, TransactionStart

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tacit.ledger.stores._store import AccountRow, StoreChanges, Tip


#: Failures after which nobody knows what is on the disk; a failed read, lock or map of memory is not one.
_FAILED_WRITES = frozenset(
    {
        sqlite3.SQLITE_IOERR_WRITE,
        sqlite3.SQLITE_IOERR_FSYNC,
        sqlite3.SQLITE_IOERR_DIR_FSYNC,
        sqlite3.SQLITE_IOERR_TRUNCATE,
        sqlite3.SQLITE_IOERR_DELETE,
        sqlite3.SQLITE_IOERR_COMMIT_ATOMIC,
        sqlite3.SQLITE_IOERR_BEGIN_ATOMIC,
        sqlite3.SQLITE_IOERR_CLOSE,
        sqlite3.SQLITE_IOERR,
    }
)
_SHARED_MEMORY = frozenset(
    {sqlite3.SQLITE_IOERR_SHMOPEN, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMMAP}
)
_MAY_BE_FULL = _SHARED_MEMORY | {sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_TRUNCATE}


def refusal_of(error: sqlite3.Error, file: LedgerFile, *, wait: float, writing: bool) -> TacitError:
    """Return the refusal for an error; ``ledger-sealed`` if a write failed and the store must be sealed."""
    code = getattr(error, "sqlite_errorcode", None)
    name = getattr(error, "sqlite_errorname", None) or str(error)
    here = str(file.path)
    if code is None and isinstance(error, sqlite3.OperationalError):  # Python's own: text that is not UTF-8
        return _refusals.damaged(f"{here} is damaged: {error}")
    match None if code is None else code & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return _refusals.locked(here, wait)
        case sqlite3.SQLITE_FULL:
            return _refusals.disk_full(here)
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
            return _refusals.read_only(here, fix=f"make {here} and its folder writable")
        case sqlite3.SQLITE_CANTOPEN:
            return TacitError(
                "ledger-unavailable",
                f"{here} cannot be opened",
                why="its folder is missing, or you may not write there",
                fix="name a file in a folder where you may write",
            )
        case sqlite3.SQLITE_NOTADB:
            return _refusals.not_a_ledger(here)
        case sqlite3.SQLITE_CORRUPT:
            return _refusals.damaged(f"{here} is damaged: {error}")
        case sqlite3.SQLITE_IOERR:
            return _disk_refusal(error.sqlite_errorcode, name, file, writing=writing)
        case _:
            return TacitError(
                "ledger-unavailable",
                f"{here} did not accept the change: {name}",
                why="nothing was charged",
                fix="try again",
            )


def _disk_refusal(code: int, name: str, file: LedgerFile, *, writing: bool) -> TacitError:
    """Tell a full disk from a failing one, and a failed write from a failed read."""
    here = str(file.path)
    if code == sqlite3.SQLITE_IOERR_SHORT_READ:
        return _refusals.damaged(f"{here} is shorter than it should be")
    if code == sqlite3.SQLITE_IOERR_SHMSIZE or (code in _MAY_BE_FULL and file.has_no_room()):
        return _refusals.disk_full(here)
    if writing and code in _FAILED_WRITES:
        return _refusals.sealed(f"the disk failed: {name} on {here}")
    return TacitError(
        "ledger-unavailable",
        f"the disk of {here} failed: {name}",
        why="nothing was written",
        fix="check the disk and the file system, then try again",
    )


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
            meta = dict(self._write.execute("SELECT name, value FROM ledger_meta").fetchall())
        except sqlite3.Error as error:
            self._fail(error)
        if not meta:
            return None
        if not {"ledger", "fingerprint"} <= meta.keys():
            raise _refusals.damaged(f"{self.name} does not say which ledger it is")
        return LedgerIdentity(meta["ledger"], meta["fingerprint"])

    def create(self, identity: LedgerIdentity) -> LedgerIdentity:
        """Create the tables, unless another process just did; return the identity that holds."""
        try:
            self._patiently(self._write, "BEGIN IMMEDIATE")
            try:
                present = self.identity()
                if present is None:
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
        return present

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
            entries: dict[str, EntryRow] = {}
            for key in keys:
                sql = "SELECT * FROM ledger_entries WHERE idem = ? AND idem <> ''"
                row = self._write.execute(sql, (key,)).fetchone()
                if row is not None:
                    entries[key] = EntryRow(*row)
            tip, body = self.transaction_reader().end()
            return TransactionStart(tip, entries, self.sealed(), body)
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
        lines = [str(line) for (line,) in self._run("PRAGMA integrity_check", ())]
        return [] if lines == ["ok"] else lines


def _statements(script: str) -> list[str]:
    """Split a script where each statement ends a line; `executescript` would commit the transaction."""
    return [part for part in script.strip().split(";\n") if part]


class ReadOnlySqliteStore(SqliteStore):
    """Everything that reads works; everything that would write is refused.

    SQLite reads a write-ahead log only with shared memory beside it. Without a log, the file is opened as one
    that nobody changes. If somebody does change it, the next read opens it again.
    """

    read_only = True
    _seen: tuple[object, ...] = ()

    def _claim(self) -> None:
        """Test no lock: nothing is written."""

    def _connect(self, *, create: bool = False) -> sqlite3.Connection:  # noqa: ARG002
        self._opened_state = self._state()
        log = self._opened_state[-1]
        if log is not None:
            try:
                return self._opened("mode=ro")
            except sqlite3.Error:
                if log:
                    raise TacitError(
                        "ledger-unavailable",
                        f"{self.name} cannot be read here without its newest entries",
                        why=f"they are still in {self.name}-wal, and reading them needs a place to write",
                        fix=f"copy {self.name} and {self.name}-wal to a disk where you may write",
                    ) from None
        try:
            return self._opened("immutable=1&mode=ro")
        except sqlite3.Error as error:
            self._fail(error)

    def _opened(self, how: str) -> sqlite3.Connection:
        uri = f"file:{quote(self.file.where)}?{how}"
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _state(self) -> tuple[object, ...]:
        """Return what changes when somebody writes to the file or its log."""
        try:
            file = os.stat(self.file.where)  # noqa: PTH116
            log = os.stat(self.file.log).st_size if os.path.exists(self.file.log) else None  # noqa: PTH110, PTH116
        except OSError as error:
            raise _refusals.unavailable(f"{self.name} cannot be read: {error.strerror}") from None
        return file.st_ino, file.st_size, file.st_mtime_ns, log

    def _prepare(self) -> None:
        """Check that the file is a ledger that this version can read without an upgrade."""
        try:
            tables, version = self._check_header()
        except sqlite3.Error as error:
            self._fail(error)
        if not tables:
            raise _refusals.not_a_ledger(self.name)
        if version == 1:
            raise _refusals.older(self.name, 2)

    @contextmanager
    def reading(self) -> Iterator[SqlReader]:
        """Read what is committed; for short reads, shared by the threads."""
        with self._read_lock:
            if self._state() != self._opened_state:
                self._read.close()
                self._read = self._connect()
            yield SqliteReader(self._read, self)

    def upgrade(self, check: Callable[[SqlReader], Sequence[AccountRow]]) -> None:
        """Leave a schema as it is that this version can read."""

    def record_witness(self) -> None:
        """Record nothing."""

    def create(self, identity: LedgerIdentity) -> LedgerIdentity:
        """Refuse."""
        del identity
        self._refuse()

    def begin(self, keys: Sequence[str], guess: Tip | None, attempt: int) -> TransactionStart:
        """Refuse."""
        del keys, guess, attempt
        self._refuse()

    def replaced(self) -> None:
        """Return None: a file that was changed or replaced is opened again for the next read."""

    def seal(self, why: str) -> None:
        """Leave no mark."""

    def unseal(self) -> None:
        """Refuse."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise _refusals.read_only(
            self.name,
            detail="it is open for reading only, because its disk is read-only or you may not write there",
            fix=f"open it where {self.name} and its folder are writable; reading and verify work here",
        )
