"""A hierarchy of measurements: least squares that agree up to the top, and the weights behind each estimate.

A forest in which every measurement estimates the sum of its children's. Up: z is the inverse-variance mean of
the own value and the children's sum. Down: what a parent has more than its children is shared among them in
proportion to their variances (Hay et al. 2010; for unequal variances the same normal equations).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["alike", "consistent", "variances_of", "weights_of"]


class _Tree:
    """The forest, with the levels, the variances going up and the shares going down."""

    __slots__ = ("down", "levels", "own", "parents", "variance")

    def __init__(self, parents: NDArray[np.int64], variances: NDArray[np.float64]) -> None:
        n = len(parents)
        depth = np.zeros(n, dtype=np.int64)
        at = parents.copy()
        for _ in range(n):
            if (at < 0).all():
                break
            depth[at >= 0] += 1
            at = np.where(at >= 0, parents[np.maximum(at, 0)], -1)
        else:
            raise ValueError("a measurement is its own ancestor")
        self.parents = parents
        self.levels = [np.flatnonzero(depth == d) for d in range(int(depth.max(initial=0)) + 1)]
        self.variance = variances.astype(np.float64).copy()  # of z
        self.own = np.ones(n)  # the share of the own value in z
        self.down = np.zeros(n)  # the share of a child in what its parent has more
        below = np.zeros(n)
        for level in reversed(self.levels[1:]):
            above = self._above(level)
            np.add.at(below, parents[level], self.variance[level])
            self.down[level] = self.variance[level] / below[parents[level]]
            self.own[above] = below[above] / (below[above] + variances[above])
            self.variance[above] = variances[above] * self.own[above]

    def _above(self, level: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.unique(self.parents[level])


def consistent(
    measured: NDArray[np.float64], parents: NDArray[np.int64], variances: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the least-squares estimates of all measurements, each the sum of its children.

    Examples
    --------
    >>> y = np.array([22.0, 20, 15, 25, 18, 60, 45, 100])     # districts A1-3, B1-2; regions A, B; country
    >>> consistent(y, np.array([5, 5, 5, 6, 6, 7, 7, -1]), np.ones(8)).round(6).tolist()
    [22.37931, 20.37931, 15.37931, 25.172414, 18.172414, 58.137931, 43.344828, 101.482759]
    """
    tree = _Tree(parents, variances)
    z = np.asarray(measured, dtype=np.float64).copy()
    below = np.zeros(len(z))
    for level in reversed(tree.levels[1:]):
        above = np.unique(parents[level])
        np.add.at(below, parents[level], z[level])
        z[above] = tree.own[above] * z[above] + (1 - tree.own[above]) * below[above]
    for level in tree.levels[1:]:  # from the top down; below holds the sums of z
        up = parents[level]
        z[level] += tree.down[level] * (z[up] - below[up])
    return z


def weights_of(
    chosen: NDArray[np.float64], parents: NDArray[np.int64], variances: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the weights of the measurements in a weighted sum of the estimates: `consistent` transposed.

    Examples
    --------
    >>> parents = np.array([5, 5, 5, 6, 6, 7, 7, -1])
    >>> w = weights_of(np.array([0, 0, 0, 0, 0, 0, 0, 1.0]), parents, np.ones(8))
    >>> float((w**2).sum().round(6))     # the variance of the country's estimate
    0.586207
    """
    tree = _Tree(parents, variances)
    of_x = np.asarray(chosen, dtype=np.float64).copy()
    of_z = np.zeros(len(of_x))
    of_sums = np.zeros(len(of_x))  # the weight of the sum of z over each measurement's children
    for level in reversed(tree.levels[1:]):
        shared = tree.down[level] * of_x[level]
        of_z[level] += of_x[level]
        np.add.at(of_x, parents[level], shared)
        np.add.at(of_sums, parents[level], -shared)
    of_z[tree.levels[0]] += of_x[tree.levels[0]]
    weights = np.zeros(len(of_x))
    for level in tree.levels:
        up = parents[level]
        if (up >= 0).any():
            of_z[level] += of_sums[up] + (1 - tree.own[up]) * of_z[up]
        weights[level] = of_z[level] * tree.own[level]
    return weights


def variances_of(parents: NDArray[np.int64], variances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the variance of each consistent estimate.

    A child's error is its own v (1 - d) and, independent of it, the share d of its parent's error; d is its
    share going down.

    Examples
    --------
    >>> variances_of(np.array([5, 5, 5, 6, 6, 7, 7, -1]), np.ones(8)).round(6).tolist()
    [0.724138, 0.724138, 0.724138, 0.62069, 0.62069, 0.517241, 0.482759, 0.586207]
    """
    tree = _Tree(parents, variances)
    found = tree.variance.copy()
    for level in tree.levels[1:]:
        d = tree.down[level]
        found[level] = tree.variance[level] * (1 - d) + d**2 * found[parents[level]]
    return found


def alike(parents: NDArray[np.int64], variances: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return a number for each measurement; those with the same number have estimates of the same law.

    Two measurements are alike if a permutation of the forest that keeps all variances maps one to the other:
    the subtrees along their ways to the top agree.

    Examples
    --------
    >>> kinds = alike(np.array([5, 5, 5, 6, 6, 7, 7, -1]), np.ones(8))
    >>> (kinds[:3] == kinds[0]).all(), kinds[3] == kinds[4], kinds[0] == kinds[3]
    (np.True_, np.True_, np.False_)
    """
    levels = _Tree(parents, variances).levels
    up, spread = parents.tolist(), variances.tolist()
    below: list[list[int]] = [[] for _ in up]
    trees: dict[tuple[float, tuple[int, ...]], int] = {}
    label = [0] * len(up)
    for level in reversed(levels):
        for node in level.tolist():
            label[node] = trees.setdefault((spread[node], tuple(sorted(below[node]))), len(trees))
            if up[node] >= 0:
                below[up[node]].append(label[node])
    ways: dict[tuple[int, int], int] = {}
    way = [0] * len(up)
    for level in levels:
        for node in level.tolist():
            way[node] = ways.setdefault((way[up[node]] if up[node] >= 0 else -1, label[node]), len(ways))
    return np.array(way, dtype=np.int64)
