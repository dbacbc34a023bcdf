"""Signing in and out, one-time links and their page, and changing one's password.

One-time links are for the first administrator, for invited people, and for people who lost their password.
A link is ``/welcome#CODE``. Browsers do not send what follows the mark ``#``, so the code is in no log of
this service or of a proxy, and in no header; looking at the page does not use it up. A small script fills
the code into the form and takes it out of the address. Without scripts a person pastes it. Only a digest of
the code is kept, the code works once, and it ends after its time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import StringConstraints

from tacit.errors import TacitError
from tacit.service._bodies import Body, DisplayName, UserName, taken
from tacit.service._operations import ANYONE, SIGNED_IN, Answer, Operation, ServiceCall, is_own_path
from tacit.service._refusals import field_missing, not_found, not_permitted
from tacit.service._times import later_text, new_id, new_secret, now_text
from tacit.service.access import _passwords
from tacit.service.access._grants import give_role
from tacit.service.access._oidc import sign_on_name
from tacit.service.access._passwords import (
    MIN_CHARACTERS,
    check_password,
    check_queue,
    hash_password,
    is_outdated,
)
from tacit.service.access._sessions import (
    digest_of_secret,
    end_all_sessions,
    end_session,
    known_browser,
    start_session,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.service._database import Change, Database, ServiceRow
    from tacit.service._service import Service


_HOURS = 24
_CAN_SIGN_IN = (
    "SELECT u.id FROM users u JOIN grants g ON g.person = u.id WHERE g.role = 'admin' AND g.dataset = ''"
    " AND u.disabled = 0 AND (u.password <> '' OR u.subject IS NOT NULL) LIMIT 1"
)
_HOME = "/"
_LINK_DAYS = 365  # for which a person sees who made a link for them


def first_link(service: Service) -> str:
    """Return a one-time link for the first administrator; empty if an administrator can sign in already.

    Each call makes the link of an earlier call void. The link is valid for 24 hours.
    """
    with service.database.change() as change:
        if change.row(_CAN_SIGN_IN) is not None:
            return ""
        row = change.row(
            "SELECT u.id FROM users u JOIN grants g ON g.person = u.id"
            " WHERE u.name = u.id AND u.disabled = 0 AND g.role = 'admin' AND g.dataset = ''"
        )
        person = row["id"] if row is not None else _first_person(change)
        link = new_link(service, change, person, "")
        service.record(change, "", "first-link-made", person, "")
    return link


def link_for(service: Service, name: str) -> str:
    """Return a one-time link for a person by name, for operators, after an administrator lost a password.

    Whoever can run this on the service's machine can read its database anyway.
    """
    with service.database.change() as change:
        row = change.row("SELECT id FROM users WHERE name = ? AND disabled = 0", name.strip().lower())
        if row is None:
            raise not_found()
        link = new_link(service, change, row["id"], "")
        service.record(change, "", "link-made-by-operator", row["id"], "")
    return link


def has_admin(database: Database) -> bool:
    """Whether an administrator can sign in."""
    return database.row(_CAN_SIGN_IN) is not None


def new_link(service: Service, change: Change, person: str, maker: str) -> str:
    """Make a link for a person; earlier ones become void. Who made it is kept, and the person is told."""
    code = new_secret()
    change.run("DELETE FROM links WHERE person = ? OR expires < ?", person, now_text())
    change.run(
        "INSERT INTO links (digest, person, expires) VALUES (?, ?, ?)",
        digest_of_secret(code), person, later_text(hours=_HOURS),
    )  # fmt: skip
    change.run(
        "INSERT INTO made_links (digest, person, made_by, made) VALUES (?, ?, ?, ?)",
        digest_of_secret(code), person, maker, now_text(),
    )  # fmt: skip
    return f"{service.settings.public_url}/welcome#{code}"


def note_subject(change: Change, person: str, maker: str) -> None:
    """Keep who linked a person to single sign-on: like a link, it lets its maker decide who can sign in."""
    change.run(
        "INSERT INTO made_links (digest, person, made_by, made, used) VALUES (?, ?, ?, ?, ?)",
        new_id("l"), person, maker, now_text(), now_text(),
    )  # fmt: skip


def find_link(database: Any, code: str) -> ServiceRow:
    """Return whom a code is for, or refuse it; the whole link is as good as its code."""
    row: ServiceRow | None = database.row(
        "SELECT l.digest, u.id, u.name, u.shown FROM links l JOIN users u ON u.id = l.person"
        " WHERE l.digest = ? AND l.used = 0 AND l.expires > ? AND u.disabled = 0",
        digest_of_secret(code.strip().rpartition("#")[2]), now_text(),
    )  # fmt: skip
    if row is None:
        raise TacitError(
            "not-found",
            "this link is not valid, or it is no longer valid",
            why="a link works once and for 24 hours",
            fix="ask an administrator for a new link",
        )
    return row


def use_link(change: Change, code: str) -> ServiceRow:
    """Use a code up and return whom it was for; of two uses at once, one is refused."""
    row = find_link(change, code)
    change.run("UPDATE links SET used = 1 WHERE digest = ?", row["digest"])
    change.run("UPDATE made_links SET used = ? WHERE digest = ?", now_text(), row["digest"])
    return row


def links_made_for(database: Database, person: str, days: int) -> list[dict[str, str]]:
    """Return the links that others made for a person in the last days, newest first, with their makers."""
    rows = database.rows(
        "SELECT m.made, m.used, m.made_by, u.shown FROM made_links m LEFT JOIN users u ON u.id = m.made_by"
        " WHERE m.person = ? AND m.made > ? ORDER BY m.made DESC LIMIT 20",
        person, later_text(days=-days),
    )  # fmt: skip
    return [
        {"made": row["made"], "used": row["used"], "by": row["shown"] or "the operator of this service"}
        for row in rows
    ]


def _first_person(change: Change) -> str:
    """Make the first administrator, who chooses a name on the page of the link."""
    person = new_id("u")
    change.run(
        "INSERT INTO users (id, name, shown, created) VALUES (?, ?, 'First administrator', ?)",
        person, person, now_text(),
    )  # fmt: skip
    change.run(
        "INSERT INTO grants (person, dataset, role, granted_by, granted) VALUES (?, '', 'admin', ?, ?)",
        person, person, now_text(),
    )  # fmt: skip
    return person


PasswordText = Annotated[str, StringConstraints(min_length=1, max_length=4000)]


class Credentials(Body):
    """What a person signs in with."""

    name: Annotated[str, StringConstraints(max_length=200)]
    password: PasswordText
    next: Annotated[str, StringConstraints(max_length=500)] = ""


class Arrival(Body):
    """What a person writes on the page of a one-time link.

    Only the first administrator chooses a name, and may become an owner of all datasets as well.
    """

    code: Annotated[str, StringConstraints(min_length=1, max_length=500)]
    password: PasswordText
    name: UserName = ""
    shown: DisplayName = ""
    owner: Literal["", "yes"] = ""


class NewPassword(Body):
    """A change of one's own password."""

    current: PasswordText
    password: PasswordText


