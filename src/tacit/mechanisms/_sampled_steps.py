"""Sampled steps, the mechanism of training: draw a sample of units, add up, add noise, move; many times."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from tacit import noise
from tacit.exact import Number, count, rational
from tacit.mechanisms._band_choice import noise_multiple
from tacit.mechanisms._integer_noise import saturated_sum
from tacit.mechanisms._mechanism import Mechanism, figure, show
from tacit.mechanisms._noise_laws import check_width
from tacit.parameters import Share

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from tacit.accounting import Cost


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


@dataclass(slots=True)
class RecordedSums:
    """Sums over units with one whole number each; the result is the noisy sums themselves: for auditors.

    Examples
    --------
    >>> sums = RecordedSums((3, 4))
    >>> sums.units, sums.sums(np.array([1])).tolist(), sums.sums(np.array([], int)).tolist()
    (2, [4], [0])
    """

    values: tuple[int, ...]
    noisy: list[float] = field(default_factory=list)

    @property
    def units(self) -> int:
        """How many units there are."""
        return len(self.values)

    def sums(self, sample: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sum over the sampled units."""
        return np.array([sum(self.values[int(place)] for place in sample)], np.int64)

    def update(self, noisy: NDArray[Any]) -> None:
        """Record a noisy sum."""
        self.noisy.append(noisy[0].item())

    def result(self) -> list[float]:
        """Return the noisy sums, and forget them: the next release starts anew."""
        seen, self.noisy = self.noisy, []
        return seen


def whole_sums(exact: Any) -> NDArray[np.int64]:
    """Return sums as 64-bit integers, the nearest that fit; refuse floats, whose sensitivity is not exact.

    Examples
    --------
    >>> whole_sums(np.array([2**63 + 5, 7], np.uint64)).tolist() == [2**63 - 1, 7]
    True
    """
    sums = np.asarray(exact)
    if sums.dtype.kind not in "iu":
        raise TypeError(f"sums must be whole numbers, not {sums.dtype}: their sensitivity is exact")
    if sums.dtype == np.uint64:  # a number that wrapped around would be far from its neighbours
        sums = np.minimum(sums, np.uint64(2**63 - 1))
    return sums.astype(np.int64, copy=False)


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

    Examples
    --------
    >>> import tacit as tc
    >>> steps = tc.mechanisms.SampledSteps(sigma=8, sensitivity=4, rate=0.05, steps=200)
    >>> round(steps.cost.epsilon(delta=1e-5), 4)
    1.5606
    >>> class TakeAway:  # counts down by what the noisy sums say; a real field moves weights
    ...     units, left = 1000, 10**6
    ...     def sums(self, sample):
    ...         return [len(sample)]
    ...     def update(self, noisy):
    ...         self.left -= int(noisy[0])
    ...     def result(self):
    ...         return self.left
    >>> 980_000 < steps.release(TakeAway()) < 10**6  # about 200 times 50 units were sampled
    True
    """

    sigma: Fraction
    sensitivity: Fraction
    rate: Fraction
    steps: int

    def __init__(self, *, sigma: Number, sensitivity: Number, rate: Number, steps: int) -> None:
        share = Share(instead=0.01, why="it is a probability").read("rate", rate)
        spread = rational("sigma", sigma)
        check_width(spread, power=56)
        object.__setattr__(self, "sigma", spread)
        object.__setattr__(self, "sensitivity", rational("sensitivity", sensitivity))
        object.__setattr__(self, "rate", share)
        object.__setattr__(self, "steps", count("steps", steps, zero=False))

    @classmethod
    def calibrated(
        cls,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        sensitivity: Number,
        rate: Number,
        steps: int,
    ) -> Self:
        """Return the steps with the smallest sigma whose cost stays within the promise.

        Guarantee: the cost of the returned mechanism fits the promise; this is checked forward.

        Parameters
        ----------
        epsilon, delta
            The promise; or give `rho` for steps without sampling.
        rho
            See above.
        sensitivity, rate, steps
            As for the mechanism itself.

        Examples
        --------
        >>> made = SampledSteps.calibrated(epsilon=1, delta=1e-5, sensitivity=1, rate=1, steps=60)
        >>> round(float(made.sigma), 3), made.cost.epsilon(delta=1e-5) <= 1
        (28.897, True)
        """
        return cls(
            sigma=noise_multiple(epsilon, delta, rho, rate=rate, steps=steps)
            * rational("sensitivity", sensitivity),
            sensitivity=sensitivity,
            rate=rate,
            steps=steps,
        )

    @property
    def cost(self) -> Cost:
        """The cost of all steps."""
        from tacit.accounting import Cost

        one = Cost.gaussian(sigma=self.sigma, sensitivity=self.sensitivity)
        return self.steps * one.sampled(self.rate)

    def release(self, value: StepSums) -> Any:  # type: ignore[override]
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
        """Return whole numbers with rounded Gaussian noise, in 64 bits: beyond, the nearest that fits."""
        whole = whole_sums(exact)
        drawn = np.asarray(noise.rounded_gaussian(self.sigma, whole.shape))
        return saturated_sum(whole, drawn)

    @property
    def spread(self) -> float:
        """The root mean square error of the totals of the steps, over all steps, in grid steps."""
        return float(self.sigma) * math.sqrt((self.steps + 1) / 2)

    @property
    def worst_pair(self) -> tuple[object, object]:
        """No unit, and one unit that moves every sum by the sensitivity, rounded down to a whole number.

        Both are plain `StepSums` whose result is the list of the noisy sums.
        """
        return RecordedSums(()), RecordedSums((max(1, math.floor(self.sensitivity)),))

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
