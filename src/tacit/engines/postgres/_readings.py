"""Texts and exact numbers as PostgreSQL reads them for Tacit: the same values as DuckDB, and never an error.

PostgreSQL's own input functions accept other texts than DuckDB ('now', '0x10', 'on'), and raise on what they
do not accept. So a regular expression decides what is a number or a moment, and only what it accepts is cast.
"""

from __future__ import annotations

from tacit.engines.postgres._arithmetic import double
from tacit.engines.postgres._bindings import named

_W = r"[ \t-\r]*"
_DIGITS = r"[0-9]+(?:_[0-9]+)*"
_SIZE = rf"(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})"
_NUMBER = rf"^{_W}[+]?-?{_SIZE}(?:[eE][+-]?{_DIGITS})?{_W}$"
_WHOLE = rf"^{_W}[+-]?{_SIZE}(?:[eE][+-]?{_DIGITS}\.?)?{_W}$"
#: Numbers that are in range if they are short: no underscore, and an exponent of two digits at most.
_PLAIN = rf"^{_W}-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9][0-9]?)?{_W}$"
_SHORT = 100
_PIECES = rf"^{_W}[+]?(-?)([0-9]*)\.?([0-9]*)(?:[eE]([+-]?)0*([0-9]*))?{_W}$"
_INFINITE, _NAN = rf"^{_W}[+]?-?inf(?:inity)?{_W}$", rf"^{_W}[+]?-?nan{_W}$"

_ZONE = "[A-Za-z0-9_/+:-]"
_OFFSET = r"[+-][0-9]{2}(?:[0-9]{2}|:[0-9]{2}(?::[0-9]{2})?)?"
_MOMENT = (
    rf"^{_W}0*([0-9]{{1,4}})([-/\\ ])([0-9]{{1,2}})\2([0-9]{{1,2}})"
    rf"(?:(?:[ T]{_W}|[ \t-\r]+)0*([0-9]{{1,2}}):(?:([0-5]?[0-9])(?::(?:([0-5]?[0-9])(?:\.([0-9]*))?)?)?)?"
    rf"(?:Z{_W}|{_OFFSET}{_W}|(?:[+-][0-9]{{2}}(?::[0-9]{{2}})?:)? {_ZONE}*{_W})?)?$"
)
_EPOCH = rf"^{_W}-?epoch{_W}$"
_FIRST, _LAST = "'0001-01-01'::timestamp", "'9999-12-31 23:59:59.999999'::timestamp"


def number_of_text(text: str) -> str:
    """Write the number that a text is; too large is infinite, too small is 0, anything else NULL."""

    def body(x: str) -> str:
        return (
            f"(CASE WHEN length({x}) < {_SHORT} AND {x} ~ '{_PLAIN}' THEN {x}::float8 "
            f"WHEN {x} ~ '{_NUMBER}' THEN {_slow_number(x)} "
            f"WHEN {x} ~* '{_INFINITE}' THEN "
            f"CASE WHEN strpos({x}, '-') > 0 THEN '-Infinity'::float8 ELSE 'Infinity'::float8 END "
            f"WHEN {x} ~* '{_NAN}' THEN 'NaN'::float8 END)"
        )

    return named(body, text)


def _slow_number(x: str) -> str:
    """Write the number that a text of digits is, where it may be out of range."""
    pieces = f"SELECT regexp_match(replace({x}, '_', ''), '{_PIECES}') AS m OFFSET 0"
    exponent = "coalesce(nullif(m[5], ''), '0')"
    written = f"m[1] || '0' || m[2] || '.' || m[3] || 'e' || coalesce(m[4], '') || {exponent} AS s"
    zeros = "length(m[3]) - length(ltrim(m[3], '0'))"
    size = f"CASE WHEN ltrim(m[2], '0') <> '' THEN length(ltrim(m[2], '0')) ELSE -({zeros}) END"
    signed = f"CASE WHEN length({exponent}) > 9 THEN 1000000000 ELSE {exponent}::int END"
    large = f"{size} + CASE WHEN m[4] = '-' THEN -1 ELSE 1 END * ({signed}) > 0 AS large"
    infinite = "CASE WHEN m[1] = '-' THEN '-Infinity'::float8 ELSE 'Infinity'::float8 END"
    return (
        "(SELECT CASE WHEN pg_input_is_valid(s, 'float8') THEN s::float8 "
        f"WHEN large THEN {infinite} ELSE {double(0)} END "
        f"FROM (SELECT m, {written}, {large} FROM ({pieces}) t OFFSET 0) t)"
    )


def whole_of_text(text: str) -> str:
    """Write the whole number of 64 bits that a text is, as a double, halves away from 0; NULL otherwise."""
    hexadecimal, binary = rf"^{_W}0[xX][0-9a-fA-F]+(?:_[0-9a-fA-F]+)*$", rf"^{_W}0[bB][01]+(?:_[01]+)*$"

    def body(x: str) -> str:
        bare = f"regexp_replace(replace({x}, '_', ''), '^{_W}0[xXbB]0*', '')"
        return (
            f"(CASE WHEN {x} ~ '{_WHOLE}' THEN {_whole_of_digits(x)} "
            f"WHEN {x} ~ '{hexadecimal}' THEN CASE WHEN length({bare}) < 16 OR {bare} ~ '^[0-7].{{15}}$' "
            f"THEN ('x' || lpad({bare}, 16, '0'))::bit(64)::bigint::float8 END "
            f"WHEN {x} ~ '{binary}' THEN CASE WHEN length({bare}) < 64 "
            f"THEN lpad({bare}, 64, '0')::bit(64)::bigint::float8 END END)"
        )

    return named(body, text)


