"""A table question in words, for the record of who asked what. All of it is public."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.tables._algebra import JoinPublic, JoinUnits, PerUnit, Project, Scan, Where
from tacit.tables._expressions import Column, words_of

if TYPE_CHECKING:
    from tacit.tables._aggregates import Aggregate
    from tacit.tables._algebra import Measure, Relation, TableQuestion
    from tacit.tables._expressions import Node

__all__ = ["in_words"]

_LONGEST = 400


def in_words(question: TableQuestion) -> str:
    """Write columns, groups and filter in a line: ``n = count, by ward, where age >= 65, of visits``."""
    said = [_named(name, _aggregate(a)) for name, a in question.aggregates]
    if question.by:
        said.append("by " + " and ".join(_column(name, node) for name, node in question.by))
    said += _origin(question.input)
    text = ", ".join(said).encode("utf-8", "replace").decode()  # a name may hold what no text file can
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _named(name: str, meaning: str) -> str:
    return meaning if name == meaning else f"{name} = {meaning}"


def _column(name: str, node: Node) -> str:
    return name if node == Column(name) or words_of(node) == name else f"{name} = {words_of(node)}"


def _aggregate(aggregate: Aggregate) -> str:
    if aggregate.argument is None:
        return aggregate.word
    levels = aggregate.levels if aggregate.word in {"quantile", "quantiles"} else ()  # type: ignore[attr-defined]
    return (
        f"{aggregate.word}({', '.join([words_of(aggregate.argument), *(f'{float(q):g}' for q in levels)])})"
    )


def _measure(measure: Measure) -> str:
    return measure.function + ("" if measure.argument is None else f"({words_of(measure.argument)})")


def _origin(node: Relation) -> list[str]:
    """Say where the rows come from, the last step first."""
    match node:
        case Scan(table, _):
            return [f"of {table.name}"]
        case Where(inner, predicate):
            return [f"where {words_of(predicate)}", *_origin(inner)]
        case Project(inner, columns):
            made = [_column(name, e) for name, e in columns if not isinstance(e, Column)]
            return [*([f"with {' and '.join(made)}"] if made else []), *_origin(inner)]
        case JoinPublic(left, table, _, _, _):
            return [*_origin(left), f"joined with {table.name}"]
        case JoinUnits(left, right, _, _):
            return [*_origin(left), "joined with", *_origin(right)]
        case PerUnit(inner, by, measures):
            each = " and ".join(_column(name, e) for name, e in by) or "unit"
            numbers = " and ".join(_named(m.name, _measure(m)) for m in measures)
            return [f"of {numbers or 'one row'} for each {each}", *_origin(inner)]
