"""Tokens: shown once, never more than their maker may, gone when they are withdrawn."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from support.service_browser import events
from tacit.service._operations import ROLES

UNTIL = (datetime.now(UTC).date() + timedelta(days=30)).isoformat()


def day(days):
    return (datetime.now(UTC).date() + timedelta(days=days)).isoformat()


def make(house, token, **more):
    body = {"label": "report", "scopes": ["read"], "until": UNTIL, **more}
    return house.call("POST", "/api/v1/tokens", token, json=body)


def lasting(house, name):
    """Return a token that ends in the far future."""
    token = house.token(name)
    with house.service.database.change() as change:
        change.run("UPDATE tokens SET expires = '2999-01-01T00:00:00.000000Z'")
    return token


@pytest.fixture
def ana(house):
    house.person("ana", visits="analyst", births="curator")
    return lasting(house, "ana")


@pytest.mark.parametrize("role", [*ROLES, "nobody"])
def test_everybody_who_is_known_has_tokens_of_their_own(house, ana, role):
    house.person("bob", everywhere="" if role == "nobody" else role)
    bob = lasting(house, "bob")
    made = make(house, bob)
    assert made.status_code == 201
    secret, token = made.json()["secret"], made.json()["token"]["id"]
    assert secret.startswith("tct_")
    assert len(secret) >= 47
    listed = house.call("GET", "/api/v1/tokens", bob).json()["tokens"]
    assert [one["label"] for one in listed] == ["report", "test"]
    assert len(house.call("GET", "/api/v1/tokens", ana).json()["tokens"]) == 1
    seen = house.call("POST", f"/api/v1/tokens/{token}/withdraw", ana)
    assert seen.status_code == 404
    assert house.call("GET", "/api/v1/me", secret).status_code == 200
    assert house.call("POST", f"/api/v1/tokens/{token}/withdraw", bob).status_code == 200
    assert house.call("GET", "/api/v1/me", secret).status_code == 401


def test_nobody_unknown_sees_or_makes_tokens(house):
    assert house.call("GET", "/api/v1/tokens").status_code == 401
    assert make(house, "").status_code == 401
    assert house.call("POST", "/api/v1/tokens/t_x/withdraw").status_code == 401


def test_a_token_is_shown_once_and_only_its_digest_is_kept(house, ana):
    secret = make(house, ana).json()["secret"]
    assert secret not in house.call("GET", "/api/v1/tokens", ana).text
    assert secret not in "\n".join(house.service.database._connection().iterdump())
    assert events(house.service) == ["token-made"]


def test_the_page_shows_a_token_once(house, admin):
    answer = admin.form("/tokens", "/tokens", label="my <i>laptop", scopes=["read", "plan"], until=UNTIL)
    assert answer.status_code == 201
    secret = answer.text.partition("tct_")[2][:43]
    assert len(secret) == 43
    assert house.call("GET", "/api/v1/me", f"tct_{secret}").json()["scopes"] == ["plan", "read"]
    page = admin.get("/tokens").text
    assert secret not in page
    assert "my &lt;i&gt;laptop" in page


def test_tokens_are_listed_in_parts_even_if_made_at_the_same_moment(house, ana):
    for n in range(4):
        make(house, ana, label=f"t{n}")
    with house.service.database.change() as change:
        change.run("UPDATE tokens SET created = '2026-01-01T00:00:00.000000Z'")
    labels, after = [], ""
    for _ in range(3):
        document = house.call("GET", f"/api/v1/tokens?limit=2&after={after}", ana).json()
        labels += [token["label"] for token in document["tokens"]]
        after = document["next"]
    assert sorted(labels) == ["t0", "t1", "t2", "t3", "test"]
    assert after == ""


def test_a_wrong_form_for_a_token_comes_back_filled_in(admin):
    answer = admin.form("/tokens", "/tokens", label="laptop", scopes="read", until="2020-01-01")
    assert answer.status_code == 400
    assert 'value="laptop"' in answer.text


@pytest.mark.parametrize(
    "wrong",
    [
        {"until": "2020-01-01"}, {"until": day(402)}, {"until": "soon......"}, {"until": "2030-1-1"},
        {"until": 20301231}, {"scopes": []}, {"scopes": ["all"]}, {"scopes": "everything"},
        {"scopes": ["read"] * 7}, {"label": ""}, {"label": "x" * 101}, {"label": "a\u202eb"},
        {"dataset": "../../etc"}, {"dataset": None}, {"person": "u_1"}, {"digest": "x"},
    ],
)  # fmt: skip
def test_a_wrong_wish_is_refused(house, ana, wrong):
    answer = make(house, ana, **wrong)
    assert answer.status_code == 400
    assert not events(house.service)


def test_the_last_day_counts_until_its_end(house, ana):
    made = make(house, ana, until=day(400)).json()["token"]
    assert made["until"] == day(400)
    made = make(house, ana, until=day(0)).json()
    assert house.call("GET", "/api/v1/me", made["secret"]).status_code == 200


@pytest.fixture
def small(house, ana):
    """A token of ana for reading one dataset, which ends in 20 days."""
    return make(house, ana, scopes=["read", "plan"], dataset="visits", until=day(20)).json()["secret"]


@pytest.mark.parametrize(
    "more",
    [
        {"dataset": "visits", "scopes": ["ask"]},
        {"dataset": "visits", "scopes": ["read", "admin"]},
        {"dataset": "births"},
        {"dataset": ""},
        {"dataset": "visits", "until": day(21)},
    ],
)
def test_a_token_cannot_make_a_token_that_may_do_more(house, small, more):
    assert make(house, small, **{"until": day(20), **more}).status_code in {403, 404}


def test_a_withdrawn_token_takes_along_what_was_made_with_it(house, ana, small):
    child = make(house, small, dataset="visits", until=day(20)).json()["secret"]
    grandchild = make(house, child, dataset="visits", until=day(10)).json()["secret"]
    assert house.call("GET", "/api/v1/me", grandchild).status_code == 200
    token = house.call("GET", "/api/v1/me", small).json()["token"]
    assert len(house.call("POST", f"/api/v1/tokens/{token}/withdraw", ana).json()["withdrawn"]) == 3
    for secret in (small, child, grandchild):
        assert house.call("GET", "/api/v1/me", secret).status_code == 401
    assert house.call("GET", "/api/v1/me", ana).status_code == 200


def test_a_token_for_a_dataset_that_one_cannot_see_is_not_found(house, ana):
    assert make(house, ana, dataset="secret").status_code == 404


def test_an_administrator_withdraws_the_tokens_of_others_and_sees_no_secret(house, ana):
    house.person("root", everywhere="admin")
    root = house.token("root")
    page = house.call("GET", f"/api/v1/users/{house.people['ana']}", root)
    token = page.json()["tokens"][0]["id"]
    assert ana not in page.text
    reader = house.token("root", scopes="read")
    assert house.call("POST", f"/api/v1/tokens/{token}/withdraw", reader).status_code == 404
    assert house.call("POST", f"/api/v1/tokens/{token}/withdraw", root).status_code == 200
    assert house.call("GET", "/api/v1/me", ana).status_code == 401


def test_an_expired_token_is_not_known(house, ana):
    house.service.database._connection().execute("UPDATE tokens SET expires = '2020-01-01T00:00:00.000000Z'")
    assert house.call("GET", "/api/v1/me", ana).status_code == 401


@pytest.mark.parametrize(
    "header", ["Bearer", "Bearer ", "Basic x", "Bearer tct_x y", "bearer\t", "\udcff", "Bearer " + "x" * 5000]
)
def test_hostile_headers_are_not_known(house, ana, header):
    raw = {"authorization": header.encode("utf-8", "surrogateescape")}
    assert house.call("GET", "/api/v1/me", headers=raw).status_code == 401


def test_a_token_in_the_address_is_ignored(house, ana):
    assert house.call("GET", f"/api/v1/me?token={ana}&access_token={ana}").status_code == 401


def test_tokens_are_limited_in_number(house, ana):
    from tacit.service.access import _tokens

    for _ in range(_tokens._MAX_TOKENS - 1):
        assert make(house, ana).status_code == 201
    assert make(house, ana).status_code == 400


def test_identifying_a_caller_takes_one_query(house, ana):
    """The route with a token is the base line of every measurement, so it stays cheap."""
    from starlette.requests import Request

    from tacit.service.access import identify

    asked = []
    house.service.database._connection().set_trace_callback(asked.append)
    scope = {"type": "http", "headers": [(b"authorization", f"Bearer {ana}".encode())]}
    caller = identify(house.service.database, Request(scope))
    house.service.database._connection().set_trace_callback(None)
    assert caller.grants == {"visits": {"analyst"}, "births": {"curator"}}
    assert len(asked) == 1
    plan = house.service.database.rows(f"EXPLAIN QUERY PLAN {asked[0]}")
    assert not [row["detail"] for row in plan if row["detail"].startswith("SCAN")]


def test_a_token_withdraws_no_token_that_may_do_more_than_itself(house, ana):
    whole = make(house, ana, scopes=["read", "ask"]).json()
    births = make(house, ana, dataset="births").json()
    for small in (make(house, ana).json(), make(house, ana, scopes=["read", "ask"], dataset="visits").json()):
        for other in (whole, births) if small["token"]["dataset"] else (whole,):
            seen = house.call("POST", f"/api/v1/tokens/{other['token']['id']}/withdraw", small["secret"])
            assert (seen.status_code, seen.json()["code"]) == (403, "not-permitted")
            assert house.call("GET", "/api/v1/me", other["secret"]).status_code == 200
        itself = house.call("POST", f"/api/v1/tokens/{small['token']['id']}/withdraw", small["secret"])
        assert itself.status_code == 200


def test_a_token_for_one_dataset_has_the_roles_that_its_person_has_everywhere(house):
    house.person("gus", everywhere="analyst admin")
    found = house.call("GET", "/api/v1/whoami", house.token("gus", dataset="visits")).json()
    assert found["roles"] == ["admin", "analyst"]
    for path in ("/users", "/audit-events"):
        assert house.call("GET", f"/api/v1{path}", house.token("gus", dataset="visits")).status_code == 403
    assert house.call("GET", "/api/v1/queries", house.token("gus", dataset="visits")).status_code == 200


def test_the_form_offers_the_uses_that_ones_roles_allow(house):
    house.person("nina", visits="analyst")
    house.person("otto", everywhere="auditor")
    offered = {name: house.call("GET", "/tokens", house.token(name)).text for name in house.people}
    assert 'value="ask"' in offered["nina"]
    for scope in ("curate", "audit", "admin"):
        assert f'value="{scope}"' not in offered["nina"]
    assert 'value="audit"' in offered["otto"]
    assert 'value="ask"' not in offered["otto"]


def test_a_token_for_one_dataset_lists_no_others(house):
    house.person("nina", visits="analyst", other="analyst")
    house.token("nina", dataset="other")
    narrow = house.token("nina", dataset="visits")
    listed = house.call("GET", "/api/v1/tokens", narrow).json()["tokens"]
    assert {one["dataset"] for one in listed} == {"visits"}
