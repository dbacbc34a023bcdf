"""Advice in plans: found by planning again with one public fact changed, never from data."""

import re

import pandas as pd
import pytest

import tacit as tc
from tacit.core import plan_text
from tacit.ledger import Ledger
from tacit.tables import open_facts

ONE_ROW_EACH = pd.DataFrame({"patient": range(40), "stay": [7.0] * 40, "ward": ["A", "B"] * 20})
MANY_ROWS = pd.DataFrame({"patient": [1] * 40, "stay": [7.0] * 40, "ward": ["A", "B"] * 20})


def declared(data=ONE_ROW_EACH, **facts):
    facts = {"unit": "patient", "bounds": {"stay": (0, 60)}, "keys": {"ward": ["A", "B"]}, **facts}
    budget = tc.Budget(epsilon=9, delta=1e-6)
    return tc.protect(data, name="visits", budget=budget, ledger=Ledger.memory(), **facts)


def advice(plan):
    return [text for label, text in plan.facts if label == "advice"]


def error(plan):
    return float(plan.forecast[0].error)


def asked(dataset):
    return dataset.agg(n=tc.count())


def test_a_default_limit_is_compared_with_one_row_and_the_ratio_is_that_of_the_errors():
    plan, narrow = asked(declared()).plan(epsilon=0.5), asked(declared(limits={"rows": 1})).plan(epsilon=0.5)
    [text] = advice(plan)
    ratio = float(re.search(r"the error is ([\d.]+) times smaller", text)[1])
    assert ratio == pytest.approx(error(plan) / error(narrow), rel=0.05)
    assert "if no patient has two rows, and otherwise drops the other rows" in text


def test_a_mean_is_compared_without_a_size_as_with_every_size():
    question = declared().agg(stay=tc.mean("stay"))
    narrow = declared(limits={"rows": 1}).agg(stay=tc.mean("stay"))
    expected = error(question.plan(epsilon=0.5, size=10**6)) / error(narrow.plan(epsilon=0.5, size=10**6))
    for plan in (question.plan(epsilon=0.5), question.plan(epsilon=0.5, size=20)):
        assert f"{expected:.2g} times smaller" in advice(plan)[0]


def test_an_error_that_is_wanted_is_compared_by_its_price():
    plan, narrow = asked(declared()).plan(within=20), asked(declared(limits={"rows": 1})).plan(within=20)
    ratio = float(plan.promised["epsilon"] / narrow.promised["epsilon"])
    assert f"the same error costs {ratio:.0f} times less epsilon" in advice(plan)[0]


@pytest.mark.parametrize(
    "question",
    [
        asked(declared(limits={"rows": 10})),
        asked(declared().limit(rows=3)),
        declared().sql("SELECT COUNT(*) AS n FROM visits", limits={"rows": 10}),
        asked(declared(unit=tc.Unit.row())),
        declared().per_unit(visits=tc.count()).agg(often=tc.mean("visits", bounds=(0, 10))),
    ],
    ids=["chosen with the data", "chosen by the question", "chosen in SQL", "rows", "within a unit"],
)
def test_a_limit_that_somebody_chose_or_that_the_question_counts_is_not_advised_on(question):
    assert advice(question.plan(epsilon=0.5)) == []


def test_what_is_not_worth_one_and_a_half_times_is_not_said():
    plan = declared(limits={"rows": 1}).where("stay >= 10").agg(stay=tc.mean("stay")).plan(epsilon=0.5)
    assert advice(plan) == []  # 60 / 50 of the error
    plan = declared(limits={"rows": 1}).where("stay >= 30").agg(stay=tc.mean("stay")).plan(epsilon=0.5)
    assert advice(plan) == [
        (
            "the condition leaves only values of stay from 30 to 60; if the question gives this range for "
            "stay, the error is 2 times smaller"
        )
    ]


def test_each_table_of_a_join_is_advised_on_alone():
    people = pd.DataFrame({"patient": range(40), "age": [50] * 40})
    data = declared({"visits": ONE_ROW_EACH, "people": people})
    plan = data["visits"].join(data["people"]).agg(n=tc.count()).plan(epsilon=0.5)
    texts = advice(plan)
    assert [re.search(r"rows=1 in (\w+)", text)[1] for text in texts] == ["people", "visits"]
    assert all("the error is 10 times smaller" in text for text in texts)


def test_counts_on_axes_are_advised_on_too():
    data = declared()
    for question in (data.crosstabs(["ward"]), data.ranges("stay", bins=4), data.prefixes("stay", bins=4)):
        assert "the noise is 10 times smaller" in advice(question.plan(epsilon=0.5))[0]


def test_advice_is_the_same_for_all_data_and_for_none():
    question = "SELECT ward, AVG(stay) AS stay FROM visits WHERE stay < 20 GROUP BY ward"
    datasets = [declared(), declared(MANY_ROWS)]
    datasets.append(open_facts(datasets[0].public_facts(), datasets[0]._ledger))
    texts = [advice(data.sql(question).plan(epsilon=1)) for data in datasets]
    assert texts[0] == texts[1] == texts[2] != []


def test_advice_changes_neither_the_plan_nor_what_it_costs_and_waits_until_it_is_read(monkeypatch):
    from tacit.tables.planning import _drafts

    calls = []
    real = _drafts.advice_on
    monkeypatch.setattr(_drafts, "advice_on", lambda *args: calls.append(args) or real(*args))
    data = declared()
    plan = asked(data).plan(epsilon=0.5)
    assert plan.hash
    assert not calls
    assert "advice: with the limit rows=1" in plan_text(plan)
    assert calls
    assert "<b>advice</b>: with the limit rows=1" in plan._repr_html_()
    assert plan.hash == asked(declared(limits={"rows": 10})).plan(epsilon=0.5).hash
    assert data.remaining.epsilon == 9
