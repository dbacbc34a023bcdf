"""The statistic of a limit for each row: what it keeps of a sum, and what it cuts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from tacit.algebra._statistics import Statistic, ValueGrid

if TYPE_CHECKING:
    from tacit.algebra._contribution import Contribution
    from tacit.algebra._expressions import Node


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
