"""The ledger for auditors: its entries, its end to keep as a witness, its verification; and certificates.

Entries are listed by a cursor. The check of a certificate against the ledger changes nothing and reveals no
entry of others. Whoever holds the hash of an entry has the certificate of that entry, because the hash cannot
be guessed. So only with the right hash, or to an auditor, the check says which part does not agree. Nobody
can use it to try out plans, costs or accounts of other people's entries.
"""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import BeforeValidator, Field, StringConstraints, WithJsonSchema

from tacit.core import Certificate, Release
from tacit.errors import TacitError
from tacit.parameters import Integer
from tacit.service._bodies import UNREADABLE, Body, json_field, read_typed, typed_integer, with_floats
from tacit.service._operations import SIGNED_IN, Operation, needs

if TYPE_CHECKING:
    from tacit.ledger import Entry, Ledger
    from tacit.service._operations import Caller, ServiceCall
    from tacit.service._service import Service


_MAY_READ = needs("auditor", "curator", "owner", scope="audit")
_MAX_ENTRIES = 200  # entries of a page
_STEP = 2_000  # entries that one request looks at
_VERIFYING = asyncio.Semaphore(1)  # a check of the whole log is long: one at a time in a process
_MAX_MEMBERS = 50
#: The most bytes of a body with a release.
MAX_RELEASE: Final = 2 * 1024 * 1024
_UNKNOWN = "the ledger has no entry with this number and this hash"


class WitnessBody(Body):
    """What somebody has kept of the ledger: its end as a number and a hash, or the text of a witness file."""

    witness: Annotated[str, StringConstraints(max_length=4096)] = ""
    count: Annotated[Annotated[int, Field(ge=0, lt=2**63)] | None, BeforeValidator(typed_integer)] = None
    hash: Annotated[str, StringConstraints(max_length=64)] = ""


def ledger_state(service: Service) -> dict[str, Any]:
    """Return the end of the log, and why nothing is charged now; empty if charges are taken."""
    ledger = service.ledger
    refusal, sealed = ledger.refusal, ledger.sealed
    trouble = ""
    if refusal is not None and refusal.code == "ledger-rolled-back":
        trouble = (
            "The ledger lacks entries that its witness has seen: an old copy may have taken its place. "
            "Nothing is charged until the operator has restored the latest copy."
        )
    elif refusal is not None:
        trouble = "The end of the ledger was changed. Nothing is charged until the operator has restored it."
    elif sealed is not None:
        trouble = (
            "The ledger has sealed itself after a failed write. Nothing is charged until it is unsealed."
        )
    head = ledger.head
    return {
        "head": {"count": head.count, "hash": head.hash, "ledger": ledger.id},
        "trouble": trouble,
        "code": "" if not trouble else refusal.code if refusal is not None else "ledger-sealed",
    }


def _get_head(call: ServiceCall) -> dict[str, Any]:
    return ledger_state(call.service)


def _get_entries(call: ServiceCall) -> dict[str, Any]:
    after = read_typed(Integer(0, 10**18 - 1), "after", call.query.get("after", "0"))
    limit = read_typed(Integer(0, _MAX_ENTRIES), "limit", call.query.get("limit", "50"))
    entries, upto = _visible(call.service.ledger, call.person, after, max(limit, 1))
    more = upto < call.service.ledger.head.count
    return {
        **ledger_state(call.service),
        "entries": [entry.to_json() for entry in entries],
        "next": str(upto) if more else None,
        "verification": None,
    }


def _visible(ledger: Ledger, caller: Caller, after: int, limit: int) -> tuple[list[Entry], int]:
    """Return entries that a person may see, and the number of the last one that was looked at."""
    everywhere = bool({"auditor", "curator"} & caller.roles_on("")) and not caller.only
    entries: list[Entry] = []
    upto, end = after, after + _STEP
    while upto < end and len(entries) < limit:
        page = ledger.history(after=upto, limit=min(limit if everywhere else 500, end - upto))
        if not page:
            break
        for entry in page:
            upto = entry.seq
            if everywhere or _concerns(entry, caller):
                entries.append(entry)
            if len(entries) == limit:
                break
    return entries, upto


def _concerns(entry: Entry, caller: Caller) -> bool:
    """Whether an entry is about a dataset on which the person is an auditor or a curator."""
    if entry.account is None:
        return False
    dataset = entry.account.partition("/")[0]
    return bool({"auditor", "curator"} & caller.roles_on(dataset))


