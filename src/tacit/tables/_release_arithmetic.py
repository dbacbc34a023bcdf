"""Arithmetic on the released values of a table and their intervals: free, because it touches no data."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Final, TypeAlias

from tacit.core import Value
from tacit.errors import TacitError
from tacit.fixes import Do
from tacit.tables._expressions import Call, Column, Literal, Node

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["ValueWithInterval", "check_computable", "evaluate"]

#: A value and the two ends of its interval, None where there is no interval.
ValueWithInterval: TypeAlias = tuple[Value, float | None, float | None]

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
    "round": lambda a, digits: round(a, int(digits)),
}


def check_computable(node: Node) -> None:
    """Refuse an expression that cannot be computed on released values, before anything is charged."""
    if not isinstance(node, Call):
        return
    if not (node.op in _COMPARISONS or node.op in _LOGIC or node.op in _ARITHMETIC):
        raise TacitError(
            "not-allowed",
            f"{node.op} cannot be computed on released values",
            why="Tacit computes arithmetic and comparisons; do anything else with the release itself",
            fix=Do("export-release"),
        )
    for argument in node.args:
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
        case Call(op, args):
            return _computed(op, [evaluate(a, line) for a in args])


def _computed(op: str, args: list[ValueWithInterval]) -> ValueWithInterval:
    values = [a[0] for a in args]
    if op in _LOGIC:
        return _LOGIC[op](values), None, None
    if op in _COMPARISONS:
        return _compared(op, values[0], values[1]), None, None
    numbers = [float(v or 0) for v in values if isinstance(v, int | float)]  # -0.0 is 0
    if len(numbers) < len(values):
        return None, None, None
    a, b = (*numbers, 0.0)[:2]
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
        return round(first[0], int(digits)), round(first[1], int(digits))
    corners = [c for x in first for y in second if (c := _ARITHMETIC[op](x, y)) is not None]
    if op == "abs" and first[0] <= 0 <= first[1]:
        corners.append(0.0)
    return min(corners), max(corners)
