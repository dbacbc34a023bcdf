"""``tacit budget open``, ``grow`` and ``unseal``: the curator's acts, each recorded with its reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.budget import Where, budget, safe, told
from tacit.cli.ledgers import KeyFile, find_ledger, open_ledger
from tacit.cli.output import JsonFlag, say, show_json
from tacit.errors import TacitError

if TYPE_CHECKING:
    from tacit.accounting import Budget
    from tacit.ledger import Account

__all__ = ["grow", "open_account", "unseal"]

_Name = Annotated[str, typer.Option("--account", "-a", help="The account's name.")]
_Epsilon = Annotated[float | None, typer.Option("--epsilon", "-e", help="Its whole budget.")]
_Delta = Annotated[float | None, typer.Option("--delta", help="The budget's delta.")]
_Rho = Annotated[float | None, typer.Option("--rho", help="Instead of epsilon: the budget in zCDP.")]
_Statement = Annotated[str, typer.Option("--statement", help="The reason; recorded for ever.")]
_Who = Annotated[str, typer.Option("--who", help="Who decides; recorded for ever.")]


@budget.command("open")
def open_account(
    where: Where = None,
    *,
    account: _Name,
    parent: Annotated[str, typer.Option("--parent", help="The account above it, which pays too.")],
    epsilon: _Epsilon = None,
    delta: _Delta = None,
    rho: _Rho = None,
    key: KeyFile = None,
    as_json: JsonFlag = False,
) -> None:
    """Open an account below a dataset's: a share for a project or an analyst (tacit query --account)."""
    with open_ledger(find_ledger(where), key) as ledger:
        made = ledger.create_account(account, parent=parent, budget=_budget(epsilon, delta, rho))
    _told(made, f"opened {safe(account)} below {safe(parent)}", as_json=as_json)


@budget.command()
def grow(
    where: Where = None,
    *,
    account: _Name,
    statement: _Statement,
    who: _Who,
    epsilon: _Epsilon = None,
    delta: _Delta = None,
    rho: _Rho = None,
    key: KeyFile = None,
    as_json: JsonFlag = False,
) -> None:
    """Record a larger budget; what is not given stays. Then write the same budget into tacit.toml."""
    with open_ledger(find_ledger(where), key) as ledger:
        old = ledger.account(account).budget
        kept = {"epsilon": old.epsilon, "delta": old.delta, "rho": old.rho}
        given = {"epsilon": epsilon, "delta": delta, "rho": rho}
        larger = _budget(**{name: kept[name] if value is None else value for name, value in given.items()})  # type: ignore[arg-type]
        made = ledger.grow(account, larger, statement=statement, who=who)
    _told(made, f"grown: {safe(account)}", as_json=as_json)


@budget.command()
def unseal(
    where: Where = None,
    *,
    statement: _Statement,
    who: _Who,
    key: KeyFile = None,
    as_json: JsonFlag = False,
) -> None:
    """Take the seal away after the disk was checked; only where the ledger verifies."""
    with open_ledger(find_ledger(where), key) as ledger:
        report = ledger.unseal(statement=statement, who=who)
    if as_json:
        show_json({"unsealed": True, "entries": report.entries})
    else:
        say(f"unsealed: {report}")


def _budget(epsilon: float | None, delta: float | None, rho: float | None) -> Budget:
    from tacit.accounting import Budget

    if (epsilon is None) == (rho is None):
        given = "neither" if epsilon is None else "both"
        raise TacitError(
            "bad-parameter", f"a budget is given by --epsilon or by --rho, got {given}", fix="--epsilon 0.5"
        )
    return Budget(epsilon, 0 if delta is None else delta, rho=rho)


def _told(account: Account, what: str, *, as_json: bool) -> None:
    if as_json:
        show_json({"account": account.name, "budget": account.budget, "left": str(account.filter.remaining)})
    else:
        say(f"{what}, budget {told(account.budget)}; left: {account.filter.remaining}")
