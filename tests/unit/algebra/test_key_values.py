"""The values that a group's key can have by its form are those that the engine writes, all of them."""

from __future__ import annotations

import duckdb
import pytest

from support.duckdb_sql import expression_sql
from tacit.algebra._expressions import Call, Column, lit
from tacit.algebra._kinds import DATE_PARTS, Scope
from tacit.algebra._questions import _FORMATS, keys_of
from tacit.core import Fact

MOMENT = Column("t", "date")
KEYS = [
    *(Call(part, (MOMENT,)) for part in (*DATE_PARTS, "dayname", "monthname")),
    *(Call("strftime", (MOMENT, lit(form))) for form in _FORMATS),
]


@pytest.fixture(scope="module")
def moments():
    con = duckdb.connect()
    con.execute(
        "CREATE TABLE m AS SELECT unnest(generate_series(TIMESTAMP '1996-01-01', TIMESTAMP '2024-12-31', "
        "INTERVAL '11 hours 7 minutes 13 seconds')) AS t UNION ALL SELECT unnest([TIMESTAMP '0001-01-01', "
        "TIMESTAMP '9999-12-31 23:59:59.999999', TIMESTAMP '0004-12-31', TIMESTAMP '1600-02-29'])"
    )
    return con


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_every_moment_has_one_of_the_known_values_and_every_value_occurs(moments, key):
    known = keys_of(key, Scope({}))
    found = {row[0] for row in moments.execute(f"SELECT DISTINCT {expression_sql(key)} FROM m").fetchall()}
    assert found == set(known)
    assert len(set(known)) == len(known)


def test_a_column_has_its_declared_keys_and_a_boolean_both_values():
    scope = Scope({"a": Fact("text", keys=("x", "y")), "b": Fact("boolean"), "c": Fact("text")})
    assert keys_of(Column("a"), scope) == ("x", "y")
    assert keys_of(Column("b"), scope) == (False, True)
    assert keys_of(Call("gt", (Column("c"), lit("a"))), scope) == (False, True)
    for unknown in (
        Column("c"),
        Call("lower", (Column("c"),)),
        Call("year", (MOMENT,)),
        Call("strftime", (MOMENT, lit("%Y"))),
    ):
        assert keys_of(unknown, scope) is None