async def _post_verify(call: ServiceCall) -> dict[str, Any]:
    async with _VERIFYING:
        report = await call.in_thread(_verified, call.service.ledger, call.body)
    caller = call.person
    if "auditor" not in caller.roles_on("") or caller.only:  # other datasets stay unnamed
        report["problems"] = [_own_accounts(problem, caller) for problem in report["problems"]]
        report |= {"accounts": None, "releases": None}
    return {**ledger_state(call.service), "entries": [], "next": None, "verification": report}


def _own_accounts(problem: str, caller: Caller) -> str:
    """Return a problem without the names of accounts of datasets that the person does not audit."""

    def shown(match: re.Match[str]) -> str:
        dataset = match.group(1).partition("/")[0]
        return match.group(0) if caller.roles_on(dataset) else "another account"

    return re.sub(r"account '([^']*)'", shown, problem)


def _verified(ledger: Ledger, body: WitnessBody) -> dict[str, Any]:
    """Check the whole log; what the report says of files names no path."""
    report = _with_witness(ledger, body)
    own_witness = "the witness of the service"
    hidden = {
        f"the witness {ledger.witness}": own_witness,
        str(ledger.witness): own_witness,
        ledger.name: "the ledger",
    }
    problems = [_without(problem, hidden) for problem in report.problems]
    sentence = "consistent, completeness not proven"
    if not report.ok:
        sentence = "NOT consistent"
    elif report.complete:
        sentence = f"consistent and complete up to entry {report.witnessed:,}, as the witness proves"
    return {
        "ok": report.ok,
        "complete": report.complete,
        "sentence": sentence,
        "problems": problems,
        "entries": report.entries,
        "accounts": report.accounts,
        "releases": report.releases,
        "witnessed": report.witnessed,
    }


def _without(text: str, hidden: Mapping[str, str]) -> str:
    for path, word in hidden.items():
        text = text.replace(path, word)
    return text


def _with_witness(ledger: Ledger, body: WitnessBody) -> Any:
    if body.count is not None or body.hash:
        if body.count is None or not re.fullmatch(r"[0-9a-fA-F]{64}", body.hash, re.ASCII):
            raise _bad_witness()
        return ledger.verify(witness=(body.count, body.hash.lower()))
    if not body.witness.strip():
        return ledger.verify()
    document = _document_of(body.witness)
    if document is not None:
        return ledger.verify(witness=document)
    with tempfile.NamedTemporaryFile(suffix=".witness") as file:
        Path(file.name).write_bytes(body.witness.encode("utf-8", "replace"))
        try:
            return ledger.verify(witness=file.name)
        except TacitError:
            raise _bad_witness() from None


