"""What the processes of a service share: counts of requests, limits of rates, and whether it is stopping."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import MutableSequence

    from starlette.requests import Request

COUNTS = 4096  # counters of one worker
CELLS = 1 << 16  # callers whose rates are told apart


class _Never:
    """The event of a process that nobody stops from outside."""

    def is_set(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class SharedState:
    """Memory that all processes of a service see; nothing in it depends on data.

    Parameters
    ----------
    counts
        For each worker its counters, which only this worker writes. They outlive it.
    cells
        When each caller may send again; empty where there are no limits. Two processes may write a cell at
        the same time: one request more gets through then, and nothing else happens.
    secret
        Spreads callers over the cells, so that nobody can choose a cell.
    stopping
        Set when the service does not admit draws any more.
    worker
        The number of this worker.
    """

    counts: tuple[MutableSequence[int], ...] = field(default_factory=lambda: ([0] * COUNTS,))
    cells: MutableSequence[float] | tuple[()] = ()
    secret: bytes = b""
    stopping: Any = field(default_factory=_Never)
    worker: int = 0

    @classmethod
    def between(cls, context: Any, workers: int, *, limited: bool) -> SharedState:
        """Make what some workers share; ``context`` is the way in which processes are started."""
        counts = tuple(context.RawArray("Q", COUNTS) for _ in range(workers))
        cells = context.RawArray("d", CELLS) if limited else ()
        return cls(counts, cells, os.urandom(16), context.Event())


def shared_of(request: Request) -> SharedState:
    """Return what the process of a request shares with others."""
    state: SharedState = request.app.state.shared
    return state
