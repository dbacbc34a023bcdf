"""The file of a ledger as the system sees it: its name, its place, its locks, the room on its disk.

The system's own number of a file says which file a name stands for; a new file of that name lacks it. Named
locks are made when needed and dropped when nobody holds them. The lock file of runs lets one process at a
time draw the next instalment of a run.
"""

from __future__ import annotations

import errno
import os
import struct
import sys
import time
from contextlib import contextmanager, suppress
from threading import Lock, RLock
from typing import TYPE_CHECKING, ClassVar

from tacit.errors import TacitError
from tacit.ledger import _refusals

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def identity_of(file: str | int) -> tuple[int, int] | None:
    """Return the numbers of a file's device and of the file on it, or None if there is no such file.

    Examples
    --------
    >>> identity_of(".") == identity_of(".")
    True
    >>> identity_of("nothing has this name") is None
    True
    """
    try:
        status = os.stat(file)  # noqa: PTH116 - once for each transaction
    except OSError:
        return None
    return status.st_dev, status.st_ino


try:
    import fcntl
except ImportError:  # pragma: no cover - not a POSIX system
    fcntl = None  # type: ignore[assignment]

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
        request = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, request)
    else:  # pragma: no cover - another kind of lock is the nearest sign
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


class NamedLocks:
    """Let threads that want the same thing take turns, so that the second finds what the first has made."""

    def __init__(self) -> None:
        self._mutex = Lock()
        self._locks: dict[object, tuple[RLock, int]] = {}

    @contextmanager
    def hold(self, name: object) -> Iterator[None]:
        """Hold the lock of ``name``; a thread may hold the same one twice."""
        with self._mutex:
            lock, users = self._locks.get(name, (RLock(), 0))
            self._locks[name] = (lock, users + 1)
        try:
            with lock:
                yield
        finally:
            with self._mutex:
                lock, users = self._locks.pop(name)
                if users > 1:
                    self._locks[name] = (lock, users - 1)


_PAUSE = 0.01


class RunLock:
    """A file in which each run locks the byte of its number; the system unlocks it when a process dies.

    The lock saves instalments: without it, two processes that draw at the same time overtake each other, and
    the instalment that was overtaken is lost. What is never drawn twice does not depend on it.
    """

    threads: ClassVar[NamedLocks] = NamedLocks()  # the system's locks are a process's, not a thread's

    def __init__(self, path: Path, *, wait: float) -> None:
        self._path = path
        self._wait = wait
        self._file = -1

    @contextmanager
    def hold(self, receipt: int) -> Iterator[None]:
        """Hold the lock of a run, or refuse after the waiting time."""
        with RunLock.threads.hold((str(self._path), receipt)):
            handle = self._take(receipt)
            try:
                yield
            finally:
                if handle:
                    with suppress(OSError):
                        fcntl.lockf(self._file, fcntl.LOCK_UN, 1, receipt)

    def _take(self, receipt: int) -> bool:
        """Take the lock; False where the file cannot be opened or locked."""
        if fcntl is None:  # pragma: no cover
            return False
        try:
            if self._file < 0:
                self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError:
            return False
        deadline = time.monotonic() + self._wait
        while True:
            try:
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, receipt)
            except (BlockingIOError, PermissionError):  # systems differ in how they say that it is taken
                if time.monotonic() > deadline:
                    raise _refusals.run_locked(receipt, self._wait) from None
            except OSError:
                return False
            else:
                return True
            time.sleep(_PAUSE)

    def close(self) -> None:
        """Close the file, which unlocks every run."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _forget_threads() -> None:
    """Start without locks in a forked child: the threads that held them are not there."""
    RunLock.threads = NamedLocks()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)
