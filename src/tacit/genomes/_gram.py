"""Products of two variants, summed over people who are clipped first: exact, and in slices of people.

docs/proofs/genomes.md, section 6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tacit.genomes._blocks import padded, unpack
from tacit.genomes._sums import EXACT, scale_down, scales

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from tacit.genomes._blocks import GenotypeSource

_HELD = 1 << 26  # bytes of packed calls that are in memory at once
_CELLS = 1 << 21  # numbers of people x variants that are in memory at once
_ALL_MISSING = 0x55


def clipped_products(
    source: GenotypeSource,
    places: NDArray[np.int64],
    values: NDArray[np.int64],
    clip_squared: int | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the sums of the integers of each variant, and of their products for each pair of variants.

    Parameters
    ----------
    source
        The genotypes.
    places
        Which variants of the site list.
    values
        What a call gives: variant, then by call: 0, 1, 2 copies, missing.
    clip_squared
        The bound of the squared norm of one person; None if the values keep to it by themselves.
    """
    wide = len(places)
    largest = max(1, int(np.abs(values).max()))
    step = max(1, min(_CELLS // wide, EXACT // largest**2))  # sums in single precision stay exact
    sums, products = np.zeros(wide, np.int64), np.zeros((wide, wide), np.int64)
    for packed, people in _slices(source, places):
        for start in range(0, people, step):
            first, last = start // 4, -(-min(people, start + step) // 4)
            calls = unpack(packed[:, first:last], 4 * (last - first))
            calls = calls[:, start - 4 * first : min(people, start + step) - 4 * first]
            own = np.take_along_axis(values, calls.astype(np.intp) % 4, axis=1)  # a missing call is -1
            if clip_squared is not None:
                own = scale_down(own, scales((own**2).sum(axis=0), clip_squared))
            sums += own.sum(axis=1)
            short = own.astype(np.float32)
            np.add(products, short @ short.T, out=products, casting="unsafe")  # in double precision: exact
    return sums, products


def _slices(source: GenotypeSource, places: NDArray[np.int64]) -> Iterator[tuple[NDArray[np.uint8], int]]:
    """Return the packed calls of the variants for some people at a time, and how many people these are."""
    people, wide = source.people(), len(places)
    order = np.full(len(source.sites), -1, np.int64)
    order[places] = np.arange(wide)
    width = max(1, min(padded(people), _HELD // wide))
    for first in range(0, -(-people // 4), width):
        held = np.full((wide, width), _ALL_MISSING, np.uint8)  # also variants that never come
        for block in source.blocks():
            rows = order[block.places]
            part = block.packed[rows >= 0, first : first + width]
            held[rows[rows >= 0], : part.shape[1]] = part
        yield held, min(people - 4 * first, 4 * width)
