"""Factors in numeric accounting: the moment generating function of each law, or of a finite pair above it."""

from __future__ import annotations

import contextlib
import math
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tacit.accounting._laws import (
    BoundedRangeLoss,
    CategoricalResponseLoss,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    GroupLoss,
    LaplaceLoss,
    LossLaw,
    Parts,
    PureLoss,
    RandomizedResponseLoss,
    RenyiLoss,
    SampledLoss,
    ShuffledLoss,
    ShuffledResponseLoss,
    ZCDPLoss,
)
from tacit.accounting.numeric._accountants import RenyiCurveMgf
from tacit.accounting.numeric._arithmetic import NotConverged, U, as_float, root
from tacit.accounting.numeric._atoms import Atoms, FinitePair, connect_dots
from tacit.accounting.numeric._curve import Curve, curve, curve_of_sum, in_bulk, reach_of
from tacit.accounting.numeric._gaussian import GroupedGaussianMgf, SampledGaussianMgf
from tacit.accounting.numeric._lattice import discrete_gaussian, lattice_accountant, on_lattice
from tacit.accounting.numeric._mgf import (
    DiscreteLaplaceMgf,
    Factor,
    GaussianMgf,
    LaplaceMgf,
    LossSum,
    RangeMgf,
    Reals,
    ResponseMgf,
)
from tacit.accounting.numeric._sampled_laplace import SampledLaplaceMgf
from tacit.accounting.numeric._shuffled_lattice import response_atoms
from tacit.accounting.numeric._sum_facts import gaussian_mu2, law_mu2, mixed, plain, sampled_gaussian

if TYPE_CHECKING:
    from collections.abc import Callable

_REACH = 600.0  # the exponential of more overflows a double; larger losses count as infinite


class Factors(NamedTuple):
    """The parts of one direction as factors, the infinite loss outside them, and whether they are exact."""

    loss_sum: LossSum
    leak: float
    exact: bool
    kept: dict[Callable[..., Any], Any]  # accountants that were built for the loss sum


@lru_cache(maxsize=256)
def factors_of(parts: Parts, *, add: int, finite: bool = False, bounded: bool = False) -> Factors:
    """Turn laws (without `ApproximateLoss`) into factors; with ``finite``, samples become finite pairs.

    ``add`` is 1 for the direction in which a unit is added, and 0 for the other.

    With ``bounded``, a finite law gets a last dot beyond its largest loss too. Then no loss is infinite, but
    the pair only dominates the law: for moments, not for lower values.
    """
    mu2, factors, log_finite, exact = Fraction(0), [], 0.0, True
    for law, times in parts:
        part = law_mu2(law)
        if part is not None:
            mu2 += times * part
            continue
        factor, leak, is_exact = (
            _finite_pair(law, add=add, bounded=bounded)
            if finite and isinstance(law, SampledLoss | GroupLoss)
            else _factor(law, add=add, bounded=bounded)
        )
        log_finite += times * math.log1p(-min(leak, 1 - U))
        exact &= is_exact
        factors.append((factor, times))
    if mu2:
        factors.append((GaussianMgf(as_float(mu2)), 1))
    return Factors(LossSum(tuple(factors)), -math.expm1(log_finite) * (1 + 64 * U), exact, {})


