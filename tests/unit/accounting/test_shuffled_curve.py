"""The curve of many shuffled reports: tails by recursion against tails one by one, and its price."""

import math
import time

import mpmath
import numpy as np
import pytest
from scipy.special import bdtrc, gammaln

from tacit.accounting import Cost
from tacit.accounting.numeric._shuffled import shuffled_delta, tails


@pytest.mark.parametrize("start", [1200, 30_000, 360_000])
@pytest.mark.parametrize("ratio", [0.499, 0.5004, 0.503, 0.52])
def test_tails_of_consecutive_coins_follow_from_one_another(start, ratio):
    c = np.arange(start, start + 1500)
    j = np.floor((c + 1) * ratio)
    point = np.exp(gammaln(c + 1) - gammaln(j + 1) - gammaln(c - j + 1) - c * math.log(2))
    found, moved = tails(c, j, point)
    assert moved.max() > 0
    n = int(c[-1]) + 1  # the curve grants at least this relative error to tails and masses
    granted = 1e-10 + 16 * 2.0**-53 * float(gammaln(n) + n)
    assert (np.abs(found - bdtrc(j, c, 0.5)) <= granted * (found + moved)).all()


def test_the_curve_of_a_million_reports_contains_the_sum_written_out():
    """Delta of n reports is a mean over the number of hiding reports; here with tails in 30 digits."""
    n, e0, e = 60_000, 3.0, 0.02
    at = shuffled_delta(n, e0)
    low, high = float(at(np.array([e]), -1.0)[0]), float(at(np.array([e]), 1.0)[0])
    with mpmath.workdps(30):
        share, p, y = mpmath.exp(-e0), 1 / (1 + mpmath.exp(-e0)), mpmath.exp(e)
        total = mpmath.mpf(0)
        for c in range(2400, 3600, 1):
            chance = mpmath.binomial(n - 1, c) * share**c * (1 - share) ** (n - 1 - c)
            k = int((c + 1) * (y * p - (1 - p)) / ((2 * p - 1) * (1 + y)))
            over = bdtrc(k, c, 0.5)
            total += chance * (
                (1 - y) * over + (p - y * (1 - p)) * mpmath.binomial(c, k) / mpmath.mpf(2) ** c
            )
    assert low * (1 - 1e-9) <= total <= high * (1 + 1e-9)
    assert high <= low * (1 + 1e-5)


def test_a_hundred_rounds_of_a_million_reports_are_read_quickly():
    start = time.process_time()
    epsilon = (100 * Cost.randomized_response(1).shuffled(10**6)).epsilon(delta=1e-6)
    assert 0.0533 < epsilon < 0.0534
    assert time.process_time() - start < 6  # 1.4 s; it was 15 s
