"""Datasets: declared once, seen by those with a grant, never with a number of rows."""

import json
from dataclasses import replace

import pytest

from tacit.service._app import all_operations
from unit.service.curation.conftest import DECLARED

TABLES = ("datasets", "policies", "grants", "accounts", "requests", "events")


def everything(house):
    """Return all that a refusal must leave as it was: the rows of the database and the end of the log."""
    return [
        house.service.database.rows(f"SELECT * FROM {name}") for name in TABLES
    ], house.service.ledger.head


def test_a_declared_dataset_can_be_read_by_others(house, visits):
    found = house.call("GET", "/api/v1/datasets/visits", visits["ana"]).json()
    assert (found["unit"], found["unit_noun"], found["adjacency"]) == ("patient_id", "patient", "add/remove")
    assert found["budget"]["exact"] == {"epsilon": "3", "delta": "0", "rho": None}
    assert found["left"]["value"]["epsilon"] == 3.0
    assert found["state"] == "open"
    assert found["answer_after"]["exact"] == "2"
    by_name = {column["name"]: column for column in found["columns"]}
    assert by_name["age"]["bounds"] == ["0", "120"]
    assert by_name["hospital"]["keys"] == ["North", "South"]
    opened = house.service.dataset("visits")
    plan = opened.dataset.sql("SELECT COUNT(*) AS n FROM visits").plan(epsilon=0.5)
    assert plan.promised == {"epsilon": 0.5}


def test_the_creator_owns_the_dataset(house, visits):
    row = house.service.database.row(
        "SELECT role FROM grants WHERE person = ? AND dataset = 'visits'", house.people["cora"]
    )
    assert row == {"role": "owner"}
    assert visits


def test_the_catalogue_lists_only_what_one_has_a_grant_for(house, visits):
    def listed(name):
        return [one["name"] for one in house.call("GET", "/api/v1/datasets", visits[name]).json()["datasets"]]

    assert listed("ana") == ["visits"] == listed("otto")
    assert listed("eve") == []
    assert house.call("GET", "/api/v1/datasets/visits", visits["eve"]).status_code == 404
    assert house.call("GET", "/api/v1/datasets/other", visits["ana"]).status_code == 404
    assert house.call("GET", "/api/v1/datasets").status_code == 401


def test_no_number_of_rows_is_anywhere(house, visits):
    import duckdb

    place = house.service.settings.sources["visits"].place
    rows = str(duckdb.connect().sql(f"SELECT count(*) FROM '{place}'").fetchall()[0][0])
    assert len(rows) > 3
    text = house.call("GET", "/api/v1/datasets/visits", visits["cora"]).text
    text += house.call("GET", "/api/v1/sources/visits/columns", visits["cora"]).text
    assert rows not in text


@pytest.mark.parametrize("name", ["carl", "olga", "ana", "otto", "ada", "eve"])
def test_only_curators_of_the_service_declare(house, people, name):
    before = everything(house)
    answer = house.call("POST", "/api/v1/datasets", people[name], json={**DECLARED, "name": "mine"})
    assert answer.status_code == 403
    assert everything(house) == before


@pytest.mark.parametrize(
    "change",
    [
        {"source": "passwd"},
        {"source": "../visits"},
        {"unit": "nobody"},
        {"bounds": {"age": ["3", "1"]}},
        {"bounds": {"aeg": ["0", "1"]}},
        {"keys": {"hospital": ["A", "A"]}},
        {"limits": {"rowss": 3}},
        {"budget": {"epsilon": "0"}},
        {"budget": {}},
        {"budget": {"epsilon": "1", "rho": "1"}},
        {"parent": "nobody"},
        {"name": "Visits/1"},
        {"lag": 0},
        {"extra": 1},
    ],
)
def test_a_refused_declaration_leaves_nothing(house, people, change):
    before = everything(house)
    answer = house.call("POST", "/api/v1/datasets", people["cora"], json={**DECLARED, **change})
    assert answer.status_code in {400, 422}, answer.text
    assert everything(house) == before
    assert house.service.ledger.accounts() == []


