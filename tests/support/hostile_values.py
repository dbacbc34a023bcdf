"""Hostile values of every stored type, and every operator on them, for the entrance exam of engines."""

# ruff: noqa: E501 - lists of values are easier to read in long lines
from __future__ import annotations

import datetime as dt
import decimal
import itertools
import math
import random
import struct
from functools import cache
from typing import TYPE_CHECKING

import pyarrow as pa

from tacit.algebra import OPERATORS, Call, Column, lit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tacit.algebra import Kind, Node

NUMBERS = [
    None, math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 1e308, -1e308, 5e-324, -5e-324, 2.0**53 + 2, 1e15,
    -2.5, 2.5, 1.005, 0.1, 1.7976931348623157e308, 2.2250738585072014e-308, 9.223372036854775e18, 2.0**63, -(2.0**63),
    3.0, 1e-300, 123456789.987654321, 0.30000000000000004, 1e22, 1e16, 123e-7,
]  # fmt: skip
WHOLE = [None, 0, 1, -1, 2, 7, -3, 2**31 - 1, -(2**31), 2**53 + 1, 2**63 - 1, -(2**63), 10, 1000]
#: Texts that look like numbers, booleans and moments, and some that only look so.
TEXTS = [
    None, "", " ", "a", "A", "b", "A%_\\", "a'b", 'a"b', "a`b", "\\", "'", "a\\'b", "$1", "{0}", "%", "_", "%s", "?", ":x",
    "a-b-c", "--", "aa", "aaa", "abab", "Straße", "é", "e\u0301", "É", "😀é\u0301", "\u00a0a\u00a0", "\ta\n", "a\rb", "\ufeffa",
    "a\u2028b", "x" * 70_000,
    "nan", "NaN", "-nan", "+nan", "inf", "-inf", "+inf", "Infinity", "-infinity", "INF", "infinit", "1e400", "-1e400", "1e-400",
    "0", "-0", "1", "+1", " 1 ", "\t1\n", "1.", ".5", ".", "1e5", "1E5", "1e+5", "1e-5", "1e", "e5", "1_000", "1__0", "_1", "1_",
    "0x10", "0b1", "0o7", "1d", "1f", "1.5d", "1L", "1,5", "1 000", "--1", "+-1", "1.5", "2.5", "-2.5", "0.1", "١", "１", "1e1_0",
    "-9223372036854775809", "9223372036854775807", "9223372036854775808", "9" * 400, "0.1e1", "00012", "1.0", "1.50", "1e308",
    "1.7976931348623159e308", "4.9e-324", "2e-324", "1e5.5", "1e 5", "- 1", "(1)", "1%", "$5",
    "true", "TRUE", "True", "tRuE", "t", "T", "yes", "YES", "y", "on", "off", "no", "n", "f", "F", "false", "FALSE", " true ",
    "true ", "tru", "2", "0.0", "0.5", "null", "NULL", "none",
    "2024-02-29", "2024-02-30", "2023-02-29", "2024-2-9", "2024-02", "2024", "20240229", "24-02-29", "02/29/2024", "29.02.2024",
    "2024/02/29", "2024.02.29", "2024 02 29", " 2024-02-29 ", "2024-02-29 ", "2024-02-29 12:34", "2024-02-29 12:34:56",
    "2024-02-29 12:34:56.789", "2024-02-29 12:34:56.123456", "2024-02-29 12:34:56.1234567", "2024-02-29 12:34:56.123456789",
    "2024-02-29T12:34:56", "2024-02-29t12:34:56", "2024-02-29T12:34:56Z", "2024-02-29 12:34:56Z", "2024-02-29 12:34:56+02",
    "2024-02-29 12:34:56+02:30", "2024-02-29 12:34:56-0230", "2024-02-29 12:34:56 UTC", "2024-02-29 12:34:56 CET",
    "2024-02-29 12:34:56 Europe/Vienna", "2024-02-29 24:00", "2024-02-29 24:00:00", "2024-02-29 23:59:60", "2024-02-29 23:60",
    "2024-02-29 1:2:3", "2024-02-29 12", "2024-02-29 12:", "2024-02-29  12:34", "2024-02-29_12:34", "12:34:56", "12:34",
    "0001-01-01", "0000-12-31", "0001-01-01 (BC)", "9999-12-31 23:59:59.999999", "9999-12-31 24:00:00", "10000-01-01",
    "290309-12-22 (BC) 00:00:00", "-2024-01-01", "+2024-01-01", "infinity", "-infinity", "epoch", "now", "today", "tomorrow",
    "yesterday", "now()", "allballs", "Jan 5 2024", "5 Jan 2024", "2024-Jan-05", "2024-001", "2024-W01", "2024-13-01", "2024-00-10",
    "2024-01-00", "2024-01-32", "1970-01-01 00:00:00", "1969-12-31 23:59:59.999999", "J2451187", "1720000000",
]  # fmt: skip
MOMENTS = [
    None, dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999), dt.datetime(2024, 2, 29, 12),
    dt.datetime(1970, 1, 1), dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(2024, 12, 30), dt.datetime(2024, 12, 29, 1),
    dt.datetime(2023, 1, 1, 0, 0, 1), dt.datetime(2021, 1, 3, 23, 59), dt.datetime(2000, 2, 29), dt.datetime(1900, 3, 1),
    dt.datetime(2024, 1, 31, 23, 0), dt.datetime(2024, 2, 1, 1, 0), dt.datetime(1582, 10, 10), dt.datetime(1500, 2, 28, 5, 6, 7, 8),
    dt.datetime(2024, 3, 31, 2, 30), dt.datetime(2020, 12, 31, 12, 0, 0, 500000), dt.datetime(2010, 1, 3), dt.datetime(99, 12, 31),
]  # fmt: skip
BOOLEANS = [None, True, False]
DECIMALS = [
    None,
    *map(
        decimal.Decimal, ["0.00", "1.00", "-1.50", "2.25", "9" * 26 + ".99", "-" + "9" * 26 + ".99", "0.01"]
    ),
]
HUGE = [None, 0, 1, 2**53 + 1, 2**63, 2**64 - 1]

