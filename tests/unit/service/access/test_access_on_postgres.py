"""The same statements on PostgreSQL: a whole life of people, sessions, tokens and waits."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from support.service_browser import PASSWORD, Browser, events, invited
from support.sign_on_provider import CLIENT, Provider
from tacit.service._times import now_text


@pytest.fixture
def provider():
    made = Provider()
    yield made
    made.close()


@pytest.fixture
def settings(settings, postgres_url, provider):
    oidc = {"issuer": provider.issuer, "client_id": CLIENT, "create": True}
    return replace(settings, database=postgres_url, oidc=oidc)


def test_a_whole_life_on_postgres(house, admin, provider):
    ana = invited(house, admin, "ana")
    person = house.people["ana"]
    with house.service.database.change() as change:
        change.run(
            "INSERT INTO datasets (name, kind, policy, created_by, created)"
            " VALUES ('visits', 'table', 1, ?, ?)",
            person, now_text(),
        )  # fmt: skip
    for role in ("owner", "owner", "analyst"):
        given = admin.form("/users", f"/users/{person}/grants", role=role, dataset="visits")
        assert given.status_code == 303
    until = (datetime.now(UTC).date() + timedelta(days=9)).isoformat()
    made = ana.form("/tokens", "/tokens", label="laptop", scopes="read plan", until=until).text
    secret = re.search(r"tct_[\w-]{43}", made)[0]
    assert house.call("GET", "/api/v1/me", secret).json()["grants"] == [
        {"dataset": "visits", "role": "analyst"}, {"dataset": "visits", "role": "owner"},
    ]  # fmt: skip
    codes = [Browser(house.app).sign_in("ana", "a wrong password").status_code for _ in range(6)]
    assert codes == [401] * 5 + [429]
    ana.form("/me", "/sign-out")
    assert ana.sign_in("ana").status_code == 303
    assert (
        ana.form("/password", "/password", current=PASSWORD, password="another password").status_code == 303
    )
    for path in ("/me", "/tokens", "/datasets/visits/people"):
        assert ana.get(path).status_code == 200, path
    for path in ("/users?limit=1", f"/users?after={person}", f"/users/{person}", "/audit-events?limit=3"):
        assert admin.get(path).status_code == 200, path
    assert admin.get("/api/v1/users?limit=1").json()["next"]
    assert ana.get("/api/v1/tokens?limit=1").json()["next"] == ""
    assert admin.form(
        "/users", f"/users/{person}/grants/withdraw", role="owner", dataset="visits"
    ).is_redirect
    assert admin.form("/users", f"/users/{person}/erase", sure="yes").status_code == 303
    assert house.call("GET", "/api/v1/me", secret).status_code == 401
    assert {"link-used", "token-made", "role-given", "role-withdrawn", "user-erased"} <= set(
        events(house.service)
    )


def test_the_character_nul_is_refused_everywhere(house, admin):
    """PostgreSQL has no texts with NUL, so it must not get that far."""
    root = house.service.database.row("SELECT id FROM users")["id"]
    house.people["root"] = root
    token = house.token("root")
    for path in ("/users/a%00b", "/datasets/a%00b/people", "/users?after=%00", "/audit-events?after=%00"):
        assert house.call("GET", f"/api/v1{path}", token).status_code in {400, 403, 404}, path
    assert house.call("POST", "/api/v1/users", token, json={"name": "a\x00b"}).status_code == 400
    assert house.call("POST", "/api/v1/tokens/a%00b/withdraw", token).status_code == 404
    assert Browser(house.app).sign_in("a\x00b", "x\x00").status_code == 400
    assert Browser(house.app).get("/sign-in?next=/%00").status_code == 404


def test_single_sign_on_on_postgres(house, provider):
    provider.public = True
    browser = Browser(house.app)
    away = browser.get("/sign-in/provider")
    assert browser.get(provider.sign_in(away.headers["location"])).status_code == 303
    assert browser.get("/api/v1/me").json()["grants"] == []
