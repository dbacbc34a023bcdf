"""Steps of k-means: a tree of public directions with noisy splits, then noisy moves of the centres."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.learn._row_grid import clipped_rows, sums_by
from tacit.learn._row_moments import RADIUS
from tacit.learn._weighted_kmeans import weighted_kmeans

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: What one row adds to a count, beside a sum in which it has at most RADIUS: in splits, leaves and moves.
COUNTED = {"splits": RADIUS, "leaves": RADIUS // 2, "moves": 2 * RADIUS // 3}
#: How far one row moves the integers of a step, in L2, rounded up.
MOVED = {name: math.isqrt(RADIUS**2 + counted**2) + 1 for name, counted in COUNTED.items()}
_SEED = 20261116  # of the public directions
_FINE = 2**10  # steps of a direction's coordinates


def directions(level: int, features: int) -> NDArray[np.int64]:
    """Return one public direction for each node of a level, in whole numbers."""
    draw = np.random.default_rng([_SEED, level, features])
    return np.rint(draw.normal(size=(2**level, features)) * _FINE).astype(np.int64)


@dataclass(slots=True)
class TreeSteps:
    """The sums of `SampledSteps` for the tree: in each node, a count and the sum along its direction.

    A node is split at the noisy mean along its direction; one with too few rows is dropped. One row is in one
    node of a level, so it adds one count and one number of at most RADIUS.

    Parameters
    ----------
    noise
        The standard deviation of the noise, in steps.
    """

    rows: NDArray[np.int64]
    levels: int
    noise: float
    node: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    level: int = 0
    _along: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    def __post_init__(self) -> None:
        self.node = np.zeros(len(self.rows), np.int64)

    @property
    def units(self) -> int:
        """The number of rows; every step uses all of them."""
        return len(self.rows)

    def sums(self, sample: NDArray[np.int64]) -> Any:
        """Return counts and sums along the directions, one line for each node."""
        del sample  # the rate is 1
        nodes, towards = 2**self.level, directions(self.level, self.rows.shape[1])
        size = np.ceil(np.sqrt((towards**2).sum(axis=1).astype(np.float64))).astype(np.int64) + 1
        inside = self.node >= 0
        place = np.where(inside, self.node, 0)
        along = np.einsum("ij,ij->i", self.rows, towards[place])
        self._along = np.sign(along) * (np.abs(along) // size[place])
        held = np.stack([np.full(len(place), COUNTED["splits"]), self._along], axis=1)
        return sums_by(place[inside], held[inside], nodes)

    def update(self, noisy: Any) -> None:
        """Split each node at its noisy mean, or drop it."""
        counts, sums = np.asarray(noisy, np.float64).T
        dropped = counts < 2 * self.noise if self.level else np.zeros(1, bool)
        mean = sums / np.maximum(counts, COUNTED["splits"]) * COUNTED["splits"]
        cut = np.where(counts >= 2 * self.noise, np.clip(mean, -RADIUS, RADIUS), 0)
        place = np.where(self.node >= 0, self.node, 0)
        below = 2 * place + (self._along > cut[place])
        self.node = np.where((self.node < 0) | dropped[place], -1, below)
        self.level += 1

    def result(self) -> Any:
        """Return nothing: the leaves are asked next."""
        return []


def leaf_sums(tree: TreeSteps) -> NDArray[np.int64]:
    """Return a count and the sum of the rows for each leaf of a finished tree."""
    inside = tree.node >= 0
    counted = np.full((len(tree.rows), 1), COUNTED["leaves"])
    held = np.concatenate([counted, tree.rows], axis=1)
    return sums_by(tree.node[inside], held[inside], 2**tree.levels)


@dataclass(slots=True)
class CentreSteps:
    """The sums of `SampledSteps` for Lloyd's moves: for each centre, a count and the sum of ways to its rows.

    The way from the nearest centre to a row is clipped to a radius that noisy numbers gave, and scaled so
    that this radius has RADIUS steps. One row is with one centre. The first move has twice as many centres
    as clusters; its noisy result is clustered into the centres of the next move, which mends a poor start.
    """

    rows: NDArray[np.int64]
    centres: NDArray[np.int64]
    clusters: int
    radius: float
    noise: float
    _counts: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    @property
    def units(self) -> int:
        """The number of rows; every step uses all of them."""
        return len(self.rows)

    def sums(self, sample: NDArray[np.int64]) -> Any:
        """Return a count and a sum for each centre."""
        del sample  # the rate is 1
        nearest = nearest_centres(self.rows, self.centres)
        way = np.trunc((self.rows - self.centres[nearest]) * (RADIUS / self.radius)).astype(np.int64)
        counted = np.full((len(self.rows), 1), COUNTED["moves"])
        held = np.concatenate([counted, clipped_rows(way, RADIUS)], axis=1)
        return sums_by(nearest, held, len(self.centres))

    def update(self, noisy: Any) -> None:
        """Move each centre by its noisy mean way; one with too few rows stays."""
        numbers = np.asarray(noisy, np.float64)
        counts = numbers[:, 0] / COUNTED["moves"]
        enough = numbers[:, 0] > 2 * self.noise
        mean = numbers[:, 1:] * (self.radius / RADIUS) / np.maximum(counts, 1)[:, None]
        moved = self.centres + np.rint(np.where(enough[:, None], mean, 0)).astype(np.int64)
        self.centres, self._counts = clipped_rows(moved, RADIUS), counts
        if len(counts) > self.clusters:
            weights = np.maximum(counts, 0) * enough + 1e-9
            merged, _ = weighted_kmeans(self.centres.astype(np.float64), weights, self.clusters)
            self.centres = clipped_rows(np.rint(merged).astype(np.int64), RADIUS)

    def result(self) -> Any:
        """Return the centres, in steps, the noisy number of rows of each, and the radius in steps."""
        return [self.centres.tolist(), self._counts.tolist(), self.radius]


def nearest_centres(rows: NDArray[np.int64], centres: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the place of the nearest centre of each row, exactly: products are whole and below 2^53."""
    held = centres.astype(np.float64)
    return np.asarray(
        ((held**2).sum(axis=1) - 2 * (rows.astype(np.float64) @ held.T)).argmin(axis=1), np.int64
    )
