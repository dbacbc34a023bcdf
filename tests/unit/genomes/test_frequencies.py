"""Frequencies, Hardy-Weinberg tests and missing calls: sensitivities, intervals, plans and files."""

from __future__ import annotations

import numpy as np
import pytest

import tacit as tc
from support.cohorts import cohort_of, exact_integers, moves, random_neighbours
from tacit.core import members_of

QUESTIONS = {
    "plain": lambda c, r: c.frequencies(),
    "calls": lambda c, r: c.frequencies(calls=True),
    "cluster": lambda c, r: c.frequencies(by="cluster"),
    "reference": lambda c, r: c.frequencies(reference=r),
    "clip": lambda c, r: c.frequencies(reference=r, clip=0.7, calls=True, by="cluster"),
    "references": lambda c, r: c.frequencies(reference={"a": r, "b": [1 - one for one in r]}, by="cluster"),
    "hardy-weinberg": lambda c, r: c.hardy_weinberg(),
    "missing": lambda c, r: c.missingness(),
    "components": lambda c, r: c.components(1),
    "components, reference": lambda c, r: c.components(1, reference=r),
    "components, clip": lambda c, r: c.components(1, reference=r, clip=0.7),
    "missing, clip": lambda c, r: c.missingness(clip=1.5),
}


@pytest.mark.parametrize("ask", QUESTIONS.values(), ids=QUESTIONS)
@pytest.mark.parametrize("public", [False, True], ids=["n private", "n public"])
@pytest.mark.parametrize("tried", [200, pytest.param(2000, marks=pytest.mark.long)])
def test_one_person_moves_no_more_than_the_noise_covers(ask, public, tried):
    """docs/proofs/genomes.md, sections 2 to 5: exact integers of 200 pairs of neighbours."""
    random = np.random.default_rng(len(str(ask)) + public)
    furthest = 0.0
    for _ in range(tried):
        one, other, reference = random_neighbours(random, replace=public)
        cohorts = [cohort_of(rows, people=len(one[0]) if public else None) for rows in (one, other)]
        plans = [ask(cohort, reference).plan(rho=1) for cohort in cohorts]
        assert plans[0].hash == plans[1].hash
        changes, mechanisms = moves(*plans)
        for (_, square), mechanism in zip(changes, mechanisms, strict=True):
            assert square <= mechanism.sensitivity_squared
        furthest = max(furthest, changes[-1][1] / float(mechanisms[-1].sensitivity_squared))
        changes, mechanisms = moves(*(ask(cohort, reference).plan(epsilon=1) for cohort in cohorts))
        for (far, _), mechanism in zip(changes, mechanisms, strict=True):
            assert far <= mechanism.sensitivity
    assert furthest > 0.6  # the bound is close to what is reached


@pytest.mark.parametrize("ask", QUESTIONS.values(), ids=QUESTIONS)
@pytest.mark.parametrize("goal", [{"rho": 0.5}, {"epsilon": 1}, {"epsilon": 1, "delta": 1e-6}])
def test_a_plan_comes_back_from_its_document_and_prints(ask, goal):
    cohort = tc.genomes.example_cohort(budget=tc.Budget(epsilon=9, delta=1e-3))
    other = {"a": "north", "b": "south"}
    reference = cohort.sites.numbers["frequency"]
    question = (
        cohort.frequencies(reference=dict.fromkeys(other.values(), "frequency"), by="cluster")
        if ask is QUESTIONS["references"]
        else ask(cohort, reference)
    )
    plan = question.plan(**goal)
    assert cohort.plan_from(plan.to_json()).hash == plan.hash
    assert "public list" in str(plan)


def truth_of(cohort):
    calls = cohort._source._array
    labels = np.array(cohort._labels)
    held = np.where(calls < 0, 0, calls)
    return {
        name: held[labels == name].sum(0) / (2 * (calls[labels == name] >= 0).sum(0))
        for name in cohort.cluster_names
    }


