"""Every operator on PostgreSQL has DuckDB's result: on hostile values, near the limits, and on odd texts."""

from __future__ import annotations

import datetime as dt
import math
import random
import struct
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest

from tacit.algebra import Call, Column, lit
from tacit.engines._values import MACROS
from tacit.engines.duckdb._dialect import DUCKDB
from tacit.engines.postgres import POSTGRES
from tacit.engines.postgres._sessions import PostgresPlace, open_session
from tacit.engines.sql._relations import SqlWriter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tacit.algebra import Node

TYPES = {
    pa.int64(): ("bigint", "whole"),
    pa.float64(): ("float8", "float"),
    pa.string(): ('text COLLATE "C"', "text"),
    pa.timestamp("us"): ("timestamp", "moment"),
    pa.bool_(): ("boolean", "boolean"),
}
A, B = Column("n1", "number"), Column("n2", "number")
T, T2 = Column("t1", "text"), Column("t2", "text")
D, D2 = Column("d1", "date"), Column("d2", "date")


class Both:
    """One table on both engines."""

    def __init__(self, url: str, table: pa.Table) -> None:
        self._duckdb = duckdb.connect()
        self._duckdb.execute(MACROS)
        self._duckdb.register("v", table)
        self._duckdb.execute("CREATE TABLE t AS SELECT * FROM v")
        self._postgres = open_session(PostgresPlace.of(url))
        listed = ", ".join(f'"{f.name}" {TYPES[f.type][0]}' for f in table.schema)
        self._postgres.execute(f"CREATE TEMPORARY TABLE t ({listed})")
        with self._postgres._connection.cursor() as cursor, cursor.copy("COPY pg_temp.t FROM STDIN") as copy:
            for row in zip(*(c.to_pylist() for c in table.columns), strict=True):
                copy.write_row(row)
        self._types: dict[str, Any] = {f.name: TYPES[f.type][1] for f in table.schema}

    def close(self) -> None:
        self._duckdb.close()
        self._postgres.close()

    def check(self, node: Node, tolerance: float = 0, most: int = 0) -> None:
        """Compare an expression in every row; at most ``most`` rows may differ."""
        ours = SqlWriter(POSTGRES).expression(node, self._types)
        theirs = SqlWriter(DUCKDB).expression(node, self._types)
        expected = self._duckdb.execute(f"SELECT {theirs} FROM t ORDER BY t.u").fetchall()
        got = self._postgres.execute(f"SELECT {ours} FROM pg_temp.t ORDER BY t.u").fetchall()
        wrong = [
            (i, x, y)
            for i, ((x,), (y,)) in enumerate(zip(expected, got, strict=True))
            if not same(x, y, tolerance)
        ]
        if len(wrong) > most:
            line = self._duckdb.execute("SELECT * FROM t WHERE u = $u", {"u": wrong[0][0]}).fetchall()
            pytest.fail(str((node, len(wrong), line, wrong[0]))[:2000])


def same(x: object, y: object, tolerance: float) -> bool:
    if isinstance(x, float) and isinstance(y, float):
        close = tolerance > 0 and math.isclose(x, y, rel_tol=tolerance)
        return x == y or close or (math.isnan(x) and math.isnan(y))
    return x == y


def numbers(n: int, seed: int) -> list[float | None]:
    """Doubles near every limit of arithmetic."""
    rng = random.Random(seed)
    powers = [1023, 1022, 511, 512, 513, -1022, -1074, -500, -538, 500, 0, 969, 970, 971, 53, 52, -50, -51]
    special = [
        None, 0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, -5e-324, 1.7976931348623157e308, 2.0**53,
        2.0**63, -(2.0**63), 2.0**-1022, 0.5, 0.49999999999999994, 4503599627370497.5, 1e15,
    ]  # fmt: skip

    def one() -> float | None:
        match rng.randrange(7):
            case 0:
                [x] = struct.unpack("<d", rng.getrandbits(63).to_bytes(8, "little"))
                return abs(x) if math.isnan(x) else x * rng.choice([-1, 1])
            case 1:
                return math.ldexp(rng.choice([-1, 1]) * rng.uniform(1, 2), rng.choice(powers))
            case 2:
                return float(rng.randrange(-1000, 1000))
            case 3:
                return rng.choice(special)
            case 4:
                return rng.randrange(-(10**6), 10**6) / rng.choice([2, 4, 8, 10, 100])
            case 5:
                return float(rng.randrange(-(2**62), 2**62))
            case _:
                return math.ldexp(rng.uniform(-2, 2), rng.randrange(-1074, 1023))

    return [one() for _ in range(n)]


