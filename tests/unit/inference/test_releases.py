"""Tests and intervals on releases: what a user calls, on an invented trial."""

import json

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from tacit.core import AnswerTable, MeasuredIntegers
from tacit.errors import TacitError


def trial(epsilon=1_000):
    return tc.inference.example_trial(budget=tc.Budget(epsilon=epsilon))


@pytest.fixture(scope="module")
def by_arm():
    asked = trial().group_by("arm").agg(sbp=tc.mean("sbp"), well=tc.mean("well"), n=tc.count())
    return asked.plan(epsilon=30).release()


def visits(**more):
    frame = pd.DataFrame({"pid": np.arange(900) % 300, "x": np.linspace(0, 10, 900)})
    return tc.protect(frame, unit="pid", bounds={"x": (0, 10)}, budget=tc.Budget(epsilon=100), **more)


# what a release carries


def test_a_release_carries_the_noisy_integers_of_its_columns(by_arm):
    kinds = {name: one.statistic for one in by_arm.measured for name in one.columns}
    assert kinds == {"sbp": "squares", "well": "moments", "n": "rows"}
    count = next(one for one in by_arm.measured if one.statistic == "rows")
    assert [line[0] for line in count.integers] == list(by_arm["n"].value)
    assert all(one.rows_per_unit == 1 for one in by_arm.measured)


def test_it_survives_as_a_document_and_older_documents_stay_readable(by_arm):
    document = json.loads(json.dumps(by_arm.to_json()))
    assert tc.Release.from_json(document).content == by_arm.content
    del document["content"]["measured"]
    del document["certificate"]["values"]  # older certificates bind no values
    older = tc.Release.from_json(document)
    assert older["sbp"] == by_arm["sbp"]
    with pytest.raises(TacitError, match="has no mean whose spread"):
        tc.inference.mean(older, "drug", column="sbp")


@pytest.mark.parametrize(
    "change",
    [
        {"integers": [[1]]},
        {"integers": [[1.5], [2]]},
        {"noise": [["cauchy", "1"]]},
        {"noise": [["laplace", "-1"]]},
        {"columns": {"elsewhere": ["mean", 0]}},
        {"columns": {"n": ["count", 7]}},
        {"weight": 0},
    ],
)
def test_forged_integers_are_not_read(by_arm, change):
    document = json.loads(json.dumps(by_arm.to_json()))
    document["content"]["measured"][-1] |= change
    with pytest.raises(TacitError) as refused:
        tc.Release.from_json(document)
    assert refused.value.code == "bad-release"


def test_sql_that_renames_and_sorts_keeps_them_and_a_choice_of_lines_drops_them():
    asked = "SELECT arm AS a, AVG(sbp) AS m, COUNT(*) AS k FROM trial GROUP BY arm ORDER BY arm DESC"
    release = trial().sql(asked).plan(epsilon=40).release()
    assert list(release.keys["a"]) == ["placebo", "drug"]
    counts = next(one for one in release.measured if "k" in one.columns)
    assert [line[0] for line in counts.integers] == list(release["k"].value)
    assert tc.inference.difference(release, "drug", "placebo").value < 0
    some = trial().sql(asked + " LIMIT 1").plan(epsilon=40).release()
    assert some.measured == ()
    with pytest.raises(TacitError, match="chosen"):
        tc.inference.mean(some)


def test_totals_and_private_groups_carry_none_for_their_lines():
    rollup = "SELECT arm, COUNT(*) AS k FROM trial GROUP BY ROLLUP (arm)"
    assert trial().sql(rollup).plan(epsilon=1).release().measured == ()


def test_a_mean_measures_its_spread_where_each_unit_has_one_row():
    def statistic(rows, **given):
        [step] = rows.agg(m=tc.mean("x", **given)).plan(epsilon=1).release().measured
        return step.statistic

    assert statistic(visits(limits={"rows": 3})) == "moments"
    assert statistic(visits(limits={"rows": 3}).limit(rows=1)) == "squares"
    assert statistic(visits(limits={"rows": 3}), spread=True) == "squares"
    assert statistic(visits(limits={"rows": 3}).limit(rows=1), spread=False) == "moments"
    with pytest.raises(TacitError, match="spread"):
        tc.mean("x", spread="yes")


# intervals for sampling


def test_the_sampling_view_is_wider_marked_and_says_what_it_covers(by_arm):
    view = by_arm.interval("sampling")
    for name in ("sbp", "well", "n"):
        for i in range(2):
            assert view[name].low[i] < by_arm[name].low[i] <= by_arm[name].high[i] < view[name].high[i]
        assert view[name].value == by_arm[name].value
    assert view.content.covers == "noise and sampling"
    assert "chance in who was included" in " ".join(repr(view).split())
    assert "intervals for the noise;" in repr(by_arm)
    assert view.marks == (*by_arm.marks, "the rows count as a sample")
    assert tc.Release.from_json(json.loads(json.dumps(view.to_json()))).content == view.content
    assert by_arm.interval("noise") is by_arm
    assert view.interval("sampling") is view
    with pytest.raises(TacitError, match="no other intervals"):
        view.interval("noise")
    with pytest.raises(TacitError, match="covers"):
        by_arm.interval("everything")


