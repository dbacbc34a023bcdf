"""k-means, components, naive Bayes and boosting keep scikit-learn's conventions, with public facts alone."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn import decomposition
from sklearn.base import clone
from sklearn.datasets import load_digits, make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import tacit as tc
from support.shape_neighbours import declared
from tacit.errors import TacitError

#: Next to no noise: what is left are the clipping and the grid.
EXACT = {"epsilon": 100_000, "delta": 1e-6}
BUDGET = tc.Budget(epsilon=10**12, delta=0.5)
NAMED = {"size": 100, "budget": BUDGET}


class DeclaringClasses:
    """For scikit-learn's checks, which never declare classes: the test declares those of the target."""

    def fit(self, X, y=None, **given):
        before = self.classes
        labels = set(np.asarray(y, dtype=object).ravel().tolist())
        if 2 <= len(labels) < 10 and all(isinstance(one, str | int | float) for one in labels):
            self.classes = sorted(labels)
        try:
            return super().fit(X, y, **given)
        finally:
            self.classes = before


class CheckedNaiveBayes(DeclaringClasses, tc.learn.NaiveBayes):
    pass


class CheckedBoosting(DeclaringClasses, tc.learn.ExplainableBoostingClassifier):
    pass


@pytest.mark.parametrize(
    "estimator",
    [
        tc.learn.KMeans(n_clusters=3, bounds=(-10, 10), dataset="checks k-means", **EXACT, **NAMED),
        tc.learn.PCA(n_components=1, bounds=(-10, 10), dataset="checks components", **EXACT, **NAMED),
        CheckedNaiveBayes(classes=[0, 1], bounds=(-10, 10), dataset="checks naive Bayes", **EXACT, **NAMED),
        CheckedBoosting(
            classes=[0, 1], bounds=(-10, 10), passes=2, dataset="checks boosting", **EXACT, **NAMED
        ),
    ],
    ids=lambda one: type(one).__name__,
)
def test_the_checks_of_scikit_learn_pass(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check_estimator(estimator, on_fail=None, expected_failed_checks=estimator.unlike_scikit_learn)
    assert [(one["check_name"], one["exception"]) for one in found if one["status"] == "failed"] == []
    assert sum(one["status"] == "passed" for one in found) >= 36


def test_blobs_are_found_again():
    X, y = make_blobs(2_000, 8, centers=5, random_state=3)
    model = tc.learn.KMeans(n_clusters=5, bounds=(-13, 13), **EXACT).fit(declared(X))
    assert adjusted_rand_score(y, model.predict(X)) == 1
    assert np.abs(np.sort(model.cluster_sizes_) - 400).max() < 5
    means = np.array([X[y == c].mean(axis=0) for c in range(5)])
    apart = np.sqrt(((model.cluster_centers_[:, None] - means) ** 2).sum(axis=2)).min(axis=1)
    assert apart.max() < 0.3
    assert model.transform(X).shape == (2_000, 5)


def test_rows_beyond_a_declared_clip_do_not_move_the_centres_far():
    X, _ = make_blobs(2_000, 3, centers=[[0, 0, 0], [4, 4, 4]], cluster_std=0.5, random_state=1)
    X[:40] = 1e9
    model = tc.learn.KMeans(n_clusters=2, bounds=(-8, 8), clip=8, **EXACT).fit(declared(X))
    assert np.abs(np.sort(model.cluster_centers_[:, 0]) - [0, 4]).max() < 0.3


def test_components_are_those_of_the_exact_data():
    X, _ = load_digits(return_X_y=True)
    model = tc.learn.PCA(n_components=8, bounds=(0, 16), **EXACT).fit(declared(X))
    covariance = np.cov(X.T)
    kept = np.trace(model.components_ @ covariance @ model.components_.T) / np.trace(covariance)
    assert kept > 0.67  # the best 8 components keep 0.674
    assert np.abs(model.mean_ - X.mean(axis=0)).max() < 0.05
    assert model.agreement_.min() > 0.99
    assert np.allclose(model.components_ @ model.components_.T, np.eye(8))
    back = model.inverse_transform(model.transform(X))
    assert ((X - back) ** 2).sum() / ((X - X.mean(axis=0)) ** 2).sum() < 0.34


def test_components_keep_as_much_variance_as_those_of_scikit_learn():
    """Around the mean, as scikit-learn measures it: .285 / .674 / .849 by 2 / 8 / 16 components of digits."""
    X, _ = load_digits(return_X_y=True)
    theirs = decomposition.PCA(16).fit(X)
    assert theirs.explained_variance_ratio_.cumsum()[[1, 7, 15]].round(3).tolist() == [0.285, 0.674, 0.849]
    model = tc.learn.PCA(n_components=16, bounds=(0, 16), **EXACT).fit(declared(X))
    for n in (2, 8, 16):
        assert (
            abs(kept(model.components_[:n], np.cov(X.T)) - theirs.explained_variance_ratio_[:n].sum()) < 0.003
        )
    assert (
        np.abs(model.explained_variance_ratio_.cumsum() - theirs.explained_variance_ratio_.cumsum()).max()
        < 0.02
    )
    assert np.abs(model.explained_variance_ / theirs.explained_variance_ - 1).max() < 0.15


def test_components_around_a_fixed_point_keep_what_other_figures_say():
    """Some count squared distances from a fixed point: .567 / .819 / .916 for digits around 0.3 of 16.

    There the first component is mostly the way from this point to the mean. A release holds all that is
    needed: variances around the mean, and the mean.
    """
    X, _ = load_digits(return_X_y=True)
    rows = (X / 16 - 0.3) / 3
    rows /= np.maximum(1, np.linalg.norm(rows, axis=1, keepdims=True))
    about = rows.T @ rows
    best = decomposition.TruncatedSVD(16, algorithm="arpack").fit(rows).components_
    model = tc.learn.PCA(bounds=(0, 16), **EXACT).fit(declared(X))
    way = model.mean_ - 0.3 * 16
    spread = model.components_.T * model.explained_variance_ @ model.components_ + np.outer(way, way)
    ours = np.linalg.eigh(spread)[1][:, ::-1].T
    for n, figure in ((2, 0.567), (8, 0.819), (16, 0.916)):
        assert round(kept(best[:n], about), 3) == figure
        assert figure - kept(ours[:n], about) < 0.003


def test_clipping_to_the_radius_takes_no_variance_from_the_total():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3_000, 5)) * [5, 3, 2, 1, 1]
    model = tc.learn.PCA(bounds=(-100, 100), epsilon=10**6, delta=1e-6).fit(declared(X))
    assert model.explained_variance_.sum() == pytest.approx(np.trace(np.cov(X.T)), rel=0.05)
    assert model.explained_variance_[0] == pytest.approx(25, rel=0.2)


