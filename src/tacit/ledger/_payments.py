"""Who has paid for a stored release: a payment counts only if it covers what the stored draw cost."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Protocol

from tacit.ledger import _refusals
from tacit.ledger._accounts import Account
from tacit.ledger._chain import blocks_of, spend_from_text
from tacit.ledger._curves import at_orders
from tacit.ledger._lost_entries import lost_between

if TYPE_CHECKING:
    from tacit.ledger._rows import EntryRow, ReleaseRow
    from tacit.ledger._store import StoreReader

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
    drawn = _drawn(rows, release)
    paid: dict[int, EntryRow] = {}
    for row in rows:
        body = json.loads(row.body) if row.kind in _PAYMENTS else {}
        if body.get("version") != release.version or "run" in body:
            continue
        if not covers(row, drawn):
            continue
        if row.kind == "charge" and row.seq != claimed and source.claim_of(row.seq) is None:
            continue
        if row.seq < drawn.seq and lost_between(source.entry_keyed, row.seq, drawn.seq):
            continue
        paid |= {int(id_): row for id_ in row.levels.split(",")}
    return drawn, paid


def run_of_plan(source: EntrySource, root: int, version: int, plan: str) -> EntryRow | None:
    """Find the charge of a plan's run on a declared version of a dataset."""
    for row in source.entries_of_plan(plan):
        same_version = row.kind == "run" and json.loads(row.body)["version"] == version
        if same_version and source.root_of(row.account) == root:
            return row
    return None


def run_payments(source: EntrySource, run: EntryRow) -> dict[int, EntryRow]:
    """Return each account's latest payment for a run: its charge, or a view that covers it."""
    paid = {int(id_): run for id_ in run.levels.split(",")}
    for row in source.entries_of_plan(run.plan):
        seen = row.kind == "view" and json.loads(row.body).get("run") == run.seq
        if seen and covers(row, run):
            paid |= {int(id_): row for id_ in row.levels.split(",")}
    return paid


def covers(payment: EntryRow, drawn: EntryRow) -> bool:
    """Whether a recorded charge is nowhere less than that of a draw, and concerns all of its blocks.

    Renyi orders are compared where the payment has them; the draw may need `CurveNeeded` there.
    """
    blocks, needed = set(blocks_of(payment.body)), blocks_of(drawn.body)
    if blocks and not (needed and blocks.issuperset(needed)):
        return False
    if payment.spend == drawn.spend:
        return True
    paid, price = spend_from_text(payment.spend), spend_from_text(drawn.spend)
    if paid.curve:
        price = at_orders(price, json.loads(drawn.body)["cost"], tuple(order for order, _ in paid.curve))
    pairs = [(paid.epsilon, price.epsilon), (paid.delta, price.delta), (paid.rho, price.rho)]
    pairs += [(mine, price.divergence(order)) for order, mine in paid.curve]
    return all(mine is None or (its is not None and mine >= its) for mine, its in pairs)  # None: not finite