@pytest.mark.long
@pytest.mark.parametrize("public", [False, True])
@pytest.mark.parametrize("reference", [None, "frequency"])
def test_intervals_cover_the_frequencies_of_the_calls(public, reference):
    made = tc.genomes.example_cohort(budget=tc.Budget(rho=1))
    labels = made._labels
    people = {name: labels.count(name) for name in made.cluster_names} if public else None
    cohort = tc.genotypes(
        made._source._array, variants=made.sites, clusters=labels, cluster_names=made.cluster_names,
        people=people, budget=tc.Budget(rho=1),
    )  # fmt: skip
    clip = None if reference is None else 20
    plan = cohort.frequencies(by="cluster", reference=reference, clip=clip, calls=True).plan(rho=0.2)
    task = members_of(plan)[0].task
    exact = exact_integers(plan)
    truth = truth_of(cohort)
    wanted = np.stack([truth[name] for name in cohort.cluster_names], axis=1).ravel()
    inside, width = [], []
    for _ in range(100):
        noisy = [mechanism.release(one) for mechanism, one in zip(task.mechanisms, exact, strict=True)]
        cells = task.reading(noisy, plan.confidence).columns["frequency"]
        inside.append((np.array(cells.low) <= wanted) & (wanted <= np.array(cells.high)))
        width.append(np.array(cells.high) - np.array(cells.low))
    assert np.mean(inside) > 0.948
    assert np.mean(width) < 0.2


@pytest.mark.long
@pytest.mark.parametrize("rho", [0.05, 5])
@pytest.mark.parametrize("missing", [0.0, 0.05])
def test_hardy_weinberg_tests_reject_5_percent_under_equilibrium(rho, missing):
    random = np.random.default_rng(7)
    variants, people = 400, 3_000
    rejected = []
    for _ in range(4):
        p = random.uniform(0.1, 0.9, variants)
        calls = (random.random((2, people, variants)) < p).sum(0).astype(np.int8)
        calls[random.random(calls.shape) < missing] = -1
        cohort = tc.genotypes(calls, budget=tc.Budget(rho=10))
        tested = cohort.hardy_weinberg().plan(rho=rho).release()
        rejected.append(np.array(tested["p_value"].value) < 0.05)
    assert 0.035 < np.mean(rejected) < 0.065


def test_hardy_weinberg_tests_find_inbreeding():
    random = np.random.default_rng(8)
    once = (random.random((4_000, 50)) < 0.4).astype(np.int8)
    calls = np.where(random.random(once.shape) < 0.5, 2 * once, once + once[::-1])
    tested = tc.genotypes(calls, budget=tc.Budget(rho=10)).hardy_weinberg().plan(rho=5).release()
    assert np.median(tested["p_value"].value) < 1e-6
    assert "how close together" not in repr(tested)  # not why p-values have no interval


def test_a_table_of_variants_with_other_names_says_which_columns_it_needs():
    table = {"CHROM": ["1"], "POS": [1], "REF": ["A"], "ALT": ["G"]}
    with pytest.raises(tc.TacitError, match="no column 'chromosome'") as refused:
        tc.genotypes(np.zeros((5, 1)), variants=table, budget=tc.Budget(rho=1))
    assert "rename" in str(refused.value.fix)


def test_missing_shares_are_close():
    cohort = tc.genomes.example_cohort(budget=tc.Budget(rho=1_000))
    shares = cohort.missingness().plan(rho=500).release()["missing"].value
    wanted = (cohort._source._array < 0).mean(0)
    assert np.abs(np.array(shares) - wanted).max() < 0.005


