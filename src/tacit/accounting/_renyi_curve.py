"""The Renyi curve of a sum of laws in accounting: exact upper values at any orders, for both directions.

The values hold for the same decomposition as epsilon, delta and rho of the charge (`_charge.py`): for the
part that remains when the charge's delta is split off. `docs/proofs/filters.md` proves each rule.

**Shuffled reports**, in exact arithmetic. Given that C other reports hide the unit's report, the pair of
Feldman, McMillan and Talwar (2022) is ``(1 + k Z)`` against ``(1 - k Z)`` times the law of Z, the mean of C +
1 random signs, with k = tanh(epsilon0 / 2). So the moment is ``E[(1 + k Z) ((1 + k Z) / (1 - k Z))^(a-1)]``.
This is a power series in Z with coefficients that are not negative, and the moments of Z are known.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

from tacit.accounting._charge import charge, largest_ratio, mean_runs
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
from tacit.accounting._zcdp import (
    bounded_range_divergence,
    categorical_divergence,
    discrete_laplace_divergence,
    laplace_divergence,
    pure_divergence,
)
from tacit.accounting.numeric import (
    exp_down,
    exp_up,
    log_down,
    log_up,
    mixture_log_moment,
    round_down,
    round_up,
)

_TERMS = 32  # even powers of Z that are read one by one
_ZERO = Fraction(0)
_COMPOUND = SampledLoss | ShuffledLoss | ShuffledResponseLoss | GroupLoss | ParallelLoss | BestOfLoss
_LARGEST_GROUP = 16  # a larger one needs orders that are too high to be of use
_LARGEST_VALUE = 10**4  # beyond it, a sample helps no more
_LARGEST_SUM = 4096  # terms of a binomial sum that are added up


@lru_cache(maxsize=1024)
def shuffled_divergence(n: int, epsilon0: Fraction, order: Fraction) -> Fraction | None:
    """Return an upper value of the Renyi divergence of n shuffled reports; None if it is not of use.

    Examples
    --------
    >>> value = shuffled_divergence(10_000, Fraction(1), Fraction(8))
    >>> 9.2e-4 < float(value) < 9.3e-4
    True
    """
    if n < 2 or epsilon0 > 100 or (order - 1) * epsilon0 > 1000:
        return None
    r = exp_down(-epsilon0)
    k = round_up((1 - r) / (1 + r))  # at or above tanh(epsilon0 / 2)
    if k >= 1:
        return None
    powers = _coefficients(order)
    moments = _moments(n, epsilon0)
    moment, square = Fraction(1), Fraction(1)
    rest = _at_one(k, order) - 1  # what the series has left at Z = 1, where every power is largest
    for j in range(1, _TERMS):
        square *= k * k
        term = powers[2 * j] * square
        moment += term * moments[j]
        rest -= term
    moment += (
        max(Fraction(0), rest) * moments[_TERMS]
    )  # moments fall, so rounded-up terms stay on the safe side
    return round_up(log_up(moment) / (order - 1))


def _coefficients(order: Fraction) -> list[Fraction]:
    """Return the power series of (1 + y) ((1 + y) / (1 - y))^(order - 1), rounded up.

    The second factor f has ``(1 - y^2) f' = 2 (order - 1) f``, so its coefficients follow from the earlier
    ones, and none is negative.
    """
    z = order - 1
    f = [Fraction(1), 2 * z]
    for j in range(1, 2 * _TERMS):
        f.append(round_up((2 * z * f[j] + (j - 1) * f[j - 1]) / (j + 1)))
    return [f[0], *(f[j] + f[j - 1] for j in range(1, len(f)))]


def _at_one(k: Fraction, order: Fraction) -> Fraction:
    """Return the even part of the series at Z = 1, rounded up."""
    odds = log_up((1 + k) / (1 - k))
    moment = (1 + k) * exp_up((order - 1) * odds)
    return (moment + (1 - k) * exp_up(-(order - 1) * log_down((1 + k) / (1 - k)))) / 2


@lru_cache(maxsize=256)
def _moments(n: int, epsilon0: Fraction) -> list[Fraction]:
    """Return upper values of E[Z^(2j)] for j = 0, 1, ...

    Given C, the second moment is 1/(C+1), and its mean is (1 - (1-p)^n) / (n p) with p = exp(-epsilon0). The
    others fall as C grows (the mean of more signs is smaller in the convex order). So with cuts c_0 = 0 < c_1
    < ..., ``E[g(C)] <= g(c_last) + sum of (g(c_i) - g(c_(i+1))) P(C < c_(i+1))``.
    """
    p = exp_down(-epsilon0)
    mean = (n - 1) * p
    cuts = _cuts(mean)
    at = [_moments_of_signs(cut + 1) for cut in cuts]
    chances = [min(Fraction(1), _below(mean, Fraction(cut))) for cut in cuts]
    moments = [Fraction(1), min(Fraction(1), 1 / (n * p))]
    for j in range(2, _TERMS + 1):
        value = at[-1][j]
        for i in range(len(cuts) - 1):
            value += (at[i][j] - at[i + 1][j]) * chances[i + 1]
        moments.append(min(moments[-1], round_up(value)))
    return moments


def _cuts(mean: Fraction) -> list[int]:
    """Return whole numbers from 0 to the mean, denser near it."""
    deviation = math.sqrt(mean)
    steps = (
        mean - Fraction(t * deviation) for t in (20, 16, 13, 10, 8, 7, 6, 5, 4, 3.5, 3, 2.5, 2, 1.5, 1, 0.5)
    )
    return sorted({0, int(mean), *(int(step) for step in steps if step > 0)})


def _moments_of_signs(m: int) -> list[Fraction]:
    """Return E[Z^(2j)] for the mean Z of m random signs, from the cumulants of one sign.

    Examples
    --------
    >>> _moments_of_signs(2)[:3]
    [Fraction(1, 1), Fraction(1, 2), Fraction(1, 2)]
    """
    sums = [1]
    for j in range(1, _TERMS + 1):
        terms = (math.comb(2 * j - 1, 2 * i - 1) * _SIGN[i] * sums[j - i] for i in range(1, j + 1))
        sums.append(m * sum(terms))
    return [Fraction(total, m ** (2 * j)) for j, total in enumerate(sums)]


def _sign_cumulants() -> list[int]:
    """Return the even cumulants of one random sign, all of whose even moments are 1."""
    cumulants = [0]
    for j in range(1, _TERMS + 1):
        cumulants.append(1 - sum(math.comb(2 * j - 1, 2 * i - 1) * cumulants[i] for i in range(1, j)))
    return cumulants


_SIGN = _sign_cumulants()


def _below(mean: Fraction, cut: Fraction) -> Fraction:
    """Return an upper value of P(C < cut): exp(-mean + cut + cut log(mean/cut)), by Chernoff's bound."""
    if cut >= mean:
        return Fraction(1)
    return exp_up(cut - mean + cut * log_up(mean / cut)) if cut else exp_up(-mean)


