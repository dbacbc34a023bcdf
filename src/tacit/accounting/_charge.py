"""The charge in accounting for a sum of laws: exact upper values of epsilon, delta and rho.

**Private selection**: a random number of runs, of which only the best is shown. Papernot and Steinke (2022)
bound the Renyi divergence of the result by that of one run. `docs/proofs/costs.md` has the argument.

**Shares of discrete Gaussian noise**: how far their sum is from one discrete Gaussian. Several parties add
discrete Gaussian noise of the same sigma each. The sum is not a discrete Gaussian, but its probabilities are
at least (1 - leak) times those of one with the total variance. `docs/proofs/costs.md` proves it, and that a
discrete Gaussian holds nearly all of a rounded one.

`docs/proofs/costs.md` proves each rule of the charge.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple

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
from tacit.accounting._zcdp import categorical_rho, discrete_laplace_rho, laplace_rho, pure_rho
from tacit.accounting.numeric import exp_down, exp_up, log_down, log_up, round_up
from tacit.bisection import halved
from tacit.errors import TacitError
from tacit.fixes import Set
from tacit.parameters import RealNumber

if TYPE_CHECKING:
    from collections.abc import Callable


#: The Renyi orders at which the curve of a selection is read.
ORDERS: Final[tuple[Fraction, ...]] = (
    *(Fraction(k, 20) for k in range(21, 41)),
    *(Fraction(k, 4) for k in range(9, 32)),
    *(Fraction(k) for k in range(8, 65)),
    *(Fraction(math.floor(64 * 1.15**k)) for k in range(1, 53)),
)
_ZERO = Fraction(0)


def tail_power(runs: str) -> int:
    """Return 1 + eta of a law of the number of runs (truncated negative binomial with parameter eta).

    It is 1 for the logarithmic law and 2 for the geometric one.

    Examples
    --------
    >>> tail_power("logarithmic"), tail_power("geometric")
    (1, 2)
    """
    return 1 + (runs == "geometric")


def mean_runs(runs: str, parameter: Fraction) -> Fraction:
    """Return the mean number of runs, rounded up; the parameter is gamma, or the mean of a Poisson law.

    Examples
    --------
    >>> round(float(mean_runs("logarithmic", Fraction("0.02692"))), 2)
    10.0
    >>> mean_runs("geometric", Fraction(1, 10))
    Fraction(10, 1)
    """
    match runs:
        case "poisson":
            return parameter
        case "geometric":
            return 1 / parameter
        case _:
            low = log_down(1 / parameter)  # 0 where gamma is too near to 1
            upper = 1 / parameter  # since log(1 / gamma) >= 1 - gamma
            return min(upper, round_up((1 / parameter - 1) / low)) if low > 0 else upper


def gamma_for(runs: str, mean: Fraction) -> Fraction:
    """Return the gamma whose mean number of runs is the given one, to six digits for the logarithmic law.

    Examples
    --------
    >>> [float(gamma_for("logarithmic", Fraction(mean))) for mean in (5, 10, 50)]
    [0.0699203, 0.0269183, 0.00352944]
    """
    RealNumber(above=1, instead=10, why="it is the mean of a random number of runs").read("runs", mean)
    if runs == "geometric":
        return 1 / mean
    target = float(min(mean, Fraction(10**12)))
    # bounds on the logarithm of gamma; the mean falls as gamma grows
    low, high = halved(lambda log: math.expm1(-log) / -log < target, -40.0, 0.0, times=100)
    return Fraction(f"{math.exp((low + high) / 2):.6g}")


def largest_ratio(
    runs: str, gamma: Fraction, curve: Callable[[Fraction], Fraction | None]
) -> Fraction | None:
    """Return the least bound over orders b: (1 + eta) ((1 - 1/b) D_b + log(1/gamma) / b); None if not finite.

    It bounds how much more often one dataset stops at a given quality than its neighbour, in logarithms.
    """
    log_inverse = log_up(1 / gamma)
    best: Fraction | None = None
    for order in ORDERS:
        value = curve(order)
        if value is None:
            break
        total = tail_power(runs) * ((1 - 1 / order) * value + log_inverse / order)
        if best is not None and total > 2 * best:
            break  # the first term only grows
        best = total if best is None else min(best, total)
    return best


def selected_epsilon(runs: str, parameter: Fraction, epsilon: Fraction) -> Fraction:
    """Return the pure epsilon of the best of several runs that are epsilon-DP each.

    Examples
    --------
    >>> selected_epsilon("logarithmic", Fraction(1, 10), Fraction(1))
    Fraction(2, 1)
    """
    if runs != "poisson":
        return (1 + tail_power(runs)) * epsilon
    small = exp_down(-epsilon)
    return round_up(epsilon + parameter * (1 - small) / (1 + small))


_TWO_PI_SQUARED = Fraction(19_739_208_802, 10**9)  # at or below 2 pi^2


def share_leak(sigma: Fraction, shares: int, dimension: int) -> Fraction:
    """Return a leak such that the sum of shares has at least (1 - leak) of each probability of one Gaussian.

    The share k + 1 joins k others. With x = exp(-2 pi^2 sigma^2 k / (k+1)), each probability of the sum is at
    least (1 - 2s) / (1 + 2s) >= 1 - 4s times that of one discrete Gaussian, s = x / (1 - x). Each number of
    the vector counts once.

    Examples
    --------
    >>> float(share_leak(Fraction(2), 10, 1)) < 1e-16
    True
    >>> share_leak(Fraction(20), 10, 10**6) == Fraction(1, 10**60)
    True
    """
    leak = Fraction(0)
    for k in range(1, shares):
        far = exp_up(-_TWO_PI_SQUARED * sigma**2 * Fraction(k, k + 1))
        leak += 4 * far / (1 - far)
    return min(Fraction(1), round_up(dimension * leak, digits=3)) if leak else leak


def rounded_within(sigma: Fraction, shares: int, dimension: int) -> tuple[Fraction, Fraction] | None:
    """Return a sigma and a leak: the sum of shares is rounded Gaussian noise of it, but for the leak.

    With v = sigma'^2, the quotient of a rounded Gaussian and a discrete Gaussian of variance w is, at every
    whole number, at most sqrt(w/v) (1 + 2x/(1-x)) (1 - 1/(24v) + 1/(640v^2)), x = exp(-2 pi^2 w), provided
    that v^2/(v - 1/12) <= w. None stands for noise that is too narrow.

    Examples
    --------
    >>> spread, leak = rounded_within(Fraction(2**20), 9, 1000)
    >>> round(float(spread / 2**20), 9), float(leak) < 1e-23
    (3.0, True)
    """
    total = shares * sigma**2
    if total < 1:
        return None
    min_variance = total - Fraction(1, 12) - 1 / (72 * total)
    spread = Fraction(math.isqrt(math.floor(min_variance * 2**128)), 2**64)
    v = spread**2
    if v <= Fraction(1, 2) or v * v > total * (v - Fraction(1, 12)):
        return None
    far = exp_up(-_TWO_PI_SQUARED * total)
    root = (1 + total / v) / 2  # at or above the square root
    ratio = root * (1 + 2 * far / (1 - far)) * (1 - 1 / (24 * v) + 1 / (640 * v * v))
    own_leak = max(Fraction(0), dimension * (1 - 1 / ratio))
    leak = round_up(own_leak, digits=3) + share_leak(sigma, shares, dimension)
    return None if leak >= 1 else (spread, leak)


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
        upper = _charge(law)
        epsilon = None if epsilon is None or upper.epsilon is None else epsilon + times * upper.epsilon
        rho = None if rho is None or upper.rho is None else rho + times * upper.rho
        delta += times * upper.delta
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
    delta_of_all = min(Fraction(1), mean_runs(runs, parameter) * delta)
    if epsilon is None:
        return UpperCharge(None, delta_of_all, None)
    best = selected_epsilon(runs, parameter, epsilon)
    return UpperCharge(best, delta_of_all, pure_rho(best))


def _largest(values: list[Fraction | None]) -> Fraction | None:
    finite = [value for value in values if value is not None]
    return max(finite) if len(finite) == len(values) else None


def _charge_sampled(q: Fraction, inner: UpperCharge) -> UpperCharge:
    """Sample a charge: (log(1 + q (e^epsilon - 1)), q delta), and never more rho than without the sample.

    If epsilon is infinite, the part that is rho-zCDP keeps its weight 1 - delta: a mixture of a pair with
    itself is no further apart than the pair, because Renyi divergence is quasi-convex.
    """
    if inner.epsilon is None:
        return inner
    epsilon = sampled_epsilon(q, inner.epsilon)
    rho = pure_rho(epsilon)
    if inner.delta == 0 and inner.rho is not None:
        rho = min(rho, inner.rho)
    return UpperCharge(epsilon, q * inner.delta, rho)


def _charge_group(m: int, upper: UpperCharge) -> UpperCharge:
    """Take m steps: m epsilon, m^2 rho (Bun and Steinke 2016) and delta (1 + e^epsilon + ...)."""
    if upper.delta == 0:
        epsilon = None if upper.epsilon is None else m * upper.epsilon
        rhos = [] if upper.rho is None else [m * m * upper.rho]
        rhos += [] if epsilon is None else [pure_rho(epsilon)]
        return UpperCharge(epsilon, _ZERO, min(rhos, default=None))
    nothing = UpperCharge(None, Fraction(1), None)
    if upper.epsilon is None:
        return nothing
    try:
        delta = upper.delta * _geometric(m, upper.epsilon)
    except OverflowError:
        return nothing
    return nothing if delta >= 1 else UpperCharge(m * upper.epsilon, delta, pure_rho(m * upper.epsilon))


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


def too_little_noise(sigma: Fraction) -> TacitError:
    """Refuse shares that are too narrow for `rounded_within`."""
    return TacitError(
        "no-guarantee",
        f"shares of discrete Gaussian noise with sigma {float(sigma):.6g} do not add up to such noise",
        why="each share must spread over several grid steps",
        fix=Set(sigma=20),
    )
