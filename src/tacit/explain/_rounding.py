"""The rounding of figures in `explain`: a bound is rounded outwards, so it never looks better than it is."""

from __future__ import annotations

import math
from decimal import Decimal


def shown_odds(chance: float) -> str:
    """Write an upper bound on a chance as odds out of 100; the odds shown are never below the bound.

    Between 55 % and 95 % the odds are whole numbers, followed by the percentage, rounded up, where it is not
    whole. Near even odds and near certainty whole numbers would hide the difference, so the odds get
    decimals, rounded up.

    Examples
    --------
    >>> shown_odds(0.5), shown_odds(0.6224594), shown_odds(0.75)
    ('50:50', '62:38 (62.3 %)', '75:25')
    >>> shown_odds(0.5025), shown_odds(0.9933072), shown_odds(0.99995)
    ('50.3:49.7', '99.4:0.6', '99.995:0.005')
    """
    hundred = 100 * chance
    if chance in {0.0, 0.5, 1.0}:
        return f"{hundred:.0f}:{100 - hundred:.0f}"
    if 55 <= hundred <= 95:
        yes, exact = math.floor(hundred + 0.5), _percents_up(hundred, 1)
        return f"{yes}:{100 - yes}" + ("" if exact == f"{yes}.0" else f" ({exact} %)")
    detail = min(abs(hundred - 50), hundred, 100 - hundred) / 2
    digits = next((d for d in range(1, 13) if 10.0**-d <= detail), 12)
    shown = Decimal(_percents_up(hundred, digits))
    sides = (f"{side.normalize():f}" for side in (shown, 100 - shown))
    return ":".join(sides)


def _percents_up(hundred: float, digits: int) -> str:
    """Round a percentage up to this many digits; a tolerance of 1e-9 of the last digit keeps exact values."""
    return str(Decimal(math.ceil(hundred * 10**digits - 1e-9)).scaleb(-digits))


def shown_factor(loss: float) -> str:
    """Write exp(loss), rounded up.

    Examples
    --------
    >>> shown_factor(0.01), shown_factor(0.5), shown_factor(3)
    ('1.0101', '1.6488', '20.09')
    >>> shown_factor(60), shown_factor(1e9)
    ('1.15e+26', 'exp(1e+09)')
    """
    if loss > 700:  # more than a float can hold
        return f"exp({number_up(loss)})"
    factor = math.exp(loss)
    digits = 4 if factor < 10 else 2 if factor < 1e4 else 0
    if factor >= 1e12:
        return number_up(factor, 3)
    return f"{math.ceil(factor * 10**digits) / 10**digits:,.{digits}f}"


def at_most(share: float, digits: int = 2) -> str:
    """Write an upper bound as a percentage, rounded up.

    Examples
    --------
    >>> at_most(0.24491866), at_least(0.37754067)
    ('24.50 %', '37.75 %')
    """
    return f"{math.ceil(share * 10 ** (digits + 2) - 1e-9) / 10**digits:.{digits}f} %"


def at_least(share: float, digits: int = 2) -> str:
    """Write a lower bound as a percentage, rounded down."""
    return f"{math.floor(share * 10 ** (digits + 2) + 1e-9) / 10**digits:.{digits}f} %"


def number_up(value: float, digits: int = 4) -> str:
    """Write a number with this many significant digits, rounded up.

    Examples
    --------
    >>> number_up(0.5), number_up(1.06069), number_up(123456.7)
    ('0.5', '1.061', '1.235e+05')
    """
    if not math.isfinite(value) or value <= 0:
        return f"{value:g}"
    near = f"{value:.{digits}g}"
    if float(near) >= value * (1 - 1e-12):
        return near
    step = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
    return f"{float(near) + step:.{digits}g}"
