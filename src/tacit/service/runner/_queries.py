"""Queries: asking a question that is paid for, its state, its events, cancelling, and the history.

Everything is checked before a row is written: who pays, for what purpose, and whether enough is left. A retry
is safe. Before its answer leaves, others see nothing of a query but that it waits or runs.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import StringConstraints

from tacit.errors import TacitError
from tacit.fixes import Either, Say
from tacit.parameters import Matching
from tacit.service._bodies import (
    MAX_QUESTION,
    Words,
    read_field,
)
from tacit.service._kinds import day_asked
from tacit.service._operations import Answer, Events, Operation, needs
from tacit.service._refusals import field_missing, not_found, problem_of
from tacit.service._times import new_id, now_text
from tacit.service.access import SESSION_COOKIE, cursor_of, identify
from tacit.service.plans import AskBody, digest_of_ask, own_account, plan_cache, read_ask
from tacit.service.runner._admission import check_work, lag_of
from tacit.service.runner._arrivals import check_arrived
from tacit.service.runner._clock import boundary_after, now
from tacit.service.runner._outcomes import keep_stored
from tacit.service.runner._release_documents import document_of, may_see, stored_answer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from tacit.core import Plan
    from tacit.ledger import Account, Ledger
    from tacit.service._database import Change, Database, ServiceRow
    from tacit.service._operations import ServiceCall
    from tacit.service._service import OpenDataset, Service


ENDED: Final = ("finished", "failed", "refused", "spent", "cancelled")
_FAILED = TacitError(
    "release-failed",
    "the release failed after its charge",
    why="the reason may depend on the data, so nobody is told; the charge stays",
    fix=Say("ask the curator of the dataset; asking again is charged again unless the answer was stored"),
)
_FAILED_DAYS = TacitError(
    "release-failed",
    "the draw of these days failed",
    why="the reason may depend on the data, so nobody is told; the charge stays, and pays for all days",
    fix=Say("ask the curator of the dataset; asking again draws the same days and is not charged again"),
)
_SPENT = TacitError(
    "spent",
    "the question was charged, but the service stopped before its answer was stored",
    why="a second draw would be a second answer for one charge, so it is never drawn again",
    fix=Say("ask again, which is charged again; the curator can give you a larger allotment"),
)
_MAX_WAITING = 200  # of one person and dataset
_PAGE = 50
_CURSOR = re.compile(r"([qr]_[a-z2-7]{16})?", re.ASCII)
_LONGEST = 300.0  # seconds of one stream of events
_MAX_STREAMS = 20  # of one person in one process
_SENTENCES = {
    "waiting": "The question waits for a free slot. Nothing is charged yet.",
    "running": "The question is being answered. The answer leaves at a fixed time, however long it takes.",
    "finished": "The answer is there.",
    "failed": "The release failed after its charge.",
    "refused": "The question was refused. Nothing was charged.",
    "spent": "The question was charged, but its answer was lost.",
    "cancelled": "The question was cancelled. Nothing was charged.",
}
#: Who may ask questions of a dataset.
MAY_ASK = needs("analyst", on="dataset", scope="ask")
_RETRY_KEY = Matching(
    "at most 150 printable characters without spaces, in the header Idempotency-Key", r"[\x21-\x7e]*",
    "question-1", most=150,
)  # fmt: skip
_NEW: dict[str, Any] = {
    "state": "waiting",
    "admitted": None,
    "answer_at": None,
    "code": "",
    "problem": "",
    "release": "",
}


def shown_state(row: ServiceRow) -> str:
    """Return the state of a query that may be shown now.

    A function of the row's boundary, of its outcome once its answer has left, and of the time.
    """
    state = str(row["state"])
    if state in {"waiting", "cancelled"}:
        return state
    if row["answer_at"] is not None and now() < float(row["answer_at"]):
        return "running"
    return state


def current_query(database: Database, row: ServiceRow) -> ServiceRow:
    """Return a query as it is now; one that is still running when its answer is due has failed."""
    due = row["answer_at"] is not None and now() >= float(row["answer_at"])
    if row["state"] != "running" or not due:
        return row
    with database.change() as change:
        change.run(
            "UPDATE queries SET state = 'failed', code = 'release-failed' WHERE id = ? AND state = 'running'",
            row["id"],
        )
        current = change.row("SELECT * FROM queries WHERE id = ?", row["id"])
    return row if current is None else current


def problem_shown(row: ServiceRow, request: str) -> dict[str, Any] | None:
    """Return why a query has no answer; None while it may still have one, or has it.

    Every failure after the charge has the same words.
    """
    match shown_state(row):
        case "failed":
            days = bool(day_asked(json.loads(row["ask"])))
            return problem_of(_FAILED_DAYS if days else _FAILED, request)
        case "spent":
            return problem_of(_SPENT, request)
        case "refused":
            problem = json.loads(row["problem"]) if row["problem"] else problem_of(_FAILED, "")
            return {**problem, "request": request}
    return None


def listed_query(call: ServiceCall, row: ServiceRow) -> dict[str, Any]:
    """Return what a list says of a query. The question itself is for the person who asked it."""
    state, mine = shown_state(row), row["person"] == call.person.id
    return {
        "query": row["id"],
        "dataset": row["dataset"],
        "state": state,
        "created": row["created"],
        "account": row["account"],
        "plan": row["plan"],
        "purpose": row["purpose"],
        "person": row["person"],
        "sql": json.loads(row["ask"]).get("sql") if mine else None,
        "words": _in_short(json.loads(row["ask"])) if mine else None,
        "release": row["release"] if state == "finished" else None,
    }


def query_document(call: ServiceCall, row: ServiceRow) -> dict[str, Any]:
    """Return a query: its state, its price, when its answer leaves, and its release or problem.

    Curators and auditors of the dataset see all of it but the question, which may hold literals; what the log
    of the ledger keeps of a question is the policy's decision.
    """
    document = listed_query(call, row)
    running, card = document["state"] == "running", _card(call, row)
    return {
        **document,
        "policy": row["policy"],
        **question_words(call, row),
        "price": None if card is None else card["price"],
        "sentence": _SENTENCES[document["state"]],
        "done": document["state"] not in {"waiting", "running"},
        "answer_at": row["answer_at"] if running else None,
        "answer_in_s": max(0.0, round(float(row["answer_at"]) - now(), 3)) if running else None,
        "problem": problem_shown(row, call.id),
    }


def question_words(call: ServiceCall, row: ServiceRow) -> dict[str, Any]:
    """Return the question as it was asked, and in words; nothing of it for others than who asked it."""
    if row["person"] != call.person.id:
        return {"ask": None, "words": None}
    ask, card = json.loads(row["ask"]), _card(call, row)
    return {"ask": ask, "words": _in_short(ask) if card is None else card["asked"]}


def _in_short(ask: dict[str, Any]) -> str | None:
    """Name a question without planning it: its SQL, its method, or the columns of a plan made elsewhere."""
    match ask:
        case {"sql": str(sql)}:
            return sql
        case {"method": str(method), **rest}:
            arguments = rest.get("arguments") or {}
            return f"{method}({', '.join(f'{name}={value}' for name, value in arguments.items())})"
        case {"plan": {"request": {"question": {"aggregates": list(aggregates)}}}}:
            return ", ".join(str(name) for name, *_ in aggregates)
    return None


def _card(call: ServiceCall, row: ServiceRow) -> dict[str, Any] | None:
    """Return the card of a question's plan; None if it would be another plan under the policy of today."""
    try:
        dataset = call.service.dataset(row["dataset"])
        kept_plan = plan_cache(call.service).plan(dataset, json.loads(row["ask"]), str(row["person"]))
    except TacitError:
        return None
    return kept_plan.document if kept_plan.hash == row["plan"] else None


