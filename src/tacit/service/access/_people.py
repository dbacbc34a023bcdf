"""People, for administrators: invite, disable, enable, erase, link to single sign-on; and audit events.

Audit events say who did what and when, by opaque ids, for auditors and administrators.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import StringConstraints

from tacit.service._bodies import Body, DisplayName, UserName, cursor_of, limit_of, part, taken
from tacit.service._operations import ROLES, Answer, Operation, ServiceCall, needs
from tacit.service._refusals import field_missing, not_found, not_permitted
from tacit.service._times import new_id, now_text
from tacit.service.access._grants import grants_of, still_has
from tacit.service.access._oidc import sign_on_name, subject_of
from tacit.service.access._passwords import forget_tries, guessed
from tacit.service.access._sessions import end_all_sessions
from tacit.service.access._sign_in import new_link, note_subject
from tacit.service.access._tokens import tokens_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.service._database import Change, ServiceRow


_ADMIN = needs("admin", on="service", scope="admin")
ERASED = "Erased person"
_SELECT = (
    "SELECT id, name, shown, created, disabled, erased, password <> '' AS has_password, subject FROM users"
)
_NUMBER = re.compile(r"[0-9]{0,10}", re.ASCII)
_NEWEST = 2**31 - 1  # positions fit into a whole number of 32 bits


class Invitation(Body):
    """A new person. The subject is the person's number at the provider of single sign-on."""

    name: UserName
    shown: DisplayName = ""
    subject: Annotated[str, StringConstraints(strip_whitespace=True, max_length=255)] = ""


class Certainty(Body):
    """The word that an act which cannot be undone was meant."""

    sure: Literal["yes"]


class SignOnSubject(Body):
    """The person's number at the provider of single sign-on; empty to remove it."""

    subject: Annotated[str, StringConstraints(strip_whitespace=True, max_length=255)] = ""


def create_person(change: Change, name: str, display_name: str, subject: str | None) -> str:
    """Make a person without any grant, or refuse a name or a subject that somebody has; return the id."""
    if change.row("SELECT id FROM users WHERE name = ?", name) is not None:
        raise taken("name")
    _check_subject(change, subject, "")
    person = new_id("u")
    change.run(
        "INSERT INTO users (id, name, shown, subject, created) VALUES (?, ?, ?, ?, ?)",
        person, name, display_name or name, subject, now_text(),
    )  # fmt: skip
    return person


def _list(call: ServiceCall) -> dict[str, Any]:
    """List people in the order in which they were invited."""
    limit, after = limit_of(call), cursor_of(call)
    rows = call.service.database.rows(
        _SELECT + " WHERE ? = '' OR created > (SELECT created FROM users WHERE id = ?)"  # noqa: S608
        " OR (created = (SELECT created FROM users WHERE id = ?) AND id > ?) ORDER BY created, id LIMIT ?",
        after, after, after, after, limit + 1,
    )  # fmt: skip
    document = part("users", [_shown(row) for row in rows], limit, "id")
    return {**document, "single_sign_on": sign_on_name(call.service.settings)}


def _one(call: ServiceCall) -> dict[str, Any]:
    """Show one person with grants and tokens."""
    database = call.service.database
    row = database.row(_SELECT + " WHERE id = ?", call.path["user"])
    if row is None:
        raise not_found()
    return {
        "user": _shown(row),
        "grants": grants_of(database, row["id"]),
        "tokens": tokens_of(database, row["id"]),
        "roles": list(ROLES),
        "is_self": row["id"] == call.person.id,
        "single_sign_on": sign_on_name(call.service.settings),
    }


def _invite(call: ServiceCall) -> Answer:
    """Make a person and a one-time link, which is shown once."""
    body: Invitation = call.body
    service = call.service
    if not body.name:
        raise field_missing("name", "give a name to sign in with")
    subject = subject_of(service.settings, body.subject) if body.subject else None
    with service.database.change() as change:
        still_has(change, call.person, "admin")
        person = create_person(change, body.name, body.shown, subject)
        link = "" if subject else new_link(service, change, person, call.person.id)
        if subject:
            note_subject(change, person, call.person.id)
        service.record(change, call.person.id, "user-created", person, call.id)
        row = _row(change, person)
    return Answer({"user": _shown(row), "link": link, "hours": 24}, 201)


def _invite_page(_: ServiceCall, fields: Mapping[str, str]) -> dict[str, Any]:
    return {field: fields.get(field, "")[:255] for field in ("name", "shown", "subject")}


def _invite_again(call: ServiceCall) -> Answer:
    """Give a person a new one-time link: the first has expired, or the password was lost."""
    service = call.service
    with service.database.change() as change:
        row = _other(call, change)
        if row["disabled"]:
            raise not_permitted("a disabled person cannot get a link")
        link = new_link(service, change, row["id"], call.person.id)
        service.record(change, call.person.id, "link-made", row["id"], call.id)
    return Answer({"user": _shown(row), "link": link, "hours": 24}, 201)


def _disable(call: ServiceCall) -> Answer:
    """Disable a person: sessions and links end at once, tokens do not work until the person is enabled."""
    with call.service.database.change() as change:
        person = _other(call, change)["id"]
        _shut_out(change, person)
        call.service.record(change, call.person.id, "user-disabled", person, call.id)
        return _where(change, person)