def test_a_column_without_a_rule_has_no_interval_in_the_view_and_says_why():
    release = trial().agg(m=tc.mean("sbp"), sd=tc.std("sbp")).plan(epsilon=20).release()
    view = release.interval("sampling")
    assert view["sd"].low == (None,)
    assert "no interval for sampling" in view.content.notes["sd"]
    assert view["m"].low[0] < release["m"].low[0]


def test_clusters_are_refused_with_the_way_out():
    release = visits(limits={"rows": 3}).agg(m=tc.mean("x", spread=True)).plan(epsilon=5).release()
    for ask in (lambda: tc.inference.mean(release), lambda: release.interval("sampling")):
        with pytest.raises(TacitError, match="up to 3 rows of one unit count") as refused:
            ask()
        assert "per_unit" in str(refused.value)
    once = visits(limits={"rows": 3}).per_unit(x=tc.mean("x")).agg(m=tc.mean("x")).plan(epsilon=5).release()
    assert tc.inference.mean(once).covers == "noise and sampling"


def test_a_person_per_day_is_no_independent_unit():
    frame = pd.DataFrame({"pid": [1, 1, 2], "day": ["a", "b", "a"], "x": [1.0, 2.0, 3.0]})
    days = tc.protect(
        frame,
        unit=tc.Unit("pid", per="day"),
        bounds={"x": (0, 10)},
        limits={"rows": 1},
        budget=tc.Budget(epsilon=9),
    )
    release = days.agg(m=tc.mean("x", spread=True)).plan(epsilon=1).release()
    with pytest.raises(TacitError, match="different units"):
        tc.inference.mean(release)


# answers


def test_a_difference_has_an_interval_a_p_value_and_a_sentence(by_arm):
    found = tc.inference.difference(by_arm, "drug", "placebo", column="sbp")
    assert found.low < found.value < found.high
    assert found.covers == "noise and sampling"
    back = tc.inference.difference(by_arm, "placebo", "drug", column="sbp")
    assert (back.low, back.high) == pytest.approx((-found.high, -found.low))
    assert back.p_value == pytest.approx(found.p_value, rel=1e-3, abs=1e-9)
    assert "lower with drug than with placebo (95 % confidence interval" in found.sentence
    assert found.sentence in found.text()
    assert "&lt;" not in found.html() or "<" in found.text()
    assert found.to_json()["value"] == found.value


def test_two_proportions_are_compared_too(by_arm):
    found = tc.inference.difference(by_arm, "drug", "placebo", column="well")
    assert 0 < found.value < 0.3
    assert found.p_value < 0.05


