"""A table question in words, for the record of who asked what. All of it is public."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tacit.tables._algebra import JoinPublic, JoinUnits, PerUnit, Project, Scan, Where
from tacit.tables._expressions import Column, words_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tacit.tables._aggregates import Aggregate
    from tacit.tables._algebra import Measure, Relation, TableQuestion
    from tacit.tables._expressions import Node

__all__ = ["in_words"]

_LONGEST = 400


def in_words(question: TableQuestion, *, shape: bool = False) -> str:
    """Write columns, groups and filter in a line: ``n = count, by ward, where age >= 65, of visits``.

    The ``shape`` of the question says what is computed of which declared columns, but leaves out what the
    person who asked wrote: ``?`` stands for each constant, the names of released columns are dropped, and
    columns that the question makes are numbered: ``count, by ward, where age >= ?, of visits``.
    """
    made = dict.fromkeys(_made(question.input)) if shape else {}
    writer = _QuestionWords({name: f"column {i}" for i, name in enumerate(made, 1)}, shape=shape)
    text = (
        ", ".join(writer.question(question)).encode("utf-8", "replace").decode()
    )  # a name may hold anything
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _made(node: Relation) -> Iterator[str]:
    """Return the names of columns that a question makes, which are not declared with the dataset."""
    match node:
        case Scan():
            return
        case Project(_, columns):
            yield from (name for name, made in columns if made != Column(name, getattr(made, "kind", None)))
        case JoinPublic(_, table, _, columns, _):
            yield from (name for name, source in columns if name not in {source, f"{table.name}.{source}"})
        case PerUnit(_, by, measures):
            yield from (name for name, _ in by)
            yield from (measure.name for measure in measures)
        case JoinUnits(_, right, _, _):
            yield from _made(right)
    yield from _made(node.left if isinstance(node, JoinPublic | JoinUnits) else node.input)


@dataclass(frozen=True, slots=True)
class _QuestionWords:
    """Writes a question in its own words, or its shape, in which some columns have other names."""

    hidden: Mapping[str, str]
    shape: bool

    def question(self, question: TableQuestion) -> list[str]:
        said = [self._named(name, self._aggregate(a), made=False) for name, a in question.aggregates]
        if question.by:
            said.append(
                "by " + " and ".join(self._column(name, node, made=False) for name, node in question.by)
            )
        return said + self._origin(question.input)

    def _words(self, node: Node) -> str:
        return words_of(node, self.hidden if self.shape else None)

    def _named(self, name: str, meaning: str, *, made: bool = True) -> str:
        if self.shape and not made:
            return meaning
        name = self.hidden.get(name, name)
        return meaning if name == meaning else f"{name} = {meaning}"

    def _column(self, name: str, node: Node, *, made: bool = True) -> str:
        if not self.shape and node == Column(name):
            return name
        return self._named(name, self._words(node), made=made)

    def _aggregate(self, aggregate: Aggregate) -> str:
        if aggregate.argument is None:
            return aggregate.word
        levels = aggregate.levels if aggregate.word in {"quantile", "quantiles"} else ()  # type: ignore[attr-defined]
        shown = ("?" if self.shape else f"{float(q):g}" for q in levels)
        return f"{aggregate.word}({', '.join([self._words(aggregate.argument), *shown])})"

    def _measure(self, measure: Measure) -> str:
        return measure.function + ("" if measure.argument is None else f"({self._words(measure.argument)})")

    def _origin(self, node: Relation) -> list[str]:
        """Say where the rows come from, the last step first."""
        match node:
            case Scan(table, _):
                return [f"of {table.name}"]
            case Where(inner, predicate):
                return [f"where {self._words(predicate)}", *self._origin(inner)]
            case Project(inner, columns):
                made = [self._column(name, e) for name, e in columns if not isinstance(e, Column)]
                return [*([f"with {' and '.join(made)}"] if made else []), *self._origin(inner)]
            case JoinPublic(left, table, _, _, _):
                return [*self._origin(left), f"joined with {table.name}"]
            case JoinUnits(left, right, _, _):
                return [*self._origin(left), "joined with", *self._origin(right)]
            case PerUnit(inner, by, measures):
                each = " and ".join(self._column(name, e) for name, e in by) or "unit"
                numbers = " and ".join(self._named(m.name, self._measure(m)) for m in measures)
                return [f"of {numbers or 'one row'} for each {each}", *self._origin(inner)]
