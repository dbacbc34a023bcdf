"""The ledger's group commit: the thread that finds the store free commits for every waiting thread."""

from __future__ import annotations

from collections import deque
from copy import copy
from threading import Lock
from typing import TYPE_CHECKING, Generic, TypeVar

from tacit.errors import TacitError
from tacit.ledger._refusals import unavailable

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_MOST = 512  # requests in one batch: bounds how long one commit keeps other processes waiting


class Job(Generic[T]):
    """One request, its answer, and a lock on which its thread sleeps."""

    __slots__ = ("error", "leads", "request", "result", "woken")

    def __init__(self, request: T) -> None:
        self.request = request
        self.result: object = None
        self.error: BaseException | None = None
        self.leads = False
        self.woken = Lock()
        self.woken.acquire()


class GroupCommit(Generic[T]):
    """Run the requests of many threads in batches, one batch at a time, each in the thread of one of them.

    There is no background thread: a lone caller pays no hand-over, and nothing runs after the last caller has
    gone. While one batch waits for the disk, the next one gathers. ``run`` sets the ``result`` or the
    ``error`` of each job in the batch; if it raises instead, every job of the batch fails.
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
                job.woken.acquire()  # until the answer is there, or until this thread must lead
            if job.leads:
                self._lead(job)
        except BaseException:  # an interrupt: this thread will not lead, so another one must
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
                    job.error = job.error or (
                        copy(error) if isinstance(error, TacitError) else _interrupted()
                    )
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


def _interrupted() -> TacitError:
    return unavailable("the commit that carried this charge was interrupted")
