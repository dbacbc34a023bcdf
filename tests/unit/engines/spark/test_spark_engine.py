"""The Spark engine: the same integers as DuckDB, the same owners, and a session that stays as it was."""

from __future__ import annotations

import datetime as dt
import math
import os
import random
from decimal import Decimal
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit as tc
from tacit.algebra import Call, Column, lit
from tacit.engines import DuckDB, Source, SourceTable, grid_columns, read_source
from tacit.engines._values import MACROS
from tacit.engines._values import owner_sql as duckdb_owner
from tacit.engines.duckdb._dialect import DUCKDB
from tacit.engines.duckdb._views import view_sql as duckdb_view
from tacit.engines.sql._relations import SqlWriter

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.xdist_group("spark")
KEY = 1234567


def _written(spark):
    """Import what only exists where PySpark does."""
    from tacit.engines.spark import _dialect, _engine, _session, _sources

    del spark
    return _dialect, _session, _sources, _engine


@pytest.fixture(scope="module")
def own(spark):
    """Tacit's own session."""
    return _written(spark)[1].open_session(spark)


# Texts and numbers ------------------------------------------------------------------------------------------

NUMBER_SEEDS = [
    "1_000", " 1 ", "1e400", "-12.5e-3", "inf", "+infinity", "nan", "nan(1)", ".5", "5.", "1_0.5_5e1_0", "0x10", "+-1", "",  # noqa: E501
    "0b101", "9223372036854775807", "9223372036854775807.5", "25e-1", "-2.5", "1e18", "0x7fffffffffffffff", "0xFF_ff",  # noqa: E501
    "12345678901234567890e-5", "1e-1", "true", "false", "yes", "T", "1d", "1f",
]  # fmt: skip
MOMENT_SEEDS = [
    "2024-02-29", "2024-02-29 12:30:05.123456", "2024/2/9T1:2:3", "2024-02-29 24:00:00", "2024 02 29 12:30", "now",  # noqa: E501
    "2024-02-29 12:00:00+02:30", "2024-02-29 12:00:00 Europe/Berlin", "epoch", "2024-02-29 12:30:5 UTC",
    "2024-02-29 12:30:05Z", "9999-12-31 23:59", "2024-02-29 12:00:00+02:30:15", "0044-03-15 (BC)", "-0001-01-01",  # noqa: E501
    "2024-02-29T12:30:05.5Z", "0001-01-01 00:00:00", "0000-01-01", "9999-12-31 24:00", "2024", "yesterday",
]  # fmt: skip


def _mutated(rng: random.Random, text: str, signs: str) -> str:
    letters = list(text)
    for _ in range(rng.choice([0, 1, 1, 2, 3])):
        at, what = rng.randrange(len(letters) + 1), rng.random()
        if what < 0.4:
            letters.insert(at, rng.choice(signs))
        elif at < len(letters):
            letters[at : at + 1] = [] if what < 0.7 else [rng.choice(signs)]
    return "".join(letters)


def _compared(own, table: pa.Table, nodes, types, path: Path) -> None:
    """Compare expressions on DuckDB and Spark, value by value."""
    dialect = _written(own)[0].SPARK
    pq.write_table(table, path)
    own.read.parquet(str(path)).createOrReplaceTempView("compared")
    con = duckdb.connect()
    con.execute(MACROS)
    con.execute(f"CREATE VIEW compared AS FROM read_parquet('{path}')")

    def select(made):
        return f"SELECT {', '.join(f'{s} AS c{i}' for i, s in enumerate(made))} FROM compared ORDER BY u"

    want = con.execute(select([SqlWriter(DUCKDB).expression(n, types) for n in nodes])).fetchall()
    got = own.sql(select([SqlWriter(dialect).expression(n, types) for n in nodes])).collect()
    for one, other, row in zip(want, got, table.to_pylist(), strict=True):
        for node, a, b in zip(nodes, one, other, strict=True):
            both_nan = isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b)
            assert (a == b and type(a) is type(b)) or both_nan, (node, row, a, b)