def check_paused(paused: str) -> None:
    """Refuse a question to a dataset that takes none; the reason is for its curators."""
    if paused:
        raise TacitError(
            "dataset-paused",
            "the dataset takes no questions now",
            why="its curator has paused it, or an answer was not ready at its time",
            fix="ask the curator of the dataset",
        )


def paying_account(database: Database, person: str, dataset: str, name: str | None, plan: str) -> ServiceRow:
    """Return the account that pays, as the card of the question names it; refuse if there is none."""
    row = own_account(database, person, dataset, name, plan)
    if row is None:
        raise TacitError(
            "no-allotment",
            "you have no allotment for this dataset",
            fix="ask the curator of the dataset for an allotment",
        )
    return row


def purpose_of(account: ServiceRow, purpose: str) -> str:
    """Return the purpose that the ledger records: that of the allotment; if it has none, the given one."""
    bound, purpose = str(account["purpose"]).strip(), purpose.strip()
    if bound and purpose and purpose != bound:
        raise TacitError(
            "account-differs",
            "the allotment was given for another purpose",
            why="an allotment is bound to the purpose that its curator approved",
            fix="leave the purpose out, or ask for an allotment for this purpose",
        )
    if not bound and not purpose:
        raise field_missing("purpose", "say in a few words what the answer is for")
    return bound or purpose


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
        level.filter.after(level.filter.spend_of(cost, plan.promise), cost.fits)
    except TacitError as refusal:
        raise in_promised_words(refusal, plan.promised) from None


