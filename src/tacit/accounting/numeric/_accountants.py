"""Numeric accountants: each bounds delta and epsilon for one sum of laws in one direction, by one method.

The safe bound is that by Renyi divergences (Canonne, Kamath and Steinke 2020). With z = order - 1 and K(z) =
z D_(1+z), ``delta(e) <= exp(K(z) - z e) z^z / (1+z)^(1+z)`` for every z > 0 (their proposition 12), which is
a Chernoff bound. It needs M on the real axis only. So it covers costs known only by rho or a Renyi curve, and
it answers when the tight accountants do not converge.

Renyi moments of whole orders are binomial sums whose terms are all rounded up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from tacit.accounting.numeric._arithmetic import Bracket, NotConverged, U, settle
from tacit.accounting.numeric._fourier import FourierInversion
from tacit.accounting.numeric._gaussian import gaussian_delta, gaussian_epsilon
from tacit.accounting.numeric._mgf import (
    GaussianMgf,
    LossSum,
    MgfLine,
    Reals,
    log_moment,
    peak,
    spread,
    steer,
    tiny,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tacit.accounting.numeric._curve import Curve


@dataclass(frozen=True, slots=True)
class RenyiCurveMgf:
    """A Renyi curve known at some orders; (order-1) D is convex and 0 at order 1, so chords lie above it."""

    orders: Reals  # minus one, increasing, first 0
    values: Reals  # (order - 1) * divergence

    def cumulants(self, c: Reals) -> tuple[Reals, Reals, Reals]:
        values = np.where(c > self.orders[-1], np.inf, np.interp(c, self.orders, self.values))
        slope = self.values[1] / self.orders[1]
        return values, np.full_like(c, slope), np.full_like(c, 2 * slope / (1 + self.orders[1]))

    def line(self, c: float, h: float, nodes: int) -> MgfLine:
        if nodes or h:
            raise NotImplementedError
        value = float(self.cumulants(np.array([c]))[0][0])
        return MgfLine(value, 16 * U * abs(value), np.ones(1, dtype=complex), 0.0)

    def decay(self, c: float) -> Callable[[float], float]:
        raise NotImplementedError


def _best(loss_sum: LossSum, price: Callable[[Reals, Reals], Reals]) -> float:
    """Return approximately the z > 0 with the smallest bound."""
    centre, width = 1 / (spread(loss_sum) + 1e-150), 12.0
    knots = [factor.orders[1:] for factor, _ in loss_sum.factors if isinstance(factor, RenyiCurveMgf)]
    for _ in range(5):
        grid = centre * np.exp(np.linspace(-width, width, 41))
        grid = np.sort(np.concatenate([grid, *knots]))
        log_m = steer(loss_sum, grid)[0]
        with np.errstate(invalid="ignore"):
            values = price(grid, log_m + grid * np.log(grid / (1 + grid)) - np.log1p(grid))
        centre, width = float(grid[int(np.nanargmin(values))]), width / 10
    return centre


def renyi_delta(loss_sum: LossSum, epsilon: float) -> Bracket:
    """Return an upper value of delta at epsilon; the lower value is 0."""
    if not loss_sum.factors:
        return Bracket(0.0, max(0.0, -math.expm1(epsilon) * (1 + 4 * U)), "closed form")
    z = _best(loss_sum, lambda grid, logs: logs - grid * epsilon)
    return Bracket(0.0, _at(loss_sum, z, epsilon), "renyi")


def renyi_epsilon(loss_sum: LossSum, delta: float) -> Bracket:
    """Return an upper value of epsilon at delta; the lower value is 0."""
    if delta <= 0:
        return Bracket(0.0, math.inf, "renyi")
    z = _best(loss_sum, lambda grid, logs: (logs - math.log(delta)) / grid)
    guess = max(0.0, (log_moment(loss_sum, z) + peak(z) - math.log(delta)) / z)
    bracket = settle(lambda e: renyi_delta(loss_sum, e), guess, delta, z)
    return Bracket(0.0, bracket.upper, "renyi")


def _at(loss_sum: LossSum, z: float, epsilon: float) -> float:
    exponent = log_moment(loss_sum, z) - z * epsilon + peak(z)
    slip = 8 * U * (4 + abs(z * epsilon) + abs(peak(z)) + abs(exponent))
    return min(1.0, math.exp(min(0.0, exponent + slip)) + 1e-300)


_UP = Context(prec=40, rounding=ROUND_CEILING, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])


def mixture_log_moment(q: Fraction, order: int, logs: Sequence[Fraction]) -> Fraction:
    """Return an upper value of log E_Q[((1-q) + q P/Q)^order], given upper values of log E_Q[(P/Q)^k].

    ``logs[k]`` is for the whole number k, up to the order. By the binomial theorem, the moment is the sum of
    ``C(order, k) (1-q)^(order-k) q^k exp(logs[k])``. Every operation rounds up. Decimal's exp and ln round
    correctly to the nearest digit, so the next larger number is a bound.

    Examples
    --------
    >>> round(float(mixture_log_moment(Fraction(1, 2), 2, [Fraction(0), Fraction(0), Fraction(1)])), 6)
    0.357374
    """
    odds = _up(q / (1 - q))
    weight, total = Decimal(1), Decimal(0)
    for k in range(order + 1):
        moment = _up(logs[k]).exp(_UP).next_plus(_UP) if logs[k] else Decimal(1)
        total = _UP.add(total, _UP.multiply(weight, moment))
        weight = _UP.divide(_UP.multiply(weight, _UP.multiply(odds, Decimal(order - k))), Decimal(k + 1))
    rest = order * Fraction(_up(1 - q).ln(_UP).next_plus(_UP))
    return max(Fraction(0), Fraction(total.ln(_UP).next_plus(_UP)) + rest)


def _up(x: Fraction) -> Decimal:
    return _UP.divide(Decimal(x.numerator), Decimal(x.denominator))


class Accountant(Protocol):
    """Bounds for one sum of laws in one direction."""

    def delta(self, e: float) -> Bracket: ...

    def epsilon(self, delta: float) -> Bracket: ...


class GaussianAccountant(NamedTuple):
    """Gaussian losses in closed form."""

    mu: float

    def delta(self, e: float) -> Bracket:
        return gaussian_delta(self.mu, e)

    def epsilon(self, delta: float) -> Bracket:
        return gaussian_epsilon(self.mu, delta)


class SingleLawAccountant(NamedTuple):
    """One law that occurs once, by its own curve."""

    curve: Curve

    def delta(self, e: float) -> Bracket:
        at = np.array([e])
        upper, lower = float(self.curve.upper(at)[0]), float(self.curve.lower(at)[0])
        return Bracket(max(0.0, min(lower, upper)), min(1.0, upper), "closed form")

    def epsilon(self, delta: float) -> Bracket:
        """Find the root of log delta by false position (Illinois variant), then certify it."""
        at_zero = self.delta(0.0).upper
        if at_zero <= delta:
            return Bracket(0.0, 0.0, "closed form")
        low, f_low, top = 0.0, math.log(at_zero / delta), max(self.curve.high, 1e-300)
        high = top / 1024 if top < 700 else 1.0
        while (delta_at_high := self.delta(high).upper) > delta:
            if high >= top:
                return Bracket(0.0, top * (1 + 8 * U), "closed form")
            low, f_low, high = high, math.log(delta_at_high / delta), min(2 * high, top)
        f_high, slope, e = max(-30.0, math.log(max(delta_at_high, 1e-300) / delta)), 0.0, high
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
        bracket = settle(self.delta, e, delta, slope)
        return Bracket(bracket.lower, min(bracket.upper, top * (1 + 8 * U)), "closed form")


class DitheredAccountant:
    """The losses with one more tiny Gaussian: an upper value, because dropping an answer reveals less.

    For the lower value, basic composition gives delta_with(e + x) <= delta(e) + delta_gauss(x).
    """

    def __init__(self, loss_sum: LossSum, times: float = 1.0) -> None:
        self._mu = times * tiny(loss_sum)
        if not self._mu > 0:
            raise NotConverged
        self._with = FourierInversion(LossSum((*loss_sum.factors, (GaussianMgf(self._mu**2), 1))))

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


class LeakyAccountant(NamedTuple):
    """An accountant for finite pairs that dominate the parts; a mass of ``leak`` has infinite loss.

    The P-masses of the finite losses add up to 1 - leak, so delta is the leak plus the inner delta.
    """

    inner: Accountant
    leak: float
    exact: bool

    def delta(self, e: float) -> Bracket:
        bracket = self.inner.delta(e)
        upper = min(1.0, (self.leak + bracket.upper) * (1 + 8 * U))
        return Bracket(bracket.lower if self.exact else 0.0, upper, bracket.method)

    def epsilon(self, delta: float) -> Bracket:
        if delta <= self.leak:
            raise NotConverged
        bracket = self.inner.epsilon((delta - self.leak) * (1 - 8 * U))
        lower = self.inner.epsilon(delta).lower if self.exact and self.leak else bracket.lower
        return Bracket(lower if self.exact else 0.0, bracket.upper, bracket.method)


class RenyiAccountant(NamedTuple):
    """Any sum with finite moments, by Renyi divergences."""

    loss_sum: LossSum

    def delta(self, e: float) -> Bracket:
        return renyi_delta(self.loss_sum, e)

    def epsilon(self, delta: float) -> Bracket:
        return renyi_epsilon(self.loss_sum, delta)
