"""Decisions on requests. Nobody decides their own, and a request is decided once.

The decision is written first (state ``approving``, with the account's name in it), in a transaction that
checks both people as they are now. Then it is carried out: a second transaction changes the ledger and sets
``approved``. All of this happens under the database's write lock, one after another. A crash between the two,
or between the ledger's commit and the database's, leaves ``approving``: the decision stands, it cannot be
declined, and approving once more carries it out. Carrying out twice does nothing twice: an account is found
by its name, a budget is set to an absolute value, and a refresh is recognised by the request's id in the log.
"""

from __future__ import annotations

import json
from datetime import date
from typing import TYPE_CHECKING, Any

from tacit.errors import TacitError
from tacit.service._operations import Answer
from tacit.service._refusals import not_found, not_permitted
from tacit.service._times import now_text
from tacit.service.curation._allotments import check_analyst, insert_account, next_account_name, open_child
from tacit.service.curation._amounts import budget_from, budget_text, plan_budget
from tacit.service.curation._fields import AmountBody, LastDay, read_last_day
from tacit.service.curation._people import roles_now
from tacit.service.curation._refusals import already_decided, needs_role, own_request
from tacit.service.curation._requests import check_larger, request_row
from tacit.service.curation._two_people import check_two_people
from tacit.service.plans import shelf_of

if TYPE_CHECKING:
    from tacit.accounting import Budget
    from tacit.service._database import Change, ServiceRow
    from tacit.service._operations import ServiceCall
    from tacit.service._service import Service

#: Refusals of the ledger after which it is certain that nothing was written.
_REFUSED = frozenset({"bad-parameter", "account-differs", "unknown-account"})


class RequestApproved(AmountBody):
    """An approval; the amount and the last day of an allotment may be lowered."""

    last_day: LastDay = ""


def approve(call: ServiceCall) -> Answer:
    """Approve a request and carry it out.

    Guarantee: the person who asked and the person who approves are two people who have their roles at this
    moment. One approval opens at most one account, grows or refreshes a budget at most once.
    """
    row = request_row(call)
    request, service = row["id"], call.service
    with service.database.change() as change:
        row = _decidable(call, change, request)
        if row["state"] == "open":
            document = _granted(call, change, row)
            change.run(
                "UPDATE requests SET state = 'approving', decided_by = ?, decided = ?, document = ?"
                " WHERE id = ? AND state = 'open'",
                call.person.id, now_text(), json.dumps(document), request,
            )  # fmt: skip
            service.record(change, call.person.id, "request-approved", request, call.id)
    try:
        carry_out(service, request, call.id)
    except TacitError as refusal:
        if refusal.code in _REFUSED:
            _reopen(call, request)
        raise
    decided = service.database.row("SELECT decided_by, document FROM requests WHERE id = ?", request)
    if decided is None or decided["decided_by"] != call.person.id:
        raise already_decided()  # another person's decision; it is carried out now
    granted = json.loads(decided["document"]).get("granted", {})
    account = granted.get("account", "")
    return Answer(
        {"request": request, "state": "approved", "account": account, "granted": granted},
        200, f"/requests/{request}",
    )  # fmt: skip


def _reopen(call: ServiceCall, request: str) -> None:
    """Take a decision back that the ledger has refused to carry out."""
    with call.service.database.change() as change:
        row = change.row("SELECT document FROM requests WHERE id = ? AND state = 'approving'", request)
        if row is not None:
            asked = {name: one for name, one in json.loads(row["document"]).items() if name != "granted"}
            change.run(
                "UPDATE requests SET state = 'open', decided_by = '', decided = '', document = ?"
                " WHERE id = ?",
                json.dumps(asked), request,
            )  # fmt: skip
            call.service.record(change, call.person.id, "approval-failed", request, call.id)


def decline(call: ServiceCall) -> Answer:
    """Decline a request, with a reason."""
    request = request_row(call)["id"]
    with call.service.database.change() as change:
        row = _decidable(call, change, request)
        if row["state"] != "open":
            raise already_decided()
        change.run(
            "UPDATE requests SET state = 'declined', decided_by = ?, decided = ?, reason = ? WHERE id = ?",
            call.person.id, now_text(), call.body.reason, request,
        )  # fmt: skip
        call.service.record(change, call.person.id, "request-declined", request, call.id)
    return Answer({"request": request, "state": "declined"}, 200, f"/requests/{request}")


def _decidable(call: ServiceCall, change: Change, request: str) -> ServiceRow:
    """Return the request if the caller may decide it now; read again inside the transaction."""
    row = change.row("SELECT * FROM requests WHERE id = ?", request)
    if row is None:
        raise not_found()
    if not call.person.may("curator", row["dataset"]):  # the token, too, must be for this dataset
        raise not_permitted()
    needs_role(roles_now(change, call.person.id, row["dataset"]), "curator")
    if row["asked_by"] == call.person.id:
        raise own_request()
    if row["state"] not in {"open", "approving"}:
        raise already_decided()
    return row


