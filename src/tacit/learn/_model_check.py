"""The check of a model before training is planned: on invented examples, so that no refusal needs data."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Code, Say
from tacit.learn._layer_trial import invented
from tacit.learn._slot_test import find_slots
from tacit.learn._step_check import CheckedOptimizer
from tacit.learn._training_setup import as_model_input, tensor_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor, nn

    from tacit.learn._clipped_sums import ClippedSums
    from tacit.learn._training_setup import TrainingSetup

_EXAMPLES = 4


def _examples_in_words(arrays: Sequence[Any]) -> str:
    """Return the shape and the type of one example of each array; both are public."""
    held = [one if hasattr(one, "dtype") else np.asarray(one) for one in arrays]
    return ", ".join(f"{' x '.join(map(str, one.shape[1:])) or 'one'} of {one.dtype}" for one in held)


def check_model(setup: TrainingSetup, arrays: Sequence[Any]) -> TrainingSetup:
    """Refuse what could not be trained privately on such examples; return the setup with its slots.

    Only the types and the shapes of single examples are read, which are public.
    """
    model, optimizer = setup.start()
    sums = setup.clipped_sums(model)
    dtype = next(model.parameters()).dtype
    try:
        shapes = tuple(as_model_input(tensor_of(one[:0]), dtype).to(setup.device) for one in arrays)
        inputs, targets = shapes[: setup.inputs], shapes[setup.inputs :]
        if setup.augment is not None:
            inputs = _augmented(setup, inputs)
        if sums.prepare(inputs, targets) is None:
            _try_exactly(sums, inputs, targets)
        slots = find_slots(sums, inputs, targets, setup.physical)
        output = model(*invented(inputs, _EXAMPLES))
        labels = invented(targets, _EXAMPLES, 1, targets=True, labels=sums.step.labels)
        total = sums.step.losses(output, *labels).sum()
        found: tuple[Tensor | None, ...] = torch.autograd.grad(total, sums.parameters, allow_unused=True)
    except TacitError:
        raise
    except Exception as error:
        raise TacitError(
            "bad-parameter",
            "the model or the loss fails on invented examples of the dataset's shapes",
            why=f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0][:200]}",
            fix=Say(f"try the model and the loss on tensors like one example: {_examples_in_words(arrays)}"),
        ) from error
    unused = [name for name, one in zip(setup.names, found, strict=True) if one is None]
    if unused:
        raise TacitError(
            "bad-parameter",
            f"the model does not use the parameter {unused[0]}, which is to be trained",
            why="it would be moved by noise alone",
            fix=Code("parameter.requires_grad_(False)"),
        )
    _check_step(setup, model, optimizer)
    return replace(setup, physical=slots.size, slots=slots)


def _try_exactly(sums: ClippedSums, inputs: tuple[Tensor, ...], targets: tuple[Tensor, ...]) -> None:
    """Compute two units by the definition, so that a model that cannot do so fails before the charge."""
    size = 2 * sums.step.per_unit
    weights = torch.ones(size, device=sums.parameters[0].device)
    labels = invented(targets, size, 1, targets=True, labels=sums.step.labels)
    sums.exactly(invented(inputs, size), labels, weights)


def _check_step(setup: TrainingSetup, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Refuse an optimizer whose step on an invented gradient does not move the model as it says."""
    held = dict(model.named_parameters())
    try:
        CheckedOptimizer(model, optimizer).step(setup.names, [torch.ones_like(held[n]) for n in setup.names])
    except Exception as error:
        raise bad_parameter(
            "optimizer", "one that takes a step with one gradient", type(optimizer).__name__,
            why=f"its step on an invented gradient failed: {str(error).partition(chr(10))[0][:200]}",
            fix=Code("torch.optim.SGD(model.parameters(), lr=0.1)"),
        ) from error  # fmt: skip


def check_optimizer(model: nn.Module, optimizer: object) -> None:
    """Refuse an optimizer that does not hold exactly the parameters to be trained, or that looks back."""
    for module in model.modules():
        if isinstance(module, torch.nn.parallel.DistributedDataParallel | torch.nn.DataParallel):
            raise TacitError(
                "not-allowed",
                f"{type(module).__name__} wraps the model",
                why="it adds up gradients over devices before they are clipped",
                fix=Say("the model itself; on several processes, call release() of the trainer on each"),
            )
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise bad_parameter(
            "optimizer", "an optimizer of PyTorch", type(optimizer).__name__,
            fix=Code("torch.optim.SGD(model.parameters(), lr=0.1)"),
        )  # fmt: skip
    if isinstance(optimizer, torch.optim.LBFGS | torch.optim.SparseAdam):
        raise bad_parameter(
            "optimizer", "one that takes a step with one dense gradient", type(optimizer).__name__,
            why="each further gradient would need its own noise",
            fix=Code("torch.optim.Adam(model.parameters())"),
        )  # fmt: skip
    trained = {id(one): name for name, one in model.named_parameters() if one.requires_grad}
    held = {id(one) for group in optimizer.param_groups for one in group["params"] if one.requires_grad}
    missing = [name for key, name in trained.items() if key not in held]
    if not trained or missing or held - set(trained):
        what = (
            f"the optimizer does not hold {missing[0]}" if missing else "the optimizer holds other parameters"
        )
        raise TacitError(
            "bad-parameter",
            what if trained else "no parameter of the model is trained",
            why="a step must move exactly the parameters that got a noisy gradient",
            fix=Code("torch.optim.SGD((p for p in model.parameters() if p.requires_grad), lr=0.1)"),
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
