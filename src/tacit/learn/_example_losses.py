"""Losses with one value for each example."""

from __future__ import annotations

import copy
import inspect
from typing import TYPE_CHECKING, Any

from torch import nn
from torch.nn import functional

from tacit.errors import TacitError
from tacit.fixes import Code

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor


def example_losses(loss: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return a loss that gives one value for each example.

    A loss module of PyTorch is copied with ``reduction="none"``, a loss function of PyTorch is called with
    it; values that remain for one example (the positions of a text, the pixels of an image) are averaged.
    Every other function must give one value for each example itself.

    Examples
    --------
    >>> import torch
    >>> loss = example_losses(torch.nn.MSELoss())
    >>> loss(torch.zeros(2, 3), torch.tensor([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]]))
    tensor([1., 0.])
    """
    options: dict[str, Any] = {}
    if isinstance(loss, nn.Module) and hasattr(loss, "reduction"):
        loss = copy.copy(loss)
        loss.__dict__["reduction"] = "none"
        if any(True for _ in loss.parameters()):
            raise TacitError(
                "not-allowed", "the loss has parameters of its own", fix="put them into the model"
            )
    elif getattr(loss, "__module__", "") == functional.__name__ and _reduces(loss):
        options = {"reduction": "none"}

    def one_for_each(outputs: Any, *targets: Tensor) -> Tensor:
        values = loss(outputs, *targets, **options)
        size = targets[0].shape[0] if targets else None
        if values.dim() == 0 or size not in (None, values.shape[0]):
            raise TacitError(
                "not-allowed",
                "the loss does not give one value for each example",
                why="a value that mixes examples has no separate gradient for each example",
                fix=Code('loss=torch.nn.CrossEntropyLoss(reduction="none")'),
            )
        return values.flatten(1).mean(1) if values.dim() > 1 else values

    return one_for_each


def _reduces(loss: Callable[..., Tensor]) -> bool:
    return "reduction" in inspect.signature(loss).parameters
