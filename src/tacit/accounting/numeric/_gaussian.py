"""Numeric accounting of Gaussian noise: in closed form, on a Poisson sample, and about several units at once.

**Closed form** (Balle and Wang 2018, theorem 5). With a = epsilon/mu - mu/2 and b = epsilon/mu + mu/2,
``delta = Phi(-a) - exp(epsilon) Phi(-b) = exp(-a^2/2) (erfcx(a/sqrt 2) - erfcx(b/sqrt 2)) / 2``, because
epsilon - b^2/2 = -a^2/2. The second form has no large factors. The error of its difference is the error of
its two terms. If mu is so small that they nearly agree, the difference is the integral of a convex function,
which lies between the midpoint rule and the trapezoid rule. The error bounds are proved in
docs/proofs/accounting.md, section 2.

**Poisson-sampled Gaussian**, with proven bounds on its quadrature and decay. In units of sigma, let x ~ N(0,
1), u = mu x - mu^2/2 and A = 1 - q + q exp(u). If a unit is removed, the loss is log A and ``M(z) = E
A^(z+1)``. If one is added, the loss is -log A and ``M(z) = E A^(-z)``. Both have the form E A^p.

Quadrature: A is analytic and has no zeros for |Im x| < pi/mu. On Im x = +-a, with theta = mu a, |A| <= A(x),
|A| >= A(x) cos(theta/2) and |arg A| <= theta. So the error of the trapezoid rule with step s is at most
``2 exp(a^2/2 + |t| theta + pen - 2 pi a / s) / (1 - exp(-2 pi a / s))`` relative to M(c); pen = 0 (remove) or
-c log cos(theta/2) (add).

Decay: the tilted loss has a density. Uniform laws of widths w_k and masses m_k can be stacked below any
unimodal minorant of it, so ``|M(c+it)/M(c)| <= 1 - sum_k m_k (1 - s(t w_k / 2))``, where s is a majorant of
|sin y / y| that does not increase. This bound falls in t. docs/proofs/accounting.md, section 4, proves both.

**Several units in one Poisson-sampled Gaussian**: a mixture of shifts on either side. Each of ``removed``
units is in the sample with probability q and moves the answer up by mu. Each of ``added`` units moves it
down. In units of sigma, let x ~ N(0, 1) and A = sum_j Bin(removed, q)(j) exp(j mu x - (j mu)^2/2), and let B
be the same for the added units and -x. P has the density A, Q the density B, and ``M(z) = E A^(z+1) B^-z``.
docs/proofs/accounting.md, section 4, proves that this pair dominates, and the bounds on quadrature and decay.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tacit.accounting.numeric._arithmetic import Bracket, NotConverged, U, down, settle, up
from tacit.accounting.numeric._mgf import Complexes, MgfLine, Reals, SplitLine
from tacit.accounting.numeric._quadrature import dot, transform

if TYPE_CHECKING:
    from collections.abc import Callable


_ROOT2, _SLOPE0 = math.sqrt(2), 2 / math.sqrt(math.pi)
_SPECIAL = 2.0**-44  # granted relative error of scipy's erfcx and log_ndtr; observed 2^-49 and 2^-46
_NARROW = 1e-4  # below this mu: the convex integral


def gaussian_delta(mu: float, epsilon: float) -> Bracket:
    """Return bounds on delta at epsilon for N(mu, 1) against N(0, 1); mu may have a relative error of 4u."""
    from scipy.special import erfcx, log_ndtr

    if mu == 0:
        exact = max(0.0, -math.expm1(epsilon))
        return Bracket(max(0.0, down(exact)), up(exact) if exact else 0.0, "closed form")
    if not math.isfinite(epsilon / mu):
        return Bracket(0.0, 5e-324, "closed form") if epsilon > 0 else Bracket(1 - 2 * U, 1.0, "closed form")
    a, b = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    slip = 8 * U * (abs(epsilon / mu) + mu)  # of a and of b, from mu and from rounding
    if a < -5:  # delta is close to one
        first_term, log_second = math.exp(log_ndtr(-a)), min(0.0, epsilon + float(log_ndtr(-b)))
        second = math.exp(log_second)
        error = first_term * (_SPECIAL + slip) + second * (_SPECIAL + 4 * U) * (
            1 + abs(epsilon) + abs(log_second)
        )
        error += second * slip * (abs(b) + 1)
        return Bracket(
            max(0.0, first_term - second - error), min(1.0, first_term - second + error), "closed form"
        )
    if a > 37.5:  # exp(-a^2/2) is below the normal doubles, and delta <= Phi(-a) is smaller still
        return Bracket(0.0, 1e-305, "closed form")
    scale, x, y = 0.5 * math.exp(-a * a / 2), a / _ROOT2, b / _ROOT2
    common = abs(a) * slip + U * (a * a + 8)  # relative, of the factor that multiplies the difference
    if mu < _NARROW:
        width, noise = mu / _ROOT2, 2 * _SLOPE0 * (_SPECIAL + 8 * U + slip * (1 + abs(x)))
        lower, upper = _slope((x + y) / 2) - noise, (_slope(x) + _slope(y)) / 2 + noise
        common += 8 * U
        return Bracket(
            max(0.0, scale * width * lower * (1 - common)),
            scale * width * upper * (1 + common),
            "closed form",
        )
    first_term, second = float(erfcx(x)), float(erfcx(y))
    value = scale * (first_term - second)
    error = scale * (
        (first_term + second) * _SPECIAL + 2 * slip * (_SLOPE0 + 2 * abs(min(x, 0.0)) * first_term)
    )
    error += value * common
    return Bracket(max(0.0, value - error), min(1.0, value + error), "closed form")


def gaussian_curve(mu: float, e: Reals, sign: float) -> Reals:
    """Return upper (sign 1) or lower (sign -1) values of delta at many epsilons, mu >= 1e-4."""
    import numpy as np
    from scipy.special import erfcx, log_ndtr

    a, b = e / mu - mu / 2, e / mu + mu / 2
    slip = 8 * U * (np.abs(e / mu) + mu)
    x, y = np.maximum(a, -5.0) / _ROOT2, np.maximum(b, -5.0) / _ROOT2
    scale, first_term, second = 0.5 * np.exp(-np.minimum(a * a, 1400.0) / 2), erfcx(x), erfcx(y)
    value = scale * (first_term - second)
    steep = _SLOPE0 + 2 * np.abs(np.minimum(x, 0)) * first_term
    error = scale * ((first_term + second) * _SPECIAL + 2 * slip * steep)
    error += value * (np.abs(a) * slip + U * (a * a + 8))
    term, log_two = np.exp(log_ndtr(-a)), np.minimum(0.0, e + log_ndtr(-b))
    two = np.exp(log_two)
    rough = term * (_SPECIAL + slip) + two * (_SPECIAL + 4 * U) * (1 + np.abs(e) + np.abs(log_two))
    rough += two * slip * (np.abs(b) + 1)
    far = np.where(a < -5, term - two + sign * rough, value + sign * error)
    values: Reals = np.clip(np.where(a > 37, max(0.0, sign) * 1e-297, far), 0.0, 1.0)
    return values


def _slope(x: float) -> float:
    """Return minus the derivative of erfcx at x: positive, decreasing and convex."""
    from scipy.special import erfcx

    return float(_SLOPE0 - 2 * x * erfcx(x))


def gaussian_epsilon(mu: float, delta: float) -> Bracket:
    """Return bounds on the smallest epsilon >= 0 with delta(epsilon) <= delta, by Newton's method."""
    from scipy.special import log_ndtr, ndtri

    if gaussian_delta(mu, 0.0).upper <= delta:
        return Bracket(0.0, 0.0, "closed form")
    if delta <= 0:
        return Bracket(math.inf, math.inf, "closed form")
    # delta <= Phi(-a), so the root lies below mu (mu/2 - ndtri(delta)).
    start = max(0.0, mu * (mu / 2 - float(ndtri(delta))))
    epsilon, target = start, math.log(delta)
    for _ in range(60):
        bounds = gaussian_delta(mu, epsilon)
        if not bounds.lower > 0:
            epsilon *= 0.9
            continue
        value = (bounds.lower + bounds.upper) / 2
        slope = math.exp(epsilon + float(log_ndtr(-epsilon / mu - mu / 2))) / value
        step = (math.log(value) - target) / slope if slope else 0.0
        epsilon = max(0.0, epsilon + step)
        if abs(step) <= 1e-14 * epsilon:
            break
    return settle(lambda e: gaussian_delta(mu, e), epsilon, delta)


