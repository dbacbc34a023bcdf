"""Passwords as argon2id hashes, and delays against guessing them.

A hash takes 19 MiB, 2 passes and 1 lane; at most two are computed at a time. It costs about 31 ms and 19 MiB,
so a flood of sign-ins could exhaust a machine. Two threads compute all hashes of a worker process, and only a
few may wait for them. The event loop stays free. Some places in that queue are for people whose browser is
known, so that a flood of strangers does not keep them out.

Delays are kept in the database so that all workers share them. Failures are counted for what was guessed (the
name) and for where the guess came from (the address). The first few are free. Each further one doubles the
wait, up to five minutes. A try during a wait is refused without being looked at, and does not make the wait
longer. Counts are forgotten after a day.

Nobody can lock a person out for ever. A browser in which the person has signed in before has a cookie of its
own, a random secret. Its tries have a count of their own, which strangers cannot raise: a flood of wrong
tries for a name makes strangers wait, but not that browser. Without such a browser, a one-time link from an
administrator or single sign-on leads in, since neither waits.

A try is counted before its password is looked at, so that tries at the same moment cannot slip through. A
success takes it back. A success does not clear the count of the address: else somebody with an account of
their own could guess without end.
"""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import math
import time
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Final, TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from tacit.errors import TacitError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tacit.service._database import Change
    from tacit.service._operations import ServiceCall


MIN_CHARACTERS: Final = 12
_MAX_CHARACTERS = 1024
_AT_A_TIME = 2
_MAX_WAITING = 40
_KEPT_FREE = 20  # more places, for browsers that are known

T = TypeVar("T")
_HASHER = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)
_THREADS = ThreadPoolExecutor(_AT_A_TIME, "tacit-passwords")
_waiting = 0
_LONGEST = 300.0
_FORGOTTEN = 86_400.0
#: How many failures are free for a name, a browser or a person; and for an address.
_FREE = 5
_FREE_ADDRESS = 30
#: How many counts are kept; the oldest go first.
MAX_COUNTS: Final = 100_000


async def hash_password(password: str) -> str:
    """Return the hash to keep, with its own salt and parameters; refuse a short password.

    There are no rules beyond the length: rules about digits and marks make people choose worse passwords.
    """
    plain = _written(password)
    if len(plain) < MIN_CHARACTERS:
        raise TacitError(
            "bad-parameter",
            f"the password has fewer than {MIN_CHARACTERS} characters",
            why="short passwords can be guessed",
            fix=f"choose at least {MIN_CHARACTERS} characters, for instance four or five ordinary words",
        )
    return await _in_thread(lambda: _HASHER.hash(plain))


async def check_password(stored: str, password: str) -> bool:
    """Whether a password belongs to a hash.

    Guarantee: exactly one hash is computed, whether or not there is one to compare with, so that the time
    does not show whether a person exists, has a password or is disabled.
    """
    plain = _written(password)
    return await _in_thread(lambda: _matches(stored or _nobodys(), plain)) and bool(stored)


def check_queue(*, browser_known: bool) -> None:
    """Refuse a try for which the queue has no place; one that is refused here is not counted as wrong."""
    if _waiting >= _MAX_WAITING + (_KEPT_FREE if browser_known else 0):
        raise TacitError(
            "too-many-requests", "too many people are signing in right now", fix="try again shortly"
        )


def is_outdated(stored: str) -> bool:
    """Whether a hash was made with other parameters than those of today."""
    return _HASHER.check_needs_rehash(stored)


def _matches(stored: str, plain: str) -> bool:
    try:
        return _HASHER.verify(stored, plain)
    except (VerificationError, InvalidHashError):
        return False


def _written(password: str) -> str:
    """Return a password the same for every keyboard and system; a very long one is cut off as a refusal."""
    plain = unicodedata.normalize("NFKC", password)
    if len(plain) > _MAX_CHARACTERS:
        raise TacitError("bad-parameter", f"the password has more than {_MAX_CHARACTERS} characters")
    return plain


