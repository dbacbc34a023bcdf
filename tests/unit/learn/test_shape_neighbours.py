"""One unit moves the exact integers of an estimator by at most the stated sensitivity, whatever it holds."""

from __future__ import annotations

import numpy as np
import pytest

import tacit as tc
from support.shape_neighbours import declared, moves, random_pair, task_of
from twins import learn_shapes as twins

PROMISE = {"epsilon": 10_000, "delta": 1e-6}  # little noise, so that no leaf is dropped


def estimators(per_unit):
    shared = {**PROMISE, "per_unit": per_unit}
    return {
        "k-means": (tc.learn.KMeans(n_clusters=2, bounds=(-1, 1), **shared), None),
        "components": (tc.learn.PCA(bounds=(-1, 1), clip=1.1, **shared), None),
        "naive Bayes": (tc.learn.NaiveBayes(classes=[0, 1, 2], bounds=(-1, 1), **shared), [0, 1, 2]),
        "boosting": (
            tc.learn.ExplainableBoostingClassifier(
                classes=[0, 1], bounds=(-1, 1), bins=4, passes=2, **shared
            ),
            [0, 1],
        ),
        "evaluation": (None, [0, 1]),
    }


def plan_for(name, per_unit, X, y, owners):
    estimator, _ = estimators(per_unit)[name]
    data = declared(X, y, owners, per_unit, size=100)
    if estimator is not None:
        return estimator.plan(data)
    return tc.learn.evaluate(
        lambda rows: 1 / (1 + np.exp(-rows[:, 0])),
        data,
        smaller_class=50,
        classes=[0, 1],
        name="s",
    ).plan(**PROMISE)


@pytest.mark.parametrize("per_unit", [1, 2])
@pytest.mark.parametrize("name", ["k-means", "components", "naive Bayes", "boosting", "evaluation"])
def test_one_unit_moves_the_integers_by_at_most_the_sensitivity(name, per_unit, monkeypatch):
    monkeypatch.setattr("tacit.learn._examples.ranking_secret", lambda: 16)  # one secret for both neighbours
    random = np.random.default_rng(16)
    furthest = {}
    for _ in range(25):
        with_one, without = random_pair(random, 3, estimators(per_unit)[name][1])
        one, other = (task_of(plan_for(name, per_unit, *each)) for each in (with_one, without))
        assert one.question == other.question
        assert [m.to_json() for m in one.mechanisms] == [m.to_json() for m in other.mechanisms]
        for mechanism, moved in moves(one, other):
            assert moved <= mechanism.sensitivity
            key = float(mechanism.sensitivity)
            furthest[key] = max(furthest.get(key, 0.0), moved / key)
    assert min(furthest.values()) > 0.3  # the search reaches a good part of the bound


@pytest.mark.parametrize("twin", twins.BROKEN, ids=lambda twin: twin.__name__)
def test_a_broken_twin_moves_further(twin):
    assert twins.furthest(twin) > 1.001


@pytest.mark.parametrize("right", twins.RIGHT, ids=lambda right: right.__name__)
def test_the_right_sums_do_not(right):
    assert 0.5 < twins.furthest(right) <= 1
