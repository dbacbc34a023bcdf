"""Convolutions in one, two and three dimensions.

Transposed convolutions are convolutions in which input and output have changed places.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import torch
from torch.nn import functional

from tacit.learn.layers._bookkeeping import (
    MAX_ELEMENTS,
    HeldGradients,
    apply_layer,
    gram_squares,
    joined,
    scaled,
    squared_norms,
)
from tacit.learn.layers._kernels import (
    RoundedConvolution,
    autocast_dtype,
    rounded_convolution,
    without_autocast,
)

if TYPE_CHECKING:
    from torch import Tensor

    from tacit.learn.layers._bookkeeping import LayerBook


_FORWARD: Final = False  # and not transposed
#: Gradients of units are kept for the sum when they have at most this many elements together.
MAX_KEPT: Final = 2**24


@dataclass(frozen=True)
class ConvolutionShape:
    """How a convolution steps through its input; the same for every example."""

    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int

    def apply(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Return the output."""
        zeros = [0] * len(self.stride)
        out: Tensor = torch.ops.aten.convolution(
            x, weight, bias, self.stride, self.padding, self.dilation, _FORWARD, zeros, self.groups
        )
        return out

    def backward(self, grad: Tensor, x: Tensor, weight: Tensor, *, of_input: bool) -> Tensor:
        """Return the gradient of the input, or of the weight summed over the batch."""
        zeros = [0] * len(self.stride)
        gradients = torch.ops.aten.convolution_backward(
            grad, x, weight, None, self.stride, self.padding, self.dilation, _FORWARD, zeros, self.groups,
            [of_input, not of_input, False],
        )  # fmt: skip
        return gradients[0] if of_input else gradients[1]  # type: ignore[no-any-return]

    def patches(self, x: Tensor, weight: torch.Size) -> Tensor:
        """Return what each output position sees: (examples, groups, channels x taps, positions)."""
        dims = len(self.stride)
        x = functional.pad(x, [side for pad in reversed(self.padding) for side in (pad, pad)])
        for axis in range(dims):
            reach = self.dilation[axis] * (weight[2 + axis] - 1) + 1
            x = x.unfold(2 + axis, reach, self.stride[axis])
            if self.dilation[axis] > 1:
                x = x[..., :: self.dilation[axis]]
        order = [0, 1, *range(2 + dims, 2 + 2 * dims), *range(2, 2 + dims)]
        positions = math.prod(x.shape[2 : 2 + dims])
        return x.permute(order).reshape(x.shape[0], self.groups, -1, positions)


