"""The check of a model before a training is planned: on invented examples, so that no refusal needs data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from tacit.errors import TacitError
from tacit.fixes import Code, Say
from tacit.learn._layer_trial import invented
from tacit.learn._training_setup import as_model_input

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from tacit.learn._training_setup import TrainingSetup

__all__ = ["check_model"]

_EXAMPLES = 4


def check_model(setup: TrainingSetup, arrays: Sequence[Any]) -> None:
    """Refuse a model, a loss or an augmentation that could not be trained privately on such examples.

    Only the types and the shapes of single examples are read, which are public.
    """
    model, _ = setup.start()
    sums = setup.clipped_sums(model)
    dtype = next(model.parameters()).dtype
    shapes = tuple(as_model_input(torch.as_tensor(one[:0]), dtype).to(setup.device) for one in arrays)
    inputs, targets = shapes[: setup.inputs], shapes[setup.inputs :]
    try:
        if setup.augment is not None:
            inputs = _augmented(setup, inputs)
        sums.prepare(inputs, targets)
        output = model(*invented(inputs, _EXAMPLES))
        total = sums.step.losses(output, *invented(targets, _EXAMPLES, 1)).sum()
        found: tuple[Tensor | None, ...] = torch.autograd.grad(total, sums.parameters, allow_unused=True)
    except TacitError:
        raise
    except Exception as error:
        raise TacitError(
            "bad-parameter",
            "the model or the loss fails on invented examples of the dataset's shapes",
            why=f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0][:200]}",
            fix=Say("try the model and the loss on tensors of zeros with these shapes"),
        ) from error
    unused = [name for name, one in zip(setup.names, found, strict=True) if one is None]
    if unused:
        raise TacitError(
            "bad-parameter",
            f"the model does not use the parameter {unused[0]}, which is to be trained",
            why="it would be moved by noise alone",
            fix=Code("parameter.requires_grad_(False)"),
        )


def _augmented(setup: TrainingSetup, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Return the inputs of the model as the augmentation makes them."""
    assert setup.augment is not None  # noqa: S101 - the caller looked
    given = invented(inputs, _EXAMPLES)
    made = setup.augment(given)
    expected = [(len(one) * setup.augment.times, *one.shape[1:]) for one in given]
    if [tuple(one.shape) for one in made] != expected:
        raise TacitError(
            "bad-parameter",
            "the augmentation changes the number or the shapes of the inputs",
            fix=Say("return as many tensors as it takes, each with its shape"),
        )
    return tuple(one[:0] for one in made)
