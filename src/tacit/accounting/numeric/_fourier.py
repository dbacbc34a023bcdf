"""Numeric accounting by Fourier inversion on a vertical line: delta, with a certified bracket.

For independent losses with M = prod M_i^k_i and any c > 0, ``delta(e) = (1 / 2 pi i) int exp(log M(z) - z
e) / (z (z+1)) dz`` over Re z = c. The trapezoid rule of step h = 2 pi / T on that line returns exactly
``sum_n delta(e + n T) exp(c n T)``: every alias is positive, so the plain sum is an upper value, and the
aliases are at most ``1 / (exp(c T) - 1)`` from the left and, by Chernoff's bound at a larger c2, a geometric
series from the right. The ``decay`` of the factors bounds the nodes beyond the last. Losses on a lattice
o + g Z need only the nodes of one period, with the kernel summed over the lattice. The proof is
docs/proofs/accounting.md, section 3.

A line has its nodes, its sum and the sum's certified error; the accountant chooses lines.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from tacit.accounting.numeric._arithmetic import Bracket, LossUnseen, NotConverged, U, settle
from tacit.accounting.numeric._mgf import LossSum, log_moment, peak, spread, steer
from tacit.accounting.numeric._quadrature import dot
from tacit.accounting.numeric._rare_losses import (
    LossCut,
    choose_cut,
    difference,
    difference_bound,
    splittable,
    visible_cuts,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tacit.accounting.numeric._mgf import Complexes, LossLattice, Reals


SMALL = math.log(1e-9)  # wanted size of aliases and truncation, relative to delta
_MAX_NODES = 1 << 16
_CACHED_SUMS = 16  # sums of a line
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
            if len(self.seen) >= _CACHED_SUMS:
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
        totals = []
        for terms in (self.terms, self.terms1):
            sums = np.einsum("rs,s->r", terms[: rows * block].reshape(rows, block), fine)
            total = (sums * coarse[:rows]).real.sum()
            rest = terms[rows * block :]
            if len(rest):
                total += ((rest * fine[: len(rest)]).sum() * coarse[rows]).real
            totals.append(float(total))
        return totals[0], totals[1]

    def aliases(self, e: float) -> float:
        """Return an upper value of the sum of all aliases, as delta."""
        c, c2, period = self.choice[:3]
        remaining = 1 / math.expm1(min(700.0, c * period))
        gap = (c2 - c) * period
        right = math.exp(min(700.0, self.log_norm2 + peak(c2) - c2 * e - gap)) / -math.expm1(-gap)
        return (remaining + right) * (1 + 1e-9)

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
            cached = value > 0 and derivative > 0
            above = self.log_norm - c * e + math.log(value) - log_delta if cached else -math.inf
            low, high = (e, high) if above > 0 else (low, e)
            slope = derivative / value if cached else c
            step = max(-4 / c, min(4 / c, above / slope))
            if not low < e + step < high and abs(step) * slope > 1e-7:
                step = (low + high) / 2 - e
            e += step
            if abs(step) * slope <= 1e-7:  # the next step would be its square
                break
        return e, slope


def _fft_length(n: int) -> int:
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
    half, sums = _MAX_NODES, 0  # nodes up to half a period of the lattice, and of a whole one
    if lattice is not None:
        sums = _fft_length(max(2, math.ceil(choice.period / lattice.step)))
        choice = choice._replace(period=sums * lattice.step)
        half = sums // 2
    h = 2 * math.pi / choice.period
    beyond = _beyond(loss_sum, choice.c, h, half, cut)
    nodes, beyond_nodes = _enough_nodes(beyond, choice, h)
    t = h * np.arange(nodes + 1)
    kernel = _kernel(choice.c, choice.period, nodes, lattice, lattice is not None and 2 * nodes == sums)
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
    max_nodes = min(beyond.half, _MAX_NODES if beyond.lattice is None else _MAX_NODES // 4)
    target = choice.log_ratio + SMALL
    nodes = max(1, min(max_nodes, int(3.5 * math.sqrt(-target) / (choice.width * h))))
    low, power, tries = 0, 1.6, 0
    while not (bound := beyond.log_bound(nodes)) <= target:
        if nodes == max_nodes:
            raise NotConverged
        more = min(1.1 * (target / bound) ** (1 / power), 2.0) if bound < 0.7 * target and not low else 2.0
        low, nodes = nodes, min(max(nodes + 1, int(more * nodes)), max_nodes)
    aim = target - 2 if nodes < 256 else target  # a bit less than wanted, if it costs few nodes
    while nodes - low > 1 + nodes // 10 and (nodes >= 256 or bound < 1.1 * aim):
        bound_at, tries = int(1.02 * nodes * (aim / max(bound, -1e300)) ** (1 / power)) + 1, tries + 1
        if not low < bound_at < nodes or tries > 3:
            bound_at = (low + nodes) // 2
        nodes_found = beyond.log_bound(bound_at)
        if nodes_found < -1 and bound < nodes_found:
            power = min(max(math.log(bound / nodes_found) / math.log(nodes / bound_at), 0.3), 3.0)
        if nodes_found <= target:
            nodes, bound = bound_at, nodes_found
        else:
            low = bound_at
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
    upper = difference_bound(bulk + parts.bulk_error, rest + parts.rest_error, often)
    rough = np.maximum(upper - size, 0.0) + 32 * U * (1 + often) * upper
    return _Product(
        others.phi * inner,
        others.heights * np.abs(inner),
        others.bound * upper,
        rough * others.bound + np.abs(inner) * others.error,
        others.log_norm + often * parts.log_norm,
        others.norm_error + often * (parts.norm_error + 4 * U * abs(parts.log_norm)),
    )


_T = TypeVar("_T")

_FINE, _COARSE = 0.05, 8  # steps of log c
_AROUND = np.exp(_FINE * np.arange(-36, 25))
_STEPS = np.exp(_FINE * _COARSE * np.arange(-13, 24))
_NEAR = 0.03  # epsilons this close share a line, so that the readings of delta and epsilon agree
_WIDE, _APART = 0.15, 2  # the same where one line serves more epsilons: also steps of log c
_SHOWN = 3e-6  # relative error of delta that needs no better line
_CACHED_LINES = 8
_STEEP = 14.0  # c epsilon: with more, errors of exp(c epsilon) hide delta(-epsilon)
_DEAR = 1.3  # a period this much longer costs as much as a tilt that needs another rule


class _RealAxis(NamedTuple):
    """Real points c with approximate log M, its derivatives, and log of Chernoff's bound on delta(0)."""

    c: Reals
    log_m: Reals
    mean: Reals
    bend: Reals
    hat: Reals


