"""What questions about the population ask of rows: one row for each unit, one noisy vector of integers.

Sampling error is known where the rows of a sample are independent. Several rows of one unit are not, so they
are refused, with the way out: one row for each unit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tacit.algebra import RowCounts, contribution, rows_per_unit
from tacit.errors import TacitError
from tacit.fixes import Code, Either
from tacit.mechanisms import DiscreteGaussian, LinearNoise
from tacit.report import with_article
from tacit.tables import AddNoise, MeasuredStep, TableSubject

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction

    from tacit.algebra import Contribution, Statistic, TableQuestion
    from tacit.core import Content, Goal, Task
    from tacit.mechanisms import DiscreteLaplace
    from tacit.tables import Rows


def task_of(
    rows: Rows,
    question: TableQuestion,
    statistic: Statistic,
    mechanism: DiscreteLaplace | DiscreteGaussian,
    *,
    asks: str,
    reading: Callable[[list[int], Fraction], Content],
) -> Task[Any, Any]:
    """Make the task of a question that measures one statistic."""
    dataset = rows._dataset  # noqa: SLF001 - a question of its rows
    blocks = () if dataset.block_column is None else dataset.block_column.concerned(question)
    subject = TableSubject(
        asked=question,
        engine=dataset._engine,  # noqa: SLF001
        blocks=blocks,
        steps=(MeasuredStep(statistic, AddNoise()),),
        mechanisms=(mechanism,),
    )
    _ = subject.sql  # what cannot be written is refused now
    table: Task[Any, Any] = subject.task
    return replace(
        table,
        document=lambda: {"asks": asks, **subject.document},
        reading=lambda noisy, confidence: reading([int(n) for line in noisy[0] for n in line], confidence),
    )


def contribution_of(rows: Rows, question: TableQuestion) -> Contribution:
    """Bound what one unit can contribute."""
    dataset = rows._dataset  # noqa: SLF001 - a question of its rows
    return contribution(
        question,
        row_level=dataset.identity.unit.kind == "row",
        adjacency=dataset.identity.adjacency,
        pairs=dataset.limits.pairs,
    )


def count_noise(rows: Rows, question: TableQuestion, goal: Goal) -> DiscreteLaplace | DiscreteGaussian:
    """Return the noise on the number of rows in each group of a question."""
    contribution = contribution_of(rows, question)
    l1, l2_squared = RowCounts().sensitivity(contribution)
    return goal.noise(l1=l1, l2_squared=l2_squared, adjacency=contribution.adjacency)


def noise_of(mechanism: DiscreteLaplace | DiscreteGaussian) -> LinearNoise:
    """Return the noise on each integer."""
    if isinstance(mechanism, DiscreteGaussian):
        return LinearNoise(normal=float(mechanism.scale))
    return LinearNoise(laplace=(float(mechanism.scale),))


def check_one_row(rows: Rows, sentence: str) -> None:
    """Refuse rows of which one unit can own several, and samples, whose cost is planned elsewhere."""
    if rows.share is not None:
        raise TacitError(
            "not-allowed",
            f"{sentence} reads all rows, not a sample of them",
            why="in a sample, the noise would grow more than the cost falls, and the sampling error would "
            "grow too",
            fix="ask without the sample",
        )
    unit = rows.unit
    if unit.is_row or rows_per_unit(rows.relation) == 1:
        return
    raise TacitError(
        "not-allowed",
        f"{sentence} needs one row for each {unit.noun}, and here {with_article(unit.noun)} can have several",
        why=f"the rows of one {unit.noun} resemble each other, so an interval that takes them as independent "
        "would be too short",
        fix=Either(Code('rows.per_unit(x=tc.mean("x"))'), Code("rows.limit(rows=1)")),
    )
