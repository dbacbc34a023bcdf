"""The statistic of two columns of a table together: the products of their three parts, nine integers.

A value x on its grid becomes y = q - lo in [0, W] and has three parts, (W-y)^2, 2y(W-y) and y^2. They are
non-negative with the sum W^2. The nine products of the parts of two values are non-negative with the sum
W^2 V^2, and count, means, variances and covariance of the two columns are linear in them. So one row changes
all second moments together by one weight, where sums of products would need one measurement each.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from tacit.algebra._statistics import Statistic, ValueGrid

if TYPE_CHECKING:
    from fractions import Fraction

    from tacit.algebra._contribution import Contribution
    from tacit.algebra._expressions import Node

#: The grid of each of the two columns has about 2^9 steps, so that one row weighs about 2^36: noise for
#: many rows per unit and a small epsilon stays within 64 bits.
PRODUCT_BITS = 9


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
