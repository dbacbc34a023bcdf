"""What the service can do: each operation is declared once, with its rule, for programs and people alike.

`_app` mounts an operation as JSON at ``/api/v1<path>`` and, if it names a template, as a page at ``<path>``.
Nothing can be mounted without a rule. A rule asks who is calling: a person by a session, or a token of a
person, and which roles they have where.

Only this site can send the service's forms: each holds a text that is bound to a cookie of the same browser.
A signed-in person's forms hold the text of the session. Somebody unknown, who signs in for instance, gets a
random cookie, and the form holds a text that was computed from it (double submit). Another site can read
neither. A browser that says where a form came from is believed as well.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar
from urllib.parse import urlsplit

from tacit.errors import TacitError
from tacit.service._bodies import MAX_BYTES
from tacit.service._refusals import form_expired, not_found, not_permitted, not_signed_in
from tacit.service._times import new_secret

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from starlette.requests import Request

    from tacit.service._bodies import Body
    from tacit.service._service import Service


FORM_COOKIE = "tacit_form"
_LASTS = 12 * 3600
_OWN_PATH = re.compile(r"/(?![/\\])[^\\\x00-\x20\x7f]{0,499}", re.ASCII)
Role: TypeAlias = Literal["admin", "owner", "curator", "analyst", "auditor"]
ROLES: Final[tuple[Role, ...]] = ("admin", "owner", "curator", "analyst", "auditor")
#: What a token may be used for; a session may do all that its person may.
SCOPES: Final = ("read", "plan", "ask", "curate", "audit", "admin")
TokenScope: TypeAlias = Literal["read", "plan", "ask", "curate", "audit", "admin"]
T = TypeVar("T")


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
    expected = caller.csrf if caller is not None else _bound(secret) if secret else ""
    same = hmac.compare_digest(expected.encode(), sent.encode("utf-8", "replace"))
    if not expected or not same or not _from_here(call):
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


@dataclass(frozen=True, slots=True)
class Caller:
    """A known person and what they may do.

    Parameters
    ----------
    id, name
        The opaque id, which the ledger records, and the name that pages show.
    grants
        Roles by dataset; ``""`` stands for all datasets.
    scopes
        What the token may be used for; a session has all.
    only
        The one dataset that a token is for; empty for all.
    token
        The token's id; empty for a session.
    csrf
        What the forms of this session must hold.
    """

    id: str
    name: str
    grants: Mapping[str, frozenset[str]] = field(default_factory=dict)
    scopes: frozenset[str] = frozenset(SCOPES)
    only: str = ""
    token: str = ""
    csrf: str = ""

    @property
    def roles(self) -> frozenset[str]:
        """All roles that the person has anywhere, or where the token is for; for the navigation too."""
        if self.only:
            return self.roles_on(self.only)
        return frozenset(role for dataset in self.grants for role in self.roles_on(dataset))

    def roles_on(self, dataset: str) -> frozenset[str]:
        """Return the roles on one dataset; an owner has those of a curator too."""
        if self.only and dataset != self.only:
            return frozenset()
        roles = self.grants.get("", frozenset()) | self.grants.get(dataset, frozenset())
        return roles | {"curator"} if "owner" in roles else roles

    def may(self, role: Role, dataset: str = "") -> bool:
        """Whether the person has a role on a dataset."""
        return role in self.roles_on(dataset)


@dataclass(frozen=True, slots=True)
class Rule:
    """Who may use an operation.

    Parameters
    ----------
    roles
        One of these roles is needed; empty: any signed-in person; None: everybody.
    on
        Where the role is needed: on the ``dataset`` of the path, for the whole ``service``, or ``any``where.
    scope
        What a token must be made for.
    """

    roles: frozenset[str] | None
    on: Literal["dataset", "service", "any"] = "any"
    scope: TokenScope = "read"

    def check(self, caller: Caller | None, dataset: str) -> None:
        """Refuse whoever may not; a dataset without any grant looks as if it did not exist."""
        if self.roles is None:
            return
        if caller is None:
            raise not_signed_in()
        roles = caller.roles if self.on == "any" else caller.roles_on(dataset if self.on == "dataset" else "")
        if self.on == "dataset" and not roles:
            raise not_found()
        if self.roles and not self.roles & roles:
            raise not_permitted()
        if self.scope not in caller.scopes:
            raise not_permitted("the token was not made for this")


ANYONE = Rule(None)
SIGNED_IN = Rule(frozenset())


def needs(*roles: Role, on: Literal["dataset", "service", "any"] = "any", scope: TokenScope = "read") -> Rule:
    """Return the rule that one of some roles is needed."""
    return Rule(frozenset(roles), on, scope)


@dataclass(slots=True)
class ServiceCall:
    """One use of an operation: who calls, with what."""

    service: Service
    request: Request
    caller: Caller | None
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: Any = None
    id: str = ""
    is_page: bool = False
    #: Whether the rule of the operation has let the caller through; until then, a refusal shows no form.
    admitted: bool = False
    #: Cookies to set: name -> (value, seconds); an empty value removes the cookie.
    cookies: dict[str, tuple[str, int]] = field(default_factory=dict)
    #: Headers that the answer has, a refusal too.
    headers: dict[str, str] = field(default_factory=dict)
    #: Seconds of a processor that the call has taken, as far as they were `timed`.
    effort: float = 0.0

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Count what is done inside as effort."""
        started = time.thread_time()
        try:
            yield
        finally:
            self.effort += time.thread_time() - started

    async def in_thread(self, work: Callable[..., T], *args: object, **kwargs: object) -> T:
        """Do something long beside the event loop; what it takes is counted like any other effort."""
        return await self.in_pool(None, work, *args, **kwargs)

    async def in_pool(
        self, pool: Executor | None, work: Callable[..., T], *args: object, **kwargs: object
    ) -> T:
        """Do something long in threads of its own, so that those who wait for it hold up nobody else."""

        def timed() -> T:
            with self.timed():
                return work(*args, **kwargs)

        return await asyncio.get_running_loop().run_in_executor(pool, timed)

    @property
    def csrf(self) -> str:
        """What forms on the page must hold."""
        return form_text(self)

    @property
    def person(self) -> Caller:
        """The caller, who must be known."""
        if self.caller is None:
            raise not_signed_in()
        return self.caller

    @property
    def dataset(self) -> str:
        """The dataset of the path; empty where the path has none."""
        return self.path.get("dataset", "")

    def cookie(self, name: str) -> str:
        """Return a cookie of the request, or empty text."""
        return self.request.cookies.get(self.service.settings.cookie(name), "")

    def header(self, name: str) -> str:
        """Return a header of the request, or empty text."""
        return self.request.headers.get(name, "")


