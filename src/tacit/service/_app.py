"""The application: every operation mounted twice, one door for errors, the same headers on every answer."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
from contextlib import asynccontextmanager, suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from fastapi import APIRouter, FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.staticfiles import StaticFiles

from tacit.errors import TacitError
from tacit.service import _bodies
from tacit.service._operations import ANYONE, Answer, Download, Events, Operation, ServiceCall, check_form
from tacit.service._refusals import body_too_large, body_unreadable, not_found, problem_of
from tacit.service._rendering import render
from tacit.service._service import Service
from tacit.service.access import SESSION_COOKIE, identify
from tacit.service.operation import CounterNames, Edge, SharedState, check_rate, note_effort, place_of_error

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from starlette.routing import BaseRoute
    from starlette.types import Scope

    from tacit.service._settings import ServiceSettings

API: Final = "/api/v1"
#: The areas of the service; each has a tuple OPERATIONS.
OPERATION_MODULES: Final = ("access", "curation", "plans", "runner", "pages", "operation")
_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "content-security-policy": _CSP,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "x-frame-options": "DENY",
}
_ONLY_TLS: Final = {"strict-transport-security": "max-age=31536000"}
_BODY_SECONDS = 20.0  # in which a body must have arrived
_LOG = logging.getLogger("tacit.service")


def all_operations() -> list[Operation]:
    """Return the operations of all areas."""
    operations: list[Operation] = []
    for area in OPERATION_MODULES:
        operations += import_module(f"tacit.service.{area}").OPERATIONS
    return operations


def create_app(settings: ServiceSettings) -> FastAPI:
    """Make the application of one web worker.

    Guarantee: no operation is reachable without its rule, every answer carries the security headers, and no
    error repeats what was sent or shows what went wrong inside.
    """
    service = Service(settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    app = FastAPI(
        title=settings.name, version="1", lifespan=lifespan, docs_url=None, redoc_url=None,
        redirect_slashes=False,
        openapi_url=f"{API}/openapi.json",
    )  # fmt: skip
    app.state.service = service
    for operation in all_operations():
        app.router.routes.extend(_routes(operation))
    app.mount("/static", StaticFiles(directory=Path(__file__).parent / "static"), name="static")
    app.state.shared = SharedState()
    app.add_exception_handler(HTTPException, _outside(service))
    headers = _HEADERS | (_ONLY_TLS if settings.over_tls else {})
    counters = CounterNames(route_templates())
    larger = {
        one.path.rpartition("/")[2]: one.most for one in all_operations() if one.most > _bodies.MAX_BYTES
    }
    app.add_middleware(
        Edge, headers=headers, hosts=settings.hosts, counters=counters, refuse=_refusing(service),
        larger=larger,
    )  # fmt: skip
    return app


def route_templates() -> list[str]:
    """Return the templates of all routes, which is what logs and metrics show instead of paths."""
    paths = [operation.path for operation in all_operations()]
    return ["/static", f"{API}/openapi.json", *paths, *(API + path for path in paths)]


@cache
def _routes(operation: Operation) -> tuple[BaseRoute, ...]:
    """Route an operation for programs and, if it has a page or is a form, for people.

    Routes are made once in a process: each finds the service in the state of its application.
    """
    router = APIRouter(redirect_slashes=False)

    async def for_programs(request: Request) -> Response:
        return await _serve(request.app.state.service, operation, request, is_page=False)

    async def for_people(request: Request) -> Response:
        return await _serve(request.app.state.service, operation, request, is_page=True)

    name = f"{operation.method} {operation.path}"
    if operation.api:
        router.add_api_route(
            API + operation.path, for_programs, methods=[operation.method], name=name,
            summary=operation.summary, openapi_extra=_described(operation), response_model=None,
        )  # fmt: skip
    if operation.page or operation.method == "POST" or not operation.api:
        router.add_api_route(
            operation.path, for_people, methods=[operation.method], name=f"page {name}",
            include_in_schema=False, response_model=None,
        )  # fmt: skip
    return tuple(router.routes)


def _described(operation: Operation) -> dict[str, Any]:
    """Describe parameters and body for OpenAPI."""
    names = [part[1:].partition("}")[0] for part in operation.path.split("/") if part.startswith("{")]
    described: dict[str, Any] = {
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names
        ],
    }
    if operation.body is not None:
        schema = operation.body.model_json_schema()
        schema = _inlined(schema, schema.pop("$defs", {}))
        described["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return described


def _inlined(schema: Any, definitions: Mapping[str, Any]) -> Any:
    """Return a schema with its definitions in place: references inside the API's description lead nowhere."""
    match schema:
        case {"$ref": str(name)}:
            return _inlined(definitions[name.rpartition("/")[2]], definitions)
        case dict():
            return {key: _inlined(value, definitions) for key, value in schema.items()}
        case list():
            return [_inlined(value, definitions) for value in schema]
    return schema


