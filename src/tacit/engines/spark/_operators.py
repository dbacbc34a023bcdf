"""The operators of expressions in the SQL of Spark: each is total, with the results of DuckDB."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from tacit.engines._dialect import Dialect
from tacit.engines._values import MOST_TEXT
from tacit.engines.spark._calendar import (
    day_names,
    diff_sql,
    in_calendar,
    month_names,
    strftime_sql,
    trunc_sql,
)
from tacit.engines.spark._texts import string

if TYPE_CHECKING:
    from collections.abc import Sequence

_LARGEST = "1.7976931348623157e308"
_EXACT = "4503599627370496e0"  # 2^52: from here on every double is a whole number
_MOST_DAYS = 4_000_000
#: What trim removes: every space of Unicode, as in DuckDB.
_SPACES = "".join(map(chr, (32, 160, 5760, *range(8192, 8203), 8239, 8287, 12288)))
#: Signs that may follow ESCAPE; a pattern of at most 10,000 characters lacks one of them.
_ESCAPES = [chr(code) for code in range(0xE000, 0xE000 + 10_001)]


class SparkOperators(Dialect):
    """The operators of Spark on numbers, texts and dates; `SparkDialect` adds names, values and relations."""

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
        found = numbers[0] if len(numbers) == 1 else f"{function}({', '.join(numbers)})"
        return f"(CASE WHEN NOT ({missing}) THEN {found} END)"

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
        inside = f"least(greatest({days}, {self.number(-_MOST_DAYS)}), {self.number(_MOST_DAYS)})"
        whole = f"CASE WHEN NOT {self.is_missing(days)} THEN CAST(rint({inside}) AS INT) END"
        return in_calendar(f"timestampadd(DAY, {whole}, {x})")

    def op_add_months(self, x: str, months: int) -> str:
        return in_calendar(f"timestampadd(MONTH, {months}, {x})")
