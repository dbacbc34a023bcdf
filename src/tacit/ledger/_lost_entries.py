"""The ledger's lost entries: what may have been spent in them counts as spent.

Argument. The entries after the backup are lost, so nobody knows what was charged in them; but each charge was
admitted by the filter of its account, and so everything released against an account stayed within its budget,
known and lost together. As one mechanism, the past of an account is therefore within its budget: (epsilon,
delta), or rho. This is what `whole_budget` charges in place of everything that is on record. What the curator
grants later composes with it by addition. Of a budget with delta, a filter lets charges add up to one half;
the past is charged this half, no finite rho and no finite divergence at any order. If x more is granted
later, the total delta is at most delta + x / 2, and the budget allows delta + x.

An account that was opened in the lost entries is not known. If it is opened again, its past may be lost too,
so it starts with nothing left, unless the curator has stated which accounts were opened there.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tacit.accounting import Spend
from tacit.ledger._block_totals import with_sums
from tacit.ledger._chain import spend_to_text
from tacit.ledger._likeness import appearance

if TYPE_CHECKING:
    from tacit.accounting import Budget, Filter
    from tacit.ledger._accounts import Account
    from tacit.ledger._rows import EntryRow
    from tacit.ledger._transaction import Transaction

__all__ = ["count_as_spent", "gap_key", "gaps", "may_have_been_lost", "spent_filter", "whole_budget"]


def gap_key(number: int) -> str:
    """Return the key of the entry that records the first, second, ... gap of a log; unique in the store."""
    return f"g:{number}"


def whole_budget(budget: Budget) -> Spend:
    """Return the charge that stands for everything that a budget may have been spent on.

    Examples
    --------
    >>> from tacit.accounting import Budget, Filter
    >>> print(Filter.start(Budget(epsilon=3, delta=1e-6)).after(whole_budget(Budget(3, 1e-6))).remaining)
    nothing of epsilon 3
    """
    if budget.rho is not None:
        return Spend(None, budget.delta, budget.rho)
    return Spend(budget.epsilon, budget.delta / 2, None)


def spent_filter(filter_: Filter) -> Filter:
    """Return a filter from which the whole budget was spent, with no finite rho and no finite divergence.

    Examples
    --------
    >>> from tacit.accounting import Budget, Filter
    >>> print(spent_filter(Filter.start(Budget(epsilon=3, delta=1e-6))).remaining)
    nothing of epsilon 3
    """
    spend = whole_budget(filter_.budget)
    rest: tuple[None, ...] = (None,) * len(filter_.orders)
    rho = None if filter_.budget.rho is None else spend.rho
    return with_sums(filter_, (spend.epsilon, spend.delta, rho, *rest))


def count_as_spent(transaction: Transaction, account: Account) -> Account:
    """Charge an account its whole budget, in place of what is on record."""
    spend = whole_budget(account.budget)
    row = transaction.append("lost", account.id, {}, levels=str(account.id), spend=spend_to_text(spend))
    emptied = account.with_filter(spent_filter(account.filter), since=row.seq)
    transaction.change(emptied)
    return emptied


def may_have_been_lost(transaction: Transaction, name: str) -> bool:
    """Whether an account of this name may have been opened in entries that are lost."""
    for gap in gaps(transaction):
        opened = json.loads(gap.body)["opened"]
        if opened is None or appearance(name) in {appearance(other) for other in opened}:
            return True
    return False


def gaps(transaction: Transaction) -> list[EntryRow]:
    """Return the entries that record a gap of the log, in order."""
    found: list[EntryRow] = []
    while (row := transaction.entry_keyed(gap_key(len(found) + 1))) is not None:
        found.append(row)
    return found
