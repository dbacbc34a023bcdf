"""A user's own utility: a candidate picked by the sum of its score over the rows."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

import tacit as tc
from tacit.algebra._statistics import ScoreSums
from tacit.tables.planning._exact_integers import exact_integers

PRICES = [5, 10, 15, 20, 25]


def offers() -> np.ndarray:
    return np.random.default_rng(1).gamma(4, 5, 3000)


def protected(**more) -> tc.Dataset:
    data = pa.table({"pid": np.arange(3000), "g": ["a", "b"] * 1500, "offer": offers()})
    given = {"limits": {"rows": 1}, "unit": "pid", **more}
    return tc.protect(
        data, name="d", budget=tc.Budget(epsilon=10**6), keys={"g": ["a", "b"]}, ledger=tc.Ledger.memory(),
        **given,
    )  # fmt: skip


def price():
    return tc.best(PRICES, lambda p: tc.when(tc.col("offer") >= p, p, 0))


def test_the_best_price_is_found_and_its_scores_are_exact():
    plan = protected().agg(price=price()).plan(epsilon=100)
    task = plan._members[0].task.subject
    ((statistic, lines),) = exact_integers(task.engine, task.asked, task.statistics).items()
    expected = [p * int((offers() >= p).sum()) for p in PRICES]
    assert [float(n * statistic.step) for n in lines[()]] == expected
    assert plan.release().value == PRICES[int(np.argmax(expected))]


def test_the_sensitivity_follows_from_the_expression():
    plan = protected().agg(price=price()).plan(epsilon=1)
    (mechanism,), (one,) = plan._members[0].task.mechanisms, plan._members[0].task.subject.steps
    assert mechanism.scale * one.statistic.step == 25
    signed = tc.best([1, 2], lambda c: tc.when(tc.col("offer") >= c, c, -4))
    plan = protected().agg(best=signed).plan(epsilon=1)
    (mechanism,), (one,) = plan._members[0].task.mechanisms, plan._members[0].task.subject.steps
    assert mechanism.scale * one.statistic.step == 6  # from -4 to 2


def test_the_search_finds_a_sensitivity_that_is_too_small(monkeypatch):
    """The broken twin: a row that moves one score up and another down moves them by the whole range."""
    import sys
    from pathlib import Path

    sys.path.insert(0, str(Path(__file__).parent))
    import neighbours as nb

    small, large = nb._tables([], []), nb._tables([(77, "A", 7.0, 3, None)] * 2, [])
    asked = nb.dataset(large, {"rows": 2}).agg(best=nb.AGGREGATES["best"]("x")).question
    left, right = nb.engine(small), nb.engine(large)
    assert nb.check(asked, left, right) == 1
    monkeypatch.setattr(ScoreSums, "weight", property(lambda s: max(abs(s.grid.lo), abs(s.grid.hi)) // 4))
    with pytest.raises(AssertionError):
        nb.check(asked, left, right)


def test_groups_get_their_own_choice_and_plans_travel():
    data = protected()
    plan = data.group_by("g").agg(price=price()).plan(epsilon=100)
    assert plan.release().content.to_dict()["price"] == [15, 15]
    assert data.plan_from(json.loads(json.dumps(plan.to_json()))).hash == plan.hash


def test_limits_per_group_clip_what_a_unit_adds():
    data = protected(limits={"rows": None, "groups": 1, "per_group": 2})
    plan = data.group_by("g").agg(price=price()).plan(epsilon=100)
    assert plan.release().content.to_dict()["price"] == [15, 15]


def test_a_score_without_bounds_and_too_few_candidates_are_refused():
    with pytest.raises(tc.TacitError) as refused:
        protected().agg(b=tc.best([1, 2], lambda c: tc.col("offer") * c)).plan(epsilon=1)
    assert refused.value.code == "missing-bounds"
    bounded = tc.best([1, 2], lambda c: tc.col("offer") * c, bounds=(0, 100))
    assert protected().agg(b=bounded).plan(epsilon=10).release().value in {1, 2}
    with pytest.raises(tc.TacitError, match="must be a list of 2 to 200 values, got 1"):
        tc.best([1], lambda c: tc.col("offer") * c)
