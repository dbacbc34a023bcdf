"""The curve of delta over epsilon for each law, in numeric accounting: certified upper and lower values.

The proofs are docs/proofs/accounting.md, sections 6 and 7.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tacit.accounting._laws import (
    ApproximateLoss,
    BoundedRangeLoss,
    CategoricalResponseLoss,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    GaussianLoss,
    GDPLoss,
    GroupLoss,
    LaplaceLoss,
    LossLaw,
    Parts,
    PureLoss,
    RandomizedResponseLoss,
    SampledLoss,
    ShuffledLoss,
    ShuffledResponseLoss,
)
from tacit.accounting.numeric._bracket import Bracket, NotConverged, U, as_float, root
from tacit.accounting.numeric._bulk_curve import bulk_upper
from tacit.accounting.numeric._gaussian import gaussian_curve
from tacit.accounting.numeric._grouped_gaussian import GroupedGaussianMgf
from tacit.accounting.numeric._response_blanket import shuffled_response_delta
from tacit.accounting.numeric._shuffled import shuffled_delta
from tacit.accounting.numeric._sum_facts import gaussian_mu2, largest_loss, mixed, plain, sampled_gaussian

if TYPE_CHECKING:
    from collections.abc import Callable

    from tacit.accounting.numeric._mgf import Reals


class Curve(NamedTuple):
    """Certified bounds on delta at an array of epsilons: 0 above ``high``, 1 - exp(epsilon) below ``low``."""

    upper: Callable[[Reals], Reals]
    lower: Callable[[Reals], Reals]
    low: float
    high: float
    quick: bool = True  # cheap enough for thousands of epsilons
    bulk: Callable[[], Callable[[Reals], Reals]] | None = None  # of upper values, if the curve is not quick


def curve(law: LossLaw, *, add: int) -> Curve:
    """Return the curve of one law that occurs once."""
    if isinstance(law, SampledLoss):
        return sampled_curve(as_float(law.q), curve_of_sum(law.parts, add=add), add=add)
    if isinstance(law, GaussianLoss | GDPLoss | DiscreteGaussianLoss | ApproximateLoss):
        return curve_of_sum(((law, 1),), add=add)
    if isinstance(law, GroupLoss) and (sample := sampled_gaussian(law)) is not None:
        q, mu2 = sample
        group = GroupedGaussianMgf(as_float(q), root(mu2), law.m - add, int(add))
        return Curve(lambda e: group.delta(e, 1.0), lambda e: group.delta(e, -1.0), -math.inf, math.inf)
    return closed_curve(law)


def curve_of_sum(parts: Parts, *, add: int) -> Curve:
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
        mu = root(mu2)
        return Curve(
            lambda e: gaussian_curve(mu, e, 1.0), lambda e: gaussian_curve(mu, e, -1.0), -math.inf, math.inf
        )

    def upper(e: Reals) -> Reals:
        return np.array([both_sides(parts, float(x), add=add).upper for x in np.atleast_1d(e)])

    def lower(e: Reals) -> Reals:
        return np.array([both_sides(parts, float(x), add=add).lower for x in np.atleast_1d(e)])

    high = largest_loss(parts, add=add)
    low = -largest_loss(parts, add=not add)
    return Curve(upper, lower, low, high, quick=False, bulk=lambda: _bulk(parts, add=add))


@lru_cache(maxsize=16)
def _bulk(parts: Parts, *, add: int) -> Callable[[Reals], Reals]:
    curves: list[tuple[Curve, int]] = []
    for law, times in parts:
        one = curve(law, add=add)
        if not (one.quick or isinstance(law, SampledLoss)):  # its own curve is that of a sum
            raise NotConverged
        curves.append((in_bulk(one), times))
    below, high = bulk_upper(curves), largest_loss(parts, add=add)

    def upper(e: Reals) -> Reals:
        """Return 0 from the largest loss on: a lattice that misses it has losses beyond it."""
        found: Reals = np.where(e >= high, 0.0, below(e))
        return found

    return upper


def in_bulk(curve: Curve) -> Curve:
    """Return the curve with upper values that are quick at thousands of epsilons, if there are any."""
    if curve.quick or curve.bulk is None:
        return curve
    try:
        return curve._replace(upper=curve.bulk())
    except NotConverged:
        return curve


def both_sides(parts: Parts, e: float, *, add: int) -> Bracket:
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


def sampled_curve(q: float, inner: Curve, *, add: int) -> Curve:
    """Return the curve of a Poisson sample: (1-q) Q + q P against Q (remove) or the reverse (add), 0 < q < 1.

    Remove: delta(e) = q inner(log(1 + (exp(e) - 1)/q)) above log(1-q). Add: with w = 1 - (1-q) exp(e),
    delta(e) = w inner(log(q exp(e) / w)) below -log(1-q) (Balle, Barthe and Gaboardi 2018; Zhu, Dong and
    Wang 2022). Delta falls in epsilon, so a small step to the left covers the rounding of the inner epsilon.
    """
    gone = math.log1p(-q)

    def remove(bound: Callable[[Reals], Reals], e: Reals, sign: float) -> Reals:
        room = np.expm1(np.minimum(e, 690.0)) / q
        inside = np.log1p(np.maximum(room, -1 + 1e-12))
        slip = 16 * U * (1 + np.abs(inside) + np.abs(room) / np.maximum(1 + room, 1e-12))
        value = q * bound(inside - sign * slip) * (1 + sign * 8 * U)
        rest = (
            -np.expm1(np.minimum(e, 0.0)) * (1 + sign * 8 * U) + max(0.0, sign) * 1e-11 * q
        )  # P >= (1-q) Q below log(1-q)
        found: Reals = np.where(room > -1 + 1e-11, value, rest)
        return found

    def put(bound: Callable[[Reals], Reals], e: Reals, sign: float) -> Reals:
        weight = -np.expm1(np.minimum(e + gone, 1.0))
        safe = np.maximum(weight, 1e-12)
        inside = e + math.log(q) - np.log(safe)
        slip = 16 * U * (1 + np.abs(e) + abs(gone) + abs(math.log(q))) / safe
        value = safe * (1 + sign * slip) * bound(inside - sign * slip)
        found: Reals = np.where(weight > 1e-12, value, max(0.0, sign) * value)
        return found

    form = put if add else remove
    if add:
        low, high = -mixed(q, -inner.low), -mixed(q, -inner.high)
    else:
        low, high = mixed(q, inner.low), mixed(q, inner.high)
    found = Curve(
        lambda e: form(inner.upper, e, 1.0), lambda e: form(inner.lower, e, -1.0), low, high, inner.quick
    )
    if inner.bulk is None:
        return found
    within = inner.bulk
    return found._replace(bulk=lambda: partial(_formed, form, within()))


def _formed(form: Callable[..., Reals], upper: Callable[[Reals], Reals], e: Reals) -> Reals:
    return form(upper, e, 1.0)


def closed_curve(law: LossLaw) -> Curve:
    """Return the curve of a law whose delta has a closed form; raise `NotConverged` for others."""
    match law:
        case RandomizedResponseLoss(epsilon) | PureLoss(epsilon):
            e0 = as_float(epsilon)
            return _between(e0, lambda e: -np.expm1(e - e0) / (1 + math.exp(-e0)))
        case CategoricalResponseLoss(epsilon, k):
            return _between(as_float(epsilon), _categorical(as_float(epsilon), k))
        case LaplaceLoss(scale, s):
            e1 = as_float(s / scale)
            return _between(e1, lambda e: -np.expm1((e - e1) / 2))
        case BoundedRangeLoss(epsilon):
            e2 = as_float(epsilon)
            return _between(e2, lambda e: np.expm1((e - e2) / 2) ** 2 / -math.expm1(-e2))
        case DiscreteLaplaceLoss(scale, s):
            return _between(as_float(s / scale), _discrete_laplace(as_float(scale), as_float(s)))
        case ShuffledLoss(n, epsilon):
            e3 = as_float(epsilon)
            at = shuffled_delta(n, e3)
            return Curve(lambda e: at(e, 1.0), lambda e: at(e, -1.0), -e3, e3, quick=n <= 1000)
        case ShuffledResponseLoss(n, epsilon, k):
            e4 = as_float(epsilon)
            both = shuffled_response_delta(n, e4, k)
            return Curve(lambda e: both(e, 1.0), lambda e: both(e, -1.0), -e4, e4, quick=n <= 1000)
    raise NotConverged


def _between(e0: float, inner: Callable[[Reals], Reals]) -> Curve:
    """Return a curve that is 1 - exp(e) up to -e0, then the formula, and 0 from e0 on."""

    def at(e: Reals, sign: float) -> Reals:
        e = e - sign * 8 * U * (np.abs(e) + e0)
        value = np.where(e <= -e0, -np.expm1(np.minimum(e, 0.0)), inner(np.clip(e, -e0, e0)))
        return np.where(e >= e0, 0.0, value * (1 + sign * 64 * U))

    return Curve(lambda e: at(e, 1.0), lambda e: at(e, -1.0), -e0, e0)


def _categorical(e0: float, categories: int) -> Callable[[Reals], Reals]:
    """Return delta of randomized response with several categories: a large loss, and below 0 also none."""
    high = 1 / (1 + (categories - 1) * math.exp(-e0))
    none = (categories - 2) * math.exp(-e0) * high

    def at(e: Reals) -> Reals:
        found: Reals = -high * np.expm1(e - e0) - none * np.expm1(np.minimum(e, 0.0))
        return found

    return at


def _discrete_laplace(scale: float, s: float) -> Callable[[Reals], Reals]:
    """Return delta of discrete Laplace noise: the best set is x <= X, the last with (s - 2X)/scale > e."""

    def at(e: Reals) -> Reals:
        last = np.clip(np.ceil((s - e * scale) / 2) - 1, 0, s)
        best = np.zeros_like(e)
        for x in (
            last - 1,
            last,
            last + 1,
        ):  # rounding may miss the best set by one; delta is the largest over all sets
            x = np.clip(x, 0, s)
            head = -np.expm1(e - (s - x) / scale) - math.exp(-1 / scale) * np.expm1(-x / scale)
            best = np.maximum(best, head / (1 + math.exp(-1 / scale)))
        return best

    return at
