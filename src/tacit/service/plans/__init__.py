"""Questions before they are paid for: plan cards, the ask page, rehearsals on invented rows, and audits.

In reading order:

- `_asks`: what is asked, and the plan of it
- `_cards`: what a question costs and means
- `_ask_page`: the editor, its fixes and the sandbox
- `_ledger_checks`: the ledger and certificates for auditors
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.service.plans._ask_page import ASK_OPERATIONS, SANDBOX_OPERATIONS, accounts_of
from tacit.service.plans._asks import (
    MAX_KEYS,
    MAX_SQL,
    AskBody,
    ask_document,
    digest_of_ask,
    plan_of,
    read_ask,
)
from tacit.service.plans._cards import (
    CARD_OPERATIONS,
    account_part,
    card_of,
    own_account,
    plan_cache,
    public_part,
)
from tacit.service.plans._ledger_checks import CERTIFICATE_OPERATIONS, LEDGER_OPERATIONS, ledger_state

if TYPE_CHECKING:
    from tacit.service._operations import Operation

__all__ = [
    "MAX_KEYS",
    "MAX_SQL",
    "OPERATIONS",
    "AskBody",
    "account_part",
    "accounts_of",
    "ask_document",
    "card_of",
    "digest_of_ask",
    "ledger_state",
    "own_account",
    "plan_cache",
    "plan_of",
    "public_part",
    "read_ask",
]

OPERATIONS: tuple[Operation, ...] = (
    *CARD_OPERATIONS,
    *ASK_OPERATIONS,
    *SANDBOX_OPERATIONS,
    *LEDGER_OPERATIONS,
    *CERTIFICATE_OPERATIONS,
)
