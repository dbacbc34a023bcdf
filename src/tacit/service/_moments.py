"""Moments, as the service reads and writes them."""

from __future__ import annotations

from datetime import UTC, datetime


def read_moment(moment: object) -> datetime:
    """Read a moment: ISO text, or seconds since 1970; a text without a zone is UTC."""
    if isinstance(moment, int | float):
        return datetime.fromtimestamp(moment, UTC)
    read = datetime.fromisoformat(str(moment))
    return read.astimezone(UTC) if read.tzinfo else read.replace(tzinfo=UTC)


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
