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
_HELD_BYTES = 1 << 26  # bytes of packed calls that are in memory at once
_CELLS = 1 << 21  # numbers of people x variants that are in memory at once
_ALL_MISSING = 0x55


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
            members = groups == group
            scale[members] = scales(squares[members], clip_squared)
    unclipped = scale == 1 << _BITS
    masks = [(groups == group) & unclipped for group in range(len(values))]
    packed, sizes = [pack_mask(mask) for mask in masks], np.array([int(mask.sum()) for mask in masks])
    clipped = [
        _Clipped(np.flatnonzero((groups == group) & ~unclipped), scale, values[group])
        for group in range(len(values))
    ]
    sums = np.zeros(values.shape[:-1], np.int64)
    unseen = np.ones(values.shape[2], np.bool_)
    for block in source.blocks():
        unseen[block.places] = False
        counts = count_copies(block.packed, packed, sizes)
        for group, some in enumerate(clipped):
            table = values[group][:, block.places]
            sums[group][:, block.places] = (table * counts[group]).sum(axis=-1) + some.sums(
                block.packed, table
            )
    for index in np.flatnonzero(unseen).tolist():  # variants that never come: everybody is missing
        for group, some in enumerate(clipped):
            missing_values = values[group][:, index, 3]
            sums[group][:, index] = missing_values * sizes[group] + scale_down(
                missing_values[:, None], scale[some.who]
            ).sum(axis=1)
    return sums


class _Clipped:
    """People above the bound, with what each possible integer becomes for each of them.

    Sums are dot products of single-precision numbers, which are exact: whole numbers below 2^24.
    """

    def __init__(self, people: NDArray[Any], scale: NDArray[np.int64], values: NDArray[np.int64]) -> None:
        self.who = people
        if len(people):
            self._levels = np.unique(np.abs(values))
            self._step = max(1, min(4096, EXACT // max(1, int(self._levels[-1]))))
            self._shrunk = np.stack([scale_down(one, scale[people]) for one in self._levels]).astype(
                np.float32
            )

    def sums(self, packed: NDArray[np.uint8], table: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sums over these people: part, row; ``table`` is part, row, call."""
        sums = np.zeros(table.shape[:-1], np.int64)
        if not len(self.who):
            return sums
        level, sign = np.searchsorted(self._levels, np.abs(table)), np.sign(table)
        for start in range(0, len(self.who), self._step):
            part = slice(start, start + self._step)
            columns = _columns(packed, self.who[part])
            for call in np.flatnonzero(table.any(axis=(0, 1))).tolist():
                with_call = (columns == call).astype(np.float32)
                for i, j in np.argwhere(table[..., call]).tolist():
                    add = with_call[j] @ self._shrunk[level[i, j, call], part]
                    sums[i, j] += sign[i, j, call] * int(add)
        return sums


def norms_squared(source: GenotypeSource, squares: NDArray[np.int64], people: int) -> NDArray[np.int64]:
    """Return the squared norm of each person: the sum over variants of what a call adds (variant, call).

    Four people of a byte are added at once, in four lanes of 16 bits, until a lane might overflow.
    """
    norms = np.zeros(4 * padded(people), np.int64)
    if not len(squares):
        return norms[:people]
    norms += squares[:, 3].sum()  # as if every call were missing; the calls that come correct it
    largest = max(1, int(squares.max()))
    if largest > _FULL:  # no lane holds it: add one by one
        for block in source.blocks():
            codes = squares[block.places][:, :]
            column = _columns(block.packed, np.arange(people))
            each = np.take_along_axis(codes, column.astype(np.intp), axis=1) - codes[:, 3:]
            norms[:people] += each.sum(axis=0)
        return norms[:people]
    max_blocks = _FULL // largest
    lanes, blocks_added = np.zeros(padded(people), np.uint64), 0
    for block in source.blocks():
        block_squares = squares[block.places]
        tables = (block_squares[:, _COLUMNS_OF_BYTE].astype(np.uint64) << _LANES).sum(axis=2, dtype=np.uint64)
        for row, table in zip(block.packed, tables, strict=True):
            if blocks_added == max_blocks:
                _flush(lanes, norms)
                blocks_added = 0
            lanes += table[row]
            blocks_added += 1
        norms -= block_squares[:, 3].sum()
    _flush(lanes, norms)
    return norms[:people]


def _flush(lanes: NDArray[np.uint64], norms: NDArray[np.int64]) -> None:
    """Add the four lanes of each word to four people, and empty them."""
    norms += lanes.view(np.uint16).astype(np.int64)  # little-endian: the first person is in the lowest lane
    lanes[:] = 0


def scales(squares: NDArray[np.int64], clip_squared: int) -> NDArray[np.int64]:
    """Return for each squared norm the largest multiple of 2^-20, at most 1, that brings it to the bound.

    Examples
    --------
    >>> scales(np.array([100, 101, 400]), 100).tolist()
    [1048576, 1043372, 524288]
    """
    different, inverse = np.unique(squares, return_inverse=True)
    above = clip_squared << (2 * _BITS)
    each = [math.isqrt(above // one) if one > clip_squared else 1 << _BITS for one in different.tolist()]
    return np.array(each, np.int64)[inverse]


def _columns(packed: NDArray[np.uint8], people: NDArray[Any]) -> NDArray[np.uint8]:
    """Return which column of a table of values applies, for each row and some people."""
    codes = (packed[:, people >> 2] >> (2 * (people & 3)).astype(np.uint8)) & 3
    columns: NDArray[np.uint8] = _COLUMN[codes]
    return columns


def scale_down(values: NDArray[np.int64], scale: NDArray[np.int64]) -> NDArray[np.int64]:
    """Scale integers and round them toward zero."""
    shrunk = (np.abs(values) * scale) >> _BITS
    return np.where(values < 0, -shrunk, shrunk)


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
    size = len(places)
    largest = max(1, int(np.abs(values).max()))
    step = max(1, min(_CELLS // size, EXACT // largest**2))  # sums in single precision stay exact
    sums, products = np.zeros(size, np.int64), np.zeros((size, size), np.int64)
    for packed, people in _slices(source, places):
        for start in range(0, people, step):
            start_byte, stop_byte = start // 4, -(-min(people, start + step) // 4)
            calls = unpack(packed[:, start_byte:stop_byte], 4 * (stop_byte - start_byte))
            calls = calls[:, start - 4 * start_byte : min(people, start + step) - 4 * start_byte]
            genotypes = np.take_along_axis(values, calls.astype(np.intp) % 4, axis=1)  # a missing call is -1
            if clip_squared is not None:
                genotypes = scale_down(genotypes, scales((genotypes**2).sum(axis=0), clip_squared))
            sums += genotypes.sum(axis=1)
            short = genotypes.astype(np.float32)
            np.add(products, short @ short.T, out=products, casting="unsafe")  # in double precision: exact
    return sums, products


def _slices(source: GenotypeSource, places: NDArray[np.int64]) -> Iterator[tuple[NDArray[np.uint8], int]]:
    """Return the packed calls of the variants for some people at a time, and how many people these are."""
    people, size = source.people(), len(places)
    order = np.full(len(source.sites), -1, np.int64)
    order[places] = np.arange(size)
    width = max(1, min(padded(people), _HELD_BYTES // size))
    for start in range(0, -(-people // 4), width):
        packed = np.full((size, width), _ALL_MISSING, np.uint8)  # also variants that never come
        for block in source.blocks():
            rows = order[block.places]
            part = block.packed[rows >= 0, start : start + width]
            packed[rows[rows >= 0], : part.shape[1]] = part
        yield packed, min(people - 4 * start, 4 * width)
