"""The curator's minimum: lines by the noisy number of people, private groups by their true number."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from tacit import TacitError
from tacit.algebra import RowCounts
from tacit.core import AnswerTable, members_of
from tacit.mechanisms import DiscreteGaussian, DiscreteLaplace, KeysBySize, KeySelection
from tacit.tables.planning._minimum_people import MinimumPeople
from tacit.tables.reading._readings import StepNoise

GROUPS = {"A": 1, "B": 7, "C": 8, "D": 16, "E": 400, "F": 0}


def people(rows=1, groups=GROUPS):
    lines = [(f"{g}{i}", g, float(i % 50)) for g, n in groups.items() for i in range(n) for _ in range(rows)]
    return pd.DataFrame(lines, columns=["pid", "ward", "x"])


def dataset(minimum=None, source=None, *, keys=tuple(GROUPS), rows=1, **facts):
    declared = {} if keys is None else {"keys": {"ward": list(keys)}}
    return tc.protect(
        people(rows) if source is None else source, unit="pid", name="visits", ledger=tc.Ledger.memory(),
        budget=tc.Budget(epsilon=10_000, delta=1e-2), bounds={"x": (0, 50)}, limits={"rows": rows},
        **declared, **facts, **({} if minimum is None else {"minimum_people": minimum}),
    )  # fmt: skip


def noise_of(epsilon):
    """Return draws of discrete Laplace noise of scale 1 / epsilon."""
    rng, p = np.random.default_rng(7), -np.expm1(-epsilon)
    return lambda size: rng.geometric(p, size) - rng.geometric(p, size)


def at_most(scale_inverse, m):
    """P(discrete Laplace <= m), exactly up to floats."""
    a = np.exp(-scale_inverse)
    tail = a ** (abs(m) + (m >= 0)) / (1 + a)
    return 1 - tail if m >= 0 else tail


def shown(epsilon, people_of_line, k, t):
    """P(people + noise >= k + t)."""
    return 1 - at_most(epsilon, k + t - people_of_line - 1)


@pytest.mark.parametrize(
    ("epsilon", "t", "chances"),
    [
        (0.5, 0, (0.011, 0.378, 0.622, 0.993)),
        (1, 0, (0.000, 0.269, 0.731, 1.000)),
        (0.1, 0, (0.236, 0.475, 0.525, 0.787)),
    ],
)
def test_without_a_margin_the_chances_are_those_of_the_table(epsilon, t, chances):
    found = [shown(epsilon, n, 8, t) for n in (0, 7, 8, 16)]
    assert found == pytest.approx(chances, abs=5.1e-4)


@pytest.mark.parametrize(
    ("epsilon", "t", "below", "double", "fourfold"),
    [(0.5, 8, 0.007, 0.622, 1.000), (1, 4, 0.005, 0.995, 1.000), (0.1, 39, 0.010, 0.024, 0.117)],
)
def test_the_margin_is_the_least_that_hides_small_lines_99_times_of_100(epsilon, t, below, double, fourfold):
    noise = StepNoise(RowCounts(), (DiscreteLaplace(epsilon=Fraction(str(epsilon)), sensitivity=1),))
    rule = MinimumPeople(8, 0, exact=False)
    assert rule.margin(noise) == t
    assert 1 - at_most(epsilon, t) <= 0.01 < 1 - at_most(epsilon, t - 1)
    found = [shown(epsilon, n, 8, t) for n in (7, 16, 32)]
    assert found == pytest.approx((below, double, fourfold), abs=5.1e-4)


def test_the_margin_of_sums_members_and_gaussian_noise_holds():
    rule, one = MinimumPeople(8, 0, exact=False), DiscreteLaplace(epsilon=1, sensitivity=1)
    total = noise_of(1.0)((200_000, 3)).sum(axis=1)
    assert np.mean(total > rule.margin(StepNoise(RowCounts(), (one,)), 3)) <= 0.01
    assert np.mean(total > rule.margin(StepNoise(RowCounts(), (one,) * 3))) <= 0.01
    gaussian = DiscreteGaussian(rho=Fraction(1, 50), sensitivity_squared=1)
    margin = rule.margin(StepNoise(RowCounts(), (gaussian,)))
    assert margin == 12  # 2.326 times a sigma of 5, to whole numbers
    assert rule.margin(StepNoise(RowCounts(), (one,) * 3)) >= rule.margin(StepNoise(RowCounts(), (one,)))


def test_small_lines_are_hidden_by_the_noisy_count_and_the_caption_says_so():
    plan = dataset(8).group_by("ward").agg(n=tc.count()).plan(epsilon=10)
    release = plan.release()
    assert list(release.content.keys["ward"]) == ["C", "D", "E"]
    [caption] = [text for label, text in plan.facts if label == "minimum"]
    assert "by the noisy count" in caption
    assert "at most 1 %" in caption
    assert caption in release.content.left_out
    assert caption in repr(plan).replace("\n", " ")
    assert [len(one.integers) for one in release.content.measured] == [3]
    stored = plan.stored()
    assert stored.content.to_json() == release.content.to_json()
    assert (
        AnswerTable.from_json(json.loads(json.dumps(release.content.to_json()))).keys == release.content.keys
    )


def test_the_rule_costs_nothing_where_people_are_counted_anyway():
    free, ruled = (
        dataset(minimum).group_by("ward").agg(n=tc.count()).plan(epsilon=1) for minimum in (None, 8)
    )
    assert ruled.cost == free.cost
    assert [one["scale"] for one in ruled.mechanisms] == [one["scale"] for one in free.mechanisms]
    assert ruled.hash != free.hash  # another answer is read off the same noise


def test_people_are_counted_where_a_question_does_not_and_the_plan_says_so():
    plan = dataset(8).group_by("ward").agg(m=tc.mean("x")).plan(epsilon=40)
    assert "people of each group, for the minimum" in dict(plan.facts)
    assert plan.cost.spend.epsilon == 40
    assert list(plan.release().content.keys["ward"]) == ["C", "D", "E"]
    assert list(plan.release().content.columns) == ["m"]


def test_people_not_rows_are_counted_where_one_has_several_rows():
    data = dataset(8, rows=5)
    plan = data.group_by("ward").agg(n=tc.count()).plan(epsilon=200)
    assert list(plan.release().content.keys["ward"]) == ["C", "D", "E"]  # B has 35 rows of 7 people
    assert "people of each group, for the minimum" in dict(plan.facts)
    counted = data.group_by("ward").agg(n=tc.count_distinct("pid")).plan(epsilon=200)
    assert "people of each group, for the minimum" not in dict(counted.facts)


def test_totals_are_sums_with_a_margin_of_their_own():
    plan = dataset(8).sql("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ROLLUP(ward)").plan(epsilon=50)
    assert list(plan.release().content.keys["ward"]) == ["C", "D", "E", None]


def test_a_total_counts_no_person_twice_for_the_minimum():
    rows = [(f"p{i}", ward) for i in range(2) for ward in "ABCDEF"]
    few = tc.protect(
        pd.DataFrame(rows, columns=["patient_id", "ward"]), unit="patient_id", limits={"rows": 6},
        keys={"ward": list("ABCDEF")}, budget=tc.Budget(epsilon=10**6), minimum_people=5,
    )  # fmt: skip
    release = few.group_by("ward").rollup().agg(n=tc.count()).plan(epsilon=10**5).release()
    assert len(release.content) == 0  # two people, and twelve rows of them
    many = [(f"p{i}", ward) for i in range(30) for ward in "ABCDEF"]
    enough = tc.protect(
        pd.DataFrame(many, columns=["patient_id", "ward"]), unit="patient_id", limits={"rows": 6},
        keys={"ward": list("ABCDEF")}, budget=tc.Budget(epsilon=10**6), minimum_people=5,
    )  # fmt: skip
    assert len(enough.group_by("ward").rollup().agg(n=tc.count()).plan(epsilon=10**5).release().content) == 7


def test_a_total_without_groups_is_not_hidden():
    plain, ruled = (dataset(minimum).agg(n=tc.count()).plan(epsilon=1) for minimum in (None, 8))
    assert plain.hash == ruled.hash
    assert len(ruled.release().content) == 1


def test_without_the_policy_no_document_or_hash_says_anything_of_it():
    data = dataset()
    assert "minimum_people" not in json.dumps(data.public_facts())
    plan = data.group_by("ward").agg(n=tc.count()).plan(epsilon=1)
    assert "minimum" not in json.dumps(plan.to_json())
    assert "minimum" not in dict(plan.facts)
    selected = dataset(keys=None).group_by("ward").agg(n=tc.count()).plan(epsilon=1, delta=1e-6)
    assert all("minimum" not in json.dumps(law) for law in selected.mechanisms)


def test_a_dataset_that_is_opened_from_its_facts_has_the_policy():
    for keys in (tuple(GROUPS), None):
        data = dataset(8, keys=keys)
        facts = tc.tables.open_facts(json.loads(json.dumps(data.public_facts())), data._ledger)
        goal = {"epsilon": 1} if keys else {"epsilon": 1, "delta": 1e-6}
        plan = data.group_by("ward").agg(n=tc.count()).plan(**goal)
        assert facts.group_by("ward").agg(n=tc.count()).plan(**goal) == plan
        assert facts.plan_from(plan.to_json()) == plan
        without = dataset(keys=keys)
        with pytest.raises(TacitError):
            without.plan_from(plan.to_json())


ASKS = [
    lambda d: d.crosstabs(["ward"]), lambda d: d.ranges("x", bins=8), lambda d: d.prefixes("x", bins=8),
    lambda d: d.hierarchy(["place", "ward"], tree={"town": list("ABC"), "land": list("DEF")}),
    lambda d: d.synthesize(["ward"]),
]  # fmt: skip


@pytest.mark.parametrize("ask", ASKS)
def test_questions_that_do_not_keep_the_rule_are_refused_with_one_that_does(ask):
    ask(dataset()).plan(epsilon=1, delta=1e-6)
    with pytest.raises(TacitError, match="at least 8 pids") as refused:
        ask(dataset(8)).plan(epsilon=1, delta=1e-6)
    assert refused.value.code == "not-allowed"
    assert "GROUP BY" in str(refused.value.fix)


def test_members_of_a_consortium_have_the_same_rule():
    def member(name, minimum):
        return tc.protect(
            people(), unit="pid", name=name, budget=tc.Budget(epsilon=100), ledger=tc.Ledger.memory(),
            keys={"ward": list(GROUPS)}, limits={"rows": 1}, minimum_people=minimum,
        )  # fmt: skip

    both = tc.consortium([member("north", 8), member("south", 8)], disjoint=True)
    release = both.group_by("ward").agg(n=tc.count()).plan(epsilon=20).release()
    assert list(release.content.keys["ward"]) == ["B", "C", "D", "E"]  # B has 14 in both
    with pytest.raises(TacitError, match="understand the question differently"):
        tc.consortium([member("east", 8), member("west", 9)], disjoint=True).group_by("ward").agg(
            n=tc.count()
        ).plan(epsilon=20)


@pytest.mark.parametrize("wrong", [0, 1, -8, 2.5, "8", True])
def test_a_wrong_minimum_is_refused(wrong):
    with pytest.raises(TacitError) as refused:
        dataset(wrong)
    assert refused.value.code == "bad-parameter"
    assert "minimum_people=8" in str(refused.value.fix)


def test_the_policy_is_declared_in_a_file(tmp_path):
    people().to_csv(tmp_path / "v.csv", index=False)
    text = (
        '[datasets.visits]\nsource = "v.csv"\nunit = "pid"\nbudget = {epsilon = 5}\nminimum_people = 8\n'
        'limits = {rows = 1}\n[datasets.visits.keys]\nward = ["A", "E"]\n'
    )
    (tmp_path / "tacit.toml").write_text(text)
    data = tc.tables.load_config(tmp_path / "tacit.toml")["visits"]
    assert data.minimum_people == 8
    assert list(data.group_by("ward").agg(n=tc.count()).plan(epsilon=5).release().content.keys["ward"]) == [
        "E"
    ]


# -- the exact rule of private groups, and its twins


def test_a_private_group_with_fewer_people_is_never_shown():
    for facts in ({"epsilon": 1}, {"rho": Fraction(1, 10)}):
        plain = KeySelection(**facts, delta=1e-2, groups=1)
        ruled = KeySelection(**facts, delta=1e-2, groups=1, minimum=8)
        assert ruled.threshold == plain.threshold + 7
        assert ruled.cost == plain.cost
        for value in ({"A": 7, "B": 500}, KeysBySize({"B": 500}, {7: 1}, lambda _: {7: ["A"]})):
            answers = ruled.release_many(value, 3000)
            assert all(list(one) == ["B"] for one in answers)
        assert any("A" in one for one in ruled.release_many({"A": 8}, 3000))


def test_the_shifted_numbers_have_the_law_of_the_numbers_without_a_minimum():
    plain = KeySelection(epsilon=1, delta=1e-3, groups=1)
    ruled = KeySelection(epsilon=1, delta=1e-3, groups=1, minimum=8)
    size = 40_000
    for extra in (1, 3, 6, plain.threshold):
        often = [
            np.mean(["A" in one for one in law.release_many({"A": n}, size)])
            for law, n in ((plain, extra), (ruled, extra + 7))
        ]
        assert abs(often[0] - often[1]) < 5 * np.sqrt(0.5 / size)


def lines(noise, is_shown):
    """Return a mechanism that shows a noisy count of a line, or -1 for a hidden line."""

    def released(people_of_line, size):
        noisy = people_of_line + noise(size)
        return np.where(is_shown(people_of_line, noisy), noisy, -1)

    return released


def test_the_audit_finds_a_rule_that_reads_the_exact_count():
    """The twin hides by the exact number of people: k - 1 against k tells the truth."""
    ruled = lines(noise_of(1.0), lambda _, noisy: noisy >= 8 + 4)
    twin = lines(noise_of(1.0), lambda exact, noisy: np.full(noisy.shape, exact >= 8))
    sound, broken = (tc.audit.audit(one, 7, 8, samples=40_000) for one in (ruled, twin))
    assert sound.epsilon_lower <= 1
    assert broken.epsilon_lower > 3


def test_the_audit_finds_an_exact_rule_that_is_not_part_of_the_selection():
    """The twin selects as without a minimum, and drops small groups by their exact number afterwards."""
    ruled = KeySelection(epsilon=1, delta=1e-3, groups=1, minimum=12)
    plain = KeySelection(epsilon=1, delta=1e-3, groups=1)

    def twin(people_of_group, size):
        shown = [len(one) for one in plain.release_many({"A": people_of_group}, size)]
        return np.array(shown) * (people_of_group >= 12)

    def sound(people_of_group, size):
        return np.array([len(one) for one in ruled.release_many({"A": people_of_group}, size)])

    results = [tc.audit.audit(one, 12, 11, samples=20_000, delta=1e-3) for one in (sound, twin)]
    assert results[0].epsilon_lower <= 1
    assert results[1].epsilon_lower > 3
    assert tc.audit.audit(sound, ruled.threshold, ruled.threshold - 1, samples=20_000).epsilon_lower <= 1


def test_the_noisy_rule_keeps_the_promise_of_the_plan_on_neighbours():
    """The rule reads only noisy integers: equal noisy integers give equal lines, whatever the truth is."""
    first, second = (
        dataset(8, people(groups={**GROUPS, "B": n})).group_by("ward").agg(n=tc.count()).plan(epsilon=1)
        for n in (7, 8)
    )
    noisy = [[[3], [16], [11], [12], [15], [400]]]
    readings = [members_of(one)[0].task.reading(noisy, Fraction(95, 100)) for one in (first, second)]
    assert readings[0].to_json() == readings[1].to_json()
    assert list(readings[0].keys["ward"]) == [
        ["A", "B", "C", "D", "E", "F"][i] for i in (1, 3, 4, 5)
    ]  # 11 < 8 + 4
