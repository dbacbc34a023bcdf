"""Aggregates in a table's SQL question: a new one is a line in `_SIMPLE`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from tacit.tables import _aggregate_functions as ask
from tacit.tables._expressions import Literal
from tacit.tables._python_expressions import Expr
from tacit.tables.sql._allowed import only, refuse
from tacit.tables.sql._expressions import read_expression

if TYPE_CHECKING:
    from collections.abc import Callable

    from tacit.tables._aggregates import Aggregate
    from tacit.tables.sql._names import ColumnFinder

__all__ = ["read_aggregate", "word_of"]

_SIMPLE: dict[type[exp.Expr], Callable[[Expr], Aggregate]] = {
    exp.Sum: ask.sum, exp.Avg: ask.mean, exp.Min: ask.min, exp.Max: ask.max, exp.Median: ask.median,
    exp.Stddev: ask.std, exp.StddevSamp: ask.std, exp.Variance: ask.variance,
}  # fmt: skip
_QUANTILES = (exp.PercentileCont, exp.PercentileDisc, exp.Quantile)


def read_aggregate(node: exp.Expr, find: ColumnFinder) -> Aggregate | None:
    """Read an aggregate call; None where the node is not one."""
    kind = type(node)
    if kind is exp.Count and not _counts_several(node):
        return _count(node, find)
    if kind in _SIMPLE:
        only(node, "this")
        if isinstance(node.this, exp.Distinct) or node.this is None:
            raise refuse(node, "DISTINCT is allowed in COUNT only", "COUNT(DISTINCT x)")
        return _SIMPLE[kind](Expr(read_expression(node.this, find)))
    if kind in _QUANTILES and (level := node.args.get("expression") or node.args.get("quantile")):
        only(node, "this", "expression", "quantile")
        return ask.quantile(Expr(read_expression(node.this, find)), _level(level))
    if isinstance(node, exp.WithinGroup) and isinstance(node.this, exp.PercentileCont | exp.PercentileDisc):
        return _within_group(node, find)
    if isinstance(node, exp.AggFunc | exp.Filter | exp.Window):
        raise refuse(node)
    return None


def word_of(node: exp.Expr, asked: Aggregate) -> str:
    """Return what an aggregate is called in the default name of its column."""
    named = isinstance(node, exp.Min | exp.Max | exp.Median)
    return type(node).__name__.lower() if named else asked.word


def _counts_several(node: exp.Expr) -> bool:
    """Return whether this is COUNT(), or COUNT(DISTINCT a, b)."""
    return node.this is None or (isinstance(node.this, exp.Distinct) and len(node.this.expressions) != 1)


def _count(node: exp.Expr, find: ColumnFinder) -> Aggregate:
    only(node, "this")
    match node.this:
        case exp.Star():
            return ask.count()
        case exp.Distinct(expressions=[one]) as distinct:
            only(distinct, "expressions")
            return ask.count_distinct(Expr(read_expression(one, find)))
        case this:
            counted = read_expression(this, find)
            constant = isinstance(counted, Literal) and counted.value is not None
            return ask.count() if constant else ask.count(Expr(counted))


def _within_group(node: exp.WithinGroup, find: ColumnFinder) -> Aggregate:
    order = node.expression
    only(node, "this", "expression")
    only(node.this, "this")
    only(order, "expressions")
    if len(order.expressions) != 1 or order.expressions[0].args.get("desc"):
        raise refuse(
            node,
            "only one ascending column is allowed in WITHIN GROUP (ORDER BY ...)",
            "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x)",
        )
    return ask.quantile(Expr(read_expression(order.expressions[0].this, find)), _level(node.this.this))


def _level(node: exp.Expr) -> float:
    if isinstance(node, exp.Literal) and not node.is_string:
        return float(node.this)
    raise refuse(node, "the level of a quantile must be a constant between 0 and 1", "QUANTILE(x, 0.5)")
