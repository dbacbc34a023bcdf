"""Unit gradients: the clipped gradient of each unit as whole numbers, and their exact sum.

Gradient descent on noisy sums: momentum, and the mean of the weights over the second half of the steps.

The fit of a linear model by noisy gradient descent: settings, mechanism and reading, in learning.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tacit.core import Step
from tacit.exact import count, rational
from tacit.learn.estimators._declared_bounds import refuse_wide
from tacit.learn.estimators._fits import FitSteps, share_of_noise
from tacit.learn.estimators._whole_features import FEATURE_STEPS
from tacit.mechanisms import SampledSteps
from tacit.parameters import RealNumber

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from tacit.core import JSON
    from tacit.learn._examples import Examples


#: The clip in grid steps: the L2 sensitivity of a sum of unit gradients, whatever the clip is.
CLIP_STEPS = 2**28
#: Residuals are whole numbers of 1 / RESIDUAL_STEPS.
RESIDUAL_STEPS = 2**16
_WEIGHT_STEPS = 2**16
_MOST_WEIGHT = 2**8
_BLOCK = 2**16  # units at a time
_TABLE_STEPS = 2**8  # predictions are looked up on a grid of 1/256
_TABLE_REACH = 32


class ResidualRule(Protocol):
    """How far off a model is on each example, as whole numbers; a function of that example alone."""

    @property
    def largest(self) -> int:
        """The largest residual, in 1 / RESIDUAL_STEPS."""

    def residuals(self, scores: NDArray[np.float64], places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return prediction minus target for these examples, in 1 / RESIDUAL_STEPS; zero for invalid ones."""


