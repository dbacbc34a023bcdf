"""Register a release that was made elsewhere with the library: a model, a series, an estimate of a survey.

A release is read as a document, never as code. Its certificate is compared with the ledger of the service
where the ledger holds the charge; otherwise the release is shown as one that was not verified here.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import WithJsonSchema

from tacit.core import Certificate, Release
from tacit.errors import TacitError
from tacit.service._bodies import UNREADABLE, Body, json_field
from tacit.service._operations import Answer
from tacit.service._registrations import CHARGE_WORDS, registration_of
from tacit.service._release_contents import chart_of, kind_words, text_of, value_tables
from tacit.service._times import new_id, now_text
from tacit.service.curation._fields import Sentence  # noqa: TC001 - pydantic reads it
from tacit.service.curation._meaning import promise_of
from tacit.service.curation._people import roles_now
from tacit.service.curation._refusals import needs_role
from tacit.service.drawer import keep_stored, now, shown_release

if TYPE_CHECKING:
    from tacit.ledger import Ledger
    from tacit.service._operations import ServiceCall

#: The most bytes of a body with a release.
MOST_RELEASE: Final = 2 * 1024 * 1024
_PAGE = 50
#: Messages between the parties of a protocol, which are no results.
_MESSAGES = frozenset({"client-model", "federated-round", "survey-report"})


class ReleaseRegistered(Body):
    """A release as ``Release.to_json`` returns it and ``Release.save`` writes it, and where it comes from."""

    release: Annotated[
        dict[str, Any],
        json_field("the text of a file that release.save wrote", MOST_RELEASE),
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
    given: ReleaseRegistered = call.body
    call.service.dataset(call.dataset)
    document, charge = await asyncio.to_thread(_checked, given.release, call.service.ledger, call.dataset)
    written = json.dumps(document, sort_keys=True, allow_nan=False, separators=(",", ":"))
    digest = hashlib.sha256(written.encode("utf-8")).hexdigest()
    return _write(call, document, charge, digest, given.note.strip())


def _write(call: ServiceCall, document: dict[str, Any], charge: str, digest: str, note: str) -> Answer:
    release, person, dataset = new_id("r"), call.person.id, call.dataset
    with call.service.database.change() as change:
        needs_role(roles_now(change, person, dataset), "curator")
        known = change.row(
            "SELECT release FROM registrations WHERE dataset = ? AND digest = ?", dataset, digest
        )
        if known is None:
            plan = str(document["certificate"]["plan"])
            keep_stored(change, release, dataset, person, "", plan, document, now())
            change.run(
                "INSERT INTO registrations (release, dataset, person, kind, digest, charge, note, created)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                release, dataset, person, document["kind"], digest, charge, note, now_text(),
            )  # fmt: skip
            call.service.record(change, person, "release-registered", f"{release} {dataset}", call.id)
        else:
            release = str(known["release"])
        registered = registration_of(change, release)
    shown = {"release": release, "dataset": dataset, "kind": document["kind"], "registered": registered}
    return Answer(shown, 201 if known is None else 200, f"/releases/{release}")


def _checked(given: Mapping[str, Any], ledger: Ledger, dataset: str) -> tuple[dict[str, Any], str]:
    """Read a release strictly, try everything that pages do with it, and look for its charge."""
    release = Release.from_json(_floats(given))
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
    written: Any = certificate.fields["ledger"]
    number, digest = (written.get("entry"), written.get("hash")) if isinstance(written, Mapping) else (0, "")
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


def _floats(value: Any) -> Any:
    """Return a document as the library reads it from a file: decimals are floats."""
    match value:
        case Decimal():
            return float(value)
        case Mapping():
            return {name: _floats(one) for name, one in value.items()}
        case list():
            return [_floats(one) for one in value]
        case _:
            return value


def list_registered(call: ServiceCall) -> dict[str, Any]:
    """List the releases that were registered with a dataset, the newest first."""
    opened = call.service.dataset(call.dataset)
    rows = call.service.database.rows(
        "SELECT g.release, g.charge, g.note, g.created, g.kind, r.plan FROM registrations g"
        " JOIN releases r ON r.id = g.release WHERE g.dataset = ? ORDER BY r.position DESC LIMIT ?",
        call.dataset, _PAGE,
    )  # fmt: skip
    found = [
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
    return {"dataset": opened.name, "title": opened.policy["title"], "releases": found, "may_register": may}


def registered_again(call: ServiceCall, written: Mapping[str, str]) -> dict[str, Any]:
    """Show the form again; the document itself is not sent back."""
    return {**list_registered(call), "note": written.get("note", "")[:1000]}
