"""The statistic of a user's own utility on a table: for each candidate, the sum of a score over the rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from tacit.algebra._statistics import Statistic, ValueBins, ValueGrid

if TYPE_CHECKING:
    from fractions import Fraction

    from tacit.algebra._contribution import Contribution
    from tacit.algebra._expressions import Node

SCORE_BITS = 16


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
        moved = who.l1(self.weight)
        return moved, moved**2
