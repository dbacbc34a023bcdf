"""Publications: a curator makes one release readable without signing in, with its promise and certificate."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tacit.errors import TacitError
from tacit.service._bodies import Body, Name
from tacit.service._operations import Answer, Download
from tacit.service._refusals import not_found
from tacit.service._registrations import registration_of
from tacit.service._release_contents import kind_words, lines_of, text_of, value_tables
from tacit.service._times import new_id, now_text
from tacit.service.curation._fields import Reason, ReasonBody, Sentence  # noqa: TC001 - pydantic reads it
from tacit.service.curation._meaning import promise_of
from tacit.service.curation._people import roles_now
from tacit.service.curation._refusals import needs_role
from tacit.service.drawer import csv_bytes, has_columns, json_bytes, now, release_words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.service._database import ServiceRow
    from tacit.service._operations import ServiceCall

_PAGE = 50


class PublicationMade(Body):
    """A release that becomes public, under a title."""

    release: Name
    title: Reason
    about: Sentence = ""


def publish(call: ServiceCall) -> Answer:
    """Publish a release of a dataset that the caller curates; before its time to leave it does not exist."""
    given: PublicationMade = call.body
    row = call.service.database.row(
        "SELECT id, dataset, shown_from FROM releases WHERE id = ?", given.release
    )
    if row is None or not call.person.may("curator", row["dataset"]) or float(row["shown_from"]) > now():
        raise not_found()
    publication = new_id("p")
    with call.service.database.change() as change:
        needs_role(roles_now(change, call.person.id, row["dataset"]), "curator")
        if change.row("SELECT id FROM publications WHERE release = ? AND withdrawn = ''", row["id"]):
            raise TacitError("already-decided", "this release is published already", fix="withdraw it first")
        change.run(
            "INSERT INTO publications (id, release, title, about, published_by, created)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            publication, row["id"], given.title, given.about.strip(), call.person.id, now_text(),
        )  # fmt: skip
        call.service.record(
            change, call.person.id, "release-published", f"{publication} {row['id']}", call.id
        )
    return Answer({"publication": publication, "release": row["id"]}, 201, f"/p/{publication}")


def releases_to_publish(call: ServiceCall) -> dict[str, Any]:
    """List the releases of a dataset, the newest first, for whoever may publish them."""
    return list_releases(call, call.dataset)


def list_releases(call: ServiceCall, dataset: str) -> dict[str, Any]:
    """Return the releases of a dataset that have left, in the words of their columns."""
    call.service.dataset(dataset)
    rows = call.service.database.rows(
        "SELECT id, created FROM releases WHERE dataset = ? AND shown_from <= ?"
        " ORDER BY position DESC LIMIT ?",
        dataset, now(), _PAGE,
    )  # fmt: skip
    words = release_words(call.service.database, [row["id"] for row in rows])
    public = {
        row["release"]
        for row in call.service.database.rows("SELECT release FROM publications WHERE withdrawn = ''")
    }
    return {
        "dataset": dataset,
        "releases": [
            {
                "release": row["id"],
                "created": row["created"],
                "words": _words(words[row["id"]]),
                "published": row["id"] in public,
            }
            for row in rows
        ],
    }


def release_dataset(call: ServiceCall, release: str) -> str:
    """Return the dataset of a release that the caller curates, or refuse as not found."""
    row = call.service.database.row("SELECT dataset FROM releases WHERE id = ?", release)
    if row is None or not call.person.may("curator", row["dataset"]):
        raise not_found()
    return str(row["dataset"])


def _words(release: dict[str, Any]) -> str:
    """Name a release by its columns and keys."""
    if not release["columns"]:
        return kind_words(release["kind"])
    columns, keys = release["columns"], release["keys"]
    return ", ".join(columns) + (f" by {', '.join(keys)}" if keys else "")


def withdraw(call: ServiceCall) -> Answer:
    """Withdraw a publication; its page says so from then on. What was read cannot be taken back."""
    body: ReasonBody = call.body
    row = _row(call)
    if not call.person.may("curator", row["dataset"]):
        raise not_found()
    with call.service.database.change() as change:
        needs_role(roles_now(change, call.person.id, row["dataset"]), "curator")
        changed = change.run(
            "UPDATE publications SET withdrawn = ? WHERE id = ? AND withdrawn = ''",
            f"{now_text()} {body.reason}", row["id"],
        )  # fmt: skip
        if not changed:
            raise TacitError("already-decided", "this publication was withdrawn before")
        call.service.record(change, call.person.id, "publication-withdrawn", row["id"], call.id)
    return Answer({"publication": row["id"], "withdrawn": True}, 200, f"/p/{row['id']}")


def list_publications(call: ServiceCall) -> dict[str, Any]:
    """List what is published, the newest first; for everybody."""
    before = call.query.get("after", "")
    rows = call.service.database.rows(
        "SELECT id, title, about, created FROM publications"
        " WHERE withdrawn = '' AND (? = '' OR created || id < ?) ORDER BY created || id DESC LIMIT ?",
        before, before, _PAGE + 1,
    )  # fmt: skip
    page = rows[:_PAGE]
    return {
        "publications": [
            {"publication": r["id"], "title": r["title"], "about": r["about"], "published": r["created"]}
            for r in page
        ],
        "next": page[-1]["created"] + page[-1]["id"] if len(rows) > _PAGE else None,
    }


def show_publication(call: ServiceCall) -> dict[str, Any]:
    """Show what is published: values, intervals, the promise in a sentence, the certificate; nothing else."""
    row = _row(call)
    curates = call.caller is not None and call.caller.may("curator", row["dataset"])
    if row["withdrawn"]:
        at, _, reason = row["withdrawn"].partition(" ")
        return {"publication": row["id"], "withdrawn": at, "reason": reason, "may_withdraw": False}
    release = json.loads(row["document"])
    certificate, content = release["certificate"], release["content"]
    is_table = has_columns(release)
    return {
        "publication": row["id"],
        "withdrawn": "",
        "reason": "",
        "title": row["title"],
        "about": row["about"],
        "published": row["created"],
        "kind": release["kind"],
        "kind_words": kind_words(release["kind"]),
        "text": text_of(release),
        "has_lines": is_table or lines_of(release) is not None,
        "content": content if is_table else None,
        "confidence": content.get("confidence") if is_table else None,
        "left_out": list(content.get("left_out", ())) if is_table else [],
        "registered": _registered(call, row["release"]),
        "promise": promise_of(certificate),
        "certificate": certificate,
        "may_withdraw": curates,
        **({"document": release, "tables": value_tables(release)} if call.is_page else {}),
    }


def _registered(call: ServiceCall, release: str) -> dict[str, Any] | None:
    """Return what everybody may know of a registration: not who made it, nor the note."""
    found = registration_of(call.service.database, release)
    return found and {name: found[name] for name in ("at", "charge", "verified", "sentence")}


def publication_certificate(call: ServiceCall) -> Download:
    """Return the certificate of a publication as a file."""
    row = _row(call)
    if row["withdrawn"]:
        raise not_found()
    certificate = json.loads(row["document"])["certificate"]
    text = json.dumps(certificate, ensure_ascii=True, allow_nan=False, indent=2)
    return Download(text.encode("ascii"), "application/json", "certificate.json")


def publication_values(call: ServiceCall) -> Download:
    """Return the values of a publication as CSV; no text in it is a formula."""
    row = _row(call)
    if row["withdrawn"]:
        raise not_found()
    return Download(csv_bytes(json.loads(row["document"])), "text/csv; charset=utf-8", "values.csv")


def publication_release(call: ServiceCall) -> Download:
    """Return a published release as the library reads it, with its certificate."""
    row = _row(call)
    if row["withdrawn"]:
        raise not_found()
    return Download(json_bytes(json.loads(row["document"])), "application/json", "release.json")


def _row(call: ServiceCall) -> ServiceRow:
    row = call.service.database.row(
        "SELECT p.id, p.title, p.about, p.created, p.withdrawn, p.release, r.dataset, r.document"
        " FROM publications p JOIN releases r ON r.id = p.release WHERE p.id = ?",
        call.path["publication"],
    )
    if row is None:
        raise not_found()
    return row


def publish_again(call: ServiceCall, written: Mapping[str, str]) -> dict[str, Any]:
    """Show the form of a publication again."""
    dataset = release_dataset(call, written.get("release", ""))
    return {**list_releases(call, dataset), "written": written}
