"""Group commit: whoever finds the store free leads, and takes along everybody who came meanwhile."""

from __future__ import annotations

from collections import deque
from contextlib import contextmanager
from copy import copy
from threading import Lock, RLock
from typing import TYPE_CHECKING, Generic, TypeVar

from tacit.errors import TacitError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Combiner", "Job", "Turns"]

T = TypeVar("T")

_MOST = 512  # in one batch: bounds how long one commit keeps other processes waiting


class Job(Generic[T]):
    """One request, its answer, and a lock that its thread sleeps on."""

    __slots__ = ("error", "leads", "request", "result", "woken")

    def __init__(self, request: T) -> None:
        self.request = request
        self.result: object = None
        self.error: BaseException | None = None
        self.leads = False
        self.woken = Lock()
        self.woken.acquire()


class Combiner(Generic[T]):
    """Run requests of many threads in batches, one batch at a time, each in the thread of one of them.

    No thread of its own: a lone caller pays no hand-over, and nothing runs after the last caller is gone.
    While a batch waits for the disk the next one gathers. ``run`` settles each job of the batch by setting
    its ``result`` or its ``error``; if it raises instead, every job of the batch fails.
    """

    def __init__(self, run: Callable[[list[Job[T]]], None]) -> None:
        self._run = run
        self._mutex = Lock()
        self._waiting: deque[Job[T]] = deque()
        self._busy = False

    def submit(self, request: T) -> object:
        """Run one request and return its answer, or raise its error."""
        job = Job(request)
        try:
            with self._mutex:
                self._waiting.append(job)
                job.leads = not self._busy
                self._busy = True
            if not job.leads:
                job.woken.acquire()  # until the answer is there, or the lead is handed over
            if job.leads:
                self._lead(job)
        except BaseException:  # an interrupt: this thread will not lead, so somebody else must
            with self._mutex:
                if job in self._waiting:
                    self._waiting.remove(job)
                if job.leads:
                    self._hand_over(job)
            raise
        if job.error is not None:
            raise job.error
        return job.result

    def _lead(self, own: Job[T]) -> None:
        batch: list[Job[T]] = []
        try:
            with self._mutex:
                while self._waiting and len(batch) < _MOST:
                    batch.append(self._waiting.popleft())
            self._run(batch)
        except BaseException as error:
            for job in batch:
                if job is not own:
                    job.error = job.error or (copy(error) if isinstance(error, TacitError) else _broken_off())
            raise
        finally:
            with self._mutex:
                self._hand_over(own)
            for job in batch:
                if job is not own:
                    job.woken.release()

    def _hand_over(self, leader: Job[T]) -> None:
        leader.leads = False
        if self._waiting:
            self._waiting[0].leads = True
            self._waiting[0].woken.release()
        else:
            self._busy = False


class Turns:
    """Let threads that want the same thing take turns, so that the second finds what the first has made."""

    def __init__(self) -> None:
        self._mutex = Lock()
        self._locks: dict[object, tuple[RLock, int]] = {}

    @contextmanager
    def take(self, name: object) -> Iterator[None]:
        """Hold the turn for ``name``; the same thread may hold it twice."""
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


def _broken_off() -> TacitError:
    return TacitError(
        "ledger-unavailable",
        "the commit that carried this charge was broken off",
        why="whether it was recorded is not known",
        fix="ask again with the same key: what was recorded is not charged twice",
    )
