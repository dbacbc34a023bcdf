"""Streams in a service: which day a question asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def day_asked(ask: Mapping[str, Any]) -> str:
    """Return the day up to which a question asks for a series; empty text for every other question.

    Examples
    --------
    >>> day_asked({"method": "series", "arguments": {"measure": "count", "through": "2026-01-31"}})
    '2026-01-31'
    >>> day_asked({"sql": "SELECT COUNT(*) FROM visits"})
    ''
    """
    given = ask.get("arguments") or {}
    return str(given.get("through", "")) if ask.get("method") == "series" else ""
