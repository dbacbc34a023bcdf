"""Shared steps, the mechanism of a secure sum: each party adds a share of the noise before it sends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit import noise
from tacit.exact import Number, count
from tacit.mechanisms._mechanism import Mechanism, figure, show
from tacit.mechanisms._sampled_steps import SampledSteps, whole_sums

if TYPE_CHECKING:
    from fractions import Fraction

    from tacit.accounting import Cost
    from tacit.mechanisms._sampled_steps import StepSums


@dataclass(frozen=True, init=False, repr=False, slots=True)
class SharedSteps(Mechanism):
    """Sampled steps whose noise is one share: others add theirs, and only the sum is ever seen.

    Guarantee: whoever sees sums that hold at least ``shares`` independent shares of this noise, and knows
    everything but this party's data, learns no more than the cost states, add/remove. The one who draws the
    share must not show it to anybody by itself.

    Parameters
    ----------
    sigma
        The standard deviation of one share, in whole grid steps.
    sensitivity, rate, steps
        As in `SampledSteps`.
    shares
        How many shares that the observer does not know are in each sum, at least.
    dimension
        How many numbers a sum has.
    assumes
        On what this rests, in words, for the certificate.

    Examples
    --------
    >>> import tacit as tc
    >>> nine = tc.mechanisms.SharedSteps(
    ...     sigma=10**6, sensitivity=10**6, rate=1, steps=1, shares=9, dimension=100
    ... )
    >>> round(nine.cost.epsilon(delta=1e-5), 4)  # as noise of three times the sensitivity
    1.2711
    """

    sigma: Fraction
    sensitivity: Fraction
    rate: Fraction
    steps: int
    shares: int
    dimension: int
    assumes: str

    def __init__(
        self,
        *,
        sigma: Number,
        sensitivity: Number,
        rate: Number,
        steps: int,
        shares: int,
        dimension: int,
        assumes: str = "",
    ) -> None:
        alone = SampledSteps(sigma=sigma, sensitivity=sensitivity, rate=rate, steps=steps)
        for name in ("sigma", "sensitivity", "rate", "steps"):
            object.__setattr__(self, name, getattr(alone, name))
        object.__setattr__(self, "shares", count("shares", shares, zero=False))
        object.__setattr__(self, "dimension", count("dimension", dimension, zero=False))
        object.__setattr__(self, "assumes", str(assumes))

    @property
    def cost(self) -> Cost:
        """The cost of all steps, for an observer of the sums."""
        from tacit.accounting import Cost

        one = Cost.gaussian_shares(
            sigma=self.sigma, sensitivity=self.sensitivity, dimension=self.dimension, shares=self.shares
        )
        return self.steps * one.sampled(self.rate)

    def release(self, value: StepSums) -> Any:  # type: ignore[override]
        """Take the steps, and return the result."""
        sampler = SampledSteps(
            sigma=self.sigma, sensitivity=self.sensitivity, rate=self.rate, steps=self.steps
        )
        for _ in range(self.steps):
            value.update(self.noisy(value.sums(sampler.draw(value.units))))
        return value.result()

    def noisy(self, exact: Any) -> Any:
        """Return whole numbers with one share of discrete Gaussian noise, modulo 2^64 as all sums of them."""
        held = np.asarray(exact)
        whole = held.view(np.int64) if held.dtype == np.uint64 else whole_sums(held)  # modulo 2^64
        if whole.size != self.dimension:
            raise RuntimeError("the cost was stated for another number of sums")
        with np.errstate(over="ignore"):
            return whole + noise.discrete_gaussian(self.sigma, whole.shape)

    @property
    def worst_pair(self) -> tuple[object, object]:
        """There is none: the cost is stated for sums of several shares, and one release is one share."""
        raise NotImplementedError

    def to_json(self) -> dict[str, Any]:
        """Return the name, the exact parameters, what it rests on, the numerics and the cost."""
        return {
            "mechanism": "shared-steps",
            "sigma": str(self.sigma),
            "sensitivity": str(self.sensitivity),
            "rate": str(self.rate),
            "steps": self.steps,
            "shares": self.shares,
            "dimension": self.dimension,
            "numerics": "exact",
            **({"assumes": self.assumes} if self.assumes else {}),
            "cost": self.cost.to_json(),
        }

    def describe(self) -> str:
        """Return the mechanism in a few words."""
        multiple = figure(self.sigma / self.sensitivity)
        return (
            f"{self.steps:,} steps, each with a sample of {figure(self.rate)} and a share of noise of "
            f"{multiple} clips, of which at least {self.shares:,} add up"
        )

    def __repr__(self) -> str:
        return (
            f"SharedSteps(sigma={show(self.sigma)}, sensitivity={show(self.sensitivity)}, "
            f"rate={show(self.rate)}, steps={self.steps}, shares={self.shares}, dimension={self.dimension})"
        )
