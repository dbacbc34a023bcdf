"""Moment generating functions (MGF) of losses, for numeric accounting: closed forms with error bounds.

For a pair (P, Q) with loss L = log dP/dQ under P, ``M(z) = E exp(z L)``. A *factor* has three methods for one
pair:

- ``cumulants(c)``: approximate values of log M and its first two derivatives at real c >= 0. They only steer
  the search;
- ``line(c, h, nodes)``: M(c + i j h) / M(c), j = 0 .. nodes, and log M(c), with certified error bounds;
- ``decay(c)``: a function of t that bounds log |M(c + i t') / M(c)| from above for every |t'| >= t.

This module has the laws with a closed form, and the sum of independent losses with its moments on the real
axis. The proof is docs/proofs/accounting.md, section 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.accounting.numeric._arithmetic import NotConverged, U

if TYPE_CHECKING:
    from collections.abc import Callable


Reals = NDArray[np.floating[Any]]
Complexes = NDArray[np.complexfloating[Any, Any]]


class MgfLine(NamedTuple):
    """M(c + i t) / M(c) on the nodes and log M(c), each with a bound on its absolute error."""

    log_norm: float
    norm_error: float
    phi: Complexes
    phi_error: Reals | float


class SplitLine(NamedTuple):
    """M(c + i t) / M(c) in two parts, for common losses and for rare large losses, with the error of each."""

    log_norm: float
    norm_error: float
    bulk: Complexes
    bulk_error: Reals
    rest: Complexes
    rest_error: Reals
    share: float  # of the rest at t = 0


class Factor(Protocol):
    """What Fourier inversion needs from a law in one direction."""

    def cumulants(self, c: Reals) -> tuple[Reals, Reals, Reals]: ...

    def line(self, c: float, h: float, nodes: int) -> MgfLine: ...

    def decay(self, c: float, /) -> Callable[[float], float]: ...


def no_decay(_: float) -> float:
    return 0.0


def _beyond_doubles() -> np.errstate:
    """Return a context in which numbers beyond the doubles become infinite or NaN without a warning.

    Neither can make a cost look smaller. Cumulants only steer the search, which skips them. On a line, a NaN
    or an infinity in a value is one in its error too, and `Spectrum.delta` and `log_moment` refuse the line.
    """
    return np.errstate(over="ignore", invalid="ignore")


class _ClosedFormMgf:
    """A factor with a formula for log M(z); derivatives by a small step into the complex plane."""

    __slots__ = ()

    def log_mgf(self, z: Complexes) -> Complexes:
        raise NotImplementedError

    def reach(self) -> float:
        """Return the size of d log M / d z, for the error from rounding parameters and z."""
        raise NotImplementedError

    def drift(self, c: float, t: Reals) -> Reals | float:  # noqa: ARG002
        """Return the size of d log M / d z on the line, which multiplies the rounding error of t."""
        return self.reach()

    def scale(self) -> float:
        """Return the approximate standard deviation of the loss."""
        return self.reach()

    def cumulants(self, c: Reals) -> tuple[Reals, Reals, Reals]:
        step = 1e-3 / self.scale()
        with _beyond_doubles():
            here, aside = self.log_mgf(c + 0j).real, self.log_mgf(c + 1j * step)
            return here, aside.imag / step, np.maximum(2 * (here - aside.real) / step**2, 0.0)

    def line(self, c: float, h: float, nodes: int) -> MgfLine:
        t = h * np.arange(nodes + 1)
        with _beyond_doubles():
            logs = self.log_mgf(c + 1j * t)
            norm = float(logs[0].real)
            phi = np.exp(logs - norm)
            slip = 16 * U * (1 + (c + 1) * self.reach() + abs(norm))
            error = 32 * U + np.abs(phi) * (2 * slip + 16 * U * (t * self.drift(c, t) + np.abs(logs)))
        return MgfLine(norm, slip, phi, error)


@dataclass(frozen=True, slots=True)
class GaussianMgf(_ClosedFormMgf):
    """N(mu, 1) against N(0, 1): log M = mu^2 z (z+1) / 2. It holds mu^2, so that sums stay exact."""

    mu2: float

    def log_mgf(self, z: Complexes) -> Complexes:
        logs: Complexes = 0.5 * self.mu2 * z * (z + 1)
        return logs

    def cumulants(self, c: Reals) -> tuple[Reals, Reals, Reals]:
        """Return them in closed form: differences vanish beside a large log M."""
        with _beyond_doubles():
            return 0.5 * self.mu2 * c * (c + 1), self.mu2 * (c + 0.5), np.full_like(c, self.mu2)

    def reach(self) -> float:
        return self.mu2

    def drift(self, c: float, t: Reals) -> Reals | float:
        return self.mu2 * (c + 1 + t)

    def scale(self) -> float:
        return math.sqrt(self.mu2)

    def decay(self, _: float) -> Callable[[float], float]:
        return lambda t: -0.5 * self.mu2 * t * t * (1 - 8 * U)


@dataclass(frozen=True, slots=True)
class ResponseMgf(_ClosedFormMgf):
    """Randomized response: losses e, 0 and -e, the first with probability 1 / (1 + (k-1) exp(-e)).

    The last is exp(-e) times as likely as the first; of two categories, no loss is 0.
    """

    e: float
    categories: int = 2

    def log_mgf(self, z: Complexes) -> Complexes:
        rest = np.exp(-(2 * z + 1) * self.e)
        if self.categories > 2:
            rest = rest + (self.categories - 2) * np.exp(-(z + 1) * self.e)
        logs: Complexes = (
            z * self.e - math.log1p((self.categories - 1) * math.exp(-self.e)) + np.log(1 + rest)
        )
        return logs

    def reach(self) -> float:
        return self.e

    def decay(self, _: float) -> Callable[[float], float]:
        return no_decay


@dataclass(frozen=True, slots=True)
class LaplaceMgf(_ClosedFormMgf):
    """Laplace noise, e = sensitivity / scale: M = [(z+1) exp(z e) + z exp(-(z+1) e)] / (2z+1)."""

    e: float

    def log_mgf(self, z: Complexes) -> Complexes:
        logs: Complexes = z * self.e + np.log((z + 1 + z * np.exp(-(2 * z + 1) * self.e)) / (2 * z + 1))
        return logs

    def reach(self) -> float:
        return self.e

    def decay(self, c: float) -> Callable[[float], float]:
        # |z+1|/|2z+1| falls in |t|, |z|/|2z+1| <= 1/2.
        ratio = math.exp(-(2 * c + 1) * self.e)
        total = (c + 1 + c * ratio) / (2 * c + 1)

        def bound(t: float) -> float:
            falling = math.hypot(c + 1, t) / math.hypot(2 * c + 1, 2 * t)
            return min(0.0, math.log((falling + 0.5 * ratio) / total) + 16 * U)

        return bound


@dataclass(frozen=True, slots=True)
class RangeMgf(_ClosedFormMgf):
    """The law that dominates every loss of range e: P-density ~ exp(l/2) on [-e, e] (proofs, section 6).

    M = sinh((z + 1/2) e) / ((2z + 1) sinh(e/2)).
    """

    e: float

    def log_mgf(self, z: Complexes) -> Complexes:
        w = (2 * z + 1) * self.e
        series = 1 - w / 2 * (1 - w / 3 * (1 - w / 4 * (1 - w / 5)))
        head = np.where(np.abs(w) < 1e-4, series, -np.expm1(-w) / np.where(w == 0, 1, w))
        logs: Complexes = z * self.e + np.log(head) + math.log(self.e / -math.expm1(-self.e))
        return logs

    def reach(self) -> float:
        return self.e

    def decay(self, c: float) -> Callable[[float], float]:
        # |sinh(x + iy)| <= cosh(x).
        x = (c + 0.5) * self.e
        ratio = 1 / math.tanh(x)
        return lambda t: min(0.0, math.log(ratio * (2 * c + 1) / math.hypot(2 * c + 1, 2 * t)) + 16 * U)


@dataclass(frozen=True, slots=True)
class DiscreteLaplaceMgf(_ClosedFormMgf):
    """Whole-number Laplace noise: r = exp(-1/scale), loss (s - 2x)/scale for x = 0 .. s.

    (1 + r) exp(-z e) M = 1 + exp(-(2z+1) e) + (1 - r) (w - w^s) / (1 - w), w = exp(-(2z+1)/scale), e =
    s/scale. ``periodic``: the nodes stay within half a period, |t| <= pi scale / 2, where |1 - w| rises.
    """

    rate: float  # 1 / scale
    moves: float  # s
    periodic: bool = False

    def log_mgf(self, z: Complexes) -> Complexes:
        e, turn = self.rate * self.moves, (2 * z + 1) * self.rate
        many = np.exp(-turn) * np.expm1(-turn * (self.moves - 1)) / np.expm1(-turn)
        inner = 1 + np.exp(-(2 * z + 1) * e) - math.expm1(-self.rate) * many
        logs: Complexes = z * e + np.log(inner / (1 + math.exp(-self.rate)))
        return logs

    def reach(self) -> float:
        return self.rate * self.moves

    def decay(self, c: float) -> Callable[[float], float]:
        if not self.periodic:
            return no_decay
        e, w = self.rate * self.moves, math.exp(-(2 * c + 1) * self.rate)
        total = math.exp(float(self.log_mgf(np.array([c + 0j]))[0].real) - c * e) * (1 + math.exp(-self.rate))
        ends = 1 + math.exp(-(2 * c + 1) * e)
        inner = -math.expm1(-self.rate) * (w + w**self.moves)

        def bound(t: float) -> float:
            gap = math.hypot(1 - w, 2 * math.sqrt(w) * math.sin(min(t * self.rate, math.pi / 2)))
            return min(0.0, math.log((ends + inner / gap) / total) + 1e-12)

        return bound


@dataclass(frozen=True, slots=True)
class DiscreteGaussianMgf(_ClosedFormMgf):
    """Whole-number Gaussian noise, sigma >= 3, moved by s, by Poisson's sum (Canonne et al. 2020).

    M = exp(mu^2 z (z+1) / 2) T(z s) / T(0), T(a) = 1 + 2 sum_n exp(-2 pi^2 sigma^2 n^2) cos(2 pi n a); for
    |t| s <= pi sigma^2 (half a period) only n = 1 can matter, and |M(c+it)/M(c)| <= exp(-mu^2 t^2/2) +
    exp(-(pi sigma)^2/2) up to rounding. ``periodic``: the nodes stay within half a period, so that the bound
    on the decay holds for all of them.
    """

    sigma: float
    moves: float
    periodic: bool = False

    def _reduce(self, t: Reals) -> tuple[Reals, Reals]:
        """Return t minus n periods of 2 pi sigma^2 / s, and n: M changes by the factor (-1)^(n s)."""
        period = 2 * math.pi * self.sigma**2 / self.moves
        turns = np.round(t / period)
        return t - turns * period, turns

    def log_mgf(self, z: Complexes) -> Complexes:
        mu = self.moves / self.sigma
        t, turns = self._reduce(z.imag)
        nearest = z.real + 1j * np.abs(t)
        far = np.exp(-2 * (math.pi * self.sigma) ** 2 + 2 * math.pi * self.moves * np.abs(t))
        logs = 0.5 * mu**2 * nearest * (nearest + 1)
        logs = logs + np.log1p(far * np.exp(-2j * math.pi * np.mod(z.real * self.moves, 1.0)))
        logs = np.where(t < 0, logs.conj(), logs)
        flipped: Complexes = logs + 1j * math.pi * np.mod(turns * (self.moves % 2), 2)
        return flipped

    def drift(self, c: float, t: Reals) -> Reals | float:
        return self.reach() * (c + 1 + np.abs(self._reduce(t)[0]))

    def reach(self) -> float:
        return (self.moves / self.sigma) ** 2

    def scale(self) -> float:
        return self.moves / self.sigma

    def decay(self, _: float) -> Callable[[float], float]:
        if not self.periodic:
            return no_decay
        mu, floor = self.moves / self.sigma, math.exp(-((math.pi * self.sigma) ** 2) / 2)
        return lambda t: min(0.0, math.log(math.exp(-min(700.0, 0.5 * (mu * t) ** 2)) + floor) + 1e-12)


class LossLattice(NamedTuple):
    """The total loss lies on offset + step * Z."""

    offset: float
    step: float


class LossSum(NamedTuple):
    """Independent losses, each with its number of times; ``lattice`` if they all lie on one."""

    factors: tuple[tuple[Factor, int], ...]
    lattice: LossLattice | None = None


def peak(c: float) -> float:
    """Return log of max over x >= 0 of (1 - exp(-x)) exp(-c x): delta(e) <= M(c) exp(-c e) times it."""
    return c * math.log(c / (1 + c)) - math.log1p(c)


def steer(loss_sum: LossSum, c: Reals) -> tuple[Reals, Reals, Reals]:
    """Return approximate values of log M and its first two derivatives on a grid of c."""
    if len(loss_sum.factors) == 1:
        ((factor, times),) = loss_sum.factors
        log_m, mean, bend = factor.cumulants(c)
        return times * log_m, times * mean, times * bend
    total = np.zeros((3, len(c)))
    for factor, times in loss_sum.factors:
        for row, part in zip(total, factor.cumulants(c), strict=True):
            row += times * part
    return total[0], total[1], total[2]


def spread(loss_sum: LossSum) -> float:
    """Return the approximate standard deviation of the loss."""
    try:
        return math.sqrt(float(steer(loss_sum, np.array([1e-9]))[2][0]))
    except OverflowError:
        raise NotConverged from None


def tiny(loss_sum: LossSum) -> float:
    """Return the mu of a Gaussian that moves the epsilons of interest by about 2e-6 relatively."""
    c = np.exp(np.linspace(-5.0, 9.0, 36)) / (spread(loss_sum) + 1e-150)
    log_m = steer(loss_sum, c)[0]
    bound = (log_m + c * np.log(c / (1 + c)) - np.log1p(c) + 14) / c
    at = int(np.argmin(np.where(np.isfinite(bound), bound, np.inf)))
    return 1.5e-3 * math.sqrt(max(0.0, 2 * float(bound[at]) / float(c[at])))


def log_moment(loss_sum: LossSum, c: float) -> float:
    """Return an upper value of log M(c), c > 0."""
    total = 0.0
    for factor, times in loss_sum.factors:
        line = factor.line(c, 0.0, 0)
        total += times * (line.log_norm + line.norm_error + 8 * U * abs(line.log_norm))
    if math.isnan(total):
        raise NotConverged
    return total + 4 * U * abs(total)