def test_a_name_is_taken_once(house, visits):
    before = everything(house)
    answer = house.call("POST", "/api/v1/datasets", visits["cora"], json=DECLARED)
    assert (answer.status_code, answer.json()["code"]) == (409, "account-differs")
    assert everything(house) == before


def test_somebody_demoted_while_the_runner_checks_declares_nothing(house, people, runner):
    def demote():
        with house.service.database.change() as change:
            change.run("DELETE FROM grants WHERE person = ?", house.people["cora"])

    runner.before = demote
    answer = house.call("POST", "/api/v1/datasets", people["cora"], json=DECLARED)
    assert answer.status_code == 403
    assert house.service.ledger.accounts() == []
    assert house.service.database.rows("SELECT * FROM datasets") == []


def test_a_crash_after_the_account_was_opened_is_repaired_by_declaring_again(house, people, monkeypatch):
    ledger, create = house.service.ledger, type(house.service.ledger).create_account

    def crash(self, *given, **named):
        account = create(self, *given, **named)
        if self is ledger:
            raise RuntimeError("the process ends here")
        return account

    monkeypatch.setattr(type(ledger), "create_account", crash)
    assert house.call("POST", "/api/v1/datasets", people["cora"], json=DECLARED).status_code == 500
    assert [account.name for account in ledger.accounts()] == ["visits"]
    assert house.service.database.rows("SELECT * FROM datasets") == []
    monkeypatch.setattr(type(ledger), "create_account", create)
    assert house.call("POST", "/api/v1/datasets", people["cora"], json=DECLARED).status_code == 201
    assert [account.name for account in ledger.accounts()] == ["visits"]


def test_the_declaration_is_recorded_by_ids_only(house, visits):
    events = house.service.database.rows("SELECT * FROM events")
    assert [(one["person"], one["what"], one["about"]) for one in events] == [
        (house.people["cora"], "dataset-declared", "visits")
    ]
    assert visits


def test_sources_are_listed_by_name_only(house, visits):
    answer = house.call("GET", "/api/v1/sources", visits["cora"])
    assert answer.json() == {"sources": [{"name": "visits", "kind": "table"}]}
    columns = house.call("GET", "/api/v1/sources/visits/columns", visits["cora"]).json()
    assert columns["tables"][0]["columns"][0] == {"name": "patient_id", "kind": "number"}
    assert set(columns["tables"][0]) == {"name", "columns"}
    assert house.call("GET", "/api/v1/sources/passwd/columns", visits["cora"]).status_code == 404
    for name in ("carl", "olga", "ana", "otto", "ada", "eve"):
        assert house.call("GET", "/api/v1/sources", visits[name]).status_code == 403
        assert house.call("GET", "/api/v1/sources/visits/columns", visits[name]).status_code == 403


def test_the_next_policy_says_what_changed(house, visits):
    change = {
        "version": 2, "bounds": {"age": ["0", "110"]},
        "keys": {"hospital": ["North", "South"], "icd": ["C50"]}, "limits": {"rows": 5}, "lag": 6,
    }  # fmt: skip
    answer = house.call("POST", "/api/v1/datasets/visits/policies", visits["carl"], json=change)
    assert answer.status_code == 201, answer.text
    assert answer.headers["location"] == "/api/v1/datasets/visits/policies/2"
    found = house.call("GET", "/api/v1/datasets/visits/policies/2", visits["otto"]).json()
    assert [one["sentence"] for one in found["changes"]] == [
        "description removed: Visits of one year.",
        "version of the data changed from 1 to 2",
        "boundaries until an answer leaves changed from 4 to 6",
        "bounds of age changed from 0 to 120 to 0 to 110",
        "bounds of length_of_stay removed: 0 to 30",
        "keys of icd added: C50",
    ]
    assert house.service.dataset("visits").number == 2
    assert house.service.ledger.account("visits").version == 2
    first = house.call("GET", "/api/v1/datasets/visits/policies/1", visits["otto"]).json()
    assert first["policy"]["bounds"]["age"] == ["0", "120"]
    assert first["changes"] == []
    assert house.call("GET", "/api/v1/datasets/visits/policies/3", visits["otto"]).status_code == 404
    assert house.call("GET", "/api/v1/datasets/visits/policies/x", visits["otto"]).status_code == 404


