"""Delta by Fourier inversion on a vertical line, with a certified bracket.

For independent losses with M = prod M_i^k_i and any c > 0,
``delta(e) = (1 / 2 pi i) int exp(log M(z) - z e) / (z (z+1)) dz`` over Re z = c. The trapezoid rule of step h = 2 pi / T
on that line returns exactly ``sum_n delta(e + n T) exp(c n T)``: every alias is positive, so the plain sum is an upper
value, and the aliases are at most ``1 / (exp(c T) - 1)`` from the left and a geometric series by Chernoff's bound at a
larger c2 from the right. Nodes beyond the last are bounded by the factors' ``decay``. Losses on a lattice o + g Z need the
nodes of one period only, with the kernel summed over the lattice. The argument: docs/proofs/accounting.md, section 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tacit.accounting._bracket import Bracket, NotConverged, U, settle
from tacit.accounting._line import Complexes, Factor, Reals

__all__ = ["Lattice", "Mix", "log_moment", "peak", "spectral_delta", "spectral_epsilon", "spread", "steer"]

_SMALL = math.log(1e-9)  # wanted size of aliases and truncation, relative to delta
_MOST_NODES = 1 << 17


class Lattice(NamedTuple):
    """The total loss lies on offset + step * Z."""

    offset: float
    step: float


class Mix(NamedTuple):
    """Independent losses, each so many times; ``lattice`` where they all lie on one."""

    factors: tuple[tuple[Factor, int], ...]
    lattice: Lattice | None = None


class _Plan(NamedTuple):
    """Where to integrate (any choice is valid; a good one is tight and quick)."""

    c: float
    c2: float
    period: float
    log_ratio: float  # log of delta exp(c e) / M(c), about
    e: float


@dataclass(frozen=True, slots=True)
class _Spectrum:
    """M on the nodes of one line: serves every epsilon nearby."""

    c: float
    period: float
    t: Reals
    weight: Reals
    phi: Complexes
    phi_error: Reals
    log_norm: float
    norm_error: float
    log_tail: float  # of |phi| beyond the last node; -inf where no node is left out
    log_norm2: float  # an upper value of log M(c2)
    c2: float
    lattice: Lattice | None
    kernel: Complexes  # of exp(-z e); on a lattice 1 / (1 - exp(-z g))
    kernel1: Complexes  # on a lattice 1 / (1 - exp(-(z+1) g)), else 1 / (z+1)

    def _kernel(self, e: float) -> tuple[Complexes, Complexes, Complexes, Reals]:
        """Return exp(-i t e), the kernels of delta and -d delta/d e, and the size of the terms they are made of."""
        if self.lattice is None:
            return np.exp(-1j * self.t * e), self.kernel, self.kernel1, np.abs(self.kernel)
        offset, g = self.lattice
        rise = offset + g * math.ceil((e - offset) / g) - e
        two = math.exp(-rise) * self.kernel1
        turn = np.exp(-1j * self.t * (e + rise)) * math.exp(-self.c * rise)
        noise = 1 + (abs(e) + abs(offset)) * (self.c + self.t)
        return turn, self.kernel - two, two, (np.abs(self.kernel) + np.abs(two)) * noise

    def sums(self, e: float) -> tuple[float, float, float]:
        """Return sum, its error bound and the sum for the derivative, all relative to exp(log M(c) - c e)."""
        turn, kernel, slope, size = self._kernel(e)
        turned = self.phi * turn
        value = float(self.weight @ (turned * kernel).real)
        derivative = float(self.weight @ (turned * slope).real)
        rough = 8 * U * (4 + abs(e) * self.t) + len(self.t) * U
        error = float(self.weight @ (size * (self.phi_error + np.abs(self.phi) * rough)))
        if self.log_tail > -math.inf:
            error += math.exp(self.log_tail) * self._left_out()
        return value, error, derivative

    def _left_out(self) -> float:
        """Return the weight of the kernel beyond the last node."""
        last = float(self.t[-1])
        if self.lattice is None:  # sum over j > J of (h / pi) / t_j^2
            return 1 / (math.pi * last)
        g = self.lattice.step
        return 1 / -math.expm1(-self.c * g) + 1 / -math.expm1(-(self.c + 1) * g)

    def aliases(self, e: float) -> float:
        """Return an upper value of the sum of all aliases, as delta."""
        left = 1 / math.expm1(self.c * self.period) if self.c * self.period < 700 else 0.0
        gap = (self.c2 - self.c) * self.period
        right = math.exp(min(700.0, self.log_norm2 + peak(self.c2) - self.c2 * e - gap)) / -math.expm1(-gap)
        return (left + right) * (1 + 1e-9)

    def delta(self, e: float) -> Bracket:
        value, error, _ = self.sums(e)
        log = self.log_norm - self.c * e
        slip = self.norm_error + 4 * U * (abs(self.log_norm) + abs(self.c * e) + 4)
        if log > 700 or not math.isfinite(log):
            return Bracket(0.0, 1.0, "spectral")
        scale = math.exp(log)
        upper = scale * (value + error) * (1 + 2 * slip) + 1e-300
        lower = scale * (value - error) * (1 - 2 * slip) - self.aliases(e)
        return Bracket(
            max(0.0, lower), min(1.0, max(0.0, upper)), "spectral" if self.lattice is None else "lattice"
        )

    def root(self, e: float, log_delta: float) -> tuple[float, float]:
        """Return about where delta(e) = delta and -d log delta / d e there."""
        slope = self.c
        for _ in range(40):
            value, _, derivative = self.sums(e)
            if not (value > 0 and derivative > 0):
                raise NotConverged
            slope = derivative / value
            step = (self.log_norm - self.c * e + math.log(value) - log_delta) / slope
            e += max(-1.0 / self.c, min(1.0 / self.c, step)) if self.c * abs(step) > 8 else step
            if abs(step) <= 1e-13 * abs(e) + 1e-15:
                break
        return e, slope


def peak(c: float) -> float:
    """Return log of max over x >= 0 of (1 - exp(-x)) exp(-c x): delta(e) <= M(c) exp(-c e) times it."""
    return c * math.log(c / (1 + c)) - math.log1p(c)


def steer(mix: Mix, c: Reals) -> tuple[Reals, Reals]:
    """Return log M and its second derivative on a grid of c, about."""
    log_m, bend = np.zeros_like(c), np.zeros_like(c)
    for factor, times in mix.factors:
        first, second = factor.cumulants(c)
        log_m += times * first
        bend += times * second
    return log_m, bend


def spread(mix: Mix) -> float:
    """Return the standard deviation of the loss, about."""
    return math.sqrt(float(steer(mix, np.array([1e-9]))[1][0]))


def _plan(mix: Mix, e: float | None, log_delta: float | None) -> _Plan:
    """Choose the line: small periods, given one of epsilon and log delta (the other is estimated)."""
    scale = 1 / (spread(mix) + 1e-150)
    grid = scale * np.exp(np.linspace(-5.0, 9.0, 36))
    for fine in (False, True):
        log_m, _ = steer(mix, grid)
        good = np.isfinite(log_m)
        grid, log_m = grid[good], log_m[good]
        if len(grid) < 3:
            raise NotConverged
        hat = log_m + grid * np.log(grid / (1 + grid)) - np.log1p(grid)
        bound = (hat - log_delta) / grid if log_delta is not None else hat - grid * e
        best = int(np.argmin(bound))
        if not fine:
            centre = grid[best]
            grid = centre * np.exp(np.linspace(-1.8, 1.2, 49))
    centre = grid[best]
    if log_delta is not None:
        e = max(0.0, float(bound[best] - 1.5 / centre)) if e is None else e
    else:
        log_delta = min(-1e-3, float(bound[best] - 1.5))
    assert e is not None
    need = -log_delta - _SMALL
    left = need / grid
    gaps = grid[None, :] - grid[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        right = np.where(gaps > 0, (hat - grid * e + need)[None, :] / gaps, np.inf)
    partner = right.argmin(axis=1)
    right = right[np.arange(len(grid)), partner]
    ratio = np.minimum(log_delta + grid * e - log_m, 0.0)
    price = np.maximum(left, right) * np.sqrt(20 - ratio)
    price[ratio < -25] = np.inf
    at = int(np.argmin(price))
    if not math.isfinite(price[at]):
        raise NotConverged
    period = float(max(left[at], right[at]))
    return _Plan(float(grid[at]), float(grid[partner[at]]), period, float(ratio[at]), e)


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


def _spectrum(mix: Mix, plan: _Plan) -> _Spectrum:
    """Evaluate the line of the plan."""
    c, period, lattice = plan.c, plan.period, mix.lattice
    decays = [(factor.decay(c), times) for factor, times in mix.factors]

    def log_decay(t: float) -> float:
        return sum(times * bound(t) for bound, times in decays)

    if lattice is None:
        whole = _MOST_NODES
    else:
        whole = _smooth(max(2, math.ceil(period / lattice.step)))
        period = whole * lattice.step
    h = 2 * math.pi / period
    wanted = plan.log_ratio + _SMALL
    high = min(whole // 2, _MOST_NODES) * h
    nodes = whole // 2
    if log_decay(high) - math.log(high) <= wanted:
        low = 0.0
        for _ in range(14):
            middle = (low + high) / 2
            if log_decay(middle) - math.log(middle) <= wanted:
                high = middle
            else:
                low = middle
        nodes = min(nodes, math.ceil(high / h))
    elif lattice is None or nodes > _MOST_NODES:
        raise NotConverged
    t = h * np.arange(nodes + 1)
    weight = np.full(nodes + 1, 2 / period)
    weight[0] = 1 / period
    if lattice is not None:
        weight *= lattice.step
        if nodes == whole // 2 and whole % 2 == 0:
            weight[-1] /= 2
    log_phi = np.zeros(nodes + 1, dtype=complex)
    log_size = np.zeros(nodes + 1)
    log_norm = norm_error = 0.0
    for factor, times in mix.factors:
        line = factor.line(c, h, nodes)
        log_phi += times * np.log(np.where(line.phi == 0, 1e-300, line.phi))
        log_size += times * np.log(np.abs(line.phi) + line.phi_error)
        log_norm += times * line.log_norm
        norm_error += times * (line.norm_error + 4 * U * abs(line.log_norm))
    turns = sum(times for _, times in mix.factors)
    phi = np.exp(log_phi)
    phi[~np.isfinite(phi)] = 0.0
    size = np.exp(log_size) * (1 + 8 * U * (turns + len(mix.factors)) + 4 * U * np.abs(log_size))
    full = lattice is not None and nodes == whole // 2
    z = c + 1j * t
    if lattice is None:
        kernel1 = 1 / (z + 1)
        kernel = kernel1 / z
    else:
        kernel, kernel1 = -1 / np.expm1(-z * lattice.step), -1 / np.expm1(-(z + 1) * lattice.step)
    return _Spectrum(
        c=c, period=period, t=t, weight=weight, phi=phi,
        phi_error=np.maximum(size - np.abs(phi), 0.0) + 16 * U * (1 + turns) * np.abs(phi),
        log_norm=log_norm, norm_error=norm_error,
        log_tail=-math.inf if full else log_decay(float(t[-1])),
        log_norm2=log_moment(mix, plan.c2), c2=plan.c2, lattice=lattice, kernel=kernel, kernel1=kernel1,
    )  # fmt: skip


def spectral_delta(mix: Mix, epsilon: float) -> Bracket:
    """Return bounds on delta at epsilon; raise `NotConverged` where there are none at a reasonable price."""
    return _spectrum(mix, _plan(mix, epsilon, None)).delta(epsilon)


def spectral_epsilon(mix: Mix, delta: float) -> Bracket:
    """Return bounds on the smallest epsilon >= 0 with delta(epsilon) <= delta, re-evaluated at both ends."""
    log_delta = math.log(delta)
    plan = _plan(mix, None, log_delta)
    for _ in range(3):
        spectrum = _spectrum(mix, plan)
        guess, slope = spectrum.root(plan.e, log_delta)
        guess = max(guess, 0.0)
        if spectrum.aliases(guess) <= 1e-7 * delta:
            break
        plan = _plan(mix, guess, log_delta)
    return settle(spectrum.delta, guess, delta, slope)


def log_moment(mix: Mix, c: float) -> float:
    """Return an upper value of log M(c), c > 0."""
    total = 0.0
    for factor, times in mix.factors:
        line = factor.line(c, 0.0, 0)
        total += times * (line.log_norm + line.norm_error + 8 * U * abs(line.log_norm))
    return total + 4 * U * abs(total)
