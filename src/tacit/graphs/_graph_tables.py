"""Answers about graphs with figures of their own: a mixing matrix, and degrees."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np

from tacit.core import AnswerTable
from tacit.show import MOST_SERIES, Chart, ChartAxis, ChartSeries, Figure, Matrix, chosen


class MixingTable(AnswerTable):
    """The number of edges between each two public groups; its figure is a matrix."""

    kind: ClassVar[str] = "mixing-table"
    described: ClassVar[str] = "a table of edges between groups"
    __slots__ = ()

    def matrix(self) -> tuple[tuple[str, ...], np.ndarray[Any, Any]]:
        """Return the groups and the matrix of the values; an undirected one is symmetric."""
        rows, columns = (list(map(str, values)) for values in self.keys.values())
        labels = tuple(dict.fromkeys(rows + columns))
        place = {label: i for i, label in enumerate(labels)}
        cells = np.full((len(labels), len(labels)), np.nan)
        for row, column, value in zip(rows, columns, self.columns["edges"].value, strict=True):
            cells[place[row], place[column]] = value
        return labels, np.where(np.isnan(cells), cells.T, cells)

    def figures(self, what: Any = None) -> tuple[Figure, ...]:
        """Return the matrix."""
        del what
        labels, cells = self.matrix()
        ends, name = self.columns["edges"], next(iter(self.keys))
        half = (float(ends.high[0] or 0) - float(ends.low[0] or 0)) / 2
        matrix = Matrix(cells, labels, labels, name, name, "edges", np.abs(cells) <= half, "z,.0f")
        sure = f"each cell +/- {half:g} at {self.confidence * 100:g} %"
        return (Figure("edges between groups", (matrix,), (f"{sure}; hatched: the interval contains 0",)),)


class DegreeTable(AnswerTable):
    """Numbers by degree, or degrees by rank; its figure has a numeric axis and a band for the intervals."""

    kind: ClassVar[str] = "degree-table"
    described: ClassVar[str] = "a table of degrees"
    __slots__ = ()

    def figures(self, what: Any = None) -> tuple[Figure, ...]:
        """Return each column as steps with a band, one line for each group."""
        return chosen(what, {name: partial(self._figure, name) for name in self.columns})

    def _figure(self, column: str) -> Figure:
        cells, axis = self[column], list(self.keys)[-1]
        groups = self.shown_keys(next(iter(self.keys))) if len(self.keys) > 1 else [""] * len(self)
        series = []
        for number, group in enumerate(list(dict.fromkeys(groups))[:MOST_SERIES]):
            at = [i for i, one in enumerate(groups) if one == group]
            x = np.array([self.keys[axis][i] for i in at], np.float64)
            edges = np.concatenate([x[:1] - 0.5, (x[1:] + x[:-1]) / 2, x[-1:] + 0.5]).tolist()
            ends = ((part[i] for i in at) for part in (cells.value, cells.low, cells.high))
            series.append(ChartSeries.of("steps", edges, ends, label=group, colour=number))
        words = f"the band is the {self.confidence * 100:g} % interval for the noise"
        legend = next(iter(self.keys)) if len(self.keys) > 1 else ""
        chart = Chart(tuple(series), ChartAxis(axis), ChartAxis(column, ends=(0.0, None)), legend=legend)
        return Figure(f"{column} by {axis}", (chart,), (words,))
