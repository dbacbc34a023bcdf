"""Plan cards: equal to the library's own plans, without a side effect, for those who may ask."""

import logging
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest

import tacit as tc
from tacit.service._times import now_text
from tacit.service.plans import _cards, plan_of

SQL = "SELECT hospital, COUNT(*) AS n, AVG(length_of_stay) AS stay FROM visits GROUP BY hospital"
ASK = {"dataset": "visits", "sql": SQL, "epsilon": "1/2"}


def card(ward, who="ana", **changed):
    return ward.call("POST", "/api/v1/plans", ward.tokens[who], json={**ASK, **changed})


def test_a_card_is_the_plan_of_the_library_and_costs_nothing(ward):
    head = ward.service.ledger.head
    answer = card(ward)
    assert answer.status_code == 200, answer.text
    found, plan = answer.json(), ward.data.sql(SQL).plan(epsilon=Fraction(1, 2))
    assert found["plan"] == plan.hash
    assert found["document"] == plan.to_json()
    assert found["sql"] == list(plan.sql)
    assert found["price"] == {
        "promised": {"epsilon": {"exact": "1/2", "number": 0.5}},
        "cost": plan.cost.to_json(),
    }
    assert [one["plus_minus"] for one in found["columns"]] == [one.error for one in plan.forecast]
    assert [one["name"] for one in found["columns"]] == ["n", "stay"]
    assert found["meaning"]["odds"] == "1.649"
    assert "factor of 1.649" in found["meaning"]["sentence"]
    assert found["dataset"] == {"name": "visits", "version": 1, "unit": "patient", "policy": 1}
    assert found["facts"] == [list(pair) for pair in plan.facts]
    assert found["account"]["name"] == ward.account
    assert found["account"]["yours_after"] == (
        "one more question of up to epsilon 0.5; or 1 more like this one"
    )
    assert found["account"]["dataset_after"] == (
        "one more question of up to epsilon 2.5; or 5 more like this one"
    )
    assert found["account"]["more"] == 1
    assert found["account"]["words"] == "1 more question like this one"
    assert found["answer_in_s"] == 2.5
    assert found["stored"] == {"paid": False, "exists": False}
    assert ward.service.ledger.head == head


def test_a_plan_document_gives_the_same_card_as_its_sql(ward):
    plan = ward.data.sql(SQL).plan(epsilon=Fraction(1, 2))
    answer = ward.call(
        "POST", "/api/v1/plans", ward.tokens["ana"], json={"dataset": "visits", "plan": plan.to_json()}
    )
    assert answer.json()["plan"] == plan.hash


@pytest.mark.parametrize(
    ("who", "status", "code"),
    [
        ("", 401, "not-signed-in"), ("cem", 403, "not-permitted"), ("dora", 403, "not-permitted"),
        ("eva", 403, "not-permitted"), ("adi", 403, "not-permitted"), ("olga", 403, "not-permitted"),
        ("zoe", 404, "not-found"), ("ben", 200, ""),
    ],
)  # fmt: skip
def test_only_analysts_of_the_dataset_see_prices(ward, who, status, code):
    ward.tokens[""] = ""
    answer = card(ward, who)
    assert answer.status_code == status
    assert answer.json().get("code", "") == code


def test_a_token_needs_the_scope(ward):
    ward.tokens["read"] = ward.token("ana", scopes="read ask")
    assert card(ward, "read").status_code == 403


def test_the_cache_never_shows_the_account_of_somebody_else(ward):
    assert card(ward, "ana").json()["account"]["name"] == ward.account
    other = card(ward, "ben").json()
    assert other["account"]["name"] is None
    assert other["account"]["yours_after"] is None
    assert not other["fits"]
    assert ward.people["ana"] not in card(ward, "ben").text
    assert card(ward, "ben", account=ward.account).json()["code"] == "no-allotment"


def test_what_is_left_and_what_is_paid_is_asked_each_time(ward):
    assert (
        card(ward).json()["account"]["yours_after"]
        == "one more question of up to epsilon 0.5; or 1 more like this one"
    )
    ward.data.sql(SQL).plan(epsilon=Fraction(1, 2)).release(account=ward.account)
    again = card(ward).json()
    assert again["stored"] == {"paid": True, "exists": True}
    assert (
        again["account"]["yours_after"] == "one more question of up to epsilon 0.5; or 1 more like this one"
    )  # asking again is free
    assert again["answer_in_s"] == 0
    other = card(ward, epsilon="3/4").json()
    assert not other["fits"]
    assert other["account"]["yours_after"] is None
    assert other["account"]["words"] == "not enough is left for this question"


