"""The real loss of a workload between two neighbours, from the exact integers that its mechanisms get."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np

from support.exact_integers import exact_of
from tacit.core._task import plain
from tacit.mechanisms import DiscreteGaussian, ResidualNoise, StrategyNoise

KEY = 987654321  # both sides rank the rows of a unit alike


def integers(plan):
    """The exact integers of every mechanism, as the mechanism adds noise to them, with its law."""
    [member] = plan._members
    for part in member.task.parts or (member.task,):
        exacts = exact_of(part, partial(_released, part.mechanisms))
        for mechanism, exact in zip(part.mechanisms, exacts, strict=True):
            if isinstance(mechanism, ResidualNoise):
                for residuals, sigma in zip(mechanism.residuals(exact), mechanism.sigmas, strict=True):
                    yield "rho", sigma, np.asarray(residuals, object).reshape(-1)
            else:
                own = mechanism.noise if isinstance(mechanism, StrategyNoise) else mechanism
                sums = mechanism.sums(exact) if isinstance(mechanism, StrategyNoise) else exact
                law = "rho" if isinstance(own, DiscreteGaussian) else "epsilon"
                yield law, own.scale, np.asarray(sums, object).reshape(-1)


def _released(mechanisms, place, exact):
    return plain(mechanisms[place].release(exact))


def loss(one, other):
    """The real rho and the real epsilon between two data sets: of Gaussian and of Laplace noise."""
    found = {"rho": Fraction(0), "epsilon": Fraction(0)}
    for (law, scale, a), (_, same, b) in zip(integers(one), integers(other), strict=True):
        assert scale == same
        moved = a - b
        found[law] += (
            sum(n * n for n in moved) / (2 * scale**2) if law == "rho" else sum(map(abs, moved)) / scale
        )
    return found
