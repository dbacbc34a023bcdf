"""Numeric accounting of the Poisson-sampled Gaussian, with proven bounds on its quadrature and decay.

In units of sigma, let x ~ N(0, 1), u = mu x - mu^2/2 and A = 1 - q + q exp(u). If a unit is removed, the loss
is log A and ``M(z) = E A^(z+1)``. If one is added, the loss is -log A and ``M(z) = E A^(-z)``. Both have the
form E A^p.

Quadrature: A is analytic and has no zeros for |Im x| < pi/mu. On Im x = +-a, with theta = mu a, |A| <= A(x),
|A| >= A(x) cos(theta/2) and |arg A| <= theta. So the error of the trapezoid rule with step s is at most
``2 exp(a^2/2 + |t| theta + pen - 2 pi a / s) / (1 - exp(-2 pi a / s))`` relative to M(c); pen = 0 (remove) or
-c log cos(theta/2) (add).

Decay: the tilted loss has a density. Uniform laws of widths w_k and masses m_k can be stacked below any
unimodal minorant of it, so ``|M(c+it)/M(c)| <= 1 - sum_k m_k (1 - s(t w_k / 2))``, where s is a majorant of
|sin y / y| that does not increase. This bound falls in t. docs/proofs/accounting.md, section 4, proves both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tacit.accounting.numeric._bracket import NotConverged, U
from tacit.accounting.numeric._dot import dot
from tacit.accounting.numeric._exponential_sums import transform
from tacit.accounting.numeric._mgf import Complexes, MgfLine, Reals, SplitLine

if TYPE_CHECKING:
    from collections.abc import Callable

_LOG_TINY = 41.0  # quadrature and truncation errors stay below exp(-41) = 1.6e-18 of M(c)
_ROOT_2PI = math.sqrt(2 * math.pi)
_MOST_POINTS = 1 << 18
_CUT = 0.06  # width of the smooth cut between common and rare losses
_HIGHEST = 600.0  # log of a density; slabs of a smaller height lie under it too
_LEAST = -3.0  # log-moment of a common part; below this the left tail may matter
_NDTR = 2.0**-41  # granted relative error of scipy's ndtr


@dataclass(frozen=True, slots=True)
class SampledGaussianMgf:
    """(1-q) N(0, 1) + q N(mu, 1) against N(0, 1) (remove), or the reverse (add)."""

    q: float
    mu: float
    add: bool

    def log_a(self, x: Reals) -> Reals:
        u = self.mu * x - self.mu**2 / 2
        if u.max() <= 600:
            found: Reals = np.log1p(self.q * np.expm1(u))
            return found
        return np.where(u > 600, u + math.log(self.q), np.log1p(self.q * np.expm1(np.minimum(u, 600.0))))

    def cumulants(self, c: Reals, level: float | None = None) -> tuple[Reals, Reals, Reals]:
        step = min(0.3, 0.45 / self.mu)
        # if a unit is added, no tilt moves mass to the right
        high = 9.0 if self.add else 26.0 + 3 * self.mu + min(-2 * math.log(self.q) / self.mu, 900.0)
        if high > _MOST_POINTS * step:
            raise NotConverged
        x = np.arange(-9.0, high, step)
        log_a = self.log_a(x)
        weight = x * x / 2
        if level is not None:
            from scipy.special import log_ndtr

            weight = weight - log_ndtr((self.cut(level) - x) / _CUT)
        exponents = np.multiply.outer(-c if self.add else c + 1, log_a) - weight
        top = exponents.max(axis=1)
        weights = np.exp(exponents - top[:, None])
        total = weights.sum(axis=1)
        weights /= total[:, None]
        mean = weights @ log_a
        spread = np.maximum(weights @ log_a**2 - mean**2, 0.0)
        logs = top + np.log(total * (step / _ROOT_2PI))
        if not self.add and level is None:
            logs[(c + 1) * self.mu > x[-1] - 6] = np.inf  # the mass at this tilt may lie beyond the grid
        return logs, -mean if self.add else mean, spread

    def _quadrature(
        self, c: float, t: float, *, cut: bool = False, far: float = -math.inf, high: float = math.inf
    ) -> tuple[Reals, float]:
        """Return nodes x and their distance: the rule has an error of exp(-41) M(c) up to |t|, with tails.

        With a cut, the integrand has the additional factor Phi(+-(x - x0) / w), which is at most
        exp(a^2 / 2 w^2) times larger off the axis.
        """
        theta = np.linspace(0.1, 3.1, 31)
        a = np.minimum(theta / self.mu, 9.5)
        if cut:
            a = np.concatenate([a, np.linspace(0.2, 4.0, 20) * _CUT])
            a = a[a * self.mu < 3.1]
        theta = a * self.mu
        pen = -c * np.log(np.cos(theta / 2)) if self.add else np.zeros_like(theta)
        rates = t * self.mu + a / 2 * (1 + cut / _CUT**2) + (_LOG_TINY + 1 + pen) / a
        step = 2 * math.pi / float(rates.min())
        if self.add:
            top = math.sqrt(2 * (_LOG_TINY - c * math.log1p(-self.q)))
            low = -top
        else:
            low, top = -9.1, min(high, max((c + 1) * self.mu, far) + 9.1)
        if top - low > _MOST_POINTS * step:
            raise NotConverged
        return np.arange(low, top + step, step), step

    def line(self, c: float, h: float, nodes: int) -> MgfLine:
        x, step = self._quadrature(c, h * nodes)
        log_a = self.log_a(x)
        power = -c if self.add else c + 1
        exponents = power * log_a - x * x / 2
        top = float(exponents.max())
        weights = np.exp(exponents - top)
        total = float(weights.sum())
        weights /= total
        kept = weights > 1e-20
        phi, error, slip = self.sum_over(x[kept], log_a[kept], weights[kept], c, h, nodes)
        missed = 3 * math.exp(-_LOG_TINY) + 1e-20 * (len(x) - int(kept.sum()))
        norm_error = slip + missed + len(x) * U + 4 * U * (abs(top) + 2)
        return MgfLine(top + math.log(total * (step / _ROOT_2PI)), norm_error, phi, error + 2 * missed)

    def sum_over(
        self, x: Reals, log_a: Reals, weights: Reals, c: float, h: float, nodes: int
    ) -> tuple[Complexes, Reals, float]:
        """Return the sum over the nodes, a bound on its error, and the part of the error at t = 0."""
        power = -c if self.add else c + 1
        size = dot(weights, np.abs(log_a))
        # A changes by the share q exp(u) / A of the error of exp(u), and by q / A of that of 1.
        share = 2 * self.q / (1 - self.q) - np.expm1(-log_a)  # at least q (1 + exp(u)) / A
        moved = dot(weights, share * (self.mu * np.abs(x) + self.mu**2 + 1))
        slip = 8 * U * (2 + dot(weights, x**2) + abs(power) * (size + moved))
        phi, rough = transform(-log_a if self.add else log_a, weights, h, nodes)
        return phi, rough + 2 * slip + 8 * U * (size + moved) * h * np.arange(nodes + 1), slip

    def cut(self, level: float) -> float:
        """Return the x at which the loss is about the level."""
        if level > _HIGHEST:
            raise NotConverged
        return (math.log1p(math.expm1(level) / self.q) + self.mu**2 / 2) / self.mu

    def split(self, c: float, h: float, nodes: int, level: float) -> SplitLine:
        """Return M in two parts, of losses roughly below and above the level (remove only)."""
        from scipy.special import ndtr

        x0 = self.cut(level)
        x, step = self._quadrature(c, h * nodes, cut=True, far=x0)
        log_a = self.log_a(x)
        exponents = (c + 1) * log_a - x * x / 2
        top = float(exponents.max())
        weights = np.exp(exponents - top)
        total = float(weights.sum())
        found = []
        for side in (-1, 1):
            part = weights / total * ndtr(side * (x - x0) / _CUT)
            share = float(part.sum())
            if not share > 0:
                raise NotConverged
            kept = part > 1e-20 * share
            phi, error, slip = self.sum_over(x[kept], log_a[kept], part[kept] / share, c, h, nodes)
            missed = 30 * math.exp(-_LOG_TINY) + 1e-20 * (len(x) - int(kept.sum())) + _NDTR
            found.append((share * phi, share * (error + 2 * missed + slip), share))
        (bulk, bulk_error, _), (rest, rest_error, share) = found
        norm_error = 16 * U * (4 + abs(top) + dot(weights, np.abs(exponents - top)) / total) + len(x) * U
        log_norm = top + math.log(total * (step / _ROOT_2PI))
        return SplitLine(
            log_norm, norm_error + self.line(c, 0.0, 0).norm_error, bulk, bulk_error, rest, rest_error, share
        )

    def log_bulk(self, c: float, level: float) -> float:
        """Return an upper value of the log-moment of the losses roughly below the level (remove only)."""
        from scipy.special import ndtr

        x0 = self.cut(level)
        x, step = self._quadrature(c, 0.0, cut=True, high=x0 + _CUT**2 * (c + 1) * self.mu + 9.2 * _CUT)
        log_a = self.log_a(x)
        exponents = (c + 1) * log_a - x * x / 2
        with np.errstate(divide="ignore"):
            exponents += np.log(ndtr((x0 - x) / _CUT))
        top = float(exponents.max())
        total = float(np.exp(exponents - top).sum())
        slip = 1e-9  # far more than rounding, quadrature and the tails
        return top + math.log(total * (step / _ROOT_2PI)) + slip * (1 + abs(top))

    def common(self, level: float) -> CommonPartMgf:
        """Return the losses roughly below the level, of mass below one (remove only)."""
        return CommonPartMgf(self, level)

    def decay(self, c: float) -> Callable[[float], float]:
        return falling(*self.slabs(c))

    def bulk_decay(self, c: float, level: float) -> Callable[[float], float]:
        """Return the decay of the part below the level; its slabs also lie under the whole density."""
        return falling(*self.slabs(c, level))

    def common_line(self, c: float, h: float, nodes: int, level: float) -> MgfLine:
        """Return the line of the part below the level, relative to itself."""
        from scipy.special import ndtr

        x0 = self.cut(level)
        x, step = self._quadrature(c, h * nodes, cut=True, high=x0 + _CUT**2 * (c + 1) * self.mu + 9.2 * _CUT)
        log_a, chi = self.log_a(x), ndtr((x0 - x) / _CUT)
        exponents = (c + 1) * log_a - x * x / 2
        with np.errstate(divide="ignore"):
            top = float((exponents + np.log(chi)).max())
        weights = np.exp(np.minimum(exponents - top, 700.0)) * chi
        total = float(weights.sum())
        weights /= total
        log_norm = top + math.log(total * (step / _ROOT_2PI))
        if not log_norm > _LEAST:
            raise NotConverged
        kept = weights > 1e-20
        phi, error, slip = self.sum_over(x[kept], log_a[kept], weights[kept], c, h, nodes)
        missed = 30 * math.exp(-_LOG_TINY) + 1e-20 * (len(x) - int(kept.sum())) + _NDTR
        norm_error = slip + missed + len(x) * U + 4 * U * (abs(top) + 2)
        return MgfLine(log_norm, norm_error, phi, error + 2 * missed)

    def common_decay(self, c: float, level: float) -> Callable[[float], float]:
        """Return the decay of the part below the level, relative to itself."""
        norm = self.common_line(c, 0.0, 0, level)
        return falling(*self.slabs(c, level, norm.log_norm + norm.norm_error))

    def slabs(
        self,
        c: float,
        level: float | None = None,
        norm: float | None = None,
        last: float = math.inf,
        cells: int = 256,
    ) -> tuple[Reals, Reals]:
        """Return masses and widths of uniform laws stacked under the density of the tilted loss.

        With a level, only the part below it counts, and of x only what is below ``last``. Masses are relative
        to M(c), or to exp(``norm``).
        """
        power = -c if self.add else c + 1
        high = min(last, 8.0 if self.add else max(8.0, (c + 1) * self.mu + 5))
        if level is not None and norm is not None:
            high = min(high, max(1.0, self.cut(level) + 4 * _CUT))
        gap = (high + 8.0) / cells
        x = -8.0 + gap * np.arange(cells + 1)
        log_a = self.log_a(x)
        norm = self.line(c, 0.0, 0).log_norm if norm is None else norm
        # Density in the loss: phi(x) A^power / (M dlogA/dx), dlogA/dx = mu q exp(u) / A.
        u = self.mu * x - self.mu**2 / 2
        logs = (power + 1) * log_a - x * x / 2 - u
        logs -= math.log(self.mu * self.q * _ROOT_2PI) + norm
        # The second derivative of log A is mu^2 m (1 - m), m = q exp(u) / A, which rises in x.
        share = np.exp(np.minimum(u[1:] + math.log(self.q) - log_a[1:], 0.0)) * (1 + 1e-9)
        bent = np.where(share < 0.5, share * (1 - share), 0.25)
        bend = gap * gap * (1 + abs(power + 1) * self.mu**2 * bent) / 8
        floor = np.exp(np.minimum(np.minimum(logs[1:], logs[:-1]) - bend - 1e-6, _HIGHEST))
        if level is not None:  # the cut falls in x: its smallest value in a cell is on the right
            from scipy.special import ndtr

            floor = floor * ndtr((self.cut(level) - x[1:]) / _CUT)
        return stacked(floor, log_a)


@dataclass(frozen=True, slots=True)
class CommonPartMgf:
    """B of a sampled Gaussian (remove): losses roughly below a level, weighted by the smooth cut."""

    whole: SampledGaussianMgf
    level: float

    def cumulants(self, c: Reals) -> tuple[Reals, Reals, Reals]:
        return self.whole.cumulants(c, self.level)

    def line(self, c: float, h: float, nodes: int) -> MgfLine:
        return self.whole.common_line(c, h, nodes, self.level)

    def decay(self, c: float) -> Callable[[float], float]:
        return self.whole.common_decay(c, self.level)


def stacked(floor: Reals, losses: Reals) -> tuple[Reals, Reals]:
    """Return masses and widths of uniform laws under a staircase over the cells between increasing losses."""
    mode = int(np.argmax(floor))
    left = np.minimum.accumulate(floor[mode::-1])
    right = np.minimum.accumulate(floor[mode:])
    levels = np.sort(np.concatenate([left, right[1:]]))[::-1]
    reach_left = np.searchsorted(-left, -levels, side="right")
    reach_right = np.searchsorted(-right, -levels, side="right")
    widths = losses[mode + reach_right] - losses[mode + 1 - reach_left]
    masses = (levels - np.append(levels[1:], 0.0)) * widths
    if not np.isfinite(masses).all():
        raise NotConverged
    return masses, widths


def falling(masses: Reals, widths: Reals) -> Callable[[float], float]:
    """Return the bound on log |M(c+it)/M(c)| that uniform laws under the density prove; it falls in t."""

    def bound(t: float) -> float:
        lost = float(masses @ _one_less_sinc(widths * (t / 2)))
        return math.log1p(-min(lost * (1 - 1e-9), 1 - U))

    return bound


def _one_less_sinc(y: Reals) -> Reals:
    """Return 1 - s(y), s non-increasing and at least |sin y / y| (its second lobe stays below 0.2394)."""
    safe = np.maximum(y, 1e-9)
    near = np.where(safe < 0.01, safe * safe * (1 / 6 - safe * safe / 120), 1 - np.sin(safe) / safe)
    return np.where(safe <= 2.5, near, 1 - np.minimum(0.2394, 1 / safe))
