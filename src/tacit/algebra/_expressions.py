"""The expressions of tables, row by row, a closed language: frozen nodes, four kinds, total operators.

Guarantee
---------
The value of an expression in a row is a function of that row alone, and no operator raises on any row. A
result that cannot be computed (a failed cast, a division by zero, a date out of range) is NULL, and floats
follow IEEE 754. So an expression moves nothing between units, and no row can abort a query.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from tacit.core import Kind, is_writable
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Code

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The most operators of one expression, and the most levels on which they stand.
MOST_CALLS: Final = 25_000
MOST_LEVELS: Final = 150


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the input, read as ``kind``; the kind is None until the expression is resolved."""

    name: str
    kind: Kind | None = None


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant. Numbers are doubles, dates are ISO text."""

    value: float | str | bool | None
    kind: Kind | None


@dataclass(frozen=True, slots=True)
class Call:
    """An operator of `OPERATORS` applied to arguments.

    Guarantee: an expression has at most `MOST_CALLS` operators on at most `MOST_LEVELS` levels, written out
    where a part occurs several times. So it takes little time to read, and whoever follows it down has the
    room that Python gives them, also after a charge.
    """

    op: str
    args: tuple[Node, ...]
    #: How many operators the expression has, and on how many levels.
    calls: int = field(init=False, repr=False, compare=False)
    levels: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        calls = levels = 1
        for argument in self.args:
            if isinstance(argument, Call):
                calls, levels = calls + argument.calls, max(levels, 1 + argument.levels)
        object.__setattr__(self, "calls", calls)
        object.__setattr__(self, "levels", levels)
        if calls > MOST_CALLS or levels > MOST_LEVELS:
            raise TacitError(
                "question-too-large",
                f"an expression can have at most {MOST_CALLS:,} operators, nested at most {MOST_LEVELS} deep",
                why="an expression doubles in size each time the next one uses it twice",
                fix="compute it in several steps, such as columns of a subquery",
            )


Node: TypeAlias = Column | Literal | Call


@dataclass(frozen=True, slots=True)
class Operator:
    """The kinds an operator takes and gives.

    ``takes`` lists the kinds of the arguments. A kind followed by ``*`` repeats; all arguments marked
    ``same`` share one kind. ``constant`` lists the positions that must be constants.
    """

    takes: tuple[str, ...]
    gives: str
    constant: tuple[int, ...] = ()


_NUMBER = Operator(("number",), "number")
_NUMBERS = Operator(("number", "number"), "number")
_COMPARE = Operator(("same", "same"), "boolean")
_PART = Operator(("date",), "number")

#: All operators. A new one must be total on every engine, and the contract tests must show it.
OPERATORS: dict[str, Operator] = {
    "add": _NUMBERS, "sub": _NUMBERS, "mul": _NUMBERS, "div": _NUMBERS, "mod": _NUMBERS,
    "neg": _NUMBER, "abs": _NUMBER, "floor": _NUMBER, "ceil": _NUMBER, "sqrt": _NUMBER, "ln": _NUMBER,
    "exp": _NUMBER, "log2": _NUMBER, "log10": _NUMBER, "trunc": _NUMBER,
    "sign": _NUMBER,
    "power": Operator(("number", "number"), "number", constant=(1,)),
    "round": Operator(("number", "number"), "number", constant=(1,)),
    "least": Operator(("number", "number*"), "number"), "greatest": Operator(("number", "number*"), "number"),
    "clip": Operator(("number", "number", "number"), "number", constant=(1, 2)),
    "eq": _COMPARE, "ne": _COMPARE, "lt": _COMPARE, "le": _COMPARE, "gt": _COMPARE, "ge": _COMPARE,
    "in": Operator(("same", "same*"), "boolean"),
    "is_null": Operator(("any",), "boolean"),
    "and": Operator(("boolean", "boolean*"), "boolean"), "or": Operator(("boolean", "boolean*"), "boolean"),
    "not": Operator(("boolean",), "boolean"),
    "case": Operator(("case*",), "same"),
    "coalesce": Operator(("same", "same*"), "same"),
    "lower": Operator(("text",), "text"), "upper": Operator(("text",), "text"),
    "trim": Operator(("text",), "text"), "ltrim": Operator(("text",), "text"),
    "rtrim": Operator(("text",), "text"),
    "length": Operator(("text",), "number"),
    "concat": Operator(("text", "text*"), "text"),
    "substring": Operator(("text", "number", "number"), "text", constant=(1, 2)),
    "right": Operator(("text", "number"), "text", constant=(1,)),
    "replace": Operator(("text", "text", "text"), "text", constant=(1, 2)),
    "split_part": Operator(("text", "text", "number"), "text", constant=(1, 2)),
    "position": Operator(("text", "text"), "number", constant=(1,)),
    "like": Operator(("text", "text"), "boolean", constant=(1,)),
    "starts_with": Operator(("text", "text"), "boolean", constant=(1,)),
    "ends_with": Operator(("text", "text"), "boolean", constant=(1,)),
    "contains": Operator(("text", "text"), "boolean", constant=(1,)),
    "year": _PART, "month": _PART, "day": _PART, "hour": _PART, "minute": _PART, "weekday": _PART,
    "quarter": _PART, "second": _PART, "isodow": _PART, "week": _PART, "dayofyear": _PART,
    "dayname": Operator(("date",), "text"), "monthname": Operator(("date",), "text"),
    "strftime": Operator(("date", "text"), "text", constant=(1,)),
    "date_trunc": Operator(("text", "date"), "date", constant=(0,)),
    "date_diff": Operator(("text", "date", "date"), "number", constant=(0,)),
    "add_days": Operator(("date", "number"), "date"),
    "add_months": Operator(("date", "number"), "date", constant=(1,)),
    "to_number": Operator(("any",), "number"), "to_whole": Operator(("any",), "number"),
    "to_text": Operator(("any",), "text"),
    "to_boolean": Operator(("any",), "boolean"), "to_date": Operator(("any",), "date"),
}  # fmt: skip

_ISO_EXAMPLE = "a date such as '2024-01-31'"
_ISO = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?")


def lit(value: object) -> Literal:
    """Read a Python value as a constant, or refuse it."""
    match value:
        case None:
            return Literal(None, None)
        case bool():
            return Literal(value, "boolean")
        case int() | float() | Fraction() | Decimal():
            try:
                number = float(value)
            except OverflowError:
                number = math.inf
            if not math.isfinite(number):
                raise bad_parameter("a constant", "a finite number", value, fix="a number such as 30")
            return Literal(number, "number")
        case str():
            if "\x00" in value or len(value) > 10_000 or not is_writable(value):
                raise bad_parameter(
                    "a text constant",
                    "at most 10,000 characters that UTF-8 can encode, none of them NUL",
                    value,
                    fix="shorter text" if len(value) > 10_000 else "text without such characters",
                )
            return Literal(value, "text")
        case datetime():
            if value.tzinfo is not None:
                raise bad_parameter(
                    "a date constant",
                    "a date or time without a time zone",
                    value,
                    fix=Code("value.replace(tzinfo=None)"),
                )
            return Literal(value.isoformat(sep=" "), "date")
        case date():
            return Literal(value.isoformat(), "date")
        case _ if type(value).__module__ == "numpy" and hasattr(value, "item"):
            return lit(cast("object", value.item()))
        case _:
            raise bad_parameter(
                "a constant", "a number, text, a boolean or a date", value, fix="a plain value such as 30"
            )


def as_date(text: str) -> Literal:
    """Read ISO text as a date constant."""
    if not is_iso(text):
        digits = "a date is written as year-month-day with 4, 2 and 2 digits"
        why = "this day does not exist" if _ISO.fullmatch(text) else digits
        raise TacitError("bad-expression", f"{text[:40]!r} is not a date", why=why, fix=_ISO_EXAMPLE)
    return Literal(text, "date")


def is_iso(text: str) -> bool:
    """Return whether text is a date as `as_date` reads it.

    Examples
    --------
    >>> is_iso("2024-02-29"), is_iso("2024-02-29 12:00"), is_iso("2023-02-29"), is_iso("March")
    (True, True, False, False)
    """
    if not _ISO.fullmatch(text):
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def names(node: Node) -> frozenset[str]:
    """Return the columns that an expression reads."""
    match node:
        case Column(name):
            return frozenset({name})
        case Call(_, args):
            return frozenset().union(*(names(a) for a in args))
        case _:
            return frozenset()


def text_of(node: Node) -> str:
    """Write an expression for people and for plan hashes; equal text means equal expression."""
    match node:
        case Column(name, kind):
            return f"{name}" if kind is None else f"{name}:{kind}"
        case Literal(value, kind):
            return f"{value!r}" if kind != "date" else f"date {value!r}"
        case Call(op, args):
            return f"{op}({', '.join(text_of(a) for a in args)})"


_SIGNS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%", "eq": "=", "ne": "<>", "lt": "<", "le": "<=",
    "gt": ">", "ge": ">=", "and": "AND", "or": "OR",
}  # fmt: skip


def words_of(node: Node, hidden: Mapping[str, str] | None = None) -> str:
    """Write an expression for people, the way they would write it in SQL; nothing is computed from it.

    With ``hidden``, only its shape: ``?`` stands for each constant, and columns get the names given there.

    Examples
    --------
    >>> words_of(Call("div", (Call("add", (Column("stay", "number"), lit(1))), lit(2))))
    '(stay + 1) / 2'
    >>> words_of(Column("Cost (EUR)")), words_of(Call("abs", (Column("Cost (EUR)"),)))
    ('Cost (EUR)', 'abs("Cost (EUR)")')
    >>> words_of(Call("gt", (Column("stay", "number"), lit(30))), hidden={})
    'stay > ?'
    """
    match node:
        case Column(name):
            return name if hidden is None else hidden.get(name, name)
        case Literal() if hidden is not None:
            return "?"
        case Literal(value, "number"):
            return f"{value:.15g}" if isinstance(value, float) else "NULL"
        case Literal(value):
            return "NULL" if value is None else f"{value!r}" if isinstance(value, str) else str(value).upper()
        case Call(op, args) if op in _SIGNS and len(args) > 1:
            bracketed = (
                f"({_part(a, hidden)})" if isinstance(a, Call) and a.op in _SIGNS else _part(a, hidden)
                for a in args
            )
            return f" {_SIGNS[op]} ".join(bracketed)
        case Call(op, args):
            return f"{op}({', '.join(_part(a, hidden) for a in args)})"


def _part(node: Node, hidden: Mapping[str, str] | None) -> str:
    """Write a part of a longer expression: the name of a column that is not a plain word needs quotes."""
    odd = isinstance(node, Column) and not (node.name.isascii() and node.name.isidentifier())
    return f'"{words_of(node, hidden)}"' if odd else words_of(node, hidden)
