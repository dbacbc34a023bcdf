"""Parameters at the end of the doubles: refused or read right, never too small."""

import math
import random
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from tacit.accounting import Cost
from tacit.accounting.numeric._arithmetic import NotConverged, U
from tacit.accounting.numeric._fourier import LineChoice, evaluate
from tacit.accounting.numeric._mgf import GaussianMgf, LossSum, MgfLine, log_moment

F = Fraction


@pytest.mark.parametrize("digits", [100, 153, 155, 200, 290, 305])
@pytest.mark.parametrize("times", [1, 7])
def test_huge_gaussian_noise_still_has_a_delta(digits, times):
    cost = times * Cost.gaussian(sigma=F(10) ** digits, sensitivity=1)
    truth = math.sqrt(times / (2 * math.pi)) * 10.0**-digits
    assert cost.delta(epsilon=0) == pytest.approx(truth, rel=1e-9)
    beside = cost + Cost.laplace(scale=F(10) ** digits, sensitivity=1)
    assert beside.delta(epsilon=0) >= truth * (1 - 1e-9)


def test_noise_beyond_every_double_counts_as_the_largest():
    cost = Cost.gaussian(sigma=F(10) ** 300, sensitivity=F(1, 10**300))
    assert 0 < cost.delta(epsilon=0) < 1e-300


@pytest.mark.parametrize("digits", [24, 28, 32, 41, 59])
@pytest.mark.parametrize("times", [1, 2, 10, 1000])
@pytest.mark.parametrize(
    ("cost", "one"),
    [
        (Cost.gaussian(sigma=1, sensitivity=1), math.erf(0.5 / math.sqrt(2))),
        (Cost.laplace(scale=1, sensitivity=1), -math.expm1(-0.5)),
        (Cost.pure(1), math.tanh(0.5)),
    ],
)
def test_tiny_samples_are_never_read_as_nothing(cost, one, digits, times):
    sampled = times * cost.sampled(F(1, 10**digits))
    assert sampled.delta(epsilon=0) >= one * 10.0**-digits * (1 - 1e-6)


def exact_delta(epsilons, at):
    """Return delta of coins with these losses, in 60 digits."""
    import mpmath

    with mpmath.workdps(60):
        losses = [mpmath.mpf(e.numerator) / e.denominator for e in epsilons]
        start = mpmath.mpf(at.numerator) / at.denominator
        total = mpmath.mpf(0)
        for signs in product((1, -1), repeat=len(losses)):
            loss = sum(s * e for s, e in zip(signs, losses, strict=True))
            if loss > start:
                mass = mpmath.mpf(1)
                for s, e in zip(signs, losses, strict=True):
                    mass /= 1 + mpmath.exp(-s * e)
                total += mass * -mpmath.expm1(start - loss)
        return total


@pytest.mark.parametrize("seed", range(30))
def test_tiny_losses_without_a_common_lattice_are_read_right(seed):
    draw = random.Random(seed)
    size = 10 ** draw.randint(8, 20)
    number = draw.randint(2, 6)
    epsilons = [
        F(draw.randint(1, 10**6), 997 * 10**6 * size) * draw.randint(900, 1100) for _ in range(number)
    ]
    cost = sum((Cost.pure(e) for e in epsilons), Cost.zero())
    for share in (0.0, 0.3):
        at = F(repr(float(share * sum(epsilons))))
        truth = exact_delta(epsilons, at)
        low, high, _ = cost.bounds(epsilon=at)
        assert truth * (1 - 1e-13) <= high <= truth * 1.2
        assert low <= truth * (1 + 1e-13)


def test_an_outcome_just_above_the_level_counts():
    for digits in (14, 17, 18, 30):
        for cost in (Cost.pure, Cost.randomized_response, Cost.exponential):
            assert cost(F(1, 10) + F(1, 10**digits)).loss_exceeds(F(1, 10)) > 0


@pytest.mark.parametrize("digits", [-280, -30, 8, 24, 25, 100, 154, 200, 290])
def test_overflow_never_makes_a_cost_look_smaller(digits):
    """Warnings are errors here: accounting meets numbers beyond the doubles on purpose, and in silence."""
    rho = F(10) ** digits
    for more in (Cost.zcdp(rho), Cost.laplace(scale=1, sensitivity=1)):
        cost = more + Cost.zcdp(rho)
        gaussian = math.erf(math.sqrt(2 * float(rho)) / 2 / math.sqrt(2)) if digits < 20 else 1.0
        assert cost.delta(epsilon=0) >= gaussian * (1 - 1e-9)
        if digits >= 20:
            assert cost.delta(epsilon=1) == 1


class BrokenFactor(GaussianMgf):
    """A Gaussian loss with one node, or the norm, lost to an overflow."""

    def line(self, c, h, nodes):
        norm, slip, phi, error = super().line(c, h, nodes)
        if BROKEN == "norm":
            return MgfLine(math.nan, slip, phi, error)
        phi = phi.copy()
        phi[-1] = complex(math.nan, 0) if BROKEN == "nan" else complex(math.inf, math.nan)
        return MgfLine(norm, slip, phi, 32 * U + np.abs(phi) * slip)


BROKEN = "nan"


@pytest.mark.parametrize("broken", ["nan", "inf", "norm"])
@pytest.mark.parametrize("period", [8.0, 4000.0])  # few nodes and many, which are multiplied in other ways
def test_a_line_with_a_number_that_is_lost_certifies_nothing(broken, period, monkeypatch):
    monkeypatch.setattr(f"{__name__}.BROKEN", broken)
    choice = LineChoice(3.0, 6.0, period, -3.0, 1.0, -12.0)
    whole = evaluate(LossSum(((GaussianMgf(1.0), 1),)), choice)
    assert (len(whole.t) < 512) == (period < 100)
    assert 0 < whole.delta(2.0).upper < 1
    with np.errstate(invalid="ignore"), pytest.raises(NotConverged):
        evaluate(LossSum(((BrokenFactor(1.0), 1),)), choice).delta(2.0)
    if broken == "norm":
        with pytest.raises(NotConverged):
            log_moment(LossSum(((BrokenFactor(1.0), 1),)), 3.0)
