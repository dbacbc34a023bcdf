"""Missing calls: the noisy share of calls that are missing, at every variant."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tacit.core import AnswerTable, Cells, Forecast, Plan, Goal
from tacit.exact import Number, rational
from tacit.genomes._cohort_task import CohortTask
from tacit.genomes._frequencies import COUNT_SHARE, GRID
from tacit.genomes._frequency_reading import error_of_shares, read_sizes, site_keys
from tacit.genomes._protection import check_unit
from tacit.genomes._sums import clipped_sums

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from tacit.core import JSON
    from tacit.genomes._cohort import Cohort
    from tacit.mechanisms import DiscreteGaussian, DiscreteLaplace

__all__ = ["MissingCallTask", "plan_missingness"]


@dataclass(frozen=True, slots=True)
class MissingCallTask(CohortTask):
    """The task of missing calls: each adds 16 (1 if nobody can exceed the limit), clipped per person.

    docs/proofs/genomes.md, section 5.
    """

    statistics: ClassVar[tuple[str, ...]] = ("missing calls",)

    cohort: Cohort
    grid: int
    clip_squared: int
    counting: DiscreteGaussian | DiscreteLaplace | None
    adding: DiscreteGaussian | DiscreteLaplace

    @property
    def question(self) -> JSON:
        """The sites, the grid and the limit."""
        return {
            "genomes": "missingness", **self.cohort.public_facts,
            "grid": self.grid, "clip_squared": self.clip_squared,
        }  # fmt: skip

    def integers(self) -> Generator[Any, Any, None]:
        """Yield the number of people, if that is private, and the missing calls of each variant."""
        source, sites = self.cohort._source, len(self.cohort.sites)  # noqa: SLF001
        people = source.people()
        if self.counting:
            yield np.array([people], np.int64)
        values = np.broadcast_to(np.array([0, 0, 0, self.grid], np.int64), (1, 1, sites, 4))
        clip = self.clip_squared if self.grid > 1 else None
        yield clipped_sums(source, values, np.zeros(people, np.int64), clip)[0, 0]

    def read(self, noisy: Sequence[Any], confidence: Fraction) -> AnswerTable:
        """Read the shares with intervals; their two chances of missing the truth add up."""
        miss = 1 - confidence
        part = Fraction(9, 10) if self.counting else Fraction(1)
        sums = np.asarray(noisy[-1], np.float64) / self.grid
        half = self.adding.half_width(1 - miss * part) / self.grid
        sizes, spread = read_sizes(self.cohort, self.counting, (), noisy, 1 - miss / 10)
        least, most = max(1.0, sizes[0] - spread), max(1.0, sizes[0] + spread)
        low, high = (sums - half) / most, (sums + half) / least
        shares = [np.clip(one, 0, 1).tolist() for one in (sums / max(1.0, sizes[0]), low, high)]
        clipped = {"missing": "people above the limit count less"} if self.grid > 1 else {}
        cells = {"missing": Cells(*map(tuple, shares))}
        return AnswerTable(site_keys(self.cohort), cells, float(confidence), clipped)


def plan_missingness(cohort: Cohort, goal: Goal, *, clip: Number | None = None) -> Plan[AnswerTable]:
    """Plan the shares of missing calls; see `Cohort.missingness`."""
    check_unit(cohort, "shares of missing calls")
    moved, adjacency, sites = cohort.moved, cohort.adjacency, len(cohort.sites)
    grid, squared = 1, sites
    if clip is not None and (limit := math.floor(GRID**2 * rational("clip", clip))) < GRID**2 * sites:
        grid, squared = GRID, max(1, limit)
    counting = None
    if cohort.people is None:
        counting = goal.part(COUNT_SHARE).noise(l1=1, l2_squared=1, adjacency=adjacency)
    both = 1 if grid == 1 else moved  # the calls of two people are 0 or more, so their squares add up
    adding = goal.part(1 - COUNT_SHARE if counting else Fraction(1)).noise(
        l1=math.isqrt(squared * sites) * both, l2_squared=squared * both, adjacency=adjacency
    )
    task = MissingCallTask(cohort, grid, squared, counting, adding)
    half, size = adding.half_width(goal.confidence) / grid, cohort.people
    note = "" if size else error_of_shares(half)
    limit_words = "nobody can exceed it" if grid == 1 else "a person with more counts less"
    return Plan.of(
        cohort,
        task,
        promised=goal.promised,
        forecast=[
            Forecast("missing", "share of missing calls", adding.describe(), half / size if size else None,
                     note)
        ],
        facts=[
            ("variants", f"{sites:,}, a public list"),
            ("limits", f"{squared // grid**2:,} missing calls of one person: {limit_words}"),
            ("number of people", "public" if size else "private, noise is added"),
        ],
        confidence=float(goal.confidence),
        asked=f"missing calls of {sites:,} variants",
        request=lambda: {
            "kind": "missingness", "goal": goal.to_json(),
            "clip": None if clip is None else str(rational("clip", clip)),
        },
    )  # fmt: skip
