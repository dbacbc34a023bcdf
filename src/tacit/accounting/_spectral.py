"""Delta by Fourier inversion on a vertical line, with a certified bracket.

For independent losses with M = prod M_i^k_i and any c > 0, ``delta(e) = (1 / 2 pi i) int exp(log M(z) - z
e) / (z (z+1)) dz`` over Re z = c. The trapezoid rule of step h = 2 pi / T on that line returns exactly
``sum_n delta(e + n T) exp(c n T)``: every alias is positive, so the plain sum is an upper value, and the
aliases are at most ``1 / (exp(c T) - 1)`` from the left and a geometric series by Chernoff's bound at a
larger c2 from the right. Nodes beyond the last are bounded by the factors' ``decay``. Losses on a lattice o
+ g Z need the nodes of one period only, with the kernel summed over the lattice. The argument:
docs/proofs/accounting.md, section 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tacit.accounting._bracket import Bracket, NotConverged, U, settle
from tacit.accounting._rare import Cut, choose_cut, difference, difference_bound, splittable

if TYPE_CHECKING:
    from tacit.accounting._line import Complexes, Factor, Reals

__all__ = ["Inversion", "Lattice", "Mix", "log_moment", "peak", "spread", "steer", "tiny"]

_SMALL = math.log(1e-9)  # wanted size of aliases and truncation, relative to delta
_MOST_NODES = 1 << 16
_FINE, _COARSE = 0.05, 8  # steps of log c
_NEAR = 0.03  # epsilons this close share a line, so that delta and epsilon agree
_KEPT = 8


class _Unseen(NotConverged):
    """No line sees delta here; elsewhere one may."""


class Lattice(NamedTuple):
    """The total loss lies on offset + step * Z."""

    offset: float
    step: float


class Mix(NamedTuple):
    """Independent losses, each so many times; ``lattice`` where they all lie on one."""

    factors: tuple[tuple[Factor, int], ...]
    lattice: Lattice | None = None


class _Grid(NamedTuple):
    """Real c with log M, its derivatives, and the logarithm of Chernoff's bound on delta(0), about."""

    c: Reals
    log_m: Reals
    mean: Reals
    bend: Reals
    hat: Reals


class _Plan(NamedTuple):
    """Where to integrate (any choice is valid; a good one is tight and quick)."""

    c: float
    c2: float
    period: float
    log_ratio: float  # of delta to M(c) exp(-c e), about
    width: float  # of the loss under this tilt, about
    log_delta: float  # about


def peak(c: float) -> float:
    """Return log of max over x >= 0 of (1 - exp(-x)) exp(-c x): delta(e) <= M(c) exp(-c e) times it."""
    return c * math.log(c / (1 + c)) - math.log1p(c)


def steer(mix: Mix, c: Reals) -> tuple[Reals, Reals, Reals]:
    """Return log M and its first two derivatives on a grid of c, about."""
    total = np.zeros((3, len(c)))
    for factor, times in mix.factors:
        for row, part in zip(total, factor.cumulants(c), strict=True):
            row += times * part
    return total[0], total[1], total[2]


def spread(mix: Mix) -> float:
    """Return the standard deviation of the loss, about."""
    return math.sqrt(float(steer(mix, np.array([1e-9]))[2][0]))


def tiny(mix: Mix) -> float:
    """Return the mu of a Gaussian that moves the epsilons of interest by about 2e-6 relatively."""
    c = np.exp(np.linspace(-5.0, 9.0, 36)) / (spread(mix) + 1e-150)
    log_m = steer(mix, c)[0]
    bound = (log_m + c * np.log(c / (1 + c)) - np.log1p(c) + 14) / c
    at = int(np.argmin(np.where(np.isfinite(bound), bound, np.inf)))
    return 1.5e-3 * math.sqrt(max(0.0, 2 * float(bound[at] / c[at])))


def log_moment(mix: Mix, c: float) -> float:
    """Return an upper value of log M(c), c > 0."""
    total = 0.0
    for factor, times in mix.factors:
        line = factor.line(c, 0.0, 0)
        total += times * (line.log_norm + line.norm_error + 8 * U * abs(line.log_norm))
    if math.isnan(total):
        raise NotConverged
    return total + 4 * U * abs(total)


