"""The ledger's draws, one for each receipt: who may compute, who gets what is stored, and what stays.

A stored release is handed out to those who have paid for it. A payment counts only if it covers what the
stored draw cost.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from tacit.errors import TacitError, bad_parameter
from tacit.ledger import _refusals
from tacit.ledger.accounts._accounts import Account
from tacit.ledger.accounts._charges import (
    at_orders,
    charge,
    check_lineage,
    find_charge,
    new_charge,
    same_charge,
)
from tacit.ledger.accounts._decisions import check_expiry, check_frozen, lost_between, refreshed_since
from tacit.ledger.checks._chain import blocks_of, spend_from_text
from tacit.ledger.draws._receipts import Receipt, receipt_of
from tacit.ledger.stores._artifacts import stored_digest
from tacit.ledger.stores._store import ReleaseRow

if TYPE_CHECKING:
    from tacit.ledger.accounts._charges import ChargeRequest
    from tacit.ledger.checks._chain import Head
    from tacit.ledger.stores._artifacts import KeptPayload
    from tacit.ledger.stores._store import EntryRow, StoreReader
    from tacit.ledger.stores._transaction import Transaction


_PAYMENTS = frozenset({"draw", "view", "charge"})


class EntrySource(Protocol):
    """What is needed of a transaction, or of a store, to find payments."""

    def claim_of(self, receipt: int) -> EntryRow | None:
        """Find the claim of a charge's one draw."""

    def entry_keyed(self, key: str) -> EntryRow | None:
        """Find the entry that carries a key of the ledger's own."""

    def entries_of_plan(self, plan: str) -> list[EntryRow]:
        """Return the entries that name a plan."""

    def root_of(self, account: int) -> int:
        """Return the number of the dataset's own account, from the number of one below it."""


class CommittedEntries:
    """The entries of a store outside of a transaction."""

    def __init__(self, reader: StoreReader) -> None:
        self.entries_of_plan = reader.entries_of_plan
        self.entry_keyed = reader.entry_with_key
        self._reader = reader

    def claim_of(self, receipt: int) -> EntryRow | None:
        """Find the claim of a charge's one draw."""
        return self._reader.entry_with_key(claim_key(receipt))

    def root_of(self, account: int) -> int:
        """Return the number of the dataset's own account, from the number of one below it."""
        row = self._reader.account(account)
        if row is None:
            raise _refusals.damaged(f"account {account}, which the log names, is missing")
        return Account.from_row(row).root


def claim_key(receipt: int, part: int = 0) -> str:
    """Return the key of the claim of a charge's one draw, or of an instalment; it is unique in the store."""
    return f"d:{receipt}:{part}" if part else f"d:{receipt}"


def certificate_of(source: EntrySource, payment: EntryRow) -> str:
    """Return the digest of the certificate that a payment is for: in its entry, or in the claim of its draw.

    Empty where there is none, as in entries of older versions.
    """
    for row in (payment, source.claim_of(payment.seq) if payment.kind == "charge" else None):
        digest = "" if row is None else json.loads(row.body).get("certificate", "")
        if digest:
            return str(digest)
    return ""


def stored_draw(source: EntrySource, release: ReleaseRow) -> EntryRow:
    """Return the entry that paid for a stored release when it was drawn."""
    return _drawn(source.entries_of_plan(release.plan), release)


def _drawn(rows: list[EntryRow], release: ReleaseRow) -> EntryRow:
    for row in rows:
        if row.seq == release.receipt and row.kind in {"draw", "charge"}:
            return row
    raise _refusals.damaged(f"entry {release.receipt}, which paid for a stored release, is missing")


def payments(
    source: EntrySource, release: ReleaseRow, *, claimed: int = 0
) -> tuple[EntryRow, dict[int, EntryRow]]:
    """Return the entry that drew a stored release, and each account's latest payment for it.

    A charge counts once its draw was claimed (``claimed`` is the number of one that is being claimed now):
    before that, it pays for something that the ledger has not seen. A payment that is smaller than the stored
    draw pays for nothing, and so does one from before entries were lost if the draw came after.
    """
    rows = source.entries_of_plan(release.plan)
    draw = _drawn(rows, release)
    payers: dict[int, EntryRow] = {}
    for row in rows:
        body = json.loads(row.body) if row.kind in _PAYMENTS else {}
        if body.get("version") != release.version or "run" in body:
            continue
        if not covers(row, draw):
            continue
        if row.kind == "charge" and row.seq != claimed and source.claim_of(row.seq) is None:
            continue
        if row.seq < draw.seq and lost_between(source.entry_keyed, row.seq, draw.seq):
            continue
        payers |= {int(id_): row for id_ in row.levels.split(",")}
    return draw, payers


