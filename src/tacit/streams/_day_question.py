"""What a stream asks of the rows of one day."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

from tacit.core import Content, Question, members_of
from tacit.engines import KEPT
from tacit.tables import TableSubject

if TYPE_CHECKING:
    from tacit.core import JSON, AnswerTable, Plan

C = TypeVar("C", bound=Content)


@dataclass(frozen=True, slots=True)
class DayQuestion:
    """The question of one day, planned once with epsilon and once with rho.

    The two plans are never released: they say what one unit can change in one day, in L1 and in L2.
    """

    pure: Plan[AnswerTable]
    concentrated: Plan[AnswerTable]

    @property
    def words(self) -> str:
        """The question in words."""
        return self.pure.asked.replace(f", where {KEPT}", "")

    @property
    def document(self) -> JSON:
        """The question as the table of a day writes it."""
        request: Any = self.pure.to_json()["request"]
        return cast("JSON", request["question"])

    @property
    def table(self) -> TableSubject:
        """What is measured of one day, with noise for epsilon."""
        return _table_of(self.pure)

    @property
    def concentrated_table(self) -> TableSubject:
        """What is measured of one day, with noise for rho."""
        return _table_of(self.concentrated)


@dataclass(frozen=True, repr=False, eq=False)
class DaysQuestion(Question[C]):
    """A question for all days, whose words name what is asked of each."""

    @property
    def words(self) -> str:
        """The question in words."""
        return f"{super().words}: {self.arguments['figures'].words}"


def _table_of(plan: Plan[AnswerTable]) -> TableSubject:
    subject = members_of(plan)[0].task.subject
    assert isinstance(subject, TableSubject)  # noqa: S101 - a pure plan of one table has no private groups
    return subject
