"""Genotypes in blocks: every source hands out a few variants of all people at a time, two bits each.

The packing is that of PLINK's bed files: four people in a byte, the first in the lowest bits; 00 is two
copies of the counted allele, 10 one copy, 11 none, 01 a missing call. Rows are padded to whole 64-bit words.

The plainest source is an array of people x variants: NumPy, nested lists, or anything with a shape and
slices.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.errors import bad_parameter
from tacit.fixes import Code
from tacit.genomes._sites import SiteList

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray


#: How an int8 genotype says that a call is missing.
MISSING = -1
_LOW = np.uint64(0x5555555555555555)
_ONE_BIT = np.uint64(1)
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
        tables = np.zeros((len(masks), len(self.sites), 4), np.int64)
        tables[:, :, 3] = sizes[:, None]
        for block in self.blocks():
            tables[:, block.places] = count_copies(block.packed, packed_masks, sizes)
        return tables


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
    genotypes: NDArray[np.int8] = _GENOTYPES[packed].reshape(len(packed), -1)
    return genotypes[:, :people]


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
    low, high = words & _LOW, (words >> _ONE_BIT) & _LOW
    none = low & high
    high ^= none  # one copy
    low ^= none  # missing
    counts = np.empty((len(masks), len(packed), 4), np.int64)
    for group, (mask, size) in enumerate(zip(masks, sizes, strict=True)):
        for column, plane in ((0, none), (1, high), (3, low)):
            counts[group, :, column] = np.bitwise_count(plane & mask).sum(axis=1, dtype=np.int64)
        counts[group, :, 2] = size - counts[group, :, 0] - counts[group, :, 1] - counts[group, :, 3]
    return counts


class ArrayGenotypes(GenotypeSource):
    """An array of people x variants: 0, 1 or 2 copies of the counted allele.

    Everything else is a missing call: -1, NaN, 3, a masked cell, and 0.7 (Tacit does not round dosages).
    """

    def __init__(self, array: Any, sites: SiteList | None) -> None:
        shape: tuple[int, ...] = tuple(getattr(array, "shape", ()))
        if len(shape) != 2 or not shape[1] or not hasattr(array, "__getitem__"):
            is_array = hasattr(array, "shape") and hasattr(array, "__getitem__")
            got = f"an array with {len(shape)} axes" if is_array else type(array).__name__
            as_array = "array.reshape(people, variants)" if is_array else "frame.to_numpy()"
            raise bad_parameter(
                "source", "a path, or an array of people x variants with at least one variant",
                "an array without variants" if len(shape) == 2 and is_array else got,
                fix=Code(f"tc.genotypes({as_array}, ...)"),
            )  # fmt: skip
        if sites is not None and len(sites) != shape[1]:
            raise bad_parameter(
                "variants", f"a table of {shape[1]:,} lines, one for each column of the array",
                f"one of {len(sites):,}", fix=Code("variants=table.iloc[columns]"),
            )  # fmt: skip
        self._array = array
        self.sites = SiteList.of_number(int(shape[1])) if sites is None else sites

    def people(self) -> int:
        """Return the number of rows."""
        return int(self._array.shape[0])

    def blocks(self, size: int | None = None) -> Iterator[GenotypeBlock]:
        """Return blocks of columns."""
        people = self.people()
        step = min(self.rows_at_once(people, size), 256)
        for start in range(0, len(self.sites), step):
            columns = self._array[:, start : start + step]
            columns = columns.toarray() if hasattr(columns, "toarray") else columns  # scipy.sparse
            if np.ma.isMaskedArray(columns):
                number = columns.dtype.kind in "biuf"
                columns = np.ma.filled(columns.astype(np.float64 if number else object), np.nan)
            part = as_genotypes(np.asarray(columns))
            yield GenotypeBlock(np.arange(start, start + part.shape[1]), pack(part.T), people)


def as_genotypes(values: NDArray[Any]) -> NDArray[np.int8]:
    """Return 0, 1, 2, and -1 for everything else.

    Examples
    --------
    >>> as_genotypes(np.array([[0, 2.0, 0.7, float("nan"), 300]])).tolist()
    [[0, 2, -1, -1, -1]]
    """
    if values.dtype == np.int8:
        return np.where((values < 0) | (values > 2), np.int8(MISSING), values)
    genotypes = np.full(values.shape, MISSING, np.int8)
    if values.dtype.kind not in "biuf":
        values = _as_numbers(values)
    for copies in (0, 1, 2):
        genotypes[values == copies] = copies
    return genotypes


def _as_numbers(values: NDArray[Any]) -> NDArray[np.float64]:
    """Read cells of any type as numbers; NaN where one is not a number."""
    return np.array([as_number(cell) for cell in values.ravel()], np.float64).reshape(values.shape)


def as_number(cell: object) -> float:
    """Return a cell as a number, NaN if it is not one; no cell makes it fail or warn.

    Python reads an array of one cell, a complex number and a masked cell as numbers, but it warns. A warning
    would say something about this cell.

    Examples
    --------
    >>> as_number("2"), as_number(np.ma.masked), as_number(np.array([1.0])), as_number(10**400)
    (2.0, nan, nan, nan)
    """
    if isinstance(cell, np.ndarray | np.complexfloating):
        return math.nan
    try:
        return float(cell)  # type: ignore[arg-type]
    except Exception:  # noqa: BLE001 - no value makes a paid release fail
        return math.nan
