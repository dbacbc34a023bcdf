"""A tree of regions: leaves that are small where many points are, then a noisy count of each leaf."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.core import Forecast, Step
from tacit.maps._limits import contribution_of, count_regions
from tacit.maps._map_draft import map_draft
from tacit.maps._regions import BoxRegions
from tacit.maps._surface import Surface
from tacit.mechanisms import DiscreteLaplace, MeasurementNoise, SplittingTree
from tacit.parameters import RealNumber

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from tacit.core import Draft, Goal
    from tacit.maps._box import Box
    from tacit.maps._point_map import PointMap
    from tacit.maps._point_source import OwnedPoints


def draft_tree(point_map: PointMap, goal: Goal, depth: int, share: Fraction) -> Draft[Surface]:
    """Draft a tree, then the counts of its leaves with fresh noise.

    Both steps read the same counts of the finest grid, which one unit moves by the sensitivity of both. Given
    the leaves, the counts of leaves are sums over cells that do not overlap, so a unit moves them by no more.
    """
    RealNumber(above=0, below=1).read("share", share)
    assert goal.epsilon is not None  # noqa: S101 - the only total that a tree takes
    box, limits, side = point_map.box, point_map.limits, 2**depth
    moved = contribution_of(limits, point_map.adjacency, side**2).l1(1)
    tree = SplittingTree(
        epsilon=goal.epsilon * share, depth=depth, sensitivity=moved, adjacency=point_map.adjacency
    )
    rest = goal.epsilon - tree.price
    noise = DiscreteLaplace(epsilon=rest, sensitivity=moved, adjacency=point_map.adjacency)

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
        point_map, asked={"tree": depth}, words=f"points in a tree of {depth} levels", counted=counted,
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
