"""The exact law of the ladder from its definition, rung by rung, for tests of the mechanism and of graphs."""

from __future__ import annotations

import math

import numpy as np


def rungs(width, most, reach):
    """The rung of 0, 1, ..., reach, by counting."""
    found, j = [0], 0
    while len(found) <= reach:
        j += 1
        found += [j] * (width + j - 1 if most is None else min(width + j - 1, most))
    return np.array(found[: reach + 1])


def normaliser(rate, width, most):
    """The sum of all weights, rung by rung, until the rest is below 1e-30 of it."""
    total, j = 1.0, 0
    while True:
        j += 1
        wide = width + j - 1 if most is None else min(width + j - 1, most)
        term = 2 * wide * math.exp(-rate * j)
        total += term
        if rate * j > 80 and term < 1e-30 * total:
            return total


def log_law(mechanism, f, a, x):
    """The logarithms of the exact law at the integers x, from its definition."""
    width = max(a, mechanism.floor)
    width = width if mechanism.most is None else min(width, mechanism.most)
    rate = float(mechanism.rate)
    far = np.abs(x - f)
    return -rate * rungs(width, mechanism.most, far.max())[far] - math.log(
        normaliser(rate, width, mechanism.most)
    )
