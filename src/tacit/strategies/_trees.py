"""Trees of measurements: least squares that agree up to the top, and the weights behind each estimate.

A forest in which every measurement estimates the sum of its children's. Up: z is the inverse-variance mean of
the own value and the children's sum. Down: what a parent has more than its children is shared among them in
proportion to their variances (Hay et al. 2010; for unequal variances the same normal equations).

Counts without negative ones, and whole ones, are the nearest point, in least squares, with the same total.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


_PARTS = 200  # shares of levels are whole numbers of this part
_SHARP = 32  # the power mean that stands for the largest error


def nonnegative_counts(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the nearest counts that are not negative and have the same total; all 0 if that is negative.

    The projection onto a simplex (Duchi et al. 2008): the same amount is taken from all counts, and what
    falls below 0 becomes 0.

    Examples
    --------
    >>> nonnegative_counts(np.array([3.0, 3.0, -1.0, 0.0])).tolist()
    [2.5, 2.5, 0.0, 0.0]
    """
    total = counts.sum()
    if total <= 0:
        return np.zeros(len(counts))
    falling = -np.sort(-counts)
    lowered = (np.cumsum(falling) - total) / np.arange(1, len(counts) + 1)
    above = np.flatnonzero(falling > lowered)
    lift = above[-1] if len(above) else 0  # none where the total is smaller than what rounding lost
    return np.asarray(np.maximum(counts - lowered[lift], 0.0))


def whole_counts(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return whole numbers near counts that are not negative; their sum is the rounded total.

    All are rounded down, and the largest remainders get one more.

    Examples
    --------
    >>> whole_counts(np.array([2.5, 2.4, 0.3])).tolist()
    [3.0, 2.0, 0.0]
    """
    down = np.floor(counts)
    missing = round(float(counts.sum())) - int(down.sum())
    order = np.argsort(down - counts, kind="stable")
    down[order[:missing]] += 1
    return down


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
    estimate_variances = tree.variance.copy()
    for level in tree.levels[1:]:
        d = tree.down[level]
        estimate_variances[level] = tree.variance[level] * (1 - d) + d**2 * estimate_variances[parents[level]]
    return estimate_variances


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


def level_shares(
    parents: NDArray[np.int64], levels: Sequence[int], weights: Sequence[float], *, squared: bool
) -> tuple[Fraction, ...]:
    """Divide a budget among the levels of a tree so that the largest weighted error is nearly the smallest.

    Parameters
    ----------
    parents
        The number of each measurement's parent, or -1.
    levels
        The level of each measurement; level 0 has the first share.
    weights
        How much the error of each level matters.
    squared
        Whether noise shrinks with the share itself, as with epsilon; with rho its variance does.

    Examples
    --------
    >>> country_and_nine_regions = np.array([*[9] * 9, -1])
    >>> level_shares(country_and_nine_regions, [1] * 9 + [0], (1.0, 1.0), squared=False)
    (Fraction(99, 200), Fraction(101, 200))
    """
    return _shares(tuple(parents.tolist()), tuple(levels), tuple(weights), squared=squared)


@lru_cache(maxsize=32)
def _shares(
    parents: tuple[int, ...], levels: tuple[int, ...], weights: tuple[float, ...], *, squared: bool
) -> tuple[Fraction, ...]:
    from scipy.optimize import minimize

    up, at, count = np.array(parents, dtype=np.int64), np.array(levels), len(weights)
    matters = np.array(weights, dtype=np.float64)[at]

    def largest(logs: NDArray[np.float64]) -> float:
        shares = np.exp(logs - logs.max())
        shares = shares / shares.sum()
        noise = 1 / (shares**2 if squared else shares)
        errors = np.sqrt(variances_of(up, noise[at])) * matters
        top, each = errors.max(), np.zeros(count)
        np.maximum.at(each, at, errors / top)
        return float(np.log(top) + np.log((each**_SHARP).sum()) / _SHARP)

    optimum = minimize(largest, np.zeros(count), method="Nelder-Mead", options={"xatol": 1e-3, "fatol": 1e-5})
    real = np.exp(optimum.x - optimum.x.max())
    parts = np.maximum(_nearest_whole(real / real.sum() * _PARTS, _PARTS), 1)
    parts[parts.argmax()] -= parts.sum() - _PARTS
    return tuple(Fraction(int(part), _PARTS) for part in parts)


def whole_down(estimates: NDArray[np.float64], parents: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return whole numbers that are not negative and add up, from the top of the tree down.

    A parent's number stays; its children are moved to that total, negative ones become 0 (the nearest point
    in least squares), and the largest remainders are rounded up. What is lifted to 0 lowers its sisters, so
    small counts are too large on average and large ones too small.

    Examples
    --------
    >>> y = np.array([4.6, -2.0, 3.1, 5.7])     # three districts and their region
    >>> whole_down(y, np.array([3, 3, 3, -1])).tolist()
    [4, 0, 2, 6]
    """
    levels = _Tree(parents, np.ones(len(parents))).levels
    counts = np.zeros(len(estimates), dtype=np.int64)
    top = levels[0]
    counts[top] = np.maximum(np.rint(estimates[top]), 0).astype(np.int64)
    for level in levels[1:]:
        order = level[np.argsort(parents[level], kind="stable")]
        for family in np.split(order, np.flatnonzero(np.diff(parents[order])) + 1):
            total, children = int(counts[parents[family[0]]]), estimates[family]
            if not total:
                continue
            adjusted = nonnegative_counts(children + (total - children.sum()) / len(family))
            counts[family] = _nearest_whole(adjusted, total)
    return counts


def _nearest_whole(real: NDArray[np.float64], total: int) -> NDArray[np.int64]:
    """Round numbers that add up to a whole total, so that they still do: the largest remainders go up."""
    low = np.floor(real).astype(np.int64)
    missing = total - int(low.sum())
    if not 0 <= missing <= len(low):  # beyond the digits of a float
        low[low.argmax()] += missing
        return low
    order = np.argsort(-(real - low), kind="stable")
    low[order[:missing]] += 1
    return low
