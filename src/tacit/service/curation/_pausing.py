"""Pausing and resuming a dataset: while it is paused it takes no questions, and it says why."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from tacit.parameters import Integer
from tacit.service._bodies import read_field, typed_integer
from tacit.service._operations import Answer
from tacit.service._times import new_id, now_text
from tacit.service.curation._declaration import insert_policy
from tacit.service.curation._fields import ReasonBody
from tacit.service.curation._people import roles_now
from tacit.service.curation._refusals import changed_meanwhile, needs_role

if TYPE_CHECKING:
    from tacit.service._database import Change
    from tacit.service._operations import ServiceCall
    from tacit.service._service import Service

_LOWER_LAG = "a dataset is resumed with its lag or a larger one; a new policy can lower it"


class ResumeGiven(ReasonBody):
    """Why a dataset takes questions again, and after how many boundaries its answers leave from now on."""

    lag: Annotated[
        Annotated[int, Field(ge=1, le=100_000)] | None,
        BeforeValidator(typed_integer),
        WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1, "maximum": 100_000}, {"type": "null"}]}),
    ] = None


def pause_dataset(call: ServiceCall) -> Answer:
    """Take no more questions, and record the reason."""
    call.service.dataset(call.dataset)  # refuses one that does not exist
    with call.service.database.change() as change:
        needs_role(roles_now(change, call.person.id, call.dataset), "curator")
        change.run("UPDATE datasets SET paused = ? WHERE name = ?", call.body.reason, call.dataset)
        _remember(call, change, "pause", {})
    return Answer({"dataset": call.dataset, "state": "paused"}, 200, f"/datasets/{call.dataset}")


def resume_dataset(call: ServiceCall) -> Answer:
    """Take questions again; a larger lag is the next policy of the dataset, with the same facts.

    After an overrun, answers need more time than the lag allows: raising it tells everybody so, which is one
    bit for each such act.
    """
    given: ResumeGiven = call.body
    service, name = call.service, call.dataset
    opened = service.dataset(name)
    lag = opened.policy["lag"] if given.lag is None else given.lag
    read_field(Integer(opened.policy["lag"], why=_LOWER_LAG), "lag", lag)
    with service.database.change() as change:
        needs_role(roles_now(change, call.person.id, name), "curator")
        if lag > opened.policy["lag"]:
            number = opened.number + 1
            if not change.run(
                "UPDATE datasets SET policy = ? WHERE name = ? AND policy = ?", number, name, opened.number
            ):
                raise changed_meanwhile()
            insert_policy(change, name, number, {**opened.policy, "lag": lag}, opened.facts, call.person.id)
            service.record(change, call.person.id, "policy-written", f"{name} {number}", call.id)
        change.run("UPDATE datasets SET paused = '' WHERE name = ?", name)
        _remember(call, change, "resume", {"lag": lag})
    return Answer({"dataset": name, "state": "open", "lag": lag}, 200, f"/datasets/{name}")


def _remember(call: ServiceCall, change: Change, kind: str, document: dict[str, Any]) -> None:
    """Keep the reason as a decided row of the requests; the audit event names it by its id."""
    row = new_id("r")
    change.run(
        "INSERT INTO requests"
        " (id, kind, dataset, asked_by, document, state, decided_by, decided, reason, created)"
        " VALUES (?, ?, ?, ?, ?, 'done', ?, ?, ?, ?)",
        row, kind, call.dataset, call.person.id, json.dumps(document), call.person.id, now_text(),
        call.body.reason, now_text(),
    )  # fmt: skip
    call.service.record(change, call.person.id, f"dataset-{kind}d", f"{call.dataset} {row}", call.id)


def pauses_of(service: Service, dataset: str) -> list[dict[str, Any]]:
    """Return when a dataset was paused and resumed, by whom and why, the latest first."""
    return service.database.rows(
        "SELECT kind, created, asked_by AS person, reason FROM requests"
        " WHERE dataset = ? AND kind IN ('pause', 'resume') ORDER BY created DESC LIMIT 20",
        dataset,
    )
