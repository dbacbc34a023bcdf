"""Releases as the service keeps and shows them, from the time on at which they may be read.

A release may be read by whoever asked or oversees the dataset, once its time has come and the account has
paid.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tacit.service._operations import Answer, Download
from tacit.service._refusals import not_found
from tacit.service._service import registration_of
from tacit.service.runner._clock import now

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tacit.core import Release
    from tacit.service._database import Database, ServiceRow
    from tacit.service._operations import ServiceCall


_MAX_WORDS = 10_000
_WORDS: dict[str, dict[str, Any]] = {}
_COVERS = "the noise; not what limits and bounds drop or clip"
_ALSO = {  # kinds whose intervals cover more, or that have several kinds of answers
    "batch": "what each answer says",
    "regression": "the noise and chance in who was included; not what limits and bounds drop or clip",
    "survival-curves": "the noise and chance in who was included; not what limits and bounds drop or clip",
}


def document_of(release: Release[Any]) -> dict[str, Any]:
    """Return what the service keeps of a release: the release itself, which holds its certificate."""
    return dict(release.to_json())


def has_columns(document: Mapping[str, Any]) -> bool:
    """Whether the content of a release is a table of answers, of whichever kind: keys, columns, intervals."""
    match document["content"]:
        case {"keys": dict(), "columns": dict(columns)}:
            return all(
                isinstance(one, dict) and {"value", "low", "high"} <= set(one) for one in columns.values()
            )
    return False


def shown_release(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a release as clients and pages read it: its content beside the whole document."""
    table = has_columns(document)
    content = document["content"] if table else {}
    certificate = document["certificate"]
    ledger_facts = certificate.get("ledger") or {}
    return {
        "kind": document["kind"],
        "plan": certificate["plan"],
        "keys": content.get("keys", {}),
        "columns": content.get("columns", {}),
        "confidence": content.get("confidence"),
        "covers": _ALSO.get(document["kind"], _COVERS),
        "marks": list(document["marks"]),
        "notes": content.get("notes", {}),
        "left_out": content.get("left_out", []),
        "charged": [
            {"account": name, "entry": ledger_facts.get("entry")} for name in certificate.get("filter") or ()
        ],
        "certificate": certificate,
        "document": dict(document),
    }


def release_words(database: Database, releases: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the kind, the columns and the keys of releases by id, for lists.

    A release never changes and may be long, so what a process has read of one is kept.
    """
    missing = [one for one in releases if one not in _WORDS]
    if len(_WORDS) + len(missing) > _MAX_WORDS:
        _WORDS.clear()
        missing = list(releases)
    for release in missing:
        row = database.row("SELECT document FROM releases WHERE id = ?", release)
        if row is not None:
            document = json.loads(row["document"])
            content = document["content"] if has_columns(document) else {}
            parts = {part: list(content.get(part, ())) for part in ("columns", "keys")}
            _WORDS[release] = {"kind": document["kind"], **parts}
    return {release: _WORDS[release] for release in releases if release in _WORDS}


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
    is_drawn = bool(row["account"])  # a registered release was paid for elsewhere
    return {
        "release": row["id"],
        "dataset": row["dataset"],
        "query": row["query"] or None,
        "account": row["account"],
        "created": row["created"],
        "fresh": False,
        "registered": None if is_drawn else registration_of(call.service.database, row["id"]),
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
