"""Questions about rows: what a room that asks something of a table's rows declares.

A question about rows is read once, when it is asked, into its design: the rows, the places that they are
counted on, and whatever else the plan needs. The design makes the draft for each goal, as often as a batch or
a schedule tries one. Rooms below this one register theirs as ``question.table.NAME``.

`RowsSubject` is what a task asks of the rows, for those who check it: the same can be asked of other rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from tacit.algebra import document, scans_of, sources_of
from tacit.core import ANY_TOTAL, Argument, Content, Draft, Goal, Question, QuestionKind, WireForm
from tacit.errors import TacitError, missing_file
from tacit.fixes import Declare
from tacit.parameters import Anything

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tacit.algebra import Statistic, TableQuestion
    from tacit.core import JSON, Table, Task
    from tacit.engines import Engine
    from tacit.tables._dataset import TableDataset
    from tacit.tables.questions._rows import Rows
    from tacit.tables.workloads._axes import Axis


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

    def of(self, rows: Rows, *arguments: Any, **options: Any) -> RowsQuestion[C]:
        """Ask the question of some rows, or refuse it."""
        return RowsQuestion(rows._dataset, self, {"design": self.design(rows, *arguments, **options)})


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
        design, goal = read(dataset, request)
        return {"design": design}, goal

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


def read_rows(dataset: TableDataset, document: Any) -> Rows:
    """Read the rows of a question back, and check them."""
    from tacit.tables.planning._steps import MAX_SAMPLED
    from tacit.tables.questions._rows import Rows
    from tacit.tables.questions._wire import read_relation

    share = document["sample"]
    if share is not None and not (type(share) is int and 0 < share < MAX_SAMPLED):
        raise ValueError("not a sample")
    return Rows(dataset, read_relation(document["relation"], dataset), dataset.limits, share)


@dataclass(frozen=True, eq=False, kw_only=True)
class RowsSubject(ABC):
    """What is measured of which rows.

    Parameters
    ----------
    asked
        The question.
    engine
        Where the data is.
    axes
        Where kinds of rows are counted: the columns with their public places.
    blocks
        The blocks of the data that the question reads; none stands for all of it.
    """

    asked: TableQuestion
    engine: Engine
    axes: tuple[Axis, ...] = ()
    blocks: tuple[str, ...] = ()

    @property
    @abstractmethod
    def statistics(self) -> tuple[Statistic, ...]:
        """The statistics whose exact integers are needed."""

    @property
    @abstractmethod
    def task(self) -> Task[Any, Any]:
        """The task of this question."""

    @abstractmethod
    def columns_of(self, statistic: Statistic) -> str:
        """Name the columns that a statistic is measured for."""

    @cached_property
    def sql(self) -> tuple[str, ...]:
        """The statements that will run, written once."""
        return self.engine.sql(self.asked, self.statistics)

    def on(self, engine: Engine) -> Task[Any, Any]:
        """Return the task of the same question on other rows, for an attack on invented ones."""
        return replace(self, engine=engine).task

    def unavailable(self) -> TacitError | None:
        """Return why nothing can be drawn now; checked before the charge."""
        return unavailable_source(self.engine, self.asked, self.statistics)


def _without_key(table: Table) -> TacitError:
    """Refuse to count one row of each unit because of a key that is gone: rows could be dropped silently."""
    columns = " and ".join(table.unique)
    return TacitError(
        "unknown-table",
        f"{columns} was unique in the table {table.name!r} when the dataset was declared, but is not unique "
        "now",
        why="nothing was charged; because of that key, only one row of each unit counts, and others would be "
        "dropped",
        fix=Declare("limits", 1, column="rows"),
    )


def unavailable_source(
    engine: Engine, question: TableQuestion, statistics: tuple[Statistic, ...]
) -> TacitError | None:
    """Return why nothing can be drawn of a question now: a file is gone, or columns were never known.

    Whether a file exists says nothing about its rows, so this is checked before the charge.
    """
    unknown = None
    for scan in scans_of(question.input):
        if scan.rows == 1 and scan.table.unique and scan.table.unique not in engine.unique(scan.table.name):
            return _without_key(scan.table)
    for table in sources_of(question.input):
        if path := engine.missing_file(table.name):
            return missing_file(
                path,
                "unknown-table",
                why=f"nothing was charged; the file of the table {table.name!r} was moved or deleted after "
                "the dataset was declared",
                fix="put the file back, or declare the dataset with its new path",
            )
        if table.columns is None and engine.columns(table.name) is None:
            unknown = TacitError(
                "unknown-table",
                f"the source of the table {table.name!r} cannot be read, so nothing was charged",
                why="it was not available when the dataset was declared, and it is not available now",
                fix=Declare("source", "path/of/visits.parquet"),
            )
    try:
        engine.check(question, statistics)
    except TacitError as refusal:  # in the engine's own words
        return refusal
    return unknown
