"""The ledger's SQLite store where nobody may write: an auditor's snapshot, a read-only disk."""

from __future__ import annotations

import os
import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import quote

from tacit.errors import TacitError
from tacit.ledger import _refusals
from tacit.ledger._sqlite_store import SqliteReader, SqliteStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tacit.ledger._rows import AccountRow, Tip
    from tacit.ledger._sql_reader import SqlReader
    from tacit.ledger._store import LedgerIdentity, TransactionStart


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
        self._seen = self._state()
        log = self._seen[-1]
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
            if self._state() != self._seen:
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
