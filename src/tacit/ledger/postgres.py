"""The shared store: one PostgreSQL database for the machines of one organisation."""

from __future__ import annotations

import ctypes
from contextlib import contextmanager, suppress
from threading import Lock
from typing import TYPE_CHECKING, NoReturn

from tacit.errors import TacitError
from tacit.ledger.chain import START, Row
from tacit.ledger.store import VERSION, Begun, Meta, SqlReader, Tip

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import psycopg

    from tacit.ledger.store import AccountRow, ReleaseRow

    Connection = psycopg.Connection[tuple[object, ...]]

__all__ = ["PostgresStore"]

_LOCK = 0x54414349  # "TACI"; the second half of the lock's name is the table's own number

_SCHEMA = r"""
CREATE TABLE ledger_meta (name text PRIMARY KEY, value text NOT NULL);
CREATE TABLE ledger_entries (
  seq bigint PRIMARY KEY, kind text NOT NULL, account bigint NOT NULL, levels text NOT NULL,
  spend text NOT NULL, plan text NOT NULL, idem text NOT NULL, body text NOT NULL, mac bytea NOT NULL
);
CREATE UNIQUE INDEX ledger_entries_idem ON ledger_entries (idem) WHERE idem <> '';
CREATE INDEX ledger_entries_plan ON ledger_entries (plan) WHERE plan <> '';
CREATE TABLE ledger_accounts (
  id bigint PRIMARY KEY, name text NOT NULL UNIQUE, parent bigint NOT NULL, facts text NOT NULL,
  state text NOT NULL
);
CREATE TABLE ledger_releases (
  receipt bigint PRIMARY KEY, root bigint NOT NULL, version bigint NOT NULL, plan text NOT NULL,
  payload bytea NOT NULL, seq bigint NOT NULL
);
CREATE UNIQUE INDEX ledger_releases_plan ON ledger_releases (root, version, plan) WHERE plan <> '';
CREATE FUNCTION ledger_append(batch text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  part text[] := string_to_array(batch, E'\x1d');  -- old end, keys, entries, accounts, releases
  last record;
BEGIN
  PERFORM pg_advisory_xact_lock(LOCK, 'ledger_entries'::regclass::oid::int); SELECT e.seq || ' ' ||
  encode(e.mac, 'hex') AS tip, EXISTS (SELECT FROM ledger_meta WHERE name = 'sealed') AS sealed
    INTO last FROM (SELECT 1) one LEFT JOIN
    (SELECT seq, mac FROM ledger_entries ORDER BY seq DESC LIMIT 1) e ON true;
  IF last.sealed THEN
    RETURN 'sealed';
  ELSIF coalesce(last.tip, 'empty') <> part[1] THEN
    RETURN 'moved';
  ELSIF part[2] <> '' AND EXISTS (SELECT FROM string_to_table(part[2], E'\x1e') k
                                  JOIN ledger_entries e ON e.idem = k AND e.idem <> '') THEN
    RETURN 'moved';
  END IF;
  INSERT INTO ledger_entries
    SELECT f[1]::bigint, f[2], f[3]::bigint, f[4], f[5], f[6], f[7], f[8], decode(f[9], 'hex')
    FROM (SELECT string_to_array(r, E'\x1f') f FROM string_to_table(part[3], E'\x1e') r) rows;
  INSERT INTO ledger_accounts
    SELECT f[1]::bigint, f[2], f[3]::bigint, f[4], f[5]
    FROM (SELECT string_to_array(r, E'\x1f') f FROM string_to_table(part[4], E'\x1e') r) rows
    ON CONFLICT (id) DO UPDATE SET facts = excluded.facts, state = excluded.state;
  IF part[5] <> '' THEN
    INSERT INTO ledger_releases
      SELECT f[1]::bigint, f[2]::bigint, f[3]::bigint, f[4], decode(f[5], 'hex'), f[6]::bigint
      FROM (SELECT string_to_array(r, E'\x1f') f FROM string_to_table(part[5], E'\x1e') r) rows;
  END IF;
  RETURN 'done';
END $$;
CREATE FUNCTION ledger_append_only() RETURNS trigger LANGUAGE plpgsql
  AS $$ BEGIN RAISE EXCEPTION 'append only'; END $$;
CREATE TRIGGER ledger_entries_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger_entries
  FOR EACH STATEMENT EXECUTE FUNCTION ledger_append_only();
""".replace("LOCK", str(_LOCK))

_APPEND = "SELECT ledger_append(%s)"
_TAKE_LOCK = f"SELECT pg_advisory_xact_lock({_LOCK}, 'ledger_entries'::regclass::oid::int)"
_TIP = "SELECT seq, mac FROM ledger_entries ORDER BY seq DESC LIMIT 1"
_SEALED = "SELECT value FROM ledger_meta WHERE name = 'sealed'"
_PATIENCE = 3  # times to compare and fail before the lock is held while deciding


