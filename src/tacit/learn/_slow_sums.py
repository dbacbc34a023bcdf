"""Clipped sums by one gradient for each unit (vmap): slow and exact."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.func import functional_call, grad, vmap

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor, nn

__all__ = ["SlowSums", "losses_of"]


def losses_of(loss: Any) -> Callable[..., Tensor]:
    """Return a loss that gives one value for each example."""
    import copy

    if hasattr(loss, "reduction"):
        loss = copy.copy(loss)
        loss.reduction = "none"

    def losses(output: Tensor, *targets: Tensor) -> Tensor:
        each: Tensor = loss(output, *targets)
        return each.flatten(1).mean(1) if each.dim() > 1 else each

    return losses


class SlowSums:
    """Sums of clipped gradients of units."""

    def __init__(self, model: nn.Module, loss: Any, *, clip: float, per_unit: int = 1, **_: Any) -> None:
        self._model, self._losses, self._clip, self._per = model, losses_of(loss), clip, per_unit
        self.names = [name for name, one in model.named_parameters() if one.requires_grad]

    @property
    def parameters(self) -> list[nn.Parameter]:
        own = dict(self._model.named_parameters())
        return [own[name] for name in self.names]

    def __call__(
        self, inputs: tuple[Tensor, ...], targets: tuple[Tensor, ...], weights: Tensor
    ) -> tuple[list[Tensor], Tensor]:
        own = {name: one.detach() for name, one in self._model.named_parameters() if one.requires_grad}
        per = self._per

        def unit_loss(weights_: Any, xs: Any, ys: Any, w: Tensor) -> Tensor:
            each = self._losses(functional_call(self._model, weights_, xs), *ys)
            return (each * w).sum()

        def blocks(ones: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            return tuple(one.reshape(-1, per, *one.shape[1:]) for one in ones)

        [w] = blocks((weights,))
        each = vmap(grad(unit_loss), in_dims=(None, 0, 0, 0), randomness="different")(
            own, blocks(inputs), blocks(targets), w
        )
        squares = sum(one.float().flatten(1).square().sum(1) for one in each.values())
        norms = torch.as_tensor(squares).sqrt()
        finite = norms.isfinite()
        scale = torch.where(finite, self._clip / norms.clamp(min=self._clip), 0.0)
        sums = []
        for name in self.names:
            one = each[name].float()
            shape = (-1, *[1] * (one.dim() - 1))
            sums.append((torch.where(finite.view(shape), one, 0.0) * scale.view(shape)).sum(0))
        return sums, norms
