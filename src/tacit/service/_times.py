"""Times, moments and random names, read and written alike in the whole service."""

from __future__ import annotations

import base64
import os
from datetime import UTC, datetime, timedelta


def now_text() -> str:
    """Return this moment in UTC as text that sorts by time."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def later_text(**by: float) -> str:
    """Return a later moment, in the words of `timedelta`."""
    return (datetime.now(UTC) + timedelta(**by)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def moment_text(moment: float) -> str:
    """Return a moment, in seconds since the epoch, as text like that of `now_text`.

    Examples
    --------
    >>> moment_text(1.5)
    '1970-01-01T00:00:01.500000Z'
    """
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def new_id(kind: str) -> str:
    """Return a new opaque name, such as ``q_k3x0...``; it says nothing about what it names.

    Examples
    --------
    >>> len(new_id("q"))
    18
    """
    return f"{kind}_{base64.b32encode(os.urandom(10)).decode().lower()}"


def new_secret(prefix: str = "") -> str:
    """Return 256 random bits as text, for tokens, sessions and links."""
    return prefix + base64.urlsafe_b64encode(os.urandom(32)).decode().rstrip("=")


def read_moment(moment: object) -> datetime:
    """Read a moment: ISO text, or seconds since 1970; a text without a zone is UTC."""
    if isinstance(moment, int | float):
        return datetime.fromtimestamp(moment, UTC)
    time = datetime.fromisoformat(str(moment))
    return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)


def shown_moment(moment: object) -> str:
    """Write a moment for people, in UTC; a day stays a day.

    Examples
    --------
    >>> shown_moment("2026-03-01"), shown_moment(0)
    ('1 Mar 2026', '1 Jan 1970, 00:00 UTC')
    """
    when = read_moment(moment)
    only_a_day = isinstance(moment, str) and len(moment) == len("2026-01-31")
    return f"{when.day} " + when.strftime("%b %Y" if only_a_day else "%b %Y, %H:%M UTC")
