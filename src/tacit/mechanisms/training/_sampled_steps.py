"""Sampled steps, the mechanism of training: draw a sample of units, add up, add noise, move; many times.

Shared steps are the mechanism of a secure sum: each party adds a share of the noise before it sends. The band
choice says where correlated noise (`BandedSteps`) is better than independent noise, by the predicted error of
totals at equal privacy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from tacit import noise
from tacit.exact import Number, count, rational
from tacit.mechanisms._mechanism import Mechanism, check_delta, exactly_one, figure, show
from tacit.mechanisms._noise_laws import check_width
from tacit.mechanisms.additive._integer_noise import saturated_sum
from tacit.parameters import Share
from tacit.strategies import band_coefficients, column_norm_squared, totals_error

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from tacit.accounting import Cost


_MAX_BANDS = 512


@dataclass(frozen=True, slots=True)
class BandChoice:
    """A number of bands and groups, and what it promises.

    Attributes
    ----------
    bands, groups
        For `BandedSteps`; one band in one group is `SampledSteps`.
    multiple
        The noise in multiples of what one sample of a unit moves.
    error
        The predicted root mean square error of totals, in clips.
    ratio
        This error over that of independent noise on Poisson samples, at the same promise (for a promise of
        `rho`, without samples).
    """

    bands: int
    groups: int
    multiple: float
    error: float
    ratio: float


def choose_bands(
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    rate: Number,
    steps: int,
    sampled: bool = True,
    most_bands: int = _MAX_BANDS,
) -> BandChoice:
    """Return the number of bands whose running totals have the smallest predicted error at equal privacy.

    The error is that of the totals of the steps, which plain gradient descent follows; it is computed from
    public numbers alone. Of several choices within 2 % of the smallest error, the one with the fewest bands
    is returned, because each band needs memory.

    Parameters
    ----------
    epsilon, delta, rho
        The promise; `rho` only without sampling.
    rate, steps
        How often a unit is sampled in a step, and how many steps there are.
    sampled
        False where no unit can be sampled at random: then a unit is in every (1 / rate)-th step.
    most_bands
        How many past sums there is memory for, and one.

    Examples
    --------
    >>> one_epoch = choose_bands(epsilon=1, delta=1e-6, rate=1 / 256, steps=256)
    >>> one_epoch.bands, round(one_epoch.ratio, 2)
    (8, 0.62)
    >>> choose_bands(epsilon=1, delta=1e-6, rate=64 / 256, steps=256).bands
    1
    """
    share, n = rational("rate", rate), count("steps", steps, zero=False)
    max_groups = max(1, int(1 / share))

    def error(bands: int, groups: int, group_rate: Number) -> tuple[float, float]:
        multiple = float(noise_multiple(epsilon, delta, rho, rate=group_rate, steps=-(-n // groups)))
        c = band_coefficients(n, bands)
        return multiple, multiple * math.sqrt(column_norm_squared(c)) * totals_error(c, n)

    start = (1, 1, share) if rho is None else (1, max_groups, 1)
    multiple, independent = error(*start)
    tried = [BandChoice(1, 1, multiple, independent, 1.0)] if sampled else []
    bands = 2 if sampled else 1
    while bands <= min(max_groups, n, count("most_bands", most_bands, zero=False)):
        groups = bands if sampled else max_groups
        multiple, predicted = error(bands, groups, groups * share if sampled else 1)
        tried.append(BandChoice(bands, groups, multiple, predicted, predicted / independent))
        if len(tried) > 3 and min(one.error for one in tried[:-2]) < 0.95 * min(tried[-2].error, predicted):
            break  # the error rises again
        bands *= 2
    smallest = min(one.error for one in tried)
    return next(one for one in tried if one.error <= smallest / 0.98)


def noise_multiple(
    epsilon: Number | None, delta: Number | None, rho: Number | None, *, rate: Number, steps: int
) -> Fraction:
    """Return the smallest sigma, in multiples of the sensitivity, with which steps keep a promise."""
    from tacit.accounting import Budget, sigma_for

    check_delta(exactly_one(epsilon=epsilon, rho=rho), delta)
    target = Budget(rho=rho) if epsilon is None else Budget(epsilon=epsilon, delta=delta)  # type: ignore[arg-type]
    return rational("sigma", sigma_for(target, sensitivity=1, queries=steps, q=rate))


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
        sums, self.noisy = self.noisy, []
        return sums


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


def wrapped_sums(exact: Any) -> NDArray[np.int64]:
    """Return sums as 64-bit integers, modulo 2^64; refuse floats, whose sensitivity is not exact.

    Examples
    --------
    >>> wrapped_sums(np.array([2**64 - 5, 7], np.uint64)).tolist()
    [-5, 7]
    """
    array = np.asarray(exact)
    return array.view(np.int64) if array.dtype == np.uint64 else whole_sums(array)


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

        each = Cost.gaussian(sigma=self.sigma, sensitivity=self.sensitivity)
        return self.steps * each.sampled(self.rate)

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
        sums = whole_sums(exact)
        draws = np.asarray(noise.rounded_gaussian(self.sigma, sums.shape))
        return saturated_sum(sums, draws)

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
        steps_of_one = SampledSteps(sigma=sigma, sensitivity=sensitivity, rate=rate, steps=steps)
        for name in ("sigma", "sensitivity", "rate", "steps"):
            object.__setattr__(self, name, getattr(steps_of_one, name))
        object.__setattr__(self, "shares", count("shares", shares, zero=False))
        object.__setattr__(self, "dimension", count("dimension", dimension, zero=False))
        object.__setattr__(self, "assumes", str(assumes))

    @property
    def cost(self) -> Cost:
        """The cost of all steps, for an observer of the sums."""
        from tacit.accounting import Cost

        each = Cost.gaussian_shares(
            sigma=self.sigma, sensitivity=self.sensitivity, dimension=self.dimension, shares=self.shares
        )
        return self.steps * each.sampled(self.rate)

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
        sums = wrapped_sums(exact)
        if sums.size != self.dimension:
            raise RuntimeError("the cost was stated for another number of sums")
        with np.errstate(over="ignore"):
            return sums + noise.discrete_gaussian(self.sigma, sums.shape)

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
