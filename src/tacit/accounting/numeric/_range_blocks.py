"""Blocks of bounded-range losses in numeric accounting: their largest delta, whatever depends on answers.

One loss of range epsilon is largest at a threshold for two values, t and t - epsilon, and the t that is worst
depends on the threshold. Composing the law that is worst at *every* threshold is loose. A block of k such
losses is read at once instead: F_k(x), the largest delta at threshold x over all rules that choose each t by
the earlier answers, follows from F_(k-1) by one maximum over t. F_k is convex in exp(x), so upper values on a
grid, joined by straight lines, stay upper values, and on each line the maximum has a closed form. A block is
then a finite pair like any other. The proof is docs/proofs/accounting.md, section 6.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tacit.accounting._laws import BoundedRangeLoss, LossLaw, Parts
from tacit.accounting.numeric._accountants import Accountant, DitheredAccountant, LeakyAccountant
from tacit.accounting.numeric._atoms import Atoms
from tacit.accounting.numeric._bracket import NotConverged, U, as_float
from tacit.accounting.numeric._convolution import convolved
from tacit.accounting.numeric._curve import Curve
from tacit.accounting.numeric._factors import factors_of
from tacit.accounting.numeric._finite_pair import connect_dots
from tacit.accounting.numeric._fourier import FourierInversion
from tacit.accounting.numeric._lattice import composed
from tacit.accounting.numeric._lattice_laws import Pmf
from tacit.accounting.numeric._loss_sum import LossSum

if TYPE_CHECKING:
    from tacit.accounting.numeric._mgf import Reals

_WORK = 7e5  # cells^2 times size^1.5 of one block: about a tenth of a second
_CELLS = (32, 24, 16, 12, 8, 6)  # grid steps in one epsilon
_WIDTH = 11.5  # standard deviations on either side of the grid
_LEAST, _MOST = 1e-6, 4.0  # epsilons: below, rounding matters; above, few losses are composed
_LOOSE = 0.06  # estimated excess from which the zCDP reading is better anyway


class _Plan(NamedTuple):
    """How many losses make one block, how many blocks there are, and the grid steps in one epsilon."""

    size: int
    blocks: int
    cells: int


@lru_cache(maxsize=64)
def block_accountants(parts: Parts, *, add: int) -> tuple[Accountant, ...]:
    """Return accountants, the best first, for a sum in which one bounded-range law occurs at least twice.

    They read this law by blocks. Other laws keep their own pairs. Upper values only.
    """
    law, times = max(
        ((law, times) for law, times in parts if isinstance(law, BoundedRangeLoss)),
        key=lambda part: part[1] * part[0].epsilon ** 2,
    )
    plan = _plan(times)
    epsilon = as_float(law.epsilon) * (1 + 4 * U)
    if times < 2 or plan is None or not _LEAST < epsilon < _MOST:
        raise NotConverged
    step, curves = _curves(epsilon, plan.size, plan.cells)
    last = times - (plan.blocks - 1) * plan.size
    sizes = {plan.size: plan.blocks - 1}
    sizes[last] = sizes.get(last, 0) + 1
    found = [(_pmf(curves[size], step), often) for size, often in sizes.items() if often]
    leak = -math.expm1(sum(often * math.log1p(-leak) for (_, leak), often in found)) * (1 + 64 * U)
    blocks = [(pmf, often) for (pmf, _), often in found]
    others: list[tuple[LossLaw, int]] = [part for part in parts if part[0] != law]
    if others:
        return _beside(blocks, tuple(others), leak, add=add)
    total = convolved(blocks, step) if plan.blocks == 1 else composed(blocks, step)
    return (LeakyAccountant(total, leak, exact=False),)


def _beside(blocks: list[tuple[Pmf, int]], others: Parts, leak: float, *, add: int) -> tuple[Accountant, ...]:
    found = factors_of(others, add=add)
    atoms = [
        (Atoms(as_float(pmf.offset) + as_float(pmf.step) * kept, pmf.masses[kept], pmf.slack), often)
        for pmf, often in blocks
        for kept in [np.flatnonzero(pmf.masses)]
    ]
    loss_sum = LossSum((*found.loss_sum.factors, *atoms))
    leak = (leak + found.leak) * (1 + 4 * U)
    ways: list[Accountant] = [
        FourierInversion(loss_sum),
        *(DitheredAccountant(loss_sum, times) for times in (0.4, 6.0)),
    ]
    return tuple(LeakyAccountant(way, leak, exact=False) for way in ways)


def _plan(times: int) -> _Plan | None:
    """Choose size and grid by their estimated excess: 1/(2 cells^2), and 0.0035 for each further block."""
    best, found = _LOOSE, None
    for cells in _CELLS:
        most = math.floor((_WORK / cells**2) ** (2 / 3))
        blocks = -(-times // most)
        excess = 0.5 / cells**2 + 0.0035 * (blocks - 1)
        if excess < best:
            best, found = excess, _Plan(-(-times // blocks), blocks, cells)
    return found


class _Grid(NamedTuple):
    """The thresholds j g for whole numbers j from -reach to reach, g = epsilon / cells."""

    epsilon: float
    cells: int
    reach: int

    def y(self, margin: int = 0) -> Reals:
        """Return exp(x) on the grid, with a margin of further points on both sides."""
        ends = self.reach + margin
        found: Reals = np.exp(self.epsilon / self.cells * np.arange(-ends, ends + 1))
        return found


@lru_cache(maxsize=16)
def _curves(epsilon: float, size: int, cells: int) -> tuple[Fraction, dict[int, Reals]]:
    """Return the grid step, and for each number of losses up to the size the upper values, around 0."""
    found: dict[int, Reals] = {}
    values = np.array([1 - math.exp(-epsilon / cells), 0.0, 0.0])  # no loss at all, on three points
    for number in range(1, size + 1):
        reach = (_WIDTH * math.sqrt(number) / 2 + number * epsilon / 8 + 1) * cells
        grid = _Grid(epsilon, cells, min(math.ceil(reach), number * cells))
        values = _one_more(grid, _extended(values, grid))
        places = np.arange(-grid.reach, grid.reach + 1)
        values = np.minimum(np.where(places >= number * cells, 0.0, values), 1.0)
        found[number] = values
    return Fraction(epsilon) / cells, found


def _extended(values: Reals, grid: _Grid) -> Reals:
    """Continue upper values by one epsilon beyond the grid: on the left 1 - y and a bit, level on the right.

    F(y) - (1 - y) rises in y, because the slope of F is at least -1, and F itself falls.
    """
    y = grid.y(grid.cells)
    more = (len(y) - len(values)) // 2
    ahead = max(float(values[0] - (1 - y[more])), 0.0) + 4 * U
    return np.concatenate([1 - y[:more] + ahead, values, np.full(more, values[-1])])


def _one_more(grid: _Grid, before: Reals) -> Reals:
    """Return upper values for one more loss, the largest over t.

    Between two grid points F is at most a line a - b y. For t in one cell of the grid, r = exp(t) and E =
    exp(epsilon), (E - 1) times delta is C - alpha r - beta / r. With the lines (a0, b0) of the cell around
    x - t and (a1, b1) of the cell around x - t + epsilon, alpha = a0 - a1 and beta = E y (b0 - b1).
    """
    cells, g, e = grid.cells, grid.epsilon / grid.cells, math.exp(grid.epsilon)
    y, around = grid.y(), grid.y(cells)
    slopes = np.diff(before) / -np.diff(around)
    heads = sliding_window_view(before[:-1] + slopes * around[:-1], len(y))
    slopes = sliding_window_view(slopes, len(y))
    near, far = slice(cells - 1, None, -1), slice(2 * cells - 1, cells - 1, -1)  # cells of t from 0 upwards
    low, high = (np.exp(g * np.arange(first, cells + first))[:, None] for first in (0, 1))
    a0, b0, a1, b1 = heads[near], slopes[near] * y, heads[far], slopes[far] * (y * e)
    alpha, beta = a0 - a1, e * b0 - b1
    constant = e * a0 + b0 - a1 - b1
    # Of a convex function both are positive. Where rounding made one of them negative, the largest value is
    # at the end that the clipping finds; where it made both negative, it may be at the high end.
    r = np.clip(np.sqrt(np.maximum(beta, 0.0) / np.maximum(alpha, 1e-300)), low, high)
    largest: Reals = (constant - alpha * r - beta / r).max(axis=0)
    if ((alpha < 0) & (beta < 0)).any():
        largest = np.maximum(largest, (constant - alpha * high - beta / high).max(axis=0))
    rounding = (96 + 8 * g * grid.reach) * U * e * (heads[0] + slopes[0] * y)
    found: Reals = (largest + rounding) / (e - 1)
    return found


def _pmf(values: Reals, step: Fraction) -> tuple[Pmf, float]:
    """Return a finite pair above the upper values, on the grid, and its infinite loss."""
    first = -(len(values) // 2)
    grid = as_float(step) * (first + np.arange(len(values)))
    pair = connect_dots(Curve(lambda _: values, lambda _: values, grid[0], grid[-1]), grid)
    masses = np.zeros(len(values))
    masses[np.round((pair.losses - grid[0]) / as_float(step)).astype(int)] = pair.masses
    return Pmf(first * step, step, masses, 4 * U + pair.slack), pair.infinite
