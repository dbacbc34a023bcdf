"""k-means by a private coreset: what it asks of the data, at which shares of the noise, and what it reads."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.core import Step
from tacit.learn._counted_rows import counted_rows
from tacit.learn._declared_bounds import bounds_document
from tacit.learn._fit_noise import share_of_noise
from tacit.learn._fit_steps import FitSteps
from tacit.learn._kmeans_steps import COUNTED, MOVED, CentreSteps, TreeSteps, leaf_sums
from tacit.learn._row_grid import RowGrid, clipped_rows
from tacit.learn._row_moments import MOVED_MEANS, RADIUS, around, centre_and_radius, moment_step
from tacit.learn._weighted_kmeans import weighted_kmeans
from tacit.mechanisms import RoundedGaussian, SampledSteps
from tacit.parameters import Integer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from tacit.learn._examples import Examples


#: The share of the squared signal-to-noise of each part.
_SHARES = {"splits": Fraction(2, 10), "leaves": Fraction(4, 10), "moves": Fraction(3, 10)}
_MEANS = Fraction(1, 10)  # the share of the moments of all rows
_WIDE = 2  # the radius of all rows, in roots of the total variance
_MOVES = 2
_MANY = 2  # centres for each cluster in the first move
_SMALLEST = 0.05  # the smallest radius of a cluster, as a share of the largest row
_DEEPEST = 8
_REACH = 3  # the radius of a cluster, in root mean squared distances of leaves


@dataclass(slots=True)
class Clustering:
    """What the steps of one k-means share: the rows, and the tree once it was split."""

    rows: NDArray[np.int64]
    tree: TreeSteps | None = None

    @property
    def grown(self) -> TreeSteps:
        """The tree, whose noisy splits the later steps use."""
        assert self.tree is not None  # noqa: S101 - the steps run in order
        return self.tree


def tree_levels(size: int, features: int, clusters: int, multiplier: float) -> int:
    """Return how many levels the tree has: the sum of a leaf should stand out from its noise.

    Examples
    --------
    >>> tree_levels(2_000, 8, 5, 4.2), tree_levels(20_000, 8, 5, 4.2), tree_levels(100, 8, 5, 4.2)
    (5, 8, 4)
    """
    leaves = size / (5.4 * multiplier * math.sqrt(features))
    fewest = math.ceil(math.log2(3 * clusters))
    return max(min(round(math.log2(max(leaves, 1))), _DEEPEST), fewest)


def kmeans_steps(data: Examples, noise: Fraction, grid: RowGrid, clusters: int) -> FitSteps[Clustering]:
    """Return the steps of k-means: split a tree, add up its leaves, cluster these, move the centres twice.

    Moments of all rows come first, and rows are clipped to a noisy radius around their noisy mean. A row of
    length at most RADIUS is then in one node of each level, in one leaf, and with one centre in each move,
    so it moves these integers by at most MOVED. Weighted k-means on the noisy leaves is free.
    """
    k = Integer(1, 1_000, instead=8).read("n_clusters", clusters)
    levels = tree_levels(data.size, len(grid.low), k, float(noise))
    taken = {"splits": levels, "leaves": 1, "moves": _MOVES}
    moved = {name: MOVED[name] * data.per_unit for name in MOVED}
    sigma = {name: share_of_noise(noise, _SHARES[name] / taken[name], moved[name]) for name in MOVED}

    def load() -> Clustering:
        rows, good = grid.whole(counted_rows(data)[0])
        return Clustering(rows[good])

    def tree_of(held: Clustering, noisy: Sequence[Any]) -> TreeSteps:
        _, middle, wide = centre_and_radius(noisy[0])
        held.tree = TreeSteps(around(held.rows, middle, _WIDE * wide), levels, float(sigma["splits"]))
        return held.tree

    def moves_of(held: Clustering, noisy: Sequence[Any]) -> CentreSteps:
        leaves = np.asarray(noisy[2], np.float64)
        centres, spread = start_centres(leaves, _MANY * k, float(sigma["leaves"]))
        radius = min(max(_REACH * spread, _SMALLEST * RADIUS), 2.0 * RADIUS)
        return CentreSteps(held.grown.rows, centres, k, radius, float(sigma["moves"]))

    def reading(noisy: Sequence[Any], confidence: Fraction) -> Mapping[str, NDArray[Any]]:
        del confidence
        _, middle, wide = centre_and_radius(noisy[0])
        centres, counts, radius = noisy[3]
        sizes, scale = np.asarray(counts, np.float64), _WIDE * wide / RADIUS
        step = float(sigma["moves"]) * radius / RADIUS * scale * grid.clip / RADIUS
        return {
            "cluster_centers": grid.features(middle + np.asarray(centres) * scale),
            "cluster_sizes": sizes,
            "cluster_errors": (step / np.maximum(sizes, 1.0))[:, None] * grid.units,
        }

    return FitSteps(
        settings={
            "n_clusters": k, "levels": levels, "bounds": bounds_document(grid.low, grid.high),
            "clip": grid.clip, "per_unit": data.per_unit, "features": len(grid.low),
        },
        load=load,
        steps=(
            moment_step(
                share_of_noise(noise, _MEANS, MOVED_MEANS * data.per_unit), data.per_unit,
                of=lambda held: held.rows,
            ),
            Step(SampledSteps(sigma=sigma["splits"], sensitivity=moved["splits"], rate=1, steps=levels),
                 tree_of, {"statistic": "counts and sums along public directions, in the nodes of a tree"}),
            Step(RoundedGaussian(sigma=sigma["leaves"], sensitivity=moved["leaves"]),
                 lambda held, _: leaf_sums(held.grown),
                 {"statistic": "counts and sums of rows in its leaves"}),
            Step(SampledSteps(sigma=sigma["moves"], sensitivity=moved["moves"], rate=1, steps=_MOVES),
                 moves_of, {"statistic": "counts and sums of the ways from the centres to their rows"}),
        ),
        reading=reading,
    )  # fmt: skip


def start_centres(
    leaves: NDArray[np.float64], clusters: int, noise: float
) -> tuple[NDArray[np.int64], float]:
    """Return centres of the noisy leaves, in steps, and how far leaves are from them: post-processing.

    Leaves whose noisy count does not stand out are left out. If too few are left, public points fill up.
    """
    counts = leaves[:, 0] / COUNTED["leaves"]
    kept = leaves[:, 0] > 2 * noise
    points = clipped_rows(
        np.rint(leaves[kept, 1:] / np.maximum(counts[kept], 1)[:, None]).astype(np.int64), RADIUS
    ).astype(np.float64)
    weights = counts[kept]
    lacking = clusters - len(points)
    if lacking > 0:
        draw = np.random.default_rng(20261116)
        more = draw.normal(size=(lacking, leaves.shape[1] - 1)) * RADIUS / (4 * math.sqrt(leaves.shape[1]))
        points, weights = np.concatenate([points, more]), np.concatenate([weights, np.ones(lacking)])
    centres, spread = weighted_kmeans(points, weights, clusters)
    return clipped_rows(np.rint(centres).astype(np.int64), RADIUS), spread
