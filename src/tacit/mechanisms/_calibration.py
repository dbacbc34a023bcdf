"""Smallest noise for a target, checked forward, and roots rounded up."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.errors import bad_parameter

if TYPE_CHECKING:
    from tacit.accounting import Cost

__all__ = ["smallest_sigma", "square_root_up"]


def square_root_up(x: Fraction) -> Fraction:
    """Return a short rational at or just above the square root (within a relative 2^-50).

    Examples
    --------
    >>> square_root_up(Fraction(9, 4))
    Fraction(3, 2)
    """
    shift = max(0, 102 - (x.numerator.bit_length() - x.denominator.bit_length())) // 2 + 1
    scaled = -(-(x.numerator << 2 * shift) // x.denominator)
    root = math.isqrt(scaled)
    return Fraction(root + (root * root < scaled), 1 << shift)


def smallest_sigma(cost: Callable[[Fraction], Cost], *, epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return a sigma, within a part in 10^9 of the smallest, with ``cost(sigma).delta(epsilon) <= delta``.

    The answer itself was checked: a root search may land on either side, the check decides.
    """
    top = float(epsilon)

    def meets(sigma: float) -> bool:
        return bool(cost(Fraction(sigma)).epsilon(delta=delta) <= top)

    high = 1.0
    while not meets(high):
        high *= 2
        if high > 2.0**60:
            raise bad_parameter(
                "epsilon", "large enough for some noise to reach it", epsilon, fix="epsilon=0.5"
            )
    low = high / 2
    while low > 2.0**-60 and meets(low):
        high, low = low, low / 2
    for _ in range(60):
        if high / low < 1 + 1e-10:
            break
        middle = math.sqrt(low * high)
        low, high = (low, middle) if meets(middle) else (middle, high)
    return Fraction(high)
