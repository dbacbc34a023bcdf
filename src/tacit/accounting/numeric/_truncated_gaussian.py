"""The sampled Gaussian up to a cut, in numeric accounting: its outcomes x <= cut, of mass below one.

Above the cut lie the rare large losses. Without them, the moments of all orders are small, and a tiny rate q
makes the phases of the loss log A tiny wherever the law has mass. Gauss's rule on panels resolves them with
few points: the integrand is bounded on an ellipse around each panel. The proof is docs/proofs/accounting.md,
section 4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.accounting.numeric._bracket import NotConverged, U
from tacit.accounting.numeric._gauss_rule import ELLIPSES, gauss_log_error, gauss_rule
from tacit.accounting.numeric._mgf import MgfLine
from tacit.accounting.numeric._sampled_gaussian import falling

if TYPE_CHECKING:
    from collections.abc import Callable

    from tacit.accounting.numeric._mgf import Reals
    from tacit.accounting.numeric._sampled_gaussian import SampledGaussianMgf

__all__ = ["TruncatedGaussianMgf"]

_ROOT_2PI = math.sqrt(2 * math.pi)
_LEAST = -3.0  # log-moment of the part below the cut; below this the left tail may matter
_TAIL = 41.0  # the left tail stays below exp(-41) of the moment
_WANTED = -37.0  # log of the wanted error of the rule, relative to the moment
_FINER = (1.0, 1.4, 2.0, 3.0, 5.0, 10.0)  # panels, beside the first try
_WIDEST, _TURN = 1.3, 9.0  # of a first panel: its width, and how far the phase turns in it
_MOST_PANELS = 2000
_PLACES = np.linspace(0.0, 1.0, 96)


@dataclass(frozen=True, slots=True)
class TruncatedGaussianMgf:
    """The part x <= cut of a sampled Gaussian."""

    whole: SampledGaussianMgf
    cut: float

    def cumulants(self, c: Reals) -> tuple[Reals, Reals, Reals]:
        x, step = gauss_rule(np.linspace(min(-7.0, self.cut - 1), self.cut, 6))
        log_a = self.whole.log_a(x)
        exponents = np.multiply.outer(self._power(c), log_a) + (np.log(step) - x * x / 2)
        top = exponents.max(axis=1)
        weights = np.exp(exponents - top[:, None])
        total = weights.sum(axis=1)
        mean = weights @ log_a / total
        spread = np.maximum(weights @ log_a**2 / total - mean**2, 0.0)
        return top + np.log(total / _ROOT_2PI), -mean if self.whole.add else mean, spread

    def line(self, c: float, h: float, nodes: int) -> MgfLine:
        """Return the line of this part, relative to itself."""
        low = self._low(c)
        if not low < self.cut:
            raise NotConverged
        edges, missed = self._panels(low, c, h * nodes)
        x, step = gauss_rule(edges)
        log_a = self.whole.log_a(x)
        exponents = self._power(c) * log_a - x * x / 2
        top = float(exponents.max())
        weights = np.exp(exponents - top) * step
        total = float(weights.sum())
        log_norm = top + math.log(total / _ROOT_2PI)
        if not log_norm > _LEAST:
            raise NotConverged
        weights /= total
        kept = weights > 1e-20
        phi, error, slip = self.whole.sum_over(x[kept], log_a[kept], weights[kept], c, h, nodes)
        missed += math.exp(4 - _TAIL) + 1e-20 * (len(x) - int(kept.sum())) + 16 * U
        norm_error = slip + missed + len(x) * U + 4 * U * (abs(top) + 2)
        return MgfLine(log_norm, norm_error, phi, error + 2 * missed)

    def decay(self, c: float) -> Callable[[float], float]:
        norm = self.line(c, 0.0, 0)
        return falling(*self.whole.slabs(c, norm=norm.log_norm + norm.norm_error, last=self.cut))

    def _low(self, c: float) -> float:
        """Return where the left tail of the integrand is negligible."""
        return -math.sqrt(2 * (_TAIL - c * math.log1p(-self.whole.q))) if self.whole.add else -9.1

    def _power(self, c: Any) -> Any:
        return -c if self.whole.add else c + 1

    def _panels(self, low: float, c: float, t: float) -> tuple[Reals, float]:
        """Return the edges of panels with a small certified error for frequencies up to t, and that error."""
        x = low + (self.cut - low) * _PLACES
        log_a = self.whole.log_a(x)
        places = (x - low) / _WIDEST + (t + c) * (log_a - log_a[0]) / _TURN
        for finer in _FINER:
            panels = math.ceil(finer * min(float(places[-1]), _MOST_PANELS))
            edges = np.interp(np.arange(panels + 1) * (places[-1] / panels), places, x)
            log = self._log_error(edges, c, t)
            if log < _WANTED:
                return edges, math.exp(log)
        raise NotConverged

    def _log_error(self, edges: Reals, c: float, t: float) -> float:
        """Return the log of the error of Gauss's rule on all panels, relative to the moment."""
        mu, q, power = self.whole.mu, self.whole.q, self._power(c)
        half, middle = np.diff(edges) / 2, (edges[1:] + edges[:-1]) / 2
        theta = mu * half * np.sinh(ELLIPSES)
        left, right = middle - half * np.cosh(ELLIPSES), middle + half * np.cosh(ELLIPSES)
        u = mu * right - mu * mu / 2
        nearest = np.where(left * right < 0, 0.0, np.minimum(np.abs(left), np.abs(right)))
        there = q * np.exp(np.minimum(u, 600.0))
        turn = np.where(u < 600, np.arctan2(there * np.sin(theta), 1 - q + there * np.cos(theta)), theta)
        logs = t * turn - nearest**2 / 2 + (theta / mu) ** 2 / 2
        if self.whole.add:  # |A|^2 = A^2 (1 - 2 m (1-m) (1 - cos theta)), m the share of q exp(u) in A
            share = there / (1 - q + there)
            worst = np.where((share < 0.5) & (u < 600), share * (1 - share), 0.25)
            logs += power * (self.whole.log_a(left) + 0.5 * np.log1p(-2 * worst * (1 - np.cos(theta))))
        else:
            logs += power * self.whole.log_a(right)
        error = gauss_log_error(np.where(theta < 1.5, logs, np.inf), half)
        return error - self._log_least(edges, power)

    def _log_least(self, edges: Reals, power: float) -> float:
        """Return the log of a lower value of the integral, by the smallest values on the panels."""
        raised, squares = power * self.whole.log_a(edges), edges * edges / 2
        least = np.minimum(raised[:-1], raised[1:]) - np.maximum(squares[:-1], squares[1:])
        top = float(least.max())
        return top + math.log(float((np.exp(least - top) * np.diff(edges)).sum()))