def _enable(call: ServiceCall) -> Answer:
    with call.service.database.change() as change:
        person = _other(call, change)["id"]
        change.run("UPDATE users SET disabled = 0 WHERE id = ?", person)
        call.service.record(change, call.person.id, "user-enabled", person, call.id)
        return _where(change, person)


def _erase(call: ServiceCall) -> Answer:
    """Erase a person: names, password, subject, grants, tokens and sessions go; the opaque id stays.

    The ledger and the audit events know people by their opaque id alone, so they stay as they are, and
    verification passes as before.
    """
    database = call.service.database
    with database.change() as change:
        row = _other(call, change)
        person = row["id"]
        _shut_out(change, person)
        change.run("DELETE FROM tokens WHERE person = ?", person)
        change.run("DELETE FROM grants WHERE person = ?", person)
        for subject in (guessed("name", row["name"]), guessed("person", person)):
            forget_tries(change, subject)
        change.run(
            "UPDATE users SET name = id, shown = ?, password = '', subject = NULL, erased = 1 WHERE id = ?",
            ERASED, person,
        )  # fmt: skip
        call.service.record(change, call.person.id, "user-erased", person, call.id)
        answer = _where(change, person)
    database.forget_deleted()
    return answer


def _link_subject(call: ServiceCall) -> Answer:
    """Say which subject of the provider a person is, or that the person is none."""
    body: SignOnSubject = call.body
    subject = subject_of(call.service.settings, body.subject) if body.subject else None
    with call.service.database.change() as change:
        person = _other(call, change)["id"]
        _check_subject(change, subject, person)
        change.run("UPDATE users SET subject = ? WHERE id = ?", subject, person)
        if subject:
            note_subject(change, person, call.person.id)
        end_all_sessions(change, person)
        event = "subject-linked" if subject else "subject-removed"
        call.service.record(change, call.person.id, event, person, call.id)
        return _where(change, person)


def _shut_out(change: Change, person: str) -> None:
    change.run("UPDATE users SET disabled = 1 WHERE id = ?", person)
    change.run("DELETE FROM links WHERE person = ?", person)
    end_all_sessions(change, person)


def _other(call: ServiceCall, change: Change) -> ServiceRow:
    """Return the person of the path, who must be somebody else, so that an administrator always remains."""
    still_has(change, call.person, "admin")
    row = _row(change, call.path["user"])
    if row["erased"]:
        raise not_permitted("this person was erased")
    if row["id"] == call.person.id:
        raise not_permitted("you cannot do this to yourself; another administrator can")
    return row


def _row(change: Change, person: str) -> ServiceRow:
    row = change.row(_SELECT + " WHERE id = ?", person)
    if row is None:
        raise not_found()
    return row


def _check_subject(change: Change, subject: str | None, person: str) -> None:
    row = change.row("SELECT id FROM users WHERE subject = ?", subject) if subject else None
    if row is not None and row["id"] != person:
        raise taken("subject")


def _where(change: Change, person: str) -> Answer:
    return Answer({"user": _shown(_row(change, person))}, location=f"/users/{person}")


def _shown(row: ServiceRow) -> dict[str, Any]:
    return {
        "id": row["id"],
        "name": row["name"],
        "shown": row["shown"],
        "created": row["created"],
        "disabled": bool(row["disabled"]),
        "erased": bool(row["erased"]),
        "has_password": bool(row["has_password"]),
        "has_single_sign_on": row["subject"] is not None,
    }


OPERATIONS = (
    Operation("GET", "/users", _ADMIN, _list, page="access/users.html", summary="List people"),
    Operation(
        "POST", "/users", _ADMIN, _invite, Invitation, "access/invited.html", _invite_page,
        summary="Invite a person; the one-time link is shown once",
    ),
    Operation("GET", "/users/{user}", _ADMIN, _one, page="access/user.html", summary="Show one person"),
    Operation(
        "POST", "/users/{user}/invite", _ADMIN, _invite_again, page="access/invited.html",
        summary="Give a person a new one-time link; it is shown once",
    ),
    Operation("POST", "/users/{user}/disable", _ADMIN, _disable, summary="Disable a person"),
    Operation("POST", "/users/{user}/enable", _ADMIN, _enable, summary="Enable a person"),
    Operation(
        "POST", "/users/{user}/erase", _ADMIN, _erase, Certainty, summary="Erase a person's names for ever"
    ),
    Operation(
        "POST", "/users/{user}/subject", _ADMIN, _link_subject, SignOnSubject,
        summary="Link a person to single sign-on",
    ),
)  # fmt: skip


def _list_events(call: ServiceCall) -> dict[str, Any]:
    """List events, newest first; ``after`` continues with older ones."""
    limit, after = limit_of(call), cursor_of(call, _NUMBER, _NEWEST)
    rows = call.service.database.rows(
        "SELECT e.position, e.at, e.person, u.shown, e.what, e.about, e.request"
        " FROM events e LEFT JOIN users u ON u.id = e.person WHERE e.position < ?"
        " ORDER BY e.position DESC LIMIT ?",
        int(after or _NEWEST), limit + 1,
    )  # fmt: skip
    return part("events", [{**row, "shown": row["shown"] or ""} for row in rows], limit, "position")


EVENT_OPERATIONS = (
    Operation(
        "GET", "/audit-events", needs("auditor", "admin", on="service", scope="audit"), _list_events,
        page="access/events.html", summary="List who did what",
    ),
)  # fmt: skip