@dataclass(frozen=True, slots=True)
class Answer:
    """A document with a status, and where the thing that it speaks of is."""

    document: Mapping[str, Any]
    status: int = 200
    location: str = ""  # without /api/v1; a page redirects there
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Download:
    """Bytes of another kind than JSON."""

    content: bytes
    media_type: str
    filename: str = ""


@dataclass(frozen=True, slots=True)
class Events:
    """Server-sent events: pairs of a name and a document."""

    events: AsyncIterator[tuple[str, Mapping[str, Any]]]


Result: TypeAlias = Mapping[str, Any] | Answer | Download | Events


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing that a person or a program can do.

    Parameters
    ----------
    method, path
        As in HTTP; the path without ``/api/v1``.
    rule
        Who may.
    run
        The function; it may be asynchronous.
    body
        The fields of the body; None for an operation without one.
    page
        The template that shows the document. A form (POST) without a template redirects to the answer's
        location.
    form
        For a POST with a template: what the page shows beside a problem; it gets the call and the fields as
        they were written. It is called only after the rule has let the caller through.
    summary
        One line for the description of the API.
    api
        Whether the operation has a JSON side. Pages that are only forms (sign in) have none.
    most
        The most bytes of the body.
    """

    method: Literal["GET", "POST", "DELETE"]
    path: str
    rule: Rule
    run: Callable[[ServiceCall], Result | Awaitable[Result]]
    body: type[Body] | None = None
    page: str = ""
    form: Callable[[ServiceCall, Mapping[str, str]], Mapping[str, Any]] | None = None
    summary: str = ""
    api: bool = True
    most: int = MAX_BYTES

    def __post_init__(self) -> None:
        if not isinstance(self.rule, Rule):
            raise TacitError("bad-parameter", f"{self.method} {self.path} has no rule")
