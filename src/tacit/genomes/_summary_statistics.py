"""Summary statistics of all SNPs from randomised phenotypes: effects, standard errors and p-values.

Each participant's phenotype is drawn anew once, and then every test is free. The goal is correlation with the
true phenotype, not an unbiased copy of it: tests need correlation, and effects are rescaled afterwards by the
known slope (docs/proofs/gwas.md, "Phenotype randomisation").
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from tacit.core import AnswerTable, Cells, Content, Draft, Forecast, Step, Task, needs
from tacit.errors import TacitError
from tacit.exact import rational
from tacit.fixes import Choose, Code
from tacit.genomes._cohort_draft import check_unit, missing_source
from tacit.genomes._genotypes import as_number
from tacit.mechanisms import RandomizedResponse
from tacit.parameters import Listed
from tacit.report import percent

if TYPE_CHECKING:
    from collections.abc import Iterator
    from fractions import Fraction
    from pathlib import Path

    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from numpy.typing import NDArray

    from tacit.core import JSON, Goal
    from tacit.exact import Number
    from tacit.genomes._cohort import Cohort
    from tacit.genomes._genotypes import GenotypeSource
    from tacit.genomes._sites import SiteList
    from tacit.show import Figure


_CELLS = 4_000_000  # numbers of a block that are in memory at once
_SHOWN = 10
_LISTS = ("chromosome", "position", "effect_allele", "other_allele", "name")
_ASSUMES = (
    "only the phenotype of each participant is protected; genotypes, covariates and participation are not"
)
_TABLE = Code('tc.genotypes(..., covariates={"age": ages})')
_LIKELY = (0.5, 0.1, 0.01)
_TRAIT = Listed("numbers: a public mean and standard deviation", "(170, 10)", least=2, most=2)


@dataclass(frozen=True, slots=True, repr=False)
class SummaryStatistics(Content):
    """Effect, standard error and p-value of each SNP, from phenotypes that were randomised once.

    P-values are valid, because the randomisation is independent of the genotypes. Standard errors follow from
    public facts and the randomised phenotypes alone: they use the public frequency of an allele, never the
    cohort's own. So they do not reveal the cohort's allele frequencies, and neither do the effects.

    Parameters
    ----------
    sites
        One list for each of chromosome, position, effect_allele, other_allele and name.
    z
        The test statistic of each SNP, standard normal if there is no association; NaN where all people have
        the same genotype.
    error
        The standard error of each effect.
    frequency
        The public frequency of the effect allele, if there is one: effects are then for each copy of the
        allele, else for each standard deviation of the genotype.
    outcome
        What an effect is measured in.
    people, share
        The public number of people, and the share of them to which the power of a test corresponds.
    confidence
        How often the interval of an effect covers it.
    """

    kind: ClassVar[str] = "gwas-summary-statistics"

    sites: Mapping[str, tuple[Any, ...]]
    z: NDArray[np.float64]
    error: NDArray[np.float64]
    frequency: NDArray[np.float64] | None
    outcome: str
    people: int
    share: float
    confidence: float

    @property
    def beta(self) -> NDArray[np.float64]:
        """The effect of each SNP."""
        return self.z * self.error

    @property
    def p_value(self) -> NDArray[np.float64]:
        """The p-value of each SNP."""
        from scipy.stats import norm

        return np.asarray(2 * norm.sf(np.abs(self.z)))

    @property
    def neg_log_10_p_value(self) -> NDArray[np.float64]:
        """The p-value as -log10 p, which does not become 0."""
        from scipy.stats import norm

        return np.asarray(-(norm.logsf(np.abs(self.z)) + np.log(2)) / np.log(10))

    @property
    def intervals(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The lower and upper ends of the intervals of the effects."""
        from scipy.stats import norm

        width = norm.ppf((1 + self.confidence) / 2) * self.error
        return self.beta - width, self.beta + width

    @property
    def per(self) -> str:
        """What an effect is for: a copy of the allele, or a standard deviation of the genotype."""
        return "standard deviation of the genotype" if self.frequency is None else "copy of the allele"

    def __len__(self) -> int:
        return len(self.z)

    def top(self, k: int = _SHOWN) -> AnswerTable:
        """Return the k SNPs with the smallest p-values: free, because nothing more is learned."""
        order = np.argsort(-np.nan_to_num(np.abs(self.z), nan=-1.0), kind="stable")[:k]
        low, high = self.intervals
        public = {
            name: tuple(self.sites[name][i] for i in order) for name in ("chromosome", "position", "name")
        }
        return AnswerTable(
            public | {"p_value": tuple(f"{one:.3g}" for one in self.p_value[order])},
            {"beta": Cells(_plain(self.beta[order]), _plain(low[order]), _plain(high[order]))},
            self.confidence,
            notes={
                "beta": f"{self.outcome} for each {self.per}; the interval covers chance and randomisation"
            },
        )

    def to_dict(self) -> dict[str, list[Any]]:
        """Return all columns by name."""
        low, high = self.intervals
        numbers = {"beta": self.beta, "standard_error": self.error, "p_value": self.p_value,
                   "ci_lower": low, "ci_upper": high}  # fmt: skip
        return {name: list(self.sites[name]) for name in _LISTS} | {
            name: values.tolist() for name, values in numbers.items()
        }

    def to_pandas(self) -> pd.DataFrame:
        """Return a pandas data frame (extra ``pandas``)."""
        needs("to_pandas", "pandas", "tacit[pandas]")
        import pandas as pd

        return pd.DataFrame(self.to_dict())

    def to_polars(self) -> pl.DataFrame:
        """Return a Polars data frame (``pip install polars``)."""
        needs("to_polars", "polars", "polars")
        import polars as pl

        return pl.DataFrame(self.to_dict(), strict=False)

    def to_arrow(self) -> pa.Table:
        """Return an Arrow table (extra ``pandas``)."""
        needs("to_arrow", "pyarrow", "tacit[pandas]")
        import pyarrow as pa

        return pa.table(self.to_dict())

    def to_gwas_ssf(self, path: str | Path) -> None:
        """Write the GWAS summary-statistics format: a table with tabs, and its description as YAML beside it.

        The columns ``n`` and ``info`` are not written, and the frequency is the public one or NA.
        """
        from tacit.genomes._summary_output import write_gwas_ssf

        write_gwas_ssf(self, path)

    def to_json(self) -> JSON:
        """Return the statistics as JSON."""
        return {
            "sites": {name: list(self.sites[name]) for name in _LISTS},
            "z": list(_plain(self.z)),
            "error": list(_plain(self.error)),
            "frequency": None if self.frequency is None else list(_plain(self.frequency)),
            "outcome": self.outcome,
            "people": self.people,
            "share": self.share,
            "confidence": self.confidence,
        }

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Read the statistics back; raises ``ValueError`` where it is not such a document."""
        numbers = {name: np.array(document[name], np.float64) for name in ("z", "error")}
        written_frequency = document["frequency"]
        frequency = None if written_frequency is None else np.array(written_frequency, np.float64)
        statistics = cls(
            {name: tuple(document["sites"][name]) for name in _LISTS}, numbers["z"], numbers["error"],
            frequency, str(document["outcome"]), int(document["people"]), float(document["share"]),
            float(document["confidence"]),
        )  # fmt: skip
        lengths = {len(v) for v in statistics.sites.values()} | {len(statistics.error), len(statistics)}
        if len(lengths) != 1 or (frequency is not None and len(frequency) != len(statistics)):
            raise ValueError("not summary statistics")
        return statistics

    def text(self, marks: tuple[str, ...] = ()) -> str:
        """Write the SNPs with the smallest p-values for a terminal."""
        head = (
            f"{len(self):,} SNPs, {self.people:,} people; a test has about the power of "
            f"{self.share * self.people:,.0f} people with exact phenotypes\n"
        )
        return head + self.top().text(marks)

    def answer_tables(self) -> Iterator[tuple[str, AnswerTable]]:
        """Yield all SNPs, those with the smallest p-values first."""
        yield "by p-value", self.top(len(self.beta))

    def figures(self, what: Any = None) -> tuple[Figure, ...]:
        """Return a "manhattan" plot, a quantile plot ("qq") and the largest effects ("effects")."""
        from tacit.genomes._summary_output import gwas_figures

        return gwas_figures(self, what)

    def __repr__(self) -> str:
        return self.text()


def _plain(values: NDArray[np.float64]) -> tuple[float | None, ...]:
    return tuple(None if np.isnan(one) else one for one in values.tolist())


def site_columns(sites: SiteList) -> dict[str, tuple[Any, ...]]:
    """Return the public columns of the variants as summary statistics name them."""
    return dict(
        zip(_LISTS, (sites.chromosome, sites.position, sites.alt, sites.ref, sites.names), strict=True)
    )


def correlations(
    source: GenotypeSource, outcome: NDArray[np.float64], covariates: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float]:
    """Return the correlation of each SNP with an outcome, both cleared of covariates; NaN if it is constant.

    The second value is the standard deviation of the outcome after that.

    Parameters
    ----------
    source
        The genotypes. A missing call counts as the SNP's mean.
    outcome
        One number for each person.
    covariates
        People x covariates, without the constant. A missing number counts as its column's mean.
    """
    people = len(outcome)
    basis = _basis(covariates)
    rest = outcome - basis @ (basis.T @ outcome)
    length = float(np.sqrt(rest @ rest))
    correlation = np.full(len(source.sites), np.nan)
    for block in source.blocks(max(1, _CELLS // max(1, people))):
        calls = block.genotypes
        g = calls.astype(np.float64)
        is_called = calls >= 0
        g[~is_called] = 0
        g -= (g.sum(axis=0) / np.maximum(is_called.sum(axis=0), 1))[None, :]
        g[~is_called] = 0
        spread = (g**2).sum(axis=0)
        residual = spread - ((basis.T @ g) ** 2).sum(axis=0)
        varies = residual > 1e-9 * np.maximum(spread, 1e-300)
        r = np.full(g.shape[1], np.nan)
        r[varies] = (rest @ g)[varies] / (np.sqrt(residual[varies]) * (length or np.inf))
        correlation[block.places] = r
    return correlation, length / float(np.sqrt(people))


def normal_statistics(correlation: NDArray[np.float64], free: int) -> NDArray[np.float64]:
    """Return a correlation as a statistic that is standard normal without association.

    The usual statistic has Student's law with this many degrees of freedom, so normal p-values of it would be
    too small in a small cohort. This is its normal quantile, in the closed form of Wallace (1959).

    Examples
    --------
    >>> from scipy.stats import norm, t
    >>> z = normal_statistics(np.array([0.5]), 30)
    >>> round(float(norm.sf(z[0])), 4), round(float(t.sf(0.5 * np.sqrt(30 / 0.75), 30)), 4)
    (0.0018, 0.0018)
    """
    square = np.minimum(correlation**2, 1 - 1e-12)
    return np.asarray(
        np.sign(correlation) * (8 * free + 1) / (8 * free + 3) * np.sqrt(-free * np.log1p(-square))
    )


def _basis(covariates: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return orthonormal columns that span the constant and the covariates, whatever their units are.

    Each covariate is centred and brought to length 1 first. Without this, one in large units (a time in
    nanoseconds) would make the constant and all the others look like rounding errors.
    """
    people = len(covariates)
    columns = [np.full(people, 1 / np.sqrt(people))]
    for column in covariates.T:
        is_finite = np.isfinite(column)
        largest = float(np.abs(column[is_finite]).max(initial=0.0))
        if not largest:
            continue
        scaled = np.where(is_finite, column / largest, 0.0)
        scaled = np.where(is_finite, scaled - scaled[is_finite].mean(), 0.0)  # a missing number is the mean
        length = float(np.sqrt(scaled @ scaled))
        if length > 1e-12 * np.sqrt(people):  # not constant
            columns.append(scaled / length)
    directions, sizes, _ = np.linalg.svd(np.column_stack(columns), full_matrices=False)
    return np.asarray(directions[:, sizes > 1e-9 * sizes[0]])


