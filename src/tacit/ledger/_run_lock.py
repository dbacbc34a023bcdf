"""The lock file of a ledger's runs: one process at a time draws the next instalment of a run."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, ClassVar

from tacit.ledger import _refusals
from tacit.ledger._named_locks import NamedLocks

try:
    import fcntl
except ImportError:  # pragma: no cover - not a POSIX system
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

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
            held = self._take(receipt)
            try:
                yield
            finally:
                if held:
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