@dataclass
class ConvolutionJob:
    """The gradient of a convolution's weight: each output position adds one outer product."""

    x: Tensor
    grad: Tensor
    weight: Tensor
    steps: ConvolutionShape
    units: int
    kept: Tensor | None = None
    rounded: RoundedConvolution | None = None

    def _depthwise(self) -> Tensor:
        """Return the gradients of a convolution that acts on each channel alone, tap by tap."""
        steps, sides = self.steps, self.weight.shape[2:]
        padding = [side for pad in reversed(steps.padding) for side in (pad, pad)]
        x = functional.pad(self.x, padding).float()
        outer = self.grad.float()
        axes = tuple(range(2, x.dim()))
        taps = []
        for tap in itertools.product(*(range(side) for side in sides)):
            view = x
            for axis, offset in enumerate(tap):
                start, length = offset * steps.dilation[axis], outer.shape[2 + axis]
                end = start + (length - 1) * steps.stride[axis] + 1
                view = view.narrow(2 + axis, start, end - start)
                if steps.stride[axis] > 1:
                    view = view[(slice(None),) * (2 + axis) + (slice(None, None, steps.stride[axis]),)]
            taps.append((view * outer).sum(axes))
        values = torch.stack(taps, -1)
        return values.reshape(self.units, -1, *self.weight.shape).sum(1)

    def squares(self) -> Tensor:
        """Return the squared norms, in pieces of units so that the patches stay small."""
        self.rounded = rounded_convolution(self)
        if self.rounded is not None:
            self.x = self.grad = self.x.new_empty(0)
            return self.rounded.squares()
        if self.steps.groups == self.x.shape[1] == self.grad.shape[1] > 1:
            self.kept = self._depthwise()
            self.x = self.grad = self.x.new_empty(0)
            return squared_norms(self.kept)
        per_unit = self.x.shape[0] // self.units
        positions = self.grad[0, 0].numel() * per_unit
        outputs, inputs = self.grad.shape[1] // self.steps.groups, self.weight[0].numel()
        use_gram = positions * (inputs + outputs) <= inputs * outputs and self.steps.groups == 1
        small = self.weight.numel() * self.units <= MAX_KEPT
        keep = not use_gram and (small or self.weight.numel() <= self.grad[0].numel() * per_unit)
        step = max(1, MAX_ELEMENTS // (positions * inputs * self.steps.groups))
        norms, pieces = [], []
        for start in range(0, self.units, step):
            left, right = self._operands(start, min(start + step, self.units))
            if use_gram:
                norms.append(gram_squares(left[:, 0].mT, right[:, 0].mT))
                continue
            gradients = torch.matmul(right, left.mT).flatten(1)
            norms.append(squared_norms(gradients))
            if keep:
                pieces.append(gradients)
        if keep:
            self.kept = joined(pieces).reshape(-1, *self.weight.shape)
            self.x = self.grad = self.x.new_empty(0)
        return joined(norms)

    def _operands(self, start: int, end: int) -> tuple[Tensor, Tensor]:
        """Return patches and output gradients of some units: (units, groups, values, positions)."""
        per_unit = self.x.shape[0] // self.units
        x, grad = (value[start * per_unit : end * per_unit].float() for value in (self.x, self.grad))
        left = self.steps.patches(x, self.weight.shape)
        groups = self.steps.groups
        right = grad.reshape(grad.shape[0], groups, grad.shape[1] // groups, -1)
        if per_unit > 1:
            left, right = (
                value.reshape(end - start, per_unit, *value.shape[1:]).movedim(1, 3).flatten(3)
                for value in (left, right)
            )
        return left, right

    def total(self, factors: Tensor) -> Tensor:
        """Return the weighted sum: the gradient of the whole batch, with the output's gradient scaled."""
        if self.kept is not None:
            return HeldGradients(self.kept).total(factors)
        if self.rounded is not None:
            return self.rounded.total(factors)
        factors = factors.repeat_interleave(self.x.shape[0] // self.units)
        if self.x.numel() < self.grad.numel():
            x, grad = scaled(self.x, factors), self.grad
        else:
            x, grad = self.x, scaled(self.grad, factors)
        if not x.is_cuda:
            x, grad = x.float(), grad.float()
        return self.steps.backward(grad, x, self.weight.to(x.dtype), of_input=False).float()

    def gradients(self) -> Tensor:
        """Return the gradients, one for each unit."""
        if self.kept is not None:
            return self.kept
        left, right = self._operands(0, self.units)
        return torch.matmul(right, left.mT).reshape(self.units, *self.weight.shape)


class ConvolutionLayer(torch.autograd.Function):
    """A convolution with an optional offset for each output channel."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        anchor: Tensor,
        steps: ConvolutionShape,
        record: Any,
    ) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.steps, ctx.record = steps, record
        return steps.apply(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        ctx.record(x.detach(), grad)
        inner = ctx.steps.backward(grad, x, weight, of_input=True) if ctx.needs_input_grad[0] else None
        return inner, None, None, None, None, None


def use_convolution(
    book: LayerBook,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    """Apply a convolution whose weight or offset is trained."""
    number, offset = book.number(weight), book.number(bias)
    if (number is None and offset is None) or x.dim() != weight.dim():
        return NotImplemented
    for which, value in ((number, weight), (offset, bias)):
        if which is None and value is not None and value.requires_grad:
            return NotImplemented
    dims = weight.dim() - 2
    stride, dilation = each_axis(stride, dims), each_axis(dilation, dims)
    x, padding = _padded(x, weight, padding, dilation)
    steps = ConvolutionShape(stride, padding, dilation, groups)
    x, layout = book.place(number if number is not None else offset, x, features=dims + 1)  # type: ignore[arg-type]
    if layout.axis:
        return NotImplemented
    book.expect(number, offset)

    def record(x: Tensor, grad: Tensor) -> None:
        if number is not None:
            book.record(number, ConvolutionJob(x, grad, weight.detach(), steps, book.units))
        if offset is not None:
            book.record_gradients(offset, grad.flatten(2).sum(2, dtype=torch.float32))

    dtype = autocast_dtype(x)
    values = [x, weight.detach(), None if bias is None else bias.detach()]
    if dtype is not None:
        values = [value if value is None else value.to(dtype) for value in values]
    with without_autocast(x):
        return apply_layer(ConvolutionLayer, *values, book.anchor, steps, record)


def each_axis(value: Any, dims: int) -> tuple[int, ...]:
    """Return an option of a convolution for each axis."""
    return (int(value),) * dims if isinstance(value, int) else tuple(value) * (dims // len(value))


def _padded(
    x: Tensor, weight: Tensor, padding: Any, dilation: tuple[int, ...]
) -> tuple[Tensor, tuple[int, ...]]:
    """Return the input and the padding as numbers; uneven padding is put into the input."""
    dims = len(dilation)
    if padding == "valid":
        return x, (0,) * dims
    if padding != "same":
        return x, each_axis(padding, dims)
    reach = [step * (side - 1) for step, side in zip(dilation, weight.shape[2:], strict=True)]
    if all(total % 2 == 0 for total in reach):
        return x, tuple(total // 2 for total in reach)
    sides = [part for total in reversed(reach) for part in (total // 2, total - total // 2)]
    return functional.pad(x, sides), (0,) * dims


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
