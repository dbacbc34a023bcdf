"""Estimators keep scikit-learn's conventions, and a fit is a plan, a charge and a release."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import tacit as tc
from tacit.errors import TacitError

AMPLE = tc.Budget(epsilon=10**9, delta=0.5)
PROMISE = {
    "epsilon": 1000,
    "delta": 1e-6,
    "size": 100,
    "dataset": "checks",
    "budget": AMPLE,
    "bounds": (-5, 5),
}
X = np.linspace(-1, 1, 60).reshape(30, 2)
Y = np.repeat([0, 1], 15)


@dataclass(kw_only=True, eq=False, repr=False)
class ForEachDataset(tc.learn.LogisticRegression):
    """scikit-learn's checks cannot declare the classes of their data, so that this declares them."""

    def fit(self, X, y=None, *, owners=None):
        declared = self.classes
        if y is not None:
            known = np.unique(np.asarray(y)).tolist()
            self.classes = known if len(known) > 1 else [*known, "z" if isinstance(known[0], str) else 99]
        try:
            return super().fit(X, y, owners=owners)
        finally:
            self.classes = declared


def a_model(**more):
    said = {"epsilon": 1, "delta": 1e-3, "classes": [0, 1], "bounds": (-1, 1), "size": 30, "steps": 5,
            "dataset": "patients", "budget": tc.Budget(epsilon=20, delta=1e-2)}  # fmt: skip
    return tc.learn.LogisticRegression(**{**said, **more})


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "study.ledger")


def spent(path, name="patients"):
    with tc.Ledger.open(path) as ledger:
        return ledger.account(name).spent


@pytest.mark.parametrize(
    "estimator",
    [
        ForEachDataset(**PROMISE, classes=[0, 1], steps=20),
        tc.learn.LinearRegression(**PROMISE, target_bounds=(-5, 5)),
        tc.learn.Ridge(**PROMISE, target_bounds=(-5, 5)),
        tc.learn.PoissonRegressor(**PROMISE, most=10, steps=10),
        tc.learn.Standardiser(**PROMISE),
    ],
    ids=lambda one: type(one).__name__,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_check_estimator_passes(estimator):
    found = check_estimator(
        estimator, on_skip=None, on_fail=None, expected_failed_checks=estimator.unlike_scikit_learn
    )
    assert [(one["check_name"], one["exception"]) for one in found if one["status"] == "failed"] == []
    assert sum(one["status"] == "passed" for one in found) >= 35


def test_the_same_fit_again_is_the_stored_release(path):
    first = a_model(ledger=path).fit(X, Y)
    after = spent(path)
    again = clone(first).fit(X.copy(), Y.copy())
    assert spent(path) == after
    assert np.array_equal(first.coef_, again.coef_)
    assert first.release_.certificate.plan == again.release_.certificate.plan


@pytest.mark.parametrize("change", ["data", "target", "parameters", "version"])
def test_another_fit_is_another_charge(path, change):
    first = a_model(ledger=path).fit(X, Y)
    after = spent(path)
    other = clone(first)
    match change:
        case "data":
            other.fit(X + 1e-9, Y)
        case "target":
            other.fit(X, 1 - Y)
        case "parameters":
            other.set_params(steps=6).fit(X, Y)
        case "version":
            with tc.Ledger.open(path) as ledger:
                ledger.account("patients")
            other.set_params(clip=2.0).fit(X, Y)
    assert spent(path).rho > after.rho


def test_a_certificate_shows_nothing_of_the_data(path):
    """The digest of the data is keyed, so that two ledgers give one fit two plans, and nobody can guess."""
    plans = [a_model(ledger=str(path) + one).plan(X, Y) for one in ("1", "2")]
    assert plans[0].hash != plans[1].hash
    assert plans[0].cost == plans[1].cost
    assert plans[0].mechanisms == plans[1].mechanisms
    text = repr(plans[0]) + str(plans[0].facts)
    assert plans[0].question["data"] not in text


def test_a_plan_charges_nothing_and_states_the_promise(path):
    plan = a_model(ledger=path).plan(X, Y)
    assert spent(path).rho == 0
    assert plan.promised == {"epsilon": 1, "delta": tc.Budget(epsilon=1, delta=1e-3).delta}
    assert plan.cost.epsilon(delta=1e-3) <= 1
    assert plan.cost.epsilon(delta=1e-3) > 0.999


def test_a_fit_of_declared_examples_pays_from_their_budget():
    patients = tc.learn.examples(
        X, Y, unit=tc.Unit.row(), size=30, budget=tc.Budget(epsilon=5, delta=1e-2), name="declared"
    )
    model = a_model(dataset=None, budget=None, size=None)
    assert model.fit(patients).release_.certificate.fields["dataset"]["name"] == "declared"
    again = clone(model).fit(patients)
    assert np.array_equal(model.coef_, again.coef_)


def test_several_rows_of_a_person_count_together(path):
    owners = np.repeat(np.arange(10), 3)
    model = a_model(ledger=path, unit="patient_id", per_unit=3, size=10, delta=1e-3)
    model.fit(X, Y, owners=owners)
    assert model.release_.certificate.fields["dataset"]["unit"] == "patient_id"
    with pytest.raises(TacitError, match="needs owners"):
        clone(model).set_params(dataset="other").fit(X, Y)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"budget": None}, "bad-parameter"),
        ({"dataset": None}, "bad-parameter"),
        ({"size": None}, "bad-parameter"),
        ({"epsilon": None}, "bad-parameter"),
        ({"delta": None}, "bad-parameter"),
        ({"delta": 0.5}, "bad-parameter"),
        ({"classes": None}, "bad-parameter"),
        ({"classes": [0]}, "bad-parameter"),
        ({"bounds": None}, "missing-bounds"),
        ({"bounds": (1, 0)}, "bad-parameter"),
        ({"clip": 0}, "bad-parameter"),
        ({"momentum": 1}, "bad-parameter"),
        ({"ledger": tc.Ledger.memory()}, "bad-parameter"),
    ],
    ids=str,
)
def test_what_is_missing_or_wrong_is_refused_before_a_charge(change, code):
    with pytest.raises(TacitError) as refused:
        a_model(**{"dataset": "refused", **change}).fit(X, Y)
    assert refused.value.code == code


