"""Secrets and hostile input: no password, token, link or cookie leaves by a log, an error or a page."""

from __future__ import annotations

import json
import logging
import re

import pytest

from support.service_browser import Browser, events
from tacit.service.access import OPERATIONS, first_link

CANARY = "canary-4711-canary"


def tables(house, *but):
    """Return the whole database without what tries and refusals write."""
    lines = house.service.database._connection().iterdump()
    return [line for line in lines if not any(f'INTO "{name}"' in line for name in (*but, "attempts"))]


def test_canaries_appear_in_no_log_error_or_page(house, caplog):
    """A whole life: link, password, session, token; each secret is seen where it is given only."""
    caplog.set_level(logging.DEBUG)
    seen, password = [], f"{CANARY} of a password"
    code = first_link(house.service).partition("#")[2]
    root = Browser(house.app)
    seen += [root.form("/welcome", "/welcome", code=code, name="root", password=password)]
    made = root.form("/tokens", "/tokens", label="laptop", scopes="read admin audit", until=_tomorrow())
    token = "tct_" + made.text.partition("tct_")[2][:43]
    given = root.form("/users", "/users", name="ana")
    link = re.search(r"welcome#([\w-]+)", given.text)[1]
    secrets = [password, token, code, link, *root.cookies.values()]
    for path in ("/me", "/tokens", "/users", "/audit-events", "/password", "/sign-in", "/welcome"):
        seen += [root.get(path), house.call("GET", f"/api/v1{path}", token)]
    seen += [
        Browser(house.app).sign_in("root", f"{password}x"),
        Browser(house.app).sign_in(password, "x"),
        root.form("/password", "/password", current=password, password=password[:5]),
        house.call("POST", "/api/v1/tokens", token, json={"label": token, "scopes": [password], "x": code}),
        house.call("POST", "/api/v1/users", token, json={"name": f"{token} {password}"}),
        house.call(
            "POST", "/api/v1/users", token, content=f'{{"name": "{token}", NaN, "{password}": 1e999}}'
        ),
        house.call("GET", "/api/v1/nothing", token),
        house.call("GET", "/api/v1/users?after=%00", token),
        Browser(house.app).form("/welcome", "/welcome", code=code, password="short"),
    ]
    for secret in secrets:
        holders = {answer.url.path for answer in seen if secret in answer.text}
        assert holders <= {"/sign-in", "/welcome"}  # these forms come back with the name and the code typed
        assert secret not in caplog.text
    cookies = set(root.cookies.values())
    assert not [a.url for a in seen[1:] if any(c in str(a.headers) for c in cookies)]
    assert not [a.url for a in seen if token in a.text + str(a.headers) or token in str(a.url)]
    assert events(house.service).count("sign-in-refused") == 2


def test_a_failure_inside_shows_nothing_of_the_request(house, caplog, monkeypatch):
    house.person("root", everywhere="admin")
    token = house.token("root")

    def fails(*given):
        raise RuntimeError(f"{CANARY} {given}")

    monkeypatch.setattr(type(house.service), "record", fails)
    answer = house.call("POST", "/api/v1/users", token, json={"name": CANARY})
    assert answer.status_code == 500
    assert CANARY not in answer.text + caplog.text
    assert token not in caplog.text
    assert len(house.service.database.rows("SELECT id FROM users")) == 1  # the change was undone


HOSTILE = [
    b"", b"{}", b"[]", b"null", b'"x"', b"{", b"\xff\xfe", b'{"name": NaN}', b'{"name": 1e999}',
    b'{"name": "a", "name": "b"}', b'{"name": "\\ud800"}', b'{"name": ["x"]}', b'{"name": {"$ne": ""}}',
    b'{"name": "x", "admin": true}', b'{"name": true}', b'{"name": "' + b"x" * 70_000 + b'"}',
    b"[" * 5000 + b"]" * 5000, b'{"name": "a\\u0000b"}', json.dumps({"name": "' OR 1=1 --"}).encode(),
    b'{"label": "a", "scopes": ["read", 7], "until": "2999-01-01"}', b'{"role": "admin\\n", "dataset": ""}',
    b'{"password": {"a": 1}}',
]  # fmt: skip
API_POSTS = [op.path for op in OPERATIONS if op.method == "POST" and op.api and op.body is not None]
FORM_POSTS = [op.path for op in OPERATIONS if op.method == "POST" and op.body is not None]


