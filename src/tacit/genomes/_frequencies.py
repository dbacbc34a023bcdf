"""Allele frequencies: sums of calls around a public reference, clipped per person, with Gaussian noise."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tacit.core import Forecast, Plan, Goal
from tacit.errors import TacitError, bad_parameter
from tacit.exact import Number, rational
from tacit.fixes import Choose, Code, Set
from tacit.genomes._cohort_task import CohortTask
from tacit.genomes._frequency_reading import error_of_shares, read_frequencies
from tacit.genomes._protection import check_unit
from tacit.genomes._sums import clipped_sums

if TYPE_CHECKING:
    from collections.abc import Generator

    from numpy.typing import NDArray

    from tacit.core import JSON
    from tacit.genomes._cohort import Cohort
    from tacit.genomes._frequency_table import AlleleFrequencies
    from tacit.mechanisms import DiscreteGaussian, DiscreteLaplace

__all__ = [
    "Centres",
    "FrequencyTask",
    "call_values",
    "plan_frequencies",
    "read_by",
    "read_centres",
    "reference_document",
]

#: Steps of the grid in one allele, around a public reference.
GRID = 16
#: By how many standard deviations the default bound exceeds the expected squared norm, or by 10 %.
_SPREADS = 2.4
#: The share of the cost that goes to the number of people, where it is private.
COUNT_SHARE = Fraction(1, 20)


@dataclass(frozen=True, slots=True)
class Centres:
    """What is subtracted from each call, and the bound on one person's norm.

    Parameters
    ----------
    grid
        Steps in one allele: 16, or 1 around one copy.
    middle
        Group x variant: the centre, in steps.
    clip_squared
        The bound on the squared norm of one person, in steps.
    clips
        Whether a person can exceed it.
    """

    grid: int
    middle: NDArray[np.int64]
    clip_squared: int
    clips: bool

    @property
    def digest(self) -> str:
        """A digest of the centres, which is part of the question."""
        return hashlib.sha256(self.middle.astype("<i8").tobytes()).hexdigest()


@dataclass(frozen=True, slots=True)
class FrequencyTask(CohortTask):
    """The task of frequencies: noisy numbers of people, where they are private, then noisy sums.

    One person moves the sums by at most the root of ``clip_squared``, in one cluster; docs/proofs/genomes.md,
    sections 1 to 3.
    """

    statistics: ClassVar[tuple[str, ...]] = ("allele sums",)

    cohort: Cohort
    centres: Centres
    clusters: tuple[str, ...]
    calls: bool
    counting: DiscreteGaussian | DiscreteLaplace | None
    adding: DiscreteGaussian | DiscreteLaplace
    spent: tuple[tuple[str, float], ...]

    @property
    def question(self) -> JSON:
        """Sites, centres, bound, clusters."""
        return {
            "genomes": "frequencies",
            **self.cohort.public_facts,
            "grid": self.centres.grid,
            "centres": self.centres.digest,
            "clip_squared": self.centres.clip_squared,
            "clusters": list(self.clusters),
            "calls": self.calls,
        }

    def integers(self) -> Generator[Any, Any, None]:
        """Yield how many people are in each group, if that is private, and the clipped sums."""
        source = self.cohort._source  # noqa: SLF001
        people = source.people()
        groups = self.cohort._cluster_codes(people) if self.clusters else np.zeros(people, np.int64)  # noqa: SLF001
        count = max(1, len(self.clusters))
        if self.counting:
            yield np.bincount(groups[groups >= 0], minlength=count).astype(np.int64)
        values = np.broadcast_to(
            call_values(self.centres, calls=self.calls), (count, 1 + self.calls, len(self.cohort.sites), 4)
        )
        yield clipped_sums(source, values, groups, self.centres.clip_squared if self.centres.clips else None)

    def read(self, noisy: Sequence[Any], confidence: Fraction) -> AlleleFrequencies:
        """Read frequencies with intervals off the noisy sums."""
        return read_frequencies(self, noisy, confidence)


def call_values(centres: Centres, *, calls: bool) -> NDArray[np.int64]:
    """Return what each call adds: group, part (alleles, missing calls), variant, call.

    A missing call adds nothing to the alleles: it counts as the centre.
    """
    middle = centres.middle
    alleles = centres.grid * np.arange(3) - middle[..., None]
    values = np.zeros((len(middle), 1 + calls, middle.shape[1], 4), np.int64)
    values[:, 0, :, :3] = alleles
    if calls:
        values[:, 1, :, 3] = centres.grid
    return values


def plan_frequencies(
    cohort: Cohort,
    goal: Goal,
    *,
    by: str | None = None,
    reference: object = None,
    clip: Number | None = None,
    calls: bool = False,
) -> Plan[AlleleFrequencies]:
    """Plan the frequencies of all variants; see `Cohort.frequencies`."""
    check_unit(cohort, "allele frequencies")
    clusters = read_by(cohort, by)
    centres = read_centres(cohort, clusters, reference, clip)
    private = (cohort.cluster_sizes if clusters else cohort.people) is None
    moved, adjacency = cohort.moved, cohort.adjacency
    counting = None
    if private:  # of a public total, one person who is replaced moves two numbers of clusters by one
        counting = goal.part(COUNT_SHARE).noise(l1=moved, l2_squared=moved, adjacency=adjacency)
    squared = centres.clip_squared * moved**2
    adding = goal.part(1 - COUNT_SHARE if private else Fraction(1)).noise(
        l1=math.isqrt(centres.clip_squared * len(cohort.sites)) * moved,
        l2_squared=squared,
        adjacency=adjacency,
    )
    spent = tuple((name, float(value)) for name, value in goal.promised.items())
    task = FrequencyTask(cohort, centres, clusters, calls, counting, adding, spent)
    request = {
        "kind": "frequencies", "goal": goal.to_json(), "by": by,
        "reference": reference_document(reference), "calls": calls,
        "clip": None if clip is None else str(rational("clip", clip)),
    }  # fmt: skip
    return Plan.of(
        cohort,
        task,
        promised=goal.promised,
        forecast=lambda: _forecast(task, goal),
        facts=lambda: _facts(task, reference),
        confidence=float(goal.confidence),
        asked=f"allele frequencies of {len(cohort.sites):,} variants" + (f" by {by}" if by else ""),
        request=lambda: request,
    )


def read_by(cohort: Cohort, by: str | None) -> tuple[str, ...]:
    """Return the clusters that a question is asked by; none if it is asked of everybody."""
    if by is None:
        return ()
    if by == "cluster" and not cohort.cluster_names:
        raise TacitError(
            "bad-parameter",
            "frequencies by cluster need a cohort that was declared with clusters",
            fix=Code("tc.genotypes(..., clusters=labels, cluster_names=names)"),
        )
    if by != "cluster":
        known = Set(by="cluster") if cohort.cluster_names else Set(by=None)
        raise bad_parameter("by", "cluster or None", by, fix=known)
    return cohort.cluster_names


def read_centres(
    cohort: Cohort,
    clusters: tuple[str, ...],
    reference: object,
    clip: Number | None,
    places: NDArray[np.int64] | None = None,
) -> Centres:
    """Read the public reference and choose the bound: above what it lets expect of the squared norm.

    ``places`` are the variants that are used; by default all.
    """
    used = np.arange(len(cohort.sites)) if places is None else places
    sites = len(used)
    if reference is None:
        if clip is not None:
            raise bad_parameter("clip", "given with a reference", clip, fix=Set(reference="frequency"))
        return Centres(1, np.ones((max(1, len(clusters)), sites), np.int64), sites, clips=False)
    given: dict[str, object]
    if isinstance(reference, Mapping):
        if set(reference) != set(clusters) or not clusters:
            raise bad_parameter("reference", "a column for each cluster, of frequencies by cluster",
                                sorted(map(str, reference)),
                                fix=Set(reference=dict.fromkeys(clusters or ("north", "south"), "frequency")),
                                )  # fmt: skip
        given = {name: reference[name] for name in clusters}
    else:
        given = dict.fromkeys(clusters or ("",), reference)
    shares = np.array([_shares(cohort, one) for one in given.values()])[:, used]
    middle = np.floor(2 * GRID * shares + 0.5).astype(np.int64)
    furthest = np.maximum(middle, 2 * GRID - middle)
    worst = int((furthest**2).sum(axis=1).max())
    if clip is None:
        each = 2 * shares * (1 - shares)  # the variance of a call in equilibrium; its square varies by
        expected, spread = each.sum(axis=1), np.sqrt((each - each**2).sum(axis=1))
        enough = np.maximum(1.1 * expected, expected + _SPREADS * spread).max()
        squared = max(GRID**2, math.ceil(GRID**2 * float(enough)))
    else:
        squared = max(1, math.floor((GRID * rational("clip", clip)) ** 2))
    return Centres(GRID, middle, min(squared, worst), clips=squared < worst)


def _shares(cohort: Cohort, reference: Any) -> NDArray[np.float64]:
    """Return the public frequency of each variant; where it is not known, one half."""
    if isinstance(reference, str):
        if reference not in cohort.sites.numbers:
            raise TacitError(
                "unknown-column",
                f"the table of variants has no numeric column {reference!r}",
                why="the reference is public, so it is read from the declared variants",
                fix=Choose(tuple(cohort.sites.numbers), given=reference)
                if cohort.sites.numbers else Set(reference=None),
            )  # fmt: skip
        reference = cohort.sites.numbers[reference]
    try:
        shares = np.array(reference, np.float64)
    except (TypeError, ValueError):
        shares = np.empty(0)
    shares = np.where(np.isnan(shares), 0.5, shares)
    if shares.shape != (len(cohort.sites),) or (shares < 0).any() or (shares > 1).any():
        raise bad_parameter(
            "reference", f"{len(cohort.sites):,} frequencies between 0 and 1, or the name of a column",
            "something else", fix=Set(reference="frequency"),
        )  # fmt: skip
    return shares


def reference_document(reference: Any) -> JSON:
    if reference is None or isinstance(reference, str):
        return reference
    if isinstance(reference, Mapping):
        return {str(name): reference_document(one) for name, one in reference.items()}
    return [None if math.isnan(one) else float(one) for one in np.asarray(reference, np.float64).tolist()]


def _forecast(task: FrequencyTask, goal: Goal) -> list[Forecast]:
    """Say what to expect, where the number of people is public; else in people."""
    half = task.adding.half_width(goal.confidence)
    cohort, steps = task.cohort, 2 * task.centres.grid
    sizes = cohort.cluster_sizes if task.clusters else (None if cohort.people is None else (cohort.people,))
    noise = task.adding.describe()
    if sizes is None or min(sizes) == 0:
        note = error_of_shares(half / steps, clusters=bool(task.clusters))
        return [Forecast("frequency", "frequency of the counted allele", noise, None, note)]
    return [Forecast("frequency", "frequency of the counted allele", noise, half / steps / min(sizes))]


def _facts(task: FrequencyTask, reference: object) -> list[tuple[str, str]]:
    cohort, centres = task.cohort, task.centres
    centre = "one copy of the allele" if reference is None else "the public reference"
    if isinstance(reference, str):
        centre = f"twice the public column {reference}"
    norm = math.sqrt(centres.clip_squared) / centres.grid
    bound = f"each person counts with a norm of at most {norm:.3g} alleles"
    facts = [
        ("variants", f"{len(cohort.sites):,}, a public list"),
        ("centre", f"calls are counted as the difference from {centre}"),
        (
            "limits",
            bound + (", larger ones are scaled down" if centres.clips else ", which nobody can exceed"),
        ),
        ("missing calls", "released too, and corrected for" if task.calls else "count as the centre"),
    ]
    if task.clusters:
        facts.append(
            ("clusters", f"{', '.join(task.clusters)}: a public list; each person is in at most one")
        )
    people = "public" if task.counting is None else f"private, noise added: {task.counting.describe()}"
    return [*facts, ("number of people", people)]