def test_a_policy_may_hide_that_somebody_else_has_asked(ward):
    ward.data.sql(SQL).plan(epsilon=Fraction(1, 2)).release()
    assert card(ward).json()["stored"] == {"paid": False, "exists": True}
    with ward.service.database.change() as change:
        change.run("UPDATE policies SET document = REPLACE(document, ?, ?)",
                   '"shows_stored": true', '"shows_stored": false')  # fmt: skip
        change.run("UPDATE policies SET number = 2")
        change.run("UPDATE datasets SET policy = 2")
    hidden = card(ward).json()
    assert hidden["stored"] == {"paid": False, "exists": None}
    assert (
        hidden["account"]["dataset_after"] == "one more question of up to epsilon 2; or 4 more like this one"
    )  # as if it had to be paid for
    before = ward.data.remaining
    ward.data.sql(SQL).plan(epsilon=Fraction(1, 2)).release(account=ward.account)
    assert ward.data.remaining == before  # which shows it after all, as the setting says


@pytest.mark.parametrize("hides", [False, True])
def test_where_a_policy_hides_what_others_asked_nobody_gains_time_by_it(ward, monkeypatch, hides):
    """A question that somebody else asked is planned again, so that a quick answer tells nothing."""
    planned = []

    def counted(dataset, ask):
        planned.append(ask)
        return plan_of(dataset, ask)

    monkeypatch.setattr(_cards, "plan_of", counted)
    opened = ward.service.dataset("visits")
    opened = replace(opened, policy={**opened.policy, "shows_stored": not hides})
    ask, cache = {"dataset": "visits", "sql": SQL, "epsilon": "1/2"}, _cards.PlanCache()
    for person in ("ana", "ana", "ben"):
        cache.plan(opened, ask, person)
        cache.hash(ward.service, opened, ask, person)
    assert len(planned) == (2 if hides else 1)


@pytest.mark.parametrize("epsilon", ["0.1", "1/10", 0.1, "1e-1"])  # exact in each form
def test_numbers_are_exact(ward, epsilon):
    found = card(ward, epsilon=epsilon).json()
    assert found["price"]["promised"]["epsilon"]["exact"] == "1/10"
    assert found["plan"] == ward.data.sql(SQL).plan(epsilon=Fraction(1, 10)).hash


def test_a_purpose_is_seen_by_its_person_alone_and_is_in_no_log(ward, caplog):
    caplog.set_level(logging.DEBUG)
    with ward.service.database.change() as change:
        change.run("UPDATE accounts SET purpose = 'CANARY8842'")
    own = ward.call("GET", "/datasets/visits/ask", ward.tokens["ana"])
    assert "CANARY8842" in own.text
    for path in ("/datasets/visits/ask", "/datasets/visits/sandbox", "/certificates/check"):
        assert "CANARY8842" not in ward.call("GET", path, ward.tokens["ben"]).text
    assert card(ward, epsilon="x").status_code == 400
    assert "CANARY8842" not in card(ward, "ben").text
    assert "CANARY8842" not in caplog.text


def test_an_expired_allotment_pays_for_nothing_new(ward, monkeypatch):
    ledger = ward.service.ledger
    day = datetime.now(UTC) + timedelta(hours=1)
    late = f"visits/{ward.people['ben']}/1"
    ledger.create_account(late, parent="visits", budget=tc.Budget(epsilon=1), expires=day)
    with ward.service.database.change() as change:
        change.run(
            "INSERT INTO accounts (name, dataset, person, purpose, created) VALUES (?, 'visits', ?, '', ?)",
            late, ward.people["ben"], now_text(),
        )  # fmt: skip
    assert card(ward, "ben").json()["fits"]

    class Later(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) + timedelta(hours=2)

    monkeypatch.setattr("tacit.service.plans._cards.datetime", Later)
    after = card(ward, "ben").json()
    assert not after["fits"]
    assert after["account"]["words"] == "the last day of your allotment has passed"