def implied_divergence(epsilon: Fraction | None, rho: Fraction | None, order: Fraction) -> Fraction | None:
    """Return what a finite epsilon or rho says about a Renyi divergence; None: nothing."""
    bounds = [] if rho is None else [order * rho]
    bounds += [] if epsilon is None else [pure_divergence(epsilon, order)]
    return min(bounds, default=None)


def divergence_of_sum(parts: Parts, order: Fraction) -> Fraction | None:
    """Return an upper value of the Renyi divergence of a sum; None if it is not finite."""
    values = [(_divergence(law, order), times) for law, times in parts]
    if any(value is None for value, _ in values):
        return None
    return sum((times * value for value, times in values if value is not None), _ZERO)


@lru_cache(maxsize=16384)
def _divergence(law: LossLaw, order: Fraction) -> Fraction | None:
    """Return the smaller of the law's own value and what its epsilon and rho imply."""
    if not isinstance(law, _COMPOUND):
        return _own_divergence(law, order)  # a closed form is never larger
    upper = charge(((law, 1),))
    bounds = [implied_divergence(upper.epsilon, upper.rho, order), _own_divergence(law, order)]
    return min((value for value in bounds if value is not None), default=None)


def _own_divergence(law: LossLaw, order: Fraction) -> Fraction | None:
    match law:
        case GaussianLoss(sigma, s) | DiscreteGaussianLoss(sigma, s):
            return order * (s / sigma) ** 2 / 2
        case DiscreteGaussianVectorLoss(sigma, squared):
            return order * squared / (2 * sigma**2)
        case GDPLoss(mu):
            return order * mu**2 / 2
        case ZCDPLoss(rho):
            return order * rho
        case RenyiLoss(curve):
            return _on_chords(((Fraction(1), _ZERO), *curve), order)
        case LaplaceLoss(scale, s):
            return laplace_divergence(s / scale, order)
        case DiscreteLaplaceLoss(scale, s):
            return discrete_laplace_divergence(scale, s, order)
        case PureLoss(epsilon) | RandomizedResponseLoss(epsilon) | ApproximateLoss(epsilon, _):
            return pure_divergence(epsilon, order)
        case BoundedRangeLoss(epsilon):
            return bounded_range_divergence(epsilon, order)
        case SampledLoss(q, parts):
            return _sampled(q, parts, order)
        case CategoricalResponseLoss(epsilon, categories):
            return categorical_divergence(epsilon, categories, order)
        case ShuffledLoss(n, epsilon0) | ShuffledResponseLoss(n, epsilon0, _):
            return shuffled_divergence(n, epsilon0, order)
        case GroupLoss(m, parts):
            return _grouped(m, parts, order)
        case ParallelLoss(branches):
            return _largest_divergence(branches, order)
        case BestOfLoss():
            return _selected(law, order)
        case _:
            return None


def _on_chords(curve: tuple[tuple[Fraction, Fraction], ...], order: Fraction) -> Fraction | None:
    """Return the value between known orders: (order - 1) D is convex, so its chords lie above it."""
    for (low, less), (high, more) in pairwise(curve):
        if low <= order <= high:
            share = (order - low) / (high - low)
            return ((1 - share) * (low - 1) * less + share * (high - 1) * more) / (order - 1)
    return None


