"""Attacks on the PostgreSQL engine: hostile rows, changes that leave no trace in the rows, shadowed names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

import tacit as tc
from tacit.engines.postgres._dialect import POSTGRES, _joined
from tacit.engines.sql._dialect import hashed_part

if TYPE_CHECKING:
    import psycopg

    Database = psycopg.Connection[Any]

HUGE = tc.Budget(epsilon=10**9, delta=0.1)


def protected(source: object, **facts: Any) -> Any:
    options: dict[str, Any] = {"unit": "u", "budget": HUGE, "name": "visits"} | facts
    return tc.protect(source, **options)


def count(data: Any, epsilon: float = 10**5) -> int:
    return int(data.agg(n=tc.count()).plan(epsilon=epsilon).release().value)


def schema_of(database: Database) -> str:
    [(schema,)] = database.execute("SELECT current_schema()").fetchall()
    return str(schema)


# Hostile rows -----------------------------------------------------------------------------------------------


def test_a_small_document_with_a_huge_text_does_not_make_a_question_fail(database: Database) -> None:
    """9,000 numbers of 131,072 digits: 2,500 bytes as stored, more than a gigabyte as text."""
    database.execute("CREATE TABLE t (u int, x jsonb)")
    numbers = "(SELECT string_agg('1e131071', ',') FROM generate_series(1, 9000))"
    database.execute(f"INSERT INTO t SELECT 1, ('[' || {numbers} || ']')::jsonb")
    database.execute("""INSERT INTO t VALUES (2, '{"a": 1}'), (3, to_jsonb(repeat('x', 65000)))""")
    data = protected("t", engine=database, limits={"rows": 2})
    assert [count(data, 10**6 + i) for i in range(3)] == [3] * 3
    assert data.agg(n=tc.count("x")).plan(epsilon=10**5).release().value == 2
    assert count(protected("t", engine=database, unit="x", limits={"rows": 1})) == 2


def test_a_row_of_many_long_texts_does_not_exhaust_the_server_s_memory(database: Database) -> None:
    """The server keeps every text on the way to a joined one: a long chain takes the square of its length."""
    columns: list[Any] = [(f"c{i}", "text") for i in range(100)]
    assert _joined([hashed_part(name, "text") for name, _ in columns[49:]]) in POSTGRES.ranked(columns)
    parts = [f"coalesce('{'é' if i % 3 else 'x'}{i}', '|-')" for i in range(101)]
    chains = re.split(r"[()]", re.sub(r"coalesce\([^()]*\)", "p", _joined(parts)))
    assert max(chain.count("||") for chain in chains) <= 16
    expected = "|,".join(f"{'é' if i % 3 else 'x'}{i}" for i in range(101))
    assert database.execute(f"SELECT {_joined(parts)}").fetchall() == [(expected,)]


def test_a_cast_of_an_enumeration_s_owner_is_not_called(database: Database) -> None:
    """It could look at the rows of other people, or fail on some values."""
    database.execute("CREATE TABLE t (u int)")
    database.execute("CREATE TYPE mood AS ENUM ('sad', 'glad'); CREATE TYPE plain AS ENUM ('a', 'b')")
    database.execute(
        "CREATE FUNCTION told(mood) RETURNS text LANGUAGE sql AS $$ SELECT (1 / 0)::text $$;"
        "CREATE CAST (mood AS text) WITH FUNCTION told(mood)"
    )
    database.execute("ALTER TABLE t ADD COLUMN m mood, ADD COLUMN p plain")
    database.execute("INSERT INTO t VALUES (1, 'sad', 'a'), (2, 'glad', 'b')")
    data = protected("t", engine=database, limits={"rows": 1})
    assert count(data) == 2
    assert data.where("p = 'a'").agg(n=tc.count()).plan(epsilon=10**5).release().value == 1
    with pytest.raises(tc.TacitError, match="'m' is stored as") as refused:
        data.where("m = 'sad'").agg(n=tc.count())
    assert refused.value.code == "unreadable-column"


def test_a_domain_of_numbers_is_read_as_the_type_below_it(database: Database) -> None:
    database.execute("CREATE DOMAIN free AS numeric; CREATE DOMAIN fixed AS numeric(9, 2)")
    database.execute("CREATE TABLE t (u int, x free, y fixed, z numeric)")
    database.execute("INSERT INTO t VALUES (1, 1.50, 1.5, 1.50), (2, 1.5, 1.5, 1.5)")
    data = protected("t", engine=database)
    for column, text in (("x", "1.5"), ("y", "1.50"), ("z", "1.5")):
        asked = data.where(f"CAST({column} AS TEXT) = '{text}'").agg(n=tc.count())
        assert asked.plan(epsilon=10**5).release().value == 2, column


def test_a_type_that_is_stored_as_text_is_read_byte_by_byte(database: Database) -> None:
    """As the extension citext makes one, with a comparison of its own."""
    database.execute(
        "CREATE TYPE ci; CREATE FUNCTION ci_in(cstring) RETURNS ci LANGUAGE internal STRICT AS 'textin';"
        "CREATE FUNCTION ci_out(ci) RETURNS cstring LANGUAGE internal STRICT AS 'textout';"
        "CREATE TYPE ci (INPUT = ci_in, OUTPUT = ci_out, LIKE = text, COLLATABLE = true);"
        "CREATE CAST (ci AS text) WITHOUT FUNCTION"
    )
    database.execute("CREATE TABLE t (u ci)")
    database.execute("INSERT INTO t VALUES ('a'), ('A'), ('a')")
    data = protected("t", engine=database, limits={"rows": 1})
    assert count(data) == 2
    assert data.where("u = 'a'").agg(n=tc.count()).plan(epsilon=10**5).release().value == 1


# Changes that leave every version of every row as it is -----------------------------------------------------


def test_a_snapshot_of_a_column_that_was_replaced_is_given_up(database: Database) -> None:
    database.execute("CREATE TABLE t (u int, x float8)")
    database.execute("INSERT INTO t SELECT i, 1 FROM generate_series(1, 20) i")
    data = protected("t", engine=database, limits={"rows": 3}, bounds={"x": (0, 9)})

    def total(epsilon: float) -> float:
        return float(data.agg(s=tc.sum("x")).plan(epsilon=epsilon).release().value)

    assert [round(total(10**6 + i)) for i in range(3)] == [20] * 3
    assert data._engine._snapshots.table("visits") is not None
    database.execute("ALTER TABLE t DROP COLUMN x")
    database.execute("ALTER TABLE t ADD COLUMN x float8 DEFAULT 5")  # rewrites no row
    assert [round(total(10**7 + i)) for i in range(3)] == [100] * 3


def test_a_snapshot_of_labels_that_were_renamed_is_given_up(database: Database) -> None:
    database.execute("CREATE TYPE mood AS ENUM ('sad', 'glad')")
    database.execute("CREATE TABLE t (u int, m mood)")
    database.execute("INSERT INTO t SELECT i, 'sad' FROM generate_series(1, 20) i")
    data = protected("t", engine=database, limits={"rows": 3})

    def glad(epsilon: float) -> float:
        return float(data.where("m = 'glad'").agg(n=tc.count()).plan(epsilon=epsilon).release().value)

    assert [glad(10**6 + i) for i in range(3)] == [0] * 3
    assert data._engine._snapshots.table("visits") is not None
    database.execute("ALTER TYPE mood RENAME VALUE 'glad' TO 'happy'")
    database.execute("ALTER TYPE mood RENAME VALUE 'sad' TO 'glad'")
    assert [glad(10**7 + i) for i in range(3)] == [20] * 3


# Names ------------------------------------------------------------------------------------------------------


def test_functions_of_the_role_s_own_schema_are_never_called(database: Database, postgres_url: str) -> None:
    """The role's search path puts a schema before the server's own, which has functions of the same names."""
    schema = schema_of(database)
    database.execute("CREATE TABLE t (u int)")
    database.execute("INSERT INTO t VALUES (1), (2)")
    body = "LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'called'; END $$"
    database.execute(f"CREATE FUNCTION {schema}.set_config(text, text, boolean) RETURNS text {body}")
    database.execute(f"CREATE FUNCTION {schema}.current_setting(text) RETURNS text {body}")
    database.execute(f"CREATE FUNCTION {schema}.current_schemas(boolean) RETURNS name[] {body}")
    database.execute(f"CREATE FUNCTION {schema}.same(text, text) RETURNS boolean {body}")
    database.execute(
        f"CREATE OPERATOR {schema}.= (LEFTARG = text, RIGHTARG = text, FUNCTION = {schema}.same)"
    )
    database.execute(f"CREATE DOMAIN {schema}.text AS pg_catalog.text CHECK (value <> 'pg_catalog')")
    address = postgres_url.partition("&options")[0] + f"&options=-csearch_path%3D{schema},pg_catalog"
    data = protected("t", engine=address, limits={"rows": 1})
    assert [count(data, 10**5 + i) for i in range(3)] == [2] * 3
    [(path,)] = data._engine._opened().execute("SHOW search_path").fetchall()
    assert path == "pg_catalog, pg_temp"


def test_a_temporary_table_of_another_session_is_refused_before_the_charge(database: Database) -> None:
    database.execute("CREATE TEMPORARY TABLE mine (u int)")
    [(place,)] = database.execute(
        "SELECT relnamespace::regnamespace::text FROM pg_class WHERE oid = 'pg_temp.mine'::regclass"
    ).fetchall()
    with pytest.raises(tc.TacitError) as refused:
        protected(f"{place}.mine", engine=database)
    assert refused.value.code == "unknown-table"


def test_a_setting_that_leaves_rows_out_has_no_effect(database: Database, postgres_url: str) -> None:
    """With this setting an index of the kind GIN returns a random part of the rows."""
    database.execute("CREATE TABLE t (u int)")
    address = postgres_url.replace("options=", "options=-cgin_fuzzy_search_limit%3D1%20")
    data = protected("t", engine=address)
    assert data._engine._opened().execute("SHOW gin_fuzzy_search_limit").fetchall() == [("0",)]


# Passwords --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "engine"),
    [
        ("visits", "postgresql+psycopg://sam:Sesam4711@host/db"),
        ("visits", "Postgres://sam:Sesam4711@host/db"),
        ("visits", "host=h password=Sesam4711"),
        ("visits", "postgresql://sam:Sesam4711@host/db?bad=1"),
        ("postgresql://sam:Sesam4711@host/db", None),
        ("postgresql://sam:Sesam4711@host/db/visits", "duckdb"),
        (("postgresql+psycopg://sam:Sesam4711@host/db", "visits"), None),
    ],
)
def test_no_error_shows_the_password_of_an_address(source: object, engine: object) -> None:
    with pytest.raises(tc.TacitError) as refused:
        protected(source, engine=engine)
    error = refused.value
    assert "Sesam" not in f"{error} {error!r} {error.__context__} {error.__cause__}"


def test_no_object_shows_the_password_of_an_address() -> None:
    data = protected("visits", engine="postgresql://sam:Sesam4711@127.0.0.1:1/db")
    assert "Sesam" not in f"{data!r} {vars(data._engine)}"
