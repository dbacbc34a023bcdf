"""What every numerical engine returns, and the unit of its error bounds."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction

__all__ = ["Bracket", "NotConverged", "U", "as_float", "down", "larger", "settle", "up"]

#: Unit roundoff of a double; error bounds are stated in multiples of it (docs/proofs/accounting.md, 1).
U = 2.0**-53


class NotConverged(Exception):  # noqa: N818
    """An engine has no certified value at a reasonable price here; the caller takes the next safe bound."""


class Bracket(NamedTuple):
    """A certified lower and upper value of one number, and the engine that certifies it.

    Guarantee: ``lower <= truth <= upper``, with truncation, aliasing and floating-point rounding included.
    ``method`` is "closed form", "lattice", "spectral", "dithered", "curve" or, where no tight engine
    converged, the next safe bound: "renyi" or "basic composition".
    """

    lower: float
    upper: float
    method: str = ""


def larger(one: Bracket, other: Bracket) -> Bracket:
    """Return the bracket of the larger of two numbers."""
    method = one.method if one.upper >= other.upper else other.method
    return Bracket(max(one.lower, other.lower), max(one.upper, other.upper), method)


def up(x: float, relative: float = 4 * U) -> float:
    """Return x enlarged by a relative margin (never closer to zero than one step)."""
    return math.nextafter(x + abs(x) * relative, math.inf)


def down(x: float, relative: float = 4 * U) -> float:
    """Return x lowered by a relative margin."""
    return math.nextafter(x - abs(x) * relative, -math.inf)


def as_float(x: Fraction) -> float:
    """Return the nearest double; a number beyond the doubles is infinite or zero."""
    try:
        return float(x)
    except OverflowError:
        return math.inf


def settle(delta_at: Callable[[float], Bracket], guess: float, delta: float, slope: float = 0.0) -> Bracket:
    """Turn an approximate root into certified bounds on epsilon: step outwards until delta proves them.

    Guarantee: ``delta_at(upper).upper <= delta`` (or upper is infinite) and ``delta_at(lower).lower >=
    delta`` (or lower is 0). ``slope`` is about -d log delta / d epsilon; with it two or three evaluations
    do.
    """
    here = delta_at(guess)
    least = max(abs(guess) * 2.0**-50, 1e-300)
    high, step = guess, least
    if slope > 0 and here.upper > delta:
        step = max(least, 1.01 * (here.upper / delta - 1) / slope)
    there = here
    while not there.upper <= delta:  # not a number proves nothing
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
