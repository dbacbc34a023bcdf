"""SQL with subqueries, FILTER and groups known from their form: one unit changes no statistic too much."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

import neighbours as nb

from tacit import TacitError

MEMBERS = [
    "pid IN (SELECT pid FROM people WHERE age > 20)",
    "pid NOT IN (SELECT pid FROM people WHERE w = 'u')",
    "pid IN (SELECT pid FROM visits GROUP BY pid HAVING COUNT(*) > 2) OR x > 3",
    "NOT (pid IN (SELECT DISTINCT pid FROM visits WHERE h = 'A') AND y > 0)",
    "EXISTS (SELECT 1 FROM people p WHERE p.pid = visits.pid AND p.age < 50)",
    "h IN (SELECT code FROM codes WHERE chapter = 'x')",
    "pid IN (SELECT pid FROM visits WHERE pid IN (SELECT pid FROM people))",
]
ITEMS = [
    "COUNT(*) FILTER (WHERE x > 3) AS a",
    "SUM(x) FILTER (WHERE h = 'A') AS b",
    "AVG(x) FILTER (WHERE y IS NULL) AS c",
    "COUNT(DISTINCT h) FILTER (WHERE x < 5) AS d",
    "COUNT(DISTINCT pid) FILTER (WHERE x < 5) AS e",
    "VAR_POP(x) FILTER (WHERE d > '2024-01-01') AS f",
    "COUNT_IF(x > 1) AS g",
    "MEDIAN(x) FILTER (WHERE y > 0) AS i",
    "SUM(LN(y + 2)) AS j",
]
GROUPS = ["h", "DAYNAME(d)", "MONTH(d)", "x > 3", "ISODOW(d)", "UPPER(h)"]


@st.composite
def asked(draw):
    items = draw(st.lists(st.sampled_from(ITEMS), min_size=1, max_size=3, unique=True))
    by = draw(st.lists(st.sampled_from(GROUPS), max_size=2, unique=True))
    where = draw(st.lists(st.sampled_from(MEMBERS), max_size=2, unique=True))
    text = f"SELECT {', '.join([f'{b} AS g{i}' for i, b in enumerate(by)] + items)} FROM visits"
    text += f" WHERE {' AND '.join(f'({w})' for w in where)}" if where else ""
    return text + (f" GROUP BY {', '.join(by)}" if by else "")


def search(pair, data, times):
    limit = data.draw(nb.limits())
    small, large = pair
    declared = nb.dataset(large, limit)
    left, right = nb.engine(small), nb.engine(large)
    try:
        for _ in range(times):
            try:
                nb.check(declared.sql(data.draw(asked())).question, left, right)
            except TacitError as error:
                assert error.code == "missing-limit"
    finally:
        left.close()
        right.close()


@given(nb.neighbouring(), st.data())
@settings(max_examples=10, deadline=None)
def test_one_unit_changes_no_statistic_beyond_its_sensitivity(pair, data):
    search(pair, data, 5)


@pytest.mark.long
@given(nb.neighbouring(), st.data())
@settings(deadline=None)
def test_one_unit_changes_no_statistic_beyond_its_sensitivity_over_many_plans(pair, data):
    search(pair, data, 8)
