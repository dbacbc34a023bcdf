"""Survival curves: agreement with Kaplan and Meier, medians, the log-rank test, refusals."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

import tacit as tc
from tacit.inference._survival import curve_sets
from tacit.mechanisms import LinearNoise

CUTS = list(range(0, 53, 4))
N = 900


@pytest.fixture(scope="module")
def columns():
    rng = np.random.default_rng(9)
    fin = rng.random(N) < 0.5
    week = np.ceil(rng.exponential(np.where(fin, 60, 30)))
    left = rng.integers(1, 80, N)
    return {
        "id": np.arange(N), "fin": np.where(fin, "yes", "no"), "week": np.minimum(week, left).astype(float),
        "arrest": (week <= left).astype(float),
    }  # fmt: skip


def released(columns, epsilon, **more):
    people = tc.protect(
        pa.table(columns), name="d", unit="id", limits={"rows": 1}, keys={"fin": ["no", "yes"]},
        budget=tc.Budget(epsilon=10**7), ledger=tc.Ledger.memory(),
    )  # fmt: skip
    return people.survival(time="week", event="arrest", bins=CUTS, **more).plan(epsilon=epsilon).release()


def binned(columns, chosen):
    """Kaplan and Meier on the bins, half of the censored at risk, as a table would give it."""
    week, arrest = columns["week"][chosen], columns["arrest"][chosen] == 1
    value, shares, spread = 1.0, [], 0.0
    for low, high in pairwise(CUTS):
        inside = (week >= low) & (week < high)
        d, c = (inside & arrest).sum(), (inside & ~arrest).sum()
        r = (week >= low).sum() - c / 2
        value *= 1 - d / r
        spread += d / (r * (r - d))
        shares.append((value, math.sqrt(spread)))
    return shares


def test_without_noise_the_curves_are_those_of_kaplan_and_meier(columns):
    release = released(columns, 10**6, by="fin")
    for group in ("no", "yes"):
        exact = binned(columns, columns["fin"] == group)
        for one, (value, spread) in zip(release.curves[group], exact, strict=True):
            assert one.value == pytest.approx(value, abs=1e-6)
            ratio = 1.96 * spread / -math.log(value)
            if ratio < 0.5:
                assert one.low == pytest.approx(value ** math.exp(ratio), abs=1e-3)
                assert one.high == pytest.approx(value ** math.exp(-ratio), abs=1e-3)
    median = release.median("no")
    assert median.low <= median.value <= median.high
    assert median.value == next(
        cut for cut, (v, _) in zip(CUTS[1:], binned(columns, columns["fin"] == "no"), strict=True) if v <= 0.5
    )
    assert release.at(24, "yes") == release.curves["yes"][5]


def test_the_log_rank_test_finds_a_difference_and_says_so(columns):
    found = released(columns, 5, by="fin").logrank()
    assert found.p_value < 1e-3
    assert found.value > 0  # more arrests without the money
    assert found.sentence.startswith("Those with fin no had")
    swapped = released(columns, 10**6, by="fin")
    assert swapped.logrank("yes", "no").value == pytest.approx(-swapped.logrank("no", "yes").value)


def test_one_curve_needs_no_groups_and_has_no_test(columns):
    release = released(columns, 10)
    assert list(release.curves) == ["all"]
    assert "Share without the event arrest" in repr(release)
    assert release.median().covers == "noise and sampling"
    with pytest.raises(tc.TacitError, match="needs two different groups"):
        release.logrank()
    with pytest.raises(tc.TacitError, match="one of the cuts"):
        release.at(5)


def test_what_the_noise_hides_is_refused_with_the_rows_that_would_do(columns):
    release = released(columns, 0.001, by="fin")
    assert all(one.value is None for one in release.curves["no"])
    with pytest.raises(tc.TacitError, match="hides how many") as refused:
        release.logrank()
    assert refused.value.code == "too-noisy"
    assert "rows in each group" in str(refused.value.fix)
    assert "No log-rank test" in repr(release)
    assert release.plot() is not None


def test_a_curve_stops_where_nearly_all_have_had_the_event():
    """A share near 0 would be shown only where the noise happens to leave somebody."""
    rng = np.random.default_rng(8)
    noise = LinearNoise((1.0,))
    cells = np.array([199.0, 0, 0, 0, 0, 0, 0, 0, 1]) + np.rint(rng.laplace(0, 1, (400, 9)))
    assert np.isnan(curve_sets(cells, noise, 0.05).value).mean() > 0.97  # a fixed seed; 0.5 without the stop
    left = np.array([150.0, 0, 0, 0, 0, 0, 0, 0, 50]) + np.rint(rng.laplace(0, 1, (400, 9)))
    assert not np.isnan(curve_sets(left, noise, 0.05).value).any()


@pytest.mark.parametrize(
    "part", [{"level": 2}, {"noise": {"laplace": [math.nan], "normal": 0}}, {"cuts": "0123"}]
)
def test_forged_documents_of_curves_are_refused(part):
    from tacit.inference._survival import SurvivalCurves

    made = SurvivalCurves("t", "e", "", ("all",), (0.0, 1.0), (40, 10, 50), LinearNoise((1.0,)), 0.95)
    assert SurvivalCurves.from_json(made.to_json()).integers == (40, 10, 50)
    with pytest.raises((ValueError, ArithmeticError)):
        SurvivalCurves.from_json({**made.to_json(), **part})


# groups by their keys


@pytest.mark.parametrize(
    ("keys", "given"),
    [
        ([0, 1], [1, 1.0, True, np.int64(1), np.float32(1), np.True_, "1"]),
        ([False, True], [True, np.True_, "True", "true"]),
        ([0.5, 1.5], [1.5, np.float64(1.5), "1.5"]),
        (["no", "yes"], ["yes", np.str_("yes")]),
    ],
)
def test_a_group_is_named_by_its_key_as_it_was_declared(columns, keys, given):
    fin = np.array(keys, dtype=object)[(columns["fin"] == "yes").astype(int)].tolist()
    people = tc.protect(
        pa.table(columns | {"fin": fin}), unit="id", limits={"rows": 1}, keys={"fin": keys},
        budget=tc.Budget(epsilon=10**4),
    )  # fmt: skip
    plan = people.survival(time="week", event="arrest", bins=CUTS, by="fin").plan(epsilon=10**3)
    release = plan.release()
    truth = release.content.curves[release.content.groups[1]][6]
    for group in given if keys != [False, True] else [True, np.True_, release.content.groups[1]]:
        assert release.at(28, group).value == truth.value
        assert release.median(group).value is not None
        assert release.logrank(keys[0], group).p_value < 0.01
    with pytest.raises(tc.TacitError, match="a group must be one of fin"):
        release.at(28, 7)


def test_the_interval_of_a_median_reaches_over_its_bins(columns):
    """Most have the event at 29, between the cuts 28 and 32, so 32 alone does not hold the median."""
    at_29 = columns | {"week": np.where(np.arange(N) % 5, 29.0, 60.0), "arrest": np.ones(N)}
    median = released(at_29, 1000).median()
    assert median.low <= 29 <= median.high
    assert (median.low, median.value, median.high) == (28, 32, 32)


def test_an_event_that_does_not_exist_is_refused(columns):
    people = tc.protect(pa.table(columns), unit="id", limits={"rows": 1}, budget=tc.Budget(epsilon=1))
    with pytest.raises(tc.TacitError, match="no column 'died'"):
        people.survival(time="week", event="died", bins=CUTS)
