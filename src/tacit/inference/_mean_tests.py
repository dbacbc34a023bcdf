"""Tests of equal means from three noisy parts for each group, with noise and sampling in one law."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tacit.inference._contingency import DRAWS, corrected, coupled_noise, generator, independence_p
from tacit.inference._sampling_intervals import (
    PART_VALUES,
    mean_noise,
    moments_of,
    plausible,
    variance_doubt,
    variance_slope,
)

if TYPE_CHECKING:
    from tacit.inference._sampling_intervals import Floats
    from tacit.mechanisms import LinearNoise

_BORROWED = 30.0  # rows of both groups that the variance of a tiny group is read with, where it is smaller
_FADING = 30.0  # rows of the group itself over which these fade

_LEAST_VARIANCE = 1e-6  # in squared ranges


@dataclass(frozen=True, slots=True)
class MeansApart:
    """Two means under the hypothesis that they are equal, in ranges: for each test one number.

    Parameters
    ----------
    apart
        The difference of the noisy means.
    weights
        What each of the six noises moves it by, (tests, 6).
    sampling, doubt
        The variance of the difference by sampling, as it was read, and the deviation of that reading.
    most
        The largest variance by sampling that values in the range can have.
    borrowed
        The part of the variance by sampling that was read off the other group.
    """

    apart: Floats
    weights: Floats
    sampling: Floats
    doubt: Floats
    most: Floats
    borrowed: Floats


def means_apart(parts: Floats, noise: LinearNoise) -> MeansApart:
    """Return the difference of two means and its law if they are equal, for parts (tests, 2, 3).

    With one mean m for both groups, n (y - m) is linear in the noise, and m from both groups together is
    clearer than each mean alone. So the weights of the noise and the variances are taken around m. A tiny
    group may miss rare large values by chance and would then seem to have no spread: its variance is read
    with up to 30 rows of both groups, where that is larger; at 30 rows of its own with 11, at 150 with none.
    """
    rows, total, squares = moments_of(parts)
    n = np.maximum(rows, 2.0)
    mean = np.clip(total.sum(axis=-1) / n.sum(axis=-1), 0.0, 1.0)[:, None]
    max_variance = np.maximum(mean * (1 - mean), _LEAST_VARIANCE)
    variance = (squares - 2 * mean * total + mean**2 * rows) / n
    sums = rows.sum(axis=-1), total.sum(axis=-1), squares.sum(axis=-1)
    slope = variance_slope(*sums, noise)[:, None]
    variance = np.minimum(variance + slope * (mean - total / n), max_variance)
    pooled = np.maximum((n * variance).sum(axis=-1, keepdims=True) / n.sum(axis=-1, keepdims=True), 0.0)
    lent = _BORROWED * np.exp(-n / _FADING)
    v = np.maximum(variance, (n * variance + lent * pooled) / (n + lent))
    sampling = np.maximum((v / n).sum(axis=-1), (_LEAST_VARIANCE / n).sum(axis=-1))
    doubt = variance_doubt(n, mean, np.clip(v, _LEAST_VARIANCE, max_variance), noise)
    return MeansApart(
        total[:, 0] / n[:, 0] - total[:, 1] / n[:, 1],
        ((PART_VALUES - mean[..., None]) / n[..., None]).reshape(len(parts), 6),
        sampling,
        np.sqrt((doubt**2 / n**2).sum(axis=-1)),
        (max_variance / n).sum(axis=-1),
        ((v - variance) / n).sum(axis=-1) / sampling,
    )


def two_means_p(parts: Floats, noise: LinearNoise) -> Floats:
    """Return the p-value of equal means, for parts of the shape (tests, 2, 3).

    The difference of the noisy means has a variance by sampling, S = v1/n1 + v2/n2, and six noises with known
    weights. S itself is in doubt; the p-value is the average over equally likely values of it.
    """
    gaps = means_apart(parts, noise)
    chances = [
        noise.tail(gaps.apart, gaps.weights, np.sqrt(np.minimum(one, gaps.most)))
        for one in plausible(gaps.sampling, gaps.doubt)
    ]
    return np.asarray(sum(chances) / len(chances))


def two_shares_p(parts: Floats, noise: LinearNoise) -> Floats:
    """Return the p-value of equal proportions, for noisy numbers of no and yes (tests, 2 groups, 2).

    It is the test of independence of the table of the two groups.
    """
    return independence_p(parts, noise)[1]


def anova_p(parts: Floats, noise: LinearNoise, draws: int = DRAWS) -> tuple[Floats, Floats]:
    """Return the statistic and the p-value of equal means, for parts of the shape (tests, groups, 3).

    Q is the weighted sum of squared distances of the noisy means from their mean, with weights 1/(v/n +
    noise) and the pooled variance v. Its law under equal means is drawn: a normal term and the Laplace terms
    of each mean, with v at equally likely values.
    """
    statistics, p = np.empty(len(parts)), np.empty(len(parts))
    groups = parts.shape[1]
    draw = generator(1, groups)
    normal = draw.standard_normal((draws, groups))
    noises = coupled_noise(draw, noise, (draws, groups, 3))
    for i in range(0, len(parts), 64):
        block = slice(i, i + 64)
        statistics[block], p[block] = _anova(parts[block], noise, normal, noises)
    return statistics, p


def _anova(
    parts: Floats, noise: LinearNoise, normal: Floats, noises: tuple[Floats, Floats]
) -> tuple[Floats, Floats]:
    from scipy.special import chdtrc

    rows, total, squares = moments_of(parts)
    n = np.maximum(rows, 2.0)
    means, total_rows = total / n, n.sum(axis=-1)
    mean = np.clip(total.sum(axis=-1) / total_rows, 0.0, 1.0)[:, None]  # of all groups, if it is one
    inside = (squares - total * means).sum(axis=-1) / (total_rows - n.shape[-1])
    pooled = np.clip(inside, _LEAST_VARIANCE, np.maximum(mean * (1 - mean), _LEAST_VARIANCE)[:, 0])
    each = variance_doubt(n, mean, pooled[:, None], noise)
    doubt = np.sqrt(((n * each) ** 2).sum(axis=-1)) / total_rows
    weights = 1 / (pooled[:, None] / n + mean_noise(n, mean, noise))
    likely = np.stack(plausible(pooled, doubt), axis=-1)  # (tests, values), taken in turn by the draws
    turn = np.arange(len(normal)) % likely.shape[-1]
    rates = (PART_VALUES - mean[..., None]) / n[..., None]
    simulated, smooth = (
        np.sqrt(variance / n[:, None, :]) * normal + np.einsum("dgi,bgi->bdg", one, rates)
        for variance, one in zip((likely[:, turn, None], pooled[:, None, None]), noises, strict=True)
    )
    observed = _distance(means, weights)
    plain = np.asarray(chdtrc(parts.shape[1] - 1, observed))
    lengths = (_distance(one, weights[:, None, :]) for one in (simulated, smooth))
    return observed, corrected(plain, observed, *lengths)


def _distance(means: Floats, weights: Floats) -> Floats:
    """Return the weighted sum of squared distances from the weighted mean, over the last axis."""
    middle = (weights * means).sum(axis=-1, keepdims=True) / weights.sum(axis=-1, keepdims=True)
    return np.asarray((weights * (means - middle) ** 2).sum(axis=-1))
