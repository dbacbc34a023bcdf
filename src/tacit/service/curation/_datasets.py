"""Datasets as people see them: the catalogue, one dataset, its policies, its pauses and the days of a stream.

While a dataset is paused it takes no questions, and it says why. A curator has the days of a stream taken in;
everybody sees from public times on which have arrived.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, Field, StringConstraints, WithJsonSchema

from tacit.core import Unit
from tacit.parameters import Day, Integer
from tacit.service._bodies import Body, read_field, typed_integer
from tacit.service._kinds import day_asked
from tacit.service._operations import Answer
from tacit.service._refusals import not_found
from tacit.service._service import pause_shown
from tacit.service._times import moment_text, new_id, now_text
from tacit.service.curation._accounts import BurnDown, account_documents, accounts_below, is_overbooked
from tacit.service.curation._amounts import (
    ReasonBody,
    budget_document,
    left_document,
    main_name,
    promise_sentence,
    spent_document,
)
from tacit.service.curation._declaration import insert_policy
from tacit.service.curation._policies import policy_changes
from tacit.service.curation._roles import analysts_of, changed_meanwhile, names_of, needs_role, roles_now
from tacit.service.runner import last_arrived_day, now, rung_after

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.ledger import Account
    from tacit.service._database import Change
    from tacit.service._operations import ServiceCall
    from tacit.service._service import OpenDataset, Service


_LOWER_LAG = "a dataset is resumed with its lag or a larger one; a new policy can lower it"
_OVERSEERS = frozenset({"curator", "auditor"})
_STORED = {"moment": "date"}
_MAX_SERIES = 200  # of a page
_BURN_DOWN = BurnDown()


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
    body: ResumeGiven = call.body
    service, name = call.service, call.dataset
    dataset = service.dataset(name)
    lag = dataset.policy["lag"] if body.lag is None else body.lag
    read_field(Integer(dataset.policy["lag"], why=_LOWER_LAG), "lag", lag)
    with service.database.change() as change:
        needs_role(roles_now(change, call.person.id, name), "curator")
        if lag > dataset.policy["lag"]:
            number = dataset.number + 1
            if not change.run(
                "UPDATE datasets SET policy = ? WHERE name = ? AND policy = ?", number, name, dataset.number
            ):
                raise changed_meanwhile()
            insert_policy(change, name, number, {**dataset.policy, "lag": lag}, dataset.facts, call.person.id)
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


def list_datasets(call: ServiceCall) -> dict[str, Any]:
    """List the datasets on which the caller has any role; others do not exist for the caller."""
    caller = call.person
    rows = call.service.database.rows(
        "SELECT d.name, d.kind, d.policy, d.paused, p.document FROM datasets d"
        " JOIN policies p ON p.dataset = d.name AND p.number = d.policy ORDER BY d.name"
    )
    documents = []
    for row in rows:
        roles = caller.roles_on(row["name"])
        if not roles:
            continue
        policy = json.loads(row["document"])
        account = call.service.ledger.account(row["name"])
        documents.append(
            {
                "name": row["name"],
                "kind": row["kind"],
                "title": policy["title"],
                "about": policy["about"],
                "unit": policy["unit"],
                "unit_noun": Unit.from_text(policy["unit"]).noun,
                "policy": row["policy"],
                "budget": budget_document(account.budget),
                "left": left_document(account.filter.remaining),
                "state": _state(row["paused"], account),
                "roles": sorted(roles),
            }
        )
    return {"datasets": documents, "may_declare": caller.may("curator") and "curate" in caller.scopes}


def show_dataset(call: ServiceCall) -> dict[str, Any]:
    """Show a dataset: who is protected, what is public, the budget and what is left; never a number of rows.

    Curators and auditors see all accounts; an analyst sees the own ones.
    """
    dataset = call.service.dataset(call.dataset)
    roles = call.person.roles_on(dataset.name)
    main, below = accounts_below(call.service, dataset.name)
    oversees = bool(roles & _OVERSEERS)
    tick = call.service.settings.tick
    return {
        **_declared(dataset),
        "state": _state(dataset.paused, main),
        "paused": pause_shown(dataset.paused, oversees=oversees),
        "frozen": main.frozen,
        "answer_after": {
            "exact": str(dataset.policy["lag"] * tick),
            "seconds": float(dataset.policy["lag"] * tick),
            "ticks": dataset.policy["lag"],
            "tick": str(tick),
        },
        "counted_in": main_name(main.budget),
        "budget": budget_document(main.budget),
        "meaning": promise_sentence(
            main.budget, dataset.dataset.unit.noun, dataset.policy["adjacency"], "all answers together move"
        ),
        "spent": spent_document(main),
        "left": left_document(main.filter.remaining),
        "overbooked": is_overbooked(main, below),
        "burn_down": _BURN_DOWN.points(call.service.ledger, main.name),
        "accounts": account_documents(call.service, dataset.name, call.person.id, oversees=oversees),
        "oversees": oversees,
        "analysts": analysts_of(call.service.database, dataset.name, call.person.id)
        if "curator" in roles
        else [],
        "pauses": pauses_of(call.service, dataset.name) if oversees else [],
        "roles": sorted(roles),
    }


def _declared(dataset: OpenDataset) -> dict[str, Any]:
    """Return what the policy and the facts say, in the words of the page."""
    policy = dataset.policy
    return {
        "name": dataset.name,
        "kind": dataset.kind,
        "title": policy["title"],
        "about": policy["about"],
        "unit": policy["unit"],
        "unit_noun": Unit.from_text(policy["unit"]).noun,
        "adjacency": policy["adjacency"],
        "version": policy["version"],
        "policy": dataset.number,
        "record": policy["record"],
        "shows_stored": policy["shows_stored"],
        "limits": dataset.facts.get("limits"),
        "minimum_people": dataset.facts.get("minimum_people"),
        "columns": _columns(dataset),
        "declared": policy.get("declared") or {},
        "facts": dataset.facts,
    }


def _columns(dataset: OpenDataset) -> list[dict[str, Any]]:
    """Return the columns with their public facts."""
    columns: list[dict[str, Any]] = []
    for table in dataset.facts.get("tables", ()):
        for column in table["columns"] or sorted(table["facts"]):
            fact = table["facts"].get(column, {})
            keys = dataset.policy["keys"].get(f"{table['name']}.{column}", dataset.policy["keys"].get(column))
            columns.append(
                {
                    "table": table["name"],
                    "name": column,
                    "kind": fact.get("kind") or _STORED.get(fact.get("stored", ""), fact.get("stored", "")),
                    "bounds": fact.get("bounds"),
                    "keys": keys,
                    "never_null": bool(fact.get("never_null")),
                    "names_unit": bool(fact.get("unit")),
                    "public": table["key"] is not None,
                }
            )
    return columns


def _state(paused: str, account: Account) -> str:
    return "frozen" if account.frozen else "paused" if paused else "open"


def list_policies(call: ServiceCall) -> dict[str, Any]:
    """List the policies of a dataset, the latest first."""
    rows = call.service.database.rows(
        "SELECT number, created_by, created FROM policies WHERE dataset = ? ORDER BY number DESC",
        call.dataset,
    )
    if not rows:
        raise not_found()
    names = names_of(call.service.database, (row["created_by"] for row in rows))
    return {
        "dataset": call.dataset,
        "policies": [{**row, "created_by_name": names.get(row["created_by"], "")} for row in rows],
    }


def show_policy(call: ServiceCall) -> dict[str, Any]:
    """Show one policy, and in words what it changed."""
    text = call.path["number"]
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
    rows = {
        row["number"]: row
        for row in call.service.database.rows(
            "SELECT number, document, created_by, created FROM policies"
            " WHERE dataset = ? AND number IN (?, ?)",
            call.dataset,
            number - 1,
            number,
        )
    }
    if number not in rows:
        raise not_found()
    row, policy = rows[number], json.loads(rows[number]["document"])
    before = json.loads(rows[number - 1]["document"]) if number - 1 in rows else None
    names = names_of(call.service.database, [row["created_by"]])
    return {
        "dataset": call.dataset,
        "number": number,
        "created": row["created"],
        "created_by": row["created_by"],
        "created_by_name": names.get(row["created_by"], ""),
        "policy": policy,
        "before": None if before is None else number - 1,
        "changes": [] if before is None else policy_changes(before, policy),
    }


def dataset_again(call: ServiceCall, fields: Mapping[str, str]) -> dict[str, Any]:
    """Show the dataset again."""
    return {**show_dataset(call), "written": fields}


class DaysTaken(Body):
    """The last day that is to be taken in, with all days before it."""

    through: Annotated[str, StringConstraints(max_length=10)]


def show_days(call: ServiceCall) -> dict[str, Any]:
    """Show the days of a stream, which have arrived, and the series that this person may see.

    Guarantee: nothing here depends on the rows, nor on how long anything took.
    """
    open_dataset = _opened(call)
    dataset: Any = open_dataset.dataset
    horizon, last_day = dataset.horizon, last_arrived_day(call.service, open_dataset)
    number = horizon.number(last_day) if last_day else 0
    return {
        "dataset": open_dataset.name,
        "title": open_dataset.policy["title"],
        "protects": dataset.promise,
        "level": dataset.level,
        "first": horizon.start.isoformat(),
        "last": horizon.last.isoformat(),
        "days": horizon.days,
        "came_in": last_day or None,
        "number": number,
        "next": horizon.name(number + 1) if number < horizon.days else None,
        "series": _series(call, open_dataset),
        "may_take": "curator" in call.person.roles_on(open_dataset.name) and "curate" in call.person.scopes,
        "may_ask": "analyst" in call.person.roles_on(open_dataset.name),
    }


async def take_days(call: ServiceCall) -> Answer:
    """Take in the rows of all days up to one; they count as arrived from a public time on.

    The answer is for the curator alone. When others see the days is a rung of a ladder that starts at the
    request: how long reading took shows at most by which rung it was done.
    """
    open_dataset, started = _opened(call), now()
    service, person = call.service, call.person.id
    through: str = read_field(Day(), "through", call.body.through)
    dataset: Any = open_dataset.dataset
    dataset.horizon.number(through)
    job = {"dataset": open_dataset.name, "number": open_dataset.number, "through": through}
    answer = await service.ask_runner("days", job)
    shown_from = rung_after(started, service.settings.tick)
    with service.database.change() as change:
        needs_role(roles_now(change, person, open_dataset.name), "curator")
        change.run(
            "INSERT INTO days (dataset, version, through, shown_from, person, created, files)"
            " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            open_dataset.name, dataset.version, through, shown_from, person, now_text(),
            json.dumps(answer["files"]),
        )  # fmt: skip
        service.record(change, person, "days-taken", f"{open_dataset.name} {through}", call.id)
    document = {"dataset": open_dataset.name, "through": through, "shown_from": moment_text(shown_from)}
    return Answer(document, 201, f"/datasets/{open_dataset.name}/days")


def days_again(call: ServiceCall, fields: Mapping[str, str]) -> dict[str, Any]:
    """Return the page beside a problem, with the day as it was written."""
    return {**show_days(call), "through": fields.get("through", "")}


def _opened(call: ServiceCall) -> OpenDataset:
    """Return the stream of the path; another kind of dataset has no days."""
    dataset = call.service.dataset(call.dataset)
    if dataset.kind != "stream":
        raise not_found()
    return dataset


def _series(call: ServiceCall, dataset: OpenDataset) -> list[dict[str, Any]]:
    """Return the latest release of each series that the caller asked for, or may oversee."""
    oversees = bool({"curator", "auditor"} & call.person.roles_on(dataset.name))
    rows = call.service.database.rows(
        "SELECT r.id, r.plan, r.account, r.person, q.ask FROM releases r JOIN queries q ON q.id = r.query"
        " WHERE r.dataset = ? AND r.shown_from <= ? AND (r.person = ? OR 1 = ?)"
        " ORDER BY r.position DESC LIMIT ?",
        dataset.name, now(), call.person.id, int(oversees), _MAX_SERIES,
    )  # fmt: skip
    series: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        ask = json.loads(row["ask"])
        entry = {
            "plan": row["plan"],
            "account": row["account"],
            "through": day_asked(ask),
            "release": row["id"],
            "measure": ask["arguments"]["measure"] if row["person"] == call.person.id else None,
        }
        key = (row["plan"], row["account"])
        if key not in series or series[key]["through"] < entry["through"]:
            series[key] = entry
    return list(series.values())
