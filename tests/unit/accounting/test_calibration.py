"""Calibration: never above the target, within a thousandth of it, on random targets."""

import math
import random
from fractions import Fraction

import pytest

from tacit.accounting import Budget, Cost, calibrate, queries_within, scale_for, sigma_for, textbook
from tacit.errors import TacitError

F = Fraction


def families(draw: random.Random) -> dict:
    """Return costs as functions of the noise, with random numbers of queries and rates."""
    k = draw.choice([1, 2, 5, 30, 200, 1000])
    q = F(draw.choice([2, 5, 20, 100]), 1000)  # above delta: a sample of rate delta needs no noise at all
    move = draw.choice([1, 2, 5])
    return {
        "gaussian": lambda s: k * Cost.gaussian(sigma=s, sensitivity=F(move, 10)),
        "laplace": lambda b: min(k, 30) * Cost.laplace(scale=b, sensitivity=F(move, 10)),
        "discrete laplace": lambda b: min(k, 30) * Cost.discrete_laplace(scale=b, sensitivity=move),
        "discrete gaussian": lambda s: k * Cost.discrete_gaussian(sigma=s, sensitivity=move),
        "sampled gaussian": lambda s: k * Cost.gaussian(sigma=s, sensitivity=1).sampled(q),
        "mixed": lambda s: (
            5 * Cost.gaussian(sigma=s, sensitivity=1) + 3 * Cost.laplace(scale=s, sensitivity=1)
        ),
    }


def check(seed: int) -> None:
    draw = random.Random(seed)
    kind, cost_of = draw.choice(sorted(families(draw).items(), key=lambda item: item[0]))
    epsilon = F(round(10 ** draw.uniform(-1.3, 1.0), 3)).limit_denominator(10**6)
    delta = F(1, 10 ** draw.randint(3, 12))
    target = Budget(epsilon=epsilon, delta=delta)
    noise = calibrate(cost_of, target)
    reached = cost_of(noise).epsilon(delta=delta)
    assert cost_of(noise).fits(target), (seed, kind)
    assert reached <= float(epsilon) * (1 + 1e-15), (seed, kind, reached, epsilon)
    assert reached >= 0.999 * float(epsilon), (seed, kind, reached, epsilon)


@pytest.mark.parametrize("block", range(10))
def test_random_targets_are_met_from_below_within_a_thousandth(block):
    for seed in range(30 * block, 30 * (block + 1)):
        check(seed)


@pytest.mark.long
@pytest.mark.parametrize("block", range(100))
def test_ten_thousand_random_targets(block):
    for seed in range(1000 + 100 * block, 1000 + 100 * (block + 1)):
        check(seed)


def test_the_training_noise_of_the_reference():
    sigma = sigma_for(Budget(epsilon=2, delta=1e-5), sensitivity=1, queries=1000, q=0.01)
    assert sigma == pytest.approx(0.959102, rel=1e-5)


def test_the_analytic_gaussian_needs_less_noise_than_the_classic_formula():
    target = Budget(epsilon=0.5, delta=1e-6)
    classic = textbook.gaussian_sigma(0.5, delta=1e-6, sensitivity=0.024)
    assert classic == pytest.approx(0.2543, abs=5e-5)
    assert sigma_for(target, sensitivity=0.024) < classic
    above_one = sigma_for(Budget(epsilon=4, delta=1e-6), sensitivity=1)
    assert Cost.gaussian(sigma=above_one, sensitivity=1).epsilon(delta=1e-6) <= 4


def test_a_target_may_be_given_by_its_numbers():
    def one(sigma):
        return Cost.gaussian(sigma=sigma, sensitivity=1)

    assert calibrate(one, epsilon=1, delta=1e-6) == calibrate(one, Budget(epsilon=1, delta=1e-6))
    assert calibrate(one, rho=0.5) == 1.0
    for wrong in (lambda: calibrate(one), lambda: calibrate(one, Budget(rho=1), rho=1)):
        with pytest.raises(TacitError):
            wrong()


