"""Accounts as people see them: the ledger has budgets and totals, the service names and purposes.

Allotments are child accounts of a dataset for one person and one purpose; curators open and stop them.
Budgets and totals live in the ledger. The table ``accounts`` says whose an account is; nobody can pay from an
account that is not in it. Each act writes its rows first and changes the ledger last, before the commit: a
crash between the two leaves an account that nobody can use, whose name is not used again.

The burn-down of a budget says what was spent at which time, from the ledger's log.
"""

from __future__ import annotations

import json
import time
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.errors import TacitError
from tacit.service._bodies import Name  # noqa: TC001 - pydantic reads it
from tacit.service._operations import Answer
from tacit.service._refusals import not_found
from tacit.service._times import now_text
from tacit.service.curation._amounts import (
    AmountBody,
    LastDay,
    Reason,
    ReasonBody,
    budget_document,
    last_day_of,
    left_document,
    main_name,
    read_last_day,
    spent_document,
)
from tacit.service.curation._roles import (
    analysts_of,
    names_of,
    needs_role,
    own_request,
    roles_now,
    seen_dataset,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import date

    from tacit.accounting import Budget
    from tacit.ledger import Account, Ledger
    from tacit.service._database import Change, ServiceRow
    from tacit.service._operations import ServiceCall
    from tacit.service._service import Service

_POINTS = 120
_LONG = 2_000  # entries of a log that takes a while to read
_FRESH = 10.0  # seconds for which the points of a long log are not made again


def accounts_below(service: Service, dataset: str) -> tuple[Account, list[Account]]:
    """Return a dataset's own account and the accounts below it, in the order in which they were opened."""
    every = service.ledger.accounts()
    main = next(account for account in every if account.name == dataset)
    return main, [account for account in every if main.id in account.path[1:]]


def account_document(
    account: Account, main: Account, row: ServiceRow | None, *, name: str, viewer: str
) -> dict[str, Any]:
    """Return an account: its budget, what is spent and left, whose it is and for what.

    ``left_to_use`` is the smaller of what is left here and what is left of the dataset's budget. ``mine``
    says whether the viewer may spend it, and ``filter`` holds what was spent in every detail, so that a
    client can work out what fits.
    """
    facts = row or {"person": "", "purpose": "", "request": "", "plan": "", "created": ""}
    return {
        "account": account.name,
        "parent": account.parent,
        "person": facts["person"],
        "person_name": name,
        "purpose": facts["purpose"],
        "request": facts["request"],
        "plan": facts["plan"],
        "created": facts["created"],
        "budget": budget_document(account.budget),
        "spent": spent_document(account),
        "left": left_document(account.filter.remaining),
        "left_to_use": left_document(smaller_left(account, main).filter.remaining),
        "last_day": last_day_of(account.expires),
        "frozen": account.frozen,
        "mine": bool(viewer) and facts["person"] == viewer,
        "filter": account.filter.to_json(),
        "unused": row is None,
    }


def smaller_left(account: Account, main: Account) -> Account:
    """Return the account, of the two, that has less left; its own where the two cannot be compared."""
    mine, main_measure = main_name(account.budget), main_name(main.budget)
    if mine != main_measure:
        return account
    remaining, above = getattr(account.filter.remaining, mine), getattr(main.filter.remaining, main_measure)
    return main if (above or Fraction(0)) < (remaining or Fraction(0)) else account


def is_overbooked(main: Account, below: list[Account]) -> bool:
    """Whether the accounts directly below a dataset may together spend more than it has left."""
    return _unpromised(main, below) < 0


def _unpromised(main: Account, below: list[Account]) -> Fraction:
    """Return what is left of a dataset's budget less what the accounts directly below it have left."""
    name = main_name(main.budget)
    lent = [
        getattr(account.filter.remaining, name) or Fraction(0)
        for account in below
        if account.parent == main.name and not account.frozen
    ]
    return (getattr(main.filter.remaining, name) or Fraction(0)) - sum(lent, Fraction(0))


def after_approval(
    kind: str, requested: Budget | None, main: Account, below: list[Account]
) -> dict[str, Any] | None:
    """Return what would be left if a request were approved, as an amount and as a sentence.

    For an allotment or a plan it is what nobody could spend yet if all accounts were used up; it is negative
    if they are larger together than what is left. None if the amount is counted in another number than the
    dataset's budget.

    Parameters
    ----------
    kind
        ``allotment``, ``plan``, ``growth`` or ``refresh``.
    requested
        The amount of the request; None for a refresh.
    main, below
        The dataset's account and the accounts below it.
    """
    name = main_name(main.budget)
    if requested is not None and main_name(requested) != name:
        return None
    amount = Fraction(0) if requested is None else getattr(requested, name)
    if kind == "growth":
        remaining = (
            (getattr(main.filter.remaining, name) or Fraction(0)) + amount - getattr(main.budget, name)
        )
        sentence = f"{name} {float(remaining):g} of {float(amount):g} is left of the dataset's budget."
    elif kind == "refresh":
        remaining = getattr(main.budget, name)
        sentence = f"{name} {float(remaining):g} is left: the total starts again from zero."
    else:
        remaining = _unpromised(main, below) - amount
        sentence = (
            f"if all accounts are used up, {name} {float(remaining):g} of the dataset's budget is left."
            if remaining >= 0
            else f"the accounts together are larger than what is left, by {name} {-float(remaining):g}. "
            "Those who ask first get answers; the dataset's budget cannot be exceeded."
        )
    return {"exact": {name: str(remaining)}, "value": {name: float(remaining)}, "sentence": sentence}


def account_documents(
    service: Service, dataset: str, viewer: str, *, oversees: bool = False
) -> list[dict[str, Any]]:
    """Return the accounts below a dataset that a viewer sees: the own ones; who oversees it sees all."""
    main, below = accounts_below(service, dataset)
    rows = {
        row["name"]: row for row in service.database.rows("SELECT * FROM accounts WHERE dataset = ?", dataset)
    }
    names = names_of(service.database, (row["person"] for row in rows.values()))
    return [
        account_document(account, main, row, name=names.get(row["person"], "") if row else "", viewer=viewer)
        for account in below
        if ((row := rows.get(account.name)) is not None and row["person"] == viewer) or oversees
    ]


class AllotmentGiven(AmountBody):
    """An allotment that a curator opens for a person."""

    person: Name
    purpose: Reason
    last_day: LastDay = ""


class LastDayGiven(ReasonBody):
    """Another last day for an account; empty for none."""

    last_day: LastDay = ""


def list_accounts(call: ServiceCall) -> dict[str, Any]:
    """List the accounts of a dataset: all for curators and auditors, the own ones for an analyst."""
    roles = call.person.roles_on(call.dataset)
    oversees = bool(roles & {"curator", "auditor"})
    call.service.dataset(call.dataset)
    return {
        "dataset": call.dataset,
        "oversees": oversees,
        "accounts": account_documents(call.service, call.dataset, call.person.id, oversees=oversees),
    }


def show_account(call: ServiceCall) -> dict[str, Any]:
    """Show one account, to its person, to curators and to auditors."""
    name = _account_name(call)
    row = _row(call.service, name, call.dataset)
    roles = call.person.roles_on(call.dataset)
    if row["person"] != call.person.id and not roles & {"curator", "auditor"}:
        raise not_found()
    main, _ = accounts_below(call.service, call.dataset)
    account = call.service.ledger.account(name)
    display_name = names_of(call.service.database, [row["person"]]).get(row["person"], "")
    acts = [
        {"at": entry.at, "kind": entry.kind, "statement": entry.purpose, "who": entry.who}
        for entry in call.service.ledger.history(name)
        if entry.kind in {"freeze", "unfreeze", "expiry", "grow", "refresh"} and entry.account == name
    ]
    return {
        "dataset": call.dataset, "may_curate": "curator" in roles, "acts": acts,
        **account_document(account, main, row, name=display_name, viewer=call.person.id),
    }  # fmt: skip


def give_allotment(call: ServiceCall) -> Answer:
    """Open an allotment for a person who may ask questions; nobody opens one for themselves."""
    body: AllotmentGiven = call.body
    service, dataset, budget = call.service, call.dataset, body.budget()
    service.dataset(dataset)  # refuses one that does not exist
    day = read_last_day(body.last_day)
    with service.database.change() as change:
        needs_role(roles_now(change, call.person.id, dataset), "curator")
        if body.person == call.person.id:
            raise own_request()
        check_analyst(change, body.person, dataset)
        name = next_account_name(service, change, dataset, body.person)
        insert_account(change, name, dataset, body.person, body.purpose)
        service.record(change, call.person.id, "allotment-opened", name, call.id)
        open_child(service, name, dataset, budget, day)
    return Answer({"account": name, "dataset": dataset}, 201, f"/accounts/{name}")


def check_analyst(change: Change, person: str, dataset: str) -> None:
    """Refuse an account for somebody who may not ask questions to the dataset now."""
    if "analyst" not in roles_now(change, person, dataset):
        raise TacitError(
            "bad-parameter",
            "this person is not an analyst of the dataset",
            why="only analysts ask questions and need an allotment",
            fix="let an owner or administrator grant the role first",
        )


def next_account_name(service: Service, change: Change, dataset: str, person: str) -> str:
    """Return a name that no account has, in the ledger or in an approval that waits to be carried out."""
    start = f"{dataset}/{person}/"
    names = {account.name for account in service.ledger.accounts() if account.name.startswith(start)}
    waiting = change.rows(
        "SELECT document FROM requests WHERE state = 'approving' AND dataset = ? AND asked_by = ?",
        dataset, person,
    )  # fmt: skip
    names |= {json.loads(row["document"])["granted"].get("account") for row in waiting}
    number = 1
    while f"{start}{number}" in names:
        number += 1
    return f"{start}{number}"


def insert_account(
    change: Change, name: str, dataset: str, person: str, purpose: str, request: str = "", plan: str = ""
) -> None:
    """Write whose an account is."""
    change.run(
        "INSERT INTO accounts (name, dataset, person, purpose, request, plan, created)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        name, dataset, person, purpose, request, plan, now_text(),
    )  # fmt: skip


def open_child(service: Service, name: str, dataset: str, budget: Budget, day: date | None) -> None:
    """Open the account in the ledger, or find it: the same account is never opened twice."""
    main = service.ledger.account(dataset)
    service.ledger.create_account(name, parent=dataset, budget=budget, version=main.version, expires=day)


def freeze_account(call: ServiceCall) -> Answer:
    """Stop every charge to an account; what was paid for stays readable."""
    ledger = call.service.ledger
    return _act(call, "account-frozen", lambda name, told: ledger.freeze(name, **told))


def unfreeze_account(call: ServiceCall) -> Answer:
    """Allow charges to an account again."""
    ledger = call.service.ledger
    return _act(call, "account-unfrozen", lambda name, told: ledger.unfreeze(name, **told))


def set_last_day(call: ServiceCall) -> Answer:
    """Change the last day of an account."""
    day = read_last_day(call.body.last_day)
    ledger = call.service.ledger
    return _act(call, "last-day-changed", lambda name, told: ledger.set_expiry(name, day, **told))


def _act(call: ServiceCall, event: str, act: Callable[[str, dict[str, str]], object]) -> Answer:
    """Do something to an account on record: the reason in the ledger, the act in the audit events."""
    name = _account_name(call)
    service = call.service
    service.dataset(call.dataset)
    with service.database.change() as change:
        needs_role(roles_now(change, call.person.id, call.dataset), "curator")
        if name != call.dataset:
            row = _row(service, name, call.dataset)
            if row["person"] == call.person.id and event != "account-frozen":
                raise own_request()
        service.record(change, call.person.id, event, name, call.id)
        act(name, {"statement": call.body.reason, "who": call.person.id})
    location = f"/datasets/{name}" if name == call.dataset else f"/accounts/{name}"
    return Answer({"account": name, "dataset": call.dataset}, 200, location)


def _account_name(call: ServiceCall) -> str:
    """Return the account of the path: a dataset's own, or one below it."""
    if "person" not in call.path:
        return call.dataset
    return f"{call.dataset}/{call.path['person']}/{call.path['number']}"


def _row(service: Service, name: str, dataset: str) -> dict[str, Any]:
    row = service.database.row("SELECT * FROM accounts WHERE name = ? AND dataset = ?", name, dataset)
    if row is None:
        raise not_found()
    return row


def account_again(call: ServiceCall, fields: Mapping[str, str]) -> dict[str, Any]:
    """Show the account again."""
    return {**show_account(call), "written": fields}


def allotment_again(call: ServiceCall, fields: Mapping[str, str]) -> dict[str, Any]:
    """Show the form of an allotment again."""
    dataset = seen_dataset(call, call.dataset)
    return {
        "dataset": dataset,
        "written": fields,
        "analysts": analysts_of(call.service.database, dataset, call.person.id),
    }


class BurnDown:
    """The points of each account's burn-down, kept until the log grows; of a long log for 10 seconds."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], tuple[int, float, list[dict[str, Any]]]] = {}

    def points(self, ledger: Ledger, account: str) -> list[dict[str, Any]]:
        """Return times with what was spent by then: exact text and float; at most 120 points."""
        key, head, now = (ledger.id, account), ledger.head.count, time.monotonic()
        cached = self._kept.get(key)
        if cached is not None and (cached[0] == head or (head > _LONG and now - cached[1] < _FRESH)):
            return cached[2]
        states = ledger.filters(account)
        chosen = states if len(states) <= _POINTS else _thinned(states)
        points = []
        for at, filter_ in chosen:
            name, remaining = main_name(filter_.budget), filter_.remaining
            spent = getattr(filter_.budget, name) - (getattr(remaining, name) or Fraction(0))
            points.append({"at": at, "spent": str(spent), "value": float(spent)})
        self._kept[key] = (head, now, points)
        return points


def _thinned(states: list[Any]) -> list[Any]:
    """Keep the first, the last and evenly spaced points between."""
    step = (len(states) - 1) / (_POINTS - 1)
    return [states[round(place * step)] for place in range(_POINTS)]
