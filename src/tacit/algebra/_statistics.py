"""The statistics of a table: exact integers behind an answer, what is counted, with which grid and weight.

Every aggregate of a question is read off one of these statistics. A statistic is a vector of integers per
group, a sum over units of bounded integer vectors; its *weight* is the largest L1 norm that one row can
add.

**Rows, units, sums and bins.** Where a unit has n > c rows in a group, its vector of `MomentSums` and
`SquareSums` is scaled by c/n as a whole: all entries but the last are floored, the last is what remains of
c W (or c W^2), so the entries stay non-negative with the exact sum. `CutSums` says of a limit for each row
what it keeps of a sum, and what it cuts.

**Products of two columns** (`ProductSums`). A value x on its grid becomes y = q - lo in [0, W] and has three
parts, (W-y)^2, 2y(W-y) and y^2. They are non-negative with the sum W^2. The nine products of the parts of two
values are non-negative with the sum W^2 V^2, and count, means, variances and covariance of the two columns
are linear in them. So one row changes all second moments together by one weight, where sums of products would
need one measurement each.

**Products of several columns** (`PartProducts`). A value on its grid has the same three parts with the sum
W^2; a yes/no column (W = 1) needs two, 1 - y and y. The products over all columns are non-negative, and of
one row they add up to the product of these sums. All second moments of the columns are linear in them. So one
row changes everything that a regression needs by one weight together.

**Products of many columns** (`MomentProducts`): the sums of products of every two of them, and of each with
1. A value on its grid becomes d = 2y - W in [-W, W], times a public factor s, so that all columns have nearly
the same bound B = s W; the constant 1 becomes ``one``. There are q(q+1)/2 products of the q variables. One
row changes all of them, so the sensitivity is that of all products together, not of one.

**A user's own utility** (`ScoreSums`): for each candidate, the sum of a score over the rows.

**Bounds that are found** (`FoundGrid`, `OctaveBins`, `FoundCells`). A plan may find bounds before it measures
a sum on them. The mechanism of the sum must not depend on what is found, so it is calibrated for one public
weight M. Once the bounds are known, so is the grid on which one row adds at most w, and all integers are
multiplied by the whole number floor(M / w) (``factor``): one row then adds at most M, whatever was found.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from math import prod
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from tacit.errors import bad_parameter
from tacit.exact import rational
from tacit.strategies import OctaveCells

if TYPE_CHECKING:
    from tacit.algebra._contribution import Contribution
    from tacit.algebra._expressions import Node


_MIN_EXPONENT = -1000  # 2/step is a double
#: The grid of each of the two columns has about 2^9 steps, so that one row weighs about 2^36: noise for
#: many rows per unit and a small epsilon stays within 64 bits.
PRODUCT_BITS = 9
SCORE_BITS = 16


@dataclass(frozen=True, slots=True)
class ValueGrid:
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


def grid_for(bounds: tuple[Fraction, Fraction], bits: int = 30) -> ValueGrid:
    """Choose the grid from public bounds: a power of two, so that x/step is exact in binary.

    It has about 2^bits steps and never exceeds 2^52 steps from zero, where doubles still differ from step to
    step.
    """
    low, high = bounds
    exponent = max(
        _ceil_log2(high - low) - bits,
        _ceil_log2(max(abs(low), abs(high))) - 52,
        _MIN_EXPONENT,
    )
    step = Fraction(2) ** exponent
    lo, hi = (math.floor(bound / step + Fraction(1, 2)) for bound in bounds)
    if hi <= lo:
        raise bad_parameter(
            "bounds",
            "two numbers far enough apart to differ in floating point",
            (float(low), float(high)),
            fix="shift the column first, so that its range includes zero",
        )
    return ValueGrid(low, high, step, lo, hi)


@dataclass(frozen=True, slots=True)
class FoundGrid(ValueGrid):
    """The grid of a value whose bounds an earlier step of the same plan finds: shares of their range.

    Its width is the weight that the mechanism is calibrated for. Once the bounds are known, values are
    rounded to about 2^bits steps between them, and multiplied by the factor of their statistic. ``cut`` is
    ``"rare"`` where the range reaches further out, so that few values lie beyond it.

    Examples
    --------
    >>> found_grid(26, 36).width == 2**36
    True
    """

    bits: int
    cut: str | None = field(default=None, metadata={"optional": True}, kw_only=True)


def found_grid(bits: int, weight_bits: int, *, signed: bool = False, cut: str | None = None) -> FoundGrid:
    """Return the grid of bounds that are found later; ``signed``: values count from zero, either way."""
    weight = 2**weight_bits
    lowest = -weight if signed else 0
    ends = Fraction(lowest, weight), Fraction(1), Fraction(1, weight)
    return FoundGrid(*ends, lowest, weight, bits, cut=cut)


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


def _ceil_log2(x: Fraction) -> int:
    """Return the smallest k with 2^k >= x."""
    k = x.numerator.bit_length() - x.denominator.bit_length()  # 2^(k-1) < x < 2^(k+1)
    return k if x <= Fraction(2) ** k else k + 1


class Statistic(ABC):
    """One vector of exact integers per group."""

    __slots__ = ()
    #: What is counted, in a word; and how many integers of SQL make up the vector.
    word: ClassVar[str]
    columns: ClassVar[int] = 1
    argument: Node | None
    #: How many integers there are per group.
    size: int = 1
    #: The largest L1 norm that one row can add.
    weight: int = 1
    #: What one integer is worth in the column's own units (or their squares).
    step: Fraction = Fraction(1)
    #: The grid on which values are rounded and clipped, if there is one.
    grid: ValueGrid | None = None

    def vector(self, numbers: list[int]) -> list[int]:
        """Turn the integers that SQL returned into the vector that gets noise."""
        return numbers

    @abstractmethod
    def sensitivity(self, who: Contribution) -> tuple[int, int]:
        """Return the L1 sensitivity and the square of the L2 sensitivity, over all groups together."""


@dataclass(frozen=True, slots=True)
class RowCounts(Statistic):
    """1 for each row, or for each row where the argument has a value."""

    word: ClassVar[str] = "rows"
    argument: Node | None = None

    def sensitivity(self, who: Contribution) -> tuple[int, int]:
        """One unit adds at most the rows it may contribute."""
        if not who.grouped:
            return who.scalar(0, 1), who.scalar(0, 1) ** 2
        return who.l1(1), who.l2_squared(1)


@dataclass(frozen=True, slots=True)
class UnitCounts(Statistic):
    """1 for each unit in each group."""

    word: ClassVar[str] = "units"
    argument: ClassVar[Node | None] = None  # type: ignore[misc]

    def sensitivity(self, who: Contribution) -> tuple[int, int]:
        """One unit changes each group that it reaches by one."""
        return who.units_l1, who.units_l1


@dataclass(frozen=True, slots=True)
class UnitsWith(Statistic):
    """1 for each unit that has the argument in at least one of its rows, in each group."""

    word: ClassVar[str] = "units with a value"
    argument: Node

    def sensitivity(self, who: Contribution) -> tuple[int, int]:
        """One unit changes each group that it reaches by one."""
        return who.units_l1, who.units_l1


@dataclass(frozen=True, slots=True)
class DistinctCounts(Statistic):
    """The number of different values; one row changes it by at most 1."""

    word: ClassVar[str] = "distinct values"
    argument: Node

    def sensitivity(self, who: Contribution) -> tuple[int, int]:
        """One unit adds at most one value for each row it may contribute."""
        if not who.grouped:
            return who.scalar(0, 1), who.scalar(0, 1) ** 2
        return who.l1(1), who.l2_squared(1)


@dataclass(frozen=True, slots=True)
class _OnGrid(Statistic):
    """A statistic of values on a public grid."""

    argument: Node
    grid: ValueGrid = field()
    #: By which all integers are multiplied, where bounds were found; see the module.
    factor: int = field(default=1, metadata={"optional": True}, kw_only=True)

    @property
    def step(self) -> Fraction:  # type: ignore[override]
        """The grid's step, or the part of it that one integer is worth."""
        return self.grid.step / self.factor


