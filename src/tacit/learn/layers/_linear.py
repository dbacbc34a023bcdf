"""Linear layers and tables of embeddings: the backward pass gives the input's gradient and leaves a job.

Multi-head attention, as PyTorch's own module calls it, has projections that are linear layers. Recurrent
layers are unrolled into linear layers that share their matrices from step to step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from tacit.learn.layers._bookkeeping import LookupJob, MatrixJob, PartJob, apply_layer
from tacit.learn.layers._kernels import autocast_dtype, rounded, without_autocast

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from tacit.learn.layers._bookkeeping import LayerBook


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
    output = use_linear(book, x, weight, bias, rows=rows)
    if output is not NotImplemented:
        return output  # type: ignore[no-any-return]
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


def use_attention(
    book: LayerBook,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,  # noqa: FBT001
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,  # noqa: FBT001, FBT002
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,  # noqa: FBT001, FBT002
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,  # noqa: FBT001, FBT002
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,  # noqa: FBT001, FBT002
    is_causal: bool = False,  # noqa: FBT001, FBT002
) -> Any:
    """Apply attention to (length, examples, features); the projections are recorded as linear layers.

    The matrices of query, key and value are parts of one parameter. When all three act on the same input they
    are one linear layer; otherwise the gradients of the parts go into the rows that belong to them.
    """
    parts = (in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight, in_proj_bias, out_proj_weight)
    if all(book.number(part) is None for part in (*parts, out_proj_bias)):
        return NotImplemented
    odd = bias_k is not None or bias_v is not None or add_zero_attn or static_k is not None
    if odd or static_v is not None or query.dim() != 3 or embed_dim_to_check != query.shape[2]:
        return NotImplemented
    if use_separate_proj_weight:
        return NotImplemented
    assert in_proj_weight is not None  # noqa: S101
    heads = [
        _heads(part, num_heads) for part in _projected(book, query, key, value, in_proj_weight, in_proj_bias)
    ]
    mask = _mask(query, attn_mask, key_padding_mask, causal=is_causal and attn_mask is None)
    drop = dropout_p if training else 0.0
    weights = None
    if need_weights:
        out, weights = _attended(heads, mask, drop)
        weights = weights.mean(1) if average_attn_weights else weights
    else:
        out = functional.scaled_dot_product_attention(heads[0], heads[1], heads[2], mask, drop)
    merged = out.permute(2, 0, 1, 3).flatten(2)
    return linear_part(book, merged, out_proj_weight, out_proj_bias), weights


def _projected(
    book: LayerBook, query: Tensor, key: Tensor, value: Tensor, weight: Tensor, bias: Tensor | None
) -> list[Tensor]:
    """Return queries, keys and values: one linear layer where they share an input, else one for each part."""
    if query is key and key is value:
        return list(linear_part(book, query, weight, bias).chunk(3, dim=-1))
    size = query.shape[2]
    projected_query = linear_part(book, query, weight, bias, rows=(0, size))
    if key is value:
        projected_pair = linear_part(book, key, weight, bias, rows=(size, 3 * size))
        return [projected_query, *projected_pair.chunk(2, dim=-1)]
    second = linear_part(book, key, weight, bias, rows=(size, 2 * size))
    return [projected_query, second, linear_part(book, value, weight, bias, rows=(2 * size, 3 * size))]


def _heads(value: Tensor, heads: int) -> Tensor:
    """Split (length, examples, features) into (examples, heads, length, features of a head)."""
    return value.reshape(*value.shape[:2], heads, -1).permute(1, 2, 0, 3)


def _mask(query: Tensor, attention: Tensor | None, padding: Tensor | None, *, causal: bool) -> Tensor | None:
    """Return one mask to add to the scores: what may not be seen is minus infinity."""
    length, batch = query.shape[:2]
    mask = None
    if causal:
        attention = torch.ones(length, length, dtype=torch.bool, device=query.device).triu(1)
    if attention is not None:
        mask = _added(attention, query)
        mask = mask.reshape(batch, -1, *mask.shape[1:]) if mask.dim() == 3 else mask
    if padding is not None:
        hidden = _added(padding, query)[:, None, None, :]
        mask = hidden if mask is None else mask + hidden
    return mask


def _added(mask: Tensor, like: Tensor) -> Tensor:
    if mask.dtype != torch.bool:
        return mask.to(like.dtype)
    return torch.zeros(mask.shape, dtype=like.dtype, device=like.device).masked_fill(mask, float("-inf"))


def _attended(heads: list[Tensor], mask: Tensor | None, drop: float) -> tuple[Tensor, Tensor]:
    query, key, value = heads
    scores = query @ key.mT / query.shape[-1] ** 0.5
    weights = functional.softmax(scores if mask is None else scores + mask, dim=-1)
    weights = functional.dropout(weights, drop) if drop else weights
    return weights @ value, weights


def _lstm_gates(inner: Tensor, outer: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    enter, forget, value, leave = (inner + outer).chunk(4, -1)
    cell = torch.sigmoid(forget) * cell + torch.sigmoid(enter) * torch.tanh(value)
    return torch.sigmoid(leave) * torch.tanh(cell), cell


def _gru_gates(inner: Tensor, outer: Tensor, hidden: Tensor) -> Tensor:
    reset_x, update_x, value_x = inner.chunk(3, -1)
    reset_h, update_h, value_h = outer.chunk(3, -1)
    update = torch.sigmoid(update_x + update_h)
    value = torch.tanh(value_x + torch.sigmoid(reset_x + reset_h) * value_h)
    return (1 - update) * value + update * hidden


def _tanh_gates(inner: Tensor, outer: Tensor, hidden: Tensor) -> Tensor:  # noqa: ARG001
    return torch.tanh(inner + outer)


def _relu_gates(inner: Tensor, outer: Tensor, hidden: Tensor) -> Tensor:  # noqa: ARG001
    return functional.relu(inner + outer)


def _direction(
    book: LayerBook,
    x: Tensor,
    state: Sequence[Tensor],
    weights: Sequence[Tensor | None],
    gates: Callable[..., Any],
    *,
    backwards: bool,
) -> tuple[Tensor, list[Tensor]]:
    """Run one layer in one direction over (length, examples, features)."""
    matrix_x, matrix_h, bias_x, bias_h, projection = weights
    assert matrix_x is not None  # noqa: S101
    assert matrix_h is not None  # noqa: S101
    inner = linear_part(book, x, matrix_x, bias_x)
    hidden, *cell = state
    out = []
    steps = inner.unbind(0)
    for step in reversed(steps) if backwards else steps:
        outer = linear_part(book, hidden, matrix_h, bias_h)
        if cell:
            hidden, cell[0] = gates(step, outer, cell[0])
        else:
            hidden = gates(step, outer, hidden)
        if projection is not None:
            hidden = linear_part(book, hidden, projection, None)
        out.append(hidden)
    return torch.stack(out[::-1] if backwards else out), [hidden, *cell]


def _unrolled(
    gates: Callable[..., Any],
    book: LayerBook,
    x: Tensor,
    hx: Any,
    flat: Any,
    *options: Any,
) -> Any:
    """Run all layers; the arguments are those of PyTorch's own recurrent functions."""
    if not isinstance(flat, list | tuple) or len(options) != 6:
        return NotImplemented  # sequences of several lengths packed into one
    has_biases, layers, dropout, training, both_ways, batch_first = options
    if all(book.number(weight) is None for weight in flat) or x.dim() != 3:
        return NotImplemented
    states = list(hx) if isinstance(hx, list | tuple) else [hx]
    ways = 2 if both_ways else 1
    size = len(flat) // (layers * ways)
    x = x.transpose(0, 1) if batch_first else x
    ends: list[list[Tensor]] = []
    for layer in range(layers):
        outputs = []
        for way in range(ways):
            number = layer * ways + way
            weights = list(flat[number * size : (number + 1) * size])
            if not has_biases:
                weights[2:2] = [None, None]
            weights += [None] * (5 - len(weights))
            state = [part[number] for part in states]
            out, end = _direction(book, x, state, weights, gates, backwards=way == 1)
            outputs.append(out)
            ends.append(end)
        x = torch.cat(outputs, -1) if ways == 2 else outputs[0]
        if dropout and training and layer + 1 < layers:
            x = functional.dropout(x, dropout)
    x = x.transpose(0, 1) if batch_first else x
    return (x, *(torch.stack(part) for part in zip(*ends, strict=True)))


