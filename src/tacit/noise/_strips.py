"""Bulk draws of discrete Laplace, geometric and discrete Gaussian noise: one table look-up each, exact by rejection.

The weights exp(-E(|x|)), E(x) = rate * x or rate * x^2, are covered by strips of m = 2^j integers. Under every strip lies
a rectangle no higher than its lowest weight; its area is a whole number of cells, and a point of a rectangle is a
draw at once. What rises above the rectangles is covered by boxes (and two geometric tails), whose area is a whole number
of 2^-48 cells; a point of a box is a draw if it lies under the weight of its integer, which doubles with a proven margin
decide, or exact arithmetic where they cannot. All cells together are 2^16, so that 16 random bits choose one.
The proof is in docs/proofs/noise.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from tacit.noise import _bits, _floats
from tacit.noise._digits import geometric_one
from tacit.noise._intervals import Interval, below, exp_minus, scaled
from tacit.noise._parameters import does_not_fit

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Strips", "strips"]

_CELLS = 1 << 16
_FINE = 48  # boxes are measured in 2^-48 cells
_BLOCK = 1 << 16  # draws that stay in the cache together
_SLACK = 2.0**-40  # relative; far above the error of any weight computed in doubles


@dataclass(frozen=True, slots=True)
class Strips:
    """The cover of one law: a table of cells, and for each strip its base, its inner edge, rectangle and box."""

    rate: Fraction
    power: int  # E(x) = rate * x**power
    width: int  # m, a power of two
    reach: int  # |x| where the strips of x >= 0 end and the tail begins; one further for x < 0
    per_weight: Fraction  # cells per unit of weight, C
    table: NDArray[np.int64]  # cell -> base of its strip; 0 for the cells of boxes, which come last
    fast: int  # number of cells that lie in rectangles
    base: NDArray[np.int64]  # strip -> base; the draw is base ^ low
    inner: NDArray[np.int64]  # strip -> |x| at low = 0; |x| = inner + low
    cells: NDArray[np.int64]  # strip -> cells of its rectangle
    height: NDArray[np.float64]  # strip -> weight of the strip in cells if all were as at its inner edge
    ends: NDArray[np.int64]  # strip, then tails -> end of its box, in 2^-48 cells

    def draw(self, count: int, name: str) -> NDArray[np.int64]:
        """Draw `count` numbers of this law; refuse where 64 bits do not hold one."""
        out = np.empty(count, np.int64)
        slow, cells = self._cells(out)
        while slow.size:
            rejected = self._boxes(out, slow, cells, name)
            again = np.empty(rejected.size, np.int64)
            inside, cells = self._cells(again)
            out[rejected] = again
            slow = rejected[inside]
        return out

    def _cells(self, out: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.uint16]]:
        """Choose a cell for each draw; return where a box was hit, and its cells counted from the first box."""
        block = min(out.size, _BLOCK)
        chosen, low = np.empty(block, np.uint16), np.empty(block, _narrowest(self.width))
        slow, cells = [], []
        for start in range(0, out.size, _BLOCK):
            part = out[start : start + _BLOCK]
            r, lo = chosen[: part.size], low[: part.size]
            _bits.fill(r)
            np.take(self.table, r, out=part, mode="clip")
            if self.width > 1:
                _bits.fill(lo)
                lo &= lo.dtype.type(self.width - 1)
                part ^= lo.view(np.int64) if lo.itemsize == 8 else lo
            hit = np.flatnonzero(r >= self.fast)
            slow.append(hit + start)
            cells.append(r[hit] - np.uint16(self.fast))
        chosen.fill(0)
        low.fill(0)
        return _join(slow, np.intp), _join(cells, np.uint16)

    def _boxes(
        self, out: NDArray[np.int64], slow: NDArray[np.intp], cells: NDArray[np.uint16], name: str
    ) -> NDArray[np.intp]:
        """Settle the draws that hit boxes; return those rejected."""
        fresh = np.empty(slow.size, np.uint64)
        _bits.fill(fresh)
        point = (cells.astype(np.int64) << _FINE) | (fresh >> np.uint64(16)).astype(np.int64)
        strip = np.searchsorted(self.ends, point, side="right")
        count = self.base.size
        accepted = np.zeros(slow.size, np.bool_)
        body = np.flatnonzero(strip < count)
        h, low = strip[body], out[slow[body]]
        point_above = point[body] - np.concatenate(([0], self.ends))[h]
        inner = self.inner[h]
        height, cells_below = self.height[h], self.cells[h]
        weight = height * _floats.exp_minus(self._rise(inner, low))
        # in cells: the point's height above the rectangle, against the weight above the rectangle
        gap = weight - cells_below - point_above * 2.0**-_FINE
        margin = height * _SLACK + 2.0**-46
        accepted[body] = gap > margin
        for i in np.flatnonzero(np.abs(gap) <= margin):
            accepted[body[i]] = below(
                int(point_above[i]), _FINE, self._excess(int(inner[i]) + int(low[i]), int(cells_below[i]))
            )
        out[slow[body]] = self.base[h] ^ low
        for i in np.flatnonzero((strip >= count) & (strip < self.ends.size)):
            tail = int(strip[i]) - count
            start = int(self.ends[strip[i] - 1])
            drawn = self._tail(tail, int(point[i]) - start)
            if drawn is not None:
                if not -(2**63) <= drawn < 2**63:
                    raise does_not_fit(name)
                out[slow[i]] = drawn
                accepted[i] = True
        return slow[~accepted]

    def _rise(self, inner: NDArray[np.int64], low: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return E(inner + low) - E(inner) in doubles."""
        steps = low.astype(np.float64)
        rise = steps * _near(self.rate)
        if self.power == 2:
            rise *= 2.0 * inner + steps
        return rise

    def _excess(self, x: int, cells_below: int) -> _Excess:
        return _Excess(self.per_weight * self.width, self.rate * x**self.power, cells_below)

    def _tail(self, side: int, point: int) -> int | None:
        """Draw from a tail, or reject: a geometric proposal i, accepted where the point lies under its weight.

        The tail's box is W high and wide as one; (i, y) with y uniform below W is accepted if
        y < C exp(-E(a)) / (1 - g) * exp(-(E(a+i) - E(a) - i d)), d = E(a+1) - E(a), g = exp(-d).
        """
        a = self.reach + side
        energy = self.rate * a**self.power
        step = self.rate * (a + 1) ** self.power - energy
        i = geometric_one(1 / step)
        total = self.rate * (a + i) ** self.power - i * step  # E(a) + what lies above the tangent
        if not below(point, _FINE, _TailHeight(self.per_weight, total, step)):
            return None
        return ~(a - 1 + i) if side else a + i


