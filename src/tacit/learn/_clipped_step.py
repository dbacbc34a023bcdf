"""One clipped step: forward, backward, norms, factors and weighted sums; its course never depends on data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from tacit.errors import TacitError
from tacit.fixes import Say
from tacit.learn._layer_book import BatchLayout, LayerBook
from tacit.learn._layer_rules import LayerRules
from tacit.learn._precision import Precision, computing, norm_margin

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor, nn

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
            found = gradients(total, parameters)
        unknown = [name for name, value in zip(self.names, found, strict=True) if value is not None]
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
    shown = ", ".join(names[:5]) + (" and more" if len(names) > 5 else "")
    return UnknownUseError(
        "not-allowed",
        f"the model uses {shown} in a way for which Tacit has no fast rule",
        why="the gradients of single examples could not be separated",
        fix=Say("the exact method, which is slower, or layers of torch.nn in its place"),
    )
