"""Cross tables planned together: what they cost, that they agree, and that nothing private decides a plan."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from support.exact_integers import exact_of
from tacit.core import members_of
from tacit.errors import TacitError

LONG = [f"v{i}" for i in range(1000)]
JOBS = ["clerk", "cook", "none", "nurse"]


def people(n=400, seed=1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "pid": np.arange(n),
            "age": rng.integers(0, 110, n).astype(float),
            "sex": rng.choice(["F", "M", None], n, p=[0.5, 0.45, 0.05]),
            "job": rng.choice([*JOBS, "king"], n),
            "day": pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 59, n), "D"),
        }
    )


def protected(frame=None, **more):
    given = {
        "unit": "pid", "limits": {"rows": 1}, "keys": {"sex": ["F", "M"], "job": JOBS},
        "bounds": {"age": (0, 100)}, "budget": tc.Budget(epsilon=10**7, delta=0.1),
        "ledger": tc.Ledger.memory(),
        "name": "people",
    }  # fmt: skip
    return tc.protect(people() if frame is None else frame, **(given | more))


def asked(data, **options):
    return data.crosstabs(["age", "sex", "job"], **({"bins": {"age": 4}} | options))


def truth(frame, *columns):
    """Count the rows as the axes do: ages beyond the bounds in the last cell, kings nowhere."""
    kept = frame[frame["job"] != "king"]
    age = np.minimum(kept["age"] // 25, 3).astype(int)
    codes = {
        "age": age,
        "sex": kept["sex"].map({"F": 0, "M": 1}).fillna(2).astype(int),
        "job": kept["job"].map(JOBS.index),
    }
    sizes = {"age": 5, "sex": 3, "job": 5}
    made = np.zeros([sizes[c] for c in columns], int)
    np.add.at(made, tuple(codes[c] for c in columns), 1)
    return made


@pytest.mark.parametrize("goal", [{"rho": 10**6}, {"epsilon": 10**5}, {"epsilon": 10**5, "delta": 1e-6}])
@pytest.mark.parametrize("up_to", [1, 2, 3])
def test_without_noise_the_tables_are_those_of_the_rows(goal, up_to):
    frame = people()
    release = asked(protected(frame), up_to=up_to).plan(**goal).release()
    for names in release.tables:
        assert np.allclose(release.values(names), truth(frame, *names), atol=0.05)
    assert release.total.value == pytest.approx((frame["job"] != "king").sum(), abs=0.05)


def test_every_table_is_there_in_any_order_and_all_agree():
    release = asked(protected()).plan(epsilon=1, delta=1e-9).release()
    assert list(release.tables) == [
        ("age",),
        ("sex",),
        ("job",),
        ("age", "sex"),
        ("age", "job"),
        ("sex", "job"),
    ]
    assert len(release) == len(release.tables) == 6
    assert ("job", "age") in release.tables
    assert "sex" in release.tables
    assert () in release.tables
    assert ("age", "sex", "job") not in release.tables
    assert ("town",) not in release.tables
    both, turned = release.values(("age", "sex")), release.values(("sex", "age"))
    assert (both == turned.T).all()
    assert np.allclose(both.sum(axis=0), release.values("sex"))
    assert np.allclose(release.values(("sex", "job")).sum(axis=1), release.values("sex"))
    assert both.sum() == pytest.approx(release.total.value)
    line = next(iter(release.tables[("sex", "age")]))
    assert line["sex"] == "F"
    assert line["age"] == "0 to 25"
    assert line["n_low"] < line["n"] < line["n_high"]
    with pytest.raises(TacitError, match="was not measured"):
        release.tables[("age", "sex", "job")]
    with pytest.raises(TacitError, match="no column 'town'"):
        release.tables[("town",)]


GOALS = [
    {"epsilon": 1, "delta": 1e-9},
    {"epsilon": Fraction(1, 3)},
    {"rho": 0.01},
    {"within": 40, "delta": 1e-9},
    {"within": 40},
    {"within": {("sex", "age"): 30, "job": 10}, "delta": 1e-9, "confidence": 0.9},
]


@pytest.mark.parametrize("goal", GOALS, ids=str)
def test_a_plan_is_public_and_survives_as_a_document(goal):
    data, empty = protected(), protected(people(0))
    question = asked(data, bins={"age": [0, 18, 65, 100]}, other=["job"], weights=None)
    plan = question.plan(**goal)
    written = json.loads(json.dumps(plan.to_json()))
    assert data.plan_from(written) == plan
    same = asked(empty, bins={"age": [0, 18, 65, 100]}, other=["job"]).plan(**goal)
    assert same.hash == plan.hash
    assert repr(same) == repr(plan)
    assert same.sql == plan.sql
    written["request"]["aim"] = "sum" if len(plan.mechanisms) == 1 else "other"
    with pytest.raises(TacitError):
        data.plan_from(written)


def test_dates_booleans_and_missing_values_survive_as_a_document():
    frame = people().assign(ill=lambda f: f["age"] > 50)
    data = protected(frame)
    for missing in (True, False):
        question = data.crosstabs(
            ["day", "ill", "sex"],
            keys={"ill": [True, False]},
            bins={"day": ["2026-01-01", "2026-02-01", "2026-03-01"]},
            missing=missing,
        )
        plan = question.plan(rho=0.1)
        assert data.plan_from(json.loads(json.dumps(plan.to_json()))) == plan
        shape = plan.release().values(("day", "sex")).shape
        assert shape == ((3, 3) if missing else (2, 2))


@pytest.mark.parametrize("goal", GOALS[3:], ids=str)
def test_within_is_kept_by_every_table_at_the_smallest_epsilon(goal):
    plan = asked(protected()).plan(**goal)
    wide = {one.column: one.error for one in plan.forecast}
    within = goal["within"]
    if isinstance(within, dict):
        assert wide["age x sex"] <= 30
        assert wide["job"] <= 10
        assert wide["job"] > 9.5 or wide["age x sex"] > 28
    else:
        assert 36 < max(wide.values()) <= 40
    release = plan.release()
    assert release.half_width("job") == pytest.approx(wide["job"])


def test_the_default_has_the_narrowest_widest_cell_and_the_sum_the_least_mean():
    data = protected()
    wide = {aim: asked(data, aim=aim).plan(rho=0.01) for aim in ("largest", "sum")}
    errors = {aim: np.array([one.error for one in plan.forecast]) for aim, plan in wide.items()}
    cells = np.array([5, 3, 5, 15, 25, 15])
    assert errors["largest"].max() < 0.95 * errors["sum"].max()
    assert cells @ errors["sum"] ** 2 < cells @ errors["largest"] ** 2
    heavy = asked(data, weights={("sex", "job"): 9}).plan(rho=0.01).forecast
    assert heavy[5].error < 0.6 * heavy[4].error
    assert asked(data, weights={"age": 1}).plan(rho=0.01) == wide["largest"]


def test_together_is_narrower_than_one_by_one():
    plan = asked(protected(), up_to=3).plan(epsilon=1, delta=1e-9)
    said = dict(plan.facts)["one by one"]
    alone = float(said.split("+/- ")[1].split(" ")[0])
    assert max(one.error for one in plan.forecast) < 0.8 * alone


@pytest.mark.parametrize("goal", [{"rho": 0.1}, {"epsilon": 1}])
def test_more_rows_of_one_unit_cost_more_noise(goal):
    frame = pd.concat([people(), people(seed=2), people(seed=3)])
    one = asked(protected(frame)).plan(**goal)
    three = asked(protected(frame, limits={"rows": 3})).plan(**goal)
    for a, b in zip(one.forecast, three.forecast, strict=True):
        assert b.error == pytest.approx(3 * a.error, rel=0.02, abs=1.5)
    assert three.cost.rho == pytest.approx(one.cost.rho, rel=1e-6) if "rho" in goal else True


def largest_change(plan_of, frame, owners, tries, rng):
    """Return the largest rho of removing a unit, over random rows, and the rho that is charged."""
    most, charged = Fraction(0), Fraction(0)
    for _ in range(tries):
        some = frame.sample(12, random_state=int(rng.integers(2**31)))
        some = some.assign(pid=np.repeat(np.arange(owners), 12 // owners))
        [noise] = members_of(plan_of(protected(some, limits={"rows": 3})))[0].task.mechanisms
        charged = noise.rho
        for gone in range(owners):
            both = []
            for rows in (some, some[some["pid"] != gone]):
                task = members_of(plan_of(protected(rows, limits={"rows": 3})))[0].task
                both.append(noise.residuals(exact_of(task)[0]))
            moved = zip(*both, noise.sigmas, strict=True)
            most = max(most, sum(Fraction(int(((a - b) ** 2).sum())) / (2 * g**2) for a, b, g in moved))
    return most, charged


def test_no_unit_moves_the_integers_of_a_plan_by_more_than_is_charged():
    rng = np.random.default_rng(7)
    same = pd.concat([people(40)] + [people(1)] * 30)  # many equal rows: the worst a unit can do
    most, charged = largest_change(lambda d: asked(d).plan(rho=0.1), same, 4, 3, rng)
    assert Fraction(1, 50) < most <= charged <= Fraction(1, 10)


def test_replaced_units_are_charged_for_the_worst_pair():
    data = protected(people(), adjacency="replace")
    plain = asked(protected()).plan(rho=0.1)
    for goal in ({"rho": 0.1}, {"epsilon": 1}):
        plan = asked(data).plan(**goal)
        assert plan.cost.adjacency == "replace"
        if "rho" in goal:
            assert plan.cost.rho <= 0.1
            assert all(b.error > a.error for a, b in zip(plain.forecast, plan.forecast, strict=True))


def test_views_are_marked_and_keep_totals():
    release = asked(protected()).plan(epsilon=0.2, delta=1e-9).release()
    assert min(release.values(("age", "job")).min(), release.values(("age", "sex")).min()) < 0
    for view, word in ((release.nonnegative(), "no count is below 0"), (release.whole(), "whole numbers")):
        assert any(word in mark and "on average" in mark and "no longer agree" in mark for mark in view.marks)
        values = view.values(("age", "job"))
        assert values.min() >= 0
        assert values.sum() == pytest.approx(max(release.total.value, 0), abs=0.5)
        table = view.tables[("age", "job")]
        assert all(
            a <= v <= b and a >= 0
            for v, a, b in zip(table["n"].value, table["n"].low, table["n"].high, strict=True)
        )
        assert tc.Release.from_json(json.loads(json.dumps(view.to_json()))).marks == view.marks
    whole = release.whole().values(("age", "job"))
    assert (whole == np.round(whole)).all()


def test_a_release_holds_axes_and_noisy_integers_alone(tmp_path):
    data = protected()
    release = asked(data).plan(epsilon=1, delta=1e-9).release()
    document = json.loads(json.dumps(release.to_json()))["content"]
    assert set(document) == {"axes", "tables", "noise", "noisy", "confidence", "view", "left_out"}
    assert "king" not in json.dumps(document)  # a value that is in the rows and not public
    release.save(tmp_path / "tables.json")
    again = tc.Release.load(tmp_path / "tables.json")
    for names in release.tables:
        assert again.tables[names].to_dict() == release.tables[names].to_dict()
    for change in (
        {"confidence": 2},
        {"noisy": document["noisy"][:-1]},
        {"view": "true"},
        {"tables": [[0, 9]]},
    ):
        with pytest.raises(TacitError):
            tc.Release.from_json({**release.to_json(), "content": {**document, **change}})


def test_tables_are_shown_in_text_notebook_files_and_pictures(tmp_path):
    release = asked(protected()).plan(epsilon=1, delta=1e-9).release()
    assert "age x sex: 15 cells" in repr(release)
    assert "all tables agree" in repr(release)
    assert "<script" not in release._repr_html_()
    assert "age x job" in release._repr_html_()
    assert release.to_csv("sex").splitlines()[0] == "sex,n,n_low,n_high"
    assert len(release.to_pandas(("age", "sex"))) == 15
    assert release.plot() is not None
    assert release.plot("age") is not None
    release.plot(("sex", "job")).savefig(tmp_path / "x.png")
    with pytest.raises(TacitError, match="one column, or two"):
        asked(protected(), up_to=3).plan(rho=1).release().plot(("age", "sex", "job"))


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda d: d.crosstabs(["day"]), "keys-missing"),
        (lambda d: d.crosstabs([]), "bad-parameter"),
        (lambda d: asked(d, up_to=0), "bad-parameter"),
        (lambda d: asked(d, tables=[("age", "town")]), "unknown-column"),
        (lambda d: asked(d, tables=[("age", "age")]), "bad-parameter"),
        (lambda d: asked(d, tables=[]), "bad-parameter"),
        (lambda d: asked(d, weights={("age", "sex", "job"): 2}), "bad-parameter"),
        (lambda d: asked(d, aim="least"), "bad-parameter"),
        (lambda d: asked(d, keys={"job": LONG, "sex": LONG}, up_to=3), "question-too-large"),
        (lambda d: asked(d).plan(), "bad-parameter"),
        (lambda d: asked(d).plan(epsilon=1, rho=1), "bad-parameter"),
        (lambda d: asked(d).plan(epsilon=1, delta=2), "bad-parameter"),
        (lambda d: asked(d).plan(rho=1, delta=1e-9), "bad-parameter"),
        (lambda d: asked(d).plan(within=-1), "bad-parameter"),
        (lambda d: asked(d).plan(within={"town": 3}), "unknown-column"),
        (lambda d: asked(d, weights={"age": 4}).plan(within=3), "bad-parameter"),
        (lambda d: asked(d.sample(0.5)), "not-allowed"),
        (lambda d: asked(protected(limits={"rows": None})).plan(rho=1), None),
    ],
)  # fmt: skip
def test_refusals_name_what_is_wrong_and_charge_nothing(make, code):
    data = protected()
    before = repr(data.remaining)
    with pytest.raises(TacitError) as refused:
        make(data)
    assert code is None or refused.value.code == code
    assert repr(data.remaining) == before


def test_questions_about_rows_are_asked_alike():
    data = protected()
    old = data["people"].where("age >= 65").crosstabs(["sex", "job"], tables=[("sex", "job"), ()])
    release = old.plan(epsilon=10**5).release()
    frame = people()
    assert release.values(("sex", "job")) == pytest.approx(
        truth(frame[frame["age"] >= 65], "sex", "job"), abs=0.01
    )
    assert list(release.tables) == [("sex", "job"), ()]


def test_each_further_release_of_a_plan_is_free():
    data = protected()
    plan = asked(data).plan(epsilon=1, delta=1e-9)
    first = plan.release()
    left = repr(data.remaining)
    assert (plan.release().values("age") == first.values("age")).all()
    assert repr(data.remaining) == left
    assert all(a <= b for a, b in pairwise(sorted(first.values("age"))))
