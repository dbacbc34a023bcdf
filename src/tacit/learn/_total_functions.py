"""Total functions: look-ups and losses that fail on a number out of their range give "not a number" instead.

On a graphics card such a failure ends the whole process. A unit whose gradient is not a number adds zero, so
a label that a loss does not know, or a word that a table does not have, counts as nothing and ends nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from tacit.learn._total_lookups import TOTAL_LOOKUPS, nan_where, outside

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

_LOSS_OPTIONS = ("weight", "size_average", "ignore_index", "reduce", "reduction")


def call_totally(call: Callable[..., Any], func: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Call a function of PyTorch, or what stands for it, so that no number of an example makes it fail.

    Examples
    --------
    >>> given = torch.tensor([1, 9]), torch.eye(3)
    >>> call_totally(functional.embedding, functional.embedding, given, {})
    tensor([[0., 1., 0.],
            [nan, nan, nan]])
    """
    total = _TOTAL.get(func)
    return call(*args, **options) if total is None else total(call, *args, **options)


def _embedding(call: Callable[..., Any], input: Tensor, weight: Tensor, *rest: Any, **options: Any) -> Any:  # noqa: A002
    """Look up rows; one that the table does not have is not a number."""
    strange = outside(input, weight.shape[0])
    found = call(input.masked_fill(strange, 0), weight, *rest, **options)
    return found.masked_fill(strange.unsqueeze(-1), torch.nan)


def _class_loss(call: Callable[..., Any], input: Tensor, target: Tensor, *rest: Any, **options: Any) -> Any:  # noqa: A002
    """Compute losses of classes; one that does not exist has a loss that is not a number."""
    options = {**dict(zip(_LOSS_OPTIONS, rest, strict=False)), **options}
    if target.is_floating_point() or input.dim() < 2 or options.get("reduction") != "none":
        return call(input, target, **options)
    ignored = options.get("ignore_index", -100)
    strange = outside(target, input.shape[1]) & (target != ignored)
    return nan_where(call(input, target.masked_fill(strange, 0), **options), strange)


def _margin_loss(call: Callable[..., Any], input: Tensor, target: Tensor, *rest: Any, **options: Any) -> Any:  # noqa: A002
    """Compute margins of classes; one that does not exist has a loss that is not a number."""
    strange = outside(target, input.shape[-1])
    losses = call(input, target.masked_fill(strange, 0), *rest, **options)
    return nan_where(losses, strange) if losses.shape == target.shape else losses


def _chance_loss(
    call: Callable[..., Any],
    input: Tensor,  # noqa: A002
    target: Tensor,
    weight: Tensor | None = None,
    *rest: Any,
    **options: Any,
) -> Any:
    """Compute losses of chances; what is not between 0 and 1 has a loss that is not a number."""
    strange = ~((input >= 0) & (input <= 1))
    losses = call(input.masked_fill(strange, 0.5), target, weight, *rest, **options)
    return nan_where(losses, strange) if losses.shape == input.shape else losses


_TOTAL: dict[Any, Callable[..., Any]] = {
    functional.embedding: _embedding,
    functional.cross_entropy: _class_loss,
    functional.nll_loss: _class_loss,
    functional.multi_margin_loss: _margin_loss,
    functional.binary_cross_entropy: _chance_loss,
    **TOTAL_LOOKUPS,
}


class TotalFunctions(TorchFunctionMode):
    """Inside this block, functions that could fail on a number of an example give "not a number"."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call the function."""
        return call_totally(func, func, args, kwargs or {})
