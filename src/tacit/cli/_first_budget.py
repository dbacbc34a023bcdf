"""The budget of a dataset that a command declares by itself: given the first time, kept in the ledger."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.errors import TacitError
from tacit.fixes import Say

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.accounting import Budget
    from tacit.core import Plan
    from tacit.ledger import Account, Ledger


def given_budget(given: float, goal: Mapping[str, Any], delta: float = 0) -> Budget:
    """Return a budget in the measure of the question: in rho if it is asked with rho, else in epsilon.

    The delta of the budget is the larger one of ``delta`` and the question's.

    Examples
    --------
    >>> given_budget(3, {"rho": None, "delta": 1e-6}), given_budget(3, {"rho": 0.1, "delta": 0})
    (Budget(epsilon=3, delta=1e-06), Budget(rho=3))
    """
    from tacit.accounting import Budget

    if goal["rho"] is not None:
        return Budget(rho=given)
    return Budget(epsilon=given, delta=max(delta, goal["delta"] or 0))


def whole_budget(
    name: str, ledger: str, given: float | None, goal: Mapping[str, Any], delta: float = 0
) -> Budget:
    """Return the budget that was given, or that of the account; refuse where there is neither."""
    if given is not None:
        return given_budget(given, goal, delta)
    if (account := find_account(name, ledger)) is not None:
        held: Budget = account.budget
        return held
    measure = "epsilon" if goal["rho"] is None else "rho"
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
    name: str, where: str, made: Plan[Any], trial: Ledger, *, parent: object = None
) -> None:
    """Refuse a first question that cannot be paid before it opens an account for good.

    The account would keep a budget that nobody has used yet and that may be a typing error.

    Parameters
    ----------
    name, where, made
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
            _check_charge(above, made)
            above = None if above.parent is None else find_account(above.parent, where)
        trial.charge(name, made.cost, plan=made.hash)
    except TacitError as refusal:
        raise in_promised_words(refusal, made.promised) from None


def _check_charge(account: Account, made: Plan[Any]) -> None:
    """Refuse a plan that does not fit into what is left of an account, in the words of its ledger."""
    try:
        account.filter.after(account.filter.spend_of(made.cost))
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