#: What cannot be equal on every engine, by operator, and why; it is still total everywhere.
NOT_EQUAL = {
    "ln": "the last digit of a logarithm is the machine's", "log2": "as ln", "log10": "as ln",
    "exp": "the last digit is the machine's", "power": "the last digit is the machine's",
    "lower": "the letters of rare scripts follow the engine's version of Unicode",
    "upper": "as lower",
    "to_text": "for a few doubles, Java before version 19 writes one digit more than needed (Spark)",
}  # fmt: skip


#: Three powers of two whose text DuckDB 2.0 writes wrongly; no two readings of them agree.
NOT_WRITTEN = (2.0**81, 2.0**91, 2.0**807)


#: How many units in the last place such numbers may differ: one was seen so far, and a quotient of two
#: logarithms, as Spark computes `log2`, may be two away.
ULPS = 2


def around(values: Sequence[object], rows: int, step: int = 1) -> list[object]:
    """Repeat values over so many rows; two columns with different steps meet in every pair over time."""
    return [values[(i * step) % len(values)] for i in range(rows)]


@cache
def pairs() -> pa.Table:
    """Every pair of hostile numbers; beside them hostile texts, moments and booleans, two by two."""
    both = list(itertools.product(NUMBERS, NUMBERS))
    n = len(both)
    moments = list(itertools.product(MOMENTS, MOMENTS))
    truths = list(itertools.product(BOOLEANS, BOOLEANS))
    days = [None if m is None else m[0] and m[0].date() for m in around(moments, n)]
    return pa.table(
        {
            "u": pa.array(range(n), pa.int64()),
            "n1": pa.array([p[0] for p in both], pa.float64()),
            "n2": pa.array([p[1] for p in both], pa.float64()),
            "t1": pa.array(around(TEXTS, n), pa.string()),
            "t2": pa.array(around(TEXTS[::-1], n, 3), pa.string()),
            "d1": pa.array([m[0] for m in around(moments, n)], pa.timestamp("us")),
            "d2": pa.array([m[1] for m in around(moments, n)], pa.timestamp("us")),
            "b1": pa.array([b[0] for b in around(truths, n)], pa.bool_()),
            "b2": pa.array([b[1] for b in around(truths, n)], pa.bool_()),
            "whole": pa.array(around(WHOLE, n), pa.int64()),
            "small": pa.array([w if w is None or abs(w) < 2**31 else 5 for w in around(WHOLE, n)], pa.int32()),
            "real": pa.array([x if x is None or abs(x) < 3e38 else 1.5 for x in around(NUMBERS, n)], pa.float32()),
            "digits": pa.array(around(DECIMALS, n), pa.decimal128(28, 2)),
            "zone": pa.array([m[1] for m in around(moments, n)], pa.timestamp("us", tz="UTC")),
            "day": pa.array(days, pa.date32()),
        }
    )  # fmt: skip


