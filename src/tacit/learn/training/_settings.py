"""The settings of training: sampling, steps, clip and noise, read from what a user gives; public facts.

An adaptive clip follows a quantile of the gradients' norms, which is measured privately.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from tacit.errors import bad_parameter
from tacit.exact import Number, count, rational
from tacit.fixes import Either, Set
from tacit.learn.training._mechanisms import TrainingSteps
from tacit.parameters import Choice, Integer, Omitted, RealNumber, Share, exactly_one

if TYPE_CHECKING:
    from tacit.accounting import Cost
    from tacit.core import JSON, Goal
    from tacit.learn.training._mechanisms import CorrelatedSteps


@dataclass(frozen=True, slots=True)
class AdaptiveClip:
    """A clip that moves towards a quantile of the norms of the units' gradients (Andrew et al. 2021).

    Guarantee: a step costs what it costs with a fixed clip. Next to the sum of gradients, each divided by the
    clip, each step measures how many norms are below the clip. One unit moves both together by at most 1, and
    one Gaussian covers both: the gradients get ``1 - share`` of the squared sensitivity, the count gets
    ``share``. The clip is computed from noisy counts alone.

    Parameters
    ----------
    start
        The first clip.
    quantile
        The share of norms that should be below the clip.
    rate
        How fast the clip moves: by a factor of at most exp(rate / 2) or so in a step.
    share
        The part of the squared sensitivity that the count gets. With 0.01, the noise of the gradients grows
        by 0.5 %.

    Examples
    --------
    >>> AdaptiveClip(start=0.5).quantile
    Fraction(1, 2)
    """

    start: Fraction
    quantile: Fraction
    rate: Fraction
    share: Fraction

    def __init__(
        self, start: Number = 1, *, quantile: Number = 0.5, rate: Number = 0.2, share: Number = 0.01
    ) -> None:
        for name, fraction, usual in (("quantile", quantile, 0.5), ("share", share, 0.01)):
            RealNumber(above=0, below=1, instead=usual).read(name, fraction)
        object.__setattr__(self, "start", rational("start", start))
        object.__setattr__(self, "quantile", rational("quantile", quantile))
        object.__setattr__(self, "rate", rational("rate", rate))
        object.__setattr__(self, "share", rational("share", share))

    def to_json(self) -> dict[str, JSON]:
        """Return the settings, exactly."""
        return {name: str(getattr(self, name)) for name in ("start", "quantile", "rate", "share")}


NO_DEFAULT = "they have no default, and two of them could contradict each other"
Clip = Fraction | AdaptiveClip | Literal["automatic"]
_DIGITS = 6  # noise multipliers are rounded up to so many digits
_MEMORY = 2**28  # numbers of past noise that correlated noise may keep where nobody says how many bands


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """How training samples and clips; every number is exact and public.

    Parameters
    ----------
    size
        The declared number of units.
    rate, steps
        The probability that a unit is in the sample of a step, and the number of steps.
    average
        The decay of the moving average of the weights, or 0.
    checkpoints
        In how many instalments the steps are released.
    """

    size: int
    rate: Fraction
    steps: int
    clip: Clip
    precision: str
    average: Fraction
    checkpoints: int

    @property
    def bound(self) -> Fraction:
        """How far one unit can move the sum of a step, in L2."""
        return self.clip if isinstance(self.clip, Fraction) else Fraction(1)

    @property
    def denominator(self) -> Fraction:
        """The expected number of units in a sample, by which each sum is divided; never the real number."""
        return self.rate * self.size

    def steps_of(self, number: int) -> int:
        """Return how many steps an instalment has; the first ones have one more where it is not even."""
        each, more = divmod(self.steps, self.checkpoints)
        return each + (number <= more)

    def to_json(self) -> dict[str, JSON]:
        """Return what the plan's question states."""
        clip = self.clip.to_json() if isinstance(self.clip, AdaptiveClip) else str(self.clip)
        return {
            "size": self.size, "clip": clip, "precision": self.precision, "average": str(self.average),
            "denominator": str(self.denominator), "steps": self.steps,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class NoisySettings(TrainingSettings):
    """Settings of a training whose noise is known.

    Parameters
    ----------
    multiplier
        The standard deviation of the noise, as a multiple of how far one unit can move a sum.
    epsilon, delta
        What the training costs in total.
    stated
        The delta at which the cost is stated; None keeps the steps.
    bands
        How far noise is correlated: 1 for independent noise, else the number of bands of `CorrelatedSteps`.
    """

    multiplier: Fraction
    epsilon: Fraction
    delta: Fraction
    stated: Fraction | None
    bands: int

    def cost_of(self, steps: int) -> Cost:
        """Return what the first steps cost together."""
        return cost_of_steps(self.multiplier, steps, self.rate, self.bands)

    def mechanism_of(self, number: int | None) -> TrainingSteps | CorrelatedSteps:
        """Return the mechanism of an instalment, or of all steps; correlated noise spans all of them."""
        if self.bands > 1:
            return self.correlated()
        return self.mechanism(self.steps if number is None else self.steps_of(number))

    def correlated(self) -> CorrelatedSteps:
        """Return the mechanism of all steps, with correlated noise."""
        from tacit.learn.training._mechanisms import CorrelatedSteps

        parameters = {"sensitivity": self.bound, "rate": self.rate, "steps": self.steps, "bands": self.bands}
        sensitivity = CorrelatedSteps(sigma=1, **parameters).moved  # type: ignore[arg-type]
        return CorrelatedSteps(
            sigma=self.multiplier * sensitivity,
            parts=self.checkpoints,
            stated=self.stated,
            **parameters,  # type: ignore[arg-type]
        )

    def mechanism(self, steps: int) -> TrainingSteps:
        """Return the mechanism that draws, adds independent noise and states the cost of some steps."""
        sigma = self.multiplier * self.bound
        return TrainingSteps(
            sigma=sigma, sensitivity=self.bound, rate=self.rate, steps=steps, stated=self.stated
        )

    def signal_to_noise(self, parameters: int) -> float:
        """Return the largest ratio of signal and noise in a step: all units clipped, with equal gradients."""
        return float(self.denominator / self.multiplier) / math.sqrt(parameters)


@dataclass(frozen=True, slots=True)
class NoiseRequest:
    """What a user says of the noise beside the promise.

    Parameters
    ----------
    multiplier
        The noise as a multiple of the clip, from which the promise follows; None: the other way round.
    kind, bands, charge
        As in `tacit.learn.Trainer`.
    """

    multiplier: Fraction | None
    kind: str
    bands: int | None
    charge: str

    def reached(self, settings: TrainingSettings, delta: Fraction, trained: int) -> Fraction:
        """Return the epsilon of noise that is given."""
        assert self.multiplier is not None  # noqa: S101 - the caller asks
        bands = read_bands(self.kind, self.bands, settings, None, self.multiplier, delta, trained)
        cost = cost_of_steps(self.multiplier, settings.steps, settings.rate, bands)
        return _rounded(cost.epsilon(delta=delta))


@lru_cache(maxsize=64)
def noisy_settings(settings: TrainingSettings, wish: NoiseRequest, goal: Goal, trained: int) -> NoisySettings:
    """Return settings with the noise that keeps a promise; ``trained`` is how many numbers are trained."""
    from tacit.accounting import Budget, calibrate

    epsilon, delta = goal.epsilon, goal.delta
    assert epsilon is not None  # noqa: S101 - training takes nothing else
    promised = None if wish.multiplier is not None else epsilon
    bands = read_bands(wish.kind, wish.bands, settings, promised, wish.multiplier, delta, trained)

    def cost_of(noise: float) -> Cost:
        return cost_of_steps(_rounded(noise), settings.steps, settings.rate, bands)

    multiplier = wish.multiplier
    if multiplier is None:
        multiplier = _rounded(calibrate(cost_of, Budget(epsilon=epsilon, delta=delta)))
    shared = {one.name: getattr(settings, one.name) for one in fields(TrainingSettings)}
    stated = read_charge(wish.charge, delta, settings.checkpoints)
    return NoisySettings(
        **shared, multiplier=multiplier, epsilon=epsilon, delta=delta, stated=stated, bands=bands
    )


def cost_of_steps(multiplier: Fraction, steps: int, rate: Fraction, bands: int) -> Cost:
    """Return what steps cost together, with noise that is correlated over some bands.

    Examples
    --------
    >>> cost_of_steps(Fraction(1), 10, Fraction(1, 100), 4)
    3 * Cost.gaussian(sigma=1, sensitivity=1).sampled(0.04)
    """
    from tacit.accounting import Cost

    step_cost = Cost.gaussian(sigma=multiplier, sensitivity=1)
    return -(-steps // bands) * step_cost.sampled(bands * rate)


def read_clip(clip: object) -> Clip:
    """Read a clip: a positive number, ``"automatic"``, or an `AdaptiveClip`."""
    if isinstance(clip, AdaptiveClip) or clip == "automatic":
        return clip
    if isinstance(clip, str):
        raise bad_parameter(
            "clip",
            "a positive number, automatic, or an AdaptiveClip",
            clip,
            fix=Either(Set(clip=1.0), Set(clip="automatic")),
        )
    return rational("clip", clip)  # type: ignore[arg-type]


def read_charge(charge: object, delta: Fraction, checkpoints: int) -> Fraction | None:
    """Read how the ledger is charged: return the delta at which to state the cost, or None."""
    Choice(("steps", "total")).read("charge", charge)
    if checkpoints > 1:
        Omitted("with several checkpoints", absent="steps").read("charge", charge)
    return delta if charge == "total" else None


def read_amount(
    size: int, batch: Number | None, sampling_rate: Number | None, steps: int | None, epochs: Number | None
) -> tuple[Fraction, int]:
    """Read how many units a step samples, and how many steps there are: rate, and number of steps.

    Examples
    --------
    >>> read_amount(1000, 64, None, None, 3)      # 3 epochs of 1000 / 64 steps, rounded up
    (Fraction(8, 125), 47)
    """
    exactly_one(
        "a training", why=NO_DEFAULT, fix=Either(Set(batch=256), Set(sampling_rate=0.01)),
        batch=batch, sampling_rate=sampling_rate,
    )  # fmt: skip
    exactly_one(
        "a training", why=NO_DEFAULT, fix=Either(Set(steps=1000), Set(epochs=10)), steps=steps, epochs=epochs
    )
    if sampling_rate is not None:
        rate = Share(instead=0.01).read("sampling_rate", sampling_rate)
    else:
        why = "a step samples at most all units, and their number is declared as size"
        rate = RealNumber(above=0, most=size, instead=size, why=why).read("batch", batch) / size
    if steps is not None:
        return rate, count("steps", steps, zero=False)
    return rate, math.ceil(rational("epochs", epochs) / rate)  # type: ignore[arg-type]


def read_bands(
    kind: object,
    bands: int | None,
    settings: TrainingSettings,
    epsilon: Fraction | None,
    noise: Fraction | None,
    delta: Fraction,
    trained: int,
) -> int:
    """Read how far the noise is correlated: the number of bands, 1 for independent noise."""
    from tacit.accounting import Cost
    from tacit.mechanisms import choose_bands

    rate, steps = settings.rate, settings.steps
    kinds = ("independent", "correlated", "auto")
    Choice(kinds).read("noise_kind", kind)
    if kind == "independent":
        omitted = Omitted("with independent noise", fix=Set(noise_kind="correlated"))
        omitted.read("bands", None if bands == 1 else bands)
        return 1
    if bands is not None or rate > Fraction(1, 2):
        groups = math.floor(1 / rate)
        if kind == "auto" and bands is None:
            return min(2, groups)
        why = (
            "each unit belongs to one of this many groups, and a step samples only one group, so they are at "
            "most 1 / sampling rate"
        )
        return Integer(1, groups, why=why, instead=groups).read("bands", 2 if bands is None else bands)
    promised: Number | None = epsilon
    if promised is None:
        step_cost = Cost.gaussian(sigma=noise, sensitivity=1)  # type: ignore[arg-type]
        promised = (steps * step_cost.sampled(rate)).epsilon(delta=delta)
    max_bands = max(2, _MEMORY // trained)
    chosen = choose_bands(epsilon=promised, delta=delta, rate=rate, steps=steps, most_bands=max_bands).bands
    return chosen if kind == "auto" else max(2, chosen)


def _rounded(number: float) -> Fraction:
    """Round up to six significant digits, so that certificates stay short."""
    if not number:
        return Fraction(0)
    power = Fraction(10) ** (_DIGITS - 1 - math.floor(math.log10(number)))
    return math.ceil(Fraction(number) * power) / power