def _sign_in_page(call: ServiceCall, fields: Mapping[str, str] | None = None) -> dict[str, Any]:
    fields = fields or {}
    destination = str(fields.get("next") or call.query.get("next", ""))
    return {
        "name": fields.get("name", "")[:200],
        "next": destination if is_own_path(destination) else "",
        "single_sign_on": sign_on_name(call.service.settings),
        "first": not has_admin(call.service.database),
    }


async def _sign_in(call: ServiceCall) -> Answer:
    """Sign a person in; every try computes one hash and writes the same, whether the name exists or not."""
    body: Credentials = call.body
    name = body.name.strip().lower()
    database = call.service.database
    with database.change() as change:
        user = change.row("SELECT id, password, disabled FROM users WHERE name = ?", name)
        browser, subjects = _subjects(call, change, name, user)
        check_queue(browser_known=bool(browser))
        wait = _passwords.count_try(change, subjects)
    if wait:
        raise _passwords.wait_first(call, wait)
    stored = user["password"] if user is not None and not user["disabled"] else ""
    good = await check_password(stored, body.password)
    better = await hash_password(body.password) if good and is_outdated(stored) else stored
    with database.change() as change:
        good = good and _unchanged(change, user, stored)
        person = user["id"] if user is not None else ""
        call.service.record(change, person, "signed-in" if good else "sign-in-refused", "", call.id)
        if good:
            _passwords.take_back(change, subjects)
            change.run("UPDATE users SET password = ? WHERE id = ?", better, person)
            start_session(call, change, person)
    if not good:
        raise TacitError(
            "not-signed-in",
            "the name or the password is not right",
            fix="try again, or ask an administrator for a new link",
        )
    return Answer({}, location=body.next if is_own_path(body.next) else _HOME)


def _subjects(call: ServiceCall, change: Change, name: str, user: ServiceRow | None) -> tuple[str, list[str]]:
    """Return the browser if the person has used it before, and what the try is counted for."""
    browser = known_browser(call, change, user["id"] if user is not None else "")
    if browser:
        return browser, [_passwords.guessed("browser", browser)]
    return "", [_passwords.guessed("name", name), _passwords.guessed("address", _passwords.address_of(call))]


def _unchanged(change: Change, user: ServiceRow | None, stored: str) -> bool:
    """Whether the person still has the password that was checked, and is not disabled."""
    if user is None:
        return False
    row = change.row("SELECT password, disabled FROM users WHERE id = ?", user["id"])
    return row is not None and row["password"] == stored and not row["disabled"]


