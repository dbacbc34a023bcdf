"""Arithmetic for numeric accounting: certified exponentials, logarithms and rounding of exact rationals.

Python's `decimal` rounds exp and ln correctly at the context's precision, so the true value lies strictly
between the neighbours of the result. Every basic operation rounds in the required direction. Results are
exact rationals that bound the true value from the named side.

The module also has the bracket that every numeric accountant returns, the certified bounds, and the unit of
their errors.
"""

from __future__ import annotations

import math
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


_DIGITS = 60
_UP = Context(prec=_DIGITS, rounding=ROUND_CEILING, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
_DOWN = Context(prec=_DIGITS, rounding=ROUND_FLOOR, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])

#: Ledgers count in whole multiples of this if a number has no short exact form.
GRID = Fraction(1, 10**60)
_SIGNIFICANT = 30
_MAX_BITS = 1000  # of a denominator that is kept exactly
_LARGEST_EXPONENT = 3000  # e^3000 is beyond any double


def exp_up(x: Fraction) -> Fraction:
    """Return a rational at or above exp(x), with relative error below 1e-58; x above 3000 overflows.

    Examples
    --------
    >>> float(exp_up(Fraction(1)))
    2.718281828459045
    """
    if x > _LARGEST_EXPONENT:
        raise OverflowError("exp of more than 3000")
    if not x:
        return Fraction(1)
    return Fraction(_decimal(max(x, Fraction(-_LARGEST_EXPONENT)), _UP).exp(_UP).next_plus(_UP))


def exp_down(x: Fraction) -> Fraction:
    """Return a rational at or below exp(x); zero if x is below -3000."""
    if x < -_LARGEST_EXPONENT:
        return Fraction(0)
    if not x:
        return Fraction(1)
    return Fraction(_decimal(min(x, Fraction(_LARGEST_EXPONENT)), _DOWN).exp(_DOWN).next_minus(_DOWN))


def log_up(x: Fraction) -> Fraction:
    """Return a rational at or above the natural logarithm of x > 0."""
    d = _decimal(x, _UP)
    return Fraction(d.ln(_UP).next_plus(_UP)) if d != 1 else Fraction(0)


def log_down(x: Fraction) -> Fraction:
    """Return a rational at or below the natural logarithm of x > 0."""
    d = _decimal(x, _DOWN)
    return Fraction(d.ln(_DOWN).next_minus(_DOWN)) if d != 1 else Fraction(0)


