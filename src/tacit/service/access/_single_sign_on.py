"""Single sign-on: to the provider and back.

Each sign-in has a random state. The browser holds it in a cookie and the database holds its digest, so what
comes back belongs to this browser, and can be used once.
"""

from __future__ import annotations

import hmac
import logging
from typing import TYPE_CHECKING, Any, Final

from tacit.errors import TacitError
from tacit.service._forms import is_own_path
from tacit.service._operations import ANYONE, Answer, Operation
from tacit.service._refusals import not_found
from tacit.service._times import later_text, new_secret, now_text
from tacit.service.access._identify import digest_of_secret
from tacit.service.access._names import display_name, user_name
from tacit.service.access._oidc import provider_of, sign_on_failed, subject_of
from tacit.service.access._people import create_person
from tacit.service.access._sessions import start_session

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from tacit.service._database import Change, ServiceRow
    from tacit.service._operations import ServiceCall
    from tacit.service.access._oidc import SignOnProvider

__all__ = ["OPERATIONS"]

_STATE_COOKIE: Final = "tacit_sign_on"
_MINUTES = 10
_MOST_OPEN = 10_000
_LOG = logging.getLogger("tacit.service")


async def _begin(call: ServiceCall) -> Answer:
    """Send the browser to the provider."""
    provider, back = _provider(call), _back(call)
    state, nonce, verifier = new_secret(), new_secret(), new_secret() + new_secret()
    address = await _outside(call, provider.address(back, state, nonce, verifier))
    wanted = call.query.get("next", "")
    with call.service.database.change() as change:
        change.run("DELETE FROM sign_ons WHERE expires < ?", now_text())
        open_ones = change.row("SELECT COUNT(*) AS n FROM sign_ons")
        if open_ones is not None and open_ones["n"] >= _MOST_OPEN:
            raise TacitError(
                "too-many-requests", "too many people are signing in right now", fix="try again later"
            )
        change.run(
            "INSERT INTO sign_ons (digest, nonce, verifier, next, expires) VALUES (?, ?, ?, ?, ?)",
            digest_of_secret(state), nonce, verifier, wanted if is_own_path(wanted) else "/",
            later_text(minutes=_MINUTES),
        )  # fmt: skip
    call.cookies[_STATE_COOKIE] = (state, _MINUTES * 60)
    return Answer({}, location=address)


async def _return(call: ServiceCall) -> Answer:
    """Take what the provider sent back, check it, and sign the person in."""
    provider, service = _provider(call), call.service
    begun = _used_state(call)
    code = call.query.get("code", "")
    if not code or call.query.get("iss", provider.issuer) != provider.issuer:
        raise sign_on_failed()
    claims = await _outside(call, provider.claims(_back(call), code, begun["nonce"], begun["verifier"]))
    subject = subject_of(service.settings, claims["sub"])
    with service.database.change() as change:
        row = change.row("SELECT id, disabled FROM users WHERE subject = ?", subject)
        if row is None and provider.creates:
            row = {"id": _new_person(change, claims, subject), "disabled": 0}
            service.record(change, row["id"], "user-created", row["id"], call.id)
        if row is None:
            raise _not_linked(claims["sub"])
        if row["disabled"]:
            raise sign_on_failed()
        start_session(call, change, row["id"])
        service.record(change, row["id"], "signed-in", "", call.id)
    return Answer({}, location=begun["next"])


def _used_state(call: ServiceCall) -> ServiceRow:
    """Return the sign-in that this browser began, and forget it, so that nobody can come back twice."""
    sent, kept = call.query.get("state", ""), call.cookie(_STATE_COOKIE)
    call.cookies[_STATE_COOKIE] = ("", 0)
    if not sent or not hmac.compare_digest(sent.encode("utf-8", "replace"), kept.encode("utf-8", "replace")):
        raise sign_on_failed()
    with call.service.database.change() as change:
        row = change.row(
            "SELECT nonce, verifier, next, expires FROM sign_ons WHERE digest = ?", digest_of_secret(sent)
        )
        change.run("DELETE FROM sign_ons WHERE digest = ?", digest_of_secret(sent))
    if row is None or row["expires"] < now_text():
        raise sign_on_failed()
    return row


async def _outside(call: ServiceCall, asked: Awaitable[Any]) -> Any:
    """Await the provider; whatever is wrong with it becomes the one refusal, and its kind goes to the log."""
    try:
        return await asked
    except TacitError:
        raise
    except Exception as error:  # noqa: BLE001 - libraries raise many kinds for hostile answers
        _LOG.warning("sign-on failed", extra={"request": call.id, "kind": type(error).__name__})
        raise sign_on_failed() from None


def _not_linked(subject: str) -> TacitError:
    return TacitError(
        "not-permitted",
        "nobody has invited you to this service yet",
        why="the provider knows you, but an administrator must link you to a person here",
        fix=f"give an administrator your number at the provider: {subject}",
    )


def _new_person(change: Change, claims: dict[str, Any], subject: str) -> str:
    """Make a person without any role; the provider's name is taken if it is free and allowed."""
    wanted = user_name(str(claims.get("preferred_username", "")))
    free = wanted and change.row("SELECT id FROM users WHERE name = ?", wanted) is None
    shown = display_name(str(claims.get("name", "")))
    name = wanted if free else f"sso-{digest_of_secret(subject)[:20]}"
    return create_person(change, name, shown or name, subject)


def _provider(call: ServiceCall) -> SignOnProvider:
    provider = provider_of(call.service.settings)
    if provider is None:
        raise not_found()
    return provider


def _back(call: ServiceCall) -> str:
    return f"{call.service.settings.public_url}/sign-in/return"


OPERATIONS = (
    Operation("GET", "/sign-in/provider", ANYONE, _begin, api=False),
    Operation("GET", "/sign-in/return", ANYONE, _return, api=False),
)
