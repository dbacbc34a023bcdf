"""The plan of summary statistics: randomise each phenotype once, then test every SNP for free."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.core import Forecast, Plan, Goal
from tacit.errors import TacitError, bad_parameter
from tacit.exact import rational
from tacit.fixes import Choose, Code, Set
from tacit.genomes._arrays import as_number
from tacit.genomes._cohort import missing_source
from tacit.genomes._phenotypes import PhenotypeRandomizer
from tacit.genomes._protection import check_unit
from tacit.genomes._summary_statistics import SummaryStatistics, correlations, normal_statistics, site_columns
from tacit.report import percent

if TYPE_CHECKING:
    from collections.abc import Generator
    from fractions import Fraction

    from numpy.typing import NDArray

    from tacit.core import JSON, Measurement
    from tacit.exact import Number
    from tacit.genomes._blocks import GenotypeSource
    from tacit.genomes._cohort import Cohort

__all__ = ["SummaryTask", "plan_summary_statistics"]

_ASSUMES = (
    "only the phenotype of each participant is protected; genotypes, covariates and participation are not"
)
_TABLE = Code('tc.genotypes(..., covariates={"age": ages})')
_LIKELY = (0.5, 0.1, 0.01)


@dataclass(frozen=True)
class SummaryTask:
    """Randomise phenotypes; the released integers are the randomised phenotypes themselves.

    What is read off them uses genotypes and covariates, which this question does not protect.
    """

    randomizer: PhenotypeRandomizer
    facts: Mapping[str, JSON]
    people: int
    covariates: tuple[str, ...]
    source: GenotypeSource
    phenotypes: Any
    table: Any

    @property
    def question(self) -> JSON:
        """What is randomised. Covariates are no part of it: another choice of them reads the same reports."""
        r = self.randomizer
        trait = None if r.mean is None or r.deviation is None else [r.mean, r.deviation]
        return {"genomes": "randomised phenotypes", "trait": trait, **self.facts}

    @property
    def mechanisms(self) -> Sequence[Measurement]:
        """The randomiser, which answers for each participant."""
        return [self.randomizer.mechanism]

    @property
    def labels(self) -> Sequence[Mapping[str, JSON]]:
        """What the certificate says: what is protected, and what is not."""
        return [{"statistic": "phenotypes of the participants", "assumes": _ASSUMES}]

    def unavailable(self) -> TacitError | None:
        """Return a refusal if the file is not there now."""
        return missing_source(self.source)

    def integers(self) -> Generator[Any, Any, None]:
        """Yield the true answer of each participant."""
        yield self.randomizer.answers(self.phenotypes, self.people)

    def read(self, noisy: Sequence[Any], confidence: Fraction) -> SummaryStatistics:
        """Test each SNP against the randomised phenotypes."""
        outcome = self.randomizer.values(np.asarray(noisy[0], np.int64))
        columns = covariate_columns(self.table, self.covariates, self.people)
        r, deviation = correlations(self.source, outcome, columns)
        z = normal_statistics(r, max(1, self.people - 2 - len(self.covariates)))
        error = np.full(len(z), deviation / (self.randomizer.slope * np.sqrt(self.people)))
        listed = self.source.sites.numbers.get("frequency")
        frequency = None if listed is None else np.asarray(listed, np.float64)
        if frequency is not None:
            inside = (frequency > 0) & (frequency < 1)
            wide = np.where(inside, 2 * frequency * (1 - frequency), np.nan)
            error = error / np.sqrt(wide)
        what = "standard deviations of the trait" if self.randomizer.is_trait else "difference in risk"
        return SummaryStatistics(
            site_columns(self.source.sites),
            z,
            error,
            frequency,
            what,
            self.people,
            self._share(outcome),
            float(confidence),
        )

    def _share(self, outcome: NDArray[np.float64]) -> float:
        """Return the share F; of a disease it uses the share of cases that the reports suggest."""
        if self.randomizer.is_trait:
            return self.randomizer.share()
        slope = self.randomizer.slope
        cases = float(np.clip((outcome.mean() - (1 - slope) / 2) / slope, 0.0, 1.0))
        return self.randomizer.share(cases)


def plan_summary_statistics(
    cohort: Cohort,
    *,
    covariates: Sequence[str],
    trait: tuple[Number, Number] | None,
    epsilon: Number,
    confidence: Number,
) -> Plan[SummaryStatistics]:
    """Plan the randomisation; everything here is a public fact."""
    check_unit(cohort, "summary statistics", "phenotype")
    goal = Goal.read(epsilon=epsilon, confidence=confidence)
    people = cohort.people
    assert people is not None  # noqa: S101 - it is public where phenotypes are protected
    mean, deviation = (None, None) if trait is None else _read_trait(trait)
    assert goal.epsilon is not None  # noqa: S101 - read checks it
    randomizer = PhenotypeRandomizer(goal.epsilon, mean, deviation)
    names = _read_covariates(cohort, covariates)
    task = SummaryTask(
        randomizer, cohort.public_facts, people, names, cohort._source,  # noqa: SLF001 - parts of a cohort
        cohort._phenotype, cohort._covariates,  # noqa: SLF001
    )  # fmt: skip
    return Plan.of(
        cohort,
        task,
        promised=goal.promised,
        forecast=lambda: _forecast(randomizer, people, len(cohort.sites), goal),
        facts=lambda: [
            ("protected", "the phenotype of each participant"),
            ("not protected", "genotypes, covariates, who takes part; the statistics depend on them exactly"),
            ("afterwards", "every SNP, covariate and later analysis of the randomised phenotypes is free"),
            *([("covariates", ", ".join(names))] if names else []),
            ("power", _power(randomizer, people)),
        ],
        confidence=float(goal.confidence),
        asked="summary statistics of all SNPs, from phenotypes that are randomised once",
        request=lambda: {
            "kind": "summary-statistics", "goal": goal.to_json(), "covariates": list(names),
            "trait": None if trait is None else [str(rational("trait", one, zero=True, negative=True))
                                                 for one in trait],
        },
    )  # fmt: skip


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
    given: object = trait
    if not isinstance(given, Sequence) or len(given) != 2 or isinstance(given, str):
        raise bad_parameter("trait", "a public mean and standard deviation", trait, fix=Set(trait=(170, 10)))
    mean = rational("trait", trait[0], zero=True, negative=True)
    return float(mean), float(rational("trait", trait[1]))


def _read_covariates(cohort: Cohort, names: Sequence[str]) -> tuple[str, ...]:
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
