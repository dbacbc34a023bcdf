"""Functions of dates in a table's SQL question, read into Tacit's own nodes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot import exp

from tacit.algebra import Call, Literal, Node, lit
from tacit.fixes import Choose
from tacit.tables.sql._allowed import only, refuse

if TYPE_CHECKING:
    from collections.abc import Callable

    from tacit.tables.sql._names import PartReader

_DATE_PARTS = {
    "year", "month", "day", "hour", "minute", "second", "quarter", "weekday", "isodow", "week", "dayofyear",
}  # fmt: skip
_DATE_PART_NAMES = {"dow": "weekday", "dayofweek": "weekday", "doy": "dayofyear"}
_INTERVAL_DAYS = {"DAY": 1, "WEEK": 7}
_INTERVAL_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}


def _formatted(node: exp.Expr, read: PartReader) -> Node:
    """Read STRFTIME; like DuckDB, with the date and the format in either order.

    The parser reads an empty format as the word None. That word has no part of a date, so it stands for the
    empty format here, which is refused.
    """
    only(node, "this", "format")
    moment, form = read(node.this), read(node.args["format"])
    if isinstance(moment, Literal) and not isinstance(form, Literal):
        moment, form = form, moment
    if form == lit("None"):
        form = lit("")
    return Call("strftime", (moment, form))


def _parsed(node: exp.Expr, read: PartReader) -> Node:
    """Read STRPTIME: the parts of a date are split off the text, put in order and cast.

    Text of another form, and a day that does not exist, is missing, as in TRY_STRPTIME.
    """
    only(node, "this", "format")
    return from_format(node, read(node.this), str(node.args["format"].name))


def from_format(node: exp.Expr, text: Node, form: str) -> Node:
    """Read text as a date by a format such as ``%d.%m.%Y``, with a time behind it or without."""
    found = re.fullmatch(r"%-?([dmY])([./-])%-?([dmY])\2%-?([dmY])( %H:%M(:%S)?)?", form)
    if found is None or len(set(found.group(1, 3, 4))) != 3:
        raise refuse(
            node,
            "STRPTIME takes a constant format of day, month and year, with one of . / - between them",
            "STRPTIME(column, '%d.%m.%Y') or '%d.%m.%Y %H:%M'",
        )
    day = Call("split_part", (text, lit(" "), lit(1))) if found[5] else text
    order = found.group(1, 3, 4)
    year, month, last = (
        Call("split_part", (day, lit(found[2]), lit(order.index(part) + 1))) for part in "Ymd"
    )
    date: list[Node] = [year, lit("-"), month, lit("-"), last]
    clock = Call("split_part", (text, lit(" "), lit(2)))
    # the length and the two signs leave no room for another form
    whole = [_has(Call("replace", (day, lit(found[2]), lit(""))), day, 2)]
    if found[5]:
        date += [lit(" "), clock]
        whole += [
            _has(Call("replace", (text, lit(" "), lit(""))), text, 1),
            Call("eq", (Call("length", (clock,)), lit(8 if found[6] else 5))),
            Call("lt", (clock, lit("24"))),
        ]
    return Call(
        "case", (Call("and", tuple(whole)), Call("to_date", (Call("concat", tuple(date)),)), lit(None))
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

    def shifted(node: exp.Expr, read: PartReader) -> Node:
        only(node, "this", "expression", "unit")
        interval = node.expression
        if not isinstance(interval, exp.Interval):
            interval = exp.Interval(this=interval, unit=node.args.get("unit"))
        return moved(read(node.this), interval, sign)

    return shifted


def _unit(node: exp.Expr) -> str:
    unit = node.args.get("unit")
    return str(unit.name if isinstance(unit, exp.Expr) else unit or "day").lower()


def _extract(node: exp.Expr, read: PartReader) -> Node:
    only(node, "this", "expression")
    return date_part(node, str(node.this.name or node.this), read(node.expression))


def date_part(node: exp.Expr, name: str, moment: Node) -> Node:
    """Take a part of a date by its name, or refuse the node that asks for it."""
    part = _DATE_PART_NAMES.get(name.lower(), name.lower())
    if part not in _DATE_PARTS:
        allowed = Choose(tuple(sorted(_DATE_PARTS)), given=name[:20])
        raise refuse(node, f"EXTRACT({name[:20].lower()}) is not on the list of allowed SQL", allowed)
    return Call(part, (moment,))


def _date_trunc(node: exp.Expr, read: PartReader) -> Node:
    only(node, "this", "unit")
    return Call("date_trunc", (lit(_unit(node)), read(node.this)))


def _date_diff(node: exp.Expr, read: PartReader) -> Node:
    only(node, "this", "expression", "unit")
    later, earlier = node.this, node.expression
    return Call("date_diff", (lit(_unit(node)), read(earlier), read(later)))


DATE_READERS: dict[type[exp.Expr], Callable[[exp.Expr, PartReader], Node]] = {
    exp.TimeToStr: _formatted, exp.DateAdd: _date_shift(1), exp.DateSub: _date_shift(-1),
    exp.Extract: _extract, exp.TimestampTrunc: _date_trunc, exp.DateTrunc: _date_trunc,
    exp.DateDiff: _date_diff, exp.StrToTime: _parsed,
}  # fmt: skip
