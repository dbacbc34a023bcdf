"""The postprocessing of a table release: arithmetic on values and intervals, HAVING, ORDER BY, LIMIT.

It touches no data, so it is free and not part of the plan's hash.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Protocol

from tacit.algebra import Call, Column, Literal, Node, names, text_of
from tacit.core import AnswerTable, Cells, FoundBounds, MeasuredIntegers, Release, Value, swamped
from tacit.errors import TacitError
from tacit.fixes import Choose, Do
from tacit.tables.reading._release_functions import (
    FUNCTIONS,
    OVER,
    choose,
    looks_over_lines,
    rounded,
    sorted_lines,
    with_totals,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tacit.tables.reading._release_functions import ValueWithInterval


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
_PLACE = ""  # of a line among those that were measured; no column has this name


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
        case Call("div", args) if _divisor_is_noise(operands := [evaluate(a, line) for a in args], line):
            return None, *_interval("div", operands, 0.0)
        case Call("coalesce", args):
            operands = [evaluate(a, line) for a in args]
            return choose(
                [(one[0] is not None, _is_present(one), one) for one in operands], (None, None, None)
            )
        case Call(op, args):
            return _computed(op, [evaluate(a, line) for a in args])


def _divisor_is_noise(args: list[ValueWithInterval], line: Mapping[str, ValueWithInterval]) -> bool:
    """Return whether the rule for hidden values hides a quotient, by the interval of its divisor."""
    value, low, high = args[1]
    if low is None or high is None or low == high or not isinstance(value, int | float):
        return False
    confidence = line.get(CONFIDENCE, _USUAL)[0]
    return isinstance(confidence, float) and swamped(abs(value), (high - low) / 2, confidence)


def _certain(node: Node, line: Mapping[str, ValueWithInterval]) -> bool | None:
    """Return whether a condition holds for all values in the intervals, for none, or (None) for some."""
    match node:
        case Call("not", (inner,)):
            certain = _certain(inner, line)
            return None if certain is None else not certain
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


def _is_present(operand: ValueWithInterval) -> bool | None:
    """Return whether there is a value; None where the noise hides it: then the rows may have one or not."""
    value, low, _ = operand
    return True if value is not None else None if low is not None else False


def _certain_comparison(op: str, a: ValueWithInterval, b: ValueWithInterval) -> bool | None:
    """Compare two intervals; text is exact, because only keys and constants are text."""
    if isinstance(a[0], str) and isinstance(b[0], str):
        return _compared(op, a[0], b[0])
    if a[1] is None or a[2] is None or b[1] is None or b[2] is None:
        return None
    if op in {"eq", "ne"}:
        disjoint, same = a[2] < b[1] or b[2] < a[1], a[1] == a[2] == b[1] == b[2]
        return (op == "ne") if disjoint else (op == "eq") if same else None
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
    left, right = (*ends, (0.0, 0.0))[:2]
    if op == "div" and right[0] <= 0 <= right[1]:
        return None, None
    if op == "round":
        return rounded(left[0], digits), rounded(left[1], digits)
    corners = [c for x in left for y in right if (c := _ARITHMETIC[op](x, y)) is not None]
    if op == "abs" and left[0] <= 0 <= left[1]:
        corners.append(0.0)
    return min(corners), max(corners)


class Presentation(Protocol):
    """How a release is shown: free, and not part of the plan's hash."""

    def check_columns(self, known: Iterable[str]) -> None:
        """Refuse columns that the release will not have, before anything is charged."""

    def apply(self, release: Release[AnswerTable]) -> Release[AnswerTable]:
        """Return the release as it is shown."""


