"""The checks of relations and expressions that come from a document: they say what a question could say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.algebra import (
    OPERATORS,
    Call,
    Column,
    JoinPublic,
    JoinUnits,
    Literal,
    Measure,
    Node,
    PerUnit,
    Project,
    Relation,
    Scan,
    Scope,
    Where,
    as_date,
    lit,
    names_unit,
    resolve,
    rows_per_unit,
    scans_of,
    scope,
)
from tacit.core import KINDS, Fact, Table, read_bounds
from tacit.tables._column_names import check_name

if TYPE_CHECKING:
    from tacit.core import Kind, Limits
    from tacit.tables._dataset import TableDataset

_WITHIN_UNIT = frozenset({"count", "sum", "mean", "min", "max", "count_distinct"})
_MOST_LIMIT = 10**9


def insist(holds: bool) -> None:  # noqa: FBT001 - reads as a sentence
    """Refuse a document where something does not hold."""
    if not holds:
        raise ValueError("the document contains something that no question can ask")


def check_relation(relation: Relation, dataset: TableDataset) -> None:
    """Check rows against the dataset's own tables, columns and limits."""
    match relation:
        case Scan(table, rows):
            insist(_is_table(table) and table.key is None)
            insist(rows is None or not dataset.unit.is_row)  # it would act on the whole table
            check_limit(rows)
        case Where(inner, predicate):
            check_relation(inner, dataset)
            check_expression(predicate, scope(inner), "boolean")
        case Project(inner, columns):
            check_relation(inner, dataset)
            for name, node in columns:
                check_name(name)
                _check_column(node, scope(inner))
            _check_different([name for name, _ in columns])
        case JoinUnits(left, right, how, rows):
            check_relation(left, dataset)
            check_relation(right, dataset)
            insist(how in {"inner", "left"} and not dataset.unit.is_row)
            check_limit(rows)
            _check_different([*scope(left), *scope(right)])
        case JoinPublic(left, _, _, _, how):
            check_relation(left, dataset)
            _check_lookup(relation, scope(left))
            insist(how in {"inner", "left"})
        case PerUnit(inner, by, measures):
            check_relation(inner, dataset)
            insist(not dataset.unit.is_row)
            for name, node in by:
                check_name(name)
                check_expression(node, scope(inner))
            for measure in measures:
                _check_measure(measure, scope(inner))
                insist(measure.function != "sum" or _sums(inner, by, dataset.limits))
            _check_different([*(name for name, _ in by), *(measure.name for measure in measures)])
        case _:
            raise TypeError(type(relation).__name__)


def check_rows(relation: Relation, limits: Limits, *, one_row_left: bool = False) -> None:
    """Check that tables are read with a row limit that a question may have.

    Without one only where one row of each unit is left, or where none was declared.
    """
    match relation:
        case Scan(table, rows):
            insist(limits.allows(table.name, rows) or (one_row_left and rows is None))
        case JoinUnits(left, right, _, _):
            check_rows(left, limits)
            check_rows(right, limits)
        case PerUnit(inner, by, _):
            check_rows(inner, limits, one_row_left=one_row_left or names_unit(inner, by))
        case Where(inner, _) | Project(inner, _) | JoinPublic(inner, _, _, _, _):
            check_rows(inner, limits, one_row_left=one_row_left)


def _sums(inner: Relation, by: tuple[tuple[str, Node], ...], limits: Limits) -> bool:
    """Whether the fluent API can sum a unit's rows: they are limited, or one row of each unit is left."""
    if rows_per_unit(inner) is not None:
        return True
    return names_unit(inner, by) and all(limits.rows_of(scan.table.name) for scan in scans_of(inner))


def _is_table(given: object) -> bool:
    return isinstance(given, Table)


def _check_lookup(join: JoinPublic, facts: Scope) -> None:
    """Check that a looked-up table is public and that its columns exist and shadow none."""
    insist(_is_table(join.table) and join.table.key is not None)
    check_expression(join.on, facts)
    for name, source in join.columns:
        check_name(name)
        insist(source in (join.table.columns or ()) and source != join.table.key)
    _check_different([*facts, *(name for name, _ in join.columns)])


def _check_measure(measure: Measure, facts: Scope) -> None:
    check_name(measure.name)
    insist(measure.function in _WITHIN_UNIT)
    if measure.argument is not None:
        counts = measure.function in {"count", "count_distinct"}
        check_expression(measure.argument, facts, None if counts else "number")
    if measure.bounds is not None:
        low, high = read_bounds(measure.name, measure.bounds)
        insist((low, high) == measure.bounds)


def check_limit(limit: object) -> None:
    """Check a limit: none, or a whole number above 0."""
    insist(limit is None or (type(limit) is int and 0 < limit <= _MOST_LIMIT))


def _check_different(names: list[str]) -> None:
    insist(len({name.lower() for name in names}) == len(names))


def check_expression(node: Node, facts: Scope, want: Kind | None = None) -> None:
    """Check columns, constants and operators, and that their kinds fit."""
    check_parts(node, facts)
    insist(resolve(node, facts, want) == node)


def _check_column(node: Node, facts: Scope) -> None:
    """Check a column that is made; one that is passed on untouched may be of a type that is never read."""
    if isinstance(node, Column) and facts[node.name].unreadable:
        insist(node.kind == facts[node.name].kind)
    else:
        check_expression(node, facts)


def check_parts(node: Node, facts: Scope) -> None:
    """Check that columns and operators exist, and that constants are written in the one way."""
    match node:
        case Column(name, kind):
            plain: Fact = facts[name]
            insist(not plain.unreadable and kind in {None, *KINDS} and plain.kind in {None, kind})
            check_name(name)
        case Literal(value, "date"):
            insist(as_date(str(value)) == node)
        case Literal(value, _):
            insist(lit(value) == node)
        case Call(op, args):
            insist(op in OPERATORS)
            for one in args:
                check_parts(one, facts)
        case _:
            raise TypeError(type(node).__name__)
