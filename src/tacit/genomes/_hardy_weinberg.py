"""Hardy-Weinberg equilibrium as a noisy test: heterozygotes against what the allele frequency lets expect."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tacit.core import AnswerTable, Cells, Forecast, Plan, Goal
from tacit.genomes._cohort_task import CohortTask
from tacit.genomes._frequencies import COUNT_SHARE
from tacit.genomes._frequency_reading import error_of_shares, plain_cells, read_sizes, site_keys
from tacit.genomes._protection import check_unit
from tacit.genomes._sums import clipped_sums

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from tacit.core import JSON
    from tacit.genomes._cohort import Cohort
    from tacit.mechanisms import DiscreteGaussian, DiscreteLaplace

__all__ = ["EquilibriumTask", "equilibrium_values", "plan_hardy_weinberg"]

#: What a call of 0, 1, 2 copies and a missing one adds to: alleles, heterozygotes, missing calls.
_VALUES = ((-2, 0, 2, 0), (-1, 1, -1, 0), (0, 0, 0, 2))
#: How far one call moves the three by coming (1) or by changing (2): squared L2, and L1.
_SQUARE, _L1 = {1: 5, 2: 16}, {1: 3, 2: 5}


@dataclass(frozen=True, slots=True)
class EquilibriumTask(CohortTask):
    """The task of the test: the noisy number of people, where it is private, and three sums for each variant.

    One person moves them by at most 5 x variants in squared norm (16 if replaced);
    docs/proofs/genomes.md, section 4.
    """

    statistics: ClassVar[tuple[str, ...]] = ("alleles, heterozygotes and missing calls",)

    cohort: Cohort
    counting: DiscreteGaussian | DiscreteLaplace | None
    adding: DiscreteGaussian | DiscreteLaplace

    @property
    def question(self) -> JSON:
        """The sites and which numbers are public."""
        return {"genomes": "hardy-weinberg", **self.cohort.public_facts}

    def integers(self) -> Generator[Any, Any, None]:
        """Yield the number of people, if that is private, and the sums."""
        source = self.cohort._source  # noqa: SLF001
        people = source.people()
        if self.counting:
            yield np.array([people], np.int64)
        yield clipped_sums(source, equilibrium_values(len(self.cohort.sites)), np.zeros(people, np.int64))[0]

    def read(self, noisy: Sequence[Any], confidence: Fraction) -> AnswerTable:
        """Read the test off the noisy sums; the noise of each is in the denominator.

        z = T/2 + (S^2 - s^2)/(2 n), where S is the sum of g - 1 and T that of 2 het - 1 over the n calls.
        Under equilibrium its variance is 4 n p^2 q^2, to which the noise of T/2, of S (times S/n) and of n
        (times (S/n)^2 / 2) is added.
        """
        sums = np.asarray(noisy[-1], np.float64)
        sizes, _ = read_sizes(self.cohort, self.counting, (), noisy, confidence)
        alleles, both, lost = sums[0] / 2, sums[1], sums[2] / 2
        calls = np.maximum(sizes[0] - lost, 1)
        spread = math.sqrt(self.adding.variance) / 2  # of alleles, of heterozygotes, of missing calls
        known = 0.0 if self.counting is None else self.counting.variance
        mean = np.clip(alleles / calls, -1, 1)
        p = (1 + mean) / 2
        z = both / 2 + (alleles**2 - spread**2) / (2 * calls)
        noise = spread**2 * (1 + mean**2) + (spread**2 + known) * mean**4 / 4
        square = z**2 / (4 * calls * (p * (1 - p)) ** 2 + noise)
        chance = np.array([math.erfc(math.sqrt(one / 2)) for one in square.tolist()])
        half = self.adding.half_width(confidence) / 2 / calls
        shares = np.clip((both / calls + 1) / 2, 0, 1)
        ends = np.clip(shares - half, 0, 1), np.clip(shares + half, 0, 1)
        return AnswerTable(
            site_keys(self.cohort),
            {
                "heterozygotes": Cells(*(tuple(part.tolist()) for part in (shares, *ends))),
                "expected": plain_cells(2 * p * (1 - p), None),
                "chi_square": plain_cells(square, None),
                "p_value": plain_cells(chance, None),
            },
            float(confidence),
            {
                "heterozygotes": "share of the calls; the interval is for the noise of heterozygotes only",
                "expected": "share of heterozygotes in equilibrium, from the noisy frequency; no interval",
                "chi_square": "of the test of equilibrium; no interval: the p-value takes its place",
                "p_value": "of the test of equilibrium; it allows for the noise, so it has no interval",
            },
        )


def equilibrium_values(variants: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return what each call adds: one group, three parts, variant, call."""
    return np.broadcast_to(np.array(_VALUES, np.int64)[None, :, None, :], (1, 3, variants, 4))


def plan_hardy_weinberg(cohort: Cohort, goal: Goal) -> Plan[AnswerTable]:
    """Plan the test at every variant; see `Cohort.hardy_weinberg`."""
    check_unit(cohort, "Hardy-Weinberg tests")
    moved, adjacency, sites = cohort.moved, cohort.adjacency, len(cohort.sites)
    counting = None
    if cohort.people is None:
        counting = goal.part(COUNT_SHARE).noise(l1=1, l2_squared=1, adjacency=adjacency)
    adding = goal.part(1 - COUNT_SHARE if counting else Fraction(1)).noise(
        l1=_L1[moved] * sites, l2_squared=_SQUARE[moved] * sites, adjacency=adjacency
    )
    task = EquilibriumTask(cohort, counting, adding)
    half = adding.half_width(goal.confidence) / 2
    size = cohort.people
    return Plan.of(
        cohort,
        task,
        promised=goal.promised,
        forecast=[
            Forecast(
                "heterozygotes", "share of heterozygotes", adding.describe(), half / size if size else None,
                "" if size else error_of_shares(half),
            ),
            Forecast("p_value", "of equilibrium", adding.describe(), None, "a p-value has no interval"),
        ],
        facts=[
            ("variants", f"{sites:,}, a public list"),
            ("missing calls", "released too, and corrected for"),
            ("number of people", "public" if size else "private, noise is added"),
        ],
        confidence=float(goal.confidence),
        asked=f"Hardy-Weinberg tests of {sites:,} variants",
        request=lambda: {"kind": "hardy-weinberg", "goal": goal.to_json()},
    )  # fmt: skip
