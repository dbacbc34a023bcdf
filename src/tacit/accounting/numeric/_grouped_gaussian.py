"""Numeric accounting of several units in one Poisson-sampled Gaussian: a mixture of shifts on either side.

Each of ``removed`` units is in the sample with probability q and moves the answer up by mu. Each of ``added``
units moves it down. In units of sigma, let x ~ N(0, 1) and A = sum_j Bin(removed, q)(j) exp(j mu x - (j
mu)^2/2), and let B be the same for the added units and -x. P has the density A, Q the density B, and ``M(z) =
E A^(z+1) B^-z``. docs/proofs/accounting.md, section 4, proves that this pair dominates, and the bounds on
quadrature and decay.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tacit.accounting.numeric._bracket import NotConverged, U
from tacit.accounting.numeric._dot import dot
from tacit.accounting.numeric._exponential_sums import transform
from tacit.accounting.numeric._mgf import Complexes, MgfLine, Reals
from tacit.accounting.numeric._sampled_gaussian import falling, stacked

if TYPE_CHECKING:
    from collections.abc import Callable

_LOG_TINY = 41.0  # quadrature and truncation errors stay below exp(-41) = 1.6e-18 of M(c)
_ROOT_2PI = math.sqrt(2 * math.pi)
_MOST_POINTS = 1 << 17
_MOST_UNITS = 64


@dataclass(frozen=True, slots=True)
class GroupedGaussianMgf:
    """Mixtures of shifts by the units that were sampled, up in P and down in Q."""

    q: float
    mu: float
    removed: int
    added: int

    def __post_init__(self) -> None:
        if self.removed + self.added > _MOST_UNITS or not 0 < self.q < 1:
            raise NotConverged

    @property
    def _units(self) -> int:
        return self.removed + self.added

    def _log_mixture(self, x: Reals, units: int) -> tuple[Reals, Reals]:
        """Return the logarithm of a mixture of shifts up, and the mean number of units given x."""
        if not units:
            return np.zeros_like(x), np.zeros_like(x)
        number = np.arange(units + 1)
        choose = np.array([math.comb(units, j) for j in number], dtype=float)
        log_weights = np.log(choose) + number * math.log(self.q) + (units - number) * math.log1p(-self.q)
        moves = number[:, None] * self.mu * x - (number[:, None] * self.mu) ** 2 / 2
        exponents = log_weights[:, None] + moves
        top = exponents.max(axis=0)
        terms = np.exp(exponents - top)
        total = terms.sum(axis=0)
        small = np.exp(log_weights[:, None]) * np.expm1(np.minimum(moves, 30.0))
        logs = np.where(moves.max(axis=0) < 30, np.log1p(small.sum(axis=0)), top + np.log(total))
        return logs, (number[:, None] * terms).sum(axis=0) / total

    def _losses(self, x: Reals) -> tuple[Reals, Reals, Reals]:
        """Return log A, log B and the slope of the loss log A - log B."""
        log_a, up = self._log_mixture(x, self.removed)
        log_b, down = self._log_mixture(-x, self.added)
        return log_a, log_b, self.mu * (up + down)

    def _range(self, c: float) -> tuple[float, float]:
        """Return ends outside of which the integrand holds less than exp(-41) of M(c) on either side."""
        low = -math.sqrt(2 * (_LOG_TINY - c * self.added * math.log1p(-self.q)))
        return low, ((c + 1) * self.removed + c * self.added) * self.mu + 9.1

    def cumulants(self, c: Reals) -> tuple[Reals, Reals, Reals]:
        step = min(0.3, 0.45 / (self._units * self.mu))
        low, high = -9.0, 26.0 + 3 * self._units * self.mu + min(-2 * math.log(self.q) / self.mu, 900.0)
        if high - low > _MOST_POINTS * step:
            raise NotConverged
        x = np.arange(low if not self.added else -high, high, step)
        log_a, log_b, _ = self._losses(x)
        losses = log_a - log_b
        exponents = np.multiply.outer(c, losses) + log_a - x * x / 2
        top = exponents.max(axis=1)
        weights = np.exp(exponents - top[:, None])
        total = weights.sum(axis=1)
        weights /= total[:, None]
        mean = weights @ losses
        logs = top + np.log(total * (step / _ROOT_2PI))
        logs[((c + 1) * self.removed + c * self.added) * self.mu > x[-1] - 6] = np.inf
        return logs, mean, np.maximum(weights @ losses**2 - mean**2, 0.0)

    def line(self, c: float, h: float, nodes: int) -> MgfLine:
        """Return M on the nodes by the trapezoid rule, as for one unit, with the angles of all units."""
        theta = np.linspace(0.1, 3.1, 31)
        a = np.minimum(theta / (self.mu * max(self.removed, self.added)), 9.5)
        pen = -c * np.log(np.cos(a * self.mu * self.added / 2))
        rates = h * nodes * self._units * self.mu + a / 2 + (_LOG_TINY + 1 + pen) / a
        step = 2 * math.pi / float(rates.min())
        low, high = self._range(c)
        if high - low > _MOST_POINTS * step:
            raise NotConverged
        x = np.arange(low, high + step, step)
        log_a, log_b, _ = self._losses(x)
        losses = log_a - log_b
        exponents = c * losses + log_a - x * x / 2
        top = float(exponents.max())
        weights = np.exp(exponents - top)
        total = float(weights.sum())
        weights /= total
        kept = weights > 1e-20
        phi, error, slip = self._sum(x[kept], log_a[kept], log_b[kept], weights[kept], c, h, nodes)
        missed = 3 * math.exp(-_LOG_TINY) + 1e-20 * (len(x) - int(kept.sum()))
        norm_error = slip + missed + len(x) * U + 4 * U * (abs(top) + 2)
        return MgfLine(top + math.log(total * (step / _ROOT_2PI)), norm_error, phi, error + 2 * missed)

    def _sum(
        self, x: Reals, log_a: Reals, log_b: Reals, weights: Reals, c: float, h: float, nodes: int
    ) -> tuple[Complexes, Reals, float]:
        """Return the sum over the nodes, a bound on its error, and the part of the error at t = 0."""
        size = dot(weights, np.abs(log_a) + np.abs(log_b))
        gone = -math.expm1(self._units * math.log1p(-self.q))
        moved = self._units * self.mu * (dot(weights, np.abs(x)) + self._units * self.mu)
        moved += (self._units + 8) * gone / (1 - gone)
        slip = 16 * U * (2 + dot(weights, x**2) + (c + 1) * (size + moved))
        phi, rough = transform(log_a - log_b, weights, h, nodes)
        return phi, rough + 2 * slip + 16 * U * (size + moved) * h * np.arange(nodes + 1), slip

    def delta(self, e: Reals, sign: float) -> Reals:
        """Return upper (sign 1) or lower (sign -1) values of delta, at the best threshold z of x > -z.

        The ratio of the densities rises in x, so the best set is a half-line. Any half-line gives a lower
        value, and one that misses the best by s misses delta by at most P (units mu) (|z| + 1) s^2.
        """
        from scipy.special import ndtr

        e = np.asarray(e, dtype=float)
        y = np.exp(np.minimum(e, 690.0))
        far = 60.0 + 2 * self._units * self.mu
        table = np.linspace(-far, far, 4097)
        log_a, log_b, _ = self._losses(table)
        x, miss = np.interp(e, log_a - log_b, table), np.zeros_like(e)
        for _ in range(4):  # Newton's method from a good start
            log_a, log_b, slope = self._losses(x)
            move = (e - log_a + log_b) / np.maximum(slope, 1e-300)
            x, miss = np.clip(x + np.clip(move, -0.1, 0.1), -far, far), np.abs(move)
        low = -x
        masses = []
        for units, side in ((self.removed, 1.0), (self.added, -1.0)):
            chances = [
                math.comb(units, j) * self.q**j * (1 - self.q) ** (units - j) for j in range(units + 1)
            ]
            masses.append(sum(p * ndtr(low + side * j * self.mu) for j, p in enumerate(chances)))
        value = masses[0] - y * masses[1]
        granted = 2.0**-40 + 64 * U * (self._units + np.abs(low))
        granted += np.where(np.abs(low) < far, self._units * self.mu * (np.abs(low) + 1) * miss**2, 0.0)
        granted *= masses[0] + y * masses[1]
        found: Reals = np.clip(np.maximum(value, 1 - y) + sign * granted, 0.0, 1.0)
        return found

    def decay(self, c: float) -> Callable[[float], float]:
        """Return a bound that falls in t, by uniform laws stacked under the density of the loss."""
        low = -8.0 if not self.added else self._range(c)[0] + 1
        x = np.linspace(low, max(8.0, self._range(c)[1] - 4), 385)
        gap = float(x[1] - x[0])
        log_a, log_b, slope = self._losses(x)
        norm = self.line(c, 0.0, 0).log_norm
        logs = (c + 1) * log_a - c * log_b - x * x / 2 - np.log(slope) - math.log(_ROOT_2PI) - norm
        largest = max(self.removed, self.added)
        bend = (c + 1) * self.removed**2 / 4 + c * self.added**2 / 4 + 2 * largest**2
        bend = gap * gap * (1 + bend * self.mu**2) / 8
        floor = np.exp(np.minimum(np.minimum(logs[1:], logs[:-1]) - bend - 1e-6, 600.0))
        return falling(*stacked(floor, log_a - log_b))
