"""Days of a stream: a curator has them taken in; everybody sees from public times on which have come in."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import StringConstraints

from tacit.parameters import Day
from tacit.service._bodies import Body, read_field
from tacit.service._operations import Answer
from tacit.service._refusals import not_found
from tacit.service._stream_kind import day_asked
from tacit.service._times import moment_text, now_text
from tacit.service.curation._people import roles_now
from tacit.service.curation._refusals import needs_role
from tacit.service.drawer import came_in, now, rung_after

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.service._operations import ServiceCall
    from tacit.service._service import OpenDataset

_MOST_SERIES = 200  # of a page


class DaysTaken(Body):
    """The last day that is to be taken in, with all days before it."""

    through: Annotated[str, StringConstraints(max_length=10)]


def show_days(call: ServiceCall) -> dict[str, Any]:
    """Show the days of a stream, which have come in, and the series that this person may see.

    Guarantee: nothing here depends on the rows, nor on how long anything took.
    """
    opened = _opened(call)
    dataset: Any = opened.dataset
    horizon, last = dataset.horizon, came_in(call.service, opened)
    number = horizon.number(last) if last else 0
    return {
        "dataset": opened.name,
        "title": opened.policy["title"],
        "protects": dataset.promise,
        "level": dataset.level,
        "first": horizon.start.isoformat(),
        "last": horizon.last.isoformat(),
        "days": horizon.days,
        "came_in": last or None,
        "number": number,
        "next": horizon.name(number + 1) if number < horizon.days else None,
        "series": _series(call, opened),
        "may_take": "curator" in call.person.roles_on(opened.name) and "curate" in call.person.scopes,
        "may_ask": "analyst" in call.person.roles_on(opened.name),
    }


async def take_days(call: ServiceCall) -> Answer:
    """Take in the rows of all days up to one; they count as come in from a public time on.

    The answer is for the curator alone. When others see the days is a rung of a ladder that starts at the
    request: how long reading took shows at most by which rung it was done.
    """
    opened, started = _opened(call), now()
    service, person = call.service, call.person.id
    through: str = read_field(Day(), "through", call.body.through)
    dataset: Any = opened.dataset
    dataset.horizon.number(through)
    job = {"dataset": opened.name, "number": opened.number, "through": through}
    taken = await service.ask_drawer("days", job)
    shown_from = rung_after(started, service.settings.tick)
    with service.database.change() as change:
        needs_role(roles_now(change, person, opened.name), "curator")
        change.run(
            "INSERT INTO days (dataset, version, through, shown_from, person, created, files)"
            " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            opened.name, dataset.version, through, shown_from, person, now_text(), json.dumps(taken["files"]),
        )  # fmt: skip
        service.record(change, person, "days-taken", f"{opened.name} {through}", call.id)
    document = {"dataset": opened.name, "through": through, "shown_from": moment_text(shown_from)}
    return Answer(document, 201, f"/datasets/{opened.name}/days")


def days_again(call: ServiceCall, fields: Mapping[str, str]) -> dict[str, Any]:
    """Return the page beside a problem, with the day as it was written."""
    return {**show_days(call), "through": fields.get("through", "")}


def _opened(call: ServiceCall) -> OpenDataset:
    """Return the stream of the path; another kind of dataset has no days."""
    opened = call.service.dataset(call.dataset)
    if opened.kind != "stream":
        raise not_found()
    return opened


def _series(call: ServiceCall, opened: OpenDataset) -> list[dict[str, Any]]:
    """Return the latest release of each series that the caller asked for, or may oversee."""
    oversees = bool({"curator", "auditor"} & call.person.roles_on(opened.name))
    rows = call.service.database.rows(
        "SELECT r.id, r.plan, r.account, r.person, q.ask FROM releases r JOIN queries q ON q.id = r.query"
        " WHERE r.dataset = ? AND r.shown_from <= ? AND (r.person = ? OR 1 = ?)"
        " ORDER BY r.position DESC LIMIT ?",
        opened.name, now(), call.person.id, int(oversees), _MOST_SERIES,
    )  # fmt: skip
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        ask = json.loads(row["ask"])
        one = {
            "plan": row["plan"],
            "account": row["account"],
            "through": day_asked(ask),
            "release": row["id"],
            "measure": ask["arguments"]["measure"] if row["person"] == call.person.id else None,
        }
        key = (row["plan"], row["account"])
        if key not in found or found[key]["through"] < one["through"]:
            found[key] = one
    return list(found.values())
