"""Recurrent layers, unrolled into linear layers that share their matrices from step to step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from tacit.learn._layer_linear import linear_part

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from tacit.learn._layer_book import LayerBook


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
        found = []
        for way in range(ways):
            number = layer * ways + way
            weights = list(flat[number * size : (number + 1) * size])
            if not has_biases:
                weights[2:2] = [None, None]
            weights += [None] * (5 - len(weights))
            state = [part[number] for part in states]
            out, end = _direction(book, x, state, weights, gates, backwards=way == 1)
            found.append(out)
            ends.append(end)
        x = torch.cat(found, -1) if ways == 2 else found[0]
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
