"""The lattice accountant of numeric accounting: laws on a lattice, and their sums.

**Laws on a lattice** are exact for whole-number noise, and bounds for Laplace noise. An exact lattice law is
a positive array of P-masses on ``offset + i * step``. A loss with P-density kappa exp(l/2) on [-e, e] (so its
Q-density is kappa exp(-l/2)) lies between two lattice laws with a step g that divides e. The upper law splits
each cell to its edges and keeps its P- and Q-mass (connect the dots): it has 4 kappa exp(l/2) tanh(g/4) on
inner points and half of that on the ends. The lower law merges cells of width 2g, whose ratio of masses is
exp(centre): it has 4 kappa exp(l/2) sinh(g/2) on every other point. The proof is docs/proofs/accounting.md,
section 5.

**Sums.** Few points are composed by plain convolution, many by Fourier inversion. Convolution adds only
positive numbers and so keeps the relative accuracy of the smallest mass. Where only the largest losses count,
only they are convolved. The proof is docs/proofs/accounting.md, section 5.

**Bounded losses without a common lattice** are snapped to one, by finite pairs above them and laws below
them. All laws share a step, and each has an offset of its own, so that its largest loss lies on its lattice.
Above a law, a finite pair connects the dots of its curve. Below it, a coin or Laplace noise of slightly
smaller epsilon, whose ends lie on a lattice of the same step, is merged into few outcomes. Both sums are
composed once by plain convolution and serve every epsilon and delta (docs/proofs/accounting.md, section 5).
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tacit.accounting._laws import (
    BoundedRangeLoss,
    CategoricalResponseLoss,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    LaplaceLoss,
    LossLaw,
    Parts,
    PureLoss,
    RandomizedResponseLoss,
)
from tacit.accounting.numeric._arithmetic import Bracket, NotConverged, U, as_float, settle
from tacit.accounting.numeric._atoms import Atoms, LatticeAtoms, connect_dots
from tacit.accounting.numeric._curve import closed_curve
from tacit.accounting.numeric._fourier import FourierInversion
from tacit.accounting.numeric._mgf import (
    DiscreteGaussianMgf,
    DiscreteLaplaceMgf,
    Factor,
    LossLattice,
    LossSum,
    Reals,
)
from tacit.accounting.numeric._quadrature import dot
from tacit.accounting.numeric._sum_facts import exact_largest_loss
from tacit.bisection import first_integer

if TYPE_CHECKING:
    from numpy.typing import NDArray


_MAX_POINTS = 1 << 15  # points of one law
_TOPS = (64, 512)  # how many of the largest losses are tried first
_DIRECT = 4200  # most points of a composition by convolution
_LARGE = 1 << 15  # most points of a composition by Fourier inversion
_FINEST = 1 << 20  # a common lattice that is this much finer than that of a law has too many nodes
_CELLS = (1024, 512, 384, 256)  # across a density: as many as convolution allows, else the last
_FEW, _MANY = 4200, 16384  # points of the sum of a dozen laws, and of more
_DOZEN = 12
_MAX_LAWS = 256  # so that splitting masses to the lattice moves epsilon by at most about 1e-5 of itself
_AHEAD = 1 + Fraction(1, 2**47)  # beyond the slip of a curve, so that its value at the top is 0


class Pmf(NamedTuple):
    """P-masses on ``offset + i * step``, each with a relative error of at most ``slack``."""

    offset: Fraction
    step: Fraction
    masses: Reals
    slack: float


def on_lattice(law: LossLaw) -> bool:
    """Return whether this accountant covers the law."""
    return isinstance(
        law,
        RandomizedResponseLoss
        | PureLoss
        | CategoricalResponseLoss
        | DiscreteLaplaceLoss
        | LaplaceLoss
        | BoundedRangeLoss
        | DiscreteGaussianLoss,
    )


def is_exact(law: LossLaw) -> bool:
    return not isinstance(law, LaplaceLoss | BoundedRangeLoss)


def natural_lattice(law: LossLaw) -> tuple[Fraction, Fraction, Fraction]:
    """Return offset, step and span of the law's own lattice; for a density, its two ends."""
    match law:
        case RandomizedResponseLoss(e) | PureLoss(e) | BoundedRangeLoss(e):
            return -e, 2 * e, 2 * e
        case CategoricalResponseLoss(e):
            return -e, e, 2 * e
        case LaplaceLoss(scale, s):
            return -s / scale, 2 * s / scale, 2 * s / scale
        case DiscreteLaplaceLoss(scale, s):
            return -s / scale, 2 / scale, 2 * s / scale
        case DiscreteGaussianLoss(sigma, s):
            half = _window(sigma)
            return s * (s - 2 * half) / (2 * sigma**2), s / sigma**2, 2 * half * s / sigma**2
    raise NotConverged


