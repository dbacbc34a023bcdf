"""A unit that several columns name together, such as a person-day: different names never become one owner."""

from __future__ import annotations

import datetime as dt
import decimal
import itertools
import math
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.engines import MOST_TEXT, DuckDB, SourceTable, read_source

if TYPE_CHECKING:
    from collections.abc import Sequence

KEY = 7
FORMS = ("arrow", "parquet", "csv", "pandas", "polars", "connection")
LONG = "a" * MOST_TEXT
PARTS = [
    "",
    "a",
    "b",
    "a|b",
    "|",
    "b|c",
    "c",
    ":",
    "1:",
    "1:a",
    "2:ab",
    "a:b",
    "0:",
    "10:",
    "é",
    "e\u0301",
    "A",
    "a ",
    "1",
]
PAIRS = [
    *itertools.product(PARTS, PARTS),
    (LONG + "v", "x"),
    (LONG + "w", "x"),
    (LONG, "vx"),
    ("x", LONG + "v"),
    ("x", LONG + "w"),
]


def engine(source: object, unit: tuple[str, ...] = ("pid", "day"), **options: Any) -> DuckDB:
    return DuckDB({"t": SourceTable(read_source(source), unit)}, key=KEY, **options)


def owners(source: object, unit: tuple[str, ...] = ("pid", "day")) -> tuple[int, int]:
    """Return how many rows have an owner, and how many owners there are."""
    made = engine(source, unit)
    [(rows, distinct)] = made.rows("SELECT count(*), count(DISTINCT tacit_u) FROM t", {})
    made.close()
    return rows, distinct


def stored(table: pa.Table, form: str, folder: Any) -> object:
    match form:
        case "parquet":
            pq.write_table(table, folder / "t.parquet")
            return folder / "t.parquet"
        case "csv":
            table.to_pandas().to_csv(folder / "t.csv", index=False, quoting=1)
            return folder / "t.csv"
        case "pandas":
            return table.to_pandas()
        case "polars":
            return pl.from_arrow(table)
        case "connection":
            con = duckdb.connect()
            con.register("v", table)
            con.execute("CREATE TABLE t AS SELECT * FROM v")
            return (con, "t")
        case _:
            return table


@pytest.mark.parametrize("form", FORMS)
def test_different_pairs_of_text_are_different_owners(form, tmp_path):
    pairs = [(a, b) for a, b in PAIRS if form != "csv" or (a and b)]  # an empty CSV cell is missing
    table = pa.table({"pid": [a for a, _ in pairs] * 2, "day": [b for _, b in pairs] * 2})
    assert owners(stored(table, form, tmp_path)) == (2 * len(pairs), len(pairs))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.text("ab:|10\x00é'\"", max_size=4), st.text("ab:|10\x00é'\"", max_size=4))))
def test_owners_are_as_many_as_pairs(pairs):
    table = pa.table(
        {
            "pid": pa.array([a for a, _ in pairs], pa.string()),
            "day": pa.array([b for _, b in pairs], pa.string()),
        }
    )
    assert owners(table) == (len(pairs), len(set(pairs)))


def test_three_columns_name_one_owner_only_if_all_of_them_agree():
    names = ["", "a", ":", "1:", "1:a", "a1:"]
    triples = list(itertools.product(names, repeat=3))
    table = pa.table({c: [t[i] for t in triples] for i, c in enumerate("xyz")})
    assert owners(table, ("x", "y", "z")) == (len(triples), len(triples))


def test_digits_do_not_move_from_one_number_to_the_other():
    pairs = [(1, 23), (12, 3), (123, 0), (-1, 23), (1, -23), (2**62, 1), (2**62 + 1, 1)]
    table = pa.table({"pid": [a for a, _ in pairs], "day": [b for _, b in pairs]})
    assert owners(table) == (len(pairs), len(pairs))
    mixed = pa.table({"pid": [a for a, _ in pairs], "day": [str(b) for _, b in pairs]})
    assert owners(mixed) == (len(pairs), len(pairs))


@pytest.mark.parametrize("kind", ["whole", "float", "text", "decimal"])
def test_a_number_and_its_text_name_one_owner_in_every_table(kind):
    ids = [1, 2, 12]
    held: dict[str, Sequence[object]] = {
        "whole": ids,
        "float": [float(i) for i in ids],
        "text": [str(i) for i in ids],
        "decimal": [decimal.Decimal(i).quantize(decimal.Decimal("1.00")) for i in ids],
    }
    tables = {
        "a": pa.table({"pid": ids, "day": ["x", "y", "z"]}),
        "b": pa.table({"pid": held[kind], "day": ["x", "y", "q"]}),
    }
    places = {name: SourceTable(read_source(table), ("pid", "day")) for name, table in tables.items()}
    joined = "SELECT count(*) FROM a JOIN b ON CAST(a.tacit_u AS VARCHAR) = CAST(b.tacit_u AS VARCHAR)"
    assert DuckDB(places, key=KEY).rows(joined, {}) == [(2,)]


