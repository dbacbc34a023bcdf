"""Requests and decisions: an analyst asks for an allotment or a plan, a curator for a larger or fresh budget.

Nobody decides their own request, and a request is decided once. The decision is written first (state
``approving``, with the account's name in it), in a transaction that checks both people as they are now. Then
it is carried out: a second transaction changes the ledger and sets ``approved``. All of this happens under
the database's write lock, one after another. A crash between the two, or between the ledger's commit and the
database's, leaves ``approving``: the decision stands, it cannot be declined, and approving once more carries
it out. Carrying out twice does nothing twice: an account is found by its name, a budget is set to an absolute
value, and a refresh is recognised by the request's id in the log.

The rule of two people holds although an administrator makes accounts and gives roles: roles are accounts, not
people. Whoever gives a role, or makes a link with which a password is chosen, may be sitting at the other
account. So for a waiting time both count as the person who did that, and so on: whoever did that may be
somebody whose own role or link is as new. After the waiting time, those who look at the list of people and at
the audit events have had time to object.
"""

from __future__ import annotations

import json
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, WithJsonSchema

from tacit.core import Unit
from tacit.errors import TacitError
from tacit.service._bodies import DatasetName, read_body, read_document
from tacit.service._operations import Answer
from tacit.service._refusals import field_missing, not_found, not_permitted
from tacit.service._times import later_text, new_id, now_text
from tacit.service.curation._accounts import (
    account_documents,
    accounts_below,
    after_approval,
    check_analyst,
    insert_account,
    is_overbooked,
    next_account_name,
    open_child,
)
from tacit.service.curation._amounts import (
    AmountBody,
    LastDay,
    Sentence,
    budget_document,
    budget_from,
    budget_meaning,
    budget_text,
    left_document,
    main_name,
    plan_budget,
    read_last_day,
)
from tacit.service.curation._roles import (
    already_decided,
    names_of,
    needs_role,
    own_request,
    roles_now,
    seen_dataset,
)
from tacit.service.plans import AskBody, plan_cache, read_ask

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.accounting import Budget
    from tacit.ledger import Account
    from tacit.service._database import Change, Database, ServiceRow
    from tacit.service._operations import Caller, ServiceCall
    from tacit.service._service import Service


_CURATES = ("curator", "owner")
_PAGE = 50
_MAX_OPEN = 50  # requests of one person and dataset that nobody has decided
_STATES = ("open", "approving", "approved", "declined", "withdrawn")
_OF_DATASETS = frozenset({"growth", "refresh"})
#: Refusals of the ledger after which it is certain that nothing was written.
_REFUSED = frozenset({"bad-parameter", "account-differs", "unknown-account"})
_WHAT_MOVES = {
    "allotment": "all answers of this allotment together move",
    "plan": "this answer moves",
    "growth": "all answers to this dataset together move",
}


def check_two_people(change: Change, proposer: str, second: str, dataset: str, days: int) -> None:
    """Refuse a decision about a budget if the two who agree may be one person.

    Guarantee: the two accounts stand for two people who both have held a curator's or an owner's role on the
    dataset for the waiting time, or who gave or made it. A first owner and whoever declared the dataset gave
    the role to themselves, and count at once.
    """
    since = later_text(days=-days)
    ones, others = (_hands(change, person, dataset, since, frozenset()) for person in (proposer, second))
    if not any(one.isdisjoint(other) for one in ones for other in others):
        raise TacitError(
            "not-permitted",
            "these two accounts do not count as two people yet",
            why=f"for {days} days, a role counts as that of the person who gave it, and an account whose "
            "password was chosen with a link counts as that of the person who made the link",
            fix="let another owner or curator of the dataset decide, or wait until the days have passed",
        )


def _hands(
    change: Change, person: str, dataset: str, since: str, visited: frozenset[str]
) -> set[frozenset[str]]:
    """Return, for each role of an account on the dataset, the people in whose hands it may be.

    These are the account itself, whoever made its links, whoever gave the role, and in whose hands those are.
    A role that was given by somebody who has none on the dataset does not count.
    """
    makers = _makers(change, person, since)
    if makers is None:
        return set()
    holders = makers | {person}
    chains: set[frozenset[str]] = set()
    for row in _grants(change, person, dataset):
        giver = row["granted_by"]
        if row["granted"] <= since or giver == person:
            chains.add(holders)
        elif giver not in visited:
            chains |= {holders | more for more in _hands(change, giver, dataset, since, visited | {person})}
    return chains