@dataclass(frozen=True, slots=True)
class PostProcessing:
    """Which lines and columns of a release are shown, and in which order.

    Parameters
    ----------
    outputs
        The columns by name, as expressions over the keys and columns of the release.
    having
        The condition that a line must meet.
    order
        The expressions to sort by, each with whether it is descending.
    limit
        How many lines are shown at most.
    """

    outputs: tuple[tuple[str, Node], ...]
    having: Node | None
    order: tuple[tuple[Node, bool], ...]
    limit: int | None

    def __post_init__(self) -> None:
        for _, node in self.outputs:
            check_computable(node)
        for node, _ in self.order:
            check_computable(node)
        if self.having is not None:
            check_computable(self.having)
            if looks_over_lines(self.having):
                raise TacitError(
                    "not-allowed",
                    "HAVING cannot contain OVER",
                    fix="ORDER BY 2 DESC LIMIT 10",
                )

    @property
    def looks_over_lines(self) -> bool:
        """Whether sums or ranks over the lines are computed."""
        return any(looks_over_lines(node) for _, node in self.outputs) or any(
            looks_over_lines(node) for node, _ in self.order
        )

    def check_columns(self, known: Iterable[str]) -> None:
        """Refuse columns that the release will not have, before anything is charged."""
        nodes = [*(n for _, n in self.outputs), *(n for n, _ in self.order)]
        nodes += [] if self.having is None else [self.having]
        missing = sorted(frozenset().union(*(names(node) for node in nodes)) - set(known))
        if missing:
            raise TacitError(
                "unknown-column",
                f"the release has no column {missing[0]!r}",
                fix=Choose(tuple(known), given=missing[0]),
            )

    def apply(self, release: Release[AnswerTable]) -> Release[AnswerTable]:
        """Return the release as asked for."""
        answer = release.content
        about = {CONFIDENCE: (answer.confidence, None, None)}
        numbered = [_line(answer, i) | about | {_PLACE: (i, None, None)} for i in range(len(answer))]
        lines = self._chosen(numbered, answer.confidence)
        keys: dict[str, tuple[Value, ...]] = {}
        columns: dict[str, Cells] = {}
        for name, node in self.outputs:
            computed = [evaluate(node, line) for line in lines]
            if isinstance(node, Column) and node.name in answer.keys:
                keys[name] = tuple(m[0] for m in computed)
            else:
                columns[name] = Cells(
                    tuple(m[0] for m in computed),
                    tuple(m[1] for m in computed),
                    tuple(m[2] for m in computed),
                )
        chosen = ("lines chosen after the noise",) if self.having or self.limit is not None else ()
        columns_shown = [(name, node.name) for name, node in self.outputs if isinstance(node, Column)]
        notes = {name: answer.notes[source] for name, source in columns_shown if source in answer.notes}
        notes |= {name: note for name, node in self.outputs if (note := _note(node, columns.get(name)))}
        counts = tuple(name for name, source in columns_shown if source in answer.counts)
        dates = tuple(name for name, source in columns_shown if source in answer.dates)
        marks = (*release.marks, *chosen, *self._dropped(numbered))
        measurements = () if chosen else _measured(answer, columns_shown, lines)
        shown_answer = replace(
            answer, keys=keys, columns=columns, notes=notes, counts=counts, dates=dates,
            measured=measurements, found=_found(answer, self.outputs, lines),
        )  # fmt: skip
        return replace(release, content=shown_answer, marks=marks)

    def _dropped(self, lines: list[dict[str, ValueWithInterval]]) -> list[str]:
        """Say how many lines HAVING drops because the noise hides a value that it reads."""
        if self.having is None:
            return []
        needed = names(self.having)
        hidden = [
            line
            for line in lines
            if any(line[name][0] is None and line[name][1] is not None for name in needed)
        ]
        count = sum(1 for line in hidden if evaluate(self.having, line)[0] is not True)
        few = "1 line was dropped" if count == 1 else f"{count:,} lines were dropped"
        return [f"{few} because the noise hides a value that HAVING reads"] if count else []

    def _chosen(
        self, lines: list[dict[str, ValueWithInterval]], confidence: float
    ) -> list[dict[str, ValueWithInterval]]:
        """Apply HAVING, compute what looks over the lines that are left, then apply ORDER BY and LIMIT."""
        if self.having is not None:
            lines = [line for line in lines if evaluate(self.having, line)[0] is True]
        nodes = [*(node for _, node in self.outputs), *(node for node, _ in self.order)]
        lines = with_totals(lines, nodes, confidence, evaluate)
        for node, descending in reversed(self.order):
            lines = sorted_lines(lines, [evaluate(node, line) for line in lines], descending=descending)
        return lines[: self.limit] if self.limit is not None else lines


def _measured(
    answer: AnswerTable, columns_shown: list[tuple[str, str]], lines: list[dict[str, ValueWithInterval]]
) -> tuple[MeasuredIntegers, ...]:
    """Return the integers behind the columns that are still shown, in the order of the lines.

    Lines that were chosen by their noisy values have none: a test on them would look only where noise is
    large.
    """
    names: dict[str, list[str]] = {}
    for name, source in columns_shown:
        names.setdefault(source, []).append(name)
    places = [int(line[_PLACE][0] or 0) for line in lines]
    kept_measurements = [one.shown(names, places) for one in answer.measured]
    return tuple(one for one in kept_measurements if one is not None)


def _found(
    answer: AnswerTable, outputs: tuple[tuple[str, Node], ...], lines: list[dict[str, ValueWithInterval]]
) -> tuple[FoundBounds, ...]:
    """Return the bounds behind the columns that are shown, also of those that are computed from others."""
    renamed: dict[str, list[str]] = {}
    computed: dict[str, list[str]] = {}
    for name, node in outputs:
        for source in names(node):
            (renamed if isinstance(node, Column) else computed).setdefault(source, []).append(name)
    places = [int(line[_PLACE][0] or 0) for line in lines]
    kept = (one.shown(renamed, places, computed) for one in answer.found)
    return tuple(one for one in kept if one is not None)


def _line(answer: AnswerTable, i: int) -> dict[str, ValueWithInterval]:
    line: dict[str, ValueWithInterval] = {
        name: (values[i], None, None) for name, values in answer.keys.items()
    }
    for name, cells in answer.columns.items():
        line[name] = (cells.value[i], cells.low[i], cells.high[i])
    return line


def _divides(node: Node) -> bool:
    return isinstance(node, Call) and (node.op == "div" or any(_divides(one) for one in node.args))


def _note(node: Node, cells: Cells | None) -> str:
    """Say of a computed column over which lines it is computed, and why it has no interval."""
    if not isinstance(node, Call) or cells is None:
        return ""
    sentences = ["computed from the lines of this answer"] if looks_over_lines(node) else []
    numbers = any(isinstance(value, int | float) for value in cells.value)
    if _divides(node) and None in cells.value:
        sentences.append("no value where the divisor may be noise alone")
    if numbers and cells.lack_intervals:
        some = " in some lines" if any(low is not None for low in cells.low) else ""
        why = "a part of it has none or because the noise can change which value is chosen"
        sentences.append(f"no interval{some}, because {why}")
    return "; ".join(sentences)
