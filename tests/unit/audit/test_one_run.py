"""One-run audits: honest scores stay below the claim, scores without noise break it. Seeded, so no chance."""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

import tacit as tc
from tacit.audit._model_audits import _least_chance, _too_many


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


def _most_often(canaries, epsilon, delta, right):
    """How often a private mechanism can guess so many coins right, whatever it does: a linear program.

    Adding a random mask to the coins and shuffling canaries makes the best mechanism symmetric: q[k] is the
    probability of each set of k right guesses. The others bound how far q is above e^epsilon times q of the
    neighbour, where one of the right or one of the wrong guesses changes sides.
    """
    from math import comb, exp

    from scipy.optimize import linprog

    n = canaries + 1
    rows, total = [], np.zeros(3 * n)
    for k in range(n):
        for start, other, sets in (
            (n, k - 1, comb(n - 2, k - 1) if k else 0),
            (2 * n, k + 1, comb(n - 2, k)),
        ):
            if 0 <= other < n:
                row = np.zeros(3 * n)
                row[k], row[other], row[start + k] = 1, -exp(epsilon), -1
                rows.append(row)
                total[start + k] = sets
    sizes = np.array([comb(canaries, k) for k in range(n)] + [0] * (2 * n), float)
    gain = np.where(np.arange(3 * n) >= right, sizes, 0)
    best = linprog(-gain, A_ub=[*rows, total], b_ub=[0] * len(rows) + [delta], A_eq=[sizes], b_eq=[1])
    return -best.fun


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-6), (1, 0.01), (0.1, 0.05), (2, 0.02)])
@pytest.mark.parametrize("canaries", [5, 12])
def test_no_private_mechanism_raises_a_false_alarm_however_it_ties_canaries_together(
    canaries, epsilon, delta
):
    least = _least_chance(tc.Cost.approximate(epsilon, delta))
    for right in range(canaries // 2 + 1, canaries + 1):
        chance = _most_often(canaries, epsilon, delta, right)
        assert not _too_many(least, canaries, canaries, right, 0.999 * chance)


def test_a_claim_that_is_stated_with_a_delta_is_judged():
    coins = np.arange(2000) % 2 == 0
    claim = tc.Cost.gaussian(sigma=4, sensitivity=1).stated(delta=1e-6)
    assert tc.audit.one_run(np.zeros(2000), coins, claimed=claim).holds
    assert tc.audit.one_run(coins.astype(float), coins, claimed=claim).holds is False
    leaky = tc.Cost.approximate(0, 0.01)  # may reveal all coins, once in a hundred runs
    assert tc.audit.one_run(coins.astype(float), coins, claimed=leaky).holds


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
