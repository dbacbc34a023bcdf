"""Ranges and running totals of ordered columns: plans, releases, refusals, neighbours."""

import json

import numpy as np
import pyarrow as pa
import pytest

import tacit as tc
from support.asking import visits
from support.exact_integers import exact_of
from tacit.core import members_of
from tacit.errors import TacitError
from tacit.tables.workloads._ordered_counts import kept_cells

AGES = np.repeat(np.arange(0, 100, 2.0), 20)


def people(ages=AGES, *, adjacency="add/remove", unit=None, budget=None, **more):
    table = pa.table(
        {
            "pid": np.arange(len(ages)),
            "age": pa.array(ages),
            "sex": ["F" if i % 3 else "M" for i in range(len(ages))],
            "grade": ["low" if a < 30 else "mid" if a < 70 else "high" for a in ages],
        }
    )
    facts = {
        "bounds": {"age": (0, 100)},
        "keys": {"sex": ["F", "M"], "grade": ["low", "mid", "high"]},
        **more,
    }
    return tc.protect(
        table,
        name="people",
        unit=unit or tc.Unit.row(),
        budget=budget or tc.Budget(rho=10**6, delta=1e-9),
        adjacency=adjacency,
        **facts,
    )


@pytest.fixture(scope="module")
def release():
    return people().prefixes("age", bins=50).plan(rho=1000).release()


def test_a_release_with_little_noise_tells_the_truth(release):
    assert release.range(10, 20).value == pytest.approx(100, abs=2)
    assert release.total.value == pytest.approx(len(AGES), abs=2)
    below = release.distribution["n"].value
    assert below == pytest.approx(np.cumsum(np.full(50, 20)).tolist(), abs=2)
    [line] = release.quantile(0.49)
    assert line["age_low"] <= 48 <= line["age_high"]
    assert line["age_high"] - line["age_low"] <= 6


def test_ranges_add_up(release):
    parts = release.ranges([(0, 30), (30, 64), (64, 100)])["n"].value
    assert sum(parts) == pytest.approx(release.total.value)
    assert sum(release.counts["n"].value) == pytest.approx(release.total.value)


def test_a_saved_release_reads_the_same(release, tmp_path):
    release.save(tmp_path / "ages.json")
    read = tc.Release.load(tmp_path / "ages.json")
    assert read.range(10, 20)["n"] == release.range(10, 20)["n"]
    assert list(read.quantile([0.1, 0.9])) == list(release.quantile([0.1, 0.9]))
    assert read.content.to_json() == release.content.to_json()


@pytest.mark.parametrize(
    "change",
    [
        {"measured": [[1, 2]]}, {"measured": [[1.5] * 50]}, {"places": []}, {"confidence": 2},
        {"cuts": [0.0]}, {"noise": {"laplace": [1, 2], "normal": 0}}, {"strategy": {"cells": 50}},
        {"groups": []},
    ],
    ids=str,
)  # fmt: skip
def test_a_document_that_is_none_is_refused(release, change):
    document = release.to_json()
    document["content"] = {**document["content"], **change}
    with pytest.raises(TacitError) as found:
        tc.Release.from_json(document)
    assert found.value.code == "bad-release"


def test_views_that_rise_say_so(release):
    noisy = people(AGES[:40]).ranges("age", bins=50).plan(rho=0.01).release()
    assert min(noisy.counts["n"].value) < 0
    rising = noisy.monotone()
    assert min(rising.counts["n"].value) >= 0
    assert "isotonic" in repr(rising)
    assert "isotonic" in rising.marks[-1]
    for low, value, high in zip(
        *(getattr(rising.counts["n"], e) for e in ("low", "value", "high")), strict=True
    ):
        assert 0 <= low <= value <= high


@pytest.mark.parametrize("ask", ["ranges", "prefixes"])
@pytest.mark.parametrize("goal", [{"rho": 0.5}, {"epsilon": 1}, {"epsilon": 1, "delta": 1e-9}], ids=str)
def test_plans_can_be_sent(ask, goal):
    data = people()
    plan = getattr(data, ask)("age", bins=20, by="sex").plan(**goal)
    assert data.plan_from(json.loads(json.dumps(plan.to_json()))) == plan
    assert plan.hash == getattr(people(AGES[:7]), ask)("age", bins=20, by="sex").plan(**goal).hash


