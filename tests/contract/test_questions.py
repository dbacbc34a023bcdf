"""What holds for every declared question of every field, because the core does it from the declaration."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tacit as tc
from asked_questions import DATASETS, ELSEWHERE, QUESTIONS, asked
from tacit import TacitError
from tacit.core import Question, dataset_kinds, questions_of
from tacit.parameters import Anything, Choice, Integer

LEARNING = {"examples", "clients"}  # their plans hold code, so no document can rebuild them


@pytest.fixture(scope="module")
def data():
    opened = {}

    def of(kind):
        if kind not in opened:
            opened[kind] = DATASETS[kind](tc.Ledger.memory())
        return opened[kind]

    return of


def test_every_declared_question_is_tried_here_or_elsewhere():
    declared = {
        (kind, one.name) for kind in dataset_kinds() if kind not in LEARNING for one in questions_of(kind)
    }
    assert declared == set(QUESTIONS) | set(ELSEWHERE)


@pytest.mark.parametrize(("kind", "name"), QUESTIONS)
def test_a_question_is_planned_sent_rebuilt_and_shown(kind, name, data):
    question, goal = asked(kind, name, data(kind))
    assert isinstance(question, Question)
    assert question.kind.name == name
    assert "not planned yet, and nothing was read" in repr(question)
    plan = question.plan(**goal)
    assert question.plan(**goal).hash == plan.hash
    document = json.loads(json.dumps(plan.to_json()))
    again = data(kind).plan_from(document)
    assert again == plan
    assert json.loads(json.dumps(again.to_json())) == document
    assert again.cost == plan.cost
    assert plan.forecast or plan.facts
    assert plan.name in repr(plan)


@pytest.mark.parametrize(("kind", "name"), [one for one in QUESTIONS if one[0] != "stream"])
def test_a_question_is_in_a_batch_with_another_of_the_same_account(kind, name, data):
    question, goal = asked(kind, name, data(kind))
    other = {"table": "suggest_limits", "graph": "edges", "points": "grid", "cohort": "missingness"}.get(
        kind, name
    )
    second, _ = asked(kind, other, data(kind))
    total = {one: 2 * value if one != "delta" else value for one, value in goal.items()}
    if "rho" in total and "rho" not in second.kind.takes:
        total = {"epsilon": 2}
    if "epsilon" in total and kind == "cohort":
        total = {"rho": 2}
    batch = tc.batch(first=question, second=second).plan(**total)
    assert data(kind).plan_from(json.loads(json.dumps(batch.to_json()))) == batch


REBUILD = """
import json, sys, warnings
import tacit as tc
from asked_questions import DATASETS
documents = json.load(sys.stdin)
opened = {}
for kind, document in documents:
    if kind not in opened:
        opened[kind] = DATASETS[kind](tc.Ledger.memory())
    assert opened[kind].plan_from(document).hash == document["plan"], document["request"]
print(len(documents))
"""


def test_every_plan_is_rebuilt_in_a_fresh_process(data):
    documents = []
    for kind, name in QUESTIONS:
        question, goal = asked(kind, name, data(kind))
        documents.append([kind, question.plan(**goal).to_json()])
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

    question, _ = asked(kind, name, data(kind))
    given = {argument: value for argument, value in question.arguments.items() if value is not None}
    served = plan_of_question(data(kind), name, given, {"epsilon": Fraction(1)})
    assert served == question.plan(epsilon=1)


@pytest.mark.parametrize(("kind", "name"), QUESTIONS)
def test_a_bad_argument_is_refused_with_one_code_in_python_and_in_a_service(kind, name, data):
    from tacit.service._kinds import plan_of_question

    question, _ = asked(kind, name, data(kind))
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
            question.kind.ask(data(kind), **given)
        assert refused.value.code == "bad-parameter"
        assert str(refused.value.fix)
        if question.kind.served and kind in {"table", "graph", "points"}:
            with pytest.raises(TacitError) as elsewhere:
                plan_of_question(data(kind), name, given, {"epsilon": 1})
            assert elsewhere.value.code == "bad-parameter"


@pytest.mark.parametrize(("kind", "name"), QUESTIONS)
def test_a_goal_that_a_question_does_not_take_is_refused(kind, name, data):
    question, goal = asked(kind, name, data(kind))
    for extra in ({"within": 5}, {"size": 100}, {"weights": {"n": 2}}):
        if next(iter(extra)) not in question.kind.takes:
            with pytest.raises(TacitError) as refused:
                question.plan(**{**({} if "within" in extra else goal), **extra})
            assert refused.value.code == "bad-parameter"
    with pytest.raises(TacitError):
        question.plan()
    with pytest.raises(TacitError):
        question.plan(epsilon=-1)
