"""The contract of every engine: total operators, ranks that a unit's own rows decide, no other files."""

from __future__ import annotations

import datetime as dt
import gc
import math
import os
import subprocess
import sys
import tempfile
import warnings
from fractions import Fraction
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit as tc
from support.duckdb_sql import expression_sql, quantised
from tacit.algebra._expressions import OPERATORS, Call, Column, lit
from tacit.algebra._kinds import Scope, resolve
from tacit.algebra._statistics import grid_for
from tacit.core import Fact
from tacit.engines import DuckDB, SourceTable, read_source

if TYPE_CHECKING:
    from pathlib import Path

KEY = 7

NUMBERS = [
    None,
    math.nan,
    math.inf,
    -math.inf,
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    1e308,
    -1e308,
    5e-324,
    2.0**53 + 2,
    1e15,
    -2.5,
]
TEXTS = [
    None, "", " ", "a", "A%_\\", "nan", "inf", "1e400", "-9223372036854775809", "2024-02-30", "2024-02-29", "infinity", "0001-01-01",  # noqa: E501
    "9999-12-31 23:59:59.999999", "290309-12-22 (BC) 00:00:00", "true", "😀é́", "x" * 1_000_000,
]  # fmt: skip
DATES = [
    None,
    dt.datetime(1, 1, 1),
    dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
    dt.datetime(2024, 2, 29, 12),
    dt.datetime(1970, 1, 1),
]
BOOLEANS = [None, True, False]


def hostile() -> pa.Table:
    """Every pair of hostile numbers, and beside them every hostile text, date and boolean."""
    pairs = [(a, b) for a in NUMBERS for b in NUMBERS]
    n = len(pairs)

    def around(values):
        return [values[i % len(values)] for i in range(n)]

    return pa.table(
        {
            "u": pa.array(range(n), pa.int64()),
            "n1": pa.array([p[0] for p in pairs], pa.float64()),
            "n2": pa.array([p[1] for p in pairs], pa.float64()),
            "t1": pa.array(around(TEXTS), pa.string()),
            "t2": pa.array(around(TEXTS[::-1]), pa.string()),
            "d1": pa.array(around(DATES), pa.timestamp("us")),
            "d2": pa.array(around([*DATES[1:], None]), pa.timestamp("us")),
            "b1": pa.array(around(BOOLEANS), pa.bool_()),
            "b2": pa.array(around(BOOLEANS[::-1]), pa.bool_()),
            "big": pa.array(around([None, 2**63 - 1, -(2**63), 0, 1]), pa.int64()),
            "zone": pa.array(around(DATES), pa.timestamp("us", tz="UTC")),
            "day": pa.array([None if d is None else d.date() for d in around(DATES)], pa.date32()),
            "raw": pa.array(around([None, b"\xff\x00", b""]), pa.binary()),
            "nested": pa.array(around([None, [1, None], []]), pa.list_(pa.int64())),
        }
    )


@pytest.fixture(
    scope="module", params=["arrow", "parquet", "csv", "pandas", "polars", "database", "connection"]
)
def engine(request, tmp_path_factory):
    """The engine under contract on each kind of source; a second engine joins this list."""
    table = hostile()
    folder = tmp_path_factory.mktemp("source")
    match request.param:
        case "arrow":
            source = table
        case "parquet":
            source = folder / "t.parquet"
            pq.write_table(table, source)
        case "csv":
            source = folder / "t.csv"
            flat = table.drop_columns(["raw", "nested"])
            flat.to_pandas().to_csv(source, index=False)
        case "pandas":
            source = table.to_pandas()
        case "polars":
            source = pl.from_arrow(table)
        case "connection":
            con = duckdb.connect()
            con.register("v", table)
            con.execute("CREATE TABLE t AS SELECT * FROM v")
            source = (con, "t")
        case "database":
            source = (folder / "t.duckdb", "t")
            with duckdb.connect(str(folder / "t.duckdb")) as con:
                con.register("v", table)
                con.execute("CREATE TABLE t AS SELECT * FROM v")
    made = DuckDB({"t": SourceTable(read_source(source), ("u",))}, key=KEY, snapshot=None)
    yield made
    made.close()


