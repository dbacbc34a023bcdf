"""Rules: which PyTorch function, called with a trained parameter, is replaced by which layer.

The rules act on functions and not on modules. So a linear layer is recognised wherever it is called: in
`torch.nn.Linear`, in an adapter, in a Hugging Face model or in a functional call. A parameter that reaches
any other function keeps its ordinary gradient, and that is how the step notices a use that no rule covers.

Parameters that act element by element are here too: scales, offsets, learned positions, tokens and slopes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from tacit.learn.layers._bookkeeping import apply_layer
from tacit.learn.layers._convolutions import use_convolution, use_transposed_convolution
from tacit.learn.layers._linear import (
    use_addmm,
    use_attention,
    use_embedding,
    use_gru,
    use_gru_cell,
    use_linear,
    use_lstm,
    use_lstm_cell,
    use_matmul,
    use_rnn_relu,
    use_rnn_relu_cell,
    use_rnn_tanh,
    use_rnn_tanh_cell,
)
from tacit.learn.layers._normalisation import (
    use_batch_norm,
    use_group_norm,
    use_instance_norm,
    use_layer_norm,
    use_rms_norm,
)
from tacit.learn.layers._total_functions import call_totally

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from tacit.learn.layers._bookkeeping import BatchLayout, LayerBook


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
    operand = _against(book, weight, x)
    return NotImplemented if operand is None else torch.mul(operand, weight)


def use_add(book: LayerBook, x: Any, weight: Any, *, alpha: float = 1) -> Any:
    """Add a trained offset."""
    right = _against(book, x, weight)
    if right is not None:
        return torch.add(x, right, alpha=alpha)
    operand = _against(book, weight, x)
    return NotImplemented if operand is None else torch.add(operand, weight, alpha=alpha)


def use_subtract(book: LayerBook, x: Any, weight: Any, *, alpha: float = 1) -> Any:
    """Subtract a trained offset."""
    right = _against(book, x, weight)
    if right is not None:
        return torch.sub(x, right, alpha=alpha)
    operand = _against(book, weight, x)
    return NotImplemented if operand is None else torch.sub(operand, weight, alpha=alpha)


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


#: A rule takes the book and the function's own arguments; it may decline by returning `NotImplemented`.
RULES: dict[Any, Callable[..., Any]] = {
    functional.linear: use_linear,
    functional.embedding: use_embedding,
    functional.layer_norm: use_layer_norm,
    functional.rms_norm: use_rms_norm,
    functional.group_norm: use_group_norm,
    functional.instance_norm: use_instance_norm,
    functional.batch_norm: use_batch_norm,
    functional.multi_head_attention_forward: use_attention,
    torch.addmm: use_addmm,
    torch.conv1d: use_convolution,
    torch.conv2d: use_convolution,
    torch.conv3d: use_convolution,
    torch.conv_transpose1d: use_transposed_convolution,
    torch.conv_transpose2d: use_transposed_convolution,
    torch.conv_transpose3d: use_transposed_convolution,
    torch.lstm: use_lstm,
    torch.gru: use_gru,
    torch.rnn_tanh: use_rnn_tanh,
    torch.rnn_relu: use_rnn_relu,
    torch.lstm_cell: use_lstm_cell,
    torch.gru_cell: use_gru_cell,
    torch.rnn_tanh_cell: use_rnn_tanh_cell,
    torch.rnn_relu_cell: use_rnn_relu_cell,
    torch.add: use_add,
    torch.Tensor.add: use_add,
    torch.sub: use_subtract,
    torch.Tensor.sub: use_subtract,
    torch.mul: use_multiply,
    torch.Tensor.mul: use_multiply,
    torch.Tensor.expand: use_expand,
    torch.prelu: use_prelu,
    torch.matmul: use_matmul,
    torch.Tensor.matmul: use_matmul,
    torch.Tensor.__matmul__: use_matmul,
}


class LayerRules(TorchFunctionMode):
    """Inside this block, PyTorch functions that take trained parameters follow the rules."""

    def __init__(self, book: LayerBook) -> None:
        super().__init__()
        self.book = book

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Follow the rule of a function if it has one."""
        rule = RULES.get(func)

        def call(*args: Any, **options: Any) -> Any:
            if rule is not None:
                output = rule(self.book, *args, **_renamed(options))
                if output is not NotImplemented:
                    return output
            return func(*args, **options)

        return call_totally(call, func, args, kwargs or {})


def _renamed(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """Return keyword arguments under the names that the rules use."""
    names = {"input": "x", "mat1": "x", "mat2": "weight", "other": "weight"}
    return {names.get(name, name): value for name, value in (kwargs or {}).items()}