def test_given_ranges_travel_with_the_plan():
    data = people()
    plan = data.ranges("age", bins=[0, 18, 40, 65, 100], ranges={(0, 18): 1, (18, 65): 4}).plan(rho=0.5)
    assert data.plan_from(json.loads(json.dumps(plan.to_json()))) == plan
    assert plan != data.ranges("age", bins=[0, 18, 40, 65, 100]).plan(rho=0.5)


def test_a_wanted_error_is_kept():
    plan = people().prefixes("age", bins=64).plan(within=30, delta=1e-9)
    assert 29 < plan.forecast[0].error <= 30
    pure = people().prefixes("age", bins=64).plan(within=30)
    assert 29 < pure.forecast[0].error <= 30


def test_groups_have_cells_of_their_own():
    release = people().ranges("age", bins=10, by="sex").plan(rho=10**4).release()
    women, men = release.range(0, 100)["n"].value
    assert (round(women), round(men)) == (666, 334)
    assert len(list(release.quantile([0.25, 0.5]))) == 4


def test_listed_values_keep_the_order_that_was_given():
    release = people().ranges("grade", values=["low", "mid", "high"]).plan(rho=10**4).release()
    assert [line["grade"] for line in release] == ["low", "mid", "high"]
    assert round(release.range("low", "mid").value) == 700
    [line] = release.quantile(0.49)
    assert line["grade"] == "mid"
    with pytest.raises(TacitError, match="order"):
        people().ranges("grade")


def test_dates_have_quantiles():
    days = [f"2026-0{1 + i % 4}-15" for i in range(400)]
    table = pa.table({"day": pa.array(np.array(days, "datetime64[us]"))})
    data = tc.protect(table, unit=tc.Unit.row(), budget=tc.Budget(rho=10**6, delta=1e-9))
    cuts = ["2026-01-01", "2026-02-01", "2026-03-01", "2026-04-01", "2026-05-01"]
    release = data.prefixes("day", bins=cuts).plan(rho=10**3).release()
    assert round(release.range("2026-01-01", "2026-03-01").value) == 200
    assert "2026-0" in str(release.quantile(0.6)["day"].value[0])
    assert release.plot() is not None


def test_refusals_teach():
    data, release = people(), people().ranges("age", bins=[0, 50, 100]).plan(rho=1).release()
    for wrong, match in (
        (lambda: data.ranges("age", bins=2000), "1,024"),
        (lambda: data.ranges("age", bins=1), "at least two"),
        (lambda: data.ranges("age", bins=4, ranges=[]), "pairs"),
        (lambda: data.ranges("age", bins=4, ranges=[(0, 25), (3, 50)]).plan(rho=1), "not a cut"),
        (lambda: data.ranges("age", bins=4, ranges=[(25, 25)]).plan(rho=1), "before high"),
        (lambda: data.ranges("age", bins=4).plan(), "epsilon, rho and within"),
        (lambda: data.ranges("age", bins=4).plan(epsilon=1, within=3), "exactly one"),
        (lambda: release.range(3, 50), "not a cut"),
        (lambda: release.quantile(1.5), "above 0 and below 1"),
        (lambda: release.plot("pie"), "picture"),
    ):
        with pytest.raises(TacitError, match=match):
            wrong()


def test_a_sample_is_refused():
    data = people(unit="pid", limits={"rows": 1})
    with pytest.raises(TacitError, match="sample"):
        data.sample(0.5).ranges("age", bins=4).plan(epsilon=1)


def exact(data, **options):
    """Return the exact sums that the mechanism of a plan gets, and the mechanism."""
    task = members_of(data.ranges("age", bins=8, **options).plan(rho=0.5))[0].task
    [mechanism] = task.mechanisms
    return mechanism.sums(exact_of(task)[0]), mechanism


def owned(rows):
    table = pa.table(
        {
            "pid": pa.array([pid for pid, _, _ in rows], pa.int64()),
            "age": pa.array([age for _, age, _ in rows], pa.float64()),
            "sex": pa.array([sex for _, _, sex in rows], pa.string()),
        }
    )
    return tc.protect(
        table, unit="pid", limits={"rows": 3}, bounds={"age": (0, 100)}, keys={"sex": ["F", "M"]},
        budget=tc.Budget(rho=100, delta=1e-9),
    )  # fmt: skip


