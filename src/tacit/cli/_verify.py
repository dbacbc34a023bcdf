"""The ``tacit verify`` command: compare a certificate with the ledger that it names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from tacit.cli._app import app
from tacit.cli._ledger import KeyFileOption, find_ledger, note_on_completeness, open_ledger
from tacit.cli._output import JsonOption, say, show_json
from tacit.errors import TacitError
from tacit.fixes import Do

if TYPE_CHECKING:
    from tacit.core import Certificate
    from tacit.ledger import Ledger

__all__ = ["verify"]

#: The codes that refuse a damaged or changed ledger; the certificate is then not verified.
_BROKEN = frozenset({"ledger-damaged", "ledger-tampered", "ledger-rolled-back"})


@app.command()
def verify(
    certificate: Annotated[Path, typer.Argument(help="The certificate's file.")],
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
    """Check a certificate against its ledger; exit status 3 means that it is not verified."""
    from tacit.core import Certificate

    if not certificate.is_file():
        raise TacitError(
            "bad-certificate",
            f"{certificate} does not exist",
            fix=Do("save-certificate", path=str(certificate)),
        )
    promise = Certificate.load(certificate)
    where = find_ledger(ledger, config, named_by="--ledger")
    result = _compared(promise, where, key, whole=whole)
    entry = _entry(promise).get("entry")
    if as_json:
        ok, problems = not result.problems, list(result.problems)
        show_json({"ok": ok, "problems": problems, "certificate": promise.plan, "entry": entry})
    elif result.problems:
        say(Text(f"NOT verified: {certificate}", style="red"), *(f"  - {one}" for one in result.problems))
        if result.intact and not result.knows_entry:
            say(f"compared with {where}, which is intact; for another ledger, give --ledger FILE")
    else:
        say(
            Text(f"verified: entry {entry} of {where} paid for this release", style="green"),
            f"ledger: {result.state}",
            note_on_completeness(f"tacit budget verify {where} --witness FILE", whole=whole),
        )
    if result.problems:
        raise typer.Exit(3)


@dataclass(frozen=True, slots=True)
class _Comparison:
    """What was found wrong, the state of the ledger, and whether it has the entry of the certificate."""

    problems: tuple[str, ...]
    state: str = ""
    intact: bool = False
    knows_entry: bool = False


def _compared(promise: Certificate, where: str, key: Path | None, *, whole: bool) -> _Comparison:
    """Compare a certificate with its ledger; unless ``whole``, in the same time however long the log is."""
    try:
        with open_ledger(where, key) as ledger:
            problems = _problems(ledger) + promise.problems(ledger)
            last = ledger.head.count
            state = (
                f"entry {last}, the last one, is intact; the others were not checked (--whole checks them)"
            )
            if whole:
                report = ledger.verify()
                problems, state = [*report.problems] or problems, str(report)
            paid = _entry(promise)
            number = paid.get("entry")
            entry = ledger.entry(number) if isinstance(number, int) and number > 0 else None
            known = entry is not None and entry.hash == paid.get("hash")
            return _Comparison(tuple(problems), state, not _problems(ledger), known)
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
    seen = f"the witness {ledger.witness} has seen entry {missing.count}, which the ledger does not contain"
    return [f"{seen}: its end was cut off, or an old copy took its place"]


def _entry(promise: Certificate) -> dict[str, object]:
    """Return the number and the hash of the entry that paid, as the certificate states them."""
    written = promise.fields["ledger"]
    return dict(written) if isinstance(written, dict) else {}
