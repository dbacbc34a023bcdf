"""A question that counts coded rows: exact tables of them go to mechanisms, and a content is read back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tacit.algebra import RowCounts, contribution, document
from tacit.core import Task
from tacit.errors import TacitError
from tacit.tables._captions import facts_of_blocks, limits_in_words, without_unit
from tacit.tables._coded_rows import coded_question, coded_rows
from tacit.tables._rows_subject import RowsSubject

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from fractions import Fraction

    from tacit.algebra import Contribution, Statistic, TableQuestion
    from tacit.core import JSON, Content, SharedReadings, Step
    from tacit.tables._axes import Axis
    from tacit.tables._coded_rows import CodedRows
    from tacit.tables._dataset import TableDataset
    from tacit.tables._rows import Rows


def _rows_themselves(rows: CodedRows) -> CodedRows:
    """Return the coded rows as they are."""
    return rows


@dataclass(frozen=True, eq=False, kw_only=True)
class CountedSubject(RowsSubject):
    """A question that counts coded rows.

    Parameters
    ----------
    document
        Returns what is measured of which rows, as public facts.
    steps
        The steps.
    prepared
        Returns what the steps compute their integers from; by default the coded rows themselves.
    content
        Reads the content off the noisy integers.
    omissions
        Returns which rows are not counted, in words.
    """

    document: Callable[[], JSON]
    steps: tuple[Step[Any], ...]
    content: Callable[[Sequence[Any], Fraction], Content]
    prepared: Callable[[CodedRows], Any] = _rows_themselves
    omissions: Callable[[], tuple[str, ...]] = tuple

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """The number of rows of each kind."""
        return (RowCounts(),)

    @property
    def task(self) -> Task[Any, Any]:
        """The task of this question."""
        return Task(
            document=self.document,
            open=self._opened,
            steps=self.steps,
            reading=self.content,
            blocks=self.blocks,
            statements=lambda: self.sql,
            left_out=self.omissions,
            unavailable=self.unavailable,
            subject=self,
        )

    def columns_of(self, statistic: Statistic) -> str:
        """Name the counted columns."""
        del statistic
        return ", ".join(dict.fromkeys(name for name, _ in self.asked.by))

    def _opened(self, readings: SharedReadings) -> Any:
        return self.prepared(coded_rows(readings.of(self.engine), self.asked, self.axes))


def axes_document(axes: Sequence[Axis]) -> list[JSON]:
    """Return the places that are counted, as public facts; names are not in it."""
    return [
        {"by": document(axis.node), "values": document(axis.values), "other": axis.other} for axis in axes
    ]


@dataclass(frozen=True, eq=False)
class CountedQuestion:
    """Rows on axes, what one unit adds to them, and what a person should know of it."""

    dataset: TableDataset
    asked: TableQuestion
    axes: tuple[Axis, ...]
    who: Contribution

    @cached_property
    def blocks(self) -> tuple[str, ...]:
        """The blocks of the data that the question reads; none stands for all of it."""
        column = self.dataset.block_column
        return () if column is None else column.concerned(self.asked)

    @property
    def facts(self) -> list[tuple[str, str]]:
        """How much of a unit counts, and which blocks pay."""
        limits = [] if self.dataset.unit.is_row else [("limits", limits_in_words(self.who, self.dataset))]
        return [*limits, *facts_of_blocks(self.dataset, self.blocks)]

    def left_out(self) -> tuple[str, ...]:
        """Say which rows are not counted."""
        unit = self.dataset.unit
        names = " or ".join(dict.fromkeys(axis.name for axis in self.axes))
        outside = "missing" if all(axis.cuts for axis in self.axes) else "missing or not listed"
        said = [f"{one}, if any, are not counted" for one in without_unit(unit)]
        said.append(f"rows whose {names} is {outside}, if any, are not counted")
        if not unit.is_row:
            said.append(f"{limits_in_words(self.who, self.dataset)}; rows beyond this are not counted")
        return tuple(said)

    def task(
        self,
        what: JSON,
        steps: Sequence[Step[Any]],
        prepared: Callable[[CodedRows], Any],
        content: Callable[[Sequence[Any], Fraction], Content],
    ) -> Task[Any, Any]:
        """Return the task that measures something of the rows; what cannot be written as SQL is refused."""

        def counted() -> JSON:
            rows = {"rows": document(self.asked.input), "axes": axes_document(self.axes)}
            return {"counted": rows, "what": what}

        subject = CountedSubject(
            asked=self.asked, engine=self.dataset._engine, axes=self.axes, blocks=self.blocks,
            document=counted, steps=tuple(steps),
            prepared=prepared, content=content, omissions=self.left_out,
        )  # fmt: skip
        _ = subject.sql  # what cannot be written is refused now
        return subject.task


def counted_question(rows: Rows, axes: tuple[Axis, ...]) -> CountedQuestion:
    """Bound what a unit adds to the counts of these rows; refuse a sample, for which nothing is proven."""
    dataset = rows._dataset
    if rows.share is not None:
        raise TacitError(
            "not-allowed",
            "ranges and hierarchies cannot be asked of a sample",
            why="the cost of a sample is known for Laplace noise on tables of answers only",
            fix="ask without the sample",
        )
    asked = coded_question(rows.relation, axes)
    who = contribution(
        asked, row_level=dataset.unit.is_row, adjacency=dataset.adjacency, pairs=dataset.limits.pairs
    )
    return CountedQuestion(dataset, asked, axes, who)