class QueryBody(AskBody):
    """A question, who pays for it, what it is for, and the key that makes a retry safe."""

    purpose: Words = ""
    key: Annotated[str, StringConstraints(max_length=150, pattern=r"^[\x21-\x7e]*$")] = ""


def post_query(call: ServiceCall) -> Any:
    """Answer what is stored and paid for at once; let everything else wait for the next boundary.

    Guarantee: nothing is written if anything is refused. The same key with the same plan is the same query,
    however often and wherever it arrives, and is charged once; with another plan it is refused.
    """
    body: QueryBody = call.body
    MAY_ASK.check(call.caller, body.dataset)
    service, person = call.service, call.person.id
    ask = read_ask(body)
    dataset = service.dataset(body.dataset)
    name, day = plan_cache(service).hash(service, dataset, ask, person), day_asked(ask)
    series = digest_of_ask(ask) if day else ""
    key = read_key(call, body)
    earlier = _known(service.database, person, body.dataset, key) if key else None
    if earlier is not None:
        return _same(call, earlier, name, series)
    account = paying_account(service.database, person, body.dataset, body.account, name)
    answer = stored_answer(call, str(account["name"]), name, series)
    if answer is not None:
        return answer
    plan = plan_cache(service).plan(dataset, ask, person).plan
    if plan.hash != name:  # another version of Tacit planned it before
        account = paying_account(service.database, person, body.dataset, body.account, plan.hash)
        answer = stored_answer(call, str(account["name"]), plan.hash, series)
        if answer is not None:
            return answer
    check_paused(dataset.paused)
    purpose = purpose_of(account, body.purpose)
    if plan.instalments is not None:
        check_arrived(service, dataset, day)
    elif _kept_elsewhere(service, dataset, plan, str(account["name"]), person):
        return stored_answer(call, str(account["name"]), plan.hash)
    work = check_work(service.settings, lag_of(dataset.policy, service.settings), plan)
    _check_payment(service, dataset, plan, str(account["name"]))
    row = {
        "id": new_id("q"), "dataset": dataset.name, "policy": dataset.number, "person": person,
        "account": account["name"], "ask": json.dumps(ask), "plan": plan.hash, "purpose": purpose,
        "retry_key": key or new_id("k"), "created": now_text(), "asked": digest_of_ask(ask), "work": work,
    }  # fmt: skip
    with service.database.change() as change:
        earlier = _known(change, person, dataset.name, row["retry_key"])
        if earlier is None:
            _check_waiting(change, person, dataset.name)
            _insert(change, row)
            service.record(change, person, "query-asked", f"{row['id']} {plan.hash}", call.id)
    if earlier is not None:
        return _same(call, earlier, plan.hash, series)
    return _accepted(call, {**row, **_NEW})


def read_key(call: ServiceCall, body: QueryBody) -> str:
    """Return the key of a retry: from the header, or from the field of a form."""
    header = call.header("idempotency-key")
    return str(read_field(_RETRY_KEY, "key", header)) if header else body.key


def _insert(change: Change, row: dict[str, Any]) -> None:
    change.run(
        "INSERT INTO queries (id, dataset, policy, person, account, ask, plan, purpose, retry_key, created,"
        " asked, work, state, position)"
        " SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'waiting', COALESCE(MAX(position), 0) + 1"
        " FROM queries",
        *row.values(),
    )


def _known(database: Any, person: str, dataset: str, key: str) -> ServiceRow | None:
    row: ServiceRow | None = database.row(
        "SELECT * FROM queries WHERE person = ? AND dataset = ? AND retry_key = ?", person, dataset, key
    )
    return row


