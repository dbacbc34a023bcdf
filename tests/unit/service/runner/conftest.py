"""A service with a dataset that a curator declared through the runner, and analysts with allotments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import tacit as tc
from tacit.service._times import now_text
from tacit.tables import EXAMPLE_HOSPITALS

if TYPE_CHECKING:
    from unit.service.conftest import Drawing, House

DECLARED = {
    "name": "visits", "source": "visits", "unit": "patient_id",
    "bounds": {"age": ["0", "120"], "length_of_stay": ["0", "60"]},
    "keys": {"hospital": list(EXAMPLE_HOSPITALS)},
    "budget": {"epsilon": "5"}, "title": "Visits", "about": "Visits of invented patients.",
}  # fmt: skip
COUNT = {"dataset": "visits", "sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": "1/2"}


def allot(house: Any, name: str, epsilon: float = 2, number: int = 1, **more: str) -> str:
    """Give a person an allotment; return the name of its account."""
    account = f"visits/{house.people[name]}/{number}"
    house.service.ledger.create_account(account, parent="visits", budget=tc.Budget(epsilon=epsilon))
    with house.service.database.change() as change:
        change.run(
            "INSERT INTO accounts (name, dataset, person, purpose, plan, created) VALUES (?, ?, ?, ?, ?, ?)",
            account, "visits", house.people[name], more.get("purpose", "care"), more.get("plan", ""),
            now_text(),
        )  # fmt: skip
    return account


@pytest.fixture
def declared() -> dict[str, Any]:
    """What the curator declares of the dataset ``visits``."""
    return DECLARED


@pytest.fixture
def ward(house: House, drawing: Drawing, declared: dict[str, Any]) -> Any:
    """The service with the dataset ``visits``, opened by the runner; ana and ben have allotments."""
    house.person("cora", everywhere="curator")
    house.tokens = {"cora": house.token("cora")}
    made = house.call("POST", "/api/v1/datasets", house.tokens["cora"], json=declared)
    assert made.status_code == 201, made.text
    for name, role in {"ana": "analyst", "ben": "analyst", "dora": "auditor", "cem": "curator"}.items():
        house.person(name, visits=role)
        house.tokens[name] = house.token(name)
    house.person("zoe", other="analyst")
    house.tokens["zoe"] = house.token("zoe")
    house.accounts = {name: allot(house, name) for name in ("ana", "ben")}
    house.drawing = drawing

    def ask(who: str = "ana", key: str = "", **changed: Any) -> Any:
        headers = {"idempotency-key": key} if key else {}
        return house.call(
            "POST", "/api/v1/queries", house.tokens[who], json={**COUNT, **changed}, headers=headers
        )

    house.ask = ask
    house.get = lambda path, who="ana": house.call("GET", f"/api/v1{path}", house.tokens[who])
    return house
