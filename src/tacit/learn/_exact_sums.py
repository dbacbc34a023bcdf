"""Clipped sums by the definition: the gradient of every unit, then its norm, then the sum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from tacit.learn._clipped_step import clip_factors, gradients
from tacit.learn._precision import computing, norm_margin
from tacit.learn._total_functions import TotalFunctions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from tacit.learn._clipped_step import ClippedStep, Tensors


def unit_gradients(
    step: ClippedStep,
    parameters: Sequence[Tensor],
    inputs: Tensors,
    targets: Tensors,
    weights: Tensor,
    *,
    together: bool | None = None,
) -> list[Tensor]:
    """Return the gradient of each unit, from `vmap` where the model allows it and one by one elsewhere.

    With `together` one of the two is chosen: then a unit on which `vmap` fails cannot change how others are
    computed.
    """
    units = len(weights) // step.per_unit
    inputs, targets = (tuple(v.reshape(units, -1, *v.shape[1:]) for v in part) for part in (inputs, targets))
    weights = weights.reshape(units, -1)
    each = torch.func.vmap(
        torch.func.grad(_unit_loss(step)),
        in_dims=(None, 0, 0, 0),
        randomness="different",
        chunk_size=max(1, min(units, 2**27 // max(1, sum(p.numel() for p in parameters)))),
    )
    try:
        if together is not False:
            return list(each(tuple(p.detach() for p in parameters), inputs, targets, weights))
    except (RuntimeError, ValueError, NotImplementedError, TypeError):
        if together:
            raise
    found = [  # of fresh copies: kernels may round by where in memory an example lies
        _gradient_alone(
            step, parameters, tuple(v[i].clone() for v in inputs), tuple(v[i].clone() for v in targets),
            weights[i].clone(),
        )
        for i in range(units)
    ]  # fmt: skip
    return [torch.stack(values) for values in zip(*found, strict=True)]


@torch.enable_grad()
def _gradient_alone(
    step: ClippedStep, parameters: Sequence[Tensor], inputs: Tensors, targets: Tensors, weights: Tensor
) -> list[Tensor]:
    """Return the gradient of one unit by an ordinary backward pass, which every model can do."""
    with TotalFunctions():
        with torch.autocast(weights.device.type, dtype=torch.bfloat16, enabled=step.precision == "bfloat16"):
            outputs = step.model(*inputs)
        total = (step.losses(outputs, *targets).float() * weights).sum()
    found = gradients(total, parameters)
    return [torch.zeros_like(p) if g is None else g for g, p in zip(found, parameters, strict=True)]


def _unit_loss(step: ClippedStep) -> Callable[..., Any]:
    mixed = step.precision == "bfloat16"

    def loss(parameters: Tensors, inputs: Tensors, targets: Tensors, weights: Tensor) -> Tensor:
        values = dict(zip(step.names, parameters, strict=True))
        with TotalFunctions():
            with torch.autocast(weights.device.type, dtype=torch.bfloat16, enabled=mixed):
                outputs = torch.func.functional_call(step.model, values, inputs)
            return (step.losses(outputs, *targets).float() * weights).sum()

    return loss


def exact_sums(
    step: ClippedStep,
    parameters: Sequence[Tensor],
    inputs: Tensors,
    targets: Tensors,
    weights: Tensor,
    clip: Tensor,
    *,
    together: bool | None = None,
) -> tuple[list[Tensor], Tensor]:
    """Return clipped sums and norms by the definition; a unit whose gradient is not finite adds zero."""
    with computing(step.precision, parameters[0].device):
        found = unit_gradients(step, parameters, inputs, targets, weights, together=together)
        norms = torch.stack([v.reshape(len(v), -1).float().square().sum(1) for v in found]).sum(0).sqrt()
        factors = clip_factors(norms, clip / (1 + norm_margin(step.precision)), automatic=step.automatic)
        sums = [_weighted(values.float(), factors, norms.isfinite()) for values in found]
    return sums, norms


def _weighted(values: Tensor, factors: Tensor, finite: Tensor) -> Tensor:
    shape = (-1,) + (1,) * (values.dim() - 1)
    values = torch.where(finite.reshape(shape), values, torch.zeros_like(values))
    return (factors @ values.reshape(len(values), -1)).reshape(values.shape[1:])