def test_an_exhausted_budget_refuses_the_fit(path):
    model = a_model(ledger=path, budget=tc.Budget(epsilon=1.5, delta=2e-3))
    model.fit(X, Y)
    with pytest.raises(TacitError) as refused:
        clone(model).set_params(steps=6).fit(X, Y)
    assert refused.value.code == "budget-exceeded"


@pytest.mark.parametrize("spoiled", [np.nan, np.inf, 1e300])
def test_a_wild_value_changes_neither_refusals_nor_plans(path, spoiled):
    other = X.copy()
    other[3, 0] = spoiled
    plans = [a_model(ledger=path).plan(features, Y) for features in (X, other)]
    assert plans[0].cost == plans[1].cost
    shown = [repr(plan).replace(plan.hash[:16], "") for plan in plans]
    assert shown[0] == shown[1]
    assert np.isfinite(a_model(ledger=path).fit(other, Y).coef_).all()


@pytest.mark.parametrize("where", ["fit", "predict"])
def test_wild_values_cause_no_warning(where):
    wild = np.array([[1e308, -1e308], [np.inf, np.nan], [5e-324, -0.0]])
    model = a_model(bounds=(-1e-3, 1e-3), size=3, dataset=f"wild {where}", delta=1e-3)
    model.fit(wild if where == "fit" else np.zeros((3, 2)), [0, 1, 0])
    assert np.isfinite(model.predict_proba(wild)).all()


@pytest.mark.parametrize(
    ("features", "target"),
    [
        (np.arange(777.0), np.zeros(777)),
        (np.zeros((777, 0)), np.zeros(777)),
        (np.zeros((777, 2)), np.zeros((777, 2))),
        (np.zeros((777, 2)), np.zeros(776)),
        (np.full((777, 2), 777j), np.zeros(777)),
    ],
    ids=["one axis", "no features", "two targets", "lengths", "complex"],
)
def test_refusals_show_neither_values_nor_the_number_of_rows(features, target):
    with pytest.raises(ValueError) as refused:
        a_model(dataset="refused").fit(features, target)
    assert "77" not in str(refused.value)


def test_an_undeclared_label_counts_as_zero():
    labels = np.where(np.arange(30) == 4, 7, Y)
    assert a_model(dataset="labels").fit(X, labels).classes_.tolist() == [0, 1]


def test_a_saved_release_gives_the_same_model(tmp_path):
    model = a_model(dataset="saved").fit(X, Y)
    model.release_.save(tmp_path / "model.json")
    loaded = a_model(dataset=None, budget=None).from_release(tc.Release.load(tmp_path / "model.json"))
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
    with pytest.raises(TacitError):
        tc.learn.Standardiser().from_release(model.release_)


def test_a_fitted_model_survives_pickling():
    model = a_model(dataset="pickled").fit(X, Y)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


def test_a_pipeline_of_two_private_steps_pays_twice(path):
    scaler = tc.learn.Standardiser(epsilon=1, delta=1e-3, bounds=(-1, 1), size=30, dataset="patients",
                                   budget=tc.Budget(epsilon=20, delta=1e-2), ledger=path)  # fmt: skip
    make_pipeline(scaler, a_model(ledger=path, bounds=(-3, 3))).fit(X, Y).predict(X)
    both = spent(path).rho
    scaler.fit(X)
    assert spent(path).rho == both
    assert both > 0.05


def test_text_and_picture_show_the_numbers():
    pytest.importorskip("matplotlib")
    release = a_model(dataset="shown").fit(X, Y).release_
    assert repr(release).startswith("logistic regression\n  weights (1 x 3): ")
    assert "logistic regression" in release.plot().get_title(loc="left")