def _whole_of_digits(x: str) -> str:
    """Write a text of digits as a whole number: its point is moved by the exponent, in the text."""
    pattern = rf"^{_W}([+-]?)([0-9]*)\.?([0-9]*)(?:[eE]([+-]?)0*([0-9]*)\.?)?{_W}$"
    pieces = f"SELECT regexp_match(replace({x}, '_', ''), '{pattern}') AS m OFFSET 0"
    size = "CASE WHEN length(m[5]) > 5 THEN 99999 ELSE coalesce(nullif(m[5], ''), '0')::int END"
    shifted = f"CASE WHEN m[4] = '-' THEN -1 ELSE 1 END * ({size}) AS e, m[2] || m[3] AS d"
    moved = f"SELECT m, {shifted} FROM ({pieces}) t OFFSET 0"
    place = "SELECT *, length(m[2]) + e AS p FROM (" + moved + ") t OFFSET 0"
    before = "ltrim(rpad(substring(d, 1, greatest(p, 0)), greatest(p, 0), '0'), '0')"
    up = "CASE WHEN p >= 0 AND substring(d, p + 1, 1) >= '5' COLLATE \"C\" THEN 1 ELSE 0 END AS up"
    whole = f"SELECT *, {before} AS w, ltrim(m[2], '0') AS i, {up} FROM ({place}) t OFFSET 0"
    sign = "CASE WHEN m[1] = '-' THEN -1 ELSE 1 END"
    least, most = "-9223372036854775808", "9223372036854775807"
    fits = f"({sign} * ('0' || i)::numeric) BETWEEN {least} AND {most}"
    value = f"{sign} * (('0' || w)::numeric + up)"
    return (
        "(SELECT CASE WHEN e BETWEEN -32768 AND 32767 AND length(w) <= 19 AND length(i) <= 19 THEN "
        f"CASE WHEN {fits} AND {value} BETWEEN {least} AND {most} THEN ({value})::float8 END END "
        f"FROM ({whole}) t)"
    )


def boolean_of_text(text: str) -> str:
    """Write the boolean that a text is: true, t, yes, y, 1 and their contraries, in any case."""

    def body(x: str) -> str:
        yes, no = "^(?:true|t|yes|y|1)$", "^(?:false|f|no|n|0)$"
        return f"(CASE WHEN {x} ~* '{yes}' THEN TRUE WHEN {x} ~* '{no}' THEN FALSE END)"

    return named(body, text)


def moment_of_text(text: str) -> str:
    """Write the moment of the years 1 to 9999 that a text is; a time zone is read over, as DuckDB does."""

    def body(x: str) -> str:
        pieces = f"SELECT regexp_match({x}, '{_MOMENT}') AS m OFFSET 0"
        clock = "||':'||".join(f"lpad(coalesce(nullif(m[{i}], ''), '0'), 2, '0')" for i in (5, 6, 7))
        parts = "rpad(substring(coalesce(m[8], ''), 1, 6), 6, '0')"
        day = "lpad(m[1], 4, '0')||'-'||lpad(m[3], 2, '0')||'-'||lpad(m[4], 2, '0')"
        iso = f"SELECT {day}||' '||{clock}||'.'||{parts} AS s FROM ({pieces}) t OFFSET 0"
        cast = "CASE WHEN pg_input_is_valid(s, 'timestamp') THEN s::timestamp END"
        valid = f"SELECT {cast} AS v FROM ({iso}) t OFFSET 0"
        inside = f"(SELECT CASE WHEN v BETWEEN {_FIRST} AND {_LAST} THEN v END FROM ({valid}) t)"
        epoch = f"WHEN {x} ~* '{_EPOCH}' THEN '1970-01-01'::timestamp"
        return f"(CASE WHEN {x} ~ '^{_W}[0-9]' THEN {inside} {epoch} END)"

    return named(body, text)


#: Half way to 2^1024: a decimal at least that large is infinite. Half of the least double, rounded up.
_TOO_LARGE, _TOO_SMALL = str(2**1024 - 2**970), "2.4703282292062328e-324"


def number_of_digits(value: str) -> str:
    """Write a numeric as a double; too large is infinite, too small is 0."""

    def body(x: str) -> str:
        quick = f"abs({x}) BETWEEN 1e-300 AND 1e300 OR {x} = 0 OR {x} = 'NaN'::numeric"
        sign = f"CASE WHEN {x} > 0 THEN 'Infinity'::float8 ELSE '-Infinity'::float8 END"
        return (
            f"(CASE WHEN {quick} THEN {x}::float8 WHEN abs({x}) >= {_TOO_LARGE} THEN {sign} "
            f"WHEN abs({x}) < {_TOO_SMALL} THEN {double(0)} ELSE {x}::float8 END)"
        )

    return named(body, value)
