"""Numeric accounting by Renyi divergences, the safe bound, by Canonne, Kamath and Steinke (2020).

With z = order - 1 and K(z) = z D_(1+z), ``delta(e) <= exp(K(z) - z e) z^z / (1+z)^(1+z)`` for every z > 0
(their proposition 12), which is a Chernoff bound. It needs M on the real axis only. So it covers costs known
only by rho or a Renyi curve, and it answers when the tight accountants do not converge.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tacit.accounting.numeric._bracket import Bracket, U, settle
from tacit.accounting.numeric._loss_sum import LossSum, log_moment, peak, spread, steer
from tacit.accounting.numeric._mgf import MgfLine, Reals

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class RenyiCurveMgf:
    """A Renyi curve known at some orders; (order-1) D is convex and 0 at order 1, so chords lie above it."""

    orders: Reals  # minus one, increasing, first 0
    values: Reals  # (order - 1) * divergence

    def cumulants(self, c: Reals) -> tuple[Reals, Reals, Reals]:
        values = np.where(c > self.orders[-1], np.inf, np.interp(c, self.orders, self.values))
        first = self.values[1] / self.orders[1]
        return values, np.full_like(c, first), np.full_like(c, 2 * first / (1 + self.orders[1]))

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
    found = settle(lambda e: renyi_delta(loss_sum, e), guess, delta, z)
    return Bracket(0.0, found.upper, "renyi")


def _at(loss_sum: LossSum, z: float, epsilon: float) -> float:
    exponent = log_moment(loss_sum, z) - z * epsilon + peak(z)
    slip = 8 * U * (4 + abs(z * epsilon) + abs(peak(z)) + abs(exponent))
    return min(1.0, math.exp(min(0.0, exponent + slip)) + 1e-300)
