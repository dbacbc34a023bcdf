"""The ledger: a durable, shared, enforced privacy budget.

A charge is on the disk before anything is returned, is checked against every account above it in one
transaction, and is never taken back. See `docs/explanation/ledger.md` for what is promised against whom.
"""

from __future__ import annotations

from tacit.ledger.accounts import Account
from tacit.ledger.chain import Head
from tacit.ledger.ledger import Ledger
from tacit.ledger.receipts import Entry, Receipt, StoredRelease
from tacit.ledger.verify import Verification

__all__ = ["Account", "Entry", "Head", "Ledger", "Receipt", "StoredRelease", "Verification"]


def open_ledger(given: object) -> Ledger:
    """Temporary."""
    if given is None:
        return Ledger.memory()
    return given if isinstance(given, Ledger) else Ledger.open(given)  # type: ignore[arg-type]
