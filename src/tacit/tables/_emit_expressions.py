"""Emit a table expression as SQL that cannot fail on any row."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import reduce
from typing import TYPE_CHECKING, TypeAlias

from tacit.engines import MOST_TEXT
from tacit.errors import TacitError
from tacit.fixes import Choose
from tacit.tables._expressions import OPERATORS, Call, Column, Literal, Node
from tacit.tables._statistics import ValueGrid, grid_for

if TYPE_CHECKING:
    from tacit.core import Fact

__all__ = ["ON_GRID", "expression_sql", "grid_columns", "number", "quantised", "quote"]

#: How the columns that hold a declared column on its public grids are named, by the bits of the grid.
ON_GRID = {30: "tacit values ", 16: "tacit squares "}

#: The engine defines these functions: a value that cannot be read as a kind is NULL.
_READINGS = {"number": "tacit_number", "text": "tacit_text", "boolean": "tacit_truth"}

#: Dates outside these years are NULL: inside, no date function of any engine leaves its range.
_FIRST, _LAST = "TIMESTAMP '0001-01-01'", "TIMESTAMP '9999-12-31 23:59:59.999999'"
_TRUNC = ("year", "quarter", "month", "week", "day", "hour", "minute")
_DIFF = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
_MOST_DAYS = 4_000_000
_FORMAT = re.compile(r"%-?.?", re.DOTALL)
_FORMAT_PARTS = frozenset({
    "%a", "%A", "%w", "%u", "%d", "%-d", "%b", "%B", "%m", "%-m", "%y", "%-y", "%Y", "%H", "%-H", "%I", "%-I",
    "%p", "%M", "%-M", "%S", "%-S", "%j", "%-j", "%U", "%W", "%V", "%G", "%%",
})  # fmt: skip
_LONGEST_FORMAT = 200
_MOST_SQL = 50_000


def quote(name: str) -> str:
    """Quote an identifier."""
    return '"' + name.replace('"', '""') + '"'


def _string(text: str) -> str:
    """Quote a text constant."""
    return "'" + text.replace("'", "''") + "'"


def number(value: float) -> str:
    """Write a double exactly."""
    written = repr(float(value))
    written = written if "e" in written else written + "e0"
    return f"({written})" if written.startswith("-") else written


def expression_sql(node: Node) -> str:
    """Write a resolved expression as DuckDB SQL."""
    match node:
        case Column(name, "date"):
            return _in_calendar(f"TRY_CAST({quote(name)} AS TIMESTAMP)")
        case Column(name, kind):  # the result does not depend on the type of the column
            return f"{_READINGS[kind or 'text']}({quote(name)})"
        case Literal(None, _):
            return "NULL"
        case Literal(bool() as value, _):
            return "TRUE" if value else "FALSE"
        case Literal(value, "number"):
            return number(float(value or 0))
        case Literal(value, "date"):
            return f"TIMESTAMP {_string(str(value))}"
        case Literal(value, _):
            return _string(str(value))
        case Call(op, args):
            written = _call(op, args)
            if len(written) > _MOST_SQL:
                raise TacitError(
                    "bad-expression",
                    "an expression is too deeply nested",
                    why=f"its SQL would have more than {_MOST_SQL:,} characters",
                    fix="compute it in several steps",
                )
            return written


def grid_columns(facts: Mapping[str, Fact]) -> dict[str, str]:
    """Name the columns that hold the bounded columns of a table on their grids, and write what they hold.

    An engine lays them over its source; a snapshot stores them as integers.
    """
    return {
        start + column: quantised(expression_sql(Column(column, "number")), grid_for(fact.bounds, bits))
        for column, fact in facts.items()
        if fact.bounds is not None
        for bits, start in ON_GRID.items()
    }


def quantised(value: str, grid: ValueGrid) -> str:
    """Write floor(x/step + 1/2), clipped to the grid.

    NULL and NaN are NULL. The engine defines ``tacit_grid``.

    The result is exact: the step is a power of two, so the grid's ends are doubles, x times 2/step loses no
    digit, and rounding it down gives a whole number of half steps (docs/proofs/tables.md).
    """
    most = Fraction(sys.float_info.max)
    first, last, halves = max(grid.lo * grid.step, -most), min(grid.hi * grid.step, most), 2 / grid.step
    return f"tacit_grid({value}, {', '.join(number(float(x)) for x in (first, last, halves))})"


def _in_calendar(moment: str) -> str:
    return f"CASE WHEN {moment} BETWEEN {_FIRST} AND {_LAST} THEN {moment} END"


def _call(op: str, args: tuple[Node, ...]) -> str:
    template = _TEMPLATES[op]
    if isinstance(template, str):
        return template.format(*(expression_sql(a) for a in args))
    return template(args)


#: How an operator is written: a template with the arguments' SQL, or a function of the arguments.
_Template: TypeAlias = str | Callable[[tuple[Node, ...]], str]


def _joined(sign: str) -> _Template:
    return lambda args: "(" + f" {sign} ".join(expression_sql(a) for a in args) + ")"


def _extreme(function: str) -> _Template:
    """Write LEAST or GREATEST; unlike DuckDB's own, it is NULL if one argument is NULL or NaN."""

    def written(args: tuple[Node, ...]) -> str:
        a = [expression_sql(x) for x in args]
        missing = " OR ".join(f"{x} IS NULL OR isnan({x})" for x in a)
        return f"(CASE WHEN {missing} THEN NULL ELSE {function}({', '.join(a)}) END)"

    return written


