"""Releases as the service keeps and shows them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tacit.core import Release
    from tacit.service._database import Database

_MOST_WORDS = 10_000
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
    paid = certificate.get("ledger") or {}
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
            {"account": name, "entry": paid.get("entry")} for name in certificate.get("filter") or ()
        ],
        "certificate": certificate,
        "document": dict(document),
    }


def release_words(database: Database, releases: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the kind, the columns and the keys of releases by id, for lists.

    A release never changes and may be long, so what a process has read of one is kept.
    """
    missing = [one for one in releases if one not in _WORDS]
    if len(_WORDS) + len(missing) > _MOST_WORDS:
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
