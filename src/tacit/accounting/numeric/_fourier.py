"""Numeric accounting by Fourier inversion on a vertical line: delta, with a certified bracket.

For independent losses with M = prod M_i^k_i and any c > 0, ``delta(e) = (1 / 2 pi i) int exp(log M(z) - z
e) / (z (z+1)) dz`` over Re z = c. The trapezoid rule of step h = 2 pi / T on that line returns exactly
``sum_n delta(e + n T) exp(c n T)``: every alias is positive, so the plain sum is an upper value, and the
aliases are at most ``1 / (exp(c T) - 1)`` from the left and, by Chernoff's bound at a larger c2, a geometric
series from the right. The ``decay`` of the factors bounds the nodes beyond the last. Losses on a lattice
o + g Z need only the nodes of one period, with the kernel summed over the lattice. The proof is
docs/proofs/accounting.md, section 3.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from tacit.accounting.numeric._bracket import Bracket, NotConverged, U, settle
from tacit.accounting.numeric._fourier_line import SMALL, LineChoice, Spectrum, evaluate
from tacit.accounting.numeric._loss_sum import LossSum, spread, steer
from tacit.accounting.numeric._rare_losses import choose_cut, splittable, visible_cuts

if TYPE_CHECKING:
    from tacit.accounting.numeric._mgf import Reals

_T = TypeVar("_T")

_FINE, _COARSE = 0.05, 8  # steps of log c
_AROUND = np.exp(_FINE * np.arange(-36, 25))
_STEPS = np.exp(_FINE * _COARSE * np.arange(-13, 24))
_NEAR = 0.03  # epsilons this close share a line, so that the readings of delta and epsilon agree
_WIDE, _APART = 0.15, 2  # the same where one line serves more epsilons: also steps of log c
_SHOWN = 3e-6  # relative error of delta that needs no better line
_KEPT = 8
_STEEP = 14.0  # c epsilon: with more, errors of exp(c epsilon) hide delta(-epsilon)
_DEAR = 1.3  # a period this much longer costs as much as a tilt that needs another rule


class _Unseen(NotConverged):
    """No line resolves delta at this epsilon; at another epsilon one may."""


class _RealAxis(NamedTuple):
    """Real points c with approximate log M, its derivatives, and log of Chernoff's bound on delta(0)."""

    c: Reals
    log_m: Reals
    mean: Reals
    bend: Reals
    hat: Reals


class _Steering(NamedTuple):
    """What chooses the lines of a sum; it is approximate, and fills up while the sum is read."""

    scale: float
    coarse: _RealAxis
    fine: dict[int, _RealAxis]
    saddles: dict[int, tuple[Reals, Reals]]
    choices: dict[tuple[int, int, int], LineChoice]


