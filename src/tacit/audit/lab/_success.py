"""The success of an attack in the lab: two worlds that differ in one person, many trials, an interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tacit import noise
from tacit.accounting import Cost
from tacit.audit._events import clopper_pearson
from tacit.errors import bad_parameter
from tacit.exact import Number, rational
from tacit.fixes import Set
from tacit.parameters import Integer
from tacit.report import ReportTable, percent

if TYPE_CHECKING:
    from collections.abc import Iterable
    from fractions import Fraction

    import numpy as np
    import numpy.typing as npt

#: Each interval misses the true value with probability at most 1 - CONFIDENCE.
CONFIDENCE = 0.999


@dataclass(frozen=True, slots=True)
class Success:
    """How well an attack did against a release with cost epsilon.

    Attributes
    ----------
    epsilon
        The total cost of everything that the attacker saw.
    advantage
        The measured P(says yes | yes) - P(says yes | no). 0 is blind guessing, 1 is certainty.
    low, high
        An interval that contains the true advantage with probability `confidence`.
    bound
        The largest advantage of any attacker at this cost: tanh(epsilon / 2) for a pure cost.
    trials
        The number of trials in each world.
    confidence
        The confidence of the interval.
    """

    epsilon: float
    advantage: float
    low: float
    high: float
    bound: float
    trials: int
    confidence: float = CONFIDENCE

    @property
    def accuracy(self) -> float:
        """The share of right guesses if both worlds are equally likely."""
        return (1 + self.advantage) / 2

    @property
    def within_bound(self) -> bool:
        """Whether the measurement is compatible with the promise."""
        return self.low <= self.bound


def from_trials(
    epsilon: Fraction,
    yes: npt.NDArray[np.bool_],
    no: npt.NDArray[np.bool_],
    *,
    bound: float | None = None,
    confidence: float = CONFIDENCE,
) -> Success:
    """Compare how often the attacker says yes in the world where yes is true and in the other world.

    The bound is that of the pure cost `epsilon`, unless `bound` states that of another cost. Both shares get
    Clopper-Pearson bounds, each side at a quarter of the error probability; the interval of their difference
    holds by the union bound.
    """
    error = (1 - confidence) / 4  # two shares, two sides
    (hit_low, hit_high), (alarm_low, alarm_high) = (
        (float(side) for side in clopper_pearson(int(guesses.sum()), guesses.size, error))
        for guesses in (yes, no)
    )
    return Success(
        epsilon=float(epsilon),
        advantage=float(yes.mean() - no.mean()),
        low=hit_low - alarm_high,
        high=hit_high - alarm_low,
        bound=_bound(epsilon) if bound is None else bound,
        trials=yes.size,
        confidence=confidence,
    )


def from_means(
    epsilon: Fraction, shares: npt.NDArray[np.float64], *, confidence: float = CONFIDENCE
) -> Success:
    """Convert the share of right guesses in each independent trial (prior 50:50) to an advantage.

    The interval is the empirical Bernstein bound (Maurer and Pontil 2009, theorem 4) on both sides. It
    assumes only that the trials are independent and that the shares lie in [0, 1].
    """
    n = shares.size
    mean, variance = float(shares.mean()), float(shares.var(ddof=1))
    slack = math.log(4 / (1 - confidence))
    half = math.sqrt(2 * variance * slack / n) + 7 * slack / (3 * (n - 1))
    low, high = max(0.0, mean - half), min(1.0, mean + half)
    return Success(
        epsilon=float(epsilon),
        advantage=2 * mean - 1,
        low=2 * low - 1,
        high=2 * high - 1,
        bound=_bound(epsilon),
        trials=n,
        confidence=confidence,
    )


def curve_table(curve: Iterable[Success], title: str = "against Tacit") -> ReportTable:
    """Return a table of a success curve and its bound."""
    rows = tuple(
        (
            f"{point.epsilon:g}",
            f"{point.advantage:.3f}",
            f"{point.low:.3f} to {point.high:.3f}",
            f"{point.bound:.3f}",
            "yes" if point.within_bound else "NO",
        )
        for point in curve
    )
    header = ("epsilon", "attacker's advantage", f"{percent(CONFIDENCE)} interval", "bound", "within")
    return ReportTable(title, header, rows)


def read_epsilons(epsilons: Iterable[Number]) -> tuple[Fraction, ...]:
    """Read the epsilons to attack at; there must be at least one."""
    exact = tuple(rational("epsilons", epsilon) for epsilon in epsilons)
    if not exact:
        raise bad_parameter("epsilons", "at least one number", (), fix=Set(epsilons=(0.1, 1)))
    return exact


def read_trials(trials: int) -> int:
    """Read the number of trials: enough for an interval, and few enough for the memory."""
    return Integer(100, 10_000_000, instead=20_000).read("trials", trials)


def noisy_counts(counts: npt.NDArray[np.int64], epsilon: Fraction) -> npt.NDArray[np.int64]:
    """Release each count independently at `epsilon`, with sensitivity 1 and exact discrete Laplace noise."""
    return counts + noise.discrete_laplace(1 / epsilon, size=counts.shape)


def _bound(epsilon: Fraction) -> float:
    return Cost.pure(epsilon).advantage