def _makers(change: Change, person: str, since: str) -> frozenset[str] | None:
    """Return who made the links of an account, and the links and the administrator's roles of those people.

    None if somebody among them is no administrator any more: then nobody can say who gave them that role.
    """
    makers: set[str] = set()
    ahead = _link_makers(change, person, since)
    while ahead:
        maker = ahead.pop()
        if maker in makers:
            continue
        makers.add(maker)
        role = change.row(
            "SELECT granted_by, granted FROM grants WHERE person = ? AND dataset = '' AND role = 'admin'",
            maker,
        )
        if role is None:
            return None
        ahead += _link_makers(change, maker, since)
        if role["granted"] > since:
            ahead.append(role["granted_by"])
    return frozenset(makers)


def _link_makers(change: Change, person: str, since: str) -> list[str]:
    """Return who made the links that were used; the operator's, for the first administrator, do not count."""
    rows = change.rows(
        "SELECT DISTINCT made_by FROM made_links WHERE person = ? AND used > ? AND made_by <> ''",
        person, since,
    )  # fmt: skip
    return [row["made_by"] for row in rows]


def _grants(change: Change | Database, person: str, dataset: str) -> list[dict[str, Any]]:
    return change.rows(
        "SELECT g.role, g.dataset, g.granted_by, g.granted FROM grants g JOIN users u ON u.id = g.person"
        " WHERE g.person = ? AND g.dataset IN ('', ?) AND g.role IN (?, ?) AND u.disabled = 0"
        " ORDER BY g.granted",
        person, dataset, *_CURATES,
    )  # fmt: skip


def roles_given(database: Database, people: list[str], dataset: str) -> list[dict[str, str]]:
    """Return since when the people of a request have their roles, and who gave them, for whoever decides."""
    rows = [{**row, "person": one} for one in people for row in _grants(database, one, dataset)]
    names = names_of(database, [row[who] for row in rows for who in ("person", "granted_by")])
    return [
        {
            "person_name": names.get(row["person"], row["person"]),
            "role": row["role"],
            "given": row["granted"],
            "given_by_name": "themselves"
            if row["granted_by"] == row["person"]
            else names.get(row["granted_by"], row["granted_by"]),
        }
        for row in rows
    ]


def _ask(value: object) -> object:
    """Read a question: an object, or the text of one in a form; empty text is none."""
    if isinstance(value, str) and not value.strip():
        return None
    return read_document(value, "the JSON of a question")


class RequestMade(AmountBody):
    """What is asked for; which fields are needed depends on the kind."""

    kind: Literal["allotment", "plan", "growth", "refresh"]
    dataset: DatasetName
    purpose: Sentence = ""
    statement: Sentence = ""
    last_day: LastDay = ""
    ask: Annotated[
        dict[str, Any] | None,
        BeforeValidator(_ask),
        WithJsonSchema({"anyOf": [{"type": "object"}, {"type": "null"}]}),
    ] = None


def make_request(call: ServiceCall) -> Answer:
    """Write down a request; nothing in the ledger changes until somebody else approves it."""
    body: RequestMade = call.body
    caller, dataset = call.person, body.dataset
    roles = caller.roles_on(dataset)
    if not roles:
        raise not_found()
    role, scope = ("curator", "curate") if body.kind in _OF_DATASETS else ("analyst", "ask")
    if scope not in caller.scopes:
        raise not_permitted("the token was not made for this")
    if role not in roles:
        raise not_permitted()
    document = _document(call, body)
    request = new_id("r")
    with call.service.database.change() as change:
        needs_role(roles_now(change, caller.id, dataset), role)  # type: ignore[arg-type]
        _check_open(change, caller.id, dataset)
        change.run(
            "INSERT INTO requests (id, kind, dataset, asked_by, document, state, created)"
            " VALUES (?, ?, ?, ?, ?, 'open', ?)",
            request, body.kind, dataset, caller.id, json.dumps(document), now_text(),
        )  # fmt: skip
        call.service.record(change, caller.id, "request-made", request, call.id)
    return Answer({"request": request, "state": "open"}, 201, f"/requests/{request}")


