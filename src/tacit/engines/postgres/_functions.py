"""Functions in the SQL of PostgreSQL that have DuckDB's results and never raise: doubles, dates, texts.

**Names.** SQL names a value once and uses it several times, so that nested operators do not multiply its
text.

**Arithmetic.** PostgreSQL raises where a result overflows or underflows. So each operator looks at the sizes
of its arguments first, and scales by powers of two, which is exact, where it must know which of the two
happens (docs/proofs/postgres.md). Results are IEEE 754's, the sign of a zero aside.

**Dates**: parts, formats, differences and steps, with DuckDB's results for years 1 to 9999.

**Texts and exact numbers.** PostgreSQL's own input functions accept other texts than DuckDB ('now', '0x10',
'on'), and raise on what they do not accept. So a regular expression decides what is a number or a moment, and
only what it accepts is cast.
"""

from __future__ import annotations

import math
import re
import sys
from typing import TYPE_CHECKING

from tacit.engines._values import string

if TYPE_CHECKING:
    from collections.abc import Callable


#: A column, a bound name or a number: short enough to be written several times.
_NAME = r"""(?:[a-z_][a-z0-9_]*\.)?(?:[a-z_][a-z0-9_]*|"(?:[^"]|"")+")"""
_ATOM = re.compile(rf"{_NAME}|\(-{_NAME}\)|{_NAME}::float8|\(?-?'[-+.0-9a-zA-Z]+'::float8\)?")
_MAX_DOUBLE = sys.float_info.max
#: Powers of two that make up every other one, exactly, as numerics.
_POWERS = [2 ** (2**i) for i in range(11)]
_PART = re.compile(r"%-?.", re.DOTALL)
#: A part of a format: how to_char writes it.
_CHARS = {
    "%a": "Dy", "%A": "FMDay", "%w": "", "%u": "", "%d": "DD", "%-d": "FMDD", "%b": "Mon", "%B": "FMMonth",
    "%m": "MM", "%-m": "FMMM", "%Y": "YYYY", "%H": "HH24", "%-H": "FMHH24", "%I": "HH12", "%-I": "FMHH12",
    "%p": "AM", "%M": "MI", "%-M": "FMMI", "%S": "SS", "%-S": "FMSS", "%j": "DDD", "%-j": "FMDDD", "%V": "IW",
    "%G": "IYYY",
}  # fmt: skip
_MAX_DAYS = 4_000_000
#: The last day of the calendar, counted from the first.
_LAST_DAY = 3_652_058
_FIRST_MONTH, _LAST_MONTH = 12, 9999 * 12 + 11


def named(body: Callable[..., str], *values: str) -> str:
    """Write an expression that uses values several times.

    Longer values are computed once, in a subquery. ``OFFSET 0`` keeps the server from putting them back into
    the expression, and from computing parts of it before a row is read: a guard of CASE then holds for
    constants too.

    Examples
    --------
    >>> named(lambda x: f"({x} * {x})", '"stay"')
    '("stay" * "stay")'
    >>> named(lambda x: f"({x} * {x})", '("stay" + 1)')
    '(SELECT (tacit_v.a * tacit_v.a) FROM (SELECT ("stay" + 1) AS a OFFSET 0) tacit_v)'
    """
    if all(_ATOM.fullmatch(value) for value in values):
        return body(*values)
    names = "abcdefgh"[: len(values)]
    columns = ", ".join(f"{value} AS {name}" for name, value in zip(names, values, strict=True))
    return f"(SELECT {body(*(f'tacit_v.{n}' for n in names))} FROM (SELECT {columns} OFFSET 0) tacit_v)"


def double(value: float) -> str:
    """Write a double exactly.

    Examples
    --------
    >>> double(0.1), double(-2**60), double(float("inf"))
    ("'0.1'::float8", "'-1.152921504606847e+18'::float8", "'Infinity'::float8")
    """
    digits = repr(float(value)) if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")
    return f"'{digits}'::float8"


def _two(n: int) -> str:
    """Write a power of two."""
    return double(math.ldexp(1.0, n))


_INFINITE, _NAN, _ONE, _ZERO = double(math.inf), "'NaN'::float8", double(1), double(0)


