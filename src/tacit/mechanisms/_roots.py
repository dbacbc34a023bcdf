"""Square roots for mechanisms, rounded up."""

from __future__ import annotations

import math
from fractions import Fraction


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