KIND = {"number": ["n1", "n2"], "text": ["t1", "t2"], "boolean": ["b1", "b2"], "date": ["d1", "d2"]}
SCOPE = Scope({c: Fact() for c in hostile().column_names})
CONSTANTS = {
    "round": [(1, [0, 2, -3, 15])], "clip": [(1, [-1]), (2, [30])], "substring": [(1, [1, 0, 3]), (2, [2, 0])], "like": [(1, ["a%", "%\\", "_%"])],  # noqa: E501
    "starts_with": [(1, ["a", ""])], "ends_with": [(1, ["a", ""])], "contains": [(1, ["a", ""])], "position": [(1, ["a", ""])],  # noqa: E501
    "replace": [(1, ["a", "", "aa"]), (2, ["b", "x" * 9999, ""])], "right": [(1, [2, 0, -1])], "split_part": [(1, ["-", ""]), (2, [1, 3])],  # noqa: E501
    "power": [(1, [2, 0.5, -1, 0, 300])], "strftime": [(1, ["%Y-%m", "%a %A %w %u %d %-d %b %B %m %-m %y %-y %Y %H %-H %I %-I %p %M %-M %S %-S %j %-j %U %W %V %G %%"])],  # noqa: E501
    "add_months": [(1, [1, -120000, 120000])], "date_trunc": [(0, ["year", "quarter", "month", "week", "day", "hour", "minute"])],  # noqa: E501
    "date_diff": [(0, ["year", "quarter", "month", "week", "day", "hour", "minute", "second"])],
}  # fmt: skip


def calls():
    """Every operator on every kind it takes, with its constants."""
    for op, rule in OPERATORS.items():
        if op == "case":
            yield Call(op, (Column("b1", "boolean"), Column("n1", "number"), Column("n2", "number")))
            continue
        takes = [k.rstrip("*") for k in rule.takes]
        kinds = list(KIND) if {"same", "any"} & set(takes) else [None]
        for kind in kinds:
            base = [
                Column(KIND[kind if k in {"same", "any"} else k][i % 2], kind if k in {"same", "any"} else k)
                for i, k in enumerate(takes)
            ]
            if op == "date_diff":
                base = [None, Column("d1", "date"), Column("d2", "date")]
            options = CONSTANTS.get(op, [])
            for choice in range(max([len(v) for _, v in options], default=1)):
                args = list(base)
                for place, values in options:
                    args[place] = lit(values[min(choice, len(values) - 1)])
                yield Call(op, tuple(args))


def test_every_operator_is_total(engine):
    made = [expression_sql(resolve(call, SCOPE)) for call in calls()]
    [seen] = engine.rows(f"SELECT count(*), {', '.join(f'count({sql})' for sql in made)} FROM t", {})
    assert seen[0] == len(NUMBERS) ** 2
    assert all(0 <= n <= seen[0] for n in seen)


@pytest.mark.parametrize("kind", ["number", "text", "boolean", "date"])
def test_every_column_can_be_read_as_every_kind(engine, kind):
    have = engine.columns("t") or hostile().column_names
    for name in have:
        engine.rows(f"SELECT count({expression_sql(Column(name, kind))}) FROM t", {})


DAYS = [dt.datetime(2024, 1, 1), None, dt.datetime(2024, 1, 3)]
TYPES = pa.table(
    {
        "u": [1, 2, 3],
        "moment": pa.array(DAYS, pa.timestamp("us")),
        "nano": pa.array([1, None, 2], pa.timestamp("ns")),
        "zone": pa.array(DAYS, pa.timestamp("us", tz="UTC")),
        "day": pa.array([d and d.date() for d in DAYS], pa.date32()),
        "clock": pa.array([dt.time(1), None, dt.time(2)]),
        "span": pa.array([dt.timedelta(1), None, dt.timedelta(2)]),
        "truth": [True, None, False],
        "real": [1.0, None, 2.0],
        "whole": pa.array([1, None, 2], pa.uint64()),
        "decimal": pa.array([1, None, 2], pa.decimal128(30, 2)),
        "raw": pa.array([b"\xff", None, b""]),
        "list": pa.array([[1], None, []]),
        "struct": pa.array([{"a": 1}, None, {"a": 2}]),
    }
)
AS_KIND = {
    "number": lambda c: lambda d: d.agg(s=tc.sum(c, bounds=(0, 9)), m=tc.median(c, bounds=(0, 9))),
    "text": lambda c: lambda d: d.where(tc.col(c) == "a").agg(n=tc.count(), d=tc.count_distinct(c)),
    "boolean": lambda c: lambda d: d.where(tc.col(c) == True).agg(n=tc.count()),  # noqa: E712
    "date": lambda c: lambda d: d.where(tc.col(c) >= dt.date(2024, 1, 1)).agg(n=tc.count()),
}


