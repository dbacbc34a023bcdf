"""The operators of expressions in the SQL of PostgreSQL: each is total, with the results of DuckDB."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from tacit.engines._dialect import STORED, Dialect
from tacit.engines._values import MOST_TEXT
from tacit.engines.postgres import _arithmetic, _calendar, _readings
from tacit.engines.postgres._arithmetic import double
from tacit.engines.postgres._bindings import named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.core import Kind

_NAN = "'NaN'::float8"
_ZERO = double(0)
#: The spaces that DuckDB trims: Unicode's separators.
_SPACES = "".join(map(chr, (32, 160, 5760, *range(8192, 8203), 8239, 8287, 12288)))


class PostgresOperators(Dialect):
    """The operators of PostgreSQL; `PostgresDialect` adds names, values and relations.

    ``cases`` is the collation by which letters become small or capital.
    """

    cases: str

    def op_add(self, a: str, b: str) -> str:
        return _arithmetic.added(a, b)

    def op_sub(self, a: str, b: str) -> str:
        return _arithmetic.added(a, f"(-{b})")

    def op_mul(self, a: str, b: str) -> str:
        return _arithmetic.multiplied(a, b)

    def op_div(self, a: str, b: str) -> str:
        return _arithmetic.divided(a, b)

    def op_mod(self, a: str, b: str) -> str:
        return _arithmetic.remainder(a, b)

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
        return _arithmetic.logarithm_2(x)

    def op_log10(self, x: str) -> str:
        return named(lambda x: f"(CASE WHEN {x} > {_ZERO} THEN log10({x}) END)", x)

    def op_trunc(self, x: str) -> str:
        return f"trunc({x})"

    def op_power(self, x: str, y: float) -> str:
        return _arithmetic.power(x, y)

    def op_exp(self, x: str) -> str:
        return _arithmetic.exponential(x)

    def op_sign(self, x: str) -> str:
        signs = ((">", 1), ("<", -1), ("=", 0))  # NaN is above 0
        whens = [f"WHEN {{0}} {sign} {_ZERO} THEN {double(value)}" for sign, value in signs]
        return named(lambda x: f"(CASE {' '.join(whens).format(x)} END)", x)

    def op_round(self, x: str, digits: int) -> str:
        return _arithmetic.rounded(x, digits)

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
        return _calendar.date_part("year", x)

    def op_month(self, x: str) -> str:
        return _calendar.date_part("month", x)

    def op_day(self, x: str) -> str:
        return _calendar.date_part("day", x)

    def op_hour(self, x: str) -> str:
        return _calendar.date_part("hour", x)

    def op_minute(self, x: str) -> str:
        return _calendar.date_part("minute", x)

    def op_second(self, x: str) -> str:
        return _calendar.date_part("second", x)

    def op_weekday(self, x: str) -> str:
        return _calendar.date_part("dow", x)

    def op_isodow(self, x: str) -> str:
        return _calendar.date_part("isodow", x)

    def op_quarter(self, x: str) -> str:
        return _calendar.date_part("quarter", x)

    def op_week(self, x: str) -> str:
        return _calendar.date_part("week", x)

    def op_dayofyear(self, x: str) -> str:
        return _calendar.date_part("doy", x)

    def op_dayname(self, x: str) -> str:
        return _calendar.formatted(x, "%A")

    def op_monthname(self, x: str) -> str:
        return _calendar.formatted(x, "%B")

    def op_strftime(self, x: str, form: str) -> str:
        return _calendar.formatted(x, form)

    def op_date_trunc(self, part: str, x: str) -> str:
        return _calendar.truncated(part, x)

    def op_date_diff(self, part: str, first: str, second: str) -> str:
        return _calendar.difference(part, first, second)

    def op_add_days(self, x: str, days: str) -> str:
        return _calendar.plus_days(x, days)

    def op_add_months(self, x: str, months: int) -> str:
        return _calendar.plus_months(x, months)

    def op_to_number(self, x: str, kind: Kind | None) -> str:
        match kind:
            case "number":
                return x
            case "boolean":
                return f"{x}::int::float8"
            case "text":
                return _readings.number_of_text(x)
            case _:
                return self.null("number")

    def op_to_whole(self, x: str, kind: Kind | None) -> str:
        match kind:
            case "number":
                least, most = double(-(2.0**63)), double(2.0**63)
                inside = "(CASE WHEN {0} >= {1} AND {0} < {2} THEN {0}::bigint::float8 END)"
                return named(lambda x: inside.format(x, least, most), x)
            case "boolean":
                return f"{x}::int::float8"
            case "text":
                return _readings.whole_of_text(x)
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
                return _readings.boolean_of_text(x)
            case _:
                return self.null("boolean")

    def op_to_date(self, x: str, kind: Kind | None) -> str:
        match kind:
            case "date":
                return x
            case "text":
                return _readings.moment_of_text(x)
            case _:
                return self.null("date")


def text_constant(text: str) -> str:
    """Quote a text constant; the engine's session reads a backslash as itself."""
    return "'" + text.replace("'", "''") + "'::text"
