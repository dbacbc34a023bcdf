"""The PostgreSQL engine: what it reads, what it refuses, and what nobody's settings and rows can change."""

from __future__ import annotations

import gc
import os
import sys
import threading
import uuid
from typing import TYPE_CHECKING, Any

import duckdb
import psycopg
import pytest

import tacit as tc
from tacit.engines import SourceTable
from tacit.engines.postgres import PostgresEngine
from tacit.engines.postgres._sessions import Session
from tacit.engines.postgres._tables import StoredColumn, owner_sql, value_sql
from tacit.engines.sources._sources import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Database = psycopg.Connection[Any]

HUGE = tc.Budget(epsilon=10**9, delta=0.1)


def protected(source: object, **facts: Any) -> Any:
    options: dict[str, Any] = {"unit": "u", "budget": HUGE, "name": "visits"} | facts
    return tc.protect(source, **options)


def count(data: Any, epsilon: float = 10**5) -> int:
    return int(data.agg(n=tc.count()).plan(epsilon=epsilon).release().value)


@pytest.fixture
def visits(database: Database) -> Database:
    """Ten people with twelve visits each."""
    database.execute("CREATE TABLE visits (u bigint, h text, stay float8)")
    database.execute("INSERT INTO visits SELECT i % 10, 'h' || i % 3, i FROM generate_series(1, 120) i")
    return database


@pytest.fixture
def role(visits: Database) -> Iterator[Callable[..., str]]:
    """Make a role that may do what is granted; returns the address with which it connects."""
    name = f"r{uuid.uuid4().hex[:12]}"
    visits.execute(f"CREATE ROLE {name} LOGIN")
    [(schema,)] = visits.execute("SELECT current_schema()").fetchall()
    parameters = visits.info.get_parameters()

    def made(*grants: str, temporary: bool = False) -> str:
        visits.execute(f"REVOKE TEMP ON DATABASE {visits.info.dbname} FROM PUBLIC")
        visits.execute(f"GRANT USAGE ON SCHEMA {schema} TO {name}")
        if temporary:
            visits.execute(f"GRANT TEMP ON DATABASE {visits.info.dbname} TO {name}")
        for grant in grants:
            visits.execute(grant.format(role=name))
        options = f"-csearch_path%3D{schema}"
        return f"postgresql://{name}@/{visits.info.dbname}?host={parameters['host']}&options={options}"

    yield made
    visits.execute(f"GRANT TEMP ON DATABASE {visits.info.dbname} TO PUBLIC")
    visits.execute(f"DROP OWNED BY {name}")
    visits.execute(f"DROP ROLE {name}")


# What is passed in ------------------------------------------------------------------------------------------


def test_an_address_a_connection_and_a_pair_name_the_same_table(visits: Database, postgres_url: str) -> None:
    [(schema,)] = visits.execute("SELECT current_schema()").fetchall()
    for source, engine in (
        ("visits", postgres_url),
        ("visits", visits),
        ((visits, "visits"), None),
        ((postgres_url, "visits"), None),
        ((visits, f"{schema}.visits"), None),
        ("VISITS", visits),
    ):
        data = protected(source, engine=engine, limits={"rows": 3}, bounds={"stay": (0, 200)})
        assert data.columns == ("u", "h", "stay")
        assert count(data) == 30
        grouped = data.group_by("h", keys=["h0", "h1", "zz"]).agg(n=tc.count(), s=tc.sum("stay"))
        plan = grouped.plan(epsilon=10**5)
        assert "EXISTS (SELECT 1 FROM tacit_keys" in plan.sql[0]
        assert plan.release()["n"].value[2] == 0


