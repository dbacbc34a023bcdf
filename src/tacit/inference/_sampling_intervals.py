"""Intervals that cover noise and sampling: proportions, means, counts and differences, from noisy integers.

A value is tested with a statistic that is linear in the noisy integers. Under the tested value it is a sum of
independent draws, which is normal with a known variance, plus noise of known law; for few cases the binomial
law itself is used. The interval is the hull of the values that pass (docs/proofs/inference.md). Numbers are
in rows; y in [0, 1] adds ((1-y)^2, 2y(1-y), y^2) to three parts.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms import passing_hull

if TYPE_CHECKING:
    from collections.abc import Callable

    from tacit.mechanisms import LinearNoise

Floats: TypeAlias = NDArray[np.float64]
#: Values and the lower and upper ends of their sets.
Sets: TypeAlias = tuple[Floats, Floats, Floats]

_FEW = 25.0  # cases up to which the binomial law is used
_HALF_STEP = 0.5  # added to the deviation of Gaussian noise on whole numbers
_COARSE = 3.0  # the largest scale of noise at which it matters
_LEAST_VARIANCE = 1e-6  # in squared ranges
_AT_ONCE = 512  # lines in one block
#: What each of the three parts adds to the sum of y.
PART_VALUES = np.array([0.0, 0.5, 1.0])
_SHARES = (np.arange(7) + 0.5) / 7
_SEEN = 1.0  # deviations of their noise that sums of squares must reach to show that values are rare
_REACH = 25.0  # scales of the noise beyond which it is not expected


def proportion_sets(yes: Floats, no: Floats, noise: LinearNoise, failing: float, others: int = 1) -> Sets:
    """Return the proportion of yes with its set, for noisy numbers of yes and of no.

    A proportion p is tested with (1-p) yes - p no, whose sampling variance is n p (1-p) (Wilson 1927, with
    noise). With at most 25 cases, and noise that does not hide them, the binomial law is used in place of the
    normal one, with half of the probability of the observed number (mid-p).

    Parameters
    ----------
    yes, no
        The noisy numbers, one for each line.
    noise
        The noise on each released integer.
    failing
        How often the set may miss.
    others
        How many noisy integers were added for the number of no.
    """
    few = (np.minimum(yes, no) <= _FEW) & (noise.scale <= _COARSE)
    ends = np.empty((3, len(yes)))
    for chosen, p_of in ((few, _binomial_p), (~few, _normal_p)):
        places = np.flatnonzero(chosen)
        for start in range(0, len(places), _AT_ONCE):
            at = places[start : start + _AT_ONCE]
            ends[:, at] = _proportions(yes[at], no[at], noise, failing, others, p_of)
    return ends[0], ends[1], ends[2]


def proportion_p(yes: Floats, no: Floats, share: float, noise: LinearNoise, others: int = 1) -> Floats:
    """Return the p-value of a given share, by the same test whose passing shares make the interval."""
    few = (np.minimum(yes, no) <= _FEW) & (noise.scale <= _COARSE)
    at = np.full((len(yes), 1), share)
    p_values = [p_of(at, yes[:, None], no[:, None], noise, others)[:, 0] for p_of in (_binomial_p, _normal_p)]
    return np.where(few, *p_values)


def _proportions(
    yes: Floats, no: Floats, noise: LinearNoise, failing: float, others: int, p_of: Callable[..., Floats]
) -> Sets:
    rows = np.maximum(yes + no, 1.0)
    value = np.where(yes + no > 0, np.clip(yes / rows, 0.0, 1.0), 0.5)

    def p(x: Floats) -> Floats:
        return p_of(x, yes[:, None], no[:, None], noise, others)

    half_widths = np.sqrt(value * (1 - value) / rows + (1 + noise.variance) / rows**2)
    low, high, _ = passing_hull(
        p, value, (np.zeros_like(value), np.ones_like(value)), 2 * half_widths, failing
    )
    return value, low, high


def _weights(x: Floats, others: int) -> Floats:
    return np.concatenate([(1 - x)[..., None], np.repeat(-x[..., None], others, axis=-1)], axis=-1)


def _normal_p(x: Floats, yes: Floats, no: Floats, noise: LinearNoise, others: int) -> Floats:
    rows = np.maximum(yes + no, 1.0)
    return noise.tail((1 - x) * yes - x * no, _weights(x, others), np.sqrt(rows * x * (1 - x)))


def _binomial_p(x: Floats, yes: Floats, no: Floats, noise: LinearNoise, others: int) -> Floats:
    """Return twice the smaller tail of K - np + noise, K binomial, at the observed (1-p) yes - p no."""
    from scipy.special import gammaln, xlog1py, xlogy

    if noise.normal > 0:  # whole numbers with a narrow Gaussian lie further out than the continuous law says
        noise = replace(noise, normal=math.hypot(noise.normal, _HALF_STEP))
    flip = yes > no  # the rarer kind is counted
    cases, share = np.where(flip, no, yes), np.where(flip, 1 - x, x)
    rows = np.round(np.maximum(yes + no, 1.0))
    reach = int(np.ceil(_FEW + _REACH * noise.scale)) + 2
    k = np.arange(reach + 1.0)
    n, q = rows[..., None], share[..., None]
    possible = k <= n
    with np.errstate(invalid="ignore", divide="ignore"):
        log = gammaln(n + 1) - gammaln(k + 1) - gammaln(np.maximum(n - k, 0) + 1)
        log = log + xlogy(k, q) + xlog1py(np.maximum(n - k, 0), -q)
    mass = np.where(possible, np.exp(np.minimum(log, 0.0)), 0.0)
    away = ((1 - share) * cases - share * (yes + no - cases))[..., None] - (k - n * q)
    weights = np.broadcast_to(_weights(share, others)[..., None, :], (*away.shape, others + 1))
    half = noise.tail(away, weights) / 2 if noise.scale > 0 else np.where(away == 0, 0.5, 0.0)
    above = np.where(away > 0, half, np.where(away == 0, 0.5, 1 - half))
    upper = (mass * above).sum(axis=-1) + np.maximum(1 - mass.sum(axis=-1), 0.0)
    return np.asarray(np.minimum(2 * np.minimum(upper, 1 - upper), 1.0))


def moments_of(parts: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the number of rows and the sums of y and of y^2, of three noisy parts along the last axis."""
    return parts.sum(axis=-1), parts[..., 1] / 2 + parts[..., 2], parts[..., 2]


