"""The ledger's draws, one for each receipt: who may compute, who gets what is stored, and what stays."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tacit.errors import TacitError, bad_parameter
from tacit.ledger._artifacts import stored_digest
from tacit.ledger._chain import blocks_of, spend_from_text
from tacit.ledger._charges import charge, check_lineage, find_charge, new_charge, same_charge
from tacit.ledger._lost_entries import lost_between, refreshed_since
from tacit.ledger._payments import certificate_of, claim_key, covers, payments, stored_draw
from tacit.ledger._receipts import Receipt, receipt_of
from tacit.ledger._restrictions import check_expiry, check_frozen
from tacit.ledger._rows import ReleaseRow

if TYPE_CHECKING:
    from tacit.ledger._accounts import Account
    from tacit.ledger._artifacts import KeptPayload
    from tacit.ledger._chain import Head
    from tacit.ledger._charges import ChargeRequest
    from tacit.ledger._rows import EntryRow
    from tacit.ledger._transaction import Transaction


@dataclass(frozen=True, slots=True)
class DrawDecision:
    """What a draw may do: compute (nothing is stored yet) or return what is stored."""

    receipt: Receipt
    stored: ReleaseRow | None


def authorise(
    transaction: Transaction, request: ChargeRequest, *, readable: str = ""
) -> DrawDecision | ReleaseRow:
    """Decide a draw: return what is stored, or charge and claim the receipt's one draw in one entry.

    Nobody pays for an artifact that is lost. So if somebody has to pay for one, and it is not ``readable``
    (its digest), its row is returned and nothing is charged: the caller reads it and asks again.
    """
    account = transaction.account(request.account)
    if request.dataset != account.name:
        check_lineage(transaction, account, request.dataset)
    root, version = account.root, request.version or account.version
    stored = transaction.release_of_plan(root, version, request.plan)
    if stored is None and request.certificate and version != account.version:
        # the hash of such a plan names the version of the data; older versions of Tacit stored its release
        # under the version that the paying account was opened with
        stored = transaction.release_of_plan(root, account.version, request.plan)
    known, key = find_charge(transaction, request, account) if request.key else (None, "")
    if stored is not None:
        return _authorise_stored(transaction, request, account, known, stored, readable)
    if known is not None:
        return _authorise_known(transaction, request, account, known)
    return DrawDecision(new_charge(transaction, request, account, key, kind="draw"), None)


def _authorise_known(
    transaction: Transaction, request: ChargeRequest, account: Account, known: EntryRow
) -> DrawDecision:
    """Decide a draw of which nothing is stored, for an earlier charge with the same key."""
    receipt = same_charge(transaction, known, account, request)
    if known.kind != "charge" or transaction.claim_of(known.seq) is not None:
        raise _spent(known.seq)
    _append_claim(transaction, known, request.certificate)
    return DrawDecision(replace(receipt, certificate=request.certificate), None)


def _authorise_stored(
    transaction: Transaction,
    request: ChargeRequest,
    account: Account,
    known: EntryRow | None,
    stored: ReleaseRow,
    readable: str,
) -> DrawDecision | ReleaseRow:
    """Decide a draw of what is stored: it costs what it cost when it was drawn, whatever the caller says."""
    unclaimed = (
        known is not None
        and known.kind == "charge"
        and transaction.claim_of(known.seq) is None
        and not lost_between(transaction.entry_keyed, known.seq)
    )
    if known is not None and unclaimed:
        _check_not_lost(transaction, known)  # before anything is charged
    drawn, paid = payments(transaction, stored, claimed=known.seq if known is not None and unclaimed else 0)
    receipt = None
    if known is not None:
        receipt = same_charge(transaction, known, account, as_charged(request, known))
        receipt = replace(receipt, certificate=certificate_of(transaction, known))
    unpaid = frozenset(account.below) - paid.keys()
    if unpaid and stored.artifact != readable:
        return stored
    certificate = certificate_of(transaction, drawn)
    if unpaid:
        transaction.require_linked(drawn)  # the price is read from the store
        price = replace(
            request,
            cost=json.loads(drawn.body)["cost"],
            law=None,
            spend=spend_from_text(drawn.spend),
            spend_text=drawn.spend,
            blocks=tuple(blocks_of(drawn.body)),
            certificate=certificate,
            version=stored.version,
            key=request.key if known is None else "",  # the key names the earlier charge
        )
        receipt = charge(transaction, price, kind="view", only=unpaid)
    if known is not None and unclaimed:
        _append_claim(transaction, known, certificate)
        receipt = None if receipt is None else replace(receipt, certificate=certificate)
    if receipt is None:
        proof = paid.get(account.id, drawn)
        if certificate_of(transaction, proof) != certificate:
            proof = drawn  # two processes drew this plan at once: the certificate of the stored one is kept
        receipt = replace(receipt_of(proof, transaction.names(proof)), certificate=certificate)
    return DrawDecision(receipt, stored)


def as_charged(request: ChargeRequest, known: EntryRow) -> ChargeRequest:
    """Return the request with cost and blocks of its earlier view, which the caller does not choose."""
    if known.kind != "view":
        return request
    return replace(request, cost=json.loads(known.body)["cost"], blocks=tuple(blocks_of(known.body)))


def claim(transaction: Transaction, receipt: Head) -> None:
    """Take the one draw of a receipt, or refuse it as spent."""
    row = transaction.entry(receipt.count)
    if row is None or row.mac.hex() != receipt.hash or row.kind not in {"charge", "draw", "view"}:
        raise _no_receipt(receipt)
    if row.kind != "charge" or transaction.claim_of(row.seq) is not None:
        raise _spent(row.seq)
    _append_claim(transaction, row)


def _no_receipt(receipt: object) -> TacitError:
    return bad_parameter(
        "receipt",
        "a receipt of this ledger that authorises a draw",
        receipt,
        fix="give the receipt that this ledger returned for the charge or for the draw",
    )


def _append_claim(transaction: Transaction, known: EntryRow, certificate: str = "") -> None:
    """Take a charge's one draw; the key is unique in the store, so nobody can take it again."""
    path = transaction.path(transaction.account_numbered(known.account))
    check_frozen(path)
    check_expiry(transaction, path)
    _check_not_lost(transaction, known)
    body: dict[str, object] = {"receipt": known.seq}
    body |= {"certificate": certificate} if certificate else {}
    transaction.append("claim", known.account, body, key=claim_key(known.seq))


