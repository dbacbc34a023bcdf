"""What the service can do: each operation is declared once, with its rule, for programs and people alike.

`_app` mounts an operation as JSON at ``/api/v1<path>`` and, if it names a template, as a page at ``<path>``.
Nothing can be mounted without a rule.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from tacit.errors import TacitError
from tacit.service._bodies import MOST_BYTES
from tacit.service._forms import form_text
from tacit.service._refusals import not_found, not_permitted, not_signed_in

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from starlette.requests import Request

    from tacit.service._bodies import Body
    from tacit.service._callers import Caller, Role, TokenScope
    from tacit.service._service import Service

T = TypeVar("T")


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
        held = caller.roles if self.on == "any" else caller.roles_on(dataset if self.on == "dataset" else "")
        if self.on == "dataset" and not held:
            raise not_found()
        if self.roles and not self.roles & held:
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

    async def in_thread(self, work: Callable[..., T], *given: object, **named: object) -> T:
        """Do something long beside the event loop; what it takes is counted like any other effort."""
        return await self.in_pool(None, work, *given, **named)

    async def in_pool(
        self, pool: Executor | None, work: Callable[..., T], *given: object, **named: object
    ) -> T:
        """Do something long in threads of its own, so that those who wait for it hold up nobody else."""

        def timed() -> T:
            with self.timed():
                return work(*given, **named)

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
    most: int = MOST_BYTES

    def __post_init__(self) -> None:
        if not isinstance(self.rule, Rule):
            raise TacitError("bad-parameter", f"{self.method} {self.path} has no rule")