def test_a_vcf_file_has_frequencies_and_no_counts(tmp_path):
    from cyvcf2 import VCF

    cohort = tc.genomes.example_cohort(budget=tc.Budget(rho=1))
    release = cohort.frequencies().plan(rho=0.1).release()
    release.to_vcf(tmp_path / "af.vcf")
    read = VCF(str(tmp_path / "af.vcf"))
    assert read.samples == []
    records = list(read)
    assert len(records) == 60
    assert {name for name, _ in records[0].INFO} == {"AF", "AF_LOW", "AF_HIGH", "AF_RHO"}
    assert records[3].INFO["AF"] == pytest.approx(release["frequency"].value[3], rel=1e-4)
    assert cohort.sites.position[3] == records[3].POS
    release.save(tmp_path / "af.json")
    assert tc.Release.load(tmp_path / "af.json").to_vcf() == release.to_vcf()
    assert release.to_csv().startswith("chromosome,position,id,ref,alt,frequency,")


def test_names_cannot_add_lines_or_fields_to_a_vcf_file():
    """A name with a tab or the end of a line stays in its cell; every field has a tag of its own."""
    variants = {"chromosome": ["1"], "position": [5], "ref": ["A"], "alt": ["G"], "id": ["rs1\tA\n2\t7\trs9"]}
    names = ["a", "a_LOW", 'b"\n##evil=1', "RHO"]
    cohort = tc.genotypes([[0]], variants=variants, clusters=["a"], cluster_names=names,
                          budget=tc.Budget(rho=1))  # fmt: skip
    text = cohort.frequencies(by="cluster").plan(rho=0.5).release().to_vcf()
    head, [line] = text.splitlines()[:-1], text.splitlines()[-1:]
    assert all(one.startswith(("##fileformat", "##source", "##contig", "##INFO", "#CHROM")) for one in head)
    cells = line.split("\t")
    assert len(cells) == 8
    assert cells[2] == "rs1_A_2_7_rs9"
    tags = [one.partition("=")[0] for one in cells[7].split(";")]
    assert len(tags) == len(set(tags)) == 13


def test_numbered_variants_cannot_be_written_as_vcf():
    release = (
        tc.genotypes(np.zeros((3, 2), np.int8), budget=tc.Budget(rho=1)).frequencies().plan(rho=0.1).release()
    )
    assert list(release.keys) == ["variant"]
    with pytest.raises(tc.TacitError, match="needs the chromosome"):
        release.to_vcf()


def test_a_picture_shows_each_cluster():
    cohort = tc.genomes.example_cohort(budget=tc.Budget(rho=1))
    picture = cohort.frequencies(by="cluster").plan(rho=0.1).release().plot()
    assert [text.get_text() for text in picture.axes[0].get_legend().get_texts()] == ["north", "south"]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"by": "cluster"}, "bad-parameter"),
        ({"by": "sex"}, "bad-parameter"),
        ({"reference": "frequency"}, "unknown-column"),
        ({"reference": [0.5]}, "bad-parameter"),
        ({"reference": [0.5, 2]}, "bad-parameter"),
        ({"clip": 3}, "bad-parameter"),
        ({"reference": {}}, "bad-parameter"),
    ],
)
def test_what_does_not_fit_is_refused(options, code):
    cohort = tc.genotypes(np.zeros((3, 2), np.int8), budget=tc.Budget(rho=1))
    with pytest.raises(tc.TacitError) as refused:
        cohort.frequencies(**options).plan(rho=0.1)
    assert refused.value.code == code


@pytest.mark.parametrize(
    "facts",
    [
        {"unit": "family"},
        {"status": "hidden"},
        {"clusters": ["a", "b", "a"]},
        {"clusters": ["a", "b", "a"], "cluster_names": ["a", "a"]},
        {"people": 4},
        {"people": {"a": 1, "b": 2}},
        {"people": {"a": 1, "b": 2}, "clusters": ["a", "b", "a"], "cluster_names": ["a", "b"]},
        {"people": 3, "clusters": ["a"], "cluster_names": ["a"]},
        {"variants": {"chromosome": ["1"], "position": [3], "ref": ["A"], "alt": ["G"]}},
        {"variants": {"chromosome": ["1"], "position": [3], "ref": ["A"]}},
    ],
)
def test_a_declaration_that_does_not_fit_is_refused(facts):
    with pytest.raises(tc.TacitError) as refused:
        tc.genotypes(np.zeros((3, 2), np.int8), budget=tc.Budget(rho=1), **facts)
    assert refused.value.code == "bad-parameter"


