"""Multi-head attention as PyTorch's own module calls it: projections that are linear layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from tacit.learn._layer_linear import linear_part

if TYPE_CHECKING:
    from torch import Tensor

    from tacit.learn._layer_book import LayerBook


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
    first = linear_part(book, query, weight, bias, rows=(0, size))
    if key is value:
        both = linear_part(book, key, weight, bias, rows=(size, 3 * size))
        return [first, *both.chunk(2, dim=-1)]
    second = linear_part(book, key, weight, bias, rows=(size, 2 * size))
    return [first, second, linear_part(book, value, weight, bias, rows=(2 * size, 3 * size))]


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