def gaussian_tail(mu: float, t: float) -> float:
    """Return an upper value of P(L > t), L ~ N(mu^2/2, mu^2)."""
    from scipy.special import log_ndtr

    if mu == 0:
        return float(t < 0)
    at = mu / 2 - t / mu
    if not math.isfinite(at):
        return 5e-324 if t > 0 else 1.0
    log = float(log_ndtr(at))
    slip = 8 * U * (abs(t / mu) + mu) * (1 + max(0.0, -at))
    return min(1.0, math.exp(log) * (1 + _SPECIAL * (1 + abs(log)) + slip) + 5e-324)


_LOG_TINY = 41.0  # quadrature and truncation errors stay below exp(-41) = 1.6e-18 of M(c)
_ROOT_2PI = math.sqrt(2 * math.pi)
_MAX_POINTS = 1 << 18
_CUT = 0.06  # width of the smooth cut between common and rare losses
_HIGHEST = 600.0  # log of a density; slabs of a smaller height lie under it too
_MIN_LOG_MOMENT = -3.0  # log-moment of a common part; below this the left tail may matter
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
            logs: Reals = np.log1p(self.q * np.expm1(u))
            return logs
        return np.where(u > 600, u + math.log(self.q), np.log1p(self.q * np.expm1(np.minimum(u, 600.0))))

    def cumulants(self, c: Reals, level: float | None = None) -> tuple[Reals, Reals, Reals]:
        step = min(0.3, 0.45 / self.mu)
        # if a unit is added, no tilt moves mass to the right
        high = 9.0 if self.add else 26.0 + 3 * self.mu + min(-2 * math.log(self.q) / self.mu, 900.0)
        if high > _MAX_POINTS * step:
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
        if top - low > _MAX_POINTS * step:
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
        cache = weights > 1e-20
        phi, error, slip = self.sum_over(x[cache], log_a[cache], weights[cache], c, h, nodes)
        missed = 3 * math.exp(-_LOG_TINY) + 1e-20 * (len(x) - int(cache.sum()))
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
        shift = dot(weights, share * (self.mu * np.abs(x) + self.mu**2 + 1))
        slip = 8 * U * (2 + dot(weights, x**2) + abs(power) * (size + shift))
        phi, rough = transform(-log_a if self.add else log_a, weights, h, nodes)
        return phi, rough + 2 * slip + 8 * U * (size + shift) * h * np.arange(nodes + 1), slip

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
        parts = []
        for side in (-1, 1):
            part = weights / total * ndtr(side * (x - x0) / _CUT)
            share = float(part.sum())
            if not share > 0:
                raise NotConverged
            cache = part > 1e-20 * share
            phi, error, slip = self.sum_over(x[cache], log_a[cache], part[cache] / share, c, h, nodes)
            missed = 30 * math.exp(-_LOG_TINY) + 1e-20 * (len(x) - int(cache.sum())) + _NDTR
            parts.append((share * phi, share * (error + 2 * missed + slip), share))
        (bulk, bulk_error, _), (rest, rest_error, share) = parts
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
        if not log_norm > _MIN_LOG_MOMENT:
            raise NotConverged
        cache = weights > 1e-20
        phi, error, slip = self.sum_over(x[cache], log_a[cache], weights[cache], c, h, nodes)
        missed = 30 * math.exp(-_LOG_TINY) + 1e-20 * (len(x) - int(cache.sum())) + _NDTR
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
        top: float = math.inf,
        cells: int = 256,
    ) -> tuple[Reals, Reals]:
        """Return masses and widths of uniform laws stacked under the density of the tilted loss.

        With a level, only the part below it counts, and of x only what is below ``top``. Masses are relative
        to M(c), or to exp(``norm``).
        """
        power = -c if self.add else c + 1
        high = min(top, 8.0 if self.add else max(8.0, (c + 1) * self.mu + 5))
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
    rest = np.minimum.accumulate(floor[mode::-1])
    right = np.minimum.accumulate(floor[mode:])
    levels = np.sort(np.concatenate([rest, right[1:]]))[::-1]
    reach_left = np.searchsorted(-rest, -levels, side="right")
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
    series = np.where(safe < 0.01, safe * safe * (1 / 6 - safe * safe / 120), 1 - np.sin(safe) / safe)
    return np.where(safe <= 2.5, series, 1 - np.minimum(0.2394, 1 / safe))


