"""Grants: a role on one dataset, or everywhere.

An administrator gives and withdraws roles everywhere. An owner does so on the owner's datasets, but never the
role of an administrator. Nobody changes their own grants, so at least one administrator always remains.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import StringConstraints

from tacit.errors import TacitError
from tacit.service._bodies import Body, MaybeDataset, UserName
from tacit.service._operations import ROLES, Answer, Operation, Role, ServiceCall, needs
from tacit.service._refusals import not_found, not_permitted
from tacit.service._times import now_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.service._database import Change, Database
    from tacit.service._operations import Caller

_ADMIN = needs("admin", on="service", scope="admin")
_OWNER = needs("owner", on="dataset", scope="curate")


class GrantOfRole(Body):
    """A role on a dataset; an empty dataset stands for all."""

    role: Role
    dataset: MaybeDataset = ""


class ColleagueRole(Body):
    """A role on the dataset of the path for a person, whom the owner knows by name."""

    name: UserName
    role: Role


class WithdrawnRole(Body):
    """A role on the dataset of the path that a person loses."""

    user: Annotated[str, StringConstraints(max_length=40)]
    role: Role


def grants_of(database: Database, person: str) -> list[dict[str, Any]]:
    """Return the grants of a person; an empty dataset stands for all."""
    return database.rows(
        "SELECT dataset, role, granted_by, granted FROM grants WHERE person = ? ORDER BY dataset, role",
        person,
    )


def still_has(change: Change, caller: Caller, *roles: Role, dataset: str = "") -> None:
    """Refuse, inside a change, a caller who has lost the role since the request began."""
    rows = change.rows(
        "SELECT g.role FROM grants g JOIN users u ON u.id = g.person"
        " WHERE g.person = ? AND g.dataset IN ('', ?) AND u.disabled = 0",
        caller.id, dataset,
    )  # fmt: skip
    if not {row["role"] for row in rows} & set(roles):
        raise not_permitted()


def give_role(change: Change, person: str, role: Role, dataset: str, giver: str) -> None:
    """Give a person a role; giving it twice is as giving it once."""
    change.run(
        "INSERT INTO grants (person, dataset, role, granted_by, granted) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (person, dataset, role) DO NOTHING",
        person, dataset, role, giver, now_text(),
    )  # fmt: skip


def _give(call: ServiceCall) -> Answer:
    body: GrantOfRole = call.body
    with call.service.database.change() as change:
        still_has(change, call.person, "admin")
        _check_place(change, body.role, body.dataset)
        _change(call, change, call.path["user"], body.role, body.dataset, gives=True)
    return Answer({"role": body.role, "dataset": body.dataset}, location=f"/users/{call.path['user']}")


def _withdraw(call: ServiceCall) -> Answer:
    body: GrantOfRole = call.body
    with call.service.database.change() as change:
        still_has(change, call.person, "admin")
        _change(call, change, call.path["user"], body.role, body.dataset, gives=False)
    return Answer({"role": body.role, "dataset": body.dataset}, location=f"/users/{call.path['user']}")


def _colleagues(call: ServiceCall, fields: Mapping[str, str] | None = None) -> dict[str, Any]:
    """List who has a role on a dataset, and who has one everywhere."""
    if call.service.database.row("SELECT name FROM datasets WHERE name = ?", call.dataset) is None:
        raise not_found()
    rows = call.service.database.rows(
        "SELECT u.id, u.shown, g.dataset, g.role, g.granted FROM grants g JOIN users u ON u.id = g.person"
        " WHERE g.dataset IN ('', ?) AND g.role <> 'admin' AND u.disabled = 0 ORDER BY u.shown, u.id, g.role",
        call.dataset,
    )
    fields = fields or {}
    return {
        "dataset": call.dataset,
        "people": [
            {**row, "everywhere": row["dataset"] == "", "is_self": row["id"] == call.person.id}
            for row in rows
        ],
        "roles": [role for role in ROLES if role != "admin"],
        "name": fields.get("name", "")[:100],
    }


def _give_colleague(call: ServiceCall) -> Answer:
    body: ColleagueRole = call.body
    with call.service.database.change() as change:
        still_has(change, call.person, "owner", dataset=call.dataset)
        _check_place(change, body.role, call.dataset)
        row = change.row("SELECT id FROM users WHERE name = ? AND disabled = 0", body.name)
        if row is None:
            raise TacitError(
                "not-found", "nobody has this name", fix="ask an administrator to invite the person"
            )
        _change(call, change, row["id"], body.role, call.dataset, gives=True)
    return Answer({"user": row["id"], "role": body.role}, location=f"/datasets/{call.dataset}/people")


def _withdraw_colleague(call: ServiceCall) -> Answer:
    body: WithdrawnRole = call.body
    with call.service.database.change() as change:
        still_has(change, call.person, "owner", dataset=call.dataset)
        _change(call, change, body.user, body.role, call.dataset, gives=False)
    return Answer({"user": body.user, "role": body.role}, location=f"/datasets/{call.dataset}/people")


def _check_place(change: Change, role: Role, dataset: str) -> None:
    """Refuse roles that make no sense in a place."""
    if role == "admin" and dataset:
        raise TacitError("bad-parameter", "the role of an administrator is for the whole service only")
    if dataset and change.row("SELECT name FROM datasets WHERE name = ?", dataset) is None:
        raise not_found()


def _change(call: ServiceCall, change: Change, person: str, role: Role, dataset: str, *, gives: bool) -> None:
    """Give or withdraw a role, and record who did it."""
    row = change.row("SELECT id, erased FROM users WHERE id = ?", person)
    if row is None:
        raise not_found()
    if row["erased"]:
        raise not_permitted("this person was erased")
    if person == call.person.id:
        raise not_permitted("you cannot change your own roles; somebody else can")
    if gives:
        give_role(change, person, role, dataset, call.person.id)
    elif not change.run(
        "DELETE FROM grants WHERE person = ? AND dataset = ? AND role = ?", person, dataset, role
    ):
        raise not_found()
    event = "role-given" if gives else "role-withdrawn"
    call.service.record(change, call.person.id, event, f"{person} {role} {dataset or 'everywhere'}", call.id)


OPERATIONS = (
    Operation("POST", "/users/{user}/grants", _ADMIN, _give, GrantOfRole, summary="Give a person a role"),
    Operation(
        "POST", "/users/{user}/grants/withdraw", _ADMIN, _withdraw, GrantOfRole,
        summary="Withdraw a person's role",
    ),
    Operation(
        "GET", "/datasets/{dataset}/people", _OWNER, _colleagues, page="access/colleagues.html",
        summary="List who has a role on a dataset",
    ),
    Operation(
        "POST", "/datasets/{dataset}/people", _OWNER, _give_colleague, ColleagueRole,
        "access/colleagues.html", _colleagues, summary="Give somebody a role on a dataset",
    ),
    Operation(
        "POST", "/datasets/{dataset}/people/withdraw", _OWNER, _withdraw_colleague, WithdrawnRole,
        summary="Withdraw somebody's role on a dataset",
    ),
)  # fmt: skip
