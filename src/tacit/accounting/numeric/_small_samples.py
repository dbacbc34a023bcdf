"""A Gaussian in small samples, repeated, in numeric accounting: rare large losses in closed form.

With a small rate the losses are almost always tiny and rarely large. The outcomes x of each step are cut at
x0: below lie the common losses B, above the rare ones R. Sums of common losses alone go through Fourier
inversion, where nothing is large any more. An outcome with a rare loss, at least the level log A(x0), is in
the best set whatever the common losses add up to, unless they add up to less than epsilon minus the level. So
these outcomes add ``P(a rare loss) - exp(e) Q(a rare loss)`` to delta, and a correction that Chernoff's bound
certifies. If a unit is added, the losses beyond the cut are the smallest ones, and their mass is negligible.
The proof is docs/proofs/accounting.md, section 7.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tacit.accounting.numeric._bracket import Bracket, NotConverged, U, settle
from tacit.accounting.numeric._fourier import FourierInversion
from tacit.accounting.numeric._loss_sum import LossSum
from tacit.accounting.numeric._sampled_gaussian import SampledGaussianMgf
from tacit.accounting.numeric._truncated_gaussian import TruncatedGaussianMgf

if TYPE_CHECKING:
    from tacit.accounting.numeric._mgf import Reals

__all__ = ["SmallSampleAccountant", "small_sample_accountant"]

_MOST_RATE = 0.01
_WITHIN = 4.5  # tilt times epsilon: with more, Fourier inversion resolves the whole law

_BASE = 1.25  # epsilons between two powers share a cut
_GAP = 7.2  # standard deviations of the common losses between the largest such epsilon and the level
_GRANTED = 1e-11  # relative error of masses by the normal distribution function
_FAR = 13.0  # largest tilts and frequencies, times the spread of the common losses
_LARGEST = 300.0  # loss


def small_sample_accountant(loss_sum: LossSum) -> SmallSampleAccountant:
    """Return the accountant for one sampled Gaussian, repeated, if Fourier inversion hardly resolves it.

    Beyond a tilt of about 2 log(1/q) / mu^2 the moments of the whole law are those of its rarest losses. The
    choice depends on the parts alone, so all readings of one sum agree.
    """
    (law, times), *others = loss_sum.factors
    if others or not (isinstance(law, SampledGaussianMgf) and times > 1 and law.q <= _MOST_RATE):
        raise NotConverged
    if not -2 * math.log(law.q) / law.mu**2 * _typical(law.q, law.mu, times) < _WITHIN:
        raise NotConverged
    return SmallSampleAccountant(law, times)


@lru_cache(maxsize=256)
def _typical(q: float, mu: float, times: int) -> float:
    """Return about the epsilon at delta 1e-6, if a unit is removed."""
    return SmallSampleAccountant(SampledGaussianMgf(q, mu, add=False), times).guess(1e-6)


def _beyond(x: float) -> float:
    """Return P(X > x) of a standard normal X."""
    return math.erfc(x * math.sqrt(0.5)) / 2


class _Cut(NamedTuple):
    """A cut: the common losses, and what outcomes with a rare loss add to delta."""

    common: FourierInversion
    more: float  # P(a rare loss) - Q(a rare loss)
    other: float  # Q(a rare loss)
    growth: float  # of the logarithm of the correction with epsilon
    log_correction: float  # at epsilon 0

    def rare(self, e: float) -> tuple[float, float]:
        """Return bounds on what outcomes with a rare loss add to delta."""
        less = math.expm1(e) * self.other
        error = _GRANTED * (self.more + less)
        correction = math.exp(min(0.0, self.log_correction + self.growth * e)) * (1 + 1e-9)
        value = self.more - less
        return max(0.0, value - error), max(0.0, value) + error + correction


class SmallSampleAccountant:
    """Bounds on delta and epsilon of one sampled Gaussian, repeated, in one direction."""

    def __init__(self, law: SampledGaussianMgf, times: int) -> None:
        self._law, self._times = law, times
        if not (1e-100 < law.q < 0.5 and 0.01 < law.mu < 20 and times < 1e12):
            raise NotConverged
        self._cuts: dict[int, _Cut] = {}
        self._core = self._common(3.0)[0]

    def delta(self, e: float) -> Bracket:
        cut = self._cut(self._number(e))
        low, high = cut.rare(e)
        found = cut.common.delta(e)
        upper = min(1.0, (found.upper + high) * (1 + 4 * U))
        return Bracket(max(0.0, (found.lower + low) * (1 - 4 * U)), upper, "spectral")

    def epsilon(self, delta: float) -> Bracket:
        """Find the root of log delta by Newton's method, then certify it."""
        e = self.guess(delta)
        room = delta - sum(self._cut(self._number(e)).rare(e)) / 2
        if room > 0:
            e = self._cut(self._number(e)).common.root(room)[0]
        slope = 0.0
        for _ in range(12):
            here, there = (sum(self.delta(x)[:2]) for x in (e, 1.0001 * e))
            if not here > there > 0:
                raise NotConverged
            slope = math.log(here / there) / (1e-4 * e)
            step = math.log(here / (2 * delta)) / slope
            e = max(e + step, 0.5 * e)
            if abs(step) <= 1e-10 * e:
                break
        return settle(self.delta, e, delta, slope)

    def _number(self, e: float) -> int:
        if self._law.add:
            return 0
        least = 0.1 * self._core
        return math.ceil(math.log(max(e, least, 1e-280)) / math.log(_BASE))

    def _cut(self, number: int) -> _Cut:
        if number not in self._cuts:
            if len(self._cuts) >= 8:
                self._cuts.pop(next(iter(self._cuts)))
            self._cuts[number] = self._at(0.0 if self._law.add else _BASE**number)
        return self._cuts[number]

    def _place(self, e: Reals | float) -> Reals:
        """Return the outcome x with the loss e, or about that for tiny e."""
        q, mu = self._law.q, self._law.mu
        found: Reals = (np.log1p(np.expm1(np.minimum(e, _LARGEST)) / q) + mu * mu / 2) / mu
        return found

    def _spread(self, x0: Reals) -> Reals:
        """Return about the spread of the common losses under Q."""
        from scipy.special import ndtr

        q, mu, k = self._law.q, self._law.mu, self._times
        squares = math.exp(mu * mu) * ndtr(x0 - 2 * mu) - 2 * ndtr(x0 - mu) + ndtr(x0)
        found: Reals = q * np.sqrt(k * np.maximum(squares, 1e-300))
        return found

    def _common(self, x0: float) -> tuple[float, float]:
        """Return about the spread of the common losses under Q, and how far the cut moves their mean."""
        q, mu, k = self._law.q, self._law.mu, self._times
        squares = math.exp(mu * mu) * _beyond(2 * mu - x0) - 2 * _beyond(mu - x0) + _beyond(-x0)
        return q * math.sqrt(k * max(squares, 1e-300)), k * q * _beyond(x0 - mu)

    def guess(self, delta: float) -> float:
        """Return about the epsilon of a delta: of a normal sum of common losses and one large loss."""
        from scipy.special import ndtr

        q, mu, k = self._law.q, self._law.mu, self._times
        core = self._core
        far = 60 * core + math.log1p(q * math.exp(min(mu * (8 + mu / 2), _LARGEST)))
        e = np.exp(np.linspace(math.log(0.01 * core), math.log(far), 90))
        x = self._place(1.3 * e)
        s = self._spread(np.full(len(e), 8.0) if self._law.add else x)
        about = ndtr(s / 2 - e / s) - np.exp(np.minimum(e, _LARGEST)) * ndtr(-s / 2 - e / s)
        if not self._law.add:
            about = about + k * q * (ndtr(mu - x) - ndtr(-x) * np.exp(mu * x - mu * mu / 2))
        below = np.flatnonzero(~(about > delta))
        return float(e[below[0]]) if len(below) else far

    def _at(self, top: float) -> _Cut:
        """Return the cut for epsilons up to ``top``; if a unit is added, for all."""
        q, mu, k = self._law.q, self._law.mu, self._times
        x0, spread = 8.0, self._core
        for _ in range(6):
            spread, moved = self._common(x0)
            level = min(top + moved + _GAP * spread, _LARGEST)
            x0 = max((math.log1p(math.expm1(level) / q) + mu * mu / 2) / mu, 1.0)
        level = float(self._law.log_a(np.array([x0]))[0])
        if not level < _LARGEST:
            raise NotConverged
        tilts, turns = min(2.6 / self._core, 20 / level), _FAR / self._core
        common = TruncatedGaussianMgf(self._law, x0, tilts, turns)
        rare_q = _beyond(x0)
        rare_more = q * (_beyond(x0 - mu) - rare_q)
        rare_p = rare_q + rare_more
        if not (k * rare_p < 300 and rare_p < 0.5):
            raise NotConverged
        more = math.exp(k * math.log1p(-rare_p)) * math.expm1(k * math.log1p(rare_more / (1 - rare_p)))
        other = -math.expm1(k * math.log1p(-rare_q))
        # (B + R)^k - B^k <= k R (B + R)^(k-1), of the moments of exp(-tilt log A) under Q
        tilt = max(_GAP / spread, 1.0)
        other_way = common if self._law.add else TruncatedGaussianMgf(SampledGaussianMgf(q, mu, add=True), x0)
        moment = other_way.line(tilt, 0.0, 0)
        log_rare = math.log(max(rare_q, 1e-300)) - tilt * level * (1 - 8 * U) + _GRANTED
        whole = max(moment.log_norm, log_rare) + math.log1p(math.exp(-abs(moment.log_norm - log_rare)))
        whole += moment.norm_error + 8 * U
        log_correction = math.log(k) + log_rare + (k - 1) * whole
        inside = FourierInversion(LossSum(((common, k),)), whole=False, wide=True)
        if self._law.add:
            return _Cut(inside, 0.0, 0.0, -tilt, log_correction)
        return _Cut(inside, more, other, 1 + tilt, log_correction)
