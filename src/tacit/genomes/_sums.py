"""Sums over people of small integers that each call gives: clipped per person, exact, in two passes.

Each variant gives a person one or more integers by the person's call (0, 1, 2 copies, or missing). Clipping
bounds the norm of all these integers of one person together: a person above the bound is scaled down, and
each integer is rounded toward zero, so the norm stays below the bound. docs/proofs/genomes.md, section 2.

Products of two variants are summed over people who are clipped first: exact, and in slices of people.
docs/proofs/genomes.md, section 6.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.genomes._genotypes import count_copies, pack_mask, padded, unpack

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from tacit.genomes._genotypes import GenotypeSource


_BITS = 20  # a scale is a multiple of 2^-20
_LANES = np.arange(0, 64, 16, dtype=np.uint64)
_FULL = 2**16 - 1
#: Below it, single precision holds every whole number.
EXACT = 2**24
#: Code of two bits -> column of a table of values: 0, 1, 2 copies, missing.
_COLUMN = np.array([2, 3, 1, 0], np.uint8)
_COLUMNS_OF_BYTE = _COLUMN[(np.arange(256)[:, None] >> np.arange(0, 8, 2)) & 3]


def clipped_sums(
    source: GenotypeSource,
    values: NDArray[np.int64],
    groups: NDArray[np.int64],
    clip_squared: int | None = None,
) -> NDArray[np.int64]:
    """Return the sum of each integer over the people of each group: group, part, variant.

    Parameters
    ----------
    source
        The genotypes.
    values
        What a call gives: group, part, variant, then by call: 0, 1, 2 copies, missing.
    groups
        The group of each person, -1 for none.
    clip_squared
        The bound of the squared norm of one person; None if the values keep to it by themselves.
    """
    people = len(groups)
    scale = np.full(people, 1 << _BITS, np.int64)
    if clip_squared is not None:
        squares = np.zeros(people, np.int64)
        for group in range(len(values)):
            # the squares in hand are those of the group before: neighbours in the list often share a table
            if group == 0 or not np.array_equal(values[group], values[group - 1]):
                squares = norms_squared(source, (values[group] ** 2).sum(axis=0), people)
            own = groups == group
            scale[own] = scales(squares[own], clip_squared)
    whole = scale == 1 << _BITS
    masks = [(groups == group) & whole for group in range(len(values))]
    packed, sizes = [pack_mask(mask) for mask in masks], np.array([int(mask.sum()) for mask in masks])
    clipped = [
        _Clipped(np.flatnonzero((groups == group) & ~whole), scale, values[group])
        for group in range(len(values))
    ]
    found = np.zeros(values.shape[:-1], np.int64)
    unseen = np.ones(values.shape[2], np.bool_)
    for block in source.blocks():
        unseen[block.places] = False
        counts = count_copies(block.packed, packed, sizes)
        for group, some in enumerate(clipped):
            table = values[group][:, block.places]
            found[group][:, block.places] = (table * counts[group]).sum(axis=-1) + some.sums(
                block.packed, table
            )
    for place in np.flatnonzero(unseen).tolist():  # variants that never come: everybody is missing
        for group, some in enumerate(clipped):
            held = values[group][:, place, 3]
            found[group][:, place] = held * sizes[group] + scale_down(held[:, None], scale[some.who]).sum(
                axis=1
            )
    return found


class _Clipped:
    """People above the bound, with what each possible integer becomes for each of them.

    Sums are dot products of single-precision numbers, which are exact: whole numbers below 2^24.
    """

    def __init__(self, who: NDArray[Any], scale: NDArray[np.int64], values: NDArray[np.int64]) -> None:
        self.who = who
        if len(who):
            self._levels = np.unique(np.abs(values))
            self._step = max(1, min(4096, EXACT // max(1, int(self._levels[-1]))))
            self._shrunk = np.stack([scale_down(one, scale[who]) for one in self._levels]).astype(np.float32)

    def sums(self, packed: NDArray[np.uint8], table: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sums over these people: part, row; ``table`` is part, row, call."""
        found = np.zeros(table.shape[:-1], np.int64)
        if not len(self.who):
            return found
        level, sign = np.searchsorted(self._levels, np.abs(table)), np.sign(table)
        for start in range(0, len(self.who), self._step):
            part = slice(start, start + self._step)
            columns = _columns(packed, self.who[part])
            for call in np.flatnonzero(table.any(axis=(0, 1))).tolist():
                with_call = (columns == call).astype(np.float32)
                for i, j in np.argwhere(table[..., call]).tolist():
                    add = with_call[j] @ self._shrunk[level[i, j, call], part]
                    found[i, j] += sign[i, j, call] * int(add)
        return found


def norms_squared(source: GenotypeSource, squares: NDArray[np.int64], people: int) -> NDArray[np.int64]:
    """Return the squared norm of each person: the sum over variants of what a call adds (variant, call).

    Four people of a byte are added at once, in four lanes of 16 bits, until a lane might overflow.
    """
    found = np.zeros(4 * padded(people), np.int64)
    if not len(squares):
        return found[:people]
    found += squares[:, 3].sum()  # as if every call were missing; the calls that come correct it
    largest = max(1, int(squares.max()))
    if largest > _FULL:  # no lane holds it: add one by one
        for block in source.blocks():
            codes = squares[block.places][:, :]
            column = _columns(block.packed, np.arange(people))
            each = np.take_along_axis(codes, column.astype(np.intp), axis=1) - codes[:, 3:]
            found[:people] += each.sum(axis=0)
        return found[:people]
    most = _FULL // largest
    lanes, held = np.zeros(padded(people), np.uint64), 0
    for block in source.blocks():
        own = squares[block.places]
        tables = (own[:, _COLUMNS_OF_BYTE].astype(np.uint64) << _LANES).sum(axis=2, dtype=np.uint64)
        for row, table in zip(block.packed, tables, strict=True):
            if held == most:
                _flush(lanes, found)
                held = 0
            lanes += table[row]
            held += 1
        found -= own[:, 3].sum()
    _flush(lanes, found)
    return found[:people]


def _flush(lanes: NDArray[np.uint64], found: NDArray[np.int64]) -> None:
    """Add the four lanes of each word to four people, and empty them."""
    found += lanes.view(np.uint16).astype(np.int64)  # little-endian: the first person is in the lowest lane
    lanes[:] = 0


def scales(squares: NDArray[np.int64], clip_squared: int) -> NDArray[np.int64]:
    """Return for each squared norm the largest multiple of 2^-20, at most 1, that brings it to the bound.

    Examples
    --------
    >>> scales(np.array([100, 101, 400]), 100).tolist()
    [1048576, 1043372, 524288]
    """
    different, place = np.unique(squares, return_inverse=True)
    above = clip_squared << (2 * _BITS)
    each = [math.isqrt(above // one) if one > clip_squared else 1 << _BITS for one in different.tolist()]
    return np.array(each, np.int64)[place]


def _columns(packed: NDArray[np.uint8], who: NDArray[Any]) -> NDArray[np.uint8]:
    """Return which column of a table of values applies, for each row and some people."""
    codes = (packed[:, who >> 2] >> (2 * (who & 3)).astype(np.uint8)) & 3
    columns: NDArray[np.uint8] = _COLUMN[codes]
    return columns


def scale_down(values: NDArray[np.int64], scale: NDArray[np.int64]) -> NDArray[np.int64]:
    """Scale integers and round them toward zero."""
    shrunk = (np.abs(values) * scale) >> _BITS
    return np.where(values < 0, -shrunk, shrunk)


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
