"""Rules: which PyTorch function, called with a trained parameter, is replaced by which layer.

The rules act on functions and not on modules. So a linear layer is recognised wherever it is called: in
`torch.nn.Linear`, in an adapter, in a Hugging Face model or in a functional call. A parameter that reaches
any other function keeps its ordinary gradient, and that is how the step notices a use that no rule covers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from tacit.learn._layer_attention import use_attention
from tacit.learn._layer_convolution import use_convolution
from tacit.learn._layer_elementwise import use_add, use_expand, use_multiply, use_prelu, use_subtract
from tacit.learn._layer_linear import use_addmm, use_embedding, use_linear, use_matmul
from tacit.learn._layer_norm import (
    use_batch_norm,
    use_group_norm,
    use_instance_norm,
    use_layer_norm,
    use_rms_norm,
)
from tacit.learn._layer_recurrent import (
    use_gru,
    use_gru_cell,
    use_lstm,
    use_lstm_cell,
    use_rnn_relu,
    use_rnn_relu_cell,
    use_rnn_tanh,
    use_rnn_tanh_cell,
)
from tacit.learn._layer_transposed import use_transposed_convolution
from tacit.learn._total_functions import call_totally

if TYPE_CHECKING:
    from collections.abc import Callable

    from tacit.learn._layer_book import LayerBook

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
                found = rule(self.book, *args, **_renamed(options))
                if found is not NotImplemented:
                    return found
            return func(*args, **options)

        return call_totally(call, func, args, kwargs or {})


def _renamed(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """Return keyword arguments under the names that the rules use."""
    names = {"input": "x", "mat1": "x", "mat2": "weight", "other": "weight"}
    return {names.get(name, name): value for name, value in (kwargs or {}).items()}
