"""Whatever the description of the API allows, and whatever it does not: no request makes the service fail."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode

import tacit as tc
from tacit.service._app import all_operations
from tacit.service._operations import ROLES
from tacit.service._times import now_text
from tacit.tables import EXAMPLE_HOSPITALS

#: What a person finds in one dataset after a question was answered; paths are filled with it.
DECLARED = {
    "name": "visits", "source": "visits", "unit": "patient_id", "bounds": {"age": ["0", "120"]},
    "keys": {"hospital": list(EXAMPLE_HOSPITALS)}, "budget": {"epsilon": "5"},
}  # fmt: skip
ASK = {"dataset": "visits", "sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": "1/2", "purpose": "care"}
#: No list of the API describes its cursors; these are tried with every address.
QUERIES = (
    "", "after=0", "after=-1", "after=99999999999999999999", "after=%00", "after=%FF", "after=é", "limit=0",
    "limit=1e9", "limit=1", "state=open", "dataset=visits", "dataset=..%2f", "dataset=%00", "epsilon=1e999",
    "epsilon=1/0", "epsilon=1&delta=1e-9", "round=NaN", "after=&after=1", "next=//evil.example",
    "x=" + "y" * 999,
)  # fmt: skip
HOSTILE = ("..", "%2e%2e%2f", "a%00b", "%F0%9F%98%80", "%ED%A0%80", "'", "1e9", "-1", "x" * 300, "{}", "new")
OPERATIONS = sorted({operation.path for operation in all_operations() if operation.api})


@pytest.fixture
def full(house: Any, drawing: Any) -> Any:
    """A service with a person for each role, a dataset, an answer, a publication and a request."""
    for role in ROLES:
        house.person(role, everywhere=role)
    house.person("stranger")
    house.tokens = {name: house.token(name) for name in house.people}
    assert send(house, "POST", "/datasets", "curator", DECLARED).status_code == 201
    account = f"visits/{house.people['analyst']}/1"
    house.service.ledger.create_account(account, parent="visits", budget=tc.Budget(epsilon=2))
    with house.service.database.change() as change:
        change.run(
            "INSERT INTO accounts (name, dataset, person, purpose, created) VALUES (?, 'visits', ?, '', ?)",
            account, house.people["analyst"], now_text(),
        )  # fmt: skip
    query = send(house, "POST", "/queries", "analyst", ASK).json()["query"]
    drawing.answer()
    release = send(house, "GET", f"/queries/{query}", "analyst").json()["release"]
    made = send(house, "POST", "/publications", "curator", {"release": release, "title": "Visits"})
    wish = {"kind": "allotment", "dataset": "visits", "purpose": "care", "epsilon": "1/2"}
    asked = send(house, "POST", "/requests", "analyst", wish).json()["request"]
    day = datetime.now(UTC).date().isoformat()
    token = send(house, "GET", "/tokens", "stranger").json()["tokens"][0]["id"]
    house.known = {
        "dataset": "visits", "source": "visits", "number": "1", "person": house.people["analyst"],
        "query": query, "release": release, "publication": made.json()["publication"], "request": asked,
        "token": token, "user": house.people["stranger"], "attack": "differencing", "code": "bad-sql",
        "until": day,
    }  # fmt: skip
    return house


def send(house: Any, method: str, path: str, who: str, body: Any = None) -> Any:
    """Send one request to the API with the token of a person; bytes are sent as they are."""
    more = {}
    if body is not None:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode("utf-8", "surrogatepass")
        more = {"content": raw, "headers": {"content-type": "application/json"}}
    return house.call(method, f"/api/v1{path}", house.tokens.get(who, ""), **more)


def described(house: Any) -> list[Any]:
    """Return the operations that the service describes itself."""
    document = house.call("GET", "/api/v1/openapi.json").json()
    found = [result.ok() for result in schemathesis.openapi.from_dict(document).get_all_operations()]
    assert {operation.path.removeprefix("/api/v1") for operation in found} == set(OPERATIONS)
    return found


def examine(house: Any, operation: Any, mode: GenerationMode, examples: int) -> None:
    """Send what the description allows or forbids, as each role, to addresses that exist and that do not."""
    path = operation.path.removeprefix("/api/v1")
    names = [part.partition("}")[0] for part in path.split("{")[1:]]
    places = {name: st.sampled_from([house.known[name], house.known[name], *HOSTILE]) for name in names}

    @settings(
        max_examples=examples, deadline=None, database=None, derandomize=True, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(
        case=operation.as_strategy(mode),
        place=st.fixed_dictionaries(places),
        who=st.sampled_from([*house.tokens, *house.tokens, ""]),
        query=st.sampled_from(QUERIES),
    )
    def run(case: Any, place: dict[str, str], who: str, query: str) -> None:
        body = None if isinstance(case.body, schemathesis.core.NotSet) else case.body
        answer = send(house, operation.method.upper(), f"{path.format(**place)}?{query}", who, body)
        check(answer, f"{who or 'nobody'}: {operation.method.upper()} {path} {place} {query} {body!r}")

    run()


def check(answer: Any, asked: str) -> None:
    """Fail for an answer that no request may get."""
    told = answer.json() if "json" in answer.headers["content-type"] else {}
    away = isinstance(told, dict) and told.get("code") in {"dataset-paused", "drawer-away"}
    away = away or (isinstance(told, dict) and told.get("ready") is False)  # the runner's clock stands still
    assert answer.status_code < 500 or away, f"{asked}: {answer.status_code} {answer.text[:300]}"
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"], asked
    assert "Traceback" not in answer.text, asked


def test_nothing_that_the_description_allows_makes_the_service_fail(full: Any) -> None:
    for operation in described(full):
        examine(full, operation, GenerationMode.POSITIVE, 8)


def test_nothing_that_the_description_forbids_makes_the_service_fail(full: Any) -> None:
    for operation in described(full):
        if operation.body:  # nothing else is described so narrowly that something is forbidden
            examine(full, operation, GenerationMode.NEGATIVE, 12)


@pytest.mark.long
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
@pytest.mark.parametrize("path", OPERATIONS)
def test_a_long_search_makes_no_operation_fail(path: str, mode: GenerationMode, full: Any) -> None:
    for operation in described(full):
        if operation.path == f"/api/v1{path}" and (operation.body or mode is GenerationMode.POSITIVE):
            examine(full, operation, mode, 300)