#: Signs of which random texts are made, most of them texts that are almost a number, a boolean or a moment.
ALPHABETS = (
    "0123456789",
    "0123456789+-.eE",
    "0123456789_. ",
    "-0123456789: T.Z+",
    "truefalsTRUE yno",
    "infaINFA+-ty ",
    "aé😀'\"`\\%_ \t\n-:|",
)
SHAPES = ("####-##-##", "####-##-## ##:##:##", "####-##-## ##:##:##.######", "####-#-# #:#:#", "#.#e#", "-##.##", "####-##-##T##:##:##+##")  # fmt: skip


@cache
def drawn(rows: int, seed: int = 20) -> pa.Table:
    """Random pairs of doubles near their limits, and random texts that are almost numbers or moments."""
    draw = random.Random(seed)

    def double() -> float:
        return next(x for _ in range(100) if abs(x := one()) not in NOT_WRITTEN)

    def one() -> float:
        match draw.randrange(6):
            case 0:
                return struct.unpack("<d", draw.randbytes(8))[0]
            case 1:
                return math.ldexp(
                    draw.uniform(-1, 1), draw.choice([1024, 1023, 970, 512, -500, -1022, -1060, -1073])
                )
            case 2:
                return float(draw.randint(-(10**6), 10**6)) / draw.choice([1, 2, 10, 100, 1000])
            case 3:
                return draw.choice([-1, 1]) * 2.0 ** draw.randint(-1074, 1023)
            case 4:
                return math.nextafter(
                    draw.choice([-1, 1]) * 2.0 ** draw.randint(-1060, 1023), draw.choice([0, 1e308])
                )
            case _:
                return draw.uniform(-100, 100)

    def text() -> str:
        if draw.random() < 0.4:
            shape = draw.choice(SHAPES)
            made = "".join(draw.choice("0123456789") if c == "#" else c for c in shape)
            if shape.startswith("####-##") and draw.random() < 0.8:  # mostly days that may exist
                made = (
                    f"{draw.randint(0, 2500):04}-{draw.randint(0, 13):02}-{draw.randint(0, 32):02}"
                    + made[10:]
                )
            return made
        signs = draw.choice(ALPHABETS)
        return "".join(draw.choice(signs) for _ in range(draw.randint(0, 9)))

    def moment() -> dt.datetime:
        return dt.datetime(1, 1, 1) + dt.timedelta(
            days=draw.randrange(3_652_058), microseconds=draw.randrange(86_400_000_000)
        )

    return pa.table(
        {
            "u": pa.array(range(rows), pa.int64()),
            "n1": pa.array([double() for _ in range(rows)], pa.float64()),
            "n2": pa.array([double() for _ in range(rows)], pa.float64()),
            "t1": pa.array([text() for _ in range(rows)], pa.string()),
            "t2": pa.array([text() for _ in range(rows)], pa.string()),
            "d1": pa.array([moment() for _ in range(rows)], pa.timestamp("us")),
            "d2": pa.array([moment() for _ in range(rows)], pa.timestamp("us")),
            "b1": pa.array([draw.random() < 0.5 for _ in range(rows)], pa.bool_()),
            "b2": pa.array([draw.random() < 0.5 for _ in range(rows)], pa.bool_()),
            "whole": pa.array(
                [draw.randint(-(2**63), 2**63 - 1) >> draw.randrange(63) for _ in range(rows)], pa.int64()
            ),
        }
    )


KIND: dict[str, list[str]] = {
    "number": ["n1", "n2"],
    "text": ["t1", "t2"],
    "boolean": ["b1", "b2"],
    "date": ["d1", "d2"],
}
#: Constants by operator: the position, and the values that are tried there; the last is repeated.
CONSTANTS: dict[str, list[tuple[int, list[object]]]] = {
    "round": [(1, [0, 2, -3, 15, -1, 1])],
    "clip": [(1, [-1, -1e308, 0]), (2, [30, 1e308, 0])],
    "substring": [(1, [1, 0, 3, 2, 1]), (2, [2, 0, 2, 100_000, 1])],
    "like": [(1, ["a%", "%\\", "_%", "%'%", "A\\%\\_\\\\", "", "%a_a%", "%\n%", "a\\%", "%%", "%`%"])],
    "starts_with": [(1, ["a", "", "A%", "\\", "'", "2024"])],
    "ends_with": [(1, ["a", "", "_\\", "'b", "0"])],
    "contains": [(1, ["a", "", "%", "\\", "'", "`", '"', "\n"])],
    "position": [(1, ["a", "", "b", "é", "\\'"])],
    "replace": [(1, ["a", "", "aa", "\\", "'", "-"]), (2, ["b", "x" * 9999, "", "\\\\", "''", "$1\\1"])],
    "right": [(1, [2, 0, -1, 1, 100_000])],
    "split_part": [(1, ["-", "", "a", "-", "."]), (2, [1, 3, 2, 2, 1])],
    "power": [(1, [2, 0.5, -1, 0, 300, -0.5, 3])],
    "strftime": [(1, ["%Y-%m", "%a %A %w %u %d %-d %b %B %m %-m %y %-y %Y %H %-H %I %-I %p %M %-M %S %-S %j %-j %U %W %V %G %%", "it's \"\\ text: %Y%%Y"])],
    "add_months": [(1, [1, -120000, 120000, 11, -1, 12, -13])],
    "date_trunc": [(0, ["year", "quarter", "month", "week", "day", "hour", "minute"])],
    "date_diff": [(0, ["year", "quarter", "month", "week", "day", "hour", "minute", "second"])],
}  # fmt: skip


