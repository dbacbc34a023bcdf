"""Who has paid for a stored release: a payment counts only if it covers what the stored draw cost."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Protocol

from tacit.ledger import _refusals
from tacit.ledger._chain import spend_from_text

if TYPE_CHECKING:
    from tacit.accounting import Spend
    from tacit.ledger._rows import EntryRow, ReleaseRow

__all__ = ["EntrySource", "covers", "payments", "stored_draw"]

_PAYMENTS = frozenset({"draw", "view", "charge"})


class EntrySource(Protocol):
    """What is needed of a transaction, or of a store, to find payments."""

    def claim_of(self, receipt: int) -> EntryRow | None:
        """Find the claim of a charge's one draw."""

    def entries_of_plan(self, plan: str) -> list[EntryRow]:
        """Return the entries that name a plan."""


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
    price = spend_from_text(drawn.spend)
    paid: dict[int, EntryRow] = {}
    for row in rows:
        if row.kind not in _PAYMENTS or json.loads(row.body)["version"] != release.version:
            continue
        if row.spend != drawn.spend and not covers(spend_from_text(row.spend), price):
            continue
        if row.kind == "charge" and row.seq != claimed and source.claim_of(row.seq) is None:
            continue
        paid |= {int(id_): row for id_ in row.levels.split(",")}
    return drawn, paid


def covers(paid: Spend, price: Spend) -> bool:
    """Whether what was paid is nowhere less than the price; None stands for a value that is not finite."""
    pairs = ((paid.epsilon, price.epsilon), (paid.delta, price.delta), (paid.rho, price.rho))
    return all(mine is None or (its is not None and mine >= its) for mine, its in pairs)
