"""A question in words, for the record of who asked what. It is part of the plan, so all of it is public."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.tables._expressions import Column, words_of
from tacit.tables.algebra import JoinPublic, JoinUnits, PerUnit, Project, Scan, Where

if TYPE_CHECKING:
    from tacit.tables._expressions import Node
    from tacit.tables.algebra import Aggregate, Measure, Question, Relation

__all__ = ["in_words"]

_LONGEST = 400


def in_words(question: Question) -> str:
    """Write columns, groups and filter in a line: ``n = count, by ward, where age >= 65, of visits``."""
    told = [_named(a.name, _aggregate(a)) for a in question.aggregates]
    if question.by:
        told.append("by " + " and ".join(_column(name, node) for name, node in question.by))
    told += _origin(question.input)
    text = ", ".join(told).encode("utf-8", "replace").decode()  # a name may hold what no text file can
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _named(name: str, meaning: str) -> str:
    return meaning if name == meaning else f"{name} = {meaning}"


def _column(name: str, node: Node) -> str:
    return name if node == Column(name) or words_of(node) == name else f"{name} = {words_of(node)}"


def _aggregate(aggregate: Aggregate | Measure) -> str:
    levels = [f"{level:g}" for level in getattr(aggregate, "levels", ())]
    arguments = [] if aggregate.argument is None else [words_of(aggregate.argument)]
    return aggregate.function + (f"({', '.join([*arguments, *levels])})" if arguments else "")


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
            numbers = " and ".join(_named(m.name, _aggregate(m)) for m in measures)
            return [f"of {numbers or 'one row'} for each {each}", *_origin(inner)]
