"""The exact integers behind an answer: what is counted, on which grid, with which weight per row.

Every aggregate of a question is read off one of these statistics. A statistic is a vector of integers per
group, a sum over units of bounded integer vectors; its *weight* is the largest L1 norm that one row can
add.

* ``rows``: 1 per row.
* ``sum``: q, the value on the grid, in [lo, hi]; a unit's sum in a group is clipped to [c min(lo,0), c
  max(hi,0)].
* ``moments`` (mean): (q - lo, hi - q), both non-negative with sum W = hi - lo: one budget buys mean and
  count together.
* ``squares`` (variance): (W-y)^2, 2 y (W-y), y^2 with y = q - lo, non-negative with sum W^2: mean, variance
  and count.
* ``units``: 1 per unit and group. ``distinct``: at most 1 per row.
* ``bins``: 1 per row, in the cell of its value (histograms, quantiles, most common values).

Where a unit has n > c rows in a group, its vector for ``moments`` and ``squares`` is scaled by c/n as a
whole: all entries but the last are floored, the last is what is left of c W (or c W^2), so the entries stay
non-negative with the exact sum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.errors import bad_parameter
from tacit.exact import rational

if TYPE_CHECKING:
    from tacit.tables._expressions import Node

__all__ = ["Grid", "Statistic", "grid_for", "nice_step"]

_BITS = {"sum": 30, "moments": 30, "squares": 16}
_LEAST_EXPONENT = -1000  # 2/step is a double


@dataclass(frozen=True, slots=True)
class Grid:
    """The public integer grid of a value: x becomes floor(x/step + 1/2), clipped to [lo, hi]."""

    low: Fraction
    high: Fraction
    step: Fraction
    lo: int
    hi: int

    @property
    def width(self) -> int:
        """The largest change of one value, in steps."""
        return self.hi - self.lo


def grid_for(bounds: tuple[Fraction, Fraction], statistic: str) -> Grid:
    """Choose the grid from public bounds.

    A power of two (so that x/step is exact in binary), about 2^30 steps.

    Variances use about 2^16 steps, so that squares stay small. The grid never exceeds 2^52 steps from zero,
    where doubles still tell neighbours apart.
    """
    low, high = bounds
    exponent = max(
        _ceil_log2(high - low) - _BITS[statistic],
        _ceil_log2(max(abs(low), abs(high))) - 52,
        _LEAST_EXPONENT,
    )
    step = Fraction(2) ** exponent
    if _round(high / step) <= _round(low / step):
        raise bad_parameter(
            "bounds",
            "a pair that doubles can tell apart",
            (float(low), float(high)),
            fix="centre the column on zero first",
        )
    return Grid(low, high, step, _round(low / step), _round(high / step))


def nice_step(bounds: tuple[Fraction, Fraction], most: int = 1000) -> Fraction:
    """Return the smallest step (1, 2 or 5 times a power of ten) that makes at most ``most`` candidates."""
    width = bounds[1] - bounds[0]
    power = math.floor(math.log10(float(width) / most)) - 1
    while True:
        for digit in (1, 2, 5):
            step = digit * Fraction(10) ** power
            if width / step + 1 <= most:
                return step
        power += 1


def _round(x: Fraction) -> int:
    return math.floor(x + Fraction(1, 2))


def _ceil_log2(x: Fraction) -> int:
    """Return the smallest k with 2^k >= x."""
    k = x.numerator.bit_length() - x.denominator.bit_length()
    while Fraction(2) ** k < x:
        k += 1
    while Fraction(2) ** (k - 1) >= x:
        k -= 1
    return k


@dataclass(frozen=True, slots=True)
class Statistic:
    """One vector of exact integers per group.

    Parameters
    ----------
    kind
        ``rows``, ``sum``, ``moments``, ``squares``, ``units``, ``distinct`` or ``bins``.
    argument
        What is measured; None for ``rows`` and ``units``.
    grid
        The grid of ``sum``, ``moments``, ``squares``.
    cells
        For ``bins``: the edges of the cells, or the values that are counted.
    form
        For ``bins``: ``edges`` (cells between edges), ``nearest`` (the nearest of evenly spaced candidates,
        given as first, step and number), ``candidates`` (the nearest of those listed, followed by the
        middles between them) or ``values``.
    whole
        For ``sum``: every unit has exactly one value in [lo, hi], so that another in its place changes the
        sum by at most hi - lo.
    """

    kind: str
    argument: Node | None = None
    grid: Grid | None = None
    cells: tuple[float | str | bool, ...] = ()
    form: str = ""
    whole: bool = False

    @property
    def size(self) -> int:
        """How many integers there are per group."""
        match self.kind:
            case "moments":
                return 2
            case "squares":
                return 3
            case "bins":
                return self.bins
            case _:
                return 1

    @property
    def bins(self) -> int:
        """How many cells a histogram has."""
        match self.form:
            case "edges":
                return len(self.cells) - 1
            case "nearest":
                return int(self.cells[2])
            case "candidates":
                return (len(self.cells) + 1) // 2
            case _:
                return len(self.cells)

    @property
    def values(self) -> tuple[float | str | bool, ...]:
        """The candidates of a histogram, in the order of its cells."""
        match self.form:
            case "nearest":
                first, step, size = (float(c) for c in self.cells)
                exact = rational("step", step)
                start = rational("first", first, zero=True, negative=True)
                return tuple(float(start + i * exact) for i in range(int(size)))
            case "candidates":
                return self.cells[: self.bins]
            case _:
                return self.cells

    @property
    def weight(self) -> int:
        """The largest L1 norm that one row can add."""
        grid = self.grid
        if grid is None:
            return 1
        match self.kind:
            case "sum":
                return max(abs(grid.lo), abs(grid.hi))
            case "moments":
                return grid.width
            case _:
                return grid.width**2
