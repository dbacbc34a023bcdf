"""Plans: what is part of their identity, what is not, and how a paid one runs."""

from __future__ import annotations

import copy
import json
from fractions import Fraction

import pandas as pd
import pytest

import tacit as tc
from support.asking import visits
from tacit import TacitError
from tacit.core import AnswerTable, Cells, Forecast, Plan, Step, Task
from tacit.core._plan_run import run
from tacit.mechanisms import DiscreteLaplace


@pytest.fixture(scope="module")
def data():
    return visits(types={"admitted": "date"})


QUESTIONS = {
    "count": lambda d: d.agg(n=tc.count()).plan(epsilon=1),
    "everything": lambda d: d.group_by("hospital").agg(
        n=tc.count("age"), u=tc.count_units(), k=tc.count_distinct("icd"), s=tc.sum("length_of_stay"),
        m=tc.mean("length_of_stay"), v=tc.variance("length_of_stay"), sd=tc.std("length_of_stay"),
        q=tc.quantile("length_of_stay", 0.9), md=tc.median("length_of_stay", candidates=range(31)),
        qs=tc.quantiles("length_of_stay", [0.1, 0.9]), lo=tc.min("length_of_stay"),
        hi=tc.max("length_of_stay"), h=tc.histogram("age", [0, 18, 65, 120]),
        top=tc.most_common("icd", 2, ["I10", "E11", "J45"]),
    ).plan(epsilon=2, delta=1e-6, weights={"n": Fraction(1, 3)}),
    "private keys": lambda d: d.group_by("icd").agg(n=tc.count()).plan(epsilon=1, delta=1e-6),
    "rho": lambda d: d.agg(n=tc.count(), m=tc.mean("length_of_stay")).plan(rho=0.1),
    "within": lambda d: d.agg(m=tc.mean("length_of_stay")).plan(within=1, size=10_000, confidence=0.9),
    "where and columns": lambda d: d.where("age >= 65 AND icd LIKE 'I%'")
    .with_columns(nights="LEAST(GREATEST(length_of_stay - 1, 0), 29)")
    .group_by(year="EXTRACT(year FROM admitted)", keys=[2023, 2024])
    .agg(m=tc.mean("nights")).plan(epsilon=1),
    "per unit": lambda d: d.per_unit(n=tc.count(), longest=tc.max("length_of_stay"))
    .agg(m=tc.mean("n"), s=tc.sum("longest")).plan(epsilon=1),
    "sql": lambda d: d.sql(
        "WITH old AS (SELECT * FROM visits WHERE age > 65) SELECT hospital, COUNT(*) AS n, "
        "AVG(length_of_stay) + 1 AS m FROM old GROUP BY hospital HAVING COUNT(*) > 10 ORDER BY n DESC LIMIT 3"
    ).plan(epsilon=1),
}  # fmt: skip


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_kind_of_plan_is_rebuilt_from_its_document_with_the_same_hash(data, name):
    plan = QUESTIONS[name](data)
    document = json.loads(json.dumps(plan.to_json()))
    again = data.plan_from(document)
    assert again.hash == plan.hash == document["plan"]
    assert repr(again) == repr(plan)
    assert again.cost == plan.cost
    assert again.to_json() == plan.to_json()
    assert again.release().content == plan.release().content


def test_joins_travel_too():
    frames = {
        "visits": pd.DataFrame({"pid": [1], "h": ["A"]}),
        "people": pd.DataFrame({"pid": [1], "w": ["u"]}),
    }
    joined = tc.protect(
        frames, unit="pid", name="d", budget=tc.Budget(epsilon=9), keys={"w": ["u", "v"]},
        public={"codes": (pd.DataFrame({"h": ["A"], "beds": [3.0]}), "h")},
        bounds={"beds": (0, 5)},
    )  # fmt: skip
    plan = (
        joined["visits"].join(joined["people"], rows=3).join("codes", "h", how="left").group_by("w")
        .agg(n=tc.count(), b=tc.sum("beds")).plan(epsilon=1)
    )  # fmt: skip
    assert joined.plan_from(json.loads(json.dumps(plan.to_json()))) == plan


def test_plans_of_a_consortium_travel_too():
    members = [
        tc.protect(f"{n}.csv", name=n, unit="pid", budget=tc.Budget(epsilon=9), ledger=tc.Ledger.memory())
        for n in ("north", "south")
    ]
    for disjoint in (True, False):
        both = tc.consortium(members, disjoint=disjoint)
        for epsilon in (1, {"north": 0.5, "south": 1}):
            plan = both.agg(n=tc.count()).plan(epsilon=epsilon)
            assert both.plan_from(json.loads(json.dumps(plan.to_json()))) == plan
    other = tc.consortium(members, disjoint=not disjoint)
    with pytest.raises(TacitError) as refused:
        other.plan_from(plan.to_json())
    assert refused.value.code == "plan-differs"


def nested(depth):
    found = []
    for _ in range(depth):
        found = [found]
    return found


def spoilt(document, name, value):
    """Return a document with one field of its question changed, and the hash that such a plan would have."""
    changed = copy.deepcopy(document)
    inner = changed["request"]["question"]
    target = inner if name in inner else inner["input"]
    target[name] = value
    return changed


