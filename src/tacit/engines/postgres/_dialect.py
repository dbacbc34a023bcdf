"""The SQL of PostgreSQL, version 16 and later."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, ClassVar

from tacit.engines._dialect import hashed_part
from tacit.engines.postgres import _readings
from tacit.engines.postgres._arithmetic import double
from tacit.engines.postgres._bindings import named
from tacit.engines.postgres._operators import PostgresOperators, text_constant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.core import Kind
    from tacit.engines._dialect import Part, StoredType

_TYPES: dict[Kind, str] = {"number": "float8", "text": "text", "boolean": "boolean", "date": "timestamp"}
_NAN = "'NaN'::float8"
_ZERO = double(0)
_LONGEST_NAME = 63
_FEW = 8


class PostgresDialect(PostgresOperators):
    """The SQL of PostgreSQL.

    Parameters
    ----------
    cases
        The collation by which letters become small or capital; every other operator compares bytes.
    """

    name: ClassVar[str] = "postgresql"

    def __init__(self, cases: str = "pg_c_utf8") -> None:
        self.cases = cases

    def settings(self) -> dict[str, str]:
        return {"cases": self.cases}

    # Names and constants ------------------------------------------------------------------------------------

    def quote(self, name: str) -> str:
        """Quote an identifier. The server would cut longer ones, so that two of them could become one."""
        data = name.encode()
        if len(data) > _LONGEST_NAME:
            name = f"{data[:20].decode(errors='ignore')} {sha256(data).hexdigest()[:32]}"
        return '"' + name.replace('"', '""') + '"'

    def string(self, text: str) -> str:
        return f'({text_constant(text)} COLLATE "C")'

    def number(self, value: float) -> str:
        return double(value)

    def moment(self, iso: str) -> str:
        return f"{text_constant(iso)}::timestamp"

    def null(self, kind: Kind | None) -> str:
        if kind is None:
            return "NULL"
        return f"NULL::{_TYPES[kind]}" + (' COLLATE "C"' if kind == "text" else "")

    # Values -------------------------------------------------------------------------------------------------

    def read(self, column: str, stored: StoredType | None, kind: Kind) -> str:
        match kind:
            case "number":
                return self._number(column, stored)
            case "text":
                return self.text(column, stored)
            case "boolean":
                return self._truth(column, stored)
            case "date" if stored == "moment":
                return column  # views and operators keep moments in the calendar
            case "date" if stored in {"text", None}:
                return _readings.moment_of_text(column)
            case _:
                return self.null("date")

    def _number(self, column: str, stored: StoredType | None) -> str:
        match stored:
            case "float":
                return column
            case "whole":
                return f"{column}::float8"
            case "digits":
                return _readings.number_of_digits(column)
            case "boolean":
                return f"{column}::int::float8"
            case "moment":
                return self.null("number")
            case _:
                return named(
                    lambda x: (
                        f"(CASE {x} WHEN 'true' THEN {double(1)} WHEN 'false' THEN {_ZERO} "
                        f"ELSE {_readings.number_of_text(x)} END)"
                    ),
                    column,
                )

    def _truth(self, column: str, stored: StoredType | None) -> str:
        match stored:
            case "boolean":
                return column
            case "whole" | "digits":
                return f"({column} <> 0)"
            case "float":
                return f"({column} <> {_ZERO})"
            case "moment":
                return self.null("boolean")
            case _:
                number = _readings.number_of_text(column)
                counted = named(lambda n: f"(CASE WHEN {n} <> {_NAN} THEN {n} <> {_ZERO} END)", number)
                return f"coalesce({_readings.boolean_of_text(column)}, {counted})"

    def text(self, value: str, stored: StoredType | None) -> str:
        match stored:
            case "text" | None:
                return value
            case "float":
                return _text_of_double(value)
            case _:
                return f'({value}::text COLLATE "C")'

    def owner_text(self, owner: str) -> str:
        return f'({owner}::text COLLATE "C")'

    def short(self, value: str, stored: StoredType | None, most: int) -> str:
        if stored not in {"text", None}:
            return value
        return f"(CASE WHEN octet_length({value}) <= {most} THEN {value} END)"

    def is_missing(self, number: str) -> str:
        return f"({number} IS NULL OR {number} = {_NAN})"

    def present(self, number: str) -> str:
        return f"NULLIF({number}, {_NAN})"

    def key(self, value: str, kind: Kind, *, missing: bool) -> str:
        if kind == "date":
            return self.text(value, "moment")
        if kind == "number":
            return f"({self.present(value) if missing else value} + {_ZERO})"
        return value

    def grid(self, number: str, first: float, last: float, halves: float) -> str:
        low, high, scale = double(first), double(last), double(halves)

        def body(x: str) -> str:
            inside = f"least(greatest({x}, {low}), {high})"
            whole = f"((floor({inside} * {scale})::bigint + 1) >> 1)"
            if halves < 1:  # the product may underflow; what is below 1 falls on 0
                whole = f"CASE WHEN abs({inside}) < {double(1)} THEN 0 ELSE {whole} END"
            return f"(CASE WHEN {x} <> {_NAN} THEN {whole} END)"

        return named(body, number)

    def even_cell(self, number: str, first: float, last: float, step: float, size: int) -> str:
        def body(x: str) -> str:
            inside = f"least(greatest({x}, {double(first)}), {double(last)})"
            y = self.op_div(self.op_sub(inside, double(first)), double(step))
            at = f"floor({y} + {double(0.5)})"
            most = f"least(greatest({at}, {_ZERO}), {double(size - 1)})"
            return f"(CASE WHEN {x} <> {_NAN} THEN {most}::int END)"

        return named(body, number)

    # Whole numbers ------------------------------------------------------------------------------------------

    def total(self, whole: str, most: int | None = None) -> str:
        del most  # sums are numerics, which hold every whole number
        return f"coalesce(sum({whole}), 0)"

    def sum_or_null(self, whole: str) -> str:
        return f"sum({whole})"

    def whole_div(self, a: str, b: str) -> str:
        return f"div(({a})::numeric, ({b})::numeric)"

    def to_double(self, whole: str) -> str:
        return f"({whole})::float8"

    def vector(self, wholes: Sequence[str]) -> str:
        return f"ARRAY[{', '.join(wholes)}]::bigint[]"

    def element(self, vector: str, index: int) -> str:
        return f"{vector}[{index + 1}]"

    def public_aggregate(self, function: str, value: str) -> str:
        if function == "median":
            return f"percentile_cont(0.5) WITHIN GROUP (ORDER BY {value})"
        return f"{function}({value})"

    def least_of(self, value: str, kind: Kind | None) -> str:
        return f"bool_and({value})" if kind == "boolean" else f"min({value})"

    # Relations ----------------------------------------------------------------------------------------------

    def ranked(self, parts: Sequence[Part]) -> str:
        """Write md5 of key, owner and own values; ``tacit_key`` holds the key and the sign after it."""
        owner = hashed_part(self.owner_text("tacit_u"), "text")
        hashed = [owner, *(hashed_part(self.text(*part), part[1]) for part in parts)]
        return f'(md5((SELECT k0 FROM tacit_key) || {_joined(hashed)}) COLLATE "C")'

    def in_sample(self, sample: int) -> str:
        named_unit = f"(SELECT k0 FROM tacit_sample) || {self.owner_text('tacit_u')}"
        digits = f"substring(encode(sha256(convert_to({named_unit}, 'UTF8')), 'hex'), 1, 8)"
        return f"{digits} COLLATE \"C\" < '{sample:08x}'"


def _joined(parts: Sequence[str]) -> str:
    """Join texts with the sign between parts; many of them in halves.

    The server keeps every text on the way until the row ends: one after the other, a row with 400 long texts
    would take 20 gigabytes.
    """
    if len(parts) <= _FEW:
        return " || '|,' || ".join(parts)
    half = len(parts) // 2
    return f"(({_joined(parts[:half])}) || '|,' || ({_joined(parts[half:])}))"


def _text_of_double(value: str) -> str:
    """Write a double as DuckDB does: whole numbers of 64 bits by their digits, others by the shortest text.

    Among the larger ones PostgreSQL's own text is longer where a text of 15 digits lies half way to the next
    double.
    """

    def body(x: str) -> str:
        digits = f"rtrim(abs({x})::numeric::text, '0')"
        fraction = f"CASE WHEN length({digits}) > 1 THEN '.' || substring({digits}, 2) ELSE '' END"
        short = f"left({digits}, 1) || {fraction} || 'e+' || length(abs({x})::numeric::text) - 1"
        return (
            f"(CASE WHEN {x} = trunc({x}) AND abs({x}) < {double(2.0**63)} THEN {x}::bigint::text "
            f"WHEN abs({x}) < {double(1e15)} THEN {x}::text "
            f"WHEN abs({x}) < {double(1e16)} THEN {x}::text::numeric::text "
            f"WHEN {x} = {_NAN} THEN 'nan' WHEN {x} = {double(float('inf'))} THEN 'inf' "
            f"WHEN {x} = {double(float('-inf'))} THEN '-inf' "
            f"WHEN abs({x}) < {double(1e300)} THEN CASE WHEN {x}::numeric::float8 = {x} "
            f"THEN CASE WHEN {x} < {_ZERO} THEN '-' ELSE '' END || {short} ELSE {x}::text END "
            f'ELSE {x}::text END COLLATE "C")'
        )

    return named(body, value)


POSTGRES = PostgresDialect()
