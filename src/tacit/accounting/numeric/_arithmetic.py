"""Arithmetic for numeric accounting: certified exponentials, logarithms and rounding of exact rationals.

Python's `decimal` rounds exp and ln correctly at the context's precision, so the true value lies strictly
between the neighbours of the result. Every basic operation rounds in the required direction. Results are
exact rationals that bound the true value from the named side.
"""

from __future__ import annotations

import math
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

_DIGITS = 60
_UP = Context(prec=_DIGITS, rounding=ROUND_CEILING, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
_DOWN = Context(prec=_DIGITS, rounding=ROUND_FLOOR, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])

#: Ledgers count in whole multiples of this if a number has no short exact form.
GRID = Fraction(1, 10**60)
_SIGNIFICANT = 30
_MOST_BITS = 1000  # of a denominator that is kept exactly
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
    return x if x.denominator.bit_length() <= _MOST_BITS else round_up(x)


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
    left = max(Fraction(0), cap - total)
    if max(left.denominator.bit_length(), cap.denominator.bit_length()) <= _MOST_BITS:
        return left
    return round_down(max(Fraction(0), below(cap) - total))


def float_up(value: Fraction) -> float:
    """Return the double whose decimal reading is the value (0.3 is three tenths), else a double not below it.

    Examples
    --------
    >>> float_up(Fraction(3, 10)), float_up(Fraction(1, 3)) > 1 / 3
    (0.3, True)
    """
    try:
        near = float(value)
    except OverflowError:
        return math.inf
    if Fraction(repr(near)) == value:
        return near
    while math.isfinite(near) and min(Fraction(near), Fraction(repr(near))) < value:
        near = math.nextafter(near, math.inf)
    return near


def float_down(value: Fraction) -> float:
    """Return the largest double at or below a number: reading at a smaller delta or epsilon is safe."""
    near = float(value)
    return math.nextafter(near, 0.0) if Fraction(near) > value else near


def _step(x: Fraction, digits: int) -> Fraction:
    if x <= 0:
        return GRID
    size = _digits(x.numerator) - _digits(x.denominator)  # 10^(size-1) <= x < 10^(size+1)
    return max(GRID, Fraction(10) ** (size - digits))


def _digits(n: int) -> int:
    """Return the number of decimal digits of n > 0; Python does not write more than 4,300 of them."""
    found = (n.bit_length() - 1) * 3010299956 // 10**10 + 1  # at most the truth: log10(2) > 0.3010299956
    while 10**found <= n:
        found += 1
    return found


def _decimal(x: Fraction, context: Context) -> Decimal:
    return context.divide(Decimal(x.numerator), Decimal(x.denominator))
