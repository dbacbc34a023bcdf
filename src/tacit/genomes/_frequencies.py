"""Allele frequencies: sums of calls around a public reference, clipped per person, with Gaussian noise."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.core import Forecast
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Choose, Code, Set
from tacit.genomes._cohort_draft import draft_sums, people_noise
from tacit.genomes._frequency_reading import AlleleSums, error_of_shares, read_frequencies
from tacit.genomes._protection import check_unit
from tacit.genomes._sums import clipped_sums
from tacit.parameters import Omitted

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from tacit.core import JSON, Draft, Goal
    from tacit.genomes._cohort import Cohort
    from tacit.genomes._frequency_table import AlleleFrequencies

#: Steps of the grid in one allele, around a public reference.
GRID = 16
#: By how many standard deviations the default bound exceeds the expected squared norm, or by 10 %.
_SPREADS = 2.4
_NO_CLIP = Omitted("without a reference", fix=Set(reference="frequency"))


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


def draft_frequencies(
    cohort: Cohort, goal: Goal, *, by: str | None, reference: Any, clip: Fraction | None, calls: bool
) -> Draft[AlleleFrequencies]:
    """Draft the frequencies of all variants: noisy numbers of people, where they are private, and noisy sums.

    One person moves the sums by at most the root of ``clip_squared``, in one cluster; docs/proofs/genomes.md,
    sections 1 to 3.
    """
    check_unit(cohort, "allele frequencies")
    clusters = read_by(cohort, by)
    centres = read_centres(cohort, clusters, reference, clip)
    moved, sites = cohort.moved, len(cohort.sites)
    counting, share = people_noise(cohort, goal, clusters=bool(clusters))
    adding = goal.part(share).noise(
        l1=math.isqrt(centres.clip_squared * sites) * moved,
        l2_squared=centres.clip_squared * moved**2,
        adjacency=cohort.adjacency,
    )
    spent = tuple((name, float(value)) for name, value in goal.promised.items())
    sums = AlleleSums(cohort, centres, clusters, calls, counting, adding, spent)

    def summed(groups: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
        shape = (max(1, len(clusters)), 1 + calls, sites, 4)
        values = np.broadcast_to(call_values(centres, calls=calls), shape)
        clip_squared = centres.clip_squared if centres.clips else None
        return {"allele sums": clipped_sums(cohort._source, values, groups, clip_squared)}  # noqa: SLF001 - a part of it

    return draft_sums(
        cohort, clusters=clusters, counting=counting, adding={"allele sums": adding}, summed=summed,
        document={
            "genomes": "frequencies", "grid": centres.grid, "centres": centres.digest,
            "clip_squared": centres.clip_squared, "clusters": list(clusters), "calls": calls,
        },
        words=f"allele frequencies of {sites:,} variants" + (f" by {by}" if by else ""),
        reading=lambda noisy, level: read_frequencies(sums, noisy, level),
        forecast=lambda: _forecast(sums, goal),
        facts=lambda: _facts(sums, reference),
    )  # fmt: skip


def read_by(cohort: Cohort, by: str | None) -> tuple[str, ...]:
    """Return the clusters that a question is asked by; none if it is asked of everybody."""
    if by is not None and not cohort.cluster_names:
        raise TacitError(
            "bad-parameter",
            "frequencies by cluster need a cohort that was declared with clusters",
            fix=Code("tc.genotypes(..., clusters=labels, cluster_names=names)"),
        )
    return () if by is None else cohort.cluster_names


def read_centres(
    cohort: Cohort,
    clusters: tuple[str, ...],
    reference: object,
    clip: Fraction | None,
    places: NDArray[np.int64] | None = None,
) -> Centres:
    """Read the public reference and choose the bound: above what it lets expect of the squared norm.

    ``places`` are the variants that are used; by default all.
    """
    used = np.arange(len(cohort.sites)) if places is None else places
    sites = len(used)
    if reference is None:
        _NO_CLIP.read("clip", None if clip is None else float(clip))
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
        squared = max(1, math.floor((GRID * clip) ** 2))
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
    """Write a reference for the request of a plan."""
    if reference is None or isinstance(reference, str):
        return reference
    if isinstance(reference, Mapping):
        return {str(name): reference_document(one) for name, one in reference.items()}
    return [None if math.isnan(one) else float(one) for one in np.asarray(reference, np.float64).tolist()]


def _forecast(sums: AlleleSums, goal: Goal) -> list[Forecast]:
    """Say what to expect, where the number of people is public; else in people."""
    half = sums.adding.half_width(goal.confidence)
    cohort, steps = sums.cohort, 2 * sums.centres.grid
    sizes = cohort.cluster_sizes if sums.clusters else (None if cohort.people is None else (cohort.people,))
    noise = sums.adding.describe()
    if sizes is None or min(sizes) == 0:
        note = error_of_shares(half / steps, clusters=bool(sums.clusters))
        return [Forecast("frequency", "frequency of the counted allele", noise, None, note)]
    return [Forecast("frequency", "frequency of the counted allele", noise, half / steps / min(sizes))]


def _facts(sums: AlleleSums, reference: object) -> list[tuple[str, str]]:
    cohort, centres = sums.cohort, sums.centres
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
        ("missing calls", "released too, and corrected for" if sums.calls else "count as the centre"),
    ]
    if sums.clusters:
        facts.append(
            ("clusters", f"{', '.join(sums.clusters)}: a public list; each person is in at most one")
        )
    people = "public" if sums.counting is None else f"private, noise added: {sums.counting.describe()}"
    return [*facts, ("number of people", people)]