@pytest.mark.parametrize("kind", AS_KIND)
@pytest.mark.parametrize("declared", [True, False])
def test_no_type_of_a_source_fails_after_the_charge(kind, declared):
    """What cannot be read as the kind asked is missing: the first question and the snapshot both answer."""
    names = TYPES.column_names[1:]
    facts = {"types": dict.fromkeys(names, kind)} if declared else {}
    if declared and kind == "number":
        facts["bounds"] = dict.fromkeys(names, (0, 9))
    data = tc.protect(TYPES, unit="u", budget=tc.Budget(epsilon=10**9), **facts)
    for name in names:
        for epsilon in (10**7, 10**7 + 1):
            release = AS_KIND[kind](name)(data).plan(epsilon=epsilon).release()
        if kind == "number" and name in {"moment", "nano", "zone", "day", "clock", "list", "struct"}:
            assert release["s"].value[0] == pytest.approx(0, abs=0.01), name
        if kind == "number" and name in {"real", "whole", "decimal"}:
            assert release["s"].value[0] == pytest.approx(3, abs=0.01), name
        if kind == "date" and name in {"moment", "zone", "day"}:
            assert release.value == 2, name


@pytest.mark.parametrize("kind", ["number", "boolean"])
def test_keys_of_another_kind_are_refused_before_the_charge(kind):
    data = tc.protect(TYPES, unit="u", types={"real": kind}, budget=tc.Budget(epsilon=1))
    with pytest.raises(tc.TacitError, match=f"type {kind}"):
        data.group_by("real", keys=["a", "b"])
    with pytest.raises(tc.TacitError, match=f"type {kind}"):
        data.group_by("real", keys=[dt.date(2024, 1, 1)])


def test_division_by_zero_and_the_logarithm_of_nothing_are_null(engine):
    for text in ("n1 / 0", "n1 % 0", "LN(0 * n1)", "SQRT(-1 - ABS(n1))"):
        from tacit.tables.sql import parse_expression

        sql = expression_sql(resolve(parse_expression(text), SCOPE))
        [(seen,)] = engine.rows(
            f"SELECT count({sql}) FROM t WHERE NOT isnan(TRY_CAST(n1 AS DOUBLE)) AND abs(TRY_CAST(n1 AS DOUBLE)) < 1e300",  # noqa: E501
            {},
        )
        assert seen == 0, text


def _one(source, **options):
    return DuckDB({"t": SourceTable(read_source(source), ("u",))}, key=KEY, **options)


def test_one_unit_with_a_million_rows_is_limited():
    source = pa.table(
        {"u": np.r_[np.zeros(1_000_000, np.int64), np.arange(1, 100)], "x": np.arange(1_000_099) % 7}
    )
    assert _one(source).rows('SELECT count(*) FROM "t first 5"', {}, [("t", 5)]) == [(5 + 99,)]


def test_an_empty_table_counts_nothing():
    source = pa.table({"u": pa.array([], pa.int64()), "x": pa.array([], pa.float64())})
    assert _one(source).rows(
        'SELECT count(*), coalesce(sum(tacit_grid(x, 0e0, 1e0, 2e0)), 0) FROM "t first 5"',
        {},
        [("t", 5)],
    ) == [(0, 0)]


def test_rows_without_a_unit_are_dropped_first():
    for column in ([1.0, None, math.nan, 2.0], ["a", None, None, "b"]):
        source = pa.table({"u": column, "x": [1, 2, 3, 4]})
        assert _one(source).rows("SELECT count(*) FROM t", {}) == [(2,)]


