"""The fit of a linear model by noisy gradient descent: settings, mechanism and reading, in learning."""

from __future__ import annotations

import math
from dataclasses import asdict
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.core import Step
from tacit.exact import count, rational
from tacit.learn._declared_bounds import refuse_wide
from tacit.learn._fit_noise import share_of_noise
from tacit.learn._fit_steps import FitSteps
from tacit.learn._gradient_descent import DescentSettings, GradientDescent
from tacit.learn._unit_gradients import CLIP_STEPS, UnitGradients
from tacit.mechanisms import SampledSteps
from tacit.parameters import RealNumber

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from tacit.core import JSON
    from tacit.learn._examples import Examples
    from tacit.learn._unit_gradients import ResidualRule


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
