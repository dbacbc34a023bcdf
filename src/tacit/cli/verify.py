"""``tacit verify``: hold a certificate against the ledger that it names."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from tacit.cli.app import app
from tacit.cli.ledgers import KeyFile, find_ledger, open_ledger, what_is_not_proven
from tacit.cli.output import JsonFlag, say, show_json
from tacit.errors import TacitError

__all__ = ["verify"]

#: What a damaged or changed ledger is refused with: then the certificate is not verified.
_BROKEN = frozenset({"ledger-damaged", "ledger-tampered", "ledger-rolled-back"})


@app.command()
def verify(
    certificate: Annotated[Path, typer.Argument(help="The certificate's file.")],
    ledger: Annotated[
        str | None,
        typer.Option("--ledger", envvar="TACIT_LEDGER", help="A ledger's path or postgresql:// address."),
    ] = None,
    key: KeyFile = None,
    config: Annotated[
        Path, typer.Option("--config", "-c", envvar="TACIT_CONFIG", help="Where --ledger is not given.")
    ] = Path("tacit.toml"),
    *,
    as_json: JsonFlag = False,
) -> None:
    """Check a certificate against the ledger, and the ledger itself; exit with 3 if either fails."""
    from tacit.core import Certificate

    if not certificate.is_file():
        raise TacitError(
            "bad-certificate",
            f"{certificate} is not there",
            fix='the file that tacit query "..." --certificate FILE.json wrote',
        )
    promise = Certificate.load(certificate)
    where = find_ledger(ledger, config, say="--ledger")
    state, unproven, other = "", False, False
    try:
        with open_ledger(where, key) as book:
            report = book.verify()
            state, unproven = str(report), not report.complete
            problems = list(report.problems) or promise.problems(book)
            other = report.ok and any("another hash" in one or "no such entry" in one for one in problems)
    except TacitError as refusal:
        if refusal.code not in _BROKEN:
            raise
        problems = [refusal.what]
    entry = dict(promise.fields["ledger"]) if isinstance(promise.fields["ledger"], dict) else {}
    if as_json:
        show_json(
            {
                "ok": not problems,
                "problems": problems,
                "certificate": promise.plan,
                "entry": entry.get("entry"),
            }
        )
    elif problems:
        say(Text(f"NOT verified: {certificate}", style="red"), *(f"  - {one}" for one in problems))
        if other:
            say(f"compared with {where}, which is intact: another ledger? --ledger FILE")
    else:
        say(
            Text(f"verified: entry {entry.get('entry')} of {where} paid for it", style="green"),
            f"ledger: {state}",
            *([what_is_not_proven(f"tacit budget verify {where} --witness FILE")] if unproven else []),
        )
    if problems:
        raise typer.Exit(3)
