"""What holds for every declared question of every field, because the core does it from the declaration."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tacit as tc
from support.asked_questions import BUDGET, DATASETS, QUESTIONS, asked, data_for
from tacit import TacitError
from tacit.core import Question, dataset_kinds, questions_of
from tacit.parameters import Anything, Choice, Integer
from tacit.streams import open_stream

LEARNING = {"examples", "clients"}  # their plans hold code, so no document can rebuild them


@pytest.fixture(scope="module")
def data():
    opened = {}

    def of(kind, name):
        wanted = data_for(kind, name)
        if wanted not in opened:
            opened[wanted] = DATASETS[wanted](tc.Ledger.memory())
        return opened[wanted]

    return of


def test_every_declared_question_is_tried():
    declared = {
        (kind, one.name) for kind in dataset_kinds() if kind not in LEARNING for one in questions_of(kind)
    }
    assert declared == set(QUESTIONS)


@pytest.mark.parametrize(("kind", "name"), QUESTIONS)
def test_a_question_is_planned_sent_rebuilt_and_shown(kind, name, data):
    question, goal = asked(kind, name, data(kind, name))
    assert isinstance(question, Question)
    assert question.kind.name == name
    assert "not planned yet, and nothing was read" in repr(question)
    plan = question.plan(**goal)
    assert question.plan(**goal).hash == plan.hash
    document = json.loads(json.dumps(plan.to_json()))
    again = data(kind, name).plan_from(document)
    assert again == plan
    assert json.loads(json.dumps(again.to_json())) == document
    assert again.cost == plan.cost
    assert plan.forecast or plan.facts
    assert plan.name in repr(plan)


SMALL = {"table": "agg", "points": "grid", "trips": "flows", "cohort": "missingness"}
ALONE = {"graph": "no other field protects single edges", "stream": "runs are drawn day by day"}


def beside(data):
    """Declare data of another field that has the account of this data."""
    other = DATASETS["points" if data.kind == "table" else "table"]
    return other(data._ledger, name=data.name, unit=data.unit, adjacency=data.adjacency)


@pytest.mark.parametrize(("kind", "name"), [one for one in QUESTIONS if one[0] not in ALONE])
def test_a_question_is_in_a_batch_with_one_of_another_field_on_the_same_account(kind, name):
    own = DATASETS[data_for(kind, name)](tc.Ledger.memory())
    other = beside(own)
    question, _ = asked(kind, name, own)
    second, _ = asked(other.kind, SMALL[other.kind], other)
    batch = tc.batch(first=question, second=second).plan(epsilon=2, delta=1e-6)
    document = json.loads(json.dumps(batch.to_json()))
    assert own.plan_from(document, other) == batch == other.plan_from(document, own)
    with pytest.raises(TacitError) as refused:
        own.plan_from(document)
    assert refused.value.code == "plan-differs"
    release, spent = batch.release(), own._ledger.account(own.name).spent
    assert [one.content.kind for one in release] == [
        plan.release().content.kind
        for plan in (question.plan(**QUESTIONS[kind, name][1]), second.plan(rho=1))
    ]
    assert own.budget == BUDGET
    assert spent.rho >= batch.cost.spend.rho
    left = own.remaining
    again = other.plan_from(document, own).release()
    assert again.content.to_json() == release.content.to_json()
    assert own.remaining == left


@pytest.mark.parametrize(("kind", "name"), [one for one in QUESTIONS if one[0] in ALONE])
def test_a_question_that_cannot_be_in_such_a_batch_is_refused_with_the_reason(kind, name, data):
    question, _ = asked(kind, name, data(kind, name))
    table = DATASETS["table"](tc.Ledger.memory())
    with pytest.raises(TacitError) as refused:
        tc.batch(question, table.agg(n=tc.count())).plan(epsilon=2)
    assert refused.value.code == "not-allowed"
    assert refused.value.why
    if kind == "graph":
        with pytest.raises(TacitError, match="edge"):
            beside(data(kind, name))
        both = tc.batch(question, data(kind, name).degree_histogram(largest=2)).plan(epsilon=2)
        assert data(kind, name).plan_from(json.loads(json.dumps(both.to_json()))) == both


def test_datasets_of_all_fields_pay_from_one_account_above_them(tmp_path):
    ledger = tc.Ledger.memory()
    ledger.create_account("city", unit="person", budget=BUDGET)
    shared = {"unit": "person", "parent": "city"}
    for kind in ("table", "points", "trips", "cohort"):
        question, _ = asked(kind, SMALL[kind], DATASETS[kind](ledger, **shared))
        question.plan(epsilon=1).release()
    days = DATASETS["stream"](ledger, level="person", most_days=2, limits={"rows": 1}, **shared)
    days.begin(days.daily(cases=tc.count()).plan(epsilon=1))
    facts = {"start": "2026-01-01", "days": 7, "level": "person", "most_days": 2, "limits": {"rows": 1}}
    tc.stream(tmp_path, name="colds", budget=BUDGET, ledger=ledger, **facts, **shared)
    assert open_stream(tmp_path, ledger=ledger).budget == BUDGET
    people = tc.learn.examples(
        np.zeros((3, 1)), unit="person", owners=[1, 2, 3], size=3, budget=BUDGET, ledger=ledger, parent="city"
    )
    assert people.budget == BUDGET
    assert ledger.account("city").spent.epsilon == 5
    with pytest.raises(TacitError) as refused:
        DATASETS["graph"](ledger, parent="city")
    assert refused.value.code == "account-differs"
    assert "must protect the same unit" in refused.value.why


REBUILD = """
import json, sys, warnings
import tacit as tc
from support.asked_questions import DATASETS
documents = json.load(sys.stdin)
opened = {}
for wanted, document in documents:
    if wanted not in opened:
        opened[wanted] = DATASETS[wanted](tc.Ledger.memory())
    assert opened[wanted].plan_from(document).hash == document["plan"], document["request"]
