"""Comparisons that no value of a declared stored type can satisfy are refused before the charge."""

from __future__ import annotations

import duckdb
import pandas as pd
import pytest

import tacit as tc

ROWS = pd.DataFrame(
    {
        "pid": [str(i) for i in range(40)],
        "smokes": [i % 2 == 0 for i in range(40)],
        "age": range(40),
        "day": pd.to_datetime(["2026-01-31"] * 40),
    }
)


@pytest.fixture(params=["parquet", "duckdb"])
def stored(request, tmp_path):
    if request.param == "parquet":
        source = {"t": tmp_path / "t.parquet"}
        ROWS.to_parquet(source["t"])
    else:
        connection = duckdb.connect()
        connection.register("frame", ROWS)
        connection.execute("CREATE TABLE t AS SELECT * FROM frame")
        source = {"t": connection}
    return tc.protect(source, unit="pid", budget=tc.Budget(epsilon=1e6))


def _count(data, condition):
    release = data.sql(f"SELECT COUNT(*) AS n FROM t WHERE {condition}").plan(epsilon=1000).release()
    return release.to_pandas()["n"].iloc[0]


@pytest.mark.parametrize(
    ("condition", "exact"),
    [
        ("smokes = 'YES'", 20),
        ("smokes <> 'no'", 20),
        ("smokes IN ('YES', 'Y')", 20),
        ("'YES' = smokes", 20),
        ("age = 'young'", 1),
        ("day = 'Saturday'", 40),
        ("day = 7", 40),
    ],
)
def test_a_comparison_that_is_never_true_is_refused_and_its_fix_answers(stored, condition, exact):
    with pytest.raises(tc.TacitError) as refused:
        stored.sql(f"SELECT COUNT(*) AS n FROM t WHERE {condition}").plan(epsilon=1)
    assert refused.value.code == "bad-expression"
    assert "is stored as" in refused.value.what
    fix = str(refused.value.fix)
    assert _count(stored, fix) == exact
    assert stored.where(fix).agg(n=tc.count()).plan(epsilon=1000).release().to_pandas()["n"].iloc[0] == exact


@pytest.mark.parametrize(
    ("condition", "exact"),
    [("smokes = 'true'", 20), ("smokes = 1", 20), ("smokes IN ('true', 'YES')", 20), ("age = '7'", 1),
     ("day = '2026-01-31'", 40), ("pid = 'x'", 0)],
)  # fmt: skip
def test_a_comparison_that_can_be_true_is_answered(stored, condition, exact):
    assert _count(stored, condition) == exact


def test_keys_that_no_stored_value_can_equal_are_refused(stored):
    with pytest.raises(tc.TacitError, match="stored as a boolean") as refused:
        stored.sql("SELECT smokes, COUNT(*) AS n FROM t GROUP BY smokes", keys={"smokes": ["YES", "NO"]})
    assert "[True, False]" in str(refused.value.fix)
    answer = stored.sql("SELECT smokes, COUNT(*) AS n FROM t GROUP BY smokes", keys={"smokes": [True, False]})
    assert answer.plan(epsilon=1000).release().to_pandas()["n"].tolist() == [20, 20]


def test_the_types_of_a_data_frame_follow_its_values_so_nothing_is_refused():
    data = tc.protect(ROWS, unit="pid", name="t", budget=tc.Budget(epsilon=1e6))
    assert _count(data, "smokes = 'YES'") == 0


def test_a_declared_boolean_is_compared_with_true_by_the_fix():
    data = tc.protect(ROWS, unit="pid", name="t", types={"smokes": "boolean"}, budget=tc.Budget(epsilon=1e6))
    with pytest.raises(tc.TacitError) as refused:
        _count(data, "smokes = 'YES'")
    assert _count(data, str(refused.value.fix)) == 20
