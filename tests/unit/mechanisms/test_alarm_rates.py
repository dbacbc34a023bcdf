"""How often an alarm rings by noise alone: the sparse vector, and weighted sums of noise."""

import json

import numpy as np
import pytest
from scipy.stats import binom

import tacit as tc


@pytest.mark.parametrize(
    ("epsilon", "days", "gaps"),
    [(1, 30, (14, 18)), (1, 365, (19, 23)), (0.5, 365, (37, 45)), (2, 365, (10, 12))],
)
def test_false_alarms_of_the_sparse_vector_are_those_of_the_reference(epsilon, days, gaps):
    vector = tc.mechanisms.SparseVector(epsilon, threshold=0, sensitivity=1, monotone=True, grid=1)
    for gap, rate in zip(gaps, (0.05, 0.01), strict=True):
        assert vector.false_yes(gap, queries=days) <= rate < vector.false_yes(gap - 1, queries=days)


def test_a_sparse_vector_goes_on_with_the_same_threshold():
    vector = tc.mechanisms.SparseVector(1, threshold=50, c=2, sensitivity=1, monotone=True, grid=1)
    first, memory = vector.release_next([0, 500], b"")
    second, later = vector.release_next([0, 500, 500], memory)
    assert (first, second) == ([0, 1], [0, 1, -1])
    assert json.loads(memory)["bar"] == json.loads(later)["bar"]
    assert (json.loads(memory)["left"], json.loads(later)["left"]) == (1, 0)
    assert vector.release_next([], later) == ([], later)
    bars = {json.loads(vector.release_next([], b"")[1])["bar"] for _ in range(60)}
    assert len(bars) > 3  # a new run has a threshold of its own


def test_the_rate_of_the_sparse_vector_is_what_runs_show():
    vector = tc.mechanisms.SparseVector(1, threshold=10, sensitivity=1, monotone=True, grid=1)
    rings = (vector.release_many([0] * 30, 8000) == 1).any(axis=1).mean()
    expected = vector.false_yes(10, queries=30)
    assert abs(rings - expected) < 6 * (expected * (1 - expected) / 8000) ** 0.5
    vector = tc.mechanisms.SparseVector(1, threshold=10, sensitivity=1, monotone=True, grid=1)
    assert abs((vector.release_many([13], 8000) == 1).mean() - vector.true_yes(3)) < 0.025  # six deviations


@pytest.mark.parametrize("height", [0.5, 2, 6])
@pytest.mark.parametrize("weights", [[1.0], [1, -0.5, 0.25], [0.5] * 8])
@pytest.mark.parametrize("gaussian", [False, True])
def test_the_chance_above_a_height_is_never_too_small(height, weights, gaussian):
    noise = (
        tc.mechanisms.DiscreteGaussian(rho=0.5, sensitivity=1)
        if gaussian
        else tc.mechanisms.DiscreteLaplace(epsilon=1, sensitivity=1)
    )
    draws = noise.release_many([0] * len(weights), 20000) @ np.array(weights)
    above, bound = (draws >= height - 1e-12).sum(), tc.mechanisms.chance_above(noise, weights, height)
    assert binom.sf(above - 1, 20000, bound) > 1e-8  # the tails of the binomial law: P < 1e-8
    assert len(weights) > 1 or binom.cdf(above, 20000, bound) > 1e-8