def _factor(law: LossLaw, *, add: int, bounded: bool) -> tuple[Factor, float, bool]:
    """Return the factor of a law, the infinite loss split off, and whether the factor is exact."""
    match law:
        case RandomizedResponseLoss(epsilon) | PureLoss(epsilon):
            return ResponseMgf(as_float(epsilon)), 0.0, True
        case CategoricalResponseLoss(epsilon, k):
            return ResponseMgf(as_float(epsilon), k), 0.0, True
        case LaplaceLoss(scale, s):
            return LaplaceMgf(as_float(s / scale)), 0.0, True
        case BoundedRangeLoss(epsilon):
            return RangeMgf(as_float(epsilon)), 0.0, True
        case DiscreteLaplaceLoss(scale, s):
            return DiscreteLaplaceMgf(as_float(1 / scale), as_float(s)), 0.0, True
        case DiscreteGaussianLoss(sigma, s):
            return discrete_gaussian(sigma, s), 0.0, True
        case ZCDPLoss(rho):
            return GaussianMgf(as_float(2 * rho)), 0.0, True
        case RenyiLoss(curve):
            orders = np.array([0.0, *(as_float(order - 1) for order, _ in curve)])
            values = np.array([0.0, *(as_float((order - 1) * value) for order, value in curve)])
            return RenyiCurveMgf(orders, values), 0.0, True
        case SampledLoss(q, parts) if (mu2 := gaussian_mu2(plain(parts))) is not None:
            return SampledGaussianMgf(as_float(q), root(mu2), bool(add)), 0.0, True
        case SampledLoss(q, ((LaplaceLoss(scale, s), 1),)) if q < 1 and s / scale < 20:
            return SampledLaplaceMgf(as_float(q), as_float(s / scale), bool(add)), 0.0, True
        case ShuffledResponseLoss(n, _, k) if k > 2 or n > 1000:
            with contextlib.suppress(NotConverged):
                return *response_atoms(law), False
            return _finite_pair(law, add=add, bounded=bounded)
        case SampledLoss() | ShuffledLoss() | ShuffledResponseLoss():
            return _finite_pair(law, add=add, bounded=bounded)
        case GroupLoss(m) if (sample := sampled_gaussian(law)) is not None:
            q, mu2 = sample
            return GroupedGaussianMgf(as_float(q), root(mu2), m - add, int(add)), 0.0, True
    raise TypeError(type(law).__name__)


def _finite_pair(law: LossLaw, *, add: int, bounded: bool) -> tuple[Factor, float, bool]:
    pair, exact = _dots(law, add=add, bounded=bounded)
    return Atoms(pair.losses, pair.masses, 4 * U + pair.slack), pair.infinite, exact


@lru_cache(maxsize=256)
def _dots(law: LossLaw, *, add: int, bounded: bool) -> tuple[FinitePair, bool]:
    """Return a finite pair that dominates a law with a known curve, and whether it is the law itself."""
    total, kinks = curve(law, add=add), None
    if isinstance(law, SampledLoss):
        kinks = _kinks(plain(law.parts))
        inside = curve_of_sum(law.parts, add=add)
        if kinks is None:
            total, inside = in_bulk(total), in_bulk(inside)
        inner = _grid(inside, kinks)
        grid = np.array([-mixed(float(law.q), -e) if add else mixed(float(law.q), e) for e in inner])
        grid = np.unique(grid + np.abs(grid) * 1e-15)
        grid = grid[np.abs(grid) < _REACH]
    else:
        grid = _grid(total, None)
    exact = kinks is not None and not bounded
    return connect_dots(total, grid if exact else _ended(total, grid)), exact


def _ended(curve: Curve, grid: Reals) -> Reals:
    """Add a dot just beyond the largest loss, where even the upper value is 0: no loss is infinite then.

    Without it, the rounding of the upper value at the largest loss would count as infinite loss.
    """
    if not (math.isfinite(curve.high) and 0 < curve.high < _REACH and grid[-1] >= curve.high * (1 - 1e-12)):
        return grid
    for slip in 1e-14 * 4.0 ** np.arange(14):
        end = curve.high * (1 + slip)
        if end > grid[-1] and float(curve.upper(np.array([end]))[0]) == 0.0:
            return np.append(grid, end)
    return grid


def _kinks(parts: Parts) -> Reals | None:
    """Return the losses of a finite lattice law; its curve consists of straight lines between them."""
    if not all(on_lattice(law) and not isinstance(law, LaplaceLoss | BoundedRangeLoss) for law, _ in parts):
        return None
    try:
        losses = lattice_accountant(parts).losses()
    except NotConverged:
        return None
    few = losses is not None and len(losses) <= 2000 and max(-losses[0], losses[-1]) < _REACH
    return losses if few else None


def _grid(curve: Curve, kinks: Reals | None) -> Reals:
    """Return where to take the dots: at the kinks, or over the range where delta matters."""
    if kinks is not None:
        return kinks
    reach = reach_of(curve)
    grid = (
        reach / math.sinh(3) * np.sinh(3 * np.linspace(-1, 1, 4097 if curve.quick else 1537))
    )  # denser inside
    ends = [x for x in (curve.low, curve.high) if abs(x) < _REACH]
    return np.unique(np.append(grid, ends))
