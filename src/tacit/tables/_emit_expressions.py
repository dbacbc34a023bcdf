"""Write an expression as SQL that cannot fail on any row."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from tacit.engines import MOST_TEXT
from tacit.errors import TacitError
from tacit.tables._expressions import Call, Column, Literal, Node

if TYPE_CHECKING:
    from tacit.core import Kind

__all__ = ["TYPES", "expression_sql", "quote", "string"]

TYPES: dict[Kind, str] = {"number": "DOUBLE", "text": "VARCHAR", "boolean": "BOOLEAN", "date": "TIMESTAMP"}

_READINGS = {"number": "tacit_number", "text": "tacit_text", "boolean": "tacit_truth"}

#: Dates outside these years are NULL: inside, no date function of any engine leaves its range.
_FIRST, _LAST = "TIMESTAMP '0001-01-01'", "TIMESTAMP '9999-12-31 23:59:59.999999'"
_INFIX = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "eq": "=",
    "ne": "<>",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
}
_PLAIN = {"abs": "abs", "floor": "floor", "ceil": "ceil", "lower": "lower", "upper": "upper", "trim": "trim"}
_PARTS = {"year", "month", "day", "hour", "minute", "quarter"}
_TRUNC = ("year", "quarter", "month", "week", "day", "hour", "minute")
_DIFF = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
_MOST_DAYS = 4_000_000
_MOST_TEXT = 50_000


def quote(name: str) -> str:
    """Quote an identifier."""
    return '"' + name.replace('"', '""') + '"'


def string(text: str) -> str:
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
        case Column(name, kind):
            return _read(quote(name), kind or "text")
        case Literal(None, _):
            return "NULL"
        case Literal(bool() as value, _):
            return "TRUE" if value else "FALSE"
        case Literal(value, "number"):
            return number(float(value or 0))
        case Literal(value, "date"):
            return f"TIMESTAMP {string(str(value))}"
        case Literal(value, _):
            return string(str(value))
        case Call(op, args):
            written = _call(op, args)
            if len(written) > _MOST_TEXT:
                raise TacitError(
                    "bad-expression",
                    "an expression is too deeply nested",
                    why=f"it would be written in more than {_MOST_TEXT} characters",
                    fix="compute it in steps with with_columns",
                )
            return written


def _read(source: str, kind: Kind) -> str:
    """Read a value as a kind without failing; what cannot be read is NULL.

    The engine defines the functions: readings that do not depend on the type of the value's column.
    """
    if kind == "date":
        return _in_calendar(f"TRY_CAST({source} AS TIMESTAMP)")
    return f"{_READINGS[kind]}({source})"


def _in_calendar(moment: str) -> str:
    return f"CASE WHEN {moment} BETWEEN {_FIRST} AND {_LAST} THEN {moment} END"


def _call(op: str, args: tuple[Node, ...]) -> str:
    if op in {"date_trunc", "date_diff"}:
        return _dates(op, args)
    a = [expression_sql(x) for x in args]
    match op:
        case "div":
            return f"({a[0]} / NULLIF({a[1]}, 0e0))"
        case "mod":
            return f"({a[0]} % NULLIF({a[1]}, 0e0))"
        case "neg":
            return f"(-{a[0]})"
        case "sqrt":
            return f"(CASE WHEN {a[0]} >= 0e0 THEN sqrt({a[0]}) END)"
        case "ln":
            return f"(CASE WHEN {a[0]} > 0e0 THEN ln({a[0]}) END)"
        case "exp":
            return f"(CASE WHEN {a[0]} <= 709e0 THEN exp({a[0]}) END)"
        case "sign":
            x = a[0]
            return f"(CASE WHEN {x} > 0e0 THEN 1e0 WHEN {x} < 0e0 THEN -1e0 WHEN {x} = 0e0 THEN 0e0 END)"
        case "round":
            return f"round({a[0]}, {_small(args[1], 15)})"
        case "least" | "greatest":
            missing = " OR ".join(f"{x} IS NULL OR isnan({x})" for x in a)
            return f"(CASE WHEN {missing} THEN NULL ELSE {op}({', '.join(a)}) END)"
        case "clip":
            return f"(CASE WHEN NOT isnan({a[0]}) THEN least(greatest({a[0]}, {a[1]}), {a[2]}) END)"
        case "in":
            return f"({a[0]} IN ({', '.join(a[1:])}))"
        case "is_null":
            return f"({a[0]} IS NULL)"
        case "and" | "or":
            return "(" + f" {op.upper()} ".join(a) + ")"
        case "not":
            return f"(NOT {a[0]})"
        case "case":
            whens = " ".join(f"WHEN {c} THEN {v}" for c, v in zip(a[:-1:2], a[1::2], strict=True))
            return f"(CASE {whens} ELSE {a[-1]} END)"
        case "coalesce":
            return f"coalesce({', '.join(a)})"
        case "length":
            return f"CAST(length({a[0]}) AS DOUBLE)"
        case "concat":  # cut after every step: no row can grow a text until the query fails
            return reduce(lambda x, y: f"substring({x} || {y}, 1, {MOST_TEXT})", a)
        case "substring":
            return f"substring({a[0]}, {max(1, _small(args[1], 10**6))}, {max(0, _small(args[2], 10**6))})"
        case "like":
            return f"({a[0]} LIKE {a[1]})"
        case "starts_with":
            return f"starts_with({a[0]}, {a[1]})"
        case "weekday":
            return f"CAST(dayofweek({a[0]}) AS DOUBLE)"
        case "add_days":
            days = f"least(greatest({a[1]}, {number(-_MOST_DAYS)}), {number(_MOST_DAYS)})"
            whole = f"CASE WHEN isnan({a[1]}) THEN NULL ELSE TRY_CAST({days} AS INTEGER) END"
            return _in_calendar(f"({a[0]} + to_days({whole}))")
        case "to_number" | "to_boolean" | "to_text":
            kind: Kind = "number" if op == "to_number" else "boolean" if op == "to_boolean" else "text"
            return f"TRY_CAST({a[0]} AS {TYPES[kind]})"
        case "to_date":
            return _in_calendar(f"TRY_CAST({a[0]} AS TIMESTAMP)")
        case _ if op in _INFIX:
            return f"({a[0]} {_INFIX[op]} {a[1]})"
        case _ if op in _PLAIN:
            return f"{_PLAIN[op]}({a[0]})"
        case _ if op in _PARTS:
            return f"CAST({op}({a[0]}) AS DOUBLE)"
        case _:
            raise TacitError(
                "bad-expression", f"there is no operator {op!r}", fix="an operator of the reference"
            )


def _dates(op: str, args: tuple[Node, ...]) -> str:
    part = str(args[0].value).lower() if isinstance(args[0], Literal) else ""
    allowed = _TRUNC if op == "date_trunc" else _DIFF
    if part not in allowed:
        raise TacitError(
            "bad-expression",
            f"{op} does not know the part {part[:20]!r}",
            fix=f"one of: {', '.join(allowed)}",
        )
    a = [expression_sql(x) for x in args[1:]]
    if op == "date_trunc":
        return _in_calendar(f"CAST(date_trunc('{part}', {a[0]}) AS TIMESTAMP)")
    return f"CAST(date_diff('{part}', {a[0]}, {a[1]}) AS DOUBLE)"


def _small(node: Node, most: int) -> int:
    value = node.value if isinstance(node, Literal) else None
    if not isinstance(value, int | float) or value != int(value) or abs(value) > most:
        raise TacitError("bad-expression", f"a whole number of at most {most} is needed here", fix="2")
    return int(value)