def kept(parts, spread):
    """Return the share of squares that components keep."""
    return np.trace(parts @ spread @ parts.T) / np.trace(spread)


def test_naive_bayes_has_the_means_of_the_classes():
    X, y = load_digits(return_X_y=True)
    model = tc.learn.NaiveBayes(classes=range(10), bounds=(0, 16), **EXACT).fit(declared(X, y))
    assert np.abs(model.theta_ - [X[y == c].mean(axis=0) for c in range(10)]).max() < 0.6
    assert (model.predict(X) == y).mean() > 0.89
    assert np.allclose(model.predict_proba(X[:9]).sum(axis=1), 1)
    assert np.abs(model.class_count_ - np.bincount(y)).max() < 1


def test_a_pipeline_pays_for_each_of_its_parts():
    X, y = load_digits(return_X_y=True)
    shared = {"dataset": "pipeline of digits", "size": 1_700, "budget": BUDGET, **EXACT}
    model = make_pipeline(
        tc.learn.PCA(n_components=16, bounds=(0, 16), **shared),
        tc.learn.NaiveBayes(classes=range(10), bounds=(-45, 45), spread=9, **shared),
    )
    assert (model.fit(X, y).predict(X) == y).mean() > 0.85
    first, second = (one.release_.certificate for one in model)
    assert first.fields["plan"] != second.fields["plan"]


def test_a_clone_on_the_same_data_gets_the_stored_release():
    X, _ = make_blobs(200, 2, centers=2, random_state=1)
    model = tc.learn.KMeans(
        n_clusters=2, bounds=(-13, 13), epsilon=1, delta=1e-6, dataset="clones", size=200, budget=BUDGET
    )
    again = clone(model).fit(X)
    assert np.array_equal(model.fit(X).cluster_centers_, again.cluster_centers_)
    assert model.release_.certificate.fields == again.release_.certificate.fields


