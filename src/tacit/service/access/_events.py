"""Audit events: who did what and when, by opaque ids, for auditors and administrators."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tacit.service._operations import Operation, needs
from tacit.service.access._paging import cursor_of, limit_of, part

if TYPE_CHECKING:
    from tacit.service._operations import ServiceCall

_NUMBER = re.compile(r"[0-9]{0,10}", re.ASCII)
_NEWEST = 2**31 - 1  # positions fit into a whole number of 32 bits


def _list(call: ServiceCall) -> dict[str, Any]:
    """List events, newest first; ``after`` continues with older ones."""
    limit, after = limit_of(call), cursor_of(call, _NUMBER, _NEWEST)
    rows = call.service.database.rows(
        "SELECT e.position, e.at, e.person, u.shown, e.what, e.about, e.request"
        " FROM events e LEFT JOIN users u ON u.id = e.person WHERE e.position < ?"
        " ORDER BY e.position DESC LIMIT ?",
        int(after or _NEWEST), limit + 1,
    )  # fmt: skip
    return part("events", [{**row, "shown": row["shown"] or ""} for row in rows], limit, "position")


OPERATIONS = (
    Operation(
        "GET", "/audit-events", needs("auditor", "admin", on="service", scope="audit"), _list,
        page="access/events.html", summary="List who did what",
    ),
)  # fmt: skip
