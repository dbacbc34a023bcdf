"""A unit of several columns in SQL: subqueries and joins name all of them, untouched."""

# ruff: noqa: E501 - one question a line
from __future__ import annotations

import pyarrow as pa
import pytest

import tacit as tc
from tacit import TacitError


@pytest.fixture(scope="module")
def data():
    visits = pa.table({"pid": [1, 1, 1, 2], "day": ["a", "a", "b", "a"], "x": [1.0, 2.0, 3.0, 4.0]})
    tests = pa.table({"pid": [1, 1, 2], "day": ["a", "b", "b"], "y": [1.0, 2.0, 3.0]})
    return tc.protect(
        {"visits": visits, "tests": tests},
        unit=tc.Unit("pid", per="day"),
        bounds={"x": (0, 10), "y": (0, 10)},
        types={"pid": "number", "day": "text"},
        name="h",
        budget=tc.Budget(epsilon=10**9),
    )


def answer(data, sql: str) -> float:
    return round(data.sql(sql).plan(epsilon=10**7).release().value)


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("SELECT COUNT(*) FROM (SELECT pid, day, SUM(x) AS s FROM visits GROUP BY pid, day)", 3),
        ("SELECT COUNT(*) FROM (SELECT day, pid FROM visits GROUP BY day, pid HAVING COUNT(*) > 1)", 1),
        ("SELECT COUNT(*) FROM visits JOIN tests USING (pid, day)", 3),
        ("SELECT COUNT(*) FROM visits v JOIN tests t ON v.pid = t.pid AND t.day = v.day", 3),
        ("SELECT COUNT(*) FROM visits v LEFT JOIN tests t ON v.day = t.day AND v.pid = t.pid", 4),
        (
            "SELECT COUNT(*) FROM visits v JOIN (SELECT pid AS day, day AS pid FROM tests) t ON v.pid = t.day AND v.day = t.pid",
            3,
        ),
        ("SELECT COUNT(*) FROM visits WHERE (pid, day) IN (SELECT pid, day FROM tests)", 3),
        ("SELECT COUNT(*) FROM visits WHERE (day, pid) NOT IN (SELECT day, pid FROM tests WHERE y > 1)", 3),
        (
            "SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM tests t WHERE t.day = v.day AND v.pid = t.pid)",
            3,
        ),
        ("SELECT COUNT(*) FROM visits v, tests t WHERE v.pid = t.pid AND v.day = t.day AND t.y > 1", 1),
        ("SELECT COUNT(*) FROM (SELECT p, d FROM (SELECT pid AS p, day AS d FROM visits) GROUP BY p, d)", 3),
    ],
)
def test_all_columns_of_the_unit_name_it(data, sql, value):
    assert answer(data, sql) == value


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT AVG(n) FROM (SELECT pid, COUNT(*) AS n FROM visits GROUP BY pid)",
        "SELECT AVG(n) FROM (SELECT day, COUNT(*) AS n FROM visits GROUP BY day)",
        "WITH t AS (SELECT pid, 'a' AS day, x FROM visits) SELECT COUNT(*) FROM (SELECT pid, day FROM t GROUP BY pid, day)",
        "WITH t AS (SELECT pid, pid AS day FROM visits) SELECT COUNT(*) FROM (SELECT pid, day FROM t GROUP BY pid, day)",
        "SELECT COUNT(*) FROM visits JOIN tests USING (pid)",
        "SELECT COUNT(*) FROM visits v JOIN tests t ON v.pid = t.pid",
        "SELECT COUNT(*) FROM visits v JOIN tests t ON v.pid = t.pid AND v.x = t.y",
        "SELECT COUNT(*) FROM visits v JOIN tests t ON v.pid = t.day AND v.day = t.pid",
        "SELECT COUNT(*) FROM visits v JOIN tests t ON v.pid = t.pid OR v.day = t.day",
        "SELECT COUNT(*) FROM visits v JOIN (SELECT pid AS day, day AS pid, y FROM tests) t ON v.pid = t.pid AND v.day = t.day",
        "SELECT COUNT(*) FROM visits JOIN (SELECT pid AS day, day AS pid, y FROM tests) t USING (pid, day)",
        "SELECT COUNT(*) FROM visits WHERE (pid, day) IN (SELECT day, pid FROM tests)",
        "SELECT COUNT(*) FROM visits WHERE pid IN (SELECT pid FROM tests)",
        "SELECT COUNT(*) FROM visits WHERE (pid, day) IN (SELECT pid, pid FROM tests)",
        "SELECT COUNT(*) FROM visits v, tests t WHERE v.pid = t.pid",
        "SELECT COUNT(*) FROM visits v JOIN tests t ON v.pid = t.pid AND v.pid = t.pid",
    ],
)
def test_one_column_alone_does_not(data, sql):
    with pytest.raises(TacitError) as refused:
        data.sql(sql)
    assert refused.value.code == "not-allowed"


def test_the_fix_names_all_columns(data):
    with pytest.raises(TacitError) as refused:
        data.sql("SELECT AVG(n) FROM (SELECT pid, COUNT(*) AS n FROM visits GROUP BY pid)")
    assert str(refused.value.fix) == "GROUP BY pid, day"
