"""The ledger's PostgreSQL store: one database for the machines of one organisation."""

from __future__ import annotations

import ctypes
import math
from contextlib import contextmanager, suppress
from threading import Lock
from typing import TYPE_CHECKING, NoReturn

from tacit.errors import TacitError
from tacit.fixes import Do
from tacit.ledger import _refusals
from tacit.ledger.checks._chain import START
from tacit.ledger.stores._sql import POSTGRES_LOCK, POSTGRES_SCHEMA, POSTGRES_UPGRADE, VERSION, SqlReader
from tacit.ledger.stores._store import EntryRow, LedgerIdentity, Tip, TransactionStart

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import psycopg

    from tacit.ledger.stores._store import AccountRow, StoreChanges

    Connection = psycopg.Connection[tuple[object, ...]]

_APPEND = "SELECT ledger_append_4(%s)"
_TAKE_LOCK = f"SELECT pg_advisory_xact_lock({POSTGRES_LOCK}, 'ledger_entries'::regclass::oid::int)"
_LOCK_RUN = "SELECT pg_advisory_lock(('ledger_runs'::regclass::oid::bigint << 32) | (%s & 4294967295))"
_END = "SELECT seq, mac, body FROM ledger_entries ORDER BY seq DESC LIMIT 1"
_SEALED = "SELECT value FROM ledger_meta WHERE name = 'sealed'"
_PATIENCE = 3  # lost comparisons before this client takes the lock and then decides


