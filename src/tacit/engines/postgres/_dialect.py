"""The SQL of PostgreSQL, version 16 and later. Each operator is total, with the results of DuckDB."""

from __future__ import annotations

from functools import reduce
from hashlib import sha256
from typing import TYPE_CHECKING, ClassVar

from tacit.engines._values import MOST_TEXT, quote, string
from tacit.engines.postgres import _functions
from tacit.engines.postgres._functions import double, named
from tacit.engines.sql._dialect import STORED, Dialect, hashed_part

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.core import Kind
    from tacit.engines.sql._dialect import Part, StoredType


_NAN = "'NaN'::float8"
_ZERO = double(0)
#: The spaces that DuckDB trims: Unicode's separators.
_SPACES = "".join(map(chr, (32, 160, 5760, *range(8192, 8203), 8239, 8287, 12288)))
_TYPES: dict[Kind, str] = {"number": "float8", "text": "text", "boolean": "boolean", "date": "timestamp"}
_MAX_NAME = 63
_FEW = 8


def text_constant(text: str) -> str:
    """Quote a text constant; the engine's session reads a backslash as itself."""
    return f"{string(text)}::text"


class PostgresDialect(Dialect):
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
        if len(data) > _MAX_NAME:
            name = f"{data[:20].decode(errors='ignore')} {sha256(data).hexdigest()[:32]}"
        return quote(name)

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
                return _functions.moment_of_text(column)
            case _:
                return self.null("date")

    def _number(self, column: str, stored: StoredType | None) -> str:
        match stored:
            case "float":
                return column
            case "whole":
                return f"{column}::float8"
            case "digits":
                return _functions.number_of_digits(column)
            case "boolean":
                return f"{column}::int::float8"
            case "moment":
                return self.null("number")
            case _:
                return named(
                    lambda x: (
                        f"(CASE {x} WHEN 'true' THEN {double(1)} WHEN 'false' THEN {_ZERO} "
                        f"ELSE {_functions.number_of_text(x)} END)"
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
                number = _functions.number_of_text(column)
                is_nonzero = named(lambda n: f"(CASE WHEN {n} <> {_NAN} THEN {n} <> {_ZERO} END)", number)
                return f"coalesce({_functions.boolean_of_text(column)}, {is_nonzero})"

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
            cell = f"((floor({inside} * {scale})::bigint + 1) >> 1)"
            if halves < 1:  # the product may underflow; what is below 1 falls on 0
                cell = f"CASE WHEN abs({inside}) < {double(1)} THEN 0 ELSE {cell} END"
            return f"(CASE WHEN {x} <> {_NAN} THEN {cell} END)"

        return named(body, number)

    def even_cell(self, number: str, first: float, last: float, step: float, size: int) -> str:
        def body(x: str) -> str:
            inside = f"least(greatest({x}, {double(first)}), {double(last)})"
            y = self.op_div(self.op_sub(inside, double(first)), double(step))
            at = f"floor({y} + {double(0.5)})"
            cell = f"least(greatest({at}, {_ZERO}), {double(size - 1)})"
            return f"(CASE WHEN {x} <> {_NAN} THEN {cell}::int END)"

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

    # Operators -----------------------------------------------------------------------------------------

    def op_add(self, a: str, b: str) -> str:
        return _functions.added(a, b)

    def op_sub(self, a: str, b: str) -> str:
        return _functions.added(a, f"(-{b})")

    def op_mul(self, a: str, b: str) -> str:
        return _functions.multiplied(a, b)

    def op_div(self, a: str, b: str) -> str:
        return _functions.divided(a, b)

    def op_mod(self, a: str, b: str) -> str:
        return _functions.remainder(a, b)

    def op_neg(self, x: str) -> str:
        return f"(-{x})"

    def op_abs(self, x: str) -> str:
        return f"abs({x})"

    def op_floor(self, x: str) -> str:
        return f"floor({x})"

    def op_ceil(self, x: str) -> str:
        return f"ceil({x})"

    def op_sqrt(self, x: str) -> str:
        return named(lambda x: f"(CASE WHEN {x} >= {_ZERO} THEN sqrt({x}) END)", x)

    def op_ln(self, x: str) -> str:
        return named(lambda x: f"(CASE WHEN {x} > {_ZERO} THEN ln({x}) END)", x)

    def op_log2(self, x: str) -> str:
        return _functions.logarithm_2(x)

    def op_log10(self, x: str) -> str:
        return named(lambda x: f"(CASE WHEN {x} > {_ZERO} THEN log10({x}) END)", x)

    def op_trunc(self, x: str) -> str:
        return f"trunc({x})"

    def op_power(self, x: str, y: float) -> str:
        return _functions.power(x, y)

    def op_exp(self, x: str) -> str:
        return _functions.exponential(x)

    def op_sign(self, x: str) -> str:
        signs = ((">", 1), ("<", -1), ("=", 0))  # NaN is above 0
        whens = [f"WHEN {{0}} {sign} {_ZERO} THEN {double(value)}" for sign, value in signs]
        return named(lambda x: f"(CASE {' '.join(whens).format(x)} END)", x)

    def op_round(self, x: str, digits: int) -> str:
        return _functions.rounded(x, digits)

    def op_least(self, *numbers: str) -> str:
        return self._extreme("least", numbers)

    def op_greatest(self, *numbers: str) -> str:
        return self._extreme("greatest", numbers)

    def _extreme(self, function: str, numbers: Sequence[str]) -> str:
        """Write LEAST or GREATEST; unlike PostgreSQL's own, it is NULL if one argument is NULL or NaN."""
        missing = " OR ".join(self.is_missing(x) for x in numbers)
        return f"(CASE WHEN {missing} THEN NULL ELSE {function}({', '.join(numbers)}) END)"

    def op_clip(self, x: str, low: str, high: str) -> str:
        return named(lambda x: f"(CASE WHEN {x} <> {_NAN} THEN least(greatest({x}, {low}), {high}) END)", x)

    def op_lower(self, x: str) -> str:
        return f'(lower({x} COLLATE {self.quote(self.cases)}) COLLATE "C")'

    def op_upper(self, x: str) -> str:
        return f"(replace(upper({x} COLLATE {self.quote(self.cases)}), 'ß', 'ẞ') COLLATE \"C\")"

    def op_trim(self, x: str) -> str:
        return f"btrim({x}, '{_SPACES}')"

    def op_ltrim(self, x: str) -> str:
        return f"ltrim({x}, '{_SPACES}')"

    def op_rtrim(self, x: str) -> str:
        return f"rtrim({x}, '{_SPACES}')"

    def op_length(self, x: str) -> str:
        return f"length({x})::float8"

    def op_concat(self, *texts: str) -> str:
        return reduce(lambda a, b: f"substring({a} || {b}, 1, {MOST_TEXT})", texts)

    def op_substring(self, x: str, start: int, length: int) -> str:
        return f"substring({x}, {start}, {length})"

    def op_right(self, x: str, n: int) -> str:
        return f"right({x}, {n})"

    def op_replace(self, x: str, old: str, new: str) -> str:
        return f"replace({x}, {text_constant(old)}, {text_constant(new)})"

    def op_split_part(self, x: str, sign: str, index: int) -> str:
        if not sign:  # every character is a part
            return f"substring({x}, {index}, 1)"
        return f"split_part({x}, {text_constant(sign)}, {index})"

    def op_position(self, x: str, sign: str) -> str:
        return f"strpos({x}, {text_constant(sign)})::float8"

    def op_like(self, x: str, pattern: str) -> str:
        return f"({x} LIKE {text_constant(pattern)} ESCAPE '')"

    def op_starts_with(self, x: str, start: str) -> str:
        return f"starts_with({x}, {text_constant(start)})"

    def op_ends_with(self, x: str, end: str) -> str:
        return f"(right({x}, {len(end)}) = {self.string(end)})"

    def op_contains(self, x: str, part: str) -> str:
        return f"(strpos({x}, {text_constant(part)}) > 0)"

    def op_year(self, x: str) -> str:
        return _functions.date_part("year", x)

    def op_month(self, x: str) -> str:
        return _functions.date_part("month", x)

    def op_day(self, x: str) -> str:
        return _functions.date_part("day", x)

    def op_hour(self, x: str) -> str:
        return _functions.date_part("hour", x)

    def op_minute(self, x: str) -> str:
        return _functions.date_part("minute", x)

    def op_second(self, x: str) -> str:
        return _functions.date_part("second", x)

    def op_weekday(self, x: str) -> str:
        return _functions.date_part("dow", x)

    def op_isodow(self, x: str) -> str:
        return _functions.date_part("isodow", x)

    def op_quarter(self, x: str) -> str:
        return _functions.date_part("quarter", x)

    def op_week(self, x: str) -> str:
        return _functions.date_part("week", x)

    def op_dayofyear(self, x: str) -> str:
        return _functions.date_part("doy", x)

    def op_dayname(self, x: str) -> str:
        return _functions.formatted(x, "%A")

    def op_monthname(self, x: str) -> str:
        return _functions.formatted(x, "%B")

    def op_strftime(self, x: str, form: str) -> str:
        return _functions.formatted(x, form)

    def op_date_trunc(self, part: str, x: str) -> str:
        return _functions.truncated(part, x)

    def op_date_diff(self, part: str, first: str, second: str) -> str:
        return _functions.difference(part, first, second)

    def op_add_days(self, x: str, days: str) -> str:
        return _functions.plus_days(x, days)

    def op_add_months(self, x: str, months: int) -> str:
        return _functions.plus_months(x, months)

    def op_to_number(self, x: str, kind: Kind | None) -> str:
        match kind:
            case "number":
                return x
            case "boolean":
                return f"{x}::int::float8"
            case "text":
                return _functions.number_of_text(x)
            case _:
                return self.null("number")

    def op_to_whole(self, x: str, kind: Kind | None) -> str:
        match kind:
            case "number":
                lower, upper = double(-(2.0**63)), double(2.0**63)
                inside = "(CASE WHEN {0} >= {1} AND {0} < {2} THEN {0}::bigint::float8 END)"
                return named(lambda x: inside.format(x, lower, upper), x)
            case "boolean":
                return f"{x}::int::float8"
            case "text":
                return _functions.whole_of_text(x)
            case _:
                return self.null("number")

    def op_to_text(self, x: str, kind: Kind | None) -> str:
        return self.null("text") if kind is None else self.text(x, STORED[kind])

    def op_to_boolean(self, x: str, kind: Kind | None) -> str:
        match kind:
            case "number":
                return f"({x} <> {_ZERO})"
            case "boolean":
                return x
            case "text":
                return _functions.boolean_of_text(x)
            case _:
                return self.null("boolean")

    def op_to_date(self, x: str, kind: Kind | None) -> str:
        match kind:
            case "date":
                return x
            case "text":
                return _functions.moment_of_text(x)
            case _:
                return self.null("date")


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