@pytest.mark.parametrize("path", API_POSTS)
def test_hostile_json_changes_nothing(house, path):
    house.person("root", everywhere="admin owner")
    token = house.token("root")
    filled = f"/api/v1{path.format(user=house.people['root'], token='t_x', dataset='visits')}"
    before = tables(house)
    for raw in HOSTILE:
        if path.endswith("/subject") and raw == b"{}":
            continue  # an empty subject is a valid wish
        answer = house.call("POST", filled, token, content=raw)
        assert answer.status_code in {400, 403, 404, 413}, raw[:50]
        assert answer.headers["content-type"] == "application/problem+json"
        assert "1=1" not in answer.text
    assert tables(house) == before


@pytest.mark.parametrize("path", FORM_POSTS)
def test_hostile_forms_change_nothing(house, admin, path):
    me = house.service.database.row("SELECT id FROM users")["id"]
    filled = path.format(user=me, token="t_x", dataset="visits")
    page = "/me" if path not in {"/sign-in", "/welcome"} else path
    browser = admin if page == "/me" else Browser(house.app)
    text = re.findall(r'name="csrf" value="([^"]*)"', browser.get(page).text)[-1]
    before = tables(house, "events")
    kind = {"content-type": "application/x-www-form-urlencoded"}
    for fields in (b"", b"name=%ff", b"=&=&=", b"name=" + b"x" * 70_000, b"&".join([b"a=1"] * 300),
                   b"name=a%00b&password=%00", b"name=x&password=y&code=z&extra=1", b"\xff"):  # fmt: skip
        raw = b"&".join([f"csrf={text}".encode(), fields])
        answer = browser.send("POST", filled, content=raw, headers=kind)
        assert answer.status_code in {400, 401, 403, 404, 413, 429}, (fields[:50], answer.text)
    assert tables(house, "events") == before


@pytest.mark.parametrize("cookie", ["", "x", "a" * 5000, "%00", "\u00e9", "tct_x", "' OR 1=1 --"])
def test_hostile_cookies_are_not_known(house, cookie):
    from urllib.parse import quote

    raw = f"tacit_session={quote(cookie)}; tacit_device={quote(cookie)}; tacit_form={quote(cookie)}"
    assert house.call("GET", "/api/v1/me", headers={"cookie": raw}).status_code == 401
    assert house.call("GET", "/sign-in", headers={"cookie": raw}).status_code == 200


@pytest.mark.parametrize("path", ["/api/v1/users/{}", "/api/v1/datasets/{}/people"])
@pytest.mark.parametrize("hostile", ["..", "%2e%2e%2f", "' OR 1=1 --", "%00", "x" * 3000, "u_%F0%9F%92%A9"])
def test_hostile_paths_are_not_found(house, path, hostile):
    house.person("root", everywhere="admin")
    answer = house.call("GET", path.format(hostile), house.token("root"))
    assert answer.status_code in {400, 403, 404}


def test_a_secret_in_a_fragment_never_leaves_the_browser():
    """What follows the mark # is not part of a request, so no log can hold the code of a link."""
    import httpx

    request = httpx.Request("GET", "http://house/welcome#the-code")
    assert b"the-code" not in request.url.raw_path


def test_pages_have_no_inline_script_or_style(house, admin):
    for path in ("/me", "/tokens", "/users", "/audit-events", "/password", "/sign-in", "/welcome"):
        text = admin.get(path).text
        assert not re.findall(r"<script(?! src=)|<style|\sstyle=|\son\w+=", text), path


def test_every_operation_of_the_area_is_tested_as_each_role():
    """The lists in test_people and test_tokens are complete; a new operation must be added to one of them."""
    alone = {
        "/sign-in", "/sign-out", "/welcome", "/password", "/sign-in/provider", "/sign-in/return", "/me",
        "/tokens", "/tokens/{token}/withdraw", "/audit-events",
    }  # fmt: skip
    others = {op.path for op in OPERATIONS} - alone
    assert others == {
        "/users", "/users/{user}", "/users/{user}/invite", "/users/{user}/disable", "/users/{user}/enable",
        "/users/{user}/erase", "/users/{user}/subject", "/users/{user}/grants",
        "/users/{user}/grants/withdraw", "/datasets/{dataset}/people", "/datasets/{dataset}/people/withdraw",
    }  # fmt: skip


def _tomorrow():
    from datetime import UTC, datetime, timedelta

    return (datetime.now(UTC).date() + timedelta(days=1)).isoformat()
