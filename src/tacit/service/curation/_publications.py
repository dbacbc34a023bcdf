"""Releases that a curator publishes or registers.

A publication makes one release readable without signing in, with its promise and certificate.

A release that was made elsewhere with the library can be registered: a model, a series, an estimate of a
survey. It is read as a document, never as code. Its certificate is compared with the ledger of the service
where the ledger holds the charge; otherwise the release is shown as one that was not verified here.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import WithJsonSchema

from tacit.core import Certificate, Release
from tacit.errors import TacitError
from tacit.service._bodies import UNREADABLE, Body, Name, json_field, with_floats
from tacit.service._operations import Answer, Download
from tacit.service._refusals import not_found
from tacit.service._rendering import chart_of, kind_words, lines_of, text_of, value_tables
from tacit.service._service import CHARGE_WORDS, registration_of
from tacit.service._times import new_id, now_text
from tacit.service.curation._amounts import Reason, ReasonBody, Sentence, promise_of
from tacit.service.curation._roles import needs_role, roles_now
from tacit.service.runner import (
    csv_bytes,
    has_columns,
    json_bytes,
    keep_stored,
    now,
    release_words,
    shown_release,
)

if TYPE_CHECKING:
    from tacit.ledger import Ledger
    from tacit.service._database import ServiceRow
    from tacit.service._operations import ServiceCall


_PAGE = 50
#: The most bytes of a body with a release.
MAX_RELEASE: Final = 2 * 1024 * 1024
#: Messages between the parties of a protocol, which are no results.
_MESSAGES = frozenset({"client-model", "federated-round", "survey-report"})


class PublicationMade(Body):
    """A release that becomes public, under a title."""

    release: Name
    title: Reason
    about: Sentence = ""


def publish(call: ServiceCall) -> Answer:
    """Publish a release of a dataset that the caller curates; before its time to leave it does not exist."""
    body: PublicationMade = call.body
    row = call.service.database.row("SELECT id, dataset, shown_from FROM releases WHERE id = ?", body.release)
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
            publication, row["id"], body.title, body.about.strip(), call.person.id, now_text(),
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
    registration = registration_of(call.service.database, release)
    return registration and {name: registration[name] for name in ("at", "charge", "verified", "sentence")}


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


def publish_again(call: ServiceCall, fields: Mapping[str, str]) -> dict[str, Any]:
    """Show the form of a publication again."""
    dataset = release_dataset(call, fields.get("release", ""))
    return {**list_releases(call, dataset), "written": fields}


class ReleaseRegistered(Body):
    """A release as ``Release.to_json`` returns it and ``Release.save`` writes it, and where it comes from."""

    release: Annotated[
        dict[str, Any],
        json_field("the text of a file that release.save wrote", MAX_RELEASE),
        WithJsonSchema({"type": "object"}),
    ]
    note: Sentence = ""


async def register_release(call: ServiceCall) -> Answer:
    """Register a release with a dataset.

    Guarantee: nothing is charged, and nothing of the document is run. The release counts as verified only if
    the ledger of the service holds the charge that the certificate names, certificate and ledger agree, the
    charge was made for this dataset, and the certificate was made for these values. Otherwise the release
    says wherever it is shown that it was not verified here. The same release is registered once.
    """
    body: ReleaseRegistered = call.body
    call.service.dataset(call.dataset)
    document, charge = await asyncio.to_thread(_checked, body.release, call.service.ledger, call.dataset)
    text = json.dumps(document, sort_keys=True, allow_nan=False, separators=(",", ":"))
    digest = hashlib.sha256(text.encode("utf-8")).hexdigest()
    return _write(call, document, charge, digest, body.note.strip())


def _write(call: ServiceCall, document: dict[str, Any], charge: str, digest: str, note: str) -> Answer:
    release, person, dataset = new_id("r"), call.person.id, call.dataset
    with call.service.database.change() as change:
        needs_role(roles_now(change, person, dataset), "curator")
        row = change.row(
            "SELECT release FROM registrations WHERE dataset = ? AND digest = ?", dataset, digest
        )
        if row is None:
            plan = str(document["certificate"]["plan"])
            keep_stored(change, release, dataset, person, "", plan, document, now())
            change.run(
                "INSERT INTO registrations (release, dataset, person, kind, digest, charge, note, created)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                release, dataset, person, document["kind"], digest, charge, note, now_text(),
            )  # fmt: skip
            call.service.record(change, person, "release-registered", f"{release} {dataset}", call.id)
        else:
            release = str(row["release"])
        registered = registration_of(change, release)
    answer = {"release": release, "dataset": dataset, "kind": document["kind"], "registered": registered}
    return Answer(answer, 201 if row is None else 200, f"/releases/{release}")


def _checked(submitted: Mapping[str, Any], ledger: Ledger, dataset: str) -> tuple[dict[str, Any], str]:
    """Read a release strictly, try everything that pages do with it, and look for its charge."""
    release = Release.from_json(with_floats(submitted))
    if release.content.kind in _MESSAGES:
        raise TacitError(
            "not-allowed",
            "this is a message between the parties of a protocol, not a result",
            fix="register what was estimated from all of the messages",
        )
    try:
        document = json.loads(json.dumps(release.to_json(), allow_nan=False))
        _check_certificate(release.certificate)
        _try(document)
    except UNREADABLE:
        raise TacitError(
            "bad-release",
            "this is not a release that this version of the service can read",
            fix="send the release as release.save wrote it, with its certificate",
        ) from None
    charge = _charge(release.certificate, ledger, dataset)
    return (
        document,
        "bound" if charge == "here" and release.values_bound and not release.values_problem else charge,
    )


def _check_certificate(certificate: Certificate) -> None:
    """Refuse a certificate that does not state one dataset and its promise; raises what is unreadable."""
    fields = certificate.fields
    stated: Any = fields["dataset"]
    texts = [stated["name"], stated["unit"], stated["adjacency"], fields["plan"], fields["software"]]
    if "members" in fields or not all(isinstance(one, str) and 0 < len(one) <= 500 for one in texts):
        raise ValueError("not the certificate of one dataset")
    promised: Any = fields["promised"]
    if not promised or not all(isinstance(one, str) and len(one) <= 100 for one in promised.values()):
        raise ValueError("no promise")
    if any(Fraction(one) < 0 for one in promised.values()):
        raise ValueError("no promise")
    promise_of(fields)


def _try(document: dict[str, Any]) -> None:
    """Do what the pages of a release do, so that none of them fails later."""
    shown_release(document)
    value_tables(document)
    text_of(document)
    chart_of(document)


def _charge(certificate: Certificate, ledger: Ledger, dataset: str) -> str:
    """Say where the charge is; a certificate that contradicts the ledger of the service is refused."""
    if certificate.is_local:
        return "none"
    entry_facts: Any = certificate.fields["ledger"]
    number, digest = (
        (entry_facts.get("entry"), entry_facts.get("hash")) if isinstance(entry_facts, Mapping) else (0, "")
    )
    entry = ledger.entry(number) if type(number) is int and 0 < number < 2**62 else None
    if entry is None or entry.hash != digest:
        return "elsewhere"
    try:
        problems = certificate.problems(ledger)
    except (*UNREADABLE, TacitError):
        problems = ["a part of the certificate cannot be read"]
    if problems:
        raise TacitError(
            "bad-certificate",
            "the certificate does not agree with the ledger of this service",
            why="; ".join(problems[:3])[:500],
            fix="register the release as it was saved, unchanged",
        )
    stated: Any = certificate.fields["dataset"]
    if stated["name"] != dataset:
        raise TacitError(
            "not-allowed",
            "the release was charged to another dataset of this service",
            fix="register it with the dataset that paid for it",
        )
    return "here"


def list_registered(call: ServiceCall) -> dict[str, Any]:
    """List the releases that were registered with a dataset, the newest first."""
    dataset = call.service.dataset(call.dataset)
    rows = call.service.database.rows(
        "SELECT g.release, g.charge, g.note, g.created, g.kind, r.plan FROM registrations g"
        " JOIN releases r ON r.id = g.release WHERE g.dataset = ? ORDER BY r.position DESC LIMIT ?",
        call.dataset, _PAGE,
    )  # fmt: skip
    releases = [
        {
            "release": row["release"],
            "kind": row["kind"],
            "words": kind_words(row["kind"]),
            "created": row["created"],
            "note": row["note"],
            "plan": row["plan"],
            "charge": row["charge"],
            "verified": row["charge"] == "bound",
            "sentence": CHARGE_WORDS[row["charge"]],
        }
        for row in rows
    ]
    may = "curator" in call.person.roles_on(call.dataset)
    return {
        "dataset": dataset.name,
        "title": dataset.policy["title"],
        "releases": releases,
        "may_register": may,
    }


def registered_again(call: ServiceCall, fields: Mapping[str, str]) -> dict[str, Any]:
    """Show the form again; the document itself is not sent back."""
    return {**list_registered(call), "note": fields.get("note", "")[:1000]}