class PostgresStore:
    """Compare and append in one durable statement on the server, which a lock keeps apart from all others.

    Nothing is locked while a client decides. It names the log's end that it decided from; if the log has
    moved on, nothing is written and it decides again. Everything that changes appends an entry, so an unmoved
    end means an unchanged ledger. Whoever loses that race a few times takes the lock before deciding.
    ``synchronous_commit`` is on: an answer comes after the server synced its log.
    """

    def __init__(self, url: str, *, wait: float) -> None:
        try:
            import psycopg
        except ImportError:
            raise TacitError(
                "missing-extra",
                "a ledger on PostgreSQL needs psycopg",
                fix="pip install 'tacit[postgres]'",
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
                fix="Ledger.open('postgresql://user@host/database')",
            ) from None
        return f"postgresql://{facts.get('host') or 'localhost'}/{facts.get('dbname') or ''}"

    def _connect(self) -> Connection:
        try:
            connection: Connection = self._psycopg.connect(self._url, autocommit=True, connect_timeout=10)
        except self._psycopg.Error as error:
            self._fail(error)
        try:
            self._insist_on_durability(connection)
            connection.execute(
                "SELECT set_config('lock_timeout', %s, false)", (f"{int(self._wait * 1000)}ms",)
            )
            connection.execute("SET enable_seqscan = off")  # plans made for a young table stay good ones
        except self._psycopg.Error as error:
            connection.close()
            self._fail(error)
        except TacitError:
            connection.close()
            raise
        return connection

    def _insist_on_durability(self, connection: Connection) -> None:
        if connection.execute("SHOW fsync").fetchone() != ("on",):
            raise TacitError(
                "not-durable",
                f"{self.name} runs with fsync off",
                why="a crash of its machine could forget charges",
                fix="set fsync = on in postgresql.conf",
            )
        if connection.execute("SHOW synchronous_commit").fetchone() != ("remote_apply",):
            connection.execute("SET synchronous_commit = on")

    def _connection(self) -> Connection:
        if self._write is None or self._write.closed:
            self._write = self._connect()
            self._cursor = self._write.cursor()
        return self._write

    def meta(self) -> Meta | None:
        """Return the ledger's identity, or None where nothing was ever stored."""
        connection = self._connection()
        try:
            if connection.execute("SELECT to_regclass('ledger_meta')").fetchone() == (None,):
                return None
            found = {str(k): str(v) for k, v in connection.execute("SELECT name, value FROM ledger_meta")}
        except self._psycopg.Error as error:
            self._fail(error)
        if not {"ledger", "fingerprint", "version"} <= found.keys():
            raise TacitError("not-a-ledger", f"the tables in {self.name} are not a ledger's")
        if int(found["version"]) > VERSION:
            raise TacitError(
                "ledger-newer",
                f"{self.name} has form {found['version']}, this Tacit reads up to {VERSION}",
                why="an older program could misread what a newer one recorded",
                fix="pip install --upgrade tacit",
            )
        return Meta(found["ledger"], found["fingerprint"])

    def create(self, meta: Meta) -> Meta:
        """Lay the store out, unless another process just did; return the identity that holds."""
        connection = self._connection()
        try:
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%s, 0)", (_LOCK,))
                found = self.meta()
                if found is not None:
                    return found
                connection.execute(_SCHEMA)
                for name, value in (*meta._asdict().items(), ("version", str(VERSION))):
                    connection.execute("INSERT INTO ledger_meta VALUES (%s, %s)", (name, value))
        except self._psycopg.Error as error:
            self._fail(error)
        return meta

    def begin(self, keys: Sequence[str], guess: Tip | None, attempt: int) -> Begun:
        """Start from the guess, or look; after some lost races, look with the lock in hand."""
        if guess is not None and attempt == 0:
            return Begun(guess, {}, None)
        connection = self._connection()
        known: dict[str, Row] = {}
        try:
            if attempt > _PATIENCE:
                connection.execute("BEGIN")
                connection.execute(_TAKE_LOCK)
            last = connection.execute(_TIP, binary=True).fetchone()
            mark = connection.execute(_SEALED).fetchone()
            if keys:
                sql = "SELECT * FROM ledger_entries WHERE idem = ANY(%s) AND idem <> ''"
                for found in connection.execute(sql, (list(keys),), binary=True):
                    row = Row(*found)  # type: ignore[arg-type]
                    known[row.key] = row
        except self._psycopg.Error as error:
            self.rollback()
            self._fail(error)
        return Begun(
            Tip(0, START) if last is None else Tip(*last),  # type: ignore[arg-type]
            known,
            None if mark is None else str(mark[0]),
        )

    def inside(self) -> SqlReader:
        """Look things up; if they have changed since `begin`, `commit` will tell."""
        return _Reader(self._connection(), self)

    def commit(
        self,
        begun: Begun,
        keys: Sequence[str],
        rows: Sequence[Row],
        accounts: Sequence[AccountRow],
        releases: Sequence[ReleaseRow],
    ) -> bool:
        """Compare, write everything in one round trip, and return when it is durable."""
        written = {row.key for row in rows}  # these the unique index looks up
        seq, mac = begun.tip
        batch = "\x1d".join(
            (
                f"{seq} {mac.hex()}" if seq else "empty",
                "\x1e".join(key for key in keys if key not in begun.known and key not in written),
                _table((*row[:-1], row.mac.hex()) for row in rows),
                _table(accounts),
                _table((*release[:4], release.payload.hex(), release.seq) for release in releases),
            )
        )
        connection = self._connection()
        try:
            answer = self._cursor.execute(_APPEND, (batch,)).fetchone()
            if connection.info.transaction_status != self._psycopg.pq.TransactionStatus.IDLE:
                connection.execute("COMMIT")
        except self._psycopg.errors.UniqueViolation:  # somebody used one of the keys
            self.rollback()
            return False
        except self._psycopg.Error as error:
            self.rollback()
            self._fail(error)
        return answer == ("done",)  # "moved" or "sealed": the next attempt looks, and finds out why

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
    def reading(self) -> Iterator[_Reader]:
        """Look committed things up; short, shared by the threads."""
        with self._read_lock:
            if self._read is None or self._read.closed:
                self._read = self._connect()
            yield _Reader(self._read, self)

    @contextmanager
    def snapshot(self) -> Iterator[SqlReader]:
        """Look committed things up as of one moment, on a connection of its own."""
        connection = self._connect()
        try:
            try:
                connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            except self._psycopg.Error as error:
                self._fail(error)
            yield _Reader(connection, self, stream=True)
        finally:
            connection.close()

    def sealed(self) -> str | None:
        """Return why the store is sealed, or None."""
        with self.reading() as reader:
            found = next(reader.run(_SEALED, ()), None)
        return None if found is None else str(found[0])

    def seal(self, why: str) -> None:
        """Mark the store as not to be written again; best effort, never raises."""
        sql = "INSERT INTO ledger_meta VALUES ('sealed', %s) ON CONFLICT (name) DO NOTHING"
        with suppress(TacitError, self._psycopg.Error), self._connect() as connection:
            connection.execute(sql, (why,))

    def unseal(self) -> None:
        """Take the mark away."""
        try:
            self._connection().execute("DELETE FROM ledger_meta WHERE name = 'sealed'")
        except self._psycopg.Error as error:
            self._fail(error)

    def close(self) -> None:
        """Let go of both connections."""
        with self._read_lock:
            for connection in (self._read, self._write):
                if connection is not None:
                    connection.close()

    def abandon(self) -> None:
        """Keep the parent's connections alive for ever: closing them here would end the parent's session."""
        for connection in (self._read, self._write):
            if connection is not None:
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
        self._read_lock = Lock()
        self._read = self._write = None

    def _fail(self, error: psycopg.Error) -> NoReturn:
        """Say in our words what PostgreSQL met."""
        state = error.sqlstate or ""
        here = self.name
        if state == "55P03":
            refusal = TacitError(
                "ledger-locked",
                f"another client has held {here} for more than {self._wait:g} s",
                why="nothing was charged",
                fix="try again, or Ledger.open(..., wait=30)",
            )
        elif state == "53100":
            refusal = TacitError("disk-full", f"no room is left for {here}", why="nothing was charged")
        elif state in {"25006", "42501"}:
            refusal = TacitError(
                "ledger-read-only",
                f"{here} cannot be written: {_first_line(error)}",
                why="a charge must be recorded before the data is touched",
                fix="connect as a user who may write, to a server that is not a standby",
            )
        elif state in {"58030", "XX001", "XX002"}:
            self.seal(f"{state} {_first_line(error)}")
            refusal = TacitError(
                "ledger-sealed",
                f"the server's disk failed: {_first_line(error)}",
                why="nobody can say what is on the disk after a failed write, so every change is refused",
                fix="check the server, then ledger.unseal(statement=..., who=...)",
            )
        else:
            refusal = TacitError(
                "ledger-unavailable",
                f"{here} did not answer as it should: {_first_line(error)}",
                why="whether a change under way was recorded is not known",
                fix="ask again with the same key: what was recorded is not charged twice",
            )
        raise refusal from None


class _Reader(SqlReader):
    """Lookups on one connection, failures in our words; ``stream`` reads long answers piece by piece."""

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


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or ["unknown"])[0]
