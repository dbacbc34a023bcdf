"""Texts and dates as Spark reads and writes them for Tacit: DuckDB's values, and never an error.

**Texts.** Spark's own casts accept other texts than DuckDB's ('1d', 'now', '2024'). So a regular expression
decides what is a number, a boolean or a moment, and only what it accepts is cast. Java's regular expressions
call themselves once for each turn of a repeated group, so that a long text could exhaust the stack: no
pattern here repeats a group.

**Dates** have no time zone and lie in the years 1 to 9999.
"""

from __future__ import annotations

import re

from tacit.engines._values import MOST_TEXT

_W = r"[ \t-\r]*"
_DIGITS = "[0-9][0-9_]*"
_SIZE = rf"(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})"
_NUMBER = rf"^{_W}[+]?-?{_SIZE}(?:[eE][+-]?{_DIGITS})?{_W}\z"
_WHOLE = rf"^{_W}[+-]?{_SIZE}(?:[eE][+-]?{_DIGITS}\.?)?{_W}\z"
_INFINITE = rf"(?i)^{_W}[+]?-?inf(?:inity)?{_W}\z"
_NAN = rf"(?i)^{_W}[+]?-?nan(?:\([A-Za-z0-9_]*\))?{_W}\z"
#: An underscore that does not stand between two digits.
_LOOSE = "_(?![0-9])"

