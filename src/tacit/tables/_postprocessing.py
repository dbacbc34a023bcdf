"""Post-processing of a release.

Arithmetic on aggregates, HAVING, ORDER BY, LIMIT. Free, and outside the plan's hash.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypeAlias

from tacit.core import AnswerTable, Cells, Release, Value
from tacit.errors import TacitError
from tacit.tables._expressions import Call, Column, Literal, Node

__all__ = ["Post"]

Interval: TypeAlias = tuple[Value, float | None, float | None]

_COMPARE = {"eq", "ne", "lt", "le", "gt", "ge"}


@dataclass(frozen=True, slots=True)
class Post:
    """What is shown of a release, in which order.

    Intervals of arithmetic are those of interval arithmetic: they hold where all intervals they are made of
    hold.
    """

    outputs: tuple[tuple[str, Node], ...]
    having: Node | None
    order: tuple[tuple[Node, bool], ...]
    limit: int | None

    def __post_init__(self) -> None:
        for node in (
            *(n for _, n in self.outputs),
            *(n for n, _ in self.order),
            *([self.having] if self.having else []),
        ):
            _check(node)

    def apply(self, release: Release[AnswerTable]) -> Release[AnswerTable]:
        """Return the release as asked for."""
        answer = release.content
        lines = [self._line(answer, i) for i in range(len(answer))]
        if self.having is not None:
            lines = [line for line in lines if _evaluated(self.having, line)[0] is True]
        for node, descending in reversed(self.order):
            lines.sort(key=lambda line, node=node: _sortable(_evaluated(node, line)[0]), reverse=descending)  # type: ignore[misc]
        lines = lines[: self.limit] if self.limit is not None else lines
        keys: dict[str, tuple[Value, ...]] = {}
        columns: dict[str, Cells] = {}
        for name, node in self.outputs:
            made = [_evaluated(node, line) for line in lines]
            if isinstance(node, Column) and node.name in answer.keys:
                keys[name] = tuple(m[0] for m in made)
            else:
                columns[name] = Cells(
                    tuple(m[0] for m in made), tuple(m[1] for m in made), tuple(m[2] for m in made)
                )
        marks = (
            *release.marks,
            *(["lines chosen after the noise"] if self.having or self.limit is not None else []),
        )
        shown = [(name, node.name) for name, node in self.outputs if isinstance(node, Column)]
        notes = {name: answer.notes[source] for name, source in shown if source in answer.notes}
        counts = tuple(name for name, source in shown if source in answer.counts)
        shown_answer = replace(answer, keys=keys, columns=columns, notes=notes, counts=counts)
        return replace(release, content=shown_answer, marks=marks)

    def _line(self, answer: AnswerTable, i: int) -> dict[str, Interval]:
        line: dict[str, Interval] = {name: (values[i], None, None) for name, values in answer.keys.items()}
        for name, cells in answer.columns.items():
            line[name] = (cells.value[i], cells.low[i], cells.high[i])
        return line


def _sortable(value: Value) -> tuple[int, float, str]:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return (1, 0.0, "")
    return (0, float(value), "") if isinstance(value, int | float) else (0, 0.0, value)


def _check(node: Node) -> None:
    """Refuse what cannot be computed on released values, before anything is charged."""
    match node:
        case Call(op, args):
            if op not in _COMPARE | {
                "add",
                "sub",
                "mul",
                "div",
                "neg",
                "abs",
                "and",
                "or",
                "not",
                "round",
                "in",
                "is_null",
            }:
                raise TacitError(
                    "not-allowed",
                    f"{op} is not known for released values",
                    why="arithmetic and comparisons are free; the rest is yours to do on the release",
                    fix="release.to_pandas()",
                )
            for a in args:
                _check(a)
        case _:
            return


def _evaluated(node: Node, line: dict[str, Interval]) -> Interval:
    match node:
        case Column(name, _):
            return line[name]
        case Literal(value, "number"):
            number = float(value or 0)
            return number, number, number
        case Literal(value, _):
            return value, None, None
        case Call(op, args):
            return _computed(op, [_evaluated(a, line) for a in args])


def _computed(op: str, args: list[Interval]) -> Interval:
    values = [a[0] for a in args]
    match op:
        case "and":
            return all(v is True for v in values), None, None
        case "or":
            return any(v is True for v in values), None, None
        case "not":
            return values[0] is not True, None, None
        case "is_null":
            return values[0] is None, None, None
        case "in":
            return values[0] in values[1:], None, None
        case _ if op in _COMPARE:
            return _compared(op, values[0], values[1]), None, None
        case _:
            return _arithmetic(op, args)


def _compared(op: str, a: Value, b: Value) -> bool:
    if a is None or b is None or isinstance(a, str) != isinstance(b, str):
        return False
    match op:
        case "eq":
            return a == b
        case "ne":
            return a != b
        case "lt":
            return a < b  # type: ignore[operator]
        case "le":
            return a <= b  # type: ignore[operator]
        case "gt":
            return a > b  # type: ignore[operator]
        case _:
            return a >= b  # type: ignore[operator]


def _arithmetic(op: str, args: list[Interval]) -> Interval:
    ranges = [_range(a) for a in args]
    numbers = [a[0] for a in args]
    if any(not isinstance(n, int | float) for n in numbers):
        return None, None, None
    a = numbers[0]
    b = numbers[1] if len(numbers) > 1 else 0.0
    value = _one(op, float(a or 0), float(b or 0))
    if any(r is None for r in ranges):
        return value, None, None
    first = ranges[0] or (0.0, 0.0)
    second = (ranges[1] if len(ranges) > 1 else None) or (0.0, 0.0)
    if op == "div" and second[0] <= 0 <= second[1]:
        return value, None, None
    if op == "round":
        digits = int(float(b or 0))
        return value, round(first[0], digits), round(first[1], digits)
    corners = [c for x in first for y in second if (c := _one(op, x, y)) is not None]
    if op == "abs" and first[0] <= 0 <= first[1]:
        corners.append(0.0)
    return value, min(corners), max(corners)


def _range(interval: Interval) -> tuple[float, float] | None:
    return None if interval[1] is None or interval[2] is None else (interval[1], interval[2])


def _one(op: str, a: float, b: float) -> float | None:
    match op:
        case "add":
            return a + b
        case "sub":
            return a - b
        case "mul":
            return a * b
        case "div":
            return a / b if b else None
        case "neg":
            return -a
        case "abs":
            return abs(a)
        case _:
            return round(a, int(b))
