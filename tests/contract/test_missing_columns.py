"""Columns of which every value is missing: DuckDB knows it, and rewrites statements by it.

Whether one person has a value must not decide whether a question is answered.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING
from unittest.mock import patch

import duckdb
import pyarrow as pa
import pytest

import tacit as tc
from support import hostile_values as hv
from tacit.algebra import Call, kind_of, lit
from tacit.engines import DuckDB, SourceTable, read_source
from tacit.engines.duckdb._dialect import DuckDBDialect

if TYPE_CHECKING:
    from pathlib import Path

PLACES = ["connection", "database", "parquet"]
#: DuckDB 2.0.0 cannot rewrite these where it knows that every c is missing.
QUESTIONS = [
    "SELECT COUNT(*) AS n FROM t WHERE SPLIT_PART(c, '-', 2) < 'm'",
    "SELECT COUNT(*) AS n FROM t WHERE STRPTIME(c, '%d.%m.%Y %H:%M') < '2024-01-01'",
]


def place(kind: str, path: Path, values: list[str]) -> object:
    """Return a table of people of whom only the last few have a value."""
    con = duckdb.connect(str(path / "t.duckdb") if kind == "database" else ":memory:")
    con.execute("CREATE TABLE t AS SELECT i AS u, NULL::VARCHAR AS c FROM range(5) r(i)")
    con.executemany(
        "INSERT INTO t VALUES (?, ?)", [(5 + i, value) for i, value in enumerate(values)] or [(5, None)]
    )
    con.execute("CHECKPOINT")
    if kind == "connection":
        return con, "t"
    if kind == "parquet":
        con.execute(f"COPY t TO '{path / 't.parquet'}'")
    con.close()
    return path / "t.parquet" if kind == "parquet" else path / "t.duckdb"


def asked(source: object, sql: str) -> object:
    data = tc.protect(source, name="t", unit="u", types={"c": "text"}, budget=tc.Budget(epsilon=10**6))
    return data.sql(sql).plan(epsilon=10**5).release().value


@pytest.mark.parametrize("kind", PLACES)
@pytest.mark.parametrize("sql", QUESTIONS)
def test_a_question_is_answered_whether_or_not_one_person_has_a_value(kind, sql, tmp_path):
    assert asked(place(kind, tmp_path, []), sql) == 0
    for file in tmp_path.iterdir():
        file.unlink()
    assert asked(place(kind, tmp_path, ["01.02.2023 10:11-a"]), sql) == int("SPLIT_PART" in sql)


@pytest.mark.parametrize("values", [None, "the first"])
def test_no_operator_fails_on_columns_without_values(values):
    """Compared with constants on both sides of what it can return: that is when DuckDB rewrites."""
    table = hv.pairs().slice(0, 5)
    if values is None:
        table = pa.table({name: pa.nulls(5, table[name].type) for name in table.column_names})
    con = duckdb.connect()
    con.register("cells", table)
    con.execute("CREATE TABLE t AS SELECT range AS u, cells.* FROM range(5) POSITIONAL JOIN cells")
    engine = DuckDB({"t": SourceTable(read_source((con, "t")), ("u",))}, key=1)
    ends = {  # a statement for each: together, DuckDB rewrites them in another way
        "number": [lit(-1e300), lit(1e300)],
        "text": [lit(""), lit("\uffff")],
        "boolean": [lit(value=False), lit(value=True)],
        "date": [lit(dt.datetime(1, 1, 1)), lit(dt.datetime(9999, 12, 31))],
    }
    asked = [(node, end) for node in hv.calls() for end in ends[kind_of(node)]]
    assert len(asked) > 500
    for node, end in asked:
        condition = engine.writer().expression(Call("lt", (node, end)), {})
        engine.rows(f'SELECT count(*) FROM "t first 1" WHERE {condition}', {}, [("t", 1)])


@pytest.mark.parametrize("kind", ["database", "parquet"])
def test_a_statement_that_duckdb_cannot_rewrite_runs_as_it_is_written(kind, tmp_path):
    """The twin of an operator that DuckDB 2.0.0 cannot rewrite is answered, with and without values."""
    bare = patch.object(
        DuckDBDialect, "op_split_part", lambda _, x, sign, index: f"split_part({x}, '-', {index})"
    )
    with bare:
        assert asked(place(kind, tmp_path, []), QUESTIONS[0]) == 0


def test_what_fails_as_it_is_written_too_is_one_failure():
    """The broken twin of an operator: it raises on its own, and is tried only once more."""
    source = pa.table({"u": [1, 2], "c": ["a-b", "c"]})
    data = tc.protect(source, name="t", unit="u", types={"c": "text"}, budget=tc.Budget(epsilon=2))
    plan = data.where("LENGTH(c) > 1").agg(n=tc.count()).plan(epsilon=1)
    runs, run = [], DuckDB._run
    dialect = type(data._engine.dialect)
    with (
        patch.object(dialect, "op_length", lambda _, x: f"CAST({x} AS DOUBLE)"),
        patch.object(DuckDB, "_run", lambda engine, *args: runs.append(args[0]) or run(engine, *args)),
        pytest.raises(tc.TacitError) as failed,
    ):
        plan.release()
    assert failed.value.code == "release-failed"
    assert sum("DESCRIBE" not in sql for sql in runs) == 2
