"""Decisions with the service's database and the ledger on a PostgreSQL server."""

import pytest

from unit.service.curation.conftest import DECLARED
from unit.service.curation.test_requests import ALLOTMENT, GROWTH, approved, made


@pytest.fixture
def settings(settings, postgres_url):
    from dataclasses import replace

    return replace(settings, database=postgres_url)


def test_datasets_requests_and_lists_work_on_postgres(house, people):
    assert house.call("POST", "/api/v1/datasets", people["cora"], json=DECLARED).status_code == 201
    policy = {"version": 2, "bounds": {"age": ["0", "110"]}}
    assert (
        house.call("POST", "/api/v1/datasets/visits/policies", people["cora"], json=policy).status_code == 201
    )
    assert house.call("GET", "/api/v1/datasets/visits/policies/2", people["otto"]).json()["changes"]
    request = made(house, people["ana"], ALLOTMENT)
    account = approved(house, people["carl"], request).json()["account"]
    growth = made(house, people["carl"], GROWTH)
    assert approved(house, people["carl"], growth).json()["code"] == "own-request"
    assert approved(house, people["olga"], growth).status_code == 200
    assert approved(house, people["olga"], growth).json()["code"] == "already-decided"
    assert house.call("GET", f"/api/v1/accounts/{account}", people["ana"]).status_code == 200
    listed = house.call("GET", "/api/v1/requests", people["carl"]).json()["requests"]
    assert [one["request"] for one in listed] == [growth, request]
    again = house.call("GET", f"/api/v1/requests?after={listed[0]['created']}{growth}", people["carl"]).json()
    assert [one["request"] for one in again["requests"]] == [request]
    for act in ("pause", "resume"):
        path = f"/api/v1/datasets/visits/{act}"
        given = {"reason": "x"} if act == "pause" else {"reason": "x", "lag": 9}
        assert house.call("POST", path, people["carl"], json=given
                          ).status_code == 200  # fmt: skip
    found = house.call("GET", "/api/v1/datasets/visits", people["carl"]).json()
    assert (found["policy"], len(found["pauses"]), found["budget"]["exact"]["epsilon"]) == (3, 2, "4")
    assert house.call("GET", "/api/v1/publications").json()["publications"] == []
    assert house.call("GET", "/api/v1/datasets/visits/publish", people["carl"]).json()["releases"] == []
