"""Hostile values, owners and settings in the estimators: no row changes how others count, nothing fails."""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401 - makes the next import possible
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    cross_val_predict,
    cross_val_score,
    learning_curve,
    permutation_test_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.semi_supervised import SelfTrainingClassifier

import tacit as tc
from tacit.errors import TacitError
from tacit.learn.estimators._identity import open_for_fit

BUDGET = tc.Budget(epsilon=1000, delta=1e-2)
FACTS = {"epsilon": 1, "delta": 1e-6, "bounds": (0, 1), "size": 400, "budget": BUDGET}
RANDOM = np.random.default_rng(5)
X = RANDOM.random((200, 2))
Y = (X[:, 0] > 0.5).astype(int)


@pytest.fixture
def named(request):
    """Return the facts of an estimator with a dataset of its own."""
    return {**FACTS, "dataset": f"hostile {request.node.name}"}


def exact(estimator, rows, labels=None, owners=None):
    """Return the first exact integers of a fit."""
    data, _ = estimator._declared(rows, labels, owners)
    fit = estimator._fit_steps(data, Fraction(4))
    first = fit.steps[0].exact(fit.load(), [])
    return np.asarray(first.sums(np.arange(first.units)) if hasattr(first, "sums") else first)


def logistic(named, **more):
    return tc.learn.LogisticRegression(**{"classes": [0, 1], **named, **more})


# one cell does not change how others are read


@pytest.mark.parametrize(
    ("rows", "labels", "row", "label"),
    [
        ([[0.9, 0.1]] * 50, [1] * 50, [0.0, 0.0], "x"),
        ([[True, False]] * 50, [1] * 50, ["x", 0], 1),
        ([[0.9, 0.1]] * 50, [True] * 50, [0.0, 0.0], "x"),
    ],
)
def test_a_word_in_a_list_does_not_change_what_other_rows_say(named, rows, labels, row, label):
    without = exact(logistic(named), rows, labels)
    np.testing.assert_array_equal(exact(logistic(named), [*rows, row], [*labels, label]), without)
    data = [tc.learn.examples(r, t, unit=tc.Unit.row(), size=400, budget=BUDGET)
            for r, t in [(rows, labels), ([*rows, row], [*labels, label])]]  # fmt: skip
    both = [exact(logistic(named), one) for one in data]
    np.testing.assert_array_equal(*both)


def test_folds_of_a_list_do_not_depend_on_other_rows():
    rows = [[float(i)] for i in range(40)]
    before = tc.learn.Folds(2).folds_of(rows, list(range(40)))
    for row, label in ([["x"], 0], [[0.5], "x"], [[0.5], 0.5]):
        after = tc.learn.Folds(2).folds_of([*rows, row], [*range(40), label])
        np.testing.assert_array_equal(after[:40], before)


def test_one_owner_does_not_bring_two_others_together(named):
    model = logistic({**named, "unit": "patient_id"})
    owners = [2**53, 2**53 + 1] * 5
    without = exact(model, np.ones((10, 1)), np.ones(10, int), owners)
    moved = exact(model, np.ones((11, 1)), np.ones(11, int), [*owners, 0.5]) - without
    assert abs(moved).max() > 2**26  # the new unit counts, and both others still do


def test_equal_numbers_are_one_owner(named):
    model = logistic({**named, "unit": "patient_id"})
    same = exact(model, np.ones((2, 1)), np.ones(2, int), [7, 7.0])
    np.testing.assert_array_equal(same, exact(model, np.ones((1, 1)), np.ones(1, int), [7]))


STRANGE = ["\ud800", 10**5000, b"\xff", ("ward", 1), [1, 2], None, float("nan"), pd.NA, "x" * 10**6]
STRANGE += [np.ones(1), np.complex128(1)]