async def _serve(service: Service, operation: Operation, request: Request, *, is_page: bool) -> Response:
    call = ServiceCall(
        service, request, None, request.path_params, request.query_params, id=request.scope["tacit"].id,
        is_page=is_page,
    )  # fmt: skip
    fields: Mapping[str, str] = {}
    try:
        call.caller = identify(service.database, request, service.settings.cookie(SESSION_COOKIE))
        request.scope["tacit"].person = person = call.caller.id if call.caller else ""
        check_rate(request, person, service.settings.rate)
        operation.rule.check(call.caller, call.dataset)
        call.admitted = True
        _check_address(call)
        if operation.method != "GET":
            body, fields = await _given(call, operation, request, is_page=is_page)
            if operation.body is not None:
                call.body = _bodies.read_body(operation.body, body)
        try:
            with call.timed():
                result = operation.run(call)
            if inspect.isawaitable(result):
                result = await result
            with call.timed():  # a page of a long answer takes longer to write than to find
                response = _respond(call, operation, result)
        finally:
            note_effort(request, person, service.settings.rate, call.effort)
        return _finish(call, response)
    except TacitError as refusal:
        return _finish(call, _refuse(call, operation, refusal, fields))
    except Exception as error:  # noqa: BLE001 - the one door: what went wrong inside stays inside
        where = {"kind": type(error).__name__, "place": place_of_error(error.__traceback__)}
        _LOG.error("failure", extra={"request": call.id, "route": operation.path, **where})
        return _refuse(call, operation, TacitError("service-failed", "the service failed"), fields)


def _check_address(call: ServiceCall) -> None:
    """Refuse the character NUL, which no name holds and which PostgreSQL cannot even look for."""
    if any("\x00" in text for text in (*call.path.values(), *call.query.values())):
        raise not_found()


async def _given(
    call: ServiceCall, operation: Operation, request: Request, *, is_page: bool
) -> tuple[Any, Mapping[str, str]]:
    """Read the body, and refuse what another site may have made a browser send."""
    raw = await _limited(request, operation.most)
    if is_page:
        fields = _bodies.read_form(raw, operation.most)
        check_form(call, fields.pop("csrf", ""))
        return fields, fields
    if call.caller is not None:
        check_form(call, call.header("x-csrf-token"))
    if not raw and operation.body is None:
        return {}, {}
    if len(raw) > _bodies.MAX_BYTES:  # it takes a while: others are served meanwhile
        return await call.in_thread(_bodies.read_json, raw, operation.most), {}
    return _bodies.read_json(raw), {}


async def _limited(request: Request, max_bytes: int) -> bytes:
    """Read the body, but no more than the limit."""
    parts, size = [], 0
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            async for part in request.stream():
                size += len(part)
                if size > max_bytes:
                    raise body_too_large(max_bytes)
                parts.append(part)
    except TimeoutError:
        raise body_unreadable("it did not arrive in time") from None
    except ClientDisconnect:
        raise body_unreadable("the connection ended before all of it had arrived") from None
    return b"".join(parts)


