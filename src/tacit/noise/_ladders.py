"""Ladder noise on the integers, drawn exactly: rungs of growing width, each less likely by one factor.

Rung j >= 1 holds w(j) = min(width + j - 1, most) integers on each side of zero, and rung 0 is zero itself.
With q = exp(-rate), u = q / (1 - q) and K = most - width, the weights of rung 0, of `width` places of each
other rung, and of the remaining min(j - 1, K) places of each are

    1 : 2 width u : 2 u^2 (1 - q^K).

Given the second, j - 1 is geometric. Given the third, j - 2 is a geometric number plus one that is geometric
and cut off at K, which is a geometric number modulo K. The proof is in docs/proofs/graphs.md.

In ladder noise for stars the widths of the rungs are binomial coefficients: rung j >= 1 holds
2 C(width + j - 1, power) integers on each side of zero, and rung 0 is zero itself. With
C(width + j - 1, power) = sum over i of C(width, power - i) C(j - 1, i), the law is a mixture: zero has the
weight 1, and part i + 1 has the weight 4 C(width, power - i) u^(i + 1). Given this part, j - 1 - i is the sum
of i + 1 geometric numbers.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, overload

import numpy as np

from tacit.exact import count
from tacit.noise import _bits
from tacit.noise._coins import alike_coins
from tacit.noise._intervals import IntegerInterval, below, exp_minus
from tacit.noise._laplace import geometric
from tacit.noise._parameters import does_not_fit, read_rate, read_size
from tacit.noise._uniform import one_below, uniform_below
from tacit.parameters import Integer

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction

    from numpy.typing import NDArray

    from tacit.exact import Number
    from tacit.noise._parameters import DrawShape


@overload
def ladder(rate: Number, width: int, most: int | None = None, size: None = None) -> int: ...
@overload
def ladder(
    rate: Number, width: int, most: int | None = None, *, size: int | tuple[int, ...]
) -> NDArray[np.int64]: ...
def ladder(
    rate: Number, width: int, most: int | None = None, size: DrawShape = None
) -> int | NDArray[np.int64]:
    """Draw integers k with probability exactly proportional to exp(-rate j), where k lies in rung j.

    Zero is rung 0. Rung 1 holds the next `width` integers on each side, rung 2 the next width + 1, and so on;
    no rung holds more than `most` on each side.

    Parameters
    ----------
    rate
        A positive number from 2^-60 on, exact (a float at its decimal reading).
    width
        A whole number: how many integers rung 1 has on each side.
    most
        None, or the largest width of a rung, at least `width` and at least 1.
    size
        None for one Python int of any size, or the shape of an array of 64-bit integers. A draw that does not
        fit into 64 bits is refused with code ``does-not-fit``; it never overflows.

    Examples
    --------
    >>> ladder(1, 10, size=(2, 3)).shape
    (2, 3)
    >>> bool((abs(ladder(50, 10, size=1000)) <= 10).all())
    True
    """
    exact, start, cap = _read(rate, width, most)
    shape = read_size(size)
    if shape is None:
        return _one(exact, start, cap)
    return _many(exact, start, cap, math.prod(shape)).reshape(shape)


def _read(rate: Number, width: int, max_width: int | None) -> tuple[Fraction, int, int | None]:
    """Read the parameters; the last result is by how much a rung may grow, None for without end."""
    exact, start = read_rate(rate), count("width", width)
    if max_width is None:
        return exact, start, None
    cap = Integer(max(1, start), why="the largest width is not below the width").read("most", max_width)
    return exact, start, cap - start


def _one(rate: Fraction, width: int, growth: int | None) -> int:
    """Draw one number; the order of the pieces does not depend on what they turn out to be."""
    zero = below(_bits.word(), 64, lambda bits: _zero_chance(rate, width, growth, bits))
    inner = below(_bits.word(), 64, lambda bits: _inner_chance(rate, width, growth, bits))
    base, extra, sign = geometric(1 / rate), geometric(1 / rate), _bits.word() & 1
    if zero:
        return 0
    rung = 1 + base if inner else 2 + base + (extra if growth is None else extra % growth)
    grown = rung - 1 if growth is None else min(rung - 1, growth)
    offset = _end(rung - 1, width, growth) + 1 + one_below(width + grown)
    return -offset if sign else offset


def _many(rate: Fraction, width: int, growth: int | None, number: int) -> NDArray[np.int64]:
    """Draw many numbers, by the same steps."""
    zero = alike_coins(lambda bits: _zero_chance(rate, width, growth, bits), number)
    inner = alike_coins(lambda bits: _inner_chance(rate, width, growth, bits), number)
    base, extra = geometric(1 / rate, number), geometric(1 / rate, number)
    if growth is not None and growth < 2**63:
        extra %= max(growth, 1)  # a growth of 0 has no third part
    furthest = 3 + int(base.max(initial=0)) + int(extra.max(initial=0))
    if _end(furthest, width, growth) >= 2**62:  # products below stay within 64 bits too
        raise does_not_fit("ladder noise")
    rung = 1 + base + np.where(inner, 0, 1 + extra)
    flat = rung if growth is None else np.minimum(rung, min(growth, furthest) + 1)  # rungs that still grow
    limit = width if growth is None else width + growth
    before = (flat - 1) * width + (flat - 1) * (flat - 2) // 2 + (rung - flat) * min(limit, 2**62)
    offset = before + 1 + uniform_below(width + flat - 1, number)
    signs = np.empty(number, np.uint8)
    _bits.fill(signs)
    return np.where(zero, 0, np.where(signs & 1, -offset, offset))


def _end(rung: int, width: int, growth: int | None) -> int:
    """Return the last integer of a rung: the sum of the widths up to it."""
    growing = rung if growth is None else min(rung, growth + 1)
    flat = 0 if growth is None else (rung - growing) * (width + growth)
    return growing * width + growing * (growing - 1) // 2 + flat


_Factors = tuple[int, IntegerInterval, IntegerInterval, IntegerInterval]


@lru_cache(maxsize=64)
def _factors(rate: Fraction, growth: int | None, bits: int) -> _Factors:
    """Return a number of bits that is enough, and the intervals of q, 1 - q and 1 - q^growth at it."""
    small = max(0, rate.denominator.bit_length() - rate.numerator.bit_length())
    work = bits + 2 * small + 16
    unit = 1 << work
    low, high = exp_minus(rate, work)
    rest = (0, 0) if growth is None else exp_minus(rate * growth, work)
    return work, (low, high), (unit - high, unit - low), (unit - rest[1], unit - rest[0])


def _zero_chance(rate: Fraction, width: int, growth: int | None, bits: int) -> IntegerInterval:
    """Return the interval of 1/Z = (1-q)^2 / ((1-q)^2 + 2 width q (1-q) + 2 q^2 (1-q^growth))."""
    work, q, rest, grown = _factors(rate, growth, bits + width.bit_length())
    zero = tuple(p * p << work for p in rest)
    other = tuple(2 * a * ((width * p << work) + a * g) for a, p, g in zip(q, rest, grown, strict=True))
    return _share((zero[0], zero[1]), (other[0], other[1]), bits)


def _inner_chance(rate: Fraction, width: int, growth: int | None, bits: int) -> IntegerInterval:
    """Return the interval of width (1-q) / (width (1-q) + q (1-q^growth))."""
    if width == 0 or growth == 0:
        return (0, 0) if width == 0 else (1 << bits, 1 << bits)
    work, q, rest, grown = _factors(rate, growth, bits + width.bit_length())
    inner = (width * rest[0] << work, width * rest[1] << work)
    return _share(inner, (q[0] * grown[0], q[1] * grown[1]), bits)


def _share(part: IntegerInterval, other: IntegerInterval, bits: int) -> IntegerInterval:
    """Return the interval of part / (part + other), which grows with the part and falls with the other."""
    low = (part[0] << bits) // (part[0] + other[1])
    return low, -(-(part[1] << bits) // (part[1] + other[0]))


@overload
def star_ladder(rate: Number, width: int, power: int, size: None = None) -> int: ...
@overload
def star_ladder(rate: Number, width: int, power: int, size: int | tuple[int, ...]) -> NDArray[np.int64]: ...
def star_ladder(rate: Number, width: int, power: int, size: DrawShape = None) -> int | NDArray[np.int64]:
    """Draw integers k with probability exactly proportional to exp(-rate j), where k lies in rung j.

    Zero is rung 0. Rung j holds the next 2 C(width + j - 1, power) integers on each side.

    Parameters
    ----------
    rate
        A positive number from 2^-60 on, exact (a float at its decimal reading).
    width
        A whole number, at least `power`.
    power
        A whole number from 1 on.
    size
        None for one Python int of any size, or the shape of an array of 64-bit integers. A draw that does not
        fit into 64 bits is refused with code ``does-not-fit``; it never overflows.

    Examples
    --------
    >>> star_ladder(1, 10, 2, size=(2, 3)).shape
    (2, 3)
    >>> bool((abs(star_ladder(60, 10, 2, size=1000)) <= 90).all())
    True
    """
    exact, degree = read_rate(rate), count("power", power, zero=False)
    start = Integer(degree, why="the width is at least the power").read("width", width)
    shape = read_size(size)
    if shape is None:
        return _one_star(exact, start, degree)
    return _many_stars(exact, start, degree, math.prod(shape)).reshape(shape)


def _one_star(rate: Fraction, width: int, power: int) -> int:
    """Draw one number."""
    part = 0
    while part <= power and not below(_bits.word(), 64, _chance(rate, width, power, part)):
        part += 1
    if part == 0:
        return 0
    rung = part + sum(geometric(1 / rate) for _ in range(part))
    offset = _end_of_stars(rung - 1, width, power) + 1 + one_below(2 * math.comb(width + rung - 1, power))
    return -offset if _bits.word() & 1 else offset


def _many_stars(rate: Fraction, width: int, power: int, number: int) -> NDArray[np.int64]:
    """Draw many numbers, by the same steps."""
    part = np.full(number, power + 1)
    for index in reversed(range(power + 1)):
        part[alike_coins(_chance(rate, width, power, index), number)] = index
    rung = part.astype(np.int64)
    for index in range(1, power + 2):
        rung += np.where(part >= index, geometric(1 / rate, number), 0)
    top = int(rung.max(initial=0))
    if top >= 2**62 or _end_of_stars(top, width, power) >= 2**62:
        raise does_not_fit("ladder noise")
    different, which = np.unique(rung, return_inverse=True)
    ends = [_end_of_stars(max(index - 1, 0), width, power) for index in different.tolist()]
    widths = [2 * math.comb(width + max(index - 1, 0), power) for index in different.tolist()]
    offset = np.array(ends, np.int64)[which] + 1
    offset += uniform_below(np.array(widths, np.int64)[which], number)
    signs = np.empty(number, np.uint8)
    _bits.fill(signs)
    return np.where(part == 0, 0, np.where(signs & 1, -offset, offset))


def _end_of_stars(rung: int, width: int, power: int) -> int:
    """Return the last integer of a rung: binomial coefficients in a column add up to one of the next."""
    return 2 * (math.comb(width + rung, power + 1) - math.comb(width, power + 1))


@lru_cache(maxsize=64)
def _q(rate: Fraction, bits: int) -> tuple[IntegerInterval, IntegerInterval]:
    """Return the intervals of q and of 1 - q."""
    low, high = exp_minus(rate, bits)
    return (low, high), ((1 << bits) - high, (1 << bits) - low)


def _chance(rate: Fraction, width: int, power: int, part: int) -> Callable[[int], IntegerInterval]:
    """Return the bound of the chance of zero (part 0) or of a later part, given that none before was chosen.

    All weights are multiplied by a power of 1 - q, and those from part 1 on are divided by a power of q, so
    that no division is needed and a small q loses no digits.
    """
    small = max(0, rate.denominator.bit_length() - rate.numerator.bit_length())
    guard = (power + 1) * (small + 4) + math.comb(width, power).bit_length() + 16

    @lru_cache(maxsize=4)
    def bound(bits: int) -> IntegerInterval:
        q, rest = _q(rate, bits + guard)
        terms = [
            tuple(
                math.comb(width, power + 1 - i) * a ** (i - part) * b ** (power + 1 - i)
                for a, b in zip(q, rest, strict=True)
            )
            for i in range(max(part, 1), power + 2)
        ]
        if part == 0:
            terms = [
                tuple(b ** (power + 1) for b in rest),
                *(tuple(4 * one for one in term) for term in terms),
            ]
        low, high = (sum(term[end] for term in terms[1:]) for end in (0, 1))
        numerator = terms[0]
        return (numerator[0] << bits) // (numerator[0] + high), -(
            -(numerator[1] << bits) // (numerator[1] + low)
        )

    return bound