_MAX_GROUP_POINTS = 1 << 17
_MAX_UNITS = 64


@dataclass(frozen=True, slots=True)
class GroupedGaussianMgf:
    """Mixtures of shifts by the units that were sampled, up in P and down in Q."""

    q: float
    mu: float
    removed: int
    added: int

    def __post_init__(self) -> None:
        if self.removed + self.added > _MAX_UNITS or not 0 < self.q < 1:
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
        if high - low > _MAX_GROUP_POINTS * step:
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
        if high - low > _MAX_GROUP_POINTS * step:
            raise NotConverged
        x = np.arange(low, high + step, step)
        log_a, log_b, _ = self._losses(x)
        losses = log_a - log_b
        exponents = c * losses + log_a - x * x / 2
        top = float(exponents.max())
        weights = np.exp(exponents - top)
        total = float(weights.sum())
        weights /= total
        cache = weights > 1e-20
        phi, error, slip = self._sum(x[cache], log_a[cache], log_b[cache], weights[cache], c, h, nodes)
        missed = 3 * math.exp(-_LOG_TINY) + 1e-20 * (len(x) - int(cache.sum()))
        norm_error = slip + missed + len(x) * U + 4 * U * (abs(top) + 2)
        return MgfLine(top + math.log(total * (step / _ROOT_2PI)), norm_error, phi, error + 2 * missed)

    def _sum(
        self, x: Reals, log_a: Reals, log_b: Reals, weights: Reals, c: float, h: float, nodes: int
    ) -> tuple[Complexes, Reals, float]:
        """Return the sum over the nodes, a bound on its error, and the part of the error at t = 0."""
        size = dot(weights, np.abs(log_a) + np.abs(log_b))
        gone = -math.expm1(self._units * math.log1p(-self.q))
        shift = self._units * self.mu * (dot(weights, np.abs(x)) + self._units * self.mu)
        shift += (self._units + 8) * gone / (1 - gone)
        slip = 16 * U * (2 + dot(weights, x**2) + (c + 1) * (size + shift))
        phi, rough = transform(log_a - log_b, weights, h, nodes)
        return phi, rough + 2 * slip + 16 * U * (size + shift) * h * np.arange(nodes + 1), slip

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
        values: Reals = np.clip(np.maximum(value, 1 - y) + sign * granted, 0.0, 1.0)
        return values

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
