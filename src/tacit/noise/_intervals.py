"""Intervals that decide exact noise: certified integers around reals, uniform reals extended bit by bit.

An interval at ``bits`` is a pair of integers ``low <= 2**bits * value <= high``. Every step below rounds the
low end down and the high end up, so the pair holds by construction at every precision.

The mass of discrete Gaussian noise, the sum of exp(-k^2 / (2 sigma^2)) over integers, is enclosed in the same
way.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import TYPE_CHECKING

from tacit.noise._bits import word

if TYPE_CHECKING:
    from collections.abc import Callable


#: Integers below and above a real number times a power of two.
IntegerInterval = tuple[int, int]


def below(digits: int, bits: int, bound: Callable[[int], IntegerInterval]) -> bool:
    """Decide exactly whether a uniform real lies below a bound.

    The uniform real is known to lie in ``[digits, digits + 1) / 2**bits``; ``bound(bits)`` is a certified
    interval. While the two overlap, 64 fresh bits are appended. The answer equals that of a comparison of
    infinitely many bits.
    """
    while True:
        low, high = bound(bits)
        if digits < low:
            return True
        if digits >= high:
            return False
        digits = (digits << 64) | word()
        bits += 64


@dataclass(slots=True)
class Place:
    """A number: a whole one, or a whole one plus a uniform fraction whose binary digits come as needed.

    The digits that were drawn stay, so all decisions about one place speak of the same real number.
    """

    whole: int
    digits: int | None = None  # of the fraction; None for a whole number
    bits: int = 0

    def ends(self, bits: int) -> tuple[Fraction, Fraction]:
        """Return the ends of the interval that the number lies in, known to at least this many digits."""
        if self.digits is None:
            return Fraction(self.whole), Fraction(self.whole)
        while self.bits < bits:
            self.digits = (self.digits << 64) | word()
            self.bits += 64
        low = (self.whole << self.bits) + self.digits
        return Fraction(low, 1 << self.bits), Fraction(low + 1, 1 << self.bits)


def scaled(value: Fraction, bits: int) -> IntegerInterval:
    """Return the interval of a rational number."""
    low, rest = divmod(value.numerator << bits, value.denominator)
    return low, low + (rest > 0)


def exp_minus(x: Fraction, bits: int) -> IntegerInterval:
    """Return the interval of ``exp(-x)`` for a rational ``x >= 0``; its width is at most 2.

    With q = x / 2^k < 1/2, exp(q) is summed by its Taylor series (all terms positive, so floors give a lower
    and ceilings an upper bound, and the remainder after a term t is at most t), inverted, and squared k
    times.
    """
    n, d = x.numerator, x.denominator
    if n == 0:
        return 1 << bits, 1 << bits
    if n >= d * (bits + 1):  # exp(-x) < 2^-bits, since e > 2
        return 0, 1
    halvings = max(0, (2 * n // d).bit_length())
    work = bits + 2 * halvings + 16
    low_q = (n << work) // (d << halvings)
    high_q = low_q + 1
    unit = 1 << work
    low_sum = high_sum = low_term = high_term = unit
    j = 0
    while high_term > 1:
        j += 1
        low_term = (low_term * low_q) // (j << work)
        high_term = (high_term * high_q) // (j << work) + 1
        low_sum += low_term
        high_sum += high_term
    high_sum += high_term
    square = 1 << (2 * work)
    low, high = square // high_sum, square // low_sum + 1
    for _ in range(halvings):
        low, high = (low * low) >> work, ((high * high) >> work) + 1
    shift = work - bits
    return low >> shift, min((high >> shift) + 1, 1 << bits)


def exp_minus_between(x: tuple[Fraction, Fraction], bits: int) -> IntegerInterval:
    """Return the interval of ``exp(-x)`` for an x between two rationals: it falls as x grows."""
    lower, upper = x
    low, high = exp_minus(lower, bits)
    return (low, high) if upper == lower else (exp_minus(upper, bits)[0], high)


def logistic(x: Fraction, bits: int) -> IntegerInterval:
    """Return the interval of ``1 / (1 + exp(x))`` for a rational ``x >= 0``."""
    work = bits + 8
    low, high = exp_minus(x, work)
    unit = 1 << work
    return (low << bits) // (unit + low), (high << bits) // (unit + high) + 1


def minus_log(x: Fraction, bits: int) -> IntegerInterval:
    """Return the interval of ``-log(x)`` for a rational ``0 < x <= 1``.

    With x = f * 2^-k and 1/2 < f <= 1: -log(x) = k log 2 + 2 artanh(z), z = (1 - f) / (1 + f) < 1/3.
    """
    k = x.denominator.bit_length() - x.numerator.bit_length()
    k -= x * 2**k > 1
    f = x * 2**k
    work = bits + k.bit_length() + 8
    low, high = _artanh((1 - f) / (1 + f), work)
    low_two, high_two = _log_two(work)
    shift = work - bits
    return (2 * low + k * low_two) >> shift, ((2 * high + k * high_two) >> shift) + 1


@lru_cache(maxsize=8)
def _log_two(bits: int) -> IntegerInterval:
    """Return the interval of ``log(2) = 2 artanh(1/3)``."""
    low, high = _artanh(Fraction(1, 3), bits)
    return 2 * low, 2 * high


def _artanh(z: Fraction, bits: int) -> IntegerInterval:
    """Return the interval of ``artanh(z) = z + z^3/3 + z^5/5 + ...`` for a rational ``0 <= z <= 1/3``."""
    if z == 0:
        return 0, 0
    work = bits + bits.bit_length() + 8
    low_z, high_z = scaled(z, work)
    low_square, high_square = (low_z * low_z) >> work, ((high_z * high_z) >> work) + 1
    low_power, high_power = low_z, high_z
    low, high, j = low_z, high_z, 1
    while high_power > 1:
        j += 2
        low_power = (low_power * low_square) >> work
        high_power = ((high_power * high_square) >> work) + 1
        low += low_power // j
        high += high_power // j + 1
    high += 1  # the remainder of the series is below the last power times 1/8
    shift = work - bits
    return low >> shift, (high >> shift) + 1


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
        lower, upper = exp_minus_between((rate[0] * k * k, rate[1] * k * k), bits)
        low += 2 * lower
        high += 2 * upper
        if upper <= 1:
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