def test_pure_and_rho_targets():
    assert scale_for(Budget(epsilon=0.5), sensitivity=3) == 6.0
    assert sigma_for(Budget(rho=0.5), sensitivity=1) == 1.0
    for target in (Budget(epsilon=0.7), Budget(rho=0.03), Budget(rho=0.03, delta=1e-9)):
        scale = scale_for(target, sensitivity=2, queries=7)
        assert (7 * Cost.discrete_laplace(scale=scale, sensitivity=2)).fits(target)
        assert not (7 * Cost.discrete_laplace(scale=scale * 0.999, sensitivity=2)).fits(target)


def test_the_largest_number_of_queries():
    assert queries_within(Budget(epsilon=1), Cost.pure(0.1)) == 10
    assert queries_within(Budget(epsilon=1), Cost.pure(F(1, 7))) == 7
    assert queries_within(Budget(rho=1), Cost.gaussian(sigma=10, sensitivity=1)) == 200
    assert queries_within(Budget(epsilon=0.01), Cost.pure(0.1)) == 0
    query, target = Cost.gaussian(sigma=25, sensitivity=1), Budget(epsilon=6.148799, delta=1e-7)
    k = queries_within(target, query)
    assert k in (799, 800)
    assert (k * query).fits(target)
    assert not ((k + 1) * query).fits(target)


def test_targets_that_no_noise_reaches_are_refused():
    with pytest.raises(TacitError) as refusal:
        calibrate(lambda s: Cost.gaussian(sigma=s, sensitivity=1), Budget(epsilon=1))
    assert refusal.value.code == "no-guarantee"
    with pytest.raises(TacitError):
        calibrate(
            lambda s: Cost.gaussian(sigma=s, sensitivity=1) + Cost.pure(2), Budget(epsilon=1, delta=1e-6)
        )
    with pytest.raises(TacitError):
        calibrate(lambda s: Cost.gaussian(sigma=s, sensitivity=1), 1.0)
    with pytest.raises(TacitError):
        queries_within(Budget(epsilon=1), Cost.zero())


def test_extreme_targets_are_met():
    for epsilon, delta in [(1e-4, 1e-9), (50, 1e-9), (1, 1e-20), (0.01, 0.3)]:
        target = Budget(epsilon=epsilon, delta=delta)
        sigma = sigma_for(target, sensitivity=1)
        cost = Cost.gaussian(sigma=sigma, sensitivity=1)
        assert cost.fits(target)
        assert math.isfinite(sigma)
        assert not Cost.gaussian(sigma=0.999 * sigma, sensitivity=1).fits(target)


def test_the_textbook_optimum_is_what_composition_of_coins_reads():
    for epsilon, k, delta in [(0.1, 100, 1e-5), (1, 10, 1e-3), (0.5, 31, 1e-6)]:
        exact = (k * Cost.randomized_response(epsilon)).epsilon(delta=delta)
        assert exact == pytest.approx(textbook.optimal(epsilon, k, delta_total=delta), rel=1e-6)
        assert exact <= textbook.advanced(epsilon, k, slack=delta)[0]
        assert exact <= textbook.basic(epsilon, k)[0]


def test_textbook_refuses_what_its_formula_does_not_cover():
    for call in (
        lambda: textbook.gaussian_sigma(2, delta=1e-6, sensitivity=1),
        lambda: textbook.renyi_epsilon(1, 0.5, delta=1e-5),
        lambda: textbook.zcdp_epsilon(0.5, delta=0),
        lambda: textbook.sampled(1, 1.5),
        lambda: textbook.advanced(0.1, 10, slack=1),
        lambda: textbook.optimal(0.1, 10, delta_total=1e-9, delta=1e-3),
        lambda: textbook.basic(0.1, -1),
        lambda: textbook.group(0.1, 0),
    ):
        with pytest.raises(TacitError) as refusal:
            call()
        assert refusal.value.code == "bad-parameter"
