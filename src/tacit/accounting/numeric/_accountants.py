"""Numeric accountants: each bounds delta and epsilon for one sum of laws in one direction, by one method."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from tacit.accounting.numeric._bracket import Bracket, NotConverged, U, settle
from tacit.accounting.numeric._fourier import FourierInversion
from tacit.accounting.numeric._gaussian import gaussian_delta, gaussian_epsilon
from tacit.accounting.numeric._loss_sum import LossSum, tiny
from tacit.accounting.numeric._mgf import GaussianMgf
from tacit.accounting.numeric._renyi import renyi_delta, renyi_epsilon

if TYPE_CHECKING:
    from tacit.accounting.numeric._curve import Curve


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
        found = self.inner.delta(e)
        upper = min(1.0, (self.leak + found.upper) * (1 + 8 * U))
        return Bracket(found.lower if self.exact else 0.0, upper, found.method)

    def epsilon(self, delta: float) -> Bracket:
        if delta <= self.leak:
            raise NotConverged
        found = self.inner.epsilon((delta - self.leak) * (1 - 8 * U))
        lower = self.inner.epsilon(delta).lower if self.exact and self.leak else found.lower
        return Bracket(lower if self.exact else 0.0, found.upper, found.method)


class RenyiAccountant(NamedTuple):
    """Any sum with finite moments, by Renyi divergences."""

    loss_sum: LossSum

    def delta(self, e: float) -> Bracket:
        return renyi_delta(self.loss_sum, e)

    def epsilon(self, delta: float) -> Bracket:
        return renyi_epsilon(self.loss_sum, delta)
