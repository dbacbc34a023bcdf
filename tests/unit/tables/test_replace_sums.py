"""Under replace, with exactly one value per unit, a sum changes by at most U - L; nowhere else is it used."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tacit as tc
from support.asking import subject_of
from tacit.engines import DuckDB
from tacit.tables.planning._exact_integers import exact_integers

LOW, HIGH = 60, 260
ODD = [None, math.nan, math.inf, -math.inf, 0.0, -1e300, 1e300, 59.9, 60.0, 120.5, 260.0, 261.0]
VALUES = st.sampled_from(ODD) | st.floats(width=32)


def dataset(source, **options):
    given = {"never_null": ["x"], "limits": {"rows": 1}, "adjacency": "replace", **options}
    return tc.protect(source, unit="u", bounds={"x": (LOW, HIGH)}, budget=tc.Budget(epsilon=10**9), **given)


def step_of(data, ask=lambda d: d.agg(s=tc.sum("x"))):
    task = subject_of(ask(data).plan(epsilon=1))
    [step], [mechanism] = task.steps, task.mechanisms
    return step.statistic, mechanism


def frame(*units):
    return pd.DataFrame(
        [(u, v) for u, values in enumerate(units) for v in values], columns=["u", "x"]
    ).astype({"x": float})


@settings(max_examples=60, deadline=None)
@given(st.lists(VALUES, min_size=1, max_size=4), st.lists(VALUES, min_size=1, max_size=4))
def test_no_replacement_changes_the_sum_by_more(one, two):
    seen = []
    for rows in (one, two):
        data = dataset({"t": frame([100.0], [200.0, math.nan], rows)})
        task = subject_of(data.agg(s=tc.sum("x")).plan(epsilon=1))
        engine = DuckDB(data._engine._tables, key=7)
        [found] = exact_integers(engine, task.asked, task.statistics).values()
        seen.append(next(iter(found.values()))[0])
        engine.close()
    [step], [mechanism] = task.steps, task.mechanisms
    grid = step.statistic.grid
    assert mechanism.sensitivity == grid.hi - grid.lo == (HIGH - LOW) / grid.step
    assert abs(seen[0] - seen[1]) <= mechanism.sensitivity


@pytest.mark.parametrize("one", ODD)
@pytest.mark.parametrize("two", [60.0, 260.0])
def test_odd_values_stay_within_the_bounds(one, two):
    sums = []
    for value in (one, two):
        data = dataset({"t": frame([100.0], [value])})
        task = subject_of(data.agg(s=tc.sum("x")).plan(epsilon=1))
        [found] = exact_integers(task.engine, task.asked, task.statistics).values()
        sums.append(next(iter(found.values()))[0])
    assert abs(sums[0] - sums[1]) <= task.mechanisms[0].sensitivity


def test_the_answer_is_the_sum():
    release = dataset(frame([100.0], [200.5], [300.0])).agg(s=tc.sum("x")).plan(epsilon=10**6).release()
    assert release.value == pytest.approx(560.5, abs=0.01)


WIDER = {
    "add/remove": ({"adjacency": "add/remove"}, lambda d: d.agg(s=tc.sum("x"))),
    "two rows": ({"limits": {"rows": 2}}, lambda d: d.agg(s=tc.sum("x"))),
    "may be missing": ({"never_null": []}, lambda d: d.agg(s=tc.sum("x"))),
    "filtered": ({}, lambda d: d.where("x > 100").agg(s=tc.sum("x"))),
    "computed": ({}, lambda d: d.agg(s=tc.sum(tc.col("x") + 1, bounds=(LOW, HIGH)))),
    "redefined": ({}, lambda d: d.with_columns(x="x + 1").agg(s=tc.sum("x", bounds=(LOW, HIGH)))),
    "per unit": ({}, lambda d: d.per_unit(x=tc.max("x")).agg(s=tc.sum("x", bounds=(LOW, HIGH)))),
}  # fmt: skip


@pytest.mark.parametrize("name", WIDER)
def test_elsewhere_the_wider_bound_is_kept(name):
    options, ask = WIDER[name]
    statistic, mechanism = step_of(dataset({"t": frame([1.0])}, **options), ask)
    assert mechanism.sensitivity >= statistic.grid.hi


def test_a_unit_of_several_tables_may_have_no_row_in_this_one():
    statistic, mechanism = step_of(dataset({"t": frame([1.0]), "other": frame([1.0])}))
    assert mechanism.sensitivity == statistic.grid.hi


def test_grouped_sums_keep_the_wider_bound():
    data = dataset({"t": frame([1.0])}, keys={"h": ["A", "B"]}, types={"h": "text"})
    statistic, mechanism = step_of(
        data, lambda d: d.with_columns(h="'A'").group_by("h", keys=["A"]).agg(s=tc.sum("x"))
    )
    assert mechanism.sensitivity >= statistic.grid.hi


def test_single_rows_have_one_value_each():
    source = frame([1.0])
    data = tc.protect(
        source, unit=tc.Unit.row(), bounds={"x": (LOW, HIGH)}, never_null=["x"], adjacency="replace",
        budget=tc.Budget(epsilon=1),
    )  # fmt: skip
    statistic, mechanism = step_of(data)
    assert mechanism.sensitivity == statistic.grid.width
