"""Rounded Gaussian noise: it costs what continuous noise costs, and its figures are those of its own law."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import tacit as tc
from tacit import Cost, TacitError
from tacit.mechanisms.additive._integer_noise import RoundedGaussianLaw

m = tc.mechanisms
SIGMAS = [Fraction(1, 100), Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(100), Fraction(10**6)]


def chance(sigma, k):
    """P(round(X) = k), by the symmetric tails."""
    return stats.norm.sf((abs(k) - 0.5) / float(sigma)) - stats.norm.sf((abs(k) + 0.5) / float(sigma))


def test_it_costs_what_continuous_noise_costs_in_any_number_of_dimensions():
    made = m.RoundedGaussian(sigma=3, sensitivity=2, adjacency="replace")
    assert made.cost == Cost.gaussian(sigma=3, sensitivity=2, adjacency="replace")
    many = m.DiscreteGaussian(sigma=3, sensitivity=2, adjacency="replace")
    assert made.cost.epsilon(delta=1e-6) < many.cost.epsilon(delta=1e-6)
    assert (60 * made.cost).epsilon(delta=1e-6) < (60 * many.cost).epsilon(delta=1e-6)


@pytest.mark.parametrize("sensitivity", [1, Fraction(5, 2), 2**20])
def test_each_promise_is_kept_and_little_is_wasted(sensitivity):
    made = m.RoundedGaussian(epsilon=1, delta=1e-6, sensitivity=sensitivity)
    assert made.cost.epsilon(delta=1e-6) <= 1
    less = Cost.gaussian(sigma=made.sigma * Fraction(9999, 10_000), sensitivity=sensitivity)
    assert less.epsilon(delta=1e-6) > 1
    assert m.RoundedGaussian(rho=0.1, sensitivity=sensitivity).cost.rho <= 0.1


@pytest.mark.parametrize("sigma", SIGMAS, ids=str)
@pytest.mark.parametrize(
    "confidence", [Fraction(1, 10), Fraction(1, 2), Fraction(95, 100), 1 - Fraction(1, 10**9)]
)
def test_half_widths_are_the_smallest_that_cover(sigma, confidence):
    law = RoundedGaussianLaw(sigma)
    half = law.half_width(confidence)
    allowed = float(1 - confidence)
    assert 2 * stats.norm.sf((half + 0.5) / float(sigma)) <= allowed
    if half > 0:
        assert 2 * stats.norm.sf((half - 0.5) / float(sigma)) > allowed * (1 - 1e-9)
    assert law.exceeds(half) <= allowed
    assert law.exceeds(-1) == 1


@pytest.mark.parametrize("copies", [2, 7, 500])
def test_the_half_width_of_a_sum_covers_the_sum_and_is_not_far_above(copies):
    made = m.RoundedGaussian(sigma=40, sensitivity=1)
    half = made.half_width(0.95, copies=copies)
    normal = 1.95996 * 40 * math.sqrt(copies)
    assert normal < half <= normal + copies / 2 + 1


@pytest.mark.parametrize("sigma", SIGMAS[:-1], ids=str)
def test_the_variance_and_the_losses_are_those_of_the_law(sigma):
    law = RoundedGaussianLaw(sigma)
    k = np.arange(0, int(12 * sigma) + 2)
    assert law.variance == pytest.approx(2 * np.sum(k**2 * chance(sigma, k)), rel=1e-9, abs=1e-300)
    for a, b in ((0, 1), (3, 1), (-2, 4)):
        if min(chance(sigma, a), chance(sigma, b)) > 1e-280:
            loss = math.log(chance(sigma, a) / chance(sigma, b))
            assert law.loss(a, b) == pytest.approx(loss, rel=1e-6, abs=1e-9)


def test_losses_do_not_jump_where_their_formula_changes():
    below, above = RoundedGaussianLaw(Fraction(9999)), RoundedGaussianLaw(Fraction(10_001))
    assert below.loss(0, 20_000) == pytest.approx(2.0004, rel=1e-4)
    assert above.loss(0, 20_000) == pytest.approx(1.9996, rel=1e-4)


def test_integers_come_back_as_integers_and_fractions_are_refused():
    made = m.RoundedGaussian(sigma=0.001, sensitivity=1)
    assert made.release(7) == 7
    assert made.release([1, 2]).tolist() == [1, 2]
    assert made.release(np.array([[3, 4]])).dtype == np.int64
    assert made.release_many(5, 4).tolist() == [5] * 4
    assert made.additive
    with pytest.raises(TacitError, match="not a whole number"):
        made.release(0.5)
    with pytest.raises(TacitError, match="exactly one of"):
        m.RoundedGaussian(sensitivity=1)


def test_the_document_names_law_and_cost():
    made = m.RoundedGaussian(sigma=3, sensitivity=2)
    assert made.to_json() == {
        "mechanism": "rounded-gaussian",
        "sigma": "3",
        "sensitivity": "2",
        "cost": Cost.gaussian(sigma=3, sensitivity=2).to_json(),
    }
    assert made.describe(Fraction(1, 2)) == "rounded Gaussian, sigma 1.5"
