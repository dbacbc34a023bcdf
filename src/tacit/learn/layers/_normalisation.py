"""Normalisation inside an example: layer, group, instance and root-mean-square normalisation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from tacit.errors import TacitError
from tacit.fixes import Say
from tacit.learn.layers._bookkeeping import apply_layer
from tacit.learn.layers._kernels import autocast_dtype, without_autocast

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from tacit.learn.layers._bookkeeping import LayerBook


class LayerNormLayer(torch.autograd.Function):
    """Layer normalisation over the last axes."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        anchor: Tensor,
        shape: list[int],
        eps: float,
        record: Any,
    ) -> Tensor:
        out, mean, rstd = torch.native_layer_norm(x, shape, weight, bias, eps)
        ctx.save_for_backward(x, weight, bias, mean, rstd)
        ctx.shape, ctx.record = shape, record
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, bias, mean, rstd = ctx.saved_tensors
        ctx.record((x - mean) * rstd, grad)
        inner = None
        if ctx.needs_input_grad[0]:
            inner = torch.ops.aten.native_layer_norm_backward(
                grad, x, ctx.shape, mean, rstd, weight, bias, [True, False, False]
            )[0]
        return inner, None, None, None, None, None, None


def use_layer_norm(
    book: LayerBook,
    x: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Any:
    """Apply layer normalisation with a trained scale or offset."""
    numbers = _affine(book, weight, bias)
    if numbers is None:
        return NotImplemented
    x, record = _last_axes(book, x, numbers, len(normalized_shape))
    with without_autocast(x):
        return apply_layer(
            LayerNormLayer,
            x,
            _detached(weight),
            _detached(bias),
            book.anchor,
            list(normalized_shape),
            eps,
            record,
        )


def _last_axes(
    book: LayerBook, x: Tensor, numbers: tuple[int | None, int | None], features: int
) -> tuple[Tensor, Callable[[Tensor, Tensor], None]]:
    """Place the input of a layer whose scale and offset have the shape of its last axes."""
    number, offset = numbers
    x, layout = book.place(number if number is not None else offset, x, features=features)  # type: ignore[arg-type]
    if layout.kind == "shared":
        layout = layout._replace(kind="batch", axis=0)
    book.expect(number, offset)
    if autocast_dtype(x) is not None:
        x = x.float()

    def record(normal: Tensor, grad: Tensor) -> None:
        for which, values in ((number, normal), (offset, None)):
            if which is not None:
                product = grad if values is None else grad * values
                rows = book.rows(product.flatten(product.dim() - features), layout)
                book.record_gradients(which, rows.sum(1, dtype=torch.float32))

    return x, record


class RmsNormLayer(torch.autograd.Function):
    """Root-mean-square normalisation over the last axes."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        anchor: Tensor,
        features: int,
        eps: float,
        record: Any,
    ) -> Tensor:
        axes = tuple(range(x.dim() - features, x.dim()))
        scale = torch.rsqrt(x.square().mean(axes, keepdim=True) + eps)
        ctx.save_for_backward(x, weight, scale)
        ctx.axes, ctx.record = axes, record
        return x * scale * weight

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, scale = ctx.saved_tensors
        normal = x * scale
        ctx.record(normal, grad)
        inner = grad * weight
        inner = scale * (inner - normal * (inner * normal).mean(ctx.axes, keepdim=True))
        return inner, None, None, None, None, None


def use_rms_norm(
    book: LayerBook,
    x: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Any:
    """Apply root-mean-square normalisation with a trained scale."""
    number = book.number(weight)
    if number is None or weight is None:
        return NotImplemented
    x, record = _last_axes(book, x, (number, None), len(normalized_shape))
    eps = torch.finfo(x.dtype).eps if eps is None else eps
    with without_autocast(x):
        return apply_layer(RmsNormLayer, x, weight.detach(), book.anchor, len(normalized_shape), eps, record)


class GroupNormLayer(torch.autograd.Function):
    """Group normalisation: the sums that the input's gradient needs are the gradients of scale and offset."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        anchor: Tensor,
        groups: int,
        eps: float,
        record: Any,
    ) -> Tensor:
        normalise = normalised_groups if x.is_cuda else _native_groups
        out, mean, rstd = normalise(x, weight, bias, groups, eps)
        ctx.save_for_backward(x, weight, mean, rstd)
        ctx.groups, ctx.record = groups, record
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, mean, rstd = ctx.saved_tensors
        back = backward_groups if x.is_cuda else _native_backward
        inner, scale_sums, sums = back(grad, x, weight, mean, rstd, ctx.groups)
        ctx.record(scale_sums, sums)
        return inner, None, None, None, None, None, None


