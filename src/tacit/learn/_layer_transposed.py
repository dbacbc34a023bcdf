"""Transposed convolutions: convolutions in which input and output have changed places."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import torch

from tacit.learn._layer_book import apply_layer
from tacit.learn._layer_convolution import ConvolutionJob, ConvolutionShape, each_axis
from tacit.learn._precision import autocast_dtype, without_autocast

if TYPE_CHECKING:
    from torch import Tensor

    from tacit.learn._layer_book import LayerBook

_TRANSPOSED: Final = True


class TransposedLayer(torch.autograd.Function):
    """A transposed convolution; the gradient of its input is a plain convolution."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        anchor: Tensor,
        steps: ConvolutionShape,
        extra: tuple[int, ...],
        record: Any,
    ) -> Tensor:
        """Apply the layer."""
        ctx.save_for_backward(x, weight)
        ctx.steps, ctx.record = steps, record
        out: Tensor = torch.ops.aten.convolution(
            x, weight, bias, steps.stride, steps.padding, steps.dilation, _TRANSPOSED, extra, steps.groups
        )
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Return the input's gradient and record the job."""
        x, weight = ctx.saved_tensors
        ctx.record(x.detach(), grad)
        inner = ctx.steps.apply(grad, weight, None) if ctx.needs_input_grad[0] else None
        return inner, None, None, None, None, None, None


def use_transposed_convolution(
    book: LayerBook,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Any:
    """Apply a transposed convolution whose weight or offset is trained."""
    number, offset = book.number(weight), book.number(bias)
    if (number is None and offset is None) or x.dim() != weight.dim():
        return NotImplemented
    for which, value in ((number, weight), (offset, bias)):
        if which is None and value is not None and value.requires_grad:
            return NotImplemented
    dims = weight.dim() - 2
    stride, padding, dilation, extra = (
        each_axis(value, dims) for value in (stride, padding, dilation, output_padding)
    )
    steps = ConvolutionShape(stride, padding, dilation, groups)
    x, layout = book.place(number if number is not None else offset, x, features=dims + 1)  # type: ignore[arg-type]
    if layout.axis:
        return NotImplemented
    book.expect(number, offset)

    def record(x: Tensor, grad: Tensor) -> None:
        if number is not None:  # seen from the output, the layer is a convolution that gives the input
            book.record(number, ConvolutionJob(grad, x, weight.detach(), steps, book.units))
        if offset is not None:
            book.record_gradients(offset, grad.flatten(2).sum(2, dtype=torch.float32))

    dtype = autocast_dtype(x)
    values = [x, weight.detach(), None if bias is None else bias.detach()]
    if dtype is not None:
        values = [value if value is None else value.to(dtype) for value in values]
    with without_autocast(x):
        return apply_layer(TransposedLayer, *values, book.anchor, steps, extra, record)
