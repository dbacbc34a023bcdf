"""Write table expressions as SQL that cannot fail on any row, in the dialect of an engine."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

from tacit.algebra import OPERATORS, Call, Column, Literal, Node, ValueGrid, grid_for, kind_of
from tacit.engines._dialect import Dialect, StoredType
from tacit.engines._values import MOST_TEXT
from tacit.errors import TacitError
from tacit.fixes import Choose

if TYPE_CHECKING:
    from tacit.core import Fact

#: How the columns that hold a declared column on its public grids are named, by the bits of the grid.
ON_GRID = {30: "tacit values ", 16: "tacit squares "}

#: The types of a relation's columns, as far as the engine's dialect needs them.
StoredTypes: TypeAlias = Mapping[str, StoredType | None]

_TRUNC = ("year", "quarter", "month", "week", "day", "hour", "minute")
_DIFF = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
_FORMAT = re.compile(r"%-?.?", re.DOTALL)
_FORMAT_PARTS = frozenset({
    "%a", "%A", "%w", "%u", "%d", "%-d", "%b", "%B", "%m", "%-m", "%y", "%-y", "%Y", "%H", "%-H", "%I", "%-I",
    "%p", "%M", "%-M", "%S", "%-S", "%j", "%-j", "%U", "%W", "%V", "%G", "%%",
})  # fmt: skip
_LONGEST_FORMAT = 200
#: The most characters of SQL of one expression, with the computed columns that it reads written out.
MOST_SQL = 50_000


def grid_columns(facts: Mapping[str, Fact]) -> dict[str, tuple[str, ValueGrid]]:
    """Name the columns that hold the bounded columns of a table on their grids.

    An engine lays them over its source; a snapshot stores them as integers.
    """
    return {
        start + column: (column, grid_for(fact.bounds, bits))
        for column, fact in facts.items()
        if fact.bounds is not None
        for bits, start in ON_GRID.items()
    }


@dataclass(frozen=True, slots=True)
class SqlWriter:
    """Writes expressions in a dialect.

    Parameters
    ----------
    dialect
        The SQL of the engine.
    tables
        The types of the columns of each table's view; none where the dialect does not need them.
    """

    dialect: Dialect
    tables: Mapping[str, StoredTypes] = field(default_factory=dict)

    def expression(self, node: Node, types: StoredTypes) -> str:
        """Write a resolved expression over columns of these types."""
        dialect = self.dialect
        match node:
            case Column(name, kind):  # the result does not depend on the type of the column
                return dialect.read(dialect.quote(name), types.get(name), kind or "text")
            case Literal(None, kind):
                return dialect.null(kind)
            case Literal(bool() as value, _):
                return dialect.truth(value)
            case Literal(value, "number"):
                return dialect.number(float(value or 0))
            case Literal(value, "date"):
                return dialect.moment(str(value))
            case Literal(value, _):
                return dialect.string(str(value))
            case Call(op, args):
                written = _CALLS[op](self, op, args, types)
                if len(written) > MOST_SQL:
                    raise TacitError(
                        "bad-expression",
                        "an expression is too deeply nested",
                        why=f"its SQL would have more than {MOST_SQL:,} characters",
                        fix="compute it in several steps",
                    )
                return written

    def all(self, nodes: tuple[Node, ...], types: StoredTypes) -> list[str]:
        """Write several expressions."""
        return [self.expression(node, types) for node in nodes]

    def quantised(self, value: str, grid: ValueGrid) -> str:
        """Write floor(x/step + 1/2), clipped to the grid.

        NULL and NaN are NULL. The result is exact: the step is a power of two, so the grid's ends are
        doubles, x times 2/step loses no digit, and rounding it down gives a whole number of half steps
        (docs/proofs/tables.md).
        """
        most = Fraction(sys.float_info.max)
        first, last, halves = max(grid.lo * grid.step, -most), min(grid.hi * grid.step, most), 2 / grid.step
        return self.dialect.grid(value, float(first), float(last), float(halves))


#: How an operator is written: its arguments as SQL, or as checked constants, handed to the dialect.
_Writing: TypeAlias = Callable[[SqlWriter, str, tuple[Node, ...], StoredTypes], str]


def _written(writer: SqlWriter, op: str) -> Callable[..., str]:
    return getattr(writer.dialect, f"op_{op}")  # type: ignore[no-any-return]


def _plain(writer: SqlWriter, op: str, args: tuple[Node, ...], types: StoredTypes) -> str:
    return _written(writer, op)(*writer.all(args, types))


def _with_kind(writer: SqlWriter, op: str, args: tuple[Node, ...], types: StoredTypes) -> str:
    """Write a conversion, whose form depends on the kind of its argument."""
    return _written(writer, op)(writer.expression(args[0], types), kind_of(args[0]))


def _in(writer: SqlWriter, op: str, args: tuple[Node, ...], types: StoredTypes) -> str:
    first, *others = writer.all(args, types)
    return _written(writer, op)(first, others)


def _case(writer: SqlWriter, op: str, args: tuple[Node, ...], types: StoredTypes) -> str:
    a = writer.all(args, types)
    return _written(writer, op)(list(zip(a[:-1:2], a[1::2], strict=True)), a[-1])


def _with_texts(writer: SqlWriter, op: str, args: tuple[Node, ...], types: StoredTypes) -> str:
    """Write an operator whose arguments after the first are constant texts; a missing one gives NULL."""
    constants = [a.value if isinstance(a, Literal) else None for a in args[1:]]
    if None in constants:
        return writer.dialect.null(kind_of(Call(op, args)))
    return _written(writer, op)(writer.expression(args[0], types), *map(str, constants))


def _power(writer: SqlWriter, op: str, args: tuple[Node, ...], types: StoredTypes) -> str:
    exponent = args[1].value if isinstance(args[1], Literal) else None
    if exponent is None:
        return writer.dialect.null("number")
    return _written(writer, op)(writer.expression(args[0], types), float(exponent))


def _round(writer: SqlWriter, op: str, args: tuple[Node, ...], types: StoredTypes) -> str:
    return _written(writer, op)(writer.expression(args[0], types), _small(args[1], 15))


def _substring(writer: SqlWriter, op: str, args: tuple[Node, ...], types: StoredTypes) -> str:
    start, length = max(1, _small(args[1], 10**6)), max(0, _small(args[2], 10**6))
    return _written(writer, op)(writer.expression(args[0], types), start, length)


def _right(writer: SqlWriter, op: str, args: tuple[Node, ...], types: StoredTypes) -> str:
    return _written(writer, op)(writer.expression(args[0], types), max(0, _small(args[1], 10**6)))


def _replace(writer: SqlWriter, op: str, args: tuple[Node, ...], types: StoredTypes) -> str:
    """Write a replacement that cannot outgrow the longest text: where it may grow, its input is cut first."""
    old, new = (str(a.value) if isinstance(a, Literal) else "" for a in args[1:])
    times = max(1, -(-len(new) // max(len(old), 1)))
    given = writer.dialect.op_substring(writer.expression(args[0], types), 1, MOST_TEXT // times)
    return _written(writer, op)(given, old, new)


def _split_part(writer: SqlWriter, op: str, args: tuple[Node, ...], types: StoredTypes) -> str:
    sign = args[1].value if isinstance(args[1], Literal) else None
    index = max(1, _small(args[2], 10**6))
    if sign is None:
        return writer.dialect.null("text")
    return _written(writer, op)(writer.expression(args[0], types), str(sign), index)


def _strftime(writer: SqlWriter, op: str, args: tuple[Node, ...], types: StoredTypes) -> str:
    """Write a date in a public format; only parts that every date between the years 1 and 9999 has."""
    form = str(args[1].value) if isinstance(args[1], Literal) else ""
    unknown = [one for one in _FORMAT.findall(form) if one not in _FORMAT_PARTS]
    if unknown or not 0 < len(form) <= _LONGEST_FORMAT:
        size = "it is too long" if form else "it is empty"  # DuckDB fails on an empty one
        raise TacitError(
            "bad-expression",
            f"strftime cannot use the format {form[:40]!r}",
            why=f"{unknown[0]} is not a part of a date that Tacit writes" if unknown else size,
            fix=Choose(tuple(sorted(_FORMAT_PARTS)), given=unknown[0] if unknown else ""),
        )
    return _written(writer, op)(writer.expression(args[0], types), form)


def _with_part(allowed: tuple[str, ...]) -> _Writing:
    def written(writer: SqlWriter, op: str, args: tuple[Node, ...], types: StoredTypes) -> str:
        part = str(args[0].value).lower() if isinstance(args[0], Literal) else ""
        if part not in allowed:
            raise TacitError(
                "bad-expression",
                f"{op} cannot use the part {part[:20]!r}",
                fix=Choose(allowed, given=part[:20]),
            )
        return _written(writer, op)(part, *writer.all(args[1:], types))

    return written


def _add_months(writer: SqlWriter, op: str, args: tuple[Node, ...], types: StoredTypes) -> str:
    return _written(writer, op)(writer.expression(args[0], types), _small(args[1], 120_000))


def _small(node: Node, most: int) -> int:
    value = node.value if isinstance(node, Literal) else None
    if not isinstance(value, int | float) or value != int(value) or abs(value) > most:
        raise TacitError(
            "bad-expression",
            f"a whole number between -{most} and {most} is needed here",
            fix="a whole number such as 2",
        )
    return int(value)


#: The operators that are not a plain function of their arguments' SQL.
_OTHERS: dict[str, _Writing] = {
    **dict.fromkeys(("to_number", "to_whole", "to_text", "to_boolean", "to_date"), _with_kind),
    **dict.fromkeys(("position", "like", "starts_with", "ends_with", "contains"), _with_texts),
    "in": _in, "case": _case, "power": _power, "round": _round, "substring": _substring, "right": _right,
    "replace": _replace, "split_part": _split_part, "strftime": _strftime, "add_months": _add_months,
    "date_trunc": _with_part(_TRUNC), "date_diff": _with_part(_DIFF),
}  # fmt: skip
_CALLS: dict[str, _Writing] = {op: _OTHERS.get(op, _plain) for op in OPERATORS}
