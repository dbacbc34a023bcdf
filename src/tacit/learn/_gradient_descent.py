"""Gradient descent on noisy sums: momentum, and the mean of the weights over the second half of the steps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.learn._unit_gradients import CLIP_STEPS, UnitGradients

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
