"""The sum of independent losses in numeric accounting, and its moments on the real axis."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tacit.accounting.numeric._bracket import NotConverged, U

if TYPE_CHECKING:
    from tacit.accounting.numeric._mgf import Factor, Reals


class LossLattice(NamedTuple):
    """The total loss lies on offset + step * Z."""

    offset: float
    step: float


class LossSum(NamedTuple):
    """Independent losses, each with its number of times; ``lattice`` if they all lie on one."""

    factors: tuple[tuple[Factor, int], ...]
    lattice: LossLattice | None = None


def peak(c: float) -> float:
    """Return log of max over x >= 0 of (1 - exp(-x)) exp(-c x): delta(e) <= M(c) exp(-c e) times it."""
    return c * math.log(c / (1 + c)) - math.log1p(c)


def steer(loss_sum: LossSum, c: Reals) -> tuple[Reals, Reals, Reals]:
    """Return approximate values of log M and its first two derivatives on a grid of c."""
    if len(loss_sum.factors) == 1:
        ((factor, times),) = loss_sum.factors
        log_m, mean, bend = factor.cumulants(c)
        return times * log_m, times * mean, times * bend
    total = np.zeros((3, len(c)))
    for factor, times in loss_sum.factors:
        for row, part in zip(total, factor.cumulants(c), strict=True):
            row += times * part
    return total[0], total[1], total[2]


def spread(loss_sum: LossSum) -> float:
    """Return the approximate standard deviation of the loss."""
    try:
        return math.sqrt(float(steer(loss_sum, np.array([1e-9]))[2][0]))
    except OverflowError:
        raise NotConverged from None


def tiny(loss_sum: LossSum) -> float:
    """Return the mu of a Gaussian that moves the epsilons of interest by about 2e-6 relatively."""
    c = np.exp(np.linspace(-5.0, 9.0, 36)) / (spread(loss_sum) + 1e-150)
    log_m = steer(loss_sum, c)[0]
    bound = (log_m + c * np.log(c / (1 + c)) - np.log1p(c) + 14) / c
    at = int(np.argmin(np.where(np.isfinite(bound), bound, np.inf)))
    return 1.5e-3 * math.sqrt(max(0.0, 2 * float(bound[at]) / float(c[at])))


def log_moment(loss_sum: LossSum, c: float) -> float:
    """Return an upper value of log M(c), c > 0."""
    total = 0.0
    for factor, times in loss_sum.factors:
        line = factor.line(c, 0.0, 0)
        total += times * (line.log_norm + line.norm_error + 8 * U * abs(line.log_norm))
    if math.isnan(total):
        raise NotConverged
    return total + 4 * U * abs(total)
