"""From a declared dataset to a published figure, with the real runner."""

from dataclasses import replace

import pytest

import tacit as tc
from tacit.service.curation import _declaration
from unit.service.curation.conftest import DECLARED
from unit.service.curation.test_requests import ALLOTMENT, GROWTH, approved, made


@pytest.fixture
def ward(house, drawing):
    """The dataset visits, declared through the runner; returns the tokens."""
    for name, roles in {"cora": {"everywhere": "curator"}, "carl": {"visits": "curator"}}.items():
        house.person(name, **roles)
    house.person("ana", visits="analyst")
    tokens = {name: house.token(name) for name in house.people}
    answer = house.call("POST", "/api/v1/datasets", tokens["cora"], json=DECLARED)
    assert answer.status_code == 201, answer.text
    assert drawing
    return tokens


def ask(house, token, **more):
    body = {"dataset": "visits", "sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": "1/4", **more}
    return house.call("POST", "/api/v1/queries", token, json=body)


def test_a_request_pays_for_a_question_whose_answer_is_published(house, ward, drawing):
    assert ask(house, ward["ana"]).json()["code"] == "no-allotment"
    approved(house, ward["carl"], made(house, ward["ana"], ALLOTMENT))
    query = ask(house, ward["ana"]).json()["query"]
    drawing.answer()
    found = house.call("GET", f"/api/v1/queries/{query}", ward["ana"]).json()
    assert found["state"] == "finished", found
    listed = house.call("GET", "/api/v1/datasets/visits/publish", ward["carl"]).json()["releases"]
    assert [(one["release"], one["words"]) for one in listed] == [(found["release"], "n")]
    given = {"release": found["release"], "title": "Visits", "about": ""}
    place = house.call("POST", "/api/v1/publications", ward["carl"], json=given).headers["location"]
    shown = house.call("GET", place).json()
    release = house.call("GET", f"/api/v1/releases/{found['release']}", ward["ana"]).json()
    assert shown["content"]["columns"] == release["columns"]
    assert house.call("GET", f"/api/v1/releases/{found['release']}").status_code == 401
    document = house.call("GET", "/api/v1/datasets/visits", ward["ana"]).json()
    assert document["left"]["exact"]["epsilon"] == "11/4"
    assert [point["spent"] for point in document["burn_down"]] == ["0", "1/4"]


def test_an_approved_plan_pays_for_that_plan_only(house, ward, drawing):
    sql = "SELECT COUNT(*) AS n FROM visits"
    request = made(house, ward["ana"], {
        "kind": "plan", "dataset": "visits", "ask": {"sql": sql, "epsilon": "1/4"}, "purpose": "one figure",
    })  # fmt: skip
    account = approved(house, ward["carl"], request).json()["account"]
    other = ask(house, ward["ana"], sql="SELECT COUNT(*) AS m FROM visits WHERE age > 50", account=account)
    assert other.json()["code"] == "no-allotment"
    query = ask(house, ward["ana"], account=account).json()["query"]
    drawing.answer()
    assert house.call("GET", f"/api/v1/queries/{query}", ward["ana"]).json()["state"] == "finished"
    assert house.service.ledger.remaining(account).epsilon == 0


def test_questions_go_on_after_the_budget_has_grown_and_the_policy_changed(house, ward, drawing):
    approved(house, ward["cora"], made(house, ward["carl"], GROWTH))
    policy = {"version": 2, "bounds": {"age": ["0", "110"]}, "limits": {"rows": 3}}
    answer = house.call("POST", "/api/v1/datasets/visits/policies", ward["carl"], json=policy)
    assert answer.status_code == 201, answer.text
    assert answer.json()["policy_document"]["budget"]["epsilon"] == "4"
    approved(house, ward["carl"], made(house, ward["ana"], {**ALLOTMENT, "epsilon": "4"}))
    query = ask(house, ward["ana"], epsilon="7/2").json()["query"]
    drawing.answer()
    assert house.call("GET", f"/api/v1/queries/{query}", ward["ana"]).json()["state"] == "finished"
    assert house.service.ledger.account("visits").budget == tc.Budget(epsilon=4)


def test_a_frozen_or_paused_dataset_answers_nothing_new(house, ward, drawing):
    account = approved(house, ward["carl"], made(house, ward["ana"], ALLOTMENT)).json()["account"]
    why = {"reason": "consent is being checked"}
    house.call("POST", "/api/v1/datasets/visits/pause", ward["carl"], json=why)
    refused = ask(house, ward["ana"])
    assert (refused.status_code, refused.json()["code"]) == (503, "dataset-paused")
    house.call("POST", "/api/v1/datasets/visits/resume", ward["carl"], json=why)
    house.call("POST", f"/api/v1/accounts/{account}/freeze", ward["carl"], json=why)
    answer = ask(house, ward["ana"])
    if answer.status_code == 202:
        drawing.answer()
        found = house.call("GET", f"/api/v1/queries/{answer.json()['query']}", ward["ana"]).json()
        assert found["state"] == "refused", found
    else:
        assert answer.json()["code"] == "account-frozen"
    assert house.service.ledger.remaining("visits").epsilon == 3


def test_a_refused_declaration_leaves_no_process(house, drawing, monkeypatch):
    """It is refused before the data is opened; one that is refused later ends its process."""
    listed = house.service.settings.sources
    monkeypatch.setitem(listed, "visits", replace(listed["visits"], several=False))
    house.person("cora", everywhere="curator")
    token = house.token("cora")
    assert house.call("POST", "/api/v1/datasets", token, json=DECLARED).status_code == 201
    for number in range(3):
        answer = house.call("POST", "/api/v1/datasets", token, json={**DECLARED, "name": f"again{number}"})
        assert answer.json()["code"] == "not-allowed", answer.text
    children = drawing.runner._children
    assert set(children) == {("visits", 1)}
    monkeypatch.setattr(_declaration, "_check_facts", refuse)  # only after the data was opened
    monkeypatch.setitem(listed, "visits", replace(listed["visits"], several=True))
    answer = house.call("POST", "/api/v1/datasets", token, json={**DECLARED, "name": "late"})
    assert answer.json()["code"] == "not-allowed"
    drawing.until(lambda: house.database.row("SELECT id FROM jobs WHERE state = 'waiting'") is None)
    assert set(children) == {("visits", 1)}


def refuse(*_):
    raise tc.TacitError("not-allowed", "refused at the end")
