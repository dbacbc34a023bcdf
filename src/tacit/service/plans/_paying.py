"""Who pays for a question: one rule, for the card that shows the price and for the draw that charges it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.errors import TacitError

if TYPE_CHECKING:
    from tacit.service._database import Database, ServiceRow

_ANSWERED = "EXISTS (SELECT 1 FROM releases r WHERE r.plan = ? AND r.account = a.name AND r.shown_from <= ?)"
_FAILED_DAYS = (
    "EXISTS (SELECT 1 FROM queries q JOIN datasets d ON d.name = q.dataset WHERE q.plan = ?"
    " AND q.account = a.name AND q.state = 'failed' AND q.answer_at <= ? AND d.kind = 'stream')"
)


def own_account(
    database: Database, person: str, dataset: str, named: str | None = None, plan: str = ""
) -> ServiceRow | None:
    """Return the account of a person that pays: its name and purpose; None if there is none.

    It is the account that was named; else one that was approved for exactly this plan; else the allotment
    that has paid for the answer, or for a series whose draw failed, so that asking again is free; else the
    newest allotment. A named account that is not the person's, or is for another plan, is refused.

    Parameters
    ----------
    database
        The service's database.
    person, dataset
        Whose account, and for which dataset.
    named
        The account that the question names.
    plan
        The hash of the question's plan.
    """
    from tacit.service.drawer import now  # which imports this room

    if named is None:
        moment = now()
        return database.row(
            "SELECT name, purpose, plan"  # noqa: S608 - constants only
            " FROM accounts a WHERE dataset = ? AND person = ? AND plan IN ('', ?)"
            f" ORDER BY plan DESC, ({_ANSWERED} OR {_FAILED_DAYS}) DESC, created DESC, name DESC LIMIT 1",
            dataset, person, plan, plan, moment, plan, moment,
        )  # fmt: skip
    row = database.row(
        "SELECT name, purpose, plan FROM accounts WHERE name = ? AND dataset = ? AND person = ?",
        named, dataset, person,
    )  # fmt: skip
    if row is None or row["plan"] not in {"", plan}:
        raise TacitError(
            "no-allotment",
            "this account is not an allotment of yours for this question",
            fix="choose one of your allotments, or ask the curator for one",
        )
    return row
