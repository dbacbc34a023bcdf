"""The Renyi curve of shuffled reports in accounting, in exact arithmetic (`docs/proofs/filters.md`).

Given that C other reports hide the unit's report, the pair of Feldman, McMillan and Talwar (2022) is ``(1 + k
Z)`` against ``(1 - k Z)`` times the law of Z, the mean of C + 1 random signs, with k = tanh(epsilon0 / 2). So
the moment is ``E[(1 + k Z) ((1 + k Z) / (1 - k Z))^(a-1)]``. This is a power series in Z with coefficients
that are not negative, and the moments of Z are known.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from tacit.accounting.numeric import exp_down, exp_up, log_down, log_up, round_up

_TERMS = 32  # even powers of Z that are read one by one


@lru_cache(maxsize=1024)
def shuffled_divergence(n: int, epsilon0: Fraction, order: Fraction) -> Fraction | None:
    """Return an upper value of the Renyi divergence of n shuffled reports; None if it is not of use.

    Examples
    --------
    >>> value = shuffled_divergence(10_000, Fraction(1), Fraction(8))
    >>> 9.2e-4 < float(value) < 9.3e-4
    True
    """
    if n < 2 or epsilon0 > 100 or (order - 1) * epsilon0 > 1000:
        return None
    r = exp_down(-epsilon0)
    k = round_up((1 - r) / (1 + r))  # at or above tanh(epsilon0 / 2)
    if k >= 1:
        return None
    powers = _coefficients(order)
    moments = _moments(n, epsilon0)
    moment, square = Fraction(1), Fraction(1)
    rest = _at_one(k, order) - 1  # what the series has left at Z = 1, where every power is largest
    for j in range(1, _TERMS):
        square *= k * k
        term = powers[2 * j] * square
        moment += term * moments[j]
        rest -= term
    moment += (
        max(Fraction(0), rest) * moments[_TERMS]
    )  # moments fall, so rounded-up terms stay on the safe side
    return round_up(log_up(moment) / (order - 1))


def _coefficients(order: Fraction) -> list[Fraction]:
    """Return the power series of (1 + y) ((1 + y) / (1 - y))^(order - 1), rounded up.

    The second factor f has ``(1 - y^2) f' = 2 (order - 1) f``, so its coefficients follow from the earlier
    ones, and none is negative.
    """
    z = order - 1
    f = [Fraction(1), 2 * z]
    for j in range(1, 2 * _TERMS):
        f.append(round_up((2 * z * f[j] + (j - 1) * f[j - 1]) / (j + 1)))
    return [f[0], *(f[j] + f[j - 1] for j in range(1, len(f)))]


def _at_one(k: Fraction, order: Fraction) -> Fraction:
    """Return the even part of the series at Z = 1, rounded up."""
    odds = log_up((1 + k) / (1 - k))
    there = (1 + k) * exp_up((order - 1) * odds)
    return (there + (1 - k) * exp_up(-(order - 1) * log_down((1 + k) / (1 - k)))) / 2


@lru_cache(maxsize=256)
def _moments(n: int, epsilon0: Fraction) -> list[Fraction]:
    """Return upper values of E[Z^(2j)] for j = 0, 1, ...

    Given C, the second moment is 1/(C+1), and its mean is (1 - (1-p)^n) / (n p) with p = exp(-epsilon0). The
    others fall as C grows (the mean of more signs is smaller in the convex order). So with cuts c_0 = 0 < c_1
    < ..., ``E[g(C)] <= g(c_last) + sum of (g(c_i) - g(c_(i+1))) P(C < c_(i+1))``.
    """
    p = exp_down(-epsilon0)
    mean = (n - 1) * p
    cuts = _cuts(mean)
    at = [_moments_of_signs(cut + 1) for cut in cuts]
    chances = [min(Fraction(1), _below(mean, Fraction(cut))) for cut in cuts]
    found = [Fraction(1), min(Fraction(1), 1 / (n * p))]
    for j in range(2, _TERMS + 1):
        value = at[-1][j]
        for i in range(len(cuts) - 1):
            value += (at[i][j] - at[i + 1][j]) * chances[i + 1]
        found.append(min(found[-1], round_up(value)))
    return found


def _cuts(mean: Fraction) -> list[int]:
    """Return whole numbers from 0 to the mean, denser near it."""
    deviation = math.sqrt(mean)
    steps = (
        mean - Fraction(t * deviation) for t in (20, 16, 13, 10, 8, 7, 6, 5, 4, 3.5, 3, 2.5, 2, 1.5, 1, 0.5)
    )
    return sorted({0, int(mean), *(int(step) for step in steps if step > 0)})


def _moments_of_signs(m: int) -> list[Fraction]:
    """Return E[Z^(2j)] for the mean Z of m random signs, from the cumulants of one sign.

    Examples
    --------
    >>> _moments_of_signs(2)[:3]
    [Fraction(1, 1), Fraction(1, 2), Fraction(1, 2)]
    """
    sums = [1]
    for j in range(1, _TERMS + 1):
        terms = (math.comb(2 * j - 1, 2 * i - 1) * _SIGN[i] * sums[j - i] for i in range(1, j + 1))
        sums.append(m * sum(terms))
    return [Fraction(total, m ** (2 * j)) for j, total in enumerate(sums)]


def _sign_cumulants() -> list[int]:
    """Return the even cumulants of one random sign, all of whose even moments are 1."""
    found = [0]
    for j in range(1, _TERMS + 1):
        found.append(1 - sum(math.comb(2 * j - 1, 2 * i - 1) * found[i] for i in range(1, j)))
    return found


_SIGN = _sign_cumulants()


def _below(mean: Fraction, cut: Fraction) -> Fraction:
    """Return an upper value of P(C < cut): exp(-mean + cut + cut log(mean/cut)), by Chernoff's bound."""
    if cut >= mean:
        return Fraction(1)
    return exp_up(cut - mean + cut * log_up(mean / cut)) if cut else exp_up(-mean)
