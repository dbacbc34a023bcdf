"""Numeric accounting's bounds on epsilon and delta for any sum of laws, by the accountant that fits it.

| content | accountant |
| --- | --- |
| Gaussian, GDP | closed form |
| one law, once | its own curve |
| randomized response, lattice noise; Laplace and bounded range if no part is smooth | lattice |
| sums with a Gaussian part, sampled Gaussians, many Laplace | Fourier inversion |
| losses without a common lattice or a smooth part | Fourier inversion, with a tiny Gaussian added |
| a part known only by rho or a Renyi curve; sums for which the others do not converge | Renyi divergences |

Infinite loss is kept apart: delta = m + (1 - m) delta_rest. Both directions are read. Branches and groups are
resolved before they come here. The proofs are in docs/proofs/accounting.md.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from tacit.accounting._laws import (
    BoundedRangeLoss,
    CategoricalResponseLoss,
    GroupLoss,
    LaplaceLoss,
    LossLaw,
    Parts,
    PureLoss,
    SampledLoss,
    ShuffledLoss,
    ShuffledResponseLoss,
    canonical,
)
from tacit.accounting.numeric._accountant_choice import alike, answer, mirrored, served
from tacit.accounting.numeric._bracket import Bracket, NotConverged, U, larger, root
from tacit.accounting.numeric._curve import both_sides
from tacit.accounting.numeric._factors import factors_of
from tacit.accounting.numeric._gaussian import gaussian_tail
from tacit.accounting.numeric._infinite_loss import can_be_infinite, split_infinite_loss
from tacit.accounting.numeric._lattice import lattice_accountant
from tacit.accounting.numeric._lattice_laws import on_lattice
from tacit.accounting.numeric._loss_sum import log_moment, peak, spread, steer
from tacit.accounting.numeric._sum_facts import exact_largest_loss, gaussian_mu2, largest_loss, plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from tacit.accounting.numeric._loss_sum import LossSum
    from tacit.accounting.numeric._mgf import Reals

_FIRST = np.array([1e-9])  # a tilt at which the loss has about its own mean and spread
_NEARLY = 1.5  # difference of log-moments
_SPAN = np.exp(np.linspace(math.log(0.3), math.log(60.0), 16))  # tilts, times epsilon


def delta_bounds(parts: Parts, epsilon: float, *, lower: bool = True) -> Bracket:
    """Return certified bounds on delta at epsilon, the larger of both directions (`answer` has `lower`)."""
    worst = Bracket(0.0, 0.0, "closed form")
    for add in _directions(parts):
        mirror = _from_other_side(mirrored, parts, epsilon, add=add)
        if mirror > worst.upper:
            mirror = min(mirror, _from_other_side(alike, parts, epsilon, add=add))
        if mirror <= worst.upper:
            continue
        found = delta_of(parts, epsilon, add=add, lower=lower)
        worst = larger(worst, found._replace(upper=min(found.upper, mirror)))
    return Bracket(min(worst.lower, worst.upper), worst.upper, worst.method)


def epsilon_bounds(parts: Parts, delta: float, *, lower: bool = True) -> Bracket:
    """Return certified bounds on the smallest epsilon >= 0 with delta(epsilon) <= delta, both directions."""
    worst = Bracket(0.0, 0.0, "closed form")
    for add in _directions(parts):
        if worst.upper == math.inf or (worst.upper > 0 and _covers(parts, worst.upper, delta, add=add)):
            continue
        worst = larger(worst, _epsilon(parts, delta, add=add, lower=lower))
    return Bracket(min(worst.lower, worst.upper), worst.upper, worst.method)


def loss_exceeds(parts: Parts, t: float) -> float:
    """Return an upper value of P(L > t) of the stated pairs, the larger of both directions."""
    return max(_tail(parts, t, add=add) for add in _directions(parts))


def renyi_divergence(parts: Parts, order: float) -> float:
    """Return an upper value of the Renyi divergence of this order, the larger of both directions."""
    if not order > 1 or can_be_infinite(parts):
        return math.inf
    worst = 0.0
    for add in _directions(parts):
        try:
            loss_sum, leak, *_ = factors_of(_bounded(plain(parts)), add=add, bounded=True)
            worst = max(
                worst, math.inf if leak else log_moment(loss_sum, order - 1) / (order - 1) * (1 + 8 * U)
            )
        except NotConverged:
            return math.inf
    return worst


def _bounded(parts: Parts) -> Parts:
    """Replace laws without moments by laws with moments that dominate them."""
    laws: list[tuple[LossLaw, int]] = []
    for law, times in parts:
        match law:
            case ShuffledLoss(_, epsilon):
                laws.append((PureLoss(epsilon), times))
            case ShuffledResponseLoss(_, epsilon, k):
                laws.append((CategoricalResponseLoss(epsilon, k), times))
            case SampledLoss(_, inner) if (
                not math.isfinite(largest_loss(plain(inner), add=False)) and gaussian_mu2(inner) is None
            ):
                laws.extend((one, times * often) for one, often in _bounded(plain(inner)))
            case _:
                laws.append((law, times))
    return canonical(laws)


def _directions(parts: Parts) -> tuple[int, ...]:
    """Return the directions to read (how many units are added); they differ only if a part is sampled."""
    units = max((law.m for law, _ in parts if isinstance(law, GroupLoss)), default=1)
    sampled = any(
        isinstance(law, GroupLoss) or (isinstance(law, SampledLoss) and law.q < 1) for law, _ in plain(parts)
    )
    return tuple(range(units + 1)) if sampled else (0,)


def delta_of(parts: Parts, e: float, *, add: int, lower: bool = True) -> Bracket:
    """Return bounds on delta at any real epsilon in one direction."""
    parts = plain(parts)
    add = add and len(_directions(parts)) > 1
    if e < 0:
        return both_sides(parts, e, add=add)
    rest, least, most, good = split_infinite_loss(parts, add=add)
    if not rest or e >= largest_loss(rest, add=add):
        found = Bracket(0.0, 0.0, "closed form")
    else:
        found = answer(rest, lambda accountant: accountant.delta(e), add=add, lower=lower)
    upper = min(1.0, found.upper)
    upper = min(1.0, (most + (1 - most) * upper) * (1 + 8 * U)) if most else upper
    return Bracket(max(0.0, (least + good * found.lower) * (1 - 8 * U)), upper, found.method)


def _epsilon(parts: Parts, delta: float, *, add: int, lower: bool) -> Bracket:
    parts = plain(parts)
    rest, least, most, good = split_infinite_loss(parts, add=add)
    if delta < most:
        return Bracket(math.inf if delta < least else 0.0, math.inf, "closed form")
    sup = largest_loss(rest, add=add)
    target = (delta - most) / (1 - most) * (1 - 8 * U) if most else delta
    if target <= 0 or not rest:
        return Bracket(0.0, sup, "basic composition" if rest else "closed form")
    found = answer(rest, lambda accountant: accountant.epsilon(target), add=add, lower=lower)
    if most:
        looser = (delta - least) / good * (1 + 8 * U) if good > 0 else 1.0
        low = 0.0
        if looser < 1:
            low = answer(rest, lambda accountant: accountant.epsilon(looser), add=add, lower=lower).lower
        found = Bracket(min(low, found.upper), found.upper, found.method)
    return Bracket(found.lower, sup, "basic composition") if sup < found.upper else found


def _covers(parts: Parts, e: float, delta: float, *, add: int) -> bool:
    """Return whether delta(e) <= delta in this direction: by what is known, or else by reading delta."""
    return (
        _from_other_side(mirrored, parts, e, add=add) <= delta
        or _surely(parts, e, delta, add=add)
        or _from_other_side(alike, parts, e, add=add) <= delta
        or delta_of(parts, e, add=add, lower=False).upper <= delta
    )


def _from_other_side(read: Callable[[Parts, float], float], parts: Parts, e: float, *, add: int) -> float:
    """Return an upper value of delta(e) if one unit is added, from the other direction; or infinity."""
    if add != 1 or any(isinstance(law, GroupLoss) for law, _ in parts) or can_be_infinite(parts):
        return math.inf
    try:
        return read(plain(parts), e)
    except NotConverged:
        return math.inf


def _surely(parts: Parts, e: float, delta: float, *, add: int) -> bool:
    """Return whether Chernoff's bound alone certifies delta(e) <= delta."""
    rest, _, most, _ = split_infinite_loss(plain(parts), add=add)
    try:
        loss_sum, leak, *_ = factors_of(rest, add=add)
        if not (loss_sum.factors and e > 1e-280):
            return False
        line = served(rest, e) if add == 1 else None
        if line is not None and abs(log_moment(loss_sum, line.choice.c) - line.log_norm) < _NEARLY:
            return False  # both directions are nearly alike, and Chernoff's bound is too loose for that
        c, bound, width, normal = _best_tilt(loss_sum, _SPAN / e, e)
        if not bound < math.log(delta):
            if normal > math.log(delta):
                return False  # not even a normal loss of this spread is that unlikely
            c = _best_tilt(loss_sum, np.exp(np.linspace(-5.0, 9.0, 36)) / width, e)[0]
        exponent = log_moment(loss_sum, c) - c * e + peak(c)
    except NotConverged:
        return False
    bound = math.exp(min(0.0, exponent + 16 * U * (4 + abs(exponent) + c * e)))
    return most + leak + bound <= delta * (1 - 1e-12)