def _sign_out(call: ServiceCall) -> Answer:
    with call.service.database.change() as change:
        end_session(call, change)
        call.service.record(change, call.person.id, "signed-out", "", call.id)
    return Answer({}, location="/sign-in")


def _welcome_page(call: ServiceCall, fields: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return what the page of a link shows; a code that was sent is kept, so that it is typed once."""
    fields = fields or {}
    return {
        "first": not has_admin(call.service.database),
        "least": MIN_CHARACTERS,
        **{field: fields.get(field, "")[:200] for field in ("code", "name", "shown", "owner")},
    }


async def _welcome(call: ServiceCall) -> Answer:
    """Let a person choose a password with a one-time link, and sign them in."""
    body: Arrival = call.body
    service = call.service
    invited = find_link(service.database, body.code)
    is_first = invited["name"] == invited["id"]
    if is_first and not body.name:
        raise field_missing("name", "choose a name to sign in with, as the first administrator")
    hashed = await hash_password(body.password)
    with service.database.change() as change:
        person = use_link(change, body.code)["id"]
        if is_first:
            _take_name(change, person, body.name, body.shown or body.name)
            if body.owner:
                give_role(change, person, "owner", "", person)
                service.record(change, person, "role-given", f"{person} owner everywhere", call.id)
        change.run("UPDATE users SET password = ? WHERE id = ?", hashed, person)
        end_all_sessions(change, person)
        start_session(call, change, person)
        service.record(change, person, "link-used", person, call.id)
    return Answer({}, location=_HOME)


def _take_name(change: Change, person: str, name: str, display_name: str) -> None:
    if change.row("SELECT id FROM users WHERE name = ?", name) is not None:
        raise taken("name")
    change.run("UPDATE users SET name = ?, shown = ? WHERE id = ?", name, display_name, person)


def _password_page(call: ServiceCall, _: Mapping[str, str] | None = None) -> dict[str, Any]:
    if call.person.token:
        raise not_permitted("a token cannot change the password")
    return {"least": MIN_CHARACTERS}


async def _change_password(call: ServiceCall) -> Answer:
    """Change one's own password; all sessions end, and this browser gets a new one."""
    body: NewPassword = call.body
    person, service = call.person.id, call.service
    if call.person.token:
        raise not_permitted("a token cannot change the password")
    subjects = [_passwords.guessed("person", person)]
    with service.database.change() as change:
        wait = _passwords.count_try(change, subjects)
        user = change.row("SELECT id, password, disabled FROM users WHERE id = ?", person)
    if wait:
        raise _passwords.wait_first(call, wait)
    stored = user["password"] if user is not None else ""
    if not await check_password(stored, body.current):
        with service.database.change() as change:
            service.record(change, person, "password-refused", "", call.id)
        raise TacitError(
            "not-permitted",
            "the current password is not right",
            fix="try again, or ask an administrator for a new link",
        )
    hashed = await hash_password(body.password)
    with service.database.change() as change:
        if not _unchanged(change, user, stored):
            raise not_permitted("the password was changed at the same time")
        _passwords.take_back(change, subjects)
        change.run("UPDATE users SET password = ? WHERE id = ?", hashed, person)
        change.run("DELETE FROM links WHERE person = ?", person)
        end_all_sessions(change, person)
        start_session(call, change, person)
        service.record(change, person, "password-changed", person, call.id)
    return Answer({}, location="/me")


def _me(call: ServiceCall) -> dict[str, Any]:
    """Return who the caller is, and what they may do."""
    caller = call.person
    grants = [
        {"dataset": dataset, "role": role}
        for dataset, roles in sorted(caller.grants.items())
        for role in sorted(roles)
        if not caller.only or dataset in {"", caller.only}
    ]
    return {
        "id": caller.id,
        "name": caller.name,
        "grants": grants,
        "scopes": sorted(caller.scopes),
        "dataset": caller.only,
        "token": caller.token,
        "links": links_made_for(call.service.database, caller.id, _LINK_DAYS),
    }


OPERATIONS = (
    Operation("GET", "/sign-in", ANYONE, _sign_in_page, page="access/sign_in.html", api=False),
    Operation(
        "POST", "/sign-in", ANYONE, _sign_in, Credentials, "access/sign_in.html", _sign_in_page, api=False
    ),
    Operation("POST", "/sign-out", SIGNED_IN, _sign_out, api=False),
    Operation("GET", "/welcome", ANYONE, _welcome_page, page="access/welcome.html", api=False),
    Operation("POST", "/welcome", ANYONE, _welcome, Arrival, "access/welcome.html", _welcome_page, api=False),
    Operation("GET", "/password", SIGNED_IN, _password_page, page="access/password.html", api=False),
    Operation(
        "POST", "/password", SIGNED_IN, _change_password, NewPassword, "access/password.html", _password_page,
        api=False,
    ),
    Operation("GET", "/me", SIGNED_IN, _me, page="access/me.html", summary="Who you are and what you may do"),
)  # fmt: skip
