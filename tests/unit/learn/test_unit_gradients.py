"""Sums of estimators are exact: one unit more adds its own vector, whoever else is there, within the clip."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.learn.estimators._declared_bounds import read_feature_bounds
from tacit.learn.estimators._generalised_linear import (
    CLIP_STEPS,
    ClassResiduals,
    CountResiduals,
    UnitGradients,
)
from tacit.learn.estimators._linear import MomentGrid
from tacit.learn.estimators._whole_features import whole_features
from twins import learn_estimators as twins

WILD = [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 0.0, 1.0, -1.0]


def a_dataset(random, *, units, per_unit=1, classes=3, counts=False):
    """Return features, targets and rows of random units, with wild values here and there."""
    examples = units * per_unit
    features = random.normal(size=(examples, 4)) * random.choice([0.01, 1, 100])
    wild = random.random(features.shape) < 0.03
    features[wild] = random.choice(WILD, size=int(wild.sum()))
    target = random.poisson(3, examples).astype(float) if counts else random.integers(-1, classes, examples)
    if counts:
        target[random.random(examples) < 0.05] = random.choice(WILD)
    rows = np.arange(examples).reshape(units, per_unit)
    rows = np.where(random.random(rows.shape) < 0.2, -1, rows) if per_unit > 1 else rows
    return features, target, rows


def sums_of(features, target, rows, *, clip, counts=False):
    low, high = read_feature_bounds((-2, 2), features.shape[1])
    rule = CountResiduals(np.asarray(target, float), 20) if counts else ClassResiduals(np.asarray(target))
    return UnitGradients(whole_features(features, low, high, intercept=True), rule, clip, rows)


def weights_of(random, outputs):
    return random.normal(size=(outputs, 5)) * random.choice([0.0, 0.1, 3.0, 1e6])


@pytest.mark.parametrize("per_unit", [1, 3])
@pytest.mark.parametrize("counts", [False, True])
def test_a_unit_adds_its_own_vector_exactly_whoever_else_is_there(per_unit, counts):
    random = np.random.default_rng(per_unit + 10 * counts)
    longest = 0.0
    for _ in range(60):
        units = int(random.integers(1, 40))
        clip = float(random.choice([0.01, 1.0, 50.0]))
        held = sums_of(
            *a_dataset(random, units=units, per_unit=per_unit, counts=counts), clip=clip, counts=counts
        )
        weights = weights_of(random, 1 if counts else 3)
        everyone = held.sums(weights, np.arange(units))
        one = int(random.integers(units))
        others = held.sums(weights, np.delete(np.arange(units), one))
        alone = held.sums(weights, np.array([one]))
        assert np.array_equal(everyone - others, alone)
        squared = int((alone.astype(object) ** 2).sum())
        assert squared <= CLIP_STEPS**2
        longest = max(longest, squared / CLIP_STEPS**2)
    assert longest > 0.999  # the bound is reached, so that the noise is not larger than it must be


def test_a_unit_without_a_valid_example_adds_nothing():
    features = np.array([[np.nan, 1.0], [0.5, 0.5], [1.0, 1.0]])
    held = sums_of(features, np.array([0, -1, 2]), np.arange(3)[:, None], clip=1.0)
    weights = np.ones((3, 3))
    assert not held.sums(weights, np.array([0, 1])).any()
    assert held.sums(weights, np.array([2])).any()
    assert held.sums(weights, np.zeros(0, np.int64)).shape == (3, 3)


def test_gradients_are_those_of_logistic_regression():
    random = np.random.default_rng(3)
    features, labels = random.uniform(-2, 2, (50, 4)), random.integers(0, 3, 50)
    held = sums_of(features, labels, np.arange(50)[:, None], clip=1e3)
    weights = random.normal(size=(3, 5))
    scaled = np.c_[features / 2, np.ones(50)]
    powers = np.exp(scaled @ weights.T)
    exact = (powers / powers.sum(axis=1, keepdims=True) - np.eye(3)[labels]).T @ scaled
    found = held.sums(weights, np.arange(50)) * 1e3 / CLIP_STEPS
    assert np.abs(found - exact).max() < 0.2  # tables of 1/256 and residuals cut at the grid of a large clip


def test_one_example_per_unit_and_several_agree():
    random = np.random.default_rng(4)
    features, labels, rows = a_dataset(random, units=30)
    narrow = sums_of(features, labels, rows, clip=0.3)
    wide = sums_of(features, labels, np.c_[rows, np.full(30, -1)], clip=0.3)
    weights = random.normal(size=(3, 5))
    apart = narrow.sums(weights, np.arange(30)) - wide.sums(weights, np.arange(30))
    assert np.abs(apart).max() < 1e-3 * CLIP_STEPS


@pytest.mark.parametrize(
    "twin", [twins.clipped_after_summing, twins.centred_at_the_data, twins.two_examples_clipped_apart]
)
def test_a_broken_twin_moves_further_than_it_claims(twin):
    random = np.random.default_rng(5)
    furthest = 0.0
    for _ in range(30):
        per_unit = 2 if twin is twins.two_examples_clipped_apart else 1
        features, labels, rows = a_dataset(random, units=20, per_unit=per_unit)
        features = np.nan_to_num(np.clip(features, -2, 2))
        weights = random.normal(size=(3, 5))
        found = [
            np.asarray(twin(sums_of(features, labels, some, clip=0.1), weights), float)
            for some in (rows, rows[:-1])
        ]
        furthest = max(furthest, float(((found[0] - found[1]) ** 2).sum()))
    assert furthest > CLIP_STEPS**2


def test_rounding_away_from_zero_moves_further_than_it_claims():
    random = np.random.default_rng(6)
    features, labels, rows = a_dataset(random, units=200)
    features = np.nan_to_num(np.clip(features, -2, 2))
    weights = random.normal(size=(3, 5))
    moved = [
        int(
            (
                twins.rounded_away(sums_of(features, labels, rows[[k]], clip=0.1), weights).astype(object)
                ** 2
            ).sum()
        )
        for k in range(200)
    ]
    assert max(moved) > CLIP_STEPS**2


@pytest.mark.parametrize("intercept", [True, False])
def test_moments_move_by_at_most_their_sensitivity_and_add_up_exactly(intercept):
    random = np.random.default_rng(7)
    longest = 0.0
    for _ in range(200):
        grid = MomentGrid(3, intercept, float(random.choice([0.5, 1.0, 3.0])), 1)
        features = random.normal(size=(20, 3)) * random.choice([0.1, 10.0])
        target = random.normal(size=20) * random.choice([0.1, 10.0])
        features[0, 0], target[1] = random.choice(WILD), random.choice(WILD)
        low, high = read_feature_bounds((-1, 1), 3)
        rows = grid.rows(features, target, low, high, (-1.0, 1.0))
        one = int(random.integers(20))
        alone = grid.moments(rows[[one]])
        assert np.array_equal(grid.moments(rows) - grid.moments(np.delete(rows, one, axis=0)), alone)
        longest = max(longest, int((alone.astype(object) ** 2).sum()) / grid.sensitivity**2)
        assert longest <= 1
    assert longest > 0.9


def test_moments_beyond_all_bounds_stay_at_the_end_of_their_range():
    grid = MomentGrid(1, intercept=False, clip=64.0, per_unit=1)
    rows = np.full((3, 2), 2.0**26)  # wider than any clip: 3 rows stand for very many
    assert np.abs(grid.moments(np.repeat(rows, 400, axis=0))).max() == 2**62
