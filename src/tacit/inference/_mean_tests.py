"""Tests of equal means from three noisy parts for each group, with noise and sampling in one law."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tacit.inference._contingency import independence_p
from tacit.inference._draws import DRAWS, corrected, coupled_noise, generator
from tacit.inference._sampling_intervals import (
    PART_VALUES,
    mean_noise,
    plausible,
    variance_noise,
    variances_of,
)

if TYPE_CHECKING:
    from tacit.inference._sampling_intervals import Floats
    from tacit.mechanisms import LinearNoise

__all__ = ["anova_p", "two_means_p", "two_shares_p"]


_BORROWED = 30.0  # rows of both groups together that a smaller variance of one group is read with


def two_means_p(parts: Floats, noise: LinearNoise) -> Floats:
    """Return the p-value of equal means, for parts of the shape (tests, 2, 3).

    The difference of the noisy means has the sampling variance S = v1/n1 + v2/n2 and six noises with known
    weights. S itself is in doubt; the p-value is the average over equally likely values of it. A small group
    may miss rare large values by chance, and would then seem to have no spread: its variance is read with 30
    rows of both groups together, where that is larger.
    """
    n, mean, v = variances_of(parts)
    pooled = (n * v).sum(axis=-1, keepdims=True) / n.sum(axis=-1, keepdims=True)
    v = np.maximum(v, (n * v + _BORROWED * pooled) / (n + _BORROWED))
    doubt = np.sqrt(((2 * v**2 / (n - 1) + variance_noise(n, mean, v, noise)) / n**2).sum(axis=-1))
    weights = (PART_VALUES - mean[..., None]) / n[..., None]
    flat = weights.reshape(len(parts), 6)
    apart = mean[:, 0] - mean[:, 1]
    chances = [noise.tail(apart, flat, np.sqrt(one)) for one in plausible((v / n).sum(axis=-1), doubt)]
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
    found, p = np.empty(len(parts)), np.empty(len(parts))
    groups = parts.shape[1]
    draw = generator(1, groups)
    normal = draw.standard_normal((draws, groups))
    noises = coupled_noise(draw, noise, (draws, groups, 3))
    for i in range(0, len(parts), 64):
        block = slice(i, i + 64)
        found[block], p[block] = _anova(parts[block], noise, normal, noises)
    return found, p


def _anova(
    parts: Floats, noise: LinearNoise, normal: Floats, noises: tuple[Floats, Floats]
) -> tuple[Floats, Floats]:
    from scipy.special import chdtrc

    n, mean, v = variances_of(parts)
    share = n / n.sum(axis=-1, keepdims=True)
    pooled = (share * v).sum(axis=-1)
    doubt = np.sqrt((share**2 * (2 * v**2 / (n - 1) + variance_noise(n, mean, v, noise))).sum(axis=-1))
    weights = 1 / (pooled[:, None] / n + mean_noise(n, mean, noise))
    likely = np.stack(plausible(pooled, doubt), axis=-1)  # (tests, values), taken in turn by the draws
    turn = np.arange(len(normal)) % likely.shape[-1]
    rates = (PART_VALUES - mean[..., None]) / n[..., None]
    drawn, smooth = (
        np.sqrt(variance / n[:, None, :]) * normal + np.einsum("dgi,bgi->bdg", one, rates)
        for variance, one in zip((likely[:, turn, None], pooled[:, None, None]), noises, strict=True)
    )
    found = _distance(mean, weights)
    plain = np.asarray(chdtrc(parts.shape[1] - 1, found))
    lengths = (_distance(one, weights[:, None, :]) for one in (drawn, smooth))
    return found, corrected(plain, found, *lengths)


def _distance(means: Floats, weights: Floats) -> Floats:
    """Return the weighted sum of squared distances from the weighted mean, over the last axis."""
    middle = (weights * means).sum(axis=-1, keepdims=True) / weights.sum(axis=-1, keepdims=True)
    return np.asarray((weights * (means - middle) ** 2).sum(axis=-1))
