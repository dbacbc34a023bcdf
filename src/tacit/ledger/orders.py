"""The door for arguments: what reaches a transaction is already read and checked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache

from tacit.accounting import Budget, Cost, Spend
from tacit.errors import bad_parameter
from tacit.ledger import acts, doors
from tacit.ledger.accounts import Account
from tacit.ledger.chain import canonical, spend_to_text
from tacit.ledger.receipts import Receipt

__all__ = ["budget_at", "name", "order_of", "payload_of", "receipt_at"]


def name(account: object) -> str:
    """Read an account, or its name."""
    if isinstance(account, Account):
        return account.name
    return doors.name_of("account", account)


def budget_at(name: str, budget: object) -> Budget:
    """Read a budget."""
    if not isinstance(budget, Budget):
        raise bad_parameter(name, "a Budget", budget, fix=f"{name}=tc.Budget(epsilon=1)")
    return budget


def receipt_at(receipt: object) -> Receipt:
    """Read a receipt."""
    if not isinstance(receipt, Receipt):
        raise bad_parameter(
            "receipt", "a Receipt from this ledger", receipt, fix="receipt=ledger.charge(...)"
        )
    return receipt


def payload_of(payload: bytes | Mapping[str, object]) -> bytes:
    """Read what is to be stored: bytes as they are, a mapping as canonical JSON."""
    if isinstance(payload, bytes):
        return payload
    if isinstance(payload, Mapping):
        return canonical(dict(payload)).encode()
    raise bad_parameter("payload", "bytes or a mapping of JSON values", type(payload), fix="payload=b'...'")


@lru_cache(maxsize=4096)
def _priced(cost: Cost) -> tuple[object, Spend, str]:
    """Return a cost's stored form and its spend, checked once more at this door: exact and not negative."""
    spend = cost.spend
    for part in (spend.epsilon, spend.delta, spend.rho):
        if part is not None and (type(part) is not Fraction or part < 0):
            raise bad_parameter("cost", "of exact parts that are not negative", spend)
    return json.loads(canonical(cost.to_json())), spend, spend_to_text(spend)


def order_of(
    account: object,
    cost: object,
    *,
    plan: str | None,
    who: str,
    purpose: str,
    key: str | None,
    dataset: str | Account | None = None,
    asked: str = "",
) -> acts.Order:
    """Read a charge; the cost must be a `Cost`, whatever it looks like."""
    if not isinstance(cost, Cost):
        raise bad_parameter(
            "cost",
            "a Cost",
            cost,
            why="a bare number does not say what it bounds",
            fix="cost=tc.Cost.pure(0.5)",
        )
    stored, spend, text = _priced(cost)
    return acts.Order(
        account=name(account),
        version=account.version if isinstance(account, Account) else None,
        cost=stored,
        spend=spend,
        spend_text=text,
        adjacency=cost.adjacency,
        plan="" if plan is None else doors.token("plan", plan),
        who=doors.prose("who", who),
        purpose=doors.prose("purpose", purpose),
        key="" if key is None else "k:" + doors.token("key", key),
        dataset="" if dataset is None else name(dataset),
        asked=doors.prose("asked", asked),
    )