def run_of_plan(source: EntrySource, root: int, version: int, plan: str) -> EntryRow | None:
    """Find the charge of a plan's run on a declared version of a dataset."""
    for row in source.entries_of_plan(plan):
        same_version = row.kind == "run" and json.loads(row.body)["version"] == version
        if same_version and source.root_of(row.account) == root:
            return row
    return None


def run_payments(source: EntrySource, run: EntryRow) -> dict[int, EntryRow]:
    """Return each account's latest payment for a run: its charge, or a view that covers it."""
    payers = {int(id_): run for id_ in run.levels.split(",")}
    for row in source.entries_of_plan(run.plan):
        is_payment = row.kind == "view" and json.loads(row.body).get("run") == run.seq
        if is_payment and covers(row, run):
            payers |= {int(id_): row for id_ in row.levels.split(",")}
    return payers


def covers(payment: EntryRow, draw: EntryRow) -> bool:
    """Whether a recorded charge is nowhere less than that of a draw, and concerns all of its blocks.

    Renyi orders are compared where the payment has them; the draw may need `CurveNeeded` there.
    """
    blocks, needed = set(blocks_of(payment.body)), blocks_of(draw.body)
    if blocks and not (needed and blocks.issuperset(needed)):
        return False
    if payment.spend == draw.spend:
        return True
    payment_spend, price = spend_from_text(payment.spend), spend_from_text(draw.spend)
    if payment_spend.curve:
        price = at_orders(
            price, json.loads(draw.body)["cost"], tuple(order for order, _ in payment_spend.curve)
        )
    pairs = [
        (payment_spend.epsilon, price.epsilon),
        (payment_spend.delta, price.delta),
        (payment_spend.rho, price.rho),
    ]
    pairs += [(mine, price.divergence(order)) for order, mine in payment_spend.curve]
    if payment_spend.promise is not None:
        pairs += zip(payment_spend.promised, price.promised, strict=True)
    return all(mine is None or (its is not None and mine >= its) for mine, its in pairs)  # None: not finite


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
    earlier, key = find_charge(transaction, request, account) if request.key else (None, "")
    if stored is not None:
        return _authorise_stored(transaction, request, account, earlier, stored, readable)
    if earlier is not None:
        return _authorise_known(transaction, request, account, earlier)
    return DrawDecision(new_charge(transaction, request, account, key, kind="draw"), None)


def _authorise_known(
    transaction: Transaction, request: ChargeRequest, account: Account, earlier: EntryRow
) -> DrawDecision:
    """Decide a draw of which nothing is stored, for an earlier charge with the same key."""
    receipt = same_charge(transaction, earlier, account, request)
    if earlier.kind != "charge" or transaction.claim_of(earlier.seq) is not None:
        raise _spent(earlier.seq)
    _append_claim(transaction, earlier, request.certificate)
    return DrawDecision(replace(receipt, certificate=request.certificate), None)


def _authorise_stored(
    transaction: Transaction,
    request: ChargeRequest,
    account: Account,
    earlier: EntryRow | None,
    stored: ReleaseRow,
    readable: str,
) -> DrawDecision | ReleaseRow:
    """Decide a draw of what is stored: it costs what it cost when it was drawn, whatever the caller says."""
    unclaimed = (
        earlier is not None
        and earlier.kind == "charge"
        and transaction.claim_of(earlier.seq) is None
        and not lost_between(transaction.entry_keyed, earlier.seq)
    )
    if earlier is not None and unclaimed:
        _check_not_lost(transaction, earlier)  # before anything is charged
    draw, payers = payments(
        transaction, stored, claimed=earlier.seq if earlier is not None and unclaimed else 0
    )
    receipt = None
    if earlier is not None:
        receipt = same_charge(transaction, earlier, account, as_charged(request, earlier))
        receipt = replace(receipt, certificate=certificate_of(transaction, earlier))
    unpaid = frozenset(account.below) - payers.keys()
    if unpaid and stored.artifact != readable:
        return stored
    certificate = certificate_of(transaction, draw)
    if unpaid:
        transaction.require_linked(draw)  # the price is read from the store
        price = replace(
            request,
            cost=json.loads(draw.body)["cost"],
            law=None,
            spend=spend_from_text(draw.spend),
            spend_text=draw.spend,
            blocks=tuple(blocks_of(draw.body)),
            certificate=certificate,
            version=stored.version,
            key=request.key if earlier is None else "",  # the key names the earlier charge
        )
        receipt = charge(transaction, price, kind="view", only=unpaid)
    if earlier is not None and unclaimed:
        _append_claim(transaction, earlier, certificate)
        receipt = None if receipt is None else replace(receipt, certificate=certificate)
    if receipt is None:
        proof = payers.get(account.id, draw)
        if certificate_of(transaction, proof) != certificate:
            proof = draw  # two processes drew this plan at once: the certificate of the stored one is kept
        receipt = replace(receipt_of(proof, transaction.names(proof)), certificate=certificate)
    return DrawDecision(receipt, stored)


