"""Who has paid for a stored release: a payment counts only if it covers what the stored draw cost."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Protocol

from tacit.ledger import _refusals
from tacit.ledger._chain import spend_from_text

if TYPE_CHECKING:
    from tacit.ledger._rows import EntryRow, ReleaseRow
    from tacit.ledger._store import StoreReader

__all__ = [
    "CommittedEntries",
    "EntrySource",
    "certificate_of",
    "claim_key",
    "covers",
    "payments",
    "stored_draw",
]

_PAYMENTS = frozenset({"draw", "view", "charge"})


class EntrySource(Protocol):
    """What is needed of a transaction, or of a store, to find payments."""

    def claim_of(self, receipt: int) -> EntryRow | None:
        """Find the claim of a charge's one draw."""

    def entries_of_plan(self, plan: str) -> list[EntryRow]:
        """Return the entries that name a plan."""


class CommittedEntries:
    """The entries of a store outside of a transaction."""

    def __init__(self, reader: StoreReader) -> None:
        self.entries_of_plan = reader.entries_of_plan
        self._reader = reader

    def claim_of(self, receipt: int) -> EntryRow | None:
        """Find the claim of a charge's one draw."""
        return self._reader.entry_with_key(claim_key(receipt))


def claim_key(receipt: int) -> str:
    """Return the key that the claim of a charge's one draw carries; it is unique in the store."""
    return f"d:{receipt}"


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
    draw pays for nothing.
    """
    rows = source.entries_of_plan(release.plan)
    drawn = _drawn(rows, release)
    paid: dict[int, EntryRow] = {}
    for row in rows:
        if row.kind not in _PAYMENTS or json.loads(row.body)["version"] != release.version:
            continue
        if not covers(row.spend, drawn.spend):
            continue
        if row.kind == "charge" and row.seq != claimed and source.claim_of(row.seq) is None:
            continue
        paid |= {int(id_): row for id_ in row.levels.split(",")}
    return drawn, paid


def covers(spent: str, drawn: str) -> bool:
    """Whether a recorded spend is nowhere less than that of a draw."""
    if spent == drawn:
        return True
    paid, price = spend_from_text(spent), spend_from_text(drawn)  # None stands for a value that is not finite
    pairs = ((paid.epsilon, price.epsilon), (paid.delta, price.delta), (paid.rho, price.rho))
    return all(mine is None or (its is not None and mine >= its) for mine, its in pairs)
