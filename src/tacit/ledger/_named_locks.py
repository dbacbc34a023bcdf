"""The ledger's named locks: one for each name, made when needed and dropped when nobody holds it."""

from __future__ import annotations

from contextlib import contextmanager
from threading import Lock, RLock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


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
