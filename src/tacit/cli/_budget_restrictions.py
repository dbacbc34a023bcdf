"""The ``tacit budget`` changes of a curator to what is allowed: freeze, last day, seal, an older backup."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli._budget import LedgerArgument, budget
from tacit.cli._budget_changes import (
    ChangedAccountOption,
    DeciderOption,
    StatementOption,
    report_account,
)
from tacit.cli._ledger import KeyFileOption, find_ledger, open_ledger
from tacit.cli._output import JsonOption, printable, say, show_json
from tacit.errors import TacitError

if TYPE_CHECKING:
    from datetime import date


@budget.command()
def freeze(
    where: LedgerArgument = None,
    *,
    account: ChangedAccountOption,
    statement: StatementOption,
    who: DeciderOption,
    key: KeyFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Stop every charge to an account and to the accounts below it; what was paid for stays readable."""
    with open_ledger(find_ledger(where), key) as ledger:
        made = ledger.freeze(account, statement=statement, who=who)
    report_account(made, f"froze {printable(account)}", as_json=as_json)


@budget.command()
def unfreeze(
    where: LedgerArgument = None,
    *,
    account: ChangedAccountOption,
    statement: StatementOption,
    who: DeciderOption,
    key: KeyFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Allow charges to a frozen account again."""
    with open_ledger(find_ledger(where), key) as ledger:
        made = ledger.unfreeze(account, statement=statement, who=who)
    report_account(made, f"unfroze {printable(account)}", as_json=as_json)


@budget.command()
def expires(
    where: LedgerArgument = None,
    *,
    account: ChangedAccountOption,
    on: Annotated[str, typer.Option("--on", help="The last day (in UTC), such as 2030-12-31, or never.")],
    statement: StatementOption,
    who: DeciderOption,
    key: KeyFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change the last day of an account."""
    from datetime import UTC, datetime

    day = _day(on)
    with open_ledger(find_ledger(where), key) as ledger:
        made = ledger.set_expiry(account, day, statement=statement, who=who)
    last = "never expires" if day is None else f"can be charged until the end of {day.isoformat()} (UTC)"
    if made.expires is not None and made.expires <= datetime.now(UTC):
        last = f"has expired (its last day was {on})"
    report_account(made, f"{printable(account)} {last}", as_json=as_json)


@budget.command()
def unseal(
    where: LedgerArgument = None,
    *,
    statement: StatementOption,
    who: DeciderOption,
    key: KeyFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove the seal after you have checked the disk; the ledger is verified first."""
    with open_ledger(find_ledger(where), key) as ledger:
        report = ledger.unseal(statement=statement, who=who)
    if as_json:
        show_json({"unsealed": True, "entries": report.entries})
    else:
        say(f"unsealed: {report}")


@budget.command("continue-from-backup")
def continue_from_backup(
    where: LedgerArgument = None,
    *,
    statement: StatementOption,
    who: DeciderOption,
    witness: Annotated[
        Path | None,
        typer.Option(
            help="A witness file that shows the missing entries, if the ledger's own witness does not."
        ),
    ] = None,
    opened: Annotated[
        list[str] | None,
        typer.Option("--opened", help="An account that was opened in the lost entries; may be repeated."),
    ] = None,
    none_opened: Annotated[
        bool, typer.Option("--none-opened", help="State that no account was opened in the lost entries.")
    ] = False,
    key: KeyFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Continue from an older backup because the latest copy is lost: every account counts as spent."""
    known = opened or ([] if none_opened else None)
    with open_ledger(find_ledger(where), key) as ledger:
        before = ledger.head.count
        report = ledger.continue_from_backup(statement=statement, who=who, witness=witness, opened=known)
    if as_json:
        show_json({"continued_after": before, "entries": report.entries, "ok": report.ok})
    else:
        say(
            f"the ledger continues after entry {before}; every budget counts as spent in full: {report}",
            "raise a budget with tacit budget grow, or set a total back to zero with tacit budget refresh",
            *([] if known is not None else ["accounts that are opened from now on start with nothing left"]),
        )


def _day(text: str) -> date | None:
    """Read a last day, or never."""
    from datetime import date

    if text == "never":
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise TacitError(
            "bad-parameter",
            f"--on {printable(text)}: this is not a date",
            why="a last day is a date in the form year-month-day",
            fix="--on 2030-12-31, or --on never",
        ) from None
