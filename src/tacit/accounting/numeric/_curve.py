"""Delta as a function of epsilon, law by law, and the finite pair that dominates such a curve.

A curve gives upper values of delta at any real epsilon, for one direction. ``dots`` turns a curve into
finitely many losses by joining its values on a grid with straight lines in exp(epsilon): delta is convex
there, so the lines lie above it (connect the dots; Doroshenko et al. 2022). See docs/proofs/accounting.md,
sections 6 and 7.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tacit.accounting._laws import (
    BoundedRangeLoss,
    DiscreteLaplaceLoss,
    LaplaceLoss,
    LossLaw,
    PureLoss,
    RandomizedResponseLoss,
    ShuffledLoss,
)
from tacit.accounting.numeric._bracket import NotConverged, U, as_float

if TYPE_CHECKING:
    from collections.abc import Callable

    from tacit.accounting.numeric._mgf import Reals

__all__ = ["Curve", "Dots", "closed_curve", "dots", "mixed", "sampled_curve"]


_LARGEST = 700.0  # exp of more leaves the doubles


class Curve(NamedTuple):
    """Certified bounds on delta at an array of epsilons: 0 above ``high``, 1 - exp(epsilon) below ``low``."""

    upper: Callable[[Reals], Reals]
    lower: Callable[[Reals], Reals]
    low: float
    high: float
    quick: bool = True  # cheap enough for a thousand epsilons


class Dots(NamedTuple):
    """A finite pair that dominates a curve: losses, P-masses, how much these were raised, infinite loss."""

    losses: Reals
    masses: Reals
    slack: float
    infinite: float


def dots(curve: Curve, grid: Reals) -> Dots:
    """Return a pair whose delta is at least the curve's, from its upper values on an increasing grid."""
    if not np.abs(grid).max() < _LARGEST:
        raise NotConverged
    x = np.concatenate([[0.0], np.exp(grid)])
    y = np.concatenate([[1.0], np.clip(curve.upper(grid), 0.0, 1.0)])
    if not np.isfinite(y).all():
        raise NotConverged
    keep = _hull(x, y)  # of upper values of a convex curve: still above it, and convex
    x, y = x[keep], y[keep]
    masses = x[1:] * np.diff(np.append(np.minimum(np.diff(y) / np.diff(x), 0.0), 0.0))
    # What rounding took is given back: delta of the pair on the grid is an accurate sum of positive terms.
    beyond = np.append(np.cumsum((masses / x[1:])[::-1])[::-1][1:], 0.0)  # Q-mass above each point
    steps = beyond * np.append(np.diff(x[1:]), 0.0)
    reached = y[-1] + np.cumsum(steps[::-1])[::-1]
    least = y[1:] > 0
    short = float(np.max(y[1:][least] / reached[least], initial=1.0))
    raised = max(1.0, short) * (1 + 4 * len(x) * U)
    good = masses > 0
    return Dots(np.log(x[1:][good]), raised * masses[good], 2 * (raised - 1), float(y[-1]))


def _hull(x: Reals, y: Reals) -> list[int]:
    """Return the corners of the lower convex hull of points with increasing x."""
    keep = [0]
    for i in range(1, len(x)):
        while len(keep) > 1:
            a, b = keep[-2], keep[-1]
            if (y[b] - y[a]) * (x[i] - x[b]) < (y[i] - y[b]) * (x[b] - x[a]):
                break
            keep.pop()
        keep.append(i)
    return keep


