"""The postprocessing of a table release: arithmetic on aggregates, HAVING, ORDER BY, LIMIT.

It is free and not part of the plan's hash.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from tacit.algebra import Call, Column, Node, names
from tacit.core import AnswerTable, Cells, MeasuredIntegers, Release, Value
from tacit.errors import TacitError
from tacit.fixes import Choose
from tacit.tables._release_arithmetic import CONFIDENCE, check_computable, evaluate
from tacit.tables._release_totals import looks_over_lines, sorted_lines, with_totals

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tacit.tables._release_functions import ValueWithInterval

_PLACE = ""  # of a line among those that were measured; no column has this name


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
            made = [evaluate(node, line) for line in lines]
            if isinstance(node, Column) and node.name in answer.keys:
                keys[name] = tuple(m[0] for m in made)
            else:
                columns[name] = Cells(
                    tuple(m[0] for m in made), tuple(m[1] for m in made), tuple(m[2] for m in made)
                )
        chosen = ("lines chosen after the noise",) if self.having or self.limit is not None else ()
        shown = [(name, node.name) for name, node in self.outputs if isinstance(node, Column)]
        notes = {name: answer.notes[source] for name, source in shown if source in answer.notes}
        notes |= {name: note for name, node in self.outputs if (note := _note(node, columns.get(name)))}
        counts = tuple(name for name, source in shown if source in answer.counts)
        dates = tuple(name for name, source in shown if source in answer.dates)
        marks = (*release.marks, *chosen, *self._dropped(numbered))
        measured = () if chosen else _measured(answer, shown, lines)
        shown_answer = replace(
            answer, keys=keys, columns=columns, notes=notes, counts=counts, dates=dates, measured=measured
        )
        return replace(release, content=shown_answer, marks=marks)

    def _dropped(self, lines: list[dict[str, ValueWithInterval]]) -> list[str]:
        """Say how many lines HAVING drops because the noise hides a value that it reads."""
        if self.having is None:
            return []
        read = names(self.having)
        hidden = [
            line
            for line in lines
            if any(line[name][0] is None and line[name][1] is not None for name in read)
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
    answer: AnswerTable, shown: list[tuple[str, str]], lines: list[dict[str, ValueWithInterval]]
) -> tuple[MeasuredIntegers, ...]:
    """Return the integers behind the columns that are still shown, in the order of the lines.

    Lines that were chosen by their noisy values have none: a test on them would look only where noise is
    large.
    """
    names: dict[str, list[str]] = {}
    for name, source in shown:
        names.setdefault(source, []).append(name)
    places = [int(line[_PLACE][0] or 0) for line in lines]
    kept = [one.shown(names, places) for one in answer.measured]
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
    said = ["computed from the lines of this answer"] if looks_over_lines(node) else []
    numbers = any(isinstance(value, int | float) for value in cells.value)
    if _divides(node) and None in cells.value:
        said.append("no value where the divisor may be noise alone")
    if numbers and cells.lack_intervals:
        some = " in some lines" if any(low is not None for low in cells.low) else ""
        why = "a part of it has none or because the noise can change which value is chosen"
        said.append(f"no interval{some}, because {why}")
    return "; ".join(said)
