"""Accounts as people see them: the ledger has budgets and totals, the service names and purposes."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.service.curation._amounts import (
    budget_document,
    last_day_of,
    left_document,
    main_name,
    spent_document,
)
from tacit.service.curation._people import names_of

if TYPE_CHECKING:
    from tacit.accounting import Budget
    from tacit.ledger import Account
    from tacit.service._database import ServiceRow
    from tacit.service._service import Service


def accounts_below(service: Service, dataset: str) -> tuple[Account, list[Account]]:
    """Return a dataset's own account and the accounts below it, in the order in which they were opened."""
    every = service.ledger.accounts()
    own = next(account for account in every if account.name == dataset)
    return own, [account for account in every if own.id in account.path[1:]]


def account_document(
    account: Account, own: Account, row: ServiceRow | None, *, name: str, viewer: str
) -> dict[str, Any]:
    """Return an account: its budget, what is spent and left, whose it is and for what.

    ``left_to_use`` is the smaller of what is left here and what is left of the dataset's budget. ``mine``
    says whether the viewer may spend it, and ``filter`` holds what was spent in every detail, so that a
    client can work out what fits.
    """
    known = row or {"person": "", "purpose": "", "request": "", "plan": "", "created": ""}
    return {
        "account": account.name,
        "parent": account.parent,
        "person": known["person"],
        "person_name": name,
        "purpose": known["purpose"],
        "request": known["request"],
        "plan": known["plan"],
        "created": known["created"],
        "budget": budget_document(account.budget),
        "spent": spent_document(account),
        "left": left_document(account.filter.remaining),
        "left_to_use": left_document(smaller_left(account, own).filter.remaining),
        "last_day": last_day_of(account.expires),
        "frozen": account.frozen,
        "mine": bool(viewer) and known["person"] == viewer,
        "filter": account.filter.to_json(),
        "unused": row is None,
    }


def smaller_left(account: Account, own: Account) -> Account:
    """Return the account, of the two, that has less left; its own where the two cannot be compared."""
    mine, whole = main_name(account.budget), main_name(own.budget)
    if mine != whole:
        return account
    left, above = getattr(account.filter.remaining, mine), getattr(own.filter.remaining, whole)
    return own if (above or Fraction(0)) < (left or Fraction(0)) else account


def is_overbooked(own: Account, below: list[Account]) -> bool:
    """Whether the accounts directly below a dataset may together spend more than it has left."""
    return _unpromised(own, below) < 0


def _unpromised(own: Account, below: list[Account]) -> Fraction:
    """Return what is left of a dataset's budget less what the accounts directly below it have left."""
    name = main_name(own.budget)
    lent = [
        getattr(account.filter.remaining, name) or Fraction(0)
        for account in below
        if account.parent == own.name and not account.frozen
    ]
    return (getattr(own.filter.remaining, name) or Fraction(0)) - sum(lent, Fraction(0))


def after_approval(
    kind: str, asked: Budget | None, own: Account, below: list[Account]
) -> dict[str, Any] | None:
    """Return what would be left if a request were approved, as an amount and as a sentence.

    For an allotment or a plan it is what nobody could spend yet if all accounts were used up; it is negative
    if they are larger together than what is left. None if the amount is counted in another number than the
    dataset's budget.

    Parameters
    ----------
    kind
        ``allotment``, ``plan``, ``growth`` or ``refresh``.
    asked
        The amount of the request; None for a refresh.
    own, below
        The dataset's account and the accounts below it.
    """
    name = main_name(own.budget)
    if asked is not None and main_name(asked) != name:
        return None
    amount = Fraction(0) if asked is None else getattr(asked, name)
    if kind == "growth":
        left = (getattr(own.filter.remaining, name) or Fraction(0)) + amount - getattr(own.budget, name)
        sentence = f"{name} {float(left):g} of {float(amount):g} is left of the dataset's budget."
    elif kind == "refresh":
        left = getattr(own.budget, name)
        sentence = f"{name} {float(left):g} is left: the total starts again from zero."
    else:
        left = _unpromised(own, below) - amount
        sentence = (
            f"if all accounts are used up, {name} {float(left):g} of the dataset's budget is left."
            if left >= 0
            else f"the accounts together are larger than what is left, by {name} {-float(left):g}. "
            "Those who ask first get answers; the dataset's budget cannot be exceeded."
        )
    return {"exact": {name: str(left)}, "value": {name: float(left)}, "sentence": sentence}


def account_documents(
    service: Service, dataset: str, viewer: str, *, oversees: bool = False
) -> list[dict[str, Any]]:
    """Return the accounts below a dataset that a viewer sees: the own ones; who oversees it sees all."""
    own, below = accounts_below(service, dataset)
    rows = {
        row["name"]: row for row in service.database.rows("SELECT * FROM accounts WHERE dataset = ?", dataset)
    }
    names = names_of(service.database, (row["person"] for row in rows.values()))
    return [
        account_document(account, own, row, name=names.get(row["person"], "") if row else "", viewer=viewer)
        for account in below
        if ((row := rows.get(account.name)) is not None and row["person"] == viewer) or oversees
    ]
