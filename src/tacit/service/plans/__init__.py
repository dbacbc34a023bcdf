"""Questions before they are paid for: plan cards, the ask page, rehearsals on invented rows, and audits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.service.plans._ask_page import ASK_OPERATIONS, accounts_of
from tacit.service.plans._asked_plans import plan_of
from tacit.service.plans._asks import MOST_KEYS, MOST_SQL, AskBody, ask_document, digest_of_ask, read_ask
from tacit.service.plans._card_operations import CARD_OPERATIONS
from tacit.service.plans._cards import account_part, card_of, public_part, shelf_of
from tacit.service.plans._certificate_checks import CERTIFICATE_OPERATIONS
from tacit.service.plans._ledger_operations import LEDGER_OPERATIONS, ledger_state
from tacit.service.plans._paying import own_account
from tacit.service.plans._sandbox import SANDBOX_OPERATIONS

if TYPE_CHECKING:
    from tacit.service._operations import Operation

__all__ = [
    "MOST_KEYS",
    "MOST_SQL",
    "OPERATIONS",
    "AskBody",
    "account_part",
    "accounts_of",
    "ask_document",
    "card_of",
    "digest_of_ask",
    "ledger_state",
    "own_account",
    "plan_of",
    "public_part",
    "read_ask",
    "shelf_of",
]

OPERATIONS: tuple[Operation, ...] = (
    *CARD_OPERATIONS,
    *ASK_OPERATIONS,
    *SANDBOX_OPERATIONS,
    *LEDGER_OPERATIONS,
    *CERTIFICATE_OPERATIONS,
)
