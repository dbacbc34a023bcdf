"""With little noise the estimators agree with those of scikit-learn; the noise is what the plan says."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import linear_model

import tacit as tc
from tacit.errors import TacitError

RANDOM = np.random.default_rng(11)
X = RANDOM.uniform([0, -4], [10, 4], (3_000, 2))
LITTLE = {"epsilon": 10_000, "delta": 1e-6, "size": 3_000, "bounds": ([0, -4], [10, 4]),
          "budget": tc.Budget(epsilon=10**9, delta=0.5)}  # fmt: skip


def test_linear_regression_with_little_noise_is_least_squares():
    y = 3 * X[:, 0] - 2 * X[:, 1] + 7 + RANDOM.normal(size=3_000)
    found = tc.learn.LinearRegression(**LITTLE, target_bounds=(-20, 60), dataset="lines").fit(X, y)
    exact = linear_model.LinearRegression().fit(X, y)
    assert np.abs(found.coef_ - exact.coef_).max() < 0.01
    assert abs(found.intercept_ - exact.intercept_) < 0.05
    assert found.score(X, y) > exact.score(X, y) - 1e-4
    low, high = found.coef_intervals_.T
    error = 1.96 / np.sqrt(3_000) / np.array([10 / 12**0.5, 8 / 12**0.5])  # residuals of variance 1
    assert np.allclose((high - low) / 2, error, rtol=0.1)
    assert found.intercept_interval_[0] < exact.intercept_ < found.intercept_interval_[1]


def test_without_an_intercept_the_line_goes_through_the_origin():
    y = 3 * X[:, 0] - 2 * X[:, 1]
    said = {**LITTLE, "bounds": (-10, 10)}
    found = tc.learn.LinearRegression(
        **said, target_bounds=(-40, 40), fit_intercept=False, dataset="origin"
    ).fit(X, y)
    assert found.intercept_ == 0
    assert np.abs(found.coef_ - [3, -2]).max() < 0.05


def test_ridge_has_its_declared_penalty():
    y = 3 * X[:, 0] - 2 * X[:, 1] + 7
    found = tc.learn.Ridge(**LITTLE, penalty=0.5, target_bounds=(-20, 60), dataset="ridge").fit(X, y)
    scaled = (X - [5, 0]) / [5, 4]
    exact = linear_model.Ridge(alpha=0.5 * 3_000).fit(scaled, y)
    assert np.abs(found.coef_ * [5, 4] - exact.coef_).max() < 0.05
    with pytest.raises(TacitError):
        tc.learn.Ridge(**LITTLE, penalty=-1, target_bounds=(-20, 60), dataset="ridge").fit(X, y)


def test_too_much_noise_gives_infinite_intervals():
    model = tc.learn.LinearRegression(
        **{**LITTLE, "epsilon": 0.01}, target_bounds=(-20, 60), dataset="noise"
    ).fit(X[:50], X[:50, 0])
    assert np.isinf(model.coef_intervals_).all()
    assert np.isfinite(model.coef_).all()


def test_poisson_regression_with_little_noise_agrees():
    y = RANDOM.poisson(np.exp(0.1 * X[:, 0] + 0.2 * X[:, 1]))
    found = tc.learn.PoissonRegressor(
        **LITTLE, most=50, clip=20.0, steps=300, learning_rate=0.2, dataset="counts"
    ).fit(X, y)
    exact = linear_model.PoissonRegressor(alpha=0).fit(X, y)
    assert np.abs(found.coef_ - exact.coef_).max() < 0.02
    assert np.abs(found.predict(X) - exact.predict(X)).mean() < 0.1


def test_logistic_regression_with_little_noise_agrees():
    y = (RANDOM.random(3_000) < 1 / (1 + np.exp(-(0.5 * X[:, 0] - X[:, 1] - 2)))).astype(int)
    found = tc.learn.LogisticRegression(
        **LITTLE, classes=[0, 1], clip=3.0, steps=300, learning_rate=4.0, dataset="classes"
    ).fit(X, y)
    exact = linear_model.LogisticRegression(C=1e6).fit(X, y)
    assert np.abs(found.coef_ - exact.coef_).max() < 0.05
    assert np.abs(found.predict_proba(X) - exact.predict_proba(X)).max() < 0.02
    assert np.allclose(found.predict_log_proba(X), np.log(found.predict_proba(X)))


def test_standardisation_with_little_noise_agrees():
    found = tc.learn.Standardiser(**LITTLE, dataset="scales").fit(X)
    assert np.abs(found.mean_ - X.mean(axis=0)).max() < 0.01
    assert np.abs(found.scale_ / X.std(axis=0) - 1).max() < 0.01
    assert np.allclose(found.inverse_transform(found.transform(X)), X)


@pytest.mark.parametrize("change", [{"most": None}, {"most": 0}, {"most": 10**6}])
def test_poisson_regression_needs_the_largest_count(change):
    with pytest.raises(TacitError, match="most must be"):
        tc.learn.PoissonRegressor(**LITTLE, **change, dataset="counts").fit(X, X[:, 0])


@pytest.mark.parametrize("bounds", [None, (5, 5), (0, np.inf), "wide"])
def test_linear_regression_needs_bounds_of_the_target(bounds):
    with pytest.raises(TacitError) as refused:
        tc.learn.LinearRegression(**LITTLE, target_bounds=bounds, dataset="lines").fit(X, X[:, 0])
    assert refused.value.code in {"missing-bounds", "bad-parameter"}
