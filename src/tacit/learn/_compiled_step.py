"""A clipped step as one flat graph: traced once, compiled, and captured on devices that can replay it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx

from tacit.learn._precision import computing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torch import Tensor

    from tacit.learn._clipped_step import ClippedStep, Tensors
    from tacit.learn._layer_book import BatchLayout


@contextmanager
def exchanged(model: nn.Module, names: Sequence[str], values: Sequence[Tensor]) -> Iterator[None]:
    """Let the model use other tensors in place of its parameters, wherever a parameter is shared."""
    by_identity = {}
    found = dict(model.named_parameters())
    for name, value in zip(names, values, strict=True):
        by_identity[id(found[name])] = value
    places = [
        (module, name, value)
        for module in model.modules()
        for name, value in module._parameters.items()  # noqa: SLF001
        if value is not None and id(value) in by_identity
    ]
    try:
        for module, name, value in places:
            module._parameters[name] = by_identity[id(value)]  # type: ignore[assignment]  # noqa: SLF001
            _refresh(module)
        yield
    finally:
        for module, name, value in places:
            module._parameters[name] = value  # noqa: SLF001
            _refresh(module)


def _refresh(module: nn.Module) -> None:
    """Let a recurrent module see its exchanged parameters, of which it keeps a list."""
    if isinstance(module, nn.RNNBase):
        module._flat_weights = [getattr(module, name, None) for name in module._flat_weights_names]  # noqa: SLF001


def traced_step(
    step: ClippedStep,
    parameters: Sequence[Tensor],
    inputs: Tensors,
    targets: Tensors,
    weights: Tensor,
    clip: Tensor,
    layouts: Sequence[BatchLayout],
) -> Callable[..., tuple[list[Tensor], Tensor]]:
    """Trace the whole step into one flat graph of its tensors; shapes are those of the arguments."""

    def flat(
        parameters: list[Tensor], inputs: Tensors, targets: Tensors, weights: Tensor, clip: Tensor
    ) -> tuple[list[Tensor], Tensor]:
        held = [value.detach().requires_grad_() for value in parameters]
        with exchanged(step.model, step.names, held), torch.enable_grad():
            return step.run(held, inputs, targets, weights, clip, layouts)

    values = [value.detach() for value in parameters]
    return make_fx(flat, tracing_mode="fake", _allow_non_fake_inputs=True)(
        values, inputs, targets, weights, clip
    )


class CompiledStep:
    """The compiled form of a step for one shape of batch; on CUDA it is captured and replayed."""

    def __init__(
        self,
        step: ClippedStep,
        parameters: Sequence[Tensor],
        inputs: Tensors,
        targets: Tensors,
        weights: Tensor,
        clip: Tensor,
        layouts: Sequence[BatchLayout],
        *,
        capture: bool = True,
    ) -> None:
        graph = traced_step(step, parameters, inputs, targets, weights, clip, layouts)
        self._precision = step.precision
        self._device = weights.device
        self._parameters = [value.detach() for value in parameters]
        self._clip = clip
        self._run = torch.compile(graph, fullgraph=True, dynamic=False)
        self._replay: Any = None
        if capture and weights.is_cuda:
            self._capture(inputs, targets, weights)

    def __call__(self, inputs: Tensors, targets: Tensors, weights: Tensor) -> tuple[list[Tensor], Tensor]:
        """Run the step on another batch of the same shape."""
        if self._replay is not None:
            for held, value in zip(self._held, (*inputs, *targets, weights), strict=True):
                held.copy_(value)
            self._replay.replay()
            sums, norms = self._results
            return sums, norms
        return self._eager(inputs, targets, weights)

    def _eager(self, inputs: Tensors, targets: Tensors, weights: Tensor) -> tuple[list[Tensor], Tensor]:
        with computing(self._precision, self._device), torch.no_grad():
            sums, norms = self._run(self._parameters, inputs, targets, weights, self._clip)
        return list(sums), norms

    def _capture(self, inputs: Tensors, targets: Tensors, weights: Tensor) -> None:
        inputs, targets = (tuple(value.clone() for value in part) for part in (inputs, targets))
        weights = weights.clone()
        self._held = (*inputs, *targets, weights)
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(2):
                self._eager(inputs, targets, weights)
        torch.cuda.current_stream().wait_stream(side)
        self._replay = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._replay):
            self._results = self._eager(inputs, targets, weights)
