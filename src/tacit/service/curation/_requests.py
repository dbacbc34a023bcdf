"""Requests: an analyst asks for an allotment or for one plan, a curator for a larger or a fresh budget."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, WithJsonSchema

from tacit.core import Unit
from tacit.errors import TacitError
from tacit.service._bodies import DatasetName, read_body, read_document
from tacit.service._operations import Answer
from tacit.service._refusals import field_missing, not_found, not_permitted
from tacit.service._times import new_id, now_text
from tacit.service.curation._accounts import account_documents, accounts_below, after_approval, is_overbooked
from tacit.service.curation._amounts import (
    budget_document,
    budget_from,
    budget_text,
    left_document,
    main_name,
    plan_budget,
)
from tacit.service.curation._fields import AmountBody, LastDay, Sentence, read_last_day
from tacit.service.curation._meaning import budget_meaning
from tacit.service.curation._people import names_of, roles_now, seen_dataset
from tacit.service.curation._refusals import needs_role
from tacit.service.curation._two_people import roles_given
from tacit.service.plans import AskBody, read_ask, shelf_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.ledger import Account
    from tacit.service._callers import Caller
    from tacit.service._database import Change, ServiceRow
    from tacit.service._operations import ServiceCall

_PAGE = 50
_MOST_OPEN = 50  # requests of one person and dataset that nobody has decided
_STATES = ("open", "approving", "approved", "declined", "withdrawn")
_OF_DATASETS = frozenset({"growth", "refresh"})
_WHAT_MOVES = {
    "allotment": "all answers of this allotment together move",
    "plan": "this answer moves",
    "growth": "all answers to this dataset together move",
}


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
    given: RequestMade = call.body
    caller, dataset = call.person, given.dataset
    held = caller.roles_on(dataset)
    if not held:
        raise not_found()
    role, scope = ("curator", "curate") if given.kind in _OF_DATASETS else ("analyst", "ask")
    if scope not in caller.scopes:
        raise not_permitted("the token was not made for this")
    if role not in held:
        raise not_permitted()
    document = _document(call, given)
    request = new_id("r")
    with call.service.database.change() as change:
        needs_role(roles_now(change, caller.id, dataset), role)  # type: ignore[arg-type]
        _check_open(change, caller.id, dataset)
        change.run(
            "INSERT INTO requests (id, kind, dataset, asked_by, document, state, created)"
            " VALUES (?, ?, ?, ?, ?, 'open', ?)",
            request, given.kind, dataset, caller.id, json.dumps(document), now_text(),
        )  # fmt: skip
        call.service.record(change, caller.id, "request-made", request, call.id)
    return Answer({"request": request, "state": "open"}, 201, f"/requests/{request}")


def _check_open(change: Change, person: str, dataset: str) -> None:
    """Refuse one open request too many: an inbox is for people to read."""
    rows = change.rows(
        "SELECT id FROM requests WHERE state = 'open' AND asked_by = ? AND dataset = ? LIMIT ?",
        person, dataset, _MOST_OPEN,
    )  # fmt: skip
    if len(rows) >= _MOST_OPEN:
        raise TacitError(
            "too-many-requests",
            f"{_MOST_OPEN} of your requests for this dataset wait for a decision",
            fix="wait until some are decided, or withdraw some",
        )


def _document(call: ServiceCall, given: RequestMade) -> dict[str, Any]:
    """Check a request and return what is kept of it."""
    read_last_day(given.last_day)
    if given.kind in _OF_DATASETS:
        statement = _needed("statement", given.statement)
        if given.kind == "refresh":
            _refuse_amount(given)
            return {"statement": statement}
        budget = given.budget()
        check_larger(call.service.ledger.account(given.dataset).budget, budget)
        return {"statement": statement, "budget": budget_text(budget)}
    purpose = {"purpose": _needed("purpose", given.purpose), "last_day": given.last_day}
    if given.kind == "allotment":
        return {**purpose, "budget": budget_text(given.budget())}
    _refuse_amount(given)
    if given.ask is None:
        raise field_missing("ask", "send the question in the field ask")
    ask = read_ask(read_body(AskBody, {**given.ask, "dataset": given.dataset}))
    kept = shelf_of(call.service).plan(call.service.dataset(given.dataset), ask, call.person.id)
    budget = plan_budget(kept.plan)
    card = {name: one for name, one in kept.document.items() if name != "document"}
    return {**purpose, "ask": ask, "plan": kept.hash, "card": card, "budget": budget_text(budget)}


def _needed(name: str, text: str) -> str:
    if not text.strip():
        raise field_missing(name, f"give the {name} in one sentence")
    return text.strip()


def _refuse_amount(given: RequestMade) -> None:
    if given.is_given():
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
    seen, values = _seen_by(call.person)
    states = [one for one in _STATES if not state or _shown_state(one) == state]
    found = call.service.database.rows(
        f"SELECT * FROM requests WHERE state IN ({_marks(states)}) AND ({seen})"  # noqa: S608 - marks only
        " AND (? = '' OR created || id < ?) ORDER BY created || id DESC LIMIT ?",
        *(states or [""]), *values, before, before, _PAGE + 1,
    )  # fmt: skip
    page = found[:_PAGE]
    names = names_of(call.service.database, (row[who] for row in page for who in ("asked_by", "decided_by")))
    last = page[-1] if len(found) > _PAGE else None
    return {
        "requests": [_short(call.person, row, names) for row in page],
        "next": None if last is None else last["created"] + last["id"],
        "state": state,
        "curates": "curator" in call.person.roles,
    }


def _seen_by(caller: Caller) -> tuple[str, list[str]]:
    """Return as a condition which rows `_may_see` lets through, so that nobody waits for those of others."""
    places = [caller.only] if caller.only else list(caller.grants)
    overseen = [one for one in places if caller.roles_on(one) & {"curator", "auditor"}]
    known = [one for one in places if caller.roles_on(one)]
    if "" in overseen:
        return "TRUE", []
    own, values = ("asked_by = ?", [caller.id]) if known else ("FALSE", [])
    if known and "" not in known:
        own, values = f"{own} AND dataset IN ({_marks(known)})", [*values, *known]
    return f"dataset IN ({_marks(overseen)}) OR ({own})", [*(overseen or [""]), *values]


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
    shown = {
        **_short(call.person, row, names),
        "card": document.get("card"),
        "ask": document.get("ask"),
        "meaning": None,
        "before_deciding": None,
        "roles": [],
    }
    if document.get("budget"):
        noun = Unit.from_text(policy["unit"]).noun
        shown["meaning"] = budget_meaning(
            budget_from(document["budget"]), noun, policy["adjacency"], _WHAT_MOVES[row["kind"]]
        )
    if roles & {"curator", "auditor"}:
        own, below = accounts_below(call.service, row["dataset"])
        shown["before_deciding"] = {
            "budget": budget_document(own.budget),
            "left": left_document(own.filter.remaining),
            "siblings": account_documents(call.service, row["dataset"], call.person.id, oversees=True),
            "overbooked": is_overbooked(own, below),
            "after": _after(row, document, own, below),
        }
        if row["kind"] in _OF_DATASETS:
            people = list(dict.fromkeys([row["asked_by"], row["decided_by"] or call.person.id]))
            shown["roles"] = roles_given(call.service.database, people, row["dataset"])
    return shown


def _after(
    row: ServiceRow, document: Mapping[str, Any], own: Account, below: list[Account]
) -> dict[str, Any] | None:
    """Return what approving would leave, for a request that nobody has decided."""
    if row["state"] != "open":
        return None
    asked = document.get("budget")
    return after_approval(row["kind"], None if asked is None else budget_from(asked), own, below)


def withdraw_request(call: ServiceCall) -> Answer:
    """Take back an own request that nobody has decided."""
    from tacit.service.curation._refusals import already_decided

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


def request_again(call: ServiceCall, written: Mapping[str, str]) -> dict[str, Any]:
    """Show the request again."""
    return {**show_request(call), "written": written}


def request_form_again(call: ServiceCall, written: Mapping[str, str]) -> dict[str, Any]:
    """Show the form of a request again; only about a dataset that the caller may see."""
    dataset = seen_dataset(call, written.get("dataset", ""))
    return {"dataset": dataset, "kind": written.get("kind", ""), "written": written}


def new_request(call: ServiceCall) -> dict[str, Any]:
    """Show the form of a request, with the fields that the address holds."""
    names = ("kind", "dataset", "epsilon", "delta", "rho", "purpose", "last_day", "statement")
    return request_form_again(call, {name: call.query.get(name, "")[:1000] for name in names})
