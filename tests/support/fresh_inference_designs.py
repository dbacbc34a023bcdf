"""Fresh designs: written down before anything was run on them, and used to check, never to choose.

Laws of values stand on 201 places of [0, 1], as a release's grid would have them, so that a sample of any
size is one multinomial draw. `CHOICE` holds the designs on which constants are chosen.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from support.inference_designs import lattice, variance, whole_noise
from tacit.inference._association import _TABLE, rank_p
from tacit.inference._contingency import fit_p, g_p, independence_p
from tacit.inference._mean_tests import anova_p, two_means_p
from tacit.inference._measurements import CLEAR
from tacit.inference._sampling_intervals import sampled_mean_sets
from tacit.mechanisms import LinearNoise

PLACES = np.linspace(0, 1, 201)
PARTS = np.stack([(1 - PLACES) ** 2, 2 * PLACES * (1 - PLACES), PLACES**2], axis=-1)


def of(law):
    """Return the chances of the places for a continuous law; what lies outside is clipped."""
    middles = (PLACES[1:] + PLACES[:-1]) / 2
    below = np.concatenate([[0.0], law.cdf(middles), [1.0]])
    return np.diff(below)


def points(**shares):
    """Return a law on a few places: ``points(p5=0.3, p95=0.7)`` for 0.05 and 0.95."""
    made = np.zeros(len(PLACES))
    for name, share in shares.items():
        made[round(2 * float(name[1:]))] = share
    return made


def with_mean(law, mean):
    """Tilt a law to a given mean."""
    low, high = -200.0, 200.0
    for _ in range(80):
        rate = (low + high) / 2
        tilted = law * np.exp(rate * (PLACES - mean))
        tilted = tilted / tilted.sum()
        low, high = (rate, high) if tilted @ PLACES < mean else (low, rate)
    return tilted


def _integers(law, most):
    made = np.zeros(len(PLACES))
    k = np.arange(most + 1)
    chances = law.pmf(k)
    chances[-1] += 1 - chances.sum()
    made[np.round(200 * k / most).astype(int)] = chances
    return made


#: Designs on which constants are chosen (one law for both groups).
CHOICE = {
    "exponential .15": of(stats.expon(scale=0.15)),
    "at both bounds": of(stats.norm(0.35, 0.6)),
    "normal, 10 %": of(stats.norm(0.4, 0.1)),
    "beta(1/2, 8)": of(stats.beta(0.5, 8)),
    "narrow, 3 %": of(stats.norm(0.6, 0.03)),
    "2 % far out": points(p5=0.98, p90=0.02),
}
#: Fresh laws (one law for both groups).
FRESH = {
    "normal, 15 %": of(stats.norm(0.55, 0.15)),
    "exponential .1": of(stats.expon(scale=0.1)),
    "beta(2, 5)": of(stats.beta(2, 5)),
    "lognormal, clipped": of(stats.lognorm(0.8, scale=0.12)),
    "half .05, half .95": points(p5=0.5, p95=0.5),
    "95 % .05, 5 % .95": points(p5=0.95, p95=0.05),
    "whole numbers 0-10": _integers(stats.poisson(3), 10),
    "mixture 9:1": 0.9 * of(stats.norm(0.2, 0.05)) + 0.1 * of(stats.norm(0.8, 0.05)),
}
#: Fresh pairs of laws with one mean and unequal variances: the first group, the second group.
UNEQUAL = {
    "5 % and 20 %": (of(stats.norm(0.5, 0.05)), of(stats.norm(0.5, 0.2))),
    "20 % and 5 %": (of(stats.norm(0.5, 0.2)), of(stats.norm(0.5, 0.05))),
    "beta(8, 20), beta(2, 5)": tuple(with_mean(of(stats.beta(*ab)), 2 / 7) for ab in ((8, 20), (2, 5))),
    "beta(2, 5), beta(8, 20)": tuple(with_mean(of(stats.beta(*ab)), 2 / 7) for ab in ((2, 5), (8, 20))),
}
#: A second list, written down after `FRESH` had been run once and the variance got its slope.
SECOND = {
    "lognormal, sigma 1": of(stats.lognorm(1.0, scale=0.08)),
    "gamma(.7)": of(stats.gamma(0.7, scale=0.15)),
    "zeros and a gamma": 0.8 * points(p0=1.0) + 0.2 * of(stats.gamma(2, scale=0.15)),
    "97 % .0, 3 % .6": points(p0=0.97, p60=0.03),
    "94 % .1, 6 % .8": points(p10=0.94, p80=0.06),
    "triangular": of(stats.triang(0.9)),
    "two humps": 0.5 * of(stats.norm(0.15, 0.05)) + 0.5 * of(stats.norm(0.7, 0.1)),
    "1, 3, 5 of 5": points(p20=0.5, p60=0.3, p100=0.2),
}
SECOND_SPLITS = {"60/40": 0.6, "15/85": 0.15, "3/97": 0.03}
#: The part of the rows that is in the first group.
SPLITS = {"50/50": 0.5, "20/80": 0.2, "5/95": 0.05}


def exact_parts(rng, law, n, runs):
    return rng.multinomial(n, law / law.sum(), runs) @ PARTS


def pair_parts(rng, laws, split, n, epsilon, runs):
    sizes = (round(n * split), n - round(n * split))
    exact = np.stack([exact_parts(rng, *one, runs) for one in zip(laws, sizes, strict=True)], axis=1)
    return exact + rng.laplace(0, 1 / epsilon, exact.shape)


def refused_groups(parts, noise):
    """Say which releases a user would not get a test of."""
    least = max(CLEAR * math.sqrt(parts.shape[-1] * noise.variance), 10.0)
    return (parts.sum(axis=-1) < least).any(axis=-1)


def among(wrong, refused):
    """Return errors among the releases that are not refused; None where more than half are."""
    return None if refused.mean() > 0.5 else float(np.mean(wrong[~refused]))


def mean_missed(rng, law, n, epsilon, runs):
    noise = LinearNoise((1 / epsilon,))
    parts = exact_parts(rng, law, n, runs) + rng.laplace(0, 1 / epsilon, (runs, 3))
    _, low, high = sampled_mean_sets(parts, noise, 0.05)
    truth = law @ PLACES / law.sum()
    return float(np.mean((truth < low) | (truth > high)))


def two_means_rejected(rng, laws, split, n, epsilon, runs):
    noise = LinearNoise((1 / epsilon,))
    parts = pair_parts(rng, laws, split, n, epsilon, runs)
    return among(two_means_p(parts, noise) < 0.05, refused_groups(parts, noise))


ANOVA_SPLITS = {"3 even groups": (1, 1, 1), "6:2:1:1": (6, 2, 1, 1)}


def anova_rejected(rng, law, split, n, epsilon, runs, draws=1_000):
    noise = LinearNoise((1 / epsilon,))
    sizes = [n * k // sum(split) for k in split]
    exact = np.stack([exact_parts(rng, law, m, runs) for m in sizes], axis=1)
    parts = exact + rng.laplace(0, 1 / epsilon, exact.shape)
    return among(anova_p(parts, noise, draws)[1] < 0.05, refused_groups(parts, noise))


TABLES = {
    "2 x 2, .5 and .5": ((0.5, 0.5), (0.5, 0.5)),
    "2 x 2, .1 and .05": ((0.1, 0.9), (0.05, 0.95)),
    "2 x 3, .3": ((0.3, 0.7), (0.6, 0.3, 0.1)),
    "4 x 3, even": ((0.25,) * 4, (1 / 3,) * 3),
    "4 x 4, skewed": ((0.6, 0.25, 0.1, 0.05), (0.6, 0.2, 0.15, 0.05)),
}
FITS = {
    "3 cells, .6 .3 .1": (0.6, 0.3, 0.1),
    "10 falling cells": tuple(0.7**k / sum(0.7**j for j in range(10)) for k in range(10)),
    "2 cells, .9 .1": (0.9, 0.1),
}
HISTOGRAMS = {
    "normal, 12 cells": np.exp(-((np.arange(12) - 5.5) ** 2) / 12),
    "even, 8 cells": np.ones(8),
    "falling, 32 cells": 0.85 ** np.arange(32),
    "5 cells, skewed": np.array([60.0, 25, 10, 4, 1]),
}


def table_rejected(rng, shares, n, epsilon, runs, test=independence_p, **given):
    a, b = (np.array(one) for one in shares)
    exact = rng.multinomial(n, np.outer(a, b).ravel(), runs)
    tables = (exact + whole_noise(rng, epsilon, exact.shape)).reshape(runs, a.size, b.size).astype(float)
    least = max(_TABLE * math.sqrt(a.size * b.size * variance(epsilon)), 5.0 * a.size * b.size)
    refused = tables.sum(axis=(1, 2)) < least
    return among(test(tables, lattice(epsilon), **given)[1] < 0.05, refused)


def g_rejected(rng, shares, n, epsilon, runs):
    return table_rejected(rng, shares, n, epsilon, runs, test=g_p, draws=499)


def fit_rejected(rng, shares, n, epsilon, runs, draws=1_000):
    p = np.array(shares)
    exact = rng.multinomial(n, p, runs)
    counts = (exact + whole_noise(rng, epsilon, exact.shape)).astype(float)
    refused = counts.sum(axis=1) < max(_TABLE * math.sqrt(p.size * variance(epsilon)), 5 / p.min())
    return among(fit_p(counts, p, lattice(epsilon), draws)[1] < 0.05, refused)


def rank_rejected(rng, shares, n, epsilon, runs, split=0.5, draws=1_000):
    p = np.asarray(shares) / np.sum(shares)
    sizes = (round(n * split), n - round(n * split))
    exact = np.stack([rng.multinomial(m, p, runs) for m in sizes], axis=1)
    histograms = (exact + whole_noise(rng, epsilon, exact.shape)).astype(float)
    least = max(CLEAR * math.sqrt(p.size * variance(epsilon)), 10.0)
    refused = (histograms.sum(axis=2) < least).any(axis=1)
    return among(rank_p(histograms, lattice(epsilon), draws)[1] < 0.05, refused)


def _pairs(laws, splits):
    pairs = {name: law if isinstance(law, tuple) else (law, law) for name, law in laws.items()}
    return {
        f"{name}, {split}": (pair, part) for name, pair in pairs.items() for split, part in splits.items()
    }


def _two(rng, design, n, epsilon, runs):
    return two_means_rejected(rng, *design, n, epsilon, runs)


def _anova(rng, design, n, epsilon, runs):
    return anova_rejected(rng, *design, n, epsilon, min(runs, 1_000), 500)


def _rank(rng, design, n, epsilon, runs):
    return rank_rejected(rng, design[0], n, epsilon, runs, design[1], 500)


def _covered(rng, law, n, epsilon, runs):
    return 1 - mean_missed(rng, law, n, epsilon, runs)


#: Laws whose large values are rare while the others lie off the bounds: mean and square do not show them.
UNSEEN = ("95 % .05, 5 % .95", "94 % .1, 6 % .8")
#: Name, judge, designs, as in `inference_designs.SUITES`.
SUITES = (
    ("fresh: mean, coverage", _covered, FRESH),
    ("fresh: two means, type I", _two, _pairs(FRESH | UNEQUAL, SPLITS)),
    ("second: mean, coverage", _covered, SECOND),
    ("second: two means, type I", _two, _pairs(SECOND, SECOND_SPLITS)),
    (
        "fresh: ANOVA, type I",
        _anova,
        {
            f"{law}, {name}": (FRESH[law], split)
            for law in ("normal, 15 %", "beta(2, 5)", "mixture 9:1")
            for name, split in ANOVA_SPLITS.items()
        },
    ),
    ("fresh: independence, type I", table_rejected, TABLES),
    ("fresh: G, type I", g_rejected, {"2 x 3, .3": TABLES["2 x 3, .3"]}),
    ("fresh: fit, type I", fit_rejected, FITS),
    (
        "fresh: rank test, type I",
        _rank,
        {
            f"{name}, {split}": (one, SPLITS[split])
            for name, one in HISTOGRAMS.items()
            for split in ("50/50", "20/80")
        },
    ),
)
