"""The charge in accounting for a sum of laws: exact upper values of epsilon, delta and rho.

`docs/proofs/costs.md` proves each rule.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from tacit.accounting._laws import (
    ApproximateLoss,
    BestOfLoss,
    BoundedRangeLoss,
    CategoricalResponseLoss,
    DiscreteGaussianLoss,
    DiscreteGaussianVectorLoss,
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
    ShuffledResponseLoss,
    ZCDPLoss,
)
from tacit.accounting._selection import mean_runs, selected_epsilon
from tacit.accounting._zcdp import categorical_rho, discrete_laplace_rho, laplace_rho, pure_rho
from tacit.accounting.numeric import exp_down, exp_up, log_up, round_up

_ZERO = Fraction(0)


class UpperCharge(NamedTuple):
    """Upper values: with probability 1 - delta, a part within epsilon that is rho-zCDP. None: not finite."""

    epsilon: Fraction | None
    delta: Fraction
    rho: Fraction | None


def charge(parts: Parts) -> UpperCharge:
    """Add up what each part takes; the sums also hold when later parts depend on earlier answers."""
    epsilon: Fraction | None = _ZERO
    rho: Fraction | None = _ZERO
    delta = _ZERO
    for law, times in parts:
        one = _charge(law)
        epsilon = None if epsilon is None or one.epsilon is None else epsilon + times * one.epsilon
        rho = None if rho is None or one.rho is None else rho + times * one.rho
        delta += times * one.delta
    return UpperCharge(epsilon, min(delta, Fraction(1)), rho)


def _charge(law: LossLaw) -> UpperCharge:
    match law:
        case GaussianLoss(sigma, s) | DiscreteGaussianLoss(sigma, s):
            return UpperCharge(None, _ZERO, (s / sigma) ** 2 / 2)
        case DiscreteGaussianVectorLoss(sigma, squared):
            return UpperCharge(None, _ZERO, squared / (2 * sigma**2))
        case GDPLoss(mu):
            return UpperCharge(None, _ZERO, mu**2 / 2)
        case ZCDPLoss(rho):
            return UpperCharge(None, _ZERO, rho)
        case RenyiLoss():
            return UpperCharge(None, _ZERO, None)
        case LaplaceLoss(scale, s):
            return UpperCharge(s / scale, _ZERO, laplace_rho(s / scale))
        case DiscreteLaplaceLoss(scale, s):
            return UpperCharge(s / scale, _ZERO, discrete_laplace_rho(scale, s))
        case PureLoss(epsilon) | RandomizedResponseLoss(epsilon) | ShuffledLoss(_, epsilon):
            return UpperCharge(epsilon, _ZERO, pure_rho(epsilon))
        case CategoricalResponseLoss(epsilon, k) | ShuffledResponseLoss(_, epsilon, k):
            return UpperCharge(epsilon, _ZERO, categorical_rho(epsilon, k))
        case BoundedRangeLoss(epsilon):
            return UpperCharge(epsilon, _ZERO, min(epsilon**2 / 8, pure_rho(epsilon)))
        case ApproximateLoss(epsilon, delta):
            return UpperCharge(epsilon, delta, pure_rho(epsilon))
        case SampledLoss() | GroupLoss() | ParallelLoss() | BestOfLoss():
            return _charge_compound(law)


def _charge_compound(law: SampledLoss | GroupLoss | ParallelLoss | BestOfLoss) -> UpperCharge:
    """Charge a law that holds other laws."""
    match law:
        case SampledLoss(q, parts):
            return _charge_sampled(q, charge(parts))
        case GroupLoss(m, parts):
            return _charge_group(m, charge(parts))
        case ParallelLoss(branches):
            all_of = [charge(branch) for branch in branches]
            return UpperCharge(
                _largest([one.epsilon for one in all_of]),
                max(one.delta for one in all_of),
                _largest([one.rho for one in all_of]),
            )
        case BestOfLoss(runs, parameter, candidates):
            one_run = [charge(candidate) for candidate in candidates]
            return _charge_best(
                runs,
                parameter,
                _largest([one.epsilon for one in one_run]),
                max(one.delta for one in one_run),
            )


def _charge_best(runs: str, parameter: Fraction, epsilon: Fraction | None, delta: Fraction) -> UpperCharge:
    """Select among runs: epsilon by the largest order, delta for each run; a finite epsilon has its rho."""
    most = min(Fraction(1), mean_runs(runs, parameter) * delta)
    if epsilon is None:
        return UpperCharge(None, most, None)
    best = selected_epsilon(runs, parameter, epsilon)
    return UpperCharge(best, most, pure_rho(best))


def _largest(values: list[Fraction | None]) -> Fraction | None:
    finite = [value for value in values if value is not None]
    return max(finite) if len(finite) == len(values) else None


def _charge_sampled(q: Fraction, whole: UpperCharge) -> UpperCharge:
    """Sample a charge: (log(1 + q (e^epsilon - 1)), q delta), and never more rho than without the sample.

    If epsilon is infinite, the part that is rho-zCDP keeps its weight 1 - delta: a mixture of a pair with
    itself is no further apart than the pair, because Renyi divergence is quasi-convex.
    """
    if whole.epsilon is None:
        return whole
    epsilon = sampled_epsilon(q, whole.epsilon)
    rho = pure_rho(epsilon)
    if whole.delta == 0 and whole.rho is not None:
        rho = min(rho, whole.rho)
    return UpperCharge(epsilon, q * whole.delta, rho)


def _charge_group(m: int, one: UpperCharge) -> UpperCharge:
    """Take m steps: m epsilon, m^2 rho (Bun and Steinke 2016) and delta (1 + e^epsilon + ...)."""
    if one.delta == 0:
        epsilon = None if one.epsilon is None else m * one.epsilon
        known = [] if one.rho is None else [m * m * one.rho]
        known += [] if epsilon is None else [pure_rho(epsilon)]
        return UpperCharge(epsilon, _ZERO, min(known, default=None))
    nothing = UpperCharge(None, Fraction(1), None)
    if one.epsilon is None:
        return nothing
    try:
        delta = one.delta * _geometric(m, one.epsilon)
    except OverflowError:
        return nothing
    return nothing if delta >= 1 else UpperCharge(m * one.epsilon, delta, pure_rho(m * one.epsilon))


def _geometric(m: int, epsilon: Fraction) -> Fraction:
    """Return an upper value of 1 + e^epsilon + ... + e^((m-1) epsilon)."""
    if m <= 64:
        return sum((exp_up(j * epsilon) for j in range(m)), _ZERO)
    ratio = exp_down(epsilon)
    plain_bound = m * exp_up((m - 1) * epsilon)
    return plain_bound if ratio <= 1 else min(plain_bound, (exp_up(m * epsilon) - 1) / (ratio - 1))


def sampled_epsilon(q: Fraction, epsilon: Fraction) -> Fraction:
    """Return log(1 + q (e^epsilon - 1)), rounded up, never above epsilon (Balle, Barthe and Gaboardi 2018).

    Examples
    --------
    >>> round(float(sampled_epsilon(Fraction(1, 20), Fraction(1))), 4)
    0.0824
    """
    try:
        return min(epsilon, round_up(log_up(1 + q * (exp_up(epsilon) - 1))))
    except OverflowError:
        return epsilon
