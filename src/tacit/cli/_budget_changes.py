"""The ``tacit budget`` changes of a curator: ``open``, ``grow`` and ``unseal``, with a recorded reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli._budget import LedgerArgument, budget
from tacit.cli._fact_options import budget_text
from tacit.cli._ledger import KeyFileOption, find_ledger, open_ledger
from tacit.cli._output import JsonOption, printable, say, show_json
from tacit.errors import TacitError

if TYPE_CHECKING:
    from tacit.accounting import Budget
    from tacit.ledger import Account

__all__ = ["grow", "open_account", "unseal"]

_NewAccountOption = Annotated[str, typer.Option("--account", "-a", help="The account's name.")]
_NewEpsilonOption = Annotated[float | None, typer.Option("--epsilon", "-e", help="Its whole budget.")]
_NewDeltaOption = Annotated[float | None, typer.Option("--delta", help="The budget's delta.")]
_NewRhoOption = Annotated[
    float | None, typer.Option("--rho", help="Instead of epsilon: the budget in rho (zCDP).")
]
_StatementOption = Annotated[str, typer.Option("--statement", help="The reason; recorded permanently.")]
_DeciderOption = Annotated[str, typer.Option("--who", help="Who decides; recorded permanently.")]


@budget.command("open")
def open_account(
    where: LedgerArgument = None,
    *,
    account: _NewAccountOption,
    parent: Annotated[str, typer.Option("--parent", help="The account above it, which also pays.")],
    epsilon: _NewEpsilonOption = None,
    delta: _NewDeltaOption = None,
    rho: _NewRhoOption = None,
    key: KeyFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Open an account below a dataset's account, for a project or an analyst (tacit query --account)."""
    with open_ledger(find_ledger(where), key) as ledger:
        made = ledger.create_account(account, parent=parent, budget=_budget(epsilon, delta, rho))
    _report(made, f"opened {printable(account)} below {printable(parent)}", as_json=as_json)


@budget.command()
def grow(
    where: LedgerArgument = None,
    *,
    account: _NewAccountOption,
    statement: _StatementOption,
    who: _DeciderOption,
    epsilon: _NewEpsilonOption = None,
    delta: _NewDeltaOption = None,
    rho: _NewRhoOption = None,
    key: KeyFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Record a larger budget; what you do not give stays as it is. Then write it into tacit.toml too."""
    with open_ledger(find_ledger(where), key) as ledger:
        old = ledger.account(account).budget
        kept = {"epsilon": old.epsilon, "delta": old.delta, "rho": old.rho}
        given = {"epsilon": epsilon, "delta": delta, "rho": rho}
        larger = _budget(**{name: kept[name] if value is None else value for name, value in given.items()})  # type: ignore[arg-type]
        made = ledger.grow(account, larger, statement=statement, who=who)
    _report(made, f"raised the budget of {printable(account)}", as_json=as_json)


@budget.command()
def unseal(
    where: LedgerArgument = None,
    *,
    statement: _StatementOption,
    who: _DeciderOption,
    key: KeyFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove the seal after the disk was checked, if the ledger verifies."""
    with open_ledger(find_ledger(where), key) as ledger:
        report = ledger.unseal(statement=statement, who=who)
    if as_json:
        show_json({"unsealed": True, "entries": report.entries})
    else:
        say(f"unsealed: {report}")


def _budget(epsilon: float | None, delta: float | None, rho: float | None) -> Budget:
    from tacit.accounting import Budget

    if (epsilon is None) == (rho is None):
        given = "neither is given" if epsilon is None else "both are given"
        raise TacitError(
            "bad-parameter", f"a budget needs either --epsilon or --rho, but {given}", fix="--epsilon 0.5"
        )
    return Budget(epsilon, 0 if delta is None else delta, rho=rho)


def _report(account: Account, what: str, *, as_json: bool) -> None:
    if as_json:
        show_json({"account": account.name, "budget": account.budget, "left": str(account.filter.remaining)})
    else:
        say(f"{what}: {budget_text(account.budget)}; left: {account.filter.remaining}")
