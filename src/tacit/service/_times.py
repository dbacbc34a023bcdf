"""Times and random names, written alike in the whole service."""

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