class FourierInversion:
    """Bounds on delta and epsilon of one loss sum; each evaluated line serves all epsilons nearby."""

    def __init__(
        self,
        loss_sum: LossSum,
        *,
        whole: bool = True,
        wide: bool = False,
        scale: float | None = None,
        most: float = math.inf,
        like: FourierInversion | None = None,
    ) -> None:
        self._loss_sum, self._whole = (
            loss_sum,
            whole,
        )  # not whole: the part that a cut took out, which is not cut again
        self._wide = wide  # one line serves epsilons further apart
        self._most = most  # tilts beyond it are dear
        # A sum may be so similar to another that its lines serve this one too; any line is valid.
        self.steering: _Steering = self._steered(scale) if like is None else like.steering
        self._scale, self._coarse, self._fine, self._saddles, self._choices = self.steering
        self._keys: dict[float, tuple[int, int, int]] = {}
        self._rough: dict[tuple[int, int, int], Spectrum] = {}
        self._spectra: dict[tuple[int, int, int], Spectrum] = {}

    def _steered(self, scale: float | None) -> _Steering:
        if scale is None:
            scale = spread(self._loss_sum)
        if not 1e-140 < scale < 1e140:
            raise NotConverged
        return _Steering(scale, self._grid(_STEPS / scale), {}, {}, {})

    def delta(self, e: float) -> Bracket:
        """Return bounds on delta(e), e >= 0."""
        return self._spectrum(e).delta(e)

    def mirrored(self, e: float) -> float:
        """Return an upper value of delta(e) in the other direction, e >= 0, of a pair of probabilities.

        By H_y(Q, P) = 1 - y + y H_(1/y)(P, Q) it needs only delta(-e), on the line that served e. Where y - 1
        is far larger than delta, it is a poor value, but it costs next to nothing.
        """
        low, high = self.below(e), math.exp(min(e, 700.0))
        return max(0.0, high * low - math.expm1(min(e, 700.0))) + 16 * U * (high * low + high)

    def below(self, e: float) -> float:
        """Return an upper value of delta(-e), by the line that served e; refused if none did."""
        line = self.served(e)
        if line is None or line.choice.c * e > _STEEP:
            raise NotConverged
        return line.delta(-e).upper

    def served(self, e: float) -> Spectrum | None:
        """Return the plain line, without a cut or a lattice, that served e; None if there is none."""
        line = self._spectra.get(self._key(e))
        return None if line is None or line.cut is not None or line.lattice is not None else line

    def approximate(self, e: float) -> tuple[float, float]:
        """Return about delta(e) and -d delta / d e."""
        line = self._spectrum(e)
        value, _, slope = line.sums(e)
        scale = math.exp(min(line.log_norm - line.choice.c * e, 700.0))
        return scale * value, scale * slope

    def epsilon(self, delta: float) -> Bracket:
        """Return bounds on the smallest epsilon >= 0 with delta(epsilon) <= delta, proved at both ends."""
        e, slope = self.root(delta)
        if e <= 1e-9 * self._scale and self.delta(0.0).upper <= delta:
            return Bracket(0.0, 0.0, self.delta(0.0).method)
        return settle(self.delta, e, delta, slope)

    def root(self, delta: float) -> tuple[float, float]:
        """Return approximately the epsilon of a delta, and -d log delta / d epsilon there."""
        log_delta = math.log(delta)
        e, slope, low, high = self._estimate(log_delta), 0.0, 0.0, math.inf
        for _ in range(40):
            try:
                line = self._line(self._key(e))
            except _Unseen:  # near the largest loss, or beyond it
                if high - low <= 1e-6 * e:
                    raise
                high, e = e, (low + e) / 2
                continue
            found = line.log_delta(e)
            if found < log_delta + 3 and line.hidden(e, log_delta):
                line = self._spectrum(e)
                found = line.log_delta(e)
            if found > log_delta:
                low = e
            else:
                high = e
            there, slope = line.root(e, log_delta, low, high)
            if low < there < high and self._key(there) == self._key(e):
                e = there
                break
            if not low < there < high:
                there = (low + high) / 2 if high < math.inf else 2 * e + self._scale
            e = there
            if high - low <= 1e-12 * high:
                break
        return e, slope

    def _grid(self, c: Reals) -> _RealAxis:
        log_m, mean, bend = steer(self._loss_sum, c)
        good = np.isfinite(log_m)
        if not good.all():
            c, log_m, mean, bend = c[good], log_m[good], mean[good], bend[good]
        if len(c) < 3:
            raise NotConverged
        return _RealAxis(c, log_m, mean, bend, log_m + c * np.log(c / (1 + c)) - np.log1p(c))

    def _near(self, at: int) -> _RealAxis:
        if at not in self._fine:
            self._fine[at] = self._grid(self._coarse.c[at] * (_AROUND[::2] if self._wide else _AROUND))
        return self._fine[at]

    def _saddle(self, at: int) -> tuple[Reals, Reals]:
        """Return epsilons and approximate log delta there, by the saddle point; both are monotone."""
        if at not in self._saddles:
            c, log_m, mean, bend, _ = self._near(at)
            e = mean - 1 / c - 1 / (c + 1)
            width = np.log(2 * math.pi * (bend + c**-2 + (c + 1) ** -2)) / 2
            logs = log_m - c * e - np.log(c * (c + 1)) - width
            self._saddles[at] = np.maximum.accumulate(e), np.minimum.accumulate(logs)
        return self._saddles[at]

    def _estimate(self, log_delta: float) -> float:
        """Return approximately the epsilon of a delta."""
        e, logs = self._saddle(int(np.argmin((self._coarse.hat - log_delta) / self._coarse.c)))
        return max(0.0, float(np.interp(-log_delta, -logs, e)))

    def _key(self, e: float) -> tuple[int, int, int]:
        """Return a key that epsilons within 3 % and with the same best c by Chernoff's bound share."""
        if e not in self._keys:
            if len(self._keys) >= _KEPT:
                self._keys.clear()
            self._keys[e] = self._new_key(e)
        return self._keys[e]

    def _new_key(self, e: float) -> tuple[int, int, int]:
        coarse = int((self._coarse.hat - self._coarse.c * e).argmin())
        near = self._near(coarse)
        best, place = int((near.hat - near.c * e).argmin()), math.log1p(e / self._scale)
        if self._wide:
            return coarse, min(best // _APART * _APART + _APART // 2, len(near.c) - 1), round(place / _WIDE)
        return coarse, best, round(place / _NEAR)

    def _middle(self, key: tuple[int, int, int]) -> float:
        """Return a representative epsilon of a key, for which its c is about the best."""
        coarse, best, place = key
        near, apart, width = self._near(coarse), _APART if self._wide else 1, _WIDE if self._wide else _NEAR
        ends = max(0, best - apart), min(len(near.c) - 1, best + apart)
        low, high = (float(near.mean[i]) - math.log1p(1 / float(near.c[i])) for i in ends)
        return max(0.0, min(max(self._scale * math.expm1(place * width), low), high))

    def _line(self, key: tuple[int, int, int]) -> Spectrum:
        """Return a line for a key, chosen by an estimate of delta: good enough for the search."""
        if key in self._spectra:
            return self._spectra[key]
        if key not in self._rough:
            if key not in self._choices:
                near, e = self._near(key[0]), self._middle(key)
                bound = float(np.min(near.hat - near.c * e)) - 1.0
                choice = self._choose_line(near, e, min(bound, float(np.interp(e, *self._saddle(key[0])))))
                self._keep(self._choices, key, choice)
            self._keep(self._rough, key, evaluate(self._loss_sum, self._choices[key]))
        return self._rough[key]

    def _spectrum(self, e: float) -> Spectrum:
        """Return the line for an epsilon; choose another if delta is far smaller than estimated."""
        key = self._key(e)
        if key not in self._spectra:
            line, near, middle = self._line(key), self._near(key[0]), self._middle(key)
            for _ in range(3):
                value, error, _ = line.sums(middle)
                found = line.log_norm - line.choice.c * middle + math.log(max(value, error, 1e-300))
                hidden = error > _SHOWN * value
                if not hidden and found > line.choice.log_delta - 6:
                    break
                choice, cut = self._choose_line(near, middle, found - 3), None
                if hidden and self._loss_sum.lattice is None and line.cut is None:
                    cut = choose_cut(self._loss_sum.factors, middle, choice.c, choice.period, found)
                if line.cut is not None or (hidden and cut is None and found > line.choice.log_delta - 6):
                    break
                try:
                    line = evaluate(self._loss_sum, choice, cut)
                except NotConverged:
                    break
            self._keep(self._spectra, key, self._beside(line, near, middle))
        return self._spectra[key]

    def _beside(self, line: Spectrum, near: _RealAxis, e: float) -> Spectrum:
        """If no line resolves delta, return one that does, with the common losses on a line of their own."""
        value, error, _ = line.sums(e)
        best = error / max(value, 1e-300)
        if best <= _SHOWN or self._loss_sum.lattice is not None or not self._whole:
            return line
        log_delta = line.log_norm - line.choice.c * e + math.log(max(value, error, 1e-300))
        try:
            choice = self._choose_line(near, e, log_delta - 3)
        except NotConverged:
            return line
        for cut in visible_cuts(self._loss_sum.factors, e, choice.c, choice.period):
            factors = list(self._loss_sum.factors)
            law, times = factors[cut.which]
            factors[cut.which] = splittable(law).common(cut.level), times
            try:
                other = evaluate(
                    self._loss_sum, choice, cut, FourierInversion(LossSum(tuple(factors)), whole=False)
                )
                value, error, _ = other.sums(e)
            except NotConverged:
                continue
            if error < best * value:
                line, best = other, error / value
            if best <= _SHOWN:
                break
        return line

    @staticmethod
    def _keep(store: dict[tuple[int, int, int], _T], key: tuple[int, int, int], line: _T) -> None:
        if len(store) >= _KEPT:
            store.pop(next(iter(store)))
        store[key] = line

    def _choose_line(self, near: _RealAxis, e: float, log_delta: float) -> LineChoice:
        """Choose the line with a short period on which delta is not hidden by the terms of the sum."""
        c, log_m, _, bend, hat = near
        need = -log_delta - SMALL
        left = need / c
        gaps = c[None, :] - c[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            right = np.where(gaps > 0, (hat - c * e + need)[None, :] / gaps, np.inf)
        dear = np.where(c <= self._most, 1.0, _DEAR) if self._most < c[-1] else 1.0
        partner = (right * dear).argmin(axis=1)
        right = right[np.arange(len(c)), partner]
        ratio = np.minimum(log_delta + c * e - log_m, 0.0)
        price = np.maximum(left, right) * np.sqrt(20 - ratio)
        least = -14.0 if self._whole else 0.0  # the smooth cut has fewer certified digits
        price[ratio < min(least, float(ratio.max()) - 3)] = np.inf
        at = int(np.argmin(price))
        if not math.isfinite(price[at]):
            raise _Unseen
        width = math.sqrt(float(bend[at])) + 1e-9 * self._scale
        period = float(max(left[at], right[at]))
        return LineChoice(float(c[at]), float(c[partner[at]]), period, float(ratio[at]), width, log_delta)
