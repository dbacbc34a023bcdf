"""Sessions of signed-in people, and the browsers in which they have signed in before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tacit.service._forms import FORM_COOKIE
from tacit.service._times import later_text, new_secret, now_text
from tacit.service.access._identify import SESSION_COOKIE, digest_of_secret

if TYPE_CHECKING:
    from tacit.service._database import Change
    from tacit.service._operations import ServiceCall

DEVICE_COOKIE: Final = "tacit_device"
_HOURS = 12
_DEVICE_DAYS = 180
_MOST_DEVICES = 10


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
        person, person, _MOST_DEVICES,
    )  # fmt: skip
    call.cookies[DEVICE_COOKIE] = (secret, _DEVICE_DAYS * 86_400)
