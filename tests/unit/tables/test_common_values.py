"""MODE, MOST_COMMON, HISTOGRAM and WIDTH_BUCKET: from SQL to the answer, with known public values."""

from __future__ import annotations

import json
import math
import time

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import tacit as tc


def table() -> pa.Table:
    rng = np.random.default_rng(4)
    x = [
        None if u < 0.02 else float(v) for u, v in zip(rng.random(900), rng.normal(45, 30, 900), strict=True)
    ]
    x[:3] = [float("nan"), 100.0, 0.0]
    wards = rng.choice(["A", "B", "C"], 900, p=[0.2, 0.5, 0.3]).tolist()
    return pa.table({"pid": np.arange(900), "ward": wards, "x": x, "n": rng.binomial(6, 0.5, 900)})


def protected(**more) -> tc.Dataset:
    given = {"keys": {"ward": ["A", "B", "C", "D"]}, "bounds": {"n": (0, 6)}, **more}
    return tc.protect(
        table(), name="d", unit="pid", budget=tc.Budget(epsilon=10**9), limits={"rows": 1},
        ledger=tc.Ledger.memory(), **given,
    )  # fmt: skip


def answer(sql: str, **more) -> dict:
    """Return the values with next to no noise, without their intervals."""
    found = protected(**more).sql(sql).plan(epsilon=10**5).release().content.to_dict()
    return {name: values for name, values in found.items() if not name.endswith(("_low", "_high"))}


def test_the_mode_is_that_of_duckdb():
    d = table()  # noqa: F841 - DuckDB finds it by its name
    for sql in ("SELECT MODE(ward) AS m FROM d", "SELECT MODE(n) AS m FROM d"):
        assert answer(sql)["m"] == [duckdb.connect().sql(sql).fetchall()[0][0]]
    assert answer("SELECT MODE(ward) FROM d") == {"mode_ward": ["B"]}
    assert answer("SELECT MODE() WITHIN GROUP (ORDER BY ward) AS m FROM d") == {"m": ["B"]}


def test_plans_of_picked_values_travel_as_documents():
    data = protected()
    half = tc.when(tc.col("x") > 50, "low", "high")  # not in the order of the alphabet
    for asked in (tc.most_common(half), tc.most_common("ward"), tc.most_common("n", 2)):
        plan = data.agg(top=asked).plan(epsilon=1)
        assert data.plan_from(json.loads(json.dumps(plan.to_json()))).hash == plan.hash


def test_the_most_common_values_come_in_their_order():
    assert answer("SELECT MOST_COMMON(ward, 3) AS top FROM d") == {
        "top_1": ["B"], "top_2": ["C"], "top_3": ["A"]
    }  # fmt: skip
    shown = answer("SELECT COUNT(*) AS n, MOST_COMMON(ward, 2) AS top FROM d LIMIT 1")
    assert [name for name in shown if name in {"top_1", "top_2"}] == ["top_1", "top_2"]
    assert protected().agg(top=tc.most_common("ward", 3)).plan(epsilon=1).hash == (
        protected().sql("SELECT MOST_COMMON(ward, 3) FROM d").plan(epsilon=1).hash
    )


def test_values_that_nobody_declared_are_asked_for():
    with pytest.raises(tc.TacitError, match="chosen from public values") as refused:
        protected(keys={}).sql("SELECT MODE(ward) FROM d")
    assert refused.value.code == "keys-missing"
    with pytest.raises(tc.TacitError, match="k must be a whole number from 1 to 4, got 5"):
        protected().sql("SELECT MOST_COMMON(ward, 5) FROM d")


def test_a_histogram_counts_between_its_edges():
    d = table()
    x = [v for v in d["x"].to_pylist() if v is not None]
    for sql in (
        "SELECT HISTOGRAM(x, -50, 0, 50, 100) AS h FROM d",
        "SELECT HISTOGRAM(x, [-50, 0, 50, 100]) AS h FROM d",
    ):
        assert answer(sql) == {
            "h[-50, 0)": [sum(-50 <= v < 0 for v in x)],
            "h[0, 50)": [sum(0 <= v < 50 for v in x)],
            "h[50, 100]": [sum(50 <= v <= 100 for v in x)],
        }
    with pytest.raises(tc.TacitError, match="edges of its cells"):
        protected().sql("SELECT HISTOGRAM(x) FROM d")


def test_buckets_are_numbered_and_their_numbers_are_known():
    d = table()
    plan = (
        protected()
        .sql("SELECT WIDTH_BUCKET(x, 0, 100, 4) AS b, COUNT(*) AS n FROM d GROUP BY b")
        .plan(epsilon=10**5)
    )
    found = plan.release().content.to_dict()
    assert found["b"] == [0, 1, 2, 3, 4, 5]
    x = [v for v in d["x"].to_pylist() if v is not None and v == v]
    expected = [sum(v < 0 for v in x)]
    expected += [sum(25 * i <= v < 25 * i + 25 for v in x) for i in range(4)] + [sum(v >= 100 for v in x)]
    assert found["n"] == expected
    by_python = protected().group_by(b=tc.col("x").width_bucket(0, 100, 4)).agg(n=tc.count())
    assert by_python.plan(epsilon=10**5).hash == plan.hash


@pytest.mark.parametrize(
    "call", ["WIDTH_BUCKET(x, 0, n, 4)", "WIDTH_BUCKET(x, 0, 9, 0)", "WIDTH_BUCKET(x, 9, 0, 4)"]
)
def test_buckets_need_a_range_and_a_number(call):
    with pytest.raises(tc.TacitError):
        protected().sql(f"SELECT {call}, COUNT(*) FROM d GROUP BY 1")


def test_a_case_of_constants_has_known_keys():
    half = "CASE WHEN x < 50 THEN 'low' WHEN x >= 50 THEN 'high' END"
    assert answer(f"SELECT {half} AS half, COUNT(*) AS n FROM d GROUP BY half")["half"] == ["low", "high"]


def test_the_plan_says_which_lead_is_enough():
    """Four wards, one row a person, epsilon 1: permute-and-flip of scale 1, two exponential choices of 2."""
    one = protected().agg(top=tc.most_common("ward")).plan(epsilon=1).forecast[0]
    assert one.note == "a lead of 4 rows wins with 95 %"
    two = protected().agg(top=tc.most_common("ward", 2)).plan(epsilon=1).forecast[1]
    exact = tc.mechanisms.Exponential(epsilon=0.5, sensitivity=1, monotone=True, grid=1).lead_for(0.975, 4)
    assert two.note == f"both are right with 95 % if each leads the next by {exact:g} rows"
    score = tc.best([1, 2, 3], lambda c: tc.when(tc.col("n") >= c, c, 0))
    best = protected().agg(best=score).plan(epsilon=1).forecast[0]
    assert best.note.startswith("a lead of ")
    assert best.note.endswith(" in the sum of scores wins with 95 %")
    points = float(best.note.split()[3])
    p = math.exp(-points / 3)  # scale: 3 points
    assert 0.95 <= (1 - (1 - p) ** 3) / (3 * p) < 0.9501


def test_a_huge_number_of_picks_is_refused_before_anything_is_as_long():
    start = time.process_time()
    for ask in (
        lambda: tc.most_common("ward", 10**9),
        lambda: tc.most_common("ward", 10**9, ["a", "b"]),
        lambda: protected().sql("SELECT MOST_COMMON(ward, 1000000000) FROM d"),
    ):
        with pytest.raises(tc.TacitError, match="k must be a whole number from 1 to 10,000, got") as refused:
            ask()
        assert refused.value.code == "bad-parameter"
    assert time.process_time() - start < 10
