"""Functions of released values with their intervals, and totals, shares and ranks over released lines.

An increasing function maps the ends of an interval. A choice (CASE, COALESCE) has the interval that holds all
the branches which the intervals of its conditions leave open, and none where one of these has none. Totals,
shares and ranks are SQL's OVER, computed after the noise.

Guarantee
---------
All of them are functions of released values and touch no data, so they are free. Noise on different lines of
one column is independent. At a confidence of 95 % or more, a sum of independent noise stays within the root
of the sum of the squared half-widths with that confidence: for Gaussian noise exactly, for Laplace noise
because its sums have lighter tails than its terms (docs/proofs/tables.md). Below 95 % the half-widths are
added up.

The share p = x / T of a line is read off x - p T, which is linear in the noise: the interval holds every p
for which that is not further from 0 than its half-width (Fieller 1954).
"""

from __future__ import annotations

import math
import operator
from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING, Final, TypeAlias

from tacit.algebra import Call, Literal, Node, text_of
from tacit.core import Value, swamped

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
        y = None if x is None else function(x)
    except (ValueError, OverflowError, ZeroDivisionError):
        return None
    return y if y is not None and math.isfinite(y) else None


def _increasing(
    function: Callable[[float], float | None], smallest: float = -math.inf
) -> Callable[[Sequence[ValueWithInterval]], ValueWithInterval]:
    """Return an increasing function; the interval of its argument is cut off below ``smallest``."""

    def computed(args: Sequence[ValueWithInterval]) -> ValueWithInterval:
        value, low, high = args[0]
        y = _safely(function, _number(value))
        if low is None or high is None:
            return y, None, None
        ends = _safely(function, max(low, smallest)), _safely(function, high)
        has_interval = None not in ends and (
            y is not None or value is None
        )  # NULL, but with an interval: hidden
        return (y, *ends) if has_interval else (y, None, None)

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
    text = repr(math.floor(abs(x) * scale + 0.5) / scale)
    return math.copysign(float(text), x) or 0.0


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
    known_ends = [x for x in ends if x is not None]
    if len(known_ends) < 2 or (low < 0 < high and n < 0) or ((low == 0 or high == 0) and n < 0):
        return value, None, None
    if low <= 0 <= high and n % 2 == 0:
        known_ends.append(0.0 if n else 1.0)
    return value, min(known_ends), max(known_ends)


def _power(x: float, n: float) -> float | None:
    y = x**n
    return y if isinstance(y, float | int) else None


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
    results = (result for holds, certain, result in branches if holds is True or certain is True)
    value = next(results, otherwise)  # a hidden value decides nothing, but its whole interval may
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
        return value[0], None, None
    return value[0], min(x for x in lows if x is not None), max(x for x in highs if x is not None)


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


_SQUARES_FROM = 0.95

#: What can be computed over lines; the first argument is the value, the others name the part of the lines.
#: Those of ``ORDERED`` take a second argument, by which the lines are ordered.
OVER: Final = frozenset({
    "over_sum", "over_mean", "over_min", "over_max", "running_sum", "line_before", "line_after", "rank_up",
    "rank_down",
})  # fmt: skip

ORDERED: Final = frozenset({"running_sum", "line_before", "line_after"})

_Line = dict[str, "ValueWithInterval"]


def looks_over_lines(node: Node) -> bool:
    """Return whether an expression needs the other lines of the release."""
    return isinstance(node, Call) and (node.op in OVER or any(looks_over_lines(a) for a in node.args))


