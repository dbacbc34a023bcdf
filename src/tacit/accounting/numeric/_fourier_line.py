"""One line of the spectral engine: how far to go along it, its sum, and the certified error of that.

The argument: docs/proofs/accounting.md, section 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tacit.accounting.numeric._bracket import Bracket, NotConverged, U
from tacit.accounting.numeric._loss_sum import log_moment, peak
from tacit.accounting.numeric._rare_losses import Cut, difference, difference_bound, splittable

if TYPE_CHECKING:
    from tacit.accounting.numeric._fourier import Inversion
    from tacit.accounting.numeric._loss_sum import Lattice, Mix
    from tacit.accounting.numeric._mgf import Complexes, Reals

__all__ = ["SMALL", "Plan", "Spectrum", "evaluate"]

SMALL = math.log(1e-9)  # wanted size of aliases and truncation, relative to delta
_MOST_NODES = 1 << 16


class Plan(NamedTuple):
    """Where to integrate (any choice is valid; a good one is tight and quick)."""

    c: float
    c2: float
    period: float
    log_ratio: float  # of delta to M(c) exp(-c e), about
    width: float  # of the loss under this tilt, about
    log_delta: float  # about


@dataclass(frozen=True, slots=True)
class Spectrum:
    """One line, evaluated: delta(e) = exp(log M(c) - c e) Re sum_j terms_j exp(-i t_j e).

    On a lattice the sum is over the losses l >= l0, the first at or above e: exp(-c (l0 - e)) Re sum_j
    (terms_j - exp(e - l0) terms1_j) exp(-i t_j l0). ``terms1`` alone gives -d delta / d e. ``error`` and
    ``error1`` bound the error of the sum as error + |e| error1.
    """

    plan: Plan
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
    common: Inversion | None = None  # of what the cut took out, where that may matter

    def sums(self, e: float) -> tuple[float, float, float]:
        """Return sum, its error bound and the sum for -d delta / d e, all relative to exp(log M(c) - c e)."""
        value, error, slope = self._own(e)
        if self.cut is None or self.common is None:
            return value, error, slope
        scale = math.exp(min(700.0, self.plan.c * e - self.log_norm))
        low, high, _ = self.common.delta(e)
        beside = scale * (low + high) / 2
        error += scale * (high - low) / 2 * (1 + 8 * U) + 8 * U * beside
        return value + beside, error, slope + self.cut.tilt * beside

    def _own(self, e: float) -> tuple[float, float, float]:
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
        if self.cut is not None:  # what was taken out of the sum (itself, or from the right), from the left
            fade = (self.cut.tilt - self.plan.c) * self.plan.period if self.common is not None else 0.0
            upper += math.exp(min(0.0, self.cut.log_bulk - self.cut.tilt * e - fade)) * (1 + 1e-9)
            upper += (1 + 1e-9) / math.expm1(min(700.0, self.plan.c * self.plan.period))
        lower = math.exp(log) * (value - error) * (1 - 2 * slip) - self.aliases(e)
        method = "spectral" if self.lattice is None else "lattice"
        return Bracket(max(0.0, lower), min(1.0, max(0.0, upper)), method)

    def log_delta(self, e: float) -> float:
        """Return log delta(e), about; minus infinity where this line does not see it."""
        value, error, _ = self.sums(e)
        return self.log_norm - self.plan.c * e + math.log(value) if value > error else -math.inf

    def drowned(self, e: float, log_delta: float) -> bool:
        """Say whether rounding covers both what is there and what is sought."""
        value, error, _ = self.sums(e)
        sought = math.exp(max(-700.0, min(0.0, log_delta - self.log_norm + self.plan.c * e)))
        return error > 0.01 * max(value, sought)

    def root(self, e: float, log_delta: float, low: float, high: float) -> tuple[float, float]:
        """Return about where delta(e) = delta between low and high, and -d log delta / d e there.

        Newton's rule, kept between ends that close in: where large losses are rare, log delta is convex, and
        a step from the right alone would leave.
        """
        c, slope = self.plan.c, self.plan.c
        for _ in range(60):
            value, _, derivative = self.sums(e)
            seen = value > 0 and derivative > 0
            above = self.log_norm - c * e + math.log(value) - log_delta if seen else -math.inf
            low, high = (e, high) if above > 0 else (low, e)
            slope = derivative / value if seen else c
            step = max(-4 / c, min(4 / c, above / slope))
            if not low < e + step < high and abs(step) * slope > 1e-7:
                step = (low + high) / 2 - e
            e += step
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


def evaluate(mix: Mix, plan: Plan, cut: Cut | None = None, common: Inversion | None = None) -> Spectrum:
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
    wanted = plan.log_ratio + SMALL
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
    return Spectrum(
        plan, t, weight * phi * kernel, weight * phi * kernel1,
        float(size @ error) + math.exp(left_out(nodes)) * (1 + 1e-9),
        8 * U * float((size * (c + 1 + 2 * t)) @ heights),
        log_norm, norm_error, log_moment(mix, plan.c2), lattice, cut, common,
    )  # fmt: skip