def _round(args: tuple[Node, ...]) -> str:
    return f"round({expression_sql(args[0])}, {_small(args[1], 15)})"


def _in(args: tuple[Node, ...]) -> str:
    first, *others = (expression_sql(a) for a in args)
    return f"({first} IN ({', '.join(others)}))"


def _case(args: tuple[Node, ...]) -> str:
    a = [expression_sql(x) for x in args]
    whens = " ".join(f"WHEN {c} THEN {v}" for c, v in zip(a[:-1:2], a[1::2], strict=True))
    return f"(CASE {whens} ELSE {a[-1]} END)"


def _coalesce(args: tuple[Node, ...]) -> str:
    return f"coalesce({', '.join(expression_sql(a) for a in args)})"


def _concat(args: tuple[Node, ...]) -> str:
    """Write a concatenation that is cut after every step: no row can grow text until the query fails."""
    return reduce(lambda x, y: f"substring({x} || {y}, 1, {MOST_TEXT})", [expression_sql(a) for a in args])


def _substring(args: tuple[Node, ...]) -> str:
    start, length = max(1, _small(args[1], 10**6)), max(0, _small(args[2], 10**6))
    return f"substring({expression_sql(args[0])}, {start}, {length})"


def _add_days(args: tuple[Node, ...]) -> str:
    moment, given = (expression_sql(a) for a in args)
    days = f"least(greatest({given}, {number(-_MOST_DAYS)}), {number(_MOST_DAYS)})"
    whole = f"CASE WHEN isnan({given}) THEN NULL ELSE TRY_CAST({days} AS INTEGER) END"
    return _in_calendar(f"({moment} + to_days({whole}))")


def _date_trunc(args: tuple[Node, ...]) -> str:
    part = _part("date_trunc", args[0], _TRUNC)
    return _in_calendar(f"CAST(date_trunc('{part}', {expression_sql(args[1])}) AS TIMESTAMP)")


def _date_diff(args: tuple[Node, ...]) -> str:
    part = _part("date_diff", args[0], _DIFF)
    first, second = (expression_sql(a) for a in args[1:])
    return f"CAST(date_diff('{part}', {first}, {second}) AS DOUBLE)"