@pytest.mark.parametrize("options", [{}, {"by": "sex"}], ids=str)
def test_no_unit_moves_the_sums_of_a_plan_beyond_its_sensitivity(options):
    """Units with hostile values and more rows than their limit, inserted anywhere."""
    rng = np.random.default_rng(4)
    hostile = [None, float("nan"), float("inf"), -1e308, -0.0, 100.0, 50.0, 12.5]
    most = 0
    for _ in range(8):
        others = [(int(p), float(rng.uniform(-10, 110)), "FM"[rng.integers(2)]) for p in rng.permutation(12)]
        one = [
            (99, hostile[rng.integers(8)], ["F", "M", None][rng.integers(3)])
            for _ in range(rng.integers(1, 9))
        ]
        mixed = list(others)
        for row in one:
            mixed.insert(int(rng.integers(len(mixed) + 1)), row)
        before, mechanism = exact(owned(others), **options)
        after, _ = exact(owned(mixed), **options)
        change = int(((after - before) ** 2).sum())
        assert change <= mechanism.noise.sensitivity_squared
        most = max(most, change)
    assert most > mechanism.strategy.column_squared  # the search sees units with several rows


def test_replaced_units_pay_for_both():
    plus = people().ranges("age", bins=8).plan(rho=0.5)
    swap = people(adjacency="replace").ranges("age", bins=8).plan(rho=0.5)
    one, two = (float(plan.mechanisms[0]["noise"]["sensitivity_squared"]) for plan in (plus, swap))
    assert one < two <= 2 * one


def test_cells_that_may_hold_the_quantile():
    flat = np.array([0.0, 50, 50, 50, 100])
    assert kept_cells(flat, 0.5, np.zeros(5)) == (0, 3)
    assert kept_cells(np.array([0.0, 10, 20, 90, 100]), 0.5, np.zeros(5)) == (2, 2)
    assert kept_cells(np.array([0.0, -5, -9, -20]), 0.5, np.zeros(4))[0] in range(3)


def test_pictures(release):
    assert "rows below age" in release.plot().get_title(loc="left")
    assert "rows by age" in release.plot("histogram").get_title(loc="left")


def test_the_ledger_keeps_the_question_in_words_or_its_shape():
    rows = people().where("age < 55").with_columns(half="age / 2")
    question = rows.ranges("half", bins=[0, 10, 20, 30], by="sex")
    assert "ranges of half in 3 cells by sex, with half = age / 2, where age < 55, of people" in repr(
        question
    )
    shape = question.design._words(shape=True)
    assert shape.startswith("ranges of column 1 in ? cells by sex, with column 1 = age / ?, where age < ?")
    areas = people().hierarchy(["stage", "grade"], tree={"a": ["low"], "b": ["mid", "high"]})
    assert "number of rows by grade and the level stage" in repr(areas)


def test_many_cells_are_counted_like_few():
    """More cuts than one expression of SQL holds are read in two parts: every row is in its own cell."""
    ages = np.concatenate([np.arange(0, 100, 0.125), [-5, 100, 1e300, 49.99999999, 50.0]])
    task = members_of(people(ages).prefixes("age", bins=800, by="sex").plan(epsilon=1))[0].task
    made = exact_of(task)[0]
    assert made.shape == (2, 800)
    wanted = np.bincount(np.clip(np.floor(ages / 0.125), 0, 799).astype(int), minlength=800)
    assert (made.sum(axis=0) == wanted).all()


@pytest.mark.parametrize("size", [1e-300, 1e-25, 1e25, 1e300])
def test_only_the_ratios_of_weights_count_however_large_they_are(size):
    data = visits()
    asked = {(0, 30): 1, (0, 5): 100}
    plain = data.ranges("length_of_stay", bins=6, ranges=asked)
    scaled = data.ranges(
        "length_of_stay", bins=6, ranges={ends: size * weight for ends, weight in asked.items()}
    )
    for goal in ({"rho": 1}, {"epsilon": 1}):
        one, other = (question.plan(**goal).forecast[0].error for question in (plain, scaled))
        assert other == pytest.approx(one, rel=1e-3)
