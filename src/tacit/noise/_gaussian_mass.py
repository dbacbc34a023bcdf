"""The mass of discrete Gaussian noise: the sum of exp(-k^2 / (2 sigma^2)) over integers, enclosed."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import isqrt

from tacit.noise._intervals import IntegerInterval, exp_minus_between, scaled


@lru_cache(maxsize=64)
def gaussian_mass(sigma: Fraction, bits: int) -> IntegerInterval:
    """Return the interval of the sum of exp(-k^2 / (2 sigma^2)) over all integers k.

    A sigma below 1 is summed as it stands. From 1 on, the sum is sigma sqrt(2 pi) times the sum of
    exp(-2 pi^2 sigma^2 k^2) (Poisson's formula), of which a few terms are enough.
    """
    variance = sigma * sigma
    if sigma < 1:
        return _theta((1 / (2 * variance), 1 / (2 * variance)), bits)
    work = bits + sigma.numerator.bit_length() + 16
    low_pi, high_pi = (Fraction(end, 1 << work) for end in pi(work))
    low, high = _theta((2 * low_pi**2 * variance, 2 * high_pi**2 * variance), work)
    low_root = isqrt(scaled(2 * low_pi * variance, 2 * work)[0])
    high_root = isqrt(scaled(2 * high_pi * variance, 2 * work)[1]) + 1
    shift = 2 * work - bits
    return (low * low_root) >> shift, ((high * high_root) >> shift) + 1


def _theta(rate: tuple[Fraction, Fraction], bits: int) -> IntegerInterval:
    """Return the interval of the sum of exp(-c k^2) over all integers k; c >= 1/2 lies between two rationals.

    The terms fall by a factor of at least exp(-3/2): those after one below a unit add up to less than a unit.
    """
    low = high = 1 << bits
    k = 0
    while True:
        k += 1
        first, last = exp_minus_between((rate[0] * k * k, rate[1] * k * k), bits)
        low += 2 * first
        high += 2 * last
        if last <= 1:
            return low, high + 2


@lru_cache(maxsize=64)
def pi(bits: int) -> IntegerInterval:
    """Return the interval of pi = 16 arctan(1/5) - 4 arctan(1/239) (Machin 1706)."""
    work = bits + bits.bit_length() + 16
    (five, five_off), (long, long_off) = _arctan(5, work), _arctan(239, work)
    middle, off = 16 * five - 4 * long, 16 * five_off + 4 * long_off
    shift = work - bits
    return (middle - off) >> shift, ((middle + off) >> shift) + 1


def _arctan(n: int, bits: int) -> tuple[int, int]:
    """Return 2^bits arctan(1/n) by its series, and how far it may be off.

    Each term is rounded down by less than one unit, and those that are dropped add up to less than one.
    """
    power, total, j = (1 << bits) // n, 0, 0
    while power:
        total += (-1) ** j * (power // (2 * j + 1))
        power //= n * n
        j += 1
    return total, j + 1
