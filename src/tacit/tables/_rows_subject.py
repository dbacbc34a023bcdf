"""What a task asks of the rows of tables, for those who check it: the same can be asked of other rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tacit.algebra import sources_of
from tacit.errors import TacitError
from tacit.fixes import Declare

if TYPE_CHECKING:
    from tacit.algebra import Statistic, TableQuestion
    from tacit.core import Task
    from tacit.engines import Engine
    from tacit.tables._axes import Axis


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


def unavailable_source(
    engine: Engine, question: TableQuestion, statistics: tuple[Statistic, ...]
) -> TacitError | None:
    """Return why nothing can be drawn of a question now: a file is gone, or columns were never known.

    Whether a file exists says nothing about its rows, so this is checked before the charge.
    """
    unknown = None
    for table in sources_of(question.input):
        if path := engine.missing_file(table.name):
            return TacitError(
                "unknown-table",
                f"the file of the table {table.name!r} does not exist: {path}",
                why="nothing was charged; the file was moved or deleted after the dataset was declared",
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
