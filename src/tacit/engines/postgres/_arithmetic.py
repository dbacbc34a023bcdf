"""Arithmetic of doubles in PostgreSQL that has IEEE 754's results and never raises.

PostgreSQL raises where a result overflows or underflows. So each operator looks at the sizes of its arguments
first, and scales by powers of two, which is exact, where it must know which of the two happens
(docs/proofs/postgres.md). Results are IEEE 754's, the sign of a zero aside.
"""

from __future__ import annotations

import math
import sys

from tacit.engines.postgres._bindings import named

_MOST = sys.float_info.max


def double(value: float) -> str:
    """Write a double exactly.

    Examples
    --------
    >>> double(0.1), double(-2**60), double(float("inf"))
    ("'0.1'::float8", "'-1.152921504606847e+18'::float8", "'Infinity'::float8")
    """
    written = repr(float(value)) if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")
    return f"'{written}'::float8"


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
        least, most = f"least(abs({a}), abs({b}))", f"greatest(abs({a}), abs({b}))"
        gone = f"({least} * {_two(1000)}) * ({most} * {_two(74)}) <= {double(0.5)}"
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
        whole = f"abs(({a} * {_two(-512)}) / ({b} * {_two(562)})) >= {_two(-50)}"
        part = f"abs({a} / ({b} * {_two(60)})) >= {_two(964)}"
        gone = f"abs(({a} * {_two(562)}) / ({b} * {_two(-512)})) <= {double(0.5)}"
        return (
            f"(CASE WHEN {b} = {_ZERO} THEN NULL WHEN {quick} THEN {a} / {b} WHEN {plain} THEN {a} / {b} "
            f"WHEN abs({a}) >= {_ONE} AND abs({b}) < {_ONE} THEN "
            f"CASE WHEN {whole} THEN {sign} ELSE {a} / {b} END "
            f"WHEN abs({a}) >= {_two(-50)} AND abs({a}) < {_ONE} AND abs({b}) < {_ONE} THEN "
            f"CASE WHEN {part} THEN {sign} ELSE {a} / {b} END "
            f"WHEN abs({a}) < {_two(-50)} AND abs({b}) >= {_ONE} THEN "
            f"CASE WHEN {gone} THEN {_ZERO} ELSE {a} / {b} END "
            f"WHEN {a} IS NOT NULL AND {b} IS NOT NULL THEN {a} / {b} END)"
        )

    return named(body, a, b)


#: Powers of two that make up every other one, exactly, as numerics.
_POWERS = [2 ** (2**i) for i in range(11)]


def remainder(a: str, b: str) -> str:
    """Write what the division a / b leaves, with the sign of a, exactly; NULL for b = 0.

    Whole numbers below 2^53 leave what whole division leaves. Every other finite pair is m 2^e and n 2^f with
    whole m, n < 2^53. Where e >= f the remainder is (m 2^(e-f) mod n) 2^f, else (m mod n 2^(f-e)) 2^e: whole
    numbers below 2^53 times a power of two, so they are doubles.
    """

    def body(a: str, b: str) -> str:
        most = _two(53)
        whole = " AND ".join(f"abs({x}) < {most} AND {x} = trunc({x})" for x in (a, b))
        finite = f"abs({a}) < {_INFINITE} AND abs({b}) < {_INFINITE}"
        return (
            f"(CASE WHEN {b} = {_ZERO} THEN NULL WHEN {whole} THEN ({a}::bigint % {b}::bigint)::float8 "
            f"WHEN {a} IS NULL OR {b} IS NULL THEN NULL "
            f"WHEN abs({a}) >= {_INFINITE} OR {b} = {_NAN} THEN {_NAN} "
            f"WHEN abs({a}) < abs({b}) THEN {a} "
            f"WHEN {finite} THEN {_left(a, b)} END)"
        )

    return named(body, a, b)


def _left(a: str, b: str) -> str:
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
    taken = f"SELECT g, {parts} FROM (SELECT {sign}, {bits} OFFSET 0) t OFFSET 0"
    left = "CASE WHEN ei >= ej THEN (mi * s) % mj ELSE mi % (mj * s) END"
    value = f"g * ({left})::bigint::float8 * power({double(2)}, (least(ei, ej) - 1075)::float8)"
    return f"(SELECT {value} FROM (SELECT *, {shift} AS s FROM ({taken}) t OFFSET 0) t)"


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
    whole = y == math.floor(y)
    odd = whole and abs(y) < 2**53 and int(y) % 2 == 1

    def body(x: str) -> str:
        size = math.copysign(min(max(abs(y), 1e-290), 1e300), y)
        exponent = f"{double(size)} * ln(abs({x}))"
        raised = f"power(abs({x}), {double(y)})"
        half = f"power(abs({x}), {double(y / 2)})"
        squared = multiplied(half, half)
        inside = f"abs({exponent}) < {double(700)}"
        near = f"abs({exponent}) < {double(1400)}"
        finite = f"NULLIF({squared}, {_INFINITE})"
        gone = f"WHEN {exponent} < {_ZERO} THEN {_ZERO}"
        value = f"CASE WHEN {inside} THEN {raised} WHEN {near} THEN {finite} {gone} END"
        at_zero, at_infinity = (_ZERO, "NULL") if y > 0 else ("NULL", _ZERO)
        signed = f"CASE WHEN {x} < {_ZERO} THEN -({value}) ELSE {value} END" if odd else value
        negative = "" if whole else f"WHEN {x} < {_ZERO} THEN NULL "
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
            most = _largest(10.0**digits)
            whole = _to_whole(f"({x} * {scale})")
            return f"(CASE WHEN abs({x}) <= {double(most)} THEN {whole} / {scale} ELSE {x} END)"
        whole = multiplied(_to_whole(f"({x} / {scale})"), scale)
        return (
            f"(CASE WHEN abs({x}) < {_ONE} THEN {_ZERO} WHEN abs({x}) < {_INFINITE} THEN "
            f"coalesce(NULLIF(NULLIF({whole}, {_INFINITE}), -{_INFINITE}), {x}) ELSE {x} END)"
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
    most = _MOST / scale
    while math.isinf(most * scale):
        most = math.nextafter(most, 0)
    return most
