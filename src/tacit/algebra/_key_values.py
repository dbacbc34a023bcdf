"""The values of a group's key in a table, as far as form and declared facts show: public keys, or none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.algebra._expressions import OPERATORS, Call, Column, Literal
from tacit.algebra._kinds import bounds_of
from tacit.algebra._ranges import DATE_PARTS
from tacit.core import Fact

if TYPE_CHECKING:
    from tacit.algebra._expressions import Node
    from tacit.algebra._kinds import Scope

_MOST_WHOLE = 1000

_NAMES: dict[str, tuple[str, ...]] = {
    "dayname": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "monthname": (
        "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
        "November", "December",
    ),
}  # fmt: skip


def _digits(first: int, last: int, width: int) -> tuple[str, ...]:
    return tuple(f"{n:0{width}}" for n in range(first, last + 1))


#: The texts that a format of one part can have.
_FORMATS: dict[str, tuple[str, ...]] = {
    "%A": _NAMES["dayname"], "%a": tuple(name[:3] for name in _NAMES["dayname"]),
    "%B": _NAMES["monthname"], "%b": tuple(name[:3] for name in _NAMES["monthname"]),
    "%m": _digits(1, 12, 2), "%d": _digits(1, 31, 2), "%H": _digits(0, 23, 2), "%I": _digits(1, 12, 2),
    "%M": _digits(0, 59, 2), "%S": _digits(0, 59, 2), "%j": _digits(1, 366, 3), "%u": _digits(1, 7, 1),
    "%w": _digits(0, 6, 1), "%p": ("AM", "PM"),
}  # fmt: skip


def keys_of(node: Node, scope: Scope) -> tuple[object, ...] | None:
    """Return the public keys of an expression if they follow from its form, otherwise None.

    A column has its declared keys. CASE and COALESCE have those of all their values, if all are known: a
    constant is its own key, and NULL is none. Conditions, weekdays, months, hours and similar parts of dates
    have the values that they can have.

    Examples
    --------
    >>> from tacit.algebra._kinds import Scope
    >>> keys_of(Call("quarter", (Column("day"),)), Scope({}))
    (1.0, 2.0, 3.0, 4.0)
    """
    match node:
        case Column(name, _):
            fact = scope[name] if name in scope else Fact()
            return (False, True) if fact.keys is None and fact.kind == "boolean" else fact.keys
        case Literal(value, _):
            return () if value is None else (value,)
        case Call("case" as op, args) | Call("coalesce" as op, args):
            values = (*args[1::2], args[-1]) if op == "case" else args
            found = [keys_of(a, scope) for a in values]
            known = dict.fromkeys(key for keys in found for key in keys or ())
            if not can_be_missing(node, scope):
                known.pop(None, None)
            return None if None in found else tuple(known)
        case Call():
            return _by_form(node)


def _by_form(node: Call) -> tuple[object, ...] | None:
    """Return the values that a condition, or a part of a date, can have."""
    match node:
        case Call(op, _) if op in _NAMES:
            return _NAMES[op]
        case Call("strftime", (_, Literal(str() as form))):
            return _FORMATS.get(form)
        case Call(op, _) if op in DATE_PARTS:
            low, high = DATE_PARTS[op]
            return tuple(float(n) for n in range(int(low), int(high) + 1))
        case Call(op, _) if op in OPERATORS and OPERATORS[op].gives == "boolean":
            return False, True
        case _:
            return None


def whole_numbers(node: Node, scope: Scope) -> range | None:
    """Return the whole numbers that an expression can have between public bounds; None where that is unknown.

    Examples
    --------
    >>> from tacit.core import Fact
    >>> from tacit.algebra._kinds import Scope
    >>> facts = Scope({"age": Fact(bounds=(0, 80))})
    >>> tens = Call("floor", (Call("div", (Column("age", "number"), Literal(10.0, "number"))),))
    >>> whole_numbers(Call("mul", (tens, Literal(10.0, "number"))), facts)
    range(0, 81, 10)
    """
    match node:
        case Call("floor" | "ceil" | "trunc" | "to_whole", (inner,)):
            below, bounds = whole_numbers(inner, scope), bounds_of(node, scope)
            if below is not None or bounds is None or not 0 < bounds[1] - bounds[0] < _MOST_WHOLE:
                return below
            return range(int(bounds[0]), int(bounds[1]) + 1)
        case Call("mul", (inner, Literal(float() | int() as by))) | Call(
            "mul", (Literal(float() | int() as by), inner)
        ):
            below = whole_numbers(inner, scope)
            if below is None or by != int(by) or by <= 0:
                return None
            step = below.step * int(by)
            return range(below[0] * int(by), below[-1] * int(by) + 1, step)
        case _:
            return None


def can_be_missing(node: Node, scope: Scope) -> bool:
    """Return whether an expression may have no value in some row, as far as its form and the facts show."""
    match node:
        case Column(name, _):
            return not (scope[name].never_null or scope[name].unit)
        case Literal(value, _):
            return value is None
        case Call("case", args):
            return any(can_be_missing(a, scope) for a in (*args[1::2], args[-1]))
        case Call("coalesce", args):
            return all(can_be_missing(a, scope) for a in args)
        case Call(op, _):
            return op != "is_null"