@pytest.mark.parametrize("form", ["arrow", "parquet", "pandas", "polars", "connection"])
def test_a_row_without_one_of_the_names_has_no_owner(form, tmp_path):
    table = pa.table(
        {
            "pid": pa.array([1.0, None, 1.0, None, math.nan, 2.0], pa.float64()),
            "day": pa.array(["x", "x", None, None, "x", ""], pa.string()),
        }
    )
    assert owners(stored(table, form, tmp_path)) == (2, 2)


def test_objects_that_cannot_be_read_name_no_owner():
    names = pd.Series(["a", 1, 1.5, "\ud800", object(), [1], math.nan, None, b"\xff", dt.date(2024, 1, 1)])
    assert owners(pd.DataFrame({"pid": "p", "day": names})) == (4, 4)
    assert owners(pd.DataFrame({"pid": names, "day": "d"})) == (4, 4)


DAYS = [dt.date(2024, 1, 1), dt.date(2024, 1, 2), dt.date(1, 1, 1), dt.date(9999, 12, 31)]


@pytest.mark.parametrize(
    "kind", [pa.date32(), pa.date64(), pa.timestamp("us"), pa.timestamp("us", "UTC")], ids=str
)
@pytest.mark.parametrize("form", ["arrow", "parquet", "pandas"])
def test_days_and_moments_name_owners(form, kind, tmp_path):
    pairs = list(itertools.product([1, 2], DAYS))
    days = pa.array([d for _, d in pairs], pa.date32()).cast(pa.timestamp("us")).cast(kind)
    table = pa.table({"pid": [p for p, _ in pairs], "day": days})
    assert owners(stored(table, form, tmp_path)) == (len(pairs), len(pairs))


def test_a_day_is_one_owner_whatever_type_its_column_came_out_as():
    plain = pd.DataFrame(
        {"pid": [1, 1, 2], "day": pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-01"])}
    )
    more = pd.DataFrame({"pid": [*plain["pid"], "zz"], "day": [*plain["day"].tolist(), "no day"]})
    sql = "SELECT CAST(tacit_u AS VARCHAR) FROM t WHERE NOT contains(tacit_u, 'zz') ORDER BY 1"
    assert more.dtypes.tolist() != plain.dtypes.tolist()
    assert engine(plain).rows(sql, {}) == engine(more).rows(sql, {})


def test_moments_beyond_the_calendar_drop_their_row_only():
    far = pa.array([0, 2**62, -(2**62)], pa.int64()).view(pa.timestamp("us"))
    assert owners(pa.table({"pid": [1, 1, 1], "day": far})) == (1, 1)


@pytest.mark.parametrize("collation", ["NOCASE", "NOACCENT"])
def test_a_collation_of_a_column_merges_no_owners(collation):
    con = duckdb.connect()
    con.execute(f"CREATE TABLE t (pid VARCHAR COLLATE {collation}, day VARCHAR COLLATE {collation})")
    con.execute("INSERT INTO t VALUES ('a', 'b'), ('A', 'b'), ('a', 'B'), ('á', 'b')")
    assert owners((con, "t")) == (4, 4)
    con.execute(f"CREATE TABLE whole (pid INTEGER, day VARCHAR COLLATE {collation})")
    con.execute("INSERT INTO whole VALUES (1, 'b'), (1, 'B'), (2, 'b')")
    assert owners((con, "whole")) == (3, 3)


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    return pd.DataFrame(
        {"pid": rng.integers(0, 8, 600), "day": rng.choice(["mo", "tu", "we"], 600), "x": range(600)}
    )


FIRST = 'SELECT tacit_u, x FROM "t first 3" WHERE x < 600 ORDER BY ALL'


def test_each_pair_keeps_its_first_rows():
    kept = engine(frame()).rows(FIRST, {}, [("t", 3)])
    assert len(kept) == 8 * 3 * 3
    snapshot = engine(frame(), snapshot=0)
    assert snapshot.rows(FIRST, {}, [("t", 3)]) == kept
    assert engine(frame().sample(frac=1, random_state=1)).rows(FIRST, {}, [("t", 3)]) == kept


@pytest.mark.parametrize("other", [(math.nan, "mo"), ("zz", None), ("0", 5), (0, "su"), (9, "mo")])
def test_rows_of_another_pair_do_not_change_who_is_kept(other):
    more = pd.DataFrame({"pid": [other[0]] * 9, "day": [other[1]] * 9, "x": range(600, 609)})
    both = pd.concat([frame(), more], ignore_index=True)
    assert engine(both).rows(FIRST, {}, [("t", 3)]) == engine(frame()).rows(FIRST, {}, [("t", 3)])


def test_one_column_stays_what_it_is():
    made = engine(pa.table({"pid": [1, 2], "day": ["x", "y"]}), ("pid",))
    assert made.rows("SELECT DISTINCT typeof(tacit_u) FROM t", {}) == [("BIGINT",)]


def test_a_unit_is_a_tuple_of_columns():
    with pytest.raises(TypeError, match="tuple"):
        SourceTable(read_source(pa.table({"pid": [1]})), "pid")  # type: ignore[arg-type]
