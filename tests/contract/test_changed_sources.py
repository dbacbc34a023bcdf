"""A source that changes after the dataset was declared is refused before the charge, whatever holds it."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import duckdb
import pytest

import tacit as tc

if TYPE_CHECKING:
    from pathlib import Path

PLACES = ["connection", "database", "parquet", "csv"]
ROWS = "SELECT i AS u, i AS x FROM range(50) r(i)"


def made(kind: str, path: Path, rows: str = ROWS) -> object:
    """Keep the table in a place; what was there before goes."""
    if kind in {"parquet", "csv"}:
        duckdb.sql(f"COPY ({rows}) TO '{path / 't'}.{kind}'")
        return path / f"t.{kind}"
    con = duckdb.connect(str(path / "new.duckdb") if kind == "database" else ":memory:")
    con.execute(f"CREATE TABLE t AS {rows}")
    if kind == "connection":
        return con
    con.close()
    shutil.move(path / "new.duckdb", path / "t.duckdb")
    return path / "t.duckdb"


def changed(kind: str, source: object, path: Path, rows: str) -> None:
    if isinstance(source, duckdb.DuckDBPyConnection):
        source.execute(f"CREATE OR REPLACE TABLE t AS {rows}")
    else:
        made(kind, path, rows)


def declared(source: object) -> tc.Dataset:
    return tc.protect(
        (source, "t") if isinstance(source, duckdb.DuckDBPyConnection) else source,
        name="t",
        unit="u",
        limits={"rows": 1},
        budget=tc.Budget(epsilon=10**6),
    )


def refusal(plan: tc.Plan, data: tc.Dataset) -> str:
    before = data.remaining.epsilon
    with pytest.raises(tc.TacitError) as refused:
        plan.release()
    assert data.remaining.epsilon == before
    assert refused.value.code == "unknown-table"
    return refused.value.what


@pytest.fixture(params=[False, True], ids=["first", "asked before"])
def asked(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def prepared(source: object, asked: bool) -> tuple[tc.Plan, tc.Dataset]:
    """Declare a dataset and plan a question, where the dataset may have a sorted copy of its rows already."""
    data = declared(source)
    for _ in range(2 * asked):
        data.agg(n=tc.count()).plan(epsilon=1).release()
    return data.where("x >= 0").agg(n=tc.count("x")).plan(epsilon=10**4), data


@pytest.mark.parametrize("kind", PLACES)
def test_a_column_that_is_gone_is_refused_before_the_charge(kind, asked, tmp_path):
    source = made(kind, tmp_path)
    plan, data = prepared(source, asked)
    changed(kind, source, tmp_path, "SELECT i AS u, i AS y FROM range(50) r(i)")
    assert refusal(plan, data) == "the columns of the table 't' have changed since the dataset was declared"
    changed(kind, source, tmp_path, ROWS)
    assert plan.release().value == 50  # it is as it was declared again


@pytest.mark.parametrize("kind", [kind for kind in PLACES if kind != "csv"])
def test_a_column_of_another_type_is_refused_before_the_charge(kind, asked, tmp_path):
    source = made(kind, tmp_path)
    plan, data = prepared(source, asked)
    changed(kind, source, tmp_path, "SELECT i AS u, TIME '12:00' AS x FROM range(50) r(i)")
    assert "the columns of the table 't' have changed" in refusal(plan, data)


@pytest.mark.parametrize("kind", PLACES)
def test_other_rows_are_read(kind, asked, tmp_path):
    """Rows may change, and so may a type that is read in the same way."""
    source = made(kind, tmp_path)
    plan, _ = prepared(source, asked)
    changed(kind, source, tmp_path, "SELECT i AS u, (i + 10)::TINYINT AS x FROM range(60) r(i)")
    assert plan.release().value == 60


def test_a_table_that_is_gone_is_refused_before_the_charge(asked):
    con = made("connection", None)
    for change in ("DROP TABLE t", "CREATE VIEW t AS SELECT 1 AS u, 2 AS x", "DROP VIEW t"):
        if change.startswith("DROP TABLE"):
            plan, data = prepared(con, asked)
        con.execute(change)
        assert "'t' cannot be read, so nothing was charged" in refusal(plan, data)
    con.close()
    assert "'t' cannot be read, so nothing was charged" in refusal(plan, data)


@pytest.mark.parametrize("content", [b"", b"no table"])
def test_a_file_that_is_no_table_any_more_is_refused_before_the_charge(content, asked, tmp_path):
    plan, data = prepared(made("parquet", tmp_path), asked)
    (tmp_path / "t.parquet").write_bytes(content)
    assert "'t' cannot be read, so nothing was charged" in refusal(plan, data)


def test_a_connection_without_the_table_is_refused_in_words():
    data = declared(duckdb.connect())
    assert "the source of the table 't' cannot be read" in refusal(
        data.agg(n=tc.count()).plan(epsilon=1), data
    )
