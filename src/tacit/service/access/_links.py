"""One-time links: for the first administrator, for invited people, and for people who lost their password.

A link is ``/welcome#CODE``. Browsers do not send what follows the mark ``#``, so the code is in no log of
this service or of a proxy, and in no header; looking at the page does not use it up. A small script fills
the code into the form and takes it out of the address. Without scripts a person pastes it. Only a digest of
the code is kept, the code works once, and it ends after its time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tacit.errors import TacitError
from tacit.service._refusals import not_found
from tacit.service._times import later_text, new_id, new_secret, now_text
from tacit.service.access._identify import digest_of_secret

if TYPE_CHECKING:
    from tacit.service._database import Change, Database, ServiceRow
    from tacit.service._service import Service

_HOURS = 24
_CAN_SIGN_IN = (
    "SELECT u.id FROM users u JOIN grants g ON g.person = u.id WHERE g.role = 'admin' AND g.dataset = ''"
    " AND u.disabled = 0 AND (u.password <> '' OR u.subject IS NOT NULL) LIMIT 1"
)


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


def find_link(place: Any, code: str) -> ServiceRow:
    """Return whom a code is for, or refuse it; the whole link is as good as its code."""
    row: ServiceRow | None = place.row(
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
