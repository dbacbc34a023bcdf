"""The sampled Gaussian up to a cut, in numeric accounting: its outcomes x <= cut, of mass below one.

Above the cut lie the rare large losses. Without them, the moments of all orders are small, and a tiny rate q
makes the phases of the loss log A tiny wherever the law has mass. Gauss's rule on panels resolves them with
few points: the integrand is bounded on an ellipse around each panel. The proof is docs/proofs/accounting.md,
section 4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tacit.accounting.numeric._bracket import NotConverged, U
from tacit.accounting.numeric._exponential_sums import transform
from tacit.accounting.numeric._gauss_rule import ELLIPSES, gauss_log_error, gauss_rule
from tacit.accounting.numeric._mgf import MgfLine
from tacit.accounting.numeric._sampled_gaussian import falling

if TYPE_CHECKING:
    from collections.abc import Callable

    from tacit.accounting.numeric._mgf import Reals
    from tacit.accounting.numeric._sampled_gaussian import SampledGaussianMgf

__all__ = ["TruncatedGaussianMgf"]

_LOG_ROOT_2PI = math.log(2 * math.pi) / 2
_LEAST = -3.0  # log-moment of the part below the cut; below this the left tail may matter
_TAIL = 41.0  # the left tail stays below exp(-41) of the moment
_WANTED = -37.0  # log of the wanted error of the rule
_FINER = (1.0, 1.4, 2.0, 3.0, 5.0, 10.0)  # panels, beside the first try
_WIDEST, _TURN = 1.3, 9.0  # of a first panel: its width, and how far the phase turns in it
_MOST_PANELS = 2000
_PLACES = np.linspace(0.0, 1.0, 96)


class _Rule(NamedTuple):
    """Nodes that serve all c and t up to the largest: with log A, the log of weights, and the error."""

    c: float
    t: float
    x: Reals
    log_a: Reals
    logs: Reals
    moved: Reals  # how far log A moves by rounding, in units of 8 U
    log_error: float


@dataclass(frozen=True, slots=True)
class TruncatedGaussianMgf:
    """The part x <= cut of a sampled Gaussian; ``tilts`` and ``turns`` are about the largest c and t."""

    whole: SampledGaussianMgf
    cut: float
    tilts: float = 0.0
    turns: float = 0.0
    kept: dict[str, _Rule] = field(default_factory=dict, compare=False, repr=False)

    def cumulants(self, c: Reals) -> tuple[Reals, Reals, Reals]:
        x, step = gauss_rule(np.linspace(min(-7.0, self.cut - 1), self.cut, 6))
        log_a = self.whole.log_a(x)
        exponents = np.multiply.outer(self._power(c), log_a) + (np.log(step) - x * x / 2)
        top = exponents.max(axis=1)
        weights = np.exp(exponents - top[:, None])
        total = weights.sum(axis=1)
        mean = weights @ log_a / total
        spread = np.maximum(weights @ log_a**2 / total - mean**2, 0.0)
        return top + np.log(total) - _LOG_ROOT_2PI, -mean if self.whole.add else mean, spread

    def line(self, c: float, h: float, nodes: int) -> MgfLine:
        """Return the line of this part, relative to itself."""
        rule, power = self._rule(c, h * nodes), self._power(c)
        exponents = power * rule.log_a + rule.logs
        top = float(exponents.max())
        weights = np.exp(exponents - top)
        total = float(weights.sum())
        log_norm = top + math.log(total)
        if not log_norm > _LEAST:
            raise NotConverged
        weights /= total
        missed = math.exp(rule.log_error - log_norm) + math.exp(4 - _TAIL) + 16 * U
        losses = -rule.log_a if self.whole.add else rule.log_a
        size = float(weights @ np.abs(losses)) + float(weights @ rule.moved)
        slip = 8 * U * (2 + float(weights @ rule.x**2) + abs(power) * size)
        phi, rough = transform(losses, weights, h, nodes)
        error = rough + 2 * slip + 8 * U * size * h * np.arange(nodes + 1) + 2 * missed
        norm_error = slip + missed + len(losses) * U + 4 * U * (abs(top) + 2)
        return MgfLine(log_norm, norm_error, phi, error)

    def decay(self, c: float) -> Callable[[float], float]:
        norm = self.line(c, 0.0, 0)
        return falling(*self.whole.slabs(c, norm=norm.log_norm + norm.norm_error, last=self.cut))

    def _power(self, c: Any) -> Any:
        return -c if self.whole.add else c + 1

    def _rule(self, c: float, t: float) -> _Rule:
        """Return a rule that serves c and frequencies up to t, and more."""
        found = self.kept.get("rule")
        if found is None or c > found.c or t > found.t:
            wide, high = (self.tilts, self.turns) if found is None else (found.c, found.t)
            found = self._new_rule(wide if c <= wide else 1.2 * c, high if t <= high else 1.2 * t)
            self.kept["rule"] = found
        return found

    def _new_rule(self, c: float, t: float) -> _Rule:
        low = -math.sqrt(2 * (_TAIL - c * math.log1p(-self.whole.q))) if self.whole.add else -9.1
        if not low < self.cut:
            raise NotConverged
        mu, q = self.whole.mu, self.whole.q
        places = low + (self.cut - low) * _PLACES
        log_a = self.whole.log_a(places)
        turns = (places - low) / _WIDEST + (t + c) * (log_a - log_a[0]) / _TURN
        for finer in _FINER:
            panels = math.ceil(finer * min(float(turns[-1]), _MOST_PANELS))
            edges = np.interp(np.arange(panels + 1) * (turns[-1] / panels), turns, places)
            log_error = self._log_error(edges, c, t)
            if log_error < _WANTED:
                break
        else:
            raise NotConverged
        x, step = gauss_rule(edges)
        log_a = self.whole.log_a(x)
        # A changes by the share q exp(u) / A of the error of exp(u), and by q / A of that of 1.
        share = q * np.exp(-log_a) + np.exp(mu * x - mu * mu / 2 + math.log(q) - log_a)
        moved = share * (mu * np.abs(x) + mu * mu + 1)
        return _Rule(c, t, x, log_a, np.log(step) - x * x / 2 - _LOG_ROOT_2PI, moved, log_error)

    def _log_error(self, edges: Reals, c: float, t: float) -> float:
        """Return the log of the error of Gauss's rule on all panels, for all c and t up to these.

        The logarithms are linear in c, so the larger of their values at 0 and at c counts.
        """
        mu, q = self.whole.mu, self.whole.q
        half, middle = np.diff(edges) / 2, (edges[1:] + edges[:-1]) / 2
        theta = mu * half * np.sinh(ELLIPSES)
        away = half * np.cosh(ELLIPSES)
        left, right = middle - away, middle + away
        u = mu * right - mu * mu / 2
        nearest = np.where(left * right < 0, 0.0, np.minimum(np.abs(left), np.abs(right)))
        there = q * np.exp(np.minimum(u, 600.0))
        turn = np.where(u < 600, np.arctan2(there * np.sin(theta), 1 - q + there * np.cos(theta)), theta)
        logs = t * turn - nearest**2 / 2 + (theta / mu) ** 2 / 2
        if self.whole.add:  # |A|^2 = A^2 (1 - 2 m (1-m) (1 - cos theta)), m the share of q exp(u) in A
            share = there / (1 - q + there)
            worst = np.where((share < 0.5) & (u < 600), share * (1 - share), 0.25)
            rise = -self.whole.log_a(left) - 0.5 * np.log1p(-2 * worst * (1 - np.cos(theta)))
            logs += np.maximum(c * rise, 0.0)
        else:
            rise = self.whole.log_a(right)
            logs += rise + np.maximum(c * rise, 0.0)
        return gauss_log_error(np.where(theta < 1.5, logs, np.inf), half)