def round_up(x: Fraction, digits: int = _SIGNIFICANT) -> Fraction:
    """Round x >= 0 up to 30 (or other) significant digits, no finer than 10^-60: short, and never below x.

    Examples
    --------
    >>> float(round_up(Fraction(1, 3)))
    0.3333333333333333
    """
    step = _step(x, digits)
    return -(-x // step) * step


def round_down(x: Fraction) -> Fraction:
    """Round x >= 0 down to 30 significant digits, no finer than 10^-60."""
    step = _step(x, _SIGNIFICANT)
    return x // step * step


def on_grid(x: Fraction) -> Fraction:
    """Keep x >= 0 exactly if its denominator has at most 1000 bits, else round it up.

    Examples
    --------
    >>> on_grid(Fraction(1, 3))
    Fraction(1, 3)
    """
    return x if x.denominator.bit_length() <= _MAX_BITS else round_up(x)


def below(cap: Fraction) -> Fraction:
    """Return a c just below the cap >= 0 (or equal) such that ``on_grid(y) <= c`` for every y in [0, c].

    A number rounds up to a multiple of its step, a power of ten. `_step` knows the size of a number only up
    to a factor of ten, so the step of y <= cap is at most ten times the step of the cap. So it divides c.
    """
    step = 10 * _step(cap, _SIGNIFICANT)
    return cap // step * step


def room(cap: Fraction, total: Fraction) -> Fraction:
    """Return the largest charge x >= 0 with ``on_grid(total + on_grid(x)) <= cap``, up to 1e-28 of the cap.

    If the cap and the difference have short denominators, x is the difference itself. Otherwise the sum may
    be rounded up, and x is a short number with total + x <= `below` (cap). Zero if total > cap.

    Examples
    --------
    >>> room(Fraction(1), Fraction(1, 3))
    Fraction(2, 3)
    >>> on_grid(Fraction(1, 3) + room(1 + Fraction(1, 3**1000), Fraction(1, 3))) <= 1 + Fraction(1, 3**1000)
    True
    """
    remaining = max(Fraction(0), cap - total)
    if max(remaining.denominator.bit_length(), cap.denominator.bit_length()) <= _MAX_BITS:
        return remaining
    return round_down(max(Fraction(0), below(cap) - total))


def float_up(value: Fraction) -> float:
    """Return the double whose decimal reading is the value (0.3 is three tenths), else a double not below it.

    Examples
    --------
    >>> float_up(Fraction(3, 10)), float_up(Fraction(1, 3)) > 1 / 3
    (0.3, True)
    """
    try:
        double = float(value)
    except OverflowError:
        return math.inf
    if Fraction(repr(double)) == value:
        return double
    while math.isfinite(double) and min(Fraction(double), Fraction(repr(double))) < value:
        double = math.nextafter(double, math.inf)
    return double


def float_down(value: Fraction) -> float:
    """Return the largest double at or below a number: reading at a smaller delta or epsilon is safe."""
    double = float(value)
    return math.nextafter(double, 0.0) if Fraction(double) > value else double


def _step(x: Fraction, digits: int) -> Fraction:
    if x <= 0:
        return GRID
    size = _digits(x.numerator) - _digits(x.denominator)  # 10^(size-1) <= x < 10^(size+1)
    return max(GRID, Fraction(10) ** (size - digits))


def _digits(n: int) -> int:
    """Return the number of decimal digits of n > 0; Python does not write more than 4,300 of them."""
    digits = (n.bit_length() - 1) * 3010299956 // 10**10 + 1  # at most the truth: log10(2) > 0.3010299956
    while 10**digits <= n:
        digits += 1
    return digits


def _decimal(x: Fraction, context: Context) -> Decimal:
    return context.divide(Decimal(x.numerator), Decimal(x.denominator))


#: Unit roundoff of a double; error bounds are multiples of it (docs/proofs/accounting.md, section 1).
U = 2.0**-53


class NotConverged(Exception):  # noqa: N818
    """An accountant has no certified value at a reasonable price; the caller takes the next safe bound."""


class LossUnseen(NotConverged):
    """No line resolves delta at this epsilon; at another epsilon one may."""


class Bracket(NamedTuple):
    """A certified lower and upper value of one number, and the method that certifies it.

    Guarantee: ``lower <= truth <= upper``, including truncation, aliasing and floating-point rounding.
    ``method`` is "closed form", "lattice", "spectral", "rare losses", "dithered" or "group". If no tight
    method converged, it is the next safe bound: "renyi" or "basic composition".
    """

    lower: float
    upper: float
    method: str = ""


def larger(bracket: Bracket, other: Bracket) -> Bracket:
    """Return the bracket of the larger of two numbers."""
    method = bracket.method if bracket.upper >= other.upper else other.method
    return Bracket(max(bracket.lower, other.lower), max(bracket.upper, other.upper), method)


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
    min_step = max(abs(guess) * 2.0**-50, 1e-300)
    high, step = guess, min_step
    if slope > 0 and here.upper > delta:
        step = max(min_step, 1.01 * (here.upper / delta - 1) / slope)
    bracket = here
    while not bracket.upper <= delta:  # NaN proves nothing
        high, step = guess + step, step * 4
        if not high < 1e300:
            return Bracket(max(0.0, guess), math.inf, here.method)
        bracket = delta_at(high)
    low, step, bracket = guess, min_step, here
    if slope > 0 and here.lower < delta:
        step = max(min_step, 1.01 * (1 - here.lower / delta) / slope)
    while low > 0 and not bracket.lower >= delta:
        low, step = max(0.0, guess - step), step * 4
        bracket = delta_at(low) if low > 0 else bracket
    return Bracket(max(0.0, low), max(0.0, high), here.method)
