"""The edge: headers on every answer, sizes, hosts, ids, lines of the log without what was sent."""

import asyncio
import io
import json
import logging

import pytest

from tacit.service import ServiceSettings, create_app
from tacit.service._operations import ANYONE, Operation
from tacit.service.operation import _edge, start_logging

CANARY = "C4N4RY"


@pytest.fixture
def log():
    """Log as a worker does, into text; afterwards all is as it was."""
    import sys
    import threading

    root, hooks = logging.getLogger(), (sys.excepthook, threading.excepthook, sys.unraisablehook)
    before = root.handlers[:], root.level
    stream = io.StringIO()
    start_logging(stream=stream)
    yield stream
    logging.captureWarnings(False)
    root.handlers[:], root.level = before[0], before[1]
    for name in ("tacit", "tacit.service.requests", "uvicorn", "uvicorn.error"):
        logging.getLogger(name).setLevel(logging.NOTSET)
    sys.excepthook, threading.excepthook, sys.unraisablehook = hooks


def lines(stream):
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def mounted(house, run, method="GET", path="/trial/{name}"):
    from tacit.service import _app

    house.app.router.routes.extend(_app._routes(Operation(method, path, ANYONE, run)))


def test_a_failure_has_all_headers_and_says_nothing(house, log):
    def fail(_):
        raise RuntimeError(f"{CANARY} in data")

    mounted(house, fail)
    answer = house.call("GET", f"/api/v1/trial/{CANARY}?purpose={CANARY}")
    assert answer.status_code == 500
    assert answer.json()["code"] == "service-failed"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["x-request-id"] == answer.json()["request"]
    assert CANARY not in answer.text
    failure, request = lines(log)
    assert failure["kind"] == "RuntimeError"
    assert failure["place"].startswith("test_edge.py:")
    assert request["route"] == "/api/v1/trial/{name}"
    assert CANARY not in log.getvalue()


