"""Row-wise expressions in a table's SQL question, read into Tacit's own nodes by a closed list."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias, cast

from sqlglot import exp

from tacit.algebra import Call, Column, Literal, Node, as_date, lit
from tacit.fixes import Choose
from tacit.tables._listed_values import bucket_node
from tacit.tables.sql._allowed import only, refuse
from tacit.tables.sql._date_functions import DATE_READERS, date_part, from_format, moved
from tacit.tables.sql._text_functions import TEXT_READERS

if TYPE_CHECKING:
    from tacit.tables.sql._names import ColumnFinder, PartReader

_CASTS: dict[str, frozenset[str]] = {
    "to_number": frozenset({"DOUBLE", "FLOAT", "DECIMAL"}),
    "to_whole": frozenset({
        "INT", "BIGINT", "SMALLINT", "TINYINT", "UINT", "UBIGINT", "USMALLINT", "UTINYINT", "INT128",
    }),
    "to_text": frozenset({"VARCHAR", "TEXT", "CHAR", "NVARCHAR"}),
    "to_boolean": frozenset({"BOOLEAN"}),
    "to_date": frozenset({"DATE", "TIMESTAMP", "DATETIME", "TIMESTAMPNTZ"}),
}  # fmt: skip


def read_expression(node: exp.Expr, find: ColumnFinder) -> Node:
    """Read one row-wise expression; refuse what no reader knows."""
    reader = _READERS.get(type(node))
    if reader is None:
        raise refuse(node)
    return reader(node, find)


_NodeReader: TypeAlias = Callable[[exp.Expr, "ColumnFinder"], Node]


def _unary(op: str) -> _NodeReader:
    def read(node: exp.Expr, find: ColumnFinder) -> Node:
        only(node, "this")
        return Call(op, (read_expression(node.this, find),))

    return read


def _binary(op: str) -> _NodeReader:
    def read(node: exp.Expr, find: ColumnFinder) -> Node:
        only(node, "this", "expression")
        return Call(op, (read_expression(node.this, find), read_expression(node.expression, find)))

    return read


def _chain(op: str) -> _NodeReader:
    """Read AND or OR; a chain of them becomes one call."""

    def read(node: exp.Expr, find: ColumnFinder) -> Node:
        only(node, "this", "expression")
        first, last = read_expression(node.this, find), read_expression(node.expression, find)
        if isinstance(first, Call) and first.op == op:
            return Call(op, (*first.args, last))
        return Call(op, (first, last))

    return read


def _listed(op: str) -> _NodeReader:
    def read(node: exp.Expr, find: ColumnFinder) -> Node:
        only(node, "this", "expressions")
        return _as_clip(Call(op, tuple(read_expression(e, find) for e in (node.this, *node.expressions))))

    return read


def _as_clip(node: Call) -> Node:
    """Read LEAST(GREATEST(x, low), high) and its mirror image as one clip, which has bounds."""
    match node:
        case Call("least", (Call("greatest", (x, Literal(float() as low))), Literal(float() as high))) if (
            low <= high
        ):
            return Call("clip", (x, lit(low), lit(high)))
        case Call("greatest", (Call("least", (x, Literal(float() as high))), Literal(float() as low))) if (
            low <= high
        ):
            return Call("clip", (x, lit(low), lit(high)))
        case _:
            return node


def _column(node: exp.Expr, find: ColumnFinder) -> Node:
    only(node, "this", "table", "db")
    if isinstance(node.this, exp.Star):
        raise refuse(node.this)
    return Column(find(cast("exp.Column", node).table, node.name))


def _literal(node: exp.Expr, _: ColumnFinder) -> Node:
    if node.is_string:
        return lit(str(node.this))
    try:
        return lit(float(str(node.this)))
    except ValueError:
        raise refuse(node) from None


def _boolean(node: exp.Expr, _: ColumnFinder) -> Node:
    return lit(bool(node.this))


def _null(_: exp.Expr, __: ColumnFinder) -> Node:
    return lit(None)


def _brackets(node: exp.Expr, find: ColumnFinder) -> Node:
    only(node, "this")
    return read_expression(node.this, find)


def _negated(node: exp.Expr, find: ColumnFinder) -> Node:
    only(node, "this")
    inner = read_expression(node.this, find)
    if isinstance(inner, Literal) and isinstance(inner.value, float):
        return lit(-inner.value)
    return Call("neg", (inner,))


def _between(node: exp.Expr, find: ColumnFinder) -> Node:
    only(node, "this", "low", "high")
    value, low, high = (read_expression(node.args[part], find) for part in ("this", "low", "high"))
    return Call("and", (Call("ge", (value, low)), Call("le", (value, high))))


def _in(node: exp.Expr, find: ColumnFinder) -> Node:
    if not node.expressions:
        raise refuse(
            node, "IN takes a list of constants; only WHERE can have IN with a subquery", "IN ('A', 'B')"
        )
    only(node, "this", "expressions")
    listed = tuple(read_expression(e, find) for e in node.expressions)
    if not all(isinstance(e, Literal) for e in listed):
        raise refuse(node, "IN takes a list of constants", "IN ('A', 'B')")
    return Call("in", (read_expression(node.this, find), *listed))


def _is(node: exp.Expr, find: ColumnFinder) -> Node:
    match node.expression:
        case exp.Null():
            only(node, "this", "expression")
            return Call("is_null", (read_expression(node.this, find),))
        case exp.Boolean() as truth:
            only(node, "this", "expression")
            value = read_expression(node.this, find)
            return Call("coalesce", (Call("eq", (value, lit(bool(truth.this)))), lit(value=False)))
        case _:
            raise refuse(node)


def _case(node: exp.Expr, find: ColumnFinder) -> Node:
    only(node, "this", "ifs", "default")
    subject, default = node.this, node.args.get("default")
    parts: list[Node] = []
    for branch in node.args["ifs"]:
        only(branch, "this", "true")
        condition = read_expression(branch.this, find)
        if subject is not None:
            condition = Call("eq", (read_expression(subject, find), condition))
        parts += [condition, read_expression(branch.args["true"], find)]
    return Call("case", (*parts, read_expression(default, find) if default is not None else lit(None)))


def _if(node: exp.Expr, find: ColumnFinder) -> Node:
    only(node, "this", "true", "false")
    condition, value = read_expression(node.this, find), read_expression(node.args["true"], find)
    otherwise = node.args.get("false")
    return Call("case", (condition, value, read_expression(otherwise, find) if otherwise else lit(None)))


def _nullif(node: exp.Expr, find: ColumnFinder) -> Node:
    only(node, "this", "expression")
    value = read_expression(node.this, find)
    return Call("case", (Call("eq", (value, read_expression(node.expression, find))), lit(None), value))


def _cast(node: exp.Expr, find: ColumnFinder) -> Node:
    only(node, "this", "to", "_type")
    target = node.args["to"]
    name = str(getattr(target.this, "value", target.this)).upper()
    op = next((op for op, kinds in _CASTS.items() if name in kinds), None)
    if op is None or target.args.get("nested"):
        allowed = Choose(("DOUBLE", "VARCHAR", "BOOLEAN", "DATE"), given=name[:30])
        raise refuse(node, f"a cast to {name[:30]} is not allowed", allowed)
    inner = read_expression(node.this, find)
    if op == "to_date" and isinstance(inner, Literal) and isinstance(inner.value, str):
        moment = as_date(inner.value)
        return as_date(inner.value[:10]) if name == "DATE" else moment
    made = Call(op, (inner,))
    return Call("date_trunc", (lit("day"), made)) if name == "DATE" else made  # a day has no time of day


def _power(node: exp.Expr, find: ColumnFinder) -> Node:
    only(node, "this", "expression")
    value, exponent = read_expression(node.this, find), read_expression(node.expression, find)
    return Call("mul", (value, value)) if exponent == lit(2) else Call("power", (value, exponent))


def _log(node: exp.Expr, find: ColumnFinder) -> Node:
    """Read LOG, which is the logarithm to the base 10, LOG2, LOG10 and LOG(base, x)."""
    only(node, "this", "expression")
    if node.args.get("expression") is None:
        return Call("log10", (read_expression(node.this, find),))
    base, value = read_expression(node.this, find), read_expression(node.expression, find)
    known = {2.0: "log2", 10.0: "log10"}.get(base.value if isinstance(base, Literal) else None)  # type: ignore[arg-type]
    return Call(known, (value,)) if known else Call("div", (Call("ln", (value,)), Call("ln", (base,))))


def _whole_quotient(node: exp.Expr, find: ColumnFinder) -> Node:
    only(node, "this", "expression")
    parts = (read_expression(node.this, find), read_expression(node.expression, find))
    return Call("trunc", (Call("div", parts),))


def _truncated(node: exp.Expr, find: ColumnFinder) -> Node:
    only(node, "this")
    return Call("trunc", (read_expression(node.this, find),))


def _same_or_both_missing(negated: bool) -> _NodeReader:  # noqa: FBT001 - one of two readers
    """Read IS [NOT] DISTINCT FROM: an equality that is never NULL."""

    def read(node: exp.Expr, find: ColumnFinder) -> Node:
        only(node, "this", "expression")
        a, b = read_expression(node.this, find), read_expression(node.expression, find)
        if isinstance(b, Literal) and b.value is None:
            same: Node = Call("is_null", (a,))
        else:
            missing = Call("and", (Call("is_null", (a,)), Call("is_null", (b,))))
            same = Call("or", (Call("coalesce", (Call("eq", (a, b)), lit(value=False))), missing))
        return Call("not", (same,)) if negated else same

    return read


def _named(node: exp.Expr, find: ColumnFinder) -> Node:
    """Read the functions that the parser does not know by name."""
    name, given = str(node.this).lower(), node.expressions
    if name in {"date_part", "datepart"} and len(given) == 2 and given[0].is_string:
        return date_part(node, given[0].name, read_expression(given[1], find))
    if name == "try_strptime" and len(given) == 2 and given[1].is_string:
        return from_format(node, read_expression(given[0], find), given[1].name)
    if name == "isnull" and len(given) == 1:
        return Call("is_null", (read_expression(given[0], find),))
    raise refuse(node)


def _round(node: exp.Expr, find: ColumnFinder) -> Node:
    only(node, "this", "decimals")
    digits = node.args.get("decimals")
    value = read_expression(node.this, find)
    return Call("round", (value, read_expression(digits, find) if digits else lit(0)))


def _shifted(op: str) -> _NodeReader:
    """Read a sum or a difference; with an interval it moves a date."""
    plain, sign = _binary(op), 1 if op == "add" else -1

    def read(node: exp.Expr, find: ColumnFinder) -> Node:
        if not isinstance(node.expression, exp.Interval):
            return plain(node, find)
        only(node, "this", "expression")
        return moved(read_expression(node.this, find), node.expression, sign)

    return read


def _in_parts(reader: Callable[[exp.Expr, PartReader], Node]) -> _NodeReader:
    return lambda node, find: reader(node, lambda part: read_expression(part, find))


def _width_bucket(node: exp.Expr, find: ColumnFinder) -> Node:
    only(node, "this", "min_value", "max_value", "num_buckets")
    read = [read_expression(node.args[part], find) for part in ("min_value", "max_value", "num_buckets")]
    match [one.value if isinstance(one, Literal) else None for one in read]:
        case [float(low), float(high), float(buckets)] if buckets.is_integer() and buckets >= 1:
            return bucket_node(read_expression(node.this, find), low, high, int(buckets))
    raise refuse(node, "WIDTH_BUCKET takes two numbers and a whole number", "WIDTH_BUCKET(x, 0, 100, 10)")


_READERS: dict[type[exp.Expr], _NodeReader] = {
    # columns and constants
    exp.Column: _column, exp.Literal: _literal, exp.Boolean: _boolean, exp.Null: _null, exp.Paren: _brackets,
    # numbers
    exp.Add: _shifted("add"), exp.Sub: _shifted("sub"), exp.Mul: _binary("mul"), exp.Div: _binary("div"),
    exp.Mod: _binary("mod"), exp.Neg: _negated, exp.Abs: _unary("abs"), exp.Sqrt: _unary("sqrt"),
    exp.Ln: _unary("ln"), exp.Exp: _unary("exp"), exp.Sign: _unary("sign"), exp.Floor: _unary("floor"),
    exp.Ceil: _unary("ceil"), exp.Round: _round, exp.Pow: _power,
    exp.Log: _log, exp.Trunc: _truncated, exp.IntDiv: _whole_quotient,
    exp.Least: _listed("least"), exp.Greatest: _listed("greatest"), exp.WidthBucket: _width_bucket,
    # conditions
    exp.EQ: _binary("eq"), exp.NEQ: _binary("ne"), exp.LT: _binary("lt"), exp.LTE: _binary("le"),
    exp.GT: _binary("gt"), exp.GTE: _binary("ge"), exp.And: _chain("and"), exp.Or: _chain("or"),
    exp.Not: _unary("not"), exp.Between: _between, exp.In: _in, exp.Is: _is, exp.Case: _case, exp.If: _if,
    exp.Nullif: _nullif, exp.Coalesce: _listed("coalesce"),
    exp.NullSafeEQ: _same_or_both_missing(negated=False),
    exp.NullSafeNEQ: _same_or_both_missing(negated=True),
    # conversions
    exp.Cast: _cast, exp.TryCast: _cast,
    # text
    exp.DPipe: _binary("concat"),
    exp.StartsWith: _binary("starts_with"), exp.EndsWith: _binary("ends_with"),
    exp.Contains: _binary("contains"), exp.Right: _binary("right"),
    exp.Lower: _unary("lower"), exp.Upper: _unary("upper"), exp.Length: _unary("length"),
    **{kind: _in_parts(reader) for kind, reader in TEXT_READERS.items()},
    # dates
    exp.Year: _unary("year"), exp.Month: _unary("month"), exp.Day: _unary("day"),
    exp.Quarter: _unary("quarter"), exp.Hour: _unary("hour"), exp.Minute: _unary("minute"),
    exp.Second: _unary("second"), exp.DayOfWeek: _unary("weekday"), exp.DayOfWeekIso: _unary("isodow"),
    exp.Week: _unary("week"), exp.WeekOfYear: _unary("week"), exp.DayOfYear: _unary("dayofyear"),
    exp.Dayname: _unary("dayname"), exp.Monthname: _unary("monthname"),
    **{kind: _in_parts(reader) for kind, reader in DATE_READERS.items()},
    # by name
    exp.Anonymous: _named,
}  # fmt: skip