class _Steering(NamedTuple):
    """What chooses the lines of a sum; it is approximate, and fills up while the sum is read."""

    scale: float
    coarse: _RealAxis
    fine: dict[int, _RealAxis]
    saddles: dict[int, tuple[Reals, Reals]]
    choices: dict[tuple[int, int, int], LineChoice]


class FourierInversion:
    """Bounds on delta and epsilon of one loss sum; each evaluated line serves all epsilons nearby."""

    def __init__(
        self,
        loss_sum: LossSum,
        *,
        whole: bool = True,
        wide: bool = False,
        scale: float | None = None,
        most: float = math.inf,
        like: FourierInversion | None = None,
    ) -> None:
        self._loss_sum, self._whole = (
            loss_sum,
            whole,
        )  # not whole: the part that a cut took out, which is not cut again
        self._wide = wide  # one line serves epsilons further apart
        self._most = most  # tilts beyond it are dear
        # A sum may be so similar to another that its lines serve this one too; any line is valid.
        self.steering: _Steering = self._steered(scale) if like is None else like.steering
        self._scale, self._coarse, self._fine, self._saddles, self._choices = self.steering
        self._keys: dict[float, tuple[int, int, int]] = {}
        self._rough: dict[tuple[int, int, int], Spectrum] = {}
        self._spectra: dict[tuple[int, int, int], Spectrum] = {}

    def _steered(self, scale: float | None) -> _Steering:
        if scale is None:
            scale = spread(self._loss_sum)
        if not 1e-140 < scale < 1e140:
            raise NotConverged
        return _Steering(scale, self._grid(_STEPS / scale), {}, {}, {})

    def delta(self, e: float) -> Bracket:
        """Return bounds on delta(e), e >= 0."""
        return self._spectrum(e).delta(e)

    def mirrored(self, e: float) -> float:
        """Return an upper value of delta(e) in the other direction, e >= 0, of a pair of probabilities.

        By H_y(Q, P) = 1 - y + y H_(1/y)(P, Q) it needs only delta(-e), on the line that served e. Where y - 1
        is far larger than delta, it is a poor value, but it costs next to nothing.
        """
        low, high = self.below(e), math.exp(min(e, 700.0))
        return max(0.0, high * low - math.expm1(min(e, 700.0))) + 16 * U * (high * low + high)

    def below(self, e: float) -> float:
        """Return an upper value of delta(-e), by the line that served e; refused if none did."""
        line = self.served(e)
        if line is None or line.choice.c * e > _STEEP:
            raise NotConverged
        return line.delta(-e).upper

    def served(self, e: float) -> Spectrum | None:
        """Return the plain line, without a cut or a lattice, that served e; None if there is none."""
        line = self._spectra.get(self._key(e))
        return None if line is None or line.cut is not None or line.lattice is not None else line

    def approximate(self, e: float) -> tuple[float, float]:
        """Return about delta(e) and -d delta / d e."""
        line = self._spectrum(e)
        value, _, slope = line.sums(e)
        scale = math.exp(min(line.log_norm - line.choice.c * e, 700.0))
        return scale * value, scale * slope

    def epsilon(self, delta: float) -> Bracket:
        """Return bounds on the smallest epsilon >= 0 with delta(epsilon) <= delta, proved at both ends."""
        e, slope = self.root(delta)
        if e <= 1e-9 * self._scale and self.delta(0.0).upper <= delta:
            return Bracket(0.0, 0.0, self.delta(0.0).method)
        return settle(self.delta, e, delta, slope)

    def root(self, delta: float) -> tuple[float, float]:
        """Return approximately the epsilon of a delta, and -d log delta / d epsilon there."""
        log_delta = math.log(delta)
        e, slope, low, high = self._estimate(log_delta), 0.0, 0.0, math.inf
        for _ in range(40):
            try:
                line = self._line(self._key(e))
            except LossUnseen:  # near the largest loss, or beyond it
                if high - low <= 1e-6 * e:
                    raise
                high, e = e, (low + e) / 2
                continue
            bracket = line.log_delta(e)
            if bracket < log_delta + 3 and line.hidden(e, log_delta):
                line = self._spectrum(e)
                bracket = line.log_delta(e)
            if bracket > log_delta:
                low = e
            else:
                high = e
            bracket_there, slope = line.root(e, log_delta, low, high)
            if low < bracket_there < high and self._key(bracket_there) == self._key(e):
                e = bracket_there
                break
            if not low < bracket_there < high:
                bracket_there = (low + high) / 2 if high < math.inf else 2 * e + self._scale
            e = bracket_there
            if high - low <= 1e-12 * high:
                break
        return e, slope

    def _grid(self, c: Reals) -> _RealAxis:
        log_m, mean, bend = steer(self._loss_sum, c)
        good = np.isfinite(log_m)
        if not good.all():
            c, log_m, mean, bend = c[good], log_m[good], mean[good], bend[good]
        if len(c) < 3:
            raise NotConverged
        return _RealAxis(c, log_m, mean, bend, log_m + c * np.log(c / (1 + c)) - np.log1p(c))

    def _near(self, at: int) -> _RealAxis:
        if at not in self._fine:
            self._fine[at] = self._grid(self._coarse.c[at] * (_AROUND[::2] if self._wide else _AROUND))
        return self._fine[at]

    def _saddle(self, at: int) -> tuple[Reals, Reals]:
        """Return epsilons and approximate log delta there, by the saddle point; both are monotone."""
        if at not in self._saddles:
            c, log_m, mean, bend, _ = self._near(at)
            e = mean - 1 / c - 1 / (c + 1)
            width = np.log(2 * math.pi * (bend + c**-2 + (c + 1) ** -2)) / 2
            logs = log_m - c * e - np.log(c * (c + 1)) - width
            self._saddles[at] = np.maximum.accumulate(e), np.minimum.accumulate(logs)
        return self._saddles[at]

    def _estimate(self, log_delta: float) -> float:
        """Return approximately the epsilon of a delta."""
        e, logs = self._saddle(int(np.argmin((self._coarse.hat - log_delta) / self._coarse.c)))
        return max(0.0, float(np.interp(-log_delta, -logs, e)))

    def _key(self, e: float) -> tuple[int, int, int]:
        """Return a key that epsilons within 3 % and with the same best c by Chernoff's bound share."""
        if e not in self._keys:
            if len(self._keys) >= _CACHED_LINES:
                self._keys.clear()
            self._keys[e] = self._new_key(e)
        return self._keys[e]

    def _new_key(self, e: float) -> tuple[int, int, int]:
        coarse = int((self._coarse.hat - self._coarse.c * e).argmin())
        nearest = self._near(coarse)
        best, index = int((nearest.hat - nearest.c * e).argmin()), math.log1p(e / self._scale)
        if self._wide:
            return (
                coarse,
                min(best // _APART * _APART + _APART // 2, len(nearest.c) - 1),
                round(index / _WIDE),
            )
        return coarse, best, round(index / _NEAR)

    def _middle(self, key: tuple[int, int, int]) -> float:
        """Return a representative epsilon of a key, for which its c is about the best."""
        coarse, best, index = key
        nearest, distance, width = (
            self._near(coarse),
            _APART if self._wide else 1,
            _WIDE if self._wide else _NEAR,
        )
        ends = max(0, best - distance), min(len(nearest.c) - 1, best + distance)
        low, high = (float(nearest.mean[i]) - math.log1p(1 / float(nearest.c[i])) for i in ends)
        return max(0.0, min(max(self._scale * math.expm1(index * width), low), high))

    def _line(self, key: tuple[int, int, int]) -> Spectrum:
        """Return a line for a key, chosen by an estimate of delta: good enough for the search."""
        if key in self._spectra:
            return self._spectra[key]
        if key not in self._rough:
            if key not in self._choices:
                nearest, e = self._near(key[0]), self._middle(key)
                bound = float(np.min(nearest.hat - nearest.c * e)) - 1.0
                choice = self._choose_line(nearest, e, min(bound, float(np.interp(e, *self._saddle(key[0])))))
                self._keep(self._choices, key, choice)
            self._keep(self._rough, key, evaluate(self._loss_sum, self._choices[key]))
        return self._rough[key]

    def _spectrum(self, e: float) -> Spectrum:
        """Return the line for an epsilon; choose another if delta is far smaller than estimated."""
        key = self._key(e)
        if key not in self._spectra:
            line, nearest, middle = self._line(key), self._near(key[0]), self._middle(key)
            for _ in range(3):
                value, error, _ = line.sums(middle)
                spectrum = line.log_norm - line.choice.c * middle + math.log(max(value, error, 1e-300))
                hidden = error > _SHOWN * value
                if not hidden and spectrum > line.choice.log_delta - 6:
                    break
                choice, cut = self._choose_line(nearest, middle, spectrum - 3), None
                if hidden and self._loss_sum.lattice is None and line.cut is None:
                    cut = choose_cut(self._loss_sum.factors, middle, choice.c, choice.period, spectrum)
                if line.cut is not None or (hidden and cut is None and spectrum > line.choice.log_delta - 6):
                    break
                try:
                    line = evaluate(self._loss_sum, choice, cut)
                except NotConverged:
                    break
            self._keep(self._spectra, key, self._beside(line, nearest, middle))
        return self._spectra[key]

    def _beside(self, line: Spectrum, nearest: _RealAxis, e: float) -> Spectrum:
        """If no line resolves delta, return one that does, with the common losses on a line of their own."""
        value, error, _ = line.sums(e)
        best = error / max(value, 1e-300)
        if best <= _SHOWN or self._loss_sum.lattice is not None or not self._whole:
            return line
        log_delta = line.log_norm - line.choice.c * e + math.log(max(value, error, 1e-300))
        try:
            choice = self._choose_line(nearest, e, log_delta - 3)
        except NotConverged:
            return line
        for cut in visible_cuts(self._loss_sum.factors, e, choice.c, choice.period):
            factors = list(self._loss_sum.factors)
            law, times = factors[cut.which]
            factors[cut.which] = splittable(law).common(cut.level), times
            try:
                other = evaluate(
                    self._loss_sum, choice, cut, FourierInversion(LossSum(tuple(factors)), whole=False)
                )
                value, error, _ = other.sums(e)
            except NotConverged:
                continue
            if error < best * value:
                line, best = other, error / value
            if best <= _SHOWN:
                break
        return line

    @staticmethod
    def _keep(store: dict[tuple[int, int, int], _T], key: tuple[int, int, int], line: _T) -> None:
        if len(store) >= _CACHED_LINES:
            store.pop(next(iter(store)))
        store[key] = line

    def _choose_line(self, nearest: _RealAxis, e: float, log_delta: float) -> LineChoice:
        """Choose the line with a short period on which delta is not hidden by the terms of the sum."""
        c, log_m, _, bend, hat = nearest
        need = -log_delta - SMALL
        remaining = need / c
        gaps = c[None, :] - c[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            right = np.where(gaps > 0, (hat - c * e + need)[None, :] / gaps, np.inf)
        dear = np.where(c <= self._most, 1.0, _DEAR) if self._most < c[-1] else 1.0
        partner = (right * dear).argmin(axis=1)
        right = right[np.arange(len(c)), partner]
        ratio = np.minimum(log_delta + c * e - log_m, 0.0)
        price = np.maximum(remaining, right) * np.sqrt(20 - ratio)
        cheapest = -14.0 if self._whole else 0.0  # the smooth cut has fewer certified digits
        price[ratio < min(cheapest, float(ratio.max()) - 3)] = np.inf
        at = int(np.argmin(price))
        if not math.isfinite(price[at]):
            raise LossUnseen
        width = math.sqrt(float(bend[at])) + 1e-9 * self._scale
        period = float(max(remaining[at], right[at]))
        return LineChoice(float(c[at]), float(c[partner[at]]), period, float(ratio[at]), width, log_delta)
