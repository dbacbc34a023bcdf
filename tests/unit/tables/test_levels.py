"""ROLLUP, CUBE and GROUPING SETS: totals are sums of the finest groups, free and with honest intervals."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import tacit as tc
from tacit.algebra._statistics import RowCounts
from tacit.mechanisms import DiscreteLaplace
from tacit.tables.questions._keys import check_levels, read_levels
from tacit.tables.reading._readings import NumberReading, StepNoise


def table() -> pa.Table:
    rng = np.random.default_rng(1)
    return pa.table(
        {
            "pid": np.arange(600) // 2,
            "g": rng.choice(["a", "b"], 600),
            "h": rng.choice(["u", "v", "w"], 600),
            "x": rng.integers(0, 100, 600).astype(float),
        }
    )


def protected(**more) -> tc.Dataset:
    given = {"keys": {"g": ["a", "b"], "h": ["u", "v", "w"]}, "limits": {"rows": 2}, **more}
    return tc.protect(
        table(), name="d", unit="pid", budget=tc.Budget(epsilon=10**9, delta=0.1), bounds={"x": (0, 100)},
        ledger=tc.Ledger.memory(), **given,
    )  # fmt: skip


@pytest.mark.parametrize(
    "groups",
    [
        "ROLLUP (g, h)", "CUBE (g, h)", "GROUPING SETS ((g, h), (h), ())", "GROUPING SETS (g, h)",
        "g, ROLLUP (h)", "CUBE ((g, h))", "GROUPING SETS (ROLLUP (h), (g))",
    ],
)  # fmt: skip
def test_the_lines_without_noise_are_those_of_duckdb(groups):
    d = table()  # noqa: F841 - DuckDB finds it by its name
    sql = f"SELECT g, h, COUNT(*) AS n, SUM(x) AS s, AVG(x) AS m FROM d GROUP BY {groups}"
    expected = {line[:2]: line[2:] for line in duckdb.connect().sql(sql).fetchall()}
    answer = protected().sql(sql).plan(epsilon=10**6).release()
    found = {(line["g"], line["h"]): (line["n"], line["s"], line["m"]) for line in answer.content}
    assert found.keys() == expected.keys()
    for key, numbers in found.items():
        assert numbers == pytest.approx(expected[key], rel=1e-3)


def test_python_asks_what_sql_asks_and_totals_are_free():
    data = protected()
    grouped = data.group_by("g", "h")
    plain = grouped.agg(n=tc.count()).plan(epsilon=1)
    rollup = grouped.rollup().agg(n=tc.count()).plan(epsilon=1)
    by_sql = data.sql("SELECT g, h, COUNT(*) AS n FROM d GROUP BY ROLLUP (g, h)").plan(epsilon=1)
    sets = grouped.grouping_sets([["g"], []]).agg(n=tc.count()).plan(epsilon=1)
    assert (
        plain.hash
        == rollup.hash
        == by_sql.hash
        == sets.hash
        == grouped.cube().agg(n=tc.count()).plan(epsilon=1).hash
    )
    parts = plain.release().content.to_dict()["n"]
    left = data.remaining
    assert rollup.release().content.to_dict()["n"][-1] == sum(parts)
    assert [line["n"] for line in sets.release().content][-1] == sum(parts)
    assert data.remaining == left


def test_having_and_order_work_on_totals():
    sql = "SELECT g, COUNT(*) AS n FROM d GROUP BY ROLLUP (g) HAVING COUNT(*) > 1 ORDER BY n DESC LIMIT 1"
    (line,) = protected().sql(sql).plan(epsilon=10**5).release().content
    assert (line["g"], line["n"]) == (None, 600)


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT g, COUNT(DISTINCT h) FROM d GROUP BY ROLLUP (g)", "not-allowed"),
        ("SELECT g, MODE(h) FROM d GROUP BY ROLLUP (g)", "not-allowed"),
        ("SELECT g, COUNT(DISTINCT pid) FROM d GROUP BY ROLLUP (g)", "not-allowed"),
        ("SELECT x, COUNT(*) FROM d GROUP BY ROLLUP (x)", "keys-missing"),
        ("SELECT AVG(n) FROM (SELECT pid, g, COUNT(*) AS n FROM d GROUP BY ROLLUP (pid, g))", "not-allowed"),
        ("SELECT g, COUNT(*) FROM d GROUP BY CUBE (g, h, g, h, g, h, g)", "not-allowed"),
    ],
)
def test_what_does_not_add_up_is_refused(sql, code):
    with pytest.raises(tc.TacitError) as refused:
        protected().sql(sql).plan(epsilon=1, delta=1e-6)
    assert refused.value.code == code


def test_a_group_of_missing_values_is_not_taken_for_a_total():
    question = protected().group_by("g").agg(n=tc.count()).question
    with pytest.raises(tc.TacitError, match="together with a group of missing values"):
        check_levels(replace(question, keys=(("a",), (None,)), levels=((0,), ())))


def test_units_add_up_where_each_is_in_one_group():
    data = protected(limits={"rows": 2, "groups": 1})
    answer = data.sql("SELECT g, COUNT(DISTINCT pid) AS u FROM d GROUP BY ROLLUP (g)").plan(epsilon=10**6)
    assert answer.release().content.to_dict()["u"][-1] == 300


def test_levels_travel_in_documents_and_cannot_be_forged():
    data = protected()
    plan = data.group_by("g", "h").rollup().agg(n=tc.count()).plan(epsilon=1)
    written = json.loads(json.dumps(plan.to_json()))
    assert data.plan_from(written).release().content.to_dict() == plan.release().content.to_dict()
    assert "levels" not in json.dumps(data.group_by("g").agg(n=tc.count()).plan(epsilon=1).to_json())
    for forged in ([[0, 2]], [[1, 0]], [[0], [0]], [["g"]], [[0.0]], 7):
        written["request"]["question"]["levels"] = forged
        with pytest.raises(tc.TacitError):
            data.plan_from(written)


def test_the_interval_of_a_total_covers_the_sum_of_noises():
    mechanism = DiscreteLaplace(epsilon=Fraction(1, 2), sensitivity=1)
    noise = StepNoise(RowCounts(), (mechanism,))
    drawn = mechanism.release_many(np.zeros(20, dtype=np.int64), 2000)
    lines = [[int(n)] for n in drawn.ravel()]
    groups = [list(range(20 * i, 20 * i + 20)) for i in range(2000)]
    cells = read_levels(NumberReading(), noise, lines, groups, Fraction(95, 100))
    assert [cell.value for cell in cells] == drawn.sum(axis=1).tolist()
    assert np.mean([cell.low <= 0 <= cell.high for cell in cells]) >= 0.92  # P < 1e-8


def cube(data, **goal):
    return data.group_by("g", "h").cube().agg(n=tc.count()).plan(**goal)


def test_levels_with_gaussian_noise_are_planned_together():
    keys = {"g": [f"g{i}" for i in range(8)], "h": [f"h{i}" for i in range(9)]}
    data = protected(keys=keys, limits={"rows": 1})
    for goal in ({"rho": 0.1}, {"epsilon": 0.2, "delta": 1e-2}):
        plan = cube(data, **goal)
        assert plan.mechanisms[0]["mechanism"] == "residual-noise"
        assert "planned together" in repr(plan)
        widest = plan.forecast[0].error
        finest = data.group_by("g", "h").agg(n=tc.count()).plan(**goal).forecast[0].error
        assert finest < widest < 0.4 * finest * np.sqrt(72)  # the total was a sum of 72 noises
        assert data.plan_from(json.loads(json.dumps(plan.to_json()))) == plan
    written = data.sql("SELECT g, h, COUNT(*) AS n FROM d GROUP BY CUBE (g, h)").plan(rho=0.1)
    assert written == cube(data, rho=0.1)


def test_levels_that_are_planned_together_agree_and_are_those_of_duckdb():
    d = table()
    sql = "SELECT g, h, COUNT(*) AS n FROM d GROUP BY CUBE (g, h)"
    expected = {line[:2]: line[2] for line in duckdb.connect().sql(sql).fetchall()}
    del d
    data = protected(limits={"rows": 2}, keys={"g": ["b", "a"], "h": ["w", "u", "v"]})
    plan = data.sql(sql).plan(rho=1, confidence=1 - Fraction(1, 10**9))
    assert plan.mechanisms[0]["mechanism"] == "residual-noise"
    answer = plan.release().content
    found = {(line["g"], line["h"]): line["n"] for line in answer}
    assert found.keys() == expected.keys()
    assert found["a", None] == pytest.approx(sum(found["a", h] for h in "uvw"), abs=1e-6)
    assert all(line["n_low"] <= expected[line["g"], line["h"]] <= line["n_high"] for line in answer)
    narrow = data.sql(sql).plan(epsilon=1, delta=1e-9)  # Laplace noise on the finest groups is much narrower
    assert narrow.mechanisms[0]["mechanism"] == "discrete-laplace"
    assert answer.totals
    assert list(answer.keys) == ["g", "h"]


@pytest.mark.parametrize(
    "ask",
    [
        lambda d: d.group_by("g", "h").cube().agg(n=tc.count()).plan(epsilon=1),  # no delta
        lambda d: d.group_by("g", "h").cube().agg(n=tc.count()).plan(within=9, delta=1e-9),
        lambda d: d.group_by("g", "h").cube().agg(n=tc.count(), s=tc.sum("x")).plan(rho=0.1),
        lambda d: d.group_by("g", "h", keys=[("a", "u"), ("b", "v")]).cube().agg(n=tc.count()).plan(rho=0.1),
        lambda d: d.group_by("g", "h").grouping_sets([["g", "h"]]).agg(n=tc.count()).plan(rho=0.1),
        lambda d: d.sql(
            "SELECT g, COUNT(*) AS n, SUM(COUNT(*)) OVER () AS s FROM d GROUP BY ROLLUP (g)"
        ).plan(rho=0.1),
    ],
    ids=["pure", "within", "two steps", "no product", "finest alone", "sums over lines"],
)
def test_other_levels_are_sums_of_the_finest_groups(ask):
    plan = ask(protected())
    assert all(one["mechanism"] != "residual-noise" for one in plan.mechanisms)


def test_an_audit_of_levels_that_are_planned_together_holds():
    found = tc.audit(cube(protected(), rho=0.5), pairs=4, samples=4_000)
    assert found.holds
