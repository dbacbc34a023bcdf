"""Bisection: the first number at which a condition holds, where it holds from some number on."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["first_integer", "first_number"]


def first_integer(holds: Callable[[int], bool], low: int, high: int, *, growing: bool = False) -> int:
    """Return the first integer above `low`, and at most `high`, at which a condition holds.

    Parameters
    ----------
    holds
        The condition: false up to some integer, and true from there on.
    low
        An integer at which the condition does not hold; it is not asked there.
    high
        An integer above `low` at which the condition holds; it is asked there only if `growing`.
    growing
        Whether `high`, which is then positive, is doubled until the condition holds there.

    Examples
    --------
    >>> first_integer(lambda n: n * n >= 50, 0, 50), first_integer(lambda n: n * n >= 50, 0, 1, growing=True)
    (8, 8)
    """
    while growing and not holds(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def first_number(holds: Callable[[float], bool], low: float, high: float, *, ratio: float) -> float:
    """Return a number at which a condition holds, above the first such number by at most a factor.

    Parameters
    ----------
    holds
        The condition: false up to some positive number, and true from there on.
    low, high
        Positive numbers: the condition does not hold at the first, and holds at the second. It is asked only
        between them.
    ratio
        How far the result may lie above the first such number, as a factor.

    Examples
    --------
    >>> round(first_number(lambda x: x * x >= 2, 1, 2, ratio=1 + 1e-6), 5)
    1.41421
    """
    while high / low > ratio:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
