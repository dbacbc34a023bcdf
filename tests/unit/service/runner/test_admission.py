"""Admission: how much work a boundary takes on, for one question, for one person and in all."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

import tacit as tc
from tacit.errors import TacitError
from tacit.service import ServiceSettings
from tacit.service.runner import boundary_after
from tacit.service.runner._admission import WorkLimits, work_of
from unit.service.runner.conftest import DECLARED

MEDIANS = ", ".join(f"MEDIAN(age + {i}) AS m{i}" for i in range(64))
HEAVY = f"SELECT hospital, {MEDIANS} FROM visits GROUP BY hospital"


TRIMS = " OR ".join(f"TRIM(hospital) = 'H{i}'" for i in range(24))
TRIMMED = f"SELECT COUNT(*) AS n FROM visits WHERE {TRIMS}"


def counts(number: int) -> str:
    return f"SELECT COUNT(*) AS n FROM visits WHERE age > {number}"


@pytest.fixture
def settings(settings: ServiceSettings, request: pytest.FixtureRequest) -> ServiceSettings:
    return replace(settings, **getattr(request, "param", {}))


@pytest.mark.parametrize("heavy", [HEAVY, TRIMMED], ids=["columns", "expressions"])
def test_a_question_that_is_too_much_work_is_refused_before_the_charge(ward: Any, heavy: str) -> None:
    before = ward.service.ledger.head
    for number in range(2):
        answer = ward.ask(sql=heavy, epsilon=f"0.0000{number + 1}")
        assert (answer.status_code, answer.json()["code"]) == (422, "question-too-large"), answer.text
    ward.drawing.admit()
    assert ward.service.ledger.head == before
    assert ward.get("/datasets/visits").json()["paused"] == ""
    assert ward.ask("ben").status_code == 202


def test_the_card_of_such_a_question_says_it_and_the_fix_works(ward: Any) -> None:
    asked = {"dataset": "visits", "sql": HEAVY, "epsilon": "1/2"}
    answer = ward.call("POST", "/api/v1/plans", ward.tokens["ana"], json=asked)
    assert (answer.status_code, answer.json()["code"]) == (422, "question-too-large")
    lag = int(answer.json()["fix"].rpartition(" ")[2])
    raised = {"lag": lag, "bounds": DECLARED["bounds"], "keys": DECLARED["keys"], "version": 1}
    changed = ward.call("POST", "/api/v1/datasets/visits/policies", ward.tokens["cem"], json=raised)
    assert changed.status_code == 201, changed.text
    assert ward.call("POST", "/api/v1/plans", ward.tokens["ana"], json=asked).status_code == 200
    assert ward.ask(sql=HEAVY).status_code == 202


@pytest.mark.parametrize("settings", [{"work": 40}], indirect=True)
def test_a_waiting_question_that_a_smaller_lag_makes_too_large_is_refused_before_the_charge(
    ward: Any,
) -> None:
    sevenfold = f"SELECT {', '.join(f'SUM(age + {i}) AS s{i}' for i in range(7))} FROM visits"
    refusal = ward.ask(sql=sevenfold).json()
    assert refusal["code"] == "question-too-large"
    policy = {"bounds": DECLARED["bounds"], "keys": DECLARED["keys"]}

    def set_lag(lag: int) -> None:
        path = "/api/v1/datasets/visits/policies"
        changed = ward.call("POST", path, ward.tokens["cora"], json={**policy, "lag": lag})
        assert changed.status_code == 201, changed.text

    set_lag(1000)
    asked = ward.ask(sql=sevenfold)
    assert asked.status_code == 202, asked.text
    light = ward.ask("ben").json()["query"]
    set_lag(4)
    flights = [*ward.drawing.admit(), *ward.drawing.admit()]
    assert [flight.query for flight in flights] == [light]
    shown = ward.get(f"/queries/{asked.json()['query']}").json()
    assert (shown["state"], shown["done"]) == ("refused", True)
    assert {**shown["problem"], "request": ""} == {**refusal, "request": ""}
    ward.drawing.land()
    assert str(ward.service.ledger.remaining(ward.accounts["ana"])) == "epsilon 2 of 2"
    assert ward.get(f"/queries/{light}", "ben").json()["state"] == "finished"
    assert ward.get("/datasets/visits").json()["paused"] == ""


@pytest.mark.parametrize("settings", [{"work": 40}], indirect=True)
def test_one_person_has_a_share_of_a_boundary_and_leaves_room_for_others(ward: Any) -> None:
    for number in range(20):
        assert ward.ask("ana", sql=counts(number), epsilon="0.01").status_code == 202
    assert ward.ask("ben", sql=counts(99), epsilon="0.01").status_code == 202
    admitted = [flight.person for flight in ward.drawing.admit()]
    assert admitted.count(ward.people["ben"]) == 1
    assert admitted.count(ward.people["ana"]) == 4  # of 5 ms each; the share is 22.5 ms


@pytest.mark.parametrize("settings", [{"work": 20, "share": Fraction(1)}], indirect=True)
def test_whoever_was_admitted_longest_ago_comes_first(ward: Any) -> None:
    for number in range(8):
        ward.ask("ana", sql=counts(number), epsilon="0.01")
    assert {flight.person for flight in ward.drawing.admit()} == {ward.people["ana"]}
    ward.ask("ben", sql=counts(99), epsilon="0.01")
    assert ward.drawing.admit() == []  # there is no room until answers leave
    ward.drawing.land()
    assert next(iter(ward.drawing.runner._flights.values())).person == ward.people["ben"]


def test_the_estimate_grows_with_columns_groups_and_cells() -> None:
    visits = tc.protect(
        tc.tables.example_visits(), name="visits", unit="patient_id", budget=tc.Budget(epsilon=9, delta=1e-3),
        bounds={"age": (0, 120)}, keys={"hospital": tc.tables.EXAMPLE_HOSPITALS, "age": list(range(100))},
        ledger=tc.Ledger.memory(),
    )  # fmt: skip

    def work(sql: str) -> int:
        return work_of(visits.sql(sql).plan(epsilon=1))

    one = work("SELECT AVG(age) AS a FROM visits")
    assert one < work("SELECT age, AVG(age) AS a FROM visits GROUP BY age")
    assert one < work("SELECT MEDIAN(age) AS a FROM visits") < work(HEAVY)
    assert work("SELECT AVG(age) AS a, AVG(age + 1) AS b FROM visits") > 1.5 * one
    plain = work("SELECT COUNT(*) AS n FROM visits")
    assert plain < work(counts(3) + " AND age < 90")
    assert work("SELECT COUNT(*) AS n FROM visits WHERE UPPER(hospital) = 'A'") > 4 * plain
    assert work("SELECT COUNT(*) AS n FROM visits a JOIN visits b ON a.patient_id = b.patient_id") > 4 * plain
    constants = ", ".join(map(str, range(2_000)))
    assert work(f"SELECT COUNT(*) AS n FROM visits WHERE age IN ({constants})") > 10 * plain
    assert work_of(visits.prefixes("age", bins=100).plan(epsilon=1)) > 8 * plain
    assert work_of(visits.synthesize(columns=["hospital"]).plan(epsilon=1, delta=1e-6)) > 40 * plain
    tables = visits.crosstabs(["hospital", "age"], bins={"age": 100}).plan(epsilon=1)
    friends = tc.graph([("ana", "ben")], unit="edge", nodes=3, degree_bound=2, budget=tc.Budget(epsilon=1))
    assert work_of(friends.triangles().plan(epsilon=1)) > 20 * plain
    batch = tc.batch(a=visits.agg(n=tc.count()), b=visits.agg(m=tc.median("age"))).plan(epsilon=1)
    assert work_of(tables) > 20
    assert work_of(batch) > work("SELECT MEDIAN(age) AS a FROM visits")


def test_a_search_for_bounds_counts_a_pass_for_every_range_that_it_may_find() -> None:
    def work(groups: int, **aggregates: Any) -> int:
        visits = tc.protect(
            tc.tables.example_visits(), name="visits", unit="patient_id", limits={"rows": 2},
            keys={"age": list(range(groups))},
            budget=tc.Budget(epsilon=9), ledger=tc.Ledger.memory(),
        )  # fmt: skip
        return work_of(visits.group_by("age").agg(**aggregates).plan(epsilon=1))

    days = tc.col("length_of_stay")
    for groups in (10, 100, 400):
        total = {"a": tc.sum(days, bounds="auto")}
        mean = {"a": tc.mean(days, bounds="auto")}
        median = {"a": tc.median(days, bounds="auto")}
        known = work(groups, a=tc.median(days, bounds=(0, 30)))
        assert work(groups, **total) < work(groups, **mean) < work(groups, **median)
        assert work(groups, **median) > known + 20 * groups  # a narrowing and a choice on each range
        assert work(groups, **mean) > work(groups, a=tc.mean(days, bounds=(0, 30))) + 6 * groups
        thrice = {**median, "b": tc.median(days * 3, bounds="auto")}
        assert work(groups, **thrice) > 1.9 * work(groups, **median)
        two = tc.quantiles(days, [0.2, 0.4], bounds="auto")
        assert work(groups, a=two) < 1.3 * work(groups, a=tc.quantiles(days, [0.2], bounds="auto"))
    assert work(1_001, a=tc.sum(days, bounds="auto")) < work(1_000, a=tc.sum(days, bounds="auto"))


@pytest.mark.parametrize(
    ("groups", "median", "milliseconds"),
    [
        (30, False, 198), (30, True, 275), (100, False, 373), (100, True, 588), (400, False, 1_020),
        (400, True, 2_062),
    ],
)  # fmt: skip
def test_the_estimate_of_a_search_for_bounds_is_not_below_what_was_measured(
    groups: int, median: bool, milliseconds: int
) -> None:
    """The processor time that plans took on 60 rows a group, with 30 to 92 different ranges."""
    visits = tc.protect(
        tc.tables.example_visits(), name="visits", unit="patient_id", limits={"rows": 2},
        keys={"age": list(range(groups))}, budget=tc.Budget(epsilon=9), ledger=tc.Ledger.memory(),
    )  # fmt: skip
    asked = (tc.median if median else tc.mean)("length_of_stay", bounds="auto")
    assert work_of(visits.group_by("age").agg(a=asked).plan(epsilon=1)) >= milliseconds


@pytest.mark.parametrize("statement", ["AVG(age)", "SUM(age)"])
def test_usual_searches_for_bounds_are_admitted(ward: Any, statement: str) -> None:
    asked = {"dataset": "visits", "sql": f"SELECT hospital, {statement} AS a FROM visits GROUP BY hospital"}
    body = {**asked, "epsilon": "1/2", "bounds": {"age": "auto"}}
    answer = ward.call("POST", "/api/v1/plans", ward.tokens["ana"], json=body)
    assert answer.status_code == 200, answer.text


def test_a_search_for_many_bounds_is_refused_before_the_charge(ward: Any) -> None:
    medians = ", ".join(f"MEDIAN(age + {i}) AS m{i}" for i in range(4))
    sql = f"SELECT hospital, {medians} FROM visits GROUP BY hospital"
    body = {"dataset": "visits", "sql": sql, "epsilon": "1/2"}
    assert ward.call("POST", "/api/v1/plans", ward.tokens["ana"], json=body).status_code == 200
    before = ward.service.ledger.head
    answer = ward.ask(sql=sql, epsilon="1/2", bounds={"age": "auto"})
    assert ward.service.ledger.head == before
    assert (answer.status_code, answer.json()["code"]) == (422, "question-too-large"), answer.text


def joined(number: int) -> str:
    return f"SELECT COUNT(*) AS n FROM visits WHERE {'||'.join(['hospital'] * number)} = 'q'"


def doubled(levels: int) -> str:
    inner = "(SELECT patient_id, hospital || hospital AS hospital FROM "
    return f"SELECT COUNT(*) AS n FROM {inner * levels}visits{')' * levels} WHERE hospital = 'q'"


def kept(levels: int) -> str:
    inner = "(SELECT DISTINCT patient_id, age FROM "
    return f"SELECT COUNT(*) AS n FROM {inner * levels}visits{')' * levels}"


def casts(number: int) -> str:
    return f"SELECT COUNT(*) AS n FROM visits WHERE {' OR '.join(['CAST(icd AS INTEGER) = 1'] * number)}"


def values(number: int) -> str:
    return f"SELECT {', '.join(f'COUNT(DISTINCT age + {i}) AS c{i}' for i in range(number))} FROM visits"


@pytest.mark.parametrize("sql", [joined(140), doubled(10), kept(80), casts(500), values(60)])
def test_long_expressions_and_deep_subqueries_are_work(ward: Any, sql: str) -> None:
    """Each of these takes half a second or more of the 1.125 seconds that a draw may compute."""
    before = ward.service.ledger.head
    answer = ward.ask(sql=sql, epsilon="0.001")
    assert (answer.status_code, answer.json()["code"]) == (422, "question-too-large"), answer.text
    assert ward.service.ledger.head == before


@pytest.mark.parametrize("sql", [joined(3), doubled(1), kept(2), casts(5), values(3)])
def test_usual_expressions_and_subqueries_are_little_work(ward: Any, sql: str) -> None:
    assert ward.ask(sql=sql, epsilon="0.001").status_code == 202


def test_the_limits_grow_with_the_time_that_a_draw_may_compute() -> None:
    settings = ServiceSettings()
    assert WorkLimits.of(settings, 40).total > 10 * WorkLimits.of(settings, 4).total
    assert ServiceSettings.read(None, {"TACIT_SERVICE_SHARE": "1/4"}).share == Fraction(1, 4)
    with pytest.raises(TacitError, match="at most 1"):
        ServiceSettings.read(None, {"TACIT_SERVICE_SHARE": "3/2"})


def test_a_clock_that_is_set_back_stops_no_questions(ward: Any, caplog: pytest.LogCaptureFixture) -> None:
    drawing = ward.drawing
    drawing.ready()
    drawing.move(drawing.clock.time)
    drawing.clock.time -= 3600
    assert ward.ask().status_code == 202
    for _ in range(2):
        with drawing.lock:
            tick = float(drawing.tick)
            drawing._move(boundary_after(drawing.clock.time, drawing.tick) * tick)
    assert len(drawing.runner._flights) == 1
    assert "the clock was set back" in caplog.text
    drawing.land()
    assert ward.get("/queries").json()["queries"][0]["state"] == "finished"
