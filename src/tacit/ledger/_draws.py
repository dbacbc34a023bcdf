"""The ledger's draws, one for each receipt: who may compute, who gets what is stored, and what stays."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tacit.errors import TacitError, bad_parameter
from tacit.ledger import _refusals
from tacit.ledger._charges import charge, check_lineage, same_charge
from tacit.ledger._receipts import Receipt, receipt_of
from tacit.ledger._rows import ReleaseRow

if TYPE_CHECKING:
    from tacit.ledger._accounts import Account
    from tacit.ledger._chain import Head
    from tacit.ledger._charges import ChargeRequest
    from tacit.ledger._rows import EntryRow
    from tacit.ledger._transaction import Transaction

__all__ = ["DrawDecision", "authorise", "claim", "keep_release"]


@dataclass(frozen=True, slots=True)
class DrawDecision:
    """What a draw may do: compute (nothing is stored yet) or return what is stored."""

    receipt: Receipt
    stored: ReleaseRow | None


def authorise(transaction: Transaction, request: ChargeRequest) -> DrawDecision:
    """Decide a draw: return what is stored, or charge and claim the receipt's one draw in one entry."""
    account = transaction.account(request.account)
    check_lineage(transaction, account, request.dataset)
    version = request.version or account.version
    stored = transaction.release_of_plan(account.root, version, request.plan)
    known = transaction.entry_with_key(request.key) if request.key else None
    if known is not None:
        receipt = same_charge(transaction, known, account, request)
        if known.kind == "charge" and transaction.claim_of(known.seq) is None:
            _append_claim(transaction, known)
        elif stored is None:
            raise _spent(known.seq)
        return DrawDecision(receipt, stored)
    if stored is None:
        return DrawDecision(charge(transaction, request, kind="draw"), None)
    paid, proof = _payments(transaction, request.plan, version, account)
    unpaid = frozenset(account.path[:-1]) - paid
    if unpaid:
        return DrawDecision(charge(transaction, request, kind="view", only=unpaid), stored)
    if proof is None:
        proof = transaction.entry(stored.receipt)
    if proof is None:
        raise _refusals.damaged(f"entry {stored.receipt}, which paid for a stored release, is missing")
    return DrawDecision(receipt_of(proof, transaction.names(proof)), stored)


def _payments(
    transaction: Transaction, plan: str, version: int, account: Account
) -> tuple[set[int], EntryRow | None]:
    """Return the accounts that have paid for a release of the plan, and this account's latest payment."""
    paid: set[int] = set()
    proof = None
    for row in transaction.entries_of_plan(plan):
        if row.kind not in {"draw", "view", "charge"} or json.loads(row.body)["version"] != version:
            continue
        if row.kind == "charge" and transaction.claim_of(row.seq) is None:
            continue  # a charge without a draw paid for something that the ledger has not seen
        levels = {int(id_) for id_ in row.levels.split(",")}
        paid |= levels
        if account.id in levels:
            proof = row
    return paid, proof


def claim(transaction: Transaction, receipt: Head) -> None:
    """Take the one draw of a receipt, or refuse it as spent."""
    row = transaction.entry(receipt.count)
    if row is None or row.mac.hex() != receipt.hash or row.kind not in {"charge", "draw", "view"}:
        raise bad_parameter(
            "receipt", "a receipt of this ledger", receipt, fix="give the receipt that this ledger returned"
        )
    if row.kind != "charge" or transaction.claim_of(row.seq) is not None:
        raise _spent(row.seq)
    _append_claim(transaction, row)


def _append_claim(transaction: Transaction, known: EntryRow) -> None:
    """Take a charge's one draw; the key is unique in the store, so nobody can take it again."""
    transaction.append("claim", known.account, {"receipt": known.seq}, key=f"d:{known.seq}")


def _spent(receipt: int) -> TacitError:
    return TacitError(
        "spent",
        f"the one draw of receipt {receipt} is taken and no release is stored for it",
        why="its process stopped before it stored the release, or is still working; "
        "a second draw would be a second answer for one charge",
        fix="if it is still working, ask again later; otherwise charge again, without the key",
    )


def keep_release(transaction: Transaction, head: Head, payload: bytes) -> ReleaseRow:
    """Store the release of a receipt; the first release of a plan stays for ever."""
    receipt = head.count
    row = transaction.entry(receipt)
    if row is None or row.mac.hex() != head.hash or row.kind not in {"charge", "draw"}:
        raise bad_parameter(
            "receipt",
            "a receipt of this ledger that authorises a draw",
            receipt,
            fix="give the receipt of the charge or of the draw",
        )
    version = json.loads(row.body)["version"]
    root = int(row.levels.rsplit(",", 1)[-1])
    held = transaction.release_of_receipt(receipt)
    if held is None and row.plan:
        held = transaction.release_of_plan(root, version, row.plan)
    if held is not None:
        if held.receipt == receipt and held.payload != payload:
            raise TacitError(
                "spent",
                f"a different release is already stored for receipt {receipt}",
                why="one receipt pays for one release",
                fix="charge again",
            )
        return held
    if row.kind == "charge" and transaction.claim_of(receipt) is None:
        _append_claim(transaction, row)
    digest = hashlib.sha256(payload).hexdigest()
    body: dict[str, object] = {"receipt": receipt, "sha256": digest, "version": version}
    entry = transaction.append("release", row.account, body, plan=row.plan)
    release = ReleaseRow(receipt, root, version, row.plan, payload, entry.seq)
    transaction.releases.append(release)
    return release
