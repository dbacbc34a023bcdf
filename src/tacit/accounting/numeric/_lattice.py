"""The lattice accountant of numeric accounting: sums of laws on one lattice.

Few points are composed by plain convolution, many by Fourier inversion. Whole-number noise is exact; Laplace
noise lies between two lattice laws. The proof is docs/proofs/accounting.md, section 5.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tacit.accounting._laws import (
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    Parts,
)
from tacit.accounting.numeric._atoms import Atoms, LatticeAtoms
from tacit.accounting.numeric._bracket import Bracket, NotConverged, U, as_float
from tacit.accounting.numeric._convolution import ComposedLosses, TopLosses, convolved
from tacit.accounting.numeric._fourier import FourierInversion
from tacit.accounting.numeric._lattice_laws import Pmf, exact_pmf, is_exact, lattice_pmf, natural_lattice
from tacit.accounting.numeric._loss_sum import LossLattice, LossSum
from tacit.accounting.numeric._mgf import DiscreteGaussianMgf, DiscreteLaplaceMgf, Factor, Reals

_DIRECT = 4200  # most points of a composition by convolution
_LARGE = 1 << 15  # most points of a composition by Fourier inversion
_FINEST = 1 << 20  # a common lattice that is this much finer than that of a law has too many nodes
_CELLS = (1024, 512, 384, 256)  # across a density: as many as convolution allows, else the last


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
    least = min(smooth)
    for cells in _CELLS:
        fine = base / (2 * math.ceil(cells * base / least / 2))
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
