"""Who may use which route: a table written by hand, compared with what the application lets through."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import httpx
import pytest

from tacit.service import _app
from tacit.service._app import all_operations

EVERYBODY = "everybody"
KNOWN = "admin owner curator analyst auditor stranger"
#: Each route with those who may use it; a role counts where the path's dataset is, or everywhere.
MAY = {
    "GET /": EVERYBODY,
    "GET /health": EVERYBODY,
    "GET /ready": EVERYBODY,
    "GET /robots.txt": EVERYBODY,
    "GET /whoami": KNOWN,
    "GET /me": KNOWN,
    "GET /sign-in": EVERYBODY,
    "POST /sign-in": EVERYBODY,
    "GET /sign-in/provider": EVERYBODY,
    "GET /sign-in/return": EVERYBODY,
    "POST /sign-out": KNOWN,
    "GET /welcome": EVERYBODY,
    "POST /welcome": EVERYBODY,
    "GET /password": KNOWN,
    "POST /password": KNOWN,
    "GET /users": "admin",
    "POST /users": "admin",
    "GET /users/{user}": "admin",
    "POST /users/{user}/invite": "admin",
    "POST /users/{user}/disable": "admin",
    "POST /users/{user}/enable": "admin",
    "POST /users/{user}/erase": "admin",
    "POST /users/{user}/subject": "admin",
    "POST /users/{user}/grants": "admin",
    "POST /users/{user}/grants/withdraw": "admin",
    "GET /datasets/{dataset}/people": "owner",
    "POST /datasets/{dataset}/people": "owner",
    "POST /datasets/{dataset}/people/withdraw": "owner",
    "GET /tokens": KNOWN,
    "POST /tokens": KNOWN,
    "POST /tokens/{token}/withdraw": KNOWN,
    "GET /audit-events": "admin auditor",
    "GET /sources": "owner curator",
    "GET /sources/{source}/columns": "owner curator",
    "GET /declare": "owner curator",
    "POST /declare": "owner curator",
    "GET /datasets": KNOWN,
    "POST /datasets": "owner curator",
    "GET /datasets/{dataset}": "admin owner curator analyst auditor",
    "GET /datasets/{dataset}/policies": "owner curator auditor",
    "POST /datasets/{dataset}/policies": "owner curator",
    "GET /datasets/{dataset}/policies/{number}": "owner curator auditor",
    "POST /datasets/{dataset}/pause": "owner curator",
    "POST /datasets/{dataset}/resume": "owner curator",
    "POST /datasets/{dataset}/freeze": "owner curator",
    "POST /datasets/{dataset}/unfreeze": "owner curator",
    "GET /datasets/{dataset}/accounts": "admin owner curator analyst auditor",
    "POST /datasets/{dataset}/accounts": "owner curator",
    "GET /accounts/{dataset}/{person}/{number}": "admin owner curator analyst auditor",
    "POST /accounts/{dataset}/{person}/{number}/freeze": "owner curator",
    "POST /accounts/{dataset}/{person}/{number}/unfreeze": "owner curator",
    "POST /accounts/{dataset}/{person}/{number}/last-day": "owner curator",
    "GET /datasets/{dataset}/change": "owner curator",
    "POST /datasets/{dataset}/change": "owner curator",
    "GET /requests": KNOWN,
    "GET /requests/new": KNOWN,
    "POST /requests": KNOWN,
    "GET /requests/{request}": KNOWN,
    "POST /requests/{request}/approve": KNOWN,
    "POST /requests/{request}/decline": KNOWN,
    "POST /requests/{request}/withdraw": KNOWN,
    "GET /datasets/{dataset}/days": "admin owner curator analyst auditor",
    "POST /datasets/{dataset}/days": "owner curator",
    "GET /datasets/{dataset}/registered-releases": "owner curator auditor",
    "POST /datasets/{dataset}/registered-releases": "owner curator",
    "GET /p/{publication}/release.json": EVERYBODY,
    "GET /publications": EVERYBODY,
    "POST /publications": KNOWN,
    "GET /datasets/{dataset}/publish": "owner curator",
    "POST /publications/{publication}/withdraw": KNOWN,
    "GET /p/{publication}": EVERYBODY,
    "GET /p/{publication}/certificate": EVERYBODY,
    "GET /p/{publication}/values.csv": EVERYBODY,
    "POST /plans": "analyst",
    "GET /datasets/{dataset}/ask": "analyst",
    "POST /datasets/{dataset}/ask": "analyst",
    "GET /datasets/{dataset}/sandbox": "analyst",
    "POST /datasets/{dataset}/sandbox": "analyst",
    "GET /ledger": "owner curator auditor",
    "GET /ledger/entries": "owner curator auditor",
    "GET /ledger/head": "owner curator auditor",
    "POST /ledger/verify": "auditor",
    "GET /certificates/check": KNOWN,
    "POST /certificates/check": KNOWN,
    "POST /queries": "analyst",
    "GET /queries": "owner curator analyst auditor",
    "GET /queries/{query}": "owner curator analyst auditor",
    "GET /queries/{query}/events": "owner curator analyst auditor",
    "POST /queries/{query}/cancel": "analyst",
    "GET /releases": "owner curator analyst auditor",
    "GET /releases/{release}": "owner curator analyst auditor",
    "GET /releases/{release}.json": "owner curator analyst auditor",
    "GET /releases/{release}.csv": "owner curator analyst auditor",
    "GET /releases/{release}.parquet": "owner curator analyst auditor",
    "GET /releases/{release}.svg": "owner curator analyst auditor",
    "GET /releases/{release}/certificate": "owner curator analyst auditor",
    "GET /learn": EVERYBODY,
    "GET /learn/epsilon": EVERYBODY,
    "GET /learn/attacks": EVERYBODY,
    "GET /learn/attacks/{attack}": EVERYBODY,
    "GET /learn/game": EVERYBODY,
    "GET /learn/glossary": EVERYBODY,
    "GET /errors/{code}": EVERYBODY,
}
#: Routes that concern whoever may do them everywhere, not on one dataset.
EVERYWHERE = {
    "GET /audit-events",
    "GET /sources",
    "GET /sources/{source}/columns",
    "GET /declare",
    "POST /declare",
}
EVERYWHERE |= {"POST /datasets"} | {route for route in MAY if "/users" in route}
PEOPLE = ("nobody", "stranger", "admin", "owner", "curator", "analyst", "auditor")


def name_of(operation):
    return f"{operation.method} {operation.path}"


def test_every_route_is_in_the_table():
    assert {name_of(operation) for operation in all_operations()} == set(MAY)


@pytest.fixture
def let_through(monkeypatch, settings, tmp_path):
    """Return which routes let a person through: each operation only says that it ran."""
    real = all_operations()
    dummies = [replace(one, run=lambda _: {"ran": True}, body=None, page="", form=None) for one in real]
    monkeypatch.setattr(_app, "all_operations", lambda: dummies)
    app = _app.create_app(replace(settings, rate=0) if hasattr(settings, "rate") else settings)

    def routes(token, dataset="visits"):
        return asyncio.run(_routes(app, real, token, dataset))

    yield app, routes
    app.state.service.close()


async def _routes(app, operations, token, dataset):
    headers = {"authorization": f"Bearer {token}"} if token else {}
    found = {}
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx.AsyncClient(
        transport=transport, base_url="http://127.0.0.1:8340", headers=headers
    ) as client:
        for operation in operations:
            path = operation.path.replace("{dataset}", dataset)
            for part in ("user", "token", "source", "person", "number", "request", "publication", "query"):
                path = path.replace("{" + part + "}", "x")
            for part in ("release", "attack", "code"):
                path = path.replace("{" + part + "}", "x")
            side = "/api/v1" if operation.api else ""
            more = {"content": b"{}"} if operation.api and operation.method == "POST" else {}
            answer = await client.request(operation.method, side + path, **more)
            found[name_of(operation)] = answer.status_code
    return found


def allowed(statuses):
    return {route for route, status in statuses.items() if status not in {401, 403, 404}}


@pytest.mark.parametrize("person", PEOPLE)
def test_a_role_on_a_dataset_reaches_what_the_table_says(person, let_through, people):
    _, routes = let_through
    token = people(person, "visits")
    expected = {route for route, may in MAY.items() if may == EVERYBODY or person in may.split()}
    if person not in {"nobody", "stranger"}:
        expected -= EVERYWHERE
    assert allowed(routes(token)) - BROWSER_ONLY == expected - BROWSER_ONLY


@pytest.mark.parametrize("person", PEOPLE)
def test_a_role_everywhere_reaches_what_the_table_says(person, let_through, people):
    _, routes = let_through
    token = people(person, "")
    expected = {route for route, may in MAY.items() if may == EVERYBODY or person in may.split()}
    assert allowed(routes(token)) - BROWSER_ONLY == expected - BROWSER_ONLY


@pytest.mark.parametrize("person", ["owner", "curator", "analyst", "auditor", "admin"])
def test_a_role_on_another_dataset_reaches_nothing_of_this_one(person, let_through, people):
    _, routes = let_through
    reached = allowed(routes(people(person, "others")))
    assert not {route for route in reached if "{dataset}" in route}


@pytest.mark.parametrize("scope", ["read", "plan", "ask", "curate", "audit", "admin"])
def test_a_token_reaches_only_what_it_was_made_for(scope, let_through, people):
    _, routes = let_through
    reached = allowed(routes(people("all", "", scopes=scope))) - BROWSER_ONLY
    wanted = {
        name_of(one) for one in all_operations_of_the_service
        if one.rule.roles is None or one.rule.scope == scope
    } - BROWSER_ONLY  # fmt: skip
    assert reached == wanted


@pytest.fixture
def people(let_through, house_of):
    """Return a function that makes a person with a role on a dataset (empty: everywhere), and their token."""
    app, _ = let_through
    house = house_of(app, app.state.service)

    def made(person, dataset, scopes=None):
        if person == "nobody":
            return ""
        roles = "admin owner curator analyst auditor" if person == "all" else person
        house.person(person, **({} if person == "stranger" else {dataset or "everywhere": roles}))
        return house.token(person, **({} if scopes is None else {"scopes": scopes}))

    return made


all_operations_of_the_service = all_operations()
BROWSER_ONLY = {name_of(one) for one in all_operations_of_the_service if not one.api}