def _window(sigma: Fraction) -> int:
    """Return how many points on each side hold all but exp(-722) of a discrete Gaussian."""
    return math.ceil(38 * sigma) + 2


def lattice_pmf(law: LossLaw, step: Fraction, *, merge: bool) -> Pmf:
    if is_exact(law):
        return exact_pmf(law)
    offset, _, span = natural_lattice(law)
    e, cells = as_float(-offset), int(span / step)
    if cells > _MAX_POINTS:
        raise NotConverged
    g = as_float(step)
    losses = g * (np.arange(cells + 1) - cells / 2)
    if isinstance(law, LaplaceLoss):
        shape, ends = 0.25 * np.exp((losses - e) / 2), (0.5 * math.exp(-e), 0.5)
    else:  # kappa = 1 / (4 sinh(e/2)), without its large exponential
        shape, ends = 0.5 * np.exp((losses - e) / 2) / -math.expm1(-e), (0.0, 0.0)
    if merge:
        masses = np.zeros(cells + 1)
        masses[1::2] = 4 * math.sinh(g / 2) * shape[1::2]
    else:
        masses = 4 * math.tanh(g / 4) * shape
        masses[[0, -1]] /= 2
    masses[[0, -1]] += ends
    return Pmf(offset, step, masses, 8 * U * (4 + e))


def exact_pmf(law: LossLaw) -> Pmf:
    offset, step, span = natural_lattice(law)
    if span / step > _MAX_POINTS:
        raise NotConverged
    match law:
        case RandomizedResponseLoss() | PureLoss():
            e = as_float(step / 2)
            high = 1 / (1 + math.exp(-e))
            return Pmf(offset, step, np.array([math.exp(-e) * high, high]), 8 * U * (1 + e))
        case CategoricalResponseLoss(_, k):
            e = as_float(step)
            high = 1 / (1 + (k - 1) * math.exp(-e))
            low = math.exp(-e) * high
            return Pmf(offset, step, np.array([low, (k - 2) * low, high]), 16 * U * (1 + e))
        case DiscreteLaplaceLoss(scale, s):
            moves = np.arange(int(s), -1, -1.0)  # x = s .. 0 has loss (s - 2x) / scale
            rate = as_float(1 / scale)
            masses = np.exp(-rate * moves) * (-math.expm1(-rate))
            masses[[0, -1]] = math.exp(-rate * float(s)), 1.0
            return Pmf(offset, step, masses / (1 + math.exp(-rate)), 8 * U * (4 + as_float(s / scale)))
        case DiscreteGaussianLoss(sigma, _):
            half = _window(sigma)
            squares = (np.arange(-half, half + 1) / as_float(sigma)) ** 2 / 2
            masses = np.exp(-squares)
            return Pmf(offset, step, masses / masses.sum(), 8 * U * (800 + len(masses)))
    raise NotConverged


