"""Noise in bulk (discrete Laplace, geometric, Gaussian): one table look-up per draw, exact by rejection.

Strips of m = 2^j integers cover the weights exp(-E(|x|)), E(x) = rate * x or rate * x^2. Each strip has a
rectangle no higher than its lowest weight, whose area is a whole number of cells; a point in a rectangle is
accepted at once. Boxes cover the part of the weights above the rectangles, and a geometric tail covers each
end; their areas are whole numbers of 2^-48 cells. A point in a box is accepted if it lies under the weight of
its integer: doubles decide with a proven margin, exact arithmetic where doubles cannot. A rejected point is
drawn again. There are 2^16 cells, so 16 random bits choose one. The same strips cover the weights of real
numbers: then the draw is the floor of a real number, whose digits are drawn as far as a decision needs them.
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
from tacit.noise._geometric import geometric_one
from tacit.noise._intervals import IntegerInterval, Place, below, exp_minus, exp_minus_between
from tacit.noise._parameters import does_not_fit

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CELLS = 1 << 16
_FINE = 48  # boxes are measured in 2^-48 cells
_BLOCK = 1 << 16  # draws that stay in the cache together
_SLACK = 2.0**-40  # relative; far above the error of any weight computed in doubles


@dataclass(frozen=True, slots=True)
class Strips:
    """The cover of one law: a table of cells; for each strip its base, inner edge, rectangle and box."""

    rate: Fraction
    power: int  # E(x) = rate * x**power
    width: int  # m, a power of two
    reach: int  # |x| where the strips of x >= 0 end and their tail begins; one further for x < 0
    per_weight: Fraction  # cells per unit of weight
    table: NDArray[np.int64]  # cell -> base of its strip; 0 for the cells of boxes, which come last
    fast: int  # number of cells that lie in rectangles
    base: NDArray[np.int64]  # strip -> base; the draw is base ^ low
    inner: NDArray[np.int64]  # strip -> |x| at low = 0; |x| = inner + low
    cells: NDArray[np.int64]  # strip -> cells of its rectangle
    height: NDArray[np.float64]  # strip -> its cells if all weights were as at its inner edge
    edges: NDArray[np.int64]  # strips, then tails -> where its box begins and the next, in 2^-48 cells
    real: bool  # the draw is floor(x) of a real x; a strip ends where the next begins, |x| = inner + low + f

    def draw(self, count: int, name: str) -> NDArray[np.int64]:
        """Draw `count` numbers of this law; refuse numbers beyond 64 bits."""
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
        """Choose a cell for each draw; return which draws hit a cell of a box, and which cell."""
        block = min(out.size, _BLOCK)
        chosen, low = np.empty(block, np.uint16), np.empty(block, np.min_scalar_type(self.width - 1))
        slow, cells = [np.empty(0, np.intp)], [np.empty(0, np.uint16)]
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
        return np.concatenate(slow), np.concatenate(cells)

    def _boxes(
        self, out: NDArray[np.int64], slow: NDArray[np.intp], cells: NDArray[np.uint16], name: str
    ) -> NDArray[np.intp]:
        """Decide the draws that hit cells of boxes; return those that were rejected."""
        fresh = np.empty(slow.size, np.uint64)
        _bits.fill(fresh)
        fresh >>= np.uint64(16)
        point = (cells.astype(np.int64) << _FINE) | fresh.view(np.int64)
        box = np.searchsorted(self.edges, point, side="right") - 1
        above = point - self.edges[box]
        body = box < self.base.size
        if body.all():
            return slow[~self._accept(out, slow, box, above)]
        accepted = np.zeros(slow.size, np.bool_)
        accepted[body] = self._accept(out, slow[body], box[body], above[body])
        for i in np.flatnonzero(~body & (box < self.edges.size - 1)):
            number = self._tail(int(box[i]) - self.base.size, int(above[i]))
            if number is not None:
                if not -(2**63) <= number < 2**63:
                    raise does_not_fit(name)
                out[slow[i]], accepted[i] = number, True
        return slow[~accepted]

    def _accept(
        self, out: NDArray[np.int64], slow: NDArray[np.intp], h: NDArray[np.intp], above: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Set the draws of points in the boxes of strips h, above the rectangles; return who is accepted."""
        low, inner, cells, height = out[slow], self.inner[h], self.cells[h], self.height[h]
        f = self._fractions(slow.size)
        gap = height * _floats.exp_minus(self._rise(inner, low, f))
        gap -= cells
        gap -= above * 2.0**-_FINE
        margin = height * _SLACK + 2.0**-46
        accepted = gap > margin
        for i in np.flatnonzero(np.abs(gap) <= margin):
            point = Place(int(inner[i]) + int(low[i]), int(f[i]) if self.real else None, 53)
            energy = _Energy(self.rate, self.power, point)
            excess = _Excess(self.per_weight * self.width, energy, int(cells[i]))
            accepted[i] = below(int(above[i]), _FINE, excess)
        out[slow] = self.base[h] ^ low
        return accepted

    def _fractions(self, count: int) -> NDArray[np.uint64]:
        """Return the first 53 binary digits of the fractions of real numbers; nothing for whole ones."""
        f = np.empty(count if self.real else 0, np.uint64)
        _bits.fill(f)
        f >>= np.uint64(11)
        return f

    def _rise(
        self, inner: NDArray[np.int64], low: NDArray[np.int64], f: NDArray[np.uint64]
    ) -> NDArray[np.float64]:
        """Return E(inner + low + f) - E(inner) in doubles."""
        steps = low.astype(np.float64)
        if self.real:
            steps += f * 2.0**-53
        rise = steps * _near(self.rate)
        if self.power == 2:
            steps += 2.0 * inner
            rise *= steps
        return rise

    def _tail(self, side: int, above: int) -> int | None:
        """Draw from a tail or reject: accept a geometric proposal if the point lies under its weight.

        With a the tail's first |x| and d = E(a+1) - E(a), the proposal a + i has chance (1 - g) g^i, g =
        exp(-d); a point y high is under the weight of a + i if y < C exp(-(E(a+i) - i d)) / (1 - g). For real
        numbers it is the weight of a + i + f, with a uniform fraction f.
        """
        a = self.reach + (0 if self.real else side)
        step = self.rate * (a + 1) ** self.power - self.rate * a**self.power
        x = a + geometric_one(1 / step)
        point = Place(x, _bits.word() if self.real else None, 64)
        energy = _Energy(self.rate, self.power, point, (x - a) * step)
        if not below(above, _FINE, _TailHeight(self.per_weight, energy, step)):
            return None
        if self.real:
            return ~x if side else x
        return -x if side else x


