"""Which engine answers for which sum of laws, and who answers when it cannot."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from tacit.accounting._laws import (
    BoundedRangeLoss,
    DiscreteGaussianLoss,
    GaussianLoss,
    LaplaceLoss,
    LossLaw,
    Parts,
    RandomizedResponseLoss,
    RenyiLoss,
    SampledLoss,
    ShuffledLoss,
    ZCDPLoss,
    canonical,
)
from tacit.accounting.numeric._bracket import Bracket, NotConverged, U, as_float, settle
from tacit.accounting.numeric._factors import Content, content, curve, gaussian_mu2
from tacit.accounting.numeric._fourier import Inversion
from tacit.accounting.numeric._gaussian import gaussian_delta, gaussian_epsilon
from tacit.accounting.numeric._lattice import (
    lattice_cost,
    listed_cost,
    on_lattice,
    snapped_cost,
    two_point_cost,
)
from tacit.accounting.numeric._loss_sum import Mix, tiny
from tacit.accounting.numeric._mgf import Atoms, GaussianLine
from tacit.accounting.numeric._renyi import renyi_delta, renyi_epsilon

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tacit.accounting.numeric._curve import Curve

__all__ = ["Engine", "answer"]


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
        """Find the root of log delta by false position (Illinois), then certify it."""
        at_zero = self.delta(0.0).upper
        if at_zero <= delta:
            return Bracket(0.0, 0.0, "closed form")
        low, f_low, top = 0.0, math.log(at_zero / delta), max(self.curve.high, 1e-300)
        high = top / 1024 if top < 700 else 1.0
        while (there := self.delta(high).upper) > delta:
            if high >= top:
                return Bracket(0.0, top * (1 + 8 * U), "closed form")
            low, f_low, high = high, math.log(there / delta), min(2 * high, top)
        f_high, slope, e = max(-30.0, math.log(max(there, 1e-300) / delta)), 0.0, high
        for _ in range(80):
            slope = (f_low - f_high) / (high - low)
            e = min(max(low + f_low / slope, low), high)
            log = math.log(max(self.delta(e).upper, 1e-300) / delta)
            if log > 0:
                low, f_low, f_high = e, log, f_high / 2
            else:
                high, f_high, f_low = e, log, f_low / 2
            if high - low <= 1e-14 * high or abs(log) < 1e-12:
                break
        found = settle(self.delta, e, delta, slope)
        return Bracket(found.lower, min(found.upper, top * (1 + 8 * U)), "closed form")


class _Dithered:
    """The losses with those of one more Gaussian: an upper value, as leaving out an answer reveals no more.

    Lower: delta_with(e + x) <= delta(e) + delta_gauss(x), for basic composition of the two.
    """

    def __init__(self, mix: Mix, times: float = 1.0) -> None:
        self._mu = times * tiny(mix)
        if not self._mu > 0:
            raise NotConverged
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
            lower = (
                self._with.epsilon(delta * 1.001).lower - gaussian_epsilon(self._mu, delta * 0.000999).upper
            )
        except NotConverged:
            lower = 0.0
        return Bracket(max(0.0, lower), upper, "dithered")


_FEW = 12  # laws that may be snapped to a lattice without losing the fifth digit
_DITHERS = tuple(partial(_Dithered, times=times) for times in (0.4, 1.5, 6.0, 36.0))


class _Leaky(NamedTuple):
    """An engine for finite pairs that dominate the parts, ``leak`` of them by infinite loss.

    The P-masses of the finite losses add up to 1 - leak, so delta is the leak and what the engine finds.
    """

    inner: Engine
    leak: float
    exact: bool

    def delta(self, e: float) -> Bracket:
        found = self.inner.delta(e)
        upper = min(1.0, (self.leak + found.upper) * (1 + 8 * U))
        return Bracket(found.lower if self.exact else 0.0, upper, found.method)

    def epsilon(self, delta: float) -> Bracket:
        if delta <= self.leak:
            raise NotConverged
        found = self.inner.epsilon((delta - self.leak) * (1 - 8 * U))
        lower = self.inner.epsilon(delta).lower if self.exact and self.leak else found.lower
        return Bracket(lower if self.exact else 0.0, found.upper, found.method)


class _Renyi(NamedTuple):
    mix: Mix

    def delta(self, e: float) -> Bracket:
        return renyi_delta(self.mix, e)

    def epsilon(self, delta: float) -> Bracket:
        return renyi_epsilon(self.mix, delta)


def _engines(parts: Parts, *, add: bool) -> Iterator[Callable[[], Engine]]:
    """Yield makers of engines for parts without `Approximate`, the best first; the last always answers."""
    if any(isinstance(law, ZCDPLoss | RenyiLoss) for law, _ in parts):
        yield lambda: _on(_Renyi, content(parts, add=add))
        return
    mu2 = gaussian_mu2(parts)
    if mu2 is not None:
        yield lambda: _Closed(math.sqrt(as_float(mu2)))
        return
    if len(parts) == 1 and parts[0][1] == 1 and not isinstance(parts[0][0], DiscreteGaussianLoss):
        yield lambda: _Single(curve(parts[0][0], add=add))
    whole = all(on_lattice(law) for law, _ in parts)
    smooth = any(isinstance(law, LaplaceLoss | BoundedRangeLoss) for law, _ in parts)
    if whole and not smooth:
        yield lambda: lattice_cost(parts)
    if any(isinstance(law, SampledLoss | ShuffledLoss) for law, _ in parts):
        yield lambda: _on(_listed, content(parts, add=add))
    yield lambda: _on(Inversion, content(parts, add=add))
    if whole and smooth:
        yield lambda: lattice_cost(parts)
    finite = any(isinstance(law, SampledLoss) for law, _ in parts)
    if finite:
        yield lambda: _on(Inversion, content(parts, add=add, finite=True))
    if whole and sum(times for _, times in parts) <= _FEW:
        yield lambda: snapped_cost(parts)
    for dither in _DITHERS:
        yield partial(_dithered, dither, parts, add, finite)
    yield lambda: _on(_Renyi, content(parts, add=add))


def _dithered(dither: Callable[[Mix], Engine], parts: Parts, add: bool, finite: bool) -> Engine:  # noqa: FBT001
    return _on(dither, content(parts, add=add, finite=finite))


def _listed(mix: Mix) -> Engine:
    """Return the engine for few finite laws: their losses are listed."""
    laws = [(law, times) for law, times in mix.factors if isinstance(law, Atoms)]
    if len(laws) < len(mix.factors):
        raise NotConverged
    if len(laws) == 1 and len(laws[0][0].losses) == 2:
        return two_point_cost(*laws[0])
    return listed_cost(laws)


def _on(engine: Callable[[Mix], Engine], found: Content) -> Engine:
    """Return the engine for the factors; what they left out is added as infinite loss."""
    if engine not in found.kept:
        found.kept[engine] = engine(found.mix)
    inner: Engine = found.kept[engine]
    return inner if found.exact and not found.leak else _Leaky(inner, found.leak, found.exact)


def _first(parts: Parts, ask: Callable[[Engine], Bracket], *, add: bool) -> Bracket:
    """Return the answer of the first engine that has one."""
    for make in _engines(parts, add=add):
        try:
            found = ask(make())
        except NotConverged:
            continue
        if found.lower <= found.upper:
            return found
    return Bracket(0.0, math.inf, "none")


def answer(parts: Parts, ask: Callable[[Engine], Bracket], *, add: bool) -> Bracket:
    """Return the best bounds on what is asked; families of mechanisms get their lower value from a member."""
    found = _first(parts, ask, add=add)
    if any(isinstance(law, BoundedRangeLoss) for law, _ in parts):
        known = canonical(
            (ZCDPLoss(law.epsilon**2 / 8) if isinstance(law, BoundedRangeLoss) else law, k)
            for law, k in parts
        )
        other = _first(known, ask, add=add)
        found = found if found.upper <= other.upper else other
    if any(isinstance(law, BoundedRangeLoss | ZCDPLoss | RenyiLoss) for law, _ in parts):
        member = canonical(pair for law, k in parts for pair in _member(law, k))
        lower = _first(member, ask, add=add).lower if member else 0.0
        found = Bracket(min(lower, found.upper), found.upper, found.method)
    return found


def _member(law: LossLaw, times: int) -> list[tuple[LossLaw, int]]:
    """Return a law of the family that a law stands for."""
    match law:
        case BoundedRangeLoss(epsilon):
            return [(RandomizedResponseLoss(epsilon / 2), times)]
        case ZCDPLoss(rho):
            return [(GaussianLoss(Fraction(1), Fraction(math.sqrt(as_float(2 * rho)) * (1 - 1e-12))), times)]
        case RenyiLoss():
            return []
    return [(law, times)]