def _check_payment(service: Service, dataset: OpenDataset, plan: Plan[Any], account: str) -> None:
    """Refuse what the ledger would refuse; who has paid for a series draws more of its days for nothing."""
    ledger, version = service.ledger, dataset.dataset.version
    if plan.instalments is None:
        stored = ledger.stored_release(dataset.name, plan.hash, version=version) is not None
    elif ledger.paid_run(account, plan.hash, version=version) is not None:
        check_days(ledger, account)
        return
    else:
        stored = ledger.paid_run(dataset.name, plan.hash, version=version) is not None
    check_budget(ledger, account, dataset.name, plan, stored=stored)


def _same(call: ServiceCall, row: ServiceRow, plan: str, series: str) -> Answer:
    """Answer a retry with the query that its key named before; a series up to another day is another one."""
    if row["plan"] != plan or (series and row["asked"] != series):
        raise TacitError(
            "key-reused",
            "the key was used for another question",
            why="a key belongs to one question; the same question sent again gets the same query",
            fix="give every question its own key",
        )
    return _accepted(call, current_query(call.service.database, row))


def _accepted(call: ServiceCall, row: ServiceRow) -> Answer:
    document = query_document(call, row)
    return Answer(document, 200 if document["done"] else 202, f"/queries/{row['id']}")


def _check_waiting(change: Change, person: str, dataset: str) -> None:
    waiting = change.rows(
        "SELECT id FROM queries WHERE state = 'waiting' AND dataset = ? AND person = ?", dataset, person
    )
    if len(waiting) >= _MAX_WAITING:
        raise TacitError(
            "too-many-requests",
            f"you have {_MAX_WAITING} questions waiting for this dataset",
            fix="wait until some are answered, or cancel some",
        )


def _kept_elsewhere(
    service: Service, dataset: OpenDataset, plan: Plan[Any], account: str, person: str
) -> str:
    """Keep an answer that the account has paid for in another way, unless a draw of the plan is running."""
    moment = now()
    rows = service.database.rows(
        "SELECT id FROM queries WHERE plan = ? AND dataset = ?"
        " AND (state = 'running' OR (state NOT IN ('waiting', 'cancelled') AND answer_at > ?))",
        plan.hash, dataset.name, moment,
    )  # fmt: skip
    release = None if rows else plan.stored(account=account)
    if release is None:
        return ""
    release_id = new_id("r")
    with service.database.change() as change:
        keep_stored(
            change, release_id, dataset.name, person, account, plan.hash, document_of(release), moment
        )
    return release_id


_MAY_READ = needs("analyst", "curator", "auditor")
#: What a page of each table needs; the document of a release is long, and a question may be.
_LISTED = {
    "queries": "id, dataset, person, account, plan, purpose, state, created, answer_at, release, position,"
    " CASE WHEN LENGTH(ask) <= 65536 THEN ask ELSE '{}' END AS ask",
    "releases": "id, query, dataset, account, plan, created, position",
}
_streams: Counter[str] = Counter()


def query_row(call: ServiceCall) -> ServiceRow:
    """Return the query of the path, as it is now, if this caller may see it."""
    row = call.service.database.row("SELECT * FROM queries WHERE id = ?", call.path["query"])
    if row is None or not may_see(call, row):
        raise not_found()
    return current_query(call.service.database, row)


def get_query(call: ServiceCall) -> Answer:
    """Return a query: where it stands, and its release once the answer has left."""
    row = query_row(call)
    document = query_document(call, row)
    return Answer(document)


def get_events(call: ServiceCall) -> Events:
    """Return the changes of a query's state as events; they come at boundaries, and the last is ``done``."""
    query_row(call)  # refuses before the stream begins
    if _streams[call.person.id] >= _MAX_STREAMS:
        raise TacitError(
            "too-many-requests",
            f"you follow {_MAX_STREAMS} questions at once already",
            fix="end one of the streams, or ask for the state of the query now and then",
        )
    return Events(_counted(call))


async def _counted(call: ServiceCall) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """Count the streams of a person, of which each looks at the database at every boundary."""
    person = call.person.id
    _streams[person] += 1
    try:
        async for event in _events(call):
            yield event
    finally:
        _streams[person] -= 1
        if not _streams[person]:
            del _streams[person]


async def _events(call: ServiceCall) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    tick, end, before = call.service.settings.tick, now() + _LONGEST, ""
    while now() < end:
        row = _row_still_seen(call)
        if row is None:
            return
        if shown_state(row) != before:
            document = query_document(call, row)
            before = document["state"]
            yield ("done" if document["done"] else "state"), document
            if document["done"]:
                return
        await asyncio.sleep(max(0.01, boundary_after(now(), tick) * float(tick) - now()))


