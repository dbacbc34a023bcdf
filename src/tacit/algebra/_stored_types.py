"""Comparisons that cannot mean what they say, because of how the source stores a column.

Parquet files and databases declare the types of their columns, which are public. A boolean that is compared
with ``'YES'`` equals it in no row, so the answer would be about 0 and would still be paid for.

A CSV file stores text. A date such as 31.12.2023 is smaller than 5.1.1990 as text, so asking for all dates
after it gives an answer that is wrong and looks right.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tacit.algebra._expressions import Call, Column, Literal, words_of
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Do, Say, Set

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.algebra._expressions import Node
    from tacit.algebra._kinds import Scope

_LATE_YEAR = re.compile(r"\s*\d{1,2}([./-])\d{1,2}\1\d{4}([ T].*)?")
_ORDERS = frozenset({"lt", "le", "gt", "ge"})
_EQUALITIES = frozenset({"eq", "ne", "in"})
_SPOKEN: dict[str, str] = {"boolean": "a boolean", "number": "a number", "moment": "a date"}
_KEYS: dict[str, list[object]] = {
    "boolean": [True, False], "number": [1, 2], "moment": ["2026-01-01", "2026-02-01"],
}  # fmt: skip


def check_comparable(op: str, args: Sequence[Node], facts: Scope) -> None:
    """Refuse a comparison of a column with constants if no value of its stored type can equal any of them."""
    if op not in _EQUALITIES:
        return
    columns = [a for a in args if isinstance(a, Column)]
    values = [a.value for a in args if isinstance(a, Literal) and a.value is not None]
    if len(columns) != 1 or len(columns) + len(values) != len(args):
        return
    stored = facts[columns[0].name].stored
    if stored in _SPOKEN and all(_never_equals(value, stored) for value in values):
        name = columns[0].name
        raise TacitError(
            "bad-expression",
            f"{name} is stored as {_SPOKEN[stored]}, so {words_of(Call(op, tuple(args)))} "
            f"has the same result in every row",
            why="the question would cost budget, and its answer is known without the data",
            fix=compare_with(columns[0], stored, values[0]),
        )


def check_dates(op: str, args: Sequence[Node], facts: Scope) -> None:
    """Refuse to compare a column as text with a date that is not written with the year first.

    If the file's order of dates is declared, its cells have the year first in every question, so none of them
    equals such a date. Otherwise only the order of two such texts means nothing.
    """
    columns = [a for a in args if isinstance(a, Column) and a.kind is None]
    texts = [a.value for a in args if isinstance(a, Literal) and isinstance(a.value, str)]
    written = next((match for text in texts if (match := _LATE_YEAR.fullmatch(text))), None)
    if written is None or len(columns) != 1 or (op not in _ORDERS and not facts[columns[0].name].dates):
        return
    name, sign = words_of(columns[0]), written[1]
    if declared := facts[columns[0].name].dates:
        why = f"the file declares that dates are written as {declared}: in questions the year stands first"
        fix = Say("write the date with the year first, such as '2024-01-31'")
    else:
        why = f"{name} is read as text here, and text is compared letter by letter, so the day counts first"
        form = sign.join(("%m", "%d", "%Y") if sign == "/" else ("%d", "%m", "%Y"))
        column = name if name.isidentifier() else f'"{name}"'
        fix = Say(f"STRPTIME({column}, '{form}') and a date with the year first, such as DATE '2024-01-31'")
    raise TacitError(
        "bad-expression", f"{words_of(Call(op, tuple(args)))} does not compare dates", why=why, fix=fix
    )


def check_possible_keys(name: str, node: Node, keys: Sequence[object], facts: Scope) -> None:
    """Refuse public keys of a column if no value of its stored type can equal any of them."""
    stored = facts[node.name].stored if isinstance(node, Column) else ""
    if stored in _SPOKEN and all(_never_equals(key, stored) for key in keys):
        raise bad_parameter(
            f"keys of {name!r}",
            f"of the type of the column, which is stored as {_SPOKEN[stored]}",
            keys[0],
            fix=Set(keys={name: _KEYS[stored]}),
        )


def _never_equals(value: object, stored: str) -> bool:
    """Return whether no value of a stored type, read as the kind of a constant, equals the constant."""
    match stored:
        case "boolean":
            return isinstance(value, str) and value not in {"true", "false"}
        case "number":
            return isinstance(value, str) and not _is_number(value)
        case "moment":  # the text of a moment starts with its year
            return not isinstance(value, str) or not value[:1].isdigit()
        case _:
            return False


def compare_with(node: Node, stored: str, value: object) -> Do:
    """Offer a comparison with a constant of the right kind; a column may have been meant by text."""
    no = str(value).strip().lower() in {"no", "n", "false", "f", "0"}
    right = {"boolean": "FALSE" if no else "TRUE", "number": "1", "moment": "DATE '2026-01-31'"}
    meant = {"text": value} if isinstance(value, str) else {}
    return Do("compare-in-question", expression=words_of(node), value=right[stored], **meant)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