@dataclass(frozen=True, slots=True)
class _Excess:
    """The interval of ``factor * exp(-energy) - less``."""

    factor: Fraction
    energy: Fraction
    less: int

    def __call__(self, bits: int) -> Interval:
        extra = max(0, self.factor.numerator.bit_length() - self.factor.denominator.bit_length()) + 8
        low, high = exp_minus(self.energy, bits + extra)
        n, d = self.factor.numerator, self.factor.denominator << extra
        shift = self.less << bits
        return low * n // d - shift, -(-high * n // d) - shift


@dataclass(frozen=True, slots=True)
class _TailHeight:
    """The interval of ``factor * exp(-energy) / (1 - exp(-step))``."""

    factor: Fraction
    energy: Fraction
    step: Fraction

    def __call__(self, bits: int) -> Interval:
        extra = 64 + 2 * max(0, self.step.denominator.bit_length() - self.step.numerator.bit_length())
        extra += max(0, self.factor.numerator.bit_length() - self.factor.denominator.bit_length())
        work = bits + extra
        low, high = exp_minus(self.energy, work)
        low_g, high_g = exp_minus(self.step, work)
        one = 1 << work
        n, d = self.factor.numerator, self.factor.denominator
        return (low * n << bits) // (d * (one - low_g)), (high * n << bits) // (d * (one - high_g)) + 1


