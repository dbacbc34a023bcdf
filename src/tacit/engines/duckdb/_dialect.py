"""The SQL of DuckDB. The other dialects give the same results, value by value."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, ClassVar

from tacit.engines._values import MOST_TEXT, quote, string
from tacit.engines.sql._dialect import Dialect, hashed_part

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.core import Kind
    from tacit.engines.sql._dialect import Part, StoredType

#: The engine defines these functions: a value that cannot be read as a kind is NULL.
_READINGS: dict[Kind, str] = {"number": "tacit_number", "text": "tacit_text", "boolean": "tacit_truth"}
#: Dates outside these years are NULL: inside, no date function of any engine leaves its range.
_FIRST, _LAST = "TIMESTAMP '0001-01-01'", "TIMESTAMP '9999-12-31 23:59:59.999999'"
_MAX_DAYS = 4_000_000


def _in_calendar(moment: str) -> str:
    return f"CASE WHEN {moment} BETWEEN {_FIRST} AND {_LAST} THEN {moment} END"


class DuckDBDialect(Dialect):
    """The SQL of DuckDB.

    Parameters
    ----------
    portable
        Whether a unit's rows are ranked as on the other engines, by md5. DuckDB's own hash is quicker, and
        any ranking will do: the contract tests rank alike everywhere, so that the same rows are kept.
    """

    name: ClassVar[str] = "duckdb"

    def __init__(self, *, portable: bool = False) -> None:
        self.portable = portable

    quote = staticmethod(quote)
    string = staticmethod(string)

    def number(self, value: float) -> str:
        digits = repr(float(value))
        digits = digits if "e" in digits else digits + "e0"
        return f"({digits})" if digits.startswith("-") else digits

    def moment(self, iso: str) -> str:
        return f"TIMESTAMP {string(iso)}"

    def null(self, kind: Kind | None) -> str:
        del kind
        return "NULL"

    def read(self, column: str, stored: StoredType | None, kind: Kind) -> str:
        del stored  # the macros look at the type themselves
        if kind == "date":
            return _in_calendar(f"TRY_CAST({column} AS TIMESTAMP)")
        return f"{_READINGS[kind]}({column})"

    def text(self, value: str, stored: StoredType | None) -> str:
        del stored
        return f"tacit_text({value})"

    def distinct_text(self, value: str, stored: StoredType) -> str:
        return self.text(value, stored) if self.portable else f"CAST({value} AS VARCHAR)"

    def owner_text(self, owner: str) -> str:
        return f"CAST({owner} AS VARCHAR)"

    def short(self, value: str, stored: StoredType | None, most: int) -> str:
        del stored
        return f"tacit_short({value}, {most})"

    def is_missing(self, number: str) -> str:
        return f"({number} IS NULL OR isnan({number}))"

    def present(self, number: str) -> str:
        return f"CASE WHEN NOT isnan({number}) THEN {number} END"

    def key(self, value: str, kind: Kind, *, missing: bool) -> str:
        if kind == "date":
            return f"CAST({value} AS VARCHAR)"
        if kind == "number" and missing:
            return f"(CASE WHEN NOT isnan({value}) THEN {value} + 0e0 END)"
        return f"({value} + 0e0)" if kind == "number" else value

    def grid(self, number: str, first: float, last: float, halves: float) -> str:
        return f"tacit_grid({number}, {', '.join(self.number(x) for x in (first, last, halves))})"

    def even_cell(self, number: str, first: float, last: float, step: float, size: int) -> str:
        inside = f"least(greatest({number}, {self.number(first)}), {self.number(last)})"
        y = f"({inside} - {self.number(first)}) / {self.number(step)}"
        at = f"TRY_CAST(floor({y} + 0.5e0) AS INTEGER)"
        return f"(CASE WHEN NOT isnan({number}) THEN least(greatest({at}, 0), {size - 1}) END)"

    def total(self, whole: str, most: int | None = None) -> str:
        del most  # sums of whole numbers have 128 bits
        return f"coalesce(sum({whole}), 0)"

    def sum_or_null(self, whole: str) -> str:
        return f"sum({whole})"

    def whole_div(self, a: str, b: str) -> str:
        return f"({a} // {b})"

    def to_double(self, whole: str) -> str:
        return f"CAST({whole} AS DOUBLE)"

    def vector(self, wholes: Sequence[str]) -> str:
        return f"[{', '.join(wholes)}]"

    def element(self, vector: str, index: int) -> str:
        return f"{vector}[{index + 1}]"

    def least_of(self, value: str, kind: Kind | None) -> str:
        del kind
        return f"min({value})"

    def ranked(self, parts: Sequence[Part]) -> str:
        if self.portable:
            return self.ranked_alike(parts)
        plain = (x if stored in {"text", "whole"} else f"CAST({x} AS VARCHAR)" for x, stored in parts)
        return f"hash(tacit_key(), CAST(tacit_u AS VARCHAR), {', '.join(plain)})"

    def ranked_alike(self, parts: Sequence[Part]) -> str:
        """Write the keyed order of the other engines: md5 of key, owner and own values."""
        texts = ["CAST(tacit_key() AS VARCHAR)", self.owner_text("tacit_u"), *(self.text(*p) for p in parts)]
        return "md5(" + " || '|,' || ".join(hashed_part(text, "text") for text in texts) + ")"

    def cell(self, keys: Sequence[Part], digits: int) -> str:
        if self.portable:
            return super().cell(keys, digits)
        return f"CAST(hash({', '.join(key for key, _ in keys)}) % {16**digits} AS VARCHAR)"

    def in_sample(self, sample: int) -> str:
        sampled = "(SELECT k0 FROM tacit_sample) || CAST(tacit_u AS VARCHAR)"
        return f"substring(sha256({sampled}), 1, 8) < '{sample:08x}'"

    def semi(self, rows: str, table: str, columns: Sequence[str], *, missing: bool) -> str:
        return f"SELECT * FROM ({rows}) AS r SEMI JOIN {table} AS s {self._on(columns, missing=missing)}"

    def _on(self, columns: Sequence[str], *, missing: bool) -> str:
        return f"ON {self._same(columns, missing=True)}" if missing else f"USING ({', '.join(columns)})"

    def order(self, columns: Sequence[str]) -> str:
        return ", ".join(columns)  # missing values come last in every connection of the engine

    def twins(self, rows: str, same: Sequence[str], name: str) -> str:
        return f"SELECT *, row_number() OVER (PARTITION BY {', '.join(same)}) AS {name} FROM ({rows})"

    def first_rows(
        self, rows: str, columns: Sequence[str], partition: Sequence[str], order: str, n: int
    ) -> str:
        return (
            f"SELECT {', '.join(columns)} FROM ({rows}) QUALIFY row_number() OVER "
            f"(PARTITION BY {', '.join(partition)} ORDER BY {order}) <= {n}"
        )

    def first_groups(
        self, rows: str, columns: Sequence[str], keys: Sequence[Part], n: int, *, missing: bool
    ) -> str:
        """Keep the rows of each unit's first n groups. Only units that exceed the limit are ranked."""
        del columns
        names = [k for k, _ in keys]
        ks = ", ".join(names)
        pairs = f"SELECT DISTINCT tacit_u, {ks} FROM ({rows})"
        heavy = f"SELECT tacit_u FROM ({pairs}) GROUP BY tacit_u HAVING count(*) > {n}"
        beyond = (
            f"SELECT tacit_u, {ks} FROM ({pairs}) SEMI JOIN ({heavy}) USING (tacit_u) "
            f"QUALIFY row_number() OVER (PARTITION BY tacit_u ORDER BY {self.ranked(keys)}, {ks}) > {n}"
        )
        on = self._on(["tacit_u", *names], missing=missing)
        return f"SELECT * FROM ({rows}) AS r ANTI JOIN ({beyond}) AS s {on}"

    def first_pairs(self, pairs: str, columns: Sequence[str], keys: Sequence[Part], n: int) -> str:
        """Keep each unit's first n pairs. Only units that exceed the limit are ranked."""
        del columns
        order = f"{self.ranked(keys)}, {', '.join(k for k, _ in keys)}"
        return (
            f"WITH tacit_p AS MATERIALIZED ({pairs}), "
            f"tacit_heavy AS (SELECT tacit_u FROM tacit_p GROUP BY tacit_u HAVING count(*) > {n}) "
            "SELECT * FROM tacit_p ANTI JOIN tacit_heavy USING (tacit_u) "
            "UNION ALL SELECT * FROM tacit_p SEMI JOIN tacit_heavy USING (tacit_u) "
            f"QUALIFY row_number() OVER (PARTITION BY tacit_u ORDER BY {order}) <= {n}"
        )

    def op_add(self, a: str, b: str) -> str:
        return f"({a} + {b})"

    def op_sub(self, a: str, b: str) -> str:
        return f"({a} - {b})"

    def op_mul(self, a: str, b: str) -> str:
        return f"({a} * {b})"

    def op_div(self, a: str, b: str) -> str:
        return f"({a} / NULLIF({b}, 0e0))"

    def op_mod(self, a: str, b: str) -> str:
        return f"({a} % NULLIF({b}, 0e0))"

    def op_neg(self, x: str) -> str:
        return f"(-{x})"

    def op_abs(self, x: str) -> str:
        return f"abs({x})"

    def op_floor(self, x: str) -> str:
        return f"floor({x})"

    def op_ceil(self, x: str) -> str:
        return f"ceil({x})"

    def op_sqrt(self, x: str) -> str:
        return f"(CASE WHEN {x} >= 0e0 THEN sqrt({x}) END)"

    def op_ln(self, x: str) -> str:
        return f"(CASE WHEN {x} > 0e0 THEN ln({x}) END)"

    def op_log2(self, x: str) -> str:
        return f"(CASE WHEN {x} > 0e0 THEN log2({x}) END)"

    def op_log10(self, x: str) -> str:
        return f"(CASE WHEN {x} > 0e0 THEN log10({x}) END)"

    def op_trunc(self, x: str) -> str:
        return f"trunc({x})"

    def op_power(self, x: str, y: float) -> str:
        return f"(CASE WHEN isfinite(pow({x}, {self.number(y)})) THEN pow({x}, {self.number(y)}) END)"

    def op_exp(self, x: str) -> str:
        return f"(CASE WHEN {x} <= 709e0 THEN exp({x}) END)"

    def op_sign(self, x: str) -> str:
        return f"(CASE WHEN {x} > 0e0 THEN 1e0 WHEN {x} < 0e0 THEN -1e0 WHEN {x} = 0e0 THEN 0e0 END)"

    def op_round(self, x: str, digits: int) -> str:
        return f"round({x}, {digits})"

    def op_least(self, *numbers: str) -> str:
        return self._extreme("least", numbers)

    def op_greatest(self, *numbers: str) -> str:
        return self._extreme("greatest", numbers)

    def op_clip(self, x: str, low: str, high: str) -> str:
        return f"(CASE WHEN NOT isnan({x}) THEN least(greatest({x}, {low}), {high}) END)"

    def op_lower(self, x: str) -> str:
        return f"lower({x})"

    def op_upper(self, x: str) -> str:
        return f"upper({x})"

    def op_trim(self, x: str) -> str:
        return f"trim({x})"

    def op_ltrim(self, x: str) -> str:
        return f"ltrim({x})"

    def op_rtrim(self, x: str) -> str:
        return f"rtrim({x})"

    def op_length(self, x: str) -> str:
        return f"CAST(length({x}) AS DOUBLE)"

    def op_concat(self, *texts: str) -> str:
        return reduce(lambda a, b: f"substring({a} || {b}, 1, {MOST_TEXT})", texts)

    def op_substring(self, x: str, start: int, length: int) -> str:
        return f"substring({x}, {start}, {length})"

    def op_right(self, x: str, n: int) -> str:
        return f"right({x}, {n})"

    def op_replace(self, x: str, old: str, new: str) -> str:
        return f"replace({x}, {string(old)}, {string(new)})"

    def op_split_part(self, x: str, sign: str, index: int) -> str:
        # DuckDB 2.0.0 cannot compare a bare split_part with a constant where it knows that every x is missing
        return f"substring(split_part({x}, {string(sign)}, {index}), 1, {MOST_TEXT})"

    def op_position(self, x: str, sign: str) -> str:
        return f"CAST(strpos({x}, {string(sign)}) AS DOUBLE)"

    def op_like(self, x: str, pattern: str) -> str:
        return f"({x} LIKE {string(pattern)})"

    def op_starts_with(self, x: str, start: str) -> str:
        return f"starts_with({x}, {string(start)})"

    def op_ends_with(self, x: str, end: str) -> str:
        return f"ends_with({x}, {string(end)})"

    def op_contains(self, x: str, part: str) -> str:
        return f"contains({x}, {string(part)})"

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
        return f"CAST(dayofweek({x}) AS DOUBLE)"

    def op_isodow(self, x: str) -> str:
        return f"CAST(isodow({x}) AS DOUBLE)"

    def op_quarter(self, x: str) -> str:
        return f"CAST(quarter({x}) AS DOUBLE)"

    def op_week(self, x: str) -> str:
        return f"CAST(week({x}) AS DOUBLE)"

    def op_dayofyear(self, x: str) -> str:
        return f"CAST(dayofyear({x}) AS DOUBLE)"

    def op_dayname(self, x: str) -> str:
        return f"dayname({x})"

    def op_monthname(self, x: str) -> str:
        return f"monthname({x})"

    def op_strftime(self, x: str, form: str) -> str:
        return f"strftime({x}, {string(form)})"

    def op_date_trunc(self, part: str, x: str) -> str:
        return _in_calendar(f"CAST(date_trunc('{part}', {x}) AS TIMESTAMP)")

    def op_date_diff(self, part: str, first: str, second: str) -> str:
        return f"CAST(date_diff('{part}', {first}, {second}) AS DOUBLE)"

    def op_add_days(self, x: str, days: str) -> str:
        inside = f"least(greatest({days}, {self.number(-_MAX_DAYS)}), {self.number(_MAX_DAYS)})"
        count = f"CASE WHEN isnan({days}) THEN NULL ELSE TRY_CAST({inside} AS INTEGER) END"
        return _in_calendar(f"({x} + to_days({count}))")

    def op_add_months(self, x: str, months: int) -> str:
        return _in_calendar(f"({x} + to_months({months}))")

    def op_to_number(self, x: str, kind: Kind | None) -> str:
        del kind
        return f"TRY_CAST({x} AS DOUBLE)"

    def op_to_whole(self, x: str, kind: Kind | None) -> str:
        del kind
        return f"CAST(TRY_CAST({x} AS BIGINT) AS DOUBLE)"

    def op_to_text(self, x: str, kind: Kind | None) -> str:
        del kind
        return f"tacit_text({x})"

    def op_to_boolean(self, x: str, kind: Kind | None) -> str:
        del kind
        return f"TRY_CAST({x} AS BOOLEAN)"

    def op_to_date(self, x: str, kind: Kind | None) -> str:
        del kind
        return _in_calendar(f"TRY_CAST({x} AS TIMESTAMP)")

    def _extreme(self, function: str, numbers: Sequence[str]) -> str:
        """Write LEAST or GREATEST; unlike DuckDB's own, it is NULL if one argument is NULL or NaN."""
        missing = " OR ".join(f"{x} IS NULL OR isnan({x})" for x in numbers)
        return f"(CASE WHEN {missing} THEN NULL ELSE {function}({', '.join(numbers)}) END)"


DUCKDB = DuckDBDialect()
PORTABLE_DUCKDB = DuckDBDialect(portable=True)
