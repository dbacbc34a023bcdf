"""OVER in a table's SQL question: totals, shares and ranks over the lines of the answer, after the noise."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from tacit.tables.sql._allowed import only, refuse

_FUNCTIONS: dict[type[exp.Expr], str] = {
    exp.Sum: "over_sum", exp.Avg: "over_mean", exp.Min: "over_min", exp.Max: "over_max",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class OverFunction:
    """A function over the lines of the answer: its name after the noise, its value, order and parts."""

    op: str
    parts: tuple[exp.Expr, ...]


def over_function(node: exp.Expr) -> OverFunction | None:
    """Read ``SUM(COUNT(*)) OVER (PARTITION BY ...)`` or a rank; None for a window over rows of a table."""
    if not isinstance(node, exp.Window):
        return None
    only(node, "this", "partition_by", "order", "over")
    function, keys = node.this, tuple(node.args.get("partition_by") or ())
    order = node.args.get("order")
    if isinstance(function, exp.Rank) and not function.expressions and order is not None:
        by, descending = _order(node, order)
        return OverFunction("rank_down" if descending else "rank_up", (by, *keys))
    if isinstance(function, exp.Lag | exp.Lead) and order is not None and function.this.find(exp.AggFunc):
        only(function, "this")
        by, descending = _order(node, order)
        backwards = isinstance(function, exp.Lag) != descending
        return OverFunction("line_before" if backwards else "line_after", (function.this, by, *keys))
    op = _FUNCTIONS.get(type(function))
    if op is None or not isinstance(function.this, exp.Expr) or not function.this.find(exp.AggFunc):
        return None
    only(function, "this")
    if order is None:
        return OverFunction(op, (function.this, *keys))
    by, descending = _order(node, order)
    if op != "over_sum" or descending:
        raise refuse(node, "only SUM with an ascending order can have ORDER BY in OVER", "OVER ()")
    return OverFunction("running_sum", (function.this, by, *keys))


def _order(node: exp.Expr, order: exp.Expr) -> tuple[exp.Expr, bool]:
    only(order, "expressions")
    if len(order.expressions) != 1:
        raise refuse(node, "ORDER BY in OVER takes one column", "OVER (ORDER BY COUNT(*) DESC)")
    [part] = order.expressions
    only(part, "this", "desc")
    return part.this, bool(part.args.get("desc"))
