"""Many losses that are rarely large, in numeric accounting: common losses on a lattice, rare ones in one sum.

A sample with a tiny rate, repeated, has losses that are almost always tiny and rarely large. Let B hold the
losses up to a level T >= epsilon, and R the others. Whatever the common losses add up to, a rare one puts the
outcome into the best set, unless the common ones add up to less than epsilon - T. So ``delta(e) <= delta of B^k
+ P(a rare loss) - exp(e) Q(a rare loss)`` and a correction by Chernoff's bound. B^k lives on a fine lattice
that ends at T. The proof is docs/proofs/accounting.md, section 7.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tacit.accounting._laws import Parts, SampledLoss
from tacit.accounting.numeric._atoms import Atoms
from tacit.accounting.numeric._bracket import Bracket, NotConverged, U
from tacit.accounting.numeric._bulk_curve import LatticePair, lowest, reach_of, tilted
from tacit.accounting.numeric._curve import Curve, curve
from tacit.accounting.numeric._finite_pair import connect_dots
from tacit.accounting.numeric._loss_sum import LossSum, steer

if TYPE_CHECKING:
    from tacit.accounting.numeric._mgf import Reals

__all__ = ["RareLossAccountant", "rare_accountant"]

_ROUGH = 513  # dots of the first, rough pair
_RARE = 400  # dots above the level
_MOST_RATE = 0.01  # of samples, times their number: 20
_POINTS = (1 << 13, 1 << 14, 1 << 15, 1 << 16)


class _Scale(NamedTuple):
    """Where the common losses end, and the mean and the spread of their sum."""

    level: float
    mean: float
    spread: float


class _Split(NamedTuple):
    """Upper values of delta on the lattice e = g (first + i), up to the level."""

    e: Reals
    values: Reals

    def delta(self, e: float) -> float:
        """Return an upper value at e; between lattice points, that of the one to the left."""
        at = int(np.searchsorted(self.e, e, side="right")) - 1
        return float(self.values[at]) if 0 <= at < len(self.e) - 1 else 1.0

    def epsilon(self, delta: float) -> float:
        """Return the smallest lattice point from which on the upper values stay within delta."""
        above = np.flatnonzero(~(self.values <= delta))
        at = int(above[-1]) + 1 if len(above) else 0
        return float(self.e[at]) if at < len(self.e) else math.inf


@lru_cache(maxsize=64)
def rare_accountant(parts: Parts, *, add: int) -> RareLossAccountant:
    """Return the accountant for one sampled law with a tiny rate, repeated."""
    if len(parts) != 1 or not isinstance(parts[0][0], SampledLoss):
        raise NotConverged
    law, times = parts[0]
    if law.q > _MOST_RATE or law.q * times > 20 or times < 2:
        raise NotConverged
    one = curve(law, add=add)
    if not one.quick:
        raise NotConverged
    return RareLossAccountant(one, times)


class RareLossAccountant:
    """Upper values for one law, repeated; the lower value is 0."""

    def __init__(self, one: Curve, times: int) -> None:
        self._one, self._times = one, times
        self._low, self._reach = lowest(one), reach_of(one, 1e-37 / times)
        wide = np.concatenate([[0.0], np.exp(np.linspace(math.log(1e-9), 0, _ROUGH))])
        pair = connect_dots(one, np.unique(np.concatenate([self._low * wide, self._reach * wide])))
        self._rough = pair
        self._kept: dict[tuple[float, float], _Split] = {}

    def delta(self, e: float) -> Bracket:
        upper = min((split.delta(e) for split in self._kept.values() if split.e[-1] >= 2 * e), default=1.0)
        if upper >= 1:
            upper = self._split(self._scale(e), max(1e-30, self._about(e))).delta(e)
        if not upper < 1:
            raise NotConverged
        return Bracket(0.0, upper, "rare losses")

    def epsilon(self, delta: float) -> Bracket:
        e = self._guess(delta)
        for _ in range(4):
            split = self._split(self._scale(e), delta)
            found = split.epsilon(delta)
            if found <= 0:
                return Bracket(0.0, 0.0, "rare losses")
            if found < split.e[-1] / 1.5:
                return Bracket(0.0, found, "rare losses")
            e = 3 * min(found, float(split.e[-1]))
        raise NotConverged

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
        level = 4 * e
        for _ in range(3):
            some = np.clip(losses[losses <= level], -level, None)
            mean = float(masses[losses <= level] @ some)
            spread = math.sqrt(max(self._times * float(masses[losses <= level] @ some**2), 1e-300))
            level = max(4 * e, e + 10 * spread)
        return _Scale(level, self._times * mean, spread)

    def _split(self, scale: _Scale, delta: float) -> _Split:
        key = (round(math.log(scale.level), 1), round(math.log(delta)))
        if key not in self._kept:
            if len(self._kept) >= 4:
                self._kept.pop(next(iter(self._kept)))
            self._kept[key] = self._evaluate(scale, delta)
        return self._kept[key]

    def _evaluate(self, scale: _Scale, delta: float) -> _Split:
        level, mean, spread = scale
        period = 2.2 * (level + 14 * spread + abs(mean))
        # Joining the dots adds g^2/4 to the variance of each loss: at most a thousandth of the sum's.
        finest = math.sqrt(4e-3 / self._times) * spread
        points = next((n for n in _POINTS if period / n <= min(finest, level / 2000)), _POINTS[-1])
        g = period / points
        start, end = max(math.floor(self._low / g), -points // 2), math.ceil(level / g)
        grid = g * np.arange(start, end + 1)
        above = grid[-1] + np.maximum(self._reach - grid[-1], level) * np.expm1(
            np.linspace(0, 12, _RARE + 1)[1:]
        ) / math.expm1(12)
        pair = connect_dots(
            self._one, np.concatenate([grid, above[np.diff(above, prepend=grid[-1]) > g / 8]])
        )
        common = pair.losses <= grid[-1] + g / 2
        losses, masses = pair.losses[common], pair.masses[common]
        bulk = LatticePair(np.round(losses / g), masses, pair.slack + 4 * U, pair.infinite)
        first = math.floor((mean - 0.4 * period) / g)
        e = g * (first + np.arange(points))
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            tilts = self._tilts(losses, masses, delta, 40 / period)
            sums = np.minimum.reduce([tilted([(bulk, self._times)], c, g, first, points) for c in tilts])
        inside = (e >= 0) & (e <= level)
        e = e[inside]
        rest = self._with_rare(pair.losses, pair.masses, common, e, level)
        leak = -math.expm1(self._times * math.log1p(-min(pair.infinite, 0.5))) * (1 + 64 * U)
        values = np.where(np.isfinite(sums[inside]), sums[inside], 1.0) + rest + leak
        return _Split(e, np.minimum(values * (1 + 64 * U), 1.0))

    def _tilts(self, losses: Reals, masses: Reals, delta: float, least: float) -> Reals:
        """Return tilts at which the common losses have a delta of about this size; any choice is valid."""
        loss_sum = LossSum(((Atoms(losses, masses), self._times),))
        width = math.sqrt(float(steer(loss_sum, np.array([1e-9]))[2][0])) + 1e-300
        c = np.exp(np.linspace(math.log(0.3), math.log(60), 48)) / width
        hat = steer(loss_sum, c)[0] + c * np.log(c / (1 + c)) - np.log1p(c)
        found = [int(np.argmin((hat - math.log(delta * share)) / c)) for share in (1.0, 1e-2, 1e-4)]
        return np.unique(np.maximum(c[found], least))

    def _with_rare(self, losses: Reals, masses: Reals, common: Reals, e: Reals, level: float) -> Reals:
        """Return upper values of what outcomes with a rare loss add to delta."""
        k = self._times
        seen = masses * np.exp(-losses)
        some, rare = float(masses[common].sum()), float(masses[~common].sum())
        there, other = float(seen[common].sum()), float(seen[~common].sum())
        granted = 4 * (len(losses) + 16) * U
        p = math.exp(k * math.log(some)) * math.expm1(k * math.log1p(rare / some))
        q = math.exp(k * math.log(there)) * math.expm1(k * math.log1p(other / there))
        y = np.exp(e)
        error = k * granted * (p + y * q)
        gap = level - e
        best = np.full_like(e, np.inf)
        for theta in np.exp(np.linspace(math.log(2), math.log(60), 12)) / level:
            moment = float((seen[common] * np.exp(-theta * losses[common])).sum()) * (1 + granted)
            log = k * math.log(moment) + math.log(
                max(math.expm1(min(k * math.log1p(other / moment), 600.0)), 1e-300)
            )
            best = np.minimum(best, log - theta * gap)
        found: Reals = np.maximum(p - y * q, 0.0) + error + y * np.exp(np.minimum(best, 600.0)) * (1 + 1e-9)
        return found
