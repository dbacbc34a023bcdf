"""The ledger's lost entries: what may have been spent in them counts as spent.

Argument. The entries after the backup are lost, so nobody knows what was charged in them; but each charge was
admitted by the filter of its account, and so everything released against an account stayed within its budget,
known and lost together. As one mechanism, the past of an account is therefore within its budget: (epsilon,
delta), or rho. `exhausted` puts this in place of everything that is on record. What the curator grants later
composes with it by addition.

For a budget with epsilon and delta, a filter spends at most one half of delta on charges, and keeps the other
half for its readings by Renyi orders or by rho. Here the past takes the whole delta. So it is charged one
half, no finite rho and no finite divergence at any order: these readings stay closed, and epsilons are added.
If the budget becomes (epsilon', delta'), later charges have deltas of at most delta'/2 - delta/2 in total.
All deltas then add up to at most delta + delta'/2 - delta/2, which is within delta'.

An account that was opened in the lost entries is not known. If it is opened again, its past may be lost too,
so it starts with nothing left, unless the curator has stated which accounts were opened there.

What was charged before the gap pays for one draw (or for the instalments of one run). The draw may have been
taken in the lost entries, and its answer seen. So no draw of an earlier charge can be taken after the gap,
and an earlier payment does not pay for a release that was drawn after it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tacit.ledger._block_totals import with_sums
from tacit.ledger._likeness import appearance

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tacit.accounting import Filter
    from tacit.ledger._accounts import Account
    from tacit.ledger._rows import EntryRow
    from tacit.ledger._transaction import Transaction


def gap_key(number: int) -> str:
    """Return the key of the entry that records the first, second, ... gap of a log; unique in the store."""
    return f"g:{number}"


def exhausted(filter_: Filter) -> Filter:
    """Return a filter of the same budget and orders that has paid for everything that it may have paid for.

    Examples
    --------
    >>> from tacit.accounting import Budget, Filter
    >>> print(exhausted(Filter.start(Budget(epsilon=3, delta=1e-6))).remaining)
    nothing of epsilon 3
    """
    budget = filter_.budget
    if budget.rho is not None:
        return with_sums(filter_, (None, budget.delta, budget.rho))
    return with_sums(filter_, (budget.epsilon, budget.delta / 2, None, *(None for _ in filter_.orders)))


def count_as_spent(transaction: Transaction, account: Account) -> Account:
    """Charge an account its whole budget, in place of what is on record."""
    empty = exhausted(account.filter)
    parts = (empty.epsilon, empty.delta, empty.rho)
    spend = ";".join("-" if part is None else str(part) for part in parts)
    row = transaction.append("lost", account.id, {}, levels=str(account.id), spend=spend)
    emptied = account.with_filter(empty, since=row.seq)
    transaction.change(emptied)
    return emptied


def may_have_been_lost(transaction: Transaction, name: str) -> bool:
    """Whether an account of this name may have been opened in entries that are lost."""
    for gap in gaps(transaction.entry_keyed):
        opened = json.loads(gap.body)["opened"]
        if opened is None or appearance(name) in {appearance(other) for other in opened}:
            return True
    return False


def lost_between(find: Callable[[str], EntryRow | None], number: int, later: int | None = None) -> bool:
    """Whether entries were lost after the entry of this number (and before a later one); find: by its key."""
    return any(number < gap.seq and (later is None or gap.seq < later) for gap in gaps(find))


def refresh_key(account: int, number: int) -> str:
    """Return the key of the entry that starts an account again for the first, second, ... time; unique."""
    return f"f:{account}:{number}"


def refreshed_since(find: Callable[[str], EntryRow | None], path: Sequence[Account], seq: int) -> str | None:
    """Return the name of an account that started again from zero after an entry; None if there is none.

    What was charged before that pays for the people who were in the data then, and for nobody else.
    """
    for account in path:
        number = 1
        while (row := find(refresh_key(account.id, number))) is not None:
            if row.seq > seq:
                return account.name
            number += 1
    return None


def gaps(find: Callable[[str], EntryRow | None]) -> list[EntryRow]:
    """Return the entries that record a gap of the log, in order; ``find`` finds an entry by its key."""
    found: list[EntryRow] = []
    while (row := find(gap_key(len(found) + 1))) is not None:
        found.append(row)
    return found