def _best_tilt(loss_sum: LossSum, c: Reals, e: float) -> tuple[float, float, float, float]:
    """Return the c with the smallest Chernoff bound on delta(e), and about the logarithm of that bound.

    With them come the spread of the loss and the bound for a normal loss of this spread.
    """
    log_m, mean, bend = steer(loss_sum, np.concatenate([_FIRST, c]))
    bounds = log_m[1:] - c * e + c * np.log(c / (1 + c)) - np.log1p(c)
    at = int(np.where(np.isfinite(bounds), bounds, np.inf).argmin())
    width, away = math.sqrt(float(bend[0])) + 1e-150, max(e - float(mean[0]), 0.0)
    tilt = (away + math.hypot(away, 2 * width)) / 2 / width / width
    normal = tilt * (tilt * width * width / 2 - away) + peak(tilt) if 0 < tilt < 1e300 else -math.inf
    return float(c[at]), float(bounds[at]), width, normal


def _tail(parts: Parts, t: float, *, add: int) -> float:
    """Return an upper value of P(L > t) = delta(t) - delta'(t), by convexity in exp(t)."""
    parts = plain(parts)
    rest, _, most, _ = split_infinite_loss(parts, add=add)
    if not rest:
        return min(1.0, most + float(t < 0))
    top = exact_largest_loss(rest)
    if t >= largest_loss(rest, add=add) or (top is not None and Fraction(repr(t)) >= top):
        return min(1.0, most)
    mu2 = gaussian_mu2(rest)
    finite = _slope_tail(rest, t, add=add) if mu2 is None else gaussian_tail(root(mu2), t)
    return min(1.0, (most + (1 - most) * finite) * (1 + 8 * U))


def _slope_tail(rest: Parts, t: float, *, add: int) -> float:
    if all(on_lattice(law) and not isinstance(law, LaplaceLoss | BoundedRangeLoss) for law, _ in rest):
        try:
            exact = lattice_accountant(rest).tail(t)
        except NotConverged:
            exact = None
        if exact is not None:
            return exact
    here = both_sides(rest, t, add=add)
    step = 1e-4 * spread(factors_of(rest, add=add).loss_sum)
    best = 1.0
    for _ in range(3):
        left = both_sides(rest, t - step, add=add)
        best = min(best, here.upper + (left.upper - here.lower) / -math.expm1(-step) * (1 + 16 * U))
        step *= 8
    return best
