"""The edge of the application: what every request passes, and what every answer carries.

It is written against ASGI itself, because a middleware of functions costs a task and a queue per request.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from tacit.errors import TacitError
from tacit.service._bodies import MOST_BYTES
from tacit.service._refusals import body_too_large
from tacit.service._times import new_id
from tacit.service.operation._logs import place_of_error

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from tacit.service.operation._counters import CounterNames

_LOG = logging.getLogger("tacit.service.requests")
_METHODS: Final = frozenset({"GET", "POST", "DELETE", "HEAD", "OPTIONS", "PUT", "PATCH"})


class LoggedRequest:
    """One request as the log knows it; the application fills in who asked and why it refused."""

    __slots__ = ("code", "id", "person", "retry_after", "status")

    def __init__(self) -> None:
        self.id = new_id("x")
        self.person = ""
        self.code = ""
        self.retry_after = 1
        self.status = 0


class Edge:
    """Gives a request its id, checks its host and its size, adds headers, counts and logs.

    Guarantee: every answer carries the headers, also those to failures; a failure never passes further out,
    where a server would show it. A line of the log holds the template of the route, not the path.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        headers: Mapping[str, str],
        hosts: str,
        counters: CounterNames,
        refuse: Callable[[Any, TacitError], Awaitable[Any]],
        larger: Mapping[str, int] | None = None,
    ) -> None:
        self._larger = dict(larger or {})  # the ends of paths that take larger bodies
        self._app, self._refuse, self._counters = app, refuse, counters
        self._headers = [(name.encode(), value.encode()) for name, value in headers.items()]
        self._names = frozenset(name for name, _ in self._headers)
        self._hosts = frozenset(host.lower() for host in hosts.split())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = scope["tacit"] = LoggedRequest()

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                exchange.status = message["status"]
                message["headers"] = self._completed(scope, exchange, message.get("headers", []))
            await send(message)

        try:
            self._check(scope)
            await self._app(scope, receive, answer)
        except TacitError as refusal:
            await self._end(refusal, scope, receive, answer)
        except Exception as error:  # noqa: BLE001 - what went wrong inside stays inside
            where = {"kind": type(error).__name__, "place": place_of_error(error.__traceback__)}
            _LOG.error("failure", extra={"request": exchange.id, **where})
            await self._end(TacitError("service-failed", "the service failed"), scope, receive, answer)
        finally:
            self._note(scope, exchange)

    async def _end(self, refusal: TacitError, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a refusal, unless an answer has begun: that one breaks off."""
        if not scope["tacit"].status:
            response = await self._refuse(scope, refusal)
            await response(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        """Refuse another host's name, and a body that says itself that it is too large."""
        for name, value in scope["headers"]:
            if name == b"host" and self._hosts and _host(value) not in self._hosts:
                raise TacitError(
                    "not-found",
                    "this service is not reached by that name",
                    fix="the operator lists the names of the service in its settings: hosts",
                )
            if name == b"content-length":
                most = self._larger.get(scope["path"].rpartition("/")[2], MOST_BYTES)
                if not value.isdigit() or int(value[:20]) > most:
                    raise body_too_large(most)

    def _completed(
        self, scope: Scope, exchange: LoggedRequest, given: list[tuple[bytes, bytes]]
    ) -> list[tuple[bytes, bytes]]:
        """Add the headers that an answer does not have yet."""
        is_static = scope["path"].startswith("/static/") and exchange.status < 400
        own = {name for name, _ in given if name in self._names}
        headers = [*given, *(one for one in self._headers if one[0] not in own)]
        if is_static:
            headers = [one for one in headers if one[0] != b"cache-control"]
            headers.append((b"cache-control", b"public, max-age=3600"))
        headers.append((b"x-request-id", exchange.id.encode()))
        if exchange.status == 429 and all(name != b"retry-after" for name, _ in given):
            headers.append((b"retry-after", str(exchange.retry_after).encode()))
        return headers

    def _note(self, scope: Scope, exchange: LoggedRequest) -> None:
        """Count and log the request."""
        route = "/static" if scope["path"].startswith("/static/") else getattr(scope.get("route"), "path", "")
        shared = scope["app"].state.shared if "app" in scope else None
        if shared is not None:
            counts = shared.counts[shared.worker]
            counts[self._counters.of_request(route, exchange.status)] += 1
            refusal = self._counters.of_refusal(exchange.code)
            if refusal is not None:
                counts[refusal] += 1
        if _LOG.isEnabledFor(logging.INFO):
            method = scope["method"] if scope["method"] in _METHODS else "other"
            facts = {"request": exchange.id, "method": method, "route": route, "status": exchange.status}
            _LOG.info("request", extra={**facts, "person": exchange.person, "code": exchange.code})


def _host(value: bytes) -> str:
    """Return the name of a host header without its port."""
    text = value.decode("latin-1").lower()
    return text.partition("]")[0] + "]" if text.startswith("[") else text.partition(":")[0]