def discrete_gaussian(sigma: Fraction, s: Fraction) -> Factor:
    """Return whole-number Gaussian noise as a factor: in closed form from sigma = 3, else by its atoms."""
    if sigma >= 3:
        return DiscreteGaussianMgf(as_float(sigma), as_float(s))
    pmf = exact_pmf(DiscreteGaussianLoss(sigma, s))
    support = np.flatnonzero(pmf.masses)
    return Atoms(as_float(pmf.offset) + as_float(pmf.step) * support, pmf.masses[support], pmf.slack)


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
        high = first_integer(
            lambda i: self.delta(float(self.losses[i])).upper <= delta, -1, len(self.losses) - 1
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

    def _first(self, max_points: int) -> ComposedLosses:
        if max_points not in self._found:
            self._found[max_points] = convolved(
                self._laws, self._step, max_points if max_points < self._points else None
            )
        return self._found[max_points]

    def delta(self, e: float) -> Bracket:
        needed = (self._top - e) / self._g + 2
        return self._first(next((most for most in _TOPS if most > needed), self._points)).delta(e)

    def epsilon(self, delta: float) -> Bracket:
        for max_points in (*(max_points for max_points in _TOPS if max_points < self._points), self._points):
            some = self._first(max_points)
            if max_points == self._points or some.delta(float(some.losses[2])).lower > delta:
                return settle(self.delta, max(0.0, some.root(delta)), delta)
        raise NotConverged


def convolved(laws: list[tuple[Pmf, int]], step: Fraction, max_points: int | None = None) -> ComposedLosses:
    """Convolve laws whose own steps are multiples of the step; with ``max_points``, only the largest.

    Then that many of the largest losses are convolved. Counted from the largest loss, a place of the sum
    needs no place of a law beyond it.
    """
    total, offset, slack = np.ones(1), Fraction(0), 0.0
    for pmf, times in laws:
        stride = int(pmf.step / step)
        spread = np.zeros((len(pmf.masses) - 1) * stride + 1)
        spread[::stride] = pmf.masses
        powered, error = _power(
            spread if max_points is None else spread[::-1][:max_points], times, pmf.slack, max_points
        )
        slack += error + (min(len(powered), len(total)) + 2) * U
        total = np.convolve(total, powered)[:max_points]
        offset += times * (
            pmf.offset if max_points is None else pmf.offset + (len(pmf.masses) - 1) * pmf.step
        )
    numbers = np.flatnonzero(total)
    if max_points is not None:
        numbers = numbers[::-1]
        return ComposedLosses(as_float(offset) - as_float(step) * numbers, total[numbers], slack)
    losses = as_float(offset) + as_float(step) * numbers
    return ComposedLosses(losses, total[numbers], slack, (offset, step, numbers))


def _power(masses: Reals, times: int, slack: float, max_points: int | None = None) -> tuple[Reals, float]:
    """Return the ``times``-fold convolution and the relative error of its entries."""
    result, error = np.ones(1), 0.0
    while times:
        if times & 1:
            error += slack + (min(len(result), len(masses)) + 2) * U
            result = np.convolve(result, masses)[:max_points]
        times >>= 1
        if times:
            masses, slack = np.convolve(masses, masses)[:max_points], 2 * slack + (len(masses) + 2) * U
    return result, error


class LatticeAccountant(NamedTuple):
    """A composition between two lattice laws; ``lower`` is ``upper`` if it lies exactly on the lattice."""

    upper: ComposedLosses | TopLosses | FourierInversion
    lower: ComposedLosses | TopLosses | FourierInversion

    def delta(self, e: float) -> Bracket:
        upper = self.upper.delta(e)
        return (
            upper if self.lower is self.upper else Bracket(self.lower.delta(e).lower, upper.upper, "lattice")
        )

    def losses(self) -> Reals | None:
        """Return the losses if they are listed exactly, else None."""
        return (
            self.upper.losses if self.lower is self.upper and isinstance(self.upper, ComposedLosses) else None
        )

    def tail(self, t: float) -> float | None:
        """Return an upper value of P(L > t) if the losses are listed exactly, else None."""
        return (
            self.upper.tail(t)
            if self.lower is self.upper and isinstance(self.upper, ComposedLosses)
            else None
        )

    def epsilon(self, delta: float) -> Bracket:
        upper = self.upper.epsilon(delta)
        return (
            upper
            if self.lower is self.upper
            else Bracket(self.lower.epsilon(delta).lower, upper.upper, "lattice")
        )


@lru_cache(maxsize=64)
def lattice_accountant(parts: Parts) -> LatticeAccountant:
    """Compose laws that are `on_lattice`; raise `NotConverged` if their common lattice is too fine."""
    lattices = [natural_lattice(law) for law, _ in parts]
    steps = [step for _, step, _ in lattices]
    smooth = [step for (law, _), step in zip(parts, steps, strict=True) if not is_exact(law)]
    base = steps[0]
    for step in steps[1:]:
        base = Fraction(math.gcd(base.numerator * step.denominator, step.numerator * base.denominator),
                        base.denominator * step.denominator)  # fmt: skip
    if max(steps) > _FINEST * base:
        raise NotConverged
    span = sum((times * one for (_, times), (_, _, one) in zip(parts, lattices, strict=True)), Fraction(0))
    if not smooth:
        total = (_closed(parts, base) if span / base > _DIRECT else None) or _compose(
            [(exact_pmf(law), times) for law, times in parts], base, span
        )
        return LatticeAccountant(total, total)
    min_step = min(smooth)
    for cells in _CELLS:
        fine = base / (2 * math.ceil(cells * base / min_step / 2))
        if cells != _CELLS[-1] and span / fine > _DIRECT:
            continue
        try:
            above, below = (
                [(lattice_pmf(law, fine, merge=merge), times) for law, times in parts]
                for merge in (False, True)
            )
            if span / fine < _DIRECT:
                return LatticeAccountant(TopLosses(above, fine), TopLosses(below, fine))
            upper = _compose(above, fine, span)
            return LatticeAccountant(upper, _compose(below, fine, span, like=upper))
        except NotConverged:
            continue
    raise NotConverged


def two_point_accountant(law: Atoms, times: int) -> LatticeAccountant:
    """Compose one law of two losses with itself; the two losses span a lattice."""
    low, high = (Fraction(float(loss)) for loss in law.losses)
    total = _compose([(Pmf(low, high - low, law.masses, law.slack), times)], high - low, times * (high - low))
    return LatticeAccountant(total, total)


def listed_accountant(laws: list[tuple[Atoms, int]]) -> LatticeAccountant:
    """List every combination of the losses of few finite laws."""
    losses, masses, slack = np.zeros(1), np.ones(1), 0.0
    for law, times in laws:
        for _ in range(times):
            if len(losses) * len(law.losses) > _LARGE:
                raise NotConverged
            losses = np.add.outer(losses, law.losses).ravel()
            masses = np.multiply.outer(masses, law.masses).ravel()
            slack += law.slack + 4 * U
    order = np.argsort(losses)
    total = ComposedLosses(losses[order], masses[order], slack)
    return LatticeAccountant(total, total)


def _closed(parts: Parts, base: Fraction) -> FourierInversion | None:
    """Return large lattice noise in closed form, if its own lattice is the common lattice."""
    factors: list[tuple[Factor, int]] = []
    for law, times in parts:
        match law:
            case DiscreteLaplaceLoss(scale, s) if base == 2 / scale and s > 64:
                factors.append((DiscreteLaplaceMgf(as_float(1 / scale), as_float(s), periodic=True), times))
            case DiscreteGaussianLoss(sigma, s) if base == s / sigma**2 and sigma >= 3:
                factors.append((DiscreteGaussianMgf(as_float(sigma), as_float(s), periodic=True), times))
            case _:
                return None
    offset = sum((times * natural_lattice(law)[0] for law, times in parts), Fraction(0))
    return FourierInversion(LossSum(tuple(factors), LossLattice(as_float(offset % base), as_float(base))))


def _compose(
    laws: list[tuple[Pmf, int]],
    step: Fraction,
    span: Fraction,
    like: ComposedLosses | FourierInversion | None = None,
) -> ComposedLosses | FourierInversion:
    """Convolve few points; use Fourier inversion for many, on the lines of a similar sum if there is one."""
    points = span / step + 1
    if points > _DIRECT:
        if sum(len(pmf.masses) for pmf, _ in laws) > _LARGE:
            raise NotConverged
        offset = sum((times * pmf.offset for pmf, times in laws), Fraction(0))
        g = as_float(step)
        factors = tuple(
            (LatticeAtoms(as_float(pmf.offset), g, int(pmf.step / step), pmf.masses, pmf.slack), times)
            for pmf, times in laws
        )
        return FourierInversion(
            LossSum(factors, LossLattice(as_float(offset % step), g)),
            like=like if isinstance(like, FourierInversion) else None,
        )
    return convolved(laws, step)


def composed(laws: list[tuple[Pmf, int]], step: Fraction) -> ComposedLosses | FourierInversion:
    """Compose laws whose own steps are multiples of the step."""
    span = sum((times * (len(pmf.masses) - 1) * pmf.step for pmf, times in laws), Fraction(0))
    return _compose(laws, step, span)


def can_snap(parts: Parts) -> bool:
    """Return whether all laws are coins or whole-number Laplace noise, and there are not too many."""
    return sum(times for _, times in parts) <= _MAX_LAWS and all(
        isinstance(law, RandomizedResponseLoss | PureLoss | CategoricalResponseLoss | DiscreteLaplaceLoss)
        for law, _ in parts
    )


def are_few(parts: Parts) -> bool:
    """Return whether there are so few laws that densities may be snapped too."""
    return sum(times for _, times in parts) <= _DOZEN


@lru_cache(maxsize=64)
def snapped_accountant(parts: Parts) -> LatticeAccountant:
    """Compose bounded laws on a lattice that is not their own."""
    number = sum(times for _, times in parts)
    tops = sorted((_largest(law), times) for law, times in parts)
    span = 2 * sum((times * top for top, times in tops), Fraction(0))
    points = _FEW if number <= _DOZEN else _MANY
    # Epsilons are often (nearly) equal: a step that divides the middle one keeps both of its ends in place.
    middle = tops[len(tops) // 2][0]
    cells = max(1, math.floor(2 * middle / span * (points - 2 * number - 1)))
    widest, narrow = (
        Fraction(as_float(2 * middle * _AHEAD**2 / cells)),
        Fraction(as_float(2 * middle / cells / _AHEAD)),
    )
    if not 1e-280 < narrow <= widest < 1 or span / narrow > 2 * points:
        raise NotConverged
    above = [(_above(law, widest), times) for law, times in parts]
    below = [(_below(law, narrow), times) for law, times in parts]
    return LatticeAccountant(convolved(above, widest), convolved(below, narrow))


def _largest(law: LossLaw) -> Fraction:
    largest = exact_largest_loss(((law, 1),))
    if largest is None:
        raise NotConverged
    return largest


def _above(law: LossLaw, step: Fraction) -> Pmf:
    """Return a pair on a lattice that dominates the law; its largest loss is (nearly) that of the law."""
    top = _largest(law) * _AHEAD
    cells = math.ceil(2 * top / step)
    offset = top - cells * step
    first_index, g = as_float(offset), as_float(step)
    pair = connect_dots(closed_curve(law), first_index + g * np.arange(cells + 1))
    if pair.infinite:
        raise NotConverged
    masses = np.zeros(cells + 1)
    masses[np.round((pair.losses - first_index) / g).astype(int)] = pair.masses
    return Pmf(offset, step, masses, 4 * U)


def _below(law: LossLaw, step: Fraction) -> Pmf:
    """Return masses on a lattice whose delta is at most that of the law.

    Whole-number Laplace noise plus independent noise is Laplace noise, so it reveals more. Of Laplace noise
    with a smaller epsilon, cells of two steps are merged into one outcome, whose loss is their centre; if one
    cell is left over at the top, its loss counts as its lower end.
    """
    cells = math.floor(2 * _largest(law) / step)
    if isinstance(law, CategoricalResponseLoss):
        cells -= cells % 2  # so that 0 is on the lattice
    end = cells * step / 2
    e, g = as_float(end), as_float(step)
    masses: Reals = np.zeros(cells + 1)
    if cells == 0:
        masses[0] = 1.0
    elif isinstance(law, LaplaceLoss) or (isinstance(law, DiscreteLaplaceLoss) and law.sensitivity > 1):
        losses = g * (np.arange(cells + 1) - cells / 2)
        integer = cells - cells % 2
        masses[1:integer:2] = math.sinh(g / 2) * np.exp((losses[1:integer:2] - e) / 2)
        if cells % 2:
            masses[-2] -= math.expm1(-g / 2) / 2
        masses[0] += math.exp(-e) / 2
        masses[-1] += 0.5
    elif isinstance(law, BoundedRangeLoss):  # a family: its lower value comes from a member
        masses[0] = 1.0
    elif isinstance(law, CategoricalResponseLoss):
        masses[-1] = 1 / (1 + (law.categories - 1) * math.exp(-e))
        masses[cells // 2] = (law.categories - 2) * math.exp(-e) * masses[-1]
        masses[0] = math.exp(-e) * masses[-1]
    else:
        masses[-1] = 1 / (1 + math.exp(-e))
        masses[0] = math.exp(-e) * masses[-1]
    return Pmf(-end, step, masses, 8 * U * (4 + e))
