"""Estimators at small epsilons: accuracy on known data, honest bands and intervals, attacks on releases."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_blobs
from sklearn.metrics import adjusted_rand_score, roc_auc_score
from sklearn.model_selection import train_test_split

import tacit as tc
from support.adult import CATEGORIES, CUTS, NAMES, adult_folder, read_adult
from support.shape_neighbours import declared, task_of
from tacit.audit import audit
from tacit.core import SharedReadings, measure
from tacit.learn.evaluation._measures import HistogramReader

pytestmark = pytest.mark.long


@pytest.mark.parametrize("epsilon", [1, 4])
def test_blobs_are_found_again(epsilon):
    found = []
    for k in range(10):
        X, y = make_blobs(20_000, 8, centers=5, random_state=k)
        model = tc.learn.KMeans(n_clusters=5, bounds=(-13, 13), epsilon=epsilon, delta=1e-6)
        found.append(adjusted_rand_score(y, model.fit(declared(X)).predict(X)))
    assert np.median(found) > 0.99


@pytest.mark.parametrize(("epsilon", "lost"), [(1, (0.03, 0.09, 0.15)), (4, (0.003, 0.008, 0.02))])
def test_components_of_digits_keep_the_variance(epsilon, lost):
    X, _ = load_digits(return_X_y=True)
    spread = np.cov(X.T)
    best = np.linalg.eigh(spread)[1][:, ::-1].T

    def kept(parts):
        return np.trace(parts @ spread @ parts.T) / np.trace(spread)

    model = tc.learn.PCA(n_components=16, bounds=(0, 16), epsilon=epsilon, delta=1e-6).fit(declared(X))
    for number, most in zip((2, 8, 16), lost, strict=True):
        assert kept(best[:number]) - kept(model.components_[:number]) < most


@pytest.mark.parametrize(("epsilon", "least"), [(1, 0.83), (4, 0.86)])
def test_naive_bayes_of_digits(epsilon, least):
    found = []
    for k in range(8):
        A, T, a, t = train_test_split(*load_digits(return_X_y=True), test_size=0.2, random_state=k)
        model = tc.learn.NaiveBayes(classes=range(10), bounds=(0, 16), epsilon=epsilon, delta=1e-6)
        found.append(model.fit(declared(A, a)).score(T, t))
    assert np.mean(found) > least


@pytest.mark.skipif(adult_folder() is None, reason="Adult is not there: see tests/support/adult.py")
@pytest.mark.parametrize(
    ("epsilon", "least", "auc"), [(0.5, 0.845, 0.90), (1, 0.848, 0.905), (4, 0.851, 0.91)]
)
def test_boosting_of_adult(epsilon, least, auc):
    folder = adult_folder()
    model = tc.learn.ExplainableBoostingClassifier(
        classes=[0, 1], cuts=CUTS, categories=CATEGORIES, names=NAMES, epsilon=epsilon, delta=1e-6
    )
    model.fit(declared(*read_adult(folder / "adult.data")))
    T, t = read_adult(folder / "adult.test")
    assert model.score(T, t) > least
    assert roc_auc_score(t, model.decision_function(T)) > auc


def test_bands_of_shapes_cover_the_noise():
    random = np.random.default_rng(3)
    X = random.uniform(-3, 3, (20_000, 3))
    X[:, 2] = X[:, 0] + random.normal(0, 0.5, 20_000)  # goes together with the first feature
    y = (random.random(20_000) < 1 / (1 + np.exp(-X[:, 0] - np.sin(X[:, 1])))).astype(int)
    model = tc.learn.ExplainableBoostingClassifier(
        classes=[0, 1], bounds=(-3, 3), bins=8, epsilon=1, delta=1e-6
    )
    task = task_of(model.plan(declared(X, y)))
    fits = [task.reading(task.draw(), Fraction(95, 100)) for _ in range(40)]
    values, errors = (np.array([fit.numbers[name] for fit in fits]) for name in ("values", "error"))
    covered = np.abs(values - values.mean(axis=0)) <= errors
    assert covered.mean() > 0.93


@pytest.mark.parametrize(("size", "sigma"), [(2_000, 4.22), (10_000, 15.4), (500, 4.22)])
def test_intervals_of_an_evaluation_cover(size, sigma):
    random = np.random.default_rng(5)
    edges = np.arange(21) / 20

    def histogram(rows):
        y = random.random(rows) < 0.3
        score = 1 / (1 + np.exp(-(np.log(3 / 7) + 1.2 * (random.normal(size=rows) + 1.2 * y) - 0.72)))
        place = np.clip(np.searchsorted(edges, score, side="right") - 1, 0, 19)
        return np.bincount(y * 20 + place, minlength=40).reshape(2, 20).astype(float)

    def measures(counts, noise):
        reader = HistogramReader(edges, counts, noise, 1, Fraction(95, 100))
        called = (reader.middles >= 0.5).astype(float)
        return reader.auc(), reader.share(np.stack([1 - called, called])), *reader.outcomes()[2:5]

    truth = [one.value for one in measures(histogram(2_000_000), 1e-9)]
    covered = np.array(
        [
            [one.low <= true <= one.high for one, true in zip(found, truth, strict=True)]
            for found in (
                measures(histogram(size) + np.rint(random.normal(0, sigma, (2, 20))), sigma)
                for _ in range(600)
            )
        ]
    ).mean(axis=0)
    assert covered.min() > 0.89  # 0.95, less seven standard errors of 600 runs


def attacked(plans, score, parts):
    """Return how an attacker draws the score of the first parts of releases of one of two neighbours."""

    def one(which):
        task = task_of(plans[which])
        with SharedReadings.opened() as readings:
            return score(measure(task.steps[:parts], task.open(readings)))

    return lambda which, size: np.array([one(which) for _ in range(size)], float)


def test_an_attack_on_releases_of_naive_bayes_finds_no_more_than_its_cost():
    """The attacker knows all but one patient, who is alone in the second class at the far corner."""
    X, y = np.full((1_000, 2), -0.2), np.zeros(1_000, int)
    other = np.concatenate([X, [[1.0, 1.0]]]), np.append(y, 1)
    model = tc.learn.NaiveBayes(classes=[0, 1], bounds=(-1, 1), epsilon=4, delta=1e-6)
    plans = [model.plan(declared(*data, size=1_000)) for data in ((X, y), other)]

    def score(noisy):
        count, *sums = noisy[1][1]
        return count / 3 + sum(sums) / np.sqrt(2)

    found = audit(attacked(plans, score, 2), 0, 1, samples=6_000, delta=1e-3, claimed=plans[0].cost)
    assert found.holds, found
    assert found.epsilon_lower > 0.3, found


def test_an_attack_on_releases_of_k_means_finds_no_more_than_its_cost():
    """The attacker adds up all leaves: one more patient at the corner adds to a count and to the sums."""
    X = np.full((200, 2), 0.5)
    model = tc.learn.KMeans(n_clusters=1, bounds=(-1, 1), epsilon=4, delta=1e-6)
    plans = [model.plan(declared(data, size=40)) for data in (X, np.concatenate([X, [[1.0, 1.0]]]))]
    found = audit(
        attacked(plans, lambda noisy: np.asarray(noisy[2], float).sum(), 3), 0, 1,
        samples=4_000, delta=1e-3, claimed=plans[0].cost,
    )  # fmt: skip
    assert found.holds, found