@dataclass(frozen=True, slots=True)
class Sums(_OnGrid):
    """The sum of q, the value on the grid, in [lo, hi].

    A unit's sum in a group is clipped to [c min(lo, 0), c max(hi, 0)]. ``whole``: every unit has exactly one
    value in [lo, hi], so that another value in its place changes the sum by at most hi - lo.
    """

    word: ClassVar[str] = "sum"
    whole: bool = False

    @property
    def weight(self) -> int:  # type: ignore[override]
        """The larger bound, in steps."""
        return self.factor * max(abs(self.grid.lo), abs(self.grid.hi))

    def vector(self, numbers: list[int]) -> list[int]:
        """Multiply the sum by the factor."""
        return [self.factor * number for number in numbers]

    def sensitivity(self, who: Contribution) -> tuple[int, int]:
        """One unit adds at most its rows times the larger bound."""
        if self.whole:
            return self.grid.width, self.grid.width**2
        if not who.grouped:
            scalar = who.scalar(self.factor * self.grid.lo, self.factor * self.grid.hi)
            return scalar, scalar**2
        return who.l1(self.weight), who.l2_squared(self.weight, signed=True)


@dataclass(frozen=True, slots=True)
class MomentSums(_OnGrid):
    """(hi - q, q - lo) for each value: non-negative with the sum W = hi - lo. Mean and count in one."""

    word: ClassVar[str] = "moments"
    columns: ClassVar[int] = 2
    size = 2

    @property
    def weight(self) -> int:  # type: ignore[override]
        """W: the two parts of one row add up to it."""
        return self.factor * self.grid.width

    def vector(self, numbers: list[int]) -> list[int]:
        """Turn count and sums into non-negative parts whose total is the count times the weight."""
        sums = [self.factor * number for number in numbers[1:]]
        return [numbers[0] * self.weight - sum(sums), *sums]

    def sensitivity(self, who: Contribution) -> tuple[int, int]:
        """One unit adds at most its rows times the weight."""
        return who.l1(self.weight), who.l2_squared(self.weight)


