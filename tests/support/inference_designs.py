"""Designs on which inference is calibrated: laws that no method was tuned on, as noisy integers.

Each design draws many releases at once: exact parts or counts plus noise of the law that a plan at this
epsilon has. The functions that judge them are those that users call with one release.
"""

from __future__ import annotations

import math

import numpy as np

from tacit.inference._association import _TABLE, rank_p
from tacit.inference._contingency import fit_p, independence_p
from tacit.inference._mean_tests import anova_p, two_means_p
from tacit.inference._measurements import CLEAR
from tacit.inference._sampling_intervals import proportion_sets, sampled_mean_sets
from tacit.mechanisms import LinearNoise

SIZES = (200, 2_000, 20_000)
EPSILONS = (0.1, 1.0, 10.0)

#: Laws of values in [0, 1].
LAWS = {
    "exponential": lambda rng, shape: np.clip(rng.exponential(0.15, shape), 0, 1),
    "at both bounds": lambda rng, shape: np.clip(rng.normal(0.35, 0.6, shape), 0, 1),
    "normal, 10 % of the range": lambda rng, shape: np.clip(rng.normal(0.4, 0.1, shape), 0, 1),
}
HARD_LAWS = {
    "beta(1/2, 8)": lambda rng, shape: rng.beta(0.5, 8, shape),
    "narrow, 3 % of the range": lambda rng, shape: np.clip(rng.normal(0.6, 0.03, shape), 0, 1),
    "2 % far out": lambda rng, shape: np.where(rng.random(shape) < 0.02, 0.9, 0.05),
}
SHARES = {"30 %": 0.3, "4 %": 0.04, "1 %": 0.01}
TABLES = {
    "2 x 2, .2 and .9": ((0.2, 0.8), (0.9, 0.1)),
    "3 x 3, skewed": ((0.7, 0.2, 0.1), (0.8, 0.15, 0.05)),
    "2 x 5": ((0.35, 0.65), (0.4, 0.3, 0.15, 0.1, 0.05)),
}
FITS = {"5 cells": (0.5, 0.25, 0.15, 0.07, 0.03), "8 even cells": (0.125,) * 8}
HISTOGRAMS = {
    "geometric": 0.8 ** np.arange(20),
    "two humps": np.r_[np.ones(5), np.zeros(8), 3 * np.ones(7)],
    "most in one cell": np.r_[20.0, np.ones(31)],
}


def variance(epsilon):
    """Return the variance of discrete Laplace noise of scale 1/epsilon."""
    q = math.exp(-epsilon)
    return 2 * q / (1 - q) ** 2


def lattice(epsilon):
    """Return the noise of a count, as a release of counts is read."""
    return LinearNoise((math.sqrt(variance(epsilon) / 2),))


def whole_noise(rng, epsilon, shape):
    q = math.exp(-epsilon)
    return rng.geometric(1 - q, shape) - rng.geometric(1 - q, shape)


def parts_of(values):
    return np.stack(
        [((1 - values) ** 2).sum(-1), (2 * values * (1 - values)).sum(-1), (values**2).sum(-1)], -1
    )


def noisy_parts(rng, law, sizes, epsilon, runs):
    exact = []
    for n in sizes:
        block = max(1, 2_000_000 // n)
        exact.append(
            np.concatenate([parts_of(law(rng, (min(block, runs - i), n))) for i in range(0, runs, block)])
        )
    return np.stack(exact, axis=1) + rng.laplace(0, 1 / epsilon, (runs, len(sizes), 3))


def covered(sets, truth):
    _, low, high = sets
    return float(np.mean((low <= truth) & (truth <= high)))


def mean_coverage(rng, law, n, epsilon, runs):
    truth = float(law(np.random.default_rng(1), 4_000_000).mean())
    parts = noisy_parts(rng, law, [n], epsilon, runs)[:, 0]
    return covered(sampled_mean_sets(parts, LinearNoise((1 / epsilon,)), 0.05), truth)


def share_coverage(rng, p, n, epsilon, runs):
    yes = rng.binomial(n, p, runs)
    noise = whole_noise(rng, epsilon, (2, runs))
    sets = proportion_sets(
        (yes + noise[0]).astype(float), (n - yes + noise[1]).astype(float), lattice(epsilon), 0.05
    )
    return covered(sets, p)


def two_means_rejected(rng, law, n, epsilon, runs):
    """Return how often equal means (groups 1:3) are rejected; None where a release would be refused."""
    sizes = [n // 4, n - n // 4]
    if min(sizes) < CLEAR * math.sqrt(3 * 2) / epsilon:
        return None
    p = two_means_p(noisy_parts(rng, law, sizes, epsilon, runs), LinearNoise((1 / epsilon,)))
    return float(np.mean(p < 0.05))


def anova_rejected(rng, law, n, epsilon, runs, draws=1_000):
    sizes = [n * k // 10 for k in (4, 3, 2, 1)]
    if min(sizes) < CLEAR * math.sqrt(3 * 2) / epsilon:
        return None
    _, p = anova_p(noisy_parts(rng, law, sizes, epsilon, runs), LinearNoise((1 / epsilon,)), draws)
    return float(np.mean(p < 0.05))


def table_rejected(rng, shares, n, epsilon, runs, draws=1_000):
    a, b = (np.array(one) for one in shares)
    if n < _TABLE * math.sqrt(a.size * b.size * variance(epsilon)):
        return None
    exact = rng.multinomial(n, np.outer(a, b).ravel(), runs)
    tables = (exact + whole_noise(rng, epsilon, exact.shape)).reshape(runs, a.size, b.size).astype(float)
    return float(np.mean(independence_p(tables, lattice(epsilon), draws)[1] < 0.05))


def fit_rejected(rng, shares, n, epsilon, runs, draws=1_000):
    p = np.array(shares)
    if n < max(_TABLE * math.sqrt(p.size * variance(epsilon)), 5 / p.min()):
        return None
    exact = rng.multinomial(n, p, runs)
    counts = (exact + whole_noise(rng, epsilon, exact.shape)).astype(float)
    return float(np.mean(fit_p(counts, p, lattice(epsilon), draws)[1] < 0.05))


def rank_rejected(rng, shares, n, epsilon, runs, draws=1_000):
    p = np.asarray(shares) / np.sum(shares)
    sizes = [n // 4, n - n // 4]
    if min(sizes) < CLEAR * math.sqrt(p.size * variance(epsilon)):
        return None
    exact = np.stack([rng.multinomial(m, p, runs) for m in sizes], axis=1)
    histograms = (exact + whole_noise(rng, epsilon, exact.shape)).astype(float)
    return float(np.mean(rank_p(histograms, lattice(epsilon), draws)[1] < 0.05))


#: Name, judge, designs, whether the figure is a coverage (else the type I error).
SUITES = (
    ("mean, coverage", mean_coverage, LAWS),
    ("mean, coverage (hard)", mean_coverage, HARD_LAWS),
    ("proportion, coverage", share_coverage, SHARES),
    ("two means 1:3, type I", two_means_rejected, LAWS),
    ("two means 1:3, type I (hard)", two_means_rejected, HARD_LAWS),
    ("ANOVA 4:3:2:1, type I", anova_rejected, LAWS),
    ("independence, type I", table_rejected, TABLES),
    ("fit, type I", fit_rejected, FITS),
    ("rank test 1:3, type I", rank_rejected, HISTOGRAMS),
)
