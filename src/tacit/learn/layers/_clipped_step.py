"""One clipped step: forward, backward, norms, factors and weighted sums; its course never depends on data.

It can run as one flat graph: traced once, compiled, and captured on devices that can replay it.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx

from tacit.errors import TacitError
from tacit.fixes import Say
from tacit.learn.layers._bookkeeping import BatchLayout, LayerBook
from tacit.learn.layers._kernels import Precision, computing, norm_margin
from tacit.learn.layers._rules import LayerRules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torch import Tensor


Tensors = tuple["Tensor", ...]


class UnknownUseError(TacitError):
    """A parameter was used in a way that no rule covers."""


@dataclass(frozen=True)
class ClippedStep:
    """The parts of a step that stay the same from batch to batch."""

    model: nn.Module
    losses: Callable[..., Tensor]
    names: tuple[str, ...]
    per_unit: int
    precision: Precision
    automatic: bool
    #: How many classes invented labels have; the width of the model's output, once it is known.
    labels: int = 2

    def book(
        self,
        parameters: Sequence[Tensor],
        inputs: Tensors,
        targets: Tensors,
        weights: Tensor,
        layouts: Sequence[BatchLayout] | None,
    ) -> LayerBook:
        """Run forward and backward, and return the book with every job in it."""
        device = parameters[0].device
        book = LayerBook(parameters, examples=len(weights), per_unit=self.per_unit, layouts=layouts)
        mixed = self.precision == "bfloat16"
        with LayerRules(book), torch.autograd.set_multithreading_enabled(False):
            with torch.autocast(device.type, dtype=torch.bfloat16, enabled=mixed):
                outputs = self.model(*inputs)
            losses = self.losses(outputs, *targets)
            total = (losses.float() * weights).sum()
            book.in_backward = True
            signals = gradients(total, parameters)
        unknown = [name for name, value in zip(self.names, signals, strict=True) if value is not None]
        if unknown:
            raise unknown_use(unknown)
        return book

    def run(
        self,
        parameters: Sequence[Tensor],
        inputs: Tensors,
        targets: Tensors,
        weights: Tensor,
        clip: Tensor,
        layouts: Sequence[BatchLayout] | None,
    ) -> tuple[list[Tensor], Tensor]:
        """Return the clipped sums in the order of the parameters, and the norm of each unit's gradient."""
        with computing(self.precision, parameters[0].device):
            book = self.book(parameters, inputs, targets, weights, layouts)
            norms = book.squares().clamp_min(0).sqrt()
            factors = clip_factors(norms, clip / (1 + norm_margin(self.precision)), automatic=self.automatic)
            return book.totals(factors), norms

    def unit_values(
        self,
        parameters: Sequence[Tensor],
        inputs: Tensors,
        targets: Tensors,
        weights: Tensor,
        layouts: Sequence[BatchLayout] | None,
    ) -> list[Tensor]:
        """Return the squared norms, and the operands of the sums with one part for each unit."""
        with computing(self.precision, parameters[0].device):
            book = self.book(parameters, inputs, targets, weights, layouts)
            return [book.squares(), *book.operands()]


def gradients(value: Tensor, parameters: Sequence[Tensor], *, again: bool = False) -> list[Tensor | None]:
    """Return the ordinary gradients of a value; nothing for a parameter that it does not depend on.

    `torch.autograd.backward` leaves the rules while it runs, but checkpointed layers that run again need
    them. So the engine below it is called.
    """
    engine: Any = torch.autograd.Variable._execution_engine  # noqa: SLF001
    before = [parameter.grad for parameter in parameters]
    for parameter in parameters:
        parameter.grad = None
    try:
        engine.run_backward(
            (value,),
            (torch.ones_like(value),),
            again,
            False,  # noqa: FBT003
            (),
            allow_unreachable=True,
            accumulate_grad=True,
        )
        return [parameter.grad for parameter in parameters]
    finally:
        for parameter, grad in zip(parameters, before, strict=True):
            parameter.grad = grad


def clip_factors(norms: Tensor, clip: Tensor, *, automatic: bool) -> Tensor:
    """Return what each unit's gradient is multiplied by; a norm that is not finite gives zero.

    The usual factor is ``clip / max(norm, clip)``. The automatic one is ``clip / (norm + 0.01)``. Either way
    no product is longer than ``clip``.
    """
    factors = clip / (norms + 0.01) if automatic else clip / torch.maximum(norms, clip)
    return torch.where(norms.isfinite(), factors, torch.zeros_like(factors))


def unknown_use(names: Sequence[str]) -> UnknownUseError:
    """Return the refusal of parameters that are used in an unknown way."""
    listing = ", ".join(names[:5]) + (" and more" if len(names) > 5 else "")
    return UnknownUseError(
        "not-allowed",
        f"the model uses {listing} in a way for which Tacit has no fast rule",
        why="the gradients of single examples could not be separated",
        fix=Say("the exact method, which is slower, or layers of torch.nn in its place"),
    )


@contextmanager
def exchanged(model: nn.Module, names: Sequence[str], values: Sequence[Tensor]) -> Iterator[None]:
    """Let the model use other tensors in place of its parameters, wherever a parameter is shared."""
    by_identity = {}
    current = dict(model.named_parameters())
    for name, value in zip(names, values, strict=True):
        by_identity[id(current[name])] = value
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
        leaves = [value.detach().requires_grad_() for value in parameters]
        with exchanged(step.model, step.names, leaves), torch.enable_grad():
            return step.run(leaves, inputs, targets, weights, clip, layouts)

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
            for buffer, value in zip(self._held, (*inputs, *targets, weights), strict=True):
                buffer.copy_(value)
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
