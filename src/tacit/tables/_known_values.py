"""The values that a group's key can have, where its form alone lists them: weekdays, months, hours, truth.

They are public because they follow from the question, not from the data. So such groups need no declared keys
and no delta.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.core import Fact
from tacit.tables._expressions import OPERATORS, Call, Column, Literal
from tacit.tables._ranges import DATE_PARTS

if TYPE_CHECKING:
    from tacit.tables._expressions import Node
    from tacit.tables._kinds import Scope

__all__ = ["known_values"]

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


def known_values(node: Node, facts: Scope) -> tuple[object, ...] | None:
    """Return the declared keys of a column, or the values that an expression can have; else None.

    Examples
    --------
    >>> from tacit.tables._kinds import Scope
    >>> known_values(Call("quarter", (Column("day"),)), Scope({}))
    (1.0, 2.0, 3.0, 4.0)
    """
    match node:
        case Column(name, _):
            fact = facts[name] if name in facts else Fact()
            return (False, True) if fact.keys is None and fact.kind == "boolean" else fact.keys
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