NUMBERS, SEEDS = 5000, (1, 2)


@pytest.fixture(scope="module")
def pairs(postgres_server: str) -> Iterator[Both]:
    columns = {"u": pa.array(range(NUMBERS), pa.int64())}
    columns |= {f"n{s}": pa.array(numbers(NUMBERS, s), pa.float64()) for s in SEEDS}
    both = Both(postgres_server, pa.table(columns))
    yield both
    both.close()


@pytest.mark.parametrize(
    "op", ["add", "sub", "mul", "div", "mod", "least", "greatest", "eq", "ne", "lt", "ge"]
)
def test_two_doubles_give_what_ieee_arithmetic_gives(pairs: Both, op: str) -> None:
    pairs.check(Call(op, (A, B)))


@pytest.mark.parametrize("op", ["add", "sub", "mul", "div", "mod"])
def test_constants_are_no_less_total_than_columns(pairs: Both, op: str) -> None:
    """The server computes with constants before it reads a row: a guard must hold then too."""
    for c in (5e-324, 1e308, -1e308, 0.5, 3.0, 1e-200, 0.0):
        pairs.check(Call(op, (A, lit(c))))
        pairs.check(Call(op, (lit(c), A)))
        for other in (1e308, 5e-324, -2.0):
            pairs.check(Call(op, (lit(c), lit(other))))


@pytest.mark.parametrize(
    "op", ["neg", "abs", "floor", "ceil", "trunc", "sign", "sqrt", "to_whole", "to_boolean"]
)
def test_one_double_gives_what_ieee_arithmetic_gives(pairs: Both, op: str) -> None:
    pairs.check(Call(op, (A,)))


def test_the_text_of_a_double_is_duckdb_s(pairs: Both) -> None:
    """A few texts of doubles beyond 2^63 have another last digit (docs/howto/postgres.md)."""
    pairs.check(Call("to_text", (A,)), most=3)


def test_logarithms_and_powers_agree_but_for_the_last_digits(pairs: Both) -> None:
    for op in ("ln", "exp", "log2", "log10"):
        pairs.check(Call(op, (A,)), tolerance=1e-12)
    for y in (2, 0.5, -1, 0, 3, 1.5, 300, -300, 1e-300, 1e300, -1e15, 5e-324):
        pairs.check(Call("power", (A, lit(y))), tolerance=1e-11)


def test_rounding_agrees_for_all_digits(pairs: Both) -> None:
    for digits in range(-15, 16):
        pairs.check(Call("round", (A, lit(digits))))


def test_nested_operators_stay_short_and_agree(pairs: Both) -> None:
    deep: Node = A
    for _ in range(12):
        deep = Call("div", (Call("add", (Call("mul", (deep, B)), A)), lit(3)))
    pairs.check(deep)
    assert len(SqlWriter(POSTGRES).expression(deep, {"n1": "float", "n2": "float"})) < 50_000


