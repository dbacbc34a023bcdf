"""Dates as Spark writes them for Tacit: no time zone, the years 1 to 9999, never an error."""

from __future__ import annotations

import re

from tacit.engines.spark._texts import string

_FIRST, _LAST = "TIMESTAMP_NTZ '0001-01-01'", "TIMESTAMP_NTZ '9999-12-31 23:59:59.999999'"
_FORMAT = re.compile(r"%-?.|[^%]+", re.DOTALL)
_DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip
_SECONDS = {"hour": 3600, "minute": 60, "second": 1}


def in_calendar(moment: str) -> str:
    """Write a moment, or NULL outside the years 1 to 9999."""
    return f"(CASE WHEN {moment} BETWEEN {_FIRST} AND {_LAST} THEN {moment} END)"


def day_names(moment: str, length: int = 20) -> str:
    """Write the weekday in English, cut to a length."""
    return _listed([name[:length] for name in _DAYS], f"dayofweek({moment})")


def month_names(moment: str, length: int = 20) -> str:
    """Write the month in English, cut to a length."""
    return _listed([name[:length] for name in _MONTHS], f"month({moment})")


def _listed(names: list[str], index: str) -> str:
    whens = " ".join(f"WHEN {i} THEN {string(name)}" for i, name in enumerate(names, start=1))
    return f"(CASE {index} {whens} END)"  # element_at of an array takes the last one for NULL


def micros(moment: str) -> str:
    """Write a moment as microseconds since 1970; the session's time zone is UTC."""
    return f"unix_micros(CAST({moment} AS TIMESTAMP))"


def trunc_sql(part: str, moment: str) -> str:
    """Write the start of the year, quarter, month, week, day, hour or minute."""
    return in_calendar(f"CAST(date_trunc('{part}', CAST({moment} AS TIMESTAMP)) AS TIMESTAMP_NTZ)")


def diff_sql(part: str, first: str, second: str) -> str:
    """Write how many boundaries of a part lie between two moments."""

    def number(moment: str) -> str:
        match part:
            case "year":
                return f"year({moment})"
            case "quarter":
                return f"(year({moment}) * 4 + quarter({moment}))"
            case "month":
                return f"(year({moment}) * 12 + month({moment}))"
            case "day":
                return f"unix_date(CAST({moment} AS DATE))"
            case _:
                return _floor_div(micros(moment), _SECONDS[part] * 1_000_000)

    if part == "week":  # whole weeks, unlike the other parts
        return f"CAST(datediff(CAST({second} AS DATE), CAST({first} AS DATE)) div 7 AS DOUBLE)"
    return f"CAST({number(second)} - {number(first)} AS DOUBLE)"


def _floor_div(whole: str, by: int) -> str:
    """Write a whole number of 64 bits divided by another, rounded down."""
    return f"(({whole} - pmod({whole}, {by}L)) div {by}L)"


def strftime_sql(moment: str, form: str) -> str:
    """Write a moment in a format whose parts are known."""
    pieces = [_piece(part, moment) for part in _FORMAT.findall(form)]
    if not pieces:
        return f"(CASE WHEN {moment} IS NOT NULL THEN '' END)"
    return f"(CASE WHEN {moment} IS NOT NULL THEN concat({', '.join(pieces)}) END)"


def _piece(part: str, x: str) -> str:
    if not part.startswith("%"):
        return string(part)
    yearday, weekday = f"dayofyear({x})", f"(dayofweek({x}) - 1)"
    hour = f"((hour({x}) + 11) % 12 + 1)"
    thursday = f"date_add(CAST({x} AS DATE), 3 - weekday({x}))"
    numbers = {
        "w": (weekday, 1), "u": (f"(weekday({x}) + 1)", 1), "d": (f"day({x})", 2), "m": (f"month({x})", 2),
        "y": (f"(year({x}) % 100)", 2), "Y": (f"year({x})", 4), "H": (f"hour({x})", 2), "I": (hour, 2),
        "M": (f"minute({x})", 2), "S": (f"second({x})", 2), "j": (yearday, 3),
        "U": (f"(({yearday} + 6 - {weekday}) div 7)", 2), "W": (f"(({yearday} + 6 - weekday({x})) div 7)", 2),
        "V": (f"weekofyear({x})", 2), "G": (f"year({thursday})", 4),
    }  # fmt: skip
    match part[-1]:
        case "%":
            return "'%'"
        case "a":
            return day_names(x, 3)
        case "A":
            return day_names(x)
        case "b":
            return month_names(x, 3)
        case "B":
            return month_names(x)
        case "p":
            return f"CASE WHEN hour({x}) < 12 THEN 'AM' ELSE 'PM' END"
        case letter:
            number, width = numbers[letter]
            digits = f"CAST({number} AS STRING)"
            return digits if part[1] == "-" or width == 1 else f"lpad({digits}, {width}, '0')"