def sampled_mean_sets(parts: Floats, noise: LinearNoise, failing: float) -> Sets:
    """Return the mean of y in the population with its set, for each line of three noisy parts.

    A mean m is tested with s1 - m n, of sampling variance n v(m): v(m) is the mean of (y - m)^2, read off the
    parts, between 10^-6 and m (1-m). Noise and sampling leave v(m) in doubt: the p-value is the average over
    seven equally likely values of it (`plausible`).
    """
    ends = np.empty((3, len(parts)))
    for start in range(0, len(parts), _AT_ONCE * 8):
        block = slice(start, start + _AT_ONCE * 8)
        ends[:, block] = _sampled_means(parts[block], noise, failing)
    return ends[0], ends[1], ends[2]


def variances_of(parts: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the number of rows (at least 1), the mean of y and its variance in the population."""
    rows, total, squares = moments_of(parts)
    n = np.maximum(rows, 2.0)
    mean = np.clip(total / n, 0.0, 1.0)
    max_variance = np.maximum(mean * (1 - mean), _LEAST_VARIANCE)
    return n, mean, np.clip((squares / n - mean**2) * n / (n - 1), _LEAST_VARIANCE, max_variance)


def mean_noise(n: Floats, mean: Floats, noise: LinearNoise) -> Floats:
    """Return the variance of the noise on each mean."""
    weights = PART_VALUES - mean[..., None]
    return np.asarray(noise.variance * (weights**2).sum(axis=-1) / n**2)


def variance_noise(n: Floats, mean: Floats, v: Floats, noise: LinearNoise) -> Floats:
    """Return the variance of the noise on each variance: s2 - 2 m s1 + (m^2 - v) n, over n."""
    c = mean**2 - v
    return np.asarray(noise.variance * (c**2 + (c - mean) ** 2 + (c - 2 * mean + 1) ** 2) / n**2)


def variance_doubt(n: Floats, mean: Floats, v: Floats, noise: LinearNoise) -> Floats:
    """Return the standard deviation of the error in each variance, by noise and by sampling.

    The squared distances from the mean have the variance 2 v^2 for normal values. Since they lie between 0
    and M = max(mean, 1 - mean)^2, it is at most v (M - v): nearly 0 for values at both bounds.
    """
    farthest = np.maximum(mean, 1 - mean) ** 2
    sampled = np.minimum(2 * v**2, v * np.maximum(farthest - v, 0.0)) / (n - 1)
    return np.sqrt(variance_noise(n, mean, v, noise) + sampled)


def _sampled_means(parts: Floats, noise: LinearNoise, failing: float, *, plugged: bool = False) -> Sets:
    rows, total, squares = moments_of(parts)
    fewest = np.maximum(rows, 1.0)
    value = np.where(rows > 0, np.clip(total / fewest, 0.0, 1.0), 0.5)
    n, mean, v = variances_of(parts)
    doubt = variance_doubt(n, mean, v, noise)[:, None]
    slope = variance_slope(rows, total, squares, noise)[:, None]

    def p(m: Floats) -> Floats:
        n, weights = fewest[:, None], PART_VALUES - m[..., None]
        away, max_variance = total[:, None] - m * rows[:, None], np.maximum(m * (1 - m), _LEAST_VARIANCE)
        v = (squares[:, None] - 2 * m * total[:, None] + m**2 * rows[:, None]) / n
        v = v + np.maximum(slope * (m - mean[:, None]), 0.0)
        if plugged:
            return noise.tail(away, weights, np.sqrt(n * np.clip(v, _LEAST_VARIANCE, max_variance)))
        chance = [
            noise.tail(away, weights, np.sqrt(n * np.clip(one, _LEAST_VARIANCE, max_variance)))
            for one in plausible(v, doubt)
        ]
        return np.asarray(sum(chance) / len(chance))

    half_widths = np.sqrt(value * (1 - value) / fewest + noise.variance / fewest**2)
    low, high, _ = passing_hull(p, value, (np.zeros_like(value), np.ones_like(value)), half_widths, failing)
    return value, low, high


def plausible(v: Floats, doubt: Floats) -> list[Floats]:
    """Return equally likely values of a variance that was read as v with an error of this size.

    They are quantiles of the normal law around v, cut at 0.
    """
    from scipy.special import ndtr, ndtri

    above = ndtr(np.maximum(v / doubt, -_REACH))
    return [np.asarray(np.maximum(v - doubt * ndtri(above * (1 - share)), 0.0)) for share in _SHARES]


def variance_slope(rows: Floats, total: Floats, squares: Floats, noise: LinearNoise) -> Floats:
    """Return how fast the variance must change with the mean, by the mean and the mean square alone.

    If a law on [0, 1] is tilted to another mean, its variance v changes at the rate c/v, c its third central
    moment. With the mean m and the mean square q, c/v is at least q/m - 2m, which the law on 0 and q/m has
    (Cauchy and Schwarz on y^(1/2) and y^(3/2)); from the upper bound it is at most the mirror image. The
    value between these limits that is nearest to 0 is returned, and 0 where noise hides the squares.
    """
    n, clear = np.maximum(rows, 2.0), _SEEN * math.sqrt(noise.variance)
    rest, far = n - total, n - 2 * total + squares
    low = np.where((squares > clear) & (total > 0), squares / np.maximum(total, 1e-9) - 2 * total / n, 0.0)
    high = np.where((far > clear) & (rest > 0), 2 * rest / n - far / np.maximum(rest, 1e-9), 0.0)
    return np.asarray(np.clip(low, 0.0, 1.0) + np.clip(high, -1.0, 0.0))


def count_sets(counts: Floats, noise: LinearNoise, failing: float) -> Sets:
    """Return the expected number of rows with its set: rows come independently (Poisson), plus noise."""
    top = np.maximum(counts, 0.0) + 60 + 40 * noise.scale + 12 * np.sqrt(np.maximum(counts, 1.0))
    value = np.maximum(counts, 0.0)

    def p(x: Floats) -> Floats:
        ones = np.ones((*x.shape, 1))
        return noise.tail(counts[:, None] - x, ones, np.sqrt(np.maximum(x, 0.25)))

    half_widths = 2 * np.sqrt(value + noise.variance + 1)
    low, high, _ = passing_hull(p, value, (np.zeros_like(value), top), half_widths, failing)
    return value, low, high


def difference_sets(minuend: Sets, second: Sets) -> Sets:
    """Return first - second, with the interval from the two intervals (MOVER, Zou and Donner 2008).

    Examples
    --------
    >>> one, other = (np.array([[0.5], [0.3], [0.8]]), np.array([[0.2], [0.1], [0.4]]))
    >>> [round(float(end[0]), 4) for end in difference_sets(tuple(one), tuple(other))]
    [0.3, 0.0172, 0.6162]
    """
    (x, a, b), (y, c, d) = minuend, second
    difference = x - y
    return difference, difference - np.hypot(x - a, d - y), difference + np.hypot(b - x, y - c)
