"""The SELECT list of a table's SQL question: aggregates and keys become columns, the rest arithmetic.

OVER means totals, shares and ranks over the lines of the answer, after the noise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from tacit.algebra import Call, Column, Literal, Node, lit, names, resolve, scope, words_of
from tacit.errors import TacitError
from tacit.fixes import Choose, Do
from tacit.tables.questions import _aggregate_functions as ask
from tacit.tables.questions._aggregates import (
    AUTO,
    RARE,
    CountDistinct,
    CountRows,
    CountUnits,
    MeanOf,
    OnBounds,
    PopulationStdOf,
    PopulationVarianceOf,
    StdOf,
    SumOf,
    VarianceOf,
    cut_without_search,
)
from tacit.tables.questions._pair_aggregates import (
    CorrelationOf,
    CovarianceOf,
    DeterminationOf,
    InterceptOf,
    PairOf,
    SlopeOf,
)
from tacit.tables.questions._python_expressions import Expr
from tacit.tables.sql._allowed import only, refuse, written_as
from tacit.tables.sql._expressions import read_expression
from tacit.tables.sql._names import sql_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tacit.algebra import Relation
    from tacit.tables.questions._aggregates import Aggregate, RangeOrAuto
    from tacit.tables.sql._names import ColumnFinder


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


def _where(condition: Node, value: Node) -> Node:
    """Keep a value where a condition holds; it is missing elsewhere, so that no aggregate counts it."""
    return Call("case", (condition, value, lit(None)))


def _sum(node: Node) -> Aggregate:
    """Read a sum; a sum of ones is a count, so that it comes out as a whole number."""
    match node:
        case Literal(1):
            return CountRows()
        case Call("case", (condition, Literal(1), Literal(0 | None))):
            return CountRows(_where(condition, lit(1)))
        case _:
            return SumOf(node)


#: A new aggregate that takes one argument is a line here.
_SIMPLE: dict[type[exp.Expr], Callable[[Node], Aggregate]] = {
    exp.Sum: _sum, exp.Avg: MeanOf, exp.Stddev: StdOf, exp.StddevSamp: StdOf, exp.Variance: VarianceOf,
    exp.Min: lambda node: ask.min(Expr(node)), exp.Max: lambda node: ask.max(Expr(node)),
    exp.Median: lambda node: ask.median(Expr(node)),
    exp.Mode: lambda node: ask.most_common(Expr(node)),
    exp.VariancePop: PopulationVarianceOf, exp.StddevPop: PopulationStdOf,
    exp.CountIf: lambda node: CountRows(_where(node, lit(1))),
}  # fmt: skip
#: A new aggregate of two columns is a line here.
_PAIRS: dict[type[exp.Expr], Callable[[Node, Node], Aggregate]] = {
    exp.Corr: CorrelationOf, exp.CovarSamp: CovarianceOf,
    exp.CovarPop: lambda x, y: CovarianceOf(x, y, population=True),
    exp.RegrSlope: SlopeOf, exp.RegrIntercept: InterceptOf, exp.RegrR2: DeterminationOf,
}  # fmt: skip
#: Aggregates that the parser does not know, by name, with those that they stand for.
_OTHER_NAMES: dict[str, type[exp.Expr]] = {"var": exp.Variance, "std": exp.Stddev, "mean": exp.Avg}
_CONSTANT = (exp.Interval, exp.Literal, exp.Boolean, exp.Null, exp.DataType, exp.Var, exp.Identifier)
_QUANTILES = (exp.PercentileCont, exp.PercentileDisc, exp.Quantile)


def has_aggregate(node: exp.Expr) -> bool:
    """Return whether an item of the SELECT list has an aggregate in it."""
    if node.find(exp.AggFunc, exp.WithinGroup, exp.Window, exp.Filter):
        return True
    function_names = _OTHER_NAMES.keys() | _NAMED.keys()
    return any(str(call.this).lower() in function_names for call in node.find_all(exp.Anonymous))


class SelectList:
    """Reads expressions over groups and aggregates, and collects the aggregates in them.

    Attributes
    ----------
    aggregates
        The aggregates by the name of their column.
    keys
        The names under which the group keys are shown.
    arguments
        The arguments of the aggregates, each with the SQL that the user wrote.
    """

    def __init__(self, find: ColumnFinder, by: list[tuple[str, Node]], *, after_noise: bool = False) -> None:
        self._find = find
        self._after_noise = after_noise
        self._by = {node: name for name, node in by}
        self.keys = {name: name for name, _ in by}
        self.aggregates: dict[str, Aggregate] = {}
        self.arguments: dict[Node, exp.Expr] = {}

    def read(self, node: exp.Expr, alias: str = "") -> Node:
        """Read one item."""
        if self._after_noise and (over := over_function(node)):
            return self._over(node, over)
        node = _by_its_name(node)
        aggregate = _aggregate(node, self._find)
        if aggregate is not None:
            return Column(self._collect(node, aggregate, alias))
        if not has_aggregate(node):
            return self._grouped(read_expression(node, self._find))
        return _rebuilt(node, {id(child): self.read(child) for child in _values_in(node)})

    def _grouped(self, node: Node) -> Node:
        """Put the keys of groups in the place of the expressions that they are."""
        if node in self._by:
            return Column(self._by[node])
        if isinstance(node, Call):
            return Call(node.op, tuple(self._grouped(a) for a in node.args))
        return node

    def _over(self, node: exp.Expr, over: OverFunction) -> Node:
        """Read a function over the lines of the answer; rows of a table are refused."""
        call = Call(over.op, tuple(self.read(part) for part in over.parts))
        if names(call) - self.aggregates.keys() - self.keys.keys():
            raise refuse(node)
        return call

    def count_units(self) -> None:
        """Ask for the number of units in each group, where groups are asked for alone."""
        name = _default_name("count_units", CountUnits(), {*self.keys})
        self.aggregates[name] = CountUnits()

    def clip(self, bounds: Mapping[str, RangeOrAuto], columns: tuple[str, ...]) -> None:
        """Give aggregates of columns the bounds that come with the question, or refuse bounds of others."""
        used: set[str] = set()
        for name, aggregate in self.aggregates.items():
            if not isinstance(aggregate, OnBounds) or aggregate.bounds is not None:
                continue
            of_columns = {column: bounds[column] for column in names(aggregate.argument) if column in bounds}
            used |= of_columns.keys()
            if AUTO in of_columns.values():
                self.aggregates[name] = replace(aggregate, bounds=AUTO)
            elif of_columns and not isinstance(aggregate.argument, Column):
                raise TacitError(
                    "not-allowed",
                    f"bounds of a column are not those of {aggregate.words}",
                    why="the expression has other values than the column",
                    fix=Do(
                        "clip-in-question", expression=words_of(aggregate.argument), low="LOW", high="HIGH"
                    ),
                )
            elif of_columns:
                [own] = of_columns.values()
                self.aggregates[name] = replace(aggregate, bounds=own)
        for column in sorted(bounds.keys() - used):
            raise TacitError(
                "bad-parameter",
                f"no aggregate of the question needs bounds of {column!r}",
                fix=Choose(columns, given=column),
            )

    def make_cut_rare(self, relation: Relation) -> None:
        """Let the bounds that the plan finds reach further out, or refuse where it finds none."""
        facts = scope(relation)
        searching = {
            name: replace(aggregate, cut=RARE)
            for name, aggregate in self.aggregates.items()
            if isinstance(aggregate, OnBounds) and aggregate.resolved(facts).bounds == AUTO
        }
        if not searching:
            own = [a for a in self.aggregates.values() if isinstance(a, OnBounds)]
            columns = [column for one in own for column in sorted(names(one.argument))]
            raise cut_without_search(Do("cut-rarely", expression=(columns or ["COLUMN"])[0]))
        self.aggregates |= searching

    def check_grouped(self, nodes: list[Node], rows: Relation) -> None:
        """Refuse columns that are neither grouped nor aggregated: their values differ within a group.

        A name that the rows do not have is refused as such: it is probably mistyped.
        """
        for name in sorted(frozenset().union(*(names(n) for n in nodes))):
            if name not in self.aggregates and name not in self.keys:
                resolve(Column(name), scope(rows))
                raise TacitError(
                    "not-allowed",
                    f"the column {name!r} is neither grouped nor aggregated",
                    why="its values differ within a group",
                    fix=f"GROUP BY {sql_name(name)}, or use an aggregate of it",
                )

    def spread(self, outputs: list[tuple[str, Node]]) -> list[tuple[str, Node]]:
        """Put all columns of an aggregate that has several, such as a histogram, in the place of its name."""
        spread_nodes: list[tuple[str, Node]] = []
        for name, node in outputs:
            aggregate = self.aggregates.get(node.name) if isinstance(node, Column) else None
            columns = [name] if aggregate is None else aggregate.column_names(name)
            several = aggregate is not None and columns != [name]
            spread_nodes += [(column, Column(column)) for column in columns] if several else [(name, node)]
        return spread_nodes

    def renamed(self, node: Node) -> Node:
        """Return an expression over the keys as they are shown."""
        match node:
            case Column(name, kind):
                return Column(self.keys.get(name, name), kind)
            case Call(op, args):
                return Call(op, tuple(self.renamed(a) for a in args))
            case _:
                return node

    def _collect(self, node: exp.Expr, aggregate: Aggregate, alias: str) -> str:
        """Return the column of an aggregate; the same aggregate is asked only once."""
        if aggregate.argument is not None:
            node = node.this if isinstance(node, exp.Filter) else node
            inner = node.expression.expressions[0] if isinstance(node, exp.WithinGroup) else node
            target = inner.expressions[0] if isinstance(inner, exp.Anonymous) else inner.this
            self.arguments.setdefault(aggregate.argument, target)
        if isinstance(aggregate, PairOf):
            self.arguments.setdefault(aggregate.other, node.expression)
        for name, aggregate_known in self.aggregates.items():
            if aggregate_known == aggregate and (not alias or alias == name):
                return name
        name = alias or _default_name(_word(node, aggregate), aggregate, {*self.aggregates, *self.keys})
        if name in self.aggregates or name in self.keys:
            raise TacitError(
                "not-allowed", f"two columns are called {name!r}", fix=f"AS {sql_name(name + '_2')}"
            )
        self.aggregates[name] = aggregate
        return name


def _default_name(word: str, aggregate: Aggregate, names_taken: set[str]) -> str:
    base = f"{word}_{aggregate.argument.name}" if isinstance(aggregate.argument, Column) else word
    name, i = base, 1
    while name in names_taken:
        i += 1
        name = f"{base}_{i}"
    return name


def _values_in(node: exp.Expr) -> Iterator[exp.Expr]:
    """Return the parts of a node that have a value of their own; constants and types stay where they are."""
    for child in node.iter_expressions():
        if isinstance(node, exp.Case) and isinstance(child, exp.If):
            yield from _values_in(child)
        elif not isinstance(child, _CONSTANT):
            yield child


def _rebuilt(node: exp.Expr, parts: dict[int, Node]) -> Node:
    """Read a node whose children have been read: columns with names that no query can have stand for them."""
    stand_ins: dict[str, Node] = {}

    def stand_in(child: exp.Expr) -> exp.Expr:
        name = f"\x01{len(stand_ins)}"
        stand_ins[name] = parts[id(child)]
        return exp.Column(this=exp.Identifier(this=name, quoted=True))

    copy = written_as(node, node.copy())
    for child, original in zip(list(_values_in(copy)), list(_values_in(node)), strict=True):
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


def _by_its_name(node: exp.Expr) -> exp.Expr:
    """Return the aggregate that another name of it stands for."""
    if isinstance(node, exp.Filter):
        inner = _by_its_name(node.this)
        return node if inner is node.this else exp.Filter(this=inner, expression=node.expression.copy())
    function = _OTHER_NAMES.get(str(node.this).lower()) if isinstance(node, exp.Anonymous) else None
    if function is None or len(node.expressions) != 1:
        return node
    return written_as(node, function(this=node.expressions[0].copy()))


def _filtered(node: exp.Expr, find: ColumnFinder) -> Aggregate:
    """Read FILTER: rows that do not meet the condition have no value."""
    only(node, "this", "expression")
    inner = _aggregate(node.this, find)
    if inner is None or isinstance(inner, CountUnits):
        raise refuse(node)
    only(node.expression, "this")
    condition = read_expression(node.expression.this, find)
    kept_values = _where(condition, lit(1) if inner.argument is None else inner.argument)
    return replace(inner, argument=kept_values)  # type: ignore[type-var]


def _aggregate(node: exp.Expr, find: ColumnFinder) -> Aggregate | None:
    """Read an aggregate call; None where the node is not one."""
    kind = type(node)
    if kind is exp.Filter:
        return _filtered(node, find)
    if kind is exp.Count:
        return _count(node, find)
    if kind in _SIMPLE:
        only(node, "this")
        if isinstance(node.this, exp.Distinct) or node.this is None:
            column = node.find(exp.Column)
            column_text = "x" if column is None else column.sql(dialect="duckdb")
            raise refuse(node, "DISTINCT is allowed in COUNT only", f"COUNT(DISTINCT {column_text})")
        return _SIMPLE[kind](read_expression(node.this, find))
    if kind in _PAIRS:
        only(node, "this", "expression")
        return _PAIRS[kind](read_expression(node.this, find), read_expression(node.expression, find))
    if kind in _QUANTILES and (level := node.args.get("expression") or node.args.get("quantile")):
        only(node, "this", "expression", "quantile")
        return ask.quantile(Expr(read_expression(node.this, find)), _level(level))
    if isinstance(node, exp.WithinGroup) and isinstance(node.this, exp.PercentileCont | exp.PercentileDisc):
        return _within_group(node, find)
    if isinstance(node, exp.WithinGroup) and isinstance(node.this, exp.Mode) and not node.this.this:
        return ask.most_common(Expr(read_expression(_only_column(node), find)))
    if kind is exp.Anonymous and (make := _NAMED.get(str(node.this).lower())):
        return make(node, find)
    if isinstance(node, exp.AggFunc | exp.Filter | exp.Window):
        raise refuse(node)
    return None


def _word(node: exp.Expr, aggregate: Aggregate) -> str:
    """Return what an aggregate is called in the default name of its column."""
    says_its_name = isinstance(node, exp.Sum | exp.Min | exp.Max | exp.Median | exp.Mode)
    return type(node).__name__.lower() if says_its_name else aggregate.word


def _count(node: exp.Expr, find: ColumnFinder) -> Aggregate:
    argument = node.this
    if argument is None:
        raise refuse(node, fix="COUNT(*)")
    if isinstance(argument, exp.Distinct) and len(argument.expressions) != 1:
        joined = ", '|', ".join(e.sql(dialect="duckdb") for e in argument.expressions)
        raise refuse(node, "COUNT(DISTINCT ...) takes one column", f"COUNT(DISTINCT CONCAT({joined}))")
    only(node, "this")
    match argument:
        case exp.Star():
            return CountRows()
        case exp.Distinct(expressions=[one]) as distinct:
            only(distinct, "expressions")
            return CountDistinct(read_expression(one, find))
        case _:
            value = read_expression(argument, find)
            constant = isinstance(value, Literal) and value.value is not None
            return CountRows() if constant else CountRows(value)


def _within_group(node: exp.WithinGroup, find: ColumnFinder) -> Aggregate:
    only(node.this, "this")
    return ask.quantile(Expr(read_expression(_only_column(node), find)), _level(node.this.this))


def _only_column(node: exp.WithinGroup) -> exp.Expr:
    """Return the one column of WITHIN GROUP (ORDER BY x)."""
    order = node.expression
    only(node, "this", "expression")
    only(order, "expressions")
    if len(order.expressions) != 1 or order.expressions[0].args.get("desc"):
        raise refuse(
            node,
            "only one ascending column is allowed in WITHIN GROUP (ORDER BY ...)",
            "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x)",
        )
    return order.expressions[0].this  # type: ignore[no-any-return]


def _most_common(node: exp.Expr, find: ColumnFinder) -> Aggregate:
    """Read MAX_COMMON(x, k)."""
    match node.expressions:
        case [column, exp.Literal(this=str(k), args={"is_string": False})] if k.isdigit() and int(k):
            return ask.most_common(Expr(read_expression(column, find)), int(k))
    raise refuse(node, "MAX_COMMON takes a column and a whole number", "MAX_COMMON(x, 3)")


def _histogram(node: exp.Expr, find: ColumnFinder) -> Aggregate:
    """Read HISTOGRAM(x, 0, 10, 20) or HISTOGRAM(x, [0, 10, 20])."""
    column, *edges = node.expressions or [None]
    if len(edges) == 1 and isinstance(edges[0], exp.Array):
        edges = edges[0].expressions
    cells = [read_expression(edge, find) for edge in edges]
    numbers = [one.value for one in cells if isinstance(one, Literal) and isinstance(one.value, float)]
    if column is None or len(numbers) != len(edges) or len(edges) < 2:
        problem = "HISTOGRAM takes a column and the edges of its cells"
        column_text = "x" if column is None else column.sql(dialect="duckdb")[:60]
        raise refuse(node, problem, f"HISTOGRAM({column_text}, 0, 10, 20, 30)")
    return ask.histogram(Expr(read_expression(column, find)), numbers)


#: Aggregates that other dialects do not know, by name.
_NAMED: dict[str, Callable[[exp.Expr, ColumnFinder], Aggregate]] = {
    "most_common": _most_common, "histogram": _histogram,
}  # fmt: skip


def _level(node: exp.Expr) -> float:
    if _is_number(node):
        return float(node.this)
    column = node.parent.find(exp.Column) if node.parent else None
    column_text = "x" if column is None else column.sql(dialect="duckdb")
    if isinstance(node, exp.Array) and node.expressions and all(map(_is_number, node.expressions)):
        levels = [each.sql(dialect="duckdb") for each in node.expressions]
        problem = "a quantile has one level; write one column for each level"
        raise refuse(node, problem, ", ".join(f"QUANTILE({column_text}, {level})" for level in levels))
    problem = "the level of a quantile must be a constant between 0 and 1"
    raise refuse(node, problem, f"QUANTILE({column_text}, 0.5)")


def _is_number(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string
