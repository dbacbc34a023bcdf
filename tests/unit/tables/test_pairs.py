"""Correlation, covariance and the line of least squares: exact integers, honest intervals."""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

sys.path.insert(0, str(Path(__file__).parent))

import neighbours as nb

import tacit as tc
from tacit.algebra._statistics import ProductSums
from tacit.tables.planning._exact_integers import exact_integers
from tacit.tables.reading._readings import StepNoise

SQL = (
    "SELECT CORR(x, y) AS r, COVAR_SAMP(x, y) AS cs, COVAR_POP(y, x) AS cp, REGR_SLOPE(y, x) AS b, "
    "REGR_INTERCEPT(y, x) AS a, REGR_R2(y, x) AS r2 FROM d"
)


def table(n: int = 400, seed: int = 1) -> pa.Table:
    """Rows whose values lie on the grid, so that rounding changes nothing; some are missing or beyond."""
    rng = np.random.default_rng(seed)
    x = rng.integers(20, 110, n).astype(float)
    y = np.round(np.clip(5 + 0.3 * x + rng.normal(0, 8, n), -5, 70) * 4) / 4
    gone = rng.random(n)
    return pa.table(
        {
            "pid": np.arange(n),
            "g": rng.choice(["a", "b"], n),
            "x": [None if u < 0.05 else v for u, v in zip(gone, x, strict=True)],
            "y": [None if u > 0.93 else v for u, v in zip(gone, y, strict=True)],
        }
    )


def protected(data: pa.Table, **more) -> tc.Dataset:
    return tc.protect(
        data,
        name="d",
        unit="pid",
        budget=tc.Budget(epsilon=10**9),
        bounds={"x": (0, 100), "y": (0, 60)},
        keys={"g": ["a", "b"]},
        ledger=tc.Ledger.memory(),
        **{"limits": {"rows": 1}, **more},
    )


def clipped(data: pa.Table, sql: str) -> tuple:
    """Ask DuckDB itself for the clipped values."""
    connection = duckdb.connect()
    d = connection.sql(  # noqa: F841 - DuckDB finds it by its name
        "SELECT g, LEAST(GREATEST(x, 0), 100) AS x, LEAST(GREATEST(y, 0), 60) AS y FROM data "
        "WHERE x IS NOT NULL AND y IS NOT NULL"
    )
    return connection.sql(sql).fetchall()[0]


def test_the_answers_without_noise_are_those_of_duckdb():
    data = table()
    answer = protected(data).sql(SQL).plan(epsilon=10**6).release()
    (line,) = answer.content
    assert [line[name] for name in ("r", "cs", "cp", "b", "a", "r2")] == pytest.approx(
        list(clipped(data, SQL)), rel=1e-4
    )


def test_the_nine_integers_are_the_sums_of_products_of_parts():
    data = table(50)
    plan = protected(data).sql(SQL).plan(epsilon=1)
    task = plan._members[0].task.subject
    (step,) = task.steps  # six aggregates, one measurement
    (found,) = exact_integers(task.engine, task.asked, task.statistics).values()
    lines = [
        (min(max(x, 0), 100), min(max(y, 0), 60))
        for x, y in zip(data["x"].to_pylist(), data["y"].to_pylist(), strict=True)
        if x is not None and y is not None
    ]
    first, second = step.statistic.grid, step.statistic.other_grid

    def parts(value, grid):
        u = int(value / grid.step) - grid.lo
        return (grid.width - u) ** 2, 2 * u * (grid.width - u), u**2

    expected = [
        sum(parts(x, first)[i] * parts(y, second)[j] for x, y in lines) for i in range(3) for j in range(3)
    ]
    assert found[()] == expected
    assert sum(expected) == len(lines) * step.statistic.weight


def test_python_asks_what_sql_asks_and_the_second_question_is_free():
    data = protected(table())
    asked = {
        "r": tc.correlation("x", "y"), "cs": tc.covariance("x", "y"), "a": tc.intercept("y", "x"),
        "cp": tc.covariance("y", "x", population=True), "b": tc.slope("y", "x"), "r2": tc.r_squared("y", "x"),
    }  # fmt: skip
    by_sql, by_python = data.sql(SQL).plan(epsilon=1), data.agg(**asked).plan(epsilon=1)
    alone = data.sql("SELECT CORR(y, x) FROM d").plan(epsilon=1)
    assert by_sql.hash == by_python.hash == alone.hash
    (first,) = by_sql.release().content
    (again,) = alone.release().content
    assert again["correlation_y"] == first["r"]


def test_slopes_know_which_column_explains():
    data = table()
    for sql in ("SELECT REGR_SLOPE(x, y) FROM d", "SELECT REGR_INTERCEPT(x, y) FROM d"):
        value = protected(data).sql(sql).plan(epsilon=10**6).release().value
        assert value == pytest.approx(clipped(data, sql)[0], rel=1e-3)


def test_a_column_without_bounds_is_named():
    data = tc.protect(
        table(), name="d", unit="pid", budget=tc.Budget(1), bounds={"x": (0, 100)}, limits={"rows": 1}
    )
    with pytest.raises(tc.TacitError, match=r"correlation of y needs bounds"):
        data.sql("SELECT CORR(x, y) FROM d").plan(epsilon=1)


