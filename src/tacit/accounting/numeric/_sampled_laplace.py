"""Numeric accounting of Poisson-sampled Laplace noise: two atoms and a density between them, by Gauss's rule.

Let l be the loss of the noise under Q: -e and e with probability 1/2 and exp(-e)/2, and between them the
density exp(-(l + e)/2)/4. Let A = 1 - q + q exp(l). If a unit is removed, the loss is log A and ``M(z) = E
A^(z+1)``. If one is added, the loss is -log A and ``M(z) = E A^(-z)``. The proof is
docs/proofs/accounting.md, section 4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.accounting.numeric._atoms import Atoms
from tacit.accounting.numeric._bracket import NotConverged, U
from tacit.accounting.numeric._gauss_rule import ELLIPSES, gauss_log_error, gauss_rule
from tacit.accounting.numeric._sampled_gaussian import falling, stacked

if TYPE_CHECKING:
    from collections.abc import Callable

    from tacit.accounting.numeric._mgf import MgfLine, Reals

__all__ = ["SampledLaplaceMgf"]

_WIDEST, _TURN = 2.6, 9.0  # of a first panel: its width, and how far the phase turns in it
_FINER, _MOST_PANELS = (1.0, 1.5, 2.5, 5.0), 100  # panels, beside the first try
_WANTED = -37.0  # log of the wanted error of the rule, relative to the moment
_LARGEST = 30.0  # loss of the noise


@dataclass(frozen=True, slots=True)
class SampledLaplaceMgf:
    """(1-q) Q + q P against Q (remove), or the reverse (add), of Laplace noise with the largest loss e."""

    q: float
    e: float
    add: bool

    def _log_a(self, l: Reals) -> Reals:
        return np.log1p(self.q * np.expm1(l))

    def _power(self, c: Any) -> Any:
        return -c if self.add else c + 1

    def _atoms(self, panels: int) -> tuple[Atoms, Reals]:
        """Return the law with its density replaced by the nodes of the rule, and the losses of the noise."""
        x, weights = gauss_rule(np.linspace(-self.e, self.e, panels + 1))
        l = np.concatenate([[-self.e], x, [self.e]])
        inner = weights * np.exp(-(x + self.e) / 2) / 4
        masses = np.concatenate([[0.5], inner, [0.5 * math.exp(-self.e)]])
        log_a = self._log_a(l)
        if self.add:
            return Atoms(-log_a, masses, 16 * U * (4 + self.e)), l
        return Atoms(log_a, masses * np.exp(log_a), 16 * U * (4 + self.e)), l

    def cumulants(self, c: Reals) -> tuple[Reals, Reals, Reals]:
        return self._atoms(1 + math.ceil(self.e / 4))[0].cumulants(c)

    def line(self, c: float, h: float, nodes: int) -> MgfLine:
        panels, missed = self._panels(c, h * nodes)
        atoms, l = self._atoms(panels)
        line = atoms.line(c, h, nodes)
        # A changes by the share q exp(l) / A of the error of exp(l), and by q / A of that of 1.
        log_a = -atoms.losses if self.add else atoms.losses
        moved = float((self.q * (1 + np.exp(l)) * np.exp(-log_a)).max()) * (2 * self.e + 1)
        shift = 16 * U * moved * (abs(self._power(c)) + h * np.arange(nodes + 1))
        norm_error = line.norm_error + missed + float(shift[0])
        return line._replace(norm_error=norm_error, phi_error=line.phi_error + 2 * missed + 2 * shift)

    def decay(self, c: float) -> Callable[[float], float]:
        """Return a bound that falls in t, by uniform laws stacked under the density of the loss."""
        norm, l = self.line(c, 0.0, 0), np.linspace(-self.e, self.e, 129)
        log_a, power = self._log_a(l), self._power(c)
        # Density in the loss: exp(-(l + e)/2) A^power / (4 M dlogA/dl), dlogA/dl = q exp(l) / A.
        logs = (power + 1) * log_a - 1.5 * l - self.e / 2 - math.log(4 * self.q)
        logs -= norm.log_norm + norm.norm_error
        share = np.exp(np.minimum(l[1:] + math.log(self.q) - log_a[1:], 0.0)) * (1 + 1e-9)
        bent = np.where(share < 0.5, share * (1 - share), 0.25)
        bend = float(l[1] - l[0]) ** 2 * abs(power + 1) * bent / 8
        floor = np.exp(np.minimum(np.minimum(logs[1:], logs[:-1]) - bend - 1e-6, 600.0))
        return falling(*stacked(floor, log_a))

    def _panels(self, c: float, t: float) -> tuple[int, float]:
        """Return a number of panels with a small certified error for frequencies up to t, and that error."""
        if not (self.e < _LARGEST and 1e-100 < self.q < 1):
            raise NotConverged
        power, ends = self._power(c), self._log_a(np.array([-self.e, self.e]))
        raised = power * ends - np.array([0.0, self.e])
        least = float(raised.max()) - math.log(2)  # an atom alone
        first = 2 * self.e / _WIDEST + (t + c) * float(ends[1] - ends[0]) / _TURN
        for finer in _FINER:
            panels = math.ceil(finer * min(first, _MOST_PANELS))
            log = self._log_error(np.linspace(-self.e, self.e, panels + 1), c, t) - least
            if log < _WANTED:
                return panels, math.exp(log)
        raise NotConverged

    def _log_error(self, edges: Reals, c: float, t: float) -> float:
        """Return the log of the error of Gauss's rule on all panels."""
        half, middle = np.diff(edges) / 2, (edges[1:] + edges[:-1]) / 2
        theta = half * np.sinh(ELLIPSES)
        left, right = middle - half * np.cosh(ELLIPSES), middle + half * np.cosh(ELLIPSES)
        there = self.q * np.exp(right)
        logs = t * np.arctan2(there * np.sin(theta), 1 - self.q + there * np.cos(theta))
        logs -= (left + self.e) / 2 + math.log(4)
        if self.add:
            share = there / (1 - self.q + there)
            worst = np.where(share < 0.5, share * (1 - share), 0.25)
            logs -= c * (self._log_a(left) + 0.5 * np.log1p(-2 * worst * (1 - np.cos(theta))))
        else:
            logs += (c + 1) * self._log_a(right)
        return gauss_log_error(np.where(theta < 1.5, logs, np.inf), half)
