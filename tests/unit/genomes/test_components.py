"""Principal components: exact products, sensitivity, what the noise leaves, and refusals.

docs/proofs/genomes.md, section 6. The neighbour search of `test_frequencies.py` covers components too.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import tacit as tc
from support.cohorts import cohort_of, exact_integers, moves, random_neighbours
from tacit.core import members_of
from tacit.errors import TacitError
from tacit.genomes import _sums
from tacit.genomes._components import product_sensitivity
from tacit.genomes._genotypes import ArrayGenotypes
from tacit.genomes._sums import clipped_products, scale_down, scales

RNG = np.random.default_rng(3)


def two_populations(people, variants, seed=0):
    """Return calls of two populations, and the public frequencies that both are near."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.1, 0.5, variants)
    own = np.clip(p + rng.normal(size=(2, variants)) * np.sqrt(0.05 * p * (1 - p)), 0.01, 0.99)
    return rng.binomial(2, own[rng.integers(0, 2, people)]).astype(np.int8), p


@pytest.mark.parametrize("clip", [None, 40])
@pytest.mark.parametrize("held", [1 << 26, 24])
def test_products_are_exact_in_any_slices(monkeypatch, clip, held):
    monkeypatch.setattr(_sums, "_HELD_BYTES", held)
    monkeypatch.setattr(_sums, "_CELLS", 70)
    calls = RNG.integers(-1, 3, (101, 9)).astype(np.int8)
    places = np.array([0, 2, 3, 7, 8])
    values = RNG.integers(-16, 17, (5, 4))
    each = np.stack([values[i][calls[:, j]] for i, j in enumerate(places)])  # -1 is the last column
    if clip is not None:
        each = scale_down(each, scales((each**2).sum(axis=0), clip))
    sums, products = clipped_products(ArrayGenotypes(calls, None), places, values, clip)
    assert sums.tolist() == each.sum(axis=1).tolist()
    assert products.tolist() == (each @ each.T).tolist()


def test_the_bound_needs_its_diagonal_term():
    """Half of the fourth power alone, the bound for many variants, is too small for few."""
    random = np.random.default_rng(6)
    worst = 0.0
    for _ in range(300):
        one, other, reference = random_neighbours(random, replace=False)
        plans = [cohort_of(rows).components(1, reference=reference).plan(rho=1) for rows in (one, other)]
        changes, mechanisms = moves(*plans)
        clip = members_of(plans[0])[0].task.question["clip_squared"]
        assert changes[-1][1] <= mechanisms[-1].sensitivity_squared
        worst = max(worst, changes[-1][1] / (clip**2 / 2))
    assert worst > 1.5
    assert product_sensitivity(100, 3, 50, 1) == (2550, 5450)
    assert product_sensitivity(100, 30, 50, 2) == (5100, 20000)


def test_the_first_component_is_that_of_the_exact_data():
    calls, reference = two_populations(20_000, 100)
    spread = np.cov(calls.T)
    exact = np.linalg.eigh(spread)[1][:, -1]
    cohort = tc.genotypes(calls, budget=tc.Budget(rho=1))
    release = cohort.components(2, reference=reference).plan(rho=0.1).release()
    found = np.array(release["component_1"].value)
    cosine = float(found @ exact) ** 2
    assert cosine > 0.998
    assert release.agreement[0] == pytest.approx(cosine, abs=1e-3)
    assert release.shares[0] == pytest.approx(np.linalg.eigvalsh(spread)[-1] / np.trace(spread), abs=0.004)
    assert release.shares[0] > 3 * release.noise
    assert release["centre"].value == pytest.approx(calls.mean(axis=0), abs=0.05)
    assert release.agreement[1] < 0.9  # no second population: at most a chance pattern of the sample


def test_few_people_are_told_that_it_is_noise():
    calls, reference = two_populations(200, 100)
    cohort = tc.genotypes(calls, people=200, budget=tc.Budget(rho=1))
    plan = cohort.components(1, reference=reference).plan(rho=0.05)
    assert "too few people" in plan.forecast[0].note
    task, random = members_of(plan)[0].task, np.random.default_rng(1)
    noisy = [  # fixed noise: of fresh noise, about 1 draw in 100 has a slight agreement
        (one + np.rint(random.normal(0, float(mechanism.sigma), one.shape)).astype(np.int64)).tolist()
        for one, mechanism in zip(exact_integers(plan), task.mechanisms, strict=True)
    ]
    assert task.reading(noisy, Fraction(95, 100)).agreement == (0.0,)


def test_more_components_are_free():
    cohort = tc.genomes.example_cohort(budget=tc.Budget(rho=1))
    first = cohort.components(1).plan(rho=0.5).release()
    left = str(cohort.remaining)
    more = cohort.components(3).plan(rho=0.5).release()
    assert str(cohort.remaining) == left
    assert more["component_1"].value == first["component_1"].value
    assert list(more.columns) == ["centre", "component_1", "component_2", "component_3"]


def test_chosen_variants_come_back_with_plan_and_release(tmp_path):
    cohort = tc.genomes.example_cohort(budget=tc.Budget(rho=1))
    plan = cohort.components(2, reference="frequency", variants=["rs900003", 7, 2]).plan(rho=0.1)
    assert cohort.plan_from(plan.to_json()).hash == plan.hash
    assert plan.hash == cohort.components(2, reference="frequency", variants=[2, 4, 7]).plan(rho=0.1).hash
    release = plan.release()
    assert release.keys["id"] == ("rs900001", "rs900003", "rs900006")
    release.save(tmp_path / "a.json")
    again = tc.Release.load(tmp_path / "a.json")
    assert (again.shares, again.noise, again.agreement) == (release.shares, release.noise, release.agreement)


@pytest.mark.parametrize(
    "options",
    [{"k": 0}, {"k": 4, "variants": [1, 2, 3]}, {"variants": []}, {"variants": [0]}, {"variants": [1, 1]},
     {"variants": ["rs1"]}, {"variants": [61]}, {"clip": 2}],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(options):
    cohort = tc.genomes.example_cohort(budget=tc.Budget(rho=1))
    with pytest.raises(TacitError) as refused:
        cohort.components(**({"k": 1} | options)).plan(rho=0.1)
    assert refused.value.code == "bad-parameter"


def test_too_many_variants_and_the_other_unit_are_refused():
    with pytest.raises(TacitError, match="at most 2,000 variants"):
        tc.genotypes(np.zeros((3, 2_001), np.int8), budget=tc.Budget(rho=1)).components(2).plan(rho=0.1)
    phenotypes = tc.genotypes(
        np.zeros((3, 2)), unit="phenotype", phenotype=[1, 0, 1], budget=tc.Budget(rho=1)
    )
    with pytest.raises(TacitError, match="protects phenotypes alone"):
        phenotypes.components(1).plan(rho=0.1)
