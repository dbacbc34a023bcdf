"""One-run audits: honest scores stay below the claim, scores without noise break it. Seeded, so no chance."""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

import tacit as tc
from tacit.audit._one_run import _least_chance


def _scores(seed, canaries, sigma):
    rng = np.random.default_rng(seed)
    coins = rng.random(canaries) < 0.5
    return coins + sigma * rng.normal(size=canaries), coins


def _sigma(epsilon):
    return float(tc.mechanisms.RoundedGaussian(epsilon=epsilon, delta=1e-5, sensitivity=2**20).sigma) / 2**20


def test_honest_noise_stays_below_the_claim_and_comes_near_the_page_s_figures():
    found = {}
    for claim in (1, 4, 8):
        sigma = _sigma(claim)
        cost = tc.Cost.gaussian(sigma=sigma, sensitivity=1)
        audits = [tc.audit.one_run(*_scores(seed, 1000, sigma), claimed=cost) for seed in range(12)]
        bounds = [one.epsilon_lower for one in audits]
        assert all(one.holds for one in audits)
        assert sum(bound > claim for bound in bounds) <= 2  # 5 % each
        found[claim] = np.mean(bounds)
    assert 0.15 < found[1] < 0.6
    assert 1.4 < found[4] < 2.6
    assert 3.2 < found[8] < 4.8


@pytest.mark.parametrize("factor", [0.25, 0.4])
def test_too_little_noise_is_caught(factor):
    sigma = _sigma(1)
    cost = tc.Cost.gaussian(sigma=sigma, sensitivity=1)
    found = tc.audit.one_run(*_scores(5, 5000, sigma * factor), claimed=cost, delta=1e-5)
    assert found.epsilon_lower > 1
    assert found.holds is (factor > 0.3)  # the verdict asks for more certainty than 95 %


def test_scores_that_know_nothing_prove_nothing():
    rng = np.random.default_rng(0)
    found = tc.audit.one_run(rng.normal(size=2000), rng.random(2000) < 0.5, claimed=tc.Cost.pure(0.1))
    assert found.epsilon_lower < 0.1
    assert found.holds


def test_scores_without_noise_break_every_claim():
    coins = np.arange(2000) % 2 == 0
    found = tc.audit.one_run(coins.astype(float), coins, claimed=tc.Cost.pure(3))
    assert found.holds is False
    assert found.epsilon_lower > 5
    assert "THE CLAIM IS BROKEN" in str(found)
    fixed = tc.audit.one_run(coins.astype(float), coins, guesses=400)
    assert fixed.guesses == ((400, 400),)


def test_the_curve_of_a_cost_never_promises_more_than_the_truth():
    least = _least_chance(tc.Cost.gaussian(sigma=1, sensitivity=1))
    for x in np.linspace(0.001, 0.999, 97):
        true = ndtr(ndtri(x) - 1)
        assert least(float(x)) <= true + 1e-9
        assert least(float(x)) > true - 2e-3


@pytest.mark.parametrize(
    ("scores", "coins"),
    [([1.0], [True, False]), ([], []), ([1.0, 2.0], [1, 0]), ([[1.0]], [[True]])],
)
def test_wrong_input_is_refused(scores, coins):
    with pytest.raises(tc.TacitError) as refused:
        tc.audit.one_run(scores, np.array(coins))
    assert refused.value.code == "bad-parameter"
    with pytest.raises(tc.TacitError):
        tc.audit.one_run([1.0, 2.0, 3.0], np.array([True, False, True]), guesses=1)


@pytest.mark.long
def test_the_bound_is_wrong_at_most_as_often_as_it_says():
    sigma = _sigma(4)
    wrong = sum(
        tc.audit.one_run(*_scores(seed, 300, sigma), confidence=0.8).epsilon_lower > 4 for seed in range(500)
    )
    assert wrong <= 130  # 100 expected at most