def test_a_missing_value_elsewhere_does_not_change_who_is_kept():
    """pandas turns whole numbers into floats as soon as one is missing; ranks and owners must not notice."""
    frame = pd.DataFrame({"u": np.repeat(np.arange(20), 10), "x": np.arange(200)})
    more = pd.concat([frame, pd.DataFrame({"u": [np.nan], "x": [np.nan]})])
    sql = 'SELECT TRY_CAST(x AS BIGINT) FROM "t first 3" WHERE x IS NOT NULL AND NOT isnan(TRY_CAST(x AS DOUBLE)) ORDER BY 1'  # noqa: E501
    assert frame["x"].dtype != more["x"].dtype
    assert _one(frame).rows(sql, {}, [("t", 3)]) == _one(more).rows(sql, {}, [("t", 3)])


def test_an_order_of_rows_does_not_change_who_is_kept():
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {"u": rng.integers(0, 30, 600), "x": rng.integers(0, 4, 600), "t": rng.choice(["a", "b"], 600)}
    )
    sql = 'SELECT u, x, t, count(*) FROM "t first 4" GROUP BY ALL ORDER BY ALL'
    first = _one(frame).rows(sql, {}, [("t", 4)])
    assert first == _one(frame.sample(frac=1, random_state=1)).rows(sql, {}, [("t", 4)])
    assert first == _one(frame, snapshot=0).rows(sql, {}, [("t", 4)])


def test_sums_do_not_depend_on_order_or_overflow():
    n = 4000
    values = np.r_[np.full(n, 1e18), np.full(n, -1e18), np.full(3, 2.0**53)]
    for order in (values, values[::-1], np.random.default_rng(0).permutation(values)):
        source = pa.table({"u": np.arange(len(order)), "x": order})
        sql = f"SELECT sum(tacit_grid(x, {-1e18!r}, {1e18!r}, {2 / 1024!r})) FROM t"
        assert _one(source).rows(sql, {}) == [(3 * 2**43,)]


@pytest.mark.parametrize(
    "bounds",
    [(0, 1), (-3, 7), ("0.1", "0.7"), ("1e-290", "3e-290"), (-1e300, 1e300), (0, 1.7976931348623157e308)],
)
def test_values_fall_on_the_grid_exactly(bounds):
    """The reference is floor(x/step + 1/2) in fractions, clipped to the grid's whole numbers."""
    low, high = (Fraction(b) for b in bounds)
    for bits in (30, 16):
        grid = grid_for((low, high), bits)
        near = [grid.step * (n + half) for n in (grid.lo, 0, 1, grid.hi) for half in (0, Fraction(1, 2))]
        there = [x for x in near if abs(x) < Fraction(1.79e308)]
        values = [float(x) for x in (*there, low, high)]
        values += [math.nextafter(v, way) for v in values for way in (-math.inf, math.inf)]
        values += [0.0, -0.0, 5e-324, -5e-324, 1.7e308, -1.7e308, math.inf, -math.inf]
        source = pa.table({"u": np.arange(len(values)), "x": values})
        got = _one(source).rows(f"SELECT {quantised('x', grid)} FROM t ORDER BY u", {})
        for x, (q,) in zip(values, got, strict=True):
            exact = math.floor(Fraction(x) / grid.step + Fraction(1, 2)) if math.isfinite(x) else x
            assert q == min(max(exact, grid.lo), grid.hi), x


@pytest.mark.parametrize("name", ["a b", 'quo"te', "select", "A", "é", "x;--", "$key", "tacit"])
def test_odd_column_names_work(name):
    source = pa.table({"u": [1, 2, 2], name: [1.0, 2.0, 3.0]})
    data = tc.protect(source, unit="u", bounds={name: (0, 5)}, budget=tc.Budget(epsilon=10**6))
    assert data.agg(s=tc.sum(name)).plan(epsilon=10**5).release().value == pytest.approx(6, abs=0.01)


def test_columns_that_differ_only_in_case_do_not_mix_up_units():
    frame = pd.DataFrame([[1, 5.0], [2, 6.0]], columns=["u", "U"])
    [(owners,)] = _one(frame).rows("SELECT count(DISTINCT tacit_u) FROM t", {})
    assert owners == 2


