"""Coded rows: each kind of row once, as its places on the axes, with how often it occurs.

One statement gives them all, and every cross table of the axes is a sum over them. They are exact, and they
never leave the process without noise. `CountedSubject` is a question that counts them: exact tables go to
mechanisms, and a content is read back. `CodedSource` is what a room below this one needs to plan and to count
tables of some axes.

Neighbours (docs/proofs/workloads.md). A unit owns at most k of the counted rows, and each row is in one cell
of every table. So adding or removing a unit moves any table by at most k in L1, and in L2 as well: the most
is k rows in one cell.
"""

from __future__ import annotations

import gc
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tacit.algebra import RowCounts, TableQuestion, can_be_missing, contribution, document, scope
from tacit.core import Task
from tacit.errors import TacitError
from tacit.tables.planning._advice import advice_on_counts
from tacit.tables.planning._exact_integers import public_tables
from tacit.tables.questions._rows_questions import RowsSubject, rows_document, unavailable_source
from tacit.tables.reading._captions import (
    counted_in_words,
    facts_of_blocks,
    limits_in_words,
    limits_of,
    rows_beyond,
    without_unit,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from tacit.algebra import Contribution, Relation, Statistic
    from tacit.core import JSON, Content, SharedReadings, Step
    from tacit.engines import EngineTransaction
    from tacit.tables._dataset import TableDataset
    from tacit.tables.questions._rows import Rows
    from tacit.tables.workloads._axes import Axis


_MANY = 10_000  # kinds of rows


@dataclass(frozen=True, slots=True)
class CodedRows:
    """Rows by their places on the axes.

    Parameters
    ----------
    sizes
        How many places each axis has.
    codes
        One line for each kind of row: its place on each axis.
    counts
        How many rows there are of each kind.
    """

    sizes: tuple[int, ...]
    codes: NDArray[np.int32]
    counts: NDArray[np.int64]

    def table(self, axes: Sequence[int]) -> NDArray[np.int64]:
        """Return the exact table of some axes, in their order.

        Examples
        --------
        >>> rows = CodedRows((2, 3), np.array([[0, 2], [1, 0]], np.int32), np.array([5, 7]))
        >>> rows.table([0, 1]).tolist(), rows.table([0]).tolist(), int(rows.table([]))
        ([[0, 0, 5], [7, 0, 0]], [5, 7], 12)
        """
        shape = tuple(self.sizes[axis] for axis in axes)
        cells = int(np.prod(shape, dtype=object)) if shape else 1
        at = np.zeros(len(self.counts), np.int64)
        for axis in axes:
            at = at * self.sizes[axis] + self.codes[:, axis]
        table = np.zeros(cells, np.int64)
        np.add.at(table, at, self.counts)
        return table.reshape(shape)


def coded_question(relation: Relation, axes: Sequence[Axis], sample: int | None = None) -> TableQuestion:
    """Return the question whose groups are the kinds of rows that occur: every group, with how many rows.

    It is asked inside a paid plan only, and what comes back goes to mechanisms alone.
    """
    by = tuple((axis.name, axis.node) for axis in axes)
    return TableQuestion(relation, by, None, (), None, None, missing=True, sample=sample)


def coded_rows(data: EngineTransaction, question: TableQuestion, axes: Sequence[Axis]) -> CodedRows:
    """Read the coded rows; a row without a place on some axis is dropped."""
    [(_, lines)] = data.integers(question, (RowCounts(),), public_tables(question))
    width = len(axes)
    codes = np.empty((len(lines), width), np.int32)
    for i, axis in enumerate(axes):
        places = {value: place for place, value in enumerate(axis.values)}
        beyond = len(axis.values) if axis.other else -1
        nowhere = places.get(None, -1)
        codes[:, i] = [nowhere if line[i] is None else places.get(line[i], beyond) for line in lines]
    counts = np.array([int(str(line[width])) for line in lines], np.int64)
    has_place = (codes >= 0).all(axis=1)
    del lines
    if len(counts) > _MANY:
        gc.collect()  # Python keeps some freed tuples for later, and with them most of the memory of all
    return CodedRows(tuple(axis.size for axis in axes), codes[has_place], counts[has_place])


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
        advice = advice_on_counts(self.asked, self.dataset)
        return [*limits, *facts_of_blocks(self.dataset, self.blocks), *advice]

    def left_out(self) -> tuple[str, ...]:
        """Say which rows are not counted."""
        unit = self.dataset.unit
        names = " or ".join(dict.fromkeys(axis.name for axis in self.axes))
        outside = "missing" if all(axis.cuts for axis in self.axes) else "missing or not listed"
        sentences = [f"{one}, if any, are not counted" for one in without_unit(unit)]
        sentences.append(f"rows whose {names} is {outside}, if any, are not counted")
        if not unit.is_row:
            sentences.append(f"{limits_in_words(self.who, self.dataset)}; rows beyond this are not counted")
        return tuple(sentences)

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
    question = coded_question(rows.relation, axes)
    contributed = contribution(
        question, row_level=dataset.unit.is_row, adjacency=dataset.adjacency, pairs=dataset.limits.pairs
    )
    return CountedQuestion(dataset, question, axes, contributed)


@dataclass(frozen=True, slots=True)
class CodedSource:
    """Some rows of a dataset, and the axes on which each of them has a place.

    Everything but `read` follows from public facts.
    """

    rows: Rows
    axes: tuple[Axis, ...]
    #: What is asked, as a noun: "synthetic rows".
    what: str

    @property
    def dataset(self) -> TableDataset:
        """The dataset, whose account pays."""
        return self.rows._dataset

    @property
    def question(self) -> TableQuestion:
        """The question whose groups are the kinds of rows, or a refusal of a sample."""
        if self.rows.share is not None:
            raise TacitError(
                "not-allowed",
                f"{self.what} cannot be asked of a sample",
                why="Tacit has no tight cost for Gaussian noise on a sample",
                fix="ask without the sample",
            )
        return coded_question(self.rows.relation, self.axes)

    @property
    def contribution(self) -> Contribution:
        """How many rows of one unit count, or a refusal where nothing bounds them."""
        dataset = self.dataset
        return contribution(
            self.question, row_level=dataset.unit.is_row, adjacency=dataset.adjacency,
            pairs=dataset.limits.pairs,
        )  # fmt: skip

    @property
    def sql(self) -> tuple[str, ...]:
        """The statement that will run."""
        return self.dataset._engine.sql(self.question, (RowCounts(),))

    @property
    def blocks(self) -> tuple[str, ...]:
        """The blocks of the data that the question reads; none stands for all of it."""
        column = self.dataset.block_column
        return () if column is None else column.concerned(self.question)

    def unavailable(self) -> TacitError | None:
        """Return why nothing can be drawn."""
        return unavailable_source(self.dataset._engine, self.question, (RowCounts(),))

    def read(self, readings: SharedReadings) -> CodedRows:
        """Read the exact coded rows: only inside a paid plan, and for mechanisms alone."""
        with readings.once(self.dataset._engine) as data:
            return coded_rows(data, self.question, self.axes)

    def left_out(self) -> tuple[str, ...]:
        """Say which rows are not counted."""
        facts, unit = scope(self.rows.relation), self.dataset.unit
        listed_columns = [axis.name for axis in self.axes if not axis.cuts and not axis.other]
        absent = [
            a.name for a in self.axes if not a.missing and not a.other and can_be_missing(a.node, facts)
        ]
        rows = without_unit(unit)
        rows += [f"rows whose {' or '.join(listed_columns)} is not among the keys"] if listed_columns else []
        rows += [f"rows whose {' or '.join(absent)} is missing"] if absent else []
        sentences = [f"{' and '.join(rows)}, if any, are not counted"] if rows else []
        return (*sentences, *rows_beyond(self.question, self.contribution, self.dataset))

    def facts(self) -> list[tuple[str, str]]:
        """Say what a neighbour is, how much of a unit counts, what is dropped and which blocks pay."""
        omissions = self.left_out()
        return [
            *limits_of(self.question, self.contribution, self.dataset),
            *((("not counted", omissions[0]),) if omissions else ()),
            *facts_of_blocks(self.dataset, self.blocks),
            *advice_on_counts(self.question, self.dataset),
        ]

    def in_words(self) -> str:
        """Return the question in words, for the ledger."""
        by = "by " + " and ".join(["{}"] * len(self.axes))
        shape = self.dataset.record == "shape"
        names = [axis.name for axis in self.axes]
        return f"{self.what}: {counted_in_words(by, names, self.question.input, shape=shape)}"

    def identity(self) -> JSON:
        """Return the rows and the axes as public facts that identify a plan; names are not in it."""
        return {
            "rows": document(self.question.input),
            "axes": axes_document(self.axes),
        }

    def request(self) -> dict[str, JSON]:
        """Return what `read_axes` needs to make the same axes of the same rows, as JSON."""
        return {
            "rows": rows_document(self.rows),
            "columns": [axis.name for axis in self.axes],
            "bins": {axis.name: list(axis.cuts) for axis in self.axes if axis.cuts},
            "keys": {axis.name: list(cast("Any", axis.values)) for axis in self.axes if not axis.cuts},
            "other": [axis.name for axis in self.axes if axis.other],
        }