class PostgresStore:
    """Compare and append in one durable statement on the server, under a lock.

    Nothing is locked while a client decides. The client names the log's end from which it decided; if the log
    has moved on, the server writes nothing and the client decides again. Every change appends an entry, so an
    unmoved end means an unchanged ledger. A client that loses this race a few times takes the lock before it
    decides. ``synchronous_commit`` is on: the server answers after it has synced its log.
    """

    def __init__(self, url: str, *, wait: float) -> None:
        try:
            import psycopg
        except ImportError:
            raise TacitError(
                "missing-extra",
                "a ledger on PostgreSQL needs the package psycopg",
                fix=Do("install", package="tacit[postgres]"),
            ) from None
        self._psycopg = psycopg
        self._url = url
        self._wait = wait
        self.name = self._public_name()
        self._write: Connection | None = None
        self._read: Connection | None = None
        self._read_lock = Lock()
        self._connection()

    def _public_name(self) -> str:
        """Name the database for messages, without the password."""
        try:
            facts = self._psycopg.conninfo.conninfo_to_dict(self._url)
        except self._psycopg.Error:
            raise TacitError(
                "ledger-unavailable",
                "the PostgreSQL address is malformed",
                fix=Do("open-ledger", path="postgresql://user@host/database"),
            ) from None
        return f"postgresql://{facts.get('host') or 'localhost'}/{facts.get('dbname') or ''}"

    def _connect(self) -> Connection:
        try:
            connection: Connection = self._psycopg.connect(self._url, autocommit=True, connect_timeout=10)
        except self._psycopg.Error as error:
            self._fail(error)
        try:
            self._require_durability(connection)
            connection.execute("SELECT set_config('lock_timeout', %s, false)", (_lock_timeout(self._wait),))
            connection.execute("SET enable_seqscan = off")  # plans made for a small table stay good
        except self._psycopg.Error as error:
            connection.close()
            self._fail(error)
        except TacitError:
            connection.close()
            raise
        return connection

    def _require_durability(self, connection: Connection) -> None:
        if connection.execute("SHOW fsync").fetchone() != ("on",):
            raise TacitError(
                "not-durable",
                f"{self.name} runs with fsync off",
                why="a crash of its machine could lose charges",
                fix="set fsync = on in postgresql.conf",
            )
        if connection.execute("SHOW synchronous_commit").fetchone() != ("remote_apply",):
            connection.execute("SET synchronous_commit = on")

    def _connection(self) -> Connection:
        if self._write is None or self._write.closed:
            self._write = self._connect()
            self._cursor = self._write.cursor()
        return self._write

    def identity(self) -> LedgerIdentity | None:
        """Return the ledger's identity, or None if the store is new."""
        connection = self._connection()
        try:
            if connection.execute("SELECT to_regclass('ledger_meta')").fetchone() == (None,):
                return None
            meta = {str(k): str(v) for k, v in connection.execute("SELECT name, value FROM ledger_meta")}
        except self._psycopg.Error as error:
            self._fail(error)
        if not {"ledger", "fingerprint", "version"} <= meta.keys():
            raise _refusals.not_a_ledger(
                self.name,
                why="it holds tables of another program",
                fix=Do("open-ledger", path="postgresql://user@host/another"),
            )
        if int(meta["version"]) > VERSION:
            raise _refusals.newer(self.name, int(meta["version"]), VERSION)
        return LedgerIdentity(meta["ledger"], meta["fingerprint"])

    def create(self, identity: LedgerIdentity) -> LedgerIdentity:
        """Create the tables, unless another process just did; return the identity that holds."""
        connection = self._connection()
        try:
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%s, 0)", (POSTGRES_LOCK,))
                present = self.identity()
                if present is not None:
                    return present
                connection.execute(POSTGRES_SCHEMA)
                for name, value in (*identity._asdict().items(), ("version", str(VERSION))):
                    connection.execute("INSERT INTO ledger_meta VALUES (%s, %s)", (name, value))
        except self._psycopg.Error as error:
            self._fail(error)
        return identity

    def upgrade(self, check: Callable[[SqlReader], Sequence[AccountRow]]) -> None:
        """Bring an older schema up to date in one transaction, unless another process just did."""
        connection = self._connection()
        version = "SELECT value FROM ledger_meta WHERE name = 'version'"
        put = "UPDATE ledger_accounts SET seq = %s, seal = %s WHERE id = %s"
        try:
            if connection.execute(version).fetchone() == (str(VERSION),):
                return
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%s, 0)", (POSTGRES_LOCK,))
                connection.execute(_TAKE_LOCK)
                ((earlier,),) = connection.execute(version).fetchall()
                if earlier == str(VERSION):
                    return
                connection.execute(POSTGRES_UPGRADE[int(str(earlier))])
                for row in check(self.transaction_reader()) if earlier == "1" else ():
                    connection.execute(put, (row.seq, row.seal, row.id))
        except self._psycopg.errors.InsufficientPrivilege:
            raise _refusals.older(self.name, VERSION) from None
        except self._psycopg.Error as error:
            self._fail(error)

    def begin(self, keys: Sequence[str], guess: Tip | None, attempt: int) -> TransactionStart:
        """Start from the guess, or read the log's end; after some lost races, lock first."""
        if guess is not None and attempt == 0:
            return TransactionStart(guess, {}, None)
        connection = self._connection()
        entries: dict[str, EntryRow] = {}
        try:
            if attempt > _PATIENCE:
                connection.execute("BEGIN")
                connection.execute(_TAKE_LOCK)
            end = connection.execute(_END, binary=True).fetchone()
            mark = connection.execute(_SEALED).fetchone()
            if keys:
                sql = "SELECT * FROM ledger_entries WHERE idem = ANY(%s) AND idem <> ''"
                for entry_row in connection.execute(sql, (list(keys),), binary=True):
                    row = EntryRow(*entry_row)  # type: ignore[arg-type]
                    entries[row.key] = row
        except self._psycopg.Error as error:
            self.rollback()
            self._fail(error)
        return TransactionStart(
            Tip(0, START) if end is None else Tip(end[0], end[1]),  # type: ignore[arg-type]
            entries,
            None if mark is None else str(mark[0]),
            "" if end is None else str(end[2]),
        )

    def transaction_reader(self) -> SqlReader:
        """Read inside the transaction; if anything has changed since `begin`, `commit` returns False."""
        return PostgresReader(self._connection(), self)

    def commit(self, start: TransactionStart, keys: Sequence[str], changes: StoreChanges) -> bool:
        """Compare, write everything in one round trip, and return when it is durable."""
        new_keys = {entry.key for entry in changes.entries}  # the unique index compares these
        seq, mac = start.tip
        batch = "\x1d".join(
            (
                f"{seq} {mac.hex()}" if seq else "empty",
                "\x1e".join(key for key in keys if key not in start.known and key not in new_keys),
                _table((*entry[:-1], entry.mac.hex()) for entry in changes.entries),
                _table(changes.accounts),
                _table((*one[:5], one.payload.hex(), one.artifact, one.seq) for one in changes.releases),
                _table(changes.blocks),
                _table((run.receipt, run.secret.hex()) for run in changes.runs),
            )
        )
        connection = self._connection()
        try:
            answer = self._cursor.execute(_APPEND, (batch,)).fetchone()
            if connection.info.transaction_status != self._psycopg.pq.TransactionStatus.IDLE:
                connection.execute("COMMIT")
        except self._psycopg.errors.UniqueViolation:  # another client used one of the keys
            self.rollback()
            return False
        except self._psycopg.Error as error:
            self.rollback()
            self._fail(error, writing=True)
        return answer == ("done",)  # "moved" or "sealed": the next attempt reads the store and finds out why

    def keep_artifact(self, digest: str, payload: bytes) -> None:
        """Keep a long payload under its digest, durably; a row that was damaged is written again."""
        sql = (
            "INSERT INTO ledger_artifacts VALUES (%s, %s) "
            "ON CONFLICT (sha256) DO UPDATE SET payload = excluded.payload"
        )
        try:
            with self._connect() as connection:
                connection.execute(sql, (digest, payload), binary=True)
        except self._psycopg.Error as error:
            self._fail(error)

    def artifact(self, digest: str) -> bytes | None:
        """Return a long payload as it is stored, unchecked, or None if it is lost."""
        with self.reading() as reader:
            row = next(reader.run("SELECT payload FROM ledger_artifacts WHERE sha256 = ?", (digest,)), None)
        return None if row is None else bytes(row[0])  # type: ignore[call-overload]

    @contextmanager
    def hold_run(self, receipt: int) -> Iterator[None]:
        """Keep other clients from drawing an instalment of a run: a lock of a session, gone when it ends."""
        connection = self._connect()
        try:
            try:
                connection.execute(_LOCK_RUN, (receipt,))
            except self._psycopg.errors.LockNotAvailable:
                raise _refusals.run_locked(receipt, self._wait) from None
            except self._psycopg.Error as error:
                self._fail(error)
            yield
        finally:
            with suppress(self._psycopg.Error):
                connection.close()

    def rollback(self) -> None:
        """Leave the transaction without a trace; never raises."""
        connection = self._write
        if connection is None or connection.closed:
            return
        with suppress(self._psycopg.Error):
            if connection.info.transaction_status != self._psycopg.pq.TransactionStatus.IDLE:
                connection.execute("ROLLBACK")
            return
        with suppress(self._psycopg.Error):
            connection.close()

    @contextmanager
    def reading(self) -> Iterator[PostgresReader]:
        """Read what is committed; for short reads, shared by the threads."""
        with self._read_lock:
            if self._read is None or self._read.closed:
                self._read = self._connect()
            yield PostgresReader(self._read, self)

    @contextmanager
    def snapshot(self) -> Iterator[SqlReader]:
        """Read what is committed as of one moment, on a connection of its own."""
        connection = self._connect()
        try:
            try:
                connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            except self._psycopg.Error as error:
                self._fail(error)
            yield PostgresReader(connection, self, stream=True)
        finally:
            connection.close()

    def replaced(self) -> TacitError | None:
        """Return None: the server looks after its files."""
        return None

    def sealed(self) -> str | None:
        """Return why the store is sealed, or None."""
        with self.reading() as reader:
            row = next(reader.run(_SEALED, ()), None)
        return None if row is None else str(row[0])

    def seal(self, why: str) -> None:
        """Mark the store so that nobody writes to it again; best effort, never raises."""
        sql = "INSERT INTO ledger_meta VALUES ('sealed', %s) ON CONFLICT (name) DO NOTHING"
        with suppress(TacitError, self._psycopg.Error), self._connect() as connection:
            connection.execute(sql, (why,))

    def unseal(self) -> None:
        """Remove that mark."""
        try:
            self._connection().execute("DELETE FROM ledger_meta WHERE name = 'sealed'")
        except self._psycopg.Error as error:
            self._fail(error)

    def close(self) -> None:
        """Close both connections."""
        with self._read_lock:
            for connection in (self._read, self._write):
                if connection is not None:
                    connection.close()

    def after_fork(self) -> None:
        """Keep the parent's connections alive for ever: closing them here would end the parent's session."""
        for connection in (self._read, self._write):
            if connection is not None:
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
        self._read_lock = Lock()
        self._read = self._write = None

    def _fail(self, error: psycopg.Error, *, writing: bool = False) -> NoReturn:
        """Raise PostgreSQL's error as a refusal; a disk error seals the ledger if something was written."""
        raise self._refusal(error, writing=writing) from None

    def _refusal(self, error: psycopg.Error, *, writing: bool) -> TacitError:
        detail = _first_line(error)
        match error.sqlstate:
            case "55P03":
                return _refusals.locked(self.name, self._wait)
            case "53100":
                return _refusals.disk_full(self.name)
            case "25006" | "42501":
                return _refusals.read_only(
                    self.name,
                    detail=detail,
                    fix="connect as a user who may write, to a server that is not a standby",
                )
            case "58030" | "XX001" | "XX002" if writing:
                self.seal(f"{error.sqlstate} {detail}")
                return _refusals.sealed(f"the disk of {self.name} failed: {detail}")
            case "XX001" | "XX002":
                return _refusals.damaged(f"{self.name} is damaged: {detail}")
            case _:
                return _refusals.unavailable(f"{self.name} failed: {detail}")


