"""A Gaussian in small samples, repeated, in numeric accounting: rare large losses in closed form.

With a small rate the losses are almost always tiny and rarely large. The outcomes x of each step are cut at
x0: below lie the common losses B, above the rare ones R. Sums of common losses alone go through Fourier
inversion, where nothing is large any more. An outcome with a rare loss, at least the level log A(x0), is in
the best set whatever the common losses add up to, unless they add up to less than epsilon minus the level. So
these outcomes add ``P(a rare loss) - exp(e) Q(a rare loss)`` to delta, and a correction that Chernoff's bound
certifies. If a unit is added, the losses beyond the cut are the smallest ones, and their mass is negligible.
The proof is docs/proofs/accounting.md, section 7.

**Up to the cut**, the outcomes have a mass below one. Without the rare large losses, the moments of all
orders are small, and a tiny rate q makes the phases of the loss log A tiny wherever the law has mass. Gauss's
rule on panels resolves them with few points: the integrand is bounded on an ellipse around each panel. The
proof is docs/proofs/accounting.md, section 4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tacit.accounting.numeric._arithmetic import Bracket, NotConverged, U, settle
from tacit.accounting.numeric._fourier import FourierInversion
from tacit.accounting.numeric._gaussian import SampledGaussianMgf, falling
from tacit.accounting.numeric._mgf import LossSum, MgfLine
from tacit.accounting.numeric._quadrature import ELLIPSES, gauss_log_error, gauss_rule, transform

if TYPE_CHECKING:
    from collections.abc import Callable

    from tacit.accounting.numeric._mgf import Reals


_LOG_ROOT_2PI = math.log(2 * math.pi) / 2
_MIN_LOG_MOMENT = -3.0  # log-moment of the part below the cut; below this the left tail may matter
_TAIL = 41.0  # the left tail stays below exp(-41) of the moment
_WANTED = -37.0  # log of the wanted error of the rule
_FINER = (1.0, 1.4, 2.0, 3.0, 5.0, 10.0)  # panels, beside the first try
_WIDEST, _TURN = 1.3, 9.0  # of a first panel: its width, and how far the phase turns in it
_MAX_PANELS = 2000
_PLACES = np.linspace(0.0, 1.0, 96)
_SINH, _COSH = np.sinh(ELLIPSES), np.cosh(ELLIPSES)
_MAX_RATE = 0.01
_WITHIN = 4.5  # tilt times epsilon: with more, Fourier inversion resolves the whole law
_BASE = 1.25  # epsilons between two powers share a cut
_GAP = 7.2  # standard deviations of the common losses between the largest such epsilon and the level
_GRANTED = 1e-11  # relative error of masses by the normal distribution function
_FAR = 14.5  # the largest frequencies of a first rule, times the spread of the common losses
_STEEP = 5.2  # its largest tilt if a unit is removed, times that spread
_LARGEST = 300.0  # loss
_HALF_ROOT = math.sqrt(0.5)


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
        cached: _Tilted | None = self.kept.get(name)
        if cached is not None and cached.c == c and cached.rule is rule:
            return cached
        power = self._power(c)
        exponents = power * rule.log_a + rule.logs
        top = float(exponents.max())
        weights = np.exp(exponents - top)
        total = float(weights.sum())
        log_norm = top + math.log(total)
        if not log_norm > _MIN_LOG_MOMENT:
            raise NotConverged
        weights /= total
        missed = math.exp(rule.log_error - log_norm) + math.exp(4 - _TAIL) + 16 * U
        size = float(weights @ rule.sizes) + float(weights @ rule.moved)
        slip = 8 * U * (2 + float(weights @ rule.squares) + abs(power) * size)
        norm_error = slip + missed + len(weights) * U + 4 * U * (abs(top) + 2)
        tilted = _Tilted(c, rule, weights, log_norm, norm_error, missed, slip, size)
        self.kept[name] = tilted
        return tilted

    def decay(self, c: float) -> Callable[[float], float]:
        norm = self.line(c, 0.0, 0)
        return falling(
            *self.whole.slabs(c, norm=norm.log_norm + norm.norm_error, top=self.cut, cells=self.cells)
        )

    def _power(self, c: Any) -> Any:
        return -c if self.whole.add else c + 1

    def _rule(self, c: float, t: float) -> _Rule:
        """Return a rule that serves c and frequencies up to t, and more."""
        rule: _Rule | None = self.kept.get("rule")
        removed, added, turns = self.reach if rule is None else rule.reach
        tilts = added if self.whole.add else removed
        if rule is None or c > tilts or t > turns:
            if c > tilts:
                removed, added = (removed, 1.2 * c) if self.whole.add else (1.2 * c, added)
            rule = self._new_rule(Reach(removed, added, turns if t <= turns else 1.2 * t))
            self.kept["rule"] = rule
        return rule

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
            panels = math.ceil(finer * min(float(turns[-1]), _MAX_PANELS))
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
        shift = share * (mu * np.abs(x) + mu * mu + 1)
        squares = x * x
        logs = np.log(step) - squares / 2 - _LOG_ROOT_2PI
        return _Rule(reach, log_a, np.abs(log_a), logs, squares, shift, log_error)

    def _log_error(self, edges: Reals, reach: Reach) -> float:
        """Return the log of the error of Gauss's rule on all panels, for all tilts and turns in reach.

        The logarithms are linear in the tilt c of each direction, so the largest of their values at c = 0 and
        at the two largest tilts counts.
        """
        mu, q = self.whole.mu, self.whole.q
        half, middle = np.diff(edges) / 2, (edges[1:] + edges[:-1]) / 2
        theta = (mu * half) * _SINH
        away = half * _COSH
        lower, upper = middle - away, middle + away
        u = mu * upper - mu * mu / 2
        # the smallest |x| between left and right is 0, or that of the nearer end
        nearest = np.maximum(np.maximum(lower, -upper), 0.0)
        odds = q * np.exp(np.minimum(u, 600.0))
        cosine = np.cos(theta)
        turn = np.arctan2(odds * np.sin(theta), 1 - q + odds * cosine)
        # |A|^2 = A^2 (1 - 2 m (1-m) (1 - cos theta)), m the share of q exp(u) in A
        share = odds / (1 - q + odds)
        worst = np.where(share < 0.5, share * (1 - share), 0.25)
        if float(u.max()) >= 600:
            turn, worst = np.where(u < 600, turn, theta), np.where(u < 600, worst, 0.25)
        fall = self.whole.log_a(lower) + 0.5 * np.log1p(-2 * worst * (1 - cosine))
        rise = self.whole.log_a(upper)
        logs = reach.turns * turn - nearest**2 / 2 + (theta / mu) ** 2 / 2
        logs += np.maximum(np.maximum((1 + reach.removed) * rise, rise), np.maximum(-reach.added * fall, 0.0))
        return gauss_log_error(np.where(theta < 1.5, logs, np.inf), half)


def small_sample_accountant(loss_sum: LossSum) -> SmallSampleAccountant:
    """Return the accountant for one sampled Gaussian, repeated, if Fourier inversion hardly resolves it.

    Beyond a tilt of about 2 log(1/q) / mu^2 the moments of the whole law are those of its rarest losses. The
    choice depends on the parts alone, so all readings of one sum agree.
    """
    (law, times), *others = loss_sum.factors
    if others or not (isinstance(law, SampledGaussianMgf) and times > 1 and law.q <= _MAX_RATE):
        raise NotConverged
    _check(law, times)
    if not -2 * math.log(law.q) / law.mu**2 * _estimate(law.q, law.mu, times, 1e-6) < _WITHIN:
        raise NotConverged
    return SmallSampleAccountant(law, times)


def _check(law: SampledGaussianMgf, times: int) -> None:
    if not (1e-100 < law.q < 0.5 and 0.01 < law.mu < 20 and times < 1e12):
        raise NotConverged


def _upper_tail(x: float) -> float:
    """Return P(X > x) of a standard normal X."""
    return math.erfc(x * _HALF_ROOT) / 2


def _common_losses(q: float, mu: float, times: int, x0: float) -> tuple[float, float]:
    """Return about the spread of the common losses under Q, and how far the cut moves their mean."""
    mass_above = _upper_tail(mu - x0)
    squares = math.exp(mu * mu) * _upper_tail(2 * mu - x0) - 2 * mass_above + _upper_tail(-x0)
    return q * math.sqrt(times * max(squares, 1e-300)), times * q * (1 - mass_above)


def _estimate(q: float, mu: float, times: int, delta: float) -> float:
    """Return about the epsilon of a delta, if a unit is removed."""
    return _first_below(*_estimates(q, mu, times, add=False), delta)


def _first_below(e: Reals, about: Reals, delta: float) -> float:
    """Return about where delta is reached, between two of the epsilons."""
    below = np.flatnonzero(~(about > delta))
    if not len(below):
        return float(e[-1])
    at = int(below[0])
    if at == 0 or not about[at] > 0:
        return float(e[at])
    share = math.log(about[at - 1] / delta) / math.log(about[at - 1] / about[at])
    return float(e[at - 1] * (e[at] / e[at - 1]) ** share)


@lru_cache(maxsize=256)
def _estimates(q: float, mu: float, times: int, *, add: bool) -> tuple[Reals, Reals]:
    """Return epsilons and about their deltas: of a normal sum of common losses and one large loss."""
    from scipy.special import ndtr

    core = _common_losses(q, mu, times, 3.0)[0]
    far = 60 * core + math.log1p(q * math.exp(min(mu * (8 + mu / 2), _LARGEST)))
    e = np.exp(np.linspace(math.log(0.01 * core), math.log(far), 90))
    x = (np.log1p(np.expm1(np.minimum(1.3 * e, _LARGEST)) / q) + mu * mu / 2) / mu
    x0 = 8.0 if add else x
    none, one, two = ndtr(x0), ndtr(x0 - mu), ndtr(x0 - 2 * mu)
    squares = np.maximum(math.exp(mu * mu) * two - 2 * one + none, 1e-300)
    s = q * np.sqrt(times * squares)
    # skewness moves the quantiles (Cornish and Fisher)
    cubes = math.exp(3 * mu * mu) * ndtr(x0 - 3 * mu) - 3 * math.exp(mu * mu) * two
    skewness = (cubes + 3 * one - none) / (squares * np.sqrt(times * squares))
    shift = s * ((e / s) ** 2 - 1) * (-skewness if add else skewness) / 6
    threshold = e - np.clip(shift, -0.2 * e, 0.2 * e)
    about = ndtr(s / 2 - threshold / s) - np.exp(np.minimum(threshold, _LARGEST)) * ndtr(
        -s / 2 - threshold / s
    )
    if not add:
        about = about + times * q * (ndtr(mu - x) - ndtr(-x) * np.exp(mu * x - mu * mu / 2))
    return e, about


class _Cut(NamedTuple):
    """A cut: the common losses if a unit is removed, and what outcomes with a rare loss add to delta."""

    common: TruncatedGaussianMgf
    scale: float  # about the spread of the common losses
    more: float  # P(a rare loss) - Q(a rare loss), if a unit is removed
    other: float  # Q(a rare loss)
    tilt: float  # of Chernoff's bound on the correction
    log_correction: float  # at epsilon 0

    def rare(self, e: float, *, add: bool) -> tuple[float, float]:
        """Return bounds on what outcomes with a rare loss add to delta."""
        growth = -self.tilt if add else 1 + self.tilt
        correction = math.exp(min(0.0, self.log_correction + growth * e)) * (1 + 1e-9)
        if add:
            return 0.0, correction
        less = math.expm1(e) * self.other
        error = _GRANTED * (self.more + less)
        value = self.more - less
        return max(0.0, value - error), max(0.0, value) + error + correction


@lru_cache(maxsize=64)
def _cut_at(q: float, mu: float, times: int, number: int) -> _Cut:
    """Return the cut for epsilons up to a power of 1.25, for both directions."""
    top, core, x0 = _BASE**number, _common_losses(q, mu, times, 3.0)[0], 8.0
    spread = core
    for _ in range(6):
        spread, shift = _common_losses(q, mu, times, x0)
        level, previous = min(top + shift + _GAP * spread, _LARGEST), x0
        x0 = max((math.log1p(math.expm1(level) / q) + mu * mu / 2) / mu, 1.0)
        if abs(x0 - previous) < 1e-3:
            break
    law = SampledGaussianMgf(q, mu, add=False)
    level = float(law.log_a(np.array([x0]))[0])
    if not level < _LARGEST:
        raise NotConverged
    tilt = max(_GAP / spread, 1.0)
    # up to the first tilt, exp(tilt log A - x^2 / 2) is hardly above 1 at the cut
    reach = Reach(min(_STEEP / core, (x0 * x0 / 2 + 2) / level), tilt, _FAR / core)
    common = TruncatedGaussianMgf(law, x0, reach, 128 if times >= 500 else 256)
    rare_q = _upper_tail(x0)
    rare_more = q * (_upper_tail(x0 - mu) - rare_q)
    rare_p = rare_q + rare_more
    if not (times * rare_p < 300 and rare_p < 0.5):
        raise NotConverged
    more = math.exp(times * math.log1p(-rare_p)) * math.expm1(times * math.log1p(rare_more / (1 - rare_p)))
    other = -math.expm1(times * math.log1p(-rare_q))
    # (B + R)^k - B^k <= k R (B + R)^(k-1), of the moments of exp(-tilt log A) under Q
    moment = common.mirrored().line(tilt, 0.0, 0)
    log_rare = math.log(max(rare_q, 1e-300)) - tilt * level * (1 - 8 * U) + _GRANTED
    log_total = max(moment.log_norm, log_rare) + math.log1p(math.exp(-abs(moment.log_norm - log_rare)))
    log_total += moment.norm_error + 8 * U
    return _Cut(common, core, more, other, tilt, math.log(times) + log_rare + (times - 1) * log_total)


class SmallSampleAccountant:
    """Bounds on delta and epsilon of one sampled Gaussian, repeated, in one direction."""

    def __init__(self, law: SampledGaussianMgf, times: int) -> None:
        _check(law, times)
        self._law, self._times = law, times
        self._least = 0.1 * _common_losses(law.q, law.mu, times, 3.0)[0]
        self._inside: dict[int, FourierInversion] = {}

    def delta(self, e: float) -> Bracket:
        cut, inside = self._cut(e)
        low, high = cut.rare(e, add=self._law.add)
        bracket = inside.delta(e)
        upper = min(1.0, (bracket.upper + high) * (1 + 4 * U))
        return Bracket(max(0.0, (bracket.lower + low) * (1 - 4 * U)), upper, "spectral")

    def mirrored(self, e: float) -> float:
        """Return an upper value of delta(e) if a unit is added, by the line that served e if one is removed.

        Outcomes without a rare loss add Q(none) - y P(none) + y H_(1/y)(P, Q), and the others the correction.
        """
        if self._law.add:
            raise NotConverged
        cut, inside = self._cut(e)
        y, rare = math.exp(min(e, 700.0)), (cut.more + cut.other) * (1 + _GRANTED)
        less = math.expm1(min(e, 700.0)) * (1 - rare)
        value = y * inside.below(e) + cut.more * (1 + _GRANTED) + cut.rare(e, add=True)[1]
        return max(0.0, value - less) + 16 * U * (value + less)

    def epsilon(self, delta: float) -> Bracket:
        """Find the root of log delta by Newton's method, then certify it."""
        q, mu, add = self._law.q, self._law.mu, self._law.add
        if delta > 3 * self._least and self.delta(0.0).upper <= delta:  # delta(0) is about 4 times the least
            return Bracket(0.0, 0.0, "spectral")
        e, slope = _first_below(*_estimates(q, mu, self._times, add=add), delta), 0.0
        if self._number(1.02 * e) != self._number(e):
            e *= 1.02  # estimates are a bit small
        for _ in range(24):
            cut, inside = self._cut(e)
            common, fall = inside.approximate(e)
            here = common + sum(cut.rare(e, add=add)) / 2
            fall += 0.0 if add else cut.other * math.exp(min(e, _LARGEST))
            if not (here > 0 and fall > 0):
                raise NotConverged
            slope = fall / here
            step = math.log(here / delta) / slope
            e = min(max(e + step, 0.5 * e), 2 * e)
            if abs(step) <= 3e-6 * e:  # the next step would be its square
                break
        return settle(self.delta, e, delta, slope)

    def _number(self, e: float) -> int:
        return math.ceil(math.log(max(e, self._least, 1e-280)) / math.log(_BASE))

    def _cut(self, e: float) -> tuple[_Cut, FourierInversion]:
        """Return the cut for an epsilon and the sums of its common losses; epsilons nearby share both."""
        number = self._number(e)
        cut = _cut_at(self._law.q, self._law.mu, self._times, number)
        if number not in self._inside:
            if len(self._inside) >= 8:
                self._inside.pop(next(iter(self._inside)))
            common = cut.common.mirrored() if self._law.add else cut.common
            sums = LossSum(((common, self._times),))
            max_tilt = common.reach.added if self._law.add else common.reach.removed
            self._inside[number] = FourierInversion(
                sums, whole=False, wide=True, scale=cut.scale, most=max_tilt
            )
        return cut, self._inside[number]
