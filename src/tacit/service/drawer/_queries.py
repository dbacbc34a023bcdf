"""The operations about queries that were asked: their state, events, cancelling, and the history."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from tacit.errors import TacitError
from tacit.service._bodies import MOST_QUESTION
from tacit.service._operations import Answer, Events, Operation, needs
from tacit.service._refusals import not_found
from tacit.service.access import SESSION_COOKIE, cursor_of, identify
from tacit.service.drawer._asking import QueryBody, post_query
from tacit.service.drawer._clock import boundary_after, now
from tacit.service.drawer._query_documents import listed_query, query_document
from tacit.service.drawer._query_states import looked_at, shown_state
from tacit.service.drawer._released import may_see

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tacit.service._database import ServiceRow
    from tacit.service._operations import ServiceCall

_MAY_READ = needs("analyst", "curator", "auditor")
_PAGE = 50
_CURSOR = re.compile(r"([qr]_[a-z2-7]{16})?", re.ASCII)
_LONGEST = 300.0  # seconds of one stream of events
_MOST_STREAMS = 20  # of one person in one process
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
    return looked_at(call.service.database, row)


def get_query(call: ServiceCall) -> Answer:
    """Return a query: where it stands, and its release once the answer has left."""
    row = query_row(call)
    document = query_document(call, row)
    return Answer(document)


def get_events(call: ServiceCall) -> Events:
    """Return the changes of a query's state as events; they come at boundaries, and the last is ``done``."""
    query_row(call)  # refuses before the stream begins
    if _streams[call.person.id] >= _MOST_STREAMS:
        raise TacitError(
            "too-many-requests",
            f"you follow {_MOST_STREAMS} questions at once already",
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
        moved = change.run(
            "UPDATE queries SET state = 'cancelled' WHERE id = ? AND state = 'waiting'", row["id"]
        )
        if moved:
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
    shown = [listed_query(call, looked_at(call.service.database, row)) for row in rows]
    return {"queries": shown, "next": following, "dataset": call.query.get("dataset", "")}


def read_page(call: ServiceCall, table: str, more: str = "", *values: object) -> tuple[list[ServiceRow], str]:
    """Return a page of queries or releases, newest first, and the cursor of the next page.

    A cursor is the id of an entry that the caller sees. Positions count the entries of everybody, so they are
    not shown.
    """
    dataset, after = call.query.get("dataset", ""), cursor_of(call, _CURSOR)
    if dataset and not call.person.roles_on(dataset):
        raise not_found()
    where: list[str] = ["1 = 1"]
    given: list[object] = []
    for place in (dataset, call.person.only):
        if place:
            where, given = [*where, "dataset = ?"], [*given, place]
    places = sorted({*call.person.grants, call.person.only})
    overseen = [one for one in places if {"curator", "auditor"} & call.person.roles_on(one)]
    if "" not in overseen:  # those who oversee all datasets see all
        marks = f" OR dataset IN ({', '.join('?' * len(overseen))})" if overseen else ""
        where, given = [*where, f"(person = ?{marks})"], [*given, call.person.id, *overseen]
    seen, start = " AND ".join(where), ""
    if after:
        found = f"SELECT position FROM {table} WHERE id = ? AND {seen}"  # noqa: S608 - constants only
        start, given = f" AND position < COALESCE(({found}), 0)", [*given, after, *given]
    rows = call.service.database.rows(
        f"SELECT {_LISTED[table]} FROM {table} WHERE {seen}{start}{more}"  # noqa: S608 - constants only
        f" ORDER BY position DESC LIMIT {_PAGE + 1}",
        *given, *values,
    )  # fmt: skip
    shown = rows[:_PAGE]
    return shown, str(shown[-1]["id"]) if len(rows) > _PAGE else ""


QUERY_OPERATIONS = (
    Operation(
        "POST", "/queries", needs("analyst", scope="ask"), post_query, body=QueryBody, most=MOST_QUESTION,
        summary="Ask a question that an allotment pays for; a stored answer comes at once",
    ),
    Operation(
        "GET", "/queries", _MAY_READ, list_queries, page="drawer/queries.html", summary="List queries",
    ),
    Operation(
        "GET", "/queries/{query}", _MAY_READ, get_query, page="drawer/query.html",
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
