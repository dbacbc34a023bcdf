"""The ledger: a durable, shared, enforced privacy budget.

A charge is on the disk before anything is returned, is checked against every account above it in one
transaction, and is never taken back. `docs/explanation/ledger.md` says what is promised against whom.
"""

from __future__ import annotations

from tacit.calls import refuse_wrong_calls
from tacit.ledger._accounts import Account
from tacit.ledger._blocks import Blocks
from tacit.ledger._chain import Head
from tacit.ledger._ledger import Ledger, open_ledger
from tacit.ledger._ledger_run import Instalment, LedgerRun
from tacit.ledger._process_memory import (
    KEPT_IN_MEMORY,
    forget_memory,
    open_books,
    own_memory,
    source_places,
)
from tacit.ledger._receipts import Entry, Receipt, StoredRelease
from tacit.ledger._verification import Verification

__all__ = [
    "KEPT_IN_MEMORY",
    "Account",
    "Blocks",
    "Entry",
    "Head",
    "Instalment",
    "Ledger",
    "LedgerRun",
    "Receipt",
    "StoredRelease",
    "Verification",
    "forget_memory",
    "open_books",
    "open_ledger",
    "own_memory",
    "source_places",
]

refuse_wrong_calls(__name__, __all__)