def use_lstm(book: LayerBook, *values: Any) -> Any:
    """Apply a long short-term memory."""
    return _unrolled(_lstm_gates, book, *values)


def use_gru(book: LayerBook, *values: Any) -> Any:
    """Apply gated recurrent units."""
    return _unrolled(_gru_gates, book, *values)


def use_rnn_tanh(book: LayerBook, *values: Any) -> Any:
    """Apply a plain recurrent layer with the hyperbolic tangent."""
    return _unrolled(_tanh_gates, book, *values)


def use_rnn_relu(book: LayerBook, *values: Any) -> Any:
    """Apply a plain recurrent layer with rectified values."""
    return _unrolled(_relu_gates, book, *values)


def _cell(gates: Callable[..., Any], book: LayerBook, x: Tensor, hx: Any, *weights: Tensor | None) -> Any:
    if all(book.number(weight) is None for weight in weights) or x.dim() != 2:
        return NotImplemented
    matrix_x, matrix_h, *biases = weights
    bias_x, bias_h = biases or (None, None)
    assert matrix_x is not None  # noqa: S101
    assert matrix_h is not None  # noqa: S101
    state = list(hx) if isinstance(hx, list | tuple) else [hx]
    inner = linear_part(book, x, matrix_x, bias_x)
    return gates(inner, linear_part(book, state[0], matrix_h, bias_h), state[-1])


def use_lstm_cell(book: LayerBook, *values: Any) -> Any:
    """Apply one step of a long short-term memory."""
    return _cell(_lstm_gates, book, *values)


def use_gru_cell(book: LayerBook, *values: Any) -> Any:
    """Apply one step of gated recurrent units."""
    return _cell(_gru_gates, book, *values)


def use_rnn_tanh_cell(book: LayerBook, *values: Any) -> Any:
    """Apply one step of a plain recurrent layer with the hyperbolic tangent."""
    return _cell(_tanh_gates, book, *values)


def use_rnn_relu_cell(book: LayerBook, *values: Any) -> Any:
    """Apply one step of a plain recurrent layer with rectified values."""
    return _cell(_relu_gates, book, *values)
