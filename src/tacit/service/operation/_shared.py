"""What the processes of a service share: counts of requests, limits of rates, and whether it is stopping.

Requests are counted by route and status, and refusals by code; nothing else is counted. Rates are limited by
how often one person, or one address without a person, may ask.
"""

from __future__ import annotations

import hashlib
import ipaddress
import math
import os
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tacit.errors import CODES, TacitError

if TYPE_CHECKING:
    from collections.abc import Iterator, MutableSequence, Sequence

    from starlette.requests import Request


COUNTS = 4096  # counters of one worker
CELLS = 1 << 16  # callers whose rates are told apart
_CLASSES = 6  # 0xx (closed before an answer) to 5xx
_OTHER = ""
_BURST = 5  # seconds' worth of requests that may come at once
_EFFORT = 0.005  # seconds of a processor that one request stands for


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


class CounterNames:
    """The fixed list of counters; every process makes the same one from the same routes."""

    def __init__(self, routes: Sequence[str]) -> None:
        self._routes = [_OTHER, *sorted(set(routes) - {_OTHER})]
        self._codes = sorted(CODES)
        self._of_route = {name: number * _CLASSES for number, name in enumerate(self._routes)}
        start = len(self._routes) * _CLASSES
        self._of_code = {name: start + number for number, name in enumerate(self._codes)}

    def __len__(self) -> int:
        return len(self._routes) * _CLASSES + len(self._codes)

    def of_request(self, route: str, status: int) -> int:
        """Return the place of a request's counter; routes that are not known share one."""
        return self._of_route.get(route, 0) + min(status // 100, _CLASSES - 1)

    def of_refusal(self, code: str) -> int | None:
        """Return the place of a refusal's counter."""
        return self._of_code.get(code)

    def requests(self, counts: Sequence[Sequence[int]]) -> Iterator[tuple[str, str, int]]:
        """Return route, class of status and count over all workers, where there is a count."""
        for name, index in self._of_route.items():
            for number in range(_CLASSES):
                total = sum(of_worker[index + number] for of_worker in counts)
                if total:
                    yield name or "other", f"{number}xx", total

    def refusals(self, counts: Sequence[Sequence[int]]) -> Iterator[tuple[str, int]]:
        """Return code and count over all workers, where there is a count."""
        for name, index in self._of_code.items():
            total = sum(of_worker[index] for of_worker in counts)
            if total:
                yield name, total


def check_rate(request: Request, person: str, rate: int) -> None:
    """Refuse a caller who sends too much: a known person by id, everybody else by address.

    Guarantee: over all workers, and up to requests that arrive in the same instant, a caller gets through
    with at most ``5 * rate`` requests at once and ``rate`` a second in the long run. The refusal depends on
    the caller's own requests alone, except that two callers share a cell with chance 1 in 65536.
    """
    shared = shared_of(request)
    if not shared.cells or not rate:
        return
    wait = seconds_to_wait(shared.cells, shared.secret, _key(request, person), rate, time.monotonic())
    if wait > 0:
        request.scope["tacit"].retry_after = math.ceil(wait)
        raise TacitError(
            "too-many-requests",
            "too many requests came in a short time",
            why=f"one caller may send {rate} requests a second, and a few more at once",
            fix="wait for the seconds that the header Retry-After names, then send the request again",
        )


def note_effort(request: Request, person: str, rate: int, seconds: float) -> None:
    """Count a request that took much of a processor as several, so that dear questions cannot fill a worker.

    Web workers open no data: how long they plan is a function of the question and of public facts.
    """
    shared = shared_of(request)
    if shared.cells and rate and seconds > _EFFORT:
        cell = _cell(shared.cells, shared.secret, _key(request, person))
        more = (seconds / _EFFORT - 1) / rate
        shared.cells[cell] = max(shared.cells[cell], time.monotonic()) + more


def seconds_to_wait(cells: MutableSequence[float], secret: bytes, key: str, rate: int, now: float) -> float:
    """Take one request from a caller's allowance; return 0, or the seconds until there is one again.

    A cell holds the time at which the caller's requests would all be served at the even rate (generic cell
    rate algorithm, ITU-T I.371).
    """
    cell = _cell(cells, secret, key)
    due = max(cells[cell], now)
    if due - now > _BURST - 1 / rate:
        return due - now - _BURST + 1 / rate
    cells[cell] = due + 1 / rate
    return 0.0


def _key(request: Request, person: str) -> str:
    host = request.client.host if request.client else ""
    return f"person {person}" if person else f"address {network_of(host)}"


def _cell(cells: MutableSequence[float], secret: bytes, key: str) -> int:
    digest = hashlib.blake2b(key.encode("utf-8", "replace"), digest_size=8, key=secret).digest()
    return int.from_bytes(digest, "big") % len(cells)


def network_of(host: str) -> str:
    """Return a caller's address; of IPv6 only the network, because one household has many addresses."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "unknown"
    return host if address.version == 4 else str(ipaddress.ip_network(f"{host}/64", strict=False))
