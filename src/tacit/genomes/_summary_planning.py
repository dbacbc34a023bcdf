"""The plan of summary statistics: randomise each phenotype once, then test every SNP for free."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.core import Draft, Forecast, Step, Task
from tacit.errors import TacitError
from tacit.exact import rational
from tacit.fixes import Choose, Code
from tacit.genomes._arrays import as_number
from tacit.genomes._cohort_draft import missing_source
from tacit.genomes._phenotypes import PhenotypeRandomizer
from tacit.genomes._protection import check_unit
from tacit.genomes._summary_statistics import SummaryStatistics, correlations, normal_statistics, site_columns
from tacit.parameters import Listed
from tacit.report import percent

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from tacit.core import Goal
    from tacit.exact import Number
    from tacit.genomes._cohort import Cohort

_ASSUMES = (
    "only the phenotype of each participant is protected; genotypes, covariates and participation are not"
)
_TABLE = Code('tc.genotypes(..., covariates={"age": ages})')
_LIKELY = (0.5, 0.1, 0.01)
_TRAIT = Listed("numbers: a public mean and standard deviation", "(170, 10)", least=2, most=2)


def draft_summary_statistics(
    cohort: Cohort, goal: Goal, covariates: Sequence[str], trait: tuple[Number, Number] | None
) -> Draft[SummaryStatistics]:
    """Draft the randomisation of phenotypes; the released integers are the randomised phenotypes themselves.

    What is read off them uses genotypes and covariates, which this question does not protect. Covariates are
    no part of the document: another choice of them reads the same reports.
    """
    check_unit(cohort, "summary statistics", "phenotype")
    people = cohort.people
    assert people is not None  # noqa: S101 - it is public where phenotypes are protected
    assert goal.epsilon is not None  # noqa: S101 - the only total that this question takes
    mean, deviation = (None, None) if trait is None else _read_trait(trait)
    randomizer = PhenotypeRandomizer(goal.epsilon, mean, deviation)
    names = read_covariates(cohort, covariates)
    source, phenotypes = cohort._source, cohort._phenotype  # noqa: SLF001 - parts of the cohort
    label = {"statistic": "phenotypes of the participants", "assumes": _ASSUMES}
    task = Task(
        document={
            "genomes": "randomised phenotypes",
            "trait": None if trait is None else [mean, deviation],
            **cohort.public_facts,
        },
        open=lambda _: randomizer.answers(phenotypes, people),
        steps=(Step(randomizer.mechanism, lambda answers, _: answers, label),),
        reading=lambda noisy, level: _read_statistics(cohort, people, randomizer, names, noisy[0], level),
        unavailable=lambda: missing_source(source),
    )
    return Draft(
        task=task,
        asked="summary statistics of all SNPs, from phenotypes that are randomised once",
        forecast=lambda: _forecast(randomizer, people, len(cohort.sites), goal),
        facts=lambda: [
            ("protected", "the phenotype of each participant"),
            ("not protected", "genotypes, covariates, who takes part; the statistics depend on them exactly"),
            ("afterwards", "every SNP, covariate and later analysis of the randomised phenotypes is free"),
            *([("covariates", ", ".join(names))] if names else []),
            ("power", _power(randomizer, people)),
        ],
    )


def _read_statistics(
    cohort: Cohort, people: int, randomizer: PhenotypeRandomizer, covariates: tuple[str, ...],
    reports: Sequence[int], confidence: Fraction,
) -> SummaryStatistics:  # fmt: skip
    """Test each SNP against the randomised phenotypes."""
    source, table = cohort._source, cohort._covariates  # noqa: SLF001 - parts of the cohort
    outcome = randomizer.values(np.asarray(reports, np.int64))
    r, deviation = correlations(source, outcome, covariate_columns(table, covariates, people))
    z = normal_statistics(r, max(1, people - 2 - len(covariates)))
    error = np.full(len(z), deviation / (randomizer.slope * np.sqrt(people)))
    listed = source.sites.numbers.get("frequency")
    frequency = None if listed is None else np.asarray(listed, np.float64)
    if frequency is not None:
        inside = (frequency > 0) & (frequency < 1)
        wide = np.where(inside, 2 * frequency * (1 - frequency), np.nan)
        error = error / np.sqrt(wide)
    what = "standard deviations of the trait" if randomizer.is_trait else "difference in risk"
    return SummaryStatistics(
        site_columns(source.sites), z, error, frequency, what, people, _share(randomizer, outcome),
        float(confidence),
    )  # fmt: skip


def _share(randomizer: PhenotypeRandomizer, outcome: NDArray[np.float64]) -> float:
    """Return the share F; of a disease it uses the share of cases that the reports suggest."""
    if randomizer.is_trait:
        return randomizer.share()
    slope = randomizer.slope
    cases = float(np.clip((outcome.mean() - (1 - slope) / 2) / slope, 0.0, 1.0))
    return randomizer.share(cases)


def _forecast(randomizer: PhenotypeRandomizer, people: int, variants: int, goal: Goal) -> list[Forecast]:
    from scipy.stats import norm

    width = float(norm.ppf((1 + float(goal.confidence)) / 2))
    per = "standard deviation of the genotype"
    if randomizer.is_trait:
        error = width / np.sqrt(randomizer.share() * people)
        words = f"effects on the trait of {variants:,} SNPs, in standard deviations, for each {per}"
    else:
        error = width / (2 * randomizer.slope * np.sqrt(people))
        words = f"differences in risk of {variants:,} SNPs, for each {per}"
    note = "" if randomizer.is_trait else "if half of the reports say case, otherwise less"
    return [Forecast("beta", words, randomizer.describe(), float(error), note=note)]


def _power(randomizer: PhenotypeRandomizer, people: int) -> str:
    if randomizer.is_trait:
        share = randomizer.share()
        return f"that of {share * people:,.0f} people with exact phenotypes ({percent(share)} of {people:,})"
    shares = [(one, randomizer.share(one)) for one in _LIKELY]
    listed = "; ".join(
        f"{left * people:,.0f} if {percent(one, 0)} are cases ({percent(left)})" for one, left in shares
    )
    return f"that of this many of {people:,} people with exact phenotypes: {listed}"


def _read_trait(trait: tuple[Number, Number]) -> tuple[float, float]:
    mean, deviation = _TRAIT.read("trait", trait)
    return float(rational("trait", mean, zero=True, negative=True)), float(rational("trait", deviation))


def read_covariates(cohort: Cohort, names: Sequence[str]) -> tuple[str, ...]:
    """Return the wanted covariates, or refuse a name that the table does not have."""
    table = cohort._covariates  # noqa: SLF001 - the parts of a cohort
    known = tuple(str(name) for name in _table_names(table))
    for name in (names,) if isinstance(names, str) else names:
        if str(name) not in known:
            raise TacitError(
                "unknown-column",
                f"the covariates have no column {str(name)!r}",
                why="covariates are declared with the cohort, by name",
                fix=Choose(known, given=str(name)) if known else _TABLE,
            )
    return tuple(str(name) for name in ((names,) if isinstance(names, str) else names))


def _table_names(table: Any) -> Sequence[Any]:
    if table is None:
        return ()
    if isinstance(table, Mapping):
        return list(table)
    if hasattr(table, "columns"):
        return list(table.columns)
    shape = np.asarray(table).shape
    return [str(place) for place in range(shape[1] if len(shape) == 2 else 1)]


def covariate_columns(table: Any, names: tuple[str, ...], people: int) -> NDArray[np.float64]:
    """Return people x covariates as numbers, NaN where one is missing or is not a number."""
    listed = {str(name): name for name in _table_names(table)}
    found = np.full((people, len(names)), np.nan)
    for column, name in enumerate(names):
        named = isinstance(table, Mapping) or hasattr(table, "columns")
        values = table[listed[name]] if named else np.asarray(table).reshape(people, -1)[:, int(name)]
        for place, one in enumerate(list(values)[:people]):
            found[place, column] = as_number(one)
    return found
