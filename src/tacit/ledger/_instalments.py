"""The ledger's instalments: one charge authorises a run, and each of its numbered draws is claimed once.

Instalments are claimed in order, and one is stored only while no later one is claimed. So the stored ones
form one line: each was computed from the secret that the stored one before it left, and no secret was used
for two of them, whoever drew at the same time and whoever crashed. One that was claimed and not stored is
lost. The argument is in ``docs/explanation/ledger.md``.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Set
from tacit.ledger import _refusals
from tacit.ledger._chain import Head, blocks_of, spend_from_text
from tacit.ledger._charges import charge, check_lineage, find_charge, same_charge
from tacit.ledger._draws import as_charged
from tacit.ledger._lost_entries import lost_between, refreshed_since
from tacit.ledger._payments import claim_key, run_of_plan, run_payments
from tacit.ledger._receipts import receipt_of
from tacit.ledger._restrictions import check_expiry, check_frozen
from tacit.ledger._rows import ReleaseRow

if TYPE_CHECKING:
    from collections.abc import Callable

    from tacit.ledger._accounts import Account
    from tacit.ledger._artifacts import KeptPayload
    from tacit.ledger._charges import ChargeRequest
    from tacit.ledger._receipts import Receipt
    from tacit.ledger._rows import EntryRow, RunRow
    from tacit.ledger._transaction import Transaction


class RunProgress(NamedTuple):
    """How far a run is: its last claimed instalment and its last stored one; 0 for none."""

    claimed: int
    stored: int


def instalment_key(receipt: int, part: int) -> str:
    """Return the key of the entry that stores an instalment; it is unique in the store."""
    return f"r:{receipt}:{part}"


def run_progress(find: Callable[[str], EntryRow | None], receipt: int, known: int = 0) -> RunProgress:
    """Find out how far a run is, from the log alone; ``known`` is the number of a claimed instalment.

    Claims have no gaps, so a search in doubling steps finds the last one. If it is not stored, its claim says
    which one was stored last: none can have been stored since.
    """
    low, step = known, 1
    while find(claim_key(receipt, low + step)) is not None:
        low, step = low + step, 2 * step
    high = low + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if find(claim_key(receipt, middle)) is None else (middle, high)
    if low == 0:
        return RunProgress(0, 0)
    if find(instalment_key(receipt, low)) is not None:
        return RunProgress(low, low)
    claim = find(claim_key(receipt, low))
    if claim is None:
        raise _refusals.damaged(f"the claim of instalment {low} of run {receipt} is missing")
    return RunProgress(low, int(json.loads(claim.body)["after"]))


def authorise_run(transaction: Transaction, request: ChargeRequest) -> tuple[Receipt, EntryRow]:
    """Charge a run, or find the one of this plan and charge whoever has not paid for it.

    Returns the caller's receipt and the entry of the run.
    """
    account = transaction.account(request.account)
    check_lineage(transaction, account, request.dataset)
    known = find_charge(transaction, request, account)[0] if request.key else None
    run = _known_run(transaction, known)
    if known is not None:
        said = as_charged(request, known)
        same_charge(transaction, known, account, said)
        request = replace(request, key="")  # it names the earlier charge
    if run is None:
        version = request.version or account.version
        run = run_of_plan(transaction, account.root, version, request.plan)
    if run is None:
        receipt = charge(transaction, request, kind="run")
        return receipt, transaction.entries[-1]
    return _join_run(transaction, request, account, run)


def _known_run(transaction: Transaction, known: EntryRow | None) -> EntryRow | None:
    """Return the run that an earlier charge with the same key paid for."""
    if known is None or known.kind == "run":
        return known
    return transaction.entry(json.loads(known.body).get("run", 0))


def _join_run(
    transaction: Transaction, request: ChargeRequest, account: Account, run: EntryRow
) -> tuple[Receipt, EntryRow]:
    """Let an account go on with a run that is charged: it costs what the run cost, once for each account."""
    transaction.require_linked(run)
    body = json.loads(run.body)
    if body["parts"] != request.parts:
        raise bad_parameter(
            "instalments", f"{body['parts']}, as when the run was charged", request.parts,
            why="a plan has one run, and its number of instalments is part of what was paid for",
            fix=Set(instalments=body["parts"]),
        )  # fmt: skip
    paid = run_payments(transaction, run)
    unpaid = frozenset(account.below) - paid.keys()
    if not unpaid:
        proof = paid.get(account.id, run)
        return receipt_of(proof, transaction.names(proof)), run
    price = replace(
        request,
        cost=body["cost"],
        law=None,
        spend=spend_from_text(run.spend),
        spend_text=run.spend,
        blocks=tuple(blocks_of(run.body)),
        certificate=str(body.get("certificate", "")),
        version=body["version"],
        run=run.seq,
    )
    return charge(transaction, price, kind="view", only=unpaid), run


def claim_next(transaction: Transaction, head: Head, stored: int, account: str) -> int | None:
    """Take the next instalment of a run; None if another one than ``stored`` is the last stored one now.

    Neither the account that was charged for the run nor ``account``, which asks, may be frozen. The last day
    of ``account`` must not have passed; those of others who pay for the run are their own.
    """
    row, parts = _run_entry(transaction, head)
    path = transaction.path(transaction.account_numbered(row.account))
    asking = transaction.path(transaction.account(account))
    check_frozen(path)
    check_frozen(asking)
    check_expiry(transaction, asking)
    found = run_progress(transaction.entry_keyed, row.seq, stored)
    if found.stored != stored:
        return None
    if found.claimed >= parts:
        all_of_them = "the only instalment" if parts == 1 else f"all {parts} instalments"
        raise TacitError(
            "run-finished",
            f"{all_of_them} of run {row.seq} {'was' if parts == 1 else 'were'} drawn",
            why="one charge pays for this number of instalments only, and lost instalments count too",
            fix="plan another run; it is charged again",
        )
    if lost_between(transaction.entry_keyed, row.seq):
        raise TacitError(
            "run-finished",
            f"the other instalments of run {row.seq} may have been drawn in entries that are lost",
            why="the ledger was continued from an older copy, and one charge pays for each instalment once",
            fix="plan another run; it is charged again",
        )
    name = refreshed_since(transaction.entry_keyed, path, row.seq)
    if name is not None:
        raise TacitError(
            "run-finished",
            f"run {row.seq} was paid for before account {name!r} started again from zero",
            why="the data is about other people now, and what the run says about them was not charged",
            fix="plan another run; it is charged again",
        )
    number = found.claimed + 1
    facts: dict[str, object] = {"receipt": row.seq, "part": number, "after": stored}
    transaction.append("claim", row.account, facts, key=claim_key(row.seq, number))
    return number


def keep_instalment(
    transaction: Transaction, head: Head, number: int, kept: KeptPayload, secret: RunRow
) -> EntryRow:
    """Store an instalment and the run's new secret, unless a later one is claimed; return its entry."""
    row, _ = _run_entry(transaction, head)
    held = transaction.release_of_receipt(row.seq, number)
    if held is not None or run_progress(transaction.entry_keyed, row.seq, number).claimed != number:
        raise TacitError(
            "instalment-lost",
            f"instalment {number} of run {row.seq} cannot be stored any more",
            why="a later instalment was started, and it does not build on this one",
            fix="draw the next instalment",
        )
    version = json.loads(row.body)["version"]
    root = transaction.root_of(row.account)
    body: dict[str, object] = {
        "receipt": row.seq, "part": number, "sha256": kept.digest, "version": version,
    }  # fmt: skip
    entry = transaction.append("release", row.account, body, key=instalment_key(row.seq, number))
    transaction.releases.append(
        ReleaseRow(row.seq, number, root, version, "", kept.inline, kept.artifact, entry.seq)
    )
    transaction.runs[row.seq] = secret
    return entry


def _run_entry(transaction: Transaction, head: Head) -> tuple[EntryRow, int]:
    """Return the entry of a run and how many instalments it authorises."""
    row = transaction.entry(head.count)
    if row is None or row.mac.hex() != head.hash or row.kind != "run":
        raise _refusals.tampered(f"entry {head.count}, which charged a run, is not the one that was stored")
    transaction.require_linked(row)  # it says how many instalments were paid for
    return row, int(json.loads(row.body)["parts"])
