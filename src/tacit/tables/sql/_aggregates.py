"""Read the aggregates of a SELECT list: each becomes one of the question, the rest arithmetic on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from tacit.errors import TacitError
from tacit.tables import _aggregate_functions as ask
from tacit.tables._expressions import Call, Column, Literal, Node, names
from tacit.tables._fluent import Expr
from tacit.tables.sql._expressions import Names, only, read_expression, refuse

if TYPE_CHECKING:
    from collections.abc import Callable

    from tacit.tables._aggregates import Aggregate

__all__ = ["Reader"]


class Reader:
    """Reads expressions over groups and aggregates; collects the aggregates it meets."""

    def __init__(self, names: Names, by: list[tuple[str, Node]]) -> None:
        self._names = names
        self._by = {node: name for name, node in by}
        self.keys = {name: name for name, _ in by}
        self.asked: dict[str, Aggregate] = {}

    def insist(self, nodes: list[Node]) -> None:
        """Refuse columns that are neither grouped nor aggregated: their values differ within a group."""
        for name in sorted(frozenset().union(*(names(n) for n in nodes))):
            if name not in self.asked and name not in self.keys:
                raise TacitError(
                    "not-allowed",
                    f"the column {name!r} is neither grouped nor aggregated",
                    why="its values differ within a group",
                    fix=f"GROUP BY {name}, or an aggregate of it",
                )

    def rename(self, key: str, name: str) -> None:
        """Show a group's key under another name."""
        self.keys[key] = name

    def renamed(self, node: Node) -> Node:
        """Return an expression over the keys as they are shown."""
        match node:
            case Column(name, kind):
                return Column(self.keys.get(name, name), kind)
            case Call(op, args):
                return Call(op, tuple(self.renamed(a) for a in args))
            case _:
                return node

    def read(self, node: exp.Expr, alias: str = "") -> Node:
        """Read an output.

        Aggregates and group keys become columns of the answer, the rest is arithmetic on them.
        """
        found = _aggregate(node, self._names)
        if found is not None:
            named = isinstance(node, exp.Min | exp.Max | exp.Median)
            word = type(node).__name__.lower() if named else found.word
            return Column(self._place(found, alias, word))
        if not node.find(exp.AggFunc, exp.Anonymous, exp.Filter, exp.WithinGroup, exp.Window):
            plain = read_expression(node, self._names)
            if plain in self._by:
                return Column(self._by[plain])
            return plain
        parts = {
            id(child): self.read(child)
            for child in node.iter_expressions()
            if not isinstance(child, exp.Interval)
        }
        return _rebuilt(node, parts)

    def _place(self, asked: Aggregate, alias: str, word: str) -> str:
        for name, known in self.asked.items():
            if known == asked and (not alias or alias == name):
                return name
        name = alias or _default_name(word, asked, {*self.asked, *self.keys})
        if name in self.asked or name in self.keys:
            raise TacitError("not-allowed", f"two columns are called {name!r}", fix=f"AS {name}_2")
        self.asked[name] = asked
        return name


def _default_name(word: str, asked: Aggregate, taken: set[str]) -> str:
    base = word
    if isinstance(asked.argument, Column):
        base = f"{base}_{asked.argument.name}"
    name, i = base, 1
    while name in taken:
        i += 1
        name = f"{base}_{i}"
    return name


def _rebuilt(node: exp.Expr, parts: dict[int, Node]) -> Node:
    """Read a node whose children have been read: they stand in as columns with names no query can write."""
    stand_ins: dict[str, Node] = {}

    def stand_in(child: exp.Expr) -> exp.Expr:
        name = f"\x01{len(stand_ins)}"
        stand_ins[name] = parts[id(child)]
        return exp.Column(this=exp.Identifier(this=name, quoted=True))

    copy = node.copy()
    for child, original in zip(list(copy.iter_expressions()), list(node.iter_expressions()), strict=True):
        if id(original) in parts:
            child.replace(stand_in(original))
    return _substituted(read_expression(copy, lambda _, name: name), stand_ins)


def _substituted(node: Node, stand_ins: dict[str, Node]) -> Node:
    match node:
        case Column(name, _) if name in stand_ins:
            return stand_ins[name]
        case Call(op, args):
            return Call(op, tuple(_substituted(a, stand_ins) for a in args))
        case _:
            return node


def _aggregate(node: exp.Expr, names: Names) -> Aggregate | None:
    """Read an aggregate call, or return None."""

    def column(part: exp.Expr) -> Expr:
        return Expr(read_expression(part, names))

    match node:
        case exp.Count(this=exp.Star()):
            only(node, "this")
            return ask.count()
        case exp.Count(this=exp.Distinct(expressions=[one])):
            only(node, "this")
            only(node.this, "expressions")
            return ask.count_distinct(column(one))
        case exp.Count(this=this) if this is not None and not isinstance(this, exp.Distinct):
            only(node, "this")
            inner = column(this)
            return (
                ask.count()
                if not isinstance(inner.node, Column) and _constant(inner.node)
                else ask.count(inner)
            )
        case exp.Sum():
            return _simple(node, ask.sum, column)
        case exp.Avg():
            return _simple(node, ask.mean, column)
        case exp.Min():
            return _simple(node, ask.min, column)
        case exp.Max():
            return _simple(node, ask.max, column)
        case exp.Median():
            return _simple(node, ask.median, column)
        case exp.Stddev() | exp.StddevSamp():
            return _simple(node, ask.std, column)
        case exp.Variance():
            return _simple(node, ask.variance, column)
        case exp.PercentileCont() | exp.Quantile() | exp.PercentileDisc() if _has_level(node):
            only(node, "this", "expression", "quantile")
            return ask.quantile(
                column(node.this), _level(node.args.get("expression") or node.args["quantile"])
            )
        case exp.WithinGroup(
            this=exp.PercentileCont() | exp.PercentileDisc() as inner, expression=exp.Order() as order
        ):
            only(node, "this", "expression")
            only(inner, "this")
            only(order, "expressions")
            if len(order.expressions) != 1 or order.expressions[0].args.get("desc"):
                raise refuse(node, "WITHIN GROUP (ORDER BY column) is allowed")
            return ask.quantile(column(order.expressions[0].this), _level(inner.this))
        case exp.AggFunc() | exp.Filter() | exp.Window():
            raise refuse(node)
        case _:
            return None


def _has_level(node: exp.Expr) -> bool:
    """Whether this is QUANTILE(x, level) or a like form; approximate relatives of it are not meant."""
    level = node.args.get("expression") or node.args.get("quantile")
    return type(node) in (exp.PercentileCont, exp.Quantile, exp.PercentileDisc) and None not in (
        node.this,
        level,
    )


def _constant(node: Node) -> bool:
    return isinstance(node, Literal) and node.value is not None


def _simple(
    node: exp.Expr, make: Callable[[Expr], Aggregate], column: Callable[[exp.Expr], Expr]
) -> Aggregate:
    only(node, "this")
    if isinstance(node.this, exp.Distinct) or node.this is None:
        raise refuse(node, "DISTINCT is allowed in COUNT only")
    return make(column(node.this))


def _level(node: exp.Expr) -> float:
    if isinstance(node, exp.Literal) and not node.is_string:
        return float(node.this)
    raise refuse(node, "the level of a quantile is a constant between 0 and 1")