def test_the_answer_without_noise_is_that_of_textbooks():
    from scipy import stats

    rng = np.random.default_rng(4)
    frame = pd.DataFrame({"g": np.repeat(["a", "b", "c"], 400), "x": rng.normal(50, 12, 1200).clip(0, 100)})
    frame.loc[frame["g"] == "c", "x"] += 2.5
    frame["x"] = frame["x"].clip(0, 100)
    data = tc.protect(
        frame,
        unit=tc.Unit.row(),
        bounds={"x": (0, 100)},
        keys={"g": list("abc")},
        budget=tc.Budget(epsilon=1e6),
    )
    release = data.group_by("g").agg(m=tc.mean("x")).plan(epsilon=50_000).release()
    groups = [frame.loc[frame["g"] == g, "x"] for g in "abc"]
    found = tc.inference.difference(release, "a", "c")
    exact = stats.ttest_ind(groups[0], groups[2], equal_var=False)
    assert found.p_value == pytest.approx(exact.pvalue, rel=0.05)
    assert (found.low, found.high) == pytest.approx(tuple(exact.confidence_interval()), abs=0.02)
    assert "\ntest statistic " in tc.inference.anova(release).text()
    assert tc.inference.anova(release).p_value == pytest.approx(stats.f_oneway(*groups).pvalue, rel=0.05)
    histogram = data.group_by("g").agg(h=tc.histogram("x", range(0, 101, 5))).plan(epsilon=50_000).release()
    cells = [np.minimum(group // 5, 19) for group in groups]
    exact_rank = stats.mannwhitneyu(cells[0], cells[2], use_continuity=False)
    assert tc.inference.rank_test(histogram, "a", "c").p_value == pytest.approx(exact_rank.pvalue, rel=0.02)
    table = np.array([np.bincount(one.astype(int), minlength=20) for one in cells])
    kept = table[:, table.sum(axis=0) > 0]
    found = tc.inference.independence(
        data.where("x >= 30 and x <= 70")
        .group_by("g")
        .agg(h=tc.histogram("x", range(30, 71, 10)))
        .plan(epsilon=50_000)
        .release()
    )
    assert 0 < found.p_value <= 1
    assert kept.sum() == 1200


def test_tables_are_tested_for_independence_fit_and_g():
    release = trial().group_by("arm", "site").agg(n=tc.count()).plan(epsilon=20).release()
    for test in (tc.inference.independence, tc.inference.g_test):
        assert 0 < test(release).p_value <= 1
    related = trial().group_by("arm").agg(well=tc.mean("well")).plan(epsilon=20).release()
    assert tc.inference.independence(related).p_value < 0.05
    one = trial().group_by("arm").agg(n=tc.count()).plan(epsilon=20).release()
    assert tc.inference.fit(one, {"drug": 0.5, "placebo": 0.5}).p_value > 0.2
    assert tc.inference.fit(one, {"drug": 0.7, "placebo": 0.3}).p_value < 1e-3
    assert tc.inference.proportion(one, "drug", against=0.7).p_value < 1e-6
    with pytest.raises(TacitError, match="shares"):
        tc.inference.fit(one, {"drug": 1.0})
    with pytest.raises(TacitError, match="full table"):
        tc.inference.independence(one)


def test_the_same_release_gives_the_same_p_value():
    release = trial().group_by("site").agg(m=tc.mean("sbp")).plan(epsilon=5).release()
    assert tc.inference.anova(release).p_value == tc.inference.anova(release).p_value


def test_what_noise_hides_is_refused_with_the_rows_or_epsilon_that_would_do():
    asked = trial().group_by("site").agg(m=tc.mean("sbp"), h=tc.histogram("sbp", range(80, 221, 10)))
    release = asked.plan(epsilon=0.01).release()
    for ask in (
        lambda: tc.inference.anova(release),
        lambda: tc.inference.difference(release, "A", "B"),
        lambda: tc.inference.rank_test(release, "A", "B"),
        lambda: tc.inference.independence(release),
    ):
        with pytest.raises(TacitError) as refused:
            ask()
        assert refused.value.code == "too-noisy"
        assert "rows" in str(refused.value.fix)
        assert "epsilon" in str(refused.value.fix)


def test_unknown_groups_and_columns_are_refused(by_arm):
    with pytest.raises(TacitError, match="no group"):
        tc.inference.mean(by_arm, "drog", column="sbp")
    with pytest.raises(TacitError, match="say which column"):
        tc.inference.mean(by_arm, "drug")
    with pytest.raises(TacitError, match="yes or no"):
        tc.inference.anova(by_arm, column="well")


# power


def test_power_before_spending_touches_no_data():
    people = trial(1)
    plan = people.group_by("arm").agg(sbp=tc.mean("sbp")).plan(epsilon=1)
    found = plan.power(effect=5, sd=18, n=(400, 400))
    assert found.power == pytest.approx(0.9536, abs=0.001)
    assert "95 of 100 such trials" in repr(found)
    again = plan.power(effect=5, sd=18, n=found.n_needed)
    assert again.power == pytest.approx(0.8, abs=0.002)
    assert float(people.remaining.epsilon) == 1
    assert plan.power(effect=1, sd=18, n=100).epsilon_factor is None


@pytest.mark.parametrize(
    "given",
    [{"effect": 0}, {"effect": 500}, {"sd": None}, {"n": 1}, {"n": (1, 2, 3)}, {"alpha": 2}, {"around": 0}],
)
def test_bad_assumptions_are_refused(given):
    plan = trial(1).group_by("arm").agg(sbp=tc.mean("sbp")).plan(epsilon=1)
    with pytest.raises(TacitError):
        plan.power(**({"effect": 5, "sd": 18, "n": 400} | given))


def test_power_of_what_cannot_be_tested_is_refused():
    plan = visits(limits={"rows": 3}).agg(m=tc.mean("x")).plan(epsilon=1)
    with pytest.raises(TacitError, match="no test of m"):
        plan.power(effect=1, sd=2, n=100)
    with pytest.raises(TacitError, match="no mean"):
        trial().agg(n=tc.count()).plan(epsilon=1).power(effect=1, sd=2, n=100)


def test_the_integers_of_a_consortium_have_the_noise_of_all_members():
    frame = pd.DataFrame({"pid": np.arange(600), "x": np.linspace(0, 10, 600)})
    members = [
        tc.protect(
            frame[i::3],
            unit="pid",
            name=f"m{i}",
            bounds={"x": (0, 10)},
            limits={"rows": 1},
            budget=tc.Budget(epsilon=50),
        )
        for i in range(3)
    ]
    release = tc.consortium(members, disjoint=True).agg(m=tc.mean("x")).plan(epsilon=10).release()
    [step] = release.measured
    assert len(step.noise) == 3
    assert isinstance(release.content, AnswerTable)
    assert isinstance(step, MeasuredIntegers)
    found = tc.inference.mean(release)
    assert found.low < 5 < found.high
