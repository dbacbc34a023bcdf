"""A teacher ensemble under attack: votes move by one teacher, broken copies by more, and noise is enough."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import tacit as tc
from tacit.audit import audit, neighbours
from tacit.core import members_of
from twins import learn_teachers as twins

LIMIT = math.sqrt(2 * len(twins.QUERIES)) * (1 + 1e-12)


def search(votes, tries=400):
    random = np.random.default_rng(3)
    return neighbours(votes, lambda: twins.neighbours_of(random), LIMIT, tries=tries, norm="l2")


def test_one_more_example_moves_one_vote_of_each_query():
    assert search(twins.right).holds


@pytest.mark.parametrize("twin", twins.BROKEN)
def test_a_broken_ensemble_moves_further(twin):
    assert not search(twin).holds


def plan_of(sigma, teachers=4, **settings):
    rows = np.zeros((4, 1))
    data = tc.learn.examples(rows, np.zeros(4, int), unit=tc.Unit.row(), size=4, budget=tc.Budget(rho=100))
    ensemble = tc.learn.Teachers(twins.NearestMean(), data=data, teachers=teachers, classes=[0, 1, 2])
    return members_of(ensemble.label(twins.QUERIES, **settings).plan(sigma=sigma))[0]


def drawer(noise, exact, direction):
    """Return the released votes along the direction in which the neighbour differs."""

    def attacked(which, size):
        noisy = np.asarray(noise.release(np.tile(exact[which].ravel(), (size, 1))))
        return noisy @ direction.ravel()

    return attacked


#: All teachers agree on class 0; on the neighbouring data one of them votes for class 1 everywhere.
BEFORE = np.tile([4, 0, 0], (len(twins.QUERIES), 1))
AFTER = np.tile([3, 1, 0], (len(twins.QUERIES), 1))


@pytest.mark.long
def test_an_attack_on_all_votes_finds_no_more_than_the_cost():
    member = plan_of(sigma=6)
    attacked = drawer(member.task.subject.noise, (BEFORE, AFTER), AFTER - BEFORE)
    found = audit(attacked, 0, 1, samples=20_000, claimed=member.cost, delta=1e-3)
    assert found.holds is not False
    assert found.epsilon_lower > 0.5 * member.cost.epsilon(delta=1e-3)


@pytest.mark.long
def test_noise_for_one_count_that_moves_is_caught():
    """The twin takes a vote that moves from one class to another for one count that moves by one."""
    member = plan_of(sigma=6)
    smaller = tc.mechanisms.RoundedGaussian(
        sigma=member.task.subject.noise.sigma / Fraction(3, 2) / 2, sensitivity=1
    )
    attacked = drawer(smaller, (BEFORE, AFTER), AFTER - BEFORE)
    found = audit(attacked, 0, 1, samples=20_000, claimed=member.cost, delta=1e-3)
    assert found.holds is False


@pytest.mark.long
def test_a_check_that_is_not_charged_is_caught():
    """The twin shows the agreement on every query, and charges the votes alone."""
    member = plan_of(sigma=60, threshold=(3, 2))
    attacked = drawer(
        member.task.subject.check.noise, (BEFORE.max(axis=1), AFTER.max(axis=1)), -np.ones(len(BEFORE))
    )
    claimed = member.task.subject.noise.cost
    assert audit(attacked, 0, 1, samples=20_000, claimed=claimed, delta=1e-3).holds is False
    assert audit(attacked, 0, 1, samples=20_000, claimed=member.cost, delta=1e-3).holds is not False
