"""The ``tacit budget`` changes of a curator, each with a reason.

``open``, ``grow`` and ``refresh`` change budgets. Others change what is allowed: freeze, a last day, a
seal, an older backup.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli._budget import LedgerArgument, budget
from tacit.cli._ledger import KeyFileOption, find_ledger, open_ledger
from tacit.cli._options import budget_text
from tacit.cli._output import JsonOption, printable, say, show_json
from tacit.errors import TacitError

if TYPE_CHECKING:
    from datetime import date

    from tacit.accounting import Budget
    from tacit.ledger import Account


ChangedAccountOption = Annotated[str, typer.Option("--account", "-a", help="The account's name.")]
_NewEpsilonOption = Annotated[
    float | None, typer.Option("--epsilon", "-e", help="The whole budget of the account.")
]
_NewDeltaOption = Annotated[float | None, typer.Option("--delta", help="The budget's delta.")]
_NewRhoOption = Annotated[
    float | None, typer.Option("--rho", help="Instead of epsilon: the budget in rho (zCDP).")
]
StatementOption = Annotated[str, typer.Option("--statement", help="The reason; recorded permanently.")]
DeciderOption = Annotated[str, typer.Option("--who", help="Who decides; recorded permanently.")]


@budget.command("open")
def open_account(
    where: LedgerArgument = None,
    *,
    account: ChangedAccountOption,
    parent: Annotated[
        str | None, typer.Option("--parent", help="The account above it, which also pays.")
    ] = None,
    unit: Annotated[
        str | None, typer.Option("--unit", help="Without --parent: the unit that datasets below it protect.")
    ] = None,
    epsilon: _NewEpsilonOption = None,
    delta: _NewDeltaOption = None,
    rho: _NewRhoOption = None,
    key: KeyFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Open an account below a dataset (for a project or an analyst), or one that several datasets share."""
    if parent is None and unit is None:
        raise TacitError(
            "bad-parameter",
            "an account needs either --parent or --unit, but neither is given",
            why="an account below a dataset has the dataset's unit; an account above datasets must name it",
            fix="--parent DATASET, or --unit COLUMN",
        )
    is_first = where is None and parent is None  # tacit.toml names the ledger, and this is its first account
    budget = _budget(epsilon, delta, rho)
    with open_ledger(find_ledger(where), key, create=is_first) as ledger:
        account_opened = ledger.create_account(account, parent=parent, unit=unit, budget=budget)
    below = "" if parent is None else f" below {printable(parent)}"
    report_account(account_opened, f"opened {printable(account)}{below}", as_json=as_json)


@budget.command()
def grow(
    where: LedgerArgument = None,
    *,
    account: ChangedAccountOption,
    statement: StatementOption,
    who: DeciderOption,
    epsilon: _NewEpsilonOption = None,
    delta: _NewDeltaOption = None,
    rho: _NewRhoOption = None,
    key: KeyFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Record a larger budget; values that you do not give stay as they are. Write it into tacit.toml too."""
    with open_ledger(find_ledger(where), key) as ledger:
        old = ledger.account(account).budget
        before = {"epsilon": old.epsilon, "delta": old.delta, "rho": old.rho}
        amounts = {"epsilon": epsilon, "delta": delta, "rho": rho}
        larger = _budget(**{name: before[name] if new is None else new for name, new in amounts.items()})  # type: ignore[arg-type]
        grown = ledger.grow(account, larger, statement=statement, who=who)
    report_account(grown, f"raised the budget of {printable(account)}", as_json=as_json)


@budget.command()
def refresh(
    where: LedgerArgument = None,
    *,
    account: ChangedAccountOption,
    statement: StatementOption,
    who: DeciderOption,
    key: KeyFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Start a total again from zero, because other people are in the data now: you state this on record."""
    with open_ledger(find_ledger(where), key) as ledger:
        refreshed = ledger.refresh(account, statement=statement, who=who)
    report_account(refreshed, f"started the total of {printable(account)} again", as_json=as_json)


def _budget(epsilon: float | None, delta: float | None, rho: float | None) -> Budget:
    from tacit.accounting import Budget

    if (epsilon is None) == (rho is None):
        mistake = "neither is given" if epsilon is None else "both are given"
        raise TacitError(
            "bad-parameter", f"a budget needs either --epsilon or --rho, but {mistake}", fix="--epsilon 0.5"
        )
    return Budget(epsilon, 0 if delta is None else delta, rho=rho)


def report_account(account: Account, change: str, *, as_json: bool) -> None:
    """Say what was changed, and what the account has left."""
    if as_json:
        show_json({"account": account.name, "budget": account.budget, "left": str(account.filter.remaining)})
    else:
        say(f"{change}: {budget_text(account.budget)}; left: {account.filter.remaining}")


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
        frozen = ledger.freeze(account, statement=statement, who=who)
    report_account(frozen, f"froze {printable(account)}", as_json=as_json)


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
        unfrozen = ledger.unfreeze(account, statement=statement, who=who)
    report_account(unfrozen, f"unfroze {printable(account)}", as_json=as_json)


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
        changed = ledger.set_expiry(account, day, statement=statement, who=who)
    expiry_words = (
        "never expires" if day is None else f"can be charged until the end of {day.isoformat()} (UTC)"
    )
    if changed.expires is not None and changed.expires <= datetime.now(UTC):
        expiry_words = f"has expired (its last day was {on})"
    report_account(changed, f"{printable(account)} {expiry_words}", as_json=as_json)


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
