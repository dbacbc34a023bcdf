"""Phenotype randomisation: each participant's phenotype is drawn anew once, and then every test is free.

The goal is correlation with the true phenotype, not an unbiased copy of it: tests need correlation, and
effects are rescaled afterwards by the known slope (docs/proofs/gwas.md, "Phenotype randomisation").
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from tacit.genomes._arrays import as_number
from tacit.mechanisms import RandomizedResponse

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

_MOST_BINS = 64


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
        return max(range(2, _MOST_BINS + 1), key=self._trait_share) if self.is_trait else 2

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
        kept = self._kept(2)
        seen = (1 - kept) / 2 + kept * prevalence
        spread = seen * (1 - seen)
        # without a spread, all reports agree, and an epsilon this large randomises none of them
        return kept**2 * prevalence * (1 - prevalence) / spread if spread else 1.0

    def answers(self, phenotypes: object, people: int) -> NDArray[np.int64]:
        """Return the true answer of each person; a missing phenotype is a control, or the public mean."""
        values = np.full(people, np.nan)
        for place, one in enumerate(list(phenotypes)[:people]):  # type: ignore[call-overload]
            values[place] = as_number(one)
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
        """By how much the reports' mean moves when the phenotype's moves by 1 (a trait: by a deviation)."""
        kept = self._kept(self.bins)
        return kept * float(np.mean(bin_means(self.bins) ** 2)) if self.is_trait else kept


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
