"""Sampled steps, the mechanism of training: draw a sample of units, add up, add noise, move; many times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tacit import noise
from tacit.errors import bad_parameter
from tacit.exact import Number, count, rational
from tacit.fixes import Set
from tacit.mechanisms._mechanism import Mechanism, figure, show

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from tacit.accounting import Cost

__all__ = ["SampledSteps", "StepSums"]


class StepSums(Protocol):
    """What a field hands to `SampledSteps`: sums over a sample of units, and what follows from noisy sums."""

    @property
    def units(self) -> int:
        """How many units the data has: private, used only to draw the sample."""

    def sums(self, sample: NDArray[np.int64]) -> Any:
        """Return the sum over the sampled units: each unit moves it by at most the sensitivity, in L2.

        Without any sampled unit it is zero; the step is taken all the same.
        """

    def update(self, noisy: Any) -> None:
        """Take one step with a noisy sum: post-processing, which sees nothing else of the data."""

    def result(self) -> Any:
        """Return what is released after the last step, as JSON data: post-processing of the noisy sums."""


@dataclass(frozen=True, init=False, repr=False, slots=True)
class SampledSteps(Mechanism):
    """Steps that each draw a Poisson sample of the units and add Gaussian noise to the sum over it.

    Guarantee: all steps together cost ``steps`` times the sampled Gaussian, add/remove, also where a step
    depends on the noisy sums before it. The sample is drawn here, by the rate that the cost states, and it
    never leaves this object.

    Parameters
    ----------
    sigma
        The standard deviation of the noise, in whole grid steps.
    sensitivity
        How far one unit can move a sum, in L2, in whole grid steps.
    rate
        The probability that a unit is in the sample of a step, in (0, 1].
    steps
        How many steps one release takes.
    """

    sigma: Fraction
    sensitivity: Fraction
    rate: Fraction
    steps: int

    def __init__(self, *, sigma: Number, sensitivity: Number, rate: Number, steps: int) -> None:
        share = rational("rate", rate)
        if share > 1:
            raise bad_parameter("rate", "in (0, 1]", rate, why="it is a probability", fix=Set(rate=0.01))
        object.__setattr__(self, "sigma", rational("sigma", sigma))
        object.__setattr__(self, "sensitivity", rational("sensitivity", sensitivity))
        object.__setattr__(self, "rate", share)
        object.__setattr__(self, "steps", count("steps", steps, zero=False))

    @property
    def cost(self) -> Cost:
        """The cost of all steps."""
        from tacit.accounting import Cost

        one = Cost.gaussian(sigma=self.sigma, sensitivity=self.sensitivity)
        return self.steps * one.sampled(self.rate)

    def release(self, value: StepSums) -> Any:
        """Take the steps, and return the result."""
        for _ in range(self.steps):
            value.update(self.noisy(value.sums(self.draw(value.units))))
        return value.result()

    def draw(self, units: int) -> NDArray[np.int64]:
        """Return the places of the units that one step samples."""
        if self.rate == 1:
            return np.arange(units)
        return np.flatnonzero(np.asarray(noise.bernoulli(self.rate, units)))

    def noisy(self, exact: Any) -> Any:
        """Return whole numbers with rounded Gaussian noise."""
        whole = np.asarray(exact)
        return whole + noise.rounded_gaussian(self.sigma, whole.shape)

    @property
    def worst_pair(self) -> tuple[object, object]:
        """There is none: a step's sums come from the field."""
        raise NotImplementedError

    def to_json(self) -> dict[str, Any]:
        """Return the name, the exact parameters, the numerics and the cost."""
        return {
            "mechanism": "sampled-steps",
            "sigma": str(self.sigma),
            "sensitivity": str(self.sensitivity),
            "rate": str(self.rate),
            "steps": self.steps,
            "numerics": "exact",
            "cost": self.cost.to_json(),
        }

    def describe(self) -> str:
        """Return the mechanism in a few words."""
        multiple = figure(self.sigma / self.sensitivity)
        return (
            f"{self.steps:,} steps, each with a sample of {figure(self.rate)} and noise of {multiple} clips"
        )

    def __repr__(self) -> str:
        return (
            f"SampledSteps(sigma={show(self.sigma)}, sensitivity={show(self.sensitivity)}, "
            f"rate={show(self.rate)}, steps={self.steps})"
        )
