"""The laws on a lattice of numeric accounting: exact for whole-number noise, bounds for Laplace noise.

An exact lattice law is a positive array of P-masses on ``offset + i * step``. A loss with P-density kappa
exp(l/2) on [-e, e] (so its Q-density is kappa exp(-l/2)) lies between two lattice laws with a step g that
divides e. The upper law splits each cell to its edges and keeps its P- and Q-mass (connect the dots): it has
4 kappa exp(l/2) tanh(g/4) on inner points and half of that on the ends. The lower law merges cells of width
2g, whose ratio of masses is exp(centre): it has 4 kappa exp(l/2) sinh(g/2) on every other point. The proof is
docs/proofs/accounting.md, section 5.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tacit.accounting._laws import (
    BoundedRangeLoss,
    CategoricalResponseLoss,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    LaplaceLoss,
    LossLaw,
    PureLoss,
    RandomizedResponseLoss,
)
from tacit.accounting.numeric._atoms import Atoms
from tacit.accounting.numeric._bracket import NotConverged, U, as_float
from tacit.accounting.numeric._mgf import DiscreteGaussianMgf

if TYPE_CHECKING:
    from fractions import Fraction

    from tacit.accounting.numeric._mgf import Factor, Reals

_MOST = 1 << 15  # points of one law


class Pmf(NamedTuple):
    """P-masses on ``offset + i * step``, each with a relative error of at most ``slack``."""

    offset: Fraction
    step: Fraction
    masses: Reals
    slack: float


def on_lattice(law: LossLaw) -> bool:
    """Return whether this accountant covers the law."""
    return isinstance(
        law,
        RandomizedResponseLoss
        | PureLoss
        | CategoricalResponseLoss
        | DiscreteLaplaceLoss
        | LaplaceLoss
        | BoundedRangeLoss
        | DiscreteGaussianLoss,
    )


def is_exact(law: LossLaw) -> bool:
    return not isinstance(law, LaplaceLoss | BoundedRangeLoss)


def natural_lattice(law: LossLaw) -> tuple[Fraction, Fraction, Fraction]:
    """Return offset, step and span of the law's own lattice; for a density, its two ends."""
    match law:
        case RandomizedResponseLoss(e) | PureLoss(e) | BoundedRangeLoss(e):
            return -e, 2 * e, 2 * e
        case CategoricalResponseLoss(e):
            return -e, e, 2 * e
        case LaplaceLoss(scale, s):
            return -s / scale, 2 * s / scale, 2 * s / scale
        case DiscreteLaplaceLoss(scale, s):
            return -s / scale, 2 / scale, 2 * s / scale
        case DiscreteGaussianLoss(sigma, s):
            half = _window(sigma)
            return s * (s - 2 * half) / (2 * sigma**2), s / sigma**2, 2 * half * s / sigma**2
    raise NotConverged


def _window(sigma: Fraction) -> int:
    """Return how many points on each side hold all but exp(-722) of a discrete Gaussian."""
    return math.ceil(38 * sigma) + 2


def lattice_pmf(law: LossLaw, step: Fraction, *, merge: bool) -> Pmf:
    if is_exact(law):
        return exact_pmf(law)
    offset, _, span = natural_lattice(law)
    e, cells = as_float(-offset), int(span / step)
    if cells > _MOST:
        raise NotConverged
    g = as_float(step)
    losses = g * (np.arange(cells + 1) - cells / 2)
    if isinstance(law, LaplaceLoss):
        shape, ends = 0.25 * np.exp((losses - e) / 2), (0.5 * math.exp(-e), 0.5)
    else:  # kappa = 1 / (4 sinh(e/2)), without its large exponential
        shape, ends = 0.5 * np.exp((losses - e) / 2) / -math.expm1(-e), (0.0, 0.0)
    if merge:
        masses = np.zeros(cells + 1)
        masses[1::2] = 4 * math.sinh(g / 2) * shape[1::2]
    else:
        masses = 4 * math.tanh(g / 4) * shape
        masses[[0, -1]] /= 2
    masses[[0, -1]] += ends
    return Pmf(offset, step, masses, 8 * U * (4 + e))


def exact_pmf(law: LossLaw) -> Pmf:
    offset, step, span = natural_lattice(law)
    if span / step > _MOST:
        raise NotConverged
    match law:
        case RandomizedResponseLoss() | PureLoss():
            e = as_float(step / 2)
            high = 1 / (1 + math.exp(-e))
            return Pmf(offset, step, np.array([math.exp(-e) * high, high]), 8 * U * (1 + e))
        case CategoricalResponseLoss(_, k):
            e = as_float(step)
            high = 1 / (1 + (k - 1) * math.exp(-e))
            low = math.exp(-e) * high
            return Pmf(offset, step, np.array([low, (k - 2) * low, high]), 16 * U * (1 + e))
        case DiscreteLaplaceLoss(scale, s):
            moves = np.arange(int(s), -1, -1.0)  # x = s .. 0 has loss (s - 2x) / scale
            rate = as_float(1 / scale)
            masses = np.exp(-rate * moves) * (-math.expm1(-rate))
            masses[[0, -1]] = math.exp(-rate * float(s)), 1.0
            return Pmf(offset, step, masses / (1 + math.exp(-rate)), 8 * U * (4 + as_float(s / scale)))
        case DiscreteGaussianLoss(sigma, _):
            half = _window(sigma)
            squares = (np.arange(-half, half + 1) / as_float(sigma)) ** 2 / 2
            masses = np.exp(-squares)
            return Pmf(offset, step, masses / masses.sum(), 8 * U * (800 + len(masses)))
    raise NotConverged


def discrete_gaussian(sigma: Fraction, s: Fraction) -> Factor:
    """Return whole-number Gaussian noise as a factor: in closed form from sigma = 3, else by its atoms."""
    if sigma >= 3:
        return DiscreteGaussianMgf(as_float(sigma), as_float(s))
    pmf = exact_pmf(DiscreteGaussianLoss(sigma, s))
    kept = np.flatnonzero(pmf.masses)
    return Atoms(as_float(pmf.offset) + as_float(pmf.step) * kept, pmf.masses[kept], pmf.slack)
