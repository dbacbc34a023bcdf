"""The task of an adaptive grid: a coarse noisy grid, whose cells are divided by how many points they hold.

The rules for both sizes are those of Qardaji, Yang and Li 2013.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.maps._hierarchy import consistent
from tacit.maps._noise import MeasurementNoise
from tacit.maps._regions import BoxRegions
from tacit.maps._surface import Surface
from tacit.maps._task import missing_source

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from tacit.core import JSON
    from tacit.errors import TacitError
    from tacit.maps._box import Box
    from tacit.maps._point_source import OwnedPoints, PointSource
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
    coarse, fine
        The noise of the two grids.
    """

    source: PointSource
    box: Box
    asked: Mapping[str, JSON]
    total: DiscreteLaplace | None
    points: int | None
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
        cells = self.box.cells(points.lat, points.lon, rows=size, columns=size)
        noisy = yield np.bincount(cells, minlength=size * size).astype(np.int64)
        parts = self._parts(noisy)
        found = part_of(self.box, points, size, parts)
        yield np.bincount(found, minlength=int((parts**2).sum())).astype(np.int64)

    def read(self, noisy: Sequence[Any], confidence: Fraction) -> Surface:
        """Read a surface whose regions are the parts; both grids agree by least squares."""
        known = self.points if self.total is None else noisy[0]
        coarse, fine = noisy[-2:]
        size = self._size(known)
        parts = self._parts(coarse)
        cells = parts**2
        parents = np.concatenate(
            [np.repeat(np.arange(size * size), cells) + len(fine), np.full(size * size, -1, dtype=np.int64)]
        )
        law = MeasurementNoise.of([(self.fine, len(fine)), (self.coarse, len(coarse))], parents)
        raw = np.concatenate([np.array(one, dtype=np.float64) for one in (fine, coarse)])
        counts = consistent(raw, parents, law.variances)[: len(fine)]
        return Surface(BoxRegions(part_boxes(self.box, size, parts)), counts, law, float(confidence))

    def _size(self, points: Any) -> int:
        return coarse_size(points, 1 / float(self.coarse.scale) + 1 / float(self.fine.scale))

    def _parts(self, noisy: Any) -> NDArray[np.int64]:
        return fine_sizes(noisy, 1 / float(self.fine.scale))


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


def part_of(box: Box, points: OwnedPoints, size: int, parts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the part of each point, cell by cell; a function of the point and of public sizes alone."""
    first = np.concatenate([[0], np.cumsum(parts**2)])
    down, along = (
        ((at - low) * (size / (high - low))).clip(0, size)
        for at, low, high in ((points.lat, box.south, box.north), (points.lon, box.west, box.east))
    )
    row, column = (np.minimum(one.astype(np.int64), size - 1) for one in (down, along))
    cell = row * size + column
    inner = parts[cell]
    part_row, part_column = (
        np.minimum(((one - whole) * inner).astype(np.int64), inner - 1)
        for one, whole in ((down, row), (along, column))
    )
    return first[cell] + part_row * inner + part_column


def part_boxes(box: Box, size: int, parts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return south, west, north and east of each part; borders of coarse cells are those of their grid."""
    lat, lon = box.edges(size, size)
    cell = np.repeat(np.arange(size * size), parts**2)
    first = np.repeat(np.concatenate([[0], np.cumsum(parts**2)])[:-1], parts**2)
    inner = parts[cell]
    part_row, part_column = np.divmod(np.arange(len(cell)) - first, inner)
    sides = []
    for edges, whole, part in ((lat, cell // size, part_row), (lon, cell % size, part_column)):
        low, high = edges[whole], edges[whole + 1]
        sides.append(low + (high - low) * part / inner)
        sides.append(np.where(part + 1 == inner, high, low + (high - low) * (part + 1) / inner))
    south, north, west, east = sides
    return np.column_stack([south, west, north, east])