def _replace(args: tuple[Node, ...]) -> str:
    """Write a replacement that cannot outgrow the longest text: where it may grow, its input is cut first."""
    old, new = (str(a.value) if isinstance(a, Literal) else "" for a in args[1:])
    times = max(1, -(-len(new) // max(len(old), 1)))
    given = f"substring({expression_sql(args[0])}, 1, {MOST_TEXT // times})"
    return f"replace({given}, {_string(old)}, {_string(new)})"


def _right(args: tuple[Node, ...]) -> str:
    return f"right({expression_sql(args[0])}, {max(0, _small(args[1], 10**6))})"


def _split_part(args: tuple[Node, ...]) -> str:
    text, sign = (expression_sql(a) for a in args[:2])
    return f"split_part({text}, {sign}, {max(1, _small(args[2], 10**6))})"


def _strftime(args: tuple[Node, ...]) -> str:
    """Write a date in a public format; only parts that every date between the years 1 and 9999 has."""
    form = str(args[1].value) if isinstance(args[1], Literal) else ""
    unknown = [one for one in _FORMAT.findall(form) if one not in _FORMAT_PARTS]
    if unknown or len(form) > _LONGEST_FORMAT:
        raise TacitError(
            "bad-expression",
            f"strftime cannot use the format {form[:40]!r}",
            why=f"{unknown[0]} is not a part of a date that Tacit writes" if unknown else "it is too long",
            fix=Choose(tuple(sorted(_FORMAT_PARTS)), given=unknown[0] if unknown else ""),
        )
    return f"strftime({expression_sql(args[0])}, {_string(form)})"


def _add_months(args: tuple[Node, ...]) -> str:
    return _in_calendar(f"({expression_sql(args[0])} + to_months({_small(args[1], 120_000)}))")


def _part(op: str, node: Node, allowed: tuple[str, ...]) -> str:
    part = str(node.value).lower() if isinstance(node, Literal) else ""
    if part not in allowed:
        raise TacitError(
            "bad-expression",
            f"{op} cannot use the part {part[:20]!r}",
            fix=Choose(allowed, given=part[:20]),
        )
    return part


def _small(node: Node, most: int) -> int:
    value = node.value if isinstance(node, Literal) else None
    if not isinstance(value, int | float) or value != int(value) or abs(value) > most:
        raise TacitError(
            "bad-expression",
            f"a whole number between -{most} and {most} is needed here",
            fix="a whole number such as 2",
        )
    return int(value)


_WRITTEN: dict[str, _Template] = {
    "add": "({0} + {1})", "sub": "({0} - {1})", "mul": "({0} * {1})",
    "div": "({0} / NULLIF({1}, 0e0))", "mod": "({0} % NULLIF({1}, 0e0))",
    "neg": "(-{0})", "abs": "abs({0})", "floor": "floor({0})", "ceil": "ceil({0})",
    "sqrt": "(CASE WHEN {0} >= 0e0 THEN sqrt({0}) END)",
    "ln": "(CASE WHEN {0} > 0e0 THEN ln({0}) END)",
    "log2": "(CASE WHEN {0} > 0e0 THEN log2({0}) END)", "log10": "(CASE WHEN {0} > 0e0 THEN log10({0}) END)",
    "trunc": "trunc({0})",
    "power": "(CASE WHEN isfinite(pow({0}, {1})) THEN pow({0}, {1}) END)",
    "exp": "(CASE WHEN {0} <= 709e0 THEN exp({0}) END)",
    "sign": "(CASE WHEN {0} > 0e0 THEN 1e0 WHEN {0} < 0e0 THEN -1e0 WHEN {0} = 0e0 THEN 0e0 END)",
    "round": _round, "least": _extreme("least"), "greatest": _extreme("greatest"),
    "clip": "(CASE WHEN NOT isnan({0}) THEN least(greatest({0}, {1}), {2}) END)",
    "eq": "({0} = {1})", "ne": "({0} <> {1})", "lt": "({0} < {1})", "le": "({0} <= {1})",
    "gt": "({0} > {1})", "ge": "({0} >= {1})",
    "in": _in, "is_null": "({0} IS NULL)",
    "and": _joined("AND"), "or": _joined("OR"), "not": "(NOT {0})",
    "case": _case, "coalesce": _coalesce,
    "lower": "lower({0})", "upper": "upper({0})",
    "trim": "trim({0})", "ltrim": "ltrim({0})", "rtrim": "rtrim({0})",
    "length": "CAST(length({0}) AS DOUBLE)",
    "concat": _concat, "substring": _substring, "right": _right, "replace": _replace,
    "split_part": _split_part, "position": "CAST(strpos({0}, {1}) AS DOUBLE)",
    "like": "({0} LIKE {1})", "starts_with": "starts_with({0}, {1})", "ends_with": "ends_with({0}, {1})",
    "contains": "contains({0}, {1})",
    "year": "CAST(year({0}) AS DOUBLE)", "month": "CAST(month({0}) AS DOUBLE)",
    "day": "CAST(day({0}) AS DOUBLE)", "hour": "CAST(hour({0}) AS DOUBLE)",
    "minute": "CAST(minute({0}) AS DOUBLE)", "weekday": "CAST(dayofweek({0}) AS DOUBLE)",
    "quarter": "CAST(quarter({0}) AS DOUBLE)", "second": "CAST(second({0}) AS DOUBLE)",
    "isodow": "CAST(isodow({0}) AS DOUBLE)", "week": "CAST(week({0}) AS DOUBLE)",
    "dayofyear": "CAST(dayofyear({0}) AS DOUBLE)",
    "dayname": "dayname({0})", "monthname": "monthname({0})", "strftime": _strftime,
    "date_trunc": _date_trunc, "date_diff": _date_diff, "add_days": _add_days, "add_months": _add_months,
    "to_number": "TRY_CAST({0} AS DOUBLE)", "to_text": "tacit_text({0})",
    "to_whole": "CAST(TRY_CAST({0} AS BIGINT) AS DOUBLE)",
    "to_boolean": "TRY_CAST({0} AS BOOLEAN)", "to_date": _in_calendar("TRY_CAST({0} AS TIMESTAMP)"),
}  # fmt: skip
#: Total: this fails at import if an operator cannot be written.
_TEMPLATES: dict[str, _Template] = {op: _WRITTEN[op] for op in OPERATORS}
