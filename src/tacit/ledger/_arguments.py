"""The arguments of a ledger's methods: what reaches a transaction is bounded, printable and checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from functools import lru_cache

from tacit.accounting import Budget, Cost, Spend, genuine
from tacit.errors import bad_parameter
from tacit.exact import count
from tacit.fixes import Set
from tacit.ledger.accounts._accounts import Account
from tacit.ledger.accounts._blocks import Blocks, read_block_names, read_printable
from tacit.ledger.accounts._charges import ChargeRequest
from tacit.ledger.checks._chain import canonical, spend_to_text
from tacit.ledger.draws._receipts import Receipt
from tacit.parameters import Choice, Instance


def read_name(parameter: str, value: object) -> str:
    """Read the name of an account or a unit, a plan's hash or a key: 1 to 200 printable characters."""
    return read_printable(parameter, value, "1 to 200 printable characters", "visits", stripped=True)


def read_account_name(account: object) -> str:
    """Read an account, or its name."""
    if isinstance(account, Account):
        return account.name
    return read_name("account", account)


def read_text(parameter: str, value: object, *, needed: bool = False) -> str:
    """Read free text for people, such as a purpose: up to 2,000 characters of valid Unicode."""
    unicode = ""
    if isinstance(value, str) and len(value) <= 2000 and (value.strip() or not needed):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            unicode = " in valid Unicode"
        else:
            return value
    must_be = f"{'a sentence' if needed else 'text'} of at most 2000 characters{unicode}"
    raise bad_parameter(parameter, must_be, value, fix=Set(**{parameter: "monthly report"}))


def read_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Read labels: at most 50 short names with short values."""
    if not hasattr(labels, "items") or len(labels) > 50:
        raise bad_parameter(
            "labels", "a mapping of at most 50 names", labels, fix=Set(labels={"team": "oncology"})
        )
    return {read_name("labels", key): read_text("labels", value) for key, value in labels.items()}


def read_expiry(parameter: str, value: object) -> datetime | None:
    """Read a last day, until whose end in UTC charges are accepted, or a moment with its time zone."""
    if value is None:
        return None
    with suppress(OverflowError):  # the first and the last day that Python knows
        if isinstance(value, datetime) and value.tzinfo is not None:
            return value.astimezone(UTC)
        if isinstance(value, date) and not isinstance(value, datetime):
            return datetime(value.year, value.month, value.day, tzinfo=UTC) + timedelta(days=1)
    raise bad_parameter(
        parameter, "a date, or a datetime with a time zone", value, fix=Set(**{parameter: date(2030, 12, 31)})
    )


def read_record(record: object) -> str:
    """Read what the log keeps of questions."""
    return Choice(("words", "shape")).read("record", record)


def read_budget(parameter: str, budget: object) -> Budget:
    """Read a budget."""
    return Instance(Budget, f"{parameter}=tc.Budget(epsilon=1)").read(parameter, budget)


def read_promise(promise: object) -> Budget:
    """Read what a plan promises; made anew from its numbers if they are not plain ones."""
    if type(promise) is Budget and type(promise.epsilon) is type(promise.delta) is Fraction:
        return promise
    stated = Instance(Budget, "promise=tc.Budget(epsilon=0.5, delta=1e-7)").read("promise", promise)
    return Budget(stated.epsilon, stated.delta, rho=stated.rho)


def read_blocks(blocks: object) -> Blocks:
    """Read a partition into blocks."""
    return Instance(Blocks, 'blocks=tc.Blocks("day")').read("blocks", blocks)


def read_receipt(receipt: object) -> Receipt:
    """Read a receipt."""
    return Instance(Receipt, "receipt=ledger.charge(...)", "a Receipt of this ledger").read(
        "receipt", receipt
    )


def read_payload(payload: bytes | Mapping[str, object]) -> bytes:
    """Read what is to be stored: bytes as they are, a mapping as canonical JSON."""
    if isinstance(payload, bytes):
        return payload
    if isinstance(payload, Mapping):
        return canonical(dict(payload)).encode()
    raise bad_parameter(
        "payload", "bytes or a mapping of JSON values", type(payload), fix=Set(payload={"n": 40})
    )


@lru_cache(maxsize=4096)
def _read_cost(cost: Cost, promise: Budget | None) -> tuple[Cost, object, Spend, str]:
    """Return the genuine cost, its stored form and its spend: what is recorded is what is charged.

    A promise that the cost does not keep is refused. One in rho is none.
    """
    honest = genuine(cost)
    kept = None if promise is None or promise.epsilon is None else promise
    spend = honest.spend if kept is None else honest.spend_at((), kept)
    for part in (spend.epsilon, spend.delta, spend.rho):
        if part is not None and (type(part) is not Fraction or part < 0):
            raise bad_parameter("cost", "made of exact numbers that are not negative", spend)
    return honest, honest.to_json(), spend, spend_to_text(spend)


def read_charge(
    account: object,
    cost: object,
    *,
    plan: str | None,
    who: str,
    purpose: str,
    key: str | None,
    dataset: str | Account | None = None,
    asked: str = "",
    blocks: Sequence[str] = (),
    version: int | None = None,
    certificate: str = "",
    record: str = "words",
    promise: Budget | None = None,
) -> ChargeRequest:
    """Read a charge; the cost must be a `Cost`, not a subclass or something that looks like one."""
    promised = None if promise is None else read_promise(promise)
    honest, stored, spend, text = _read_cost(cost if type(cost) is Cost else genuine(cost), promised)
    declared = account.version if version is None and isinstance(account, Account) else version
    if declared is not None and (type(declared) is not int or declared < 1):
        declared = count("version", declared, zero=False)
    return ChargeRequest(
        account=read_account_name(account),
        version=declared,
        cost=stored,
        spend=spend,
        spend_text=text,
        adjacency=honest.adjacency,
        plan="" if plan is None else read_name("plan", plan),
        who=read_text("who", who),
        purpose=read_text("purpose", purpose),
        key="" if key is None else "k:" + read_name("key", key),
        dataset="" if dataset is None else read_account_name(dataset),
        asked=read_text("asked", asked),
        blocks=read_block_names(blocks) if blocks != () else (),
        law=honest,
        certificate=read_name("certificate", certificate) if certificate else "",
        record=read_record(record),
    )
