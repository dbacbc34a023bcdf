"""Limits of rates: how often one person, or one address without a person, may ask."""

from __future__ import annotations

import hashlib
import ipaddress
import math
import time
from typing import TYPE_CHECKING

from tacit.errors import TacitError
from tacit.service.operation._shared import shared_of

if TYPE_CHECKING:
    from collections.abc import MutableSequence

    from starlette.requests import Request

_BURST = 5  # seconds' worth of requests that may come at once
_EFFORT = 0.005  # seconds of a processor that one request stands for


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
        found = ipaddress.ip_address(host)
    except ValueError:
        return "unknown"
    return host if found.version == 4 else str(ipaddress.ip_network(f"{host}/64", strict=False))
