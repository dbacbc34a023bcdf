"""What can be done to a ledger, each as one function over an open transaction: check fully, then change."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tacit.accounting import Budget, Filter
from tacit.errors import TacitError, bad_parameter
from tacit.ledger.accounts import Account
from tacit.ledger.chain import Head, canonical
from tacit.ledger.receipts import Receipt, receipt_of

if TYPE_CHECKING:
    from datetime import datetime

    from tacit.accounting import Spend
    from tacit.ledger.book import Book
    from tacit.ledger.chain import Row

__all__ = [
    "Exceeded",
    "Order",
    "charge",
    "check_lineage",
    "grow",
    "must_find",
    "open_account",
    "record_unsealing",
    "refresh",
    "same_charge",
    "unknown_account",
]


class Exceeded(Exception):  # noqa: N818 - a refusal in the making
    """A budget does not admit a charge; what would fit takes long to say, so it is said without the lock."""

    def __init__(self, level: Account, spend: Spend) -> None:
        super().__init__(level.name)
        self.level = level
        self.spend = spend

    def refusal(self) -> TacitError:
        """Say what is left and what would fit."""
        try:
            self.level.filter.after(self.spend)
        except TacitError as error:
            what = f"account {self.level.name!r}: {error.what}"
            return TacitError(error.code, what, why=error.why, fix=error.fix)
        raise AssertionError(self.level.name)  # a filter that refuses and admits the same charge


@dataclass(frozen=True, slots=True)
class Order:
    """A charge as asked for: everything already read and checked at the door."""

    account: str
    version: int | None
    cost: object
    spend: Spend
    spend_text: str
    adjacency: str
    plan: str
    who: str
    purpose: str
    key: str
    dataset: str = ""
    asked: str = ""


def must_find(book: Book, name: str) -> Account:
    """Find an account or refuse."""
    account = book.account(name)
    if account is None:
        raise unknown_account(name)
    return account


def check_lineage(book: Book, account: Account, dataset: str) -> None:
    """Refuse an account whose charges do not reach the dataset's own."""
    if dataset and must_find(book, dataset).id not in account.path:
        raise TacitError(
            "account-differs",
            f"account {account.name!r} is not below {dataset!r}, the dataset's own",
            why="what is learned from a dataset is charged to its budget, whoever else pays",
            fix=f"ledger.create_account({account.name + '-' + dataset!r}, parent={dataset!r}, budget=...)",
        )


def unknown_account(name: str) -> TacitError:
    """Build the refusal for a name that the ledger does not have."""
    return TacitError(
        "unknown-account",
        f"the ledger has no account {name!r}",
        fix=f"ledger.create_account({name!r}, unit=..., budget=...)",
    )


def open_account(
    book: Book,
    name: str,
    *,
    unit: str | None,
    adjacency: str | None,
    version: int,
    budget: Budget,
    parent: str | None,
    labels: dict[str, str],
    per_charge: Budget | None,
    expires: datetime | None,
) -> Account:
    """Open an account, or return the one of that name if everything declared agrees with it."""
    above = None if parent is None else must_find(book, parent)
    if above is not None:
        unit = above.unit if unit is None else unit
        adjacency = above.adjacency if adjacency is None else adjacency
        if (unit, adjacency) != (above.unit, above.adjacency):
            raise TacitError(
                "account-differs",
                f"account {name!r} would protect {unit!r} ({adjacency}) below {parent!r}, "
                f"which protects {above.unit!r} ({above.adjacency})",
                why="a charge means the same thing on every level",
                fix=f"unit={above.unit!r}, adjacency={above.adjacency!r}",
            )
    if unit is None:
        raise bad_parameter("unit", "named for an account without a parent", None, fix="unit='patient_id'")
    wanted = Account(
        id=0,
        name=name,
        unit=unit,
        adjacency=adjacency or "add/remove",
        version=version,
        filter=Filter.start(budget),
        path=(0,) if above is None else (0, *above.path),
        parent=parent,
        labels=labels,
        per_charge=per_charge,
        expires=expires,
    )
    found = book.account(name)
    if found is not None:
        return _reopen(book, found, wanted)
    facts = {**wanted.facts(), "name": name, "budget": budget.to_json()}
    row = book.append("open", book.tip.seq + 1, facts)
    account = replace(
        wanted, id=row.seq, path=(row.seq, *wanted.path[1:]), declared=canonical(wanted.facts())
    )
    book.touch(account)
    return account


def _reopen(book: Book, found: Account, wanted: Account) -> Account:
    for fact in ("unit", "adjacency", "budget", "parent", "per_charge", "expires"):
        old, new = getattr(found, fact), getattr(wanted, fact)
        if old != new:
            grows = fact == "budget"
            raise TacitError(
                "account-differs",
                f"account {found.name!r} has {fact} {old}, not {new}",
                why="its totals were kept for what was declared at first; a new session resets nothing",
                fix="ledger.grow(...) records a larger budget"
                if grows
                else f"{fact}={old!r}, or another name",
            )
    if wanted.version > found.version:
        latest = replace(found, version=wanted.version, declared="")
        book.append("version", found.id, {"version": wanted.version})
        book.touch(latest)
        return latest
    return replace(found, version=wanted.version)


