"""Functions of released values with their intervals: free, because they touch no data.

An increasing function maps the ends of an interval. A choice (CASE, COALESCE) has the interval that holds all
the branches which the intervals of its conditions leave open, and none where one of these has none.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, TypeAlias

from tacit.core import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: A value and the two ends of its interval, None where there is no interval.
ValueWithInterval: TypeAlias = tuple[Value, float | None, float | None]

_MISSING: Final[ValueWithInterval] = (None, None, None)


def _number(value: Value) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _safely(function: Callable[[float], float | None], x: float | None) -> float | None:
    """Apply a function; outside its domain, and beyond the largest float, there is no value."""
    try:
        found = None if x is None else function(x)
    except (ValueError, OverflowError, ZeroDivisionError):
        return None
    return found if found is not None and math.isfinite(found) else None


def _increasing(
    function: Callable[[float], float | None], least: float = -math.inf
) -> Callable[[Sequence[ValueWithInterval]], ValueWithInterval]:
    """Return an increasing function; the interval of its argument is cut off below ``least``."""

    def computed(args: Sequence[ValueWithInterval]) -> ValueWithInterval:
        value, low, high = args[0]
        made = _safely(function, _number(value))
        if low is None or high is None:
            return made, None, None
        ends = _safely(function, max(low, least)), _safely(function, high)
        known = None not in ends and (made is not None or value is None)  # NULL, but with an interval: hidden
        return (made, *ends) if known else (made, None, None)

    return computed


def _extreme(
    pick: Callable[[list[float]], float],
) -> Callable[[Sequence[ValueWithInterval]], ValueWithInterval]:
    """Return LEAST or GREATEST, which increase in each argument; NULL if one argument is."""

    def computed(args: Sequence[ValueWithInterval]) -> ValueWithInterval:
        columns = [[_number(a[i]) for a in args] for i in range(3)]
        values, lows, highs = ([x for x in column if x is not None] for column in columns)
        if len(values) < len(args):
            return _MISSING
        if len(lows) < len(args) or len(highs) < len(args):
            return pick(values), None, None
        return pick(values), pick(lows), pick(highs)

    return computed


def rounded(x: float, digits: float) -> float:
    """Round half away from zero, as SQL does; -0.0 is 0."""
    scale = 10.0 ** int(max(-300.0, min(300.0, digits))) if digits == digits else math.inf
    if not math.isfinite(x * scale) or abs(x * scale) >= 2**52:
        return x
    shown = repr(math.floor(abs(x) * scale + 0.5) / scale)
    return math.copysign(float(shown), x) or 0.0


def _raised(args: Sequence[ValueWithInterval]) -> ValueWithInterval:
    """Raise to a power; with an even exponent the interval of a value around zero starts at zero."""
    base, exponent = args
    n = _number(exponent[0])
    if n is None:
        return _MISSING
    value = _safely(lambda x: _power(x, n), _number(base[0]))
    low, high = base[1], base[2]
    if low is None or high is None or value is None or exponent[1] != exponent[2]:
        return value, None, None
    ends = [_safely(lambda x: _power(x, n), x) for x in (low, high)]
    known = [x for x in ends if x is not None]
    if len(known) < 2 or (low < 0 < high and n < 0) or ((low == 0 or high == 0) and n < 0):
        return value, None, None
    if low <= 0 <= high and n % 2 == 0:
        known.append(0.0 if n else 1.0)
    return value, min(known), max(known)


def _power(x: float, n: float) -> float | None:
    found = x**n
    return found if isinstance(found, float | int) else None


def _remainder(args: Sequence[ValueWithInterval]) -> ValueWithInterval:
    a, b = (_number(one[0]) for one in args)
    return (None if a is None or not b else math.fmod(a, b)), None, None


def choose(
    branches: Sequence[tuple[Value, bool | None, ValueWithInterval]], otherwise: ValueWithInterval
) -> ValueWithInterval:
    """Choose a branch by released conditions.

    Parameters
    ----------
    branches
        Of each branch: whether its condition holds for the released values, whether it is certain to hold
        (True), certain not to (False) or open (None), and its value.
    otherwise
        The value if no condition holds.
    """
    taken = (result for holds, certain, result in branches if holds is True or certain is True)
    shown = next(taken, otherwise)  # a hidden value decides nothing, but its whole interval may
    possible: list[ValueWithInterval] = []
    for _, certain, result in branches:
        if certain is not False:
            possible.append(result)
        if certain is True:
            break
    else:
        possible.append(otherwise)
    lows, highs = [one[1] for one in possible], [one[2] for one in possible]
    if any(end is None for end in (*lows, *highs)):
        return shown[0], None, None
    return shown[0], min(x for x in lows if x is not None), max(x for x in highs if x is not None)


def _of_text(function: Callable[..., Value]) -> Callable[[Sequence[ValueWithInterval]], ValueWithInterval]:
    """Return a function of text and constants; NULL if one argument is."""

    def computed(args: Sequence[ValueWithInterval]) -> ValueWithInterval:
        values = [a[0] for a in args]
        if None in values or not isinstance(values[0], str):
            return _MISSING
        return function(*values), None, None

    return computed


def _written(args: Sequence[ValueWithInterval]) -> ValueWithInterval:
    """Write a value as text, whole numbers without a point."""
    value = args[0][0]
    if isinstance(value, bool):
        return ("true" if value else "false"), None, None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return (None if value is None else str(value)), None, None


def _read_number(args: Sequence[ValueWithInterval]) -> ValueWithInterval:
    """Read text as a number; a number keeps its interval."""
    value, low, high = args[0]
    if not isinstance(value, str):
        return _number(value), low, high
    try:
        return _safely(float, float(value)), None, None
    except ValueError:
        return _MISSING


def _joined(args: Sequence[ValueWithInterval]) -> ValueWithInterval:
    values = [a[0] for a in args]
    return (None if not all(isinstance(v, str) for v in values) else "".join(map(str, values))), None, None


#: What can be computed of released values beside arithmetic, comparisons and choices.
FUNCTIONS: Final[dict[str, Callable[[Sequence[ValueWithInterval]], ValueWithInterval]]] = {
    "floor": _increasing(math.floor), "ceil": _increasing(math.ceil), "trunc": _increasing(math.trunc),
    "sign": _increasing(lambda x: (x > 0) - (x < 0)),
    "sqrt": _increasing(math.sqrt, 0.0), "exp": _increasing(math.exp),
    "ln": _increasing(math.log), "log2": _increasing(math.log2), "log10": _increasing(math.log10),
    "power": _raised, "mod": _remainder, "least": _extreme(min), "greatest": _extreme(max),
    "clip": lambda args: _extreme(min)([_extreme(max)(args[:2]), args[2]]),
    "to_number": _read_number, "to_whole": lambda args: _increasing(round)([_read_number(args)]),
    "to_text": _written, "concat": _joined,
    "lower": _of_text(str.lower), "upper": _of_text(str.upper),
    "trim": _of_text(lambda x: x.strip(" ")), "ltrim": _of_text(lambda x: x.lstrip(" ")),
    "rtrim": _of_text(lambda x: x.rstrip(" ")), "length": _of_text(len),
    "substring": _of_text(lambda x, start, size: x[max(int(start), 1) - 1 :][: max(int(size), 0)]),
    "right": _of_text(lambda x, size: x[-int(size) :] if size >= 1 else ""),
    "replace": _of_text(lambda x, old, new: x.replace(old, new) if old else x),
}  # fmt: skip
