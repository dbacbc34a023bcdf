"""Lists in parts: each part names the next one by a cursor, and no part says how many there are in all."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tacit.errors import TacitError
from tacit.parameters import Integer
from tacit.service._bodies import read_typed

if TYPE_CHECKING:
    from tacit.service._database import ServiceRow
    from tacit.service._operations import ServiceCall

_USUAL = 50
_MOST = 200
_CURSOR = re.compile(r"[A-Za-z0-9_]{0,40}", re.ASCII)


def limit_of(call: ServiceCall) -> int:
    """Return how many entries were asked for."""
    limit: int = read_typed(Integer(1, _MOST), "limit", call.query.get("limit") or str(_USUAL))
    return limit


def cursor_of(call: ServiceCall, form: re.Pattern[str] = _CURSOR, last: int | None = None) -> str:
    """Return the cursor after which entries were asked for, or empty text.

    Parameters
    ----------
    call
        The call.
    form
        How cursors of this list are written.
    last
        The largest cursor, where cursors are numbers.
    """
    given = call.query.get("after", "")
    if not form.fullmatch(given) or (last is not None and int(given or 0) > last):
        raise TacitError("bad-parameter", "after must be the cursor that an earlier part named")
    return given


def part(name: str, rows: list[ServiceRow], limit: int, cursor: str) -> dict[str, Any]:
    """Return the first ``limit`` rows as a document; there must be one row more if there is a next part."""
    shown = rows[:limit]
    return {name: shown, "next": str(shown[-1][cursor]) if len(rows) > limit else ""}