def added(a: str, b: str) -> str:
    """Write a + b.

    Where both are at most 2^1022 in size, the sum is finite. Otherwise it is infinite if and only if the sum
    of the halves is at least 2^1023 in size; an argument below 2^969 then changes nothing about that, and is
    not halved, because its half might underflow.
    """

    def body(a: str, b: str) -> str:
        special = f"abs({a}) >= {_INFINITE} OR abs({b}) >= {_INFINITE}"
        small = f"abs({a}) < {_two(969)} OR abs({b}) < {_two(969)}"
        half = f"({a} * {double(0.5)} + {b} * {double(0.5)})"
        return (
            f"(CASE WHEN abs({a}) <= {_two(1022)} AND abs({b}) <= {_two(1022)} THEN {a} + {b} "
            f"WHEN {special} OR {small} THEN {a} + {b} "
            f"WHEN abs({a}) < {_INFINITE} AND abs({b}) < {_INFINITE} THEN "
            f"CASE WHEN {half} >= {_two(1023)} THEN {_INFINITE} "
            f"WHEN {half} <= -{_two(1023)} THEN -{_INFINITE} ELSE {a} + {b} END END)"
        )

    return named(body, a, b)


def multiplied(a: str, b: str) -> str:
    """Write a * b."""

    def body(a: str, b: str) -> str:
        quick = " AND ".join(f"abs({x}) BETWEEN {_two(-500)} AND {_two(500)}" for x in (a, b))
        plain = f"{a} = {_ZERO} OR {b} = {_ZERO} OR abs({a}) >= {_INFINITE} OR abs({b}) >= {_INFINITE}"
        sign = f"CASE WHEN ({a} > {_ZERO}) = ({b} > {_ZERO}) THEN {_INFINITE} ELSE -{_INFINITE} END"
        large = f"abs(({a} * {_two(-512)}) * ({b} * {_two(-512)})) >= {_ONE}"
        smaller, larger = f"least(abs({a}), abs({b}))", f"greatest(abs({a}), abs({b}))"
        gone = f"({smaller} * {_two(1000)}) * ({larger} * {_two(74)}) <= {double(0.5)}"
        return (
            f"(CASE WHEN {quick} THEN {a} * {b} WHEN {plain} THEN {a} * {b} "
            f"WHEN abs({a}) >= {_ONE} AND abs({b}) >= {_ONE} THEN "
            f"CASE WHEN {large} THEN {sign} ELSE {a} * {b} END "
            f"WHEN abs({a}) < {_ONE} AND abs({b}) < {_ONE} "
            f"AND (abs({a}) < {_two(-500)} OR abs({b}) < {_two(-500)}) THEN "
            f"CASE WHEN {gone} THEN {_ZERO} ELSE {a} * {b} END "
            f"WHEN {a} IS NOT NULL AND {b} IS NOT NULL THEN {a} * {b} END)"
        )

    return named(body, a, b)


def divided(a: str, b: str) -> str:
    """Write a / b; NULL for b = 0."""

    def body(a: str, b: str) -> str:
        quick = " AND ".join(f"abs({x}) BETWEEN {_two(-500)} AND {_two(500)}" for x in (a, b))
        plain = f"{a} = {_ZERO} OR abs({a}) >= {_INFINITE} OR abs({b}) >= {_INFINITE}"
        sign = f"CASE WHEN ({a} > {_ZERO}) = ({b} > {_ZERO}) THEN {_INFINITE} ELSE -{_INFINITE} END"
        is_large = f"abs(({a} * {_two(-512)}) / ({b} * {_two(562)})) >= {_two(-50)}"
        part = f"abs({a} / ({b} * {_two(60)})) >= {_two(964)}"
        gone = f"abs(({a} * {_two(562)}) / ({b} * {_two(-512)})) <= {double(0.5)}"
        return (
            f"(CASE WHEN {b} = {_ZERO} THEN NULL WHEN {quick} THEN {a} / {b} WHEN {plain} THEN {a} / {b} "
            f"WHEN abs({a}) >= {_ONE} AND abs({b}) < {_ONE} THEN "
            f"CASE WHEN {is_large} THEN {sign} ELSE {a} / {b} END "
            f"WHEN abs({a}) >= {_two(-50)} AND abs({a}) < {_ONE} AND abs({b}) < {_ONE} THEN "
            f"CASE WHEN {part} THEN {sign} ELSE {a} / {b} END "
            f"WHEN abs({a}) < {_two(-50)} AND abs({b}) >= {_ONE} THEN "
            f"CASE WHEN {gone} THEN {_ZERO} ELSE {a} / {b} END "
            f"WHEN {a} IS NOT NULL AND {b} IS NOT NULL THEN {a} / {b} END)"
        )

    return named(body, a, b)


