"""What a newcomer tries first: tables of pandas, a pipeline, a score of patients, the same study twice."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

import tacit as tc
from support import hospitals as h
from tacit.errors import TacitError
from tacit.learn.federated import Coordinator, in_process

pd = pytest.importorskip("pandas")
torch = pytest.importorskip("torch")
torch.set_num_threads(1)

VISITS = pd.DataFrame(
    {"patient": [1, 1, 2, 3], "age": [40.0, 41.0, 30.0, 77.0], "dose": [1.0, 2.0, 0.0, 1.0]}
)


def declared(*arrays, **facts):
    return tc.learn.examples(*arrays, size=4, budget=tc.Budget(epsilon=9, delta=1e-3), **facts)


def a_trainer(data):
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss = torch.nn.CrossEntropyLoss()
    return tc.learn.Trainer(model, loss, optimizer, data=data, batch=2, steps=2, epsilon=1, delta=1e-3)


def a_fit(**facts):
    said = {"classes": [0, 1], "bounds": (-3, 3), "size": 100, "dataset": "first steps", "epsilon": 1,
            "delta": 1e-4, "budget": tc.Budget(epsilon=90, delta=1e-3)}  # fmt: skip
    return tc.learn.LogisticRegression(**{**said, **facts})


def test_a_table_of_pandas_is_trained_on_row_by_row():
    data = declared(
        VISITS[["age", "dose"]],
        pd.Series([0, 1, 0, 1]),
        unit="patient",
        owners=VISITS["patient"],
        per_unit=2,
    )
    release = a_trainer(data).release()
    assert release.predict(np.zeros((3, 2))).shape == (3, 2)


@pytest.mark.parametrize("whole", [[1, 2], [1, None]])
def test_the_type_of_a_nullable_column_does_not_show_a_missing_value(whole):
    data = declared(pd.DataFrame({"n": pd.array(whole, dtype="Int64")}), unit=tc.Unit.row())
    assert data._arrays[0].dtype == np.float64
    words = declared(pd.Series(["a", "b"], dtype="string"), unit=tc.Unit.row())
    assert words._arrays[0].dtype == object


def test_a_model_of_another_shape_is_refused_with_the_shape_of_an_example():
    data = declared(np.zeros((4, 5)), np.zeros(4, dtype=int), unit=tc.Unit.row())
    with pytest.raises(TacitError, match="5 of float64, one of int64"):
        a_trainer(data)


def test_a_trainer_shows_what_it_is():
    data = declared(np.zeros((4, 2)), np.zeros(4, dtype=int), unit=tc.Unit.row())
    assert repr(a_trainer(data)).startswith("Trainer(Linear, 6 numbers, data=Examples('examples', ")


def test_a_pipeline_is_refused_by_a_search_with_what_works():
    with pytest.raises(TacitError, match="prepaid") as refused:
        tc.learn.search(make_pipeline(a_fit()), {"steps": [5]}, [[0.0]], [0], epsilon=1, delta=1e-4)
    assert refused.value.code == "bad-parameter"


def test_a_score_of_patients_is_never_answered_with_the_advice_to_protect_rows():
    model = a_fit(unit="patient", per_unit=2)
    with pytest.raises(TacitError) as refused:
        tc.learn.scorer("accuracy", epsilon=1)(model, np.zeros((2, 1)), [0, 1])
    assert "evaluate" in str(refused.value)
    assert 'unit="row"' not in str(refused.value)


def test_an_evaluation_shows_no_warning_of_single_rows():
    def model(rows):
        warnings.warn("this row is odd", UserWarning, stacklevel=1)
        return rows[:, 0]

    X = np.linspace(0, 1, 400)[:, None]
    held = tc.learn.examples(
        X,
        (X[:, 0] > 0.5).astype(int),
        unit=tc.Unit.row(),
        size=400,
        budget=tc.Budget(epsilon=90, delta=1e-3),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        question = tc.learn.evaluate(model, held, classes=[0, 1], smaller_class=200, name="odd")
        found = question.plan(epsilon=20, delta=1e-4).release()
    assert found.accuracy.value > 0.8


def test_a_study_that_was_finished_is_not_answered_with_an_untrained_model():
    agreed, keys = h.small_study("shared", hospitals=3)
    hospitals = {name: h.small_hospital(name, agreed, keys[name]) for name in agreed.hospitals}
    assert Coordinator(agreed, in_process(hospitals)).train().rounds == agreed.rounds
    with pytest.raises(TacitError, match="moved the model") as refused:
        Coordinator(agreed, in_process(hospitals)).train()
    assert refused.value.code == "too-few-hospitals"


def test_an_audit_of_a_training_plan_names_the_audit_of_trainings():
    data = declared(np.zeros((4, 2)), np.zeros(4, dtype=int), unit=tc.Unit.row())
    with pytest.raises(TacitError, match="audit_training"):
        tc.audit(a_trainer(data).plan())


@pytest.mark.parametrize(("teachers", "hint"), [(20, True), (2_000, False)])
def test_a_plan_says_when_no_label_can_be_sure(teachers, hint):
    from sklearn.naive_bayes import GaussianNB

    data = declared(np.zeros((4, 2)), np.zeros(4, dtype=int), unit=tc.Unit.row())
    asked = tc.learn.Teachers(GaussianNB(), data=data, teachers=teachers, classes=[0, 1])
    assert ("no lead is larger" in str(asked.label(np.zeros((50, 2))).plan(epsilon=1, delta=1e-4))) == hint


def test_bounds_by_name_are_refused_with_the_form_that_works():
    with pytest.raises(TacitError, match="the first list holds the lowest value of each feature"):
        a_fit(bounds={"age": (0, 100), "dose": (0, 9)}).plan(np.zeros((3, 2)), [0, 1, 0])


def test_a_plan_shows_settings_in_words():
    plan = str(a_fit(bounds=([0, 80], [100, 200]), classes=["no", "yes"]).plan(np.zeros((3, 2)), ["no"] * 3))
    assert "classes: no, yes\n" in plan
    assert "bounds: 0 to 100, 80 to 200\n" in plan
    one = str(a_fit(dataset="one range").plan(np.zeros((3, 2)), [0, 1, 0]))
    assert "bounds: -3 to 3\n" in one
    boosting = tc.learn.ExplainableBoostingClassifier(
        classes=[0, 1], names=["a", "b"], bounds=(0, 1), epsilon=1, delta=1e-4, size=100,
        dataset="shapes", budget=tc.Budget(epsilon=9, delta=1e-3),
    )  # fmt: skip
    shown = str(boosting.plan(np.zeros((3, 2)), [0, 1, 0]))
    assert "[" not in shown
    assert "{}" not in shown


@pytest.mark.parametrize(
    ("bounds", "features", "lists"),
    [
        (((0, 1), (18, 90)), 2, "([0, 18], [1, 90])"),
        ([(0, 1), (18, 90)], 2, "([0, 18], [1, 90])"),
        ([(18, 90), (0, 1)], 2, "([18, 0], [90, 1])"),
        ([(0, 1), (18, 90), (0.5, 2)], 3, "([0, 18, 0.5], [1, 90, 2])"),
    ],
)
def test_pairs_of_bounds_are_refused_with_the_lists_that_they_stand_for(bounds, features, lists):
    with pytest.raises(tc.TacitError) as refusal:
        a_fit(bounds=bounds).plan(np.zeros((3, features)), [0, 1, 0])
    assert refusal.value.code == "bad-parameter"
    assert f"bounds={lists}" in str(refusal.value)


@pytest.mark.parametrize("bounds", [([0, 18], [1, 99]), [[0, 18], [1, 99]], ((0, 1), (1, 2)), (0, 1)])
def test_lists_of_lowest_and_highest_values_are_read_as_such(bounds):
    from tacit.learn.estimators._declared_bounds import read_feature_bounds

    low, high = read_feature_bounds(bounds, 2)
    assert np.array_equal(low, np.broadcast_to(bounds[0], 2))
    assert np.array_equal(high, np.broadcast_to(bounds[1], 2))


def test_a_plan_that_does_not_fit_is_refused_in_the_words_of_its_promise():
    X = torch.zeros(200, 4)
    for name, budget, said in (
        (
            "words",
            tc.Budget(epsilon=1, delta=1e-4),
            "a plan that promises epsilon 2, delta 0.0001 does not fit",
        ),
        ("rho words", tc.Budget(rho=0.01), "epsilon 2, delta 0.0001 and is charged with rho"),
    ):
        data = tc.learn.examples(X, X[:, 0].long(), unit=tc.Unit.row(), size=200, name=name, budget=budget)
        model = torch.nn.Linear(4, 2)
        trainer = tc.learn.Trainer(
            model, torch.nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), lr=0.1), data=data,
            batch=20, steps=20, epsilon=2, delta=1e-4,
        )  # fmt: skip
        with pytest.raises(tc.TacitError, match=said) as refusal:
            trainer.plan().release()
        assert refusal.value.code == "budget-exceeded"


def test_training_many_teachers_shows_how_far_it_is(monkeypatch):
    from contextlib import contextmanager

    seen = []

    @contextmanager
    def shown(label, share):
        seen.append((label, share()))
        yield
        seen.append((label, share()))

    monkeypatch.setattr("tacit.learn.teachers._teachers.progress", shown)
    X = np.linspace(-1, 1, 60)[:, None]
    data = tc.learn.examples(X, (X[:, 0] > 0).astype(int), unit=tc.Unit.row(), size=60,
                             budget=tc.Budget(8, 1e-4))  # fmt: skip
    teachers = tc.learn.Teachers(
        lambda features, number: lambda queries: np.zeros(len(queries)), data=data, teachers=3, classes=[0, 1]
    )
    teachers.label(X[:2]).plan(sigma=1).release()
    assert seen == [("Training teachers", 0.0), ("Training teachers", 1.0)]


def test_a_fit_that_does_not_fit_is_told_the_epsilon_that_does():
    held = {"classes": [0, 1], "bounds": (0, 1), "size": 300, "dataset": "left", "delta": 1e-6}
    for budget in (tc.Budget(epsilon=3, delta=1e-4), tc.Budget(rho=0.2)):
        named = {**held, "dataset": str(budget), "budget": budget}
        X, y = np.tile([[0.1, 0.9], [0.9, 0.1]], (150, 1)), np.tile([0, 1], 150)
        tc.learn.LogisticRegression(epsilon=0.5, **named).fit(X, y)
        with pytest.raises(TacitError, match="a plan that promises epsilon 9") as refusal:
            tc.learn.LogisticRegression(epsilon=9, **named).fit(X, y)
        fits = refusal.value.fix.fixes[0].values
        assert set(fits) == {"epsilon"}
        assert 0.5 < fits["epsilon"] < 9
        tc.learn.LogisticRegression(epsilon=fits["epsilon"], **named).fit(X, y)


def test_a_missing_epsilon_is_named():
    with pytest.raises(TacitError, match="epsilon must be given"):
        a_fit(epsilon=None, delta=None).plan(np.zeros((3, 2)), [0, 1, 0])


def test_a_network_is_no_teacher_before_somebody_trains_it():
    data = declared(np.zeros((4, 2)), np.zeros(4, dtype=int), unit=tc.Unit.row())
    with pytest.raises(TacitError, match="a function that trains a network"):
        tc.learn.Teachers(torch.nn.Linear(2, 2), data=data, teachers=10, classes=[0, 1])