def test_the_user_s_connection_is_left_as_it_is(visits: Database, postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as given:
        given.execute("SET TimeZone = 'Asia/Tokyo'")
        given.execute("CREATE TEMPORARY TABLE mine (a int)")
        before = given.execute("SELECT pg_backend_pid(), txid_current()").fetchall()
        data = protected("visits", engine=given, limits={"rows": 3})
        assert [count(data, e) for e in (10**5, 10**6)] == [30, 30]
        assert given.execute("SELECT pg_backend_pid(), txid_current()").fetchall() == before
        assert given.execute("SHOW TimeZone").fetchall() == [("Asia/Tokyo",)]
        given.rollback()


def test_the_user_s_connection_may_be_closed_afterwards(visits: Database, postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as given:
        data = protected("visits", engine=given)
        given.close()
    assert count(data) == 100
    data._engine.close()
    assert count(data, 10**6) == 100
    with pytest.raises(tc.TacitError, match="connection is closed"):
        protected("visits", engine=given)


def test_a_session_that_lost_its_settings_is_refused(visits: Database) -> None:
    """As behind a pooler that gives each transaction another session."""
    data = protected("visits", engine=visits)
    data._engine._opened().execute("SET TimeZone = 'Asia/Tokyo'")
    with pytest.raises(tc.TacitError, match="TimeZone"):
        count(data)
    assert data.remaining.epsilon == HUGE.epsilon


def test_a_server_that_cannot_be_reached_refuses_before_the_charge(visits: Database) -> None:
    away = "postgresql://nobody@/nothing?host=/nowhere"
    data = protected("visits", engine=away)
    assert "is not available here" in repr(data)
    plan = data.agg(n=tc.count()).plan(epsilon=1)
    assert plan.sql
    with pytest.raises(tc.TacitError, match="nothing was charged"):
        plan.release()
    assert data.remaining.epsilon == HUGE.epsilon


def test_a_session_that_the_server_ended_is_opened_again(visits: Database, postgres_url: str) -> None:
    data = protected("visits", engine=postgres_url, limits={"rows": 3})
    assert count(data) == 30
    visits.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    assert count(data, 10**6) == 30


def test_what_is_no_place_is_refused(visits: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(tc.TacitError, match="address is malformed"):
        protected("visits", engine="postgresql://%zz/")
    with pytest.raises(tc.TacitError, match="the name of a table"):
        protected(visits, engine=visits)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(tc.TacitError) as refused:
        protected("visits", engine="postgresql://localhost/warehouse")
    assert refused.value.code == "missing-extra"


def test_a_setting_that_cannot_be_set_is_refused(
    visits: Database, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tacit.engines.postgres import _sessions

    monkeypatch.setitem(_sessions._SETTINGS, "max_connections", "7")  # only the server's start decides it
    with pytest.raises(tc.TacitError, match="does not let the setting max_connections be '7'"):
        protected("visits", engine=postgres_url)


def test_an_old_server_is_refused(
    visits: Database, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tacit.engines.postgres import _sessions

    monkeypatch.setattr(_sessions, "_MIN_VERSION", 99)
    with pytest.raises(tc.TacitError, match="Tacit needs version 99 or later"):
        protected("visits", engine=postgres_url)


def test_a_superuser_s_session_writes_nothing_to_the_log(visits: Database, postgres_url: str) -> None:
    data = protected("visits", engine=postgres_url)
    session = data._engine._opened()
    for name in ("log_min_messages", "log_min_error_statement", "log_statement"):
        assert session.execute(f"SHOW {name}").fetchall()[0][0] in {"panic", "none"}


def test_tables_of_two_databases_are_refused(visits: Database, postgres_url: str) -> None:
    other = postgres_url.replace("/postgres?", "/template1?")
    with pytest.raises(tc.TacitError, match="several databases"):
        protected({"visits": (postgres_url, "visits"), "others": (other, "visits")})


def test_a_session_ends_with_its_dataset(visits: Database, postgres_url: str) -> None:
    others = "SELECT pid FROM pg_stat_activity WHERE backend_type LIKE 'client%'"
    before = set(visits.execute(others).fetchall())  # sessions of other tests may end meanwhile
    data = protected("visits", engine=postgres_url)
    assert count(data) == 100
    [own] = set(visits.execute(others).fetchall()) - before
    del data
    gc.collect()
    deadline = threading.Event()
    for _ in range(100):
        if own not in visits.execute(others).fetchall():
            return
        deadline.wait(0.1)
    pytest.fail("the session is still open")


# What is refused --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("CREATE VIEW seen AS SELECT * FROM visits", "a view"),
        ("CREATE MATERIALIZED VIEW seen AS SELECT * FROM visits", "a materialized view"),
    ],
)
def test_relations_that_compute_their_rows_are_refused(visits: Database, statement: str, what: str) -> None:
    visits.execute(statement)
    with pytest.raises(tc.TacitError, match=f"'seen' is {what}, not a table") as refused:
        protected("seen", engine=visits)
    assert "CREATE TABLE" in str(refused.value)


def test_a_table_that_is_not_there_is_refused_with_the_others(visits: Database) -> None:
    with pytest.raises(tc.TacitError, match="no table 'visit'") as refused:
        protected("visit", engine=visits)
    assert "visits" in str(refused.value)


def test_row_level_security_is_refused_for_the_roles_that_it_concerns(
    visits: Database, role: Callable[..., str]
) -> None:
    address = role("GRANT SELECT ON visits TO {role}")
    assert count(protected("visits", engine=address)) == 100
    visits.execute("ALTER TABLE visits ENABLE ROW LEVEL SECURITY")
    visits.execute("CREATE POLICY few ON visits USING (u > 3)")
    with pytest.raises(tc.TacitError, match="row-level security"):
        protected("visits", engine=address)
    assert count(protected("visits", engine=visits)) == 100


def test_a_role_without_the_right_to_read_is_refused(role: Callable[..., str]) -> None:
    with pytest.raises(tc.TacitError, match="may not read the table") as refused:
        protected("visits", engine=role())
    assert "GRANT SELECT" in str(refused.value)


def test_a_database_in_another_encoding_is_refused(visits: Database, postgres_server: str) -> None:
    name = f"d{uuid.uuid4().hex[:12]}"
    visits.execute(f"CREATE DATABASE {name} ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
    try:
        with pytest.raises(tc.TacitError, match="the encoding SQL_ASCII, not UTF8"):
            protected("visits", engine=postgres_server.replace("/postgres?", f"/{name}?"))
    finally:
        visits.execute(f"DROP DATABASE {name}")


def test_partitions_are_read_together_and_foreign_ones_refused(visits: Database) -> None:
    visits.execute("CREATE TABLE parts (u bigint, h text) PARTITION BY LIST (h)")
    for h in ("a", "b"):
        visits.execute(f"CREATE TABLE parts_{h} PARTITION OF parts FOR VALUES IN ('{h}')")
        visits.execute(f"INSERT INTO parts SELECT i, '{h}' FROM generate_series(1, 5) i")
    data = protected("parts", engine=visits, limits={"rows": 1})
    assert [count(data, e) for e in (10**5, 10**6, 10**7)] == [5, 5, 5]
    visits.execute("CREATE FOREIGN DATA WRAPPER w")
    try:
        visits.execute("CREATE SERVER far FOREIGN DATA WRAPPER w")
        visits.execute("CREATE FOREIGN TABLE parts_c PARTITION OF parts FOR VALUES IN ('c') SERVER far")
        with pytest.raises(tc.TacitError, match="a part of the table 'parts' is a foreign table"):
            protected("parts", engine=visits)
        with pytest.raises(tc.TacitError, match="a foreign table"):
            protected("parts_c", engine=visits)
    finally:
        visits.execute("DROP FOREIGN DATA WRAPPER w CASCADE")


# Rights and settings ----------------------------------------------------------------------------------------


def test_the_right_to_read_is_enough(visits: Database, role: Callable[..., str]) -> None:
    """Without TEMP there is no snapshot: every question sorts, with the same result."""
    data = protected("visits", engine=role("GRANT SELECT ON visits TO {role}"), limits={"rows": 3})
    assert [count(data, e) for e in (10**5, 10**6, 10**7)] == [30, 30, 30]
    assert data._engine._snapshots._by_table == {}


def test_columns_that_the_role_may_not_read_do_not_exist_for_it(role: Callable[..., str]) -> None:
    address = role("GRANT SELECT (u, h) ON visits TO {role}", temporary=True)
    data = protected("visits", engine=address, limits={"rows": 3})
    assert data.columns == ("u", "h")
    assert [count(data, e) for e in (10**5, 10**6, 10**7)] == [30, 30, 30]


HOSTILE = {
    "extra_float_digits": "-15",
    "DateStyle": "SQL, DMY",
    "TimeZone": "Asia/Tokyo",
    "bytea_output": "escape",
    "transform_null_equals": "on",
    "search_path": "nowhere",
    "statement_timeout": "1",
    "default_transaction_isolation": "serializable",
    "default_transaction_read_only": "on",
    "client_encoding": "LATIN1",
    "array_nulls": "off",
    "IntervalStyle": "sql_standard",
    "lock_timeout": "1",
}


def test_settings_of_a_role_do_not_change_an_answer(
    visits: Database, role: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tacit.tables._protect.ranking_secret", lambda: 7)
    visits.execute("CREATE TABLE odd (u float8, t text, d timestamptz, x float8)")
    visits.execute(
        "INSERT INTO odd SELECT i / 3.0, 't' || i, timestamptz '2024-03-04 23:30+00' + i * interval '1 day', "
        "i / 7.0 FROM generate_series(1, 60) i"
    )
    [(schema,)] = visits.execute("SELECT current_schema()").fetchall()
    address = role("GRANT SELECT ON odd TO {role}", temporary=True)
    name = address.partition("//")[2].partition("@")[0]
    answers = []
    for settings in ({}, HOSTILE):
        for setting, value in settings.items():
            visits.execute(f"ALTER ROLE {name} SET {setting} = '{value}'")
        place = address.partition("&options")[0] if settings else address
        data = protected(f"{schema}.odd", engine=place, limits={"rows": 1}, bounds={"x": (0, 9)})
        asked = data.group_by("t").agg(n=tc.count(), s=tc.sum("x"))
        plan = asked.plan(epsilon=10**4, delta=1e-3)
        task = plan._members[0].task.subject
        for _ in range(3):
            with task.engine.transaction() as reading:
                answers.append(reading.integers(task.asked, task.statistics, {}))
        where = data.where("EXTRACT(hour FROM d) = 23 AND CAST(x AS TEXT) LIKE '0.142857%'").agg(n=tc.count())
        assert where.plan(epsilon=10**5).release().value == 1
    assert all(sorted(map(str, a[0][1])) == sorted(map(str, answers[0][0][1])) for a in answers)


# One moment, one transaction --------------------------------------------------------------------------------


def test_a_plan_reads_one_moment_while_others_write(visits: Database, postgres_url: str) -> None:
    """A question with several statements: between any two of them, someone deletes a row."""
    data = protected("visits", engine=postgres_url, limits={"rows": 3}, bounds={"stay": (0, 200)})
    asked = data.group_by("h", keys=["h0", "h1", "h2"]).agg(
        n=tc.count(), m=tc.median("stay"), d=tc.count_distinct("stay")
    )
    task = asked.plan(epsilon=10**6)._members[0].task.subject
    engine = task.engine
    run = engine.run

    def interrupted(*given: Any) -> Any:
        found = run(*given)
        visits.execute("DELETE FROM visits WHERE ctid = (SELECT min(ctid) FROM visits)")
        return found

    engine.run = interrupted
    tables = {"tacit_keys": task.asked.keys}
    for _ in range(4):
        [(before,)] = visits.execute(
            "SELECT sum(n)::int FROM (SELECT least(count(*), 3) AS n FROM visits GROUP BY u) t"
        ).fetchall()
        with engine.transaction() as reading:
            seen = reading.integers(task.asked, task.statistics, tables)
        assert len(seen) == 3
        rows = [sum(int(line[1]) for line in lines) for _, lines in seen[:1]]
        cells = sum(int(line[-1]) for line in seen[1][1]) if len(seen[1][1][0]) == 3 else None
        assert rows == [before]
        assert cells in {None, before}


def test_a_snapshot_shows_what_a_later_transaction_sees(visits: Database, postgres_url: str) -> None:
    data = protected("visits", engine=postgres_url, limits={"rows": 3}, bounds={"stay": (0, 200)})
    made = data._engine._snapshots
    assert [count(data, 10**5 + i) for i in range(3)] == [30, 30, 30]
    assert made.table("visits") is not None
    for k, (statement, rows) in enumerate(
        (
            ("INSERT INTO visits VALUES (77, 'h0', 1)", 31),
            ("UPDATE visits SET u = 78 WHERE u = 77", 31),
            ("DELETE FROM visits WHERE u = 5", 28),
            ("TRUNCATE visits", 0),
            ("INSERT INTO visits SELECT i, 'h', 1 FROM generate_series(1, 9) i", 9),
        )
    ):
        visits.execute(statement)
        assert [count(data, 10**6 * rows + 10**7 + k * 10 + i) for i in range(4)] == [rows] * 4
        assert made.table("visits") is not None


def test_a_snapshot_is_kept_while_nothing_changes(visits: Database, postgres_url: str) -> None:
    data = protected("visits", engine=postgres_url, limits={"rows": 3})
    for i in range(3):
        count(data, 10**5 + i)
    kept = data._engine._snapshots.table("visits")
    visits.execute("CREATE TABLE another AS SELECT 1 AS a")  # another transaction, another table
    visits.execute("UPDATE another SET a = 2")
    count(data, 10**6)
    assert data._engine._snapshots.table("visits") == kept


def test_a_table_that_was_altered_is_refused_before_the_charge(visits: Database) -> None:
    data = protected("visits", engine=visits, limits={"rows": 3})
    assert count(data) == 30
    visits.execute("ALTER TABLE visits RENAME COLUMN stay TO days")
    left = data.remaining.epsilon
    with pytest.raises(tc.TacitError, match="does not have the columns"):
        count(data, 10**6)
    assert data.remaining.epsilon == left


def test_a_table_that_is_altered_after_the_check_gives_the_one_opaque_error(visits: Database) -> None:
    data = protected("visits", engine=visits, limits={"rows": 3})
    check = data._engine.check

    def checked(*asked: Any) -> None:
        check(*asked)
        visits.execute("ALTER TABLE visits RENAME COLUMN stay TO days")

    data._engine.check = checked
    with pytest.raises(tc.TacitError) as failed:
        count(data)
    assert failed.value.code == "release-failed"


def test_a_table_that_is_rewritten_while_a_plan_waits_is_read_as_it_is_then(visits: Database) -> None:
    """To a moment before the rewriting, the table would look empty."""
    data = protected("visits", engine=visits, limits={"rows": 3})
    check, answer = data._engine.check, []
    with psycopg.connect(**visits.info.get_parameters()) as other:
        asking = threading.Thread(target=lambda: answer.append(count(data)))

        def checked(*asked: Any) -> None:
            check(*asked)
            other.execute("ALTER TABLE visits ALTER COLUMN stay TYPE text")

        data._engine.check = checked
        asking.start()
        asking.join(2)
        assert asking.is_alive()
        other.commit()
        asking.join(60)
    assert answer == [30]


def test_a_column_of_another_type_is_read_as_it_is_now(visits: Database) -> None:
    data = protected("visits", engine=visits, limits={"rows": 3}, bounds={"stay": (0, 200)})
    assert [count(data, 10**5 + i) for i in range(3)] == [30, 30, 30]
    before = data.agg(s=tc.sum("stay")).plan(epsilon=10**7).release().value
    visits.execute("ALTER TABLE visits ALTER COLUMN stay TYPE text, ALTER COLUMN u TYPE text")
    after = data.agg(s=tc.sum("stay")).plan(epsilon=2 * 10**7).release().value
    assert after == pytest.approx(before, abs=0.1)


def test_a_view_that_takes_the_place_of_a_table_is_not_read(visits: Database) -> None:
    data = protected("visits", engine=visits)
    visits.execute("ALTER TABLE visits RENAME TO old")
    visits.execute("CREATE VIEW visits AS SELECT * FROM old")
    with pytest.raises(tc.TacitError, match="is a view"):
        count(data)
    assert data.remaining.epsilon == HUGE.epsilon


def test_a_failure_after_the_charge_shows_no_value(visits: Database) -> None:
    data = protected("visits", engine=visits)
    plan = data.agg(n=tc.count()).plan(epsilon=1)
    engine = data._engine
    run = engine.run

    def failing(session: Any, *given: Any) -> Any:
        session.execute("SELECT 'secret 4711'::int")
        return run(session, *given)

    engine.run = failing
    with pytest.raises(tc.TacitError) as failed:
        plan.release()
    assert failed.value.code == "release-failed"
    assert "4711" not in str(failed.value)
    assert failed.value.__cause__ is None
    engine.run = run
    assert count(data) == 100  # with a session of its own again


def test_a_forked_child_leaves_its_parent_s_session(visits: Database, postgres_url: str) -> None:
    import warnings

    data = protected("visits", engine=postgres_url)
    assert count(data) == 100
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        data._engine.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    session = data._engine._session
    assert session.execute("SELECT 1").fetchall() == [(1,)]


def test_names_of_columns_do_not_meet_names_within_a_statement(database: Database) -> None:
    names = ["k0", "q0", "s0n", "up", "large", "mi", *"abcdeghijmopstvwx"]
    listed = ", ".join(f'"{name}" text' for name in names)
    database.execute(f"CREATE TABLE t (u int, {listed})")
    values = ", ".join("(i * 1.25)::text" for _ in names)
    database.execute(f"INSERT INTO t SELECT i, {values} FROM generate_series(1, 20) i")
    data = protected("t", engine=database, name="t", limits={"rows": 2}, budget=tc.Budget(epsilon=10**12))
    seen = set()
    for k, name in enumerate(names):
        number = f'CAST("{name}" AS DOUBLE)'
        left = f"LEAST(GREATEST({number} % -0.3 * 7, 0), 9)"
        sql = f"SELECT SUM({left}) AS s, COUNT(CAST({name} AS DATE)) AS d FROM t"
        release = data.sql(sql).plan(epsilon=10**7 + k).release()
        seen.add((round(release["s"].value[0], 3), release["d"].value))
    assert len(seen) == 1


def test_keys_that_no_database_can_hold_are_in_no_row(visits: Database) -> None:
    data = protected("visits", engine=visits, limits={"rows": 3})
    task = data.group_by("h", keys=["h0", "h1"]).agg(n=tc.count()).plan(epsilon=1)._members[0].task.subject
    found = []
    for keys in ([("h0",), ("h1",)], [("h0",), ("h1",), ("\x00",), ("\ud800",)]):
        with task.engine.transaction() as reading:
            found.append(sorted(reading.integers(task.asked, task.statistics, {"tacit_keys": keys})[0][1]))
    assert found[0] == found[1]
    assert [line[0] for line in found[0]] == ["h0", "h1"]


@pytest.mark.parametrize("refused", ["INSERT INTO pg_temp", "CREATE TEMPORARY TABLE"])
def test_without_room_for_a_snapshot_the_answer_is_the_same(
    visits: Database, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    data = protected("visits", engine=visits, limits={"rows": 3})
    execute, seen = Session.execute, []

    def full(self: Session, sql: str, parameters: Any = None) -> Any:
        if refused in sql:
            seen.append(sql)
            raise psycopg.errors.DiskFull("no room")
        return execute(self, sql, parameters)

    monkeypatch.setattr(Session, "execute", full)
    assert [count(data, 10**5 + i) for i in range(4)] == [30] * 4
    assert len(seen) == 1  # it is not tried again


def test_hospitals_on_different_engines_answer_together(visits: Database, postgres_url: str) -> None:
    con = duckdb.connect()
    con.execute("CREATE TABLE visits AS SELECT i % 7 AS u, 'h1' AS h, i AS stay FROM range(70) t(i)")
    facts: dict[str, Any] = {
        "limits": {"rows": 3},
        "bounds": {"stay": (0, 200)},
        "ledger": tc.Ledger.memory(),
    }
    members = [
        protected((con, "visits"), name="here", **facts),
        protected("visits", name="there", engine=postgres_url, **{**facts, "ledger": tc.Ledger.memory()}),
    ]
    plan = tc.consortium(members, disjoint=True).agg(n=tc.count()).plan(epsilon=10**5)
    assert plan.release().value == 21 + 30


# Types and owners -------------------------------------------------------------------------------------------

OWNERS = [
    "1",
    "01",
    "1.0",
    "a",
    "A",
    "",
    " ",
    "true",
    "nan",
    "2024-01-05",
    "é",
    "sha256:x",
    "sha256:" + "0" * 64,
    "x" * 70,
    "y" * 70_000,
]
NUMERIC = [
    0.0,
    -0.0,
    1.0,
    1.5,
    -2.25,
    1e15,
    2.0**53,
    2.0**63,
    -(2.0**63),
    2.0**81,
    2.0**82,
    -1e22,
    1e300,
    1.7976931348623157e308,
    float("-inf"),
    5e-324,
    float("inf"),
    float("nan"),
    None,
]


def names_on_duckdb(kind: str, values: list[Any], *, pair: bool = False) -> list[str | None]:
    from tacit.engines import DuckDB, read_source

    con = duckdb.connect()
    con.execute(f"CREATE TABLE t (i INTEGER, a {kind}, b {kind})")
    con.executemany("INSERT INTO t VALUES (?, ?, ?)", [(i, v, v) for i, v in enumerate(values)])
    made = DuckDB({"t": SourceTable(read_source((con, "t")), ("a", "b") if pair else ("a",))}, key=1)
    found = dict(made.rows("SELECT i, CAST(tacit_u AS VARCHAR) FROM t"))
    made.close()
    return [found.get(i) for i in range(len(values))]


@pytest.mark.parametrize(
    ("kind", "here", "values"),
    [
        ("BIGINT", "bigint", [0, 1, -1, 2**63 - 1, None]),
        ("DOUBLE", "float8", NUMERIC),
        ("DECIMAL(9,2)", "numeric(9,2)", [0, 1, "1.5", "1.50", "-2.25", None]),
        ("VARCHAR", "text", [*OWNERS, None]),
        ("BLOB", "bytea", [b"", b"a", b"\xff", b"\xc3\xa9", b"\xed\xa0\x80", b"sha256:" + b"0" * 64, None]),
        ("BOOLEAN", "boolean", [True, False, None]),
        ("TIMESTAMP", "timestamp", ["2024-01-05", "2024-01-05 10:00:00.5", "0001-01-01", "infinity", None]),
        ("DATE", "date", ["2024-01-05", "9999-12-31", "infinity", None]),
        ("UUID", "uuid", ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", None]),
    ],
)
def test_units_have_the_same_names_as_on_duckdb(
    database: Database, kind: str, here: str, values: list[Any]
) -> None:
    database.execute(f"CREATE TABLE t (i int, a {here}, b {here})")
    for i, value in enumerate(values):
        database.execute(f"INSERT INTO t VALUES (%s, %s::{here}, %s::{here})", (i, value, value))
    for unit in (("a",), ("a", "b")):
        engine = PostgresEngine({"t": SourceTable(Source("postgres", database, "t"), unit)}, key=1)
        engine.columns("t")
        rows = (
            engine._opened().execute(f"SELECT i, tacit_u::text FROM ({engine._views['t'].rows}) t").fetchall()
        )
        found = dict(rows)
        expected = names_on_duckdb(kind, values, pair=len(unit) == 2)
        assert [found.get(i) for i in range(len(values))] == expected
        engine.close()


HOSTILE_CELLS = {
    "numeric": ["NaN", "Infinity", "1e400", "1e-400", "-1e-16383", "1.50"],
    "real": ["NaN", "-0", "1e38", "1e-45"],
    "float8": ["NaN", "-Infinity", "5e-324", "1.7976931348623157e308"],
    "date": ["infinity", "-infinity", "5874897-12-31", "4713-01-01 BC"],
    "timestamp": ["infinity", "294276-12-31 23:59:59.999999", "4713-01-01 00:00:00 BC"],
    "timestamptz": ["-infinity", "294276-12-31 23:59:59.999999+00", "4713-01-01 00:00:00+00 BC"],
    "bytea": ["\\xff00", "\\xeda080", "\\xf4908080", "\\x", "\\x5c2227"],
    "json": ['"\\u0000"', '{"a": 1}', "null"],
    "jsonb": ['{"b": 1, "a": 2}', "null", "1e400"],
    "char(5)": ["a", "", "é"],
    "text": ["now", "1e400", "\\", "x"],
    "uuid": ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"],
    "whole": ["5"],
    "feeling": ["sad", "glad"],
}


def test_no_value_of_any_type_makes_a_question_fail(database: Database) -> None:
    database.execute(
        "CREATE DOMAIN whole AS int CHECK (value > 0); CREATE TYPE feeling AS ENUM ('sad', 'glad')"
    )
    columns = {f"c{i}": kind for i, kind in enumerate(HOSTILE_CELLS)}
    database.execute(f"CREATE TABLE t (u int, {', '.join(f'{c} {k}' for c, k in columns.items())})")
    for column, kind in columns.items():
        for value in HOSTILE_CELLS[kind]:
            database.execute(f"INSERT INTO t (u, {column}) VALUES (1, %s)", (value,))
    database.execute("INSERT INTO t (u) VALUES (2)")
    every = sum(len(cells) for cells in HOSTILE_CELLS.values()) + 1
    for kind in ("number", "text", "boolean", "date"):
        facts: dict[str, Any] = {"types": dict.fromkeys(columns, kind), "limits": {"rows": 100}}
        if kind == "number":
            facts["bounds"] = dict.fromkeys(columns, (0, 9))
        data = protected("t", engine=database, **facts)
        assert [count(data, 10**6 + i) for i in range(3)] == [every] * 3
        for column in columns:
            data.agg(n=tc.count(column), d=tc.count_distinct(column)).plan(epsilon=10**5).release()
    for column in columns:
        data = protected("t", engine=database, unit=column, limits={"rows": 2})
        assert [0 <= count(data, 10**6 + i) <= every for i in range(3)] == [True] * 3


def test_types_that_cannot_be_read_are_named(database: Database) -> None:
    kinds = {
        "a": "time",
        "b": "interval",
        "c": "int[]",
        "d": "int4range",
        "e": "money",
        "f": "inet",
        "g": "point",
    }
    listed = ", ".join(f"{name} {kind}" for name, kind in kinds.items())
    database.execute(f"CREATE TABLE t (u int, {listed}, s int GENERATED ALWAYS AS (u + 1) STORED)")
    database.execute("INSERT INTO t (u, a) VALUES (1, '24:00')")
    data = protected("t", engine=database)
    for name, kind in {**kinds, "a": "time without time zone", "c": "integer"}.items():
        with pytest.raises(tc.TacitError, match=f"{name!r} is stored as {kind}") as refused:
            data.where(tc.col(name).is_null()).agg(n=tc.count())
        assert refused.value.code == "unreadable-column"
    assert data.where("s = 2").agg(n=tc.count()).plan(epsilon=10**5).release().value == 1
    if database.info.server_version >= 180_000:
        database.execute("ALTER TABLE t ADD COLUMN v int GENERATED ALWAYS AS (1 / (u - 1)) VIRTUAL")
        data = protected("t", engine=database)
        assert count(data) == 1
        with pytest.raises(tc.TacitError, match="a generated column"):
            data.where("v = 1").agg(n=tc.count())


def test_rows_that_only_spelling_tells_apart_are_read_as_one() -> None:
    """1.5 and 1.50 are one number; a numeric with a scale always has all its digits."""
    from tacit.engines.postgres import POSTGRES

    plain, scaled = (
        StoredColumn("c", "numeric", "numeric"),
        StoredColumn("c", "numeric(9,2)", "numeric", scaled=True),
    )
    assert value_sql(plain, POSTGRES) == 'trim_scale("c")'
    assert value_sql(scaled, POSTGRES) == '"c"'
    assert owner_sql([StoredColumn("c", "bigint", "int8")], POSTGRES) == '"c"::bigint'


# What people write by mistake -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("/postgres?", "/no_such_database?", "no such database"),
        ("postgres:@", "nobody:hunter2@", "does not know this user"),
        ("host=", "port=5999&host=", "no PostgreSQL server listens there"),
        ("?host=", "?host=no-such-machine.invalid&application_name=", "no machine with this name"),
    ],
)
def test_a_server_that_does_not_answer_says_why_and_shows_no_user(
    postgres_server: str, old: str, new: str, why: str
) -> None:
    address = postgres_server.replace(old, new)
    plan = protected("visits", engine=address).agg(n=tc.count()).plan(epsilon=1)
    with pytest.raises(tc.TacitError, match=why) as caught:
        plan.release()
    said = str(caught.value)
    assert "parquet" not in said
    assert "nobody" not in said
    assert "hunter2" not in said


def test_a_table_that_does_not_exist_is_answered_with_the_one_that_was_meant(visits: Database) -> None:
    [(schema,)] = visits.execute("SELECT current_schema()").fetchall()
    visits.execute('CREATE TABLE "Stays" AS SELECT * FROM visits')
    address = {"engine": visits}
    for written, meant in [("vists", "visits"), ("stays", "Stays"), ('"Stays"', "Stays")]:
        with pytest.raises(tc.TacitError, match="has no table") as caught:
            protected(written, **address)
        assert str(caught.value.fix).startswith(f"did you mean {meant}? one of: Stays, visits")
    with (
        psycopg.connect(visits.info.dsn, options="-csearch_path=public") as elsewhere,
        pytest.raises(tc.TacitError, match=r"in the search path \(public\)") as caught,
    ):
        protected("Stays", engine=elsewhere)
    assert f"{schema}.Stays" in str(caught.value.fix)


def test_a_connection_in_place_of_a_source_asks_for_the_table(visits: Database) -> None:
    with pytest.raises(tc.TacitError, match="not which table") as caught:
        protected(visits)
    assert str(caught.value.fix) == 'tc.protect("visits", engine=connection, ...)'
