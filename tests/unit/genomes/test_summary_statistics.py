"""Summary statistics from randomised phenotypes: power, valid p-values, effects, files and pictures.

docs/proofs/gwas.md, "Phenotype randomisation".
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import tacit as tc
from support.asking import task_of
from support.exact_integers import exact_of_plan
from tacit.errors import TacitError
from tacit.genomes._genotypes import ArrayGenotypes
from tacit.genomes._summary_statistics import PhenotypeRandomizer, bin_means, correlations, normal_statistics

RNG = np.random.default_rng(8)
PEOPLE, SNPS = 3_000, 40
FREQUENCY = RNG.uniform(0.1, 0.5, SNPS)
CALLS = RNG.binomial(2, FREQUENCY, (PEOPLE, SNPS)).astype(np.int8)
AGE = RNG.uniform(20, 80, PEOPLE)
VARIANTS = {
    "chromosome": ["1"] * 20 + ["X"] * 20, "position": list(range(10, 410, 10)), "ref": ["A"] * SNPS,
    "alt": ["G"] * SNPS, "id": [f"rs{i}" for i in range(SNPS)],
}  # fmt: skip
HEIGHT = 170 + 10 * (RNG.normal(size=PEOPLE) + 0.5 * (CALLS[:, 5] - 2 * FREQUENCY[5]))


def cohort(phenotype=HEIGHT, variants=VARIANTS, **facts):
    facts = {"unit": "phenotype", "covariates": {"age": AGE}, "budget": tc.Budget(epsilon=20)} | facts
    return tc.genotypes(CALLS, variants=variants, phenotype=phenotype, **facts)


@pytest.fixture(scope="module")
def release():
    known = VARIANTS | {"frequency": FREQUENCY.tolist()}
    return (
        cohort(variants=known)
        .summary_statistics(trait=(170, 10), covariates=["age"])
        .plan(epsilon=5)
        .release()
    )


# the figures of the reference page


@pytest.mark.parametrize(
    ("share", "figures"),
    [
        (0.5, (0.060, 0.214, 0.580, 0.819, 0.973)),
        (0.1, (0.023, 0.089, 0.332, 0.620, 0.930)),
        (0.01, (0.0025, 0.011, 0.052, 0.152, 0.592)),
    ],
)
def test_the_power_of_a_randomised_disease(share, figures):
    found = [PhenotypeRandomizer(Fraction(e)).share(share) for e in ("0.5", "1", "2", "3", "5")]
    assert found == pytest.approx(figures, abs=6e-4)


def test_the_power_of_a_randomised_trait_and_its_bins():
    found = [PhenotypeRandomizer(Fraction(e), 0.0, 1.0) for e in (1, 2, 3, 5, 8)]
    assert [one.bins for one in found] == [2, 2, 3, 7, 25]
    assert [one.share() for one in found] == pytest.approx([0.136, 0.369, 0.592, 0.852, 0.971], abs=6e-4)


def test_slope_and_power_agree_with_simulated_reports():
    rng = np.random.default_rng(4)
    trait = rng.normal(size=200_000)
    for randomizer, truth in (
        (PhenotypeRandomizer(Fraction(3), 0.0, 1.0), trait),
        (PhenotypeRandomizer(Fraction(2)), (trait > 1).astype(float)),
    ):
        reports = randomizer.values(randomizer.mechanism.release(randomizer.answers(truth, len(truth))))
        squared = np.corrcoef(reports, truth)[0, 1] ** 2
        share = randomizer.share() if randomizer.is_trait else randomizer.share(float(truth.mean()))
        assert squared == pytest.approx(share, rel=0.05)
        slope = np.cov(reports, truth)[0, 1] / truth.var()
        assert slope == pytest.approx(randomizer.slope, rel=0.05)


def test_the_reports_are_randomized_response_with_the_whole_price():
    plan = cohort().summary_statistics(trait=(170, 10)).plan(epsilon=2)
    [law] = plan.mechanisms
    assert law["mechanism"] == "randomized-response"
    assert plan.cost.epsilon(delta=0) == pytest.approx(2)
    assert "only the phenotype of each participant is protected" in law["assumes"]
    [answers] = exact_of_plan(plan)
    assert answers.shape == (PEOPLE,)
    assert set(answers.tolist()) <= set(range(2))


def test_a_phenotype_moves_one_answer_alone():
    changed = HEIGHT.copy()
    changed[17] = float("nan")
    plans = [cohort(h).summary_statistics(trait=(170, 10)).plan(epsilon=5) for h in (HEIGHT, changed)]
    [a], [b] = (exact_of_plan(plan) for plan in plans)
    assert np.flatnonzero(a != b).tolist() in ([], [17])
    assert plans[0] == plans[1]
    assert str(plans[0]) == str(plans[1])


@pytest.mark.parametrize("odd", [None, "x", float("inf"), 10**400, [1]])
def test_no_phenotype_makes_a_release_fail(odd):
    listed = [*HEIGHT.tolist()]
    listed[3] = odd
    for randomizer in (PhenotypeRandomizer(Fraction(1)), PhenotypeRandomizer(Fraction(1), 170.0, 10.0)):
        answers = randomizer.answers(listed, PEOPLE)
        assert set(answers.tolist()) <= {0, 1}


# statistics


def test_correlations_are_those_of_a_regression_with_covariates():
    calls = CALLS.copy()
    calls[:50, 3] = -1
    source = tc.genotypes(calls, budget=tc.Budget(rho=1))._source
    found, left = correlations(source, HEIGHT, AGE[:, None])
    wide = np.column_stack([np.ones(PEOPLE), AGE])
    rest = HEIGHT - wide @ np.linalg.lstsq(wide, HEIGHT, rcond=None)[0]
    for snp in (3, 5, 20):
        g = calls[:, snp].astype(float)
        g[g < 0] = g[g >= 0].mean()
        cleared = g - wide @ np.linalg.lstsq(wide, g, rcond=None)[0]
        assert found[snp] == pytest.approx(np.corrcoef(cleared, rest)[0, 1], abs=1e-9)
    assert left == pytest.approx(rest.std())


@pytest.mark.parametrize("unit", [1e-12, 1, 1e15, 1e300])
def test_covariates_are_adjusted_for_in_any_unit(unit):
    """Two groups differ in all SNPs and in the disease; a covariate says who is in which."""
    random = np.random.default_rng(3)
    group = np.repeat([0.0, 1.0], 1_000)
    calls = random.binomial(2, (0.3 + 0.4 * group)[:, None], (2_000, 60)).astype(np.int8)
    sick = (random.random(2_000) < 0.1 + 0.8 * group).astype(float)
    noise, repeated = random.normal(size=2_000), np.full(2_000, 7.0)
    source = ArrayGenotypes(calls, None)
    for columns in ([unit * group, noise], [group, unit * noise], [repeated, unit * group, group, noise]):
        found, _ = correlations(source, sick, np.column_stack(columns))
        plain, _ = correlations(source, sick, np.column_stack([group, noise]))
        assert found == pytest.approx(plain, abs=1e-9)
        assert (np.abs(found) * np.sqrt(2_000) > 1.96).mean() < 0.2


@pytest.mark.parametrize("free", [5, 20, 100, 10_000])
def test_p_values_are_those_of_students_law(free):
    from scipy.stats import norm, t

    r = np.array([-0.9, -0.6, -0.2, 0.01, 0.3, 0.7])
    own = norm.logsf(np.abs(normal_statistics(r, free)))
    exact = t.logsf(np.abs(r) * np.sqrt(free / (1 - r**2)), free)
    seen = np.isfinite(exact)
    assert own[seen] == pytest.approx(exact[seen], rel=0.02)
    assert np.sign(normal_statistics(r, free)).tolist() == [-1, -1, -1, 1, 1, 1]


def test_a_snp_that_everybody_shares_has_no_statistic():
    calls = CALLS[:, :3].copy()
    calls[:, 1] = 2
    calls[:, 2] = -1
    data = tc.genotypes(calls, unit="phenotype", phenotype=HEIGHT, budget=tc.Budget(epsilon=1))
    release = data.summary_statistics(trait=(170, 10)).plan(epsilon=1).release()
    assert np.isnan(release.z).tolist() == [False, True, True]
    assert tc.Release.from_json(release.to_json()).content.to_json() == release.content.to_json()


def test_the_effect_and_its_interval_are_in_units_of_the_trait(release):
    low, high = release.intervals
    assert int(np.argmin(release.p_value)) == 5
    assert release.beta[5] == pytest.approx(0.5, abs=0.15)
    assert (low < release.beta).all()
    assert (release.beta < high).all()


def test_standard_errors_do_not_depend_on_the_genotypes(release):
    """Two cohorts with other allele frequencies and the same reports have the same standard errors."""
    data = cohort(variants=VARIANTS)
    noisy = [RNG.integers(0, 7, PEOPLE).tolist()]
    rare = replace(data, _source=ArrayGenotypes((CALLS == 2).astype(np.int8), data.sites))
    plans = [one.summary_statistics(trait=(170, 10)).plan(epsilon=5) for one in (data, rare)]
    a, b = (task_of(plan).reading(noisy, Fraction(95, 100)) for plan in plans)
    assert a.error.tolist() == b.error.tolist()
    assert len(set(a.error.tolist())) == 1
    assert a.z.tolist() != b.z.tolist()
    shown = set(release.to_dict())
    assert not shown & {"n", "info", "effect_allele_frequency"}


def test_other_covariates_are_free():
    data = cohort()
    first = data.summary_statistics(trait=(170, 10)).plan(epsilon=5)
    other = data.summary_statistics(trait=(170, 10), covariates=["age"]).plan(epsilon=5)
    assert first == other
    first.release()
    before = str(data.remaining)
    other.release()
    assert str(data.remaining) == before


def test_a_plan_comes_back_from_its_document():
    data = cohort()
    for options in ({}, {"trait": (170.5, 10)}, {"covariates": ["age"], "trait": (170, 10)}):
        plan = data.summary_statistics(**options).plan(epsilon=1)
        assert data.plan_from(plan.to_json()) == plan
    assert dict(data.plan_from(plan.to_json()).facts)["covariates"] == "age"


def test_the_plan_states_the_power_in_people():
    assert "that of 408 people with exact phenotypes" in str(
        cohort().summary_statistics(trait=(170, 10)).plan(epsilon=1)
    ).replace("\n", " ")


@pytest.mark.parametrize(
    ("facts", "options", "code"),
    [
        ({"status": "public"}, {}, "bad-parameter"),
        ({"people": 7}, {}, "bad-parameter"),
        ({"unit": "person"}, {}, "not-allowed"),
        ({"unit": "person", "people": PEOPLE}, {}, "not-allowed"),
        ({"unit": "snp"}, {}, "bad-parameter"),
        ({"phenotype": None}, {}, "bad-parameter"),
        ({}, {"trait": (170, 0)}, "bad-parameter"),
        ({}, {"trait": (170,)}, "bad-parameter"),
        ({}, {"covariates": ["sex"]}, "unknown-column"),
        ({}, {"epsilon": 0}, "bad-parameter"),
    ],
)
def test_what_has_no_proof_or_no_sense_is_refused_before_the_charge(facts, options, code):
    with pytest.raises(TacitError) as refused:
        asked = {name: value for name, value in options.items() if name != "epsilon"}
        cohort(**facts).summary_statistics(**asked).plan(epsilon=options.get("epsilon", 1))
    assert refused.value.code == code


# one account, one promise


@pytest.mark.parametrize(
    "ask",
    [
        lambda data: data.frequencies().plan(rho=1),
        lambda data: data.hardy_weinberg().plan(rho=1),
        lambda data: data.missingness().plan(rho=1),
        lambda data: data.top_snps(1).plan(epsilon=1),
    ],
)
def test_an_account_of_phenotypes_answers_nothing_that_protects_people(ask):
    with pytest.raises(TacitError, match="protects phenotypes alone") as refused:
        ask(cohort(name="height"))
    assert refused.value.code == "not-allowed"
    assert 'tc.genotypes(..., name="height people", unit="person")' in str(refused.value)


def test_a_document_of_the_other_unit_is_refused_too():
    plan = cohort().summary_statistics(trait=(170, 10)).plan(epsilon=1)
    with pytest.raises(TacitError):
        cohort(unit="person", people=PEOPLE).plan_from(plan.to_json())


def test_account_and_certificate_carry_the_unit():
    data = cohort(name="height", ledger=(books := tc.Ledger.memory()))
    assert (data.people, data.adjacency) == (PEOPLE, "replace")
    release = data.summary_statistics(trait=(170, 10)).plan(epsilon=1).release()
    fields = release.certificate.fields
    assert (fields["dataset"]["unit"], fields["dataset"]["adjacency"]) == ("phenotype", "replace")
    assert "genotypes, covariates and participation are not" in fields["mechanisms"][0]["assumes"]
    with pytest.raises(TacitError) as refused:
        cohort(name="height", unit="person", people=PEOPLE, ledger=books)
    assert refused.value.code == "account-differs"


def test_the_refusal_teaches_a_second_declaration():
    with pytest.raises(TacitError) as refused:
        cohort(unit="person", name='say "a"').summary_statistics().plan(epsilon=1)
    assert r'tc.genotypes(..., name="say \"a\" phenotypes", unit="phenotype")' in str(refused.value)


def test_fixes_of_a_declaration_name_its_function():
    for facts in ({"name": ""}, {"budget": 3}):
        with pytest.raises(TacitError) as refused:
            cohort(**facts)
        assert "tc.genotypes(..., " in str(refused.value)


# files and pictures


def test_the_gwas_format_has_its_columns_in_order_and_reads_back(release, tmp_path):
    release.to_gwas_ssf(tmp_path / "height.tsv")
    lines = (tmp_path / "height.tsv").read_text().splitlines()
    assert lines[0].split("\t") == [
        "chromosome", "base_pair_location", "effect_allele", "other_allele", "beta", "standard_error",
        "effect_allele_frequency", "p_value", "ci_upper", "ci_lower", "rsid", "variant_id",
    ]  # fmt: skip
    assert lines[-1].split("\t")[:4] == ["23", "400", "G", "A"]
    assert lines[1].split("\t")[6] == f"{FREQUENCY[0]:.6g}"
    said = (tmp_path / "height.tsv-meta.yaml").read_text()
    assert 'data_file_name: "height.tsv"' in said
    assert f"sample_size: {PEOPLE}" in said
    again = tc.genomes.read_gwas_ssf(tmp_path / "height.tsv")
    assert again.z == pytest.approx(release.z, rel=1e-4, abs=1e-4)
    assert again.sites["chromosome"] == tuple(release.sites["chromosome"])
    assert (again.people, again.share, again.outcome) == (PEOPLE, release.share, release.outcome)


def test_a_missing_frequency_and_a_missing_statistic_are_na(tmp_path):
    calls = CALLS[:, :2].copy()
    calls[:, 1] = 0
    data = tc.genotypes(calls, unit="phenotype", phenotype=HEIGHT, budget=tc.Budget(epsilon=1))
    data.summary_statistics(trait=(170, 10)).plan(epsilon=1).release().to_gwas_ssf(tmp_path / "a.tsv")
    cells = (tmp_path / "a.tsv").read_text().splitlines()[2].split("\t")
    assert cells[4] == cells[6] == cells[7] == cells[10] == "NA"
    assert np.isnan(tc.genomes.read_gwas_ssf(tmp_path / "a.tsv").z).tolist() == [False, True]


def test_a_name_cannot_add_cells_or_lines_to_the_gwas_format(release, tmp_path):
    names = ("rs1\tX\nevil", *release.content.sites["name"][1:])
    changed = replace(release.content, sites=release.content.sites | {"name": names})
    changed.to_gwas_ssf(tmp_path / "lines.tsv")
    again = tc.genomes.read_gwas_ssf(tmp_path / "lines.tsv")
    assert len(again) == SNPS
    assert again.sites["name"][0] == "rs1_X_evil"


def test_a_damaged_description_is_refused(release, tmp_path):
    release.to_gwas_ssf(tmp_path / "lines.tsv")
    (tmp_path / "lines.tsv-meta.yaml").write_text("sample_size: many\n")
    with pytest.raises(TacitError) as refused:
        tc.genomes.read_gwas_ssf(tmp_path / "lines.tsv")
    assert refused.value.code == "bad-release"


@pytest.mark.parametrize("text", ["", "a\tb\n1\t2\n", "chromosome\tbase_pair_location\n"])
def test_another_file_is_refused(tmp_path, text):
    (tmp_path / "a.tsv").write_text(text)
    with pytest.raises(TacitError, match="not a GWAS summary-statistics file") as refused:
        tc.genomes.read_gwas_ssf(tmp_path / "a.tsv")
    assert refused.value.code == "bad-release"


@pytest.mark.parametrize("what", [None, "manhattan", "qq", "effects"])
def test_pictures_are_drawn(release, what, tmp_path):
    picture = release.plot(what)
    picture.savefig(tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 5_000
    assert "40 SNPs" in picture.axes[0].get_title(loc="left")


def test_an_unknown_picture_is_refused(release):
    with pytest.raises(TacitError, match="no picture"):
        release.plot("pie")


def test_the_release_is_saved_and_loaded(release, tmp_path):
    release.save(tmp_path / "a.json")
    again = tc.Release.load(tmp_path / "a.json")
    assert again.z.tolist() == release.z.tolist()
    assert str(again) == str(release)


def test_bin_means_are_those_of_the_normal_law():
    drawn = np.sort(np.random.default_rng(2).normal(size=400_000)).reshape(4, -1).mean(axis=1)
    assert bin_means(4) == pytest.approx(drawn, abs=0.01)


@pytest.mark.parametrize("epsilon", [1e-18, 100, 1000])
@pytest.mark.parametrize("phenotype", [[0.0] * 6, [1.0] * 6, [0, 1, 0, 1, 0, 1]])
def test_no_epsilon_and_no_phenotype_makes_a_charged_release_fail(phenotype, epsilon):
    """With a large epsilon all reports may agree; then nothing spreads and nothing is randomised."""
    calls = RNG.integers(0, 3, (6, 4))
    small = tc.genotypes(calls, unit="phenotype", phenotype=phenotype, budget=tc.Budget(epsilon=1000))
    statistics = small.summary_statistics().plan(epsilon=epsilon).release()
    assert statistics.content.share == (1 if epsilon > 1 else pytest.approx(0, abs=1e-30))
