"""Ladder noise for stars on the integers, drawn exactly: the widths of the rungs are binomial coefficients.

Rung j >= 1 holds 2 C(width + j - 1, power) integers on each side of zero, and rung 0 is zero itself. With
q = exp(-rate), u = q / (1 - q) and C(width + j - 1, power) = sum over i of C(width, power - i) C(j - 1, i),
the law is a mixture: zero has the weight 1, and part i + 1 has the weight 4 C(width, power - i) u^(i + 1).
Given this part, j - 1 - i is the sum of i + 1 geometric numbers. The proof is in docs/proofs/graphs.md.
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
    first = Integer(degree, why="the width is at least the power").read("width", width)
    shape = read_size(size)
    if shape is None:
        return _one(exact, first, degree)
    return _many(exact, first, degree, math.prod(shape)).reshape(shape)


def _one(rate: Fraction, width: int, power: int) -> int:
    """Draw one number."""
    part = 0
    while part <= power and not below(_bits.word(), 64, _chance(rate, width, power, part)):
        part += 1
    if part == 0:
        return 0
    rung = part + sum(geometric(1 / rate) for _ in range(part))
    place = _end(rung - 1, width, power) + 1 + one_below(2 * math.comb(width + rung - 1, power))
    return -place if _bits.word() & 1 else place


def _many(rate: Fraction, width: int, power: int, number: int) -> NDArray[np.int64]:
    """Draw many numbers, by the same steps."""
    part = np.full(number, power + 1)
    for one in reversed(range(power + 1)):
        part[alike_coins(_chance(rate, width, power, one), number)] = one
    rung = part.astype(np.int64)
    for one in range(1, power + 2):
        rung += np.where(part >= one, geometric(1 / rate, number), 0)
    last = int(rung.max(initial=0))
    if last >= 2**62 or _end(last, width, power) >= 2**62:
        raise does_not_fit("ladder noise")
    different, which = np.unique(rung, return_inverse=True)
    ends = [_end(max(one - 1, 0), width, power) for one in different.tolist()]
    widths = [2 * math.comb(width + max(one - 1, 0), power) for one in different.tolist()]
    place = np.array(ends, np.int64)[which] + 1
    place += uniform_below(np.array(widths, np.int64)[which], number)
    signs = np.empty(number, np.uint8)
    _bits.fill(signs)
    return np.where(part == 0, 0, np.where(signs & 1, -place, place))


def _end(rung: int, width: int, power: int) -> int:
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
        own = terms[0]
        return (own[0] << bits) // (own[0] + high), -(-(own[1] << bits) // (own[1] + low))

    return bound
