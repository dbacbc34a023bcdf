"""How a question of SQL names its tables and its groups."""

from __future__ import annotations

import pyarrow as pa
import pytest

import tacit as tc
from support.asking import visits
from tacit import TacitError

CRASHES = pa.table(
    {"car": [f"c{i // 2}" for i in range(400)], "kind": [["a", "b"][i % 2] for i in range(400)]}
)


def protected(tables, **options):
    return tc.protect(
        tables,
        **{
            "unit": "car",
            "types": {"kind": "text"},
            "limits": {"rows": 2},
            "budget": tc.Budget(epsilon=10**9, delta=0.5),
            **options,
        },
    )


def count(data, sql: str) -> float:
    return data.sql(sql).plan(epsilon=10**6).release().value


@pytest.mark.parametrize(
    "table",
    ["telemetry.crashes", "crashes", "TELEMETRY.Crashes", "crashes.csv", "'crashes.csv'", "crashes.parquet"],
)
def test_a_table_may_be_named_with_the_dataset_or_as_its_file(table):
    assert count(protected({"crashes": CRASHES}, name="telemetry"), f"SELECT COUNT(*) FROM {table}") == 400


def test_a_table_may_be_declared_with_its_schema():
    data = protected({"telemetry.crashes": CRASHES}, name="cars")
    assert count(data, "SELECT COUNT(*) FROM telemetry.crashes WHERE crashes.kind = 'a'") == 200
    assert count(data, "SELECT COUNT(*) FROM telemetry.crashes WHERE telemetry.crashes.kind = 'a'") == 200
    assert count(data, "SELECT COUNT(*) FROM telemetry.crashes AS c WHERE c.kind = 'a'") == 200


@pytest.mark.parametrize(
    "table", ["other.crashes", "covid.csv", "'covid.csv'", "'data/crashes.csv'", "a.b.crashes"]
)
def test_another_file_or_schema_is_refused_with_the_table_to_ask(table):
    data = protected({"crashes": CRASHES}, name="telemetry")
    with pytest.raises(TacitError) as refused:
        data.sql(f"SELECT COUNT(*) FROM {table}")
    assert refused.value.code in {"not-allowed", "unknown-table"}
    assert str(refused.value.fix) == "FROM crashes"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT DISTINCT kind FROM crashes",
        "SELECT kind FROM crashes GROUP BY kind",
        "SELECT kind FROM crashes GROUP BY ALL",
    ],
)
@pytest.mark.parametrize("keys", [None, ["a", "b"]])
def test_groups_alone_show_how_many_units_they_have(sql, keys):
    data = protected({"crashes": CRASHES}, name="t", **({"keys": {"kind": keys}} if keys else {}))
    release = data.sql(sql).plan(epsilon=10**6, **({} if keys else {"delta": 1e-6})).release()
    assert release.keys["kind"] == ("a", "b")
    assert release.columns["count_units"].value == (200, 200)


def test_groups_alone_with_a_condition_show_what_the_condition_reads():
    data = protected({"crashes": CRASHES}, name="t", keys={"kind": ["a", "b", "c"]})
    release = (
        data.sql("SELECT kind FROM crashes GROUP BY kind HAVING COUNT(*) > 5").plan(epsilon=10**6).release()
    )
    assert release.keys["kind"] == ("a", "b")
    assert list(release.columns) == ["count"]


@pytest.mark.parametrize(
    "start",
    [
        "SELECT TOP 1 kind",
        "SELECT DISTINCT TOP 1 kind",
        "WITH t AS (SELECT 1 AS x FROM crashes) SELECT top 1 kind",
    ],
)
def test_top_is_a_limit_after_the_noise(start):
    data = protected({"crashes": CRASHES}, name="t", keys={"kind": ["a", "b"]})
    release = (
        data.sql(f"{start}, COUNT(*) AS n FROM crashes GROUP BY kind ORDER BY kind DESC")
        .plan(epsilon=10**6)
        .release()
    )
    assert release.keys["kind"] == ("b",)


def test_a_column_may_be_called_top():
    table = CRASHES.append_column("top", pa.array([1.0] * 400))
    data = protected({"crashes": table}, name="t", types={"top": "number"}, bounds={"top": (0, 2)})
    assert count(data, "SELECT SUM(top) FROM crashes") == pytest.approx(400, abs=0.01)


@pytest.mark.parametrize(
    ("key", "size"),
    [
        ("dayname(d)", 7),
        ("monthname(d)", 12),
        ("isodow(d)", 7),
        ("hour(d)", 24),
        ("week(d)", 53),
        ("quarter(d)", 4),
        ("kind = 'a'", 2),
        ("d IS NULL", 2),
    ],
)
def test_groups_that_are_known_from_their_form_need_no_delta(key, size):
    table = CRASHES.append_column("d", pa.array([None] * 400, pa.timestamp("us")))
    data = protected({"crashes": table}, name="t", types={"kind": "text", "d": "date"})
    plan = data.sql(f"SELECT {key} AS k, COUNT(*) AS n FROM crashes GROUP BY 1").plan(epsilon=1)
    assert len(plan.release()) == size


def test_a_member_of_a_subquery_does_not_change_how_many_rows_a_unit_has():
    data = protected({"crashes": CRASHES}, name="t", limits={"rows": 2, "joined": 1})
    plain = data.sql("SELECT COUNT(*) AS n FROM crashes").plan(epsilon=1)
    member = data.sql(
        "SELECT COUNT(*) AS n FROM crashes WHERE car IN (SELECT car FROM crashes WHERE kind = 'a')"
    ).plan(epsilon=1)
    assert member.forecast[0].error == plain.forecast[0].error
    assert (
        count(data, "SELECT COUNT(*) FROM crashes WHERE car IN (SELECT car FROM crashes WHERE kind = 'a')")
        == 400
    )


def test_units_that_a_condition_keeps_cost_as_little_as_units():
    data = protected({"crashes": CRASHES}, name="t", keys={"kind": ["a", "b"]})
    every = data.sql("SELECT COUNT(DISTINCT car) AS n FROM crashes").plan(epsilon=1)
    kept = data.sql("SELECT COUNT(DISTINCT car) FILTER (WHERE kind = 'a') AS n FROM crashes").plan(epsilon=1)
    assert kept.forecast[0].error == every.forecast[0].error
    assert count(data, "SELECT COUNT(DISTINCT CASE WHEN kind = 'c' THEN car END) FROM crashes") == 0
    assert count(data, "SELECT COUNT(DISTINCT car) FILTER (WHERE kind = 'a') FROM crashes") == 200
    limited = data.limit(groups=1, per_group=1).agg(
        n=tc.count_distinct(tc.when(tc.col("kind") == "a", tc.col("car")))
    )
    assert limited.plan(epsilon=10**6).release().value == 200


@pytest.mark.parametrize("keys", [["Ahorn", "Birke"], "hospital", 7])
def test_keys_of_sql_that_name_no_column_are_refused_with_the_form(keys):
    with pytest.raises(tc.TacitError, match="lists of values by column") as refused:
        visits().sql("SELECT hospital, COUNT(*) FROM visits GROUP BY hospital", keys=keys)
    assert "keys={" in str(refused.value.fix)