def _document_of(text: str) -> tuple[int, str] | None:
    """Read the document that ``ledger/head`` returned, or its head."""
    try:
        document = json.loads(text)
        head = document.get("head", document)
        count, digest = head["count"], head["hash"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    good = type(count) is int and 0 <= count < 2**63 and isinstance(digest, str)
    return (count, digest.lower()) if good and re.fullmatch(r"[0-9a-fA-F]{64}", digest, re.ASCII) else None


def _bad_witness() -> TacitError:
    return TacitError(
        "bad-parameter",
        "this is not a witness of this ledger",
        why="it is empty, damaged or of another ledger, so it proves nothing",
        fix="give the number and the hash of an entry, or the text of a witness file of this ledger",
    )


def _ledger_again(call: ServiceCall, _: Mapping[str, str]) -> dict[str, Any]:
    return {**ledger_state(call.service), "entries": [], "next": None, "verification": None}


LEDGER_OPERATIONS = (
    Operation(
        "GET", "/ledger", _MAY_READ, _get_entries, page="plans/ledger.html",
        summary="The ledger: its state and the entries of your datasets, oldest first",
    ),
    Operation(
        "GET", "/ledger/entries", _MAY_READ, _get_entries, page="plans/ledger.html",
        summary="Entries of the ledger of your datasets after a cursor, oldest first",
    ),
    Operation(
        "GET", "/ledger/head", _MAY_READ, _get_head,
        summary="The end of the log, to keep elsewhere as a witness",
    ),
    Operation(
        "POST", "/ledger/verify", needs("auditor", scope="audit"), _post_verify, body=WitnessBody,
        page="plans/ledger.html", form=_ledger_again,
        summary="Check the whole ledger, and compare it with a witness",
    ),
)  # fmt: skip


class CertificateBody(Body):
    """A certificate, as it was downloaded with its release; or the whole release, to check its values too."""

    certificate: Annotated[
        dict[str, Any],
        json_field("the JSON of a certificate or of a release", MAX_RELEASE),
        WithJsonSchema({"type": "object"}),
    ]


async def _post_check(call: ServiceCall) -> dict[str, Any]:
    certificate, values, told = _read_both(call.body.certificate)
    caller = call.person
    everywhere = "auditor" in caller.roles_on("") and not caller.only
    problems = await call.in_thread(_problems, certificate, call.service.ledger, everywhere=everywhere)
    problems = [*problems, told] if told and problems != [_UNKNOWN] else problems
    about = certificate.fields.get("dataset") if not problems else None  # nothing that was edited comes back
    return {
        "matches": not problems,
        "values": values if not problems or told else "",
        "problems": problems,
        "plan": None if problems else certificate.plan,
        "dataset": about if isinstance(about, Mapping) else None,
        "promised": None if problems else _json(certificate.fields.get("promised")),
        "checked": True,
    }


def _read_both(document: Mapping[str, Any]) -> tuple[Certificate, str, str]:
    """Read a certificate or a whole release; say what is known of its values, and what is wrong with them."""
    if not isinstance(document.get("certificate"), Mapping):
        return _read(document), "not given", ""
    certificate = _read(document["certificate"])
    try:
        release = Release.from_json(with_floats(document))
        if release.values_bound is None:
            return certificate, "not bound", ""
        problem = release.values_problem
    except (*UNREADABLE, TacitError):
        problem = "the values are not those that the certificate was made for"
    return certificate, "changed" if problem else "bound", problem


def _read(fields: Mapping[str, Any]) -> Certificate:
    """Read a certificate; what cannot be one is refused, and nothing of it is repeated."""
    try:
        certificate = Certificate(with_floats(fields))
        if len(certificate.members) > _MAX_MEMBERS or any(
            "members" in m.fields for m in _several(certificate)
        ):
            raise TypeError
        str(certificate.plan)
    except (*UNREADABLE, TacitError):
        raise TacitError(
            "bad-certificate",
            "this is not a certificate that this version of the service can read",
            fix="send the certificate as it was downloaded with its release",
        ) from None
    return certificate


def _several(certificate: Certificate) -> tuple[Certificate, ...]:
    return certificate.members if "members" in certificate.fields else ()


def _problems(certificate: Certificate, ledger: Ledger, *, everywhere: bool) -> list[str]:
    try:
        if not everywhere and not all(_is_held(member, ledger) for member in certificate.members):
            return [_UNKNOWN]
        return certificate.problems(ledger)
    except (*UNREADABLE, TacitError):
        return ["a part of the certificate cannot be read"]


def _is_held(certificate: Certificate, ledger: Ledger) -> bool:
    """Whether the certificate holds the hash of the entry that it names."""
    entry_facts = certificate.fields["ledger"]
    if not isinstance(entry_facts, Mapping):
        return certificate.is_local
    number, digest = entry_facts.get("entry"), entry_facts.get("hash")
    if type(number) is not int or not 0 < number < 2**62 or not isinstance(digest, str):
        return False
    entry = ledger.entry(number)
    return entry is not None and entry.hash == digest


def _json(value: Any) -> Any:
    return json.loads(json.dumps(value, default=str))


def _get_form(_: ServiceCall) -> dict[str, Any]:
    return {
        "matches": None,
        "values": "",
        "problems": [],
        "plan": None,
        "dataset": None,
        "promised": None,
        "checked": False,
    }


def _certificate_again(call: ServiceCall, _: Mapping[str, str]) -> dict[str, Any]:
    return _get_form(call)


CERTIFICATE_OPERATIONS = (
    Operation(
        "GET", "/certificates/check", SIGNED_IN, _get_form, page="plans/certificate.html",
        summary="The form that checks a certificate",
    ),
    Operation(
        "POST", "/certificates/check", SIGNED_IN, _post_check, body=CertificateBody,
        page="plans/certificate.html", form=_certificate_again, most=MAX_RELEASE,
        summary="Compare a certificate with the ledger; nothing is changed",
    ),
)  # fmt: skip
