"""Uniform random subsets for `SubsetSelection`, many rows at a time, exactly uniform."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tacit import noise

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CELLS = 1 << 20  # of a table of rows and answers: small enough for the cache


def subsets(truths: NDArray[np.int64], size: int, subset: int, *, with_truth: bool) -> NDArray[np.int32]:
    """Draw `subset` answers for each row, with its truth or without; the others are uniform. Rows are sorted.

    The others are drawn as 0 .. size - 2 and then relabelled: the label of the truth stands for the last
    answer. This is one-to-one onto the answers other than the truth.
    """
    out = np.empty((truths.size, subset), np.int32)
    drawn = subset - with_truth
    sparse = drawn * (drawn - 1) <= size
    step = max(1, _CELLS // (drawn + 1 if sparse else size))
    for start in range(0, truths.size, step):
        part, truth = out[start : start + step], truths[start : start + step, None].astype(np.int32)
        others = part[:, :drawn]
        if drawn:
            (_by_rejection if sparse else _by_floyd)(others, size - 1)
            np.copyto(others, size - 1, where=others == truth)
        if with_truth:
            part[:, drawn:] = truth
        part.sort(axis=1)
    return out


def _by_rejection(out: NDArray[np.int32], below: int) -> None:
    """Draw with replacement; rows with a repeated answer are drawn again, so that all sets are alike."""
    rows, subset = len(out), out.shape[1]
    left = np.arange(rows)
    while left.size:
        drawn = noise.uniform_below(below, (left.size, subset)).astype(np.int32)
        drawn.sort(axis=1)
        out[left] = drawn
        left = left[(drawn[:, 1:] == drawn[:, :-1]).any(axis=1)]


def _by_floyd(out: NDArray[np.int32], below: int) -> None:
    """Draw without replacement by Floyd's algorithm (Bentley and Floyd 1987), on a table of members.

    A step draws one of 0 .. top; where the draw is already a member, top joins instead, which no earlier step
    could reach. After each step all sets of that size within 0 .. top are alike.
    """
    rows, subset = len(out), out.shape[1]
    member = np.zeros(rows * below, np.bool_)
    base = np.arange(rows) * below
    for place, top in enumerate(range(below - subset, below)):
        drawn = noise.uniform_below(top + 1, rows)
        cell = base + drawn
        np.copyto(drawn, top, where=member.take(cell))
        np.add(base, drawn, out=cell)
        member[cell] = True
        out[:, place] = drawn
