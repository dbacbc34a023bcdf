"""Which engine answers for which sum of laws, and what happens when it cannot (see `_numeric`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple, Protocol

import numpy as np

from tacit.accounting._bracket import Bracket, NotConverged, U, as_float, larger, settle
from tacit.accounting._curve import Curve, Dots, closed_curve, dots, sampled_curve
from tacit.accounting._gaussian import gaussian_delta, gaussian_epsilon, gaussian_tail
from tacit.accounting._lattice import LatticeCost, discrete_gaussian, lattice_cost, on_lattice, two_point_cost
from tacit.accounting._line import Atoms, DiscreteLaplaceLine, Factor, GaussianLine, LaplaceLine, RangeLine, Reals, ResponseLine
from tacit.accounting._renyi import CurveLine, renyi_delta, renyi_epsilon
from tacit.accounting._sampled import SampledGaussian
from tacit.accounting._spectral import Inversion, Mix, log_moment, peak, spread, steer, tiny
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
    canonical,
)

__all__ = ["delta_bounds", "epsilon_bounds", "loss_exceeds", "renyi_divergence"]

_NEGLIGIBLE = 1e-35


class Engine(Protocol):
    """Bounds for one sum of laws in one direction."""

    def delta(self, e: float) -> Bracket: ...

    def epsilon(self, delta: float) -> Bracket: ...


class _Closed(NamedTuple):
    mu: float

    def delta(self, e: float) -> Bracket:
        return gaussian_delta(self.mu, e)

    def epsilon(self, delta: float) -> Bracket:
        return gaussian_epsilon(self.mu, delta)


class _Single(NamedTuple):
    curve: Curve

    def delta(self, e: float) -> Bracket:
        at = np.array([e])
        upper, lower = float(self.curve.upper(at)[0]), float(self.curve.lower(at)[0])
        return Bracket(max(0.0, min(lower, upper)), min(1.0, upper), "closed form")

    def epsilon(self, delta: float) -> Bracket:
        """Find the root of log delta between a low and a high epsilon by false position (Illinois), then certify."""
        low, high, ends = 0.0, max(0.0, self.curve.high), [0.0, -800.0]
        there = self.delta(0.0).upper
        if there <= delta:
            return Bracket(0.0, 0.0, "closed form")
        ends[0] = math.log(there / delta)
        if not high < 700:
            high = 1.0
            while (there := self.delta(high).upper) > delta and high < 1e9:
                low, ends[0], high = high, math.log(there / delta), 2 * high
            ends[1] = math.log(max(there, 1e-300) / delta)
        ends[1] = max(ends[1], -50.0)
        for _ in range(100):
            e = min(max((low * ends[1] - high * ends[0]) / (ends[1] - ends[0]), low), high)
            log = math.log(max(self.delta(e).upper, 1e-300) / delta)
            if log > 0:
                low, ends[0], ends[1] = e, log, ends[1] / 2
            else:
                high, ends[1], ends[0] = e, log, ends[0] / 2
            if high - low <= 1e-13 * high or abs(log) < 1e-13:
                break
        found = settle(self.delta, high, delta)
        return Bracket(found.lower, min(found.upper, max(0.0, self.curve.high * (1 + 8 * U))), "closed form")


class _Lazy(NamedTuple):
    make: Callable[[], LatticeCost]

    def delta(self, e: float) -> Bracket:
        return self.make().delta(e)

    def epsilon(self, delta: float) -> Bracket:
        return self.make().epsilon(delta)


class _Dithered:
    """The losses with the loss of one more Gaussian, mu: an upper value, since leaving an answer out reveals no more.

    Lower: delta_with(e + x) <= delta(e) + delta_gauss(x), for basic composition of the two.
    """

    def __init__(self, mix: Mix) -> None:
        self._mu = tiny(mix)
        self._with = Inversion(Mix((*mix.factors, (GaussianLine(self._mu**2), 1))))

    def delta(self, e: float) -> Bracket:
        upper = self._with.delta(e).upper
        try:
            aside = gaussian_epsilon(self._mu, 1e-3 * upper).upper
            lower = self._with.delta(e + aside).lower - 1e-3 * upper
        except NotConverged:
            lower = 0.0
        return Bracket(max(0.0, lower), upper, "dithered")

    def epsilon(self, delta: float) -> Bracket:
        upper = self._with.epsilon(delta).upper
        try:
            lower = self._with.epsilon(delta * 1.001).lower - gaussian_epsilon(self._mu, delta * 0.000999).upper
        except NotConverged:
            lower = 0.0
        return Bracket(max(0.0, lower), upper, "dithered")


class _Leaky(NamedTuple):
    """An engine for finite pairs that dominate the parts, ``leak`` of them by infinite loss."""

    inner: Engine
    leak: float
    exact: bool

    def delta(self, e: float) -> Bracket:
        found = self.inner.delta(e)
        upper = min(1.0, (self.leak + (1 - self.leak) * found.upper) * (1 + 8 * U))
        return Bracket(found.lower * (1 - self.leak) if self.exact else 0.0, upper, found.method)

    def epsilon(self, delta: float) -> Bracket:
        if delta <= self.leak:
            raise NotConverged
        found = self.inner.epsilon((delta - self.leak) / (1 - self.leak) * (1 - 8 * U))
        lower = self.inner.epsilon(delta / (1 - self.leak) * (1 + 8 * U)).lower if self.exact else 0.0
        return Bracket(lower, found.upper, found.method)


class _Renyi(NamedTuple):
    mix: Mix

    def delta(self, e: float) -> Bracket:
        return renyi_delta(self.mix, e)

    def epsilon(self, delta: float) -> Bracket:
        return renyi_epsilon(self.mix, delta)


def delta_bounds(parts: Parts, epsilon: float) -> Bracket:
    """Return certified bounds on delta at epsilon, the larger of both directions."""
    worst = Bracket(0.0, 0.0, "closed form")
    for add in _directions(parts):
        worst = larger(worst, _delta(parts, epsilon, add=add))
    return Bracket(min(worst.lower, worst.upper), worst.upper, worst.method)


def epsilon_bounds(parts: Parts, delta: float) -> Bracket:
    """Return certified bounds on the smallest epsilon >= 0 with delta(epsilon) <= delta, both directions."""
    worst = Bracket(0.0, 0.0, "closed form")
    for add in _directions(parts):
        if worst.upper > 0 and _surely(parts, worst.upper, delta, add=add):
            continue
        worst = larger(worst, _epsilon(parts, delta, add=add))
    return Bracket(min(worst.lower, worst.upper), worst.upper, worst.method)


def loss_exceeds(parts: Parts, t: float) -> float:
    """Return an upper value of P(L > t) of the stated pairs, the larger of both directions."""
    return max(_tail(parts, t, add=add) for add in _directions(parts))


def renyi_divergence(parts: Parts, order: float) -> float:
    """Return an upper value of the Renyi divergence of this order, the larger of both directions."""
    if not order > 1 or any(isinstance(law, Approximate) for law, _ in parts):
        return math.inf
    worst = 0.0
    for add in _directions(parts):
        mix, leak, _ = _content(_bounded(_plain(parts)), add=add)
        worst = max(worst, math.inf if leak else log_moment(mix, order - 1) / (order - 1) * (1 + 8 * U))
    return worst


def _bounded(parts: Parts) -> Parts:
    """Put laws that dominate it, and whose moments are formulae, for shuffled reports; a sample of them is dropped."""
    laws: list[tuple[Law, int]] = []
    for law, times in parts:
        match law:
            case Shuffled(_, epsilon):
                laws.append((Pure(epsilon), times))
            case Sampled(_, inner) if not math.isfinite(_sup(_plain(inner), add=False)) and _gaussian_mu2(inner) is None:
                laws.extend((one, times * often) for one, often in _bounded(_plain(inner)))
            case _:
                laws.append((law, times))
    return canonical(laws)


class _Content(NamedTuple):
    """The parts of one direction as factors; what the factors left out as infinite loss; whether they are exact."""

    mix: Mix
    leak: float
    exact: bool


def _directions(parts: Parts) -> tuple[bool, ...]:
    """Return the directions to take (add: True); only a sample tells them apart."""
    return (False, True) if any(isinstance(law, Sampled) and law.q < 1 for law, _ in _plain(parts)) else (False,)


def _plain(parts: Parts) -> Parts:
    """Open samples that keep everything; refuse what must be spelled out before."""
    for law, _ in parts:
        if isinstance(law, Group | Parallel):
            raise TypeError(type(law).__name__)
    if not any(isinstance(law, Sampled) and law.q == 1 for law, _ in parts):
        return parts
    opened: list[tuple[Law, int]] = []
    for law, times in parts:
        if isinstance(law, Sampled) and law.q == 1:
            opened.extend((inner, times * often) for inner, often in _plain(law.parts))
        else:
            opened.append((law, times))
    return canonical(opened)


def _mu2(law: Law) -> Fraction | None:
    match law:
        case Gaussian(sigma, s):
            return (s / sigma) ** 2
        case GDP(mu):
            return mu**2
    return None


def _gaussian_mu2(parts: Parts) -> Fraction | None:
    """Return the sum of mu^2 where every part is Gaussian."""
    total = Fraction(0)
    for law, times in parts:
        mu2 = _mu2(law)
        if mu2 is None:
            return None
        total += times * mu2
    return total


@lru_cache(maxsize=256)
def _content(parts: Parts, *, add: bool, finite: bool = False) -> _Content:
    """Turn laws (no `Approximate` among them) into factors of one direction; samples as finite pairs if asked."""
    mu2, factors, stays, exact = Fraction(0), [], 0.0, True
    for law, times in parts:
        part = _mu2(law)
        if part is not None:
            mu2 += times * part
            continue
        factor, leak, sharp = _finite_pair(law, add=add) if finite and isinstance(law, Sampled) else _factor(law, add=add)
        stays += times * math.log1p(-min(leak, 1 - U))
        exact &= sharp
        factors.append((factor, times))
    if mu2:
        factors.append((GaussianLine(as_float(mu2)), 1))
    return _Content(Mix(tuple(factors)), -math.expm1(stays) * (1 + 64 * U), exact)


def _infinite(parts: Parts) -> tuple[float, float]:
    """Return bounds on the mass of infinite loss, 1 - prod (1 - delta_i)."""
    stays = math.fsum(k * math.log1p(-as_float(law.delta)) for law, k in parts if isinstance(law, Approximate))
    return max(0.0, -math.expm1(stays) * (1 - 64 * U)), -math.expm1(stays) * (1 + 64 * U)


def _factor(law: Law, *, add: bool) -> tuple[Factor, float, bool]:
    """Return the law on vertical lines, the infinite loss that was split off, and whether the factor is exact."""
    match law:
        case RandomizedResponse(epsilon) | Pure(epsilon):
            return ResponseLine(as_float(epsilon)), 0.0, True
        case Laplace(scale, s):
            return LaplaceLine(as_float(s / scale)), 0.0, True
        case BoundedRange(epsilon):
            return RangeLine(as_float(epsilon)), 0.0, True
        case DiscreteLaplace(scale, s):
            return DiscreteLaplaceLine(as_float(1 / scale), as_float(s)), 0.0, True
        case DiscreteGaussian(sigma, s):
            return discrete_gaussian(sigma, s), 0.0, True
        case ZCDP(rho):
            return GaussianLine(as_float(2 * rho)), 0.0, True
        case Renyi(curve):
            orders = np.array([0.0, *(as_float(order - 1) for order, _ in curve)])
            values = np.array([0.0, *(as_float((order - 1) * value) for order, value in curve)])
            return CurveLine(orders, values), 0.0, True
        case Sampled(q, parts) if (mu2 := _gaussian_mu2(_plain(parts))) is not None:
            return SampledGaussian(as_float(q), math.sqrt(as_float(mu2)), add), 0.0, True
        case Sampled() | Shuffled():
            return _finite_pair(law, add=add)
    raise TypeError(type(law).__name__)


def _finite_pair(law: Law, *, add: bool) -> tuple[Factor, float, bool]:
    pair, exact = _dots(law, add=add)
    return Atoms(pair.losses, pair.masses, 4 * U + pair.slack), pair.infinite, exact


@lru_cache(maxsize=256)
def _dots(law: Law, *, add: bool) -> tuple[Dots, bool]:
    """Return a finite pair that dominates a law known by its curve, and whether it is the law itself."""
    curve, kinks = _curve(law, add=add), None
    if isinstance(law, Sampled):
        kinks = _kinks(_plain(law.parts))
        inner = _grid(_curve_of_sum(law.parts, add=add), kinks)
        grid = np.array([-_mixed(float(law.q), -e) if add else _mixed(float(law.q), e) for e in inner])
        grid = np.unique(grid + np.abs(grid) * 1e-15)
    else:
        grid = _grid(curve, None)
    return dots(curve, grid), kinks is not None


def _kinks(parts: Parts) -> Reals | None:
    """Return the losses of a finite lattice law: its curve is made of straight lines between them."""
    if not all(on_lattice(law) and not isinstance(law, Laplace | BoundedRange) for law, _ in parts):
        return None
    try:
        return lattice_cost(parts).losses()
    except NotConverged:
        return None


def _grid(curve: Curve, kinks: Reals | None) -> Reals:
    """Return where to take the dots: at the kinks, or evenly over what matters."""
    if kinks is not None and len(kinks) <= 2000:
        return kinks
    reach = curve.high
    if not (math.isfinite(reach) and float(curve.upper(np.array([0.9 * reach]))[0]) > _NEGLIGIBLE):
        low, high = 0.0, min(reach, 1.0)
        while high < min(reach, 700.0) and float(curve.upper(np.array([high]))[0]) > _NEGLIGIBLE:
            low, high = high, 2 * high
        for _ in range(8):
            middle = (low + high) / 2
            if float(curve.upper(np.array([middle]))[0]) > _NEGLIGIBLE:
                low = middle
            else:
                high = middle
        reach = min(reach, high)
    grid = np.linspace(-reach, reach, 1025 if curve.quick else 193)
    ends = [x for x in (curve.low, curve.high) if math.isfinite(x) and abs(x) < 700]
    return np.unique(np.append(grid, ends))


def _curve(law: Law, *, add: bool) -> Curve:
    """Return the curve of one law, once."""
    if isinstance(law, Sampled):
        return sampled_curve(as_float(law.q), _curve_of_sum(law.parts, add=add), add=add)
    if isinstance(law, Gaussian | GDP | DiscreteGaussian | Approximate):
        return _curve_of_sum(((law, 1),), add=add)
    return closed_curve(law)


def _curve_of_sum(parts: Parts, *, add: bool) -> Curve:
    """Return the curve of a sum of laws; below zero by H_y(P, Q) = 1 - y + y H_(1/y)(Q, P)."""
    parts = _plain(parts)
    if len(parts) == 1 and parts[0][1] == 1:
        law = parts[0][0]
        if isinstance(law, Sampled) or not isinstance(law, Gaussian | GDP | DiscreteGaussian | Approximate):
            return _curve(law, add=add)

    def upper(e: Reals) -> Reals:
        return np.array([_both(parts, float(x), add=add).upper for x in np.atleast_1d(e)])

    def lower(e: Reals) -> Reals:
        return np.array([_both(parts, float(x), add=add).lower for x in np.atleast_1d(e)])

    high = _sup(parts, add=add)
    return Curve(upper, lower, -_sup(parts, add=not add), high, quick=_gaussian_mu2(parts) is not None)


def _both(parts: Parts, e: float, *, add: bool) -> Bracket:
    if e >= 0:
        return _delta(parts, e, add=add)
    other = _delta(parts, -e, add=not add)
    whole, ratio = -math.expm1(e), math.exp(e)
    return Bracket(
        (whole + ratio * other.lower) * (1 - 8 * U), min(1.0, (whole + ratio * other.upper) * (1 + 8 * U)), other.method
    )


def _sup(parts: Parts, *, add: bool) -> float:
    """Return an upper value of the largest loss."""
    total = 0.0
    for law, times in parts:
        match law:
            case RandomizedResponse(e) | Pure(e) | BoundedRange(e) | Shuffled(_, e) | Approximate(e, _):
                one = as_float(e)
            case Laplace(scale, s) | DiscreteLaplace(scale, s):
                one = as_float(s / scale)
            case Sampled(q, inner):
                top = _sup(_plain(inner), add=add)
                if add:  # -log(1 - q + q exp(-top))
                    one = -_mixed(as_float(q), -top) if q < 1 else top
                else:
                    one = _mixed(as_float(q), top) if math.isfinite(top) else math.inf
            case _:
                return math.inf
        total += times * one
    return total * (1 + 16 * U)


def _mixed(q: float, e: float) -> float:
    """Return log(1 - q + q exp(e)), about."""
    return e + math.log(q + (1 - q) * math.exp(-e)) if e > 0 else math.log1p(q * math.expm1(e))


def _engines(parts: Parts, *, add: bool) -> Iterator[Engine]:
    """Yield engines for parts without `Approximate`, the best first; the last always answers."""
    if any(isinstance(law, ZCDP | Renyi) for law, _ in parts):
        yield _on(_Renyi, _content(parts, add=add))
        return
    mu2 = _gaussian_mu2(parts)
    if mu2 is not None:
        yield _Closed(math.sqrt(as_float(mu2)))
        return
    if len(parts) == 1 and parts[0][1] == 1 and not isinstance(parts[0][0], DiscreteGaussian):
        yield _Single(_curve(parts[0][0], add=add))
    whole = all(on_lattice(law) for law, _ in parts)
    smooth = any(isinstance(law, Laplace | BoundedRange) for law, _ in parts)
    if whole and not smooth:
        yield _Lazy(lambda: lattice_cost(parts))
    content = _content(parts, add=add)
    mix = content.mix
    if len(mix.factors) == 1 and isinstance(only := mix.factors[0][0], Atoms) and len(only.losses) == 2:
        yield _on(lambda _: _Lazy(lambda: two_point_cost(only, mix.factors[0][1])), content)
    yield _on(Inversion, content)
    if whole and smooth:
        yield _Lazy(lambda: lattice_cost(parts))
    if any(isinstance(law, Sampled) for law, _ in parts):
        content = _content(parts, add=add, finite=True)
        yield _on(Inversion, content)
    yield _on(_Dithered, content)
    yield _on(_Renyi, _content(parts, add=add))


def _on(engine: Callable[[Mix], Engine], content: _Content) -> Engine:
    """Return the engine for the factors; what they left out is added as infinite loss."""
    inner = engine(content.mix)
    return inner if content.exact and not content.leak else _Leaky(inner, content.leak, content.exact)


def _first(parts: Parts, ask: Callable[[Engine], Bracket], *, add: bool) -> Bracket:
    """Return the answer of the first engine that has one."""
    for engine in _engines(parts, add=add):
        try:
            found = ask(engine)
        except NotConverged:
            continue
        if found.lower <= found.upper:
            return found
    raise NotConverged


def _answer(parts: Parts, ask: Callable[[Engine], Bracket], *, add: bool) -> Bracket:
    """Return the best bounds on what is asked; families of mechanisms get their lower value from a member."""
    found = _first(parts, ask, add=add)
    if any(isinstance(law, BoundedRange) for law, _ in parts):
        known = canonical((ZCDP(law.epsilon**2 / 8) if isinstance(law, BoundedRange) else law, k) for law, k in parts)
        other = _first(known, ask, add=add)
        found = found if found.upper <= other.upper else other
    if any(isinstance(law, BoundedRange | ZCDP | Renyi) for law, _ in parts):
        member = canonical(pair for law, k in parts for pair in _member(law, k))
        lower = _first(member, ask, add=add).lower if member else 0.0
        found = Bracket(min(lower, found.upper), found.upper, found.method)
    return found


def _member(law: Law, times: int) -> list[tuple[Law, int]]:
    """Return a law of the family that a law stands for."""
    match law:
        case BoundedRange(epsilon):
            return [(RandomizedResponse(epsilon / 2), times)]
        case ZCDP(rho):
            return [(Gaussian(Fraction(1), Fraction(math.sqrt(as_float(2 * rho)) * (1 - 1e-12))), times)]
        case Renyi():
            return []
    return [(law, times)]


def _finite(parts: Parts) -> Parts:
    """Return the parts with finite loss."""
    if not any(isinstance(law, Approximate) for law, _ in parts):
        return parts
    kept = [(law, k) for law, k in parts if not isinstance(law, Approximate)]
    kept += [(Pure(law.epsilon), k) for law, k in parts if isinstance(law, Approximate) and law.epsilon]
    return canonical(kept)


def _delta(parts: Parts, e: float, *, add: bool) -> Bracket:
    parts = _plain(parts)
    if e < 0:
        return _both(parts, e, add=add)
    rest, (least, most) = _finite(parts), _infinite(parts)
    found = _answer(rest, lambda engine: engine.delta(e), add=add) if rest else Bracket(0.0, 0.0, "closed form")
    upper = min(1.0, (most + (1 - most) * found.upper) * (1 + 8 * U)) if most else found.upper
    return Bracket(max(0.0, (least + (1 - least) * found.lower) * (1 - 8 * U)), upper, found.method)


def _epsilon(parts: Parts, delta: float, *, add: bool) -> Bracket:
    parts = _plain(parts)
    rest, (least, most) = _finite(parts), _infinite(parts)
    if delta < most:
        return Bracket(math.inf if delta < least else 0.0, math.inf, "closed form")
    sup = _sup(rest, add=add)
    target = (delta - most) / (1 - most) * (1 - 8 * U) if most else delta
    if target <= 0 or not rest:
        return Bracket(0.0, sup, "basic composition" if rest else "closed form")
    found = _answer(rest, lambda engine: engine.epsilon(target), add=add)
    if most:
        looser = (delta - least) / (1 - least) * (1 + 8 * U)
        lower = 0.0 if looser >= 1 else _answer(rest, lambda engine: engine.epsilon(looser), add=add).lower
        found = Bracket(min(lower, found.upper), found.upper, found.method)
    return Bracket(found.lower, sup, "basic composition") if sup < found.upper else found


def _surely(parts: Parts, e: float, delta: float, *, add: bool) -> bool:
    """Say whether Chernoff's bound alone certifies delta(e) <= delta."""
    rest, (_, most) = _finite(_plain(parts)), _infinite(parts)
    mix, leak, _ = _content(rest, add=add)
    if not mix.factors:
        return False
    grid = np.exp(np.linspace(-5.0, 9.0, 36)) / (spread(mix) + 1e-150)
    bounds = steer(mix, grid)[0] - grid * e + grid * np.log(grid / (1 + grid)) - np.log1p(grid)
    c = float(grid[int(np.argmin(np.where(np.isfinite(bounds), bounds, np.inf)))])
    exponent = log_moment(mix, c) - c * e + peak(c)
    bound = math.exp(min(0.0, exponent + 16 * U * (4 + abs(exponent) + c * e)))
    return most + leak + bound <= delta * (1 - 1e-12)


