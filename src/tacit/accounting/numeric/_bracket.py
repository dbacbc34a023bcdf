"""The bracket that every numeric accountant returns: certified bounds, and the unit of their errors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction

#: Unit roundoff of a double; error bounds are multiples of it (docs/proofs/accounting.md, section 1).
U = 2.0**-53


class NotConverged(Exception):  # noqa: N818
    """An accountant has no certified value at a reasonable price; the caller takes the next safe bound."""


class Bracket(NamedTuple):
    """A certified lower and upper value of one number, and the method that certifies it.

    Guarantee: ``lower <= truth <= upper``, including truncation, aliasing and floating-point rounding.
    ``method`` is "closed form", "lattice", "spectral", "rare losses", "dithered" or "group". If no tight
    method converged, it is the next safe bound: "renyi" or "basic composition".
    """

    lower: float
    upper: float
    method: str = ""


def larger(one: Bracket, other: Bracket) -> Bracket:
    """Return the bracket of the larger of two numbers."""
    method = one.method if one.upper >= other.upper else other.method
    return Bracket(max(one.lower, other.lower), max(one.upper, other.upper), method)


def up(x: float, relative: float = 4 * U) -> float:
    """Return x raised by a relative margin, and by at least one step."""
    return math.nextafter(x + abs(x) * relative, math.inf)


def down(x: float, relative: float = 4 * U) -> float:
    """Return x lowered by a relative margin, and by at least one step."""
    return math.nextafter(x - abs(x) * relative, -math.inf)


def as_float(x: Fraction) -> float:
    """Return the nearest double; a number outside their range becomes infinite or zero."""
    try:
        return float(x)
    except OverflowError:
        return math.inf


def root(x: Fraction) -> float:
    """Return the square root of a non-negative rational, also where x itself is outside the doubles.

    A root below the doubles counts as the smallest normal one.
    """
    if not x:
        return 0.0
    half = (x.numerator.bit_length() - x.denominator.bit_length()) // 2
    scaled = x / 4**half if half >= 0 else x * 4**-half
    try:
        return max(math.ldexp(math.sqrt(float(scaled)), half), 2.0**-1022)
    except OverflowError:
        return math.inf


def settle(delta_at: Callable[[float], Bracket], guess: float, delta: float, slope: float = 0.0) -> Bracket:
    """Turn an approximate root into certified bounds on epsilon: step outwards until delta proves them.

    Guarantee: ``delta_at(upper).upper <= delta`` (or upper is infinite) and ``delta_at(lower).lower >=
    delta`` (or lower is 0). ``slope`` approximates -d log delta / d epsilon; with it, two or three
    evaluations are enough.
    """
    here = delta_at(guess)
    least = max(abs(guess) * 2.0**-50, 1e-300)
    high, step = guess, least
    if slope > 0 and here.upper > delta:
        step = max(least, 1.01 * (here.upper / delta - 1) / slope)
    there = here
    while not there.upper <= delta:  # NaN proves nothing
        high, step = guess + step, step * 4
        if not high < 1e300:
            return Bracket(max(0.0, guess), math.inf, here.method)
        there = delta_at(high)
    low, step, there = guess, least, here
    if slope > 0 and here.lower < delta:
        step = max(least, 1.01 * (1 - here.lower / delta) / slope)
    while low > 0 and not there.lower >= delta:
        low, step = max(0.0, guess - step), step * 4
        there = delta_at(low) if low > 0 else there
    return Bracket(max(0.0, low), max(0.0, high), here.method)
