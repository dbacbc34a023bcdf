"""Regions that adapt to the points: a tree, and a grid whose cells are divided.

The leaves of the tree are small where many points are; then each leaf gets a noisy count. The adaptive grid
starts from a coarse noisy grid, whose cells are divided by how many points they hold. The rules for both
sizes are those of Qardaji, Yang and Li 2013.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.core import Forecast, Step
from tacit.errors import TacitError
from tacit.fixes import Declare
from tacit.maps._map_draft import contribution_of, count_regions, map_draft
from tacit.maps._regions import BoxRegions
from tacit.maps._surface import Surface
from tacit.mechanisms import DiscreteLaplace, MeasurementNoise, SplittingTree
from tacit.parameters import RealNumber
from tacit.strategies import consistent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tacit.accounting import Adjacency
    from tacit.core import Draft, Goal, Limits
    from tacit.maps._areas import Box
    from tacit.maps._point_map import PointMap
    from tacit.maps._point_source import OwnedPoints


_FOR_THE_TOTAL = Fraction(2, 100)
_MAX_SIDE = 512  # rows of the coarse grid, and parts of one of its cells along a side
_MAX_REGIONS = 2**22  # regions of a surface
_COARSE, _FINE = 10.0, 5.0  # constants of the rules


def draft_tree(point_map: PointMap, goal: Goal, depth: int, share: Fraction) -> Draft[Surface]:
    """Draft a tree, then the counts of its leaves with fresh noise.

    Both steps read the same counts of the finest grid, which one unit moves by the sensitivity of both. Given
    the leaves, the counts of leaves are sums over cells that do not overlap, so a unit moves them by no more.
    """
    RealNumber(above=0, below=1).read("share", share)
    assert goal.epsilon is not None  # noqa: S101 - the only total that a tree takes
    box, limits, side = point_map.box, point_map.limits, 2**depth
    sensitivity = contribution_of(limits, point_map.adjacency, side**2).l1(1)
    tree = SplittingTree(
        epsilon=goal.epsilon * share, depth=depth, sensitivity=sensitivity, adjacency=point_map.adjacency
    )
    rest = goal.epsilon - tree.price
    noise = DiscreteLaplace(epsilon=rest, sensitivity=sensitivity, adjacency=point_map.adjacency)

    def counted(owned: OwnedPoints) -> NDArray[np.int64]:
        cells = box.cells(owned.lat, owned.lon, rows=side, columns=side)
        return count_regions(owned, cells, side * side, limits).reshape(side, side)

    def reading(noisy: Sequence[Any], level: Fraction) -> Surface:
        leaves, counts = noisy
        law = MeasurementNoise.of([(noise, len(counts))])
        return Surface(
            BoxRegions(leaf_boxes(box, leaves)), np.array(counts, dtype=np.float64), law, float(level)
        )

    return map_draft(
        point_map, question={"tree": depth}, words=f"points in a tree of {depth} levels", counts=counted,
        steps=[
            Step(tree, lambda counts, _: counts),
            Step(noise, lambda counts, noisy: leaf_counts(counts, noisy[0], depth)),
        ],
        reading=reading,
        forecast=[
            Forecast("n", "points in each leaf", noise.describe(), float(noise.half_width(goal.confidence)))
        ],
        facts=[
            ("regions", f"leaves of a tree with at most {depth} levels; noise decides where it splits"),
            ("split", f"epsilon {float(tree.price):.4g} for the tree, {float(rest):.4g} for the counts"),
        ],
    )  # fmt: skip


def leaf_counts(counts: NDArray[np.int64], leaves: Sequence[Sequence[int]], depth: int) -> NDArray[np.int64]:
    """Return the sum of the finest cells of each leaf.

    Examples
    --------
    >>> leaf_counts(np.arange(16).reshape(4, 4), [[1, 0, 0], [2, 3, 3]], 2).tolist()
    [10, 15]
    """
    sums = np.zeros((len(counts) + 1, len(counts) + 1), dtype=np.int64)
    sums[1:, 1:] = counts.cumsum(axis=0).cumsum(axis=1)
    level, row, column = np.array(leaves, dtype=np.int64).reshape(-1, 3).T
    side = 2 ** (depth - level)
    first_row, first_column = row * side, column * side
    bottom, right = first_row + side, first_column + side
    return np.asarray(
        sums[bottom, right]
        - sums[first_row, right]
        - sums[bottom, first_column]
        + sums[first_row, first_column]
    )


def leaf_boxes(box: Box, leaves: Sequence[Sequence[int]]) -> NDArray[np.float64]:
    """Return south, west, north and east of each leaf; borders of neighbours are equal to the last digit."""
    level, row, column = np.array(leaves, dtype=np.int64).reshape(-1, 3).T
    finest = int(level.max(initial=0))
    lat, lon = box.edges(2**finest, 2**finest)
    step = 2 ** (finest - level)
    return np.column_stack(
        [lat[row * step], lon[column * step], lat[(row + 1) * step], lon[(column + 1) * step]]
    )


def draft_adaptive_grid(point_map: PointMap, goal: Goal, points: int | None, cells: int) -> Draft[Surface]:
    """Draft the counts of the coarse cells and of their parts, merged by least squares.

    Given the noisy counts of the coarse grid, the parts are public. A unit with k points moves the counts of
    either grid by at most k in L1 (2 k under replace), so the costs of the steps add up.

    Parameters
    ----------
    points
        The declared number of points; None to spend a part of epsilon on it.
    cells
        Rows and columns of the finest grid, whose borders are those of all regions.
    """
    assert goal.epsilon is not None  # noqa: S101 - the only total that an adaptive grid takes
    total_share = Fraction(0) if points is not None else _FOR_THE_TOTAL
    sensitivity, adjacency = _points_moved(point_map.limits, point_map.adjacency), point_map.adjacency
    noise = DiscreteLaplace(
        epsilon=goal.epsilon * (1 - total_share) / 2, sensitivity=sensitivity, adjacency=adjacency
    )
    grids = AdaptiveGrids(cells, points, 1 / float(noise.scale))
    steps = [
        Step(noise, grids.coarse_counts),
        Step(noise, grids.fine_counts),
    ]
    if total_share:
        total = DiscreteLaplace(
            epsilon=goal.epsilon * total_share, sensitivity=sensitivity, adjacency=adjacency
        )
        steps.insert(0, Step(total, lambda finest, _: len(finest.row)))

    def counted(owned: OwnedPoints) -> FinestCells:
        cell_of_point = point_map.box.cells(owned.lat, owned.lon, rows=cells, columns=cells)
        return FinestCells(*np.divmod(cell_of_point, cells))

    def reading(noisy: Sequence[Any], level: Fraction) -> Surface:
        coarse, fine = noisy[-2:]
        parts = grids.parts(noisy)
        parents = np.concatenate([parts.cell + len(fine), np.full(len(coarse), -1, dtype=np.int64)])
        law = MeasurementNoise.of([(noise, len(fine)), (noise, len(coarse))], parents, direct=True)
        raw = np.concatenate([np.array(one, dtype=np.float64) for one in (fine, coarse)])
        counts = consistent(raw, parents, law.variances)[: len(fine)]
        return Surface(BoxRegions(parts.boxes(point_map.box)), counts, law, float(level), measured=raw)

    return map_draft(
        point_map, question={"adaptive_grid": cells, "points": points}, words="points in an adaptive grid",
        counts=counted, steps=steps, reading=reading,
        forecast=[
            Forecast("n", "points in each region", noise.describe(), float(noise.half_width(goal.confidence)))
        ],
        facts=[
            ("regions", "a coarse grid; the noisy count of a cell decides how finely it is divided"),
            ("points", "2 % of epsilon is spent to estimate their number" if points is None else
             f"about {points:,}, as declared"),
        ],
    )  # fmt: skip


def _points_moved(limits: Limits, adjacency: Adjacency) -> int:
    """Return how many points one unit adds or removes; only the limit on rows bounds an adaptive grid."""
    if limits.rows is None:
        raise TacitError(
            "missing-limit",
            "nothing bounds how many points one unit can add",
            why="the regions of an adaptive grid change with the noise, so only a limit on all points of a "
            "unit bounds what it moves",
            fix=Declare("limits", 10, column="rows", function="tc.points"),
        )
    return limits.rows * (2 if adjacency == "replace" else 1)


@dataclass(frozen=True, slots=True, eq=False)
class FinestCells:
    """The row and the column of each point in the finest grid."""

    row: NDArray[np.int64]
    column: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class AdaptiveGrids:
    """The two grids, whose sizes follow from the noisy numbers so far.

    Parameters
    ----------
    cells
        Rows (and columns) of the finest grid.
    known
        The declared number of points; None where the first noisy number says it.
    rate
        The epsilon of each grid for one point.
    """

    cells: int
    known: int | None
    rate: float

    def size(self, noisy: Sequence[Any]) -> int:
        """Return rows (and columns) of the coarse grid."""
        points = noisy[0] if self.known is None else self.known
        return min(self.cells, coarse_size(points, 2 * self.rate))

    def parts(self, noisy: Sequence[Any]) -> GridParts:
        """Return the parts into which the noisy counts divide the coarse cells."""
        coarse = noisy[int(self.known is None)]
        return GridParts(self.cells, self.size(noisy), fine_sizes(coarse, self.rate))

    def coarse_counts(self, finest: FinestCells, noisy: Sequence[Any]) -> NDArray[np.int64]:
        """Count the points of each coarse cell."""
        size = self.size(noisy)
        return np.bincount(self._coarse(finest, size), minlength=size * size).astype(np.int64)

    def fine_counts(self, finest: FinestCells, noisy: Sequence[Any]) -> NDArray[np.int64]:
        """Count the points of each part."""
        parts = self.parts(noisy)
        part = parts.of(finest.row, finest.column, self._coarse(finest, self.size(noisy)))
        return np.bincount(part, minlength=len(parts)).astype(np.int64)

    def _coarse(self, finest: FinestCells, size: int) -> Any:
        return part_in(finest.row, self.cells, size) * size + part_in(finest.column, self.cells, size)


def coarse_size(points: float, rate: float) -> int:
    """Return rows (and columns) of the coarse grid; ``rate`` is the epsilon of both grids for one point.

    Examples
    --------
    >>> coarse_size(51_920, 0.1), coarse_size(51_920, 1)
    (10, 19)
    """
    return min(_MAX_SIDE, max(10, math.ceil(math.sqrt(max(float(points), 0.0) * rate / _COARSE) / 4)))


def fine_sizes(noisy: Any, rate: float) -> NDArray[np.int64]:
    """Return into how many parts each side of a coarse cell is divided; ``rate`` is that of the fine grid.

    Examples
    --------
    >>> fine_sizes([-5, 0, 100, 1000], 0.5).tolist()
    [1, 1, 4, 10]
    """
    counts = np.maximum(np.array(noisy, dtype=np.float64), 0)
    parts = np.ceil(np.sqrt(counts * rate / _FINE)).clip(1, _MAX_SIDE).astype(np.int64)
    largest = _MAX_SIDE
    while int((parts**2).sum()) > _MAX_REGIONS:
        largest //= 2
        parts = np.minimum(parts, largest)
    return parts


def part_in(position: Any, length: Any, parts: Any) -> Any:
    """Return which of some nearly equal parts of a length holds a place; part k begins at k length // parts.

    Examples
    --------
    >>> [int(part_in(place, 7, 3)) for place in range(7)], [k * 7 // 3 for k in range(4)]
    ([0, 0, 1, 1, 2, 2, 2], [0, 2, 4, 7])
    """
    return ((position + 1) * parts - 1) // length


class GridParts:
    """The parts of all cells of a coarse grid, cell by cell; their borders are those of the finest grid.

    Parameters
    ----------
    cells, size
        Rows (and columns) of the finest grid and of the coarse one.
    wanted
        Into how many parts each side of a coarse cell is divided, where it has so many finest cells.
    """

    def __init__(self, cells: int, size: int, parts: NDArray[np.int64]) -> None:
        edges = np.arange(size + 1) * cells // size
        self._cells, self._size, self._edges = cells, size, edges
        row, column = np.divmod(np.arange(size * size), size)
        self._down = np.minimum(parts, np.diff(edges)[row])
        self._along = np.minimum(parts, np.diff(edges)[column])
        self._first = np.concatenate([[0], np.cumsum(self._down * self._along)])
        #: The coarse cell of each part.
        self.cell = np.repeat(np.arange(size * size), self._down * self._along)

    def __len__(self) -> int:
        return int(self._first[-1])

    def of(
        self, row: NDArray[np.int64], column: NDArray[np.int64], coarse: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return the part of each point, from its finest cell: whole-number arithmetic on public sizes."""
        positions = []
        for at, coarse_position, parts in (
            (row, coarse // self._size, self._down),
            (column, coarse % self._size, self._along),
        ):
            low, high = self._edges[coarse_position], self._edges[coarse_position + 1]
            positions.append(part_in(at - low, high - low, parts[coarse]))
        return np.asarray(self._first[coarse] + positions[0] * self._along[coarse] + positions[1])

    def boxes(self, box: Box) -> NDArray[np.float64]:
        """Return south, west, north and east of each part."""
        lat, lon = box.edges(self._cells, self._cells)
        inner = np.arange(len(self)) - self._first[:-1][self.cell]
        part_row, part_column = np.divmod(inner, self._along[self.cell])
        sides = []
        for degrees, lines, part, parts in (
            (lat, self.cell // self._size, part_row, self._down[self.cell]),
            (lon, self.cell % self._size, part_column, self._along[self.cell]),
        ):
            low, length = self._edges[lines], self._edges[lines + 1] - self._edges[lines]
            sides += [degrees[low + part * length // parts], degrees[low + (part + 1) * length // parts]]
        south, north, west, east = sides
        return np.column_stack([south, west, north, east])