def test_texts_are_the_numbers_and_moments_that_duckdb_finds(own, tmp_path: Path):
    rng = random.Random(20261116)
    n = 4000
    hard = ["1_1" * 20_000, "9" * 65_536, "+" * 65_536, "1e" * 30_000, "-" * 65_000, "2024-" * 13_000]
    numbers = [
        *hard,
        *(_mutated(rng, rng.choice(NUMBER_SEEDS), "0159_+-.eE infatyN()xX\t\nbTs") for _ in range(n)),
    ]
    moments = [
        *hard,
        *(_mutated(rng, rng.choice(MOMENT_SEEDS), "0123459-/\\ :.TZz+_UTCepoch\t\nx(BC)") for _ in range(n)),
    ]
    table = pa.table({"u": range(len(numbers)), "t": numbers, "m": moments})
    nodes = [Column("t", kind) for kind in ("number", "boolean", "date")]
    nodes += [Call(op, (Column("t", "text"),)) for op in ("to_number", "to_whole", "to_boolean", "to_date")]
    nodes += [Call("to_date", (Column("m", "text"),)), Call("to_whole", (Column("m", "text"),))]
    _compared(own, table, nodes, {"t": "text", "m": "text"}, tmp_path / "t.parquet")


def test_numbers_are_written_as_duckdb_writes_them(own, tmp_path: Path):
    rng = np.random.default_rng(3)
    cents = rng.integers(-(10**9), 10**9, 1000) / 100
    values = np.r_[rng.random(1000), cents, rng.normal(size=1000) * 10.0 ** rng.integers(-20, 17, 1000)]
    values = [*values.tolist(), 0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, -5e-324, 2.0**63, 1e15, 1e16, 1e-4,  # noqa: E501
              0.001, 9999999.5, 1e7 + 0.5, 123456789.25, -1e-5, 1.7976931348623157e308]  # fmt: skip
    table = pa.table({"u": range(len(values)), "x": values})
    nodes = [Call("to_text", (Column("x", "number"),)), Call("to_whole", (Column("x", "number"),))]
    nodes += [Call("round", (Column("x", "number"), lit(k))) for k in (0, 2, 15, -3)]
    _compared(own, table, nodes, {"x": "float"}, tmp_path / "t.parquet")


def test_moments_are_counted_as_duckdb_counts_them(own, tmp_path: Path):
    rng = np.random.default_rng(4)
    n, start = 1500, dt.datetime(1, 1, 1)
    first = [
        start + dt.timedelta(days=int(d), seconds=int(s), microseconds=int(m))
        for d, s, m in zip(
            rng.integers(100, 3_651_900, n), rng.integers(0, 86400, n), rng.integers(0, 10**6, n), strict=True
        )
    ]
    second = [
        a + dt.timedelta(days=int(d), seconds=7 * int(d))
        for a, d in zip(first, rng.integers(-99, 99, n), strict=True)
    ]
    at = pa.timestamp("us")
    table = pa.table(
        {"u": range(n), "a": pa.array(first, at), "b": pa.array(second, at), "k": rng.normal(0, 1e6, n)}
    )
    a, b = Column("a", "date"), Column("b", "date")
    parts = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
    nodes = [Call("date_diff", (lit(p), a, b)) for p in parts]
    nodes += [Call("date_trunc", (lit(p), a)) for p in parts[:-1]]
    nodes += [
        Call(op, (a,)) for op in ("week", "isodow", "weekday", "dayofyear", "dayname", "monthname", "second")
    ]
    nodes += [Call("add_months", (a, lit(k))) for k in (1, -13, 120_000)]
    nodes += [Call("add_days", (a, Column("k", "number"))), Call("to_text", (a,))]
    nodes += [
        Call(
            "strftime",
            (
                a,
                lit(
                    "%a %A %w %u %d %-d %b %B %m %-m %y %-y %Y %H %-H %I %-I %p %M %-M %S %-S %j %-j %U %W %V %G %%"  # noqa: E501
                ),
            ),
        )
    ]
    types = {"a": "moment", "b": "moment", "k": "float"}
    _compared(own, table, nodes, types, tmp_path / "t.parquet")


def test_a_text_constant_holds_every_sign(own):
    dialect = _written(own)[0].SPARK
    texts = [
        *map(chr, range(1, 256)),
        "${x}",
        "\\'",
        "\\\\",
        "a\\nb",
        "'; --",
        "\\u0041",
        "%\\%",
        ":tacit_key",
        "`",
    ]
    [row] = own.sql(
        f"SELECT {', '.join(f'{dialect.string(t)} AS c{i}' for i, t in enumerate(texts))}"
    ).collect()
    assert list(row) == texts
    likes = [dialect.op_like(dialect.string(t), t.replace("%", "_")) for t in texts]
    [row] = own.sql(f"SELECT {', '.join(f'{s} AS c{i}' for i, s in enumerate(likes))}").collect()
    assert all(row)