def test_plans_travel_as_documents():
    import json

    data = protected(table())
    plan = data.sql("SELECT g, REGR_SLOPE(y, x) AS b, COVAR_POP(x, y) AS c FROM d GROUP BY g").plan(epsilon=1)
    assert data.plan_from(json.loads(json.dumps(plan.to_json()))).hash == plan.hash


def test_noise_that_hides_the_spread_gives_the_whole_range():
    data = protected(pa.table({"pid": [1, 2, 3], "g": ["a"] * 3, "x": [1.0, 2, 3], "y": [2.0, 4, 6]}))
    cells = data.sql("SELECT CORR(x, y) AS r FROM d").plan(epsilon=0.011).release().content.columns["r"]
    assert (cells.low[0], cells.high[0]) == (-1.0, 1.0)


def pair_noise(limit, data, epsilon):
    plan = protected(data, limits=limit).sql(SQL).plan(epsilon=epsilon)
    task = plan._members[0].task.subject
    (exact,) = exact_integers(task.engine, task.asked, task.statistics).values()
    return plan, exact[()]


@pytest.mark.long
@pytest.mark.parametrize(("rows", "epsilon"), [(200, 1), (200, 10), (2000, 0.1), (2000, 1)])
def test_intervals_cover_the_truth_as_often_as_they_say(rows, epsilon):
    data = table(rows, seed=5)
    plan, exact = pair_noise({"rows": 1}, data, epsilon)
    (mechanism,) = plan._members[0].task.mechanisms
    truth = dict(zip(("r", "cs", "cp", "b", "a", "r2"), clipped(data, SQL), strict=True))
    lines = [[int(n) for n in line] for line in mechanism.release_many(np.array(exact, dtype=object), 1000)]
    noise = StepNoise(plan._members[0].task.subject.steps[0].statistic, (mechanism,))
    for column in plan._members[0].task.subject.columns:
        cells = column.reading.read(noise, lines, Fraction(95, 100))
        covered = np.mean([cell.low <= truth[column.name] <= cell.high for cell in cells])
        assert covered >= 0.92, (column.name, covered)
        if rows * epsilon >= 2000:
            assert covered <= 0.975, (column.name, covered)


def test_one_row_changes_all_nine_integers_by_one_weight_at_most():
    """Random neighbours, with rows in which one of the two is missing, and limits per group."""
    rng = np.random.default_rng(3)
    for trial in range(12):
        rows = {"visits": [], "extra": []}
        odd = [0.0, 1.0, 30.0, -2.0, 1e308, float("nan"), float("inf"), None]
        for who in (1, 2, 77):
            for _ in range(int(rng.integers(1, 6))):
                line = (who, str(rng.choice(["A", "B"])), odd[rng.integers(8)], int(rng.integers(0, 4)), None)
                rows["extra" if who == 77 else "visits"].append(line)
        small = nb._tables(rows["visits"], [])
        large = nb._tables(rows["visits"] + rows["extra"], [])
        limit = [{"rows": 2}, {"rows": None, "groups": 1, "per_group": 2}, {"rows": 3, "per_group": 1}][
            trial % 3
        ]
        data = nb.dataset(large, limit)
        left, right = nb.engine(small), nb.engine(large)
        asked = data["visits"].group_by("h").agg(r=tc.correlation("x", "y"), n=tc.count())
        assert nb.check(asked.question, left, right) == 2
        left.close()
        right.close()


def test_the_search_finds_a_sensitivity_that_is_too_small(monkeypatch):
    """The broken twin: of two rows at the corners, the nine integers change by twice one weight."""
    small, large = nb._tables([], []), nb._tables([(77, "A", 30.0, 3, None)] * 2, [])
    asked = nb.dataset(large, {"rows": 2}).agg(r=tc.correlation("x", "y")).question
    left, right = nb.engine(small), nb.engine(large)
    assert nb.check(asked, left, right) == 1
    real = ProductSums.sensitivity
    monkeypatch.setattr(ProductSums, "sensitivity", lambda s, who: tuple(n - 1 for n in real(s, who)))
    with pytest.raises(AssertionError):
        nb.check(asked, left, right)


@pytest.mark.parametrize("failing", [0.5, 0.05, 0.001])
def test_the_reach_of_a_weighted_sum_is_that_of_its_law(failing):
    from tacit.mechanisms import linear_half_width
    from tacit.tables.questions._pair_aggregates import PairNoise

    weights = np.random.default_rng(2).normal(size=(20, 3, 3)) ** 3
    for laplace, normal in (((0.5,), 0.0), ((0.5, 2.0), 0.7), ((), 1.5)):
        noise = PairNoise(laplace, normal)
        norms = np.sqrt((weights**2).sum(axis=(1, 2)))
        terms = np.concatenate([weights.reshape(20, 9) * b for b in laplace] or [np.zeros((20, 0))], axis=1)
        half = linear_half_width(failing, terms, norms * normal)
        assert noise.ratio(weights, failing) == pytest.approx(half / norms / noise.variance**0.5, rel=2e-3)
