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
    as_json: JsonOption = False,
) -> None:
    """Check a certificate against its ledger, and the ledger itself; exit status 3 means not verified."""
    from tacit.core import Certificate

    if not certificate.is_file():
        raise TacitError(
            "bad-certificate",
            f"{certificate} does not exist",
            fix=Do("save-certificate", path=str(certificate)),
        )
    promise = Certificate.load(certificate)
    where = find_ledger(ledger, config, named_by="--ledger")
    result = _compared(promise, where, key)
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
            Text(f"verified: entry {entry} of {where} paid for it", style="green"),
            f"ledger: {result.state}",
            *(
                []
                if result.complete
                else [note_on_completeness(f"tacit budget verify {where} --witness FILE")]
            ),
        )
    if result.problems:
        raise typer.Exit(3)


@dataclass(frozen=True, slots=True)
class _Comparison:
    """What was found wrong, the state of the ledger, and whether it has the entry of the certificate."""

    problems: tuple[str, ...]
    state: str = ""
    intact: bool = False
    complete: bool = True
    knows_entry: bool = False


def _compared(promise: Certificate, where: str, key: Path | None) -> _Comparison:
    try:
        with open_ledger(where, key) as ledger:
            report = ledger.verify()
            problems = tuple(report.problems) or tuple(promise.problems(ledger))
            paid = _entry(promise)
            known = any(
                (one.seq, one.hash) == (paid.get("entry"), paid.get("hash")) for one in ledger.history()
            )
            return _Comparison(problems, str(report), report.ok, report.complete, known)
    except TacitError as refusal:
        if refusal.code not in _BROKEN:
            raise
        return _Comparison((refusal.what,))


def _entry(promise: Certificate) -> dict[str, object]:
    """Return the number and the hash of the entry that paid, as the certificate states them."""
    written = promise.fields["ledger"]
    return dict(written) if isinstance(written, dict) else {}
