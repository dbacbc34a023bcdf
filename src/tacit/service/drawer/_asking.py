"""Ask a question that is paid for: everything is checked before a row is written, and a retry is safe."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import StringConstraints

from tacit.errors import TacitError
from tacit.service._bodies import Words  # noqa: TC001 - pydantic reads it
from tacit.service._operations import Answer, needs
from tacit.service._stream_kind import day_asked
from tacit.service._times import new_id, now_text
from tacit.service.drawer._admission import check_work, lag_of
from tacit.service.drawer._came_in import check_came_in
from tacit.service.drawer._checks import check_budget, check_days, check_paused, paying_account, purpose_of
from tacit.service.drawer._clock import now
from tacit.service.drawer._query_documents import query_document
from tacit.service.drawer._query_states import looked_at
from tacit.service.drawer._recovery import keep_stored
from tacit.service.drawer._release_documents import document_of
from tacit.service.drawer._released import stored_answer
from tacit.service.plans import AskBody, digest_of_ask, read_ask, shelf_of

if TYPE_CHECKING:
    from tacit.core import Plan
    from tacit.service._database import Change, ServiceRow
    from tacit.service._operations import ServiceCall
    from tacit.service._service import OpenDataset, Service

#: Who may ask questions of a dataset.
MAY_ASK = needs("analyst", on="dataset", scope="ask")
_MOST_WAITING = 200  # of one person and dataset


class QueryBody(AskBody):
    """A question, who pays for it, what it is for, and the key that makes a retry safe."""

    purpose: Words = ""
    key: Annotated[str, StringConstraints(max_length=150, pattern=r"^[\x21-\x7e]*$")] = ""


def post_query(call: ServiceCall) -> Any:
    """Answer what is stored and paid for at once; let everything else wait for the next boundary.

    Guarantee: nothing is written if anything is refused. The same key with the same plan is the same query,
    however often and wherever it arrives, and is charged once; with another plan it is refused.
    """
    given: QueryBody = call.body
    MAY_ASK.check(call.caller, given.dataset)
    service, person = call.service, call.person.id
    ask = read_ask(given)
    opened = service.dataset(given.dataset)
    name, day = shelf_of(service).hash(service, opened, ask, person), day_asked(ask)
    series = digest_of_ask(ask) if day else ""
    key = read_key(call, given)
    known = _known(service.database, person, given.dataset, key) if key else None
    if known is not None:
        return _same(call, known, name, series)
    account = paying_account(service.database, person, given.dataset, given.account, name)
    paid = stored_answer(call, str(account["name"]), name, series)
    if paid is not None:
        return paid
    plan = shelf_of(service).plan(opened, ask, person).plan
    if plan.hash != name:  # another version of Tacit planned it before
        account = paying_account(service.database, person, given.dataset, given.account, plan.hash)
        paid = stored_answer(call, str(account["name"]), plan.hash, series)
        if paid is not None:
            return paid
    check_paused(opened.paused)
    purpose = purpose_of(account, given.purpose)
    if plan.instalments is not None:
        check_came_in(service, opened, day)
    elif _kept_elsewhere(service, opened, plan, str(account["name"]), person):
        return stored_answer(call, str(account["name"]), plan.hash)
    work = check_work(service.settings, lag_of(opened.policy, service.settings), plan)
    _check_payment(service, opened, plan, str(account["name"]))
    row = {
        "id": new_id("q"), "dataset": opened.name, "policy": opened.number, "person": person,
        "account": account["name"], "ask": json.dumps(ask), "plan": plan.hash, "purpose": purpose,
        "retry_key": key or new_id("k"), "created": now_text(), "asked": digest_of_ask(ask), "work": work,
    }  # fmt: skip
    with service.database.change() as change:
        known = _known(change, person, opened.name, row["retry_key"])
        if known is None:
            _check_waiting(change, person, opened.name)
            _insert(change, row)
            service.record(change, person, "query-asked", f"{row['id']} {plan.hash}", call.id)
    if known is not None:
        return _same(call, known, plan.hash, series)
    return _accepted(call, {**row, **_NEW})


def read_key(call: ServiceCall, given: QueryBody) -> str:
    """Return the key of a retry: from the header, or from the field of a form."""
    header = call.header("idempotency-key")
    if header and (len(header) > 150 or not header.isascii() or not header.isprintable() or " " in header):
        raise TacitError(
            "bad-parameter",
            "the header Idempotency-Key must have at most 150 printable characters without spaces",
        )
    return header or given.key


_NEW: dict[str, Any] = {
    "state": "waiting",
    "admitted": None,
    "answer_at": None,
    "code": "",
    "problem": "",
    "release": "",
}


def _insert(change: Change, row: dict[str, Any]) -> None:
    change.run(
        "INSERT INTO queries (id, dataset, policy, person, account, ask, plan, purpose, retry_key, created,"
        " asked, work, state, position)"
        " SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'waiting', COALESCE(MAX(position), 0) + 1"
        " FROM queries",
        *row.values(),
    )


def _known(database: Any, person: str, dataset: str, key: str) -> ServiceRow | None:
    found: ServiceRow | None = database.row(
        "SELECT * FROM queries WHERE person = ? AND dataset = ? AND retry_key = ?", person, dataset, key
    )
    return found


def _check_payment(service: Service, opened: OpenDataset, plan: Plan[Any], account: str) -> None:
    """Refuse what the ledger would refuse; who has paid for a series draws more of its days for nothing."""
    ledger, version = service.ledger, opened.dataset.version
    if plan.instalments is None:
        stored = ledger.stored_release(opened.name, plan.hash, version=version) is not None
    elif ledger.paid_run(account, plan.hash, version=version) is not None:
        check_days(ledger, account)
        return
    else:
        stored = ledger.paid_run(opened.name, plan.hash, version=version) is not None
    check_budget(ledger, account, opened.name, plan, stored=stored)


def _same(call: ServiceCall, row: ServiceRow, plan: str, series: str) -> Answer:
    """Answer a retry with the query that its key named before; a series up to another day is another one."""
    if row["plan"] != plan or (series and row["asked"] != series):
        raise TacitError(
            "key-reused",
            "the key was used for another question",
            why="a key belongs to one question; the same question sent again gets the same query",
            fix="give every question its own key",
        )
    return _accepted(call, looked_at(call.service.database, row))


def _accepted(call: ServiceCall, row: ServiceRow) -> Answer:
    document = query_document(call, row)
    return Answer(document, 200 if document["done"] else 202, f"/queries/{row['id']}")


def _check_waiting(change: Change, person: str, dataset: str) -> None:
    waiting = change.rows(
        "SELECT id FROM queries WHERE state = 'waiting' AND dataset = ? AND person = ?", dataset, person
    )
    if len(waiting) >= _MOST_WAITING:
        raise TacitError(
            "too-many-requests",
            f"you have {_MOST_WAITING} questions waiting for this dataset",
            fix="wait until some are answered, or cancel some",
        )


def _kept_elsewhere(service: Service, opened: OpenDataset, plan: Plan[Any], account: str, person: str) -> str:
    """Keep an answer that the account has paid for in another way, unless a draw of the plan is running."""
    moment = now()
    rows = service.database.rows(
        "SELECT id FROM queries WHERE plan = ? AND dataset = ?"
        " AND (state = 'running' OR (state NOT IN ('waiting', 'cancelled') AND answer_at > ?))",
        plan.hash, opened.name, moment,
    )  # fmt: skip
    release = None if rows else plan.stored(account=account)
    if release is None:
        return ""
    found = new_id("r")
    with service.database.change() as change:
        keep_stored(change, found, opened.name, person, account, plan.hash, document_of(release), moment)
    return found