def test_the_engine_reads_nothing_but_its_source(tmp_path: Path):
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    pq.write_table(pa.table({"u": [1]}), tmp_path / "t.parquet")
    made = _one(tmp_path / "t.parquet")
    made.rows("SELECT count(*) FROM t", {})
    for sql in (
        f"SELECT count(*) FROM read_csv('{secret}')",
        f"SELECT count(*) FROM '{secret}'",
        f"COPY (SELECT 1) TO '{tmp_path / 'out.csv'}'",
        f"ATTACH '{tmp_path / 'x.duckdb'}' AS x",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        "SET memory_limit = '1TB'",
        "SELECT * FROM glob('/etc/*')",
        "SELECT getenv('HOME')",
    ):
        with pytest.raises(duckdb.Error):
            made.rows(sql, {})
    assert sorted(p.name for p in tmp_path.iterdir()) == ["secret.csv", "t.parquet"]


def test_a_csv_is_read_as_text_and_no_cell_aborts(tmp_path: Path):
    path = tmp_path / "t.csv"
    path.write_bytes(
        b'u,x\n1,5\n2,abc\n3,"a\nb"\n4,\n\n6,\x00\n7,NaN\n8,1e999\n9,' + b"9" * 3_000_000 + b"\n10,2\n"
    )
    [(rows, numbers)] = _one(path).rows("SELECT count(*), count(TRY_CAST(x AS DOUBLE)) FROM t", {})
    assert rows == 9
    assert numbers >= 3


def test_a_snapshot_is_dropped_when_the_source_changes(tmp_path: Path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"u": [1, 1, 1], "x": [1, 2, 3]}), path)
    made = _one(path, snapshot=0)
    assert made.rows('SELECT count(*) FROM "t first 2"', {}, [("t", 2)]) == [(2,)]
    pq.write_table(pa.table({"u": [1, 2, 3, 4], "x": [1, 2, 3, 4]}), path)
    os.utime(path, ns=(1, 1))
    assert made.rows('SELECT count(*) FROM "t first 2"', {}, [("t", 2)]) == [(4,)]


def test_columns_of_one_name_are_told_apart(tmp_path: Path):
    path = tmp_path / "t.csv"
    path.write_text("u,a,a,A\n1,2,3,4\n")
    assert _one(path).rows('SELECT "a", "a_1", "A_2" FROM t', {}) == [("2", "3", "4")]
    assert list(_one(path).columns("t")) == ["u", "a", "a_1", "A_2"]


def test_units_of_different_types_join_without_failing():
    left, right = pa.table({"u": [1, 2, 2]}), pa.table({"u": ["1", "two", "2"], "w": ["a", "b", "c"]})
    data = tc.protect({"l": left, "r": right}, unit="u", limits={"rows": 2}, budget=tc.Budget(epsilon=10**6))
    assert data["l"].join(data["r"]).agg(n=tc.count()).plan(epsilon=10**5).release().value == 3


def test_single_rows_are_counted_whatever_the_limits():
    source = pa.table({"u": [1] * 50, "h": ["A"] * 30 + ["B"] * 20, "x": [1.0] * 50})
    data = tc.protect(
        source,
        unit=tc.Unit.row(),
        bounds={"x": (0, 2)},
        limits={"rows": 2, "groups": 1, "per_group": 1},
        budget=tc.Budget(epsilon=10**6, delta=0.01),
    )
    ask = {"n": tc.count(), "u": tc.count_units(), "s": tc.sum("x"), "d": tc.count_distinct("x")}
    public = data.group_by("h", keys=["A", "B"]).agg(**ask).plan(epsilon=10**5).release()
    private = data.group_by("h").agg(**ask).plan(epsilon=1000, delta=1e-3).release()
    for release in (public, private):
        assert release["n"].value == release["u"].value == (30, 20)
        assert release["d"].value == (1, 1)


def test_polars_goes_in_and_comes_out():
    source = pl.DataFrame({"u": [1, 2, 2, None], "h": ["A", "B", "B", "A"], "x": [1.0, 2.0, None, 9.0]})
    data = tc.protect(source, unit="u", bounds={"x": (0, 4)}, budget=tc.Budget(epsilon=10**6))
    grouped = data.group_by("h", keys=["A", "B"]).agg(n=tc.count(), s=tc.sum("x"))
    frame = grouped.plan(epsilon=10**5).release().to_polars()
    assert isinstance(frame, pl.DataFrame)
    assert frame["h"].to_list() == ["A", "B"]
    assert frame["n"].to_list() == [1, 2]
    assert frame["s"].to_list() == pytest.approx([1, 2], abs=0.01)


