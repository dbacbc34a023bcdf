"""Row-wise expressions in a table's SQL question, read into Tacit's own nodes by a closed list.

Functions of dates and of text have readers of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias, cast

from sqlglot import exp

from tacit.algebra import Call, Column, Literal, Node, as_date, lit
from tacit.fixes import Choose
from tacit.tables.questions._python_expressions import bucket_node
from tacit.tables.sql._allowed import only, refuse

if TYPE_CHECKING:
    from tacit.tables.sql._names import ColumnFinder, PartReader


_DATE_PARTS = {
    "year", "month", "day", "hour", "minute", "second", "quarter", "weekday", "isodow", "week", "dayofyear",
}  # fmt: skip
_DATE_PART_NAMES = {"dow": "weekday", "dayofweek": "weekday", "doy": "dayofyear"}
_INTERVAL_DAYS = {"DAY": 1, "WEEK": 7}
_INTERVAL_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}


def _formatted(node: exp.Expr, part: PartReader) -> Node:
    """Read STRFTIME; like DuckDB, with the date and the format in either order.

    The parser reads an empty format as the word None. That word has no part of a date, so it stands for the
    empty format here, which is refused.
    """
    only(node, "this", "format")
    moment, form = part(node.this), part(node.args["format"])
    if isinstance(moment, Literal) and not isinstance(form, Literal):
        moment, form = form, moment
    if form == lit("None"):
        form = lit("")
    return Call("strftime", (moment, form))


def _parsed(node: exp.Expr, part: PartReader) -> Node:
    """Read STRPTIME: the parts of a date are split off the text, put in order and cast.

    Text of another form, and a day that does not exist, is missing, as in TRY_STRPTIME.
    """
    only(node, "this", "format")
    return from_format(node, part(node.this), str(node.args["format"].name))


def from_format(node: exp.Expr, text: Node, form: str) -> Node:
    """Read text as a date by a format such as ``%d.%m.%Y``, with a time behind it or without."""
    match = re.fullmatch(r"%-?([dmY])([./-])%-?([dmY])\2%-?([dmY])( %H:%M(:%S)?)?", form)
    if match is None or len(set(match.group(1, 3, 4))) != 3:
        raise refuse(
            node,
            "STRPTIME takes a constant format of day, month and year, with one of . / - between them",
            "STRPTIME(column, '%d.%m.%Y') or '%d.%m.%Y %H:%M'",
        )
    day = Call("split_part", (text, lit(" "), lit(1))) if match[5] else text
    order = match.group(1, 3, 4)
    year, month, third = (
        Call("split_part", (day, lit(match[2]), lit(order.index(part) + 1))) for part in "Ymd"
    )
    date: list[Node] = [year, lit("-"), month, lit("-"), third]
    clock = Call("split_part", (text, lit(" "), lit(2)))
    # the length and the two signs leave no room for another form
    parts = [_has(Call("replace", (day, lit(match[2]), lit(""))), day, 2)]
    if match[5]:
        date += [lit(" "), clock]
        parts += [
            _has(Call("replace", (text, lit(" "), lit(""))), text, 1),
            Call("eq", (Call("length", (clock,)), lit(8 if match[6] else 5))),
            Call("lt", (clock, lit("24"))),
        ]
    return Call(
        "case", (Call("and", tuple(parts)), Call("to_date", (Call("concat", tuple(date)),)), lit(None))
    )


def _has(without: Node, text: Node, signs: int) -> Node:
    """Return whether a text is longer by so many signs than without them."""
    longer = Call("add", (Call("length", (without,)), lit(signs)))
    return Call("eq", (Call("length", (text,)), longer))


def moved(moment: Node, interval: exp.Interval, sign: int) -> Node:
    """Move a date by a constant interval."""
    unit, amount = _unit(interval).upper().rstrip("S"), interval.this
    if (unit in _INTERVAL_DAYS or unit in _INTERVAL_MONTHS) and isinstance(amount, exp.Literal):
        try:
            number = float(str(amount.this)) * sign
        except ValueError:
            pass
        else:
            if unit in _INTERVAL_DAYS:
                return Call("add_days", (moment, lit(number * _INTERVAL_DAYS[unit])))
            return Call("add_months", (moment, lit(number * _INTERVAL_MONTHS[unit])))
    raise refuse(
        interval, "an interval is a number of days, weeks, months, quarters or years", "INTERVAL 7 DAY"
    )


def _date_shift(sign: int) -> Callable[[exp.Expr, PartReader], Node]:
    """Read DATE_ADD or DATE_SUB."""

    def shifted(node: exp.Expr, part: PartReader) -> Node:
        only(node, "this", "expression", "unit")
        interval = node.expression
        if not isinstance(interval, exp.Interval):
            interval = exp.Interval(this=interval, unit=node.args.get("unit"))
        return moved(part(node.this), interval, sign)

    return shifted


def _unit(node: exp.Expr) -> str:
    unit = node.args.get("unit")
    return str(unit.name if isinstance(unit, exp.Expr) else unit or "day").lower()


def _extract(node: exp.Expr, part: PartReader) -> Node:
    only(node, "this", "expression")
    return date_part(node, str(node.this.name or node.this), part(node.expression))


def date_part(node: exp.Expr, name: str, moment: Node) -> Node:
    """Take a part of a date by its name, or refuse the node that asks for it."""
    part = _DATE_PART_NAMES.get(name.lower(), name.lower())
    if part not in _DATE_PARTS:
        allowed = Choose(tuple(sorted(_DATE_PARTS)), given=name[:20])
        raise refuse(node, f"EXTRACT({name[:20].lower()}) is not on the list of allowed SQL", allowed)
    return Call(part, (moment,))


def _date_trunc(node: exp.Expr, part: PartReader) -> Node:
    only(node, "this", "unit")
    return Call("date_trunc", (lit(_unit(node)), part(node.this)))


def _date_diff(node: exp.Expr, part: PartReader) -> Node:
    only(node, "this", "expression", "unit")
    later, earlier = node.this, node.expression
    return Call("date_diff", (lit(_unit(node)), part(earlier), part(later)))


DATE_READERS: dict[type[exp.Expr], Callable[[exp.Expr, PartReader], Node]] = {
    exp.TimeToStr: _formatted, exp.DateAdd: _date_shift(1), exp.DateSub: _date_shift(-1),
    exp.Extract: _extract, exp.TimestampTrunc: _date_trunc, exp.DateTrunc: _date_trunc,
    exp.DateDiff: _date_diff, exp.StrToTime: _parsed,
}  # fmt: skip


def _like(node: exp.Expr, part: PartReader) -> Node:
    """Read LIKE, ILIKE, NOT LIKE and NOT ILIKE."""
    only(node, "this", "expression", "negate")
    value, pattern = part(node.this), part(node.expression)
    if isinstance(node, exp.ILike):
        if not isinstance(pattern, Literal):
            raise refuse(node, "ILIKE takes a constant pattern", "ILIKE 'prefix%'")
        value, pattern = Call("lower", (value,)), lit(str(pattern.value).lower())
    like = Call("like", (value, pattern))
    return Call("not", (like,)) if node.args.get("negate") else like


def _concat(node: exp.Expr, reader: PartReader) -> Node:
    """Read CONCAT, in which a missing value is empty text, and values of other kinds are written as text."""
    only(node, "expressions", "coalesce")
    parts = [reader(e) for e in node.expressions]
    return Call("concat", tuple(_as_text(part) for part in parts))


def _as_text(node: Node) -> Node:
    if isinstance(node, Literal) and node.kind == "text":
        return node
    return Call("coalesce", (Call("to_text", (node,)), lit("")))


def _trim(node: exp.Expr, part: PartReader) -> Node:
    only(node, "this", "position")
    side = str(node.args.get("position") or "").upper()
    op = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(side, "trim")
    return Call(op, (part(node.this),))


def _replace(node: exp.Expr, reader: PartReader) -> Node:
    only(node, "this", "expression", "replacement")
    parts = (node.this, node.expression, node.args.get("replacement") or exp.Literal.string(""))
    return Call("replace", tuple(reader(part) for part in parts))


def _position(node: exp.Expr, part: PartReader) -> Node:
    only(node, "this", "substr")
    return Call("position", (part(node.this), part(node.args["substr"])))


def _split_part(node: exp.Expr, reader: PartReader) -> Node:
    only(node, "this", "delimiter", "part_index")
    parts = (node.this, node.args["delimiter"], node.args["part_index"])
    return Call("split_part", tuple(reader(part) for part in parts))


def _substring(node: exp.Expr, part: PartReader) -> Node:
    only(node, "this", "start", "length")
    start, length = node.args.get("start"), node.args.get("length")
    return Call(
        "substring",
        (
            part(node.this),
            part(start) if start else lit(1),
            part(length) if length else lit(10**6),
        ),
    )


def _left(node: exp.Expr, part: PartReader) -> Node:
    only(node, "this", "expression")
    return Call("substring", (part(node.this), lit(1), part(node.expression)))


TEXT_READERS: dict[type[exp.Expr], Callable[[exp.Expr, PartReader], Node]] = {
    exp.Concat: _concat, exp.Like: _like, exp.ILike: _like, exp.StrPosition: _position, exp.Replace: _replace,
    exp.SplitPart: _split_part, exp.Trim: _trim, exp.Substring: _substring, exp.Left: _left,
}  # fmt: skip


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
        left, right = read_expression(node.this, find), read_expression(node.expression, find)
        if isinstance(left, Call) and left.op == op:
            return Call(op, (*left.args, right))
        return Call(op, (left, right))

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
    values = tuple(read_expression(e, find) for e in node.expressions)
    if not all(isinstance(e, Literal) for e in values):
        raise refuse(node, "IN takes a list of constants", "IN ('A', 'B')")
    return Call("in", (read_expression(node.this, find), *values))


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
    cast = Call(op, (inner,))
    return Call("date_trunc", (lit("day"), cast)) if name == "DATE" else cast  # a day has no time of day


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
    operator = {2.0: "log2", 10.0: "log10"}.get(base.value if isinstance(base, Literal) else None)  # type: ignore[arg-type]
    return Call(operator, (value,)) if operator else Call("div", (Call("ln", (value,)), Call("ln", (base,))))


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
    name, arguments = str(node.this).lower(), node.expressions
    if name in {"date_part", "datepart"} and len(arguments) == 2 and arguments[0].is_string:
        return date_part(node, arguments[0].name, read_expression(arguments[1], find))
    if name == "try_strptime" and len(arguments) == 2 and arguments[1].is_string:
        return from_format(node, read_expression(arguments[0], find), arguments[1].name)
    if name == "isnull" and len(arguments) == 1:
        return Call("is_null", (read_expression(arguments[0], find),))
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
    ends = [read_expression(node.args[part], find) for part in ("min_value", "max_value", "num_buckets")]
    match [one.value if isinstance(one, Literal) else None for one in ends]:
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
