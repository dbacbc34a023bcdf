"""The ledger's recovery from an older backup, as one function over a transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.ledger._account_operations import check_growth, grow_budget
from tacit.ledger._chain import Head
from tacit.ledger._lost_entries import count_as_spent, gap_key, gaps

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tacit.accounting import Budget
    from tacit.ledger._transaction import Transaction


def record_gap(
    transaction: Transaction,
    *,
    seen: Head | None,
    raised: Mapping[str, Budget],
    opened: Sequence[str] | None,
    statement: str,
    who: str,
) -> Head:
    """Record that the entries after the last one are lost, and count every account as spent."""
    for name, budget in raised.items():
        check_growth(transaction.account(name), budget)
    accounts = transaction.accounts()
    number = len(gaps(transaction.entry_keyed)) + 1
    tip = transaction.tip
    body: dict[str, object] = {
        "last": {"count": tip.seq, "hash": tip.mac.hex()},
        "seen": None if seen is None else {"count": seen.count, "hash": seen.hash},
        "opened": None if opened is None else list(opened),
        "statement": statement,
        "who": who,
    }
    transaction.append("gap", 0, body, key=gap_key(number))
    for account in accounts:
        now = account
        if account.name in raised:
            now = grow_budget(transaction, account.name, raised[account.name], statement=statement, who=who)
        count_as_spent(transaction, now)
    return Head(transaction.tip.seq, transaction.tip.mac.hex())
