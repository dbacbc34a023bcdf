"""The ledger and the budget of a command.

The ledger is the one that the command names, otherwise the one that the config names. A dataset that a
command declares by itself gets its budget the first time; the ledger keeps it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli._context import note_dataset, note_ledger
from tacit.errors import TacitError
from tacit.fixes import Say

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.accounting import Budget
    from tacit.core import Plan
    from tacit.ledger import Account, Ledger


KeyFileOption = Annotated[
    Path | None, typer.Option("--key", help="The ledger's key file, if it is not beside the ledger.")
]


_CONFIG, _LEDGER = Path("tacit.toml"), Path("tacit.ledger")


def find_ledger(ledger: str | None, config: Path | None = None, *, named_by: str = "LEDGER") -> str:
    """Return where the ledger is: as given, or as the config (TACIT_CONFIG, else tacit.toml here) says.

    Without a config it is tacit.ledger here, if there is one.
    """
    if ledger is not None:
        return ledger
    file = config if config is not None else Path(os.environ.get("TACIT_CONFIG") or "tacit.toml")
    if file == _CONFIG and not file.exists() and _LEDGER.exists():
        return str(_LEDGER)  # where tacit map, graph and genome keep a budget
    if not file.exists():
        raise TacitError(
            "not-a-ledger",
            f"no ledger is named, and the file {file} that would name one does not exist",
            fix=f"{named_by} path/of/tacit.ledger, or --config path/of/tacit.toml"
            if named_by.startswith("--")
            else "tacit budget path/of/tacit.ledger",
        )
    from tacit.tables import open_config

    note_dataset(file, None, "")  # a refusal of the config names its line
    where = open_config(file).ledger
    note_dataset(None, None, "")
    if where is None:
        raise TacitError(
            "not-a-ledger",
            f"{file} declares no ledger",
            why="without one, the budget starts again with every session",
            fix=f'{file}, first line: ledger = "tacit.ledger"',
        )
    return where


def open_ledger(where: str, key: Path | None = None, *, create: bool = False) -> Ledger:
    """Open a ledger that exists; create one only if asked."""
    from tacit.ledger import Ledger

    note_ledger(where)
    return Ledger.open(where, key=key, create=create)


def note_on_completeness(how: str, *, is_complete: bool = True) -> str:
    """Explain what "completeness not proven" means, and how to prove it."""
    checked = "consistent: no entry was changed, and every total adds up. " if is_complete else ""
    return (
        f"{checked}The latest entries could still have been cut off; only a copy of the witness file that "
        f"was kept elsewhere can rule this out ({how})"
    )


def given_budget(amount: float, goal: Mapping[str, Any], delta: float = 0) -> Budget:
    """Return a budget in the measure of the question: in rho if it is asked with rho, else in epsilon.

    The delta of the budget is the larger one of ``delta`` and the question's.

    Examples
    --------
    >>> given_budget(3, {"rho": None, "delta": 1e-6}), given_budget(3, {"rho": 0.1, "delta": 0})
    (Budget(epsilon=3, delta=1e-06), Budget(rho=3))
    """
    from tacit.accounting import Budget

    if _in_rho(goal):
        return Budget(rho=amount)
    return Budget(epsilon=amount, delta=max(delta, goal["delta"] or 0))


def _in_rho(goal: Mapping[str, Any]) -> bool:
    """Return whether a question is asked with a rho."""
    return goal["rho"] is not None or goal.get("total") == "rho"


def whole_budget(
    name: str, ledger: str, amount: float | None, goal: Mapping[str, Any], delta: float = 0
) -> Budget:
    """Return the budget that was given, or that of the account; refuse where there is neither."""
    if amount is not None:
        return given_budget(amount, goal, delta)
    if (account := find_account(name, ledger)) is not None:
        kept_budget: Budget = account.budget
        return kept_budget
    measure = "rho" if _in_rho(goal) else "epsilon"
    raise TacitError(
        "bad-parameter",
        f"the ledger {ledger} has no budget for {name!r} yet",
        why="the curator decides once how much may be learned in total; nothing was charged",
        fix=Say(f"add --budget 3, the whole budget in {measure}"),
    )


def left_now(name: str, ledger: str) -> list[str]:
    """Return a line that says what is left of an account; nothing if there is no such account yet."""
    from tacit.ledger import open_ledger

    account = find_account(name, ledger)
    if account is None:
        return []
    return [f"left now, before this question: {open_ledger(ledger).remaining(account)}"]


def check_first_charge(
    name: str, where: str, plan: Plan[Any], trial: Ledger, *, parent: object = None
) -> None:
    """Refuse a first question that cannot be paid before it opens an account for good.

    The account would keep a budget that nobody has used yet and that may be a typing error.

    Parameters
    ----------
    name, where, plan
        The dataset, its ledger, and the plan.
    trial
        A ledger in memory with the budget that the dataset would get.
    parent
        The declared account above the dataset's, if any.
    """
    from tacit.core import in_promised_words

    if find_account(name, where) is not None:
        return
    try:
        above = find_account(str(parent), where) if parent else None
        while above is not None:
            check_charge(above, plan)
            above = None if above.parent is None else find_account(above.parent, where)
        trial.charge(name, plan.cost, plan=plan.hash, promise=plan.promise)
    except TacitError as refusal:
        raise in_promised_words(refusal, plan.promised) from None


def check_charge(account: Account, plan: Plan[Any]) -> None:
    """Refuse a plan that does not fit into what is left of an account, in the words of its ledger."""
    try:
        account.filter.after(account.filter.spend_of(plan.cost, plan.promise))
    except TacitError as refusal:
        where = f"account {account.name!r}"
        raise refusal.but(what=f"{where}: {refusal.what}", where=where) from None


def find_account(name: str, ledger: str) -> Account | None:
    """Return the account of this name, or None; makes neither a ledger nor an account."""
    from tacit.ledger import open_ledger

    if not Path(ledger).exists() and "://" not in ledger:
        return None
    try:
        return open_ledger(ledger).account(name)
    except TacitError as refusal:
        if refusal.code != "unknown-account":
            raise
        return None