@dataclass(frozen=True, slots=True)
class SquareSums(MomentSums):
    """(W-y)^2, 2 y (W-y), y^2 with y = q - lo: non-negative with the sum W^2. Variance, mean and count."""

    word: ClassVar[str] = "squares"
    columns: ClassVar[int] = 3
    size = 3

    @property
    def weight(self) -> int:  # type: ignore[override]
        """W^2: the three parts of one row add up to it."""
        return self.factor * self.grid.width**2

    @property
    def step(self) -> Fraction:  # type: ignore[override]
        """The square of the grid's step, or the part of it that one integer is worth."""
        return self.grid.step**2 / self.factor


@dataclass(frozen=True, slots=True)
class EdgeBins:
    """Cells between public edges; the last holds its upper edge too."""

    edges: tuple[float, ...]

    @property
    def size(self) -> int:
        """How many cells there are."""
        return len(self.edges) - 1

    @property
    def values(self) -> tuple[float | str | bool, ...]:
        """The lower edges."""
        return self.edges[:-1]


@dataclass(frozen=True, slots=True)
class EvenBins:
    """The nearest of evenly spaced candidates."""

    first: float
    width: float
    size: int

    @property
    def values(self) -> tuple[float | str | bool, ...]:
        """The candidates."""
        step = rational("step", self.width)
        start = rational("first", self.first, zero=True, negative=True)
        whole = math.lcm(start.denominator, step.denominator)
        at, width = int(start * whole), int(step * whole)
        return tuple((at + i * width) / whole for i in range(self.size))  # rounded once, as a fraction is