def calls() -> Iterator[Call]:
    """Every operator on every kind that it takes, with its constants."""
    for op, rule in OPERATORS.items():
        if op == "case":
            for kind, (a, b) in KIND.items():
                yield Call(op, (Column("b1", "boolean"), Column(a, kind), Column(b, kind)))
            yield Call(
                op,
                (Column("b1", "boolean"), Column("n1", "number"), Column("b2", "boolean"), lit(3), lit(None)),
            )
            continue
        takes = [k.rstrip("*") for k in rule.takes]
        kinds: list[Kind | None] = list(KIND) if {"same", "any"} & set(takes) else [None]
        for kind in kinds:
            wanted = [kind if k in {"same", "any"} else k for k in takes]
            columns = [Column(KIND[k][i % 2], k) for i, k in enumerate(wanted)]
            if op == "date_diff":
                columns = [Column("t1", "text"), Column("d1", "date"), Column("d2", "date")]
            yield from _with_constants(op, columns)
            if any(k.endswith("*") for k in rule.takes) and not rule.constant:
                yield Call(op, (*columns, columns[0], _constant(wanted[-1])))
    yield from _with_literals()


def short_calls() -> list[Call]:
    """One or a few calls of each operator, for many rows: those that a random value may break."""
    found: dict[str, list[Call]] = {}
    for call in calls():
        if any(isinstance(arg, Column) for arg in call.args):
            found.setdefault(call.op, []).append(call)
    return [call for some in found.values() for call in some[:2]]


def _with_constants(op: str, columns: list[Column]) -> Iterator[Call]:
    options = CONSTANTS.get(op, [])
    for choice in range(max([len(v) for _, v in options], default=1)):
        args: list[Node] = list(columns)
        for place, values in options:
            args[place] = lit(values[min(choice, len(values) - 1)])
        yield Call(op, tuple(args))


def _constant(kind: str | None) -> Node:
    return {
        "number": lit(2.5),
        "text": lit("a'\\b"),
        "boolean": lit(True),
        "date": lit(dt.date(2024, 2, 29)),
    }[kind or "number"]


def _with_literals() -> Iterator[Call]:
    """Operators on constants alone and on one column and one constant: an engine folds these when it plans."""
    for op in ("add", "sub", "mul", "div", "mod", "eq", "lt", "least", "greatest"):
        for a in (1e308, -1e308, 5e-324, 0, -0.0, 3):
            yield Call(op, (lit(a), Column("n1", "number")))
            yield Call(op, (lit(a), lit(1e-308)))
    yield Call("div", (lit(1), lit(0)))
    yield Call("sqrt", (lit(-1),))
    yield Call("ln", (lit(0),))
    yield Call("exp", (lit(1000),))
    for text in ("now", "2024-02-30", "1e400", "x", "1_000", "true", "infinity"):
        for op in ("to_number", "to_whole", "to_boolean", "to_date", "to_text"):
            yield Call(op, (lit(text),))
    for kind, values in {
        "text": ["a'\\b", "A%_\\", "a`b", ""],
        "date": [dt.date(1, 1, 1), dt.datetime(2024, 2, 29, 12)],
    }.items():
        for value in values:
            for op in ("eq", "ne", "lt", "ge", "in"):
                yield Call(op, (Column(KIND[kind][0], kind), lit(value)))
    yield Call("in", (Column("t1", "text"), lit("a"), lit(None), lit("é")))
    yield Call("in", (Column("n1", "number"), lit(0), lit(-0.0), lit(1)))
    yield Call("coalesce", (lit(None), Column("t1", "text"), lit("none")))
    yield Call("eq", (Column("n1", "number"), lit(None)))


def readings(names: Sequence[str]) -> list[Column]:
    """Every column read as every kind."""
    return [Column(name, kind) for name in names for kind in KIND]