def test_whole_numbers_are_exact(own):
    d = _written(own)[0].SPARK
    wide = "CAST('1000000000000000000000000000000' AS DECIMAL(38, 0))"
    halves = d.grid("x", 0.0, 30.0, 2.0**26)
    values = "VALUES (CAST(NULL AS DOUBLE)), (double('nan')), (double('inf')), (-double('inf')), (-0e0)"
    assert own.sql(f"SELECT {d.whole_div(wide, '7')}").collect()[0][0] == 142857142857142857142857142857
    assert own.sql(f"SELECT {d.whole_div('14999999L', '5000000L')}").collect()[0][0] == 2
    summed = own.sql(f"SELECT {d.total('x')} FROM VALUES (9223372036854775807L), (1L) t(x)").collect()
    assert summed[0][0] == Decimal(2**63)
    grid = [row[0] for row in own.sql(f"SELECT {halves} FROM {values} t(x)").collect()]
    assert grid == [None, None, 30 * 2**25, 0, 0]


# Views and owners -------------------------------------------------------------------------------------------

OWNED = pa.table(
    {
        "whole": pa.array([1, 2, None, -5], pa.int32()),
        "real": pa.array([1.0, 1.5, math.nan, -0.0]),
        "single": pa.array([0.1, 1e10, None, 3], pa.float32()),
        "exact": pa.array([Decimal("1.50"), Decimal("-0.10"), None, Decimal("7.00")], pa.decimal128(30, 2)),
        "large": pa.array([2**64 - 1, 0, None, 1], pa.uint64()),
        "text": ["a", "sha256:" + "0" * 64, "x" * 70_000, ""],
        "raw": pa.array([b"a", b"\xff\x00'\"\\", None, b"\xc3\xa9"], pa.binary()),
        "truth": [True, False, None, True],
        "day": pa.array([dt.date(2024, 1, 1), dt.date(1, 1, 1), None, dt.date(9999, 12, 31)]),
        "far": pa.array([-(2**31) + 5, 2**31 - 1, 0, 1], pa.int32()).cast(pa.date32()),
        "moment": pa.array([dt.datetime(2024, 1, 1, 12, 0, 0, 500000), None, dt.datetime(1, 1, 1), None]),
        "zone": pa.array([1, None, -(2**62), 2**62], pa.int64()).cast(pa.timestamp("us", "UTC")),
    }
)


def test_a_view_holds_what_duckdb_s_view_holds(own, tmp_path: Path):
    """Values as text, numbers and owners, of every type, and of two columns together."""
    _, _, types, views = _written(own)
    path = tmp_path / "t.parquet"
    pq.write_table(OWNED, path)
    from tacit.engines.spark._sources import SparkSource

    source = SparkSource(own, str(path))
    kinds = source.schema()
    source.frame(kinds).createOrReplaceTempView("owned")
    con = duckdb.connect()
    con.execute(MACROS)
    raw = read_source(path)
    described = raw.described(con, "owned")
    con.execute(duckdb_view("v", raw, None, described))
    held = views.view_types(kinds)
    spark_view, writer = views.view_sql("owned", None, kinds), SqlWriter(_written(own)[0].SPARK)
    read = [Column(c, kind) for c in OWNED.column_names for kind in ("text", "number", "boolean", "date")]
    listed = ", ".join(f"{writer.expression(n, held)} AS c{i}" for i, n in enumerate(read))
    mine = [tuple(row) for row in own.sql(f"SELECT {listed} FROM ({spark_view})").collect()]
    listed = ", ".join(SqlWriter(DUCKDB).expression(n, {}) for n in read)
    theirs = con.execute(f"SELECT {listed} FROM v").fetchall()
    for one, other in zip(mine, theirs, strict=True):
        for node, a, b in zip(read, one, other, strict=True):
            assert repr(a).replace("-0.0", "0.0") == repr(b).replace("-0.0", "0.0"), node
    for unit in ([c] for c in OWNED.column_names):
        _same_owners(own, con, unit, kinds, described, raw, types)
    _same_owners(own, con, ["text", "whole", "raw"], kinds, described, raw, types)


def _same_owners(own, con, unit, kinds, described, raw, types) -> None:
    mine = [row[0] for row in own.sql(f"SELECT {types.owner_sql(unit, kinds)} FROM owned").collect()]
    sql = f"SELECT CAST({duckdb_owner(unit, described)} AS VARCHAR) FROM ({raw.sql('t')})"
    theirs = [row[0] for row in con.execute(sql).fetchall()]
    assert [None if x is None else str(x) for x in mine] == theirs, unit


# Sources ----------------------------------------------------------------------------------------------------

VISITS = pa.table(
    {
        "u": [i % 40 for i in range(600)],
        "h": [["A", "B", "C", None, "é"][i * 7 % 5] for i in range(600)],
        "x": [None if i % 17 == 0 else math.nan if i % 19 == 0 else i * 0.37 % 31 for i in range(600)],
        "k": [i * i % 11 for i in range(600)],
    }
)


