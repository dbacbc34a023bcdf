"""The task of a tree: leaves that are small where many points are, then a noisy count of each leaf."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.maps._limits import count_regions
from tacit.maps._regions import BoxRegions
from tacit.maps._surface import Surface
from tacit.maps._task import missing_source
from tacit.mechanisms import MeasurementNoise

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from tacit.core import JSON, Limits
    from tacit.errors import TacitError
    from tacit.maps._box import Box
    from tacit.maps._point_source import PointSource
    from tacit.mechanisms import DiscreteLaplace, SplittingTree

__all__ = ["TreeTask", "leaf_boxes", "leaf_counts"]


@dataclass(frozen=True, slots=True)
class TreeTask:
    """Grow the tree, then count its leaves with fresh noise.

    Both steps read the same counts of the finest grid, which one unit moves by the sensitivity of both. Given
    the leaves, the counts of leaves are sums over cells that do not overlap, so a unit moves them by no more.
    """

    source: PointSource
    box: Box
    limits: Limits
    asked: Mapping[str, JSON]
    tree: SplittingTree
    noise: DiscreteLaplace

    @property
    def question(self) -> JSON:
        """The box and the limits; depth and noise are in the mechanisms."""
        return dict(self.asked)

    @property
    def mechanisms(self) -> Sequence[Any]:
        """The tree, then the noise of the leaf counts."""
        return [self.tree, self.noise]

    def unavailable(self) -> TacitError | None:
        """Return the refusal if the file of points does not exist."""
        return missing_source(self.source)

    def integers(self) -> Generator[Any, Any, None]:
        """Yield the counts of the finest grid, receive the leaves, yield the counts of the leaves."""
        side = 2**self.tree.depth
        points = self.source.load()
        cells = self.box.cells(points.lat, points.lon, rows=side, columns=side)
        counts = count_regions(points, cells, side * side, self.limits).reshape(side, side)
        leaves = yield counts
        yield leaf_counts(counts, leaves, self.tree.depth)

    def read(self, noisy: Sequence[Any], confidence: Fraction) -> Surface:
        """Read a surface whose regions are the leaves."""
        leaves, counts = noisy
        boxes = leaf_boxes(self.box, leaves)
        law = MeasurementNoise.of([(self.noise, len(counts))])
        return Surface(BoxRegions(boxes), np.array(counts, dtype=np.float64), law, float(confidence))


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
    top, left = row * side, column * side
    bottom, right = top + side, left + side
    return np.asarray(sums[bottom, right] - sums[top, right] - sums[bottom, left] + sums[top, left])


def leaf_boxes(box: Box, leaves: Sequence[Sequence[int]]) -> NDArray[np.float64]:
    """Return south, west, north and east of each leaf; borders of neighbours are equal to the last digit."""
    level, row, column = np.array(leaves, dtype=np.int64).reshape(-1, 3).T
    finest = int(level.max(initial=0))
    lat, lon = box.edges(2**finest, 2**finest)
    step = 2 ** (finest - level)
    return np.column_stack(
        [lat[row * step], lon[column * step], lat[(row + 1) * step], lon[(column + 1) * step]]
    )
