"""A source of coded rows: what a room below this one needs to plan and to count tables of some axes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from tacit.algebra import RowCounts, can_be_missing, contribution, document, scope
from tacit.errors import TacitError
from tacit.tables._captions import facts_of_blocks, limits_of, rows_beyond, without_unit
from tacit.tables._coded_rows import coded_question, coded_rows
from tacit.tables._counted_subject import axes_document
from tacit.tables._rows_questions import rows_document
from tacit.tables._rows_subject import unavailable_source
from tacit.tables._words import in_words

if TYPE_CHECKING:
    from tacit.algebra import Contribution, TableQuestion
    from tacit.core import JSON, SharedReadings
    from tacit.tables._axes import Axis
    from tacit.tables._coded_rows import CodedRows
    from tacit.tables._dataset import TableDataset
    from tacit.tables._rows import Rows


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
        listed = [axis.name for axis in self.axes if not axis.cuts and not axis.other]
        absent = [
            a.name for a in self.axes if not a.missing and not a.other and can_be_missing(a.node, facts)
        ]
        rows = without_unit(unit)
        rows += [f"rows whose {' or '.join(listed)} is not among the keys"] if listed else []
        rows += [f"rows whose {' or '.join(absent)} is missing"] if absent else []
        said = [f"{' and '.join(rows)}, if any, are not counted"] if rows else []
        return (*said, *rows_beyond(self.question, self.contribution, self.dataset))

    def facts(self) -> list[tuple[str, str]]:
        """Say what a neighbour is, how much of a unit counts, what is dropped and which blocks pay."""
        said = self.left_out()
        return [
            *limits_of(self.question, self.contribution, self.dataset),
            *((("not counted", said[0]),) if said else ()),
            *facts_of_blocks(self.dataset, self.blocks),
        ]

    def in_words(self) -> str:
        """Return the question in words, for the ledger."""
        return f"{self.what}: {in_words(self.question, shape=self.dataset.record == 'shape')}"

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
