"""What a plan may cost: epsilon, delta, rho, an error to stay within, weights, the choice of noise."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

import tacit as tc
from support.asking import task_of, visits
from tacit import TacitError


def test_within_solves_for_epsilon():
    plan = visits().agg(n=tc.count()).plan(within=50, confidence=0.95)
    assert plan.forecast[0].error <= 50
    looser = visits().agg(n=tc.count()).plan(epsilon=plan.promised["epsilon"] * Fraction(97, 100))
    assert looser.forecast[0].error > 50
    with pytest.raises(TacitError):
        visits().agg(m=tc.mean("length_of_stay")).plan(within=1)
    sized = visits().agg(m=tc.mean("length_of_stay")).plan(within=1, size=10_000)
    assert sized.forecast[0].error <= 1


@pytest.mark.parametrize("goal", [{"epsilon": 1}, {"within": 1}])
def test_a_size_beyond_all_floats_is_refused_by_the_plan(goal):
    with pytest.raises(TacitError) as refused:
        visits().agg(m=tc.mean("length_of_stay")).plan(**goal, size=10**400)
    assert refused.value.code == "bad-parameter"
    visits().agg(m=tc.mean("length_of_stay")).plan(epsilon=1, size=10**300)


def test_weights_move_the_budget():
    plan = visits().agg(n=tc.count(), s=tc.sum("length_of_stay")).plan(epsilon=1, weights={"s": 3})
    assert [float(m.epsilon) for m in task_of(plan).mechanisms] == [0.25, 0.75]


@pytest.mark.parametrize("target", [{"epsilon": 1}, {"epsilon": 1, "delta": 1e-6}, {"rho": 0.05}], ids=str)
@pytest.mark.parametrize("rows", [1, 10, 200])
def test_two_columns_lose_at_most_a_factor_two_against_being_asked_alone(target, rows):
    """Whatever one patient can change: a count of patients was +/- 3 alone and +/- 303 beside a count."""
    data = visits(limits={"rows": rows})
    asked = {"n": tc.count(), "p": tc.count_units(), "s": tc.sum("length_of_stay")}
    for names in (("n", "p"), ("p", "s"), ("n", "s")):
        both = data.agg(**{name: asked[name] for name in names}).plan(**target)
        for forecast in both.forecast:
            alone = data.agg(x=asked[forecast.column]).plan(**target).forecast[0].error
            assert alone <= forecast.error <= 2 * alone + 1


def test_columns_that_share_rho_lose_a_root_of_their_number():
    data = visits(limits={"rows": 200})
    asked = {f"s{i}": tc.sum("length_of_stay", bounds=(0, 30 + i)) for i in range(7)}
    plan = data.agg(p=tc.count_units(), n=tc.count(), **asked).plan(rho=0.05)
    alone = data.agg(n=tc.count()).plan(rho=0.05).forecast[0].error
    assert next(f.error for f in plan.forecast if f.column == "n") <= 3.01 * alone


def test_an_error_to_stay_within_is_shared_by_all_columns():
    """The split then follows what each column needs, so that both reach the same error."""
    data = visits(limits={"rows": 200})
    plan = data.agg(n=tc.count(), p=tc.count_units()).plan(within=50)
    assert {f.error for f in plan.forecast} == {50}
    alone = data.agg(n=tc.count()).plan(within=50)
    assert plan.promised["epsilon"] < alone.promised["epsilon"] * Fraction(102, 100)
    keyed = data.limit(groups=1).group_by("icd").agg(n=tc.count()).plan(within=500, delta=1e-7)
    selection, counts = task_of(keyed).mechanisms
    assert selection.epsilon == counts.epsilon


def test_weights_change_the_noise_and_so_the_plan_that_is_stored():
    """Two plans of one hash would share a stored answer, whatever noise each promised."""
    asked = visits().agg(n=tc.count(), m=tc.mean("length_of_stay"))
    plain, same, other = (
        asked.plan(epsilon=1, weights=w) for w in (None, {"n": 1, "m": 1}, {"n": 3, "m": 1})
    )
    assert plain.hash == same.hash
    assert plain.mechanisms != other.mechanisms
    assert plain.hash != other.hash


def test_gaussian_noise_is_chosen_where_it_is_smaller():
    data = visits(limits={"rows": 60, "per_group": 1, "groups": None})
    many = {f"c{i}": tc.histogram("length_of_stay", [0, i + 1, 30]) for i in range(20)}
    assert (
        data.group_by("hospital").agg(**many).plan(epsilon=1, delta=1e-6).mechanisms[0]["mechanism"]
        == "discrete-gaussian"
    )
    assert data.agg(n=tc.count()).plan(epsilon=1, delta=1e-6).mechanisms[0]["mechanism"] == "discrete-laplace"
    assert data.agg(n=tc.count()).plan(rho=0.1).cost.rho <= 0.1 * (1 + 1e-9)


def test_choices_are_made_by_permute_and_flip_where_only_epsilon_counts():
    """It is charged as pure epsilon, so a budget with a delta, where that composes worse, keeps the other."""
    asked = {"q": tc.median("length_of_stay"), "t": tc.most_common("icd", 1, ["I10", "I21"])}
    for options, flips in (({"budget": tc.Budget(epsilon=9)}, True), ({}, False)):
        data = visits(**options)
        plan = data.agg(**asked).plan(epsilon=1)
        described = [one.describe() for one in task_of(plan).mechanisms]
        assert all(("permute-and-flip" in text) == flips for text in described)
        assert plan.cost.epsilon(delta=0) == 1
        grouped = data.group_by("hospital").agg(**asked).plan(epsilon=1)
        release = grouped.release()
        assert set(release["t"].value) <= {"I10", "I21"}
        assert data.plan_from(grouped.to_json()) == grouped
        sized = data.agg(q=tc.median("length_of_stay")).plan(within=3, size=1000)
        assert ("permute-and-flip" in task_of(sized).mechanisms[0].describe()) == flips
    rho = visits(budget=tc.Budget(rho=1)).agg(**asked).plan(rho=0.1)
    assert all("exponential" in one.describe() for one in task_of(rho).mechanisms)


@pytest.mark.parametrize(
    "target", [{"epsilon": 0.7}, {"epsilon": 0.7, "delta": 1e-6}, {"rho": 0.05}, {"rho": 0.05, "delta": 1e-6}]
)
def test_a_plan_never_costs_more_than_asked(target):
    data = visits()
    asked = {
        "n": tc.count(),
        "p": tc.count_units(),
        "m": tc.mean("length_of_stay"),
        "q": tc.median("length_of_stay"),
        "t": tc.most_common("icd", 2, ["I10", "I21"]),
    }
    plan = data.group_by("hospital").agg(**asked).plan(**target)
    if "rho" in target:
        assert plan.cost.rho <= target["rho"]
    else:
        assert plan.cost.epsilon(delta=target.get("delta", 0)) <= target["epsilon"] * (1 + 1e-9)
    if "delta" in target:
        private = data.group_by("icd").agg(**asked).plan(**target)
        spend = private.cost.spend
        assert spend.delta <= Fraction(str(target["delta"]))
        if "epsilon" in target:
            assert private.cost.epsilon(delta=target["delta"]) <= target["epsilon"] * (1 + 1e-9)


@pytest.mark.parametrize(
    "target",
    [
        {},
        {"epsilon": 0},
        {"epsilon": -1},
        {"epsilon": math.nan},
        {"epsilon": True},
        {"epsilon": 1, "rho": 1},
        {"epsilon": 1, "delta": 1},
        {"epsilon": 1, "confidence": 1},
        {"within": 0},
        {"epsilon": 1, "weights": {"zz": 1}},
    ],
)
def test_wrong_targets_are_refused_and_charge_nothing(target):
    data = visits()
    before = data.remaining
    with pytest.raises(TacitError):
        data.agg(n=tc.count()).plan(**target)
    assert data.remaining == before
