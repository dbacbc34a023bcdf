"""Single sign-on: to the provider and back.

Each sign-in has a random state. The browser holds it in a cookie that the service has signed, so what comes
back belongs to this browser. The database holds nothing of a sign-in that has only begun: else anybody could
begin so many that nobody else could. It holds the states that have signed somebody in, so that each does it
once.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote

from tacit.errors import TacitError
from tacit.service._bodies import display_name, user_name
from tacit.service._operations import ANYONE, Answer, Operation, is_own_path
from tacit.service._refusals import not_found
from tacit.service._times import later_text, new_secret, now_text
from tacit.service.access._oidc import provider_of, sign_on_failed, subject_of
from tacit.service.access._people import create_person
from tacit.service.access._sessions import digest_of_secret, start_session

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from tacit.service._database import Change
    from tacit.service._operations import ServiceCall
    from tacit.service.access._oidc import SignOnProvider

_STATE_COOKIE: Final = "tacit_sign_on"
_MINUTES = 10
_FORM: Final = re.compile(r"([^.]+)\.(.{27})\.(.+)")
_LOG = logging.getLogger("tacit.service")


async def _begin(call: ServiceCall) -> Answer:
    """Send the browser to the provider."""
    provider, back = _provider(call), _back(call)
    state, key = new_secret(), _key(call)
    address = await _outside(call, provider.address(back, state, *_secrets(key, state)))
    destination = call.query.get("next", "")
    following = quote(destination if is_own_path(destination) else "/", safe="/")
    begun = f"{state}.{later_text(minutes=_MINUTES)}.{following}"
    call.cookies[_STATE_COOKIE] = (f"{_derived(key, 'cookie', begun)}.{begun}", _MINUTES * 60)
    return Answer({}, location=address)


async def _return(call: ServiceCall) -> Answer:
    """Take what the provider sent back, check it, and sign the person in."""
    provider, service = _provider(call), call.service
    state, expires, following = _begun(call)
    code = call.query.get("code", "")
    if not code or call.query.get("iss", provider.issuer) != provider.issuer:
        raise sign_on_failed()
    claims = await _outside(call, provider.claims(_back(call), code, *_secrets(_key(call), state)))
    subject = subject_of(service.settings, claims["sub"])
    with service.database.change() as change:
        _use(change, state, expires)
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
    return Answer({}, location=following)


def _begun(call: ServiceCall) -> tuple[str, str, str]:
    """Return the sign-in that this browser began: its state, when it ends, and where it leads."""
    sent, cookie = call.query.get("state", ""), call.cookie(_STATE_COOKIE)
    call.cookies[_STATE_COOKIE] = ("", 0)
    signature, _, begun = cookie.partition(".")
    if not _same(signature, _derived(_key(call), "cookie", begun)):
        raise sign_on_failed()
    state, expires, following = _FORM.fullmatch(begun).groups()  # type: ignore[union-attr]  # it is signed
    if not _same(sent, state) or expires < now_text():
        raise sign_on_failed()
    return state, expires, unquote(following)


def _use(change: Change, state: str, expires: str) -> None:
    """Use a state up; only somebody whom the provider knows comes so far, so nobody else fills the table."""
    change.run("DELETE FROM sign_ons WHERE expires < ?", now_text())
    if not change.run(
        "INSERT INTO sign_ons (digest, nonce, verifier, next, expires) VALUES (?, '', '', '', ?)"
        " ON CONFLICT (digest) DO NOTHING",
        digest_of_secret(state), expires,
    ):  # fmt: skip
        raise sign_on_failed()


def _key(call: ServiceCall) -> str:
    """Return the secret that all workers sign with; the first sign-in makes it."""
    database = call.service.database
    row = database.row("SELECT fact FROM facts WHERE name = 'sign_on_key'")
    if row is None:
        with database.change() as change:
            change.run(
                "INSERT INTO facts (name, fact) VALUES ('sign_on_key', ?) ON CONFLICT (name) DO NOTHING",
                new_secret(),
            )
            row = change.row("SELECT fact FROM facts WHERE name = 'sign_on_key'")
    return str(row["fact"]) if row is not None else ""


def _secrets(key: str, state: str) -> tuple[str, str]:
    """Return the nonce and the verifier of a sign-in, which no browser and no other site can know."""
    return _derived(key, "nonce", state), _derived(key, "verifier", state)


def _derived(key: str, use: str, text: str) -> str:
    return hmac.new(key.encode(), f"{use} {text}".encode("utf-8", "replace"), hashlib.sha256).hexdigest()


def _same(sent: str, expected: str) -> bool:
    return hmac.compare_digest(sent.encode("utf-8", "replace"), expected.encode("utf-8", "replace"))


async def _outside(call: ServiceCall, request: Awaitable[Any]) -> Any:
    """Await the provider; whatever is wrong with it becomes the one refusal, and its kind goes to the log."""
    try:
        return await request
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
    user = user_name(str(claims.get("preferred_username", "")))
    free = user and change.row("SELECT id FROM users WHERE name = ?", user) is None
    full_name = display_name(str(claims.get("name", "")))
    name = user if free else f"sso-{digest_of_secret(subject)[:20]}"
    return create_person(change, name, full_name or name, subject)


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