def _row_still_seen(call: ServiceCall) -> ServiceRow | None:
    """Return the query if its follower is still known and may still see it; grants end at once."""
    call.caller = identify(call.service.database, call.request, call.service.settings.cookie(SESSION_COOKIE))
    try:
        _MAY_READ.check(call.caller, "")
        return query_row(call)
    except TacitError:
        return None


def cancel_query(call: ServiceCall) -> Answer:
    """Cancel a query that waits; one that was admitted is charged and stays."""
    row = query_row(call)
    if row["person"] != call.person.id:
        raise not_found()
    with call.service.database.change() as change:
        updated = change.run(
            "UPDATE queries SET state = 'cancelled' WHERE id = ? AND state = 'waiting'", row["id"]
        )
        if updated:
            call.service.record(change, call.person.id, "query-cancelled", row["id"], call.id)
        row = change.row("SELECT * FROM queries WHERE id = ?", row["id"]) or row
    if row["state"] != "cancelled":
        raise TacitError(
            "already-decided",
            "the question no longer waits",
            why="a question that was admitted is charged, and a charge is never taken back",
            fix="wait for its answer",
        )
    return Answer(query_document(call, row), 200, f"/queries/{row['id']}")


def list_queries(call: ServiceCall) -> dict[str, Any]:
    """Return the caller's queries and those of datasets that the caller oversees, newest first."""
    rows, following = read_page(call, "queries")
    documents = [listed_query(call, current_query(call.service.database, row)) for row in rows]
    return {"queries": documents, "next": following, "dataset": call.query.get("dataset", "")}


def read_page(call: ServiceCall, table: str, more: str = "", *values: object) -> tuple[list[ServiceRow], str]:
    """Return a page of queries or releases, newest first, and the cursor of the next page.

    A cursor is the id of an entry that the caller sees. Positions count the entries of everybody, so they are
    not shown.
    """
    dataset, after = call.query.get("dataset", ""), cursor_of(call, _CURSOR)
    if dataset and not call.person.roles_on(dataset):
        raise not_found()
    where: list[str] = ["1 = 1"]
    values_before: list[object] = []
    for name in (dataset, call.person.only):
        if name:
            where, values_before = [*where, "dataset = ?"], [*values_before, name]
    places = sorted({*call.person.grants, call.person.only})
    overseen = [one for one in places if {"curator", "auditor"} & call.person.roles_on(one)]
    if "" not in overseen:  # those who oversee all datasets see all
        marks = f" OR dataset IN ({', '.join('?' * len(overseen))})" if overseen else ""
        where, values_before = [*where, f"(person = ?{marks})"], [*values_before, call.person.id, *overseen]
    condition, start = " AND ".join(where), ""
    if after:
        position = f"SELECT position FROM {table} WHERE id = ? AND {condition}"  # noqa: S608 - constants only
        start, values_before = (
            f" AND position < COALESCE(({position}), 0)",
            [*values_before, after, *values_before],
        )
    rows = call.service.database.rows(
        f"SELECT {_LISTED[table]} FROM {table} WHERE {condition}{start}{more}"  # noqa: S608 - constants only
        f" ORDER BY position DESC LIMIT {_PAGE + 1}",
        *values_before, *values,
    )  # fmt: skip
    page = rows[:_PAGE]
    return page, str(page[-1]["id"]) if len(rows) > _PAGE else ""


QUERY_OPERATIONS = (
    Operation(
        "POST", "/queries", needs("analyst", scope="ask"), post_query, body=QueryBody, most=MAX_QUESTION,
        summary="Ask a question that an allotment pays for; a stored answer comes at once",
    ),
    Operation(
        "GET", "/queries", _MAY_READ, list_queries, page="runner/queries.html", summary="List queries",
    ),
    Operation(
        "GET", "/queries/{query}", _MAY_READ, get_query, page="runner/query.html",
        summary="Show where a query stands",
    ),
    Operation(
        "GET", "/queries/{query}/events", _MAY_READ, get_events,
        summary="Follow a query as server-sent events",
    ),
    Operation(
        "POST", "/queries/{query}/cancel", needs("analyst", scope="ask"), cancel_query,
        summary="Cancel a query that waits",
    ),
)  # fmt: skip
