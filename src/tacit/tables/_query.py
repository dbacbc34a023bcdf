"""The fluent query: a complete question of tables, whose cost ``plan`` states.

Immutable; nothing runs before ``plan().release()``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

from tacit.core import AnswerTable, Question
from tacit.errors import TacitError
from tacit.tables._habits import QuestionHabits
from tacit.tables._questions import TABLE
from tacit.tables._words import in_words

if TYPE_CHECKING:
    from collections.abc import Callable

    from tacit.algebra import TableQuestion
    from tacit.core import Goal, Plan
    from tacit.tables._dataset import TableDataset
    from tacit.tables._postprocessing import Presentation


@dataclass(frozen=True, repr=False)
class Query(QuestionHabits, Question[AnswerTable]):
    """A complete question; ``plan`` states its cost."""

    #: Rewords a refusal for its author, where the question was not asked in Python.
    reworded: Callable[[TacitError], TacitError] | None = field(default=None, repr=False, compare=False)

    def __hash__(self) -> int:
        return hash((self.dataset, self.question, self.post))

    @classmethod
    def of(cls, dataset: TableDataset, question: TableQuestion) -> Query:
        """Ask a dataset a question."""
        return cls(dataset, TABLE, {"question": question, "post": None})

    @property
    def question(self) -> TableQuestion:
        """What is asked."""
        return cast("TableQuestion", self.arguments["question"])

    @property
    def post(self) -> Presentation | None:
        """How the release is shown."""
        return cast("Presentation | None", self.arguments["post"])

    def shown(self, post: Presentation | None) -> Query:
        """Return the question whose release is shown in another way."""
        return replace(self, arguments={**self.arguments, "post": post})

    @property
    def words(self) -> str:
        """The question in words."""
        return in_words(self.question)

    def planned(self, goal: Goal) -> Plan[AnswerTable]:
        """Plan the question for a goal that was read; see `plan`."""
        try:
            return super().planned(goal)
        except TacitError as error:
            if self.reworded is None:
                raise
            refusal = self.reworded(error)
        raise refusal