def remainder(a: str, b: str) -> str:
    """Write what the division a / b leaves, with the sign of a, exactly; NULL for b = 0.

    Whole numbers below 2^53 leave what whole division leaves. Every other finite pair is m 2^e and n 2^f with
    whole m, n < 2^53. Where e >= f the remainder is (m 2^(e-f) mod n) 2^f, else (m mod n 2^(f-e)) 2^e: whole
    numbers below 2^53 times a power of two, so they are doubles.
    """

    def body(a: str, b: str) -> str:
        limit = _two(53)
        integers = " AND ".join(f"abs({x}) < {limit} AND {x} = trunc({x})" for x in (a, b))
        finite = f"abs({a}) < {_INFINITE} AND abs({b}) < {_INFINITE}"
        return (
            f"(CASE WHEN {b} = {_ZERO} THEN NULL WHEN {integers} THEN ({a}::bigint % {b}::bigint)::float8 "
            f"WHEN {a} IS NULL OR {b} IS NULL THEN NULL "
            f"WHEN abs({a}) >= {_INFINITE} OR {b} = {_NAN} THEN {_NAN} "
            f"WHEN abs({a}) < abs({b}) THEN {a} "
            f"WHEN {finite} THEN {_integer_remainder(a, b)} END)"
        )

    return named(body, a, b)


def _integer_remainder(a: str, b: str) -> str:
    """Write the remainder of two finite doubles, |a| >= |b| > 0, from their bits.

    The arguments stand in the innermost query only: further out, names of its own would hide their columns.
    """
    bits = ", ".join(
        f"('x' || encode(float8send(abs({x})), 'hex'))::bit(64)::bigint AS {n}"
        for n, x in (("i", a), ("j", b))
    )
    size = (2**52) - 1
    parts = ", ".join(
        f"CASE WHEN {n} >> 52 = 0 THEN {n} ELSE ({n} & {size}) | {2**52} END::numeric AS m{n}, "
        f"greatest({n} >> 52, 1)::int AS e{n}"
        for n in "ij"
    )
    shift = " * ".join(
        f"CASE WHEN abs(ei - ej) & {2**k} <> 0 THEN {power}::numeric ELSE 1 END"
        for k, power in enumerate(_POWERS)
    )
    sign = f"CASE WHEN {a} < {_ZERO} THEN -{_ONE} ELSE {_ONE} END AS g"
    aligned = f"SELECT g, {parts} FROM (SELECT {sign}, {bits} OFFSET 0) t OFFSET 0"
    rest = "CASE WHEN ei >= ej THEN (mi * s) % mj ELSE mi % (mj * s) END"
    value = f"g * ({rest})::bigint::float8 * power({double(2)}, (least(ei, ej) - 1075)::float8)"
    return f"(SELECT {value} FROM (SELECT *, {shift} AS s FROM ({aligned}) t OFFSET 0) t)"


def exponential(x: str) -> str:
    """Write e to the power of x; NULL above 709. Below -700 in two steps: no result of 0 raises."""

    def body(x: str) -> str:
        tiny = f"exp({x} + {double(100)}) * exp({double(-100)})"
        return (
            f"(CASE WHEN {x} < {double(-745.13)} THEN {_ZERO} WHEN {x} < {double(-700)} THEN {tiny} "
            f"WHEN {x} <= {double(709)} THEN exp({x}) END)"
        )

    return named(body, x)


