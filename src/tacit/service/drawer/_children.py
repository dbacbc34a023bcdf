"""The drawer's side of the processes of its datasets: start, tell, hear, kill."""

from __future__ import annotations

import contextlib
import multiprocessing
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from tacit.service.drawer._dataset_process import serve_dataset

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection

    from tacit.service._settings import ServiceSettings
    from tacit.service.drawer._dataset_process import Opening


class _Worker(Protocol):
    def kill(self) -> None: ...


@dataclass(slots=True, eq=False)
class DatasetChild:
    """One process that serves a dataset, or describes sources.

    Parameters
    ----------
    opening
        What it opens.
    connection, worker
        How it is told and heard, and what can be killed.
    started
        When, by the clock of the service.
    state
        ``starting``, ``opened`` (its facts are known), ``ready`` (its snapshot is made), ``refused``,
        ``unprepared``, ``dead``.
    job
        The job that waits for its facts.
    ready_at
        When it takes questions, or when it is said that it never will; a rung of a ladder.
    held_until
        When the last of the draws that it computed at its end is answered. Until then nobody is shown that it
        has ended.
    """

    opening: Opening
    connection: Connection
    worker: _Worker
    started: float
    state: str = "starting"
    job: str = ""
    ready_at: float = 0.0
    held_until: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def alive(self) -> bool:
        """Whether it can be told something."""
        return self.state in {"starting", "opened", "ready"}

    def tell(self, message: object) -> None:
        """Send a message; one to a process that has ended is lost."""
        with contextlib.suppress(OSError, ValueError), self._lock:
            self.connection.send(message)

    def heard(self) -> Iterator[tuple[str, Any]]:
        """Return what the process has said; its end is the message ``dead``."""
        try:
            while self.connection.poll():
                yield self.connection.recv()
        except (EOFError, OSError):
            before = self.state
            self.kill()
            if before != "ready":  # it would end again
                self.state = before if before in {"refused", "unprepared"} else "unprepared"
            yield "dead", before

    def set_back(self, seconds: float) -> None:
        """Follow a clock that was set back: the process takes questions as long from now on as before."""
        self.started -= seconds
        self.ready_at -= seconds

    def kill(self) -> None:
        """End the process at once, whatever it does."""
        self.state = "dead"
        self.worker.kill()
        with contextlib.suppress(OSError):
            self.connection.close()

    def close(self) -> None:
        """Let the process end by itself, once its draws have ended."""
        self.tell(None)


class _Process:
    def __init__(self, *given: object) -> None:
        context = multiprocessing.get_context("spawn")
        made = {"target": serve_dataset, "args": given, "kwargs": {"limited": True}, "daemon": True}
        self.process = context.Process(**made)  # type: ignore[arg-type]
        self.process.start()

    def kill(self) -> None:
        """End the process; nobody waits until its memory is given back, which depends on its size."""
        self.process.kill()
        threading.Thread(target=self.process.join, args=(60,), daemon=True).start()


class _Thread:
    """In place of a process, for tests; it cannot be killed, but nobody hears it any more."""

    def __init__(self, *given: object) -> None:
        made = {"target": serve_dataset, "args": given, "kwargs": {"limited": False}, "daemon": True}
        self.thread = threading.Thread(**made)  # type: ignore[arg-type]
        self.thread.start()

    def kill(self) -> None:
        """Do nothing: the connection is closed."""


def start_process(settings: ServiceSettings, opening: Opening, started: float) -> DatasetChild:
    """Start a process for a dataset, with limits of its own."""
    mine, its = multiprocessing.get_context("spawn").Pipe()
    worker = _Process(its, settings, opening)
    its.close()  # so that its end is heard
    return DatasetChild(opening, mine, worker, started)


def start_thread(settings: ServiceSettings, opening: Opening, started: float) -> DatasetChild:
    """Serve a dataset in a thread of this process: for tests that need no kill."""
    mine, its = multiprocessing.Pipe()
    return DatasetChild(opening, mine, _Thread(its, settings, opening), started)