@dataclass(frozen=True, slots=True)
class ListedBins:
    """The nearest of listed candidates; ``middles`` lie between them."""

    candidates: tuple[float, ...]
    middles: tuple[float, ...]

    @property
    def size(self) -> int:
        """How many candidates there are."""
        return len(self.candidates)

    @property
    def values(self) -> tuple[float | str | bool, ...]:
        """The candidates."""
        return self.candidates


@dataclass(frozen=True, slots=True)
class OctaveBins:
    """Cells that double in size on both sides of zero; together they hold every number.

    Examples
    --------
    >>> bins = OctaveBins(integer=True)
    >>> bins.size, bins.cuts[60:64]
    (124, (-1.0, 0.0, 1.0, 2.0))
    """

    integer: bool = False

    @property
    def cuts(self) -> tuple[float, ...]:
        """The ends between neighbouring cells; an end belongs to the cell below it."""
        return tuple(float(cut) for cut in OctaveCells(integer=self.integer).cuts)

    @property
    def size(self) -> int:
        """How many cells there are."""
        return OctaveCells(integer=self.integer).size

    @property
    def values(self) -> tuple[float | str | bool, ...]:
        """The upper ends of the cells."""
        return (*self.cuts, math.inf)


@dataclass(frozen=True, slots=True)
class PartBins:
    """Cells (a, b] between rising ends; other values are in no cell."""

    ends: tuple[float, ...]

    @property
    def size(self) -> int:
        """How many cells there are."""
        return len(self.ends) - 1

    @property
    def values(self) -> tuple[float | str | bool, ...]:
        """The upper ends of the cells."""
        return self.ends[1:]


@dataclass(frozen=True, slots=True)
class FoundCells:
    """Equal cells between bounds that an earlier step of the same plan finds."""

    size: int

    @property
    def values(self) -> tuple[float | str | bool, ...]:
        """Where each cell begins, as a share of the range."""
        return tuple(i / self.size for i in range(self.size))


@dataclass(frozen=True, slots=True)
class FoundCandidates:
    """Evenly spaced candidates, at most ``size``, between bounds that an earlier step finds."""

    size: int
    cut: str | None = field(default=None, metadata={"optional": True}, kw_only=True)

    @property
    def values(self) -> tuple[float | str | bool, ...]:
        """The candidates, as shares of the range."""
        return tuple(i / (self.size - 1) for i in range(self.size))


@dataclass(frozen=True, slots=True)
class ValueBins:
    """One cell for each of the listed values; other values are in no cell."""

    values: tuple[float | str | bool, ...]

    @property
    def size(self) -> int:
        """How many values there are."""
        return len(self.values)


Bins: TypeAlias = (
    EdgeBins | EvenBins | ListedBins | ValueBins | OctaveBins | PartBins | FoundCells | FoundCandidates
)


@dataclass(frozen=True, slots=True)
class BinCounts(Statistic):
    """1 for each row, in the cell of its value: histograms, quantiles, most common values."""

    word: ClassVar[str] = "cells"
    argument: Node
    bins: Bins

    @property
    def size(self) -> int:  # type: ignore[override]
        """One integer for each cell."""
        return self.bins.size

    def sensitivity(self, who: Contribution) -> tuple[int, int]:
        """One unit adds at most the rows it may contribute, over all cells."""
        return who.l1(1), who.l2_squared(1)


@dataclass(frozen=True, slots=True)
class CutSums(Statistic):
    """(min(q, limit), min(q, cap) - min(q, limit)) for each value: non-negative, with the sum cap at most."""

    word: ClassVar[str] = "kept and cut"
    columns: ClassVar[int] = 2
    size = 2
    argument: Node
    limit: int
    grid: ValueGrid = field()

    @property
    def weight(self) -> int:  # type: ignore[override]
        """The cap: the two parts of one value add up to no more."""
        return self.grid.hi

    def most(self, rows: int) -> tuple[int, int]:
        """Return the most that so many rows can keep and cut."""
        return rows * self.limit, rows * (self.grid.hi - self.limit)

    def sensitivity(self, who: Contribution) -> tuple[int, int]:
        """One unit adds at most its rows times the cap."""
        return who.l1(self.weight), who.l2_squared(self.weight)


