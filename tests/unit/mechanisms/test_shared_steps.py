"""Shares of noise in a secure sum: the lemma behind their price, and what the mechanism states."""

import math
import pickle
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import tacit as tc
from tacit.accounting import Cost
from tacit.accounting._charge import rounded_within
from tacit.errors import TacitError
from tacit.mechanisms import SharedSteps

M = 2**20


def sum_of_shares(sigma, shares, reach):
    """Return the law of a sum of discrete Gaussians on -reach..reach, to 60 digits."""
    steps = range(-reach, reach + 1)
    one = [mpmath.exp(-mpmath.mpf(k * k) / (2 * sigma**2)) for k in steps]
    one = [mass / mpmath.fsum(one) for mass in one]
    law = one
    for _ in range(shares - 1):
        law = [
            mpmath.fsum(law[j + reach] * one[k - j + reach] for j in steps if -reach <= k - j <= reach)
            for k in steps
        ]
    return law


@pytest.mark.parametrize(
    ("sigma", "shares"), [(1, 1), (1.5, 1), (2, 1), (4, 1), (1, 2), (1, 3), (2, 2), (1.5, 4)]
)
def test_a_sum_of_shares_holds_nearly_all_of_a_rounded_gaussian(sigma, shares):
    found = rounded_within(Fraction(sigma), shares, 1)
    assert found is not None
    spread, leak = found
    with mpmath.workdps(60):
        reach = math.ceil(9 * sigma * math.sqrt(shares)) + 3
        law = sum_of_shares(mpmath.mpf(sigma), shares, reach)
        s, worst = mpmath.mpf(spread.numerator) / spread.denominator, mpmath.mpf(0)
        for k in range(-reach + 2, reach - 1):
            rounded = mpmath.ncdf((k + mpmath.mpf(1) / 2) / s) - mpmath.ncdf((k - mpmath.mpf(1) / 2) / s)
            if shares == 1 or abs(k) <= 5 * sigma * math.sqrt(
                shares
            ):  # a cut-off sum is too small at its ends
                worst = max(worst, rounded / law[k + reach])
        assert worst <= 1 / (1 - mpmath.mpf(leak.numerator) / leak.denominator) + mpmath.mpf(10) ** -20
        assert spread**2 < shares * Fraction(sigma) ** 2


def test_only_the_narrower_sigma_keeps_the_lemma_in_the_tails():
    narrow = rounded_within(Fraction(2), 1, 1)[0]
    with mpmath.workdps(60):
        ratios = []
        for sigma in (mpmath.mpf(2), mpmath.mpf(narrow.numerator) / narrow.denominator):
            rounded = mpmath.quad(lambda x, s=sigma: mpmath.npdf(x, 0, s), [59.5, 60, 60.5])
            ratios.append(rounded / (mpmath.exp(mpmath.mpf(-450)) / (2 * mpmath.sqrt(2 * mpmath.pi))))
    assert ratios[0] > 100
    assert ratios[1] < 1


@pytest.mark.parametrize("sigma", [1, 3, 20, 1000, 2**20, 2**25])
def test_the_leak_falls_with_the_fourth_power_of_sigma(sigma):
    _, leak = rounded_within(Fraction(sigma), 1, 1)
    assert float(leak) <= 0.02 / sigma**4 + 1e-25 + 4 * math.exp(-2 * math.pi**2 * sigma**2)


def test_noise_that_is_too_narrow_has_no_price():
    with pytest.raises(TacitError) as error:
        Cost.gaussian_shares(sigma=0.5, sensitivity=1, shares=2, dimension=1)
    assert error.value.code == "no-guarantee"
    with pytest.raises(TacitError, match="do not add up"):
        Cost.gaussian_shares(sigma=1, sensitivity=1, shares=1, dimension=10**6)


def test_the_price_covers_the_exact_law_in_one_dimension():
    """The hockey-stick divergence of small sums, computed by summation, stays below the stated delta."""
    for sigma, shares, move in ((2, 3, 2), (3, 2, 5), (2, 1, 1)):
        cost = Cost.gaussian_shares(sigma=sigma, sensitivity=move, shares=shares, dimension=1)
        law = np.array([float(mass) for mass in sum_of_shares(mpmath.mpf(sigma), shares, 60)])
        for epsilon in (0.1, 0.5, 1.0, 2.0):
            exact = np.maximum(0, law[move:] - math.exp(epsilon) * law[:-move]).sum()
            assert exact <= float(cost.delta(epsilon=epsilon))


def test_six_shares_cost_as_much_as_one_with_all_the_noise():
    six = SharedSteps(sigma=4 * M, sensitivity=M, rate=0.1, steps=50, shares=9, dimension=650)
    one = 50 * Cost.gaussian(sigma=12, sensitivity=1).sampled(0.1)
    assert six.cost.epsilon(delta=1e-6) == pytest.approx(one.epsilon(delta=1e-6), rel=1e-6)
    assert six.cost.epsilon(delta=1e-6) >= one.epsilon(delta=1e-6) * (1 - 1e-9)


def test_shared_steps_are_immutable_and_survive_pickling():
    made = SharedSteps(
        sigma=M, sensitivity=M, rate=1, steps=2, shares=3, dimension=5, assumes="two are honest"
    )
    again = pickle.loads(pickle.dumps(made))
    assert again == made
    assert hash(again) == hash(made)
    assert made.to_json()["assumes"] == "two are honest"
    with pytest.raises((AttributeError, TypeError)):
        made.shares = 100
    with pytest.raises(NotImplementedError):
        made.worst_pair  # noqa: B018


def test_a_share_is_refused_for_more_numbers_than_were_priced():
    made = SharedSteps(sigma=M, sensitivity=M, rate=1, steps=1, shares=3, dimension=5)
    with pytest.raises(RuntimeError, match="another number"):
        made.noisy(np.zeros(6, dtype=np.int64))
    assert made.noisy(np.zeros(5, dtype=np.int64)).shape == (5,)


@pytest.mark.parametrize("wrong", [{"shares": 0}, {"dimension": 0}, {"rate": 2}, {"sigma": 0}, {"steps": 0}])
def test_shared_steps_refuse_nonsense(wrong):
    with pytest.raises(TacitError):
        SharedSteps(
            **{"sigma": M, "sensitivity": M, "rate": 1, "steps": 1, "shares": 3, "dimension": 5, **wrong}
        )


def test_the_noise_of_shares_has_the_stated_spread():
    made = tc.mechanisms.SharedSteps(sigma=1000, sensitivity=1, rate=1, steps=1, shares=4, dimension=40_000)
    drawn = sum(made.noisy(np.zeros(40_000, dtype=np.int64)).astype(float) for _ in range(4))
    assert abs(drawn.std() / 2000 - 1) < 6 / math.sqrt(2 * 40_000)  # six standard errors


def test_shares_are_whole_numbers_modulo_two_to_the_64():
    share = SharedSteps(sigma=1, sensitivity=1, rate=1, steps=1, shares=2, dimension=2)
    with pytest.raises(TypeError, match="whole numbers"):
        share.noisy(np.array([1.0, 2.5]))
    made = share.noisy(np.array([2**64 - 1, 2**63], np.uint64))
    assert made.dtype == np.int64  # with floats, low digits of the noise would be lost
    assert abs(int(made[0]) + 1) < 50
    assert (int(made[1]) - 2**63 + 50) % 2**64 < 100