def _largest_divergence(branches: tuple[Parts, ...], order: Fraction) -> Fraction | None:
    """Return the largest value of several sums; None if one of them is not finite."""
    values = [divergence_of_sum(branch, order) for branch in branches]
    finite = [value for value in values if value is not None]
    return max(finite) if len(finite) == len(values) else None


# -- the best of several runs


def _selected(law: BestOfLoss, order: Fraction) -> Fraction | None:
    """Return the value of one run, plus what the number of runs and the choice among them add."""
    divergence = _largest_divergence(law.candidates, order)
    penalty = _poisson_choice(law, order) if law.runs == "poisson" else _choice(law)
    if divergence is None or penalty is None:
        return None
    moment = (order - 1) * (divergence + penalty) + log_up(mean_runs(law.runs, law.parameter))
    if law.runs == "poisson":  # with probability exp(-mean) nothing is run
        moment += log_up(1 + exp_up(-law.parameter - moment))
    return round_up(max(_ZERO, moment / (order - 1)))


@lru_cache(maxsize=1024)
def _choice(law: BestOfLoss) -> Fraction | None:
    return largest_ratio(law.runs, law.parameter, lambda order: _largest_divergence(law.candidates, order))


def _poisson_choice(law: BestOfLoss, order: Fraction) -> Fraction:
    """Return the mean number of runs times delta(log(a / (a - 1))) of one run."""
    from tacit.accounting._worst_case import delta_bounds  # it reads this module's curves

    log_ratio = round_down(log_down(order / (order - 1)))
    return law.parameter * max(Fraction(delta_bounds(one, log_ratio).upper) for one in law.candidates)


# -- groups


def _grouped(m: int, parts: Parts, order: Fraction) -> Fraction | None:
    """Return the value of m units together, by halves: one half of the steps, then the other.

    By the inequality of Cauchy and Schwarz, ``D_a(P|R) <= (a - 1/2)/(a - 1) D_2a(P|Q) + D_(2a-1)(Q|R)``
    (Mironov 2017, proposition 11).
    """
    if m == 1:
        return divergence_of_sum(parts, order)
    if m > _LARGEST_GROUP or charge(parts).delta:
        return None
    half = _grouped(m // 2, parts, 2 * order)
    second = _grouped(m - m // 2, parts, 2 * order - 1)
    if half is None or second is None:
        return None
    return (order - Fraction(1, 2)) / (order - 1) * half + second


# -- samples


def _sampled(q: Fraction, parts: Parts, order: Fraction) -> Fraction | None:
    """Return the value of a Poisson sample, from whole orders; None if the sum would be too long."""
    if q == 1:
        return divergence_of_sum(parts, order)
    low = order.numerator // order.denominator
    less = _ZERO if low == 1 else _sampled_whole(q, parts, low)
    more = less if order == low else _sampled_whole(q, parts, low + 1)
    if less is None or more is None:
        return None
    value = _on_chords(((Fraction(low), less), (Fraction(low + 1), more)), order)
    return None if value is None else round_up(value)


@lru_cache(maxsize=4096)
def _sampled_whole(q: Fraction, parts: Parts, order: int) -> Fraction | None:
    """Return the larger of both directions at a whole order.

    Removed unit: the binomial sum. Added unit: for symmetric pairs no more than that. For others
    ``(1 + x)^(1-a) <= 1 - (a-1) x + a (a-1)/2 x^2 / (1-q)^(a+1)`` for x = q (P/Q - 1) >= -q, whose mean under
    Q is 0 and whose square has the mean q^2 (exp(D_2) - 1).
    """
    if order > _LARGEST_SUM:
        return None
    logs = [_ZERO, _ZERO]
    for k in range(2, order + 1):
        value = divergence_of_sum(parts, Fraction(k))
        if value is None or value > _LARGEST_VALUE:
            return None
        logs.append((k - 1) * value)
    removed = mixture_log_moment(q, order, logs) / (order - 1)
    if _is_symmetric(parts):
        return removed
    try:
        excess = order * (order - 1) * q**2 * (exp_up(logs[2]) - 1) / 2
        bound = log_up(1 + excess * exp_up((order + 1) * log_up(1 / (1 - q)))) / (order - 1)
    except OverflowError:
        bound = logs[order] / (order - 1)
    return max(removed, min(bound, logs[order] / (order - 1)))


def _is_symmetric(parts: Parts) -> bool:
    """Return whether the values are those of pairs whose two laws can be exchanged by a reflection."""
    for law, _ in parts:
        match law:
            case GaussianLoss() | DiscreteGaussianLoss() | GDPLoss() | LaplaceLoss() | DiscreteLaplaceLoss():
                continue
            case PureLoss() | RandomizedResponseLoss() | CategoricalResponseLoss() | ApproximateLoss():
                continue
            case DiscreteGaussianVectorLoss():
                continue
            case ParallelLoss(branches) if all(_is_symmetric(branch) for branch in branches):
                continue
            case _:
                return False
    return True
