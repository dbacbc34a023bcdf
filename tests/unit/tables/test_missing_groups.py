"""Rows whose group is missing: a group on request, otherwise named in the caption, as all limits are."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

import neighbours

import tacit as tc
from support.asking import HUGE
from tacit import TacitError

FRAME = pd.DataFrame(
    {
        "pid": [1, 1, 1, 2, 3, 4, 4],
        "h": ["A", "B", None, None, "B", None, "C"],
        "x": [1.0, 10.0, np.nan, np.nan, 2.0, 10.0, np.nan],
        "ts": pd.to_datetime(["2026-01-03", "2026-01-04", None, None, "2026-01-03", None, "2026-01-03"]),
    }
)


@pytest.fixture(scope="module")
def data():
    budget = tc.Budget(epsilon=10**9, delta=0.5)
    return tc.protect(FRAME, name="t", unit="pid", keys={"h": ["A", "B"]}, budget=budget)


def counted(question, **goal):
    release = question.plan(epsilon=10**6, **goal).release()
    return dict(zip(zip(*release.keys.values(), strict=True), release["n"].value, strict=True))


N = {"n": tc.count()}


def test_missing_values_are_a_group_on_request(data):
    assert counted(data.group_by("h").agg(**N)) == {("A",): 1, ("B",): 2}
    assert counted(data.group_by("h", missing="group").agg(**N)) == {("A",): 1, ("B",): 2, (None,): 3}
    assert counted(data.group_by("h", keys=[None, "C"]).agg(**N)) == {("C",): 1, (None,): 3}
    assert counted(data.sql("SELECT h, COUNT(*) AS n FROM t GROUP BY h", keys={"h": ["C", None]})) == {
        ("C",): 1,
        (None,): 3,
    }
    declared = tc.protect(FRAME, name="t", unit="pid", keys={"h": [None, "A"]}, budget=HUGE)
    assert counted(declared.group_by("h").agg(**N)) == {("A",): 1, (None,): 3}


def test_missing_numbers_and_dates_are_groups_too(data):
    assert counted(data.group_by("x", keys=[10, None]).agg(**N)) == {(10.0,): 2, (None,): 3}
    days = data.group_by("ts", keys=["2026-01-03", None]).agg(**N).plan(epsilon=10**6).release()
    assert days.keys["ts"] == ("2026-01-03", None)
    assert days["n"].value == (3, 3)
    assert days.to_pandas()["ts"].isna().tolist() == [False, True]
    assert days.to_arrow().column("ts").null_count == 1


def test_private_groups_of_missing_values(data):
    units = pd.DataFrame({"pid": range(300), "h": ["A"] * 100 + [None] * 150 + ["B"] * 50})
    many = tc.protect(units, unit="pid", budget=tc.Budget(epsilon=10**9, delta=0.5))
    dropped = many.group_by("h").agg(n=tc.count_units())
    assert counted(dropped, delta=1e-4) == {("A",): 100, ("B",): 50}
    plan = many.group_by("h", missing="group").agg(n=tc.count_units()).plan(epsilon=10**6, delta=1e-4)
    release = plan.release()
    assert release.keys["h"] == ("A", "B", None)
    assert release["n"].value == (100, 50, 150)
    assert "(missing)" in str(release)
    assert many.plan_from(plan.to_json()) == plan
    assert plan != dropped.plan(epsilon=10**6, delta=1e-4)


def test_several_columns(data):
    both = {"h": ["A", "B"], "x": [10]}
    assert counted(data.group_by("h", "x", keys=both, missing="group").agg(**N)) == {
        ("A", 10.0): 0, ("A", None): 0, ("B", 10.0): 1, ("B", None): 0, (None, 10.0): 1, (None, None): 2,
    }  # fmt: skip
    tuples = [("B", 10), (None, None)]
    assert counted(data.group_by("h", "x", keys=tuples).agg(**N)) == {("B", 10.0): 1, (None, None): 2}
    with pytest.raises(TacitError, match="combinations"):
        data.group_by("h", "x", keys=tuples, missing="group")


@pytest.mark.parametrize("keys", [[None], [None, None, "A"], []])
def test_lists_that_say_nothing_are_refused(data, keys):
    with pytest.raises(TacitError):
        data.group_by("h", keys=keys)
    with pytest.raises(TacitError, match='"drop" or "group"'):
        data.group_by("h", missing="both")


def test_limits_apply_to_the_group_of_missing_values(data):
    one = data.limit(groups=1, per_group=1).group_by("h", keys=["A", "B", "C", None])
    release = (
        one.agg(n=tc.count(), u=tc.count_units(), d=tc.count_distinct("x")).plan(epsilon=10**6).release()
    )
    assert sum(release["n"].value) == sum(release["u"].value) == 4
    assert sum(release["d"].value) <= 4


def test_plans_and_old_documents_are_read(data):
    plan = data.group_by("h", keys=["A", None]).agg(**N).plan(epsilon=1)
    document = plan.to_json()
    assert data.plan_from(document) == plan
    assert "missing" not in document["request"]["question"]  # as older versions wrote it


def captions(question, **goal):
    return " ".join(question.plan(epsilon=1, **goal).release().left_out)


def test_captions_name_missing_groups(data):
    assert "h is missing or not among the keys" in captions(data.group_by("h").agg(**N))
    assert "h or x is missing" in captions(data.group_by("h", "x").agg(**N), delta=1e-4)
    asked = captions(data.group_by("h", missing="group").agg(**N))
    assert "missing" not in asked
    assert "h is not among the keys" in asked
    private = data.group_by("x", missing="group").agg(**N)
    assert "missing" not in captions(private, delta=1e-4)
    never = tc.protect(FRAME, unit="pid", keys={"h": ["A"]}, never_null=["h"], budget=HUGE)
    assert "missing" not in captions(never.group_by("h").agg(**N))
    unknown = data.sql("SELECT COALESCE(h, 'unknown') AS k, COUNT(*) AS n FROM t GROUP BY k")
    assert "missing" not in captions(unknown)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) AS n FROM t",
        "SELECT MEDIAN(x) AS n FROM t",
        "SELECT h, COUNT(*) AS n FROM t GROUP BY h",
        "SELECT COUNT(*) AS n FROM (SELECT pid, h FROM t GROUP BY pid, h)",
    ],
)
def test_captions_and_plans_name_the_limits_and_say_which_are_defaults(sql):
    def words(**limits):
        bounds = {"x": (0, 10)}
        data = tc.protect(
            FRAME, name="t", unit="pid", bounds=bounds, keys={"h": ["A"]}, limits=limits or None, budget=HUGE
        )
        plan = data.sql(sql).plan(epsilon=1)
        return str(dict(plan.facts)["limits"]), " ".join(plan.release().left_out)

    plan, caption = words()
    assert "at most 10 rows of each pid count (default)" in plan
    assert "at most 10 rows of each pid count (default)" in caption
    assert "rows beyond this are not counted" in caption
    plan, caption = words(rows=10)
    assert "default" not in plan + caption
    assert "at most 10 rows" in caption
    plan, caption = words(groups=1)
    if "GROUP BY h" in sql:
        assert "reads at most 10 (default) of a pid's rows" in plan or "count (default), in 1 group" in plan


def test_top_values_name_the_limits(data):
    asked = data.agg(top=tc.most_common("h", 1, ["A", "B"]))
    assert "at most 10 rows of each pid count (default)" in captions(asked)


def test_single_rows_have_no_limit_to_name():
    data = tc.protect(FRAME, unit=tc.Unit.row(), budget=HUGE)
    assert captions(data.agg(n=tc.count())) == ""


@settings(deadline=None, max_examples=20)
@given(st.data())
def test_no_statistic_moves_further_with_the_group_of_missing_values(source):
    """Three questions about each pair of neighbours."""
    small, large = source.draw(neighbours.neighbouring())
    data = neighbours.dataset(small, source.draw(neighbours.limits()))
    left, right = neighbours.engine(small), neighbours.engine(large)
    try:
        for _ in range(3):
            neighbours.check(with_missing_groups(data, source).question, left, right)
    finally:
        left.close()
        right.close()


def with_missing_groups(data, source):
    names = source.draw(
        st.lists(st.sampled_from(sorted(neighbours.AGGREGATES)), min_size=1, max_size=3, unique=True)
    )
    asked = {name: neighbours.AGGREGATES[name]("x") for name in names}
    by = source.draw(st.sampled_from([["h"], ["y"], ["d"], ["h", "y"]]))
    if by == ["h"] and source.draw(st.booleans()):
        return data["visits"].group_by("h", missing="group").agg(**asked)
    lists = {"h": ["A", "B", None], "y": [0, 1, None], "d": ["2024-02-29", None]}
    public = source.draw(st.booleans())
    grouped = data["visits"].group_by(
        *by, keys={b: lists[b] for b in by} if public else None, missing="drop" if public else "group"
    )
    return grouped.agg(**asked)
