"""Amounts as the service writes them: exact numbers as text, a float beside each, and words for people."""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.accounting import Budget, Filter

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from tacit.accounting import Remaining
    from tacit.core import Plan
    from tacit.ledger import Account


def amount_document(
    epsilon: Fraction | None = None, delta: Fraction = Fraction(0), rho: Fraction | None = None
) -> dict[str, Any]:
    """Return an amount of privacy loss: ``exact`` texts and ``value`` floats under the same names.

    Examples
    --------
    >>> amount_document(Fraction(1, 2))["exact"]
    {'epsilon': '1/2', 'delta': '0', 'rho': None}
    """
    parts = {"epsilon": epsilon, "delta": delta, "rho": rho}
    shown = {name: one for name, one in parts.items() if one is not None and (one or name != "delta")}
    return {
        "exact": {name: None if one is None else str(one) for name, one in parts.items()},
        "value": {name: None if one is None else float(one) for name, one in parts.items()},
        "words": ", ".join(f"{name} {float(one):g}" for name, one in shown.items() if one) or "nothing",
    }


def budget_text(budget: Budget) -> dict[str, str | None]:
    """Return a budget as a policy or a request keeps it: exact numbers as text.

    Examples
    --------
    >>> budget_text(Budget(rho=0.1))
    {'epsilon': None, 'delta': '0', 'rho': '1/10'}
    """
    parts = (("epsilon", budget.epsilon), ("delta", budget.delta), ("rho", budget.rho))
    return {name: None if one is None else str(one) for name, one in parts}


def budget_from(written: Mapping[str, str | Fraction | None]) -> Budget:
    """Read a budget from exact texts or numbers; what is missing or empty is not part of it.

    Examples
    --------
    >>> budget_from({"epsilon": "1/2", "rho": ""})
    Budget(epsilon=0.5)
    """
    given = {name: Fraction(one) for name, one in written.items() if one not in (None, "")}
    return Budget(given.get("epsilon"), given.get("delta", Fraction(0)), rho=given.get("rho"))


def budget_document(budget: Budget) -> dict[str, Any]:
    """Return a budget as an amount."""
    return amount_document(budget.epsilon, budget.delta, budget.rho)


def main_name(budget: Budget) -> str:
    """Return the number in which a budget is counted: ``epsilon`` or ``rho``."""
    return "epsilon" if budget.rho is None else "rho"


def left_document(left: Remaining) -> dict[str, Any]:
    """Return what is left, in the number in which the budget is counted."""
    budget = left.of
    name = "epsilon" if budget is None else main_name(budget)
    shown = amount_document(**{name: getattr(left, name) or Fraction(0)}, delta=left.delta)
    return {**shown, "words": str(left)}


def spent_document(account: Account) -> dict[str, Any]:
    """Return what was spent: the budget less what is left, so that the three always agree."""
    name, left = main_name(account.budget), account.filter.remaining
    whole = getattr(account.budget, name)
    return amount_document(**{name: whole - (getattr(left, name) or Fraction(0))})


def plan_budget(plan: Plan[Any]) -> Budget:
    """Return the budget that one plan fills: its cost in epsilon or in rho, else what it promises.

    Examples
    --------
    >>> import tacit as tc
    >>> visits = tc.protect("visits.csv", unit="pid", budget=tc.Budget(epsilon=1))
    >>> plan_budget(visits.agg(n=tc.count()).plan(epsilon=0.25))
    Budget(epsilon=0.25)
    """
    cost, spend = plan.cost, plan.cost.spend
    tried = []
    if spend.epsilon:
        tried.append(Budget(spend.epsilon, spend.delta))
    elif spend.epsilon is None and spend.rho:
        tried.append(Budget(rho=spend.rho, delta=spend.delta))
    for budget in tried:
        start = Filter.start(budget)
        if start.charged(start.spend_of(cost), cost.fits) is not None:
            return budget
    return Budget(plan.promised.get("epsilon"), plan.promised.get("delta", 0), rho=plan.promised.get("rho"))


def last_day_of(expires: datetime | None) -> str:
    """Return the last day of an account as text; empty without one."""
    return "" if expires is None else (expires - timedelta(microseconds=1)).date().isoformat()