def grow(book: Book, name: str, budget: Budget, *, statement: str, who: str) -> Account:
    """Raise a budget by a recorded act."""
    account = must_find(book, name)
    for part in ("epsilon", "delta", "rho"):
        old, new = getattr(account.budget, part), getattr(budget, part)
        if (old is None) != (new is None) or (old is not None and new < old):
            raise bad_parameter(
                "budget",
                f"of the same kind and nowhere below {account.budget}",
                budget,
                why="a budget only grows; what was promised about the past stays true",
                fix="open another account for a smaller one",
            )
    larger = replace(account, filter=replace(account.filter, budget=budget))
    book.append("grow", account.id, {"budget": budget.to_json(), "statement": statement, "who": who})
    book.touch(larger)
    return larger


def refresh(book: Book, name: str, *, statement: str, who: str) -> Account:
    """Start an account's total anew by a recorded act."""
    account = must_find(book, name)
    book.append("refresh", account.id, {"statement": statement, "who": who})
    fresh = replace(account, filter=Filter.start(account.budget))
    book.touch(fresh)
    return fresh


def charge(book: Book, order: Order, *, kind: str = "charge", only: frozenset[int] | None = None) -> Receipt:
    """Charge every level of the account's lineage (or ``only`` some), all or none."""
    account = must_find(book, order.account)
    known = book.entry_with_key(order.key) if order.key else None
    if known is not None:
        return same_charge(book, known, account, order)
    levels = [book.account_numbered(id_) for id_ in account.path if only is None or id_ in only]
    _check_limits(book, levels, order)
    after = [_charged(level, order.spend) for level in levels]
    body = {
        "cost": order.cost,
        "purpose": order.purpose,
        "version": order.version or account.version,
        "who": order.who,
        **({"asked": order.asked} if order.asked else {}),
    }
    row = book.append(
        kind,
        account.id,
        body,
        levels=",".join(str(level.id) for level in levels),
        spend=order.spend_text,
        plan=order.plan,
        key=order.key,
    )
    for level in after:
        book.touch(level)
    return Receipt(
        id=f"{row.seq}-{row.mac.hex()[:16]}",
        account=account.name,
        charged=tuple(level.name for level in levels),
        spend=order.spend,
        plan=order.plan or None,
        who=order.who,
        purpose=order.purpose,
        key=order.key[2:] or None,
        at=book.at,
        head=Head(row.seq, row.mac.hex()),
    )


def _check_limits(book: Book, levels: list[Account], order: Order) -> None:
    for level in levels:
        if order.adjacency != level.adjacency:
            raise TacitError(
                "adjacency-mixed",
                f"the cost is for {order.adjacency} neighbours, account {level.name!r} for {level.adjacency}",
                why="the same noise protects differently under the two",
                fix=f"compute the cost under {level.adjacency!r}",
            )
        if level.expires is not None and book.now >= level.expires:
            raise TacitError(
                "account-expired",
                f"account {level.name!r} takes no charges since {level.expires.isoformat()}",
                fix="open an account for the new period",
            )
        if level.per_charge is not None and not Filter.start(level.per_charge).admits(order.spend):
            raise TacitError(
                "charge-too-large",
                f"account {level.name!r} takes at most {level.per_charge} in one charge",
                fix="plan with a smaller epsilon",
            )


def _charged(level: Account, spend: Spend) -> Account:
    """Charge one level; where a refusal takes long to word, ask first and word it later."""
    wordy = level.budget.epsilon is not None and level.budget.delta > 0
    if wordy and not level.filter.admits(spend):
        raise Exceeded(level, spend)
    try:
        return replace(level, filter=level.filter.after(spend))
    except TacitError:
        raise Exceeded(level, spend) from None


def same_charge(book: Book, known: Row, account: Account, order: Order) -> Receipt:
    """Return the receipt of an earlier charge under the same key, if it was the same charge."""
    body = json.loads(known.body)
    same = (
        known.account == account.id
        and known.plan == order.plan
        and body.get("cost") == order.cost
        and body.get("who") == order.who
        and body.get("purpose") == order.purpose
        and body.get("asked", order.asked) == order.asked  # entries of older versions have none
        and order.version in {None, body.get("version")}
    )
    if not same:
        raise TacitError(
            "key-reused",
            f"the key {order.key[2:]!r} was used for another charge (entry {known.seq})",
            why="a key names one charge: the same one again gives the same receipt, another is refused",
            fix="give every charge a key of its own",
        )
    return receipt_of(known, book.names(known))


def record_unsealing(book: Book, statement: str, who: str) -> None:
    """Record that an operator took the seal away."""
    book.append("unseal", 0, {"statement": statement, "who": who})
