"""What cloning, cross-validation, processes and searches of scikit-learn do to a ledger."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import tacit as tc
from tacit.errors import TacitError

RANDOM = np.random.default_rng(8)
X = RANDOM.normal(size=(90, 2))
Y = (X[:, 0] > 0).astype(int)
GRID = {"steps": [2, 3, 4]}


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "study.ledger")


def a_model(path, **more):
    said = {"epsilon": 1, "delta": 1e-4, "classes": [0, 1], "bounds": (-3, 3), "size": 90, "steps": 3,
            "dataset": "patients", "budget": tc.Budget(epsilon=60, delta=1e-2), "ledger": path}  # fmt: skip
    return tc.learn.LogisticRegression(**{**said, **more})


def a_search(path, **more):
    said = {"cv": tc.learn.Folds(2, ledger=path), "scoring": tc.learn.scorer("accuracy", epsilon=0.5),
            "error_score": "raise"}  # fmt: skip
    return GridSearchCV(a_model(path), GRID, **{**said, **more})


def kinds(path):
    with tc.Ledger.open(path) as ledger:
        found = [one.kind for one in ledger.history("patients")]
    return {kind: found.count(kind) for kind in set(found)}


def test_a_copy_charges_the_real_ledger(path):
    clone(clone(a_model(path))).fit(X, Y)
    with tc.Ledger.open(path) as ledger:
        assert ledger.account("patients").spent.rho > 0


@pytest.mark.parametrize("many", ["cross-validation", "search", "ensemble"])
def test_fits_that_scikit_learn_repeats_are_refused_before_any_charge(path, many):
    model = a_model(path)
    with pytest.raises(TacitError, match="one of several"):
        match many:
            case "cross-validation":
                cross_val_score(model, X, Y, cv=2, error_score="raise")
            case "search":
                a_search(path).fit(X, Y)
            case "ensemble":
                BaggingClassifier(model, n_estimators=2).fit(X, Y)
    with tc.Ledger.open(path) as ledger:
        assert ledger.account("patients").spent.rho == 0


def test_a_prepaid_search_is_charged_once_and_sees_every_fit(path):
    search = a_search(path)
    with tc.learn.prepaid(search, fits=7, epsilon=5, delta=1e-4) as plan:
        with tc.Ledger.open(path) as ledger:
            whole = ledger.account("patients").spent
        search.fit(X, Y)
    assert plan.cost.epsilon(delta=1e-4) <= 5
    assert fits_drawn(path, plan) == 7
    assert search.best_estimator_.prepaid is not None
    assert search.estimator.prepaid is None
    assert kinds(path)["run"] == 1
    assert whole.rho > 0
    assert search.predict(X).shape == (90,)


def fits_drawn(path, plan):
    with tc.Ledger.open(path) as ledger:
        return ledger.paid_run("patients", plan.hash).claimed


@pytest.mark.long
def test_a_prepaid_search_in_processes_sees_every_fit(path):
    search = a_search(path, n_jobs=2)
    with tc.learn.prepaid(search, fits=7, epsilon=5, delta=1e-4) as plan:
        search.fit(X, Y)
    assert fits_drawn(path, plan) == 7


@pytest.mark.long
def test_a_ledger_in_memory_is_refused_in_a_second_process():
    search = a_search(None, n_jobs=2)
    with (
        pytest.raises(TacitError, match="second process"),
        tc.learn.prepaid(search, fits=7, epsilon=5, delta=1e-4),
    ):
        search.fit(X, Y)


def test_a_forked_process_may_not_use_the_ledger_in_memory(monkeypatch):
    from tacit.learn.estimators import _identity

    a_model(None, dataset="own process").fit(X, Y)
    monkeypatch.setattr(_identity.os, "getpid", lambda: -1)
    with pytest.raises(TacitError, match="second process"):
        a_model(None, dataset="own process").fit(X, Y)


def test_a_fit_beyond_the_number_that_was_paid_for_is_refused(path):
    model = a_model(path)
    with tc.learn.prepaid(model, fits=2, epsilon=1, delta=1e-4):
        first = clone(model).fit(X, Y)
        assert np.array_equal(clone(model).fit(X, Y).coef_, first.coef_)  # stored: no instalment
        clone(model).fit(X + 1, Y)
        with pytest.raises(TacitError) as refused:
            clone(model).fit(X + 2, Y)
    assert refused.value.code == "run-finished"
    assert refused.value.what == "all 2 prepaid fits were used, and this fit is one more"


def test_the_same_block_again_costs_nothing(path):
    model, found = a_model(path), []
    for _ in range(2):
        with tc.learn.prepaid(model, fits=2, epsilon=1, delta=1e-4):
            found.append(clone(model).fit(X, Y).coef_)
        with tc.Ledger.open(path) as ledger:
            found.append(ledger.account("patients").spent.rho)
    assert np.array_equal(found[0], found[2])
    assert found[1] == found[3]


def test_each_prepaid_fit_has_the_noise_of_its_share(path):
    from tacit.learn.estimators._prepaid import AnyFit, gaussian_share

    model = a_model(path)
    with tc.learn.prepaid(model, fits=4, epsilon=1, delta=1e-4):
        said = model.prepaid
        data, _ = model._declared(X, Y, None)
        share = gaussian_share(model._fit_steps(data, said.noise).mechanisms)
        assert 0.9999 < share * said.noise**2 <= 1
        data._ledger.close()
    whole = 4 * AnyFit(said.noise).cost
    assert 0.999 < whole.epsilon(delta=1e-4) <= 1


def test_a_fit_that_costs_more_than_its_share_is_not_run(path):
    from fractions import Fraction

    from tacit.learn.estimators._prepaid import AnyFit

    model = a_model(path)
    data, digest = model._declared(X, Y, None)
    task = model._fit_steps(data, Fraction(1)).task(model.kind, digest)
    with pytest.raises(ValueError, match="costs more"):
        AnyFit(Fraction(2)).release(task)
    data._ledger.close()


def test_folds_by_position_are_refused(path):
    with (
        pytest.raises(TacitError, match="position"),
        tc.learn.prepaid(a_search(path, cv=KFold(2)), fits=7, epsilon=1, delta=1e-4),
    ):
        pass


def test_one_unit_more_moves_no_other_unit_into_another_fold(path):
    folds = tc.learn.Folds(5, ledger=path)
    assert np.array_equal(folds.folds_of(X, Y)[:-1], folds.folds_of(X[:-1], Y[:-1]))
    people = np.repeat(np.arange(30), 3)
    by_owner = folds.folds_of(X, Y, people)
    assert all(len(set(by_owner[people == one])) == 1 for one in range(30))
    parts = [set(test.tolist()) for _, test in folds.split(X, Y)]
    assert set.union(*parts) == set(range(90))
    assert sum(map(len, parts)) == 90


def test_exact_scores_on_patients_are_refused_and_priced_ones_are_charged(path):
    model = a_model(path)
    with tc.learn.prepaid(model, fits=4, epsilon=1, delta=1e-4):
        folds = tc.learn.Folds(2, ledger=path)
        for scoring in (None, "accuracy"):
            with pytest.raises(TacitError, match="exact score"):
                cross_val_score(model, X, Y, cv=folds, scoring=scoring, error_score="raise")
        priced = tc.learn.scorer("accuracy", epsilon=0.5)
        scores = cross_val_score(model, X, Y, cv=folds, scoring=priced, error_score="raise")
    assert ((scores >= 0) & (scores <= 1)).all()
    with tc.Ledger.open(path) as ledger:
        asked = [one.body.get("asked") for one in ledger.history("patients")]
    assert asked.count("a score, accuracy") == 2


def test_a_score_is_near_the_truth_at_a_large_epsilon(path):
    pipeline = make_pipeline(FunctionTransformer(), a_model(path, epsilon=50, steps=20)).fit(X, Y)
    score = tc.learn.scorer("accuracy", epsilon=10)(pipeline, X, Y)
    assert abs(score - pipeline.score(X, Y)) < 0.15
    with pytest.raises(TacitError, match="measure must be accuracy"):
        tc.learn.scorer("neg_mean_squared_error", epsilon=1)(pipeline, X, Y)
    with pytest.raises(TacitError, match="measure must be"):
        tc.learn.scorer("f1", epsilon=1)


def test_a_search_inside_a_pipeline_is_prepaid(path):
    search = GridSearchCV(
        make_pipeline(FunctionTransformer(), a_model(path)), {"logisticregression__steps": [2, 3]},
        cv=tc.learn.Folds(2, ledger=path), scoring=tc.learn.scorer("accuracy", epsilon=0.5),
        error_score="raise",
    )  # fmt: skip
    with tc.learn.prepaid(search, fits=5, epsilon=2, delta=1e-4) as plan:
        search.fit(X, Y)
    assert fits_drawn(path, plan) == 5
