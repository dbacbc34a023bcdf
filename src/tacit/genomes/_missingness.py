"""Missing calls: the noisy share of calls that are missing, at every variant."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.core import AnswerTable, Cells, Forecast, without_hidden
from tacit.genomes._cohort_draft import draft_sums, people_noise
from tacit.genomes._frequencies import GRID
from tacit.genomes._frequency_reading import error_of_shares, hidden_groups, read_sizes, site_keys
from tacit.genomes._protection import check_unit
from tacit.genomes._sums import clipped_sums

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tacit.core import Draft, Goal
    from tacit.genomes._cohort import Cohort


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
    both = 1 if grid == 1 else cohort.moved  # the calls of two people are 0 or more, so their squares add up
    adding = goal.part(share).noise(
        l1=math.isqrt(squared * sites) * both, l2_squared=squared * both, adjacency=cohort.adjacency
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
        least, most = max(1.0, sizes[0] - spread), max(1.0, sizes[0] + spread)
        low, high = (sums - half) / most, (sums + half) / least
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