class PostgresReader(SqlReader):
    """Read on one connection; a failure becomes a refusal; ``stream`` reads long answers piece by piece."""

    def __init__(self, connection: Connection, store: PostgresStore, *, stream: bool = False) -> None:
        self._connection = connection
        self._store = store
        self._stream = stream
        super().__init__(self.run)

    def run(self, sql: str, values: tuple[object, ...]) -> Iterator[tuple[object, ...]]:
        """Run one statement."""
        text = sql.replace("?", "%s")
        psycopg = self._store._psycopg  # noqa: SLF001 - the reader is part of the store
        try:
            if self._stream:
                with self._connection.cursor(name="ledger_scan", binary=True) as cursor:
                    cursor.itersize = 20_000
                    cursor.execute(text, values)
                    yield from cursor
            else:
                yield from self._connection.execute(text, values, binary=True)
        except psycopg.Error as error:
            self._store._fail(error)  # noqa: SLF001


def _table(rows: Iterable[tuple[object, ...]]) -> str:
    """Join rows and fields by separators that no field contains (see `Chain`); payloads are hexadecimal."""
    return "\x1e".join("\x1f".join(map(str, row)) for row in rows)


def _lock_timeout(seconds: float) -> str:
    """Write a waiting time for PostgreSQL, for which 0 means for ever and which counts in 31 bits."""
    return f"{math.ceil(min(max(seconds * 1000, 1), 2**31 - 1))}ms"


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or ["unknown"])[0]
