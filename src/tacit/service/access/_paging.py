"""Lists in parts: each part names the next one by a cursor, and no part says how many there are in all."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tacit.errors import TacitError

if TYPE_CHECKING:
    from tacit.service._database import ServiceRow
    from tacit.service._operations import ServiceCall

_USUAL = 50
_MOST = 200
_CURSOR = re.compile(r"[A-Za-z0-9_]{0,40}", re.ASCII)


def limit_of(call: ServiceCall) -> int:
    """Return how many entries were asked for."""
    given = call.query.get("limit", "")
    if not given:
        return _USUAL
    if not (given.isascii() and given.isdigit() and len(given) < 4 and 1 <= int(given) <= _MOST):
        raise TacitError("bad-parameter", f"limit must be a whole number from 1 to {_MOST}")
    return int(given)


def cursor_of(call: ServiceCall) -> str:
    """Return the cursor after which entries were asked for, or empty text."""
    given = call.query.get("after", "")
    if not _CURSOR.fullmatch(given):
        raise TacitError("bad-parameter", "after must be the cursor that an earlier part named")
    return given


def part(name: str, rows: list[ServiceRow], limit: int, cursor: str) -> dict[str, Any]:
    """Return the first ``limit`` rows as a document; there must be one row more if there is a next part."""
    shown = rows[:limit]
    return {name: shown, "next": str(shown[-1][cursor]) if len(rows) > limit else ""}
