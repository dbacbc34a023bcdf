"""The file of a ledger as the system sees it: its name, its place, its locks, the room on its disk."""

from __future__ import annotations

import errno
import os
import struct
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from tacit.errors import TacitError
from tacit.ledger import _refusals
from tacit.ledger._file_identity import identity_of

try:
    import fcntl
except ImportError:  # pragma: no cover - not a POSIX system
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from pathlib import Path

_NO_ROOM = frozenset({errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)})
_PROBE = 4 << 20  # more than one commit writes
_NATIVE_LOCKS = sys.platform == "linux" and sys.maxsize > 2**32


class LedgerFile:
    """A file and its write-ahead log, which must stay the files that they were when the ledger was opened."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.where = os.path.abspath(path)  # noqa: PTH100 - looked at in each transaction
        self.log = self.where + "-wal"
        self._identity: tuple[int, int] | None = None
        self._log_identity: tuple[int, int] | None = None

    def look(self) -> bool:
        """Return whether the file exists; refuse a name or a folder that the system refuses."""
        try:
            os.stat(self.where)  # noqa: PTH116
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise TacitError(
                "ledger-unavailable",
                f"{self.path} cannot be opened: {error.strerror}",
                fix="name a file in a folder where you may write",
            ) from None
        return True

    def is_read_only(self) -> bool:
        """Whether the file exists, and this process cannot write it or its log."""
        if not os.path.exists(self.where):  # noqa: PTH110
            return False
        folder = os.path.dirname(self.where)  # noqa: PTH120
        logged = os.path.exists(self.log)  # noqa: PTH110
        return not os.access(self.where, os.W_OK) or not (logged or os.access(folder, os.W_OK))

    def identity(self) -> tuple[int, int] | None:
        """Return which file the name stands for now."""
        return identity_of(self.where)

    def opened(self, before: tuple[int, int] | None) -> None:
        """Remember which file was opened, if it was the same file all the time."""
        self._identity = self.identity()
        if self._identity is None or before not in {None, self._identity}:
            raise _refusals.replaced(str(self.path))

    def require_same(self, *, log: bool = True) -> None:
        """Refuse if another file has taken the name, or none: nobody else would see what is written here.

        The log exists as long as a connection is open; it is remembered when it is seen first.
        """
        if self.identity() != self._identity:
            raise _refusals.replaced(str(self.path))
        if log:
            now = identity_of(self.log)
            self._log_identity = self._log_identity or now
            if now != self._log_identity:
                raise _refusals.replaced(f"{self.path}-wal")

    def require_locks(self) -> None:
        """Refuse a file system whose locks exclude nobody: two programs would charge the same budget.

        Two descriptors of an empty file beside the ledger ask for the same lock, each as if it belonged to
        another process. The second must be refused. This finds locks that do nothing on this machine; whether
        a network file system locks between machines cannot be seen from one of them.
        """
        if fcntl is None:  # pragma: no cover
            return
        scratch = f"{self.where}.lock-{os.getpid()}-{os.urandom(4).hex()}"
        files: list[int] = []
        try:
            files += [os.open(scratch, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)]
            files += [os.open(scratch, os.O_RDWR | os.O_CLOEXEC)]
            for file in files:
                _take_lock(file)
        except OSError:
            return  # the second lock was refused, as it must be; or the next step says what is wrong
        finally:
            for file in files:
                os.close(file)
            with suppress(OSError):
                os.unlink(scratch)  # noqa: PTH108
        raise TacitError(
            "not-durable",
            f"the file locks beside {self.path} do nothing",
            why="two programs could charge the same budget at the same moment, and one charge would be lost",
            fix="keep the ledger on a local disk, or on a PostgreSQL server",
        )

    def has_no_room(self) -> bool:
        """Whether the disk or this user's quota is full: SQLite reports a full quota as a failed write."""
        probe = f"{self.where}.room-{os.getpid()}-{os.urandom(4).hex()}"
        file = -1
        try:
            file = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            block = bytes(1 << 16)
            for start in range(0, _PROBE, len(block)):
                if os.pwrite(file, block, start) < len(block):
                    return True
            os.fsync(file)
        except OSError as error:
            return error.errno in _NO_ROOM
        finally:
            if file >= 0:
                os.close(file)
            with suppress(OSError):
                os.unlink(probe)  # noqa: PTH108
        return False


def _take_lock(file: int) -> None:
    """Lock a file for this descriptor alone, with the kind of lock that SQLite's locks exclude."""
    if _NATIVE_LOCKS:
        whole = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, whole)
    else:  # pragma: no cover - another kind of lock is the nearest sign
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
