"""A table's question in words, as its author wrote it or as its shape. All of it is public."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tacit.algebra import (
    Column,
    JoinPublic,
    JoinUnits,
    PerUnit,
    Project,
    Scan,
    Where,
    words_of,
)
from tacit.tables._sampling import share_of_sample

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tacit.algebra import Measure, Relation, TableQuestion
    from tacit.tables._aggregates import Aggregate

_LONGEST = 400


def in_words(question: TableQuestion, *, shape: bool = False) -> str:
    """Write columns, groups and filter in a line: ``n = count, by ward, where age >= 65, of visits``.

    The ``shape`` of the question says what is computed of which declared columns, but leaves out what the
    person who asked wrote: ``?`` stands for each constant, the names of released columns are dropped, and
    columns that the question makes are numbered: ``count, by ward, where age >= ?, of visits``.
    """
    writer = _QuestionWords(_numbered(question.input) if shape else None)
    said = [writer.released(name, writer.aggregate(a)) for name, a in question.aggregates]
    if question.by:
        groups = [writer.released(name, words_of(node, writer.hidden)) for name, node in question.by]
        said.append("by " + " and ".join(groups))
    if question.levels:
        said.append("with totals")
    said += writer.origin(question.input)
    if question.sample is not None:
        said.append(sample_in_words(None if shape else question.sample))
    return _short(said)


def counted_in_words(said: str, columns: Sequence[str], relation: Relation, *, shape: bool = False) -> str:
    """Write a question that counts rows by these columns, which stand for ``{}`` in what is said."""
    hidden = _numbered(relation) if shape else None
    names = [(hidden or {}).get(name, name) for name in columns]
    return _short([said.format(*names), *_QuestionWords(hidden).origin(relation)])


def _short(said: Sequence[str]) -> str:
    text = ", ".join(said).encode("utf-8", "replace").decode()  # a name may hold what no text file can
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _numbered(relation: Relation) -> dict[str, str]:
    """Return numbers for the columns that a question makes."""
    return {name: f"column {i}" for i, name in enumerate(dict.fromkeys(_made(relation)), 1)}


def rows_in_words(relation: Relation) -> str:
    """Say where rows come from: ``where age >= 65, of visits``."""
    return ", ".join(_QuestionWords(None).origin(relation))


def sample_in_words(share: int | None) -> str:
    """Say which part of the units a question reads; without a share, in the words of a shape."""
    part = "?" if share is None else f"{float(share_of_sample(share)) * 100:.6g}"
    return f"in a secret random sample of {part} % of the units"


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
    """Writes a question in its own words, or its shape, in which the ``hidden`` columns have other names."""

    hidden: Mapping[str, str] | None

    def released(self, name: str, meaning: str) -> str:
        """Write a column of the answer; its name is not part of the shape."""
        return meaning if self.hidden is not None or name == meaning else f"{name} = {meaning}"

    def _made(self, name: str, meaning: str) -> str:
        """Write a column that the question makes."""
        name = name if self.hidden is None else self.hidden.get(name, name)
        return meaning if name == meaning else f"{name} = {meaning}"

    def aggregate(self, aggregate: Aggregate) -> str:
        """Write an aggregate with its argument."""
        if not aggregate.arguments:
            return aggregate.word
        levels = aggregate.levels if aggregate.word in {"quantile", "quantiles"} else ()  # type: ignore[attr-defined]
        shown = (f"{float(q):g}" if self.hidden is None else "?" for q in levels)
        read = [words_of(one, self.hidden) for one in aggregate.arguments[:2]]
        more = ["..."] if len(aggregate.arguments) > 2 else []
        return f"{aggregate.word}({', '.join([*read, *more, *shown])})"

    def _measure(self, measure: Measure) -> str:
        argument = measure.argument
        return measure.function + ("" if argument is None else f"({words_of(argument, self.hidden)})")

    def origin(self, node: Relation) -> list[str]:
        """Say where the rows come from, the last step first."""
        match node:
            case Scan(table, _):
                return [f"of {table.name}"]
            case Where(inner, predicate):
                return [f"where {words_of(predicate, self.hidden)}", *self.origin(inner)]
            case Project(inner, columns):
                made = [
                    self._made(name, words_of(e, self.hidden))
                    for name, e in columns
                    if not isinstance(e, Column)
                ]
                return [*([f"with {' and '.join(made)}"] if made else []), *self.origin(inner)]
            case JoinPublic(left, table, _, _, _):
                return [*self.origin(left), f"joined with {table.name}"]
            case JoinUnits(left, right, _, _):
                return [*self.origin(left), "joined with", *self.origin(right)]
            case PerUnit(inner, by, measures):
                each = " and ".join(self._made(name, words_of(e, self.hidden)) for name, e in by) or "unit"
                numbers = " and ".join(self._made(m.name, self._measure(m)) for m in measures)
                return [f"of {numbers or 'one row'} for each {each}", *self.origin(inner)]
