"""Allotments that curators open, stop and end; pausing and resuming."""

import pytest

import tacit as tc
from tacit.accounting import Filter
from tacit.errors import TacitError
from unit.service.curation.test_requests import LATER, written


def opened(house, token, person="ana", **more):
    document = {
        "person": house.people[person],
        "epsilon": "1",
        "purpose": "report",
        "last_day": LATER,
        **more,
    }
    return house.call("POST", "/api/v1/datasets/visits/accounts", token, json=document)


def test_a_curator_opens_allotments_for_analysts(house, visits):
    answer = opened(house, visits["carl"])
    assert answer.status_code == 201, answer.text
    assert answer.headers["location"] == f"/api/v1/accounts/visits/{house.people['ana']}/1"
    assert opened(house, visits["carl"]).json()["account"].endswith("/2")
    listed = house.call("GET", "/api/v1/datasets/visits/accounts", visits["ana"]).json()["accounts"]
    assert [one["purpose"] for one in listed] == ["report", "report"]
    assert house.call("GET", "/api/v1/datasets/visits/accounts", visits["ben"]).json()["accounts"] == []
    assert len(house.call("GET", "/api/v1/datasets/visits/accounts", visits["otto"]).json()["accounts"]) == 2


def test_an_account_says_whose_it_is_and_what_was_spent_of_it_in_every_detail(house, visits):
    name = opened(house, visits["carl"]).json()["account"]
    house.service.ledger.charge(name, tc.Cost.pure(0.25))
    for who, mine in (("ana", True), ("otto", False), ("carl", False)):
        shown = house.call("GET", f"/api/v1/accounts/{name}", visits[who]).json()
        [listed] = house.call("GET", "/api/v1/datasets/visits", visits[who]).json()["accounts"]
        for one in (shown, listed):
            assert one["mine"] is mine
            assert Filter.from_json(one["filter"]) == house.service.ledger.account(name).filter


@pytest.mark.parametrize("name", ["ana", "otto", "ada", "eve"])
def test_nobody_else_opens_allotments(house, visits, name):
    before = written(house)
    assert opened(house, visits[name], "ben").status_code == (404 if name == "eve" else 403)
    assert written(house) == before


@pytest.mark.parametrize("person", ["otto", "eve", "carl"])
def test_allotments_are_for_other_people_who_are_analysts(house, visits, person):
    before = written(house)
    assert opened(house, visits["carl"], person).status_code in {400, 403}
    assert written(house) == before


def test_a_crash_leaves_no_account_that_anybody_can_use(house, visits, monkeypatch):
    kind, real = type(house.service.ledger), type(house.service.ledger).create_account

    def crash(self, *given, **named):
        real(self, *given, **named)
        raise RuntimeError("the process ends here")

    monkeypatch.setattr(kind, "create_account", crash)
    assert opened(house, visits["carl"]).status_code == 500
    monkeypatch.setattr(kind, "create_account", real)
    assert house.service.database.rows("SELECT * FROM accounts") == []
    left = f"visits/{house.people['ana']}/1"
    assert house.call("GET", f"/api/v1/accounts/{left}", visits["ana"]).status_code == 404
    from tacit.service.plans import own_account

    assert own_account(house.service.database, house.people["ana"], "visits") is None
    assert opened(house, visits["carl"], epsilon="2").json()["account"].endswith("/2")


def test_a_frozen_account_pays_nothing(house, visits):
    name = opened(house, visits["carl"]).json()["account"]
    path = f"/api/v1/accounts/{name}"
    why = {"reason": "consent is being checked"}
    assert house.call("POST", path + "/freeze", visits["ana"], json=why).status_code == 403
    assert house.call("POST", path + "/freeze", visits["carl"], json={}).status_code == 400
    assert house.call("POST", path + "/freeze", visits["carl"], json=why).status_code == 200
    with pytest.raises(TacitError, match="frozen"):
        house.service.ledger.charge(name, tc.Cost.pure(0.1))
    found = house.call("GET", path, visits["ana"]).json()
    assert found["frozen"] is True
    assert (found["acts"][0]["statement"], found["acts"][0]["who"]) == (why["reason"], house.people["carl"])
    assert house.call("POST", path + "/unfreeze", visits["carl"], json=why).status_code == 200
    house.service.ledger.charge(name, tc.Cost.pure(0.1))


