"""One draw for one receipt: who may compute, who gets what is stored, and what stays for ever."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tacit.errors import TacitError, bad_parameter
from tacit.ledger import acts
from tacit.ledger.receipts import Receipt, receipt_of
from tacit.ledger.store import ReleaseRow

if TYPE_CHECKING:
    from tacit.ledger.accounts import Account
    from tacit.ledger.book import Book
    from tacit.ledger.chain import Head, Row

__all__ = ["Verdict", "authorise", "claim", "keep_release"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a draw may do: compute (no payload yet) or hand out what is stored."""

    receipt: Receipt
    stored: ReleaseRow | None


def authorise(book: Book, order: acts.Order) -> Verdict:
    """Decide a draw: hand out what is stored, or charge and claim the receipt's one draw in one entry."""
    account = acts.must_find(book, order.account)
    acts.check_lineage(book, account, order.dataset)
    version = order.version or account.version
    stored = book.release_of_plan(account.root, version, order.plan)
    known = book.entry_with_key(order.key) if order.key else None
    if known is not None:
        receipt = acts.same_charge(book, known, account, order)
        if known.kind == "charge" and book.claim_of(known.seq) is None:
            _claim(book, known)
        elif stored is None:
            raise _spent(known.seq)
        return Verdict(receipt, stored)
    if stored is None:
        return Verdict(acts.charge(book, order, kind="draw"), None)
    paid, proof = _paid(book, order.plan, version, account)
    unpaid = frozenset(account.path[:-1]) - paid
    if unpaid:
        return Verdict(acts.charge(book, order, kind="view", only=unpaid), stored)
    if proof is None:
        proof = book.entry(stored.receipt)
    if proof is None:
        raise TacitError("ledger-damaged", f"entry {stored.receipt} of a stored release is missing")
    return Verdict(receipt_of(proof, book.names(proof)), stored)


def _paid(book: Book, plan: str, version: int, account: Account) -> tuple[set[int], Row | None]:
    """Return the accounts that have paid for a release of the plan, and this account's latest payment."""
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
