"""From noisy sums to frequencies with intervals: free post-processing."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.core import Cells, is_hidden, without_hidden
from tacit.genomes._frequency_table import AlleleFrequencies

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tacit.core import Value
    from tacit.genomes._cohort import Cohort
    from tacit.genomes._cohort_draft import Noise
    from tacit.genomes._frequencies import Centres

#: The part of the chance of missing the truth that goes to each of several noisy numbers.
_SMALL = Fraction(1, 10)


@dataclass(frozen=True, slots=True, eq=False)
class AlleleSums:
    """What the noisy sums of alleles are of, so that frequencies can be read off them.

    Parameters
    ----------
    centres
        What was subtracted from each call.
    clusters
        The clusters by which it was asked; none for everybody.
    calls
        Whether missing calls are released too.
    counting, adding
        The noise of the numbers of people, where they are private, and of the sums.
    spent
        What was promised, by its name.
    """

    cohort: Cohort
    centres: Centres
    clusters: tuple[str, ...]
    calls: bool
    counting: Noise | None
    adding: Noise
    spent: tuple[tuple[str, float], ...]


def read_frequencies(allele: AlleleSums, noisy: Sequence[Any], confidence: Fraction) -> AlleleFrequencies:
    """Return f = c/2 + S/(2 n) for each variant, where S is the noisy sum around the centre c.

    With private n, or with call counts, the interval is the hull over all values of S, n and the missing
    calls that their own intervals hold; their chances of missing add up to 1 - confidence.
    """
    centres, miss = allele.centres, 1 - confidence
    sums = np.asarray(noisy[-1], np.float64) / centres.grid
    others = int(allele.counting is not None) + int(allele.calls)
    half = allele.adding.half_width(1 - miss * (1 - _SMALL * others)) / centres.grid
    sizes, spread = read_sizes(allele.cohort, allele.counting, allele.clusters, noisy, 1 - miss * _SMALL)
    called, wide = sizes[:, None], np.full_like(sums[:, 0], spread)
    if allele.calls:
        lost = allele.adding.half_width(1 - miss * _SMALL) / centres.grid
        called, wide = called - sums[:, 1], wide + lost
    middle = centres.middle / (2 * centres.grid)
    low, high = _hull(sums[:, 0], half, called, wide)
    value = middle + sums[:, 0] / (2 * np.maximum(called, 1))
    cut = [np.clip(part, 0, 1).T.ravel() for part in (value, middle + low / 2, middle + high / 2)]
    notes = {"frequency": _note(allele)} if _note(allele) else {}
    hidden = hidden_groups(sizes, allele.counting, len(allele.cohort.sites))
    cells = without_hidden(Cells(*(tuple(part.tolist()) for part in cut)), hidden)
    return AlleleFrequencies(
        site_keys(allele.cohort, allele.clusters),
        {"frequency": cells},
        float(confidence),
        notes,
        spent=allele.spent,
    )


def _note(allele: AlleleSums) -> str:
    parts = []
    if not allele.calls:
        parts.append("missing calls count as the centre, which pulls a frequency toward it")
    if allele.centres.clips:
        parts.append("calls of people above the limit are scaled down, with the same effect")
    return "; ".join(parts)


def _hull(
    sums: NDArray[np.float64], half: float, called: NDArray[np.float64], wide: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the ends of S/n over S within half, and n within wide, of what was released; n >= 1."""
    least, most = np.maximum(called - wide, 1), np.maximum(called + wide, 1)
    below, above = sums - half, sums + half
    return below / np.where(below < 0, least, most), above / np.where(above < 0, most, least)


def read_sizes(
    cohort: Cohort, counting: Any, clusters: tuple[str, ...], noisy: Sequence[Any], confidence: Fraction
) -> tuple[NDArray[np.float64], float]:
    """Return how many people each group has, public or noisy, and the half-width of that."""
    if counting is None:
        public = cohort.cluster_sizes if clusters else (cohort.people,)
        return np.asarray(public, np.float64), 0.0
    return np.asarray(noisy[0], np.float64), float(counting.half_width(confidence))


def hidden_groups(sizes: NDArray[np.float64], counting: Any, sites: int) -> list[bool]:
    """Return of each line, variants first, whether the noise hides what is divided by its group's people."""
    if counting is None:
        return [False] * (sites * len(sizes))
    return [is_hidden(one, counting.variance) for one in sizes.tolist()] * sites


def site_keys(cohort: Cohort, clusters: tuple[str, ...] = ()) -> dict[str, tuple[Value, ...]]:
    """Return the key columns of an answer: the variants, and beside each its clusters."""
    sites, copies = cohort.sites, max(1, len(clusters))
    columns: dict[str, tuple[Value, ...]] = {
        "chromosome": sites.chromosome, "position": sites.position, "id": sites.names,
        "ref": sites.ref, "alt": sites.alt,
    }  # fmt: skip
    if sites.numbered:
        columns = {"variant": sites.position}
    keys = {name: tuple(one for one in column for _ in range(copies)) for name, column in columns.items()}
    return keys | ({"cluster": clusters * len(sites)} if clusters else {})


def plain_cells(values: NDArray[np.float64], half: NDArray[np.float64] | float | None) -> Cells:
    """Return a column with intervals of this half-width, or with none."""
    column = values.tolist()
    if half is None:
        nothing = (None,) * len(column)
        return Cells(tuple(column), nothing, nothing)
    return Cells(tuple(column), tuple((values - half).tolist()), tuple((values + half).tolist()))


def error_of_shares(half: float, *, clusters: bool = False) -> str:
    """Say how far off a share will be if the number of people is private, with an example.

    Examples
    --------
    >>> error_of_shares(17.5)
    'about 17.5 divided by the number of people (0.018 for 1,000 people)'
    """
    whose = " of the cluster" if clusters else ""
    return f"about {half:.3g} divided by the number of people{whose} ({half / 1000:.2g} for 1,000 people)"
