"""The task of cross tables: one statement for the coded rows, exact tables of them, and noise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tacit.algebra import RowCounts, document
from tacit.tables._coded_rows import coded_rows
from tacit.tables._cross_tables import CrossTables, PlacedAxis
from tacit.tables._task import unavailable_source

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from fractions import Fraction

    from tacit.algebra import Statistic, TableQuestion
    from tacit.core import JSON
    from tacit.engines import Engine
    from tacit.errors import TacitError
    from tacit.mechanisms import DiscreteLaplace, ResidualNoise
    from tacit.strategies import ColumnSet
    from tacit.tables._axes import Axis
    from tacit.tables._cross_noise import CrossNoise

__all__ = ["CrossTask"]


@dataclass(frozen=True, slots=True)
class CrossTask:
    """Count the rows of every cell of what is measured.

    Parameters
    ----------
    asked
        The question whose groups are the kinds of rows.
    axes
        The columns with their public places.
    tables
        The wanted tables.
    mechanisms
        One that measures residuals, or one for each measured table.
    noise
        What they leave on tables.
    left_out
        Which rows are not counted, in words.
    engine
        Where the data is.
    blocks
        The blocks of the data that the question reads; none stands for all of it.
    """

    asked: TableQuestion
    axes: tuple[Axis, ...]
    tables: tuple[ColumnSet, ...]
    mechanisms: tuple[ResidualNoise, ...] | tuple[DiscreteLaplace, ...]
    noise: CrossNoise
    left_out: tuple[str, ...]
    engine: Engine
    blocks: tuple[str, ...] = ()

    @property
    def question(self) -> JSON:
        """The rows, the axes and what is measured; names of columns and the wanted tables are not in it."""
        return {
            "crosstabs": [
                {"by": document(axis.node), "values": document(axis.values), "other": axis.other}
                for axis in self.axes
            ],
            "rows": document(self.asked.input),
            "law": self.noise.law,
            "measured": [list(one) for one in self.noise.sets],
        }

    @property
    def labels(self) -> tuple[dict[str, JSON], ...]:
        """What the integers of each mechanism are."""
        if self.noise.law == "gaussian":
            return ({"statistic": "residuals of cross tables"},)
        return tuple(
            {"statistic": "cells of a cross table", "columns": [self.axes[i].name for i in one]}
            for one in self.noise.sets
        )

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """The number of rows of each kind."""
        return (RowCounts(),)

    def on(self, engine: Engine) -> Self:
        """Return the same task on other data, for an attack on invented rows."""
        return replace(self, engine=engine)

    @property
    def sql(self) -> tuple[str, ...]:
        """The statement that will run."""
        return self.engine.sql(self.asked, (RowCounts(),))

    def unavailable(self) -> TacitError | None:
        """Return why nothing can be drawn."""
        return unavailable_source(self.engine, self.asked, (RowCounts(),))

    def integers(self) -> Generator[Any, Any, None]:
        """Yield the exact tables of all measured sets: together for residuals, else one after the other."""
        with self.engine.transaction() as data:
            rows = coded_rows(data, self.asked, self.axes)
        if self.noise.law == "gaussian":
            yield [rows.table(one) for one in self.noise.sets]
            return
        for one in self.noise.sets:
            yield rows.table(one)

    def read(self, noisy: Sequence[Any], confidence: Fraction) -> CrossTables:
        """Keep the noisy integers with the axes; tables are rebuilt from them when they are read."""
        drawn = noisy[0] if self.noise.law == "gaussian" else noisy
        return CrossTables(
            tuple(PlacedAxis.of(axis) for axis in self.axes),
            self.tables,
            self.noise,
            tuple(np.array(one) for one in drawn),
            float(confidence),
            left_out=self.left_out,
        )
