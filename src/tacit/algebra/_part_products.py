"""The statistic of several columns together: the products of their parts.

A value on its grid becomes y in [0, W]. It has three parts, (W-y)^2, 2y(W-y) and y^2, with the sum W^2; a
yes/no column (W = 1) needs two, 1 - y and y. The products over all columns are non-negative, and of one row
they add up to the product of these sums. All second moments of the columns are linear in them. So one row
changes everything that a regression needs by one weight together.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod
from typing import TYPE_CHECKING, ClassVar

from tacit.algebra._statistics import Statistic, ValueGrid

if TYPE_CHECKING:
    from tacit.algebra._contribution import Contribution
    from tacit.algebra._expressions import Node


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
