"""From laws to what the engines take: factors on vertical lines, curves, finite pairs that dominate them."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tacit.accounting._laws import (
    ApproximateLoss,
    BoundedRangeLoss,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    GaussianLoss,
    GDPLoss,
    GroupLoss,
    LaplaceLoss,
    LossLaw,
    ParallelLoss,
    Parts,
    PureLoss,
    RandomizedResponseLoss,
    RenyiLoss,
    SampledLoss,
    ShuffledLoss,
    ZCDPLoss,
    canonical,
)
from tacit.accounting.numeric._bracket import Bracket, NotConverged, U, as_float
from tacit.accounting.numeric._curve import Curve, Dots, closed_curve, dots, mixed, sampled_curve
from tacit.accounting.numeric._gaussian import gaussian_curve
from tacit.accounting.numeric._lattice import discrete_gaussian, lattice_cost, on_lattice
from tacit.accounting.numeric._loss_sum import Mix
from tacit.accounting.numeric._mgf import (
    Atoms,
    DiscreteLaplaceLine,
    Factor,
    GaussianLine,
    LaplaceLine,
    RangeLine,
    Reals,
    ResponseLine,
)
from tacit.accounting.numeric._renyi import CurveLine
from tacit.accounting.numeric._sampled_gaussian import SampledGaussian

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "Content",
    "both_sides",
    "content",
    "curve",
    "exact_largest_loss",
    "gaussian_mu2",
    "largest_loss",
    "plain",
]

_REACH = 600.0  # exp of more leaves the doubles; delta there counts as infinite loss
_NEGLIGIBLE = 1e-35  # delta beyond which a curve is cut off (the rest counts as infinite loss)


class Content(NamedTuple):
    """The parts of one direction as factors; the infinite loss these left out; whether they are exact."""

    mix: Mix
    leak: float
    exact: bool
    kept: dict[Callable[[Mix], Any], Any]  # engines that were built for the mix


def plain(parts: Parts) -> Parts:
    """Open samples that keep everything; refuse what must be spelled out before."""
    for law, _ in parts:
        if isinstance(law, GroupLoss | ParallelLoss):
            raise TypeError(type(law).__name__)
    if not any(isinstance(law, SampledLoss) and law.q == 1 for law, _ in parts):
        return parts
    opened: list[tuple[LossLaw, int]] = []
    for law, times in parts:
        if isinstance(law, SampledLoss) and law.q == 1:
            opened.extend((inner, times * often) for inner, often in plain(law.parts))
        else:
            opened.append((law, times))
    return canonical(opened)


def _mu2(law: LossLaw) -> Fraction | None:
    match law:
        case GaussianLoss(sigma, s):
            return (s / sigma) ** 2
        case GDPLoss(mu):
            return mu**2
    return None


def gaussian_mu2(parts: Parts) -> Fraction | None:
    """Return the sum of mu^2 where every part is Gaussian."""
    total = Fraction(0)
    for law, times in parts:
        mu2 = _mu2(law)
        if mu2 is None:
            return None
        total += times * mu2
    return total


@lru_cache(maxsize=256)
def content(parts: Parts, *, add: bool, finite: bool = False) -> Content:
    """Turn laws (no `Approximate` among them) into factors; samples as finite pairs if asked."""
    mu2, factors, stays, exact = Fraction(0), [], 0.0, True
    for law, times in parts:
        part = _mu2(law)
        if part is not None:
            mu2 += times * part
            continue
        factor, leak, sharp = (
            _finite_pair(law, add=add) if finite and isinstance(law, SampledLoss) else _factor(law, add=add)
        )
        stays += times * math.log1p(-min(leak, 1 - U))
        exact &= sharp
        factors.append((factor, times))
    if mu2:
        factors.append((GaussianLine(as_float(mu2)), 1))
    return Content(Mix(tuple(factors)), -math.expm1(stays) * (1 + 64 * U), exact, {})


def _factor(law: LossLaw, *, add: bool) -> tuple[Factor, float, bool]:
    """Return the law on vertical lines, the infinite loss split off, and whether the factor is exact."""
    match law:
        case RandomizedResponseLoss(epsilon) | PureLoss(epsilon):
            return ResponseLine(as_float(epsilon)), 0.0, True
        case LaplaceLoss(scale, s):
            return LaplaceLine(as_float(s / scale)), 0.0, True
        case BoundedRangeLoss(epsilon):
            return RangeLine(as_float(epsilon)), 0.0, True
        case DiscreteLaplaceLoss(scale, s):
            return DiscreteLaplaceLine(as_float(1 / scale), as_float(s)), 0.0, True
        case DiscreteGaussianLoss(sigma, s):
            return discrete_gaussian(sigma, s), 0.0, True
        case ZCDPLoss(rho):
            return GaussianLine(as_float(2 * rho)), 0.0, True
        case RenyiLoss(curve):
            orders = np.array([0.0, *(as_float(order - 1) for order, _ in curve)])
            values = np.array([0.0, *(as_float((order - 1) * value) for order, value in curve)])
            return CurveLine(orders, values), 0.0, True
        case SampledLoss(q, parts) if (mu2 := gaussian_mu2(plain(parts))) is not None:
            return SampledGaussian(as_float(q), math.sqrt(as_float(mu2)), add), 0.0, True
        case SampledLoss() | ShuffledLoss():
            return _finite_pair(law, add=add)
    raise TypeError(type(law).__name__)


def _finite_pair(law: LossLaw, *, add: bool) -> tuple[Factor, float, bool]:
    pair, exact = _dots(law, add=add)
    return Atoms(pair.losses, pair.masses, 4 * U + pair.slack), pair.infinite, exact


@lru_cache(maxsize=256)
def _dots(law: LossLaw, *, add: bool) -> tuple[Dots, bool]:
    """Return a finite pair that dominates a law known by its curve, and whether it is the law itself."""
    whole, kinks = curve(law, add=add), None
    if isinstance(law, SampledLoss):
        kinks = _kinks(plain(law.parts))
        inner = _grid(_curve_of_sum(law.parts, add=add), kinks)
        grid = np.array([-mixed(float(law.q), -e) if add else mixed(float(law.q), e) for e in inner])
        grid = np.unique(grid + np.abs(grid) * 1e-15)
        grid = grid[np.abs(grid) < _REACH]
    else:
        grid = _grid(whole, None)
    return dots(whole, grid), kinks is not None


def _kinks(parts: Parts) -> Reals | None:
    """Return the losses of a finite lattice law: its curve is made of straight lines between them."""
    if not all(on_lattice(law) and not isinstance(law, LaplaceLoss | BoundedRangeLoss) for law, _ in parts):
        return None
    try:
        losses = lattice_cost(parts).losses()
    except NotConverged:
        return None
    few = losses is not None and len(losses) <= 2000 and max(-losses[0], losses[-1]) < _REACH
    return losses if few else None


def _grid(curve: Curve, kinks: Reals | None) -> Reals:
    """Return where to take the dots: at the kinks, or evenly over what matters."""
    if kinks is not None:
        return kinks
    reach = curve.high
    if not (math.isfinite(reach) and float(curve.upper(np.array([0.9 * reach]))[0]) > _NEGLIGIBLE):
        low, high = 0.0, min(reach, 1.0)
        while high < min(reach, _REACH) and float(curve.upper(np.array([high]))[0]) > _NEGLIGIBLE:
            low, high = high, 2 * high
        for _ in range(8):
            middle = (low + high) / 2
            if float(curve.upper(np.array([middle]))[0]) > _NEGLIGIBLE:
                low = middle
            else:
                high = middle
        reach = min(reach, high)
    reach = min(reach, _REACH)
    grid = (
        reach / math.sinh(3) * np.sinh(3 * np.linspace(-1, 1, 4097 if curve.quick else 1537))
    )  # denser inside
    ends = [x for x in (curve.low, curve.high) if abs(x) < _REACH]
    return np.unique(np.append(grid, ends))


def curve(law: LossLaw, *, add: bool) -> Curve:
    """Return the curve of one law, once."""
    if isinstance(law, SampledLoss):
        return sampled_curve(as_float(law.q), _curve_of_sum(law.parts, add=add), add=add)
    if isinstance(law, GaussianLoss | GDPLoss | DiscreteGaussianLoss | ApproximateLoss):
        return _curve_of_sum(((law, 1),), add=add)
    return closed_curve(law)


def _curve_of_sum(parts: Parts, *, add: bool) -> Curve:
    """Return the curve of a sum of laws; below zero by H_y(P, Q) = 1 - y + y H_(1/y)(Q, P)."""
    parts = plain(parts)
    if len(parts) == 1 and parts[0][1] == 1:
        law = parts[0][0]
        if isinstance(law, SampledLoss) or not isinstance(
            law, GaussianLoss | GDPLoss | DiscreteGaussianLoss | ApproximateLoss
        ):
            return curve(law, add=add)

    mu2 = gaussian_mu2(parts)
    if mu2 is not None and mu2 > Fraction(1, 10**7):
        mu = math.sqrt(as_float(mu2))
        return Curve(
            lambda e: gaussian_curve(mu, e, 1.0), lambda e: gaussian_curve(mu, e, -1.0), -math.inf, math.inf
        )

    def upper(e: Reals) -> Reals:
        return np.array([both_sides(parts, float(x), add=add).upper for x in np.atleast_1d(e)])

    def lower(e: Reals) -> Reals:
        return np.array([both_sides(parts, float(x), add=add).lower for x in np.atleast_1d(e)])

    high = largest_loss(parts, add=add)
    return Curve(upper, lower, -largest_loss(parts, add=not add), high, quick=False)


def both_sides(parts: Parts, e: float, *, add: bool) -> Bracket:
    """Return bounds on delta at any real e; below zero by H_y(P, Q) = 1 - y + y H_(1/y)(Q, P)."""
    from tacit.accounting.numeric._bounds import delta_of

    if e >= 0:
        return delta_of(parts, e, add=add)
    other = delta_of(parts, -e, add=not add)
    whole, ratio = -math.expm1(e), math.exp(e)
    return Bracket(
        (whole + ratio * other.lower) * (1 - 8 * U),
        min(1.0, (whole + ratio * other.upper) * (1 + 8 * U)),
        other.method,
    )


def exact_largest_loss(parts: Parts) -> Fraction | None:
    """Return the largest loss exactly; None where it is infinite or not rational."""
    total = Fraction(0)
    for law, times in parts:
        match law:
            case RandomizedResponseLoss(e) | PureLoss(e) | BoundedRangeLoss(e) | ShuffledLoss(_, e):
                total += times * e
            case LaplaceLoss(scale, s) | DiscreteLaplaceLoss(scale, s):
                total += times * s / scale
            case _:
                return None
    return total


def largest_loss(parts: Parts, *, add: bool) -> float:
    """Return an upper value of the largest loss."""
    total = 0.0
    for law, times in parts:
        match law:
            case RandomizedResponseLoss(e) | PureLoss(e) | BoundedRangeLoss(e) | ShuffledLoss(_, e):
                one = as_float(e)
            case LaplaceLoss(scale, s) | DiscreteLaplaceLoss(scale, s):
                one = as_float(s / scale)
            case SampledLoss(q, inner):
                top = largest_loss(plain(inner), add=add)
                if add:  # -log(1 - q + q exp(-top))
                    one = -mixed(as_float(q), -top) if q < 1 else top
                else:
                    one = mixed(as_float(q), top) if math.isfinite(top) else math.inf
            case _:
                return math.inf
        total += times * one
    return total * (1 + 16 * U)