def test_plans_are_the_same_for_all_data():
    plans = [
        cohort_of((np.full((n, 3), v), ["a"] * n)).frequencies(by="cluster").plan(rho=0.1)
        for n, v in ((0, 0), (5, 2), (9, -1))
    ]
    assert len({plan.hash for plan in plans}) == 1
    assert len({str(plan) for plan in plans}) == 1
    for plan in plans:
        assert len(plan.release()) == 6


def test_a_file_that_is_gone_is_refused_before_the_charge(tmp_path):
    path = tmp_path / "c.vcf"
    path.write_text(
        "##fileformat=VCFv4.2\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\ts\n"
        "1\t5\t.\tA\tG\t.\t.\t.\tGT\t0/1\n"
    )
    cohort = tc.genotypes(path, budget=tc.Budget(rho=1))
    plan = cohort.frequencies().plan(rho=0.5)
    path.unlink()
    with pytest.raises(tc.TacitError) as refused:
        plan.release()
    assert refused.value.code == "bad-genotypes"
    assert cohort.remaining.rho == 1


@pytest.mark.parametrize("ask", ["frequencies", "hardy_weinberg", "missingness"])
def test_a_plan_for_a_private_number_of_people_gives_an_example(ask):
    cohort = tc.genotypes(np.zeros((5, 3)), budget=tc.Budget(rho=1))
    plan = getattr(cohort, ask)().plan(rho=0.1)
    assert "for 1,000 people)" in plan.forecast[0].note


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (lambda c: c.frequencies(rho=0.1, by="cluster"), lambda c: c.frequencies(by="cluster").plan(rho=0.1)),
        (lambda c: c.missingness(clip=5, epsilon=1, delta=1e-6),
         lambda c: c.missingness(clip=5).plan(epsilon=1, delta=1e-6)),
        (lambda c: c.components(1, rho=0.1, confidence=0.9),
         lambda c: c.components(1).plan(rho=0.1, confidence=0.9)),
    ],
    ids=["frequencies", "missingness", "components"],
)  # fmt: skip
def test_a_question_with_a_cost_warns_and_gives_the_same_plan(old, new):
    cohort = tc.genomes.example_cohort(budget=tc.Budget(epsilon=9, delta=1e-3))
    with pytest.warns(DeprecationWarning, match=r"\.plan\(.*=.*\)"):
        plan = old(cohort)
    assert plan == new(cohort)


def test_a_reference_with_unknown_frequencies_comes_back_from_its_document():
    cohort = cohort_of((np.zeros((5, 3)), ["a"] * 5))
    plan = cohort.frequencies(reference=[0.1, float("nan"), 0.3]).plan(rho=0.1)
    assert plan.to_json()["request"]["reference"] == [0.1, None, 0.3]
    assert cohort.plan_from(plan.to_json()) == plan


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "frequencies", "by": "sex"},
        {"kind": "frequencies", "clip": "1e999999"},
        {"kind": "missingness", "limit": 3},
        {"kind": "components", "k": 0},
        {"kind": "anything"},
    ],
)
def test_a_changed_request_is_refused(wrong):
    cohort = tc.genomes.example_cohort(budget=tc.Budget(rho=1))
    document = cohort.frequencies(reference="frequency").plan(rho=0.1).to_json()
    request = wrong | {"goal": document["request"]["goal"]}
    with pytest.raises(tc.TacitError) as refused:
        cohort.plan_from(document | {"request": request})
    assert refused.value.code == "plan-differs"
