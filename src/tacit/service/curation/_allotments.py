"""Allotments: child accounts of a dataset for one person and one purpose; curators open and stop them.

Budgets and totals live in the ledger. The table ``accounts`` says whose an account is; nobody can pay from an
account that is not in it. Each act writes its rows first and changes the ledger last, before the commit: a
crash between the two leaves an account that nobody can use, whose name is not used again.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tacit.errors import TacitError
from tacit.service._bodies import Name  # noqa: TC001 - pydantic reads it
from tacit.service._operations import Answer
from tacit.service._refusals import not_found
from tacit.service._times import now_text
from tacit.service.curation._accounts import account_document, account_documents, accounts_below
from tacit.service.curation._fields import AmountBody, LastDay, Reason, ReasonBody, read_last_day
from tacit.service.curation._people import analysts_of, names_of, roles_now, seen_dataset
from tacit.service.curation._refusals import needs_role, own_request

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import date

    from tacit.accounting import Budget
    from tacit.service._database import Change
    from tacit.service._operations import ServiceCall
    from tacit.service._service import Service


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
    own, _ = accounts_below(call.service, call.dataset)
    account = call.service.ledger.account(name)
    shown = names_of(call.service.database, [row["person"]]).get(row["person"], "")
    acts = [
        {"at": entry.at, "kind": entry.kind, "statement": entry.purpose, "who": entry.who}
        for entry in call.service.ledger.history(name)
        if entry.kind in {"freeze", "unfreeze", "expiry", "grow", "refresh"} and entry.account == name
    ]
    return {
        "dataset": call.dataset, "may_curate": "curator" in roles, "acts": acts,
        **account_document(account, own, row, name=shown, viewer=call.person.id),
    }  # fmt: skip


def give_allotment(call: ServiceCall) -> Answer:
    """Open an allotment for a person who may ask questions; nobody opens one for themselves."""
    given: AllotmentGiven = call.body
    service, dataset, budget = call.service, call.dataset, given.budget()
    service.dataset(dataset)  # refuses one that does not exist
    day = read_last_day(given.last_day)
    with service.database.change() as change:
        needs_role(roles_now(change, call.person.id, dataset), "curator")
        if given.person == call.person.id:
            raise own_request()
        check_analyst(change, given.person, dataset)
        name = next_account_name(service, change, dataset, given.person)
        insert_account(change, name, dataset, given.person, given.purpose)
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
    taken = {account.name for account in service.ledger.accounts() if account.name.startswith(start)}
    waiting = change.rows(
        "SELECT document FROM requests WHERE state = 'approving' AND dataset = ? AND asked_by = ?",
        dataset, person,
    )  # fmt: skip
    taken |= {json.loads(row["document"])["granted"].get("account") for row in waiting}
    number = 1
    while f"{start}{number}" in taken:
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
    own = service.ledger.account(dataset)
    service.ledger.create_account(name, parent=dataset, budget=budget, version=own.version, expires=day)


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


def _act(call: ServiceCall, what: str, act: Callable[[str, dict[str, str]], object]) -> Answer:
    """Do something to an account on record: the reason in the ledger, the act in the audit events."""
    name = _account_name(call)
    service = call.service
    service.dataset(call.dataset)
    with service.database.change() as change:
        needs_role(roles_now(change, call.person.id, call.dataset), "curator")
        if name != call.dataset:
            row = _row(service, name, call.dataset)
            if row["person"] == call.person.id and what != "account-frozen":
                raise own_request()
        service.record(change, call.person.id, what, name, call.id)
        act(name, {"statement": call.body.reason, "who": call.person.id})
    place = f"/datasets/{name}" if name == call.dataset else f"/accounts/{name}"
    return Answer({"account": name, "dataset": call.dataset}, 200, place)


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


def account_again(call: ServiceCall, written: Mapping[str, str]) -> dict[str, Any]:
    """Show the account again."""
    return {**show_account(call), "written": written}


def allotment_again(call: ServiceCall, written: Mapping[str, str]) -> dict[str, Any]:
    """Show the form of an allotment again."""
    dataset = seen_dataset(call, call.dataset)
    return {
        "dataset": dataset,
        "written": written,
        "analysts": analysts_of(call.service.database, dataset, call.person.id),
    }