def _spent(receipt: int) -> TacitError:
    return TacitError(
        "spent",
        f"receipt {receipt} pays for one draw; the draw was started, but no release is stored for it",
        why="the process that started it stopped before it stored the release, or is still working; "
        "a second draw would be a second answer for one charge",
        fix="if that process is still working, ask again later; otherwise charge again, without the key",
    )


def _check_not_lost(transaction: Transaction, known: EntryRow) -> None:
    """Refuse a draw that was paid for before entries were lost, or before other people came."""
    if lost_between(transaction.entry_keyed, known.seq):
        raise TacitError(
            "spent",
            f"the one draw of receipt {known.seq} may have been taken in entries that are lost",
            why="the ledger was continued from an older copy, and one charge pays for one answer",
            fix="charge again, without the key of the earlier charge",
        )
    path = transaction.path(transaction.account_numbered(known.account))
    name = refreshed_since(transaction.entry_keyed, path, known.seq)
    if name is not None:
        raise TacitError(
            "spent",
            f"receipt {known.seq} was charged before account {name!r} started again from zero",
            why="the data is about other people now, and nothing was charged for what the answer would say "
            "about them",
            fix="charge again, without the key of the earlier charge",
        )


def keep_release(transaction: Transaction, head: Head, kept: KeptPayload) -> ReleaseRow:
    """Store the release of a receipt; the first release of a plan stays for ever."""
    receipt = head.count
    row = transaction.entry(receipt)
    if row is None or row.mac.hex() != head.hash or row.kind not in {"charge", "draw"}:
        raise _no_receipt(receipt)
    version = json.loads(row.body)["version"]
    root = transaction.account_numbered(row.account).root
    held = transaction.release_of_receipt(receipt)
    if held is None and row.plan:
        held = transaction.release_of_plan(root, version, row.plan)
    if held is not None:
        if held.receipt == receipt and stored_digest(held) != kept.digest:
            raise TacitError(
                "spent",
                f"a different release is already stored for receipt {receipt}",
                why="one receipt pays for one release",
                fix="charge again",
            )
        if held.receipt != receipt and (
            not covers(row, stored_draw(transaction, held))
            or lost_between(transaction.entry_keyed, receipt, held.receipt)
        ):
            raise TacitError(
                "spent",
                f"a release of this plan is stored, and receipt {receipt} paid less than it costs",
                why="the first release of a plan stays, and everyone who reads it pays what it cost",
                fix="ask for the plan again: the stored release is charged and returned",
            )
        return held
    if row.kind == "charge" and transaction.claim_of(receipt) is None:
        _append_claim(transaction, row)
    body: dict[str, object] = {"receipt": receipt, "sha256": kept.digest, "version": version}
    entry = transaction.append("release", row.account, body, plan=row.plan)
    release = ReleaseRow(receipt, 0, root, version, row.plan, kept.inline, kept.artifact, entry.seq)
    transaction.releases.append(release)
    return release
