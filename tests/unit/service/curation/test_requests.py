"""Requests and decisions: two people, one decision, one account; the ledger decides about totals."""

import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

import tacit as tc
from tacit.errors import TacitError
from tacit.service import create_app
from tacit.service.curation import _requests
from unit.service.conftest import House
from unit.service.curation.conftest import DECLARED

ASK = {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": "1/4"}
LATER = (datetime.now(UTC) + timedelta(days=30)).date().isoformat()
ALLOTMENT = {
    "kind": "allotment", "dataset": "visits", "epsilon": "1/2", "purpose": "stay report", "last_day": LATER,
}  # fmt: skip
GROWTH = {"kind": "growth", "dataset": "visits", "epsilon": "4", "statement": "board decision 12"}
REFRESH = {"kind": "refresh", "dataset": "visits", "statement": "new patients, none of the old"}


def made(house, token, document):
    answer = house.call("POST", "/api/v1/requests", token, json=document)
    assert answer.status_code == 201, answer.text
    return answer.json()["request"]


def approved(house, token, request, **body):
    return house.call("POST", f"/api/v1/requests/{request}/approve", token, json=body)


def written(house):
    tables = ("accounts", "requests", "events", "datasets", "policies", "publications")
    return [
        house.service.database.rows(f"SELECT * FROM {name}") for name in tables
    ], house.service.ledger.head


def demote(house, name, dataset="visits"):
    with house.service.database.change() as change:
        change.run("DELETE FROM grants WHERE person = ? AND dataset = ?", house.people[name], dataset)


def test_no_dataset_is_declared_below_the_allotment_of_a_person(house, visits):
    account = approved(house, visits["carl"], made(house, visits["ana"], ALLOTMENT)).json()["account"]
    before = written(house)
    for parent in (account, f"visits/{house.people['ana']}/2"):
        thief = {**DECLARED, "name": "thief", "parent": parent}
        answer = house.call("POST", "/api/v1/datasets", visits["cora"], json=thief)
        assert (answer.status_code, answer.json()["code"]) == (400, "bad-parameter")
    assert written(house) == before
    below = {**DECLARED, "name": "below", "parent": "visits"}
    assert house.call("POST", "/api/v1/datasets", visits["cora"], json=below).status_code == 201


def test_a_token_that_only_reads_withdraws_no_request(house, visits):
    for who, document, scope in (("ana", ALLOTMENT, "ask"), ("carl", GROWTH, "curate")):
        request = made(house, visits[who], document)
        for scopes in ("read", "plan read", "read ask" if scope == "curate" else "read curate"):
            token = house.token(who, scopes)
            answer = house.call("POST", f"/api/v1/requests/{request}/withdraw", token)
            assert (answer.status_code, answer.json()["code"]) == (403, "not-permitted")
        token = house.token(who, f"read {scope}")
        assert house.call("POST", f"/api/v1/requests/{request}/withdraw", token).status_code == 200


def test_an_approved_allotment_is_a_child_account(house, visits):
    request = made(house, visits["ana"], ALLOTMENT)
    answer = approved(house, visits["carl"], request)
    assert answer.status_code == 200, answer.text
    name = answer.json()["account"]
    assert name == f"visits/{house.people['ana']}/1"
    account = house.service.ledger.account(name)
    assert (account.parent, account.budget) == ("visits", tc.Budget(epsilon=0.5))
    found = house.call("GET", f"/api/v1/accounts/{name}", visits["ana"]).json()
    assert (found["purpose"], found["last_day"], found["request"]) == ("stay report", LATER, request)
    assert found["left"]["exact"]["epsilon"] == "1/2"
    assert house.call("GET", f"/api/v1/accounts/{name}", visits["ben"]).status_code == 404
    assert house.call("GET", f"/api/v1/accounts/{name}", visits["otto"]).status_code == 200
    assert house.call("GET", f"/api/v1/accounts/{name}", visits["eve"]).status_code == 404
    events = [(one["person"], one["what"]) for one in house.service.database.rows("SELECT * FROM events")][
        -3:
    ]
    ana, carl = house.people["ana"], house.people["carl"]
    assert events == [(ana, "request-made"), (carl, "request-approved"), (carl, "allotment-opened")]


def test_an_allotment_can_be_lowered_but_not_raised(house, visits):
    request = made(house, visits["ana"], ALLOTMENT)
    before = written(house)
    assert approved(house, visits["carl"], request, epsilon="0.6").status_code == 400
    assert approved(house, visits["carl"], request, rho="0.1").status_code == 400
    assert approved(house, visits["carl"], request, epsilon="0.1", delta="1e-6").status_code == 400
    assert written(house) == before
    answer = approved(house, visits["carl"], request, epsilon="0.1")
    assert house.service.ledger.account(answer.json()["account"]).budget == tc.Budget(epsilon=0.1)


@pytest.mark.parametrize("name", ["ana", "ben", "otto", "ada", "eve"])
def test_only_curators_decide(house, visits, name):
    request = made(house, visits["ana"], ALLOTMENT)
    before = written(house)
    for act, body in (("approve", {}), ("decline", {"reason": "no"})):
        answer = house.call("POST", f"/api/v1/requests/{request}/{act}", visits[name], json=body)
        assert answer.status_code == (403 if name in {"ana", "otto"} else 404), answer.text
        assert house.call("POST", f"/api/v1/requests/{request}/{act}", json=body).status_code == 401
    assert written(house) == before


def test_nobody_approves_their_own(house, visits):
    house.person("dora", visits="curator analyst")
    token, second = house.token("dora"), house.token("dora")
    request = made(house, token, ALLOTMENT)
    before = written(house)
    for secret in (token, second):  # another token of the same person is the same person
        answer = approved(house, secret, request)
        assert (answer.status_code, answer.json()["code"]) == (403, "own-request")
    assert written(house) == before
    direct = {"person": house.people["dora"], "epsilon": "1", "purpose": "mine"}
    answer = house.call("POST", "/api/v1/datasets/visits/accounts", token, json=direct)
    assert answer.json()["code"] == "own-request"
    assert written(house) == before


def test_growth_takes_two_people_and_the_ledger_names_both(house, visits):
    request = made(house, visits["carl"], GROWTH)
    before = written(house)
    assert approved(house, visits["carl"], request).json()["code"] == "own-request"
    assert approved(house, house.token("carl"), request).json()["code"] == "own-request"
    assert approved(house, visits["olga"], request, epsilon="3.5").status_code == 400
    assert written(house) == before
    assert approved(house, visits["olga"], request).status_code == 200
    assert house.service.ledger.account("visits").budget == tc.Budget(epsilon=4)
    last = house.service.ledger.history("visits")[-1]
    assert last.kind == "grow"
    assert last.purpose == (
        f"request {request}: proposed by {house.people['carl']}, "
        f"approved by {house.people['olga']}: board decision 12"
    )
    assert approved(house, visits["olga"], request).json()["code"] == "already-decided"


def test_a_refresh_takes_two_people_and_happens_once(house, visits):
    house.service.ledger.charge("visits", tc.Cost.pure(1))
    request = made(house, visits["carl"], REFRESH)
    assert approved(house, visits["carl"], request).json()["code"] == "own-request"
    assert approved(house, visits["cora"], request).status_code == 200
    assert house.service.ledger.remaining("visits").epsilon == 3
    assert approved(house, visits["olga"], request).json()["code"] == "already-decided"
    assert [entry.kind for entry in house.service.ledger.history("visits")].count("refresh") == 1


@pytest.mark.parametrize("kind", [GROWTH, REFRESH])
@pytest.mark.parametrize("name", ["ana", "otto", "ada", "eve"])
def test_only_curators_propose_a_larger_or_fresh_budget(house, visits, kind, name):
    before = written(house)
    answer = house.call("POST", "/api/v1/requests", visits[name], json=kind)
    assert answer.status_code == (404 if name == "eve" else 403)
    assert written(house) == before


def test_whoever_was_demoted_in_between_does_not_count(house, visits):
    growth = made(house, visits["carl"], GROWTH)
    allotment = made(house, visits["ana"], ALLOTMENT)
    demote(house, "carl")
    demote(house, "ana")
    before = written(house)
    assert approved(house, visits["olga"], growth).status_code == 403
    assert approved(house, visits["olga"], allotment).status_code == 400
    assert approved(house, visits["carl"], allotment).status_code == 404
    assert written(house) == before
    with house.service.database.change() as change:
        change.run("UPDATE users SET disabled = 1 WHERE id = ?", house.people["ana"])
        change.run(
            "INSERT INTO grants (person, dataset, role, granted_by, granted)"
            " VALUES (?, 'visits', 'analyst', 'x', 'x')",
            house.people["ana"],
        )
    assert approved(house, visits["olga"], allotment).status_code == 400


def test_whoever_is_demoted_while_deciding_decides_nothing(house, visits, monkeypatch):
    request = made(house, visits["ana"], ALLOTMENT)
    real = _requests.request_row

    def late(call):
        row = real(call)
        demote(house, "carl")
        return row

    monkeypatch.setattr(_requests, "request_row", late)
    before = written(house)
    assert approved(house, visits["carl"], request).status_code == 403
    assert written(house) == before


def test_a_token_for_another_dataset_decides_nothing(house, visits):
    request = made(house, visits["ana"], ALLOTMENT)
    before = written(house)
    assert approved(house, house.token("carl", dataset="other"), request).status_code == 404
    assert approved(house, house.token("carl", scopes="read ask"), request).status_code == 403
    assert house.call(
        "POST", "/api/v1/requests", house.token("ana", scopes="read plan"), json=ALLOTMENT
    ).status_code == 403  # fmt: skip
    assert written(house) == before


def test_two_approvals_at_the_same_time_open_one_account(house, visits):
    request = made(house, visits["ana"], ALLOTMENT)
    second = create_app(house.service.settings)  # another worker
    houses = [house, House(second, second.state.service)] * 2
    with ThreadPoolExecutor(4) as pool:
        tokens = [visits["carl"], visits["olga"], visits["cora"], visits["carl"]]
        answers = list(pool.map(lambda one: approved(*one, request), zip(houses, tokens, strict=True)))
    second.state.service.close()
    codes = sorted(answer.status_code for answer in answers)
    assert codes[0] == 200
    assert set(codes) <= {200, 409}
    assert (
        len({answer.request.headers["authorization"] for answer in answers if answer.status_code == 200}) == 1
    )
    names = [account.name for account in house.service.ledger.accounts()]
    assert names == ["visits", f"visits/{house.people['ana']}/1"]
    assert len(house.service.database.rows("SELECT * FROM accounts")) == 1


_KILLED = """
import os, sys
from pathlib import Path
from tacit.service import ListedSource, ServiceSettings, create_app
from tacit.service.curation import _requests
app = create_app(ServiceSettings(folder=Path(sys.argv[1])))
service, request = app.state.service, sys.argv[2]
act = type(service.ledger).refresh
def killed(self, *given, **named):
    act(self, *given, **named)
    os._exit(9)  # the ledger has committed, the database has not
type(service.ledger).refresh = killed
with service.database.change() as change:
    row = change.row("SELECT document FROM requests WHERE id = ?", request)
    document = row["document"][:-1] + ', "granted": {}}'
    change.run(
        "UPDATE requests SET state = 'approving', decided_by = ?, document = ? WHERE id = ?",
        sys.argv[3], document, request,
    )
_requests.carry_out(service, request, "x")
"""


def test_a_killed_process_refreshes_a_budget_once(house, visits):
    house.service.ledger.charge("visits", tc.Cost.pure(1))
    request = made(house, visits["carl"], REFRESH)
    folder, olga = str(house.service.settings.folder), house.people["olga"]
    ended = subprocess.run([sys.executable, "-c", _KILLED, folder, request, olga], check=False)
    assert ended.returncode == 9
    assert house.service.ledger.remaining("visits").epsilon == 3
    house.service.ledger.charge("visits", tc.Cost.pure(0.5))
    assert approved(house, visits["olga"], request).status_code == 200
    assert house.service.ledger.remaining("visits").epsilon == tc.Budget(2.5).epsilon
    assert house.service.ledger.verify().ok


@pytest.mark.parametrize(
    ("document", "act"),
    [(ALLOTMENT, "create_account"), (GROWTH, "grow"), (REFRESH, "refresh")],
    ids=["allotment", "growth", "refresh"],
)
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_crash_around_the_ledgers_act_is_carried_out_once(house, visits, monkeypatch, document, act, when):
    house.service.ledger.charge("visits", tc.Cost.pure(1))
    request = made(house, visits["ana" if act == "create_account" else "carl"], document)
    kind, real = type(house.service.ledger), getattr(type(house.service.ledger), act)

    def crash(self, *given, **named):
        if when == "after":
            real(self, *given, **named)
        raise RuntimeError("the process ends here")

    monkeypatch.setattr(kind, act, crash)
    assert approved(house, visits["olga"], request).status_code == 500
    monkeypatch.setattr(kind, act, real)
    state = house.service.database.row("SELECT state FROM requests WHERE id = ?", request)["state"]
    assert state == "approving"
    declined = house.call(
        "POST", f"/api/v1/requests/{request}/decline", visits["olga"], json={"reason": "no"}
    )
    assert declined.json()["code"] == "already-decided"
    house.service.ledger.charge("visits", tc.Cost.pure(0.25))
    assert approved(house, visits["olga"], request).status_code == 200
    kinds = [entry.kind for entry in house.service.ledger.history()]
    assert kinds.count({"create_account": "open", "grow": "grow", "refresh": "refresh"}[act]) == (
        2 if act == "create_account" else 1
    )
    if act == "refresh" and when == "after":  # what was charged after the refresh stays charged
        assert house.service.ledger.remaining("visits").epsilon == tc.Budget(epsilon=2.75).epsilon
    assert len(house.service.database.rows("SELECT * FROM accounts")) == (1 if act == "create_account" else 0)


def test_another_curator_may_finish_an_approval_after_a_crash(house, visits, monkeypatch):
    request = made(house, visits["ana"], ALLOTMENT)
    kind, real = type(house.service.ledger), type(house.service.ledger).create_account
    monkeypatch.setattr(kind, "create_account", lambda *_, **__: 1 / 0)
    approved(house, visits["carl"], request)
    monkeypatch.setattr(kind, "create_account", real)
    assert approved(house, visits["olga"], request, epsilon="0.1").json()["code"] == "already-decided"
    found = house.call("GET", f"/api/v1/requests/{request}", visits["ana"]).json()
    assert (found["state"], found["decided_by"]) == ("approved", house.people["carl"])
    assert house.service.ledger.account(found["granted"]["account"]).budget == tc.Budget(epsilon=0.5)


def test_an_approval_that_waits_keeps_the_name_of_its_account(house, visits, monkeypatch):
    first, second = (made(house, visits["ana"], {**ALLOTMENT, "epsilon": one}) for one in ("1/2", "1/4"))
    kind, real = type(house.service.ledger), type(house.service.ledger).create_account
    monkeypatch.setattr(kind, "create_account", lambda *_, **__: 1 / 0)
    assert approved(house, visits["carl"], first).status_code == 500
    monkeypatch.setattr(kind, "create_account", real)
    two = approved(house, visits["carl"], second).json()["account"]
    one = approved(house, visits["carl"], first).json()["account"]
    assert (one[-2:], two[-2:]) == ("/1", "/2")
    budgets = [house.service.ledger.account(name).budget.epsilon for name in (one, two)]
    assert budgets == [tc.Budget(0.5).epsilon, tc.Budget(0.25).epsilon]


def test_many_allotments_never_overspend_the_dataset(house, visits):
    ledger = house.service.ledger
    accounts = []
    for _ in range(10):
        request = made(house, visits["ana"], {**ALLOTMENT, "epsilon": "1"})
        accounts.append(approved(house, visits["carl"], request).json()["account"])
    assert len(set(accounts)) == 10
    found = house.call("GET", "/api/v1/datasets/visits", visits["ana"]).json()
    assert found["overbooked"] is True
    spent = 0
    for account in accounts * 2:
        try:
            ledger.charge(account, tc.Cost.pure(0.4))
            spent += 1
        except TacitError as refusal:
            assert refusal.code == "budget-exceeded"
    assert spent == 7  # 2.8 of 3, whoever pays
    shown = house.call("GET", "/api/v1/datasets/visits", visits["ana"]).json()
    assert shown["left"]["exact"]["epsilon"] == "1/5"
    fresh = next(one for one in shown["accounts"] if one["left"]["exact"]["epsilon"] == "1")
    assert fresh["left_to_use"]["exact"]["epsilon"] == "1/5"  # the smaller of the two


def test_an_approved_plan_is_an_account_of_its_exact_cost(house, visits):
    request = made(house, visits["ana"], {
        "kind": "plan", "dataset": "visits", "ask": ASK, "purpose": "one figure", "last_day": LATER,
    })  # fmt: skip
    shown = house.call("GET", f"/api/v1/requests/{request}", visits["carl"]).json()
    assert shown["card"]["price"]["promised"]["epsilon"]["exact"] == "1/4"
    assert "factor" in shown["meaning"]["sentence"]
    assert approved(house, visits["carl"], request, epsilon="0.1").status_code == 400
    name = approved(house, visits["carl"], request).json()["account"]
    row = house.service.database.row("SELECT * FROM accounts WHERE name = ?", name)
    plan = house.service.dataset("visits").dataset.sql(ASK["sql"]).plan(epsilon=0.25)
    assert (row["plan"], row["request"]) == (plan.hash, request)
    account = house.service.ledger.account(name)
    assert account.budget == tc.Budget(epsilon=0.25)
    house.service.ledger.charge(name, plan.cost)
    assert house.service.ledger.remaining(name).epsilon == 0
    from tacit.service.plans import own_account

    ana = house.people["ana"]
    assert own_account(house.service.database, ana, "visits", None, plan.hash)["name"] == name
    assert own_account(house.service.database, ana, "visits", None, "another plan") is None
    with pytest.raises(TacitError, match="not an allotment"):
        own_account(house.service.database, ana, "visits", name, "another plan")


@pytest.mark.parametrize("ask", [{"rho": "1/50"}, {"epsilon": "1", "delta": "1e-6"}, {"epsilon": "1/3"}])
def test_a_plans_account_pays_for_it_exactly_once(house, visits, ask):
    sql = "SELECT hospital, COUNT(*) AS n, AVG(age) AS a FROM visits GROUP BY hospital"
    request = made(house, visits["ana"], {
        "kind": "plan", "dataset": "visits", "ask": {"sql": sql, **ask}, "purpose": "one figure",
    })  # fmt: skip
    if "rho" in ask or "delta" in ask:  # the dataset's own budget is pure: it pays nothing of the kind
        ledger = tc.Ledger.memory()
        ledger.create_account("visits", unit="patient_id", budget=tc.Budget(epsilon=50, delta=1e-3))
    else:
        ledger = house.service.ledger
    from tacit.service.curation._amounts import budget_from, plan_budget
    from tacit.service.plans import plan_of

    plan = plan_of(house.service.dataset("visits").dataset, {"sql": sql, **ask})
    document = json.loads(
        house.service.database.row("SELECT document FROM requests WHERE id = ?", request)["document"]
    )
    assert budget_from(document["budget"]) == plan_budget(plan)
    ledger.create_account("child", parent="visits", budget=plan_budget(plan))
    ledger.charge("child", plan.cost)
    with pytest.raises(TacitError, match="does not fit"):
        ledger.charge("child", plan.cost)


def test_a_plan_of_an_older_policy_is_not_approved(house, visits):
    ask = {"sql": "SELECT AVG(age) AS a FROM visits", "epsilon": "1/4"}
    request = made(house, visits["ana"], {"kind": "plan", "dataset": "visits", "ask": ask, "purpose": "p"})
    policy = {"version": 1, "bounds": {"age": ["0", "100"]}, "limits": {"rows": 5}}
    assert (
        house.call("POST", "/api/v1/datasets/visits/policies", visits["cora"], json=policy).status_code == 201
    )
    before = written(house)
    assert approved(house, visits["carl"], request).json()["code"] == "plan-differs"
    assert written(house) == before


def test_declining_needs_a_reason_and_is_final(house, visits):
    request = made(house, visits["ana"], ALLOTMENT)
    path = f"/api/v1/requests/{request}"
    assert house.call("POST", path + "/decline", visits["carl"], json={"reason": " "}).status_code == 400
    assert (
        house.call("POST", path + "/decline", visits["carl"], json={"reason": "too much"}).status_code == 200
    )
    found = house.call("GET", path, visits["ana"]).json()
    assert (found["state"], found["reason"], found["decided_by"]) == (
        "declined",
        "too much",
        house.people["carl"],
    )
    assert approved(house, visits["olga"], request).json()["code"] == "already-decided"
    assert house.call("POST", path + "/withdraw", visits["ana"]).json()["code"] == "already-decided"


def test_only_the_person_who_asked_withdraws(house, visits):
    request = made(house, visits["ana"], ALLOTMENT)
    path = f"/api/v1/requests/{request}"
    assert house.call("POST", path + "/withdraw", visits["carl"]).status_code == 403
    assert house.call("POST", path + "/withdraw", visits["ben"]).status_code == 404
    assert house.call("POST", path + "/withdraw", visits["ana"]).status_code == 200
    assert approved(house, visits["carl"], request).json()["code"] == "already-decided"


def test_lists_show_what_one_may_see(house, visits):
    first = made(house, visits["ana"], ALLOTMENT)
    second = made(house, visits["ben"], ALLOTMENT)

    def listed(name, query=""):
        found = house.call("GET", f"/api/v1/requests{query}", visits[name]).json()["requests"]
        return {one["request"] for one in found}

    assert listed("ana") == {first}
    assert listed("ben") == {second}
    assert listed("carl") == listed("olga") == listed("cora") == listed("otto") == {first, second}
    assert listed("eve") == listed("ada") == set()
    approved(house, visits["carl"], first)
    assert listed("carl", "?state=open") == {second}
    assert house.call("GET", f"/api/v1/requests/{second}", visits["ana"]).status_code == 404


@pytest.mark.parametrize("kind", ["allotment", "plan"])
@pytest.mark.parametrize("name", ["carl", "olga", "otto", "ada", "eve"])
def test_only_analysts_ask_for_allotments(house, visits, kind, name):
    before = written(house)
    given = (
        ALLOTMENT
        if kind == "allotment"
        else {"kind": "plan", "dataset": "visits", "ask": ASK, "purpose": "p"}
    )
    answer = house.call("POST", "/api/v1/requests", visits[name], json=given)
    assert answer.status_code == (404 if name == "eve" else 403)
    assert written(house) == before


@pytest.mark.parametrize(
    "change",
    [
        {"purpose": ""}, {"epsilon": "0"}, {"epsilon": "-1"}, {"epsilon": None}, {"rho": "1"}, {"delta": "1"},
        {"last_day": "2001-01-01"}, {"last_day": "tomorrow"}, {"kind": "pause"}, {"who": "ben"},
        {"epsilon": "1e999"}, {"epsilon": True}, {"purpose": "x" * 1001},
    ],
)  # fmt: skip
def test_a_bad_request_is_not_written(house, visits, change):
    before = written(house)
    answer = house.call("POST", "/api/v1/requests", visits["ana"], json={**ALLOTMENT, **change})
    assert answer.status_code == 400, answer.text
    assert written(house) == before


@pytest.mark.parametrize("epsilon", ["3", "2"])
def test_a_budget_only_grows(house, visits, epsilon):
    before = written(house)
    answer = house.call("POST", "/api/v1/requests", visits["carl"], json={**GROWTH, "epsilon": epsilon})
    assert answer.status_code == 400
    assert written(house) == before


def test_a_growth_that_another_growth_has_overtaken_stays_open(house, visits):
    small = made(house, visits["carl"], GROWTH)
    large = made(house, visits["carl"], {**GROWTH, "epsilon": "9"})
    assert approved(house, visits["olga"], large).status_code == 200
    head = house.service.ledger.head
    assert approved(house, visits["olga"], small).status_code == 400
    assert house.service.ledger.head == head
    state = house.service.database.row("SELECT state FROM requests WHERE id = ?", small)["state"]
    assert state == "open"


def test_a_decision_that_the_ledger_refuses_is_taken_back(house, visits, monkeypatch):
    request = made(house, visits["carl"], GROWTH)
    before = house.service.database.row("SELECT * FROM requests WHERE id = ?", request)
    monkeypatch.setattr(_requests, "check_larger", lambda *_: None)
    house.service.ledger.grow("visits", tc.Budget(epsilon=9), statement="elsewhere", who="x")
    assert approved(house, visits["olga"], request).status_code == 400
    assert house.service.database.row("SELECT * FROM requests WHERE id = ?", request) == before
    assert house.service.ledger.account("visits").budget == tc.Budget(epsilon=9)


def test_the_ledger_verifies_after_all_of_this(house, visits):
    for document in (GROWTH, REFRESH):
        approved(house, visits["olga"], made(house, visits["carl"], document))
    approved(house, visits["carl"], made(house, visits["ana"], ALLOTMENT))
    assert house.service.ledger.verify().ok


def test_a_list_of_requests_takes_little_time_however_many_others_there_are(house, visits):
    request = made(house, visits["ana"], ALLOTMENT)
    row = house.service.database.row("SELECT * FROM requests WHERE id = ?", request)
    with house.service.database.change() as change:
        for number in range(5000):
            change.run(
                "INSERT INTO requests (id, kind, dataset, asked_by, document, state, created)"
                " VALUES (?, 'allotment', ?, ?, ?, 'declined', ?)",
                f"r_{number:016}", "visits" if number % 2 else "births", house.people["ben"], row["document"],
                f"2030-01-01T00:00:00.{number:06}Z",
            )  # fmt: skip
    took = []
    for _ in range(3):
        for who in ("eve", "ana", "carl"):
            start = time.process_time()
            found = house.call("GET", "/api/v1/requests?state=open", visits[who]).json()["requests"]
            took.append(time.process_time() - start)
            assert [one["request"] for one in found] == ([] if who == "eve" else [request])
    assert min(took) < 0.5
    assert house.call("GET", "/api/v1/requests", visits["eve"]).json()["requests"] == []
    mine = house.call("GET", "/api/v1/requests", visits["ana"]).json()
    assert ([one["request"] for one in mine["requests"]], mine["next"]) == ([request], None)
    house.person("gus", everywhere="analyst", visits="auditor")
    only = house.call("GET", "/api/v1/requests", house.token("gus", dataset="births")).json()
    assert only["requests"] == []
    both = house.call("GET", "/api/v1/requests", house.token("gus")).json()
    assert {one["dataset"] for one in both["requests"]} == {"visits"}
    assert both["next"]


def test_a_person_has_at_most_50_open_requests_for_a_dataset(house, visits):
    requests = [made(house, visits["ana"], ALLOTMENT) for _ in range(50)]
    answer = house.call("POST", "/api/v1/requests", visits["ana"], json=ALLOTMENT)
    assert (answer.status_code, answer.json()["code"]) == (429, "too-many-requests")
    made(house, visits["ben"], ALLOTMENT)
    house.call("POST", f"/api/v1/requests/{requests[0]}/withdraw", visits["ana"])
    made(house, visits["ana"], ALLOTMENT)


def test_whoever_decides_sees_what_approval_would_leave(house, visits):
    def after(request):
        shown = house.call("GET", f"/api/v1/requests/{request}", visits["carl"]).json()
        return shown["before_deciding"]["after"]

    wish = {"kind": "allotment", "dataset": "visits", "purpose": "report", "last_day": LATER}
    small = made(house, visits["ana"], {**wish, "epsilon": "1"})
    large = made(house, visits["ana"], {**wish, "epsilon": "5/2"})
    other = made(house, visits["ana"], {**wish, "rho": "1/10"})
    growth = made(house, visits["carl"], {
        "kind": "growth", "dataset": "visits", "epsilon": "4", "statement": "more years",
    })  # fmt: skip
    assert after(small)["exact"] == {"epsilon": "2"}  # of 3
    assert approved(house, visits["carl"], small).status_code == 200
    assert after(small) is None  # it is decided
    assert after(large)["exact"] == {"epsilon": "-1/2"}
    assert "larger than what is left, by epsilon 0.5" in after(large)["sentence"]
    assert after(growth)["exact"] == {"epsilon": "4"}
    house.service.ledger.charge("visits", tc.Cost.pure(1))
    assert after(growth)["exact"] == {"epsilon": "3"}
    assert after(other) is None  # counted in another number
    page = house.call("GET", f"/requests/{large}", visits["carl"]).text
    assert "After approval:" in page