@pytest.mark.parametrize("strange", STRANGE, ids=lambda one: str(type(one).__name__))
def test_no_owner_cell_or_label_makes_a_fit_fail(named, strange):
    owned = logistic({**named, "unit": "patient_id", "dataset": named["dataset"] + ", owned"})
    n = 300
    rows, labels = np.full((n, 1), 0.5), np.ones(n, int)
    exact(owned, rows, labels, [*(["ana"] * 2), *[strange] * 2, *map(str, range(n - 4))])
    cell = np.full((n, 1), 0.5, dtype=object)
    cell[7, 0] = strange
    label = np.ones(n, dtype=object)
    label[7] = strange
    one = np.ones(n) != 0
    one[7] = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(
            exact(logistic(named), cell, label), exact(logistic(named), rows[one], labels[one])
        )
        tc.learn.Folds(2).folds_of(cell, label)
        tc.learn.Folds(2).folds_of(rows, labels, [strange] * n)


def test_owners_with_two_axes_are_refused(named):
    with pytest.raises(TacitError, match="one column"):
        exact(logistic({**named, "unit": "patient_id"}), X, Y, np.arange(200)[:, None])


# exact scores on held-out patients


MODELS = {
    "naive Bayes": lambda named: tc.learn.NaiveBayes(classes=[0, 1], **named),
    "boosting": lambda named: tc.learn.ExplainableBoostingClassifier(classes=[0, 1], passes=1, **named),
    "logistic": lambda named: logistic(named, steps=2),
}


@pytest.mark.parametrize("kind", MODELS)
def test_a_search_of_scikit_learn_gets_no_exact_score(named, kind):
    model = MODELS[kind](named)
    plain = GridSearchCV(model, {"version": [1]}, cv=tc.learn.Folds(2), error_score="raise")
    with tc.learn.prepaid(plain, fits=3, epsilon=4, delta=1e-6):
        with pytest.raises(TacitError, match="exact score"):
            plain.fit(X, Y)
        priced = GridSearchCV(
            model, {"version": [1]}, cv=tc.learn.Folds(2), error_score="raise",
            scoring=tc.learn.scorer("accuracy", epsilon=1),
        )  # fmt: skip
        found = priced.fit(X, Y).cv_results_["split0_test_score"]
    assert 0 <= found[0] <= 1
    assert set(priced.best_estimator_.predict(X)) <= {0, 1}


def test_cross_validation_shows_no_cluster_of_a_patient(named):
    model = tc.learn.KMeans(n_clusters=2, **named)
    with tc.learn.prepaid(model, fits=2, epsilon=4, delta=1e-6), pytest.raises(TacitError, match="exact"):
        cross_val_predict(model, X, cv=tc.learn.Folds(2))


@pytest.mark.parametrize("kind", MODELS)
def test_a_word_among_the_features_does_not_make_a_search_fail(named, kind):
    rows = X.astype(object)
    rows[3:60, 0] = "x"
    found = tc.learn.search(MODELS[kind](named), {"bounds": [(0, 1)]}, rows, Y, epsilon=2, delta=1e-6, runs=2)
    assert len(found.predict(rows)) == len(rows)


