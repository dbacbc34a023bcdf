"""The noise of a fit: one Gaussian for the whole promise, shared among steps by exact composition."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from tacit.accounting import Budget, Cost, calibrate
from tacit.core import Goal
from tacit.errors import bad_parameter
from tacit.exact import count
from tacit.fixes import Set
from tacit.parameters import RealNumber

if TYPE_CHECKING:
    from collections.abc import Callable

_FINE = 2**20
#: A promise that fits every size: it stands in where a question is asked before its price is known.
ANY_FIT_GOAL = (1, Fraction(1, 10**30))


def read_fit_goal(*, epsilon: object, delta: object, size: object) -> tuple[Goal, int]:
    """Read the promise of a fit and the declared number of units, or refuse with what is missing."""
    if size is None:
        raise bad_parameter(
            "size", "about how many people (or other units) the data has, from public knowledge", size,
            why="the model is scaled by this number; the true number is private, so Tacit does not count it",
            fix=Set(size=1000),
        )  # fmt: skip
    units = count("size", size, zero=False)  # type: ignore[arg-type]
    if epsilon is None:
        raise bad_parameter("epsilon", "given", None, why="it has no default", fix=Set(epsilon=1))
    read_delta(delta, units)
    goal = Goal.read(epsilon=epsilon, delta=delta)  # type: ignore[arg-type]
    check_fit_goal(goal, units)
    return goal, units


def check_fit_goal(goal: Goal, size: int) -> None:
    """Refuse a promise whose delta is 0, or above 1 / size."""
    read_delta(goal.delta, size)


def read_delta(delta: object, size: int) -> Fraction:
    """Return a delta above 0 and at most 1 / size, the declared number of units, or refuse it."""
    why = (
        f"Gaussian noise needs a delta; above 1 / {size:,}, which is 1 / size, a release that shows all data "
        "of one unit would keep the promise"
    )
    own = RealNumber(above=0, most=Fraction(1, size), why=why, instead=_small_delta(size))
    return own.read("delta", 0 if delta is None else delta)


def _small_delta(units: int) -> float:
    return float(f"1e-{len(str(units)) + 1}")


def fit_noise(goal: Goal) -> Fraction:
    """Return the noise multiplier: sigma over sensitivity of one Gaussian that has this promise.

    Examples
    --------
    >>> round(float(fit_noise(Goal.read(epsilon=1, delta=1e-5))), 3)
    3.731
    """
    assert goal.epsilon is not None  # noqa: S101 - fits read epsilon and delta
    return _calibrated(goal.epsilon, goal.delta)


@lru_cache(maxsize=64)
def _calibrated(epsilon: Fraction, delta: Fraction) -> Fraction:
    return smallest_noise(lambda sigma: Cost.gaussian(sigma=sigma, sensitivity=1), epsilon, delta)


def smallest_noise(cost: Callable[[float], Cost], epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the least noise multiplier whose cost keeps the promise, as a short fraction, rounded up."""
    found = calibrate(cost, Budget(epsilon=epsilon, delta=delta))
    return Fraction(math.ceil(Fraction(found) * _FINE) + 1, _FINE)


def share_of_noise(noise: Fraction, share: Fraction | float, sensitivity: Fraction | int = 1) -> Fraction:
    """Return the sigma of a step that gets a share of the promise.

    Guarantee: Gaussian steps whose shares add up to at most 1 cost together at most the Gaussian with this
    noise multiplier, because squared sensitivities over variances add up. Rounded up.

    Examples
    --------
    >>> share_of_noise(Fraction(2), Fraction(1, 4), 10)
    Fraction(40, 1)
    """
    exact = (Fraction(noise) * Fraction(sensitivity)) ** 2 / Fraction(share) * _FINE**2
    whole = math.isqrt(math.ceil(exact))
    return Fraction(whole if whole * whole >= exact else whole + 1, _FINE)
