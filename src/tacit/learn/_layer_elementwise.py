"""Parameters that act element by element: scales, offsets, learned positions, tokens and slopes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from tacit.learn._layer_book import apply_layer

if TYPE_CHECKING:
    from torch import Tensor

    from tacit.learn._layer_book import BatchLayout, LayerBook


class RepeatedParameter(torch.autograd.Function):
    """A parameter, once for each example: its gradient is that of each example."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, anchor: Tensor, shape: tuple[int, ...], record: Any) -> Tensor:
        """Repeat the parameter."""
        ctx.record = record
        return value.expand(shape).clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, ...]:
        """Record the gradients; the parameter itself receives none."""
        ctx.record(grad)
        return None, None, None, None


def _repeated(book: LayerBook, number: int, parameter: Tensor, layout: BatchLayout, dims: int) -> Tensor:
    """Return a parameter with an axis for the examples, which broadcasts as the parameter itself would.

    `dims` is the number of axes of the other operand.
    """
    shape = [1] * (dims - parameter.dim()) + list(parameter.shape)
    inner = list(shape)
    inner[layout.axis] = book.examples
    book.expect(number)

    def record(grad: Tensor) -> None:
        book.record_gradients(number, grad.movedim(layout.axis, 0))

    value = parameter.detach().reshape(shape)
    return apply_layer(RepeatedParameter, value, book.anchor, tuple(inner), record)


def _against(book: LayerBook, other: object, parameter: object) -> Tensor | None:
    """Return a trained parameter repeated for the examples of the other operand, or nothing."""
    number = book.number(parameter)
    if number is None or not isinstance(other, torch.Tensor) or book.number(other) is not None:
        return None
    assert isinstance(parameter, torch.Tensor)  # noqa: S101
    if other.dim() < parameter.dim() or other.dim() == 0:
        return None
    layout = book.place(number, other, features=0)[1]
    covered = layout.axis - (other.dim() - parameter.dim())
    if layout.kind != "batch" or (covered >= 0 and parameter.shape[covered] != 1):
        return None
    return _repeated(book, number, parameter, layout, other.dim())


def use_multiply(book: LayerBook, x: Any, weight: Any) -> Any:
    """Multiply by a trained scale."""
    right = _against(book, x, weight)
    if right is not None:
        return torch.mul(x, right)
    left = _against(book, weight, x)
    return NotImplemented if left is None else torch.mul(left, weight)


def use_add(book: LayerBook, x: Any, weight: Any, *, alpha: float = 1) -> Any:
    """Add a trained offset."""
    right = _against(book, x, weight)
    if right is not None:
        return torch.add(x, right, alpha=alpha)
    left = _against(book, weight, x)
    return NotImplemented if left is None else torch.add(left, weight, alpha=alpha)


def use_subtract(book: LayerBook, x: Any, weight: Any, *, alpha: float = 1) -> Any:
    """Subtract a trained offset."""
    right = _against(book, x, weight)
    if right is not None:
        return torch.sub(x, right, alpha=alpha)
    left = _against(book, weight, x)
    return NotImplemented if left is None else torch.sub(left, weight, alpha=alpha)


def use_expand(book: LayerBook, x: Tensor, *sizes: Any) -> Any:
    """Repeat a trained token for every example, as vision transformers do."""
    number = book.number(x)
    shape = list(sizes[0] if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes)
    if number is None or len(shape) != x.dim() or x.shape[0] != 1:
        return NotImplemented
    shape = [old if new == -1 else new for old, new in zip(x.shape, shape, strict=True)]
    layout = book.place(number, torch.empty(shape, device="meta"), features=len(shape) - 1)[1]
    if layout.kind != "batch" or layout.axis != 0 or shape[1:] != list(x.shape[1:]):
        return NotImplemented
    return _repeated(book, number, x, layout, x.dim())


def use_prelu(book: LayerBook, x: Tensor, weight: Tensor) -> Any:
    """Apply trained slopes to negative values."""
    number = book.number(weight)
    if number is None or x.dim() < 2:
        return NotImplemented
    shaped = weight.detach().reshape((-1,) + (1,) * (x.dim() - 2))
    layout = book.place(number, x, features=x.dim() - 1)[1]
    if layout.kind != "batch":
        return NotImplemented
    book.expect(number)

    def record(grad: Tensor) -> None:
        book.record_gradients(number, grad.reshape(book.examples, -1))

    shape = (book.examples, *shaped.shape)
    slopes = apply_layer(RepeatedParameter, shaped.unsqueeze(0), book.anchor, shape, record)
    return functional.relu(x) - slopes * functional.relu(-x)