def _narrowest(width: int) -> type[np.unsignedinteger[object]]:
    """Return the narrowest unsigned type that holds the low digits."""
    return next(t for t in (np.uint8, np.uint16, np.uint32, np.uint64) if width <= 2 ** (8 * t().itemsize))


def _join(parts: list[NDArray[object]], kind: type) -> NDArray[object]:
    return np.concatenate(parts) if parts else np.empty(0, kind)


@lru_cache(maxsize=16)
def strips(n: int, d: int, power: int, *, signed: bool) -> Strips:
    """Cover the law with weights exp(-(d/n) |x|**power), over all integers or, not signed, over those from 0 on."""
    rate = Fraction(d, n)
    spread = (
        1 / _near(rate) if power == 1 else math.sqrt(0.5 / _near(rate))
    )  # a scale; only the speed depends on it
    width = 1 << max(0, math.frexp(spread)[1] - 7)
    reach = min(int((12 if power == 1 else 7) * spread), 2**62 - 1) // width + 1
    edges = np.arange(reach, dtype=np.int64) * width
    base = np.concatenate((edges, ~edges)) if signed else edges
    inner = np.concatenate((edges, edges + 1)) if signed else edges
    top = width * _floats.exp_minus(_energy(rate, power, inner))
    bottom = width * _floats.exp_minus(_energy(rate, power, inner + (width - 1)))
    tails = [_tail_bound(rate, power, reach * width + side) for side in range(2 if signed else 1)]
    per_weight = (_CELLS - 0.01) / ((float(top.sum()) + sum(tails)) * (1 + 2.0**-30))
    height = top * per_weight
    cells = np.floor(bottom * per_weight * (1 - _SLACK)).astype(np.int64)
    boxes = np.floor((height * (1 + _SLACK) - cells + 2.0**-60) * 2.0**_FINE).astype(np.int64) + 1
    tail_boxes = [int(math.ceil(tail * per_weight * (1 + _SLACK) * 2.0**_FINE)) + 1 for tail in tails]
    ends = np.cumsum(np.concatenate((boxes, np.array(tail_boxes, np.int64))))
    fast = int(cells.sum())
    if not (_CELLS // 2 <= fast < _CELLS and int(ends[-1]) <= (_CELLS - fast) << _FINE):
        raise AssertionError("the cover does not fit its cells")
    table = np.zeros(_CELLS, np.int64)
    table[:fast] = np.repeat(base, cells)
    return Strips(
        rate, power, width, reach * width, Fraction(per_weight), table, fast, base, inner, cells, height, ends
    )


def _near(rate: Fraction) -> float:
    """Return the rate as a double; from 2^20 on all weights but that of 0 are below exp(-64) anyway."""
    return float(min(rate, Fraction(2**20)))


def _energy(rate: Fraction, power: int, x: NDArray[np.int64]) -> NDArray[np.float64]:
    near = x.astype(np.float64)
    return np.minimum(near * _near(rate) * (near if power == 2 else 1.0), 2.0 * _floats.FAR)


def _tail_bound(rate: Fraction, power: int, a: int) -> float:
    """Return an upper bound of exp(-E(a)) / (1 - exp(-d)), d = E(a+1) - E(a): 1 / (1 - exp(-d)) <= 1 + 1/d."""
    energy = rate * a**power
    step = rate * (a + 1) ** power - energy
    weight = _floats.exp_minus_one(float(min(energy, Fraction(_floats.FAR))))
    return (weight * (1 + _SLACK) + 2.0**-90) * (1.0 + float(1 / step)) * (1 + _SLACK)