@dataclass(frozen=True, slots=True)
class ProductSums(Statistic):
    """The products of the three parts of two values, of the rows in which both have one."""

    word: ClassVar[str] = "products"
    columns: ClassVar[int] = 9
    size = 9
    argument: Node
    grid: ValueGrid = field()
    other: Node
    other_grid: ValueGrid

    @property
    def weight(self) -> int:  # type: ignore[override]
        """W^2 V^2: the nine products of one row add up to it."""
        return self.grid.width**2 * self.other_grid.width**2

    @property
    def step(self) -> Fraction:  # type: ignore[override]
        """The product of the squares of the grids' steps."""
        return self.grid.step**2 * self.other_grid.step**2

    def vector(self, numbers: list[int]) -> list[int]:
        """Turn count and sums into non-negative parts whose total is the count times the weight."""
        return [numbers[0] * self.weight - sum(numbers[1:]), *numbers[1:]]

    def sensitivity(self, who: Contribution) -> tuple[int, int]:
        """One unit adds at most its rows times the weight."""
        return who.l1(self.weight), who.l2_squared(self.weight)


@dataclass(frozen=True, slots=True)
class PartProducts(Statistic):
    """The products of the parts of several values, of the rows in which all of them have one.

    Examples
    --------
    >>> from tacit.algebra import Column, grid_for
    >>> yes, ten = grid_for((Fraction(0), Fraction(1)), 0), grid_for((Fraction(0), Fraction(8)), 3)
    >>> of = PartProducts((Column("x"), Column("y")), (yes, ten))
    >>> of.size, of.weight, of.cells((1, 2))
    (6, 64, [0, 0, 0, 36, 24, 4])
    """

    word: ClassVar[str] = "products of parts"
    argument: ClassVar[Node | None] = None  # type: ignore[misc]
    values: tuple[Node, ...]
    grids: tuple[ValueGrid, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """How many parts each column has: two where its grid has one step, else three."""
        return tuple(2 if grid.width == 1 else 3 for grid in self.grids)

    @property
    def size(self) -> int:  # type: ignore[override]
        """One integer for each choice of a part of every column."""
        return prod(self.shape)

    @property
    def columns(self) -> int:  # type: ignore[override]
        """The rows, and all products but the first."""
        return self.size

    @property
    def weight(self) -> int:  # type: ignore[override]
        """The products of one row add up to it."""
        return prod(grid.width ** (parts - 1) for grid, parts in zip(self.grids, self.shape, strict=True))

    @property
    def step(self) -> Fraction:  # type: ignore[override]
        """One row is worth the weight."""
        return Fraction(1, self.weight)

    def vector(self, numbers: list[int]) -> list[int]:
        """Turn count and sums into non-negative products whose total is the count times the weight."""
        return [numbers[0] * self.weight - sum(numbers[1:]), *numbers[1:]]

    def cells(self, steps: tuple[int, ...]) -> list[int]:
        """Return the products of one row, given how many steps each value lies above its least one."""
        parts = [
            (grid.width - y, y)
            if grid.width == 1
            else ((grid.width - y) ** 2, 2 * y * (grid.width - y), y**2)
            for y, grid in zip(steps, self.grids, strict=True)
        ]
        return [prod(chosen) for chosen in product(*parts)]

    def sensitivity(self, who: Contribution) -> tuple[int, int]:
        """One unit adds at most its rows times the weight."""
        return who.l1(self.weight), who.l2_squared(self.weight)


@dataclass(frozen=True, slots=True)
class MomentProducts(Statistic):
    """The sums of d_a d_b over pairs of variables, of the rows in which all columns have a value.

    Examples
    --------
    >>> from tacit.algebra import Column, grid_for
    >>> of = MomentProducts((Column("x"),), (grid_for((Fraction(0), Fraction(8)), 3),), 64)
    >>> of.bounds, of.products((8,)), of.products((2,))
    ((64, 64), [4096, 4096, 4096], [4096, -2048, 1024])
    """

    word: ClassVar[str] = "products of columns"
    argument: ClassVar[Node | None] = None  # type: ignore[misc]
    values: tuple[Node, ...]
    grids: tuple[ValueGrid, ...]
    one: int

    @property
    def factors(self) -> tuple[int, ...]:
        """The factor of each column."""
        return tuple(max(1, round(self.one / grid.width)) for grid in self.grids)

    @property
    def bounds(self) -> tuple[int, ...]:
        """The most that 1 and each column can be."""
        widths = (grid.width for grid in self.grids)
        return (self.one, *(s * width for s, width in zip(self.factors, widths, strict=True)))

    @property
    def size(self) -> int:  # type: ignore[override]
        """One integer for each pair of variables."""
        q = len(self.grids) + 1
        return q * (q + 1) // 2

    @property
    def columns(self) -> int:  # type: ignore[override]
        """The rows, and every product but 1 times 1."""
        return self.size

    @property
    def weight(self) -> int:  # type: ignore[override]
        """All products of one row together: their absolute values add up to it."""
        return sum(self.bounds[a] * self.bounds[b] for a, b in self.pairs)

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """The pairs of variables, in the order of the integers; 0 is the constant."""
        q = len(self.grids) + 1
        return tuple((a, b) for a in range(q) for b in range(a, q))

    @property
    def step(self) -> Fraction:  # type: ignore[override]
        """One row is worth the square of what stands for 1."""
        return Fraction(1, self.one**2)

    def vector(self, numbers: list[int]) -> list[int]:
        """Turn the number of rows into the product of 1 with itself."""
        return [numbers[0] * self.one**2, *numbers[1:]]

    def products(self, steps: tuple[int, ...]) -> list[int]:
        """Return the products of one row, given how many steps each value lies above its least one."""
        around = zip(self.factors, steps, self.grids, strict=True)
        d = [self.one, *(s * (2 * y - grid.width) for s, y, grid in around)]
        return [d[a] * d[b] for a, b in self.pairs]

    def sensitivity(self, who: Contribution) -> tuple[int, int]:
        """One unit adds at most its rows times the largest vector of one row, of any sign."""
        squared = sum((self.bounds[a] * self.bounds[b]) ** 2 for a, b in self.pairs)
        return who.l1(self.weight), (who.times * who.total) ** 2 * squared


@dataclass(frozen=True, slots=True)
class ScoreSums(Statistic):
    """For each candidate the sum of q, the score of a row on the grid, in [lo, hi].

    A unit's sum in a group is clipped to [c min(lo, 0), c max(hi, 0)]. It serves a choice among the
    candidates, which depends on how much the scores move against each other.
    """

    word: ClassVar[str] = "scores"
    argument: ClassVar[Node | None] = None  # type: ignore[misc]
    scores: tuple[Node, ...]
    bins: ValueBins
    grid: ValueGrid = field()

    @property
    def size(self) -> int:  # type: ignore[override]
        """One integer for each candidate."""
        return len(self.scores)

    @property
    def columns(self) -> int:  # type: ignore[override]
        """One integer of SQL for each candidate."""
        return len(self.scores)

    @property
    def step(self) -> Fraction:  # type: ignore[override]
        """The grid's step."""
        return self.grid.step

    @property
    def weight(self) -> int:  # type: ignore[override]
        """The most that one row can move one score against another."""
        return max(self.grid.hi, 0) - min(self.grid.lo, 0)

    def sensitivity(self, who: Contribution) -> tuple[int, int]:
        """Bound how much one unit moves any score against any other, over all groups together.

        It is no L1 norm: a choice of bounded range needs no more.
        """
        change = who.l1(self.weight)
        return change, change**2
