"""Quality control of variants: Hardy-Weinberg equilibrium, and missing calls.

The noisy test of the equilibrium compares heterozygotes with what the allele frequency lets expect. The noisy
share of calls that are missing is measured at every variant.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.core import AnswerTable, Cells, Forecast, without_hidden
from tacit.genomes._cohort_draft import check_unit, draft_sums, people_noise
from tacit.genomes._frequencies import (
    GRID,
    error_of_shares,
    hidden_groups,
    plain_cells,
    read_sizes,
    site_keys,
)
from tacit.genomes._sums import clipped_sums

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tacit.core import Draft, Goal
    from tacit.genomes._cohort import Cohort
    from tacit.genomes._cohort_draft import Noise


#: What a call of 0, 1, 2 copies and a missing one adds to: alleles, heterozygotes, missing calls.
_VALUES = ((-2, 0, 2, 0), (-1, 1, -1, 0), (0, 0, 0, 2))
_SUMS = "alleles, heterozygotes and missing calls"
#: How far one call moves the three by coming (1) or by changing (2): squared L2, and L1.
_SQUARE, _L1 = {1: 5, 2: 16}, {1: 3, 2: 5}


def draft_hardy_weinberg(cohort: Cohort, goal: Goal) -> Draft[AnswerTable]:
    """Draft the test at every variant: the noisy number of people, where it is private, and three sums.

    One person moves them by at most 5 x variants in squared norm (16 if replaced);
    docs/proofs/genomes.md, section 4.
    """
    check_unit(cohort, "Hardy-Weinberg tests")
    people_moved, sites, size = cohort.moved, len(cohort.sites), cohort.people
    counting, share = people_noise(cohort, goal)
    adding = goal.part(share).noise(
        l1=_L1[people_moved] * sites, l2_squared=_SQUARE[people_moved] * sites, adjacency=cohort.adjacency
    )

    def summed(groups: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
        values = np.broadcast_to(np.array(_VALUES, np.int64)[None, :, None, :], (1, 3, sites, 4))
        return {_SUMS: clipped_sums(cohort._source, values, groups)[0]}  # noqa: SLF001 - a part of the cohort

    half = adding.half_width(goal.confidence) / 2
    return draft_sums(
        cohort, counting=counting, adding={_SUMS: adding}, summed=summed,
        reading=lambda noisy, level: _read_test(cohort, counting, adding, noisy, level),
        document={"genomes": "hardy-weinberg"},
        words=f"Hardy-Weinberg tests of {sites:,} variants",
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
    )  # fmt: skip


def _read_test(
    cohort: Cohort, counting: Noise | None, adding: Noise, noisy: Sequence[Any], level: Fraction
) -> AnswerTable:
    """Read the test off the noisy sums; the noise of each is in the denominator.

    z = T/2 + (S^2 - s^2)/(2 n), where S is the sum of g - 1 and T that of 2 het - 1 over the n calls.
    Under equilibrium its variance is 4 n p^2 q^2, to which the noise of T/2, of S (times S/n) and of n
    (times (S/n)^2 / 2) is added.
    """
    sums = np.asarray(noisy[-1], np.float64)
    sizes, _ = read_sizes(cohort, counting, (), noisy, level)
    alleles, heterozygotes, lost = sums[0] / 2, sums[1], sums[2] / 2
    calls = np.maximum(sizes[0] - lost, 1)
    spread = math.sqrt(adding.variance) / 2  # of alleles, of heterozygotes, of missing calls
    counting_variance = 0.0 if counting is None else counting.variance
    mean = np.clip(alleles / calls, -1, 1)
    p = (1 + mean) / 2
    z = heterozygotes / 2 + (alleles**2 - spread**2) / (2 * calls)
    noise = spread**2 * (1 + mean**2) + (spread**2 + counting_variance) * mean**4 / 4
    square = z**2 / (4 * calls * (p * (1 - p)) ** 2 + noise)
    chance = np.array([math.erfc(math.sqrt(one / 2)) for one in square.tolist()])
    half = adding.half_width(level) / 2 / calls
    shares = np.clip((heterozygotes / calls + 1) / 2, 0, 1)
    ends = np.clip(shares - half, 0, 1), np.clip(shares + half, 0, 1)
    hidden = hidden_groups(sizes, counting, len(cohort.sites))
    return AnswerTable(
        site_keys(cohort),
        {
            "heterozygotes": without_hidden(
                Cells(*(tuple(part.tolist()) for part in (shares, *ends))), hidden
            ),
            "expected": without_hidden(plain_cells(2 * p * (1 - p), None), hidden),
            "chi_square": plain_cells(square, None),
            "p_value": plain_cells(chance, None),
        },
        float(level),
        {
            "heterozygotes": "share of the calls; the interval is for the noise of heterozygotes only",
            "expected": "share of heterozygotes in equilibrium, from the noisy frequency; no interval",
            "chi_square": "of the test of equilibrium; no interval: the p-value takes its place",
            "p_value": "of the test of equilibrium; it allows for the noise, so it has no interval",
        },
    )


def draft_missingness(cohort: Cohort, goal: Goal, clip: Fraction | None) -> Draft[AnswerTable]:
    """Draft the shares of missing calls: each adds 16 (1 if nobody can exceed the limit), clipped per person.

    docs/proofs/genomes.md, section 5.
    """
    check_unit(cohort, "shares of missing calls")
    sites, size = len(cohort.sites), cohort.people
    grid, squared = 1, sites
    if clip is not None and (limit := math.floor(GRID**2 * clip)) < GRID**2 * sites:
        grid, squared = GRID, max(1, limit)
    counting, share = people_noise(cohort, goal)
    squares_moved = (
        1 if grid == 1 else cohort.moved
    )  # the calls of two people are 0 or more, so their squares add up
    adding = goal.part(share).noise(
        l1=math.isqrt(squared * sites) * squares_moved,
        l2_squared=squared * squares_moved,
        adjacency=cohort.adjacency,
    )

    def summed(groups: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
        values = np.broadcast_to(np.array([0, 0, 0, grid], np.int64), (1, 1, sites, 4))
        bound = squared if grid > 1 else None
        return {"missing calls": clipped_sums(cohort._source, values, groups, bound)[0, 0]}  # noqa: SLF001 - a part of it

    def reading(noisy: Sequence[Any], level: Fraction) -> AnswerTable:
        # the two chances of missing the truth add up
        miss = 1 - level
        part = Fraction(9, 10) if counting else Fraction(1)
        sums = np.asarray(noisy[-1], np.float64) / grid
        half = adding.half_width(1 - miss * part) / grid
        sizes, spread = read_sizes(cohort, counting, (), noisy, 1 - miss / 10)
        fewest, largest = max(1.0, sizes[0] - spread), max(1.0, sizes[0] + spread)
        low, high = (sums - half) / largest, (sums + half) / fewest
        shares = [np.clip(one, 0, 1).tolist() for one in (sums / max(1.0, sizes[0]), low, high)]
        clipped = {"missing": "people above the limit count less"} if grid > 1 else {}
        cells = without_hidden(Cells(*map(tuple, shares)), hidden_groups(sizes, counting, sites))
        return AnswerTable(site_keys(cohort), {"missing": cells}, float(level), clipped)

    half = adding.half_width(goal.confidence) / grid
    limit_words = "nobody can exceed it" if grid == 1 else "a person with more counts less"
    return draft_sums(
        cohort, counting=counting, adding={"missing calls": adding}, summed=summed, reading=reading,
        document={"genomes": "missingness", "grid": grid, "clip_squared": squared},
        words=f"missing calls of {sites:,} variants",
        forecast=[
            Forecast("missing", "share of missing calls", adding.describe(), half / size if size else None,
                     "" if size else error_of_shares(half))
        ],
        facts=[
            ("variants", f"{sites:,}, a public list"),
            ("limits", f"{squared // grid**2:,} missing calls of one person: {limit_words}"),
            ("number of people", "public" if size else "private, noise is added"),
        ],
    )  # fmt: skip
