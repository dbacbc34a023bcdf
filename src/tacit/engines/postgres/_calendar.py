"""Dates in PostgreSQL: parts, formats, differences and steps, with DuckDB's results for years 1 to 9999."""

from __future__ import annotations

import re

from tacit.engines.postgres._arithmetic import double
from tacit.engines.postgres._bindings import named

_PART = re.compile(r"%-?.", re.DOTALL)
#: A part of a format: how to_char writes it.
_CHARS = {
    "%a": "Dy", "%A": "FMDay", "%w": "", "%u": "", "%d": "DD", "%-d": "FMDD", "%b": "Mon", "%B": "FMMonth",
    "%m": "MM", "%-m": "FMMM", "%Y": "YYYY", "%H": "HH24", "%-H": "FMHH24", "%I": "HH12", "%-I": "FMHH12",
    "%p": "AM", "%M": "MI", "%-M": "FMMI", "%S": "SS", "%-S": "FMSS", "%j": "DDD", "%-j": "FMDDD", "%V": "IW",
    "%G": "IYYY",
}  # fmt: skip
_MOST_DAYS = 4_000_000
#: The last day of the calendar, counted from the first.
_LAST_DAY = 3_652_058
_FIRST_MONTH, _LAST_MONTH = 12, 9999 * 12 + 11


def date_part(part: str, moment: str) -> str:
    """Write a part of a moment, as a double."""
    whole = f"floor(extract(second FROM {moment}))" if part == "second" else f"extract({part} FROM {moment})"
    return f"{whole}::float8"


def formatted(moment: str, form: str) -> str:
    """Write a moment in a format of strftime."""

    def body(x: str) -> str:
        pieces, at = [], 0
        for found in _PART.finditer(form):
            pieces += [_text(form[at : found.start()]), _format_part(found.group(), x)]
            at = found.end()
        pieces.append(_text(form[at:]))
        written = " || ".join(piece for piece in pieces if piece) or "''"
        return f'(CASE WHEN {x} IS NOT NULL THEN {written} END COLLATE "C")'

    return named(body, moment)


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'" if text else ""


def _format_part(part: str, x: str) -> str:
    first = f"extract(doy FROM {x})::int + 6"
    match part:
        case "%%":
            return "'%'"
        case "%w":
            return f"extract(dow FROM {x})::text"
        case "%u":
            return f"extract(isodow FROM {x})::text"
        case "%y":
            return f"lpad((extract(year FROM {x})::int % 100)::text, 2, '0')"
        case "%-y":
            return f"(extract(year FROM {x})::int % 100)::text"
        case "%U":
            return f"lpad((({first} - extract(dow FROM {x})::int) / 7)::text, 2, '0')"
        case "%W":
            return f"lpad((({first} - (extract(isodow FROM {x})::int - 1)) / 7)::text, 2, '0')"
        case _:
            return f"to_char({x}, '{_CHARS[part]}')"


def truncated(part: str, moment: str) -> str:
    """Write the start of the year, month, ... of a moment; weeks start on Mondays."""
    return f"date_trunc('{part}', {moment})"


def difference(part: str, first: str, second: str) -> str:
    """Write how many starts of years, months, days, ... lie between two moments; weeks have seven days."""

    def body(a: str, b: str) -> str:
        days = f"({b}::date - {a}::date)"
        match part:
            case "year":
                whole = f"extract(year FROM {b}) - extract(year FROM {a})"
            case "quarter" | "month":
                times = 4 if part == "quarter" else 12
                whole = f"{_count(part, times, b)} - {_count(part, times, a)}"
            case "week":
                whole = f"{days} / 7"
            case "day":
                whole = days
            case _:
                seconds = {"hour": 3600, "minute": 60, "second": 1}[part]
                starts = f"date_trunc('{part}', {b}) - date_trunc('{part}', {a})"
                whole = f"extract(epoch FROM {starts}) / {seconds}"
        return f"({whole})::float8"

    return named(body, first, second)


def _count(part: str, times: int, x: str) -> str:
    return f"(extract(year FROM {x}) * {times} + extract({part} FROM {x}))"


def plus_days(moment: str, days: str) -> str:
    """Write a moment some days later, the number rounded to a whole one; NULL outside the calendar."""

    def body(x: str, n: str) -> str:
        inside = f"least(greatest({n}, {double(-_MOST_DAYS)}), {double(_MOST_DAYS)})::int"
        day = f"({x}::date - '0001-01-01'::date) + {inside}"
        return (
            f"(CASE WHEN {x} IS NULL OR {n} IS NULL OR {n} = 'NaN'::float8 THEN NULL "
            f"WHEN {day} BETWEEN 0 AND {_LAST_DAY} THEN {x} + make_interval(days => {inside}) END)"
        )

    return named(body, moment, days)


def plus_months(moment: str, months: int) -> str:
    """Write a moment some months later, on the last day of a shorter month; NULL outside the calendar."""

    def body(x: str) -> str:
        month = f"extract(year FROM {x}) * 12 + extract(month FROM {x}) - 1 + ({months})"
        return (
            f"(CASE WHEN {month} BETWEEN {_FIRST_MONTH} AND {_LAST_MONTH} "
            f"THEN {x} + make_interval(months => {months}) END)"
        )

    return named(body, moment)
