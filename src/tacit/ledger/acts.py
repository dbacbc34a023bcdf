"""What can be done to a ledger, each as one function over an open transaction: check fully, then change."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.accounting import Budget, Filter, Spend
from tacit.errors import TacitError, bad_parameter
from tacit.ledger.accounts import Account
from tacit.ledger.chain import spend_to_text
from tacit.ledger.receipts import Receipt, receipt_of
from tacit.ledger.store import ReleaseRow

if TYPE_CHECKING:
    from datetime import datetime

    from tacit.ledger.book import Book
    from tacit.ledger.chain import Head, Row

__all__ = [
    "Order",
    "Verdict",
    "authorise",
    "bounded",
    "charge",
    "claim",
    "grow",
    "keep_release",
    "must_find",
    "open_account",
    "record_unsealing",
    "refresh",
    "unknown_account",
]

_EXACT_BITS = 4096
_GRID = 2**1100


@dataclass(frozen=True, slots=True)
class Order:
    """A charge as asked for: everything already read and checked at the door."""

    account: str
    version: int | None
    cost: object
    spend: Spend
    adjacency: str
    plan: str
    who: str
    purpose: str
    key: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a draw may do: compute (no payload yet) or hand out what is stored."""

    receipt: Receipt
    stored: ReleaseRow | None


def must_find(book: Book, name: str) -> Account:
    """Find an account or refuse."""
    account = book.account(name)
    if account is None:
        raise unknown_account(name)
    return account


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
    account = replace(wanted, id=row.seq, path=(row.seq, *wanted.path[1:]))
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
                why="its totals were kept for what was declared when it was opened; a new session resets nothing",
                fix="ledger.grow(...) records a larger budget"
                if grows
                else f"{fact}={old!r}, or another name",
            )
    if wanted.version > found.version:
        latest = replace(found, version=wanted.version)
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
    larger = replace(account, filter=Filter.start(budget).after(account.spent))
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
        return _same(book, known, account, order)
    levels = [book.account_numbered(id_) for id_ in account.path if only is None or id_ in only]
    _check_limits(book, levels, order)
    spend = order.spend
    for level in levels:
        spend = bounded(spend, level.spent)
    after = [_charged(level, spend) for level in levels]
    body = {
        "cost": order.cost,
        "purpose": order.purpose,
        "version": order.version or account.version,
        "who": order.who,
    }
    row = book.append(
        kind,
        account.id,
        body,
        levels=",".join(str(level.id) for level in levels),
        spend=spend_to_text(spend),
        plan=order.plan,
        key=order.key,
    )
    for level in after:
        book.touch(level)
    return receipt_of(row, book.names(row))


