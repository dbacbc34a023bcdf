"""Summary statistics of all SNPs from randomised phenotypes: effects, standard errors and p-values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from tacit.core import AnswerTable, Cells, Content, needs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from numpy.typing import NDArray

    from tacit.core import JSON
    from tacit.genomes._blocks import GenotypeSource
    from tacit.genomes._sites import SiteList
    from tacit.show import Figure

_CELLS = 4_000_000  # numbers of a block that are in memory at once
_SHOWN = 10
_LISTS = ("chromosome", "position", "effect_allele", "other_allele", "name")


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
        from tacit.genomes._gwas_files import write_gwas_ssf

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
        given = document["frequency"]
        frequency = None if given is None else np.array(given, np.float64)
        read = cls(
            {name: tuple(document["sites"][name]) for name in _LISTS}, numbers["z"], numbers["error"],
            frequency, str(document["outcome"]), int(document["people"]), float(document["share"]),
            float(document["confidence"]),
        )  # fmt: skip
        lengths = {len(v) for v in read.sites.values()} | {len(read.error), len(read)}
        if len(lengths) != 1 or (frequency is not None and len(frequency) != len(read)):
            raise ValueError("not summary statistics")
        return read

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
        from tacit.genomes._gwas_figures import gwas_figures

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
    found = np.full(len(source.sites), np.nan)
    for block in source.blocks(max(1, _CELLS // max(1, people))):
        calls = block.genotypes
        g = calls.astype(np.float64)
        known = calls >= 0
        g[~known] = 0
        g -= (g.sum(axis=0) / np.maximum(known.sum(axis=0), 1))[None, :]
        g[~known] = 0
        spread = (g**2).sum(axis=0)
        left = spread - ((basis.T @ g) ** 2).sum(axis=0)
        varies = left > 1e-9 * np.maximum(spread, 1e-300)
        r = np.full(g.shape[1], np.nan)
        r[varies] = (rest @ g)[varies] / (np.sqrt(left[varies]) * (length or np.inf))
        found[block.places] = r
    return found, length / float(np.sqrt(people))


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
        known = np.isfinite(column)
        largest = float(np.abs(column[known]).max(initial=0.0))
        if not largest:
            continue
        scaled = np.where(known, column / largest, 0.0)
        scaled = np.where(known, scaled - scaled[known].mean(), 0.0)  # a missing number is the mean
        length = float(np.sqrt(scaled @ scaled))
        if length > 1e-12 * np.sqrt(people):  # not constant
            columns.append(scaled / length)
    directions, sizes, _ = np.linalg.svd(np.column_stack(columns), full_matrices=False)
    return np.asarray(directions[:, sizes > 1e-9 * sizes[0]])
