"""How an engine writes the algebra as SQL: one class for each engine, one total method for each operator.

Guarantee
---------
Every method returns SQL that has a result for every row: a result that cannot be computed is NULL, and no
row makes a statement fail. All dialects give the same results; the contract tests compare them with
DuckDB's, value by value. Arguments are SQL, except constants, which arrive as checked Python values.

Conditions are the same SQL on every engine and stand here. Every other operator is abstract, so that Python
refuses a dialect in which one is missing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.core import Kind


#: The type of a column in a view or a subquery. ``digits``: a decimal or huge number, exactly.
StoredType: TypeAlias = Literal["whole", "float", "digits", "text", "boolean", "moment"]
#: SQL of a value together with its type; None where only the engine knows it (DuckDB).
Part: TypeAlias = tuple[str, StoredType | None]
STORED_TYPES: tuple[StoredType, ...] = ("whole", "float", "digits", "text", "boolean", "moment")

#: The type of a computed column of a kind.
STORED: dict[Kind, StoredType] = {"number": "float", "text": "text", "boolean": "boolean", "date": "moment"}


def numbered(partition: Sequence[str], order: str) -> str:
    """Write the number of a row within its partition."""
    return f"row_number() OVER (PARTITION BY {', '.join(partition)} ORDER BY {order})"


def hashed_part(text: str, stored: StoredType | None) -> str:
    """Write one part of the text that ranks rows; see `Dialect.ranked`. Only texts can have bars."""
    marked = f"replace({text}, '|', '|.')" if stored in {"text", None} else text
    return f"coalesce({marked}, '|-')"


class Dialect(ABC):
    """The SQL of one engine.

    A new engine's dialect is an instance of a subclass. Python refuses to make it while a method is missing.
    """

    #: The engine's name, as users write it.
    name: ClassVar[str]

    def settings(self) -> dict[str, str]:
        """Return what the SQL depends on beside the name; a dialect of this name is made with it."""
        return {}

    # Names and constants ------------------------------------------------------------------------------------

    @abstractmethod
    def quote(self, name: str) -> str:
        """Quote an identifier."""

    @abstractmethod
    def string(self, text: str) -> str:
        """Write a text constant."""

    @abstractmethod
    def number(self, value: float) -> str:
        """Write a double exactly."""

    @abstractmethod
    def moment(self, iso: str) -> str:
        """Write a moment without a time zone, given as ISO text."""

    @abstractmethod
    def null(self, kind: Kind | None) -> str:
        """Write a missing value of a kind."""

    def truth(self, value: bool) -> str:  # noqa: FBT001 - a constant of SQL
        """Write a boolean constant."""
        return "TRUE" if value else "FALSE"

    # Values -------------------------------------------------------------------------------------------------

    @abstractmethod
    def read(self, column: str, stored: StoredType | None, kind: Kind) -> str:
        """Read a column as a kind: one reading of a value, whatever type its column has.

        1 and 1.0 are the text '1', TRUE and 'true' the number 1, every number but 0 is true. A value that
        cannot be read as the kind is NULL.
        """

    @abstractmethod
    def text(self, value: str, stored: StoredType | None) -> str:
        """Write a value as its one text: 1 and 1.0 are '1', -0.0 is '0'."""

    def distinct_text(self, value: str, stored: StoredType) -> str:
        """Write a value as a text that tells different values apart."""
        return self.text(value, stored)

    @abstractmethod
    def owner_text(self, owner: str) -> str:
        """Write the owner of a row (``tacit_u``: a whole number or a text) as text."""

    @abstractmethod
    def short(self, value: str, stored: StoredType | None, most: int) -> str:
        """Write a value, or NULL for a text of more than ``most`` bytes."""

    @abstractmethod
    def is_missing(self, number: str) -> str:
        """Write whether a number is NULL or NaN: true or false, never NULL."""

    @abstractmethod
    def present(self, number: str) -> str:
        """Write a number, or NULL for NaN."""

    @abstractmethod
    def key(self, value: str, kind: Kind, *, missing: bool) -> str:
        """Write a group's key: 0 and -0 are one group, a date is text.

        With ``missing``, NaN is NULL, which may be a group.
        """

    @abstractmethod
    def grid(self, number: str, first: float, last: float, halves: float) -> str:
        """Write floor(x/step + 1/2) exactly, with x clipped to [first, last]; NULL and NaN are NULL.

        ``halves`` is 2/step, a power of two: the product is exact, and floor((floor(2y) + 1) / 2) =
        floor(y + 1/2).
        """

    @abstractmethod
    def even_cell(self, number: str, first: float, last: float, step: float, size: int) -> str:
        """Write which of ``size`` values, one ``step`` apart from ``first``, is nearest: 0, 1, ..."""

    # Whole numbers ------------------------------------------------------------------------------------------

    @abstractmethod
    def total(self, whole: str, most: int | None = None) -> str:
        """Write the exact sum of whole numbers over the rows of a group; 0 for none.

        ``most`` bounds its size where public facts do.
        """

    @abstractmethod
    def sum_or_null(self, whole: str) -> str:
        """Write the exact sum of whole numbers over the rows of a group; NULL for none."""

    @abstractmethod
    def whole_div(self, a: str, b: str) -> str:
        """Write the whole part of a/b for whole numbers a >= 0 and b > 0, exactly, however large."""

    def remainder(self, a: str, b: str) -> str:
        """Write what whole division leaves of a >= 0."""
        return f"({a} % {b})"

    @abstractmethod
    def to_double(self, whole: str) -> str:
        """Write a whole number as a double."""

    @abstractmethod
    def vector(self, wholes: Sequence[str]) -> str:
        """Write several whole numbers as one value of a row."""

    @abstractmethod
    def element(self, vector: str, index: int) -> str:
        """Write one of these whole numbers; the first has the index 0."""

    @abstractmethod
    def least_of(self, value: str, kind: Kind | None) -> str:
        """Write the least value of a group of rows, of any kind."""

    def public_aggregate(self, function: str, value: str) -> str:
        """Write an aggregate of a public table: min, max, avg, sum, count or median."""
        return f"{function}({value})"

    # Relations ----------------------------------------------------------------------------------------------

    @abstractmethod
    def ranked(self, parts: Sequence[Part]) -> str:
        """Write the keyed order among the rows of one unit: a hash of secret key, unit and own values.

        Engines that keep the same rows take md5 of one text: the parts with ``|,`` between them. A missing
        part is ``|-``, and a part has ``|.`` for each bar, which only texts can have. So different parts give
        different texts: a bar is followed by a point within a part, and by another sign between parts. Each
        part is computed once.
        """

    def cell(self, keys: Sequence[Part], digits: int) -> str:
        """Write a text that depends on a group's key alone and has 16^digits values, about equally often.

        Any function of the key will do; it only splits very many groups into parts.
        """
        texts = " || '|' || ".join(f"coalesce({self.text(*key)}, '-')" for key in keys)
        return f"substr(md5({texts}), 1, {digits})"

    @abstractmethod
    def in_sample(self, sample: int) -> str:
        """Write whether the unit of a row is in the secret sample, with probability sample/2^32.

        The first eight hexadecimal digits of sha256(secret, owner's text) are compared; the secret is the one
        cell ``k0`` of the table ``tacit_sample``.
        """

    def semi(self, rows: str, table: str, columns: Sequence[str], *, missing: bool) -> str:
        """Keep the rows that a table has a line for; with ``missing``, NULL equals NULL.

        EXISTS, because some engines read SEMI JOIN as an alias.
        """
        return f"SELECT * FROM ({rows}) r WHERE EXISTS (SELECT 1 FROM {table} s WHERE {self._same(columns, missing=missing)})"  # noqa: E501

    def _same(self, columns: Sequence[str], *, missing: bool) -> str:
        sign = "IS NOT DISTINCT FROM" if missing else "="
        return " AND ".join(f"r.{c} {sign} s.{c}" for c in columns)

    def order(self, columns: Sequence[str]) -> str:
        """Write an order by columns with missing values last."""
        return ", ".join(f"{c} NULLS LAST" for c in columns)

    def twins(self, rows: str, same: Sequence[str], name: str) -> str:
        """Give numbers to the rows that are equal in all columns that matter, in any order."""
        return f"SELECT *, {numbered(same, same[0])} AS {name} FROM ({rows}) t"

    def first_rows(
        self, rows: str, columns: Sequence[str], partition: Sequence[str], order: str, n: int
    ) -> str:
        """Keep the first n rows of each partition."""
        names = ", ".join(columns)
        rank = numbered(partition, order)
        return (
            f"SELECT {names} FROM (SELECT {names}, {rank} AS tacit_n FROM ({rows}) t) t WHERE tacit_n <= {n}"
        )

    def first_groups(
        self, rows: str, columns: Sequence[str], keys: Sequence[Part], n: int, *, missing: bool
    ) -> str:
        """Keep the rows of each unit's first n groups, in the keyed order.

        ``columns`` are those of the rows, ``keys`` those that name the group.
        """
        del missing  # a window takes NULLs for equal
        order = f"{self.ranked(keys)}, {self.order([k for k, _ in keys])}"
        rank = f"dense_rank() OVER (PARTITION BY tacit_u ORDER BY {order})"
        names = ", ".join(columns)
        return (
            f"SELECT {names} FROM (SELECT {names}, {rank} AS tacit_n FROM ({rows}) t) t WHERE tacit_n <= {n}"
        )

    def gathered(self, rows: str) -> str:
        """Bring the rows of each unit to one place before its groups are summed and ranked.

        Only an engine that would move them twice, first by unit and group, needs it.
        """
        return rows

    def first_pairs(self, pairs: str, columns: Sequence[str], keys: Sequence[Part], n: int) -> str:
        """Keep each unit's first n pairs of unit and group, in the keyed order; a pair is one row."""
        order = f"{self.ranked(keys)}, {self.order([k for k, _ in keys])}"
        return self.first_rows(pairs, columns, ["tacit_u"], order, n)

    # Operators -----------------------------------------------------------------------------------------

    @abstractmethod
    def op_add(self, a: str, b: str) -> str:
        """Write a + b."""

    @abstractmethod
    def op_sub(self, a: str, b: str) -> str:
        """Write a - b."""

    @abstractmethod
    def op_mul(self, a: str, b: str) -> str:
        """Write a * b."""

    @abstractmethod
    def op_div(self, a: str, b: str) -> str:
        """Write a / b; NULL for b = 0."""

    @abstractmethod
    def op_mod(self, a: str, b: str) -> str:
        """Write the remainder of a / b, with the sign of a; NULL for b = 0."""

    @abstractmethod
    def op_neg(self, x: str) -> str:
        """Write -x."""

    @abstractmethod
    def op_abs(self, x: str) -> str:
        """Write the size of x."""

    @abstractmethod
    def op_floor(self, x: str) -> str:
        """Write x rounded down."""

    @abstractmethod
    def op_ceil(self, x: str) -> str:
        """Write x rounded up."""

    @abstractmethod
    def op_sqrt(self, x: str) -> str:
        """Write the square root; NULL below 0."""

    @abstractmethod
    def op_ln(self, x: str) -> str:
        """Write the natural logarithm; NULL at 0 and below."""

    @abstractmethod
    def op_log2(self, x: str) -> str:
        """Write the logarithm to the base 2; NULL at 0 and below."""

    @abstractmethod
    def op_log10(self, x: str) -> str:
        """Write the logarithm to the base 10; NULL at 0 and below."""

    @abstractmethod
    def op_trunc(self, x: str) -> str:
        """Write x rounded towards 0."""

    @abstractmethod
    def op_power(self, x: str, y: float) -> str:
        """Write x to the power of y, a constant; NULL where it is not finite."""

    @abstractmethod
    def op_exp(self, x: str) -> str:
        """Write e to the power of x; NULL above 709."""

    @abstractmethod
    def op_sign(self, x: str) -> str:
        """Write 1, -1 or 0; NULL for NaN."""

    @abstractmethod
    def op_round(self, x: str, digits: int) -> str:
        """Write x rounded to so many decimals, halves away from 0."""

    @abstractmethod
    def op_least(self, *numbers: str) -> str:
        """Write the least number; NULL if one is NULL or NaN."""

    @abstractmethod
    def op_greatest(self, *numbers: str) -> str:
        """Write the greatest number; NULL if one is NULL or NaN."""

    @abstractmethod
    def op_clip(self, x: str, low: str, high: str) -> str:
        """Write x, or the nearer of two constants where it is outside; NULL for NaN."""

    def op_eq(self, a: str, b: str) -> str:
        """Write a = b; NaN equals NaN."""
        return f"({a} = {b})"

    def op_ne(self, a: str, b: str) -> str:
        """Write a <> b."""
        return f"({a} <> {b})"

    def op_lt(self, a: str, b: str) -> str:
        """Write a < b; NaN is above every number; texts by their bytes."""
        return f"({a} < {b})"

    def op_le(self, a: str, b: str) -> str:
        """Write a <= b."""
        return f"({a} <= {b})"

    def op_gt(self, a: str, b: str) -> str:
        """Write a > b."""
        return f"({a} > {b})"

    def op_ge(self, a: str, b: str) -> str:
        """Write a >= b."""
        return f"({a} >= {b})"

    def op_in(self, x: str, others: Sequence[str]) -> str:
        """Write whether x equals one of the others."""
        return f"({x} IN ({', '.join(others)}))"

    def op_is_null(self, x: str) -> str:
        """Write whether x is NULL; NaN is not."""
        return f"({x} IS NULL)"

    def op_and(self, *conditions: str) -> str:
        """Write whether all are true."""
        return f"({' AND '.join(conditions)})"

    def op_or(self, *conditions: str) -> str:
        """Write whether one is true."""
        return f"({' OR '.join(conditions)})"

    def op_not(self, x: str) -> str:
        """Write the contrary."""
        return f"(NOT {x})"

    def op_case(self, whens: Sequence[tuple[str, str]], otherwise: str) -> str:
        """Write the value of the first condition that is true."""
        branches = " ".join(f"WHEN {condition} THEN {value}" for condition, value in whens)
        return f"(CASE {branches} ELSE {otherwise} END)"

    def op_coalesce(self, *values: str) -> str:
        """Write the first value that is not NULL."""
        return f"coalesce({', '.join(values)})"

    @abstractmethod
    def op_lower(self, x: str) -> str:
        """Write a text in small letters."""

    @abstractmethod
    def op_upper(self, x: str) -> str:
        """Write a text in capital letters."""

    @abstractmethod
    def op_trim(self, x: str) -> str:
        """Write a text without spaces at its ends."""

    @abstractmethod
    def op_ltrim(self, x: str) -> str:
        """Write a text without spaces at its start."""

    @abstractmethod
    def op_rtrim(self, x: str) -> str:
        """Write a text without spaces at its end."""

    @abstractmethod
    def op_length(self, x: str) -> str:
        """Write the number of characters, as a double."""

    @abstractmethod
    def op_concat(self, *texts: str) -> str:
        """Write the texts one after another, cut to the longest text after every step."""

    @abstractmethod
    def op_substring(self, x: str, start: int, length: int) -> str:
        """Write a part of a text; the first character is 1."""

    @abstractmethod
    def op_right(self, x: str, n: int) -> str:
        """Write the last characters of a text."""

    @abstractmethod
    def op_replace(self, x: str, old: str, new: str) -> str:
        """Write a text with every ``old`` replaced; the input was cut so that it cannot grow too long."""

    @abstractmethod
    def op_split_part(self, x: str, sign: str, index: int) -> str:
        """Write a part of a text between signs; the first part is 1, a missing one ''."""

    @abstractmethod
    def op_position(self, x: str, sign: str) -> str:
        """Write where a text starts in x, as a double; 0 where it does not occur."""

    @abstractmethod
    def op_like(self, x: str, pattern: str) -> str:
        """Write whether x has the pattern of SQL's LIKE, without an escape sign."""

    @abstractmethod
    def op_starts_with(self, x: str, start: str) -> str:
        """Write whether x starts with a text."""

    @abstractmethod
    def op_ends_with(self, x: str, end: str) -> str:
        """Write whether x ends with a text."""

    @abstractmethod
    def op_contains(self, x: str, part: str) -> str:
        """Write whether x contains a text."""

    @abstractmethod
    def op_year(self, x: str) -> str:
        """Write the year, as a double."""

    @abstractmethod
    def op_month(self, x: str) -> str:
        """Write the month, as a double."""

    @abstractmethod
    def op_day(self, x: str) -> str:
        """Write the day of the month, as a double."""

    @abstractmethod
    def op_hour(self, x: str) -> str:
        """Write the hour, as a double."""

    @abstractmethod
    def op_minute(self, x: str) -> str:
        """Write the minute, as a double."""

    @abstractmethod
    def op_second(self, x: str) -> str:
        """Write the whole second, as a double."""

    @abstractmethod
    def op_weekday(self, x: str) -> str:
        """Write the weekday, as a double; Sunday is 0."""

    @abstractmethod
    def op_isodow(self, x: str) -> str:
        """Write the weekday, as a double; Monday is 1, Sunday 7."""

    @abstractmethod
    def op_quarter(self, x: str) -> str:
        """Write the quarter, as a double."""

    @abstractmethod
    def op_week(self, x: str) -> str:
        """Write the ISO week, as a double."""

    @abstractmethod
    def op_dayofyear(self, x: str) -> str:
        """Write the day of the year, as a double."""

    @abstractmethod
    def op_dayname(self, x: str) -> str:
        """Write the weekday in English."""

    @abstractmethod
    def op_monthname(self, x: str) -> str:
        """Write the month in English."""

    @abstractmethod
    def op_strftime(self, x: str, form: str) -> str:
        """Write a moment in a format of checked parts."""

    @abstractmethod
    def op_date_trunc(self, part: str, x: str) -> str:
        """Write the start of the year, quarter, month, week, day, hour or minute."""

    @abstractmethod
    def op_date_diff(self, part: str, first: str, second: str) -> str:
        """Write how many boundaries of a part lie between two moments, as a double."""

    @abstractmethod
    def op_add_days(self, x: str, days: str) -> str:
        """Write a moment so many whole days later; NULL outside the years 1 to 9999."""

    @abstractmethod
    def op_add_months(self, x: str, months: int) -> str:
        """Write a moment so many months later, no later than the month's last day.

        NULL outside the years 1 to 9999.
        """

    @abstractmethod
    def op_to_number(self, x: str, kind: Kind | None) -> str:
        """Write a value of a kind as a number."""

    @abstractmethod
    def op_to_whole(self, x: str, kind: Kind | None) -> str:
        """Write a value of a kind as a whole number of 64 bits, as a double."""

    @abstractmethod
    def op_to_text(self, x: str, kind: Kind | None) -> str:
        """Write a value of a kind as text."""

    @abstractmethod
    def op_to_boolean(self, x: str, kind: Kind | None) -> str:
        """Write a value of a kind as a boolean."""

    @abstractmethod
    def op_to_date(self, x: str, kind: Kind | None) -> str:
        """Write a value of a kind as a moment of the years 1 to 9999."""
