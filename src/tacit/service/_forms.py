"""Forms that only this site can send: each holds a text that is bound to a cookie of the same browser.

A signed-in person's forms hold the text of the session. Somebody unknown, who signs in for instance, gets a
random cookie, and the form holds a text that was computed from it (double submit). Another site can read
neither. A browser that says where a form came from is believed as well.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tacit.service._refusals import form_expired
from tacit.service._times import new_secret

if TYPE_CHECKING:
    from tacit.service._operations import ServiceCall

FORM_COOKIE = "tacit_form"
_LASTS = 12 * 3600
_OWN_PATH = re.compile(r"/(?![/\\])[^\\\x00-\x20\x7f]{0,499}", re.ASCII)


def form_text(call: ServiceCall) -> str:
    """Return what the forms of a page must hold; somebody unknown gets the cookie that it is bound to."""
    if call.caller is not None:
        return call.caller.csrf
    secret = call.cookies.get(FORM_COOKIE, ("", 0))[0] or call.cookie(FORM_COOKIE)
    if len(secret) < 40:
        secret = new_secret()
        call.cookies[FORM_COOKIE] = (secret, _LASTS)
    return _bound(secret)


def check_form(call: ServiceCall, sent: str) -> None:
    """Refuse a form that this browser did not get from this site.

    Guarantee: a request that is known by a cookie, or by nothing, changes something only if it holds the
    text that this site gave the same browser, and if the browser does not say that another site sent it.
    A token cannot be sent by another site, so requests with one pass.
    """
    caller = call.caller
    if caller is not None and caller.token:
        return
    secret = call.cookie(FORM_COOKIE)
    wanted = caller.csrf if caller is not None else _bound(secret) if secret else ""
    same = hmac.compare_digest(wanted.encode(), sent.encode("utf-8", "replace"))
    if not wanted or not same or not _from_here(call):
        raise form_expired()


def is_own_path(path: str) -> bool:
    r"""Whether a text is a path of this site, so that a redirect to it cannot lead elsewhere.

    Examples
    --------
    >>> [is_own_path(path) for path in ("/datasets?after=3", "//evil.example", "/\\evil", "https://evil")]
    [True, False, False, False]
    """
    return _OWN_PATH.fullmatch(path) is not None


def _bound(secret: str) -> str:
    return hmac.new(secret.encode("utf-8", "surrogatepass"), b"form", hashlib.sha256).hexdigest()


def _from_here(call: ServiceCall) -> bool:
    """Whether the browser does not say that another site sent the form.

    Browsers write ``Origin: null`` for a site that asks them not to send the referrer, as this one does, so
    null says nothing.
    """
    site = call.header("sec-fetch-site")
    if site:
        return site in {"same-origin", "none"}
    origin = call.header("origin")
    if not origin or origin == "null":
        return True
    hosts = {call.header("host")}
    if call.service.settings.behind_proxy:
        hosts |= {call.header("x-forwarded-host")}
    return urlsplit(origin).netloc in hosts
