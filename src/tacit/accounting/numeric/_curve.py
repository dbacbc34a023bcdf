"""The curve of delta over epsilon, in numeric accounting: certified values for a law, upper ones for a sum.

Laws have certified upper and lower values (docs/proofs/accounting.md, sections 6 and 7).

Sums have upper values at thousands of epsilons at once. A sample of a sum needs the whole curve of the sum.
Each law becomes a finite pair on one lattice. For a tilt c, one FFT composes all of them. On a lattice of N
points and period T it returns the masses A(l) = sum_n P(L = l + n T) exp(c n T), whose aliases are positive,
so every sum over them is an upper value. A dozen tilts cover all epsilons of interest, and the smallest value
counts. The proof is docs/proofs/accounting.md, section 7.
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
from tacit.accounting.numeric._arithmetic import Bracket, NotConverged, U, as_float, root
from tacit.accounting.numeric._atoms import Atoms, connect_dots
from tacit.accounting.numeric._gaussian import GroupedGaussianMgf, gaussian_curve
from tacit.accounting.numeric._mgf import LossSum, steer
from tacit.accounting.numeric._quadrature import dot
from tacit.accounting.numeric._shuffled import shuffled_delta, shuffled_response_delta
from tacit.accounting.numeric._sum_facts import gaussian_mu2, largest_loss, mixed, plain, sampled_gaussian

if TYPE_CHECKING:
    from collections.abc import Callable

    from tacit.accounting.numeric._mgf import Complexes, Reals


_POINTS = 1 << 16
_TARGETS = (0.5, 0.1, 1e-2, 1e-4, 1e-6, 1e-9, 1e-12, 1e-16, 1e-21, 1e-28, 1e-36)
_REACH = 600.0
_COARSE = 257  # dots of the first, rough pairs


class LatticePair(NamedTuple):
    """A finite pair on the lattice: places in steps and P-masses, and its infinite loss."""

    places: Reals
    masses: Reals
    infinite: float


def reach_of(curve: Curve, negligible: float = 1e-35) -> float:
    """Return a loss beyond which delta is negligible, at most 600; the rest counts as infinite loss."""
    reach = curve.high
    if not (math.isfinite(reach) and float(curve.upper(np.array([0.9 * reach]))[0]) > negligible):
        low, high = 0.0, min(reach, 1.0)
        while high < min(reach, _REACH) and float(curve.upper(np.array([high]))[0]) > negligible:
            low, high = high, 2 * high
        for _ in range(8):
            middle = (low + high) / 2
            if float(curve.upper(np.array([middle]))[0]) > negligible:
                low = middle
            else:
                high = middle
        reach = min(reach, high)
    return min(reach, _REACH)


def lowest(curve: Curve) -> float:
    """Return a loss below which there is next to nothing: delta is about 1 - exp(epsilon) there."""
    low = 1e-3
    while low < min(-curve.low, _REACH):
        at = np.array([-low])
        if float(curve.upper(at)[0] + np.expm1(at)[0]) < 1e-9:
            break
        low *= 1.3
    return max(-low, curve.low)


def bulk_upper(curves: list[tuple[Curve, int]]) -> Callable[[Reals], Reals]:
    """Return upper values of delta of the composition of laws with quick curves, at any array of epsilons."""
    total = sum(times for _, times in curves)
    ends = [(lowest(one), reach_of(one, 1e-37 / total)) for one, _ in curves]
    tilts, period = _tilts(curves, ends)
    g = period / _POINTS
    pairs = [(_on_lattice(one, end, g), times) for (one, times), end in zip(curves, ends, strict=True)]
    first_curve = math.floor((_mean(pairs, g) - 0.4 * period) / g)
    e = g * (first_curve + np.arange(_POINTS))
    if not max(-e[0], e[-1]) < _REACH:
        raise NotConverged
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        values = np.minimum.reduce([tilted(pairs, c, g, first_curve, _POINTS) for c in tilts])
    leak = -math.expm1(sum(times * math.log1p(-min(pair.infinite, 1 - U)) for pair, times in pairs))
    values = np.minimum(np.where(np.isfinite(values), values, 1.0) + leak * (1 + 64 * U), 1.0)
    values = np.minimum.accumulate(values)
    ahead = max(float(values[0] + math.expm1(e[0])), 0.0) * (1 + 8 * U) + 8 * U
    y = np.exp(e)

    def upper(at: Reals) -> Reals:
        """Join the values by lines in exp(epsilon), which the pairs on the lattice follow exactly."""
        at = np.atleast_1d(at)
        ratio = np.exp(np.minimum(at, _REACH))
        uppers = np.interp(ratio * (1 - 8 * U), y, values) * (1 + 64 * U)
        indices: Reals = np.minimum(np.where(at < e[0], 1 - ratio + ahead, uppers), 1.0)
        return indices

    return upper


def _tilts(curves: list[tuple[Curve, int]], ends: list[tuple[float, float]]) -> tuple[Reals, float]:
    """Choose the tilts for all deltas of interest, and the period, by rough pairs; any choice is valid."""
    factors = []
    for (law, times), (low, high) in zip(curves, ends, strict=True):
        grid = np.sinh(3 * np.linspace(0, 1, _COARSE)) / math.sinh(3)
        pair = connect_dots(law, np.unique(np.concatenate([low * grid, high * grid])))
        factors.append((Atoms(pair.losses, pair.masses), times))
    loss_sum = LossSum(tuple(factors))
    _, mean, spread = (float(part[0]) for part in steer(loss_sum, np.array([1e-9])))
    width = math.sqrt(spread)
    if not 1e-100 < width < 1e100:
        raise NotConverged
    c = np.exp(np.linspace(math.log(0.05), math.log(400), 120)) / width
    logs = steer(loss_sum, c)[0]
    hat = logs + c * np.log(c / (1 + c)) - np.log1p(c)
    tilts = [int(np.argmin((hat - math.log(delta)) / c)) for delta in _TARGETS]
    top = max(float((hat[at] - math.log(delta)) / c[at]) for at, delta in zip(tilts, _TARGETS, strict=True))
    top = min(top, sum(times * end[1] for (_, times), end in zip(curves, ends, strict=True)))
    period = 2 * (top - mean + 13 * width)
    return np.unique(
        np.maximum(c[tilts], 40 / period)
    ), period  # aliases from the left fall as exp(-c period)


def _on_lattice(curve: Curve, ends: tuple[float, float], g: float) -> LatticePair:
    """Return a finite pair above the curve with losses that are multiples of g."""
    lowest, highest = math.floor(ends[0] / g), math.ceil(ends[1] / g) + 1
    if highest - lowest > 4 * _POINTS:
        raise NotConverged
    places = np.arange(lowest, highest + 1)
    pair = connect_dots(curve, g * places)
    return LatticePair(np.round(pair.losses / g), pair.masses, pair.infinite)


def _mean(pairs: list[tuple[LatticePair, int]], g: float) -> float:
    return sum(times * g * dot(pair.masses, pair.places) for pair, times in pairs)


def tilted(pairs: list[tuple[LatticePair, int]], c: float, g: float, first_index: int, points: int) -> Reals:
    """Return upper values of delta on the lattice from one tilt."""
    spectrum = np.ones(points // 2 + 1, dtype=complex)
    log_norm = error = slips = 0.0
    for pair, times in pairs:
        exponents = c * g * pair.places + np.log(pair.masses)
        top = float(exponents.max())
        weights = np.exp(exponents - top)
        total = float(weights.sum())
        log_norm += times * (top + math.log(total))
        slips += times * 8 * U * (8 + dot(weights, np.abs(exponents)) / total + len(weights))
        folded = np.bincount(pair.places.astype(np.int64) % points, weights / total, points)
        spectrum = spectrum * _power(np.fft.rfft(folded), times)
        error += times * U * (16 * math.log2(points) + 64)
    if error + slips > 1e-3:
        raise NotConverged
    # A place on the lattice, counted from the first one, has the weight of its remainder.
    weights = np.roll(np.fft.irfft(spectrum, points), -first_index)
    weights = np.maximum(weights, 0.0) + 2 * error
    rises = g * np.arange(points)
    fade = np.exp(-c * rises)
    over = np.cumsum((weights * fade)[::-1])[::-1]
    less = np.cumsum((weights * fade * np.exp(-rises))[::-1])[::-1]
    beyond = math.exp(-min(700.0, c * g * points)) * float(over[0]) * 2
    value = over - np.exp(rises) * less
    value += 4 * points * U * over + beyond
    log = log_norm - c * g * first_index
    values: Reals = (
        np.maximum(value, 0.0) * math.exp(min(log, 700.0)) * (1 + 1e-12 * (1 + abs(log)) + 4 * slips)
    )
    return values if log < 700 else np.full(points, np.inf)


def _power(phi: Complexes, times: int) -> Complexes:
    """Return phi to a whole power, by squaring."""
    power = np.ones_like(phi)
    while times:
        if times & 1:
            power = power * phi
        times >>= 1
        phi = phi * phi if times else phi
    return power


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
        factor = curve(law, add=add)
        if not (factor.quick or isinstance(law, SampledLoss)):  # its own curve is that of a sum
            raise NotConverged
        curves.append((in_bulk(factor), times))
    below, high = bulk_upper(curves), largest_loss(parts, add=add)

    def upper(e: Reals) -> Reals:
        """Return 0 from the largest loss on: a lattice that misses it has losses beyond it."""
        values: Reals = np.where(e >= high, 0.0, below(e))
        return values

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
    total, ratio = -math.expm1(e), math.exp(e)
    return Bracket(
        (total + ratio * other.lower) * (1 - 8 * U),
        min(1.0, (total + ratio * other.upper) * (1 + 8 * U)),
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
        values: Reals = np.where(room > -1 + 1e-11, value, rest)
        return values

    def put(bound: Callable[[Reals], Reals], e: Reals, sign: float) -> Reals:
        weight = -np.expm1(np.minimum(e + gone, 1.0))
        safe = np.maximum(weight, 1e-12)
        inside = e + math.log(q) - np.log(safe)
        slip = 16 * U * (1 + np.abs(e) + abs(gone) + abs(math.log(q))) / safe
        value = safe * (1 + sign * slip) * bound(inside - sign * slip)
        values: Reals = np.where(weight > 1e-12, value, max(0.0, sign) * value)
        return values

    form = put if add else remove
    if add:
        low, high = -mixed(q, -inner.low), -mixed(q, -inner.high)
    else:
        low, high = mixed(q, inner.low), mixed(q, inner.high)
    curve = Curve(
        lambda e: form(inner.upper, e, 1.0), lambda e: form(inner.lower, e, -1.0), low, high, inner.quick
    )
    if inner.bulk is None:
        return curve
    within = inner.bulk
    return curve._replace(bulk=lambda: partial(_formed, form, within()))


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
            sides = shuffled_response_delta(n, e4, k)
            return Curve(lambda e: sides(e, 1.0), lambda e: sides(e, -1.0), -e4, e4, quick=n <= 1000)
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
        values: Reals = -high * np.expm1(e - e0) - none * np.expm1(np.minimum(e, 0.0))
        return values

    return at


def _discrete_laplace(scale: float, s: float) -> Callable[[Reals], Reals]:
    """Return delta of discrete Laplace noise: the best set is x <= X, the last with (s - 2X)/scale > e."""

    def at(e: Reals) -> Reals:
        highest = np.clip(np.ceil((s - e * scale) / 2) - 1, 0, s)
        best = np.zeros_like(e)
        for x in (
            highest - 1,
            highest,
            highest + 1,
        ):  # rounding may miss the best set by one; delta is the largest over all sets
            x = np.clip(x, 0, s)
            head = -np.expm1(e - (s - x) / scale) - math.exp(-1 / scale) * np.expm1(-x / scale)
            best = np.maximum(best, head / (1 + math.exp(-1 / scale)))
        return best

    return at