def _questions(data, limits):
    grouped = data.group_by("h", keys=["A", "B", "é"])
    yield grouped.agg(n=tc.count(), s=tc.sum("x"), m=tc.mean("x"), v=tc.variance("x"), u=tc.count_units())
    yield grouped.agg(d=tc.count_distinct("k"), q=tc.median("x"))
    yield data.where("x > 3 AND h LIKE '_'").agg(n=tc.count(), s=tc.sum("k", bounds=(0, 10)))
    yield data.group_by("h").agg(n=tc.count(), s=tc.sum("x"))
    if "rows" not in limits:
        return
    text = "WITH p AS (SELECT u, h, SUM(x) AS t, COUNT(*) AS n FROM data GROUP BY u, h) "
    yield data.sql(text + "SELECT COUNT(*) AS a FROM p WHERE t > 2 AND n < 9")


def _protected(source, limits, **options):
    budget = tc.Budget(epsilon=10**9, delta=0.1)
    return tc.protect(source, unit="u", bounds={"x": (0, 30)}, limits=limits, budget=budget, **options)


def _engines(spark, path: Path, bounds):
    from tacit.core import Fact
    from tacit.engines.spark import SparkEngine

    grids = grid_columns({"x": Fact(bounds=bounds)})
    duck = DuckDB({"data": SourceTable(read_source(path), ("u",), grids)}, key=KEY, portable=True)
    kept = {"data": SourceTable(Source("spark", spark, str(path)), ("u",), grids)}
    return duck, SparkEngine(kept, key=KEY, portable=True)


def _exact(engine, plan):
    from tacit.tables.planning._exact_integers import exact_integers

    [member] = plan._members
    with engine.transaction() as data:
        return exact_integers(data, member.task.subject.asked, member.task.subject.statistics)


@pytest.mark.parametrize("limits", [{"rows": 4}, {"groups": 2, "per_group": 3}, {"rows": 7, "groups": 2}])
def test_integers_equal_those_of_duckdb(spark, tmp_path: Path, limits):
    """On the first question, and from the ranked rows that are kept from the second on."""
    path = tmp_path / "t.parquet"
    pq.write_table(VISITS, path)
    data = _protected(path, limits)
    from fractions import Fraction

    duck, mine = _engines(spark, path, (Fraction(0), Fraction(30)))
    assert duck.columns("data") == mine.columns("data")
    for question in _questions(data, limits):
        plan = question.plan(epsilon=10**6, delta=0.01)
        want = _exact(duck, plan)
        assert _exact(mine, plan) == want
        [member] = plan._members
        mine.check(member.task.subject.asked, member.task.subject.statistics)
        assert str(KEY) not in str(mine.sql(member.task.subject.asked, member.task.subject.statistics))
    duck.close()
    mine.close()


def test_the_rows_that_a_unit_keeps_depend_on_its_own_rows_and_the_secret_alone(own):
    """Spark's own hash: other units, other places of the rows and a later question change nothing."""
    dialect, views = _written(own)[0].SPARK, _written(own)[3]
    held = [("u", "bigint"), ("h", "string"), ("x", "double"), ("d", "date")]
    lines = [
        (u, h, x, None)
        for u in range(8)
        for h, x in [("a", 0.0), ("a", -0.0), (None, 1.0), ("1", None), ("b", float("nan")), ("b", 2.0)][
            : u + 1
        ]
    ]

    def kept(rows: list[tuple[object, ...]], n: int, key: str) -> dict[object, list[str]]:
        frame = own.createDataFrame(rows, "u bigint, h string, x double, d date")
        frame.createOrReplaceTempView("raw_ranks")
        own.sql(views.view_sql("raw_ranks", ["u"], held)).createOrReplaceTempView("ranks")
        ranked = views.first_sql(views.ranked_sql("ranks", held, dialect, ["u"]), n)
        found: dict[object, list[str]] = {}
        for line in own.sql(f"SELECT u, h, x, d FROM ({ranked})", {"tacit_key": key}).collect():
            found.setdefault(line[0], []).append(repr(tuple(line[1:])))
        return {unit: sorted(values) for unit, values in found.items()}

    keys = [str(key) for key in range(6)]
    for n in (1, 3):
        all_kept = {key: kept(lines, n, key) for key in keys}
        for key in keys:
            assert {unit: len(rows) for unit, rows in all_kept[key].items()} == {
                u: min(u + 1, n, 6) for u in range(8)
            }
            others = [line for line in reversed(lines) if line[0] % 2]
            assert kept(others, n, key) == {u: rows for u, rows in all_kept[key].items() if u % 2}
        assert len({str(rows) for rows in all_kept.values()}) > 1, "the secret decides"


