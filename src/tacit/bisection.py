"""Bisection: the first number at which a condition holds, where it holds from some number on."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction

__all__ = ["first_integer", "first_number", "halved"]

_Real = TypeVar("_Real", float, "Fraction")


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


def _geometric_mean(low: Any, high: Any) -> Any:
    return math.sqrt(low * high)


def first_number(
    holds: Callable[[_Real], bool],
    low: _Real,
    high: _Real,
    *,
    ratio: _Real,
    middle: Callable[[_Real, _Real], _Real] = _geometric_mean,
) -> _Real:
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
    middle
        The number between two others at which the condition is asked.

    Examples
    --------
    >>> round(first_number(lambda x: x * x >= 2, 1, 2, ratio=1 + 1e-6), 5)
    1.41421
    """
    while high / low > ratio:
        between = middle(low, high)
        low, high = (low, between) if holds(between) else (between, high)
    return high


def _mean(low: _Real, high: _Real) -> _Real:
    return (low + high) / 2


def halved(
    holds: Callable[[_Real], bool],
    low: _Real,
    high: _Real,
    *,
    times: int,
    middle: Callable[[_Real, _Real], _Real] = _mean,
) -> tuple[_Real, _Real]:
    """Halve an interval so many times: a condition holds at the upper end, and does not at the lower one.

    Parameters
    ----------
    holds
        The condition: false up to some number, and true from there on.
    low, high
        The condition does not hold at the first, and holds at the second. It is asked only between them.
    times
        How many times the interval is halved.
    middle
        The number between two others at which the condition is asked.

    Examples
    --------
    >>> halved(lambda x: x * x >= 2, 1.0, 2.0, times=3)
    (1.375, 1.5)
    """
    for _ in range(times):
        between = middle(low, high)
        low, high = (low, between) if holds(between) else (between, high)
    return low, high
