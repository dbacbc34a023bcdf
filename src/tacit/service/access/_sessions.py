"""Who sends a request: a token in its header, or the session of its cookie.

One indexed query finds the token or session, the person and all grants. Nothing is kept between requests, so
whatever is withdrawn is gone with the next request, in every worker. A session also remembers the browser:
those in which a person has signed in before are known.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from tacit.service._operations import FORM_COOKIE, SCOPES, Caller
from tacit.service._times import later_text, new_secret, now_text

if TYPE_CHECKING:
    from starlette.requests import Request

    from tacit.service._database import Change, Database, ServiceRow
    from tacit.service._operations import ServiceCall


SESSION_COOKIE = "tacit_session"
_OF_TOKEN = (
    "SELECT t.id AS token, t.scopes, t.dataset AS only_on, u.id, u.shown, g.dataset, g.role"  # noqa: S105 - a statement
    " FROM tokens t JOIN users u ON u.id = t.person LEFT JOIN grants g ON g.person = u.id"
    " WHERE t.digest = ? AND t.revoked = 0 AND t.expires > ? AND u.disabled = 0"
)
_OF_SESSION = (
    "SELECT s.csrf, u.id, u.shown, g.dataset, g.role"
    " FROM sessions s JOIN users u ON u.id = s.person LEFT JOIN grants g ON g.person = u.id"
    " WHERE s.digest = ? AND s.expires > ? AND u.disabled = 0"
)
DEVICE_COOKIE: Final = "tacit_device"
_HOURS = 12
_DEVICE_DAYS = 180
_MAX_DEVICES = 10


def digest_of_secret(secret: str) -> str:
    """Return what the service keeps of a token, a session or a link: random secrets need one hash only."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def identify(database: Database, request: Request, cookie: str = SESSION_COOKIE) -> Caller | None:
    """Return the caller, or None for somebody unknown; a token in the header makes the cookie void."""
    header = request.headers.get("authorization")
    if header is not None:
        scheme, _, secret = header.partition(" ")
        return _of_token(database, secret.strip()) if scheme.lower() == "bearer" else None
    secret = request.cookies.get(cookie, "")
    return _of_session(database, secret) if secret else None


def _of_token(database: Database, secret: str) -> Caller | None:
    rows = database.rows(_OF_TOKEN, digest_of_secret(secret), now_text())
    if not rows:
        return None
    row = rows[0]
    return Caller(
        row["id"], row["shown"], _grants(rows), frozenset(row["scopes"].split()) & set(SCOPES),
        row["only_on"], row["token"],
    )  # fmt: skip


def _of_session(database: Database, secret: str) -> Caller | None:
    rows = database.rows(_OF_SESSION, digest_of_secret(secret), now_text())
    return Caller(rows[0]["id"], rows[0]["shown"], _grants(rows), csrf=rows[0]["csrf"]) if rows else None


def _grants(rows: list[ServiceRow]) -> dict[str, frozenset[str]]:
    grants: dict[str, frozenset[str]] = {}
    for row in rows:
        if row["role"] is not None:
            grants[row["dataset"]] = grants.get(row["dataset"], frozenset()) | {row["role"]}
    return grants


def start_session(call: ServiceCall, change: Change, person: str) -> None:
    """Begin a session with a new secret; the browser's old one ends.

    Guarantee: the secret of a session is never one that the browser sent, so that nobody can prepare it.
    """
    end_session(call, change)
    secret = new_secret()
    change.run("DELETE FROM sessions WHERE expires < ?", now_text())
    change.run(
        "INSERT INTO sessions (digest, person, csrf, created, expires) VALUES (?, ?, ?, ?, ?)",
        digest_of_secret(secret), person, new_secret(), now_text(), later_text(hours=_HOURS),
    )  # fmt: skip
    call.cookies[SESSION_COOKIE] = (secret, _HOURS * 3600)
    call.cookies[FORM_COOKIE] = ("", 0)
    _remember_browser(call, change, person)


def end_session(call: ServiceCall, change: Change) -> None:
    """End the session of the browser's cookie."""
    old = call.cookie(SESSION_COOKIE)
    if old:
        change.run("DELETE FROM sessions WHERE digest = ?", digest_of_secret(old))
        call.cookies[SESSION_COOKIE] = ("", 0)


def end_all_sessions(change: Change, person: str) -> None:
    """End all sessions of a person, and forget the browsers."""
    change.run("DELETE FROM sessions WHERE person = ?", person)
    change.run("DELETE FROM devices WHERE person = ?", person)


def known_browser(call: ServiceCall, change: Change, person: str) -> str:
    """Return the digest of the browser's cookie if the person has signed in with it, else empty text."""
    secret = call.cookie(DEVICE_COOKIE)
    digest = digest_of_secret(secret)
    row = change.row("SELECT created FROM devices WHERE digest = ? AND person = ?", digest, person)
    since = later_text(days=-_DEVICE_DAYS)
    return digest if secret and row is not None and row["created"] > since else ""


def _remember_browser(call: ServiceCall, change: Change, person: str) -> None:
    """Give the browser a cookie by which it is known; a person has at most ten such browsers."""
    if known_browser(call, change, person):
        return
    secret = new_secret()
    change.run(
        "INSERT INTO devices (digest, person, created) VALUES (?, ?, ?)",
        digest_of_secret(secret), person, now_text(),
    )  # fmt: skip
    change.run(
        "DELETE FROM devices WHERE person = ? AND digest NOT IN"
        " (SELECT digest FROM devices WHERE person = ? ORDER BY created DESC LIMIT ?)",
        person, person, _MAX_DEVICES,
    )  # fmt: skip
    call.cookies[DEVICE_COOKIE] = (secret, _DEVICE_DAYS * 86_400)