class Unwritable:
    def __str__(self):
        raise ValueError("no")

    __repr__ = __str__


FAR = 2**63 - 2


def _moments(unit: str, zone: str | None, value: int) -> pa.Table:
    moments = pa.array([0, 0, value], pa.int64()).cast(pa.timestamp(unit, zone))
    return pa.table({"u": ["a", "b", "h"], "x": [1.0, 2.0, 3.0], "t": moments})


@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_one_moment_beyond_the_calendar_makes_no_query_fail(tmp_path: Path, unit, zone):
    for value in (FAR, -FAR):
        table = _moments(unit, zone, value)
        sources = [table]
        if unit != "s":  # Parquet has no seconds
            pq.write_table(table, tmp_path / "t.parquet")
            sources.append(tmp_path / "t.parquet")
        for source in sources:
            data = tc.protect(source, unit="u", bounds={"x": (0, 9)}, budget=tc.Budget(epsilon=10**9))
            for _ in range(2):
                release = data.agg(n=tc.count(), s=tc.sum("x")).plan(epsilon=10**6).release()
                assert release["n"].value == (3,)
            if unit != "ms" or source is table:  # a Parquet file's milliseconds are refused
                data.where(tc.col("t") > dt.date(1960, 1, 1)).agg(n=tc.count()).plan(epsilon=10**5).release()


HOSTILE_OBJECTS = ["\ud800", Unwritable(), b"\xff", 10**30, float("inf"), ("a", 1)]


@pytest.mark.parametrize(
    "value", HOSTILE_OBJECTS, ids=["surrogate", "unwritable", "bytes", "huge", "infinite", "pair"]
)
def test_no_object_in_a_frame_makes_a_query_fail(value):
    import pandas as pd

    frame = pd.DataFrame(
        {"u": ["a", "b", "h"], "x": [1.0, 2.0, 3.0], "o": pd.Series(["p", "q", value], dtype=object)}
    )
    for column in ("o", "u"):
        data = tc.protect(
            frame.rename(columns={column: "u", "u" if column == "o" else "o": "o2"}),
            unit="u",
            bounds={"x": (0, 9)},
            budget=tc.Budget(epsilon=10**9),
        )
        release = data.agg(n=tc.count(), s=tc.sum("x")).plan(epsilon=10**6).release()
        assert release["n"].value[0] in {2, 3}  # without a readable unit a row has no owner


def test_types_that_a_frame_infers_do_not_change_owners_of_large_ids():
    import pandas as pd

    ids = [9_000_000_000_000_002 + 2 * i for i in range(40)]
    frame = pd.DataFrame({"u": [i for i in ids for _ in range(6)], "x": [float(k % 7) for k in range(240)]})
    more = pd.concat([frame, pd.DataFrame({"u": [float("nan")], "x": [5.0]})], ignore_index=True)
    sums = []
    for source in (frame, more):
        made = DuckDB({"t": SourceTable(read_source(source), ("u",))}, key=12345)
        sums.append(made.rows('SELECT sum(x) FROM "t first 2"', {}, [("t", 2)]))
    assert sums[0] == sums[1]


def test_no_chain_of_operators_grows_a_text_without_end():
    table = pa.table({"u": ["a", "b"], "d": ["abcdefgh", "x"]})
    data = tc.protect(table, unit="u", limits={"rows": 2}, budget=tc.Budget(epsilon=10**9), name="v")
    twice = " || ".join(["d"] * 16)
    text = "WITH t0 AS (SELECT u, d FROM v WHERE u = 'a')"
    for i in range(8):
        text += f", t{i + 1} AS (SELECT u, {twice} AS d FROM t{i} GROUP BY u, {twice})"
    release = data.sql(text + " SELECT COUNT(d) AS n FROM t8").plan(epsilon=10**6).release()
    assert release.value == 1


def test_a_lazy_frame_is_refused_before_anything_is_read():
    with pytest.raises(tc.TacitError, match="lazy"):
        tc.protect(pl.LazyFrame({"u": [1]}), unit="u", budget=tc.Budget(epsilon=1))