def _tail(parts: Parts, t: float, *, add: bool) -> float:
    """Return an upper value of P(L > t) = delta(t) - delta'(t), the slope from below by convexity in exp(t)."""
    parts = _plain(parts)
    rest, (_, most) = _finite(parts), _infinite(parts)
    if not rest:
        return min(1.0, most + float(t < 0))
    if t >= _sup(rest, add=add):
        return min(1.0, most)
    mu2 = _gaussian_mu2(rest)
    finite = _slope_tail(rest, t, add=add) if mu2 is None else gaussian_tail(math.sqrt(as_float(mu2)), t)
    return min(1.0, (most + (1 - most) * finite) * (1 + 8 * U))


def _slope_tail(rest: Parts, t: float, *, add: bool) -> float:
    if all(on_lattice(law) and not isinstance(law, Laplace | BoundedRange) for law, _ in rest):
        try:
            exact = lattice_cost(rest).tail(t)
        except NotConverged:
            exact = None
        if exact is not None:
            return exact
    here = _both(rest, t, add=add)
    step = 1e-4 * spread(_content(rest, add=add).mix)
    best = 1.0
    for _ in range(3):
        left = _both(rest, t - step, add=add)
        best = min(best, here.upper + (left.upper - here.lower) / -math.expm1(-step) * (1 + 16 * U))
        step *= 8
    return best
