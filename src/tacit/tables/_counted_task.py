"""The task of questions that count coded rows: exact tables go to mechanisms, and a content is read back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from tacit.algebra import RowCounts, contribution, document
from tacit.errors import TacitError
from tacit.tables._captions import facts_of_blocks, limits_in_words, without_unit
from tacit.tables._coded_rows import coded_question, coded_rows
from tacit.tables._task import unavailable_source

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence
    from fractions import Fraction

    from tacit.algebra import Contribution, Statistic, TableQuestion
    from tacit.core import JSON, Content
    from tacit.engines import Engine
    from tacit.mechanisms import IntegerMechanism
    from tacit.tables._axes import Axis
    from tacit.tables._coded_rows import CodedRows
    from tacit.tables._rows import Rows

__all__ = ["CountedQuestion", "CountedTask", "counted_question"]


@dataclass(frozen=True, slots=True)
class CountedQuestion:
    """Rows on axes, what one unit adds to them, and what a person should know of it."""

    asked: TableQuestion
    axes: tuple[Axis, ...]
    who: Contribution
    engine: Engine
    blocks: tuple[str, ...]
    left_out: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]

    @property
    def document(self) -> JSON:
        """The rows and the places that are counted, as public facts."""
        axes = [
            {"by": document(axis.node), "values": document(axis.values), "other": axis.other}
            for axis in self.axes
        ]
        return {"rows": document(self.asked.input), "axes": axes}


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
    unit = dataset.identity.unit
    who = contribution(
        asked,
        row_level=unit.kind == "row",
        adjacency=dataset.identity.adjacency,
        pairs=dataset.limits.pairs,
    )
    names = " or ".join(dict.fromkeys(axis.name for axis in axes))
    outside = "not listed" if any(not axis.cuts for axis in axes) else "missing"
    said = [f"{one}, if any, are not counted" for one in without_unit(unit)]
    said.append(
        f"rows whose {names} is missing or {outside}, if any, are not counted".replace(" or missing", "")
    )
    facts = []
    if not unit.is_row:
        limit = limits_in_words(who, dataset)
        said.append(f"{limit}; rows beyond this are not counted")
        facts.append(("limits", limit))
    blocks = () if dataset.block_column is None else dataset.block_column.concerned(asked)
    facts += facts_of_blocks(dataset, blocks)
    return CountedQuestion(asked, axes, who, dataset._engine, blocks, tuple(said), tuple(facts))


@dataclass(frozen=True, slots=True)
class CountedTask:
    """The task of a question about coded rows.

    Parameters
    ----------
    counted
        The rows and the axes.
    what
        What is measured of them, as public facts.
    mechanisms, labels
        The mechanisms, in order, and what the integers of each are.
    exact
        The exact integers of each mechanism, from the coded rows.
    content
        Reads the content off the noisy integers.
    """

    counted: CountedQuestion
    what: JSON
    mechanisms: tuple[IntegerMechanism, ...]
    labels: tuple[dict[str, JSON], ...]
    exact: Callable[[CodedRows], Iterable[Any]]
    content: Callable[[Sequence[Any], Fraction], Content]

    @property
    def question(self) -> JSON:
        """What is measured of which rows."""
        return {"counted": self.counted.document, "what": self.what}

    @property
    def asked(self) -> TableQuestion:
        """The question whose groups are the kinds of rows."""
        return self.counted.asked

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """The number of rows of each kind."""
        return (RowCounts(),)

    def on(self, engine: Engine) -> Self:
        """Return the same task on other data, for an attack on invented rows."""
        return replace(self, counted=replace(self.counted, engine=engine))

    @property
    def sql(self) -> tuple[str, ...]:
        """The statement that will run."""
        return self.counted.engine.sql(self.counted.asked, (RowCounts(),))

    @property
    def blocks(self) -> tuple[str, ...]:
        """The blocks of the data that the question reads; none stands for all of it."""
        return self.counted.blocks

    def unavailable(self) -> TacitError | None:
        """Return why nothing can be drawn; checked before the charge."""
        return unavailable_source(self.counted.engine, self.counted.asked, (RowCounts(),))

    def integers(self) -> Generator[Any, Any, None]:
        """Yield the exact integers of each mechanism."""
        with self.counted.engine.transaction() as data:
            found = coded_rows(data, self.counted.asked, self.counted.axes)
        for integers in self.exact(found):  # noqa: UP028 - the core sends back, and a list cannot receive
            yield integers

    def read(self, noisy: Sequence[Any], confidence: Fraction) -> Content:
        """Read the content off the noisy integers."""
        return self.content(noisy, confidence)