@pytest.mark.parametrize("kind", ["components", "clusters", "standardisation", *MODELS])
def test_no_value_makes_a_fit_or_a_next_step_warn(named, kind):
    others = {
        "components": tc.learn.PCA,
        "clusters": tc.learn.KMeans,
        "standardisation": tc.learn.Standardiser,
    }
    model = MODELS[kind](named) if kind in MODELS else others[kind](**named)
    values = [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, -0.0]
    rows = np.array([[a, b] for a in values for b in values])
    labels = np.resize([0, 1, np.nan, np.inf, 1e308], len(rows))
    categories = pd.DataFrame({name: pd.Categorical([1, None]) for name in "ab"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(categories, labels[:2])
        model.fit(rows, labels)
        (model.transform if hasattr(model, "transform") else model.predict)(rows)


# settings that an analyst chooses


@pytest.mark.parametrize("bounds", [(0, 5e-324), (1e308, 1.7e308), (-1.7e308, 1.7e308)])
def test_bounds_that_break_the_arithmetic_are_refused(named, bounds):
    for model in (tc.learn.Standardiser, tc.learn.PoissonRegressor, tc.learn.LogisticRegression):
        more = {"most": 5} if model is tc.learn.PoissonRegressor else {}
        more = {"classes": [0, 1]} if model is tc.learn.LogisticRegression else more
        with pytest.raises(TacitError, match="wide"):
            exact(model(**{**named, **more, "bounds": bounds}), np.zeros((1, 2)), np.zeros(1, int))


def test_a_feature_that_cannot_be_scaled_counts_as_zero():
    from tacit.learn.estimators._whole_features import whole_features

    low, high = np.zeros(1), np.full(1, 5e-324)  # half of it is 0, and 0 / 0 is no number
    np.testing.assert_array_equal(
        whole_features(np.zeros((2, 1)), low, high, intercept=True), np.zeros((2, 2))
    )


@pytest.mark.parametrize("rows", [0, 1])
def test_a_descent_that_runs_away_ends_alike_with_and_without_a_patient(named, rows):
    model = logistic({**named, "dataset": f"{named['dataset']} {rows}"}, learning_rate=1e307, penalty=1e300)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(model.fit(np.zeros((rows, 2)), np.zeros(rows, int)).coef_).all()


def test_a_clip_below_one_step_is_refused_before_the_charge(named):
    model = tc.learn.LinearRegression(target_bounds=(0, 1), clip=1e-5, **named)
    with pytest.raises(TacitError, match="clip"):
        model.plan(X, Y)


def test_every_number_of_steps_keeps_the_promise_exactly(named):
    from tacit.learn.estimators._prepaid import gaussian_share

    for steps in range(1, 200):
        model = logistic(named, steps=steps)
        data, _ = model._declared(X, Y, None)
        noise = Fraction(2**20 + steps**3, 2**18)
        assert gaussian_share(model._fit_steps(data, noise).mechanisms) * noise**2 <= 1


@pytest.mark.parametrize("kind", ["components", "clusters", "standardisation"])
def test_what_is_handed_to_the_next_step_does_not_depend_on_other_rows(named, kind):
    rows = np.asfortranarray(RANDOM.random((300, 64)))
    model = {"components": tc.learn.PCA, "clusters": tc.learn.KMeans,
             "standardisation": tc.learn.Standardiser}[kind](**named).fit(rows)  # fmt: skip
    whole = model.transform(rows)
    for first in (1, 2, 3, 7, 100, 299):
        np.testing.assert_array_equal(model.transform(rows[:first]), whole[:first])


# fits that scikit-learn starts on rows which it drew


def test_prepaid_fits_on_drawn_rows_are_refused(named):
    model = logistic(named, steps=2)
    priced = {"scoring": tc.learn.scorer("accuracy", epsilon=1), "error_score": "raise"}
    with tc.learn.prepaid(model, fits=50, epsilon=4, delta=1e-6):
        tries = {
            "a patient drawn twice": lambda: BaggingClassifier(model, n_estimators=2).fit(X, Y),
            "folds by position": lambda: cross_val_score(model, X, Y, cv=2, **priced),
            "predictions of folds by position": lambda: cross_val_predict(model, X, Y, cv=2),
            "part of the rows": lambda: learning_curve(model, X, Y, cv=tc.learn.Folds(2), **priced),
            "labels of others": lambda: permutation_test_score(
                model, X, Y, cv=tc.learn.Folds(2), scoring=priced["scoring"]
            ),
            "halving": lambda: HalvingGridSearchCV(model, {"steps": [1, 2]}, cv=tc.learn.Folds(2)).fit(X, Y),
            "labels that a model gave": lambda: SelfTrainingClassifier(model).fit(
                X, np.where(X[:, 1] > 0.5, Y, -1)
            ),
        }
        for name, attempt in tries.items():
            with pytest.raises((TacitError, ValueError)) as refused:
                attempt()
            assert "by their positions" in str(refused.value), name
        assert len(cross_val_score(model, X, Y, cv=tc.learn.Folds(2), **priced)) == 2


def test_a_calibration_on_held_out_patients_is_refused(named):
    wrapped = CalibratedClassifierCV(logistic(named, steps=2), cv=tc.learn.Folds(2))
    with tc.learn.prepaid(wrapped, fits=3, epsilon=4, delta=1e-6), pytest.raises(TacitError, match="exact"):
        wrapped.fit(X, Y)


def test_another_declared_spread_is_another_fit(named):
    widths = [[0.1, 0.2], [0.2, 0.1]]
    first, second = (tc.learn.NaiveBayes(classes=[0, 1], spread=one, **named).fit(X, Y) for one in widths)
    assert [first.spread_.tolist(), second.spread_.tolist()] == widths


# labels and predictions


def test_labels_that_a_file_reader_turned_into_texts_are_still_the_classes(named):
    rows, labels = pd.DataFrame(X), pd.Series(Y)
    more, words = pd.concat([rows, rows[:1]]), pd.Series([*map(str, Y), "x"])
    plain = exact(logistic(named), rows, labels)
    np.testing.assert_array_equal(exact(logistic(named), more, words), plain)
    texts = logistic(named, classes=["0", "1"])
    np.testing.assert_array_equal(exact(texts, more, words), exact(texts, rows, labels))
    np.testing.assert_array_equal(exact(texts, rows, labels), plain)


def test_no_cell_and_no_label_makes_a_score_fail(named):
    class OnlyNumbers(FunctionTransformer):
        def transform(self, rows):
            return np.asarray(rows, dtype=np.float64)

    model = make_pipeline(OnlyNumbers(), logistic(named, steps=2)).fit(X, Y)
    score = tc.learn.scorer("accuracy", epsilon=100)
    rows, labels = X.astype(object), Y.astype(object)
    exact_score = score(model, rows, labels)
    rows[7, 0], labels[9] = "x", pd.NA
    labels[11] = np.arange(3)
    assert abs(score(model, rows, labels) - exact_score) < 0.1


def test_rows_that_cannot_be_scored_are_refused_before_the_charge(named):
    model = logistic(named, steps=2).fit(X, Y)
    paid = str(open_for_fit(None).remaining(named["dataset"]))
    for rows, labels in ((X, Y[:-1]), (X[:, :1], Y)):
        with pytest.raises(ValueError, match="X "):
            tc.learn.scorer("accuracy", epsilon=0.1)(model, rows, labels)
    assert str(open_for_fit(None).remaining(named["dataset"])) == paid


def test_a_model_that_warns_about_a_row_says_nothing(named):
    def chances(rows):
        if rows[0, 0] > 0.99:
            warnings.warn("a rare patient", stacklevel=1)
        return rows[:, 0]

    data = tc.learn.examples(
        np.full((300, 1), 0.999), np.ones(300), unit=tc.Unit.row(), size=4000, budget=BUDGET
    )
    question = tc.learn.evaluate(chances, data, smaller_class=2000, classes=[0, 1], name="one")
    plan = question.plan(epsilon=8, delta=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert plan.release().counts.sum() > 100


def test_a_search_without_a_target_is_refused_before_the_charge(named):
    model = tc.learn.KMeans(n_clusters=2, **named)
    with pytest.raises(TacitError, match="predicts a target"):
        tc.learn.search(model, {"n_clusters": [2, 3]}, X, epsilon=1, delta=1e-6)


# intervals of coefficients


def widths(rows, *, size, per_unit):
    """Return the widths of the intervals that moments without noise would get."""
    from tacit.learn.estimators._linear import MomentFit, MomentGrid

    grid = MomentGrid(features=2, intercept=True, clip=1.5, per_unit=per_unit)
    low, high = np.zeros(2), np.ones(2)
    target = np.tile(X[:, 0] + 0.1 * RANDOM_NOISE, len(rows) // len(X))
    moments = grid.moments(grid.rows(rows, target, low, high, (0.0, 1.0)))
    found = MomentFit(grid, low, high, (0.0, 1.0), 0.0, size, sigma=1.0).numbers(moments, 0.95)
    return found["high"] - found["low"]


RANDOM_NOISE = RANDOM.normal(size=200)


def test_intervals_do_not_shrink_with_a_size_that_was_declared_too_large():
    np.testing.assert_allclose(widths(X, size=800, per_unit=1), widths(X, size=200, per_unit=1), rtol=1e-6)


def test_intervals_do_not_take_the_rows_of_one_unit_for_several_units():
    alone = widths(X, size=200, per_unit=1)
    np.testing.assert_allclose(widths(X, size=200, per_unit=4), 2 * alone, rtol=1e-3)
    copied = np.tile(X, (4, 1))  # each unit says the same four times: nothing more is known
    np.testing.assert_allclose(
        widths(copied, size=200, per_unit=4), widths(X, size=200, per_unit=1), rtol=1e-6
    )