@pytest.mark.parametrize(
    "change", [{"unit": "row"}, {"budget": {"epsilon": "9"}}, {"name": "x"}, {"adjacency": "replace"}]
)
def test_a_policy_cannot_change_who_is_protected_or_the_budget(house, visits, change):
    before = everything(house)
    answer = house.call("POST", "/api/v1/datasets/visits/policies", visits["cora"], json=change)
    assert answer.status_code == 400
    assert everything(house) == before


@pytest.mark.parametrize("name", ["ana", "otto", "ada", "eve"])
def test_only_curators_write_policies(house, visits, name):
    before = everything(house)
    answer = house.call("POST", "/api/v1/datasets/visits/policies", visits[name], json={"version": 2})
    assert answer.status_code == (404 if name == "eve" else 403)
    assert everything(house) == before
    seen = house.call("GET", "/api/v1/datasets/visits/policies/1", visits[name]).status_code
    assert seen == {"otto": 200, "eve": 404}.get(name, 403)


def test_a_version_never_gets_smaller(house, visits):
    house.call("POST", "/api/v1/datasets/visits/policies", visits["cora"], json={"version": 3})
    before = everything(house)
    answer = house.call("POST", "/api/v1/datasets/visits/policies", visits["cora"], json={"version": 2})
    assert answer.status_code == 400
    assert everything(house) == before


def test_what_the_log_keeps_never_grows(house, visits):
    shape = {"version": 1, "record": "shape"}
    assert (
        house.call("POST", "/api/v1/datasets/visits/policies", visits["cora"], json=shape).status_code == 201
    )
    before = everything(house)
    words = {"version": 1, "record": "words"}
    answer = house.call("POST", "/api/v1/datasets/visits/policies", visits["cora"], json=words)
    assert answer.json()["code"] == "account-differs"
    assert everything(house) == before


def test_two_policies_at_once_do_not_overwrite_each_other(house, visits, runner):
    def other():
        runner.before = None
        with house.service.database.change() as change:
            change.run("UPDATE datasets SET policy = 2 WHERE name = 'visits'")

    runner.before = other
    answer = house.call("POST", "/api/v1/datasets/visits/policies", visits["cora"], json={"version": 2})
    assert answer.json()["code"] == "already-decided"
    assert len(house.service.database.rows("SELECT * FROM policies")) == 1


def test_bounds_may_be_negative_and_exact(house, people):
    given = {**DECLARED, "bounds": {"age": ["-1/3", "0.1"]}}
    assert house.call("POST", "/api/v1/datasets", people["cora"], json=given).status_code == 201
    policy = json.loads(house.service.database.row("SELECT document FROM policies")["document"])
    assert policy["bounds"] == {"age": ["-1/3", "1/10"]}


@pytest.mark.parametrize(
    "odd", ["%00", "%ED%A0%80", "9" * 5000, "%F0%9F%98%80", "..%2F..%2Fetc", "a" * 300, "'--"]
)
def test_odd_addresses_are_not_found(house, visits, odd):
    before = everything(house)
    for path in (
        f"/datasets/{odd}", f"/datasets/visits/policies/{odd}", f"/sources/{odd}/columns", f"/requests/{odd}",
        f"/accounts/visits/{odd}/1", f"/accounts/{odd}/{odd}/{odd}", f"/p/{odd}",
    ):  # fmt: skip
        answer = house.call("GET", f"/api/v1{path}", visits["cora"])
        assert answer.status_code == 404, (path, answer.text)
    assert everything(house) == before


