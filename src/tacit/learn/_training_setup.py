"""The setup of training: model, loss, optimizer and where they run, as a plan keeps them."""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import torch

from tacit.learn._clipped_sums import ClippedSums
from tacit.learn._training_question import (
    callable_document,
    model_document,
    optimizer_document,
    tensors_digest,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor, nn

    from tacit.core import JSON
    from tacit.learn._block_slots import BlockSlots
    from tacit.learn._training_settings import TrainingSettings


@dataclass(frozen=True, slots=True)
class Augmentation:
    """Several random variants of each example, whose gradients are averaged before the clip.

    Guarantee: the cost is that of training without it, because the clip is applied to the mean over all
    variants of a unit's examples.

    Parameters
    ----------
    function
        Takes the inputs of one example and returns a random variant of them, with the same shapes.
    times
        How many variants each example has in a step.

    Examples
    --------
    >>> Augmentation(lambda image: image + 0.1 * torch.randn_like(image), times=4).times
    4
    """

    function: Callable[..., Any]
    times: int

    def document(self) -> JSON:
        """Return what identifies it."""
        return [callable_document(self.function), self.times]

    def __call__(self, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Return variants of each example, those of one example together; no example sees another."""
        repeated = tuple(one.repeat_interleave(self.times, 0) for one in inputs)
        made = torch.func.vmap(self.function, randomness="different")(*repeated)
        return made if isinstance(made, tuple) else (made,)


@dataclass(frozen=True, slots=True, eq=False)
class TrainingSetup:
    """What a plan keeps of a training run: copies of model and optimizer as they were given, and settings.

    Parameters
    ----------
    inputs
        How many of the dataset's arrays the model takes; the others go to the loss.
    physical
        How many units are computed at once: a block that is not full has empty slots.
    schedule
        By what the optimizer's learning rates are multiplied in each step.
    watch
        Public inputs and targets, whose loss may be shown.
    shared
        Whether several processes compute the sums.
    slots
        How units are packed into blocks of `physical` slots, as the tests at plan time found.
    """

    model: nn.Module
    loss: Any
    optimizer: torch.optim.Optimizer
    settings: TrainingSettings
    per_unit: int
    inputs: int
    physical: int
    device: torch.device
    compile: bool = False
    augment: Augmentation | None = None
    schedule: tuple[float, ...] = ()
    watch: tuple[Tensor, ...] = ()
    shared: bool = False
    slots: BlockSlots | None = None

    @property
    def names(self) -> list[str]:
        """The parameters that are trained; tied ones once."""
        return [name for name, one in self.model.named_parameters() if one.requires_grad]

    @property
    def size(self) -> int:
        """How many numbers are trained."""
        return sum(one.numel() for one in self.model.parameters() if one.requires_grad)

    def clipped_sums(self, model: nn.Module) -> ClippedSums:
        """Return what computes the clipped sums of a model."""
        settings = self.settings
        sums = ClippedSums(
            model,
            self.loss,
            clip=float(settings.clip if isinstance(settings.clip, Fraction) else 1),
            per_unit=self.per_unit * (1 if self.augment is None else self.augment.times),
            precision=settings.precision,
            automatic=settings.clip == "automatic",
        )
        sums.strict = True
        return sums.compiled() if self.compile else sums

    def start(self) -> tuple[nn.Module, torch.optim.Optimizer]:
        """Return a fresh model and its optimizer on the device, as they were given."""
        model, optimizer = copy.deepcopy((self.model, self.optimizer))
        model.to(self.device)
        optimizer.load_state_dict(optimizer.state_dict())  # moves the state to where the parameters are
        return model, optimizer

    def document(self) -> dict[str, JSON]:
        """Return what identifies the training; how fast it runs is no part of it."""
        return {
            "model": model_document(self.model),
            "loss": callable_document(self.loss),
            "optimizer": optimizer_document(self.optimizer),
            "settings": self.settings.to_json(),
            "per_unit": self.per_unit,
            "inputs": self.inputs,
            "augment": None if self.augment is None else self.augment.document(),
            "schedule": [repr(factor) for factor in self.schedule],
            "watch": tensors_digest((str(place), one) for place, one in enumerate(self.watch)),
        }  # fmt: skip


def tensor_of(array: Any) -> Tensor:
    """Return an array as a tensor that shares its memory; a file that is mapped for reading will do."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*not writable", category=UserWarning)
        return torch.as_tensor(array)


def as_model_input(values: Tensor, dtype: torch.dtype) -> Tensor:
    """Return values as a model takes them: numbers in its precision, whole numbers with 64 bits.

    Bytes and truth values stay as they are.
    """
    if values.is_floating_point():
        return values.to(dtype)
    return values if values.dtype in {torch.uint8, torch.bool} else values.long()
