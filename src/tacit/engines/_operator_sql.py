"""How an engine writes the operators of expressions: one total method for each.

Conditions are the same SQL on every engine and stand here. Every other operator is abstract, so that Python
refuses a dialect in which one is missing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.core import Kind


class OperatorSql(ABC):
    """The operators of `tacit.algebra.OPERATORS` as SQL."""

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
        listed = " ".join(f"WHEN {condition} THEN {value}" for condition, value in whens)
        return f"(CASE {listed} ELSE {otherwise} END)"

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