def with_totals(
    lines: list[_Line], nodes: Sequence[Node], confidence: float, evaluate: Callable[..., ValueWithInterval]
) -> list[_Line]:
    """Return the lines with the value of each part of these expressions that looks over the lines.

    It is stored under the text of the part, where `evaluate` finds it.
    """
    parts = dict.fromkeys(part for node in nodes for part in _parts(node))
    if not parts:
        return lines
    new_lines = [dict(line) for line in lines]
    for part in parts:
        share = _share(part)
        over = share[1] if share else part
        ordered = over.op in ORDERED
        groups: dict[tuple[Value, ...], list[int]] = {}
        for i, line in enumerate(lines):
            groups.setdefault(tuple(evaluate(a, line)[0] for a in over.args[1 + ordered :]), []).append(i)
        for chosen in groups.values():
            values = [evaluate(over.args[0], lines[i]) for i in chosen]
            order = [evaluate(over.args[1], lines[i])[0] for i in chosen] if ordered else []
            factor = share[0] if share else None
            totals = (
                _over(over.op, values, order, confidence)
                if factor is None
                else _shares(values, factor, confidence)
            )
            for i, value in zip(chosen, totals, strict=True):
                new_lines[i][text_of(part)] = value
    return new_lines


def _parts(node: Node) -> list[Call]:
    """Return the parts of an expression that look over lines, shares before the totals in them."""
    if not isinstance(node, Call):
        return []
    parts = [node] if node.op in OVER or _share(node) else []
    return parts + [part for argument in node.args for part in _parts(argument)]


def _share(node: Node) -> tuple[float, Call] | None:
    """Read ``a x / (b SUM(x) OVER ...)`` as the factor a/b and the total; None for any other expression."""
    if not (isinstance(node, Call) and node.op == "div"):
        return None
    (value, a), (total, b) = (_scaled(argument) for argument in node.args)
    if isinstance(total, Call) and total.op == "over_sum" and total.args[0] == value and b:
        return a / b, total
    return None


def _scaled(node: Node) -> tuple[Node, float]:
    """Take constant factors off an expression."""
    match node:
        case Call("mul", (inner, Literal(float() as factor))) | Call(
            "mul", (Literal(float() as factor), inner)
        ):
            core, rest = _scaled(inner)
            return core, factor * rest
        case Call("to_number", (inner,)):
            return _scaled(inner)
        case _:
            return node, 1.0


def _half_widths(values: Sequence[ValueWithInterval]) -> list[float] | None:
    """Return the half-widths of intervals that lie evenly around their values; None where one does not."""
    widths = []
    for value, low, high in values:
        if not isinstance(value, int | float) or low is None or high is None:
            return None
        if abs(low + high - 2 * value) > 1e-9 * max(1.0, abs(low), abs(high)):
            return None
        widths.append((high - low) / 2)
    return widths


def _sum(values: Sequence[ValueWithInterval], confidence: float) -> ValueWithInterval:
    return _running(values, confidence)[-1] if values else _MISSING


def _running(values: Sequence[ValueWithInterval], confidence: float) -> list[ValueWithInterval]:
    """Return the sums of the first values, one after the other."""
    evenly = confidence >= _SQUARES_FROM and _half_widths(values) is not None
    total, low, high, squares = 0.0, 0.0, 0.0, 0.0
    all_known, ends = True, True
    totals: list[ValueWithInterval] = []
    for value, lower, upper in values:
        all_known = all_known and isinstance(value, int | float)
        ends = ends and lower is not None and upper is not None
        total += float(value) if isinstance(value, int | float) else 0.0
        low, high = low + (lower or 0.0), high + (upper or 0.0)
        squares += (((upper or 0.0) - (lower or 0.0)) / 2) ** 2
        h = math.sqrt(squares)
        if not all_known:
            totals.append(_MISSING)
        elif not ends:
            totals.append((total, None, None))
        else:
            totals.append((total, total - h, total + h) if evenly else (total, low, high))
    return totals


def _over(
    op: str, values: list[ValueWithInterval], order: list[Value], confidence: float
) -> list[ValueWithInterval]:
    """Compute the value of each line of a group."""
    match op:
        case "running_sum" | "line_before" | "line_after":
            return _in_order(op, values, order, confidence)
        case "rank_up" | "rank_down":
            sign = 1.0 if op == "rank_up" else -1.0
            numbers = [sign * float(v) if isinstance(v, int | float) else math.inf for v, _, _ in values]
            places = sorted(numbers)
            return [(1.0 + bisect_left(places, own), None, None) for own in numbers]
        case "over_min" | "over_max":
            return [FUNCTIONS["least" if op == "over_min" else "greatest"](values)] * len(values)
        case _:
            n = len(values) if op == "over_mean" else 1
            value, low, high = _sum(values, confidence)
            if not isinstance(value, float):
                return [_MISSING] * len(values)
            ends = (None, None) if low is None or high is None else (low / n, high / n)
            return [(value / n, *ends)] * len(values)