_OFFSET = r"[+-][0-9]{2}(?:[0-9]{2}|:[0-9]{2}(?::[0-9]{2})?)?"
_CLOCK = r"0*([0-9]{1,2}):(?:([0-5]?[0-9])(?::(?:([0-5]?[0-9])(?:\.([0-9]*))?)?)?)?"
_ZONE = rf"(?:(?:Z|{_OFFSET}|(?:[+-][0-9]{{2}}:(?:[0-9]{{2}}:)?)? [A-Za-z0-9_/+:-]*){_W})?"
_MOMENT = (
    rf"^{_W}0*([0-9]{{1,4}})([-/\\ ])([0-9]{{1,2}})\2([0-9]{{1,2}})"
    rf"(?:(?:[ T]{_W}|[ \t-\r]+){_CLOCK}{_ZONE})?\z"
)
#: What most files hold; Spark reads it by itself, or finds that the day does not exist.
_ISO = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}(?: (?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?)?\z"
_PLAIN = r"^-?[0-9]{1,18}(?:\.[0-9]{1,18})?\z"
_SIXTEEN = r"^(?:[0-7].{15}|.{0,15})\z"
_EPOCH = rf"(?i)^{_W}-?epoch{_W}\z"

_LARGEST = "1.7976931348623157e308"
_TWO_63 = "9223372036854775808e0"
_FIRST, _LAST = "TIMESTAMP_NTZ '0001-01-01'", "TIMESTAMP_NTZ '9999-12-31 23:59:59.999999'"
_FORMAT = re.compile(r"%-?.|[^%]+", re.DOTALL)
_DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip
_SECONDS = {"hour": 3600, "minute": 60, "second": 1}


def string(text: str) -> str:
    """Write a text constant. Spark reads backslashes, so they are doubled, and lines may not break it."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r")
    return f"'{escaped}'"


def number_of_text(x: str) -> str:
    """Write the number that a text is; too large is infinite, too small is 0, anything else NULL."""
    bare = f"trim(BOTH ' \\t\\n\\u000b\\u000c\\r' FROM replace({x}, '_', ''))"
    digits = (
        f"try_cast(CASE WHEN startswith({bare}, '+') THEN substring({bare}, 2) ELSE {bare} END AS DOUBLE)"
    )
    return (
        f"(CASE WHEN {x} RLIKE {string(_PLAIN)} THEN try_cast({x} AS DOUBLE) "
        f"WHEN {x} RLIKE {string(_NUMBER)} THEN "
        f"CASE WHEN NOT contains({x}, '_') OR NOT {x} RLIKE {string(_LOOSE)} THEN {digits} END "
        f"WHEN {x} RLIKE {string(_INFINITE)} "
        f"THEN CASE WHEN contains({x}, '-') THEN -double('inf') ELSE double('inf') END "
        f"WHEN {x} RLIKE {string(_NAN)} THEN double('nan') END)"
    )


def whole_of_text(x: str) -> str:
    """Write the whole number of 64 bits that a text is, as a double, halves away from 0; NULL otherwise."""
    short = f"length({x}) <= 300"
    bare = f"trim(BOTH ' \\t\\n\\u000b\\u000c\\r' FROM replace({x}, '_', ''))"
    tight = f"(NOT contains({x}, '_') OR NOT {x} RLIKE {string(_LOOSE)})"
    rounded = f"try_cast(rtrim('.', {bare}) AS DECIMAL(38, 0))"
    mantissa = f"regexp_replace({bare}, '[.eE].*', '')"
    fits = f"({mantissa} IN ('', '+', '-') OR try_cast({mantissa} AS BIGINT) IS NOT NULL)"
    based = f"regexp_replace({bare}, '^0[xXbB]0*', '')"
    hexadecimal = f"CAST(CAST(conv(lpad({based}, 16, '0'), 16, 10) AS BIGINT) AS DOUBLE)"
    binary = f"CAST(CAST(conv(lpad({based}, 64, '0'), 2, 10) AS BIGINT) AS DOUBLE)"
    return (
        f"(CASE WHEN {x} RLIKE {string(_WHOLE)} THEN CASE WHEN {short} AND {tight} AND {fits} "
        f"THEN CAST(try_cast({rounded} AS BIGINT) AS DOUBLE) END "
        f"WHEN {x} RLIKE {string(rf'^{_W}0[xX][0-9a-fA-F][0-9a-fA-F_]*' + chr(92) + 'z')} THEN "
        f"CASE WHEN NOT {x} RLIKE '_(?![0-9a-fA-F])' AND {based} RLIKE {string(_SIXTEEN)} "
        f"THEN {hexadecimal} END "
        f"WHEN {x} RLIKE {string(rf'^{_W}0[bB][01][01_]*' + chr(92) + 'z')} THEN "
        f"CASE WHEN NOT {x} RLIKE '_(?![01])' AND length({based}) < 64 THEN {binary} END END)"
    )


def boolean_of_text(x: str) -> str:
    """Write the boolean that a text is: true, t, yes, y, 1 and their contraries, in any case."""
    return (
        f"(CASE WHEN {x} RLIKE '(?i)^(?:true|t|yes|y|1)\\\\z' THEN TRUE "
        f"WHEN {x} RLIKE '(?i)^(?:false|f|no|n|0)\\\\z' THEN FALSE END)"
    )


def moment_of_text(x: str) -> str:
    """Write the moment of the years 1 to 9999 that a text is; a time zone is read over, as DuckDB does."""
    pattern = string(_MOMENT)
    parts = f"split(regexp_replace({x}, {pattern}, '$1|$3|$4|$5|$6|$7|$8'), '[|]')"
    day = "concat(lpad(p[0], 4, '0'), '-', lpad(p[1], 2, '0'), '-', lpad(p[2], 2, '0'))"
    clock = ", ':', ".join(f"lpad(p[{i}], 2, '0')" for i in (3, 4, 5))
    clock = f"concat({clock}, '.', rpad(p[6], 6, '0'))"
    day_and_clock = f"struct({day} AS d, {clock} AS c)"
    moment = (
        "CASE WHEN startswith(t.d, '0000') OR try_cast(t.d AS DATE) IS NULL THEN NULL "
        "WHEN t.c <> '24:00:00.000000' THEN try_cast(concat(t.d, ' ', t.c) AS TIMESTAMP_NTZ) "
        "WHEN t.d < '9999-12-31' THEN CAST(date_add(try_cast(t.d AS DATE), 1) AS TIMESTAMP_NTZ) END"
    )
    return (
        f"(CASE WHEN {x} RLIKE {string(_ISO)} AND NOT startswith({x}, '0000') "
        f"THEN try_cast({x} AS TIMESTAMP_NTZ) WHEN {x} RLIKE {pattern} "
        f"THEN transform(transform(array({parts}), p -> {day_and_clock}), t -> {moment})[0] "
        f"WHEN {x} RLIKE {string(_EPOCH)} THEN TIMESTAMP_NTZ '1970-01-01' END)"
    )


def text_of_number(x: str) -> str:
    """Write a double as its one text: a whole number by its digits, others by the fewest that name it.

    Java finds these digits, but for a few doubles (2^-44 is one), where versions before 19 write one digit
    more than needed. A number between 1e-4 and 2^52 is a decimal with at most 22 places. The text is short,
    and has no lambda, so that Java compiles the step that ranks all rows.
    """
    java, is_integer = f"CAST({x} AS STRING)", f"{x} = CAST(try_cast({x} AS BIGINT) AS DOUBLE)"
    plain = f"rtrim('0', CAST(try_cast({x} AS DECIMAL(38, 22)) AS STRING))"
    padded = f"regexp_replace(replace({java}, '.0E', 'E'), 'E-([0-9])$', 'E-0$1')"
    power = f"regexp_replace({padded}, 'E([0-9])', 'e+$1')"
    return (
        f"(CASE WHEN abs({x}) < {_TWO_63} AND {is_integer} THEN CAST(try_cast({x} AS BIGINT) AS STRING) "
        f"WHEN abs({x}) >= 1e-3 AND abs({x}) < 1e7 THEN {java} "
        f"WHEN abs({x}) >= 1e-4 AND abs({x}) < {_TWO_63} THEN {plain} "
        f"WHEN abs({x}) <= {_LARGEST} THEN replace(replace({power}, 'E', 'e'), '4.9e-324', '5e-324') "
        f"WHEN isnan({x}) THEN 'nan' WHEN {x} > 0e0 THEN 'inf' WHEN {x} < 0e0 THEN '-inf' END)"
    )


def plain_text(x: str) -> str:
    """Write a text of a source: at most so long, compared byte by byte; what is not UTF-8 is written out."""
    cut = f"CASE WHEN octet_length({x}) <= {MOST_TEXT} THEN {x} ELSE substring({x}, 1, {MOST_TEXT}) END"
    return f"(CASE WHEN is_valid_utf8({x}) THEN {cut} ELSE {text_of_bytes(f'CAST({x} AS BINARY)')} END)"


def text_of_bytes(x: str) -> str:
    r"""Write bytes that are not UTF-8, each as ``\xFF``."""
    spelled = string(r"\\x$1")
    pairs = f"regexp_replace(hex(substring({x}, 1, {MOST_TEXT // 4})), '(..)', {spelled})"
    return f"substring({pairs}, 1, {MOST_TEXT})"


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


def _floor_div(integer: str, by: int) -> str:
    """Write a whole number of 64 bits divided by another, rounded down."""
    return f"(({integer} - pmod({integer}, {by}L)) div {by}L)"


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