def test_columns_that_are_never_read_are_refused_before_any_charge(tmp_path):
    moments = pa.array([1_700_000_000_000, 1_600_000_000_000], pa.int64())
    table = pa.table(
        {
            "u": [1, 2],
            "when": moments.cast(pa.timestamp("ms")),
            "fine": moments.cast(pa.timestamp("ms")).cast(pa.timestamp("us")),
            "clock": pa.array([1, 2], pa.time64("us")),
            "list": [[1], [2]],
        }
    )
    pq.write_table(table, tmp_path / "t.parquet", coerce_timestamps=None)
    data = tc.protect(tmp_path / "t.parquet", unit="u", budget=tc.Budget(epsilon=1))
    for column in ("when", "clock", "list"):
        with pytest.raises(tc.TacitError) as refusal:
            data.where(tc.col(column).is_null()).agg(n=tc.count())
        assert refusal.value.code == "unreadable-column"
    assert data.where("EXTRACT(year FROM fine) > 2000").agg(n=tc.count()).plan(epsilon=1) is not None
    with pytest.raises(tc.TacitError, match="'list' is stored as"):
        tc.protect(tmp_path / "t.parquet", unit="list", budget=tc.Budget(epsilon=1))


_KILLED = """
import os, signal, pyarrow as pa
from tacit.engines import DuckDB, SourceTable, read_source
engine = DuckDB({"t": SourceTable(read_source(pa.table({"u": [1], "x": [2.0]})), ("u",))}, key=1, snapshot=0)
engine.rows('SELECT count(*) FROM "t first 5"', {}, [("t", 5)])
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_snapshot_that_a_killed_process_left_is_swept_away(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    subprocess.run([sys.executable, "-c", _KILLED], check=False)
    [left] = tmp_path.iterdir()
    assert (left / "snapshot.duckdb").exists()
    first = _one(pa.table({"u": [1], "x": [2.0]}))
    first.rows("SELECT count(*) FROM t", {})
    [own] = tmp_path.iterdir()
    assert own != left
    assert own.stat().st_mode & 0o077 == 0
    second = _one(pa.table({"u": [1], "x": [2.0]}))
    second.rows("SELECT count(*) FROM t", {})
    assert own.exists(), "the folder of a living engine was swept away"
    first.close()
    assert not own.exists()
    assert first.rows('SELECT count(*) FROM "t first 1"', {}, [("t", 1)]) == [(1,)]
    del first, second
    gc.collect()
    assert not list(tmp_path.iterdir())


def test_a_notebook_without_widgets_gets_its_answer():
    """DuckDB refuses its progress setting in a kernel without ipywidgets; the charge must not be lost."""
    kernel = """
import sys, types
sys.modules["IPython"] = types.ModuleType("IPython")
sys.modules["IPython"].get_ipython = lambda: types.SimpleNamespace(config={"IPKernelApp": {}})
sys.modules["ipywidgets"] = None
import tacit as tc
from tacit.tables import example_visits
visits = tc.protect(example_visits(), unit="patient_id", budget=tc.Budget(epsilon=1))
print(visits.agg(n=tc.count()).plan(epsilon=1).release().value > 0)
"""
    done = subprocess.run([sys.executable, "-c", kernel], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


def test_a_forked_child_leaves_its_parent_s_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    made = _one(pa.table({"u": [1, 1], "x": [1, 2]}), snapshot=0)
    made.rows('SELECT count(*) FROM "t first 1"', {}, [("t", 1)])
    [own] = tmp_path.iterdir()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads are running; the child only discards
        child = os.fork()
    if child == 0:
        made._discard()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert own.exists()
    made.close()
    assert not own.exists()


def test_a_closed_connection_is_a_source_that_is_not_at_hand():
    con = duckdb.connect()
    con.execute("CREATE TABLE t AS SELECT 1 AS u")
    con.close()
    data = tc.protect((con, "t"), unit="u", types={"u": "number"}, budget=tc.Budget(epsilon=1))
    with pytest.raises(tc.TacitError) as failed:
        data.agg(n=tc.count()).plan(epsilon=1).release()
    assert failed.value.code == "unknown-table"
    assert data.remaining.epsilon == 1  # refused before the charge
