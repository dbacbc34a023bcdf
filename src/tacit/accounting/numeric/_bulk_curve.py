"""The curve of a sum of laws at thousands of epsilons at once, in numeric accounting: upper values.

A sample of a sum needs the whole curve of the sum. Each law becomes a finite pair on one lattice. For a tilt
c, one FFT composes all of them. On a lattice of N points and period T it returns the masses A(l) = sum_n P(L
= l + n T) exp(c n T), whose aliases are positive, so every sum over them is an upper value. A dozen tilts
cover all epsilons of interest, and the smallest value counts. The proof is docs/proofs/accounting.md, section
7.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tacit.accounting.numeric._atoms import Atoms
from tacit.accounting.numeric._bracket import NotConverged, U
from tacit.accounting.numeric._dot import dot
from tacit.accounting.numeric._finite_pair import connect_dots
from tacit.accounting.numeric._loss_sum import LossSum, steer

if TYPE_CHECKING:
    from collections.abc import Callable

    from tacit.accounting.numeric._curve import Curve
    from tacit.accounting.numeric._mgf import Complexes, Reals

_POINTS = 1 << 16
_TARGETS = (0.5, 0.1, 1e-2, 1e-4, 1e-6, 1e-9, 1e-12, 1e-16, 1e-21, 1e-28, 1e-36)
_REACH = 600.0
_COARSE = 257  # dots of the first, rough pairs


class LatticePair(NamedTuple):
    """A finite pair on the lattice: places in steps and P-masses, and its infinite loss."""

    places: Reals
    masses: Reals
    infinite: float


def reach_of(curve: Curve, negligible: float = 1e-35) -> float:
    """Return a loss beyond which delta is negligible, at most 600; the rest counts as infinite loss."""
    reach = curve.high
    if not (math.isfinite(reach) and float(curve.upper(np.array([0.9 * reach]))[0]) > negligible):
        low, high = 0.0, min(reach, 1.0)
        while high < min(reach, _REACH) and float(curve.upper(np.array([high]))[0]) > negligible:
            low, high = high, 2 * high
        for _ in range(8):
            middle = (low + high) / 2
            if float(curve.upper(np.array([middle]))[0]) > negligible:
                low = middle
            else:
                high = middle
        reach = min(reach, high)
    return min(reach, _REACH)


def lowest(curve: Curve) -> float:
    """Return a loss below which there is next to nothing: delta is about 1 - exp(epsilon) there."""
    low = 1e-3
    while low < min(-curve.low, _REACH):
        at = np.array([-low])
        if float(curve.upper(at)[0] + np.expm1(at)[0]) < 1e-9:
            break
        low *= 1.3
    return max(-low, curve.low)


def bulk_upper(curves: list[tuple[Curve, int]]) -> Callable[[Reals], Reals]:
    """Return upper values of delta of the composition of laws with quick curves, at any array of epsilons."""
    total = sum(times for _, times in curves)
    ends = [(lowest(one), reach_of(one, 1e-37 / total)) for one, _ in curves]
    tilts, period = _tilts(curves, ends)
    g = period / _POINTS
    pairs = [(_on_lattice(one, end, g), times) for (one, times), end in zip(curves, ends, strict=True)]
    first = math.floor((_mean(pairs, g) - 0.4 * period) / g)
    e = g * (first + np.arange(_POINTS))
    if not max(-e[0], e[-1]) < _REACH:
        raise NotConverged
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        values = np.minimum.reduce([tilted(pairs, c, g, first, _POINTS) for c in tilts])
    leak = -math.expm1(sum(times * math.log1p(-min(pair.infinite, 1 - U)) for pair, times in pairs))
    values = np.minimum(np.where(np.isfinite(values), values, 1.0) + leak * (1 + 64 * U), 1.0)
    values = np.minimum.accumulate(values)
    ahead = max(float(values[0] + math.expm1(e[0])), 0.0) * (1 + 8 * U) + 8 * U
    y = np.exp(e)

    def upper(at: Reals) -> Reals:
        """Join the values by lines in exp(epsilon), which the pairs on the lattice follow exactly."""
        at = np.atleast_1d(at)
        ratio = np.exp(np.minimum(at, _REACH))
        found = np.interp(ratio * (1 - 8 * U), y, values) * (1 + 64 * U)
        left: Reals = np.minimum(np.where(at < e[0], 1 - ratio + ahead, found), 1.0)
        return left

    return upper


def _tilts(curves: list[tuple[Curve, int]], ends: list[tuple[float, float]]) -> tuple[Reals, float]:
    """Choose the tilts for all deltas of interest, and the period, by rough pairs; any choice is valid."""
    factors = []
    for (one, times), (low, high) in zip(curves, ends, strict=True):
        grid = np.sinh(3 * np.linspace(0, 1, _COARSE)) / math.sinh(3)
        pair = connect_dots(one, np.unique(np.concatenate([low * grid, high * grid])))
        factors.append((Atoms(pair.losses, pair.masses), times))
    loss_sum = LossSum(tuple(factors))
    _, mean, spread = (float(part[0]) for part in steer(loss_sum, np.array([1e-9])))
    width = math.sqrt(spread)
    if not 1e-100 < width < 1e100:
        raise NotConverged
    c = np.exp(np.linspace(math.log(0.05), math.log(400), 120)) / width
    logs = steer(loss_sum, c)[0]
    hat = logs + c * np.log(c / (1 + c)) - np.log1p(c)
    found = [int(np.argmin((hat - math.log(delta)) / c)) for delta in _TARGETS]
    top = max(float((hat[at] - math.log(delta)) / c[at]) for at, delta in zip(found, _TARGETS, strict=True))
    top = min(top, sum(times * end[1] for (_, times), end in zip(curves, ends, strict=True)))
    period = 2 * (top - mean + 13 * width)
    return np.unique(
        np.maximum(c[found], 40 / period)
    ), period  # aliases from the left fall as exp(-c period)


def _on_lattice(curve: Curve, ends: tuple[float, float], g: float) -> LatticePair:
    """Return a finite pair above the curve with losses that are multiples of g."""
    first, last = math.floor(ends[0] / g), math.ceil(ends[1] / g) + 1
    if last - first > 4 * _POINTS:
        raise NotConverged
    places = np.arange(first, last + 1)
    pair = connect_dots(curve, g * places)
    return LatticePair(np.round(pair.losses / g), pair.masses, pair.infinite)


def _mean(pairs: list[tuple[LatticePair, int]], g: float) -> float:
    return sum(times * g * dot(pair.masses, pair.places) for pair, times in pairs)


def tilted(pairs: list[tuple[LatticePair, int]], c: float, g: float, first: int, points: int) -> Reals:
    """Return upper values of delta on the lattice from one tilt."""
    spectrum = np.ones(points // 2 + 1, dtype=complex)
    log_norm = error = slips = 0.0
    for pair, times in pairs:
        exponents = c * g * pair.places + np.log(pair.masses)
        top = float(exponents.max())
        weights = np.exp(exponents - top)
        total = float(weights.sum())
        log_norm += times * (top + math.log(total))
        slips += times * 8 * U * (8 + dot(weights, np.abs(exponents)) / total + len(weights))
        folded = np.bincount(pair.places.astype(np.int64) % points, weights / total, points)
        spectrum = spectrum * _power(np.fft.rfft(folded), times)
        error += times * U * (16 * math.log2(points) + 64)
    if error + slips > 1e-3:
        raise NotConverged
    # A place on the lattice, counted from the first one, has the weight of its remainder.
    weights = np.roll(np.fft.irfft(spectrum, points), -first)
    weights = np.maximum(weights, 0.0) + 2 * error
    rises = g * np.arange(points)
    fade = np.exp(-c * rises)
    over = np.cumsum((weights * fade)[::-1])[::-1]
    less = np.cumsum((weights * fade * np.exp(-rises))[::-1])[::-1]
    beyond = math.exp(-min(700.0, c * g * points)) * float(over[0]) * 2
    value = over - np.exp(rises) * less
    value += 4 * points * U * over + beyond
    log = log_norm - c * g * first
    found: Reals = (
        np.maximum(value, 0.0) * math.exp(min(log, 700.0)) * (1 + 1e-12 * (1 + abs(log)) + 4 * slips)
    )
    return found if log < 700 else np.full(points, np.inf)


def _power(phi: Complexes, times: int) -> Complexes:
    """Return phi to a whole power, by squaring."""
    found = np.ones_like(phi)
    while times:
        if times & 1:
            found = found * phi
        times >>= 1
        phi = phi * phi if times else phi
    return found
