"""Releases that may be read now: their time has come, and the account has paid."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tacit.service._operations import Answer, Download
from tacit.service._refusals import not_found
from tacit.service._registrations import registration_of
from tacit.service.drawer._clock import now
from tacit.service.drawer._release_documents import shown_release

if TYPE_CHECKING:
    from tacit.service._database import ServiceRow
    from tacit.service._operations import ServiceCall


def may_see(call: ServiceCall, row: ServiceRow) -> bool:
    """Whether the caller asked, or oversees the dataset; a token for another dataset sees nothing."""
    roles = call.person.roles_on(row["dataset"])
    return bool({"curator", "auditor"} & roles) or (row["person"] == call.person.id and bool(roles))


def release_row(call: ServiceCall, release: str) -> ServiceRow:
    """Return a release that this caller may see now; everything else looks as if it did not exist."""
    row = call.service.database.row("SELECT * FROM releases WHERE id = ?", release)
    if row is None or float(row["shown_from"]) > now() or not may_see(call, row):
        raise not_found()
    return row


def release_document(call: ServiceCall, row: ServiceRow) -> dict[str, Any]:
    """Return a release as clients and pages read it."""
    drawn = bool(row["account"])  # a registered release was paid for elsewhere
    return {
        "release": row["id"],
        "dataset": row["dataset"],
        "query": row["query"] or None,
        "account": row["account"],
        "created": row["created"],
        "fresh": False,
        "registered": None if drawn else registration_of(call.service.database, row["id"]),
        **shown_release(json.loads(row["document"])),
    }


def stored_answer(call: ServiceCall, account: str, plan: str, series: str = "") -> Answer | Download | None:
    """Return the release of a plan that this account has paid for and whose time has come, or None.

    A series has a release for each day that ends a question; ``series`` is the digest of the question.
    """
    which = " AND query IN (SELECT id FROM queries WHERE asked = ?)" if series else ""
    row = call.service.database.row(
        "SELECT * FROM releases WHERE plan = ? AND account = ? AND shown_from <= ?"  # noqa: S608 - constants
        f"{which} ORDER BY position LIMIT 1",
        plan, account, now(), *([series] if series else []),
    )  # fmt: skip
    if row is None:
        return None
    return Answer(release_document(call, row), 200, f"/releases/{row['id']}", {"etag": f'"{row["id"]}"'})