def test_a_release_from_a_path_a_folder_and_a_table(spark, tmp_path: Path):
    folder = tmp_path / "visits"
    folder.mkdir()
    pq.write_table(VISITS.slice(0, 300), folder / "a.parquet")
    pq.write_table(VISITS.slice(300), folder / "b.parquet")
    spark.sql("DROP TABLE IF EXISTS tacit_visits")
    spark.read.parquet(str(folder)).write.saveAsTable("tacit_visits")
    for source, options in (
        (str(folder), {"engine": spark}),
        ((spark, "tacit_visits"), {}),
        ("default.tacit_visits", {"engine": spark}),
    ):
        data = _protected(source, {"rows": 20}, **options)
        release = data.agg(n=tc.count(), s=tc.sum("k", bounds=(0, 10))).plan(epsilon=10**6).release()
        assert release["n"].value == (600,)
        assert release["s"].value[0] == pytest.approx(sum(VISITS["k"].to_pylist()), abs=0.1)
    spark.sql("DROP TABLE tacit_visits")


def test_what_computes_its_rows_is_refused(spark, tmp_path: Path):
    spark.sql("CREATE OR REPLACE TEMP VIEW tacit_temp AS SELECT 1L AS u")
    spark.sql("CREATE OR REPLACE VIEW tacit_view AS SELECT 1L AS u")
    spark.sql("DROP TABLE IF EXISTS tacit_csv")
    spark.sql("CREATE TABLE tacit_csv (u BIGINT) USING csv")
    for name, said in (
        ("tacit_temp", "is a view"),
        ("tacit_view", "is a view"),
        ("tacit_csv", "csv, not as Parquet"),
    ):
        with pytest.raises(tc.TacitError, match=said) as refusal:
            tc.protect(name, engine=spark, unit="u", budget=tc.Budget(epsilon=1))
        assert "USING parquet AS SELECT" in str(refusal.value)
    with pytest.raises(tc.TacitError, match="a DataFrame of Spark is not a source"):
        tc.protect(spark.range(3), engine=spark, unit="id", budget=tc.Budget(epsilon=1))
    (tmp_path / "lake" / "_delta_log").mkdir(parents=True)
    with pytest.raises(tc.TacitError, match="a Delta table"):
        tc.protect(str(tmp_path / "lake"), engine=spark, unit="u", budget=tc.Budget(epsilon=1))
    spark.sql("DROP VIEW tacit_view")
    spark.sql("DROP TABLE tacit_csv")


def test_types_that_spark_cannot_open_are_left_out(spark, tmp_path: Path):
    moments = pa.array([1, 2**62, -(2**62)], pa.int64())
    table = pa.table(
        {
            "u": [1, 2, 3],
            "x": [1.0, 2.0, 3.0],
            "coarse": moments.cast(pa.timestamp("ms")),
            "nano": moments.cast(pa.timestamp("ns")),
            "clock": pa.array([1, 2, 3], pa.time64("us")),
            "half": pa.array(np.array([1, 2, 3], np.float16)),
            "list": [[1], [], None],
        }
    )
    path = tmp_path / "t.parquet"
    pq.write_table(table, path, coerce_timestamps=None)
    data = tc.protect(
        str(path), engine=spark, unit="u", bounds={"x": (0, 9)}, budget=tc.Budget(epsilon=10**9)
    )
    release = data.agg(n=tc.count(), s=tc.sum("x")).plan(epsilon=10**6).release()
    assert release["n"].value == (3,)
    for column in ("coarse", "clock", "half", "list"):
        with pytest.raises(tc.TacitError) as refusal:
            data.where(tc.col(column).is_null()).agg(n=tc.count())
        assert refusal.value.code == "unreadable-column"


EXTREMES = pa.array([1, 2**63 - 1, -(2**63)], pa.int64())


def _table_over(spark, folder: Path, name: str, table: pa.Table, columns: str) -> str:
    folder.mkdir()
    pq.write_table(table, folder / "a.parquet")
    spark.sql(f"DROP TABLE IF EXISTS {name}")
    spark.sql(f"CREATE TABLE {name} ({columns}) USING parquet LOCATION '{folder}'")
    return name


def _missing(source, column: str, **options):
    data = tc.protect(source, unit="u", budget=tc.Budget(epsilon=10**9), **options)
    return data.where(tc.col(column).is_null()).agg(n=tc.count()).plan(epsilon=10**6).release()["n"].value