@dataclass(frozen=True, eq=False)
class ClassResiduals:
    """Residuals of classes: probability minus 1 for the own class, minus 0 for others."""

    labels: NDArray[np.int64]

    @property
    def largest(self) -> int:
        """The largest residual: 1."""
        return RESIDUAL_STEPS

    def residuals(self, scores: NDArray[np.float64], places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the residuals; one score column stands for the second of two classes."""
        full = scores if scores.shape[1] > 1 else np.concatenate([np.zeros_like(scores), scores], axis=1)
        # softmax by a table of whole numbers, so that no rounding depends on other examples
        below = np.minimum(np.floor((full.max(axis=1, keepdims=True) - full) * _TABLE_STEPS + 0.5), _LAST)
        weights = _falling_powers()[below.astype(np.int64)]
        share = (weights * RESIDUAL_STEPS) // weights.sum(axis=1, keepdims=True)
        own = self.labels[places]
        valid = own >= 0
        share[np.flatnonzero(valid), own[valid]] -= RESIDUAL_STEPS
        share[~valid] = 0
        return np.asarray(share if scores.shape[1] > 1 else share[:, 1:])


@dataclass(frozen=True, eq=False)
class CountResiduals:
    """Residuals of counts: the expected count, at most ``most``, minus the count."""

    counts: NDArray[np.float64]
    most: int

    @property
    def largest(self) -> int:
        """The largest residual: the largest count."""
        return self.most * RESIDUAL_STEPS

    def residuals(self, scores: NDArray[np.float64], places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the residuals."""
        place = np.clip(np.floor(scores * _TABLE_STEPS + 0.5), -_LAST, _LAST).astype(np.int64)
        expected = np.minimum(_powers()[place + _LAST], self.most * RESIDUAL_STEPS)
        own = self.counts[places]
        valid = np.isfinite(own)
        whole = np.floor(np.clip(np.where(valid, own, 0.0), 0.0, self.most) * RESIDUAL_STEPS + 0.5)
        return np.where(valid[:, None], expected - whole.astype(np.int64)[:, None], 0)


_LAST = _TABLE_REACH * _TABLE_STEPS


@lru_cache(maxsize=1)
def _falling_powers() -> NDArray[np.int64]:
    """Return exp(-i / 256) in 2^-30, at least 0, for i up to the end of the table."""
    return np.floor(np.exp(-np.arange(_LAST + 1) / _TABLE_STEPS) * 2.0**30).astype(np.int64)


@lru_cache(maxsize=1)
def _powers() -> NDArray[np.int64]:
    """Return exp(i / 256) in 1 / RESIDUAL_STEPS, for i from -_LAST to _LAST, cut off at 2^46."""
    powers = np.minimum(np.exp(np.arange(-_LAST, _LAST + 1) / _TABLE_STEPS), 2.0**30)
    return np.asarray(np.floor(powers * RESIDUAL_STEPS), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class UnitGradients:
    """Sums of clipped gradients of a linear model, as exact whole numbers of ``clip / CLIP_STEPS``.

    Guarantee: the sum with one unit more differs by a vector of L2 norm at most CLIP_STEPS. Each unit's
    vector is a function of that unit's own examples: scores and sums are products of whole numbers below
    2^53, which are exact in any order, and the rest are elementwise operations that IEEE 754 determines.

    Parameters
    ----------
    features
        Whole features (see `whole_features`), one line for each example.
    rule
        How residuals follow from scores.
    clip
        The largest norm of one unit's gradient, with features from -1 to 1.
    rows
        Which examples each unit has, padded with -1.
    """

    features: NDArray[np.float64]
    rule: ResidualRule
    clip: float
    rows: NDArray[np.int64]

    def sums(self, weights: NDArray[np.float64], sample: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sum over the sampled units, outputs x features."""
        total = np.zeros(weights.shape, np.int64)
        whole = np.rint(np.clip(weights, -_MOST_WEIGHT, _MOST_WEIGHT) * _WEIGHT_STEPS)
        for start in range(0, len(sample), _BLOCK):
            units = self.rows[sample[start : start + _BLOCK]]
            total += self._single(whole, units[:, 0]) if units.shape[1] == 1 else self._several(whole, units)
        return total

    def _residuals(self, whole: NDArray[np.float64], places: NDArray[np.int64]) -> NDArray[np.int64]:
        scores = (self.features[places] @ whole.T) / (FEATURE_STEPS * _WEIGHT_STEPS)
        return self.rule.residuals(scores, places)

    def _single(self, whole: NDArray[np.float64], places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Clip a product of residuals and features by its residuals alone, so that no product is formed."""
        features = self.features[places]
        residuals = self._residuals(whole, places)
        length = np.square(features).sum(axis=1).astype(np.int64)  # whole numbers below 2^53
        error = np.sqrt(np.square(residuals).sum(axis=1).astype(np.float64))
        reach = np.sqrt(length.astype(np.float64))
        free = CLIP_STEPS / (self.clip * RESIDUAL_STEPS * FEATURE_STEPS)
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = np.minimum(free, np.where(error * reach > 0, CLIP_STEPS / (error * reach), 0.0))
        kept = np.trunc(residuals * factor[:, None]).astype(np.int64)
        most = CLIP_STEPS**2 // np.maximum(length, 1)
        kept[(length == 0) | (np.square(kept).sum(axis=1) > most)] = 0
        return np.asarray(kept.T.astype(np.float64) @ features, dtype=np.float64).astype(np.int64)

    def _several(self, whole: NDArray[np.float64], units: NDArray[np.int64]) -> NDArray[np.int64]:
        """Add up the gradients of each unit's examples, then clip; in smaller blocks, for memory."""
        total = np.zeros(whole.shape, np.int64)
        step = max(1, 2**22 // whole.size)
        for start in range(0, len(units), step):
            own = np.zeros((len(units[start : start + step]), *whole.shape), np.int64)
            for column in units[start : start + step].T:
                there = np.flatnonzero(column >= 0)
                residuals = self._residuals(whole, column[there])
                features = self.features[column[there]].astype(np.int64)
                own[there] += residuals[:, :, None] * features[:, None, :]
            total += self._clipped(own).sum(axis=0)
        return total

    def _clipped(self, own: NDArray[np.int64]) -> NDArray[np.int64]:
        """Scale each gradient to at most the clip; a unit that would still exceed it counts as zero."""
        largest = self.rows.shape[1] * self.rule.largest * FEATURE_STEPS
        step = 2 ** max(0, largest.bit_length() - 22)
        coarse = np.abs(own) // step + 1  # above the true size, so that the norm is too
        norm = np.sqrt(np.square(coarse).sum(axis=(1, 2)).astype(np.float64)) * step
        free = CLIP_STEPS / (self.clip * RESIDUAL_STEPS * FEATURE_STEPS)
        factor = np.minimum(free, CLIP_STEPS / norm)
        kept = np.trunc(own * factor[:, None, None]).astype(np.int64)
        kept[~_fits(kept)] = 0
        return np.asarray(kept)


def _fits(kept: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether the squared norm of each unit is at most CLIP_STEPS squared, in exact whole numbers."""
    high, low = np.abs(kept) >> 14, np.abs(kept) & (2**14 - 1)
    squares, mixed, rest = (one.sum(axis=(1, 2)) for one in (np.square(high), high * low, np.square(low)))
    small = squares <= CLIP_STEPS  # else the norm is too large, and the sum below could overflow
    total = np.where(small, squares, 0) * 2**28 + np.where(small, mixed, 0) * 2**15 + rest
    return np.asarray(small & (total <= CLIP_STEPS**2))


_FURTHEST = 2.0**100  # where a descent that runs away stops


@dataclass(frozen=True)
class DescentSettings:
    """Public settings of a descent: all of them, with the noise, decide what one release computes."""

    outputs: int
    inputs: int
    size: int
    clip: float
    steps: int
    learning_rate: float
    momentum: float
    penalty: float


@dataclass(eq=False)
class GradientDescent:
    """The sums and the moves of a descent, for `SampledSteps`: each step sees only its noisy sum.

    Parameters
    ----------
    settings
        The public settings. The sum is divided by the declared size, never by a count.
    gradients
        The exact sums.
    """

    settings: DescentSettings
    gradients: UnitGradients
    _weights: NDArray[np.float64] = field(init=False)
    _speed: NDArray[np.float64] = field(init=False)
    _mean: NDArray[np.float64] = field(init=False)
    _step: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        shape = (self.settings.outputs, self.settings.inputs)
        self._weights, self._speed, self._mean = (np.zeros(shape) for _ in range(3))

    @property
    def units(self) -> int:
        """The number of units: private, for drawing the sample."""
        return len(self.gradients.rows)

    def sums(self, sample: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the exact sum of clipped gradients at the current weights."""
        return self.gradients.sums(self._weights, sample)

    @np.errstate(all="ignore")  # a descent that runs away
    def update(self, noisy: Any) -> None:
        """Move the weights by a noisy sum; whatever the settings, they stay finite."""
        said = self.settings
        mean = np.asarray(noisy, dtype=np.float64) * (said.clip / CLIP_STEPS / said.size)
        self._speed = said.momentum * self._speed + mean + said.penalty * self._weights
        self._weights = self._weights - said.learning_rate * self._speed
        held = (np.nan_to_num(one) for one in (self._speed, self._weights))
        self._speed, self._weights = (np.clip(one, -_FURTHEST, _FURTHEST) for one in held)
        self._step += 1
        if 2 * self._step > said.steps:
            self._mean = self._mean + self._weights / (said.steps - said.steps // 2)

    def result(self) -> list[list[float]]:
        """Return the mean of the weights over the second half of the steps."""
        found: list[list[float]] = self._mean.tolist()
        return found


#: With so many whole features, scores stay below 2^53 and are exact in any order.
_MOST_FEATURES = 2**16


def read_descent(
    estimator: Any, *, outputs: int, features: int, size: int, noise: Fraction
) -> DescentSettings:
    """Read the settings of a descent from an estimator's parameters, or refuse what is wrong.

    Without a learning rate it is 0.03 over the noise of a step (the deviation of each coordinate of the mean
    gradient), from 2 to 16: a public rule, found on digits and breast_cancer.
    """
    refuse_wide(features, _MOST_FEATURES)
    momentum = float(RealNumber(least=0, below=1).read("momentum", estimator.momentum))
    clip = float(rational("clip", estimator.clip))
    steps = count("steps", estimator.steps, zero=False)
    rate = estimator.learning_rate
    if rate is None:
        rate = min(16.0, max(2.0, 0.03 * size / (float(noise) * math.sqrt(steps) * clip)))
    return DescentSettings(
        outputs=outputs,
        inputs=features + bool(estimator.fit_intercept),
        size=size,
        clip=clip,
        steps=steps,
        learning_rate=float(rational("learning_rate", rate)),
        momentum=momentum,
        penalty=float(rational("penalty", estimator.penalty, zero=True)),
    )


def descent_steps(
    data: Examples,
    settings: DescentSettings,
    noise: Fraction,
    load: Callable[[], tuple[NDArray[np.float64], ResidualRule]],
    *,
    said: Mapping[str, JSON],
) -> FitSteps[UnitGradients]:
    """Return the steps of a fit whose one mechanism takes all gradient steps, on all units each time."""
    sigma = math.ceil(share_of_noise(noise, Fraction(1, settings.steps), CLIP_STEPS))
    mechanism = SampledSteps(sigma=sigma, sensitivity=CLIP_STEPS, rate=1, steps=settings.steps)

    def gradients() -> UnitGradients:
        whole, rule = load()
        return UnitGradients(whole, rule, settings.clip, data.units())

    def reading(noisy: Sequence[Any], confidence: Fraction) -> dict[str, NDArray[Any]]:
        del confidence  # a descent has no intervals
        return {"weights": np.asarray(noisy[0], dtype=np.float64)}

    return FitSteps(
        {**asdict(settings), "per_unit": data.per_unit, **said},
        gradients,
        (
            Step(
                mechanism,
                lambda held, _: GradientDescent(settings, held),
                {"statistic": "sums of clipped gradients"},
            ),
        ),
        reading,
    )