def logarithm_2(x: str) -> str:
    """Write the logarithm to the base 2, exact for powers of two; NULL at 0 and below."""

    def body(x: str) -> str:
        rough = f"round(ln({x}) / ln({double(2)}))"
        rest = f"ln({x} / power({double(2)}, {rough})) / ln({double(2)})"
        return (
            f"(CASE WHEN {x} BETWEEN {_two(-1000)} AND {_two(1000)} THEN {rough} + {rest} "
            f"WHEN {x} >= {_INFINITE} THEN {x} WHEN {x} > {_two(1000)} THEN ln({x}) / ln({double(2)}) "
            f"WHEN {x} > {_ZERO} THEN ln({x} * {_two(100)}) / ln({double(2)}) - {double(100)} END)"
        )

    return named(body, x)


def power(x: str, y: float) -> str:
    """Write x to the power of y, a constant; NULL where the result is not finite.

    Where the result may overflow or underflow, it is the square of x to the power of y/2.
    """
    if y == 0:
        return f"(CASE WHEN {x} IS NOT NULL THEN {_ONE} END)"
    is_integer = y == math.floor(y)
    odd = is_integer and abs(y) < 2**53 and int(y) % 2 == 1

    def body(x: str) -> str:
        size = math.copysign(min(max(abs(y), 1e-290), 1e300), y)
        exponent = f"{double(size)} * ln(abs({x}))"
        raised = f"power(abs({x}), {double(y)})"
        half = f"power(abs({x}), {double(y / 2)})"
        squared = multiplied(half, half)
        inside = f"abs({exponent}) < {double(700)}"
        is_small = f"abs({exponent}) < {double(1400)}"
        finite = f"NULLIF({squared}, {_INFINITE})"
        gone = f"WHEN {exponent} < {_ZERO} THEN {_ZERO}"
        value = f"CASE WHEN {inside} THEN {raised} WHEN {is_small} THEN {finite} {gone} END"
        at_zero, at_infinity = (_ZERO, "NULL") if y > 0 else ("NULL", _ZERO)
        signed = f"CASE WHEN {x} < {_ZERO} THEN -({value}) ELSE {value} END" if odd else value
        negative = "" if is_integer else f"WHEN {x} < {_ZERO} THEN NULL "
        return (
            f"(CASE WHEN {x} = {_NAN} THEN NULL WHEN {x} = {_ZERO} THEN {at_zero} "
            f"WHEN abs({x}) >= {_INFINITE} THEN {at_infinity} {negative}ELSE {signed} END)"
        )

    return named(body, x)


def rounded(x: str, digits: int) -> str:
    """Write x rounded to so many decimals, halves away from 0: round(x 10^n) / 10^n, as DuckDB does."""
    scale = double(10.0 ** abs(digits))

    def body(x: str) -> str:
        if digits >= 0:
            limit = _largest(10.0**digits)
            integer = _to_whole(f"({x} * {scale})")
            return f"(CASE WHEN abs({x}) <= {double(limit)} THEN {integer} / {scale} ELSE {x} END)"
        integer = multiplied(_to_whole(f"({x} / {scale})"), scale)
        return (
            f"(CASE WHEN abs({x}) < {_ONE} THEN {_ZERO} WHEN abs({x}) < {_INFINITE} THEN "
            f"coalesce(NULLIF(NULLIF({integer}, {_INFINITE}), -{_INFINITE}), {x}) ELSE {x} END)"
        )

    return named(body, x)


def _to_whole(x: str) -> str:
    """Write a double rounded to a whole number, halves away from 0; x - trunc(x) is exact."""

    def body(x: str) -> str:
        step = f"CASE WHEN {x} > {_ZERO} THEN {_ONE} ELSE -{_ONE} END"
        return (
            f"(CASE WHEN abs({x} - trunc({x})) >= {double(0.5)} THEN trunc({x}) + {step} ELSE trunc({x}) END)"
        )

    return named(body, x)


def _largest(scale: float) -> float:
    """Return the largest double whose product with a scale is finite."""
    largest = _MAX_DOUBLE / scale
    while math.isinf(largest * scale):
        largest = math.nextafter(largest, 0)
    return largest