def test_moments_in_milliseconds_are_not_read_whatever_their_column_is_called(spark, tmp_path: Path):
    """One of them out of range makes Spark fail."""
    names = ["x", "a b", "(c)", "int64 d (TIMESTAMP(MICROS,true));"]
    table = pa.table({"u": [1, 2, 3], **{c: EXTREMES.cast(pa.timestamp("ms", "UTC")) for c in names}})
    listed = ", ".join(f"`{c}` TIMESTAMP" for c in names)
    source = _table_over(spark, tmp_path / "t", "tacit_coarse", table, f"u BIGINT, {listed}")
    assert _missing(source, "u", engine=spark) == (0,)
    for column in names:
        with pytest.raises(tc.TacitError) as refusal:
            _missing(source, column, engine=spark)
        assert refusal.value.code == "unreadable-column", column
    spark.sql("DROP TABLE tacit_coarse")


def test_over_spark_connect_no_moment_is_read(spark, own, tmp_path: Path, monkeypatch):
    """Connect shows no footers, so a moment may be stored in milliseconds, in a table as in a path."""
    from tacit.engines.spark import _sources

    table = pa.table({"u": [1, 2, 3], "x": EXTREMES.cast(pa.timestamp("ms", "UTC"))})
    name = _table_over(spark, tmp_path / "t", "tacit_far", table, "u BIGINT, x TIMESTAMP")
    monkeypatch.setattr(_sources, "is_connect", lambda _: True)
    monkeypatch.setattr(_sources, "is_local", lambda _: False)
    family = _written(own)[2].family_of
    for source in (name, str(tmp_path / "t")):
        found = dict(_sources.SparkSource.find(own, spark, source).schema())
        assert (family(found["u"]), family(found["x"])) == ("number", None), source
    spark.sql("DROP TABLE tacit_far")


