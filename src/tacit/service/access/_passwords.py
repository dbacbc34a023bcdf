"""Passwords as argon2id hashes: 19 MiB, 2 passes, 1 lane; at most two are computed at a time.

A hash costs about 31 ms and 19 MiB, so a flood of sign-ins could exhaust a machine. Two threads compute all
hashes of a worker process, and only a few may wait for them. The event loop stays free. Some places in that
queue are for people whose browser is known, so that a flood of strangers does not keep them out.
"""

from __future__ import annotations

import asyncio
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Final, TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from tacit.errors import TacitError

if TYPE_CHECKING:
    from collections.abc import Callable

LEAST_CHARACTERS: Final = 12
_MOST_CHARACTERS = 1024
_AT_A_TIME = 2
_MOST_WAITING = 40
_KEPT_FREE = 20  # more places, for browsers that are known

T = TypeVar("T")
_HASHER = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)
_THREADS = ThreadPoolExecutor(_AT_A_TIME, "tacit-passwords")
_waiting = 0


async def hash_password(password: str) -> str:
    """Return the hash to keep, with its own salt and parameters; refuse a short password.

    There are no rules beyond the length: rules about digits and marks make people choose worse passwords.
    """
    plain = _written(password)
    if len(plain) < LEAST_CHARACTERS:
        raise TacitError(
            "bad-parameter",
            f"the password has fewer than {LEAST_CHARACTERS} characters",
            why="short passwords can be guessed",
            fix=f"choose at least {LEAST_CHARACTERS} characters, for instance four or five ordinary words",
        )
    return await _in_thread(lambda: _HASHER.hash(plain))


async def check_password(stored: str, password: str) -> bool:
    """Whether a password belongs to a hash.

    Guarantee: exactly one hash is computed, whether or not there is one to compare with, so that the time
    does not show whether a person exists, has a password or is disabled.
    """
    plain = _written(password)
    return await _in_thread(lambda: _matches(stored or _nobodys(), plain)) and bool(stored)


def check_queue(*, known: bool) -> None:
    """Refuse a try for which the queue has no place; one that is refused here is not counted as wrong."""
    if _waiting >= _MOST_WAITING + (_KEPT_FREE if known else 0):
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
    if len(plain) > _MOST_CHARACTERS:
        raise TacitError("bad-parameter", f"the password has more than {_MOST_CHARACTERS} characters")
    return plain


@cache
def _nobodys() -> str:
    """Return the hash that stands in for a missing one."""
    return _HASHER.hash("nobody has this password")


async def _in_thread(work: Callable[[], T]) -> T:
    global _waiting  # noqa: PLW0603 - one count for the process, touched by the event loop alone
    check_queue(known=True)
    _waiting += 1
    try:
        return await asyncio.get_running_loop().run_in_executor(_THREADS, work)
    finally:
        _waiting -= 1
