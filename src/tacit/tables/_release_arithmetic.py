"""Arithmetic on the released values of a table and their intervals: free, because it touches no data."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Final

from tacit.algebra import Call, Column, Literal, Node, text_of
from tacit.core import swamped
from tacit.errors import TacitError
from tacit.fixes import Do
from tacit.tables._release_functions import FUNCTIONS, choose, rounded
from tacit.tables._release_totals import OVER, looks_over_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tacit.core import Value
    from tacit.tables._release_functions import ValueWithInterval

_COMPARISONS: Final[dict[str, Callable[..., bool]]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le,
    "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip
_LOGIC: Final[dict[str, Callable[[list[Value]], bool]]] = {
    "and": lambda values: all(v is True for v in values),
    "or": lambda values: any(v is True for v in values),
    "not": lambda values: values[0] is not True,
    "is_null": lambda values: values[0] is None,
    "in": lambda values: values[0] in values[1:],
}
_ARITHMETIC: Final[dict[str, Callable[[float, float], float | None]]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": lambda a, b: a / b if b else None,
    "neg": lambda a, _: -a,
    "abs": lambda a, _: abs(a),
    "round": rounded,
}
#: The name under which a line holds how often each interval covers the noise; no column has it.
CONFIDENCE: Final = "\0"
_USUAL: Final[ValueWithInterval] = (0.95, None, None)
_CHOICES: Final = frozenset({"case", "coalesce"})
_COMPUTABLE: Final = frozenset({*_COMPARISONS, *_LOGIC, *_ARITHMETIC, *_CHOICES, *FUNCTIONS, *OVER})


def check_computable(node: Node) -> None:
    """Refuse an expression that cannot be computed on released values, before anything is charged."""
    if not isinstance(node, Call):
        return
    if node.op not in _COMPUTABLE:
        raise TacitError(
            "not-allowed",
            f"{node.op} cannot be computed on released values",
            why="Tacit computes numbers, conditions and simple text; compute the rest from the export",
            fix=Do("export-release"),
        )
    for argument in node.args:
        if node.op in OVER and looks_over_lines(argument):
            raise TacitError(
                "not-allowed", "a function with OVER cannot contain another function with OVER", fix="OVER ()"
            )
        check_computable(argument)


def evaluate(node: Node, line: Mapping[str, ValueWithInterval]) -> ValueWithInterval:
    """Compute an expression over one line of a release.

    The interval of the result comes from interval arithmetic: it holds where all the intervals that it is
    made of hold.
    """
    match node:
        case Column(name, _):
            return line[name]
        case Literal(value, "number"):
            number = float(value or 0)
            return number, number, number
        case Literal(value, _):
            return value, None, None
        case Call(op, _) if op in OVER or (op == "div" and text_of(node) in line):
            return line[text_of(node)]
        case Call("case", args):
            pairs = list(zip(args[:-1:2], args[1::2], strict=True))
            return choose(
                [(evaluate(c, line)[0], _certain(c, line), evaluate(v, line)) for c, v in pairs],
                evaluate(args[-1], line),
            )
        case Call("div", args) if _divisor_is_noise(found := [evaluate(a, line) for a in args], line):
            return None, *_interval("div", found, 0.0)
        case Call("coalesce", args):
            found = [evaluate(a, line) for a in args]
            return choose([(one[0] is not None, _is_present(one), one) for one in found], (None, None, None))
        case Call(op, args):
            return _computed(op, [evaluate(a, line) for a in args])


def _divisor_is_noise(args: list[ValueWithInterval], line: Mapping[str, ValueWithInterval]) -> bool:
    """Whether the rule for hidden values hides a quotient, by the interval of its divisor."""
    value, low, high = args[1]
    if low is None or high is None or low == high or not isinstance(value, int | float):
        return False
    confidence = line.get(CONFIDENCE, _USUAL)[0]
    return isinstance(confidence, float) and swamped(abs(value), (high - low) / 2, confidence)


def _certain(node: Node, line: Mapping[str, ValueWithInterval]) -> bool | None:
    """Return whether a condition holds for all values in the intervals, for none, or (None) for some."""
    match node:
        case Call("not", (inner,)):
            found = _certain(inner, line)
            return None if found is None else not found
        case Call("and" | "or" as op, args):
            parts, decides = [_certain(a, line) for a in args], op == "or"
            return decides if decides in parts else None if None in parts else not decides
        case Call("is_null", (inner,)):
            value, low, _ = evaluate(inner, line)
            return None if low is None or value is None else False
        case Call("eq" | "ne" | "lt" | "le" | "gt" | "ge" as op, (first, second)):
            return _certain_comparison(op, evaluate(first, line), evaluate(second, line))
        case _:
            return None


def _is_present(found: ValueWithInterval) -> bool | None:
    """Return whether there is a value; None where the noise hides it: then the rows may have one or not."""
    value, low, _ = found
    return True if value is not None else None if low is not None else False


def _certain_comparison(op: str, a: ValueWithInterval, b: ValueWithInterval) -> bool | None:
    """Compare two intervals; text is exact, because only keys and constants are text."""
    if isinstance(a[0], str) and isinstance(b[0], str):
        return _compared(op, a[0], b[0])
    if a[1] is None or a[2] is None or b[1] is None or b[2] is None:
        return None
    if op in {"eq", "ne"}:
        apart, same = a[2] < b[1] or b[2] < a[1], a[1] == a[2] == b[1] == b[2]
        return (op == "ne") if apart else (op == "eq") if same else None
    corners = {_compared(op, x, y) for x in a[1:] for y in b[1:]}
    return corners.pop() if len(corners) == 1 else None


def _computed(op: str, args: list[ValueWithInterval]) -> ValueWithInterval:
    if op in FUNCTIONS:
        try:
            return FUNCTIONS[op](args)
        except (ValueError, TypeError, OverflowError, ZeroDivisionError):  # text in the place of a number
            return None, None, None
    values = [a[0] for a in args]
    if op in _LOGIC:
        return _LOGIC[op](values), None, None
    if op in _COMPARISONS:
        return _compared(op, values[0], values[1]), None, None
    numbers = [float(v or 0) for v in values if isinstance(v, int | float)]  # -0.0 is 0
    a, b = (*numbers, 0.0)[:2] if numbers else (0.0, 0.0)
    if len(numbers) < len(values):  # what the noise hides has an interval, and so has what is computed of it
        return None, *_interval(op, args, b)
    return _ARITHMETIC[op](a, b), *_interval(op, args, b)


def _compared(op: str, a: Value, b: Value) -> bool:
    """Compare two values; a comparison with NULL, or of text with a number, is false."""
    if a is None or b is None or isinstance(a, str) != isinstance(b, str):
        return False
    return _COMPARISONS[op](a, b)


def _interval(op: str, args: list[ValueWithInterval], digits: float) -> tuple[float | None, float | None]:
    """Return the ends of the interval of an arithmetic result."""
    ends = [(low, high) for _, low, high in args if low is not None and high is not None]
    if len(ends) < len(args):
        return None, None
    first, second = (*ends, (0.0, 0.0))[:2]
    if op == "div" and second[0] <= 0 <= second[1]:
        return None, None
    if op == "round":
        return rounded(first[0], digits), rounded(first[1], digits)
    corners = [c for x in first for y in second if (c := _ARITHMETIC[op](x, y)) is not None]
    if op == "abs" and first[0] <= 0 <= first[1]:
        corners.append(0.0)
    return min(corners), max(corners)