def test_a_decimal_with_more_digits_than_its_type_has_is_read(spark, tmp_path: Path):
    for digits in (5, 18, 19, 25, 30, 35):
        size = (digits * 3322 // 1000 + 9) // 8  # how many bytes a file takes for it
        most = 2 ** (8 * size - 1) - 1
        held = b"".join(v.to_bytes(16, "little", signed=True) for v in (1, most, -most))
        column = pa.Array.from_buffers(pa.decimal128(digits, 2), 3, [None, pa.py_buffer(held)])
        path = tmp_path / f"{digits}.parquet"
        pq.write_table(pa.table({"u": [1, 2, 3], "x": column}), path, use_dictionary=False)
        assert _missing(str(path), "x", engine=spark) == (0,), digits


def test_a_table_is_found_by_its_name_in_any_case(spark):
    spark.sql("CREATE DATABASE IF NOT EXISTS tacit_clinic")
    spark.sql("CREATE OR REPLACE TEMP VIEW tacit_one AS SELECT 1L AS u, 2L AS `Table`")
    spark.sql("DROP TABLE IF EXISTS Tacit_Clinic.Visits")
    spark.sql("CREATE TABLE Tacit_Clinic.Visits USING parquet AS SELECT * FROM tacit_one")
    for name in ("Tacit_Clinic.Visits", "tacit_clinic.visits", "TACIT_CLINIC.visits"):
        assert _missing(name, "u", engine=spark) == (0,)
    spark.sql("DROP DATABASE tacit_clinic CASCADE")


def test_a_file_that_changed_is_read_anew_or_not_at_all(spark, tmp_path: Path):
    path = tmp_path / "t.parquet"
    pq.write_table(VISITS, path)
    data = _protected(str(path), {"rows": 20}, engine=spark)
    question = data.agg(n=tc.count())
    assert question.plan(epsilon=10**6).release().value == 600
    pq.write_table(VISITS.slice(0, 100), path)
    assert question.plan(epsilon=10**6 + 1).release().value == 100
    left = data.remaining.epsilon
    pq.write_table(VISITS.drop_columns(["k"]), path)
    with pytest.raises(tc.TacitError) as refusal:
        question.plan(epsilon=10**6 + 2).release()
    assert refusal.value.code == "unknown-table"
    path.unlink()
    with pytest.raises(tc.TacitError, match="does not exist"):
        question.plan(epsilon=10**6 + 3).release()
    assert data.remaining.epsilon == left


def test_a_file_that_changes_while_it_is_read_gives_no_answer(spark, tmp_path: Path):
    path = tmp_path / "t.parquet"
    pq.write_table(VISITS, path)
    _, mine = _engines(spark, path, (0, 30))
    plan = _protected(path, {"rows": 4}).agg(n=tc.count()).plan(epsilon=1)
    [member] = plan._members
    mine.columns("data")
    with pytest.raises(OSError, match="changed"), mine.transaction() as data:
        data.integers(member.task.subject.asked, member.task.subject.statistics, {})
        pq.write_table(VISITS.slice(0, 10), path)
        os.utime(path, ns=(1, 1))
    mine.close()


# The session ------------------------------------------------------------------------------------------------


def test_the_user_s_session_is_not_changed_and_hostile_settings_change_nothing(spark, tmp_path: Path):
    path = tmp_path / "t.parquet"
    pq.write_table(VISITS, path)
    hostile = {
        "spark.sql.ansi.enabled": "false", "spark.sql.caseSensitive": "false", "spark.sql.session.timeZone": "Asia/Tokyo",  # noqa: E501
        "spark.sql.variable.substitute": "true", "spark.sql.ansi.doubleQuotedIdentifiers": "true", "spark.sql.groupByOrdinal": "false",  # noqa: E501
        "spark.sql.parquet.binaryAsString": "true", "spark.sql.files.ignoreMissingFiles": "true",
        "spark.sql.legacy.timeParserPolicy": "LEGACY", "spark.sql.orderByOrdinal": "false",
    }  # fmt: skip
    for name, value in hostile.items():
        spark.conf.set(name, value)
    try:
        before, views = spark.conf.getAll, spark.sql("SHOW TABLES").collect()
        data = _protected(str(path), {"rows": 20}, engine=spark)
        asked = data.where("h <> '${x}' AND h >= 'A'").group_by("h", keys=["A", "é"]).agg(n=tc.count())
        found = asked.plan(epsilon=10**6).release()
        assert spark.conf.getAll == before
        assert spark.sql("SHOW TABLES").collect() == views
    finally:
        for name in hostile:
            spark.conf.unset(name)
    again = _protected(str(path), {"rows": 20}, engine=spark)
    asked = again.where("h <> '${x}' AND h >= 'A'").group_by("h", keys=["A", "é"]).agg(n=tc.count())
    assert found["n"].value == asked.plan(epsilon=10**6).release()["n"].value


def test_a_second_dataset_runs_what_spark_compiled_for_the_first(spark, tmp_path: Path):
    """Otherwise the first question of every dataset takes as long as the first of all."""
    path = tmp_path / "t.parquet"
    pq.write_table(VISITS, path)
    metrics = spark._jvm.org.apache.spark.metrics.source.CodegenMetrics

    def ask(limit: int) -> int:
        before = metrics.METRIC_COMPILATION_TIME().getCount()
        data = _protected(str(path), {"rows": limit}, engine=spark)
        data.group_by("h", keys=["A", "é"]).agg(n=tc.count(), s=tc.sum("x")).plan(epsilon=10**6).release()
        return metrics.METRIC_COMPILATION_TIME().getCount() - before

    assert ask(17) > 0
    assert ask(17) == 0


def test_local_files_are_described_once_until_they_change(spark, tmp_path: Path, monkeypatch):
    from tacit.engines.spark._sources import SparkSource

    path = tmp_path / "t.parquet"
    pq.write_table(VISITS, path)
    opened, usual = [], SparkSource._local_schema
    monkeypatch.setattr(SparkSource, "_local_schema", lambda *a: (opened.append(a), usual(*a))[1])
    data = _protected(str(path), {"rows": 20}, engine=spark)
    question = data.agg(n=tc.count())
    for rows in (600, 100):
        pq.write_table(VISITS.slice(0, rows), path)
        opened.clear()
        for price in (rows, rows + 1):
            assert question.plan(epsilon=10**6 + price).release().value == rows
        assert len(opened) == 1


def test_a_failure_writes_no_value_to_the_logs(spark, tmp_path: Path):
    """Spark's Java loggers write to a place that no test can capture, so that their levels are compared."""
    import logging

    from pyspark.logger import PySparkLogger

    from tacit.engines.spark._session import _LOUD, quiet

    seen: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = seen.append  # type: ignore[method-assign]
    logger = PySparkLogger.getLogger("SQLQueryContextLogger")
    logger.addHandler(handler)
    pq.write_table(pa.table({"u": [1], "t": ["secret-value"]}), tmp_path / "t.parquet")
    spark.read.parquet(str(tmp_path / "t.parquet")).createOrReplaceTempView("tacit_loud")
    manager = spark._jvm.org.apache.logging.log4j.LogManager

    def levels():
        return [str(manager.getLogger(name).getLevel()) for name in _LOUD]

    before = levels()
    try:
        with quiet(spark), pytest.raises(Exception, match="secret-value"):
            assert set(levels()) == {"OFF"}
            spark.sql("SELECT CAST(t AS INT) FROM tacit_loud").collect()
        assert not seen
        assert levels() == before
        with pytest.raises(Exception, match="secret-value"):
            spark.sql("SELECT CAST(t AS INT) FROM tacit_loud").collect()
        assert len(seen) == 1, "the user's own failures are logged as before"
    finally:
        logger.removeHandler(handler)


def test_text_that_is_not_utf8_stays_apart(spark, tmp_path: Path):
    raw = pa.table({"u": [1, 2, 3, 4], "t": pa.array([b"\xff", b"\xfe", b"\xfe", b"\\xFF"], pa.binary())})
    pq.write_table(raw, tmp_path / "t.parquet")
    data = tc.protect(
        str(tmp_path / "t.parquet"), engine=spark, unit="u", budget=tc.Budget(epsilon=10**9, delta=0.1)
    )
    release = data.group_by("t", keys=["\\xFF", "\\xFE"]).agg(n=tc.count()).plan(epsilon=10**6).release()
    assert release["n"].value == (2, 2)


# What people write by mistake -------------------------------------------------------------------------------


@pytest.fixture
def clinic(spark):
    """A database with one stored table and one view."""
    spark.sql("CREATE DATABASE IF NOT EXISTS clinic")
    spark.sql("CREATE TABLE clinic.visits USING parquet AS SELECT 1 AS u, 2 AS x")
    spark.sql("CREATE VIEW clinic.visit AS SELECT * FROM clinic.visits")
    yield spark
    spark.sql("DROP DATABASE clinic CASCADE")


@pytest.mark.parametrize("written", ["clinic.vists", "visits", "SELECT * FROM clinic.visits"])
def test_a_table_that_does_not_exist_is_answered_with_the_one_that_was_meant(clinic, written):
    with pytest.raises(tc.TacitError, match="has no table") as caught:
        tc.protect(written, engine=clinic, unit="u", budget=tc.Budget(epsilon=1))
    fix = caught.value.fix
    assert caught.value.code == "unknown-table"
    assert fix.close == "clinic.visits"
    assert "clinic.visit" not in fix.names, "a view is not offered"


def test_a_table_is_found_however_its_name_is_spelled_where_the_session_ignores_case(clinic):
    data = tc.protect("Clinic.VISITS", engine=clinic, unit="u", budget=tc.Budget(epsilon=10**6))
    assert data.columns == ("u", "x")
    assert data.agg(n=tc.count()).plan(epsilon=10**5).release().value == 1


def test_a_csv_file_is_refused_on_spark(spark, tmp_path):
    file = tmp_path / "visits.csv"
    file.write_text("u,x\n1,2\n")
    with pytest.raises(tc.TacitError, match="is not a Parquet file"):
        tc.protect(file, engine=spark, unit="u", budget=tc.Budget(epsilon=1))


def test_a_session_that_was_stopped_is_refused_before_the_charge(clinic, monkeypatch):
    data = tc.protect("clinic.visits", engine=clinic, unit="u", budget=tc.Budget(epsilon=1))
    plan = data.agg(n=tc.count()).plan(epsilon=1)
    with monkeypatch.context() as stopped:
        stopped.setattr(clinic.sparkContext, "_jsc", None)
        for act in (
            plan.release,
            lambda: tc.protect("clinic.visits", engine=clinic, unit="u", budget=tc.Budget(epsilon=1)),
        ):
            with pytest.raises(tc.TacitError, match="the Spark session was stopped"):
                act()
    assert "left: epsilon 1 of 1" in repr(data)


def test_a_table_whose_files_another_program_replaced_is_read_anew(spark, tmp_path: Path):
    """Rows that Spark keeps for later questions do not outlive the files that they came from."""
    spark.sql("DROP TABLE IF EXISTS replaced")
    spark.sql(f"CREATE TABLE replaced USING parquet LOCATION '{tmp_path}' AS SELECT id AS u FROM range(9)")
    data = tc.protect("replaced", engine=spark, unit="u", budget=tc.Budget(epsilon=10**9))
    count = data.agg(n=tc.count())
    assert [count.plan(epsilon=10**5 + i).release().value for i in range(3)] == [9, 9, 9]
    for file in tmp_path.glob("*.parquet"):
        file.unlink()
    pq.write_table(pa.table({"u": pa.array([1, 2, 3, 4], pa.int64())}), tmp_path / "part-new.parquet")
    assert [count.plan(epsilon=10**6 + i).release().value for i in range(2)] == [4, 4]
    spark.sql("DROP TABLE replaced")
