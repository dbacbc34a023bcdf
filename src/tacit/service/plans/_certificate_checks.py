"""The check of a certificate against the ledger. It changes nothing and reveals no entry of others.

Whoever holds the hash of an entry has the certificate of that entry, because the hash cannot be guessed. So
only with the right hash, or to an auditor, the check says which part does not agree. Nobody can use it to try
out plans, costs or accounts of other people's entries.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import WithJsonSchema

from tacit.core import Certificate, Release
from tacit.errors import TacitError
from tacit.service._bodies import UNREADABLE, Body, json_field
from tacit.service._operations import SIGNED_IN, Operation

if TYPE_CHECKING:
    from tacit.ledger import Ledger
    from tacit.service._operations import ServiceCall

_MOST_MEMBERS = 50
#: The most bytes of a body with a release.
MOST_RELEASE: Final = 2 * 1024 * 1024
_UNKNOWN = "the ledger has no entry with this number and this hash"


class CertificateBody(Body):
    """A certificate, as it was downloaded with its release; or the whole release, to check its values too."""

    certificate: Annotated[
        dict[str, Any],
        json_field("the JSON of a certificate or of a release", MOST_RELEASE),
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
        release = Release.from_json(_floats(document))
        if release.values_bound is None:
            return certificate, "not bound", ""
        problem = release.values_problem
    except (*UNREADABLE, TacitError):
        problem = "the values are not those that the certificate was made for"
    return certificate, "changed" if problem else "bound", problem


def _read(fields: Mapping[str, Any]) -> Certificate:
    """Read a certificate; what cannot be one is refused, and nothing of it is repeated."""
    try:
        certificate = Certificate(_floats(fields))
        if len(certificate.members) > _MOST_MEMBERS or any(
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
    written = certificate.fields["ledger"]
    if not isinstance(written, Mapping):
        return certificate.is_local
    number, digest = written.get("entry"), written.get("hash")
    if type(number) is not int or not 0 < number < 2**62 or not isinstance(digest, str):
        return False
    entry = ledger.entry(number)
    return entry is not None and entry.hash == digest


def _floats(value: Any) -> Any:
    """Return a document as the standard reader of JSON would have read it: decimals are floats."""
    match value:
        case Decimal():
            return float(value)
        case Mapping():
            return {name: _floats(one) for name, one in value.items()}
        case list():
            return [_floats(one) for one in value]
        case _:
            return value


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


def _form(call: ServiceCall, _: Mapping[str, str]) -> dict[str, Any]:
    return _get_form(call)


CERTIFICATE_OPERATIONS = (
    Operation(
        "GET", "/certificates/check", SIGNED_IN, _get_form, page="plans/certificate.html",
        summary="The form that checks a certificate",
    ),
    Operation(
        "POST", "/certificates/check", SIGNED_IN, _post_check, body=CertificateBody,
        page="plans/certificate.html", form=_form, most=MOST_RELEASE,
        summary="Compare a certificate with the ledger; nothing is changed",
    ),
)  # fmt: skip
