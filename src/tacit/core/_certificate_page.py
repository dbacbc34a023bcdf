"""The core's certificate as a short page: who is protected, what was promised, who paid.

A certificate may have been edited by anybody, so the page is written from any fields and never fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tacit.errors import TacitError
from tacit.report import Report, ReportTable
from tacit.show import visible

if TYPE_CHECKING:
    from tacit.core._certificate import Certificate

_LONGEST = 60
_CHECK = "matches(ledger) compares it with the ledger; save(path) writes the whole document; fields holds it."


def certificate_page(certificate: Certificate) -> Report:
    """Return the page of a certificate."""
    fields = certificate.fields
    try:
        members, names = certificate.members, certificate.names
    except TacitError as error:
        return Report("Certificate", (f"Its members cannot be read: {error.what}.",))
    rows = [row for member in members for row in _member(member, named="members" in fields)]
    rows += [
        ("promised", _promised(fields.get("promised"))),
        *([("audit", _audit(fields["audit"]))] if "audit" in fields else []),
        ("plan", _short(fields.get("plan"))),
        ("software", _short(fields.get("software"))),
    ]
    table = ReportTable("", ("part", "content"), tuple(rows))
    return Report(f"Certificate for {_short(names)}", (), (table,), (_CHECK,))


def _member(member: Certificate, *, named: bool) -> list[tuple[str, str]]:
    """Return the lines that each dataset has of its own."""
    dataset = member.fields.get("dataset")
    about = dataset if isinstance(dataset, Mapping) else {}
    laws = member.fields.get("mechanisms")
    listed = [law for law in laws if isinstance(law, Mapping)] if isinstance(laws, list | tuple) else []
    steps = [
        _short(law.get("mechanism")) + (f" on {_short(law['statistic'])}" if law.get("statistic") else "")
        for law in listed
    ]
    assumed = dict.fromkeys(visible(str(law["assumes"]))[:300] for law in listed if law.get("assumes"))
    return [
        *([("dataset", _short(about.get("name")))] if named else []),
        ("version", _short(about.get("version"))),
        ("protects", f"each {_short(about.get('unit'))}; neighbours: {_short(about.get('adjacency'))}"),
        *(("holds if", words) for words in assumed),
        *[(name, visible(str(value))[:400]) for name, value in member.fields.items() if name == "numerics"],
        ("mechanisms", ", ".join(dict.fromkeys(steps[:10])) + (" ..." if len(steps) > 10 else "")),
        ("paid by", _paid(member.fields)),
    ]


def _paid(fields: Mapping[str, object]) -> str:
    paid, accounts = fields.get("ledger"), fields.get("filter")
    if not isinstance(paid, Mapping):
        return "nobody: the release was made on the respondent's device"
    listed = accounts if isinstance(accounts, list | tuple) else []
    names = ", ".join(_short(name) for name in listed[:5]) or "the dataset"
    part = f", instalment {_short(paid['instalment'])}" if "instalment" in paid else ""
    kept = f"; {_short(paid['kept'])}" if "kept" in paid else ""
    entry = f"entry {_short(paid.get('entry'))} of the ledger ({_short(paid.get('hash'))})"
    return f"{names}, with {entry}{part}{kept}"


def _promised(given: object) -> str:
    """Write the promised total in decimals."""
    parts = given if isinstance(given, Mapping) else {}
    return ", ".join(f"{_short(name)} {_decimal(value)}" for name, value in parts.items()) or "not stated"


def _decimal(value: object) -> str:
    top, _, bottom = str(value).partition("/")
    try:
        return f"{float(top) / float(bottom or 1):.6g}"
    except (ValueError, ZeroDivisionError, OverflowError):
        return _short(value)


def _audit(given: object) -> str:
    found = given if isinstance(given, Mapping) else {}
    verdict = "nothing was found" if found.get("holds") is True else "the plan is broken"
    return f"{verdict}, with {_short(found.get('pairs'))} pairs of neighbours"


def _short(value: object) -> str:
    """Write a field in one line: hashes by their first signs, nothing that a terminal obeys."""
    text = visible(str(value))
    if len(text) == 64 and set(text) <= set("0123456789abcdef"):
        return text[:12]
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