def date_part(part: str, moment: str) -> str:
    """Write a part of a moment, as a double."""
    number = f"floor(extract(second FROM {moment}))" if part == "second" else f"extract({part} FROM {moment})"
    return f"{number}::float8"


def formatted(moment: str, form: str) -> str:
    """Write a moment in a format of strftime."""

    def body(x: str) -> str:
        pieces, at = [], 0
        for match in _PART.finditer(form):
            pieces += [_text(form[at : match.start()]), _format_part(match.group(), x)]
            at = match.end()
        pieces.append(_text(form[at:]))
        text = " || ".join(piece for piece in pieces if piece) or "''"
        return f'(CASE WHEN {x} IS NOT NULL THEN {text} END COLLATE "C")'

    return named(body, moment)


def _text(text: str) -> str:
    return string(text) if text else ""


def _format_part(part: str, x: str) -> str:
    day_of_year = f"extract(doy FROM {x})::int + 6"
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
            return f"lpad((({day_of_year} - extract(dow FROM {x})::int) / 7)::text, 2, '0')"
        case "%W":
            return f"lpad((({day_of_year} - (extract(isodow FROM {x})::int - 1)) / 7)::text, 2, '0')"
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
                count = f"extract(year FROM {b}) - extract(year FROM {a})"
            case "quarter" | "month":
                times = 4 if part == "quarter" else 12
                count = f"{_count(part, times, b)} - {_count(part, times, a)}"
            case "week":
                count = f"{days} / 7"
            case "day":
                count = days
            case _:
                seconds = {"hour": 3600, "minute": 60, "second": 1}[part]
                starts = f"date_trunc('{part}', {b}) - date_trunc('{part}', {a})"
                count = f"extract(epoch FROM {starts}) / {seconds}"
        return f"({count})::float8"

    return named(body, first, second)


def _count(part: str, times: int, x: str) -> str:
    return f"(extract(year FROM {x}) * {times} + extract({part} FROM {x}))"


def plus_days(moment: str, days: str) -> str:
    """Write a moment some days later, the number rounded to a whole one; NULL outside the calendar."""

    def body(x: str, n: str) -> str:
        inside = f"least(greatest({n}, {double(-_MAX_DAYS)}), {double(_MAX_DAYS)})::int"
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


_W = r"[ \t-\r]*"
_DIGITS = r"[0-9]+(?:_[0-9]+)*"
_SIZE = rf"(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})"
_NUMBER = rf"^{_W}[+]?-?{_SIZE}(?:[eE][+-]?{_DIGITS})?{_W}$"
_WHOLE = rf"^{_W}[+-]?{_SIZE}(?:[eE][+-]?{_DIGITS}\.?)?{_W}$"
#: Numbers that are in range if they are short: no underscore, and an exponent of two digits at most.
_PLAIN = rf"^{_W}-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9][0-9]?)?{_W}$"
_MAX_PLAIN = 100
_PIECES = rf"^{_W}[+]?(-?)([0-9]*)\.?([0-9]*)(?:[eE]([+-]?)0*([0-9]*))?{_W}$"
_INFINITE_TEXT, _NAN_TEXT = rf"^{_W}[+]?-?inf(?:inity)?{_W}$", rf"^{_W}[+]?-?nan{_W}$"

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
            f"(CASE WHEN length({x}) < {_MAX_PLAIN} AND {x} ~ '{_PLAIN}' THEN {x}::float8 "
            f"WHEN {x} ~ '{_NUMBER}' THEN {_slow_number(x)} "
            f"WHEN {x} ~* '{_INFINITE_TEXT}' THEN "
            f"CASE WHEN strpos({x}, '-') > 0 THEN '-Infinity'::float8 ELSE 'Infinity'::float8 END "
            f"WHEN {x} ~* '{_NAN_TEXT}' THEN 'NaN'::float8 END)"
        )

    return named(body, text)