def _check_limits(book: Book, levels: list[Account], order: Order) -> None:
    for level in levels:
        if order.adjacency != level.adjacency:
            raise TacitError(
                "adjacency-differs",
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
    try:
        return level.charged(spend)
    except TacitError as error:
        if error.code != "budget-exceeded":
            raise
        raise TacitError(
            error.code,
            f"account {level.name!r}: {error.what}",
            why=error.why or "nothing was charged",
            fix=error.fix,
        ) from None


def bounded(spend: Spend, spent: Spend) -> Spend:
    """Round a spend up where adding it exactly would let the total's denominator grow without end.

    Totals are exact fractions. A caller who charges 1/p for ever new primes p could make them arbitrarily long,
    and every later charge slow. Where the sum's denominator would need more than 4096 bits, the part is rounded
    up to a multiple of 2^-1100 first: never less than was asked, more by at most 2^-1100 (about 1e-331).

    Examples
    --------
    >>> half = Spend(Fraction(1, 2), Fraction(0), None)
    >>> bounded(half, half) == half
    True
    """
    parts = (spend.epsilon, spend.delta, spend.rho)
    totals = (spent.epsilon, spent.delta, spent.rho)
    epsilon, delta, rho = (_bounded_part(part, total) for part, total in zip(parts, totals, strict=True))
    if delta is None or (epsilon is spend.epsilon and delta is spend.delta and rho is spend.rho):
        return spend
    return Spend(epsilon, delta, rho)


def _bounded_part(part: Fraction | None, total: Fraction | None) -> Fraction | None:
    if part is None:
        return None
    old = 1 if total is None else total.denominator
    if part.denominator.bit_length() + old.bit_length() <= _EXACT_BITS:
        return part
    if math.lcm(part.denominator, old).bit_length() <= _EXACT_BITS:
        return part
    return Fraction(math.ceil(part * _GRID), _GRID)


def _same(book: Book, known: Row, account: Account, order: Order) -> Receipt:
    """Return the receipt of an earlier charge under the same key, if it was the same charge."""
    body = json.loads(known.body)
    same = (
        known.account == account.id
        and known.plan == order.plan
        and body.get("cost") == order.cost
        and body.get("who") == order.who
        and body.get("purpose") == order.purpose
        and order.version in {None, body.get("version")}
    )
    if not same:
        raise TacitError(
            "key-reused",
            f"the key {order.key[2:]!r} was used for another charge (entry {known.seq})",
            why="a key names one charge: the same charge again gives the same receipt, another one is refused",
            fix="give every charge a key of its own",
        )
    return receipt_of(known, book.names(known))


def authorise(book: Book, order: Order) -> Verdict:
    """Decide a draw: hand out what is stored, or charge and claim the receipt's one draw in the same entry."""
    account = must_find(book, order.account)
    version = order.version or account.version
    stored = book.release_of_plan(account.root, version, order.plan)
    known = book.entry_with_key(order.key) if order.key else None
    if known is not None:
        receipt = _same(book, known, account, order)
        if known.kind == "charge" and book.claim_of(known.seq) is None:
            _claim(book, known)
        elif stored is None:
            raise _spent(known.seq)
        return Verdict(receipt, stored)
    if stored is None:
        return Verdict(charge(book, order, kind="draw"), None)
    paid, proof = _paid(book, order.plan, version, account)
    unpaid = frozenset(account.path[:-1]) - paid
    if unpaid:
        return Verdict(charge(book, order, kind="view", only=unpaid), stored)
    if proof is None:
        proof = book.entry(stored.receipt)
    if proof is None:
        raise TacitError("ledger-damaged", f"entry {stored.receipt} of a stored release is missing")
    return Verdict(receipt_of(proof, book.names(proof)), stored)


def _paid(book: Book, plan: str, version: int, account: Account) -> tuple[set[int], Row | None]:
    """Return the accounts that have paid for a release of the plan, and the latest payment of this account."""
    paid: set[int] = set()
    proof = None
    for row in book.entries_of_plan(plan):
        if row.kind not in {"draw", "view", "charge"} or json.loads(row.body)["version"] != version:
            continue
        if row.kind == "charge" and book.claim_of(row.seq) is None:
            continue  # a charge alone was paid for something that the ledger has not seen
        levels = {int(id_) for id_ in row.levels.split(",")}
        paid |= levels
        if account.id in levels:
            proof = row
    return paid, proof


def claim(book: Book, receipt: Head) -> None:
    """Take the one draw of a receipt, or refuse it as spent."""
    row = book.entry(receipt.count)
    if row is None or row.mac.hex() != receipt.hash or row.kind not in {"charge", "draw", "view"}:
        raise bad_parameter("receipt", "a receipt of this ledger", receipt)
    if row.kind != "charge" or book.claim_of(row.seq) is not None:
        raise _spent(row.seq)
    _claim(book, row)


def record_unsealing(book: Book, statement: str, who: str) -> None:
    """Record that an operator took the seal away."""
    book.append("unseal", 0, {"statement": statement, "who": who})


def _claim(book: Book, known: Row) -> None:
    """Take a charge's one draw; the key is unique in the store, so nobody can take it again."""
    book.append("claim", known.account, {"receipt": known.seq}, key=f"d:{known.seq}")


def _spent(receipt: int) -> TacitError:
    return TacitError(
        "spent",
        f"the one draw of receipt {receipt} is taken and no release is stored for it",
        why="its process stopped before the release was stored, or is still at work; "
        "a second draw would be a second answer for one charge",
        fix="if it is still at work, ask again later; else charge anew, without the key",
    )


def keep_release(book: Book, head: Head, payload: bytes) -> ReleaseRow:
    """Store the release of a receipt; the first one of a plan stays for ever."""
    receipt = head.count
    row = book.entry(receipt)
    if row is None or row.mac.hex() != head.hash or row.kind not in {"charge", "draw"}:
        raise bad_parameter("receipt", "a receipt of this ledger that authorises a draw", receipt)
    version = json.loads(row.body)["version"]
    root = int(row.levels.rsplit(",", 1)[-1])
    held = book.release_of_receipt(receipt)
    if held is None and row.plan:
        held = book.release_of_plan(root, version, row.plan)
    if held is not None:
        if held.receipt == receipt and held.payload != payload:
            raise TacitError(
                "spent",
                f"another release is stored for receipt {receipt}",
                why="a receipt authorises one draw",
                fix="charge anew",
            )
        return held
    if row.kind == "charge" and book.claim_of(receipt) is None:
        _claim(book, row)
    digest = hashlib.sha256(payload).hexdigest()
    body: dict[str, object] = {"receipt": receipt, "sha256": digest, "version": version}
    entry = book.append("release", row.account, body, plan=row.plan)
    release = ReleaseRow(receipt, root, version, row.plan, payload, entry.seq)
    book.releases.append(release)
    return release
