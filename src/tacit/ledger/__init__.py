"""The ledger: a durable, shared, enforced privacy budget.

A charge is on the disk before anything is returned, is checked against every account above it in one
transaction, and is never taken back. `docs/explanation/ledger.md` says what is promised against whom.

- ``_ledger``: the class `Ledger`, the one surface of the room.
- ``_reading``: what it shows without changing anything.
- ``accounts``: what accounts declare, what is charged to them, what their curator decides.
- ``draws``: releases and runs against charges.
- ``stores``: where it is kept.
- ``checks``: what makes the record checkable.
- ``_arguments``, ``_refusals``: what its methods take, and how they refuse.
- ``_process_memory``: the ledgers in memory of one Python process.
"""

from __future__ import annotations

from tacit.calls import refuse_wrong_calls
from tacit.ledger._ledger import Ledger, open_ledger
from tacit.ledger._process_memory import (
    KEPT_IN_MEMORY,
    forget_memory,
    open_books,
    own_memory,
    source_places,
)
from tacit.ledger.accounts._accounts import Account
from tacit.ledger.accounts._blocks import Blocks
from tacit.ledger.checks._chain import Head
from tacit.ledger.checks._verification import Verification
from tacit.ledger.draws._receipts import Entry, Receipt, StoredRelease
from tacit.ledger.draws._runs import Instalment, LedgerRun

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