@dataclass(frozen=True, slots=True)
class _Energy:
    """The range of ``rate * x**power - less`` for a number x that may be known to so many binary digits."""

    rate: Fraction
    power: int
    x: Place
    less: Fraction = Fraction(0)

    def __call__(self, bits: int) -> tuple[Fraction, Fraction]:
        low, high = self.x.ends(bits)
        low_energy = self.rate * low**self.power - self.less
        return low_energy, low_energy if high == low else self.rate * high**self.power - self.less


@dataclass(frozen=True, slots=True)
class _Excess:
    """The interval of ``factor * exp(-energy) - less``."""

    factor: Fraction
    energy: _Energy
    less: int

    def __call__(self, bits: int) -> IntegerInterval:
        extra = max(0, self.factor.numerator.bit_length() - self.factor.denominator.bit_length()) + 8
        low, high = exp_minus_between(self.energy(bits + extra), bits + extra)
        n, d = self.factor.numerator, self.factor.denominator << extra
        shift = self.less << bits
        return low * n // d - shift, -(-high * n // d) - shift


@dataclass(frozen=True, slots=True)
class _TailHeight:
    """The interval of ``factor * exp(-energy) / (1 - exp(-step))``."""

    factor: Fraction
    energy: _Energy
    step: Fraction

    def __call__(self, bits: int) -> IntegerInterval:
        small = max(0, self.step.denominator.bit_length() - self.step.numerator.bit_length())
        large = max(0, self.factor.numerator.bit_length() - self.factor.denominator.bit_length())
        work = bits + 64 + 2 * small + large
        low, high = exp_minus_between(self.energy(work), work)
        low_g, high_g = exp_minus(self.step, work)
        unit = 1 << work
        n, d = self.factor.numerator, self.factor.denominator
        return (low * n << bits) // (d * (unit - low_g)), (high * n << bits) // (d * (unit - high_g)) + 1


