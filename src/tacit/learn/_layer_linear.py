"""Linear layers and tables of embeddings: the backward pass gives the input's gradient and leaves a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from tacit.learn._layer_book import apply_layer
from tacit.learn._layer_jobs import LookupJob, MatrixJob, PartJob
from tacit.learn._layer_kernels import rounded
from tacit.learn._precision import autocast_dtype, without_autocast

if TYPE_CHECKING:
    from torch import Tensor

    from tacit.learn._layer_book import LayerBook


class LinearLayer(torch.autograd.Function):
    """``x W^T + b``, or ``x W + b`` when transposed."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        anchor: Tensor,
        record: Any,
        transposed: bool,  # noqa: FBT001
    ) -> Tensor:
        ctx.save_for_backward(rounded(x), weight)  # what the job will need, in half the memory
        ctx.record, ctx.transposed = record, transposed
        return functional.linear(x, weight.mT if transposed else weight, bias)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        ctx.record(x.detach(), grad)
        inner = grad @ (weight.mT if ctx.transposed else weight) if ctx.needs_input_grad[0] else None
        return inner, None, None, None, None, None


def use_linear(
    book: LayerBook,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    transposed: bool = False,
    rows: tuple[int, int] | None = None,
) -> Any:
    """Apply a linear layer whose matrix or bias is trained, or some rows of it."""
    number, offset = book.number(weight), book.number(bias)
    if number is None and offset is None:
        return NotImplemented
    if (number is None and weight.requires_grad) or weight.dim() != 2:
        return NotImplemented  # a matrix that was computed from parameters
    if offset is None and bias is not None and bias.requires_grad:
        return NotImplemented
    x, layout = book.place(number if number is not None else offset, x, features=1)  # type: ignore[arg-type]
    if layout.kind == "shared":
        layout = layout._replace(kind="batch", axis=0)
    book.expect(number, offset)

    def record(x: Tensor, grad: Tensor) -> None:
        right = book.rows(grad, layout)
        if number is not None:
            left = rounded(book.rows(x, layout))
            matrix = MatrixJob(left, rounded(right), flat_weight.shape, transposed)
            book.record(number, matrix if rows is None else PartJob(matrix, rows[0], weight.shape))
        if offset is not None:
            sums = right.sum(1, dtype=torch.float32)
            if rows is not None:
                sums = functional.pad(sums, (rows[0], weight.shape[0] - rows[1]))
            book.record_gradients(offset, sums)

    dtype = autocast_dtype(x)
    flat_weight = weight.detach()
    flat_bias = None if bias is None else bias.detach()
    if rows is not None:
        flat_weight = flat_weight[slice(*rows)]
        flat_bias = None if flat_bias is None else flat_bias[slice(*rows)]
    if dtype is not None:
        x, flat_weight = x.to(dtype), flat_weight.to(dtype)
        flat_bias = None if flat_bias is None else flat_bias.to(dtype)
    with without_autocast(x):
        return apply_layer(LinearLayer, x, flat_weight, flat_bias, book.anchor, record, transposed)


def linear_part(
    book: LayerBook,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    *,
    rows: tuple[int, int] | None = None,
) -> Tensor:
    """Apply a linear layer inside another layer, whether or not its matrix is trained.

    With `rows`, only these rows of the matrix and of the bias act.
    """
    found = use_linear(book, x, weight, bias, rows=rows)
    if found is not NotImplemented:
        return found  # type: ignore[no-any-return]
    if rows is not None:
        weight, bias = weight[slice(*rows)], None if bias is None else bias[slice(*rows)]
    return functional.linear(x, weight, bias)


def use_addmm(book: LayerBook, bias: Tensor, x: Tensor, weight: Tensor, **options: Any) -> Any:
    """Apply ``bias + x W``, the form in which some Hugging Face models write a linear layer."""
    if options or book.number(weight) is None or bias.dim() != 1:
        return NotImplemented
    return use_linear(book, x, weight, bias, transposed=True)


def use_matmul(book: LayerBook, x: Tensor, weight: Tensor) -> Any:
    """Apply ``x W`` with a trained matrix."""
    if book.number(weight) is None:
        return NotImplemented
    return use_linear(book, x, weight, transposed=True)


class EmbeddingLayer(torch.autograd.Function):
    """A look-up in a table."""

    @staticmethod
    def forward(ctx: Any, index: Tensor, weight: Tensor, anchor: Tensor, record: Any) -> Tensor:
        ctx.save_for_backward(index)
        ctx.record = record
        return functional.embedding(index, weight)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, ...]:
        (index,) = ctx.saved_tensors
        ctx.record(index, grad)
        return None, None, None, None


def use_embedding(
    book: LayerBook,
    index: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,  # noqa: ARG001
    scale_grad_by_freq: bool = False,  # noqa: FBT001, FBT002
    sparse: bool = False,  # noqa: ARG001, FBT001, FBT002
) -> Any:
    """Look up rows of a trained table."""
    number = book.number(weight)
    if number is None or max_norm is not None or scale_grad_by_freq:
        return NotImplemented
    index, layout = book.place(number, index, features=0)
    if layout.kind == "shared":
        layout = layout._replace(kind="batch", axis=0)
    book.expect(number)
    if padding_idx is not None and padding_idx < 0:
        padding_idx += weight.shape[0]

    def record(index: Tensor, grad: Tensor) -> None:
        if padding_idx is not None:
            grad = grad.masked_fill((index == padding_idx).unsqueeze(-1), 0)
        flat = book.rows(index.unsqueeze(-1), layout).squeeze(-1)
        book.record(number, LookupJob(flat, book.rows(grad, layout), weight.shape))

    return apply_layer(EmbeddingLayer, index, weight.detach(), book.anchor, record)
