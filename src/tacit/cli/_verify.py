"""The ``tacit verify`` command: compare a certificate, or a whole release, with its ledger."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from tacit.cli._app import app
from tacit.cli._ledger import KeyFileOption, find_ledger, note_on_completeness, open_ledger
from tacit.cli._output import JsonOption, say, show_json
from tacit.errors import TacitError, missing_file
from tacit.fixes import Do

if TYPE_CHECKING:
    from tacit.core import Certificate
    from tacit.ledger import Ledger

#: The codes that refuse a damaged or changed ledger; the certificate is then not verified.
_BROKEN = frozenset({"ledger-damaged", "ledger-tampered", "ledger-rolled-back"})


@app.command()
def verify(
    certificate: Annotated[Path, typer.Argument(help="The file of a release, or of its certificate.")],
    ledger: Annotated[
        str | None,
        typer.Option("--ledger", envvar="TACIT_LEDGER", help="The ledger's path or postgresql:// address."),
    ] = None,
    key: KeyFileOption = None,
    config: Annotated[
        Path, typer.Option("--config", "-c", envvar="TACIT_CONFIG", help="The file that names the ledger.")
    ] = Path("tacit.toml"),
    *,
    whole: Annotated[
        bool, typer.Option("--whole", help="Also check every entry and total of the ledger.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Check a release, or its certificate alone, against its ledger; exit status 3: it is not verified."""
    if not certificate.is_file():
        raise missing_file(certificate, "bad-certificate", fix=Do("save-certificate", path=str(certificate)))
    promise, values, told = _read(certificate)
    where = find_ledger(ledger, config, named_by="--ledger")
    result = _compared(promise, where, key, whole_log=whole)
    if values == "changed":
        result = replace(result, problems=(*result.problems, told))
    entry = _entry(promise).get("entry")
    if as_json:
        ok, problems = not result.problems, list(result.problems)
        about = {"certificate": promise.plan, "entry": entry, "values": values}
        show_json({"ok": ok, "problems": problems, **about})
    elif result.problems:
        say(Text(f"NOT verified: {certificate}", style="red"), *(f"  - {one}" for one in result.problems))
        if result.intact and not result.knows_entry:
            say(f"compared with {where}, which is intact; for another ledger, give --ledger FILE")
    else:
        say(
            Text(f"verified: entry {entry} of {where} paid for this release", style="green"),
            f"values: {told}",
            f"ledger: {result.state}",
            note_on_completeness(f"tacit budget verify {where} --witness FILE", is_complete=whole),
        )
    if result.problems:
        raise typer.Exit(3)


def _read(path: Path) -> tuple[Certificate, str, str]:
    """Read a certificate, alone or in a release; say what is known of its values, in short and in full."""
    from tacit.core import Certificate, Release

    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        document = None
    if not isinstance(document, dict) or not isinstance(document.get("certificate"), dict):
        certificate_only = (
            "NOT checked; this file has the certificate alone. "
            "A release that Python saved (release.save) has the values too"
        )
        return Certificate.load(path), "not in this file", certificate_only
    promise = Certificate(document["certificate"])
    try:
        release = Release.from_json(document)
    except TacitError as refusal:
        return promise, "changed", refusal.what
    if release.values_bound and not release.values_problem:
        return promise, "bound", "the certificate was made for the values in this file"
    if release.values_bound is None:
        return promise, "not bound", f"NOT checked; {release.values_problem}"
    return promise, "changed", release.values_problem


@dataclass(frozen=True, slots=True)
class _Comparison:
    """What was found wrong, the state of the ledger, and whether it has the entry of the certificate."""

    problems: tuple[str, ...]
    state: str = ""
    intact: bool = False
    knows_entry: bool = False


def _compared(promise: Certificate, where: str, key: Path | None, *, whole_log: bool) -> _Comparison:
    """Compare a certificate with its ledger; unless ``whole_log``, in the same time for any log."""
    try:
        with open_ledger(where, key) as ledger:
            problems = _problems(ledger) + promise.problems(ledger)
            entries = ledger.head.count
            state = (
                f"entry {entries}, the last one, is intact; the others were not checked (--whole checks them)"
            )
            if whole_log:
                report = ledger.verify()
                problems, state = [*report.problems] or problems, str(report)
            entry_named = _entry(promise)
            number = entry_named.get("entry")
            entry = ledger.entry(number) if isinstance(number, int) and number > 0 else None
            is_same = entry is not None and entry.hash == entry_named.get("hash")
            return _Comparison(tuple(problems), state, not _problems(ledger), is_same)
    except TacitError as refusal:
        if refusal.code not in _BROKEN:
            raise
        return _Comparison((refusal.what,))


def _problems(ledger: Ledger) -> list[str]:
    """Say what is wrong with the end of the log; an edited last entry is refused."""
    if ledger.head.count:
        ledger.entry(ledger.head.count)
    missing = ledger.missing
    if missing is None:
        return []
    missing_entry = (
        f"the witness {ledger.witness} has seen entry {missing.count}, which the ledger does not contain"
    )
    return [f"{missing_entry}: its end was cut off, or an old copy took its place"]


def _entry(promise: Certificate) -> dict[str, object]:
    """Return the number and the hash of the entry that paid, as the certificate states them."""
    charge = promise.fields["ledger"]
    return dict(charge) if isinstance(charge, dict) else {}