@lru_cache(maxsize=16)
def strips(n: int, d: int, power: int, *, signed: bool, real: bool = False) -> Strips:
    """Cover the weights exp(-(d/n) |x|**power) over all integers or, if not signed, over those from 0 on.

    If `real`, over all real numbers or those from 0 on; then the table draws their floor.
    """
    later = 0 if real else 1  # where |x| of negative numbers begins; how far apart a strip and the next lie
    rate = Fraction(d, n)
    # width, reach and per_weight affect only the speed; the law holds for all that pass the check below
    spread = 1 / _near(rate) if power == 1 else math.sqrt(0.5 / _near(rate))
    width = 1 << max(0, math.frexp(spread)[1] - 7)
    count = min(int((12 if power == 1 else 7) * spread), 2**62 - 1) // width + 1
    starts = np.arange(count, dtype=np.int64) * width
    base = np.concatenate((starts, ~starts)) if signed else starts
    inner = np.concatenate((starts, starts + later)) if signed else starts
    top = width * _floats.exp_minus(_energy(rate, power, inner))
    bottom = width * _floats.exp_minus(_energy(rate, power, inner + (width - later)))
    tails = np.array([_tail_bound(rate, power, count * width + later * side) for side in range(1 + signed)])
    per_weight = (_CELLS - 0.01) / float(top.sum() + tails.sum())
    height = top * per_weight
    cells = np.floor(bottom * per_weight * (1 - _SLACK)).astype(np.int64)
    boxes = np.concatenate((height * (1 + _SLACK) - cells, tails * per_weight * (1 + _SLACK)))
    boxes = np.floor((boxes + 2.0**-60) * 2.0**_FINE) + 1
    edges = np.concatenate(([0], np.cumsum(boxes.astype(np.int64))))
    fast = int(cells.sum())
    if not (_CELLS // 2 <= fast < _CELLS and int(edges[-1]) <= (_CELLS - fast) << _FINE):
        raise AssertionError("the cover does not fit its cells")
    table = np.zeros(_CELLS, np.int64)
    table[:fast] = np.repeat(base, cells)
    weight = Fraction(per_weight)
    return Strips(
        rate, power, width, count * width, weight, table, fast, base, inner, cells, height, edges, real
    )


def _near(rate: Fraction) -> float:
    """Return the rate as a double, at most 2^20: beyond, all weights but that of 0 are below exp(-64)."""
    return float(min(rate, Fraction(2**20)))


def _energy(rate: Fraction, power: int, x: NDArray[np.int64]) -> NDArray[np.float64]:
    floats = x.astype(np.float64)
    return floats * _near(rate) * (floats if power == 2 else 1.0)


def _tail_bound(rate: Fraction, power: int, a: int) -> float:
    """Bound exp(-E(a)) / (1 - exp(-d)) from above, d = E(a+1) - E(a), by 1 / (1 - exp(-d)) <= 1 + 1/d."""
    energy = rate * a**power
    step = rate * (a + 1) ** power - energy
    weight = _floats.exp_minus_one(float(min(energy, Fraction(_floats.FAR))))
    return (weight * (1 + _SLACK) + 2.0**-90) * (1.0 + float(1 / step)) * (1 + _SLACK)