def _granted(call: ServiceCall, change: Change, row: ServiceRow) -> dict[str, Any]:
    """Check what is approved against what was asked, and the person who asked as they are now."""
    given: RequestApproved = call.body
    document: dict[str, Any] = json.loads(row["document"])
    if row["kind"] in {"growth", "refresh"}:
        if "curator" not in roles_now(change, row["asked_by"], row["dataset"]):
            raise not_permitted("the person who proposed this is no longer a curator of the dataset")
        _refuse_changes(given)
        days = call.service.settings.waiting_days
        check_two_people(change, row["asked_by"], call.person.id, row["dataset"], days)
        if row["kind"] == "growth":
            check_larger(call.service.ledger.account(row["dataset"]).budget, budget_from(document["budget"]))
        return {**document, "granted": {"budget": document.get("budget")}}
    check_analyst(change, row["asked_by"], row["dataset"])
    asked = budget_from(document["budget"])
    if row["kind"] == "plan":
        if given.is_given():
            raise _only_as_it_is("the price of a plan cannot be changed")
        _check_plan(call.service, row["dataset"], document)
        budget = asked
    else:
        budget = _lowered(asked, given.budget()) if given.is_given() else asked
    day = _earlier(document["last_day"], given.last_day)
    read_last_day(day)
    name = next_account_name(call.service, change, row["dataset"], row["asked_by"])
    granted = {"account": name, "budget": budget_text(budget), "last_day": day}
    return {**document, "granted": granted}


def _refuse_changes(given: RequestApproved) -> None:
    if given.is_given() or given.last_day:
        raise _only_as_it_is("this request can be approved only as it is")


def _only_as_it_is(what: str) -> TacitError:
    return TacitError("bad-parameter", what, fix="decline it, or approve it as it is")


def _lowered(asked: Budget, granted: Budget) -> Budget:
    same = (asked.epsilon is None) == (granted.epsilon is None)
    pairs = ((asked.epsilon, granted.epsilon), (asked.delta, granted.delta), (asked.rho, granted.rho))
    if not same or any((new or 0) > (old or 0) for old, new in pairs):
        raise TacitError(
            "bad-parameter",
            "an allotment can be approved as it is or lowered, in epsilon or rho as it was asked for",
            fix="give a smaller amount",
        )
    return granted


def _earlier(asked: str, given: str) -> str:
    """Return the last day: the earlier of the two where both are given."""
    return min(asked, given) if asked and given else asked or given


def _check_plan(service: Service, dataset: str, document: dict[str, Any]) -> None:
    """Refuse a plan that is another one under the present policy, or costs something else."""
    kept = shelf_of(service).plan(service.dataset(dataset), document["ask"])
    if kept.hash != document["plan"] or budget_text(plan_budget(kept.plan)) != document["budget"]:
        raise TacitError(
            "plan-differs",
            "under the dataset's present policy, this question would be another plan",
            why="its question, noise or cost changed since it was requested",
            fix="decline this request; the analyst can ask for the plan again",
        )


def carry_out(service: Service, request: str, call: str) -> None:
    """Carry out an approved request: in the ledger, then in the row; whatever was done before is found."""
    with service.database.change() as change:
        row = change.row("SELECT * FROM requests WHERE id = ? AND state = 'approving'", request)
        if row is None:
            return  # somebody else has just carried it out
        change.run("UPDATE requests SET state = 'approved' WHERE id = ?", request)
        document = json.loads(row["document"])
        if row["kind"] in {"allotment", "plan"}:
            _open_granted(service, change, row, document, call)
        else:
            service.record(change, row["decided_by"], f"{row['kind']}-decided", row["dataset"], call)
            _change_budget(service, row, document)


def _open_granted(
    service: Service, change: Change, row: ServiceRow, document: dict[str, Any], call: str
) -> None:
    """Open the account that was granted; its name stands in the decision."""
    granted, dataset, plan = document["granted"], row["dataset"], document.get("plan", "")
    name, day = granted["account"], granted["last_day"]
    insert_account(change, name, dataset, row["asked_by"], document["purpose"], row["id"], plan)
    service.record(change, row["decided_by"], "allotment-opened", name, call)
    expires = date.fromisoformat(day) if day else None
    open_child(service, name, dataset, budget_from(granted["budget"]), expires)


def _change_budget(service: Service, row: ServiceRow, document: dict[str, Any]) -> None:
    """Grow or refresh the budget of a dataset, once for each request; the log names both people."""
    dataset, ledger = row["dataset"], service.ledger
    mark = f"request {row['id']}: proposed by {row['asked_by']}, approved by {row['decided_by']}"
    kind = "grow" if row["kind"] == "growth" else "refresh"
    if any(entry.kind == kind and entry.purpose.startswith(mark) for entry in ledger.history(dataset)):
        return  # done before a crash
    statement = f"{mark}: {document['statement']}"
    if kind == "grow":
        ledger.grow(dataset, budget_from(document["budget"]), statement=statement, who=row["decided_by"])
    else:
        ledger.refresh(dataset, statement=statement, who=row["decided_by"])
