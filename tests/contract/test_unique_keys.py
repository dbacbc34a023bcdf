"""A key of the catalogue leaves each unit one row: the default limit is then 1, and the plan says why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import psycopg
import pytest

import tacit as tc
from tacit.ledger import Ledger
from tacit.tables import open_facts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PEOPLE = "CREATE TABLE people (patient INTEGER {key}, day INTEGER, age INTEGER{more})"
ROWS = "INSERT INTO people VALUES (1, 1, 30), (2, 1, 40), (3, 2, 50)"


class Place:
    """A database with one table, and the way to change it."""

    def __init__(self, kind: str, connection: Any, where: Any) -> None:
        self.kind, self._connection, self._where = kind, connection, where

    def run(self, *statements: str) -> None:
        if self.kind == "file":
            with duckdb.connect(str(self._where)) as connection:
                for statement in statements:
                    connection.execute(statement)
        else:
            for statement in statements:
                self._connection.execute(statement)

    def protect(self, **facts: Any) -> Any:
        facts = {"unit": "patient", "name": "people", "budget": tc.Budget(epsilon=10**6), **facts}
        source = "people" if self.kind == "postgres" else (self._where, "people")
        engine = {"engine": self._where} if self.kind == "postgres" else {}
        return tc.protect(source, ledger=Ledger.memory(), **engine, **facts)


@pytest.fixture(params=["connection", "file", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "connection":
        connection = duckdb.connect()
        yield Place("connection", connection, connection)
    elif request.param == "file":
        yield Place("file", None, tmp_path / "people.duckdb")
    else:
        url = request.getfixturevalue("postgres_url")
        with psycopg.connect(url, autocommit=True) as connection:
            yield Place("postgres", connection, url)
            [(schema,)] = connection.execute("SELECT current_schema()").fetchall()
            connection.execute(f"DROP SCHEMA {schema} CASCADE")


def limits(plan: Any) -> str:
    return str(dict(plan.facts)["limits"])


def count(data: Any, epsilon: float = 1) -> Any:
    return data.agg(n=tc.count()).plan(epsilon=epsilon)


@pytest.mark.parametrize(("key", "more"), [("PRIMARY KEY", ""), ("UNIQUE", ""), ("", ", UNIQUE (patient)")])
def test_a_unique_unit_has_one_row_and_the_plan_says_why(place: Place, key: str, more: str) -> None:
    place.run(PEOPLE.format(key=key, more=more), ROWS)
    data = place.protect()
    plan = count(data)
    assert limits(plan) == "at most 1 row of each patient counts (patient is unique in people)"
    assert "people (3 columns, patient unique)" in repr(data)
    assert not [text for label, text in plan.facts if label == "advice"]
    chosen = place.protect(limits={"rows": 1})
    assert plan.hash == count(chosen).hash
    assert "unique" not in limits(count(chosen))
    assert count(data, 10**4).release().value == 3


@pytest.mark.parametrize(
    ("key", "more"), [("", ""), ("", ", UNIQUE (patient, day)"), ("", ", UNIQUE (day, age)")]
)
def test_a_key_of_other_columns_leaves_the_default(place: Place, key: str, more: str) -> None:
    place.run(PEOPLE.format(key=key, more=more), ROWS)
    assert limits(count(place.protect())) == "at most 10 rows of each patient count (default)"


def test_a_key_of_all_columns_of_the_unit_leaves_one_row_too(place: Place) -> None:
    place.run(PEOPLE.format(key="", more=", UNIQUE (day, patient)"), ROWS)
    plan = count(place.protect(unit=tc.Unit("patient", per="day")))
    assert "at most 1 row" in limits(plan)
    assert "is unique in people" in limits(plan)


def test_a_limit_that_the_curator_chose_stays_and_plans_of_before_can_be_read(place: Place) -> None:
    place.run(PEOPLE.format(key="PRIMARY KEY", more=""), ROWS)
    keyed, chosen = place.protect(), place.protect(limits={"rows": 10})
    before = count(chosen)
    assert limits(before) == "at most 10 rows of each patient count"
    assert keyed.plan_from(before.to_json()).hash == before.hash
    assert keyed.limit(rows=10).agg(n=tc.count()).plan(epsilon=1).hash == before.hash


def test_the_limit_is_enforced_whatever_the_catalogue_says(place: Place) -> None:
    """The key is dropped and a second row arrives: a charge is refused; one row counts if declared."""
    place.run(PEOPLE.format(key="", more=", CONSTRAINT one UNIQUE (patient)"), ROWS)
    data = place.protect()
    other = "CREATE TABLE copied AS SELECT * FROM people"
    place.run(
        other,
        "DROP TABLE people",
        "ALTER TABLE copied RENAME TO people",
        "INSERT INTO people VALUES (1, 3, 70)",
    )
    with pytest.raises(tc.TacitError, match="patient was unique in the table 'people'") as refused:
        count(data).release()
    assert refused.value.code == "unknown-table"
    assert data.remaining.epsilon == 10**6
    assert count(place.protect(limits={"rows": 1}), 10**4).release().value == 3
    assert limits(count(place.protect())).endswith("(default)")


def test_a_dataset_of_public_facts_plans_the_same(place: Place) -> None:
    place.run(PEOPLE.format(key="PRIMARY KEY", more=""), ROWS)
    data = place.protect()
    facts = data.public_facts()
    opened = open_facts(facts, data._ledger)
    assert facts["tables"][0]["unique"] == ["patient"]
    assert (count(opened).hash, limits(count(opened))) == (count(data).hash, limits(count(data)))


def test_in_postgres_a_key_of_a_table_that_others_inherit_from_is_none(place: Place) -> None:
    if place.kind != "postgres":
        pytest.skip("tables inherit in PostgreSQL alone")
    place.run(PEOPLE.format(key="PRIMARY KEY", more=""), "CREATE TABLE more (LIKE people) INHERITS (people)")
    assert "(default)" in limits(count(place.protect()))


def test_in_postgres_a_deferrable_key_is_none(place: Place) -> None:
    if place.kind != "postgres":
        pytest.skip("keys are deferred in PostgreSQL alone")
    place.run(PEOPLE.format(key="UNIQUE DEFERRABLE", more=""))
    assert "(default)" in limits(count(place.protect()))