def _respond(call: ServiceCall, operation: Operation, result: Any) -> Response:
    response: Response
    match result:
        case Download(content, media_type, filename):
            response = Response(content, media_type=media_type)
            if filename:
                response.headers["content-disposition"] = f'attachment; filename="{filename}"'
        case Events(events):
            response = StreamingResponse(_event_lines(events), media_type="text/event-stream")
        case Answer(document, status, location, headers):
            response = _document(call, operation, document, status, location)
            response.headers.update(headers)
        case _:
            response = _document(call, operation, result, 200, "")
    return response


def _finish(call: ServiceCall, response: Response) -> Response:
    """Add the headers and cookies that the operation asked for."""
    response.headers.update(call.headers)
    settings = call.service.settings
    for name, (value, seconds) in call.cookies.items():
        cookie, secure = settings.cookie(name), settings.over_tls
        if value:
            response.set_cookie(cookie, value, max_age=seconds, httponly=True, samesite="lax", secure=secure)
        else:
            response.delete_cookie(cookie, httponly=True, samesite="lax", secure=secure)
    return response


def _document(
    call: ServiceCall, operation: Operation, document: Mapping[str, Any], status: int, location: str
) -> Response:
    if call.is_page:
        if location and (operation.method != "GET" or not operation.page):
            return RedirectResponse(location, status_code=303)
        page = operation.page or "problem.html"
        return Response(render(page, call, document), status_code=status, media_type="text/html")
    response = Response(_json(document), status_code=status, media_type="application/json")
    if location:
        response.headers["location"] = API + location
    return response


async def _event_lines(events: AsyncIterator[tuple[str, Mapping[str, Any]]]) -> AsyncIterator[bytes]:
    async for name, document in events:
        yield f"event: {name}\ndata: ".encode() + _json(document) + b"\n\n"


def _json(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8")


def _refuse(
    call: ServiceCall, operation: Operation, refusal: TacitError, fields: Mapping[str, str]
) -> Response:
    """Answer a refusal: a problem for programs; for people their form again, or a page with what to do.

    Guarantee: somebody whom the rule has refused sees the problem alone. A form shows what its rule protects.
    """
    problem = problem_of(refusal, call.id)
    call.request.scope["tacit"].code = refusal.code
    if not call.is_page:
        return Response(_json(problem), status_code=problem["status"], media_type="application/problem+json")
    if problem["status"] == 401 and operation.method == "GET":
        return RedirectResponse(f"/sign-in?next={_own_address(call)}", status_code=303)
    document: Mapping[str, Any] = {"problem": problem}
    template = "problem.html"
    if call.admitted and operation.form is not None and operation.page and problem["status"] < 500:
        try:
            document = {**operation.form(call, fields), "problem": problem}
            template = operation.page
        except TacitError:
            document = {"problem": problem}
    return Response(render(template, call, document), status_code=problem["status"], media_type="text/html")


def _own_address(call: ServiceCall) -> str:
    """Return where a person wanted to go, as a parameter of the sign-in page."""
    address = call.request.url
    return quote(f"{address.path}?{address.query}" if address.query else address.path, safe="/")


def _outside(service: Service) -> Callable[[Request, Exception], Awaitable[Response]]:
    """Answer for what no operation answers: unknown paths, wrong methods."""
    refuse = _refusing(service)

    async def answer(request: Request, _: Exception) -> Response:
        return await refuse(request.scope, not_found())

    return answer


def _refusing(service: Service) -> Callable[[Scope, TacitError], Awaitable[Response]]:
    """Return how a request that reached no operation is refused."""
    operation = Operation("GET", "/", ANYONE, lambda _: {})

    async def refuse(scope: Scope, refusal: TacitError) -> Response:
        request = Request(scope)
        call = ServiceCall(service, request, None, {}, {}, id=scope["tacit"].id)
        call.is_page = not request.url.path.startswith(API)
        if call.is_page and refusal.code == "not-found":
            with suppress(Exception):  # the page names who is signed in; it needs no name to be shown
                call.caller = identify(service.database, request, service.settings.cookie(SESSION_COOKIE))
        return _refuse(call, operation, refusal, {})

    return refuse
