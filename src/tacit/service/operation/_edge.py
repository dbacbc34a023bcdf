"""The edge of the application: what every request passes, what every answer carries, and what is logged.

The edge is written against ASGI itself, because a middleware of functions costs a task and a queue per
request.

Logs are JSON lines: ids, codes and places in the program, never what people sent or what data holds. A line
holds only the fields listed here. Of an exception it holds the type and the place. Of a library's message it
holds the place alone, because libraries write values into their messages. There is no debug mode: it would be
the way around this page.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

from tacit.errors import TacitError
from tacit.service._bodies import MAX_BYTES
from tacit.service._refusals import body_too_large
from tacit.service._times import new_id

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from types import TracebackType

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from tacit.service.operation._shared import CounterNames


#: What a line may hold beside its time, level, event and place.
FIELDS: Final = (
    "request", "method", "route", "status", "person", "code", "kind", "place", "part", "number", "pid",
    "exit_code", "dataset", "query", "job", "checks", "seconds_to_wait",
)  # fmt: skip
_OWN = ("tacit",)
#: Messages of the web server that are fixed text; their arguments are not shown.
_FIXED = ("uvicorn.error",)
_LOG = logging.getLogger("tacit.service.requests")
_METHODS: Final = frozenset({"GET", "POST", "DELETE", "HEAD", "OPTIONS", "PUT", "PATCH"})


class LineFormatter(logging.Formatter):
    """One record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Write the allowed fields; arguments of messages and texts of exceptions are not among them."""
        at = datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        line: dict[str, Any] = {"at": at, "level": record.levelname.lower()}
        if record.name.partition(".")[0] in _OWN or record.name in _FIXED:
            line["event"] = str(record.msg)[:200].strip()
        else:
            line |= {"event": "message of a library", "library": record.name.partition(".")[0]}
            line["place"] = f"{Path(record.pathname).name}:{record.lineno}"
        if record.exc_info and record.exc_info[0] is not None:
            line["kind"] = record.exc_info[0].__name__
            line["place"] = place_of_error(record.exc_info[2])
        line |= {name: vars(record)[name] for name in FIELDS if vars(record).get(name) not in (None, "")}
        return json.dumps(line, ensure_ascii=True, default=lambda value: type(value).__name__)


def place_of_error(trace: TracebackType | None) -> str:
    """Return the file and the line where an error arose; nothing of its text."""
    position = "unknown"
    while trace is not None:
        position = f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return position


def start_logging(*, requests: bool = True, stream: TextIO | None = None) -> None:
    """Send every log of this process to standard error as JSON lines; uncaught errors too.

    Parameters
    ----------
    requests
        Whether each request is a line; warnings are shown in any case.
    stream
        Where the lines go.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(LineFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "uvicorn.asgi"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = name != "uvicorn.access"  # it would show addresses with their queries
        logger.setLevel(logging.WARNING)
    logging.getLogger("tacit").setLevel(logging.INFO)
    logging.getLogger("tacit.service.requests").setLevel(logging.INFO if requests else logging.CRITICAL)
    logging.captureWarnings(True)  # noqa: FBT003
    log = logging.getLogger("tacit.service")

    def uncaught(kind: type[BaseException], _: BaseException | None, trace: TracebackType | None) -> None:
        log.error("uncaught error", extra={"kind": kind.__name__, "place": place_of_error(trace)})

    sys.excepthook = uncaught
    threading.excepthook = lambda args: uncaught(args.exc_type, args.exc_value, args.exc_traceback)
    sys.unraisablehook = lambda args: uncaught(args.exc_type, args.exc_value, args.exc_traceback)


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
                max_bytes = self._larger.get(scope["path"].rpartition("/")[2], MAX_BYTES)
                if not value.isdigit() or int(value[:20]) > max_bytes:
                    raise body_too_large(max_bytes)

    def _completed(
        self, scope: Scope, exchange: LoggedRequest, app_headers: list[tuple[bytes, bytes]]
    ) -> list[tuple[bytes, bytes]]:
        """Add the headers that an answer does not have yet."""
        is_static = scope["path"].startswith("/static/") and exchange.status < 400
        own_headers = {name for name, _ in app_headers if name in self._names}
        headers = [*app_headers, *(one for one in self._headers if one[0] not in own_headers)]
        if is_static:
            headers = [one for one in headers if one[0] != b"cache-control"]
            headers.append((b"cache-control", b"public, max-age=3600"))
        headers.append((b"x-request-id", exchange.id.encode()))
        if exchange.status == 429 and all(name != b"retry-after" for name, _ in app_headers):
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
