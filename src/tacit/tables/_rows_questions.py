"""Questions about rows: what a room that asks something of a table's rows declares.

A question about rows is read once, when it is asked, into its design: the rows, the places that they are
counted on, and whatever else the plan needs. The design makes the draft for each goal, as often as a batch or
a schedule tries one. Rooms below this one register theirs as ``question.table.NAME``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from tacit.algebra import document
from tacit.core import ANY_TOTAL, Argument, Content, Draft, Goal, Question, QuestionKind, WireForm
from tacit.parameters import Anything

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tacit.core import JSON
    from tacit.tables._dataset import TableDataset
    from tacit.tables._rows import Rows

C = TypeVar("C", bound=Content)


class RowsDesign(Protocol[C]):
    """A question about rows, as it was read when it was asked."""

    @property
    def words(self) -> str:
        """The question in words."""

    def draft(self, goal: Goal) -> Draft[C]:
        """Make the draft of a plan."""

    def request(self, goal: Goal) -> JSON:
        """Return the request of a plan, from which it is rebuilt; ``asks`` in it names the question."""


@dataclass(frozen=True, repr=False, eq=False)
class RowsQuestion(Question[C]):
    """A question about rows, not planned yet."""

    @property
    def design(self) -> RowsDesign[C]:
        """The question as it was read."""
        design: RowsDesign[C] = self.arguments["design"]
        return design

    @property
    def words(self) -> str:
        """The question in words."""
        return self.design.words


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RowsQuestionKind(QuestionKind[C]):
    """A question about rows; made by `rows_question`.

    Parameters
    ----------
    design
        Reads the question: ``design(rows, ...)`` with whatever its method takes.
    """

    design: Callable[..., RowsDesign[C]]

    def of(self, rows: Rows, *given: Any, **named: Any) -> RowsQuestion[C]:
        """Ask the question of some rows, or refuse it."""
        return RowsQuestion(rows._dataset, self, {"design": self.design(rows, *given, **named)})


def rows_question(
    *,
    name: str,
    words: str,
    design: Callable[..., RowsDesign[C]],
    read: Callable[[TableDataset, Any], tuple[RowsDesign[C], Goal]],
    takes: frozenset[str] = ANY_TOTAL,
    example: str = "epsilon=0.5",
) -> RowsQuestionKind[C]:
    """Declare a question about rows.

    Parameters
    ----------
    name, words, takes, example
        As of a `QuestionKind`.
    design
        Reads the question when it is asked: ``design(rows, ...)``.
    read
        Reads a request whose ``asks`` is the name back into design and goal.
    """

    def reread(dataset: Any, request: Mapping[str, Any]) -> tuple[Mapping[str, Any], Goal] | None:
        if request.get("asks") != name:
            return None
        found, goal = read(dataset, request)
        return {"design": found}, goal

    return RowsQuestionKind(
        name=name,
        words=words,
        draft=_draft,
        arguments=(Argument("design", Anything("rows and what is asked of them"), needed=True),),
        takes=takes,
        example=example,
        served=False,
        wire=WireForm(lambda question, goal: question.arguments["design"].request(goal), reread),
        design=design,
    )


def _draft(dataset: TableDataset, goal: Goal, *, design: RowsDesign[C]) -> Draft[C]:
    del dataset  # the rows know it
    return design.draft(goal)


def rows_document(rows: Rows) -> JSON:
    """Return the rows that a question reads, as a document."""
    return {"relation": document(rows.relation), "sample": rows.share}


def read_rows(dataset: TableDataset, written: Any) -> Rows:
    """Read the rows of a question back, and check them."""
    from tacit.tables._rows import Rows
    from tacit.tables._sampling import MOST_SAMPLED
    from tacit.tables._wire import read_relation

    share = written["sample"]
    if share is not None and not (type(share) is int and 0 < share < MOST_SAMPLED):
        raise ValueError("not a sample")
    return Rows(dataset, read_relation(written["relation"], dataset), dataset.limits, share)