def _native_backward(
    grad: Tensor, x: Tensor, weight: Tensor | None, mean: Tensor, rstd: Tensor, groups: int
) -> tuple[Tensor, Tensor, Tensor]:
    batch, channels = x.shape[:2]
    spread = x.reshape(batch, channels, -1)
    outer = grad.reshape(batch, channels, -1)
    sums, products = outer.sum(2), (outer * spread).sum(2)
    scale_sums = (products - sums * _by_channel(mean, channels)) * _by_channel(rstd, channels)
    size = x.numel() // (batch * channels)
    inner = torch.ops.aten.native_group_norm_backward(
        grad.contiguous(), x.contiguous(), mean, rstd, weight, batch, channels, size, groups,
        [True, False, False],
    )[0]  # fmt: skip
    return inner, scale_sums, sums


def backward_groups(
    grad: Tensor, x: Tensor, weight: Tensor | None, mean: Tensor, rstd: Tensor, groups: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradient of the input, and those of scale and offset for each example."""
    batch, channels = x.shape[:2]
    broadcast = (batch, channels) + (1,) * (x.dim() - 2)
    size = channels // groups
    mean, rstd = (_by_channel(value, channels) for value in (mean, rstd))
    normal = (x - mean.reshape(broadcast)) * rstd.reshape(broadcast)
    axes = tuple(range(2, x.dim()))
    scale_sums, sums = ((grad * normal).sum(axes), grad.sum(axes)) if axes else (grad * normal, grad)
    gamma = weight if weight is not None else x.new_ones(channels)
    count = size * (x.numel() // (batch * channels))
    first, second = (
        _by_channel((value * gamma).reshape(batch, groups, size).sum(2) / count, channels)
        for value in (sums, scale_sums)
    )
    steep = (gamma * rstd).reshape(broadcast)
    inner = grad * steep - (first * rstd).reshape(broadcast) - normal * (second * rstd).reshape(broadcast)
    return inner, scale_sums, sums


def _native_groups(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, groups: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    batch, channels = x.shape[:2]
    return torch.native_group_norm(
        x.contiguous(), weight, bias, batch, channels, x[0, 0].numel(), groups, eps
    )


def normalised_groups(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, groups: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return group normalisation, its means and inverse deviations; the memory layout stays as it is.

    PyTorch's own operation on CUDA gives up the layout with channels last.
    """
    batch, channels = x.shape[:2]
    broadcast = (batch, channels) + (1,) * (x.dim() - 2)
    parts = x.reshape(batch, groups, channels // groups, *x.shape[2:])
    variance, mean = torch.var_mean(parts, tuple(range(2, parts.dim())), correction=0)
    rstd = torch.rsqrt(variance + eps)
    scale = _by_channel(rstd, channels)
    scale = scale if weight is None else scale * weight
    shift = -_by_channel(mean, channels) * scale
    shift = shift if bias is None else shift + bias
    return x * scale.reshape(broadcast) + shift.reshape(broadcast), mean, rstd


def _by_channel(values: Tensor, channels: int) -> Tensor:
    """Repeat one value for each group so that every channel has it."""
    batch, groups = values.shape
    return values.unsqueeze(2).expand(batch, groups, channels // groups).reshape(batch, channels)


def use_group_norm(
    book: LayerBook,
    x: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Any:
    """Apply group normalisation with a trained scale or offset."""
    numbers = _affine(book, weight, bias)
    if numbers is None:
        return NotImplemented
    x, record = _by_channels(book, x, numbers)
    with without_autocast(x):
        return apply_layer(
            GroupNormLayer, x, _detached(weight), _detached(bias), book.anchor, num_groups, eps, record
        )


def _by_channels(
    book: LayerBook, x: Tensor, numbers: tuple[int | None, int | None]
) -> tuple[Tensor, Callable[[Tensor, Tensor], None]]:
    """Place the input of a layer whose scale and offset belong to the second axis."""
    number, offset = numbers
    x, layout = book.place(number if number is not None else offset, x, features=x.dim() - 1)  # type: ignore[arg-type]
    if layout.kind == "shared":
        layout = layout._replace(kind="batch", axis=0)
    book.expect(number, offset)
    if autocast_dtype(x) is not None:
        x = x.float()

    def record(scale_sums: Tensor, sums: Tensor) -> None:
        for which, values in ((number, scale_sums), (offset, sums)):
            if which is not None:
                book.record_gradients(which, book.rows(values, layout).sum(1, dtype=torch.float32))

    return x, record


def use_instance_norm(
    book: LayerBook,
    x: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,  # noqa: FBT001, FBT002
    momentum: float = 0.1,  # noqa: ARG001
    eps: float = 1e-5,
) -> Any:
    """Apply instance normalisation, which is group normalisation with one channel in each group."""
    if use_input_stats and (running_mean is not None or running_var is not None):
        raise batch_norm_refused("an instance normalisation that keeps running averages of all examples")
    if not use_input_stats:
        return use_batch_norm(book, x, running_mean, running_var, weight, bias, eps=eps)
    numbers = _affine(book, weight, bias)
    if numbers is None:
        return NotImplemented
    x, record = _by_channels(book, x, numbers)
    with without_autocast(x):
        return apply_layer(
            GroupNormLayer, x, _detached(weight), _detached(bias), book.anchor, x.shape[1], eps, record
        )


def use_batch_norm(
    book: LayerBook,
    x: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,  # noqa: FBT001, FBT002
    momentum: float = 0.1,  # noqa: ARG001
    eps: float = 1e-5,
) -> Any:
    """Apply batch normalisation in evaluation mode, where it is a fixed scale; refuse it in training mode."""
    if training or running_mean is None or running_var is None:
        raise batch_norm_refused("batch normalisation")
    numbers = _affine(book, weight, bias)
    if numbers is None:
        return NotImplemented
    x, record = _by_channels(book, x, numbers)
    normal = functional.batch_norm(x, running_mean, running_var, eps=eps)
    return apply_layer(ChannelScale, normal, _detached(weight), _detached(bias), book.anchor, record)


class ChannelScale(torch.autograd.Function):
    """A scale and an offset for each channel."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        anchor: Tensor,
        record: Any,
    ) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.record = record
        broadcast = (-1,) + (1,) * (x.dim() - 2)
        out = x if weight is None else x * weight.reshape(broadcast)
        return out.clone() if bias is None else out + bias.reshape(broadcast)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        ctx.record(
            (grad * x).flatten(2).sum(2) if x.dim() > 2 else grad * x,
            grad.flatten(2).sum(2) if x.dim() > 2 else grad,
        )
        inner = grad if weight is None else grad * weight.reshape((-1,) + (1,) * (x.dim() - 2))
        return inner, None, None, None, None


def batch_norm_refused(layer: str) -> TacitError:
    """Return the refusal of a layer that mixes examples."""
    return TacitError(
        "not-allowed",
        f"the model has {layer}, which mixes the examples of a batch",
        why="clipping a gradient that depends on others does not bound what one person contributes",
        fix=Say("group normalisation in its place, or the same layer in evaluation mode"),
    )


def _affine(
    book: LayerBook, weight: Tensor | None, bias: Tensor | None
) -> tuple[int | None, int | None] | None:
    """Return the numbers of a scale and an offset, or nothing where this layer is not ours."""
    number, offset = book.number(weight), book.number(bias)
    if number is None and offset is None:
        return None
    for which, value in ((number, weight), (offset, bias)):
        if which is None and value is not None and value.requires_grad:
            return None
    return number, offset


def _detached(value: Tensor | None) -> Tensor | None:
    return None if value is None else value.detach()
