"""Plans from the wire say nothing that the fluent API could not: forged documents are refused."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from tacit import TacitError


def dataset(**options):
    frame = pd.DataFrame({"pid": ["p1", "p2", "p3"], "h": ["A", "B", "HIV"], "x": [1.0, 2.0, 3.0]})
    facts = {"unit": "pid", "bounds": {"x": (0, 10)}, "budget": tc.Budget(epsilon=10, delta=1e-3)} | options
    return tc.protect({"t": frame, "other": frame[["pid"]]}, name="d", **facts)


def column(name):
    return {"node": "Column", "name": name, "kind": None}


def refused(data, plan, where, **changes):
    document = json.loads(json.dumps(plan.to_json()))
    target = document["request"] if where == "request" else document["request"][where]
    target.update(changes)
    before = data.remaining
    with pytest.raises(TacitError) as caught:
        data.plan_from(document)
    assert caught.value.code == "plan-differs"
    assert data.remaining == before


@pytest.mark.parametrize(
    "keys", [[[{"number": "0x1p+0"}]], [[1]], ["A"], [[True]], [["A"], ["A"]], [[None]], [[["A"]]], []]
)
def test_keys_have_the_kind_of_their_column(keys):
    """A number as a key of text would make the engine convert all text, and one row could then fail it."""
    data = dataset()
    refused(data, data.group_by("h", keys=["A"]).agg(n=tc.count()).plan(epsilon=1), "question", keys=keys)


def test_text_is_not_a_key_of_a_number():
    data = dataset()
    plan = data.group_by("x", keys=[1]).agg(n=tc.count()).plan(epsilon=1)
    refused(data, plan, "question", keys=[["abc"]])


@pytest.mark.parametrize("limit", [{"groups": 1}, {"per_group": 1}, {"groups": 2, "per_group": 3}])
def test_single_rows_have_no_limits_on_groups(limit):
    """All rows have one owner inside the engine then, so such a limit would act on the whole table."""
    data = dataset(unit=tc.Unit.row(), keys={"h": ["A", "B"]})
    refused(data, data.group_by("h").agg(n=tc.count()).plan(epsilon=1), "question", **limit)


@pytest.mark.parametrize(
    "post",
    [
        {"outputs": [["n", column("nope")]]},
        {"outputs": [["n", {"node": "Call", "op": "eq", "args": []}]]},
        {"outputs": [["n", {"node": "Call", "op": "system", "args": [column("n")]}]]},
        {"outputs": [["n", 5]]},
        {"outputs": [[5, column("n")]]},
        {"outputs": [["n", {"node": "Literal", "value": "abc", "kind": "number"}]]},
        {"having": column("nope")},
        {"order": [[column("n"), "x"]]},
        {"limit": "x"},
        {"limit": -1},
    ],
)
def test_how_a_release_is_shown_is_checked_before_the_charge(post):
    data = dataset()
    shown = {
        "node": "PostProcessing",
        "outputs": [["n", column("n")]],
        "having": None,
        "order": [],
        "limit": None,
    }
    refused(data, data.agg(n=tc.count()).plan(epsilon=1), "request", post=shown | post)


@pytest.mark.parametrize(
    "relation",
    [
        {"node": "Scan", "table": {"table": "codes"}, "rows": 10},
        {"node": "Scan", "table": {"table": "t"}, "rows": True},
        {
            "node": "JoinPublic", "table": {"table": "other"}, "on": column("h"), "columns": [["y", "pid"]],
            "how": "inner", "left": {"node": "Scan", "table": {"table": "t"}, "rows": 10},
        },
        {
            "node": "Project", "columns": [["tacit_u", column("h")]],
            "input": {"node": "Scan", "table": {"table": "t"}, "rows": 10},
        },
        {
            "node": "Where", "predicate": {"node": "Column", "name": "tacit_u", "kind": "boolean"},
            "input": {"node": "Scan", "table": {"table": "t"}, "rows": 10},
        },
    ],
)  # fmt: skip
def test_a_relation_uses_tables_and_columns_as_they_are_declared(relation):
    data = dataset(public={"codes": (pd.DataFrame({"h": ["A"], "beds": [3.0]}), "h")})
    refused(data, data.agg(n=tc.count()).plan(epsilon=1), "question", input=relation)


@pytest.mark.parametrize(
    "aggregate", [tc.median("x"), tc.most_common("x", 1, [1, 2]), tc.max("x"), tc.mean("x")]
)
def test_no_group_large_enough_is_an_answer(aggregate):
    assert len(dataset().group_by("h").agg(m=aggregate).plan(epsilon=1, delta=1e-6).release()) == 0


@pytest.mark.parametrize("confidence", [1 - 1e-12, 1e-12])
def test_an_extreme_confidence_that_can_be_planned_can_be_read(confidence):
    assert dataset().agg(n=tc.count()).plan(epsilon=1, confidence=confidence).release().value is not None


def power(n):
    made = tc.col("x")
    for _ in range(n):
        made = made * made
    return made


@pytest.mark.parametrize("make", [tc.sum, tc.variance, tc.std, tc.mean])
@pytest.mark.parametrize("n", [7, 9, 11])
def test_bounds_that_grow_beyond_all_measure_are_no_bounds(make, n):
    with pytest.raises(TacitError) as caught:
        dataset().agg(s=make(power(n))).plan(epsilon=1)
    assert caught.value.code == "missing-bounds"


def test_deep_expressions_are_read_in_time_that_grows_with_their_size():
    deep = tc.col("x")
    for _ in range(60):
        deep = deep.fill_null(0)
    assert dataset().agg(s=tc.sum(deep, bounds=(0, 1))).plan(epsilon=1).release().value is not None


def test_text_that_cannot_be_written_is_refused_before_the_charge():
    for ask in (lambda d: d.where(tc.col("h") == "\ud800"), lambda d: d.group_by("h", keys=["\ud800"])):
        with pytest.raises(TacitError) as caught:
            ask(dataset())
        assert caught.value.code == "bad-parameter"


def test_levels_that_look_alike_are_different_columns():
    release = dataset().agg(q=tc.quantiles("x", [0.12345678, 0.12345679])).plan(epsilon=1).release()
    assert len(release.columns) == 2


@pytest.mark.parametrize(
    "value",
    [
        np.array([1], dtype="m8[D]"),
        [np.timedelta64(1, "D")],
        [np.array([1], dtype="M8[D]")],
        np.longdouble(1),
    ],
)
def test_values_that_numpy_would_change_are_refused(value):
    with pytest.raises(TacitError):
        tc.mechanisms.Laplace(epsilon=1, sensitivity=1).release(value)


def test_numbers_are_read_alike_whatever_their_byte_order():
    big = np.array([2**63], dtype=">u8")
    assert abs(int(tc.mechanisms.DiscreteLaplace(epsilon=1, sensitivity=1).release(big)[0]) - 2**63) < 1000


def test_two_columns_of_one_name_are_refused():
    data = dataset()
    plan = data.agg(n=tc.count(), m=tc.count("x")).plan(epsilon=1)
    written = plan.to_json()["request"]["question"]["aggregates"]
    refused(data, plan, "question", aggregates=[["n", node] for _, node in written])
