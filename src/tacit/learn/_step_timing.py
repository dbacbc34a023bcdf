"""The timing of training steps on invented examples: how long a training run will take."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from tacit.learn._layer_trial import invented
from tacit.learn._model_sums import ModelSums
from tacit.learn._training_setup import tensor_of
from tacit.learn._training_steps import TrainingSteps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.learn._training_setup import TrainingSetup


def seconds_per_step(setup: TrainingSetup, arrays: Sequence[Any], steps: int, warm: int) -> float:
    """Take steps as in training, with sample and noise, on invented examples; return the seconds for each.

    There are as many units as declared. They share few examples, so that these fit into memory.
    """
    few = setup.physical * setup.per_unit
    shapes = tuple(tensor_of(one[:0]) for one in arrays)
    held = [one.to(given.device) for one, given in zip(invented(shapes, few), shapes, strict=True)]
    rows = np.arange(setup.settings.size * setup.per_unit).reshape(-1, setup.per_unit) % few
    sums = ModelSums(setup, held, rows)
    bound, rate = setup.settings.bound, setup.settings.rate
    mechanism = TrainingSteps(sigma=bound, sensitivity=bound, rate=rate, steps=1)  # any noise takes as long
    began = 0.0
    for step in range(-warm, steps):
        if not step:
            _wait(setup.device)
            began = time.perf_counter()
        sums.taken = 0  # a schedule may be shorter than the timing
        sums.update(mechanism.noisy(sums.sums(mechanism.draw(sums.units))))
    _wait(setup.device)
    return (time.perf_counter() - began) / steps


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
