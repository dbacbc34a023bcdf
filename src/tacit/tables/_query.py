"""The fluent query: a complete question of tables, whose cost ``plan`` states.

Immutable; nothing runs before ``plan().release()``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tacit.errors import TacitError
from tacit.tables._goals import Goal
from tacit.tables._habits import QuestionHabits
from tacit.tables._planning import make_plans
from tacit.tables._words import in_words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tacit.algebra import (
        TableQuestion,
    )
    from tacit.core import AnswerTable, Plan
    from tacit.exact import Number
    from tacit.tables._dataset import TableDataset
    from tacit.tables._postprocessing import Presentation

__all__ = ["Query"]


@dataclass(frozen=True, slots=True, repr=False)
class Query(QuestionHabits):
    """A complete question; ``plan`` states its cost."""

    _dataset: TableDataset
    question: TableQuestion
    post: Presentation | None = None
    #: Rewords a refusal for its author, where the question was not asked in Python.
    _reworded: Callable[[TacitError], TacitError] | None = field(default=None, repr=False, compare=False)

    def __repr__(self) -> str:
        return (
            f"question to {self._dataset.name}: {in_words(self.question)}\n"
            "not planned yet, and nothing was read: .plan(epsilon=0.5) shows the cost and the expected error"
        )

    def plan(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number = 0,
        rho: Number | None = None,
        within: Number | None = None,
        confidence: Number = 0.95,
        size: int | None = None,
        weights: Mapping[str, Number] | None = None,
    ) -> Plan[AnswerTable]:
        """Plan the question and state its cost. Touches no data.

        Parameters
        ----------
        epsilon, delta
            The total for this plan. Without ``delta`` the plan is pure: Laplace noise, public keys only.
        rho
            Instead of epsilon: the total in zCDP (Gaussian noise).
        within, confidence
            Instead of epsilon: find the smallest epsilon at which every column stays within this error, with
            this confidence.
        size
            A public guess of the number of rows in each group; used for planning only.
        weights
            How much of the budget each aggregate gets, relative to the others.
        """
        goal = Goal(epsilon, delta, rho, within, confidence, size, weights)
        try:
            return make_plans([(self._dataset, self.question, goal, self.post)])[0]
        except TacitError as error:
            if self._reworded is None:
                raise
            refusal = self._reworded(error)
        raise refusal
