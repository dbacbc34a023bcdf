"""Weighted k-means on a few noisy points: post-processing, with public seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_RESTARTS = 20
_MOVES = 50


def weighted_kmeans(
    points: NDArray[np.float64], weights: NDArray[np.float64], clusters: int
) -> tuple[NDArray[np.float64], float]:
    """Return the best centres over several starts, and the root of the mean squared distance to them.

    Examples
    --------
    >>> points = np.array([[0.0], [1.0], [10.0], [11.0]])
    >>> centres, spread = weighted_kmeans(points, np.ones(4), 2)
    >>> sorted(centres.ravel().tolist()), spread
    ([0.5, 10.5], 0.5)
    """
    draw = np.random.default_rng(20261116)
    best, least = points[:1].repeat(clusters, axis=0), np.inf
    for _ in range(_RESTARTS):
        centres = _spread_start(points, weights, clusters, draw)
        for _ in range(_MOVES):
            nearest = _squared(points, centres).argmin(axis=1)
            sums = np.zeros_like(centres)
            np.add.at(sums, nearest, points * weights[:, None])
            total = np.bincount(nearest, weights, clusters)
            moved = np.where(total[:, None] > 0, sums / np.maximum(total, 1e-300)[:, None], centres)
            if np.array_equal(moved, centres):
                break
            centres = moved
        error = float((_squared(points, centres).min(axis=1) * weights).sum())
        if error < least:
            best, least = centres, error
    return best, float(np.sqrt(max(least, 0.0) / weights.sum()))


def _squared(points: NDArray[np.float64], centres: NDArray[np.float64]) -> NDArray[np.float64]:
    found: NDArray[np.float64] = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
    return found


def _spread_start(
    points: NDArray[np.float64], weights: NDArray[np.float64], clusters: int, draw: np.random.Generator
) -> NDArray[np.float64]:
    """Choose points as centres, each with a chance by its weight and its squared distance (k-means++)."""
    chosen = [int(draw.choice(len(points), p=weights / weights.sum()))]
    while len(chosen) < clusters:
        far = _squared(points, points[chosen]).min(axis=1) * weights
        chance = far / far.sum() if far.sum() > 0 else weights / weights.sum()
        chosen.append(int(draw.choice(len(points), p=chance)))
    return points[chosen]
