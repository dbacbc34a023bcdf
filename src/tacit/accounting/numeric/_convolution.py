"""Sums of lattice laws by plain convolution, in numeric accounting.

It adds only positive numbers and so keeps the relative accuracy of the smallest mass. Where only the largest
losses count, only they are convolved. The proof is docs/proofs/accounting.md, section 5.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tacit.accounting.numeric._bracket import Bracket, NotConverged, U, as_float, settle
from tacit.accounting.numeric._dot import dot

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.accounting.numeric._lattice_laws import Pmf
    from tacit.accounting.numeric._mgf import Reals

_TOPS = (64, 512)  # how many of the largest losses are tried first


class ComposedLosses(NamedTuple):
    """All losses of a composition, increasing, with their masses; ``places`` are exact if known."""

    losses: Reals
    masses: Reals
    slack: float
    places: tuple[Fraction, Fraction, NDArray[np.integer[Any]]] | None = None  # offset, step, whole numbers

    def delta(self, e: float) -> Bracket:
        above = self.losses > e
        losses, masses = self.losses[above], self.masses[above]
        gains = -np.expm1(e - losses)
        value = float((masses * gains).sum())  # not by BLAS: its threads cost more than they save
        loose = (
            8
            * U
            * (abs(e) + float(np.abs(self.losses[-1])) + abs(float(self.losses[0])))
            * float(masses.sum())
        )
        error = value * (self.slack + (len(losses) + 8) * U) + loose
        return Bracket(max(0.0, value - error), min(1.0, value + error + 1e-300), "lattice")

    def epsilon(self, delta: float) -> Bracket:
        return settle(self.delta, max(0.0, self.root(delta)), delta)

    def root(self, delta: float) -> float:
        """Return about the smallest e with delta(e) <= delta; between two losses delta is P - exp(e) Q."""
        low, high = -1, len(self.losses) - 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (
                (low, middle) if self.delta(float(self.losses[middle])).upper <= delta else (middle, high)
            )
        p = float(self.masses[high:].sum())
        q = dot(self.masses[high:], np.exp(self.losses[high] - self.losses[high:]))
        return float(self.losses[high]) + (math.log((p - delta) / q) if p > delta else -math.inf)

    def tail(self, t: float) -> float:
        """Return an upper value of P(L > t), where t is read by its decimal notation."""
        if self.places is None:
            reach = float(max(abs(self.losses[0]), abs(self.losses[-1])))
            above = self.losses > t - 4 * U * (reach + abs(t))
        else:
            offset, step, numbers = self.places
            above = numbers > math.floor((Fraction(repr(t)) - offset) / step)
        return min(1.0, float(self.masses[above].sum()) * (1 + self.slack + len(self.losses) * U) + 1e-300)


class TopLosses:
    """The largest losses of a composition, as many as a reading needs."""

    def __init__(self, laws: list[tuple[Pmf, int]], step: Fraction) -> None:
        self._laws, self._step = laws, step
        self._points = 1 + sum(times * (len(pmf.masses) - 1) * int(pmf.step / step) for pmf, times in laws)
        top = sum(
            (times * (pmf.offset + (len(pmf.masses) - 1) * pmf.step) for pmf, times in laws), Fraction(0)
        )
        self._top, self._g = as_float(top), as_float(step)
        self._found: dict[int, ComposedLosses] = {}

    def _first(self, most: int) -> ComposedLosses:
        if most not in self._found:
            self._found[most] = convolved(self._laws, self._step, most if most < self._points else None)
        return self._found[most]

    def delta(self, e: float) -> Bracket:
        needed = (self._top - e) / self._g + 2
        return self._first(next((most for most in _TOPS if most > needed), self._points)).delta(e)

    def epsilon(self, delta: float) -> Bracket:
        for most in (*(most for most in _TOPS if most < self._points), self._points):
            some = self._first(most)
            if most == self._points or some.delta(float(some.losses[2])).lower > delta:
                return settle(self.delta, max(0.0, some.root(delta)), delta)
        raise NotConverged


def convolved(laws: list[tuple[Pmf, int]], step: Fraction, most: int | None = None) -> ComposedLosses:
    """Convolve laws whose own steps are multiples of the step; with ``most``, only that many largest losses.

    Counted from the largest loss, a place of the sum needs no place of a law beyond it.
    """
    total, offset, slack = np.ones(1), Fraction(0), 0.0
    for pmf, times in laws:
        stride = int(pmf.step / step)
        spread = np.zeros((len(pmf.masses) - 1) * stride + 1)
        spread[::stride] = pmf.masses
        powered, error = _power(spread if most is None else spread[::-1][:most], times, pmf.slack, most)
        slack += error + (min(len(powered), len(total)) + 2) * U
        total = np.convolve(total, powered)[:most]
        offset += times * (pmf.offset if most is None else pmf.offset + (len(pmf.masses) - 1) * pmf.step)
    numbers = np.flatnonzero(total)
    if most is not None:
        numbers = numbers[::-1]
        return ComposedLosses(as_float(offset) - as_float(step) * numbers, total[numbers], slack)
    losses = as_float(offset) + as_float(step) * numbers
    return ComposedLosses(losses, total[numbers], slack, (offset, step, numbers))


def _power(masses: Reals, times: int, slack: float, most: int | None = None) -> tuple[Reals, float]:
    """Return the ``times``-fold convolution and the relative error of its entries."""
    result, error = np.ones(1), 0.0
    while times:
        if times & 1:
            error += slack + (min(len(result), len(masses)) + 2) * U
            result = np.convolve(result, masses)[:most]
        times >>= 1
        if times:
            masses, slack = np.convolve(masses, masses)[:most], 2 * slack + (len(masses) + 2) * U
    return result, error
