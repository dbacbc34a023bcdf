"""Numeric accounting of Poisson-sampled Laplace noise: two atoms and a density between them, by Gauss's rule.

Let l be the loss of the noise under Q: -e and e with probability 1/2 and exp(-e)/2, and between them the
density exp(-(l + e)/2)/4. Let A = 1 - q + q exp(l). If a unit is removed, the loss is log A and ``M(z) = E
A^(z+1)``. If one is added, the loss is -log A and ``M(z) = E A^(-z)``. The proof is
docs/proofs/accounting.md, section 4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tacit.accounting.numeric._arithmetic import NotConverged, U
from tacit.accounting.numeric._gaussian import falling, stacked
from tacit.accounting.numeric._mgf import MgfLine
from tacit.accounting.numeric._quadrature import ELLIPSES, gauss_log_error, gauss_rule, transform

if TYPE_CHECKING:
    from collections.abc import Callable

    from tacit.accounting.numeric._mgf import Reals

_WIDEST, _TURN = 2.6, 9.0  # of a first panel: its width, and how far the phase turns in it
_FINER, _MAX_PANELS = (1.0, 1.5, 2.5, 5.0), 100  # panels, beside the first try
_WANTED = -37.0  # log of the wanted error of the rule, relative to the moment
_LARGEST = 30.0  # loss of the noise
_LOG_HALF = math.log(0.5)
_SINH, _COSH = np.sinh(ELLIPSES), np.cosh(ELLIPSES)


class _PanelRule(NamedTuple):
    """A number of panels that serves tilts up to c and frequencies up to t, and the log of its error.

    A rule that is not wide serves c alone.
    """

    c: float
    t: float
    panels: int
    log_error: float


def _edges(e: float, panels: int) -> Reals:
    """Return the edges of equal panels between -e and e."""
    edges: Reals = (2 * e / panels) * np.arange(panels + 1) - e
    edges[-1] = e
    return edges


@lru_cache(maxsize=256)
def _noise(q: float, e: float, panels: int) -> tuple[Reals, Reals, Reals, float]:
    """Return the noise under Q with its density replaced by the nodes of the rule.

    These are log A, the log of the masses, |log A|, and how far log A moves by rounding, in units of 16 U.
    """
    x, weights = gauss_rule(_edges(e, panels))
    l, logs = np.empty(len(x) + 2), np.empty(len(x) + 2)
    l[0], l[1:-1], l[-1] = -e, x, e
    logs[0], logs[1:-1], logs[-1] = _LOG_HALF, np.log(weights / 4) - (x + e) / 2, _LOG_HALF - e
    log_a = np.log1p(q * np.expm1(l))
    # A changes by the share q exp(l) / A of the error of exp(l), and by q / A of that of 1. With r = exp(l)
    # - 1 this is q (2 + r) / (1 + q r), which is monotone in r.
    shift = q * max((2 + r) / (1 + q * r) for r in (math.expm1(-e), math.expm1(e))) * (2 * e + 1)
    return log_a, logs, np.abs(log_a), shift


@lru_cache(maxsize=256)
def _cells(q: float, e: float) -> tuple[Reals, Reals, Reals]:
    """Return what the decay needs at the edges of its cells, whatever the tilt and the direction.

    These are log A, the log of the density of the loss over A^(power + 1) and without the moment, and for
    each cell, how far the logarithm of the density can bend inside it, over |power + 1|.
    """
    l = _edges(e, 128)
    log_a = np.log1p(q * np.expm1(l))
    # Density in the loss: exp(-(l + e)/2) A^power / (4 M dlogA/dl), dlogA/dl = q exp(l) / A.
    logs = -1.5 * l - e / 2 - math.log(4 * q)
    share = np.exp(np.minimum(l[1:] + math.log(q) - log_a[1:], 0.0)) * (1 + 1e-9)
    bent = np.where(share < 0.5, share * (1 - share), 0.25)
    return log_a, logs, float(l[1] - l[0]) ** 2 * bent / 8


class _TiltedNoise(NamedTuple):
    """The weights of the nodes at one tilt, and what their sums say of errors."""

    c: float
    panels: int
    weights: Reals
    log_norm: float
    norm_error: float
    missed: float
    slip: float
    size: float


@dataclass(frozen=True, slots=True)
class SampledLaplaceMgf:
    """(1-q) Q + q P against Q (remove), or the reverse (add), of Laplace noise with the largest loss e."""

    q: float
    e: float
    add: bool
    kept: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def _power(self, c: Any) -> Any:
        return -c if self.add else c + 1

    def cumulants(self, c: Reals) -> tuple[Reals, Reals, Reals]:
        log_a, logs, *_ = _noise(self.q, self.e, 1 + math.ceil(self.e / 4))
        exponents = np.multiply.outer(self._power(c), log_a) + logs
        top = exponents.max(axis=1)
        weights = np.exp(exponents - top[:, None])
        total = weights.sum(axis=1)
        mean = weights @ log_a / total
        spread = np.maximum(weights @ log_a**2 / total - mean**2, 0.0)
        return top + np.log(total), -mean if self.add else mean, spread

    def line(self, c: float, h: float, nodes: int) -> MgfLine:
        at = self._tilted(c, h * nodes)
        log_a, _, _, shift = _noise(self.q, self.e, at.panels)
        if nodes == 0:
            error: Reals | float = len(log_a) * U + 2 * (at.slip + at.missed)
            return MgfLine(at.log_norm, at.norm_error, np.ones(1, dtype=complex), error)
        phi, rough = transform(-log_a if self.add else log_a, at.weights, h, nodes)
        phases = (h * U * (6 * at.size + 32 * shift)) * np.arange(nodes + 1)
        return MgfLine(at.log_norm, at.norm_error, phi, rough + 2 * (at.slip + at.missed) + phases)

    def _tilted(self, c: float, t: float) -> _TiltedNoise:
        panels, missed = self._panels(c, t)
        cached: _TiltedNoise | None = self.kept.get("tilted")
        if cached is not None and cached.c == c and cached.panels == panels and cached.missed == missed:
            return cached
        log_a, logs, sizes, shift = _noise(self.q, self.e, panels)
        power = self._power(c)
        exponents = power * log_a + logs
        top = float(exponents.max())
        weights = np.exp(exponents - top)
        total = float(weights.sum())
        weights /= total
        size = float(weights @ sizes)
        # the masses err by 16 U (4 + e), exponents by 4 U of their parts, log A by 16 U of how far it moves
        slip = 4 * U * (4 + float(weights @ np.abs(exponents)) + abs(power) * size)
        slip += 16 * U * (4 + self.e + shift * abs(power))
        norm_error = slip + missed + len(log_a) * U + 4 * U * (abs(top) + 1)
        tilted = _TiltedNoise(c, panels, weights, top + math.log(total), norm_error, missed, slip, size)
        self.kept["tilted"] = tilted
        return tilted

    def decay(self, c: float) -> Callable[[float], float]:
        """Return a bound that falls in t, by uniform laws stacked under the density of the loss."""
        self.kept["rule"] = self._new_rule(c, 0.0)  # so that a line does not depend on the lines before
        norm, power = self.line(c, 0.0, 0), self._power(c)
        log_a, logs, bends = _cells(self.q, self.e)
        logs = (power + 1) * log_a + (logs - (norm.log_norm + norm.norm_error))
        floor = np.exp(np.minimum(np.minimum(logs[1:], logs[:-1]) - abs(power + 1) * bends - 1e-6, 600.0))
        return falling(*stacked(floor, log_a))

    def _panels(self, c: float, t: float) -> tuple[int, float]:
        """Return a number of panels with a small certified error for frequencies up to t, and that error."""
        if not (self.e < _LARGEST and 1e-100 < self.q < 1):
            raise NotConverged
        rule: _PanelRule | None = self.kept.get("rule")
        if rule is None or c > rule.c or t > rule.t:
            self.kept["rule"] = rule = self._new_rule(c, t)
        missed = rule.log_error - self._least(c)
        if (
            not missed < _WANTED
        ):  # the bound for a range of tilts is too large here; this one holds at c alone
            rule = self._new_rule(c, t, widest=False)
            missed = rule.log_error - self._least(c)
        return rule.panels, math.exp(missed)

    def _least(self, c: float) -> float:
        """Return the log of the least that the moment can be: of one atom alone."""
        low, high = (math.log1p(self.q * math.expm1(l)) for l in (-self.e, self.e))
        power = -c if self.add else c + 1
        return max(power * low, power * high - self.e) - math.log(2)

    def _new_rule(self, c: float, t: float, *, widest: bool = True) -> _PanelRule:
        """Return a rule for tilts up to c and frequencies up to t, and if it is wide, for more."""
        if widest:
            c, t = 3 * c, max(1.2 * t, 8 * c)
        low, high = (math.log1p(self.q * math.expm1(l)) for l in (-self.e, self.e))
        panel_count = 2 * self.e / _WIDEST + (t + c) * (high - low) / _TURN
        if widest:
            panels, log_error = _both_sides(self.q, self.e, c, t, math.ceil(min(panel_count, _MAX_PANELS)))
            if log_error < _WANTED:
                return _PanelRule(c, t, panels, log_error)
        panels = 1
        for finer in _FINER:
            panels = math.ceil(finer * min(panel_count, _MAX_PANELS))
            log_error = self._log_error(_edges(self.e, panels), c, t, widest=widest)
            if log_error - (0.0 if widest else self._least(c)) < _WANTED:
                return _PanelRule(c, t, panels, log_error)
        if widest:
            return _PanelRule(c, t, panels, math.inf)
        raise NotConverged

    def _log_error(self, edges: Reals, c: float, t: float, *, widest: bool) -> float:
        """Return the log of the error of Gauss's rule on all panels.

        If it is wide, it holds for all tilts up to c: the logarithms are linear in c, so the larger of their
        values at 0 and at c counts.
        """
        on = _on_ellipses(self.q, self.e, edges, t)
        if self.add:
            tilted = -c * on.fall
            logs = on.logs
        else:
            tilted = c * on.rise
            logs = on.logs + on.rise
        return _summed(on, logs + (np.maximum(tilted, 0.0) if widest else tilted))


class _EllipseBounds(NamedTuple):
    """Bounds on the ellipses around all panels: on the log of the rest of the integrand, and on log |A|."""

    half: Reals
    theta: Reals
    logs: Reals  # phases up to a frequency, and the density
    rise: Reals  # log |A| is at most this
    fall: Reals  # and at least this


def _on_ellipses(q: float, e: float, edges: Reals, t: float) -> _EllipseBounds:
    half, middle = np.diff(edges) / 2, (edges[1:] + edges[:-1]) / 2
    theta, away = half * _SINH, half * _COSH
    lower, upper = middle - away, middle + away
    odds, cosine = q * np.exp(upper), np.cos(theta)
    logs = t * np.arctan2(odds * np.sin(theta), 1 - q + odds * cosine)
    logs -= (lower + e) / 2 + math.log(4)
    share = odds / (1 - q + odds)
    worst = np.where(share < 0.5, share * (1 - share), 0.25)
    fall = np.log1p(q * np.expm1(lower)) + 0.5 * np.log1p(-2 * worst * (1 - cosine))
    return _EllipseBounds(half, theta, logs, np.log1p(q * np.expm1(upper)), fall)


def _summed(on: _EllipseBounds, logs: Reals) -> float:
    return gauss_log_error(np.where(on.theta < 1.5, logs, np.inf), on.half)


@lru_cache(maxsize=256)
def _both_sides(q: float, e: float, c: float, t: float, panels: int) -> tuple[int, float]:
    """Return the panels and the log of the error of their rule, for both directions and tilts up to c."""
    on = _on_ellipses(q, e, _edges(e, panels), t)
    upper = np.maximum(np.maximum(on.rise, (1 + c) * on.rise), np.maximum(-c * on.fall, 0.0))
    return panels, _summed(on, on.logs + upper)