def _slow_number(x: str) -> str:
    """Write the number that a text of digits is, where it may be out of range."""
    pieces = f"SELECT regexp_match(replace({x}, '_', ''), '{_PIECES}') AS m OFFSET 0"
    exponent = "coalesce(nullif(m[5], ''), '0')"
    spelled = f"m[1] || '0' || m[2] || '.' || m[3] || 'e' || coalesce(m[4], '') || {exponent} AS s"
    zeros = "length(m[3]) - length(ltrim(m[3], '0'))"
    size = f"CASE WHEN ltrim(m[2], '0') <> '' THEN length(ltrim(m[2], '0')) ELSE -({zeros}) END"
    signed = f"CASE WHEN length({exponent}) > 9 THEN 1000000000 ELSE {exponent}::int END"
    large = f"{size} + CASE WHEN m[4] = '-' THEN -1 ELSE 1 END * ({signed}) > 0 AS large"
    infinite = "CASE WHEN m[1] = '-' THEN '-Infinity'::float8 ELSE 'Infinity'::float8 END"
    return (
        "(SELECT CASE WHEN pg_input_is_valid(s, 'float8') THEN s::float8 "
        f"WHEN large THEN {infinite} ELSE {double(0)} END "
        f"FROM (SELECT m, {spelled}, {large} FROM ({pieces}) t OFFSET 0) t)"
    )


def whole_of_text(text: str) -> str:
    """Write the whole number of 64 bits that a text is, as a double, halves away from 0; NULL otherwise."""
    hexadecimal, binary = rf"^{_W}0[xX][0-9a-fA-F]+(?:_[0-9a-fA-F]+)*$", rf"^{_W}0[bB][01]+(?:_[01]+)*$"

    def body(x: str) -> str:
        bare = f"regexp_replace(replace({x}, '_', ''), '^{_W}0[xXbB]0*', '')"
        return (
            f"(CASE WHEN {x} ~ '{_WHOLE}' THEN {_integer_of_digits(x)} "
            f"WHEN {x} ~ '{hexadecimal}' THEN CASE WHEN length({bare}) < 16 OR {bare} ~ '^[0-7].{{15}}$' "
            f"THEN ('x' || lpad({bare}, 16, '0'))::bit(64)::bigint::float8 END "
            f"WHEN {x} ~ '{binary}' THEN CASE WHEN length({bare}) < 64 "
            f"THEN lpad({bare}, 64, '0')::bit(64)::bigint::float8 END END)"
        )

    return named(body, text)


def _integer_of_digits(x: str) -> str:
    """Write a text of digits as a whole number: its point is moved by the exponent, in the text."""
    pattern = rf"^{_W}([+-]?)([0-9]*)\.?([0-9]*)(?:[eE]([+-]?)0*([0-9]*)\.?)?{_W}$"
    pieces = f"SELECT regexp_match(replace({x}, '_', ''), '{pattern}') AS m OFFSET 0"
    size = "CASE WHEN length(m[5]) > 5 THEN 99999 ELSE coalesce(nullif(m[5], ''), '0')::int END"
    shifted = f"CASE WHEN m[4] = '-' THEN -1 ELSE 1 END * ({size}) AS e, m[2] || m[3] AS d"
    shifted_digits = f"SELECT m, {shifted} FROM ({pieces}) t OFFSET 0"
    point = "SELECT *, length(m[2]) + e AS p FROM (" + shifted_digits + ") t OFFSET 0"
    before = "ltrim(rpad(substring(d, 1, greatest(p, 0)), greatest(p, 0), '0'), '0')"
    up = "CASE WHEN p >= 0 AND substring(d, p + 1, 1) >= '5' COLLATE \"C\" THEN 1 ELSE 0 END AS up"
    parts = f"SELECT *, {before} AS w, ltrim(m[2], '0') AS i, {up} FROM ({point}) t OFFSET 0"
    sign = "CASE WHEN m[1] = '-' THEN -1 ELSE 1 END"
    lowest, highest = "-9223372036854775808", "9223372036854775807"
    fits = f"({sign} * ('0' || i)::numeric) BETWEEN {lowest} AND {highest}"
    value = f"{sign} * (('0' || w)::numeric + up)"
    return (
        "(SELECT CASE WHEN e BETWEEN -32768 AND 32767 AND length(w) <= 19 AND length(i) <= 19 THEN "
        f"CASE WHEN {fits} AND {value} BETWEEN {lowest} AND {highest} THEN ({value})::float8 END END "
        f"FROM ({parts}) t)"
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
