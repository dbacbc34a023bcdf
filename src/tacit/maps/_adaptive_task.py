"""The task of an adaptive grid: a coarse noisy grid, whose cells are divided by how many points they hold.

The rules for both sizes are those of Qardaji, Yang and Li 2013.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.maps._regions import BoxRegions
from tacit.maps._surface import Surface
from tacit.maps._task import missing_source
from tacit.mechanisms import MeasurementNoise
from tacit.strategies import consistent

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from tacit.core import JSON
    from tacit.errors import TacitError
    from tacit.maps._box import Box
    from tacit.maps._point_source import PointSource
    from tacit.mechanisms import DiscreteLaplace

__all__ = ["AdaptiveTask", "coarse_size", "fine_sizes"]

_LARGEST = 512  # rows of the coarse grid, and parts of one of its cells along a side
_MOST = 2**22  # regions of a surface
_COARSE, _FINE = 10.0, 5.0  # constants of the rules


@dataclass(frozen=True, slots=True)
class AdaptiveTask:
    """Count the coarse cells, divide each by its noisy count, count the parts, and merge both.

    Given the noisy counts of the coarse grid, the parts are public. A unit with k points moves the counts of
    either grid by at most k in L1 (2 k under replace), so the costs of the steps add up.

    Parameters
    ----------
    total
        The noise of the number of points; None where it is declared.
    points
        The declared number of points.
    cells
        Rows and columns of the finest grid, whose borders are those of all regions.
    coarse, fine
        The noise of the two grids.
    """

    source: PointSource
    box: Box
    asked: Mapping[str, JSON]
    total: DiscreteLaplace | None
    points: int | None
    cells: int
    coarse: DiscreteLaplace
    fine: DiscreteLaplace

    @property
    def question(self) -> JSON:
        """The box, the limits, and the number of points if it is declared."""
        return dict(self.asked)

    @property
    def mechanisms(self) -> Sequence[DiscreteLaplace]:
        """The noise of the total, of the coarse grid and of the fine one."""
        first = [] if self.total is None else [self.total]
        return [*first, self.coarse, self.fine]

    def unavailable(self) -> TacitError | None:
        """Return the refusal if the file of points does not exist."""
        return missing_source(self.source)

    def integers(self) -> Generator[Any, Any, None]:
        """Yield the number of points, the coarse counts, and the counts of the parts."""
        points = self.source.load()
        known = self.points
        if known is None:
            known = yield len(points)
        size = self._size(known)
        finest = self.box.cells(points.lat, points.lon, rows=self.cells, columns=self.cells)
        row, column = np.divmod(finest, self.cells)
        coarse = part_in(row, self.cells, size) * size + part_in(column, self.cells, size)
        noisy = yield np.bincount(coarse, minlength=size * size).astype(np.int64)
        parts = self._parts(noisy, size)
        found = parts.of(row, column, coarse)
        yield np.bincount(found, minlength=len(parts)).astype(np.int64)

    def read(self, noisy: Sequence[Any], confidence: Fraction) -> Surface:
        """Read a surface whose regions are the parts; both grids agree by least squares."""
        known = self.points if self.total is None else noisy[0]
        coarse, fine = noisy[-2:]
        size = self._size(known)
        parts = self._parts(coarse, size)
        parents = np.concatenate([parts.cell + len(fine), np.full(size * size, -1, dtype=np.int64)])
        measured = [(self.fine, len(fine)), (self.coarse, len(coarse))]
        law = MeasurementNoise.of(measured, parents, direct=True)
        raw = np.concatenate([np.array(one, dtype=np.float64) for one in (fine, coarse)])
        counts = consistent(raw, parents, law.variances)[: len(fine)]
        return Surface(BoxRegions(parts.boxes(self.box)), counts, law, float(confidence), measured=raw)

    def _size(self, points: Any) -> int:
        rate = 1 / float(self.coarse.scale) + 1 / float(self.fine.scale)
        return min(self.cells, coarse_size(points, rate))

    def _parts(self, noisy: Any, size: int) -> GridParts:
        return GridParts(self.cells, size, fine_sizes(noisy, 1 / float(self.fine.scale)))


def coarse_size(points: float, rate: float) -> int:
    """Return rows (and columns) of the coarse grid; ``rate`` is the epsilon of both grids for one point.

    Examples
    --------
    >>> coarse_size(51_920, 0.1), coarse_size(51_920, 1)
    (10, 19)
    """
    return min(_LARGEST, max(10, math.ceil(math.sqrt(max(float(points), 0.0) * rate / _COARSE) / 4)))


def fine_sizes(noisy: Any, rate: float) -> NDArray[np.int64]:
    """Return into how many parts each side of a coarse cell is divided; ``rate`` is that of the fine grid.

    Examples
    --------
    >>> fine_sizes([-5, 0, 100, 1000], 0.5).tolist()
    [1, 1, 4, 10]
    """
    counts = np.maximum(np.array(noisy, dtype=np.float64), 0)
    parts = np.ceil(np.sqrt(counts * rate / _FINE)).clip(1, _LARGEST).astype(np.int64)
    most = _LARGEST
    while int((parts**2).sum()) > _MOST:
        most //= 2
        parts = np.minimum(parts, most)
    return parts


def part_in(place: Any, length: Any, parts: Any) -> Any:
    """Return which of some nearly equal parts of a length holds a place; part k begins at k length // parts.

    Examples
    --------
    >>> [int(part_in(place, 7, 3)) for place in range(7)], [k * 7 // 3 for k in range(4)]
    ([0, 0, 1, 1, 2, 2, 2], [0, 2, 4, 7])
    """
    return ((place + 1) * parts - 1) // length


class GridParts:
    """The parts of all cells of a coarse grid, cell by cell; their borders are those of the finest grid.

    Parameters
    ----------
    cells, size
        Rows (and columns) of the finest grid and of the coarse one.
    wanted
        Into how many parts each side of a coarse cell is divided, where it has so many finest cells.
    """

    def __init__(self, cells: int, size: int, wanted: NDArray[np.int64]) -> None:
        edges = np.arange(size + 1) * cells // size
        self._cells, self._size, self._edges = cells, size, edges
        row, column = np.divmod(np.arange(size * size), size)
        self._down = np.minimum(wanted, np.diff(edges)[row])
        self._along = np.minimum(wanted, np.diff(edges)[column])
        self._first = np.concatenate([[0], np.cumsum(self._down * self._along)])
        #: The coarse cell of each part.
        self.cell = np.repeat(np.arange(size * size), self._down * self._along)

    def __len__(self) -> int:
        return int(self._first[-1])

    def of(
        self, row: NDArray[np.int64], column: NDArray[np.int64], coarse: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return the part of each point, from its finest cell: whole-number arithmetic on public sizes."""
        place = []
        for at, whole, parts in (
            (row, coarse // self._size, self._down),
            (column, coarse % self._size, self._along),
        ):
            low, high = self._edges[whole], self._edges[whole + 1]
            place.append(part_in(at - low, high - low, parts[coarse]))
        return np.asarray(self._first[coarse] + place[0] * self._along[coarse] + place[1])

    def boxes(self, box: Box) -> NDArray[np.float64]:
        """Return south, west, north and east of each part."""
        lat, lon = box.edges(self._cells, self._cells)
        inner = np.arange(len(self)) - self._first[:-1][self.cell]
        part_row, part_column = np.divmod(inner, self._along[self.cell])
        sides = []
        for degrees, whole, part, parts in (
            (lat, self.cell // self._size, part_row, self._down[self.cell]),
            (lon, self.cell % self._size, part_column, self._along[self.cell]),
        ):
            low, length = self._edges[whole], self._edges[whole + 1] - self._edges[whole]
            sides += [degrees[low + part * length // parts], degrees[low + (part + 1) * length // parts]]
        south, north, west, east = sides
        return np.column_stack([south, west, north, east])