@pytest.mark.parametrize(
    "spoil",
    [
        lambda d: {**d, "schema": "tacit/plan/9"},
        lambda d: {**d, "dataset": {**d["dataset"], "version": 2}},
        lambda d: {**d, "plan": "0" * 64},
        lambda d: {**d, "request": None},
        lambda d: {**d, "request": {**d["request"], "goal": {**d["request"]["goal"], "epsilon": "2"}}},
        lambda d: {**d, "request": {**d["request"], "question": {"node": "Popen"}}},
        lambda d: {**d, "request": {**d["request"], "question": {"node": "TableQuestion", "input": 3}}},
        lambda d: {**d, "request": {**d["request"], "question": ["x"]}},
        lambda d: spoilt(d, "rows", 50),
        lambda d: spoilt(d, "rows", None),
        lambda d: spoilt(d, "rows", "1 UNION SELECT 2"),
        lambda d: spoilt(d, "groups", "3; DROP TABLE x"),
        lambda d: spoilt(d, "per_group", -1),
        lambda d: spoilt(d, "table", {"table": "nowhere"}),
        lambda d: spoilt(d, "keys", nested(5000)),
        lambda d: spoilt(d, "keys", {"number": "0x1p99999"}),
        lambda d: {
            **d,
            "request": {**d["request"], "goal": {**d["request"]["goal"], "epsilon": "1e999999999"}},
        },
        lambda _: [],
        lambda _: None,
    ],
)
def test_a_document_that_was_changed_is_refused(data, spoil):
    plan = data.agg(n=tc.count()).plan(epsilon=1)
    with pytest.raises(TacitError) as refused:
        data.plan_from(spoil(json.loads(json.dumps(plan.to_json()))))
    assert refused.value.code == "plan-differs"


def test_names_and_display_choices_are_not_part_of_the_identity(data):
    plain = data.group_by("hospital").agg(n=tc.count(), m=tc.mean("length_of_stay")).plan(epsilon=1)
    turned = data.group_by("hospital").agg(stay=tc.mean("length_of_stay"), visits=tc.count()).plan(epsilon=1)
    shown = data.sql(
        "SELECT hospital AS place, AVG(length_of_stay) AS a, COUNT(*) AS b FROM visits GROUP BY hospital "
        "ORDER BY b LIMIT 2"
    ).plan(epsilon=1)
    assert plain.hash == turned.hash == shown.hash
    one, two, three = plain.release(), turned.release(), shown.release()
    assert one["n"] == two["visits"]
    assert one["m"] == two["stay"]
    assert set(three["a"].value) <= set(one["m"].value)
    assert list(three.keys) == ["place"]


@pytest.mark.parametrize(
    "other",
    [
        lambda d: d.agg(n=tc.count()).plan(epsilon=2),
        lambda d: d.agg(n=tc.count("age")).plan(epsilon=1),
        lambda d: d.where("age > 3").agg(n=tc.count()).plan(epsilon=1),
        lambda d: d.agg(n=tc.count_units()).plan(epsilon=1),
        lambda d: d.group_by("hospital").agg(n=tc.count()).plan(epsilon=1),
        lambda d: d.group_by("hospital", keys=["Ahorn"]).agg(n=tc.count()).plan(epsilon=1),
        lambda d: d.limit(per_group=1).agg(n=tc.count()).plan(epsilon=1),
        lambda d: d.agg(n=tc.count(), m=tc.mean("length_of_stay")).plan(epsilon=1),
    ],
)
def test_another_question_is_another_plan(data, other):
    assert other(data) != data.agg(n=tc.count()).plan(epsilon=1)


def two_counts(second=lambda rows, _: 3):
    """Return a task with two mechanisms of equal noise."""
    noise = DiscreteLaplace(epsilon=1, sensitivity=1)

    def read(noisy, confidence):
        return AnswerTable({}, {"n": Cells(tuple(noisy), (None,) * 2, (None,) * 2)}, float(confidence))

    steps = (Step(noise, lambda *_: 3), Step(noise, second))
    return Task(document="odd", open=lambda _: None, steps=steps, reading=read)


def test_a_step_without_integers_releases_nothing(data):
    with pytest.raises(TacitError) as failed:
        Plan.of(data, two_counts(lambda *_: None), promised={"epsilon": Fraction(2)}).release()
    assert failed.value.code == "release-failed"


def test_what_people_read_of_a_plan_is_worked_out_only_for_them(data):
    called = []

    def forecast():
        called.append("forecast")
        return [Forecast("n", "two counts", "noise", 3.0)]

    def facts():
        called.append("facts")
        return [("limits", "none")]

    plan = Plan.of(
        data,
        two_counts(),
        promised={"epsilon": Fraction(2)},
        forecast=forecast,
        facts=facts,
        asked="two counts",
    )
    assert plan.release().certificate.fields["plan"] == plan.hash
    assert not called
    assert "two counts" in repr(plan)
    assert set(called) == {"forecast", "facts"}
    assert plan.forecast == (Forecast("n", "two counts", "noise", 3.0),)
    assert plan.facts == (("limits", "none"),)


def test_a_task_gets_back_what_was_released():
    seen = []

    def second(_rows, noisy):
        seen.extend(noisy)
        return [noisy[0], 0]

    noisy = json.loads(run(two_counts(second)))["noisy"]
    assert noisy[:1] == seen[:1]
    assert len(noisy[1]) == 2


def test_engine_task_and_ledger_are_not_public_attributes(data):
    plan = data.agg(n=tc.count()).plan(epsilon=1)
    query = data.agg(n=tc.count())
    for thing in (data, plan, query, data["visits"], plan.release()):
        public = {name for name in dir(thing) if not name.startswith("_")}
        assert not public & {"engine", "home", "task", "ledger", "rows_of", "integers"}


def test_a_column_cannot_pass_for_a_pair_of_columns():
    with pytest.raises(TacitError, match="without ' per ' in its name"):
        tc.Unit("patient_id per day")
    assert str(tc.Unit("patient_id", per="day")) == "patient_id per day"
