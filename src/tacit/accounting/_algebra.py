"""What the operations do to laws: groups, samples, and the exact numbers that a ledger charges.

Arguments for each rule are in `docs/proofs/costs.md`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from tacit.accounting._certified import exp_down, exp_up, log_up, round_up
from tacit.accounting._zcdp import discrete_laplace_rho, laplace_rho, pure_rho
from tacit.accounting.laws import (
    GDP,
    ZCDP,
    Approximate,
    BoundedRange,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Group,
    Laplace,
    Law,
    Parallel,
    Parts,
    Pure,
    RandomizedResponse,
    Renyi,
    Sampled,
    Shuffled,
)

__all__ = ["Charge", "can_sample", "charge", "dominates", "grouped", "sampled_epsilon"]

_ZERO = Fraction(0)


class Charge(NamedTuple):
    """Upper values: with probability 1 - delta a part within epsilon that is rho-zCDP; None: not finite."""

    epsilon: Fraction | None
    delta: Fraction
    rho: Fraction | None


def charge(parts: Parts) -> Charge:
    """Add up what each part takes; every number adds, whatever the later parts depend on."""
    epsilon: Fraction | None = _ZERO
    rho: Fraction | None = _ZERO
    delta = _ZERO
    for law, times in parts:
        one = _charge(law)
        epsilon = None if epsilon is None or one.epsilon is None else epsilon + times * one.epsilon
        rho = None if rho is None or one.rho is None else rho + times * one.rho
        delta += times * one.delta
    return Charge(epsilon, min(delta, Fraction(1)), rho)


def _charge(law: Law) -> Charge:
    match law:
        case Gaussian(sigma, s) | DiscreteGaussian(sigma, s):
            return Charge(None, _ZERO, (s / sigma) ** 2 / 2)
        case GDP(mu):
            return Charge(None, _ZERO, mu**2 / 2)
        case ZCDP(rho):
            return Charge(None, _ZERO, rho)
        case Renyi():
            return Charge(None, _ZERO, None)
        case Laplace(scale, s):
            return Charge(s / scale, _ZERO, laplace_rho(s / scale))
        case DiscreteLaplace(scale, s):
            return Charge(s / scale, _ZERO, discrete_laplace_rho(scale, s))
        case Pure(epsilon) | RandomizedResponse(epsilon) | Shuffled(_, epsilon):
            return Charge(epsilon, _ZERO, pure_rho(epsilon))
        case BoundedRange(epsilon):
            return Charge(epsilon, _ZERO, min(epsilon**2 / 8, pure_rho(epsilon)))
        case Approximate(epsilon, delta):
            return Charge(epsilon, delta, pure_rho(epsilon))
        case Sampled(q, parts):
            return _charge_sampled(q, charge(parts))
        case Group(m, parts):
            return _charge_group(m, charge(parts))
        case Parallel(branches):
            all_of = [charge(branch) for branch in branches]
            return Charge(
                _largest([one.epsilon for one in all_of]),
                max(one.delta for one in all_of),
                _largest([one.rho for one in all_of]),
            )


def _largest(values: list[Fraction | None]) -> Fraction | None:
    finite = [value for value in values if value is not None]
    return max(finite) if len(finite) == len(values) else None


def _charge_sampled(q: Fraction, whole: Charge) -> Charge:
    """Sample a charge: (log(1 + q (e^epsilon - 1)), q delta), and never more rho than without the sample.

    With epsilon infinite the part that is rho-zCDP keeps its weight 1 - delta: a mixture of a pair with
    itself is no further apart than the pair (quasi-convexity of Renyi divergence).
    """
    if whole.epsilon is None:
        return whole
    epsilon = sampled_epsilon(q, whole.epsilon)
    rho = pure_rho(epsilon)
    if whole.delta == 0 and whole.rho is not None:
        rho = min(rho, whole.rho)
    return Charge(epsilon, q * whole.delta, rho)


def _charge_group(m: int, one: Charge) -> Charge:
    """Take m steps: m epsilon, m^2 rho (Bun and Steinke 2016), delta (1 + e^epsilon + ... )."""
    if one.delta == 0:
        epsilon = None if one.epsilon is None else m * one.epsilon
        known = [] if one.rho is None else [m * m * one.rho]
        known += [] if epsilon is None else [pure_rho(epsilon)]
        return Charge(epsilon, _ZERO, min(known, default=None))
    nothing = Charge(None, Fraction(1), None)
    if one.epsilon is None:
        return nothing
    try:
        delta = one.delta * _geometric(m, one.epsilon)
    except OverflowError:
        return nothing
    return nothing if delta >= 1 else Charge(m * one.epsilon, delta, pure_rho(m * one.epsilon))


def _geometric(m: int, epsilon: Fraction) -> Fraction:
    """Return an upper value of 1 + e^epsilon + ... + e^((m-1) epsilon)."""
    if m <= 64:
        return sum((exp_up(j * epsilon) for j in range(m)), _ZERO)
    ratio = exp_down(epsilon)
    by_hand = m * exp_up((m - 1) * epsilon)
    return by_hand if ratio <= 1 else min(by_hand, (exp_up(m * epsilon) - 1) / (ratio - 1))


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


def can_sample(parts: Parts) -> bool:
    """Say whether every part has a pair of distributions to mix; a rho or a Renyi curve alone has none."""
    for law, _ in parts:
        match law:
            case ZCDP() | Renyi() | Shuffled():
                return False
            case Sampled(_, inner) | Group(_, inner) if not can_sample(inner):
                return False
            case Parallel(branches) if not all(can_sample(branch) for branch in branches):
                return False
    return True


def grouped(law: Law, m: int) -> Law:
    """Return what m units together see of a law, in the law's own kind where that is known."""
    match law:
        case Gaussian(sigma, s):
            return Gaussian(sigma, m * s)
        case DiscreteGaussian(sigma, s):
            return DiscreteGaussian(sigma, m * s)
        case Laplace(scale, s):
            return Laplace(scale, m * s)
        case DiscreteLaplace(scale, s):
            return DiscreteLaplace(scale, m * s)
        case GDP(mu):
            return GDP(m * mu)
        case ZCDP(rho):
            return ZCDP(m * m * rho)
        case Pure(epsilon) | RandomizedResponse(epsilon):
            return Pure(m * epsilon)
        case BoundedRange(epsilon):
            return BoundedRange(m * epsilon)
        case Group(already, parts):
            return Group(m * already, parts)
        case _:
            return Group(m, ((law, 1),))


