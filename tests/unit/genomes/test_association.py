"""The choice of SNPs: what is public, what is refused, and how far one person moves the scores.

docs/proofs/gwas.md, "What neighbours are" and "Distance to significance".
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tacit as tc
from support.exact_integers import exact_of_plan
from tacit.audit import neighbours
from tacit.errors import TacitError
from tacit.genomes._association import SCORE_SENSITIVITY
from tacit.genomes._genotypes import ArrayGenotypes

RNG = np.random.default_rng(5)
STATUS = np.repeat([1, 0], 40)


def cohort(calls, phenotype=STATUS, **facts):
    facts = {"status": "public", "people": len(calls), "budget": tc.Budget(epsilon=5)} | facts
    return tc.genotypes(calls, phenotype=phenotype, **facts)


def scores(calls, test="allelic", threshold=0.05, **facts):
    question = cohort(calls, **facts).top_snps(1, test=test, threshold=threshold)
    [found] = exact_of_plan(question.plan(epsilon=1))
    return found


def pairs(seed):
    """Return random cohorts of 80 people and 5 SNPs, and the same with one person's calls replaced."""
    rng = np.random.default_rng(seed)
    while True:
        calls = rng.binomial(2, rng.uniform(0, 1, 5), (80, 5)).astype(np.int8)
        calls[:40] = np.where(rng.random((40, 5)) < rng.uniform(0, 1), rng.integers(-1, 3, 5), calls[:40])
        other = calls.copy()
        other[rng.integers(0, 80)] = rng.integers(-1, 3, 5)
        yield calls, other


@pytest.mark.parametrize("test", ["allelic", "trend"])
@pytest.mark.parametrize("tries", [200, pytest.param(3_000, marks=pytest.mark.long)])
def test_one_person_moves_every_score_by_at_most_the_sensitivity(test, tries):
    data = cohort(np.zeros((80, 5), np.int8))

    def exact(calls):
        other = replace(data, _source=ArrayGenotypes(calls, None))
        return exact_of_plan(other.top_snps(1, test=test, threshold=0.05).plan(epsilon=1))[0]

    found = neighbours(exact, pairs(3), SCORE_SENSITIVITY, tries=tries, norm="max")
    assert found.holds
    assert found.largest >= 1_000


def test_missing_calls_count_as_the_likeliest_genotype_at_the_public_frequency():
    calls = RNG.integers(0, 3, (80, 2)).astype(np.int8)
    lost = calls.copy()
    lost[:10] = -1
    variants = {"chromosome": ["1", "1"], "position": [1, 2], "ref": ["A", "A"], "alt": ["C", "C"]}
    filled = lost.copy()
    filled[:10] = [2, 1]
    known = variants | {"frequency": [0.9, 0.5]}
    assert scores(lost, variants=known).tolist() == scores(filled, variants=known).tolist()
    filled[:10] = 0
    assert scores(lost).tolist() == scores(filled).tolist()


def test_the_release_names_the_snps_that_matter_and_comes_back_from_its_document():
    calls = RNG.binomial(2, 0.3, (2_000, 30)).astype(np.int8)
    calls[:1_000, 11] = RNG.binomial(2, 0.7, 1_000)
    status = np.repeat([1, 0], 1_000)
    data = cohort(calls, status)
    plan = data.top_snps(1, test="trend").plan(epsilon=2)
    assert data.plan_from(plan.to_json()) == plan
    release = plan.release()
    assert release["number"].value == (12,)
    assert release.keys["variant"] == ("variant 12",)
    assert "who is a case and who is a control is public" in str(release.certificate)
    assert "1,000 cases, 1,000 controls" in str(plan)
    assert plan.cost.epsilon(delta=0) <= 2.0000001


def test_people_without_a_status_do_not_count():
    calls = RNG.integers(0, 3, (90, 4)).astype(np.int8)
    status = [*STATUS.tolist(), *[None] * 5, *[float("nan")] * 5]
    assert scores(calls[:80]).tolist() == scores(calls, phenotype=status, people=90).tolist()


@pytest.mark.parametrize(
    ("facts", "options", "code"),
    [
        ({"status": "protected"}, {}, "not-allowed"),
        ({"people": None}, {}, "not-allowed"),
        ({}, {"test": "fisher"}, "bad-parameter"),
        ({}, {"k": 5}, "bad-parameter"),
        ({}, {"threshold": 5e-8, "test": "trend"}, None),
        ({}, {"threshold": 1e-40}, "bad-parameter"),
    ],
)
def test_what_has_no_proof_or_no_sense_is_refused_before_the_charge(facts, options, code):
    data = cohort(np.zeros((80, 4), np.int8), **facts)
    options = {"k": 1} | options
    if code is None:
        data.top_snps(**options).plan(epsilon=1)
        return
    with pytest.raises(TacitError) as refused:
        data.top_snps(**options).plan(epsilon=1)
    assert refused.value.code == code
    assert str(refused.value.fix)


def test_a_cohort_without_cases_or_without_a_phenotype_is_refused():
    for status in (np.ones(80), None):
        with pytest.raises(TacitError, match="phenotype"):
            cohort(np.zeros((80, 4), np.int8), status).top_snps(1).plan(epsilon=1)


def test_another_status_is_another_question():
    calls = np.zeros((80, 4), np.int8)
    plans = [
        cohort(calls, status).top_snps(1, threshold=0.05).plan(epsilon=1) for status in (STATUS, STATUS[::-1])
    ]
    assert plans[0].hash != plans[1].hash


def test_values_from_a_generator_are_read_at_every_release():
    calls = np.array([[2, 0]] * 30 + [[0, 0]] * 30, np.int8)
    cohort = tc.genotypes(
        calls, people={"a": 30, "b": 30}, status="public", budget=tc.Budget(epsilon=5_000),
        phenotype=(1 if i < 30 else 0 for i in range(60)), cluster_names=["a", "b"],
        clusters=("a" if i < 30 else "b" for i in range(60)),
    )  # fmt: skip
    for epsilon in (1_000, 1_001):
        assert cohort.top_snps(1, threshold=0.01).plan(epsilon=epsilon).release()["number"].value == (1,)
        found = cohort.frequencies(by="cluster").plan(epsilon=epsilon).release()["frequency"].value
        assert found == pytest.approx((1, 0, 0, 0), abs=0.1)


def test_a_generator_of_another_length_is_refused():
    with pytest.raises(tc.TacitError) as refused:
        tc.genotypes(np.zeros((4, 1)), people=4, phenotype=(i for i in range(3)), budget=tc.Budget(rho=1))
    assert refused.value.code == "bad-parameter"
