"""Rare losses in numeric accounting: apart from the common losses, rounding does not hide them.

**In Fourier inversion.** If delta is far below Chernoff's bound, most of M(z)^k belongs to compositions of
common losses only. They add up to less than epsilon and contribute nothing. In the sum over the line they
cancel, and only their rounding errors remain. Let M = B + R, where B holds the losses roughly below a level.
Then ``M^k - B^k`` is again the transform of a positive measure (compositions with at least one rare loss), so
every statement on aliases holds for it, and Chernoff's bound covers ``B^k``. The proof is
docs/proofs/accounting.md, section 3.

**Many losses that are rarely large**: common losses on a lattice, rare ones in one sum. A sample with a tiny
rate, repeated, has losses that are almost always tiny and rarely large. Let B hold the losses up to a level T
>= epsilon, and R the others. Whatever the common losses add up to, a rare one puts the outcome into the best
set, unless the common ones add up to less than epsilon - T. So ``delta(e) <= delta of B^k + P(a rare loss) -
exp(e) Q(a rare loss)`` and a correction by Chernoff's bound. B^k lives on a fine lattice. The proof is
docs/proofs/accounting.md, section 7.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tacit.accounting._laws import Parts, SampledLoss
from tacit.accounting.numeric._arithmetic import Bracket, NotConverged, U
from tacit.accounting.numeric._atoms import Atoms, FinitePair, connect_dots
from tacit.accounting.numeric._curve import LatticePair, curve, lowest, reach_of, tilted
from tacit.accounting.numeric._gaussian import SampledGaussianMgf
from tacit.accounting.numeric._mgf import LossSum, peak, steer
from tacit.accounting.numeric._quadrature import dot

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from tacit.accounting.numeric._curve import Curve
    from tacit.accounting.numeric._mgf import Complexes, Factor, Reals


_LEVELS = (0.7, 0.5, 0.35, 0.25, 0.18, 0.12, 0.08, 0.05, 0.03, 0.02, 0.01)
_VISIBLE = (0.5, 0.35, 0.25, 0.15)
_TILTS = (1.3, 1.7, 2.5, 4.0, 6.0, 10.0, 16.0, 25.0, 40.0, 65.0, 100.0, 160.0, 250.0, 400.0)
_ROUGH = 513  # dots of the first, rough pair
_RARE = 400  # dots above the level
_MAX_RATE = 0.001  # of samples
_MAX_SAMPLES = 0.3  # the rate times the number; with more, other methods resolve the sum
_POINTS = (1 << 13, 1 << 14, 1 << 15, 1 << 16, 1 << 17)


class LossCut(NamedTuple):
    """Which factor is split where; the common part adds at most exp(log_bulk - tilt * e) to delta(e)."""

    which: int
    level: float
    tilt: float
    log_bulk: float


def choose_cut(
    factors: tuple[tuple[Factor, int], ...], e: float, c: float, period: float, log_delta: float
) -> LossCut | None:
    """Return the highest cut whose common part provably adds less than 1e-7 of delta near e, or None."""
    able = _splittable(factors, e, c)
    if able is None:
        return None
    which, law, times = able
    others = [pair for i, pair in enumerate(factors) if i != which]
    rest = {tilt: _log_moment(others, c * tilt) for tilt in _TILTS}
    for share in _LEVELS:
        level = share * e
        if not _cuts(law, level):
            continue
        for tilt, other in rest.items():
            z = c * tilt
            log = times * law.log_bulk(z, level) + other + peak(z) - math.log(-math.expm1(-(z - c) * period))
            if log - z * e * (1 - 8 * U) + 1e-6 < log_delta - 16:
                return LossCut(which, level, z, log + 1e-6 * (1 + abs(log) * 1e-6))
    return None


def visible_cuts(
    factors: tuple[tuple[Factor, int], ...], e: float, c: float, period: float
) -> Iterator[LossCut]:
    """Yield cuts whose common part may matter at e: its delta has a line of its own; bound its aliases."""
    able = _splittable(factors, e, c)
    if able is None:
        return
    which, law, times = able
    others = [pair for i, pair in enumerate(factors) if i != which]
    for share in _VISIBLE:
        level = share * e
        if not _cuts(law, level):
            continue
        cuts = []
        for tilt in _TILTS:
            z = c * tilt
            log = times * law.log_bulk(z, level) + _log_moment(others, z) + peak(z)
            cuts.append((log - z * e - (z - c) * period, z, log - math.log(-math.expm1(-(z - c) * period))))
        _, z, log = min(cuts)
        yield LossCut(which, level, z, log + 1e-6 * (1 + abs(log) * 1e-6))


def _splittable(
    factors: tuple[tuple[Factor, int], ...], e: float, c: float
) -> tuple[int, Atoms | SampledGaussianMgf, int] | None:
    """Return the factor that can be split here, if there is exactly one."""
    able = [i for i, (law, _) in enumerate(factors) if isinstance(law, Atoms | SampledGaussianMgf)]
    if len(able) != 1 or e <= 0:
        return None
    law, times = factors[able[0]]
    if not isinstance(law, Atoms | SampledGaussianMgf) or (
        isinstance(law, SampledGaussianMgf) and (law.add or (c + 1) * law.q > 5)
    ):
        return None
    return able[0], law, times


def _cuts(law: Atoms | SampledGaussianMgf, level: float) -> bool:
    """Return whether there are losses on both sides of the level."""
    if isinstance(law, Atoms):
        return bool(law.losses[0] < level < law.losses[-1])
    return law.cut(level) > 1


def splittable(factor: Factor) -> Atoms | SampledGaussianMgf:
    """Return a factor that can be split into common and rare losses; raise TypeError for others."""
    if isinstance(factor, Atoms | SampledGaussianMgf):
        return factor
    raise TypeError(type(factor).__name__)


def _log_moment(factors: list[tuple[Factor, int]], c: float) -> float:
    total = 0.0
    for factor, times in factors:
        line = factor.line(c, 0.0, 0)
        total += times * (line.log_norm + line.norm_error + 8 * U * abs(line.log_norm))
    return total


def difference(bulk: Complexes, rest: Complexes, k: int) -> Complexes:
    """Return (bulk + rest)^k - bulk^k without cancellation."""
    safe = np.where(np.abs(bulk) < 1e-150, 1e-150, bulk)
    ratio = rest / safe
    close = np.abs(ratio) < 0.3
    s = np.where(close, ratio / (2 + ratio), 0.0)
    logs = np.zeros_like(s)
    for n in range(25, 0, -2):  # log(1 + r) = 2 (s + s^3/3 + ...), |s| < 0.18
        logs = logs * s * s + 2.0 / n
    raised = k * logs * s
    with np.errstate(over="ignore", invalid="ignore"):
        inner = np.exp(k * np.log(safe)) * np.expm1(raised)
        powers = np.where(np.abs(bulk + rest) < 1e-150, 1e-150, bulk + rest)
        plain = np.exp(k * np.log(powers)) - np.exp(k * np.log(safe))
    values: Complexes = np.where(close, inner, plain)
    return values


def difference_bound(bulk: Reals, rest: Reals, k: int) -> Reals:
    """Return (bulk + rest)^k - bulk^k for non-negative numbers."""
    with np.errstate(divide="ignore", over="ignore"):
        bound: Reals = np.exp(k * np.log(np.maximum(bulk, 1e-150))) * np.expm1(
            np.minimum(k * np.log1p(rest / np.maximum(bulk, 1e-150)), 600.0)
        )
    return bound


class _Scale(NamedTuple):
    """Where the common losses end, and the mean and the spread of their sum."""

    level: float
    mean: float
    spread: float


class _Octave(NamedTuple):
    """Upper values of delta on a lattice of epsilons up to ``top``; only the first is at most half of it."""

    top: float
    e: Reals
    values: Reals

    def delta(self, e: float) -> float:
        """Return an upper value at e; between lattice points, that of the one to the left."""
        return float(self.values[max(0, int(np.searchsorted(self.e, e, side="right")) - 1)])


def is_rare(parts: Parts) -> bool:
    """Return whether the sum is one sampled law with a tiny rate, and a unit is hardly ever sampled."""
    law, times = parts[0]
    if len(parts) != 1 or not isinstance(law, SampledLoss):
        return False
    return times > 1 and law.q <= _MAX_RATE and law.q * times <= _MAX_SAMPLES


@lru_cache(maxsize=64)
def rare_accountant(parts: Parts, *, add: int) -> RareLossAccountant:
    """Return the accountant for one sampled law with a tiny rate, repeated."""
    law, times = parts[0]
    if len(parts) != 1 or not isinstance(law, SampledLoss):
        raise NotConverged
    sampled = curve(law, add=add)
    if not sampled.quick:
        raise NotConverged
    return RareLossAccountant(sampled, times)


class RareLossAccountant:
    """Upper values for one law, repeated; the lower value is 0. Epsilons in one octave share a lattice."""

    def __init__(self, law: Curve, times: int) -> None:
        self._one, self._times = law, times
        self._low, self._reach = lowest(law), reach_of(law, 1e-37 / times)
        pair = np.concatenate([[0.0], np.exp(np.linspace(math.log(1e-9), 0, _ROUGH))])
        self._rough = connect_dots(law, np.unique(np.concatenate([self._low * pair, self._reach * pair])))
        self._least = self._scale(0.0).spread / 8
        self._octaves: dict[int, _Octave] = {}

    def delta(self, e: float) -> Bracket:
        upper = self._octave(self._number(e)).delta(e)
        if not upper < 1:
            raise NotConverged
        return Bracket(0.0, upper, "rare losses")

    def epsilon(self, delta: float) -> Bracket:
        number, lowest_above = self._number(self._guess(delta)), None
        for _ in range(40):
            octave = self._octave(number)
            above = np.flatnonzero(~(octave.values <= delta))
            if len(above) and above[-1] + 1 < len(octave.e):
                return self._found(octave.e[above[-1] + 1])
            if len(above):  # all of this octave is too small
                if lowest_above is not None:
                    return self._found(lowest_above)
                number += 1
            else:
                if number == self._number(0.0):
                    return self._found(octave.e[0])
                lowest_above = float(octave.e[1])
                number -= 1
        raise NotConverged

    @staticmethod
    def _found(e: float) -> Bracket:
        """Return a lattice point as epsilon, raised a little, so that reading delta there finds it again."""
        return Bracket(0.0, float(e) * (1 + 8 * U), "rare losses")

    def _number(self, e: float) -> int:
        return math.ceil(math.log2(max(e, self._least)))

    def _octave(self, number: int) -> _Octave:
        if number not in self._octaves:
            if len(self._octaves) >= 6:
                self._octaves.pop(next(iter(self._octaves)))
            self._octaves[number] = self._evaluate(2.0**number, previous=number == self._number(0.0))
        return self._octaves[number]

    def _about(self, e: float) -> float:
        return self._times * float(self._one.upper(np.array([e]))[0])

    def _guess(self, delta: float) -> float:
        """Return about the epsilon at which one large loss alone has this delta."""
        low, high = 0.0, self._reach
        for _ in range(40):
            middle = (low + high) / 2 if low else high / 16
            low, high = (middle, high) if self._about(middle) > delta else (low, middle)
            if high < 1e-12 or high - low < 0.05 * high:
                break
        return high

    def _scale(self, e: float) -> _Scale:
        """Return a level above e at which the common losses hardly ever matter beyond it."""
        losses, masses = self._rough.losses, self._rough.masses
        level, mean, spread = self._reach, 0.0, 0.0
        for _ in range(8):
            some = np.clip(losses[losses <= level], -level, None)
            mean = dot(masses[losses <= level], some)
            spread = math.sqrt(max(self._times * dot(masses[losses <= level], some**2), 1e-300))
            level = 1.2 * e + 14 * spread
        return _Scale(level, self._times * mean, spread)

    def _evaluate(self, top: float, *, previous: bool) -> _Octave:
        level, mean, spread = self._scale(top)
        tilts = self._tilts(level, top)
        period = max(1.4 * (level + 12 * spread + abs(mean)), 55 / float(tilts[0]))
        # Joining the dots adds g^2/4 to the variance of each loss. That is little beside the variance of the
        # sum, or beside epsilon.
        finest = 2 / math.sqrt(self._times) * max(0.02 * spread, level / 1500)
        points = next((n for n in _POINTS if period / n <= min(finest, level / 1000)), _POINTS[-1])
        g = period / points
        pair, common = self._dots(level, g, points)
        bulk = LatticePair(np.round(pair.losses[common] / g), pair.masses[common], pair.infinite)
        first_index = math.floor((mean - 8 * spread) / g)
        e = g * (first_index + np.arange(points))
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            sums = np.minimum.reduce(
                [tilted([(bulk, self._times)], c, g, first_index, points) for c in tilts]
            )
        start, end = np.searchsorted(e, [0.0 if previous else top / 2, top], side="right")
        inside = slice(max(0, int(start) - 1), int(end))
        e, sums = e[inside], sums[inside]
        if len(e) < 3 or e[0] > (0.0 if previous else top / 2):
            raise NotConverged
        leak = -math.expm1(self._times * math.log1p(-min(pair.infinite, 0.5))) * (1 + 64 * U)
        values = np.where(np.isfinite(sums), sums, 1.0) + self._with_rare(pair, common, e, level) + leak
        return _Octave(top, np.maximum(e, 0.0), np.minimum(values * (1 + 64 * U), 1.0))

    def _dots(self, level: float, g: float, points: int) -> tuple[FinitePair, NDArray[np.bool_]]:
        """Return a finite pair on the lattice up to the level, with wider gaps beyond; and what is common."""
        start, end = max(math.floor(self._low / g), -points // 2), math.ceil(min(level, self._reach) / g)
        grid = g * np.arange(start, end + 1)
        wide_pair = np.expm1(np.linspace(0, 12, _RARE + 1)[1:]) / math.expm1(12)
        above = grid[-1] + (self._reach - grid[-1]) * wide_pair
        pair = connect_dots(
            self._one, np.concatenate([grid, above[np.diff(above, prepend=grid[-1]) > g / 8]])
        )
        return pair, pair.losses <= grid[-1] + g / 2

    def _tilts(self, level: float, top: float) -> Reals:
        """Return good tilts for the common losses in this octave; any choice is valid."""
        some = self._rough.losses <= level
        losses, masses = np.maximum(self._rough.losses[some], -level), self._rough.masses[some]
        loss_sum = LossSum(((Atoms(losses, masses), self._times),))
        width = math.sqrt(float(steer(loss_sum, np.array([1e-9]))[2][0])) + 1e-300
        c = np.exp(np.linspace(math.log(min(0.01 / width, 2 / level)), math.log(60 / width), 80))
        hat = steer(loss_sum, c)[0] + c * np.log(c / (1 + c)) - np.log1p(c)
        tilts: Reals = np.unique([c[int(np.argmin(hat - c * top * share))] for share in (0.5, 0.7, 1.0)])
        return tilts

    def _with_rare(self, pair: FinitePair, common: NDArray[np.bool_], e: Reals, level: float) -> Reals:
        """Return upper values of what outcomes with a rare loss add to delta."""
        k, losses, masses = self._times, pair.losses, pair.masses
        if not (np.abs(losses).max() < 600 and level < 600):
            raise NotConverged
        cached = masses * np.exp(-losses)
        some, rare = float(masses[common].sum()), float(masses[~common].sum())
        value, other = float(cached[common].sum()), float(cached[~common].sum())
        granted = 4 * (len(losses) + 16) * U
        if not (min(some, value) > 0.5 and k * (max(some, value) - 1) < 1 and k * max(rare, other) < 300):
            raise NotConverged
        p = math.exp(k * math.log(some)) * math.expm1(k * math.log1p(rare / some))
        q = math.exp(k * math.log(value)) * math.expm1(k * math.log1p(other / value))
        y = np.exp(e)
        error = k * granted * (p + y * q)
        gap = level - e
        best = np.full_like(e, np.inf)
        for theta in np.exp(np.linspace(math.log(2), math.log(60), 12)) / level:
            rises = np.minimum(-theta * losses[common], 600.0)
            if float(rises.max()) >= 600:
                continue
            moment = float((cached[common] * np.exp(rises)).sum()) * (1 + granted)
            often = math.expm1(min(k * math.log1p(other / moment), 600.0))
            log = k * math.log(moment) + math.log(max(often, 1e-300))
            best = np.minimum(best, log - theta * gap)
        bracket: Reals = np.maximum(p - y * q, 0.0) + error + y * np.exp(np.minimum(best, 600.0)) * (1 + 1e-9)
        return bracket
