"""Bounded losses without a common lattice, snapped to one: by finite pairs above them and laws below them.

All laws share a step, and each has an offset of its own, so that its largest loss lies on its lattice. Above
a law, a finite pair connects the dots of its curve. Below it, a coin or Laplace noise of slightly smaller
epsilon, whose ends lie on a lattice of the same step, is merged into few outcomes. Both sums are composed
once by plain convolution and serve every epsilon and delta (docs/proofs/accounting.md, section 5).
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from tacit.accounting._laws import (
    BoundedRangeLoss,
    CategoricalResponseLoss,
    DiscreteLaplaceLoss,
    LaplaceLoss,
    LossLaw,
    Parts,
    PureLoss,
    RandomizedResponseLoss,
)
from tacit.accounting.numeric._bracket import NotConverged, U, as_float
from tacit.accounting.numeric._convolution import convolved
from tacit.accounting.numeric._curve import closed_curve
from tacit.accounting.numeric._finite_pair import connect_dots
from tacit.accounting.numeric._lattice import LatticeAccountant
from tacit.accounting.numeric._lattice_laws import Pmf
from tacit.accounting.numeric._sum_facts import exact_largest_loss

if TYPE_CHECKING:
    from tacit.accounting.numeric._mgf import Reals

_FEW, _MANY = 4200, 16384  # points of the sum of a dozen laws, and of more
_DOZEN = 12
_MOST_LAWS = 256  # so that splitting masses to the lattice moves epsilon by at most about 1e-5 of itself
_AHEAD = 1 + Fraction(1, 2**47)  # beyond the slip of a curve, so that its value at the top is 0


def can_snap(parts: Parts) -> bool:
    """Return whether all laws are coins or whole-number Laplace noise, and there are not too many."""
    return sum(times for _, times in parts) <= _MOST_LAWS and all(
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
    wide, narrow = (
        Fraction(as_float(2 * middle * _AHEAD**2 / cells)),
        Fraction(as_float(2 * middle / cells / _AHEAD)),
    )
    if not 1e-280 < narrow <= wide < 1 or span / narrow > 2 * points:
        raise NotConverged
    above = [(_above(law, wide), times) for law, times in parts]
    below = [(_below(law, narrow), times) for law, times in parts]
    return LatticeAccountant(convolved(above, wide), convolved(below, narrow))


def _largest(law: LossLaw) -> Fraction:
    found = exact_largest_loss(((law, 1),))
    if found is None:
        raise NotConverged
    return found


def _above(law: LossLaw, step: Fraction) -> Pmf:
    """Return a pair on a lattice that dominates the law; its largest loss is (nearly) that of the law."""
    top = _largest(law) * _AHEAD
    cells = math.ceil(2 * top / step)
    offset = top - cells * step
    first, g = as_float(offset), as_float(step)
    pair = connect_dots(closed_curve(law), first + g * np.arange(cells + 1))
    if pair.infinite:
        raise NotConverged
    masses = np.zeros(cells + 1)
    masses[np.round((pair.losses - first) / g).astype(int)] = pair.masses
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
        whole = cells - cells % 2
        masses[1:whole:2] = math.sinh(g / 2) * np.exp((losses[1:whole:2] - e) / 2)
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