def as_charged(request: ChargeRequest, earlier: EntryRow) -> ChargeRequest:
    """Return the request with price and blocks of its earlier view, which the caller does not choose."""
    if earlier.kind != "view":
        return request
    return replace(
        request,
        cost=json.loads(earlier.body)["cost"],
        spend=spend_from_text(earlier.spend),
        blocks=tuple(blocks_of(earlier.body)),
    )


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


def _append_claim(transaction: Transaction, charge_row: EntryRow, certificate: str = "") -> None:
    """Take a charge's one draw; the key is unique in the store, so nobody can take it again."""
    path = transaction.path(transaction.account_numbered(charge_row.account))
    check_frozen(path)
    check_expiry(transaction, path)
    _check_not_lost(transaction, charge_row)
    body: dict[str, object] = {"receipt": charge_row.seq}
    body |= {"certificate": certificate} if certificate else {}
    transaction.append("claim", charge_row.account, body, key=claim_key(charge_row.seq))


def _spent(receipt: int) -> TacitError:
    return TacitError(
        "spent",
        f"receipt {receipt} pays for one draw; the draw was started, but no release is stored for it",
        why="the process that started it stopped before it stored the release, or is still working; "
        "a second draw would be a second answer for one charge",
        fix="if that process is still working, ask again later; otherwise charge again, without the key",
    )


def _check_not_lost(transaction: Transaction, charge_row: EntryRow) -> None:
    """Refuse a draw that was paid for before entries were lost, or before other people came."""
    if lost_between(transaction.entry_keyed, charge_row.seq):
        raise TacitError(
            "spent",
            f"the one draw of receipt {charge_row.seq} may have been taken in entries that are lost",
            why="the ledger was continued from an older copy, and one charge pays for one answer",
            fix="charge again, without the key of the earlier charge",
        )
    path = transaction.path(transaction.account_numbered(charge_row.account))
    name = refreshed_since(transaction.entry_keyed, path, charge_row.seq)
    if name is not None:
        raise TacitError(
            "spent",
            f"receipt {charge_row.seq} was charged before account {name!r} started again from zero",
            why="the data is about other people now, and nothing was charged for what the answer would say "
            "about them",
            fix="charge again, without the key of the earlier charge",
        )


def keep_release(transaction: Transaction, head: Head, payload: KeptPayload) -> ReleaseRow:
    """Store the release of a receipt; the first release of a plan stays for ever."""
    receipt = head.count
    row = transaction.entry(receipt)
    if row is None or row.mac.hex() != head.hash or row.kind not in {"charge", "draw"}:
        raise _no_receipt(receipt)
    version = json.loads(row.body)["version"]
    root = transaction.account_numbered(row.account).root
    earlier = transaction.release_of_receipt(receipt)
    if earlier is None and row.plan:
        earlier = transaction.release_of_plan(root, version, row.plan)
    if earlier is not None:
        if earlier.receipt == receipt and stored_digest(earlier) != payload.digest:
            raise TacitError(
                "spent",
                f"a different release is already stored for receipt {receipt}",
                why="one receipt pays for one release",
                fix="charge again",
            )
        if earlier.receipt != receipt and (
            not covers(row, stored_draw(transaction, earlier))
            or lost_between(transaction.entry_keyed, receipt, earlier.receipt)
        ):
            raise TacitError(
                "spent",
                f"a release of this plan is stored, and receipt {receipt} paid less than it costs",
                why="the first release of a plan stays, and everyone who reads it pays what it cost",
                fix="ask for the plan again: the stored release is charged and returned",
            )
        return earlier
    if row.kind == "charge" and transaction.claim_of(receipt) is None:
        _append_claim(transaction, row)
    body: dict[str, object] = {"receipt": receipt, "sha256": payload.digest, "version": version}
    entry = transaction.append("release", row.account, body, plan=row.plan)
    release = ReleaseRow(receipt, 0, root, version, row.plan, payload.inline, payload.artifact, entry.seq)
    transaction.releases.append(release)
    return release
