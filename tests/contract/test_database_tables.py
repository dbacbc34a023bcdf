"""Tables in DuckDB files and connections: only stored rows are read, each from its own connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import pytest

import tacit as tc

if TYPE_CHECKING:
    from pathlib import Path

HUGE = tc.Budget(epsilon=10**6)


def released(data: tc.Dataset, sql: str) -> object:
    return data.sql(sql).plan(epsilon=10**4).release().value


def database(kind: str, path: Path, *statements: str) -> object:
    con = duckdb.connect() if kind == "connection" else duckdb.connect(str(path / "t.duckdb"))
    for statement in statements:
        con.execute(statement)
    if kind == "connection":
        return con
    con.close()
    return path / "t.duckdb"


@pytest.fixture(params=["connection", "file"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_view_is_refused(kind: str, tmp_path: Path) -> None:
    place = database(
        kind,
        tmp_path,
        "CREATE TABLE stays AS SELECT 'p' AS u, '3' AS stay UNION ALL SELECT 'q', '12 days'",
        "CREATE VIEW visits AS SELECT u, CAST(stay AS INTEGER) AS stay FROM stays",
        'CREATE VIEW "odd name" AS SELECT * FROM stays',
    )
    with pytest.raises(tc.TacitError, match="'visits' is a view, not a table") as refused:
        tc.protect((place, "visits"), unit="u", budget=HUGE)
    assert refused.value.code == "bad-parameter"
    assert 'CREATE TABLE "visits_rows" AS SELECT * FROM "visits"' in str(refused.value)
    with pytest.raises(tc.TacitError, match="is a view"):
        tc.protect((place, "odd name"), unit="u", budget=HUGE)
    data = tc.protect((place, "stays"), unit="u", budget=HUGE, name="stays")
    assert released(data, "SELECT COUNT(*) AS n FROM stays") == 2


def test_a_view_that_takes_the_place_of_a_table_is_not_read() -> None:
    con = duckdb.connect()
    con.execute("CREATE TABLE visits AS SELECT 'p' AS u")
    data = tc.protect((con, "visits"), unit="u", budget=HUGE, name="visits")
    con.execute("ALTER TABLE visits RENAME TO old; CREATE VIEW visits AS SELECT u FROM old")
    with pytest.raises(tc.TacitError) as failed:
        released(data, "SELECT COUNT(*) AS n FROM visits")
    assert failed.value.code == "unknown-table"
    assert data.remaining.epsilon == HUGE.epsilon  # refused before the charge


def test_a_generated_column_is_never_read(kind: str, tmp_path: Path) -> None:
    place = database(
        kind,
        tmp_path,
        "CREATE TABLE visits (u VARCHAR, stay VARCHAR, filled INTEGER DEFAULT 5, "
        "days INTEGER GENERATED ALWAYS AS (CAST(stay AS INTEGER)))",
        "INSERT INTO visits (u, stay) VALUES ('p', '3'), ('q', '12')",
    )
    data = tc.protect((place, "visits"), unit="u", budget=HUGE, name="visits")
    assert released(data, "SELECT COUNT(*) AS n FROM visits") == 2
    assert released(data, "SELECT COUNT(*) AS n FROM visits WHERE filled = 5") == 2
    with pytest.raises(tc.TacitError, match="'days' is stored as a generated column") as refused:
        data.sql("SELECT COUNT(*) AS n FROM visits WHERE days > 2")
    assert refused.value.code == "unreadable-column"
    with pytest.raises(tc.TacitError, match="a generated column"):
        tc.protect((place, "visits"), unit="days", budget=HUGE)


def test_a_variable_of_python_is_not_a_table_of_a_connection() -> None:
    import pandas as pd

    visits = pd.DataFrame({"u": ["p"]})
    assert len(visits) == 1
    data = tc.protect((duckdb.connect(), "visits"), unit="u", types={"u": "text"}, budget=HUGE, name="visits")
    assert data.tables["visits"].columns is None


def test_each_table_is_looked_up_in_its_own_connection() -> None:
    first, second = duckdb.connect(), duckdb.connect()
    first.execute("CREATE TABLE visits AS SELECT * FROM (VALUES ('p', 1), ('q', 2), ('r', 3)) t(u, x)")
    first.execute("CREATE TABLE people AS SELECT 'nobody' AS u, 'first' AS w FROM range(7)")
    second.execute("CREATE TABLE people (u VARCHAR, w VARCHAR, twice VARCHAR GENERATED ALWAYS AS (w || w))")
    second.execute("INSERT INTO people (u, w) VALUES ('p', 'second'), ('q', 'second')")
    data = tc.protect(
        {"visits": (first, "visits"), "people": (second, "people")}, unit="u", limits={"rows": 1}, budget=HUGE
    )
    for _ in range(2):  # before and after the snapshot
        assert released(data, "SELECT COUNT(*) AS n FROM people") == 2
        assert released(data, "SELECT COUNT(*) AS n FROM people WHERE w = 'first'") == 0
        assert released(data, "SELECT COUNT(*) AS n FROM visits JOIN people USING (u)") == 2
    for con in (first, second):
        names = {name for (name,) in con.execute("SELECT database_name FROM duckdb_databases()").fetchall()}
        assert names == {"memory", "system", "temp"}


def test_cursors_of_one_database_are_read_without_a_copy() -> None:
    con = duckdb.connect()
    con.execute("CREATE TABLE visits AS SELECT 'p' AS u; CREATE TABLE people AS SELECT 'p' AS u, 'a' AS w")
    con.execute("SET enable_external_access = false")
    data = tc.protect({"visits": con, "people": con.cursor()}, unit="u", limits={"rows": 1}, budget=HUGE)
    assert released(data, "SELECT COUNT(*) AS n FROM visits JOIN people USING (u)") == 1


def test_two_databases_of_which_one_cannot_be_copied_are_refused() -> None:
    first, second = duckdb.connect(), duckdb.connect()
    first.execute("CREATE TABLE visits AS SELECT 'p' AS u")
    second.execute("CREATE TABLE people AS SELECT 'p' AS u; SET enable_external_access = false")
    with pytest.raises(tc.TacitError, match="several DuckDB databases") as refused:
        tc.protect({"visits": first, "people": second}, unit="u", budget=HUGE)
    assert refused.value.code == "bad-parameter"
