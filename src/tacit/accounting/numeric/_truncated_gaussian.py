"""The sampled Gaussian up to a cut, in numeric accounting: its outcomes x <= cut, of mass below one.

Above the cut lie the rare large losses. Without them, the moments of all orders are small, and a tiny rate q
makes the phases of the loss log A tiny wherever the law has mass. Gauss's rule on panels resolves them with
few points: the integrand is bounded on an ellipse around each panel. The proof is docs/proofs/accounting.md,
section 4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
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

_LOG_ROOT_2PI = math.log(2 * math.pi) / 2
_LEAST = -3.0  # log-moment of the part below the cut; below this the left tail may matter
_TAIL = 41.0  # the left tail stays below exp(-41) of the moment
_WANTED = -37.0  # log of the wanted error of the rule
_FINER = (1.0, 1.4, 2.0, 3.0, 5.0, 10.0)  # panels, beside the first try
_WIDEST, _TURN = 1.3, 9.0  # of a first panel: its width, and how far the phase turns in it
_MOST_PANELS = 2000
_PLACES = np.linspace(0.0, 1.0, 96)
_SINH, _COSH = np.sinh(ELLIPSES), np.cosh(ELLIPSES)


class Reach(NamedTuple):
    """How far one rule serves: tilts c if a unit is removed and if one is added, and frequencies t."""

    removed: float = 0.0
    added: float = 0.0
    turns: float = 0.0


_NOWHERE = Reach()


class _Rule(NamedTuple):
    """Nodes that serve both directions up to their reach: with log A, the log of weights, and the error."""

    reach: Reach
    log_a: Reals
    sizes: Reals  # of log A
    logs: Reals
    squares: Reals  # of x
    moved: Reals  # how far log A moves by rounding, in units of 8 U
    log_error: float


class _Tilted(NamedTuple):
    """The weights of the nodes at one tilt, and what their sums say of errors."""

    c: float
    rule: _Rule
    weights: Reals
    log_norm: float
    norm_error: float
    missed: float
    slip: float
    size: float


@dataclass(frozen=True, slots=True)
class TruncatedGaussianMgf:
    """The part x <= cut of a sampled Gaussian; ``reach`` says about how far its rule has to serve.

    The rule and the points that steer the search are kept, and both directions share them.
    """

    whole: SampledGaussianMgf
    cut: float
    reach: Reach = _NOWHERE
    cells: int = 256  # under the density, for the decay: few repetitions need many
    kept: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def mirrored(self) -> TruncatedGaussianMgf:
        """Return the same part in the other direction, with the same rule."""
        other = replace(self.whole, add=not self.whole.add)
        return TruncatedGaussianMgf(other, self.cut, self.reach, self.cells, self.kept)

    def cumulants(self, c: Reals) -> tuple[Reals, Reals, Reals]:
        if "steer" not in self.kept:
            x, step = gauss_rule(np.linspace(min(-7.0, self.cut - 1), self.cut, 6))
            self.kept["steer"] = self.whole.log_a(x), np.log(step) - x * x / 2
        log_a, logs = self.kept["steer"]
        exponents = np.multiply.outer(self._power(c), log_a) + logs
        top = exponents.max(axis=1)
        weights = np.exp(exponents - top[:, None])
        total = weights.sum(axis=1)
        mean = weights @ log_a / total
        spread = np.maximum(weights @ log_a**2 / total - mean**2, 0.0)
        return top + np.log(total) - _LOG_ROOT_2PI, -mean if self.whole.add else mean, spread

    def line(self, c: float, h: float, nodes: int) -> MgfLine:
        """Return the line of this part, relative to itself."""
        at = self._tilted(c, h * nodes)
        if nodes == 0:
            error: Reals | float = len(at.weights) * U + 2 * (at.slip + at.missed)
            return MgfLine(at.log_norm, at.norm_error, np.ones(1, dtype=complex), error)
        phi, rough = transform(-at.rule.log_a if self.whole.add else at.rule.log_a, at.weights, h, nodes)
        error = rough + 2 * (at.slip + at.missed) + (8 * U * at.size * h) * np.arange(nodes + 1)
        return MgfLine(at.log_norm, at.norm_error, phi, error)

    def _tilted(self, c: float, t: float) -> _Tilted:
        rule, name = self._rule(c, t), "added" if self.whole.add else "removed"
        last: _Tilted | None = self.kept.get(name)
        if last is not None and last.c == c and last.rule is rule:
            return last
        power = self._power(c)
        exponents = power * rule.log_a + rule.logs
        top = float(exponents.max())
        weights = np.exp(exponents - top)
        total = float(weights.sum())
        log_norm = top + math.log(total)
        if not log_norm > _LEAST:
            raise NotConverged
        weights /= total
        missed = math.exp(rule.log_error - log_norm) + math.exp(4 - _TAIL) + 16 * U
        size = float(weights @ rule.sizes) + float(weights @ rule.moved)
        slip = 8 * U * (2 + float(weights @ rule.squares) + abs(power) * size)
        norm_error = slip + missed + len(weights) * U + 4 * U * (abs(top) + 2)
        found = _Tilted(c, rule, weights, log_norm, norm_error, missed, slip, size)
        self.kept[name] = found
        return found

    def decay(self, c: float) -> Callable[[float], float]:
        norm = self.line(c, 0.0, 0)
        return falling(
            *self.whole.slabs(c, norm=norm.log_norm + norm.norm_error, last=self.cut, cells=self.cells)
        )

    def _power(self, c: Any) -> Any:
        return -c if self.whole.add else c + 1

    def _rule(self, c: float, t: float) -> _Rule:
        """Return a rule that serves c and frequencies up to t, and more."""
        found: _Rule | None = self.kept.get("rule")
        removed, added, turns = self.reach if found is None else found.reach
        tilts = added if self.whole.add else removed
        if found is None or c > tilts or t > turns:
            if c > tilts:
                removed, added = (removed, 1.2 * c) if self.whole.add else (1.2 * c, added)
            found = self._new_rule(Reach(removed, added, turns if t <= turns else 1.2 * t))
            self.kept["rule"] = found
        return found

    def _new_rule(self, reach: Reach) -> _Rule:
        mu, q = self.whole.mu, self.whole.q
        low = -math.sqrt(2 * (_TAIL - reach.added * math.log1p(-q)))  # at most -9.05
        low = min(low, -9.1)
        if not low < self.cut:
            raise NotConverged
        places = low + (self.cut - low) * _PLACES
        log_a = self.whole.log_a(places)
        steepest = reach.turns + max(reach.removed, reach.added / 2)
        turns = (places - low) / _WIDEST + steepest * (log_a - log_a[0]) / _TURN
        for finer in _FINER:
            panels = math.ceil(finer * min(float(turns[-1]), _MOST_PANELS))
            edges = np.interp(np.arange(panels + 1) * (turns[-1] / panels), turns, places)
            log_error = self._log_error(edges, reach)
            if log_error < _WANTED:
                break
        else:
            raise NotConverged
        x, step = gauss_rule(edges)
        u = mu * x - mu * mu / 2
        log_a = self.whole.log_a(x)
        # A changes by the share q exp(u) / A of the error of exp(u), and by q / A of that of 1.
        share = (q + np.exp(u + math.log(q))) * np.exp(-log_a)
        moved = share * (mu * np.abs(x) + mu * mu + 1)
        squares = x * x
        logs = np.log(step) - squares / 2 - _LOG_ROOT_2PI
        return _Rule(reach, log_a, np.abs(log_a), logs, squares, moved, log_error)

    def _log_error(self, edges: Reals, reach: Reach) -> float:
        """Return the log of the error of Gauss's rule on all panels, for all tilts and turns in reach.

        The logarithms are linear in the tilt c of each direction, so the largest of their values at c = 0 and
        at the two largest tilts counts.
        """
        mu, q = self.whole.mu, self.whole.q
        half, middle = np.diff(edges) / 2, (edges[1:] + edges[:-1]) / 2
        theta = (mu * half) * _SINH
        away = half * _COSH
        left, right = middle - away, middle + away
        u = mu * right - mu * mu / 2
        # the smallest |x| between left and right is 0, or that of the nearer end
        nearest = np.maximum(np.maximum(left, -right), 0.0)
        there = q * np.exp(np.minimum(u, 600.0))
        cosine = np.cos(theta)
        turn = np.arctan2(there * np.sin(theta), 1 - q + there * cosine)
        # |A|^2 = A^2 (1 - 2 m (1-m) (1 - cos theta)), m the share of q exp(u) in A
        share = there / (1 - q + there)
        worst = np.where(share < 0.5, share * (1 - share), 0.25)
        if float(u.max()) >= 600:
            turn, worst = np.where(u < 600, turn, theta), np.where(u < 600, worst, 0.25)
        fall = self.whole.log_a(left) + 0.5 * np.log1p(-2 * worst * (1 - cosine))
        rise = self.whole.log_a(right)
        logs = reach.turns * turn - nearest**2 / 2 + (theta / mu) ** 2 / 2
        logs += np.maximum(np.maximum((1 + reach.removed) * rise, rise), np.maximum(-reach.added * fall, 0.0))
        return gauss_log_error(np.where(theta < 1.5, logs, np.inf), half)