def _check_open(change: Change, person: str, dataset: str) -> None:
    """Refuse one open request too many: an inbox is for people to read."""
    rows = change.rows(
        "SELECT id FROM requests WHERE state = 'open' AND asked_by = ? AND dataset = ? LIMIT ?",
        person, dataset, _MAX_OPEN,
    )  # fmt: skip
    if len(rows) >= _MAX_OPEN:
        raise TacitError(
            "too-many-requests",
            f"{_MAX_OPEN} of your requests for this dataset wait for a decision",
            fix="wait until some are decided, or withdraw some",
        )


def _document(call: ServiceCall, body: RequestMade) -> dict[str, Any]:
    """Check a request and return what is kept of it."""
    read_last_day(body.last_day)
    if body.kind in _OF_DATASETS:
        statement = _needed("statement", body.statement)
        if body.kind == "refresh":
            _refuse_amount(body)
            return {"statement": statement}
        budget = body.budget()
        check_larger(call.service.ledger.account(body.dataset).budget, budget)
        return {"statement": statement, "budget": budget_text(budget)}
    purpose = {"purpose": _needed("purpose", body.purpose), "last_day": body.last_day}
    if body.kind == "allotment":
        return {**purpose, "budget": budget_text(body.budget())}
    _refuse_amount(body)
    if body.ask is None:
        raise field_missing("ask", "send the question in the field ask")
    ask = read_ask(read_body(AskBody, {**body.ask, "dataset": body.dataset}))
    kept_plan = plan_cache(call.service).plan(call.service.dataset(body.dataset), ask, call.person.id)
    budget = plan_budget(kept_plan.plan)
    card = {name: one for name, one in kept_plan.document.items() if name != "document"}
    return {**purpose, "ask": ask, "plan": kept_plan.hash, "card": card, "budget": budget_text(budget)}


def _needed(name: str, text: str) -> str:
    if not text.strip():
        raise field_missing(name, f"give the {name} in one sentence")
    return text.strip()


def _refuse_amount(body: RequestMade) -> None:
    if body.is_given():
        raise TacitError("bad-parameter", "a request of this kind has no amount", fix="omit the amount")


def check_larger(old: Any, new: Any) -> None:
    """Refuse a growth that does not grow, or that is of another kind."""
    same = (old.epsilon is None) == (new.epsilon is None)
    pairs = [(old.epsilon or 0, new.epsilon or 0), (old.delta, new.delta), (old.rho or 0, new.rho or 0)]
    if not same or any(after < before for before, after in pairs) or all(a == b for a, b in pairs):
        raise TacitError(
            "bad-parameter",
            "the new budget must be of the same kind as the present one and larger",
            why="a budget only grows; what was promised about the past stays true",
            fix=f"give a larger {main_name(old)} than at present",
        )


def request_row(call: ServiceCall) -> ServiceRow:
    """Return the request of the path, or refuse as not found whoever may not see it."""
    row = call.service.database.row("SELECT * FROM requests WHERE id = ?", call.path["request"])
    if row is None or row["state"] == "done" or not _may_see(call.person, row):
        raise not_found()
    return row


def _may_see(caller: Caller, row: Mapping[str, Any]) -> bool:
    roles = caller.roles_on(row["dataset"])
    return bool(roles & {"curator", "auditor"}) or (row["asked_by"] == caller.id and bool(roles))


def list_requests(call: ServiceCall) -> dict[str, Any]:
    """List the requests that the caller may see, the newest first; ``state=open`` shows what waits."""
    state, before = call.query.get("state", ""), call.query.get("after", "")
    condition, values = _seen_by(call.person)
    states = [one for one in _STATES if not state or _shown_state(one) == state]
    rows = call.service.database.rows(
        f"SELECT * FROM requests WHERE state IN ({_marks(states)}) AND ({condition})"  # noqa: S608 - marks only
        " AND (? = '' OR created || id < ?) ORDER BY created || id DESC LIMIT ?",
        *(states or [""]), *values, before, before, _PAGE + 1,
    )  # fmt: skip
    page = rows[:_PAGE]
    names = names_of(call.service.database, (row[who] for row in page for who in ("asked_by", "decided_by")))
    last_row = page[-1] if len(rows) > _PAGE else None
    return {
        "requests": [_short(call.person, row, names) for row in page],
        "next": None if last_row is None else last_row["created"] + last_row["id"],
        "state": state,
        "curates": "curator" in call.person.roles,
    }


