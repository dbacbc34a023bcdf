"""One line of Fourier inversion in numeric accounting: its nodes, its sum and the sum's certified error.

The proof is docs/proofs/accounting.md, section 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tacit.accounting.numeric._bracket import Bracket, NotConverged, U
from tacit.accounting.numeric._dot import dot
from tacit.accounting.numeric._loss_sum import log_moment, peak
from tacit.accounting.numeric._rare_losses import LossCut, difference, difference_bound, splittable

if TYPE_CHECKING:
    from collections.abc import Callable

    from tacit.accounting.numeric._fourier import FourierInversion
    from tacit.accounting.numeric._loss_sum import LossLattice, LossSum
    from tacit.accounting.numeric._mgf import Complexes, Reals

SMALL = math.log(1e-9)  # wanted size of aliases and truncation, relative to delta
_MOST_NODES = 1 << 16
_KEPT = 16  # sums of a line
_MANY = 512  # nodes: from here on, tables and powers are quicker than a function of each node


class LineChoice(NamedTuple):
    """Where to integrate. Any choice is valid; a good one is tight and quick."""

    c: float
    c2: float
    period: float
    log_ratio: float  # approximate, of delta to M(c) exp(-c e)
    width: float  # approximate, of the loss under this tilt
    log_delta: float  # approximate


@dataclass(frozen=True, slots=True)
class Spectrum:
    """One line, evaluated: delta(e) = exp(log M(c) - c e) Re sum_j terms_j exp(-i t_j e).

    On a lattice the sum is over the losses l >= l0, the first at or above e: exp(-c (l0 - e)) Re sum_j
    (terms_j - exp(e - l0) terms1_j) exp(-i t_j l0). ``terms1`` alone gives -d delta / d e. ``error`` and
    ``error1`` bound the error of the sum as error + |e| error1.
    """

    choice: LineChoice
    t: Reals
    terms: Complexes
    terms1: Complexes
    error: float
    error1: float
    log_norm: float
    norm_error: float
    log_norm2: float  # an upper value of log M(c2)
    lattice: LossLattice | None
    cut: LossCut | None = None
    common: FourierInversion | None = None  # of the losses that the cut took out, if they may matter
    seen: dict[float, tuple[float, float]] = field(default_factory=dict, compare=False, repr=False)

    def sums(self, e: float) -> tuple[float, float, float]:
        """Return the sum, its error bound and the sum for -d delta / d e, relative to exp(log M(c) - c e)."""
        value, error, slope = self._own(e)
        if self.cut is None or self.common is None:
            return value, error, slope
        scale = math.exp(min(700.0, self.choice.c * e - self.log_norm))
        low, high, _ = self.common.delta(e)
        beside = scale * (low + high) / 2
        error += scale * (high - low) / 2 * (1 + 8 * U) + 8 * U * beside
        return value + beside, error, slope + self.cut.tilt * beside

    def _own(self, e: float) -> tuple[float, float, float]:
        error = self.error + abs(e) * self.error1
        if self.lattice is None:
            value, slope = self._turned(e)
            return value, error, slope
        offset, g = self.lattice
        first = offset + g * math.ceil((e - offset) / g)
        value, slope = self._turned(first)
        fade, drop = math.exp(-self.choice.c * (first - e)), math.exp(e - first)
        return fade * (value - drop * slope), error, fade * drop * slope

    def _turned(self, x: float) -> tuple[float, float]:
        """Return Re sum_j terms_j exp(-i t_j x), and the same of ``terms1``; the last sums are kept."""
        if x not in self.seen:
            if len(self.seen) >= _KEPT:
                self.seen.clear()
            self.seen[x] = self._sums_at(x)
        return self.seen[x]

    def _sums_at(self, x: float) -> tuple[float, float]:
        """Return the two sums.

        With many nodes, j = block * r + s: rows are added first, with one table of phases for all of them.
        """
        n = len(self.t)
        if n < _MANY:
            turn = np.exp(-1j * self.t * x)
            return float((self.terms * turn).real.sum()), float((self.terms1 * turn).real.sum())
        block = math.isqrt(n)
        rows = n // block
        fine, coarse = np.exp(-1j * self.t[:block] * x), np.exp(-1j * self.t[::block] * x)
        found = []
        for terms in (self.terms, self.terms1):
            sums = np.einsum("rs,s->r", terms[: rows * block].reshape(rows, block), fine)
            total = (sums * coarse[:rows]).real.sum()
            rest = terms[rows * block :]
            if len(rest):
                total += ((rest * fine[: len(rest)]).sum() * coarse[rows]).real
            found.append(float(total))
        return found[0], found[1]

    def aliases(self, e: float) -> float:
        """Return an upper value of the sum of all aliases, as delta."""
        c, c2, period = self.choice[:3]
        left = 1 / math.expm1(min(700.0, c * period))
        gap = (c2 - c) * period
        right = math.exp(min(700.0, self.log_norm2 + peak(c2) - c2 * e - gap)) / -math.expm1(-gap)
        return (left + right) * (1 + 1e-9)

    def delta(self, e: float) -> Bracket:
        value, error, _ = self.sums(e)
        log = self.log_norm - self.choice.c * e
        slip = self.norm_error + 4 * U * (abs(self.log_norm) + abs(self.choice.c * e) + 4)
        if not (log < 700 and slip < 0.01 and math.isfinite(value) and math.isfinite(error)):
            raise NotConverged
        upper = math.exp(log) * (value + error) * (1 + 2 * slip) + 1e-300
        if (
            self.cut is not None
        ):  # the losses taken out: themselves or their aliases from the right, then aliases from the left
            fade = (self.cut.tilt - self.choice.c) * self.choice.period if self.common is not None else 0.0
            upper += math.exp(min(0.0, self.cut.log_bulk - self.cut.tilt * e - fade)) * (1 + 1e-9)
            upper += (1 + 1e-9) / math.expm1(min(700.0, self.choice.c * self.choice.period))
        lower = math.exp(log) * (value - error) * (1 - 2 * slip) - self.aliases(e)
        method = "spectral" if self.lattice is None else "lattice"
        return Bracket(max(0.0, lower), min(1.0, max(0.0, upper)), method)

    def log_delta(self, e: float) -> float:
        """Return approximate log delta(e); minus infinity if this line does not resolve it."""
        value, error, _ = self.sums(e)
        return self.log_norm - self.choice.c * e + math.log(value) if value > error else -math.inf

    def hidden(self, e: float, log_delta: float) -> bool:
        """Return whether rounding hides both the value at e and the value that is sought."""
        value, error, _ = self.sums(e)
        sought = math.exp(max(-700.0, min(0.0, log_delta - self.log_norm + self.choice.c * e)))
        return error > 0.01 * max(value, sought)

    def root(self, e: float, log_delta: float, low: float, high: float) -> tuple[float, float]:
        """Return approximately where delta(e) = delta between low and high, and -d log delta / d e there.

        Newton's method between shrinking ends: where large losses are rare, log delta is convex, and a step
        from the right alone could leave the interval.
        """
        c, slope = self.choice.c, self.choice.c
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
    """Return the smallest number >= n of the form 2^a 3^b 5^c, for a quick FFT."""
    best = 1 << (n - 1).bit_length()
    five = 1
    while five < best:
        three = five
        while three < best:
            best = min(best, three << max(0, (-(-n // three) - 1).bit_length()))
            three *= 3
        five *= 5
    return best


def evaluate(
    loss_sum: LossSum, choice: LineChoice, cut: LossCut | None = None, common: FourierInversion | None = None
) -> Spectrum:
    """Evaluate the chosen line on as many nodes as needed; with a cut, only sums that have a rare loss."""
    lattice = loss_sum.lattice
    half, whole = _MOST_NODES, 0  # nodes up to half a period of the lattice, and of a whole one
    if lattice is not None:
        whole = _smooth(max(2, math.ceil(choice.period / lattice.step)))
        choice = choice._replace(period=whole * lattice.step)
        half = whole // 2
    h = 2 * math.pi / choice.period
    beyond = _beyond(loss_sum, choice.c, h, half, cut)
    nodes, beyond_nodes = _enough_nodes(beyond, choice, h)
    t = h * np.arange(nodes + 1)
    kernel = _kernel(choice.c, choice.period, nodes, lattice, lattice is not None and 2 * nodes == whole)
    product = _product(loss_sum, choice.c, h, nodes, cut)
    if cut is not None:
        product = _with_rare_loss(product, loss_sum, choice.c, h, cut)
    error = product.error + product.heights * U * (32 + len(t) + 8 * kernel.far * (choice.c + 1 + t))
    size = kernel.size * kernel.weight
    return Spectrum(
        choice, t, kernel.weight * product.phi * kernel.first, kernel.weight * product.phi * kernel.second,
        dot(size, error) + math.exp(beyond_nodes) * (1 + 1e-9),
        8 * U * dot(size * (choice.c + 1 + 2 * t), product.heights),
        product.log_norm, product.norm_error, log_moment(loss_sum, choice.c2), lattice, cut, common,
    )  # fmt: skip


class _Beyond(NamedTuple):
    """What the nodes beyond a node can add to the sum, bounded by the decay of the factors."""

    decays: list[tuple[Callable[[float], float], int]]
    log_rare: float  # of the share of sums with a rare loss, if there is a cut
    c: float
    h: float
    half: int
    lattice: LossLattice | None

    def log_bound(self, node: int) -> float:
        """Return the logarithm of the most that all nodes beyond this one can add."""
        log_phi = sum(times * bound(node * self.h) for bound, times in self.decays) + self.log_rare
        if self.lattice is None:  # sum over j > J of (h / pi) / t_j^2 <= 1 / (pi t_J)
            return log_phi - math.log(math.pi * node * self.h)
        if node >= self.half:
            return -math.inf
        # |1 - exp(-z g)| >= 2 exp(-c g / 2) t g / pi up to half a period: a harmonic sum.
        return log_phi + (self.c + 1) * self.lattice.step / 2 + math.log(math.log(self.half / node))


def _beyond(loss_sum: LossSum, c: float, h: float, half: int, cut: LossCut | None) -> _Beyond:
    """Collect the decay of all factors; with a cut, |M^k - B^k| <= k |R| max(|M|, |B|)^(k-1)."""
    decays = [
        (factor.decay(c), times)
        for i, (factor, times) in enumerate(loss_sum.factors)
        if cut is None or i != cut.which
    ]
    log_rare = 0.0
    if cut is not None:
        law, often = splittable(loss_sum.factors[cut.which][0]), loss_sum.factors[cut.which][1]
        decays.append((law.bulk_decay(c, cut.level), often - 1))
        log_rare = math.log(often * law.split(c, 0.0, 0, cut.level).share) + 1e-6
    return _Beyond(decays, log_rare, c, h, half, loss_sum.lattice)


def _enough_nodes(beyond: _Beyond, choice: LineChoice, h: float) -> tuple[int, float]:
    """Return a number of nodes such that all nodes beyond add little, and the log of what they can add.

    The logarithm of the bound falls about like a power of the number of nodes, which tells where to try next.
    """
    most = min(beyond.half, _MOST_NODES if beyond.lattice is None else _MOST_NODES // 4)
    wanted = choice.log_ratio + SMALL
    nodes = max(1, min(most, int(3.5 * math.sqrt(-wanted) / (choice.width * h))))
    low, power, tries = 0, 1.6, 0
    while not (bound := beyond.log_bound(nodes)) <= wanted:
        if nodes == most:
            raise NotConverged
        more = min(1.1 * (wanted / bound) ** (1 / power), 2.0) if bound < 0.7 * wanted and not low else 2.0
        low, nodes = nodes, min(max(nodes + 1, int(more * nodes)), most)
    aim = wanted - 2 if nodes < 256 else wanted  # a bit less than wanted, if it costs few nodes
    while nodes - low > 1 + nodes // 10 and (nodes >= 256 or bound < 1.1 * aim):
        there, tries = int(1.02 * nodes * (aim / max(bound, -1e300)) ** (1 / power)) + 1, tries + 1
        if not low < there < nodes or tries > 3:
            there = (low + nodes) // 2
        found = beyond.log_bound(there)
        if found < -1 and bound < found:
            power = min(max(math.log(bound / found) / math.log(nodes / there), 0.3), 3.0)
        if found <= wanted:
            nodes, bound = there, found
        else:
            low = there
    return nodes, bound


class _Kernel(NamedTuple):
    """The weights and kernels that turn the transform into delta (first) and into its slope (second)."""

    weight: Reals
    first: Complexes
    second: Complexes
    size: Reals  # of the terms
    far: float  # how far the lattice points lie from 0, for the error of the phases


@lru_cache(maxsize=2)  # a sum and one like it follow each other
def _kernel(c: float, period: float, nodes: int, lattice: LossLattice | None, twice: bool) -> _Kernel:  # noqa: FBT001
    """Return the kernel; ``twice`` if the nodes at plus and minus half a period are the same one."""
    t = (2 * math.pi / period) * np.arange(nodes + 1)
    weight = np.full(len(t), 2 / period)
    weight[0] /= 2
    if twice:
        weight[-1] /= 2
    if lattice is None:
        z = c + 1j * t
        second = 1 / (z + 1)
        first = second / z
        return _Kernel(weight, first, second, np.abs(first), 0.0)
    half = t * (lattice.step / 2)
    sine, cosine = np.sin(half), np.cos(half)
    first, second = (_geometric(c + more, lattice.step, sine, cosine) for more in (0, 1))
    size, far = np.abs(first) + np.abs(second), abs(lattice.offset) + lattice.step
    return _Kernel(weight * lattice.step, first, second, size, far)


def _geometric(c: float, step: float, sine: Reals, cosine: Reals) -> Complexes:
    """Return 1 / (1 - exp(-z g)), z = c + it, from the sine and cosine of t g / 2.

    The real part of the denominator is 1 - exp(-c g) + 2 exp(-c g) sin^2(t g / 2), a sum of positive terms.
    """
    fall = math.exp(-c * step)
    below: Complexes = np.empty(len(sine), dtype=complex)
    below.real = -math.expm1(-c * step) + 2 * fall * sine * sine
    below.imag = 2 * fall * sine * cosine
    return 1 / below


class _Product(NamedTuple):
    """The product of the factors on the nodes, its size and error, and log M(c) with its error."""

    phi: Complexes
    heights: Reals
    bound: Reals  # an upper value of the height
    error: Reals
    log_norm: float
    norm_error: float


def _product(loss_sum: LossSum, c: float, h: float, nodes: int, cut: LossCut | None) -> _Product:
    """Multiply the factors, without the one that is cut.

    The error is |prod a_i - prod b_i| <= prod (|b_i| + e_i) - prod |b_i|, and the rounding of the logarithms
    of the product. With many nodes, repeated squares take the place of logarithms: each complex product errs
    by less than 3 U, and a power counts ``times`` of them.
    """
    log_phi, log_size = np.zeros(nodes + 1, dtype=complex), np.zeros(nodes + 1)
    powers = np.ones(nodes + 1, dtype=complex)
    log_norm = norm_error = 0.0
    for i, (factor, times) in enumerate(loss_sum.factors):
        if cut is not None and i == cut.which:
            continue
        line = factor.line(c, h, nodes)
        size = times * np.log(np.abs(line.phi) + line.phi_error)
        log_size += size
        if nodes < _MANY:
            log_phi += times * np.log(np.where(line.phi == 0, 1e-300, line.phi))
        else:
            powers *= _power(np.where(np.abs(size) < 600, line.phi, 0.0), times)
        log_norm += times * line.log_norm
        norm_error += times * (line.norm_error + 4 * U * abs(line.log_norm))
    if float(log_size.max()) > 1:  # the error of one factor, repeated many times, hides everything else
        raise NotConverged
    turns = sum(times for _, times in loss_sum.factors)
    # Denormal numbers are slow; zeros stay within the error bound.
    phi = powers if nodes >= _MANY else np.where(log_phi.real > -600, np.exp(log_phi), 0.0)
    heights = np.abs(phi)
    rounding = 8 * U * (turns + len(loss_sum.factors) + np.abs(log_size))
    bound = np.exp(np.maximum(log_size, -600)) * (1 + rounding)
    error = np.maximum(bound - heights, 0.0) + 16 * U * (1 + turns + np.abs(log_size)) * heights
    return _Product(phi, heights, bound, error, log_norm, norm_error)


def _power(phi: Complexes, times: int) -> Complexes:
    """Return phi^times by repeated squares."""
    result = np.ones(len(phi), dtype=complex)
    while times:
        if times & 1:
            result *= phi
        times >>= 1
        if times:
            phi = phi * phi
    return result


def _with_rare_loss(others: _Product, loss_sum: LossSum, c: float, h: float, cut: LossCut) -> _Product:
    """Multiply the other factors by M^k - B^k of the cut factor: its sums with at least one rare loss."""
    law, often = splittable(loss_sum.factors[cut.which][0]), loss_sum.factors[cut.which][1]
    parts = law.split(c, h, len(others.phi) - 1, cut.level)
    inner = difference(parts.bulk, parts.rest, often)
    bulk, rest = np.abs(parts.bulk), np.abs(parts.rest)
    size = difference_bound(bulk, rest, often)
    most = difference_bound(bulk + parts.bulk_error, rest + parts.rest_error, often)
    rough = np.maximum(most - size, 0.0) + 32 * U * (1 + often) * most
    return _Product(
        others.phi * inner,
        others.heights * np.abs(inner),
        others.bound * most,
        rough * others.bound + np.abs(inner) * others.error,
        others.log_norm + often * parts.log_norm,
        others.norm_error + often * (parts.norm_error + 4 * U * abs(parts.log_norm)),
    )
