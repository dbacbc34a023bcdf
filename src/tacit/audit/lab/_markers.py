"""The genomes of the lab: markers with public frequencies, and people whom a public recipe generates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tacit.audit.lab._people import hashed_uniform

if TYPE_CHECKING:
    import numpy.typing as npt

_GRID: Final = 16  # steps of one allele; frequencies are centred at a sixteenth of an allele
_BLOCK: Final = 100  # people at a time


@dataclass(frozen=True, slots=True, eq=False)
class MarkerSample:
    """Members of a study and as many outsiders from the same population, who do not exist.

    Attributes
    ----------
    reference
        The public frequency of the counted allele in the population, for each marker.
    members, outsiders
        The number of counted alleles (0, 1 or 2) for each person and marker.
    """

    reference: npt.NDArray[np.float64]
    members: npt.NDArray[np.int8]
    outsiders: npt.NDArray[np.int8]

    @classmethod
    def of(cls, people: int, snps: int) -> MarkerSample:
        """Generate a cohort; it is the same in every call."""
        reference = marker_frequencies(snps)
        drawn = genotypes(reference, 2 * people)
        return cls(reference, drawn[:people], drawn[people:])

    @property
    def norm_squared(self) -> int:
        """The public limit on the squared length of one person's row, in grid steps: 1.1 times its mean."""
        return int(1.1 * _GRID**2 * float((2 * self.reference * (1 - self.reference)).sum()))

    def centred(self, people: npt.NDArray[np.int8]) -> npt.NDArray[np.int64]:
        """Return what each person adds to the released sums: alleles above the reference, clipped in length.

        A longer row is scaled down and rounded toward zero, so that it never exceeds the limit.
        """
        rows = _GRID * people.astype(np.int64) - self._centre
        length = np.sqrt((rows.astype(np.float64) ** 2).sum(axis=1))
        shrink = np.minimum(1.0, np.sqrt(self.norm_squared) * (1 - 1e-12) / np.maximum(length, 1))
        return np.where((shrink < 1)[:, None], np.trunc(rows * shrink[:, None]), rows).astype(np.int64)

    def frequencies(self, sums: npt.NDArray[np.int64], people: int) -> npt.NDArray[np.float64]:
        """Read allele frequencies from centred sums, cut to what a cohort of this size can show."""
        alleles = (self._centre + sums / people) / (2 * _GRID)
        least = 1 / (4 * people)
        return np.clip(alleles, least, 1 - least)

    @property
    def _centre(self) -> npt.NDArray[np.int64]:
        return np.rint(_GRID * 2 * self.reference).astype(np.int64)


def marker_frequencies(snps: int) -> npt.NDArray[np.float64]:
    """Return the frequencies of the rarer allele, spread evenly between 0.05 and 0.5."""
    return 0.05 + 0.45 * hashed_uniform(np.arange(snps), stream=60)


def genotypes(frequency: npt.NDArray[np.float64], people: int, stream: int = 61) -> npt.NDArray[np.int8]:
    """Draw 0, 1 or 2 alleles per person and marker, in the proportions of Hardy and Weinberg."""
    snps = frequency.size
    two, one = frequency**2, 1 - (1 - frequency) ** 2
    drawn = np.empty((people, snps), dtype=np.int8)
    for first in range(0, people, _BLOCK):
        last = min(people, first + _BLOCK)
        level = hashed_uniform(np.arange(first * snps, last * snps), stream).reshape(last - first, snps)
        drawn[first:last] = (level < one).astype(np.int8) + (level < two)
    return drawn