class Inversion:
    """Bounds on delta and epsilon of one mix; lines that were evaluated serve every epsilon nearby."""

    def __init__(self, mix: Mix) -> None:
        self._mix = mix
        self._scale = spread(mix)
        if not 1e-140 < self._scale < 1e140:
            raise NotConverged
        self._coarse = self._grid(np.exp(_FINE * _COARSE * np.arange(-13, 24)) / self._scale)
        self._fine: dict[int, _Grid] = {}
        self._rough: dict[tuple[int, int, int], _Spectrum] = {}
        self._spectra: dict[tuple[int, int, int], _Spectrum] = {}

    def delta(self, e: float) -> Bracket:
        """Return bounds on delta(e), e >= 0."""
        return self._spectrum(e).delta(e)

    def epsilon(self, delta: float) -> Bracket:
        """Return bounds on the smallest epsilon >= 0 with delta(epsilon) <= delta, proved at both ends."""
        log_delta = math.log(delta)
        e, slope, low, high = self._estimate(log_delta), 0.0, 0.0, math.inf
        for _ in range(40):
            try:
                line = self._line(self._key(e))
            except _Unseen:  # about the largest loss, or beyond it
                if high - low <= 1e-6 * e:
                    raise
                high, e = e, (low + e) / 2
                continue
            found = line.log_delta(e)
            if found < log_delta + 3 and line.drowned(e):
                line = self._spectrum(e)
                found = line.log_delta(e)
            if found > log_delta:
                low = e
            else:
                high = e
            there, slope = line.root(e, log_delta) if found > -math.inf else (math.nan, 0.0)
            if low < there < high and self._key(there) == self._key(e):
                e = there
                break
            if not low < there < high:
                there = (low + high) / 2 if high < math.inf else 2 * e + self._scale
            e = there
            if high - low <= 1e-12 * high:
                break
        if e <= 1e-9 * self._scale and self.delta(0.0).upper <= delta:
            return Bracket(0.0, 0.0, self.delta(0.0).method)
        return settle(self.delta, e, delta, slope)

    def _grid(self, c: Reals) -> _Grid:
        log_m, mean, bend = steer(self._mix, c)
        good = np.isfinite(log_m)
        if good.sum() < 3:
            raise NotConverged
        c, log_m = c[good], log_m[good]
        return _Grid(c, log_m, mean[good], bend[good], log_m + c * np.log(c / (1 + c)) - np.log1p(c))

    def _near(self, at: int) -> _Grid:
        if at not in self._fine:
            self._fine[at] = self._grid(self._coarse.c[at] * np.exp(_FINE * np.arange(-36, 25)))
        return self._fine[at]

    def _saddle(self, near: _Grid) -> tuple[Reals, Reals]:
        """Return epsilons and about log delta there, by the saddle point; both monotone."""
        c, log_m, mean, bend, _ = near
        e = mean - 1 / c - 1 / (c + 1)
        width = np.log(2 * math.pi * (bend + c**-2 + (c + 1) ** -2)) / 2
        return np.maximum.accumulate(e), np.minimum.accumulate(log_m - c * e - np.log(c * (c + 1)) - width)

    def _estimate(self, log_delta: float) -> float:
        """Return about the epsilon of a delta."""
        near = self._near(int(np.argmin((self._coarse.hat - log_delta) / self._coarse.c)))
        e, logs = self._saddle(near)
        return max(0.0, float(np.interp(-log_delta, -logs, e)))

    def _key(self, e: float) -> tuple[int, int, int]:
        """Return what epsilons that share a line have in common: the best c by Chernoff's bound, and 3 %."""
        coarse = int(np.argmin(self._coarse.hat - self._coarse.c * e))
        near = self._near(coarse)
        return coarse, int(np.argmin(near.hat - near.c * e)), round(math.log1p(e / self._scale) / _NEAR)

    def _middle(self, key: tuple[int, int, int]) -> float:
        """Return a stand-in for the epsilons of a key, where its c is about the best."""
        coarse, best, place = key
        near = self._near(coarse)
        ends = [max(0, best - 1), min(len(near.c) - 1, best + 1)]
        low, high = near.mean[ends] + np.log(near.c[ends] / (1 + near.c[ends]))
        return max(0.0, min(max(self._scale * math.expm1(place * _NEAR), float(low)), float(high)))

    def _line(self, key: tuple[int, int, int]) -> _Spectrum:
        """Return a line for a key, planned by what delta seems to be: good enough to search with."""
        if key in self._spectra:
            return self._spectra[key]
        if key not in self._rough:
            near, e = self._near(key[0]), self._middle(key)
            bound = float(np.min(near.hat - near.c * e)) - 1.0
            plan = self._plan(near, e, min(bound, float(np.interp(e, *self._saddle(near)))))
            self._keep(self._rough, key, _evaluate(self._mix, plan))
        return self._rough[key]

    def _spectrum(self, e: float) -> _Spectrum:
        """Return the line for an epsilon, planned anew where delta is far smaller than it seemed."""
        key = self._key(e)
        if key not in self._spectra:
            line, near, middle = self._line(key), self._near(key[0]), self._middle(key)
            for _ in range(3):
                value, error, _ = line.sums(middle)
                found = line.log_norm - line.plan.c * middle + math.log(max(value, error, 1e-300))
                drowned = error > 3e-6 * value
                if not drowned and found > line.plan.log_delta - 6:
                    break
                plan, cut = self._plan(near, middle, found - 3), None
                if drowned and self._mix.lattice is None and line.cut is None:
                    cut = choose_cut(self._mix.factors, middle, plan.c, plan.period, found)
                if line.cut is not None or (drowned and cut is None and found > line.plan.log_delta - 6):
                    break
                try:
                    line = _evaluate(self._mix, plan, cut)
                except NotConverged:
                    break
            self._keep(self._spectra, key, line)
        return self._spectra[key]

    @staticmethod
    def _keep(
        store: dict[tuple[int, int, int], _Spectrum], key: tuple[int, int, int], line: _Spectrum
    ) -> None:
        if len(store) >= _KEPT:
            store.pop(next(iter(store)))
        store[key] = line

    def _plan(self, near: _Grid, e: float, log_delta: float) -> _Plan:
        """Choose the line with short periods that keeps delta visible among the terms of the sum."""
        c, log_m, _, bend, hat = near
        need = -log_delta - _SMALL
        left = need / c
        gaps = c[None, :] - c[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            right = np.where(gaps > 0, (hat - c * e + need)[None, :] / gaps, np.inf)
        partner = right.argmin(axis=1)
        right = right[np.arange(len(c)), partner]
        ratio = np.minimum(log_delta + c * e - log_m, 0.0)
        price = np.maximum(left, right) * np.sqrt(20 - ratio)
        price[ratio < min(-14.0, float(ratio.max()) - 3)] = np.inf
        at = int(np.argmin(price))
        if not math.isfinite(price[at]):
            raise _Unseen
        width = math.sqrt(float(bend[at])) + 1e-9 * self._scale
        period = float(max(left[at], right[at]))
        return _Plan(float(c[at]), float(c[partner[at]]), period, float(ratio[at]), width, log_delta)


@dataclass(frozen=True, slots=True)
class _Spectrum:
    """One line, evaluated: delta(e) = exp(log M(c) - c e) Re sum_j terms_j exp(-i t_j e).

    On a lattice the sum is over the losses l >= l0, the first at or above e: exp(-c (l0 - e)) Re sum_j
    (terms_j - exp(e - l0) terms1_j) exp(-i t_j l0). ``terms1`` alone gives -d delta / d e. ``error`` and
    ``error1`` bound the error of the sum as error + |e| error1.
    """

    plan: _Plan
    t: Reals
    terms: Complexes
    terms1: Complexes
    error: float
    error1: float
    log_norm: float
    norm_error: float
    log_norm2: float  # an upper value of log M(c2)
    lattice: Lattice | None
    cut: Cut | None = None

    def sums(self, e: float) -> tuple[float, float, float]:
        """Return sum, its error bound and the sum for -d delta / d e, all relative to exp(log M(c) - c e)."""
        error = self.error + abs(e) * self.error1
        if self.lattice is None:
            turn = np.exp(-1j * self.t * e)
            return float((self.terms * turn).real.sum()), error, float((self.terms1 * turn).real.sum())
        offset, g = self.lattice
        first = offset + g * math.ceil((e - offset) / g)
        turn = np.exp(-1j * self.t * first)
        fade, drop = math.exp(-self.plan.c * (first - e)), math.exp(e - first)
        slope = drop * float((self.terms1 * turn).real.sum())
        return fade * (float((self.terms * turn).real.sum()) - slope), error, fade * slope

    def aliases(self, e: float) -> float:
        """Return an upper value of the sum of all aliases, as delta."""
        c, c2, period = self.plan[:3]
        left = 1 / math.expm1(min(700.0, c * period))
        gap = (c2 - c) * period
        right = math.exp(min(700.0, self.log_norm2 + peak(c2) - c2 * e - gap)) / -math.expm1(-gap)
        return (left + right) * (1 + 1e-9)

    def delta(self, e: float) -> Bracket:
        value, error, _ = self.sums(e)
        log = self.log_norm - self.plan.c * e
        slip = self.norm_error + 4 * U * (abs(self.log_norm) + abs(self.plan.c * e) + 4)
        if not (log < 700 and slip < 0.01 and math.isfinite(value) and math.isfinite(error)):
            raise NotConverged
        upper = math.exp(log) * (value + error) * (1 + 2 * slip) + 1e-300
        if self.cut is not None:  # what was taken out of the sum, and its aliases from the left
            upper += math.exp(min(0.0, self.cut.log_bulk - self.cut.tilt * e)) * (1 + 1e-9)
            upper += (1 + 1e-9) / math.expm1(min(700.0, self.plan.c * self.plan.period))
        lower = math.exp(log) * (value - error) * (1 - 2 * slip) - self.aliases(e)
        method = "spectral" if self.lattice is None else "lattice"
        return Bracket(max(0.0, lower), min(1.0, max(0.0, upper)), method)

    def log_delta(self, e: float) -> float:
        """Return log delta(e), about; minus infinity where this line does not see it."""
        value, error, _ = self.sums(e)
        return self.log_norm - self.plan.c * e + math.log(value) if value > error else -math.inf

    def drowned(self, e: float) -> bool:
        """Say whether rounding covers what is sought."""
        value, error, _ = self.sums(e)
        return error > 0.01 * value

    def root(self, e: float, log_delta: float) -> tuple[float, float]:
        """Return about where delta(e) = delta and -d log delta / d e there, by Newton's rule."""
        c, slope = self.plan.c, self.plan.c
        for _ in range(60):
            value, _, derivative = self.sums(e)
            if not (value > 0 and derivative > 0):  # far from where this line sees: come back
                e -= 1 / c
                continue
            slope = derivative / value
            step = (self.log_norm - c * e + math.log(value) - log_delta) / slope
            e += max(-4 / c, min(4 / c, step))
            if abs(step) * slope <= 1e-7:  # the next step would be its square
                break
        return e, slope


def _smooth(n: int) -> int:
    """Return the least number >= n of the form 2^a 3^b 5^c: quick for the FFT."""
    best = 1 << (n - 1).bit_length()
    five = 1
    while five < best:
        three = five
        while three < best:
            best = min(best, three << max(0, (-(-n // three) - 1).bit_length()))
            three *= 3
        five *= 5
    return best


def _evaluate(mix: Mix, plan: _Plan, cut: Cut | None = None) -> _Spectrum:
    """Evaluate the line of the plan on as many nodes as it takes; with a cut, only what has a rare loss."""
    c, lattice = plan.c, mix.lattice
    decays = [
        (factor.decay(c), times) for i, (factor, times) in enumerate(mix.factors) if not cut or i != cut.which
    ]
    rare = -math.inf
    if cut is not None:
        law, often = splittable(mix.factors[cut.which][0]), mix.factors[cut.which][1]
        decays.append((law.bulk_decay(c, cut.level), often - 1))
        rare = math.log(often * law.split(c, 0.0, 0, cut.level).share) + 1e-6

    half = _MOST_NODES  # nodes up to half a period of the lattice
    whole = 0
    if lattice is not None:
        whole = _smooth(max(2, math.ceil(plan.period / lattice.step)))
        plan = plan._replace(period=whole * lattice.step)
        half = whole // 2
    h = 2 * math.pi / plan.period

    def left_out(node: int) -> float:
        """Return the logarithm of what all nodes beyond this one can add."""
        log_phi = sum(times * bound(node * h) for bound, times in decays)
        if cut is not None:  # |M^k - B^k| <= k |R| max(|M|, |B|)^(k-1)
            log_phi += rare
        if lattice is None:  # sum over j > J of (h / pi) / t_j^2 <= 1 / (pi t_J)
            return log_phi - math.log(math.pi * node * h)
        # |1 - exp(-z g)| >= 2 exp(-c g / 2) t g / pi up to half a period: a harmonic sum.
        return (
            log_phi + (c + 1) * lattice.step / 2 + math.log(math.log(half / node))
            if node < half
            else -math.inf
        )

    most = min(half, _MOST_NODES if lattice is None else _MOST_NODES // 4)
    wanted = plan.log_ratio + _SMALL
    low, nodes = 0, max(1, min(most, int(4 * math.sqrt(-wanted) / (plan.width * h))))
    while not left_out(nodes) <= wanted:
        if nodes == most:
            raise NotConverged
        low, nodes = nodes, min(2 * nodes, most)
    while nodes - low > 1 + nodes // 10:
        middle = (low + nodes) // 2
        if left_out(middle) <= wanted:
            nodes = middle
        else:
            low = middle
    t = h * np.arange(nodes + 1)
    weight = np.full(nodes + 1, 2 / plan.period)
    weight[0] /= 2
    z = c + 1j * t
    if lattice is None:
        kernel1 = 1 / (z + 1)
        kernel = kernel1 / z
        size, far = np.abs(kernel), 0.0
    else:
        kernel, kernel1 = -1 / np.expm1(-z * lattice.step), -1 / np.expm1(-(z + 1) * lattice.step)
        size, far = np.abs(kernel) + np.abs(kernel1), abs(lattice.offset) + lattice.step
        weight *= lattice.step
        if nodes == half and whole % 2 == 0:
            weight[-1] /= 2
    log_phi, log_size = np.zeros(nodes + 1, dtype=complex), np.zeros(nodes + 1)
    log_norm = norm_error = 0.0
    for i, (factor, times) in enumerate(mix.factors):
        if cut is not None and i == cut.which:
            continue
        line = factor.line(c, h, nodes)
        log_phi += times * np.log(np.where(line.phi == 0, 1e-300, line.phi))
        log_size += times * np.log(np.abs(line.phi) + line.phi_error)
        log_norm += times * line.log_norm
        norm_error += times * (line.norm_error + 4 * U * abs(line.log_norm))
    turns = sum(times for _, times in mix.factors)
    phi = np.where(
        log_phi.real > -600, np.exp(log_phi), 0.0
    )  # denormal numbers are slow, and within the error bound
    heights = np.abs(phi)
    # |prod a_i - prod b_i| <= prod (|b_i| + e_i) - prod |b_i|, and the logarithms of the product are rounded.
    if float(log_size.max()) > 1:  # the error of one factor, so many times over, is all there is
        raise NotConverged
    bound = np.exp(np.maximum(log_size, -600)) * (1 + 8 * U * (turns + len(mix.factors) + np.abs(log_size)))
    error = np.maximum(bound - heights, 0.0) + 16 * U * (1 + turns + np.abs(log_size)) * heights
    if cut is not None:
        law, often = splittable(mix.factors[cut.which][0]), mix.factors[cut.which][1]
        parts = law.split(c, h, nodes, cut.level)
        log_norm += often * parts.log_norm
        norm_error += often * (parts.norm_error + 4 * U * abs(parts.log_norm))
        inner = difference(parts.bulk, parts.rest, often)
        least, most_ = np.abs(parts.bulk), np.abs(parts.rest)
        size0 = difference_bound(least, most_, often)
        size1 = difference_bound(least + parts.bulk_error, most_ + parts.rest_error, often)
        rough = np.maximum(size1 - size0, 0.0) + 32 * U * (1 + often) * size1
        error = rough * bound + np.abs(inner) * error
        phi, heights = phi * inner, heights * np.abs(inner)
    error += heights * U * (32 + len(t) + 8 * far * (c + 1 + t))
    size *= weight
    return _Spectrum(
        plan, t, weight * phi * kernel, weight * phi * kernel1,
        float(size @ error) + math.exp(left_out(nodes)) * (1 + 1e-9),
        8 * U * float((size * (c + 1 + 2 * t)) @ heights),
        log_norm, norm_error, log_moment(mix, plan.c2), lattice, cut,
    )  # fmt: skip