@pytest.mark.parametrize(
    ("estimator", "said"),
    [
        (tc.learn.KMeans(epsilon=1, delta=1e-6), "bounds"),
        (tc.learn.PCA(epsilon=1, delta=1e-6), "bounds"),
        (tc.learn.PCA(epsilon=1, delta=1e-6, bounds=(0, 1), n_components=9), "n_components"),
        (tc.learn.NaiveBayes(epsilon=1, delta=1e-6, bounds=(0, 1)), "classes"),
        (tc.learn.NaiveBayes(epsilon=1, delta=1e-6, bounds=(0, 1), classes=[0, 1], spread=-1), "spread"),
        (tc.learn.ExplainableBoostingClassifier(epsilon=1, delta=1e-6, classes=[0, 1]), "bounds"),
        (
            tc.learn.ExplainableBoostingClassifier(epsilon=1, delta=1e-6, classes=[0, 1, 2]),
            "classes must be a list of 2 different classes",
        ),
        (
            tc.learn.ExplainableBoostingClassifier(epsilon=1, delta=1e-6, classes=[0, 1], cuts=[[1, 1], [2]]),
            "rising finite numbers, got values that do not rise",
        ),
        (
            tc.learn.ExplainableBoostingClassifier(
                epsilon=1, delta=1e-6, classes=[0, 1], bounds=(0, 1), names=["a", "a"]
            ),
            "different names",
        ),
        (
            tc.learn.ExplainableBoostingClassifier(
                epsilon=1, delta=1e-6, classes=[0, 1], cuts={"height": [1]}
            ),
            "names of features",
        ),
        (
            tc.learn.ExplainableBoostingClassifier(
                epsilon=1, delta=1e-6, classes=[0, 1], categories={"feature 1": ["a", "a"]}
            ),
            "different words",
        ),
        (tc.learn.KMeans(epsilon=1, delta=0.5, bounds=(0, 1)), "delta"),
        (tc.learn.KMeans(epsilon=1, delta=1e-6, bounds=(-1e308, 1e308)), "wide"),
        (tc.learn.KMeans(epsilon=1, delta=1e-6, bounds=(0, 1), clip=1e-300), "clip"),
        (tc.learn.NaiveBayes(epsilon=1, delta=1e-6, bounds=(0, 1), classes=[0, 1], spread=1e-300), "wide"),
        (tc.learn.KMeans(epsilon=1, bounds=(0, 1)), "delta"),
        (tc.learn.KMeans(epsilon=1, delta=1e-6, bounds=(0, 1), n_clusters=0), "n_clusters"),
    ],
)
def test_what_is_not_declared_is_refused_before_a_charge(estimator, said):
    data = declared(np.zeros((30, 2)), np.zeros(30))
    with pytest.raises(TacitError, match=said) as refused:
        estimator.fit(data)
    assert str(refused.value.fix)


def test_the_cost_and_the_question_do_not_depend_on_the_data():
    model = tc.learn.KMeans(n_clusters=2, bounds=(-1, 1), epsilon=1, delta=1e-6)
    plans = [model.plan(declared(X, size=50)) for X in (np.zeros((50, 2)), np.full((3, 2), np.nan))]
    assert plans[0].hash == plans[1].hash
    assert float(plans[0].cost.epsilon(delta=1e-6)) <= 1
    assert float(plans[0].cost.epsilon(delta=1e-6)) > 0.999


@pytest.mark.parametrize("rows", [0, 1])
def test_next_to_no_rows_still_give_a_release(rows):
    X, y = np.zeros((rows, 2)), np.zeros(rows)
    shared = {"bounds": (-1, 1), "epsilon": 1, "delta": 1e-6}
    assert np.isfinite(tc.learn.KMeans(n_clusters=2, **shared).fit(declared(X)).cluster_centers_).all()
    assert np.isfinite(tc.learn.PCA(**shared).fit(declared(X)).components_).all()
    model = tc.learn.NaiveBayes(classes=[0, 1], **shared).fit(declared(X, y))
    assert np.isfinite(model.predict_proba(np.zeros((1, 2)))).all()
    model = tc.learn.ExplainableBoostingClassifier(classes=[0, 1], **shared).fit(declared(X, y))
    assert np.isfinite(model.predict_proba(np.zeros((1, 2)))).all()
