"""Read SQL expressions into Tacit's own nodes, by a closed list.

What is not on it is refused, and the refusal teaches.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from tacit.errors import TacitError
from tacit.tables._expressions import Call, Column, Literal, Node, as_date, lit

__all__ = ["Names", "only", "read_expression", "refuse"]

#: Turns a column as written (table alias or "", name) into the column of the relation.
Names = Callable[[str, str], str]

_BINARY: dict[type[exp.Expr], str] = {
    exp.Add: "add", exp.Sub: "sub", exp.Mul: "mul", exp.Div: "div", exp.Mod: "mod",
    exp.EQ: "eq", exp.NEQ: "ne", exp.LT: "lt", exp.LTE: "le", exp.GT: "gt", exp.GTE: "ge",
    exp.And: "and", exp.Or: "or", exp.DPipe: "concat",
}  # fmt: skip
_UNARY: dict[type[exp.Expr], str] = {
    exp.Neg: "neg", exp.Abs: "abs", exp.Not: "not", exp.Sqrt: "sqrt", exp.Ln: "ln", exp.Exp: "exp",
    exp.Lower: "lower", exp.Upper: "upper", exp.Trim: "trim", exp.Length: "length",
    exp.Year: "year", exp.Month: "month", exp.Day: "day", exp.Quarter: "quarter", exp.Hour: "hour",
    exp.Minute: "minute", exp.Sign: "sign", exp.DayOfWeek: "weekday",
}  # fmt: skip
_LISTS: dict[type[exp.Expr], str] = {exp.Coalesce: "coalesce", exp.Least: "least", exp.Greatest: "greatest"}
_FLAGS = {
    "safe", "typed", "big_int", "nulls_first", "coerce", "ignore_nulls", "date_part_boundary", "dialect",
    "_type", "is_left",
    "is_null", "decimals_", "regexp", "action", "requires_string", "ignore_nulls_",
}  # fmt: skip
_CASTS = {
    "to_number": {
        "INT",
        "BIGINT",
        "SMALLINT",
        "TINYINT",
        "DOUBLE",
        "FLOAT",
        "DECIMAL",
        "UINT",
        "UBIGINT",
        "INT128",
    },
    "to_text": {"VARCHAR", "TEXT", "CHAR", "NVARCHAR"},
    "to_boolean": {"BOOLEAN"},
    "to_date": {"DATE", "TIMESTAMP", "DATETIME", "TIMESTAMPNTZ"},
}
_INSTEAD: dict[str, str] = {
    "Window": "per-unit subqueries: SELECT patient_id, MAX(x) AS x FROM t GROUP BY patient_id",
    "Rand": "nothing: answers are noised once, by Tacit",
    "Subquery": "a WITH clause, or a JOIN on the unit",
    "Exists": "a JOIN on the unit",
    "RegexpLike": "LIKE 'prefix%'",
    "RegexpExtract": "SUBSTRING(x, 1, 3)",
    "Pow": "x * x",
    "ApproxDistinct": "COUNT(DISTINCT x)",
    "Anonymous": "the functions of the reference",
    "Star": "SELECT COUNT(*) FROM visits",
    "TimeToStr": "EXTRACT(year FROM d)",
}


def refuse(node: object, what: str = "") -> TacitError:
    """Build the refusal of a construct, with what to write instead."""
    name = type(node).__name__
    shown = node.sql(dialect="duckdb") if isinstance(node, exp.Expr) else str(node)
    return TacitError(
        "not-allowed",
        what or f"{shown[:80]!r} is not on the list of allowed SQL",
        why="only constructs whose effect on one unit is known and bounded are allowed",
        fix=_INSTEAD.get(name, "SELECT group, aggregates FROM table WHERE ... GROUP BY group"),
    )


def only(node: exp.Expr, *allowed: str) -> None:
    """Refuse a node that carries anything beyond the named parts."""
    for part, value in node.args.items():
        if part in allowed or part in _FLAGS or value is None or value is False or value == []:
            continue
        raise refuse(node, f"{part.strip('_').upper()} is not allowed in {node.sql(dialect='duckdb')[:80]!r}")


def read_expression(node: exp.Expr, names: Names) -> Node:
    """Read one row-wise expression."""
    kind = type(node)
    if kind in _BINARY:
        only(node, "this", "expression")
        return _binary(_BINARY[kind], node, names)
    if kind in _UNARY:
        only(node, "this")
        inner = read_expression(node.this, names)
        if kind is exp.Neg and isinstance(inner, Literal) and isinstance(inner.value, float):
            return lit(-inner.value)
        return Call(_UNARY[kind], (inner,))
    if kind in _LISTS:
        only(node, "this", "expressions")
        found = tuple(read_expression(e, names) for e in (node.this, *node.expressions))
        return _as_clip(Call(_LISTS[kind], found))
    return _other(node, names)


def _other(node: exp.Expr, names: Names) -> Node:
    def read(part: exp.Expr) -> Node:
        return read_expression(part, names)

    match node:
        case exp.Column():
            only(node, "this", "table")
            if isinstance(node.this, exp.Star):
                raise refuse(node.this)
            return Column(names(node.table, node.name))
        case exp.Literal():
            return _literal(node)
        case exp.Boolean():
            return lit(bool(node.this))
        case exp.Null():
            return lit(None)
        case exp.Paren():
            only(node, "this")
            return read(node.this)
        case exp.Between():
            only(node, "this", "low", "high")
            value = read(node.this)
            return Call(
                "and",
                (Call("ge", (value, read(node.args["low"]))), Call("le", (value, read(node.args["high"])))),
            )
        case exp.In():
            only(node, "this", "expressions")
            if not node.expressions:
                raise refuse(exp.Subquery(), "IN takes a list of constants")
            listed = tuple(read(e) for e in node.expressions)
            if not all(isinstance(e, Literal) for e in listed):
                raise refuse(node, "IN takes a list of constants")
            return Call("in", (read(node.this), *listed))
        case exp.Is(this=this, expression=exp.Null()):
            only(node, "this", "expression")
            return Call("is_null", (read(this),))
        case exp.Is(this=this, expression=exp.Boolean() as truth):
            only(node, "this", "expression")
            return Call("coalesce", (Call("eq", (read(this), lit(bool(truth.this)))), lit(value=False)))
        case exp.Case():
            return _case(node, names)
        case exp.If():
            only(node, "this", "true", "false")
            otherwise = node.args.get("false")
            return Call(
                "case",
                (read(node.this), read(node.args["true"]), read(otherwise) if otherwise else lit(None)),
            )
        case exp.Nullif(this=this, expression=other):
            only(node, "this", "expression")
            value = read(this)
            return Call("case", (Call("eq", (value, read(other))), lit(None), value))
        case exp.Cast() | exp.TryCast():
            return _cast(node, names)
        case exp.Like():
            only(node, "this", "expression")
            return Call("like", (read(node.this), read(node.expression)))
        case exp.ILike():
            only(node, "this", "expression")
            pattern = read(node.expression)
            if not isinstance(pattern, Literal):
                raise refuse(node, "ILIKE takes a constant pattern")
            return Call("like", (Call("lower", (read(node.this),)), lit(str(pattern.value).lower())))
        case exp.Pow(this=this, expression=exp.Literal(this="2")):
            only(node, "this", "expression")
            value = read(this)
            return Call("mul", (value, value))
        case exp.StartsWith():
            only(node, "this", "expression")
            return Call("starts_with", (read(node.this), read(node.expression)))
        case exp.Floor() | exp.Ceil():
            only(node, "this")
            return Call("floor" if isinstance(node, exp.Floor) else "ceil", (read(node.this),))
        case exp.Round():
            only(node, "this", "decimals")
            digits = node.args.get("decimals")
            return Call("round", (read(node.this), read(digits) if digits else lit(0)))
        case exp.Concat():
            only(node, "expressions")
            return Call("concat", tuple(read(e) for e in node.expressions))
        case exp.Substring():
            only(node, "this", "start", "length")
            start, length = node.args.get("start"), node.args.get("length")
            return Call(
                "substring",
                (read(node.this), read(start) if start else lit(1), read(length) if length else lit(10**6)),
            )
        case exp.Left(this=this, expression=length):
            only(node, "this", "expression")
            return Call("substring", (read(this), lit(1), read(length)))
        case exp.Extract(this=part, expression=moment):
            only(node, "this", "expression")
            return _part(str(part.name or part), read(moment), node)
        case exp.TimestampTrunc() | exp.DateTrunc():
            only(node, "this", "unit")
            return Call("date_trunc", (lit(_unit(node)), read(node.this)))
        case exp.DateDiff(this=later, expression=earlier):
            only(node, "this", "expression", "unit")
            return Call("date_diff", (lit(_unit(node)), read(earlier), read(later)))
        case _:
            raise refuse(node)


def _binary(op: str, node: exp.Expr, names: Names) -> Node:
    left, right = node.this, node.expression
    if op in {"add", "sub"} and isinstance(right, exp.Interval):
        return _shift(op, read_expression(left, names), right)
    a, b = read_expression(left, names), read_expression(right, names)
    if op in {"and", "or"} and isinstance(a, Call) and a.op == op:
        return Call(op, (*a.args, b))
    return Call(op, (a, b))


def _shift(op: str, moment: Node, interval: exp.Interval) -> Node:
    days = {"DAY": 1, "WEEK": 7}.get(_unit(interval).upper().rstrip("S"))
    amount = interval.this
    if days is None or not isinstance(amount, exp.Literal):
        raise refuse(interval, "intervals are whole numbers of days or weeks")
    try:
        number = float(str(amount.this))
    except ValueError:
        raise refuse(interval, "intervals are whole numbers of days or weeks") from None
    return Call("add_days", (moment, lit(number * days * (1 if op == "add" else -1))))


def _unit(node: exp.Expr) -> str:
    unit = node.args.get("unit")
    return str(unit.name if isinstance(unit, exp.Expr) else unit or "day").lower()


def _part(name: str, moment: Node, node: exp.Expr) -> Node:
    known = {"year", "month", "day", "hour", "minute", "quarter"}
    word = {"dow": "weekday", "dayofweek": "weekday"}.get(name.lower(), name.lower())
    if word not in known | {"weekday"}:
        raise refuse(node, f"EXTRACT({name[:20]}) is not known")
    return Call(word, (moment,))


def _literal(node: exp.Literal) -> Node:
    if node.is_string:
        return lit(str(node.this))
    try:
        return lit(float(str(node.this)))
    except ValueError:
        raise refuse(node) from None


def _case(node: exp.Case, names: Names) -> Node:
    only(node, "this", "ifs", "default")
    subject = node.this
    parts: list[Node] = []
    for branch in node.args["ifs"]:
        only(branch, "this", "true")
        condition = read_expression(branch.this, names)
        if subject is not None:
            condition = Call("eq", (read_expression(subject, names), condition))
        parts += [condition, read_expression(branch.args["true"], names)]
    default = node.args.get("default")
    return Call("case", (*parts, read_expression(default, names) if default is not None else lit(None)))


def _cast(node: exp.Expr, names: Names) -> Node:
    only(node, "this", "to", "_type")
    target = node.args["to"]
    name = str(getattr(target.this, "value", target.this)).upper()
    op = next((op for op, kinds in _CASTS.items() if name in kinds), None)
    if op is None or target.args.get("nested"):
        raise refuse(node, f"a cast to {name[:30]} is not allowed")
    inner = read_expression(node.this, names)
    if op == "to_date" and isinstance(inner, Literal) and isinstance(inner.value, str):
        return as_date(inner.value)
    return Call(op, (inner,))


def _as_clip(node: Call) -> Node:
    """LEAST(GREATEST(x, low), high) and its mirror image are one clip, which then has bounds."""
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