def test_a_frozen_allotment_is_said(ward):
    assert card(ward).json()["fits"]
    ward.service.ledger.freeze(ward.account, statement="pause", who="u_x")
    after = card(ward).json()
    assert not after["fits"]
    assert "stopped all charges" in after["account"]["words"]


def test_many_threads_get_the_cards_of_their_own_person(ward):
    for _ in range(2):
        for who in ("ana", "ben"):
            found = card(ward, who).json()["account"]["name"]
            assert found == (ward.account if who == "ana" else None)


def test_an_account_for_one_plan_pays_for_that_plan_only(ward):
    plan = ward.data.sql(SQL).plan(epsilon=Fraction(1, 2))
    name = f"visits/{ward.people['ana']}/2"
    ward.service.ledger.create_account(name, parent="visits", budget=tc.Budget(epsilon=Fraction(1, 2)))
    with ward.service.database.change() as change:
        change.run(
            "INSERT INTO accounts (name, dataset, person, purpose, plan, created) VALUES (?, ?, ?, '', ?, ?)",
            name, "visits", ward.people["ana"], plan.hash, now_text(),
        )  # fmt: skip
    assert card(ward).json()["account"]["name"] == name
    assert card(ward, epsilon="1/4").json()["account"]["name"] == ward.account
    assert card(ward, epsilon="1/4", account=name).json()["code"] == "no-allotment"


def test_the_document_of_a_deeply_nested_question_can_be_sent(ward):
    inner = "age"
    for _ in range(4):
        inner = f"LEAST(GREATEST({inner} + 1, 0), 90)"
    plan = ward.data.sql(f"SELECT AVG({inner}) AS a FROM visits").plan(epsilon=Fraction(1, 2))
    assert depth(plan.to_json()) > 20
    body = {"dataset": "visits", "plan": plan.to_json()}
    answer = ward.call("POST", "/api/v1/plans", ward.tokens["ana"], json=body)
    assert answer.json()["plan"] == plan.hash


def depth(document):
    parts = document.values() if isinstance(document, dict) else document
    return 1 + max(map(depth, parts), default=0) if isinstance(document, dict | list | tuple) else 0


@pytest.mark.parametrize(
    ("risk", "words"),
    [
        ({"advantage": "0.05"}, "right at most 52.5 % of the time instead of 50 %"),
        ({"attack": ["0.01", "0.02"]}, "finds at most 2 % of those of whom it is"),
        ({"belief": "0.01, 1/50"}, "a belief of 1 % that one patient is in the data becomes at most 2 %"),
    ],
)
def test_a_card_from_a_risk_is_the_plan_of_the_library_and_shows_three_risks(ward, risk, words):
    found = card(ward, epsilon=None, **risk)
    assert found.status_code == 200, found.text
    found = found.json()
    [(name, given)] = risk.items()
    parts = given.split(", ") if isinstance(given, str) else given
    numbers = tuple(Fraction(one) for one in parts)
    plan = ward.data.sql(SQL).plan(**{name: numbers if len(numbers) > 1 else numbers[0]})
    assert found["plan"] == plan.hash
    assert words in found["risk"]
    assert "with all that its budget (epsilon 1) pays for" in found["account"]["yours_risk"]
    assert "with all that its budget (epsilon 3) pays for" in found["account"]["dataset_risk"]
    ordinary = card(ward, epsilon=found["price"]["promised"]["epsilon"]["exact"]).json()
    assert ordinary["plan"] == found["plan"]
    assert ordinary["risk"] is None
    assert "yours_risk" not in ordinary["account"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"attack": "0.01"}, {"attack": ["0.02", "0.01"]}, {"advantage": "2"}, {"belief": [1, 2, 3]},
        {"advantage": "0.05", "total": "mu"}, {"advantage": "0.05", "epsilon": "1"}, {"attack": {"a": 1}},
    ],
)  # fmt: skip
def test_a_wrong_risk_is_refused_in_a_service(ward, wrong):
    refused = card(ward, **{"epsilon": None, **wrong})
    assert refused.status_code in {400, 422}, refused.text
    assert refused.json()["code"] in {"bad-parameter", "body-unreadable"}
