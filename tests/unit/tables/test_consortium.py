"""A consortium: several datasets answer together, each with its own noise and its own budget."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from support.asking import HUGE
from tacit import TacitError
from tacit.tables import EXAMPLE_HOSPITALS, example_visits


def test_a_consortium_adds_up_its_members():
    frame = pd.read_parquet(example_visits())
    parts = [frame[frame["patient_id"] % 3 == i] for i in range(3)]
    members = [
        tc.protect(
            part,
            name=f"part{i}",
            unit="patient_id",
            bounds={"length_of_stay": (0, 30)},
            limits={"rows": 100},
            budget=HUGE,
            ledger=tc.Ledger.memory(),
        )
        for i, part in enumerate(parts)
    ]
    both = tc.consortium(members, disjoint=True)
    release = (
        both.ask(lambda d: d.agg(n=tc.count(), m=tc.mean("length_of_stay"))).plan(epsilon=10**7).release()
    )
    assert release["n"].value[0] == pytest.approx(len(frame), abs=1)
    assert release["m"].value[0] == pytest.approx(frame["length_of_stay"].clip(0, 30).mean(), rel=1e-3)
    assert all(m.remaining != HUGE for m in members)
    keys = EXAMPLE_HOSPITALS
    grouped = (
        both.where("age >= 65")
        .group_by("hospital", keys=keys)
        .agg(n=tc.count())
        .plan(epsilon=10**7)
        .release()
    )
    old = frame[frame["age"] >= 65].groupby("hospital").size()
    np.testing.assert_allclose(grouped["n"].value, old[list(keys)], atol=1)
    median = both.ask(lambda d: d.agg(q=tc.median("length_of_stay"))).plan(epsilon=10**5).release()
    assert median["q"].value[0] == pytest.approx(frame["length_of_stay"].clip(0, 30).median(), abs=0.2)
    assert median["q"].low[0] <= median["q"].value[0] <= median["q"].high[0]
    for asked in (lambda d: d.group_by("icd").agg(n=tc.count()), lambda d: d.agg(x=_most_common())):
        with pytest.raises(TacitError, match="can add up noisy numbers"):
            both.ask(asked).plan(epsilon=1, delta=1e-6)


def _most_common():
    return tc.most_common("hospital", 1, EXAMPLE_HOSPITALS)


@pytest.mark.parametrize("disjoint", [True, False])
def test_a_consortium_stays_within_the_error_that_is_asked_for(disjoint):
    members = [
        tc.protect(f"absent{i}.csv", name=f"m{i}", unit="pid", budget=HUGE, ledger=tc.Ledger.memory())
        for i in range(4)
    ]
    plan = tc.consortium(members, disjoint=disjoint).agg(n=tc.count()).plan(within=50)
    assert plan.forecast[0].error == 50
    assert plan.cost.epsilon(delta=0) == pytest.approx(
        plan._members[0].cost.epsilon(delta=0) * (1 if disjoint else 4)
    )
    noise = [_noise_of(plan) for _ in range(2000)]
    assert np.mean(np.abs(noise) > 50) < 0.05 + 6 * np.sqrt(0.05 * 0.95 / 2000)  # P < 1e-8


def _noise_of(plan):
    return sum(member.task.mechanisms[0].release(0) for member in plan._members)


def absent(names, **options):
    """Members whose data cannot be reached: a plan needs none."""
    return [
        tc.protect(
            f"{name}.csv",
            **{"name": name, "unit": "pid", "bounds": {"x": (0, 30)}, "budget": HUGE, **options},
            ledger=tc.Ledger.memory(),
        )
        for name in names
    ]


@pytest.mark.parametrize("disjoint", [True, False])
@pytest.mark.parametrize(
    ("asked", "goal"),
    [
        ({"n": tc.count()}, {"within": 50}),
        ({"s": tc.sum("x")}, {"within": 900}),
        ({"m": tc.mean("x")}, {"within": 2, "size": 1000}),
        ({"n": tc.count(), "m": tc.mean("x")}, {"within": 40, "size": 1000}),
    ],
    ids=["count", "sum", "mean", "both"],
)
def test_within_is_reached_by_all_members_together_with_the_least_epsilon(asked, goal, disjoint):
    both = tc.consortium(absent(["north", "south", "west"]), disjoint=disjoint).agg(**asked)
    plan = both.plan(**goal)
    each = [member.cost.epsilon(delta=0) for member in plan._members]
    assert each == [each[0]] * 3
    assert plan.cost.epsilon(delta=0) == pytest.approx(each[0] * (1 if disjoint else 3))
    assert plan.promised["epsilon"] == pytest.approx(plan.cost.epsilon(delta=0))
    assert max(one.error for one in plan.forecast) <= goal["within"]
    size = {"size": goal["size"]} if "size" in goal else {}
    looser = both.plan(epsilon=plan.promised["epsilon"] * Fraction(97, 100), **size)
    assert max(one.error for one in looser.forecast) > goal["within"]


def test_one_member_alone_needs_less_for_the_same_error():
    one, *_ = members = absent(["north", "south", "west"])
    alone = one.agg(n=tc.count()).plan(within=50)
    together = tc.consortium(members, disjoint=True).agg(n=tc.count()).plan(within=50)
    assert alone.cost.epsilon(delta=0) < together.cost.epsilon(delta=0)


def test_an_error_and_a_price_for_each_member_are_not_both_given():
    both = tc.consortium(absent(["north", "south"]), disjoint=True).agg(n=tc.count())
    for price in ({"epsilon": {"north": 1, "south": 2}}, {"rho": [0.1, 0.2]}):
        with pytest.raises(TacitError, match="one of epsilon, rho and within") as refused:
            both.plan(within=50, **price)
        assert refused.value.code == "bad-parameter"


@pytest.mark.parametrize("name", ["epsilon", "rho"])
def test_the_error_is_that_of_all_members_whoever_pays_less(name):
    members = absent(["north", "south"])
    both = tc.consortium(members, disjoint=True).agg(n=tc.count())
    plan = both.plan(**{name: {"south": 0.1, "north": 1}})
    turned = both.plan(**{name: [0.1, 1]})
    assert turned.forecast[0].error == plan.forecast[0].error
    assert turned.hash != plan.hash
    assert plan.forecast[0].error > members[1].agg(n=tc.count()).plan(**{name: 0.1}).forecast[0].error


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("goal", [{"epsilon": 1}, {"within": 50}])
def test_members_with_different_limits_are_priced_by_their_own(order, goal):
    """The noise of the member with fifty rows decides the interval, whichever member comes first."""
    members = [
        tc.protect(
            f"{name}.csv",
            name=name,
            unit="pid",
            limits={"rows": rows},
            budget=HUGE,
            ledger=tc.Ledger.memory(),
        )
        for name, rows in (("north", 1), ("south", 50))
    ]
    plan = tc.consortium([members[i] for i in order], disjoint=True).agg(n=tc.count()).plan(**goal)
    error = plan.forecast[0].error
    scales = sorted(float(Fraction(law["scale"])) for law in plan.mechanisms)
    assert scales[1] == pytest.approx(50 * scales[0])
    noise = [sum(m.task.mechanisms[0].release(0) for m in plan._members) for _ in range(2000)]
    assert np.mean(np.abs(noise) <= error) > 0.95 - 6 * np.sqrt(0.05 * 0.95 / 2000)  # P < 1e-8
    assert "within" not in goal or error <= 50


def test_members_with_different_keys_are_refused():
    members = [
        tc.protect(f"{n}.csv", name=n, unit="pid", keys={"h": keys}, budget=HUGE, ledger=tc.Ledger.memory())
        for n, keys in (("north", ["A", "B"]), ("south", ["A", "C"]))
    ]
    with pytest.raises(TacitError, match="understand the question differently"):
        tc.consortium(members, disjoint=True).group_by("h").agg(n=tc.count()).plan(epsilon=1)
