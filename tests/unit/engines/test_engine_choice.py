"""What people give for an engine or a source by mistake: a refusal names what was meant, and no password."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tacit as tc

SECRET = "hunter2"


def refusal(source: object, **facts: Any) -> tc.TacitError:
    with pytest.raises(tc.TacitError) as caught:
        tc.protect(source, unit="patient_id", budget=tc.Budget(epsilon=1), **facts)
    return caught.value


def spark_thing(name: str, **attributes: object) -> object:
    """Make an object that looks as PySpark's does, where there is no Java."""
    return type(name, (), {"__module__": "pyspark.sql.classic", **attributes})()


@pytest.mark.parametrize(
    ("engine", "meant"),
    [
        ("postgres", 'engine="postgresql://user@host/database"'),
        ("spark", "engine=SparkSession.builder.getOrCreate()"),
        (spark_thing("SparkContext"), "engine=SparkSession.builder.getOrCreate()"),
        ("DuckDB", 'engine="duckdb"'),
        (f"postgresql+psycopg://me:{SECRET}@db/warehouse", 'engine="postgresql://user@host/database"'),
        (f"jdbc:postgresql://db/warehouse?password={SECRET}", 'engine="postgresql://user@host/database"'),
        (f"host=db password={SECRET}", 'engine="postgresql://user@host/database"'),
    ],
)
def test_a_wrong_engine_is_answered_with_the_one_that_was_meant(engine: object, meant: str) -> None:
    error = refusal("visits", engine=engine)
    assert (error.code, str(error.fix)) == ("bad-parameter", meant)
    assert SECRET not in str(error)


def test_an_address_in_place_of_a_source_asks_for_the_table_and_shows_no_password() -> None:
    error = refusal(f"postgresql://me:{SECRET}@db/warehouse")
    assert str(error.fix) == 'tc.protect("visits", engine="postgresql://...", ...)'
    assert SECRET not in str(error)


def test_an_address_of_another_kind_shows_no_password() -> None:
    error = refusal(f"mysql://me:{SECRET}@db/warehouse")
    assert "mysql://..." in str(error)
    assert SECRET not in str(error)


def test_a_session_in_place_of_a_source_asks_for_the_table() -> None:
    assert str(refusal(spark_thing("SparkSession")).fix) == 'tc.protect("visits", engine=spark, ...)'


@pytest.mark.parametrize("engine", [None, spark_thing("SparkSession")])
def test_a_dataframe_of_spark_is_refused_before_anything_can_be_charged(engine: object) -> None:
    error = refusal(spark_thing("DataFrame", columns=["patient_id"]), engine=engine)
    assert "a DataFrame of Spark is not a source" in str(error)
    assert "saveAsTable" in str(error.fix)


@pytest.mark.parametrize("source", ["visits", "clinic.visits", Path("clinic.visits")])
def test_the_name_of_a_table_without_an_engine_asks_for_the_engine(source: str | Path) -> None:
    error = refusal(source)
    assert "needs the engine" in error.why
    assert 'engine="postgresql://user@host/database"' in str(error.fix)