def _in_order(
    op: str, values: list[ValueWithInterval], order: list[Value], confidence: float
) -> list[ValueWithInterval]:
    """Compute running totals, or the value of the line before or after; lines of one place count together."""
    places = sorted(range(len(values)), key=lambda i: sortable(order[i]))
    results = [_MISSING] * len(values)
    if op == "running_sum":
        running = _running([values[i] for i in places], confidence)
        for at in reversed(range(len(places))):
            same = at + 1 < len(places) and order[places[at]] == order[places[at + 1]]
            results[places[at]] = results[places[at + 1]] if same else running[at]
        return results
    step = -1 if op == "line_before" else 1
    for at, i in enumerate(places):
        if 0 <= at + step < len(places):
            results[i] = values[places[at + step]]
    return results


def sortable(value: Value) -> tuple[int, float, str]:
    """Order numbers by size and text by its characters, missing values last."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return (1, 0.0, "")
    return (0, float(value), "") if isinstance(value, int | float) else (0, 0.0, value)


def sorted_lines(lines: list[_Line], by: Sequence[ValueWithInterval], *, descending: bool) -> list[_Line]:
    """Sort lines by a value of each; what the noise hides comes last in either direction."""
    hidden = [value is None and low is not None for value, low, _ in by]
    order = sorted(range(len(lines)), key=lambda i: sortable(by[i][0]), reverse=descending)
    return [lines[i] for i in sorted(order, key=lambda i: hidden[i])]


def _shares(values: list[ValueWithInterval], factor: float, confidence: float) -> list[ValueWithInterval]:
    """Return each value's part of their sum, times the factor."""
    (total, lowest, highest), widths = _sum(values, confidence), _half_widths(values)
    if not isinstance(total, float) or not total:
        return [_MISSING] * len(values)
    bounded = lowest is not None and highest is not None
    hidden = bounded and swamped(abs(total), (highest - lowest) / 2, confidence)  # type: ignore[operator]
    squared = confidence >= _SQUARES_FROM
    add: Callable[[float, float], float] = math.hypot if squared else operator.add
    before = list(accumulate(widths or [], add, initial=0.0))[:-1]
    after = list(accumulate(reversed(widths or []), add, initial=0.0))[:-1]
    shares: list[ValueWithInterval] = []
    for i, (value, _, _) in enumerate(values):
        x = float(value) if isinstance(value, int | float) else 0.0
        ends = None
        if widths is not None:
            rest = add(before[i], after[-1 - i])
            ends = _fieller(x, total, widths[i], rest, squared=squared)
        low, high = (None, None) if ends is None else sorted(factor * end for end in ends)
        shares.append((None if hidden else factor * x / total, low, high))
    return shares


def _fieller(
    x: float, total: float, own_half_width: float, rest: float, *, squared: bool
) -> tuple[float, float] | None:
    """Return the shares p with |x - p T| within its half-width; None where they have no end."""
    if not squared:
        low, high = total - x - rest, total - x + rest
        ends = (x - own_half_width, x - own_half_width + high), (x + own_half_width, x + own_half_width + low)
        if min(ends[0][1], ends[1][1], x - own_half_width + low, x + own_half_width + high) <= 0:
            return None
        return ends[0][0] / ends[0][1], ends[1][0] / ends[1][1]
    a = total**2 - own_half_width**2 - rest**2
    if a <= 0:
        return None
    b, c = x * total - own_half_width**2, x**2 - own_half_width**2
    root = math.sqrt(max(b * b - a * c, 0.0))
    return (b - root) / a, (b + root) / a
