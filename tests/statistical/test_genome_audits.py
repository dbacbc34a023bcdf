"""Frequencies under attack: the task holds, and deliberately broken copies of it are caught."""

from __future__ import annotations

import numpy as np
import pytest

import tacit as tc
from support.cohorts import random_neighbours
from support.exact_integers import exact_of, exact_of_plan
from tacit.accounting import Cost
from tacit.audit import audit
from tacit.core import members_of
from twins import genomes as twins

CLIP = 300


def furthest(sums, rounds=3_000):
    """Return the largest squared change that one more person makes, over random cohorts."""
    random = np.random.default_rng(5)
    found = 0.0
    for _ in range(rounds):
        (calls, _), (other, _), reference = random_neighbours(random, replace=False)
        change = sums(other, reference, CLIP) - sums(calls, reference, CLIP)
        found = max(found, float((change**2).sum()))
    return found


@pytest.mark.parametrize(
    "twin", [twins.rounded_away, twins.clipped_after_summing, twins.centred_at_the_cohort]
)
def test_a_broken_twin_moves_further_than_it_claims(twin):
    assert furthest(twin) > CLIP


def test_the_right_sums_do_not():
    assert 0.8 * CLIP < furthest(twins.right) <= CLIP


def test_the_right_sums_are_those_of_the_task():
    random = np.random.default_rng(6)
    for _ in range(300):
        (calls, _), _, reference = random_neighbours(random, replace=False)
        cohort = tc.genotypes(calls.astype(np.int8), budget=tc.Budget(rho=1))
        plan = cohort.frequencies(reference=reference, clip=np.sqrt(CLIP).item() / 16).plan(rho=0.1)
        exact = exact_of_plan(plan)[1][0, 0]
        clip = members_of(plan)[0].task.question["clip_squared"]
        assert np.abs(exact - twins.right(calls, reference, clip)).max(initial=0) <= len(calls)


def test_an_exact_number_of_people_is_caught():
    random = np.random.default_rng(1)

    def attacked(people, size):
        return twins.exact_people(0, people, size, random)[:, 0]

    found = audit(attacked, 100, 101, samples=20_000, claimed=Cost.zcdp(0.1))
    assert found.holds is False


@pytest.mark.long
@pytest.mark.parametrize("reference", [None, "frequency"])
def test_an_attack_on_the_whole_release_finds_no_more_than_its_cost(reference):
    """One more person, homozygous everywhere: the attacker adds up all released numbers."""
    random = np.random.default_rng(2)
    calls = (random.random((2, 30, 12)) < 0.2).sum(0).astype(np.int8)
    table = {
        "chromosome": ["1"] * 12, "position": list(range(1, 13)), "ref": ["A"] * 12, "alt": ["G"] * 12,
        "frequency": [0.2] * 12,
    }  # fmt: skip
    plans = [
        tc.genotypes(rows, variants=table, budget=tc.Budget(rho=1))
        .frequencies(reference=reference)
        .plan(rho=0.5)
        for rows in (calls, np.concatenate([calls, np.full((1, 12), 2, np.int8)]))
    ]

    def attacked(which, size):
        task = members_of(plans[which])[0].task
        people, sums = exact_of(task)
        counting, adding = task.mechanisms
        noisy = np.array([np.sum(adding.release(sums)) for _ in range(size)], float)
        return noisy + np.array([counting.release(people)[0] for _ in range(size)])

    found = audit(attacked, 0, 1, samples=4_000, delta=1e-3, claimed=plans[0].cost)
    assert found.holds, found
    assert found.epsilon_lower > 0.3