def sampled_curve(q: float, inner: Curve, *, add: bool) -> Curve:
    """Return the curve of a Poisson sample: (1-q) Q + q P against Q (remove) or the reverse (add), 0 < q < 1.

    Remove: delta(e) = q inner(log(1 + (exp(e) - 1)/q)) above log(1-q). Add: with w = 1 - (1-q) exp(e),
    delta(e) = w inner(log(q exp(e) / w)) below -log(1-q) (Balle, Barthe and Gaboardi 2018; Zhu, Dong and
    Wang 2022). Delta falls in epsilon, so what rounding may do to the inner epsilon is stepped over.
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
    return Curve(
        lambda e: form(inner.upper, e, 1.0), lambda e: form(inner.lower, e, -1.0), low, high, inner.quick
    )


def mixed(q: float, e: float) -> float:
    """Return log(1 - q + q exp(e)), about."""
    return e + math.log(q + (1 - q) * math.exp(-e)) if e > 0 else math.log1p(q * math.expm1(e))


def closed_curve(law: LossLaw) -> Curve:
    """Return the curve of a law whose delta has a closed form; raise `NotConverged` for others."""
    match law:
        case RandomizedResponseLoss(epsilon) | PureLoss(epsilon):
            e0 = as_float(epsilon)
            return _between(e0, lambda e: -np.expm1(e - e0) / (1 + math.exp(-e0)))
        case LaplaceLoss(scale, s):
            e1 = as_float(s / scale)
            return _between(e1, lambda e: -np.expm1((e - e1) / 2))
        case BoundedRangeLoss(epsilon):
            e2 = as_float(epsilon)
            return _between(e2, lambda e: np.expm1((e - e2) / 2) ** 2 / -math.expm1(-e2))
        case DiscreteLaplaceLoss(scale, s):
            return _between(as_float(s / scale), _discrete_laplace(as_float(scale), as_float(s)))
        case ShuffledLoss(n, epsilon):
            return _shuffled(n, as_float(epsilon))
    raise NotConverged


def _between(e0: float, inner: Callable[[Reals], Reals]) -> Curve:
    """Return a curve that is 1 - exp(e) up to -e0, the formula in between, and nothing from e0 on."""

    def at(e: Reals, sign: float) -> Reals:
        e = e - sign * 8 * U * (np.abs(e) + e0)
        value = np.where(e <= -e0, -np.expm1(np.minimum(e, 0.0)), inner(np.clip(e, -e0, e0)))
        return np.where(e >= e0, 0.0, value * (1 + sign * 64 * U))

    return Curve(lambda e: at(e, 1.0), lambda e: at(e, -1.0), -e0, e0)


def _discrete_laplace(scale: float, s: float) -> Callable[[Reals], Reals]:
    """Return delta of discrete Laplace noise: the best set is x <= X, the last with (s - 2X)/scale > e."""

    def at(e: Reals) -> Reals:
        last = np.clip(np.ceil((s - e * scale) / 2) - 1, 0, s)
        best = np.zeros_like(e)
        for x in (last - 1, last, last + 1):  # rounding may miss the best by one: delta is the largest
            x = np.clip(x, 0, s)
            head = -np.expm1(e - (s - x) / scale) - math.exp(-1 / scale) * np.expm1(-x / scale)
            best = np.maximum(best, head / (1 + math.exp(-1 / scale)))
        return best

    return at


def _shuffled(n: int, e0: float) -> Curve:
    """Return the curve of n shuffled reports (Feldman, McMillan and Talwar 2021, theorem 3.2).

    C ~ Bin(n-1, exp(-e0)) reports hide the unit's; given C = c, x of c+1 say "one", and the likelihood ratio
    rises with x: delta = (1 - y) P(B > k) + (p - y (1-p)) P(B = k) with B ~ Bin(c, 1/2), y = exp(e),
    p = 1/(1+exp(-e0)) and k = floor((c+1) (y p - (1-p)) / ((2p-1) (1+y))). Rare c count as infinite loss.
    """
    from scipy.special import bdtrc, gammaln

    share, p = math.exp(-e0), 1 / (1 + math.exp(-e0))
    mean, spread = (n - 1) * share, math.sqrt((n - 1) * share * (1 - share))
    first, last = math.floor(mean - 12 * spread - 30), math.ceil(mean + 12 * spread + 60)
    c = np.arange(max(0, first), min(n - 1, last) + 1)
    logs = gammaln(n) - gammaln(c + 1) - gammaln(n - c) + c * -e0
    logs += (n - 1 - c) * math.log(-math.expm1(-e0)) if n > 1 else 0.0
    chance = np.exp(logs)
    loose = 1e-10 + 16 * U * float(gammaln(n) + n)  # granted relative error of the binomial laws
    # Outside the window: Chernoff at 12 standard deviations and at 30 or 60 counts.
    outside = 0.0 if len(c) == n else _binomial_tail(n - 1, share, int(c[0]), int(c[-1]))

    def at(e: Reals, sign: float) -> Reals:
        e = np.atleast_1d(np.asarray(e, dtype=float))
        result = np.empty(len(e))
        for i, one in enumerate(e):
            if one >= e0:
                result[i] = 0.0
                continue
            y = math.exp(one)
            if one <= -e0:
                result[i] = -math.expm1(one) * (1 + sign * 8 * U)
                continue
            k = np.floor((c + 1) * ((y * p - (1 - p)) / ((2 * p - 1) * (1 + y))))
            j = np.clip(k, 0, c)
            over = np.where(j >= c, 0.0, bdtrc(j, c, 0.5))
            point = np.exp(gammaln(c + 1) - gammaln(j + 1) - gammaln(c - j + 1) - c * math.log(2))
            best = worst = np.zeros(len(c))
            # Rounding may miss the best set by one, and delta is the largest: try its neighbours, and all.
            lower, higher = point * j / (c - j + 1), point * (c - j) / (j + 1)
            for above, equal in ((over, point), (over + point, lower), (over - higher, higher)):
                value, size = (
                    (1 - y) * above + (p - y * (1 - p)) * equal,
                    abs(1 - y) * above + (p + y) * equal,
                )
                best, worst = np.maximum(best, value), np.maximum(worst, size)
            if y < 1:
                best, worst = np.maximum(best, 1 - y), np.maximum(worst, 1 - y)
            got = best + sign * loose * worst
            value = float(chance @ np.maximum(got, 0.0)) * (1 + sign * loose)
            result[i] = max(0.0, value) + max(0.0, sign) * outside
        return np.minimum(result, 1.0)

    return Curve(lambda e: at(e, 1.0), lambda e: at(e, -1.0), -e0, e0, quick=n <= 1000)


def _binomial_tail(n: int, p: float, low: int, high: int) -> float:
    """Return an upper value of P(B < low) + P(B > high), B ~ Bin(n, p), by Chernoff's bound."""

    def bound(k: int) -> float:
        f = k / n
        divergence = f * math.log(f / p) if f else 0.0
        divergence += (1 - f) * math.log((1 - f) / (1 - p)) if f < 1 else 0.0
        return math.exp(-n * divergence * (1 - 1e-9))

    return (bound(low - 1) if low > 0 else 0.0) + (bound(high + 1) if high < n else 0.0)