TEXTS = [
    "1", " 1 ", "\t1\n", "1_000", "_1", "1_", "1__0", "1.0_5", "1e400", "-1e400", "1e-400", "inf",
    "-inf", "+inf", "INFINITY", "nan", "-nan", " nan ", "0x10", "1.", ".5", ".", "-.5", "+5", "+-1",
    "--5", "1e", "1E5", "1 e5", "1d", "true", "TRUE", "t", "yes", "no", "on", "off", " true ", "2", "",
    "  ", "1,5", "5e-324", "2e-324", "1.7976931348623159e308", "\u00a01", "\u0663", "0b1", " 0x1F_0",
    "0x7FFFFFFFFFFFFFFF", "0x8000000000000000", "9" * 310, "0." + "0" * 400 + "1",
    "1" + "0" * 300 + "e-300", "1e99999999999999999999", "0e99999999999", "9223372036854775807.4",
    "9223372036854775807.5", "-9223372036854775808", "1.5", "2.5", "25e-1", "12.50e0.",
    "92233720368547758.07e2", "0e32768", "1e-32768", "now", "yesterday", "epoch", "-epoch", " epoch",
    "infinity", "2024-01-05", "2024-1-5", "24-01-05", "2024/01/05", "2024 01 05", "2024-01/05",
    "20240105", "05/06/2024", "2024-01-05 ", "2024-01-05 10", "2024-01-05 1:2", "2024-01-05T10:00:00Z",
    "2024-01-05 10:00:00+01:30", "2024-01-05 10:00 Europe/Berlin", "2024-01-05 10:00 PM",
    "2024-01-05 24:00", "2024-01-05 24:00:01", "2024-01-05 23:59:60", "2024-02-30", "0000-01-01",
    "10000-01-01", "0044-03-15 (BC)", "02024-01-05", "2024-01-05 10:00:00.1234567", "9999-12-31 24:00",
    "Straße", "ÉÈ", "😀é́", "A%_\\", "'", '"', "$1", "a-b-c", "\u3000a\u00a0", "x" * 65536, "9" * 65536,
    "1_" * 30000 + "1", "1e" + "0" * 60000 + "5", " " * 65535 + "1",
]  # fmt: skip
SPARE = " \t\n+-._:/\\TZeExXbB0123459infatruyé"


def odd_texts(n: int) -> Sequence[str | None]:
    """Odd texts and texts that differ from them in a few characters."""
    rng = random.Random(7)
    short = [t for t in TEXTS if len(t) < 100]
    made = [*TEXTS, None]
    while len(made) < n:
        t = rng.choice(short)
        for _ in range(rng.randrange(1, 4)):
            at, sign = rng.randrange(len(t) + 1), rng.choice(SPARE)
            t = rng.choice([t[:at] + sign + t[at:], t[:at] + t[at + 1 :], t[:at] + sign + t[at + 1 :]])
        if not (("_" in t) and sum(c.isdigit() for c in t) > 18):  # DuckDB misreads some of these
            made.append(t)
    return made


@pytest.fixture(scope="module")
def texts(postgres_server: str) -> Iterator[Both]:
    made = odd_texts(6000)
    columns = {"u": pa.array(range(len(made)), pa.int64()), "t1": pa.array(made, pa.string())}
    both = Both(postgres_server, pa.table(columns | {"t2": pa.array(made[::-1], pa.string())}))
    yield both
    both.close()


@pytest.mark.parametrize("kind", ["number", "text", "boolean", "date"])
def test_a_column_of_texts_is_read_as_duckdb_reads_it(texts: Both, kind: Any) -> None:
    texts.check(Column("t1", kind))


@pytest.mark.parametrize(
    "op",
    [
        "to_number",
        "to_whole",
        "to_boolean",
        "to_date",
        "to_text",
        "trim",
        "ltrim",
        "rtrim",
        "length",
        "lower",
        "upper",
    ],
)
def test_one_text_gives_what_duckdb_gives(texts: Both, op: str) -> None:
    texts.check(Call(op, (T,)))


def test_constant_texts_are_converted_without_an_error(texts: Both) -> None:
    for text in ("1e400", "abc", "2024-02-30", "now", "0x10", "1_0"):
        for op in ("to_number", "to_whole", "to_boolean", "to_date"):
            texts.check(Call(op, (lit(text),)))


