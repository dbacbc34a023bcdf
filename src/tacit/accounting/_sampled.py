"""The Poisson-sampled Gaussian on a vertical line: proven quadrature, proven decay.

In units of sigma, with x ~ N(0, 1), u = mu x - mu^2/2 and A = 1 - q + q exp(u): removing a unit has loss
log A and ``M(z) = E A^(z+1)``; adding one has loss -log A and ``M(z) = E A^(-z)``. Both are E A^p.

Quadrature. A is analytic and free of zeros for |Im x| < pi/mu; on Im x = +-a, theta = mu a, |A| <= A(x),
|A| >= A(x) cos(theta/2) and |arg A| <= theta, so the trapezoid rule of step s errs by at most
``2 exp(a^2/2 + |t| theta + pen - 2 pi a / s) / (1 - exp(-2 pi a / s))`` relative to M(c); pen = 0 (remove) or
-c log cos(theta/2) (add).

Decay. The tilted loss has a density; below any unimodal minorant of it lie stacked uniform laws of widths w_k
and masses m_k, hence ``|M(c+it)/M(c)| <= 1 - sum_k m_k (1 - s(t w_k / 2))`` where s is a non-increasing
majorant of |sin y / y|: the bound falls in t. Both are argued in docs/proofs/accounting.md, section 4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tacit.accounting._bracket import NotConverged, U
from tacit.accounting._line import Line, Reals, transform

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["SampledGaussian"]

_LOG_TINY = 41.0  # quadrature and truncation are driven to exp(-41) = 1.6e-18 of M(c)
_ROOT_2PI = math.sqrt(2 * math.pi)
_MOST_POINTS = 1 << 18


@dataclass(frozen=True, slots=True)
class SampledGaussian:
    """(1-q) N(0, 1) + q N(mu, 1) against N(0, 1) (remove), or the other way round (add)."""

    q: float
    mu: float
    add: bool

    def _log_a(self, x: Reals) -> Reals:
        u = self.mu * x - self.mu**2 / 2
        return np.where(u > 600, u + math.log(self.q), np.log1p(self.q * np.expm1(np.minimum(u, 600.0))))

    def cumulants(self, c: Reals) -> tuple[Reals, Reals, Reals]:
        step = min(0.3, 0.45 / self.mu)
        high = 26.0 + 3 * self.mu + min(-2 * math.log(self.q) / self.mu, 900.0)
        if high > _MOST_POINTS * step:
            raise NotConverged
        x = np.arange(-9.0, high, step)
        log_a = self._log_a(x)
        exponents = np.multiply.outer(-c if self.add else c + 1, log_a) - x * x / 2
        top = exponents.max(axis=1)
        weights = np.exp(exponents - top[:, None])
        total = weights.sum(axis=1)
        weights /= total[:, None]
        mean = weights @ log_a
        spread = np.maximum(weights @ log_a**2 - mean**2, 0.0)
        logs = top + np.log(total * (step / _ROOT_2PI))
        if not self.add:
            logs[(c + 1) * self.mu > x[-1] - 6] = np.inf  # the mass of this tilt may lie beyond the grid
        return logs, -mean if self.add else mean, spread

    def line(self, c: float, h: float, nodes: int) -> Line:
        t = h * nodes
        theta = np.linspace(0.1, 3.1, 31)
        a = np.minimum(theta / self.mu, 9.5)
        theta = a * self.mu
        pen = -c * np.log(np.cos(theta / 2)) if self.add else np.zeros_like(theta)
        rates = t * self.mu + a / 2 + (_LOG_TINY + 1 + pen) / a
        step = 2 * math.pi / float(rates.min())
        if self.add:
            high = math.sqrt(2 * (_LOG_TINY - c * math.log1p(-self.q)))
            low = -high
        else:
            low, high = -9.1, (c + 1) * self.mu + 9.1
        if high - low > _MOST_POINTS * step:
            raise NotConverged
        x = np.arange(low, high + step, step)
        log_a = self._log_a(x)
        power = -c if self.add else c + 1
        exponents = power * log_a - x * x / 2
        top = float(exponents.max())
        weights = np.exp(exponents - top)
        total = float(weights.sum())
        weights /= total
        kept = weights > 1e-20
        losses, weights = log_a[kept], weights[kept]
        size = float(weights @ np.abs(losses))
        moved = self.mu * float(weights @ np.abs(x[kept])) + self.mu**2 + self.q / (1 - self.q)
        slip = 8 * U * (2 + float(weights @ x[kept] ** 2) + abs(power) * (size + moved))
        missed = 3 * math.exp(-_LOG_TINY) + 1e-20 * (len(x) - len(losses))
        phi, rough = transform(-losses if self.add else losses, weights, h, nodes)
        error = rough + 2 * (slip + missed) + 8 * U * (size + moved) * h * np.arange(nodes + 1)
        norm_error = slip + missed + len(x) * U + 4 * U * (abs(top) + 2)
        return Line(top + math.log(total * (step / _ROOT_2PI)), norm_error, phi, error)

    def decay(self, c: float) -> Callable[[float], float]:
        masses, widths = self._slabs(c)

        def bound(t: float) -> float:
            lost = float(masses @ _one_less_sinc(widths * (t / 2)))
            return math.log1p(-min(lost * (1 - 1e-9), 1 - U))

        return bound

    def _slabs(self, c: float) -> tuple[Reals, Reals]:
        """Return masses and widths of uniform laws stacked under the density of the tilted loss."""
        power = -c if self.add else c + 1
        x = np.linspace(-8.0, 8.0 if self.add else max(8.0, (c + 1) * self.mu + 5), 257)
        gap = float(x[1] - x[0])
        log_a = self._log_a(x)
        norm = self.line(c, 0.0, 0).log_norm
        # Density in the loss: phi(x) A^power / (M dlogA/dx), dlogA/dx = mu q exp(u) / A.
        logs = (power + 1) * log_a - x * x / 2 - (self.mu * x - self.mu**2 / 2)
        logs -= math.log(self.mu * self.q * _ROOT_2PI) + norm
        bend = gap * gap * (1 + abs(power + 1) * self.mu**2 / 4) / 8
        floor = np.exp(np.minimum(logs[1:], logs[:-1]) - bend - 1e-6)
        mode = int(np.argmax(floor))
        left = np.minimum.accumulate(floor[mode::-1])
        right = np.minimum.accumulate(floor[mode:])
        levels = np.sort(np.concatenate([left, right[1:]]))[::-1]
        reach_left = np.searchsorted(-left, -levels, side="right")
        reach_right = np.searchsorted(-right, -levels, side="right")
        widths = log_a[mode + reach_right] - log_a[mode + 1 - reach_left]
        return (levels - np.append(levels[1:], 0.0)) * widths, widths


def _one_less_sinc(y: Reals) -> Reals:
    """Return 1 - s(y), s non-increasing and at least |sin y / y| (its second lobe stays below 0.2394)."""
    safe = np.maximum(y, 1e-9)
    near = np.where(safe < 0.01, safe * safe * (1 / 6 - safe * safe / 120), 1 - np.sin(safe) / safe)
    return np.where(safe <= 2.5, near, 1 - np.minimum(0.2394, 1 / safe))
