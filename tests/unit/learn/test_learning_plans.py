"""Plans of learning as text and as documents: what they say, and what cannot be rebuilt from them."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import tacit as tc

sklearn_linear = pytest.importorskip("sklearn.linear_model")


def examples():
    labels = np.arange(40) % 2
    return tc.learn.examples(
        np.linspace(-1, 1, 40).reshape(-1, 1).astype(np.float32), labels, unit=tc.Unit.row(), size=40,
        budget=tc.Budget(epsilon=1, delta=1e-6), name="patients",
    )  # fmt: skip


def training(data):
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    model = torch.nn.Linear(1, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return tc.learn.Trainer(
        model, torch.nn.CrossEntropyLoss(), optimizer, data=data, batch=10, steps=2, epsilon=1, delta=1e-6
    ).plan()


def labels(data):
    teachers = tc.learn.Teachers(
        sklearn_linear.LogisticRegression(), data=data, teachers=10, classes=[0, 1]
    )  # fmt: skip
    return teachers.label([[0.5], [-0.5]]).plan(epsilon=1, delta=1e-6)


@pytest.mark.parametrize("planned", [training, labels])
def test_a_plan_that_no_document_can_hold_is_refused_with_the_reason(planned):
    data = examples()
    document = json.loads(json.dumps(planned(data).to_json()))
    with pytest.raises(tc.TacitError, match="cannot be rebuilt from a document") as refused:
        data.plan_from(document)
    assert refused.value.code == "plan-differs"


def test_a_plan_without_columns_shows_no_empty_table():
    plan = replace(training(examples()), _forecast=())
    assert str(plan).startswith("plan for patients: epsilon 1, delta 1e-06\n")
    assert "+/-" not in str(plan)
    assert "<table>" not in plan._repr_html_()


@pytest.mark.parametrize("planned", [training, labels])
def test_one_plan_may_take_the_whole_budget(planned):
    data = examples()
    plan = planned(data)
    assert "left afterwards: nothing of epsilon 1" in " ".join(str(plan).split())
    plan.release()
    assert str(data.remaining) == "nothing of epsilon 1"
    with pytest.raises(tc.TacitError, match="nothing of epsilon 1"):
        tc.learn.Teachers(
            sklearn_linear.LogisticRegression(), data=data, teachers=8, classes=[0, 1]
        ).label([[0.1]]).plan(epsilon=0.1, delta=1e-9).release()  # fmt: skip
