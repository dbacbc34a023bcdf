"""ROLLUP, CUBE and GROUPING SETS in a table's SQL question: the columns, and the levels that they name."""

from __future__ import annotations

from itertools import combinations, product
from typing import TYPE_CHECKING

from sqlglot import exp

from tacit.tables._levels import MOST_LEVELS
from tacit.tables.sql._allowed import only, refuse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.tables._levels import Levels

_LEVELS = (exp.Rollup, exp.Cube, exp.GroupingSets)


def has_levels(clause: exp.Expr) -> bool:
    """Return whether a GROUP BY names several levels."""
    return any(isinstance(item, _LEVELS) for item in clause.expressions)


def group_columns(clause: exp.Expr) -> list[exp.Expr]:
    """Return every column of a GROUP BY once, in the order of the text."""
    every = clause.expressions
    if has_levels(clause):
        columns = [column for one in _sets(clause) for column in one]
        every = sorted(columns, key=lambda column: _place(clause, column))
    named: dict[str, exp.Expr] = {}
    for column in every:
        named.setdefault(_text(column), column)
    return list(named.values())


def levels_of(select: exp.Expr) -> Levels:
    """Read the levels of GROUP BY, as places of its columns; none where it is a plain list."""
    clause = select.args.get("group")
    if clause is None or not has_levels(clause):
        return ()
    names = [_text(column) for column in group_columns(clause)]
    made = [tuple(sorted({names.index(_text(column)) for column in one})) for one in _sets(clause)]
    levels = tuple(sorted(dict.fromkeys(made), key=lambda level: (-len(level), level)))
    return () if levels == (tuple(range(len(names))),) else levels


def _sets(clause: exp.Expr) -> list[list[exp.Expr]]:
    """Return the grouping sets: every combination of one set from each item."""
    choices = [_sets_of(item) for item in clause.expressions]
    found: list[list[exp.Expr]] = []
    for chosen in product(*choices):
        found.append([column for one in chosen for column in one])
        if len(found) > MOST_LEVELS:
            raise refuse(clause, f"GROUP BY names more than {MOST_LEVELS} levels", "GROUP BY ROLLUP (a, b)")
    return found


def _sets_of(item: exp.Expr) -> list[list[exp.Expr]]:
    match item:
        case exp.Rollup():
            only(item, "expressions")
            parts = [_columns(one) for one in item.expressions]
            return [_joined(parts[:n]) for n in range(len(parts), -1, -1)]
        case exp.Cube():
            only(item, "expressions")
            parts = [_columns(one) for one in item.expressions]
            if len(parts) > 6:
                raise refuse(item, "CUBE takes at most 6 columns", "ROLLUP (a, b)")
            return [_joined(some) for n in range(len(parts), -1, -1) for some in combinations(parts, n)]
        case exp.GroupingSets():
            only(item, "expressions")
            return [one for inner in item.expressions for one in _inner_sets(inner)]
        case _:
            return [[item]]


def _joined(parts: Sequence[list[exp.Expr]]) -> list[exp.Expr]:
    return [column for part in parts for column in part]


def _inner_sets(inner: exp.Expr) -> list[list[exp.Expr]]:
    return _sets_of(inner) if isinstance(inner, _LEVELS) else [_columns(inner)]


def _columns(node: exp.Expr) -> list[exp.Expr]:
    """Return the columns of one element: one, or several in brackets."""
    if isinstance(node, exp.Tuple):
        return list(node.expressions)
    return [node.this if isinstance(node, exp.Paren) else node]


def _text(node: exp.Expr) -> str:
    return node.sql(dialect="duckdb").lower()


def _place(clause: exp.Expr, column: exp.Expr) -> int:
    """Return where a column first stands in the clause."""
    return next(i for i, node in enumerate(clause.walk(bfs=False)) if node is column)
