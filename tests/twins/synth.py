"""Broken copies of synthetic rows, as functions ``f(unit, size)``; `unit` is 1 if the person is in the data.

The person has one row, which takes the first table away from its estimate and brings the second closer, so
one score rises by 1 and the other falls by 1.
"""

from __future__ import annotations

import numpy as np

from support.repeatable_noise import rng
from tacit.mechanisms import Exponential

CHOICES, EPSILON = 400, 0.1
RHO = CHOICES * EPSILON**2 / 8


def _choices(unit, size, *, monotone):
    """How often the first table is chosen in many choices, each with its own noise."""
    law = Exponential(EPSILON, sensitivity=1, monotone=monotone, grid=1)
    chance = float(law.probabilities([unit, -unit])[0])
    return rng.binomial(CHOICES, chance, size)


def right(unit, size):
    """The choices themselves: the test must not catch them."""
    return _choices(unit, size, monotone=False)


def monotone_score(unit, size):
    """The distance from an estimate is taken for a count: a coefficient of 1 instead of 1/2."""
    return _choices(unit, size, monotone=True)


def rows_counted_exactly(unit, size):
    """A noisy table, and as many synthetic rows as the data has."""
    noisy = np.rint(rng.normal(unit, 1, size))
    return np.stack([noisy, np.full(size, 1000 + unit)], axis=1)


def candidates_kept(unit, size):
    """The release keeps the exact scores beside the choice."""
    chosen = _choices(unit, size, monotone=False)
    return np.stack([chosen, np.full(size, unit), np.full(size, -unit)], axis=1)


def categories_of_the_data(unit, size):
    """The values of a column are those that occur: a new one makes the table larger."""
    cells = 3 + unit
    noisy = np.rint(rng.normal(0, 1, (size, 4)))
    noisy[:, cells:] = -(10**6)  # there is no such cell
    return noisy