def dominates(large: Parts, small: Parts) -> bool:
    """Say whether ``large`` surely reveals at least as much at every epsilon; False where it is not plain."""
    have = dict(large)
    if all(have.get(law, 0) >= times for law, times in small):
        return True
    if len(large) == len(small) == 1:
        (big, often), (little, seldom) = large[0], small[0]
        return often >= seldom and _stronger(big, little)
    return False


def _stronger(big: Law, little: Law) -> bool:
    match big, little:
        case ((Gaussian(a, s) | DiscreteGaussian(a, s)), (Gaussian(b, t) | DiscreteGaussian(b, t))):
            return type(big) is type(little) and (
                s / a >= t / b if isinstance(big, Gaussian) else a == b and s >= t
            )
        case Laplace(a, s), Laplace(b, t):
            return s / a >= t / b
        case DiscreteLaplace(a, s), DiscreteLaplace(b, t):
            return a == b and s >= t
        case GDP(a), GDP(b):
            return a >= b
        case ZCDP(a), ZCDP(b):
            return a >= b
        case BoundedRange(a), BoundedRange(b):
            return a >= b
        case ((Pure(a) | RandomizedResponse(a)), _):
            epsilon = charge(((little, 1),))
            return epsilon.delta == 0 and epsilon.epsilon is not None and a >= epsilon.epsilon
        case Approximate(a, d), Approximate(b, e):
            return a >= b and d >= e
        case _:
            return False