def test_a_last_day_can_be_changed_but_not_by_its_own_person(house, visits):
    house.person("dora", visits="curator analyst")
    dora = house.token("dora")
    name = opened(house, visits["carl"], "dora").json()["account"]
    path = f"/api/v1/accounts/{name}/last-day"
    change = {"last_day": "2090-12-31", "reason": "longer"}
    assert house.call("POST", path, dora, json=change).json()["code"] == "own-request"
    assert (
        house.call("POST", path, visits["carl"], json={**change, "last_day": "2001-01-01"}).status_code == 400
    )
    assert house.call("POST", path, visits["carl"], json=change).status_code == 200
    shown = house.call("GET", f"/api/v1/accounts/{name}", dora).json()
    assert shown["last_day"] == "2090-12-31"
    assert house.call("POST", f"/api/v1/accounts/visits/{house.people['dora']}/9/freeze", visits["carl"],
                      json={"reason": "x"}).status_code == 404  # fmt: skip


def test_a_dataset_can_be_frozen_and_says_so(house, visits):
    why = {"reason": "consent is being checked"}
    for name in ("ana", "otto", "ada"):
        assert house.call("POST", "/api/v1/datasets/visits/freeze", visits[name], json=why).status_code == 403
    assert house.call("POST", "/api/v1/datasets/visits/freeze", visits["carl"], json=why).status_code == 200
    assert house.call("GET", "/api/v1/datasets/visits", visits["ana"]).json()["state"] == "frozen"
    assert house.call("POST", "/api/v1/datasets/visits/unfreeze", visits["carl"], json=why).status_code == 200
    assert house.call("GET", "/api/v1/datasets/visits", visits["ana"]).json()["state"] == "open"


def test_pausing_keeps_the_reason_and_resuming_may_raise_the_lag(house, visits):
    path = "/api/v1/datasets/visits"
    for name in ("ana", "otto", "ada"):
        for act in ("pause", "resume"):
            assert house.call("POST", f"{path}/{act}", visits[name], json={"reason": "x"}).status_code == 403
    assert (
        house.call("POST", path + "/pause", visits["carl"], json={"reason": "an answer was late"}).status_code
        == 200
    )
    found = house.call("GET", path, visits["ana"]).json()
    assert (found["state"], found["paused"]) == ("paused", "an answer was late")
    before = written(house)
    assert (
        house.call("POST", path + "/resume", visits["carl"], json={"reason": "ok", "lag": 3}).status_code
        == 400
    )
    assert written(house) == before
    answer = house.call("POST", path + "/resume", visits["carl"], json={"reason": "more time", "lag": 8})
    assert answer.status_code == 200
    found = house.call("GET", path, visits["otto"]).json()
    assert (found["state"], found["policy"], found["answer_after"]["ticks"]) == ("open", 2, 8)
    assert [(one["kind"], one["reason"]) for one in found["pauses"]] == [
        ("resume", "more time"), ("pause", "an answer was late"),
    ]  # fmt: skip
    changes = house.call("GET", path + "/policies/2", visits["otto"]).json()["changes"]
    assert [one["sentence"] for one in changes] == ["boundaries until an answer leaves changed from 4 to 8"]
    reasons = house.service.database.rows("SELECT about FROM events")
    assert not any("late" in one["about"] or "time" in one["about"] for one in reasons)


def test_the_page_of_an_account_has_a_field_for_every_value_that_its_forms_send(house, visits):
    name = opened(house, visits["carl"]).json()["account"]
    page = house.call("GET", f"/accounts/{name}", visits["carl"]).text
    form = page.partition("/last-day")[2].partition("</form>")[0]
    why = {"reason": "we move"}
    assert house.call("POST", "/api/v1/datasets/visits/pause", visits["carl"], json=why).status_code == 200
    page = house.call("GET", "/datasets/visits", visits["carl"]).text
    assert 'name="lag"' in page.partition("/datasets/visits/resume")[2].partition("</form>")[0]
    assert 'name="reason"' in form
    assert f'name="last_day" aria-describedby="h-last_day" value="{LATER}"' in form
