"""The power of an attack in the lab: how many members it finds at a fixed share of false alarms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tacit.audit._events import clopper_pearson
from tacit.audit.lab._success import CONFIDENCE

if TYPE_CHECKING:
    import numpy.typing as npt

    from tacit.accounting import Cost

#: The share of outsiders whom an attacker may wrongly call members.
FALSE_ALARMS: Final = 0.05


@dataclass(frozen=True, slots=True)
class Power:
    """How many members an attacker finds who may wrongly accuse 5 % of the outsiders.

    Attributes
    ----------
    found
        The measured share of members whom the attacker finds.
    low, high
        An interval that contains the true share with probability `confidence`.
    bound
        The largest share that any attacker can find, if exactly 5 % of the outsiders are accused.
    ceiling
        The same bound for the measured false alarms: at the upper end of their interval.
    trials
        The number of trials in each world.
    confidence
        The confidence of the interval.
    """

    found: float
    low: float
    high: float
    bound: float
    ceiling: float
    trials: int
    confidence: float = CONFIDENCE

    @property
    def within_bound(self) -> bool:
        """Whether the measurement is compatible with the promise."""
        return self.low <= self.ceiling


def strongest_power(cost: Cost, false_alarms: float = FALSE_ALARMS) -> float:
    """Return the largest share of members that any attacker finds at this cost and share of false alarms."""
    return 1 - cost.tradeoff(min(1.0, false_alarms))


def power_at(members: npt.NDArray[np.float64], outsiders: npt.NDArray[np.float64]) -> float:
    """Return the share of members whose score is above that of 95 % of the outsiders."""
    return float((members > np.quantile(outsiders, 1 - FALSE_ALARMS, method="higher")).mean())


def measure_power(
    cost: Cost,
    found: npt.NDArray[np.bool_],
    alarms: npt.NDArray[np.bool_],
    *,
    confidence: float = CONFIDENCE,
) -> Power:
    """Compare how often the attacker accuses members (`found`) and outsiders (`alarms`) in a release.

    The trials are independent, and the attacker's threshold does not depend on them. Each share has a
    Clopper-Pearson interval at half of the error probability.
    """
    error = (1 - confidence) / 4  # two shares, two sides
    low, high = (float(side) for side in clopper_pearson(int(found.sum()), found.size, error))
    worst = float(clopper_pearson(int(alarms.sum()), alarms.size, error)[1])
    return Power(
        found=float(found.mean()),
        low=low,
        high=high,
        bound=strongest_power(cost),
        ceiling=strongest_power(cost, worst),
        trials=found.size,
        confidence=confidence,
    )