print(len(documents))
"""


def test_every_plan_is_rebuilt_in_a_fresh_process(data):
    documents = []
    for kind, name in QUESTIONS:
        question, goal = asked(kind, name, data(kind, name))
        documents.append([data_for(kind, name), question.plan(**goal).to_json()])
    tests = str(Path(__file__).parents[1])
    path = os.pathsep.join([tests, *filter(None, [os.environ.get("PYTHONPATH", "")])])
    done = subprocess.run(
        [sys.executable, "-c", REBUILD], input=json.dumps(documents), capture_output=True, text=True,
        check=False, timeout=300, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(len(documents))


SERVED = [
    (kind, one.name)
    for kind in ("table", "graph", "points")
    for one in questions_of(kind)
    if one.served and (kind, one.name) in QUESTIONS
]


@pytest.mark.parametrize(("kind", "name"), SERVED)
def test_a_served_question_has_the_price_in_a_service_that_it_has_in_python(kind, name, data):
    from fractions import Fraction

    from tacit.service._kinds import plan_of_question

    question, _ = asked(kind, name, data(kind, name))
    given = {argument: value for argument, value in question.arguments.items() if value is not None}
    served = plan_of_question(data(kind, name), name, given, {"epsilon": Fraction(1)})
    assert served == question.plan(epsilon=1)


@pytest.mark.parametrize(("kind", "name"), QUESTIONS)
def test_a_bad_argument_is_refused_with_one_code_in_python_and_in_a_service(kind, name, data):
    from tacit.service._kinds import plan_of_question

    question, _ = asked(kind, name, data(kind, name))
    wrong = [{"no_such_argument": 1}]
    for argument in question.kind.arguments:
        if not isinstance(argument.accepts, Anything):
            wrong.append({argument.name: object()})
        if isinstance(argument.accepts, Integer):
            wrong += [{argument.name: value} for value in (argument.accepts.low - 1, 1.5, True, "3")]
        if isinstance(argument.accepts, Choice):
            wrong.append({argument.name: "no such choice"})
    for one in wrong:
        given = {**question.arguments, **one}
        with pytest.raises(TacitError) as refused:
            question.kind.ask(data(kind, name), **given)
        assert refused.value.code == "bad-parameter"
        assert str(refused.value.fix)
        if question.kind.served and kind in {"table", "graph", "points"}:
            with pytest.raises(TacitError) as elsewhere:
                plan_of_question(data(kind, name), name, given, {"epsilon": 1})
            assert elsewhere.value.code == "bad-parameter"


@pytest.mark.parametrize(("kind", "name"), QUESTIONS)
def test_a_goal_that_a_question_does_not_take_is_refused(kind, name, data):
    question, goal = asked(kind, name, data(kind, name))
    for extra in ({"within": 5}, {"size": 100}, {"weights": {"n": 2}}):
        if next(iter(extra)) not in question.kind.takes:
            with pytest.raises(TacitError) as refused:
                question.plan(**{**({} if "within" in extra else goal), **extra})
            assert refused.value.code == "bad-parameter"
    assert eval(f"question.plan({question.kind.example})").cost  # what its text shows as an example
    with pytest.raises(TacitError):
        question.plan()
    with pytest.raises(TacitError):
        question.plan(epsilon=-1)


RISKS = ({"advantage": 0.05}, {"attack": (0.01, 0.02)}, {"belief": (0.01, 0.02)})


def goal_of_risk(risk, goal):
    """Return a risk in the form that a question takes: with its delta, or in rho."""
    in_rho = {"total": "rho"} if "rho" in goal else {}
    exception = {"delta": 1e-6} if "belief" in risk and in_rho else {}
    return {**risk, **in_rho, **exception, **{name: goal[name] for name in ("delta",) if name in goal}}


@pytest.mark.parametrize("risk", RISKS, ids=["advantage", "attack", "belief"])
@pytest.mark.parametrize(("kind", "name"), QUESTIONS)
def test_a_question_is_planned_from_its_risk(kind, name, risk, data):
    question, goal = asked(kind, name, data(kind, name))
    plan = question.plan(**goal_of_risk(risk, goal))
    assert plan.risk.is_met(plan.cost)
    assert "risk of this plan" in repr(plan).replace("\n", " ")
    assert "risk of the account" in repr(plan).replace("\n", " ")
    same = {**{name: goal[name] for name in ("delta",) if name in goal}, **plan.promised}
    ordinary = question.plan(**same)  # the plan of this total: hash, document and stored answer
    assert (ordinary.hash, ordinary.cost) == (plan.hash, plan.cost)
    assert ordinary.to_json() == plan.to_json()
    assert ordinary.risk is None
    assert "risk of this plan" not in repr(ordinary).replace("\n", " ")
    document = json.loads(json.dumps(plan.to_json()))
    assert data(kind, name).plan_from(document) == plan
    total = "rho" if "rho" in plan.promised else "epsilon"
    larger = question.plan(**{**same, total: plan.promised[total] * 2})
    assert not plan.risk.is_met(larger.cost)


@pytest.mark.parametrize(("kind", "name"), QUESTIONS)
def test_a_risk_beside_a_total_and_a_total_in_rho_that_is_not_taken_are_refused(kind, name, data):
    question, goal = asked(kind, name, data(kind, name))
    for wrong in ({**goal, "advantage": 0.05}, {**goal, "total": "epsilon"}, {"advantage": 2}):
        with pytest.raises(TacitError) as refused:
            question.plan(**wrong)
        assert refused.value.code == "bad-parameter"
    if "rho" not in question.kind.takes:
        with pytest.raises(TacitError, match="total must be omitted here"):
            question.plan(advantage=0.05, total="rho")