def test_texts_are_compared_searched_and_cut_as_on_duckdb(texts: Both) -> None:
    for op in ("eq", "ne", "lt", "le", "gt", "ge", "concat", "coalesce"):
        texts.check(Call(op, (T, T2)))
    for pattern in ("a%", "%\\", "_%", "%é_", "\\%", "", "%", "'%"):
        texts.check(Call("like", (T, lit(pattern))))
    for part in ("a", "", "é", "\\", "-", "0", "%", "'"):
        for op in ("starts_with", "ends_with", "contains", "position"):
            texts.check(Call(op, (T, lit(part))))
        for index in (1, 2, 5):
            texts.check(Call("split_part", (T, lit(part), lit(index))))
        texts.check(Call("replace", (T, lit(part), lit("xé"))))
    for start, length in ((1, 2), (0, 2), (3, 1), (2, 0), (70_000, 3)):
        texts.check(Call("substring", (T, lit(start), lit(length))))
    for n in (0, 1, 3):
        texts.check(Call("right", (T, lit(n))))
    texts.check(Call("in", (T, lit("a"), lit("1"), lit(None))))


def moments(n: int, seed: int) -> list[dt.datetime | None]:
    rng = random.Random(seed)
    ends = [
        dt.datetime(1, 1, 1),
        dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
        dt.datetime(2024, 2, 29, 12),
        None,
    ]

    def one() -> dt.datetime | None:
        match rng.randrange(3):
            case 0:
                return dt.datetime(1, 1, 1) + dt.timedelta(
                    microseconds=rng.randrange(3652059 * 86400 * 10**6)
                )
            case 1:
                return dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=rng.randrange(-(10**13), 10**13))
            case _:
                return rng.choice(ends)

    return [one() for _ in range(n)]


@pytest.fixture(scope="module")
def dates(postgres_server: str) -> Iterator[Both]:
    rng = random.Random(3)
    days = [None, math.nan, math.inf, -math.inf, 0.5, 1.5, 2.5, -2.5, 5e6, -5e6, 3652058.0, -3652058.0, 1e300]
    columns = {
        "u": pa.array(range(4000), pa.int64()),
        "d1": pa.array(moments(4000, 1), pa.timestamp("us")),
        "d2": pa.array(moments(4000, 2), pa.timestamp("us")),
        "n1": pa.array([rng.choice([*days, rng.uniform(-1e4, 1e4)]) for _ in range(4000)], pa.float64()),
    }
    both = Both(postgres_server, pa.table(columns))
    yield both
    both.close()


def test_dates_are_taken_apart_and_moved_as_on_duckdb(dates: Both) -> None:
    parts = "year month day hour minute second weekday isodow quarter week dayofyear dayname monthname"
    for op in (*parts.split(), "to_text", "to_number", "to_whole", "to_boolean", "to_date"):
        dates.check(Call(op, (D,)))
    for part in ("year", "quarter", "month", "week", "day", "hour", "minute"):
        dates.check(Call("date_trunc", (lit(part), D)))
        dates.check(Call("date_diff", (lit(part), D, D2)))
    dates.check(Call("date_diff", (lit("second"), D, D2)))
    dates.check(Call("add_days", (D, A)))
    for months in (1, -1, 12, -13, 119988, -119988, 120000, -120000, 0):
        dates.check(Call("add_months", (D, lit(months))))
    every = "%a %A %w %u %d %-d %b %B %m %-m %y %-y %Y %H %-H %I %-I %p %M %-M %S %-S %j %-j %U %W %V %G %%"
    for form in (every, "it's %Y\"\\ %%Y"):
        dates.check(Call("strftime", (D, lit(form))))


def test_names_longer_than_the_server_keeps_stay_apart() -> None:
    first, second = POSTGRES.quote("x" * 80 + "1"), POSTGRES.quote("x" * 80 + "2")
    assert first != second
    assert max(len(first), len(second)) <= 65
    assert POSTGRES.quote('quo"te') == '"quo""te"'