_MAX_BINS = 64


@dataclass(frozen=True)
class PhenotypeRandomizer:
    """How a phenotype is randomised: a disease by two answers, a trait by public bins of equal chance.

    Guarantee: that of `RandomizedResponse`, for the phenotype of each participant.

    Parameters
    ----------
    epsilon
        The promise.
    mean, deviation
        Of a trait: its public mean and standard deviation. None for a disease (1 case, 0 control).

    Examples
    --------
    >>> from fractions import Fraction
    >>> disease, trait = PhenotypeRandomizer(Fraction(1)), PhenotypeRandomizer(Fraction(3), 170.0, 10.0)
    >>> round(disease.share(0.5), 3), trait.bins, round(trait.share(), 3)
    (0.214, 3, 0.592)
    """

    epsilon: Fraction
    mean: float | None = None
    deviation: float | None = None

    @property
    def is_trait(self) -> bool:
        """Whether the phenotype is a number, not a disease."""
        return self.mean is not None

    @cached_property
    def bins(self) -> int:
        """How many answers there are: of a trait as many as keep the most."""
        return max(range(2, _MAX_BINS + 1), key=self._trait_share) if self.is_trait else 2

    @cached_property
    def mechanism(self) -> RandomizedResponse:
        """What randomises the phenotypes."""
        return RandomizedResponse(epsilon=self.epsilon, categories=self.bins)

    def describe(self) -> str:
        """Return the randomisation in words."""
        return f"randomized response among {self.bins} answers"

    def _kept(self, bins: int) -> float:
        """Return how much of a difference in answers the reports keep: p - q."""
        return -math.expm1(-self.epsilon) / (1 + (bins - 1) * math.exp(-self.epsilon))

    def _trait_share(self, bins: int) -> float:
        return self._kept(bins) ** 2 * float(np.mean(bin_means(bins) ** 2))

    def share(self, prevalence: float = 0.5) -> float:
        """Return F: tests have the power of F N people. For a disease it depends on the share of cases."""
        if self.is_trait:
            return self._trait_share(self.bins)
        retention = self._kept(2)
        reported = (1 - retention) / 2 + retention * prevalence
        spread = reported * (1 - reported)
        # without a spread, all reports agree, and an epsilon this large randomises none of them
        return retention**2 * prevalence * (1 - prevalence) / spread if spread else 1.0

    def answers(self, phenotypes: object, people: int) -> NDArray[np.int64]:
        """Return the true answer of each person; a missing phenotype is a control, or the public mean."""
        values = np.full(people, np.nan)
        for index, phenotype in enumerate(list(phenotypes)[:people]):  # type: ignore[call-overload]
            values[index] = as_number(phenotype)
        if self.mean is None or self.deviation is None:
            return np.asarray(values == 1, np.int64)
        with np.errstate(over="ignore"):  # a warning about a value would say something about it
            scaled = np.nan_to_num((values - self.mean) / self.deviation, nan=0.0)
        return np.asarray(np.searchsorted(_edges(self.bins), scaled, side="right"), np.int64)

    def values(self, reports: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return reports as the numbers that tests use: 0 and 1, or the mean of the bin."""
        return np.asarray(bin_means(self.bins)[reports] if self.is_trait else reports, np.float64)

    @property
    def slope(self) -> float:
        """How far the reports' mean moves when the phenotype's moves by 1 (a trait: by a deviation)."""
        retention = self._kept(self.bins)
        return retention * float(np.mean(bin_means(self.bins) ** 2)) if self.is_trait else retention


def _edges(bins: int) -> NDArray[np.float64]:
    from scipy.stats import norm

    return np.asarray(norm.ppf(np.arange(1, bins) / bins))


def bin_means(bins: int) -> NDArray[np.float64]:
    """Return the means of a standard normal number in bins of equal chance.

    Examples
    --------
    >>> bin_means(2).round(4).tolist()
    [-0.7979, 0.7979]
    """
    from scipy.stats import norm

    density = np.concatenate([[0.0], norm.pdf(_edges(bins)), [0.0]])
    return np.asarray(bins * (density[:-1] - density[1:]))


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
    public_frequency = source.sites.numbers.get("frequency")
    frequency = None if public_frequency is None else np.asarray(public_frequency, np.float64)
    if frequency is not None:
        inside = (frequency > 0) & (frequency < 1)
        allele_variance = np.where(inside, 2 * frequency * (1 - frequency), np.nan)
        error = error / np.sqrt(allele_variance)
    unit = "standard deviations of the trait" if randomizer.is_trait else "difference in risk"
    return SummaryStatistics(
        site_columns(source.sites), z, error, frequency, unit, people, _share(randomizer, outcome),
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
    shares_left = "; ".join(
        f"{left * people:,.0f} if {percent(one, 0)} are cases ({percent(left)})" for one, left in shares
    )
    return f"that of this many of {people:,} people with exact phenotypes: {shares_left}"


def _read_trait(trait: tuple[Number, Number]) -> tuple[float, float]:
    mean, deviation = _TRAIT.read("trait", trait)
    return float(rational("trait", mean, zero=True, negative=True)), float(rational("trait", deviation))


def read_covariates(cohort: Cohort, names: Sequence[str]) -> tuple[str, ...]:
    """Return the wanted covariates, or refuse a name that the table does not have."""
    table = cohort._covariates  # noqa: SLF001 - the parts of a cohort
    available = tuple(str(name) for name in _table_names(table))
    for name in (names,) if isinstance(names, str) else names:
        if str(name) not in available:
            raise TacitError(
                "unknown-column",
                f"the covariates have no column {str(name)!r}",
                why="covariates are declared with the cohort, by name",
                fix=Choose(available, given=str(name)) if available else _TABLE,
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
    columns = {str(name): name for name in _table_names(table)}
    numbers = np.full((people, len(names)), np.nan)
    for column, name in enumerate(names):
        has_names = isinstance(table, Mapping) or hasattr(table, "columns")
        values = table[columns[name]] if has_names else np.asarray(table).reshape(people, -1)[:, int(name)]
        for index, cell in enumerate(list(values)[:people]):
            numbers[index, column] = as_number(cell)
    return numbers
