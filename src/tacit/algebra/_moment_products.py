"""The statistic of many columns together: the sums of products of every two of them, and of each with 1.

A value on its grid becomes d = 2y - W in [-W, W], times a public factor s, so that all columns have nearly
the same bound B = s W; the constant 1 becomes ``one``. There are q(q+1)/2 products of the q variables. One
row changes all of them, so the sensitivity is that of all products together, not of one.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from tacit.algebra._statistics import Statistic, ValueGrid

if TYPE_CHECKING:
    from tacit.algebra._contribution import Contribution
    from tacit.algebra._expressions import Node


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