@cache
def _nobodys() -> str:
    """Return the hash that stands in for a missing one."""
    return _HASHER.hash("nobody has this password")


async def _in_thread(work: Callable[[], T]) -> T:
    global _waiting  # noqa: PLW0603 - one count for the process, touched by the event loop alone
    check_queue(browser_known=True)
    _waiting += 1
    try:
        return await asyncio.get_running_loop().run_in_executor(_THREADS, work)
    finally:
        _waiting -= 1


_tries = 0


def guessed(kind: str, subject: str) -> str:
    """Return the name under which tries are counted: its kind, and a digest instead of a person's name."""
    return f"{kind}:{hashlib.sha256(subject.encode('utf-8', 'surrogatepass')).hexdigest()}"


def address_of(call: ServiceCall) -> str:
    """Return the address that a request came from; one IPv6 network of 64 bits counts as one address."""
    host = call.request.client.host if call.request.client else ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if address.version == 6:
        return str(ipaddress.ip_network((int(address) >> 64 << 64, 64)))
    return str(address)


def count_try(change: Change, subjects: list[str]) -> float:
    """Count a try for all subjects; if one of them must wait, count nothing and return the seconds."""
    _forget_old(change)
    now = time.time()
    rows = {
        subject: change.row("SELECT failures, free_at, seen FROM attempts WHERE subject = ?", subject)
        for subject in subjects
    }
    waits = [row["free_at"] - now for row in rows.values() if row is not None]
    wait = max((wait for wait in waits if wait <= _LONGEST), default=0.0)  # more: the clock was set back
    if wait > 0:
        return wait
    for subject, row in rows.items():
        failures = 1 if row is None or row["seen"] < now - _FORGOTTEN else int(row["failures"]) + 1
        change.run(
            "INSERT INTO attempts (subject, failures, free_at, seen) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (subject) DO UPDATE SET failures = excluded.failures, free_at = excluded.free_at,"
            " seen = excluded.seen",
            subject, failures, now + _delay(subject, failures), now,
        )  # fmt: skip
    return 0.0


def take_back(change: Change, subjects: list[str]) -> None:
    """Take a try back that was right; what it guessed starts anew, its address does not."""
    for subject in subjects:
        if subject.startswith("address:"):
            change.run(
                "UPDATE attempts SET failures = failures - 1, free_at = 0 WHERE subject = ? AND failures > 0",
                subject,
            )
        else:
            forget_tries(change, subject)


def forget_tries(change: Change, subject: str) -> None:
    """Forget all tries for a subject."""
    change.run("DELETE FROM attempts WHERE subject = ?", subject)


def wait_first(call: ServiceCall, seconds: float) -> TacitError:
    """Return the refusal of a try that came during a wait; it says how long."""
    whole_seconds = max(1, math.ceil(seconds))
    call.headers["retry-after"] = str(whole_seconds)
    return TacitError(
        "too-many-requests",
        "there were too many wrong attempts to sign in, so you have to wait",
        why="the wait protects passwords against guessing",
        fix=f"try again in {whole_seconds} {'second' if whole_seconds == 1 else 'seconds'},"
        " or ask an administrator for a new link",
    )


def _delay(subject: str, failures: int) -> float:
    free = _FREE_ADDRESS if subject.startswith("address:") else _FREE
    return 0.0 if failures < free else min(_LONGEST, 2.0 ** min(failures - free, 20))


def _forget_old(change: Change) -> None:
    """Delete counts of yesterday, and now and then the oldest beyond the most that are kept."""
    global _tries  # noqa: PLW0603 - only decides when to look
    _tries += 1
    change.run("DELETE FROM attempts WHERE seen < ?", time.time() - _FORGOTTEN)
    if _tries % 256 == 0:
        change.run(
            "DELETE FROM attempts WHERE subject IN"
            " (SELECT subject FROM attempts ORDER BY seen DESC LIMIT 1000000 OFFSET ?)",
            MAX_COUNTS,
        )
