"""The aggregate that picks a candidate by a user's own utility of a table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

from tacit.algebra import SCORE_BITS, Scope, ScoreSums, ValueBins, bounds_of, grid_for, resolve, words_of
from tacit.tables._aggregates import Aggregate, LoweringContext, bounds_missing
from tacit.tables._readings import ChosenValue
from tacit.tables._steps import ChooseTop, MeasuredStep

if TYPE_CHECKING:
    from tacit.algebra import Node
    from tacit.tables._aggregates import Range
    from tacit.tables._readings import Reading

MOST_SCORED = 200


@dataclass(frozen=True, slots=True)
class BestOf(Aggregate):
    """One of public candidates, picked by the sum of its score over the rows."""

    candidates: tuple[float | str | bool, ...]
    scores: tuple[Node, ...]
    bounds: Range | None = None
    argument: ClassVar[Node | None] = None  # type: ignore[misc]
    word: ClassVar[str] = "best"

    @property
    def arguments(self) -> tuple[Node, ...]:
        """The scores."""
        return self.scores

    @property
    def words(self) -> str:
        """The aggregate in words, with its first scores."""
        shown = [words_of(score) for score in self.scores[:2]]
        return f"best({', '.join(shown)}{', ...' if len(self.scores) > 2 else ''})"

    def resolved(self, facts: Scope) -> Self:
        """Read the scores as numbers, with bounds that hold all of theirs."""
        scores = tuple(resolve(score, facts, "number") for score in self.scores)
        found = [bounds_of(score, facts) for score in scores]
        known = [one for one in found if one is not None]
        bounds = self.bounds
        if bounds is None and len(known) == len(found):
            bounds = min(low for low, _ in known), max(high for _, high in known)
        if bounds is not None and not bounds[0] < bounds[1]:
            bounds = None
        return replace(self, scores=scores, bounds=bounds)

    def lowered(self, name: str, context: LoweringContext) -> list[tuple[str, MeasuredStep, Reading]]:
        """Choose the candidate with the largest sum."""
        del context
        if self.bounds is None:
            raise bounds_missing("the score", self.scores[0])
        statistic = ScoreSums(self.scores, ValueBins(self.candidates), grid_for(self.bounds, SCORE_BITS))
        return [(name, MeasuredStep(statistic, ChooseTop(1)), ChosenValue())]

    def stands_for(self, reading: Reading) -> str:
        """Say how the value was picked."""
        del reading
        return f"picked from {len(self.candidates)} candidates; a larger sum of the score is more likely"