def test_one_person_cannot_open_a_second_budget_for_the_same_data(house, visits, tmp_path):
    """Growing a budget takes two people; a new name for the same source must not get around that."""
    settings = house.service.settings
    listed = settings.sources["visits"]
    link = tmp_path / "link.parquet"
    link.symlink_to(listed.place)
    others = {"alias": listed.place, "link": str(link), "tables": {"stays": str(link)}}
    aliases = {name: replace(listed, name=name, place=place, several=False) for name, place in others.items()}
    only = {"visits": replace(listed, several=False), **aliases}
    house.service.settings = replace(settings, sources=only)
    for source in only:
        body = {**DECLARED, "name": "again", "source": source}
        refused = house.call("POST", "/api/v1/datasets", visits["cora"], json=body)
        assert (refused.status_code, refused.json()["code"]) == (422, "not-allowed"), refused.text
        assert "several = true" in refused.json()["fix"]
    assert house.service.database.row("SELECT name FROM datasets WHERE name = 'again'") is None
    assert "again" not in {account.name for account in house.service.ledger.accounts()}
    body = {**DECLARED, "name": "below", "parent": "visits"}  # paid from the first budget too
    below = house.call("POST", "/api/v1/datasets", visits["cora"], json=body)
    assert below.status_code == 201, below.text


def test_a_dataset_that_does_not_exist_is_not_found_even_by_whoever_may_do_everything(house, visits):
    house.person("all", everywhere="admin owner curator analyst auditor")
    token = house.token("all")
    events = house.service.database.rows("SELECT * FROM events")
    given = {
        "reason": "x", "epsilon": "1", "purpose": "p", "name": "ana", "role": "analyst", "sql": "SELECT 1",
        "person": house.people["all"], "user": house.people["ana"], "release": {}, "through": "2026-01-31",
    }  # fmt: skip
    for operation in all_operations():
        if "{dataset}" not in operation.path or not operation.api:
            continue
        fields = operation.body.model_fields if operation.body else ()
        body = {"json": {name: given[name] for name in given if name in fields}}
        for name in ("nowhere", "%EF%BF%BD"):
            path = operation.path.format(dataset=name, person="u_x", number="1")
            more = body if operation.method == "POST" else {}
            answer = house.call(operation.method, f"/api/v1{path}", token, **more)
            told = (operation.method, path, answer.text)
            assert answer.status_code == 404, told
    assert house.service.database.rows("SELECT * FROM events") == events


def test_a_minimum_of_people_is_declared_shown_changed_and_kept_by_plans(house, people):
    declared = house.call("POST", "/api/v1/datasets", people["cora"], json={**DECLARED, "minimum_people": 8})
    assert declared.status_code == 201, declared.text
    found = house.call("GET", "/api/v1/datasets/visits", people["cora"]).json()
    assert found["minimum_people"] == 8
    sql = "SELECT hospital, COUNT(*) AS n FROM visits GROUP BY hospital"
    plan = house.service.dataset("visits").dataset.sql(sql).plan(epsilon=1)
    assert "by the noisy count" in dict(plan.facts)["minimum"]
    change = {**{name: DECLARED[name] for name in ("bounds", "keys", "limits")}, "version": 1}
    answer = house.call("POST", "/api/v1/datasets/visits/policies", people["cora"], json=change)
    assert answer.status_code == 201, answer.text
    after = house.call("GET", "/api/v1/datasets/visits", people["cora"]).json()
    assert after["minimum_people"] is None
    latest = house.call("GET", "/api/v1/datasets/visits/policies/2", people["cora"]).json()
    assert "fewest people of a line that is shown removed: 8" in json.dumps(latest)
    without = house.service.dataset("visits").dataset.sql(sql).plan(epsilon=1)
    assert "minimum" not in dict(without.facts)
    assert without.hash != plan.hash


@pytest.mark.parametrize("wrong", [0, 1, -8, 1.5, "eight", True])
def test_a_wrong_minimum_of_people_is_refused(house, people, wrong):
    refused = house.call(
        "POST", "/api/v1/datasets", people["cora"], json={**DECLARED, "minimum_people": wrong}
    )
    assert refused.status_code in {400, 422}, refused.text