def _seen_by(caller: Caller) -> tuple[str, list[str]]:
    """Return as a condition which rows `_may_see` lets through, so that nobody waits for those of others."""
    places = [caller.only] if caller.only else list(caller.grants)
    overseen = [one for one in places if caller.roles_on(one) & {"curator", "auditor"}]
    datasets = [one for one in places if caller.roles_on(one)]
    if "" in overseen:
        return "TRUE", []
    condition, values = ("asked_by = ?", [caller.id]) if datasets else ("FALSE", [])
    if datasets and "" not in datasets:
        condition, values = f"{condition} AND dataset IN ({_marks(datasets)})", [*values, *datasets]
    return f"dataset IN ({_marks(overseen)}) OR ({condition})", [*(overseen or [""]), *values]


def _marks(values: list[str]) -> str:
    """Return the marks of a list in a statement; an empty list has one, for a value that no row has."""
    return ", ".join("?" * max(len(values), 1))


def _shown_state(state: str) -> str:
    return "approved" if state == "approving" else state


def _short(caller: Caller, row: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    document = json.loads(row["document"])
    budget = document.get("budget")
    return {
        "request": row["id"],
        "kind": row["kind"],
        "dataset": row["dataset"],
        "state": _shown_state(row["state"]),
        "unfinished": row["state"] == "approving",
        "created": row["created"],
        "decided": row["decided"],
        "asked_by": row["asked_by"],
        "asked_by_name": names.get(row["asked_by"], ""),
        "decided_by": row["decided_by"],
        "decided_by_name": names.get(row["decided_by"], ""),
        "reason": row["reason"],
        "purpose": document.get("purpose", ""),
        "statement": document.get("statement", ""),
        "last_day": document.get("last_day", ""),
        "budget": None if budget is None else budget_document(budget_from(budget)),
        "granted": document.get("granted"),
        "plan": document.get("plan", ""),
        "is_own": row["asked_by"] == caller.id,
        "may_decide": row["asked_by"] != caller.id
        and row["state"] in {"open", "approving"}
        and "curate" in caller.scopes
        and caller.may("curator", row["dataset"]),
    }


def show_request(call: ServiceCall) -> dict[str, Any]:
    """Show a request with what whoever decides needs: price, odds, what is left after, and the siblings."""
    row = request_row(call)
    document = json.loads(row["document"])
    names = names_of(call.service.database, [row["asked_by"], row["decided_by"]])
    roles = call.person.roles_on(row["dataset"])
    policy = call.service.dataset(row["dataset"]).policy
    fields = {
        **_short(call.person, row, names),
        "card": document.get("card"),
        "ask": document.get("ask"),
        "meaning": None,
        "before_deciding": None,
        "roles": [],
    }
    if document.get("budget"):
        noun = Unit.from_text(policy["unit"]).noun
        fields["meaning"] = budget_meaning(
            budget_from(document["budget"]), noun, policy["adjacency"], _WHAT_MOVES[row["kind"]]
        )
    if roles & {"curator", "auditor"}:
        main, below = accounts_below(call.service, row["dataset"])
        fields["before_deciding"] = {
            "budget": budget_document(main.budget),
            "left": left_document(main.filter.remaining),
            "siblings": account_documents(call.service, row["dataset"], call.person.id, oversees=True),
            "overbooked": is_overbooked(main, below),
            "after": _after(row, document, main, below),
        }
        if row["kind"] in _OF_DATASETS:
            people = list(dict.fromkeys([row["asked_by"], row["decided_by"] or call.person.id]))
            fields["roles"] = roles_given(call.service.database, people, row["dataset"])
    return fields


def _after(
    row: ServiceRow, document: Mapping[str, Any], main: Account, below: list[Account]
) -> dict[str, Any] | None:
    """Return what approving would leave, for a request that nobody has decided."""
    if row["state"] != "open":
        return None
    requested = document.get("budget")
    return after_approval(row["kind"], None if requested is None else budget_from(requested), main, below)


def withdraw_request(call: ServiceCall) -> Answer:
    """Take back an own request that nobody has decided."""
    from tacit.service.curation._roles import already_decided

    row = request_row(call)
    if row["asked_by"] != call.person.id:
        raise not_permitted("only the person who asked may withdraw a request")
    if ("curate" if row["kind"] in _OF_DATASETS else "ask") not in call.person.scopes:
        raise not_permitted("the token was not made for this")
    with call.service.database.change() as change:
        if not change.run(
            "UPDATE requests SET state = 'withdrawn', decided_by = ?, decided = ?"
            " WHERE id = ? AND state = 'open'",
            call.person.id, now_text(), row["id"],
        ):  # fmt: skip
            raise already_decided()
        call.service.record(change, call.person.id, "request-withdrawn", row["id"], call.id)
    return Answer({"request": row["id"], "state": "withdrawn"}, 200, f"/requests/{row['id']}")


def request_again(call: ServiceCall, fields: Mapping[str, str]) -> dict[str, Any]:
    """Show the request again."""
    return {**show_request(call), "written": fields}


def request_form_again(call: ServiceCall, fields: Mapping[str, str]) -> dict[str, Any]:
    """Show the form of a request again; only about a dataset that the caller may see."""
    dataset = seen_dataset(call, fields.get("dataset", ""))
    return {"dataset": dataset, "kind": fields.get("kind", ""), "written": fields}


def new_request(call: ServiceCall) -> dict[str, Any]:
    """Show the form of a request, with the fields that the address holds."""
    names = ("kind", "dataset", "epsilon", "delta", "rho", "purpose", "last_day", "statement")
    return request_form_again(call, {name: call.query.get(name, "")[:1000] for name in names})


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
            kept_fields = {
                name: one for name, one in json.loads(row["document"]).items() if name != "granted"
            }
            change.run(
                "UPDATE requests SET state = 'open', decided_by = '', decided = '', document = ?"
                " WHERE id = ?",
                json.dumps(kept_fields), request,
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
    body: RequestApproved = call.body
    document: dict[str, Any] = json.loads(row["document"])
    if row["kind"] in {"growth", "refresh"}:
        if "curator" not in roles_now(change, row["asked_by"], row["dataset"]):
            raise not_permitted("the person who proposed this is no longer a curator of the dataset")
        _refuse_changes(body)
        days = call.service.settings.waiting_days
        check_two_people(change, row["asked_by"], call.person.id, row["dataset"], days)
        if row["kind"] == "growth":
            check_larger(call.service.ledger.account(row["dataset"]).budget, budget_from(document["budget"]))
        return {**document, "granted": {"budget": document.get("budget")}}
    check_analyst(change, row["asked_by"], row["dataset"])
    requested = budget_from(document["budget"])
    if row["kind"] == "plan":
        if body.is_given():
            raise _only_as_it_is("the price of a plan cannot be changed")
        _check_plan(call.service, row["dataset"], document)
        budget = requested
    else:
        budget = _lowered(requested, body.budget()) if body.is_given() else requested
    day = _earlier(document["last_day"], body.last_day)
    read_last_day(day)
    name = next_account_name(call.service, change, row["dataset"], row["asked_by"])
    granted = {"account": name, "budget": budget_text(budget), "last_day": day}
    return {**document, "granted": granted}


def _refuse_changes(body: RequestApproved) -> None:
    if body.is_given() or body.last_day:
        raise _only_as_it_is("this request can be approved only as it is")


def _only_as_it_is(sentence: str) -> TacitError:
    return TacitError("bad-parameter", sentence, fix="decline it, or approve it as it is")


def _lowered(requested: Budget, granted: Budget) -> Budget:
    same = (requested.epsilon is None) == (granted.epsilon is None)
    pairs = (
        (requested.epsilon, granted.epsilon),
        (requested.delta, granted.delta),
        (requested.rho, granted.rho),
    )
    if not same or any((new or 0) > (old or 0) for old, new in pairs):
        raise TacitError(
            "bad-parameter",
            "an allotment can be approved as it is or lowered, in epsilon or rho as it was asked for",
            fix="give a smaller amount",
        )
    return granted


def _earlier(requested: str, granted: str) -> str:
    """Return the last day: the earlier of the two where both are given."""
    return min(requested, granted) if requested and granted else requested or granted


def _check_plan(service: Service, dataset: str, document: dict[str, Any]) -> None:
    """Refuse a plan that is another one under the present policy, or costs something else."""
    kept_plan = plan_cache(service).plan(service.dataset(dataset), document["ask"])
    if kept_plan.hash != document["plan"] or budget_text(plan_budget(kept_plan.plan)) != document["budget"]:
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
