"""Genotypes in blocks: every source hands out a few variants of all people at a time, two bits each.

The packing is that of PLINK's bed files: four people in a byte, the first in the lowest bits; 00 is two
copies of the counted allele, 10 one copy, 11 none, 01 a missing call. Rows are padded to whole 64-bit words.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from tacit.genomes._sites import SiteList

#: How an int8 genotype says that a call is missing.
MISSING = -1
_LOW = np.uint64(0x5555555555555555)
_ONE = np.uint64(1)
#: Copies of the counted allele -> code of two bits; what is neither 0, 1 nor 2 is missing.
_CODES = np.full(256, 1, np.uint8)
_CODES[:3] = 3, 2, 0
#: Byte -> genotypes of its four people.
_GENOTYPES = np.array([2, MISSING, 1, 0], np.int8)[(np.arange(256)[:, None] >> np.arange(0, 8, 2)) & 3]
#: About how many bytes of a block are worked on at once: they stay in the cache.
BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class GenotypeBlock:
    """Some variants of all people.

    Parameters
    ----------
    places
        Which variants of the site list these are.
    packed
        One row for each of them; see the module.
    people
        How many people a row has; what follows in a row is padding.
    """

    places: NDArray[np.int64]
    packed: NDArray[np.uint8]
    people: int

    @property
    def genotypes(self) -> NDArray[np.int8]:
        """The block as people x variants: copies of the counted allele, -1 for a missing call."""
        return unpack(self.packed, self.people).T


class GenotypeSource(ABC):
    """Where genotypes are: a file or an array, read in blocks and never as a whole.

    Guarantee: opening a source reads its header and its site list, which are public. Everything else is read
    by `people`, `blocks` and `table_counts`, which only a paid task calls; no value makes them fail.
    """

    sites: SiteList

    @property
    def missing_file(self) -> str:
        """The path of the file if it does not exist now; empty for every other source."""
        return ""

    @abstractmethod
    def people(self) -> int:
        """Return how many people there are: private, unless it was declared."""

    @abstractmethod
    def blocks(self, size: int | None = None) -> Iterator[GenotypeBlock]:
        """Return blocks of at most ``size`` variants; each variant of the site list comes at most once.

        A variant that never comes has only missing calls.
        """

    def rows_at_once(self, people: int, size: int | None) -> int:
        """Return how many variants a block has: those asked for, or as many as stay in the cache."""
        return size or max(1, min(4096, BLOCK_BYTES // padded(people)))

    def table_counts(self, mask: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
        """Return, for each variant, how many people have 0, 1 and 2 copies, and a missing call.

        Parameters
        ----------
        mask
            Whom to count: true for each such person. By default everybody.
        """
        everybody = np.ones(self.people(), np.bool_) if mask is None else mask
        counts: NDArray[np.int64] = self.table_counts_of([everybody])[0]
        return counts

    def table_counts_of(self, masks: Sequence[NDArray[np.bool_]]) -> NDArray[np.int64]:
        """Return the counts of several groups of people at once: group, variant, then as `table_counts`."""
        packed_masks = [pack_mask(mask) for mask in masks]
        sizes = np.array([int(mask.sum()) for mask in masks], np.int64)
        found = np.zeros((len(masks), len(self.sites), 4), np.int64)
        found[:, :, 3] = sizes[:, None]
        for block in self.blocks():
            found[:, block.places] = count_copies(block.packed, packed_masks, sizes)
        return found


def padded(people: int) -> int:
    """Return how many bytes a packed row has: a multiple of 8.

    Examples
    --------
    >>> padded(1), padded(32), padded(33)
    (8, 8, 16)
    """
    return 8 * max(1, -(-people // 32))


def pack(genotypes: NDArray[np.int8]) -> NDArray[np.uint8]:
    """Pack variants x people; everything but 0, 1 and 2 is a missing call.

    Examples
    --------
    >>> pack(np.array([[2, 1, 0, -1]], np.int8))[0, :2].tolist()
    [120, 0]
    """
    rows, people = genotypes.shape
    codes = np.zeros((rows, 4 * padded(people)), np.uint8)
    codes[:, :people] = _CODES[genotypes.astype(np.int8, copy=False).view(np.uint8)]
    packed = codes[:, 0::4] | (codes[:, 1::4] << 2) | (codes[:, 2::4] << 4) | (codes[:, 3::4] << 6)
    return packed.astype(np.uint8, copy=False)


def unpack(packed: NDArray[np.uint8], people: int) -> NDArray[np.int8]:
    """Return variants x people: 0, 1, 2, or -1 for a missing call."""
    whole: NDArray[np.int8] = _GENOTYPES[packed].reshape(len(packed), -1)
    return whole[:, :people]


def pack_mask(mask: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Return who counts, as the lower of the two bits of each person."""
    bits = np.zeros(4 * padded(len(mask)), np.uint8)
    bits[: len(mask)] = mask
    packed = bits[0::4] | (bits[1::4] << 2) | (bits[2::4] << 4) | (bits[3::4] << 6)
    return packed.view(np.uint64)


def count_copies(
    packed: NDArray[np.uint8], masks: Sequence[NDArray[np.uint64]], sizes: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Count 0, 1, 2 copies and missing calls in each row, for each group of people, by popcounts."""
    words = np.ascontiguousarray(packed).view(np.uint64)
    low, high = words & _LOW, (words >> _ONE) & _LOW
    none = low & high
    high ^= none  # one copy
    low ^= none  # missing
    found = np.empty((len(masks), len(packed), 4), np.int64)
    for group, (mask, size) in enumerate(zip(masks, sizes, strict=True)):
        for column, plane in ((0, none), (1, high), (3, low)):
            found[group, :, column] = np.bitwise_count(plane & mask).sum(axis=1, dtype=np.int64)
        found[group, :, 2] = size - found[group, :, 0] - found[group, :, 1] - found[group, :, 3]
    return found