def test_a_failure_outside_of_operations_has_the_same_form(house, log, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError(CANARY)

    monkeypatch.setattr("tacit.service._app._serve", fail)
    answer = house.call("GET", "/api/v1/health")
    assert (answer.status_code, answer.json()["code"]) == (500, "service-failed")
    assert answer.headers["cache-control"] == "no-store"
    assert CANARY not in log.getvalue() + answer.text


def test_a_line_of_the_log_has_the_ids_and_the_code(house, log):
    person = house.person("ana", visits="analyst")
    token = house.token("ana")
    house.call("GET", f"/api/v1/whoami?q={CANARY}", token, headers={"x-canary": CANARY, "cookie": CANARY})
    house.call("POST", "/api/v1/whoami", token, content=CANARY)
    house.call("GET", "/api/v1/whoami", CANARY)
    house.call(CANARY, f"/{CANARY}")
    good, wrong_method, unknown, other = lines(log)
    assert (good["route"], good["status"], good["person"]) == ("/api/v1/whoami", 200, person)
    assert wrong_method["status"] == 404
    assert (unknown["status"], unknown["code"]) == (401, "not-signed-in")
    assert "person" not in unknown
    assert (other["method"], other["status"]) == ("other", 404)
    assert CANARY not in log.getvalue()
    assert token not in log.getvalue()
    assert all("seconds" not in field and "duration" not in field for line in lines(log) for field in line)


def test_messages_of_libraries_and_texts_of_errors_are_withheld(log):
    logging.getLogger("sqlglot").warning("cannot read %s", CANARY)
    logging.getLogger("asyncio").error(f"task {CANARY} failed")
    try:
        raise ValueError(CANARY)
    except ValueError:
        logging.getLogger("uvicorn.error").exception("Exception in ASGI application\n")
        logging.getLogger("tacit.service").exception("failure %s", CANARY)
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(True)
        warnings.warn(CANARY, UserWarning, stacklevel=1)
        logging.captureWarnings(False)
    import sys

    sys.excepthook(ValueError, ValueError(CANARY), None)
    found = lines(log)
    assert len(found) == 6
    assert found[0] | {"at": ""} == found[0] | {"at": "", "library": "sqlglot"}
    assert found[2]["kind"] == found[3]["kind"] == "ValueError"
    assert CANARY not in log.getvalue()


def test_a_body_that_says_it_is_too_large_is_not_read(house):
    read = []

    async def body():
        read.append(1)
        yield b"x"

    answer = house.call("POST", "/api/v1/whoami", content=body(), headers={"content-length": "70000"})
    assert (answer.status_code, answer.json()["code"]) == (413, "body-too-large")
    assert read == []
    answer = house.call("POST", "/api/v1/whoami", content=b"x", headers={"content-length": "9" * 5000})
    assert answer.status_code == 413


@pytest.fixture
def another(house, tmp_path):
    """Make a second service, with other settings."""
    made = []

    def make(**settings):
        app = create_app(ServiceSettings(folder=tmp_path / str(len(made)), **settings))
        made.append(app)
        return type(house)(app, app.state.service)

    yield make
    for app in made:
        app.state.service.close()


def test_a_service_answers_to_its_own_names_only(another):
    service = another(hosts="localhost [::1]")
    for host, status in [
        ("localhost:8340", 200), ("LOCALHOST", 200), ("[::1]:8340", 200), ("attacker.example", 404),
        ("localhost.attacker.example", 404), ("[::2]", 404),
    ]:  # fmt: skip
        assert service.call("GET", "/api/v1/health", headers={"host": host}).status_code == status


def test_a_body_that_comes_byte_by_byte_is_given_up(house, monkeypatch):
    import asyncio

    monkeypatch.setattr("tacit.service._app._BODY_SECONDS", 0.05)
    mounted(house, lambda _: {}, "POST", "/trial")

    async def slowly():
        yield b"{"
        await asyncio.sleep(5)
        yield b"}"

    answer = house.call("POST", "/api/v1/trial", content=slowly())
    assert (answer.status_code, answer.json()["code"]) == (400, "body-unreadable")


def test_static_files_may_be_kept_and_nothing_else(house):
    assert house.call("GET", "/static/tacit.css").headers["cache-control"] == "public, max-age=3600"
    assert house.call("GET", "/static/nothing.css").headers["cache-control"] == "no-store"
    assert house.call("GET", "/api/v1/health").headers["cache-control"] == "no-store"


def test_only_a_service_with_tls_asks_browsers_to_insist_on_it(house, another):
    assert "strict-transport-security" not in house.call("GET", "/api/v1/health").headers
    secure = another(behind_proxy=True)
    assert "strict-transport-security" in secure.call("GET", "/api/v1/health").headers


def test_an_exchange_starts_without_anything():
    exchange = _edge.LoggedRequest()
    assert (exchange.person, exchange.code, exchange.status) == ("", "", 0)


def test_a_process_that_fails_logs_no_text_of_the_error(log, monkeypatch, capfd):
    from tacit.service.operation import _supervisor

    monkeypatch.setattr(_supervisor, "_begin", lambda **_: None)
    with pytest.raises(SystemExit) as ended, _supervisor._quietly(log_requests=True):
        raise RuntimeError(f"INSERT {CANARY}")
    assert ended.value.code == 1
    assert lines(log)[0]["kind"] == "RuntimeError"
    assert CANARY not in log.getvalue() + capfd.readouterr().err


def test_a_client_that_hangs_up_in_the_middle_of_a_body_is_not_a_failure(house, log):
    mounted(house, lambda _: {}, "POST", "/trial")
    messages = iter(
        [{"type": "http.request", "body": b'{"a', "more_body": True}, {"type": "http.disconnect"}],
    )
    statuses = []

    async def receive():
        return next(messages)

    async def send(message):
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    headers = [(b"host", b"house"), (b"content-type", b"application/json"), (b"content-length", b"90")]
    scope = {
        "type": "http", "method": "POST", "path": "/api/v1/trial", "raw_path": b"/api/v1/trial",
        "query_string": b"", "headers": headers, "client": ("10.0.0.1", 1), "server": ("house", 80),
        "scheme": "http", "http_version": "1.1",
    }  # fmt: skip
    asyncio.run(house.app(scope, receive, send))
    assert statuses == [400]
    assert [line["code"] for line in lines(log)] == ["body-unreadable"]
    assert "failure" not in log.getvalue()


def test_an_unknown_person_who_verifies_the_ledger_is_not_a_failure(house, log):
    assert house.call("POST", "/ledger/verify").status_code == 401
    assert "failure" not in log.getvalue()
