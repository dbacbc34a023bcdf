"""The SQL of Spark 4 with ANSI mode on: one total method for each operator, with DuckDB's results.

Constants of text double their backslashes. Whole numbers are BIGINT, and sums that public facts do not bound
are DECIMAL(38, 0). ``floor`` gives a BIGINT and raises beyond it, so that it is only used where a number is
small. ``isnan(NULL)`` is FALSE here, and ``greatest`` skips NULL: a number is asked for NULL first.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, ClassVar

from tacit.engines._values import MOST_TEXT
from tacit.engines.spark._functions import (
    boolean_of_text,
    day_names,
    diff_sql,
    in_calendar,
    moment_of_text,
    month_names,
    number_of_text,
    strftime_sql,
    string,
    text_of_number,
    trunc_sql,
    whole_of_text,
)
from tacit.engines.sql._dialect import Dialect, hashed_part

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.core import Kind
    from tacit.engines.sql._dialect import Part, StoredType


_LARGEST = "1.7976931348623157e308"
_EXACT = "4503599627370496e0"  # 2^52: from here on every double is a whole number
_MAX_DAYS = 4_000_000
#: What trim removes: every space of Unicode, as in DuckDB.
_SPACES = "".join(map(chr, (32, 160, 5760, *range(8192, 8203), 8239, 8287, 12288)))
#: Signs that may follow ESCAPE; a pattern of at most 10,000 characters lacks one of them.
_ESCAPES = [chr(code) for code in range(0xE000, 0xE000 + 10_001)]


_TYPES: dict[Kind | None, str] = {
    "number": "DOUBLE", "text": "STRING", "boolean": "BOOLEAN", "date": "TIMESTAMP_NTZ", None: "STRING",
}  # fmt: skip
_MAX_BIGINT = 2**63 - 1


class SparkDialect(Dialect):
    """Spark's SQL. The secret that orders rows and groups is the parameter ``:tacit_key``.

    Parameters
    ----------
    portable
        Whether a unit's rows are ranked as on the other engines, by md5. Spark's own hash is quicker, and
        any ranking will do: the contract tests rank alike everywhere, so that the same rows are kept.
    """

    name: ClassVar[str] = "spark"

    def __init__(self, *, portable: bool = False) -> None:
        self.portable = portable

    def quote(self, name: str) -> str:
        return "`" + name.replace("`", "``") + "`"

    def string(self, text: str) -> str:
        return string(text)

    def number(self, value: float) -> str:
        digits = repr(float(value))
        if digits in {"inf", "-inf", "nan"}:
            return f"double('{digits}')"
        digits = digits if "e" in digits else digits + "e0"
        return f"({digits})" if digits.startswith("-") else digits

    def moment(self, iso: str) -> str:
        return f"TIMESTAMP_NTZ {string(iso)}"

    def null(self, kind: Kind | None) -> str:
        return f"CAST(NULL AS {_TYPES[kind]})"

    # Values -------------------------------------------------------------------------------------------------

    def read(self, column: str, stored: StoredType | None, kind: Kind) -> str:
        match kind, stored:
            case "number", "text":
                truth = f"CASE {column} WHEN 'true' THEN 1e0 WHEN 'false' THEN 0e0 END"
                return f"coalesce({number_of_text(column)}, {truth})"
            case "boolean", "text":
                number = number_of_text(column)
                is_nonzero = f"CASE WHEN NOT isnan({number}) THEN {number} <> 0e0 END"
                return f"coalesce({boolean_of_text(column)}, {is_nonzero})"
            case "text", _:
                return self.text(column, stored)
            case _:
                return self._cast(column, stored, kind)

    def _cast(self, x: str, stored: StoredType | None, kind: Kind) -> str:
        """Write what TRY_CAST gives in DuckDB."""
        match kind, stored or "text":
            case ("number", "float") | ("boolean", "boolean") | ("date", "moment"):
                return x
            case "number", "whole" | "boolean" | "digits":
                return f"CAST({x} AS DOUBLE)"
            case "number", "text":
                return number_of_text(x)
            case "boolean", "whole":
                return f"({x} <> 0L)"
            case "boolean", "float":
                return f"({x} <> 0e0)"
            case "boolean", "digits":
                return f"(CAST({x} AS DOUBLE) <> 0e0)"
            case "boolean", "text":
                return boolean_of_text(x)
            case "date", "text":
                return moment_of_text(x)
            case _:
                return self.null(kind)

    def text(self, value: str, stored: StoredType | None) -> str:
        match stored:
            case "text" | "digits":
                return value
            case "float":
                return text_of_number(value)
            case _:
                return f"CAST({value} AS STRING)"

    def owner_text(self, owner: str) -> str:
        return f"CAST({owner} AS STRING)"

    def short(self, value: str, stored: StoredType | None, most: int) -> str:
        return f"CASE WHEN octet_length({value}) <= {most} THEN {value} END" if stored == "text" else value

    def is_missing(self, number: str) -> str:
        return f"({number} IS NULL OR isnan({number}))"

    def present(self, number: str) -> str:
        return f"(CASE WHEN NOT isnan({number}) THEN {number} END)"

    def key(self, value: str, kind: Kind, *, missing: bool) -> str:
        if kind == "date":
            return f"CAST({value} AS STRING)"
        if kind != "number":
            return value
        return f"(CASE WHEN NOT isnan({value}) THEN {value} + 0e0 END)" if missing else f"({value} + 0e0)"

    def grid(self, number: str, first: float, last: float, halves: float) -> str:
        inside = f"least(greatest({number}, {self.number(first)}), {self.number(last)})"
        half_steps = f"floor({inside} * {self.number(halves)})"
        return f"(CASE WHEN NOT {self.is_missing(number)} THEN shiftright({half_steps} + 1L, 1) END)"

    def even_cell(self, number: str, first: float, last: float, step: float, size: int) -> str:
        inside = f"least(greatest({number}, {self.number(first)}), {self.number(last)})"
        at = f"floor(({inside} - {self.number(first)}) / {self.number(step)} + 0.5e0)"
        cell = f"least(greatest({at}, 0L), {size - 1}L)"
        return f"(CASE WHEN NOT {self.is_missing(number)} THEN {cell} END)"

    # Whole numbers ------------------------------------------------------------------------------------------

    def total(self, whole: str, most: int | None = None) -> str:
        if most is not None and most <= _MAX_BIGINT:
            return f"coalesce(sum(CAST({whole} AS BIGINT)), 0L)"
        return f"coalesce({self.sum_or_null(whole)}, CAST(0 AS DECIMAL(38, 0)))"

    def sum_or_null(self, whole: str) -> str:
        return f"sum(CAST({whole} AS DECIMAL(38, 0)))"

    def whole_div(self, a: str, b: str) -> str:
        decimal = f"CAST({a} AS DECIMAL(38, 0))"
        return f"CAST(({decimal} - {decimal} % {b}) / {b} AS DECIMAL(38, 0))"

    def to_double(self, whole: str) -> str:
        return f"CAST({whole} AS DOUBLE)"

    def vector(self, wholes: Sequence[str]) -> str:
        return f"array({', '.join(wholes)})"

    def element(self, vector: str, index: int) -> str:
        return f"{vector}[{index}]"

    def least_of(self, value: str, kind: Kind | None) -> str:
        del kind
        return f"min({value})"

    # Relations ----------------------------------------------------------------------------------------------

    def ranked(self, parts: Sequence[Part]) -> str:
        if self.portable:
            return self.ranked_alike(parts)
        return f"xxhash64({', '.join([':tacit_key', 'tacit_u', *(value for value, _ in parts)])})"

    def ranked_alike(self, parts: Sequence[Part]) -> str:
        """Write the keyed order of the other engines: md5 of key, owner and own values."""
        owner = hashed_part(self.owner_text("tacit_u"), "text")
        hashed = [owner, *(hashed_part(self.text(*part), part[1]) for part in parts)]
        return f"md5(CAST(concat_ws('|,', :tacit_key, {', '.join(hashed)}) AS BINARY))"

    def in_sample(self, sample: int) -> str:
        sampled = f"concat(:tacit_sample, {self.owner_text('tacit_u')})"
        return f"substring(sha2(CAST({sampled} AS BINARY), 256), 1, 8) < '{sample:08x}'"

    def semi(self, rows: str, table: str, columns: Sequence[str], *, missing: bool) -> str:
        return (
            f"SELECT r.* FROM ({rows}) r LEFT SEMI JOIN {table} s ON {self._same(columns, missing=missing)}"
        )

    def gathered(self, rows: str) -> str:
        return f"SELECT * FROM ({rows}) DISTRIBUTE BY tacit_u"

    def _same(self, columns: Sequence[str], *, missing: bool) -> str:
        sign = "<=>" if missing else "="
        return " AND ".join(f"r.{c} {sign} s.{c}" for c in columns)

    # Casts --------------------------------------------------------------------------------------------------

    def op_to_number(self, x: str, kind: Kind | None) -> str:
        return self._cast(x, _STORED[kind], "number")

    def op_to_whole(self, x: str, kind: Kind | None) -> str:
        match kind:
            case "number":
                small = f"{x} >= -9223372036854775808e0 AND {x} < 9223372036854775808e0"
                return f"(CASE WHEN {small} THEN rint({x}) + 0e0 END)"
            case "text" | None:
                return whole_of_text(x)
            case _:
                return self._cast(x, _STORED[kind], "number")

    def op_to_text(self, x: str, kind: Kind | None) -> str:
        return self.text(x, _STORED[kind])

    def op_to_boolean(self, x: str, kind: Kind | None) -> str:
        return self._cast(x, _STORED[kind], "boolean")

    def op_to_date(self, x: str, kind: Kind | None) -> str:
        return self._cast(x, _STORED[kind], "date")

    # Numbers ------------------------------------------------------------------------------------------------

    def op_add(self, a: str, b: str) -> str:
        return f"({a} + {b})"

    def op_sub(self, a: str, b: str) -> str:
        return f"({a} - {b})"

    def op_mul(self, a: str, b: str) -> str:
        return f"({a} * {b})"

    def op_div(self, a: str, b: str) -> str:
        return f"({a} / nullif({b}, 0e0))"

    def op_mod(self, a: str, b: str) -> str:
        return f"({a} % nullif({b}, 0e0))"

    def op_neg(self, x: str) -> str:
        return f"(-{x})"

    def op_abs(self, x: str) -> str:
        return f"abs({x})"

    def op_floor(self, x: str) -> str:
        return f"(CASE WHEN abs({x}) < {_EXACT} THEN CAST(floor({x}) AS DOUBLE) ELSE {x} END)"

    def op_ceil(self, x: str) -> str:
        return f"(CASE WHEN abs({x}) < {_EXACT} THEN CAST(ceil({x}) AS DOUBLE) ELSE {x} END)"

    def op_trunc(self, x: str) -> str:
        return f"(CASE WHEN abs({x}) < {_EXACT} THEN CAST(CAST({x} AS BIGINT) AS DOUBLE) ELSE {x} END)"

    def op_sqrt(self, x: str) -> str:
        return f"(CASE WHEN {x} >= 0e0 THEN sqrt({x}) END)"

    def op_ln(self, x: str) -> str:
        return f"(CASE WHEN {x} > 0e0 THEN ln({x}) END)"

    def op_log2(self, x: str) -> str:
        return f"(CASE WHEN {x} > 0e0 THEN log2({x}) END)"

    def op_log10(self, x: str) -> str:
        return f"(CASE WHEN {x} > 0e0 THEN log10({x}) END)"

    def op_power(self, x: str, y: float) -> str:
        power = f"pow({x}, {self.number(y)})"
        return f"(CASE WHEN abs({power}) <= {_LARGEST} THEN {power} END)"

    def op_exp(self, x: str) -> str:
        return f"(CASE WHEN {x} <= 709e0 THEN exp({x}) END)"

    def op_sign(self, x: str) -> str:
        return f"(CASE WHEN {x} > 0e0 THEN 1e0 WHEN {x} < 0e0 THEN -1e0 WHEN {x} = 0e0 THEN 0e0 END)"

    def op_round(self, x: str, digits: int) -> str:
        """Write round(x 10^n) / 10^n. ``round(y, 0)`` takes halves away from 0, exactly."""
        ten = self.number(10.0 ** abs(digits))
        rounded = f"(round({x} * {ten}, 0) / {ten})" if digits >= 0 else f"(round({x} / {ten}, 0) * {ten})"
        return f"(CASE WHEN abs({rounded}) <= {_LARGEST} THEN {rounded} ELSE {x} END)"

    def op_least(self, *numbers: str) -> str:
        return self._extreme("least", numbers)

    def op_greatest(self, *numbers: str) -> str:
        return self._extreme("greatest", numbers)

    def _extreme(self, function: str, numbers: Sequence[str]) -> str:
        missing = " OR ".join(map(self.is_missing, numbers))
        extreme = numbers[0] if len(numbers) == 1 else f"{function}({', '.join(numbers)})"
        return f"(CASE WHEN NOT ({missing}) THEN {extreme} END)"

    def op_clip(self, x: str, low: str, high: str) -> str:
        return f"(CASE WHEN NOT {self.is_missing(x)} THEN least(greatest({x}, {low}), {high}) END)"

    # Texts --------------------------------------------------------------------------------------------------

    def op_lower(self, x: str) -> str:
        return f"lower({x})"

    def op_upper(self, x: str) -> str:
        return f"upper({x})"

    def op_trim(self, x: str) -> str:
        return f"trim(BOTH '{_SPACES}' FROM {x})"

    def op_ltrim(self, x: str) -> str:
        return f"trim(LEADING '{_SPACES}' FROM {x})"

    def op_rtrim(self, x: str) -> str:
        return f"trim(TRAILING '{_SPACES}' FROM {x})"

    def op_length(self, x: str) -> str:
        return f"CAST(length({x}) AS DOUBLE)"

    def op_concat(self, *texts: str) -> str:
        return reduce(lambda a, b: f"substring(concat({a}, {b}), 1, {MOST_TEXT})", texts)

    def op_substring(self, x: str, start: int, length: int) -> str:
        return f"substring({x}, {start}, {length})"

    def op_right(self, x: str, n: int) -> str:
        return f"right({x}, {n})"

    def op_replace(self, x: str, old: str, new: str) -> str:
        return f"replace({x}, {string(old)}, {string(new)})"

    def op_split_part(self, x: str, sign: str, index: int) -> str:
        if not sign:
            return f"substring({x}, {index}, 1)"  # DuckDB's parts are then the characters
        return f"split_part({x}, {string(sign)}, {index})"

    def op_position(self, x: str, sign: str) -> str:
        return f"CAST(instr({x}, {string(sign)}) AS DOUBLE)"

    def op_like(self, x: str, pattern: str) -> str:
        escape = next(sign for sign in _ESCAPES if sign not in pattern)
        return f"({x} LIKE {string(pattern)} ESCAPE '{escape}')"

    def op_starts_with(self, x: str, start: str) -> str:
        return f"startswith({x}, {string(start)})"

    def op_ends_with(self, x: str, end: str) -> str:
        return f"endswith({x}, {string(end)})"

    def op_contains(self, x: str, part: str) -> str:
        return f"contains({x}, {string(part)})"

    # Dates --------------------------------------------------------------------------------------------------

    def op_year(self, x: str) -> str:
        return f"CAST(year({x}) AS DOUBLE)"

    def op_month(self, x: str) -> str:
        return f"CAST(month({x}) AS DOUBLE)"

    def op_day(self, x: str) -> str:
        return f"CAST(day({x}) AS DOUBLE)"

    def op_hour(self, x: str) -> str:
        return f"CAST(hour({x}) AS DOUBLE)"

    def op_minute(self, x: str) -> str:
        return f"CAST(minute({x}) AS DOUBLE)"

    def op_second(self, x: str) -> str:
        return f"CAST(second({x}) AS DOUBLE)"

    def op_weekday(self, x: str) -> str:
        return f"CAST(dayofweek({x}) - 1 AS DOUBLE)"

    def op_isodow(self, x: str) -> str:
        return f"CAST(weekday({x}) + 1 AS DOUBLE)"

    def op_quarter(self, x: str) -> str:
        return f"CAST(quarter({x}) AS DOUBLE)"

    def op_week(self, x: str) -> str:
        return f"CAST(weekofyear({x}) AS DOUBLE)"

    def op_dayofyear(self, x: str) -> str:
        return f"CAST(dayofyear({x}) AS DOUBLE)"

    def op_dayname(self, x: str) -> str:
        return day_names(x)

    def op_monthname(self, x: str) -> str:
        return month_names(x)

    def op_strftime(self, x: str, form: str) -> str:
        return strftime_sql(x, form)

    def op_date_trunc(self, part: str, x: str) -> str:
        return trunc_sql(part, x)

    def op_date_diff(self, part: str, first: str, second: str) -> str:
        return diff_sql(part, first, second)

    def op_add_days(self, x: str, days: str) -> str:
        inside = f"least(greatest({days}, {self.number(-_MAX_DAYS)}), {self.number(_MAX_DAYS)})"
        count = f"CASE WHEN NOT {self.is_missing(days)} THEN CAST(rint({inside}) AS INT) END"
        return in_calendar(f"timestampadd(DAY, {count}, {x})")

    def op_add_months(self, x: str, months: int) -> str:
        return in_calendar(f"timestampadd(MONTH, {months}, {x})")


_STORED: dict[Kind | None, StoredType] = {
    "number": "float", "text": "text", "boolean": "boolean", "date": "moment", None: "text",
}  # fmt: skip

#: Made when this module is read: Python refuses a dialect that lacks an operator.
SPARK = SparkDialect()
PORTABLE_SPARK = SparkDialect(portable=True)
