"""The book of one clipped step: which parameters were used where, and what their layers left behind."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from tacit.errors import TacitError
from tacit.fixes import Say
from tacit.learn._layer_jobs import GradientJob, HeldGradients, merged, operands_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor


class LayoutChangedError(TacitError):
    """A layer met its input in another layout than in the trial steps."""


class BatchLayout(NamedTuple):
    """Where the examples are in the input of a layer.

    `kind` is ``batch`` (axis `axis` holds the examples), ``flat`` (examples and their rows share the first
    axis, example by example) or ``shared`` (the same input for all examples). `rest` is the shape of one
    example's part.
    """

    parameter: int
    kind: str
    axis: int
    rest: tuple[int, ...]


class LayerBook:
    """The uses and the jobs of one step; made anew for every step.

    Norms are computed as soon as the last use of a parameter has run its backward pass, so that a parameter
    that is used several times (tied weights, recurrent layers) adds up its gradients first.
    """

    def __init__(
        self,
        parameters: Sequence[Tensor],
        *,
        examples: int,
        per_unit: int = 1,
        layouts: Sequence[BatchLayout] | None = None,
    ) -> None:
        self.examples = examples
        self.units = examples // per_unit
        self.parameters = list(parameters)
        self.anchor = torch.zeros((), device=self.parameters[0].device, requires_grad=True)
        self.seen: list[BatchLayout] = []
        self.in_backward = False
        self._layouts = layouts
        self._index = {id(parameter): i for i, parameter in enumerate(parameters)}
        self._first_time: dict[tuple[int, tuple[int, ...]], BatchLayout] = {}
        self._uses = [0] * len(self.parameters)
        self._jobs: list[list[GradientJob]] = [[] for _ in self.parameters]
        self._final: list[GradientJob | None] = [None] * len(self.parameters)
        self._squares: list[Tensor] = []

    # what a layer asks

    def number(self, tensor: object) -> int | None:
        """Return the number of a parameter that is trained, or nothing for every other tensor."""
        return self._index.get(id(tensor))

    def place(self, parameter: int, value: Tensor, *, features: int) -> tuple[Tensor, BatchLayout]:
        """Find the examples in the input of a layer; an input that all examples share is repeated.

        `features` is the number of last axes that belong to the layer itself.
        """
        outer = tuple(value.shape[: value.dim() - features])
        layout = self._layout(parameter, outer)
        if layout.kind == "shared":
            inner = value if value.dim() > features and value.shape[0] == 1 else value.unsqueeze(0)
            value = inner.expand(self.examples, *inner.shape[1:])
        return value, layout

    def _layout(self, parameter: int, outer: tuple[int, ...]) -> BatchLayout:
        if self.in_backward:  # activation checkpointing runs the layer again
            return self._first_time[parameter, outer]
        if self._layouts is None:
            layout = _guess(parameter, outer, self.examples)
        else:
            position = len(self.seen)
            layout = self._layouts[position] if position < len(self._layouts) else BatchLayout(-1, "", 0, ())
            if layout.parameter != parameter or not _fits(layout, outer, self.examples):
                raise _changed(outer)
        self.seen.append(layout)
        if self._first_time.setdefault((parameter, outer), layout) != layout:
            raise _changed(outer)
        return layout

    def expect(self, *numbers: int | None) -> None:
        """Count a use of some parameters; a layer that runs again in the backward pass counts once."""
        if self.in_backward:
            return
        for number in numbers:
            if number is not None:
                self._uses[number] += 1

    def rows(self, value: Tensor, layout: BatchLayout) -> Tensor:
        """Return a tensor as (units, rows of a unit, features)."""
        if layout.kind == "batch" and layout.axis:
            value = value.movedim(layout.axis, 0)
        return value.reshape(self.units, -1, value.shape[-1])

    def record(self, number: int | None, job: GradientJob) -> None:
        """Keep a job, and compute the norms of its parameter when no other use is outstanding.

        The tensors of a job must be detached: the graph that they come from holds the book, which would then
        hold the graph, and Python could free neither.
        """
        if number is None:
            return
        self._jobs[number].append(job)
        if len(self._jobs[number]) == self._uses[number]:
            self._close(number)

    def record_gradients(self, number: int | None, examples: Tensor) -> None:
        """Keep the gradients of the examples themselves, summed for each unit."""
        if number is not None:
            shape = self.parameters[number].shape
            values = examples.reshape(self.units, -1, *shape).float()
            self.record(number, HeldGradients(values.sum(1) if values.shape[1] > 1 else values.squeeze(1)))

    # what the step asks

    @torch.no_grad()
    def squares(self) -> Tensor:
        """Return the squared norm of each unit's whole gradient."""
        for number, jobs in enumerate(self._jobs):
            if jobs:
                self._close(number)
        if not self._squares:
            return torch.zeros(self.units, device=self.anchor.device)
        return torch.stack(self._squares).sum(0)

    @torch.no_grad()
    def totals(self, factors: Tensor) -> list[Tensor]:
        """Return the weighted sums in the order of the parameters; an unused parameter has zeros."""
        found = []
        for number, parameter in enumerate(self.parameters):
            job = self._final[number]
            shape = parameter.shape
            found.append(
                torch.zeros(shape, device=parameter.device)
                if job is None
                else job.total(factors).reshape(shape)
            )
            self._final[number] = None
        return found

    def operands(self) -> list[Tensor]:
        """Return the tensors from which the weighted sums are formed, each with one part for each unit."""
        return [tensor for job in self._final if job is not None for tensor in operands_of(job)]

    def _close(self, number: int) -> None:
        if self._final[number] is not None:
            raise _changed(tuple(self.parameters[number].shape))
        job = merged(self._jobs[number])
        self._jobs[number] = []
        self._squares.append(job.squares())
        self._final[number] = job


def apply_layer(layer: type[torch.autograd.Function], *values: Any) -> Tensor:
    """Apply a layer that has its own backward pass."""
    return layer.apply(*values)  # type: ignore[no-any-return,no-untyped-call]


def _changed(outer: tuple[int, ...]) -> LayoutChangedError:
    return LayoutChangedError(
        "not-allowed",
        f"the model used its parameters in another order or shape than in its trial steps: {outer}",
        why="the gradients of the examples could no longer be separated",
        fix=Say("a model whose layers run in the same order for every batch, or the exact method"),
    )


def _guess(parameter: int, outer: tuple[int, ...], examples: int) -> BatchLayout:
    for axis, length in enumerate(outer):
        if length == examples:
            return BatchLayout(parameter, "batch", axis, outer[:axis] + outer[axis + 1 :])
    if outer and outer[0] % examples == 0:
        return BatchLayout(parameter, "flat", 0, (outer[0] // examples, *outer[1:]))
    return BatchLayout(parameter, "shared", 0, outer)


def _fits(layout: BatchLayout, outer: tuple[int, ...], examples: int) -> bool:
    if layout.kind == "batch":
        rest = outer[: layout.axis] + outer[layout.axis + 1 :]
        return len(outer) > layout.axis and outer[layout.axis] == examples and rest == layout.rest
    if layout.kind == "flat":
        return math.prod(outer) == math.prod(layout.rest) * examples
    return outer == layout.rest
