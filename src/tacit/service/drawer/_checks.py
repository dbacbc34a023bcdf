"""What is checked before a query is written: who pays, for what purpose, and whether enough is left."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tacit.errors import TacitError
from tacit.fixes import Either, Say
from tacit.service.plans import own_account

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tacit.core import Plan
    from tacit.ledger import Account, Ledger
    from tacit.service._database import Database, ServiceRow


def check_paused(paused: str) -> None:
    """Refuse a question to a dataset that takes none; the reason is for its curators."""
    if paused:
        raise TacitError(
            "dataset-paused",
            "the dataset takes no questions now",
            why="its curator has paused it, or an answer was not ready at its time",
            fix="ask the curator of the dataset",
        )


def paying_account(database: Database, person: str, dataset: str, named: str | None, plan: str) -> ServiceRow:
    """Return the account that pays, as the card of the question names it; refuse if there is none."""
    row = own_account(database, person, dataset, named, plan)
    if row is None:
        raise TacitError(
            "no-allotment",
            "you have no allotment for this dataset",
            fix="ask the curator of the dataset for an allotment",
        )
    return row


def purpose_of(account: ServiceRow, given: str) -> str:
    """Return the purpose that the ledger records: that of the allotment; if it has none, the given one."""
    bound, given = str(account["purpose"]).strip(), given.strip()
    if bound and given and given != bound:
        raise TacitError(
            "account-differs",
            "the allotment was given for another purpose",
            why="an allotment is bound to the purpose that its curator approved",
            fix="leave the purpose out, or ask for an allotment for this purpose",
        )
    if not bound and not given:
        raise TacitError(
            "bad-parameter", "a question needs a purpose", fix="say in a few words what the answer is for"
        )
    return bound or given


def check_budget(ledger: Ledger, account: str, dataset: str, plan: Plan[Any], *, stored: bool) -> None:
    """Refuse now what the ledger would refuse at the draw, with what would fit; nothing is written.

    The ledger decides again at the draw. A stored answer costs only the accounts below the dataset's.
    """
    if ledger.refusal is not None:
        raise ledger.refusal
    below = True
    for level in _path(ledger, account):
        below = below and level.name != dataset
        _check_open(level)
        if below or not stored:
            _check_level(level, plan)


def check_days(ledger: Ledger, account: str) -> None:
    """Refuse now what the ledger would refuse at the draw of more days of a series that is paid for."""
    if ledger.refusal is not None:
        raise ledger.refusal
    for level in _path(ledger, account):
        _check_open(level)


def _path(ledger: Ledger, account: str) -> Iterator[Account]:
    """Yield an account and all accounts above it."""
    level: Account | None = ledger.account(account)
    while level is not None:
        yield level
        level = None if level.parent is None else ledger.account(level.parent)


def _check_open(level: Account) -> None:
    if level.frozen:
        raise TacitError(
            "account-frozen",
            "the account that pays is frozen",
            why="its curator has stopped every charge to it",
            fix=Either(Say("repeat a question that was answered, which is free"), Say("ask the curator")),
        )
    if level.expires is not None and datetime.now(UTC) > level.expires:
        raise TacitError(
            "account-expired",
            "the last day of the account that pays has passed",
            fix="ask the curator for a later day; what was paid for can still be read",
        )


def _check_level(level: Account, plan: Plan[Any]) -> None:
    from tacit.core import in_promised_words

    cost = plan.cost
    if level.per_charge is not None and not cost.fits(level.per_charge):
        raise TacitError(
            "charge-too-large",
            "the account that pays allows less for one question",
            fix="ask for less at once: a smaller epsilon or rho",
        )
    if level.totals is not None:
        return  # blocks: the ledger decides at the draw
    try:
        level.filter.after(level.filter.spend_of(cost), cost.fits)
    except TacitError as refusal:
        raise in_promised_words(refusal, plan.promised) from None
