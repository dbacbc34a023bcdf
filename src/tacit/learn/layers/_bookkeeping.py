"""Bookkeeping of a clipped step: which parameters were used where, and what their layers left behind.

A layer leaves a *job* behind in the backward pass, enough for norms and for weighted sums of gradients. A
*unit* is a block of consecutive examples. Every job knows two things about the gradients of one parameter:
their squared norm for each unit, and their sum with one weight for each unit. Few jobs ever form the gradient
of a unit.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import torch

from tacit.errors import TacitError
from tacit.fixes import Say
from tacit.learn.layers._kernels import gram_kernel, kernels_apply, unless_extreme

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor


#: The largest number of elements that a temporary tensor of a norm may have.
MAX_ELEMENTS: Final = 2**26
#: A Gram norm below this share of the sum of lengths has cancelled so far that rounding could hide it.
CANCELLED: Final = 1e-5


class GradientJob(Protocol):
    """The gradients of one parameter, one for each unit, in the form that their layer leaves."""

    def squares(self) -> Tensor:
        """Return the squared norm of each unit's gradient (float32)."""
        ...

    def total(self, factors: Tensor) -> Tensor:
        """Return the sum of the gradients, each times its unit's factor (float32, shape of the parameter)."""
        ...

    def gradients(self) -> Tensor:
        """Return the gradients themselves, one for each unit (float32)."""
        ...


def scaled(rows: Tensor, factors: Tensor) -> Tensor:
    """Multiply each unit's rows by its factor in float32, and return them in the precision of the rows."""
    shape = (-1,) + (1,) * (rows.dim() - 1)
    return (rows * factors.reshape(shape)).to(rows.dtype)


def squared_norms(gradients: Tensor) -> Tensor:
    """Return the squared norm of each unit's gradient."""
    norms: Tensor = torch.linalg.vector_norm(gradients.reshape(len(gradients), -1).float(), dim=1)
    return norms.square()


@dataclass
class HeldGradients:
    """The gradient of each unit, held as it is: biases, scales and small matrices."""

    values: Tensor

    def squares(self) -> Tensor:
        """Return the squared norms."""
        return squared_norms(self.values)

    def total(self, factors: Tensor) -> Tensor:
        """Return the weighted sum."""
        flat = factors.to(self.values.dtype) @ self.values.reshape(len(self.values), -1)
        return flat.reshape(self.values.shape[1:]).float()

    def gradients(self) -> Tensor:
        """Return the gradients."""
        return self.values


@dataclass
class MatrixJob:
    """The gradient of a matrix: in each unit, the sum over rows t of ``right[t] left[t]^T``.

    ``left`` has the shape (units, rows, inputs) and ``right`` (units, rows, outputs). The parameter has the
    shape (outputs, inputs), or (inputs, outputs) when `transposed`, viewed as `shape`.
    """

    left: Tensor
    right: Tensor
    shape: torch.Size
    transposed: bool = False
    kept: Tensor | None = None

    def squares(self) -> Tensor:
        """Return the squared norms, from Gram matrices where they are smaller than the gradients."""
        rows, inputs = self.left.shape[1:]
        outputs = self.right.shape[2]
        if rows == 1:
            return safe_product(squared_norms(self.left), squared_norms(self.right))
        if rows * (inputs + outputs) <= inputs * outputs:
            return gram_squares(self.left, self.right)
        self.kept = self._instantiated()
        self.left = self.right = self.left.new_empty(0)  # the gradients are smaller: keep only them
        return squared_norms(self.kept)

    def _instantiated(self) -> Tensor:
        output_side, input_side = (self.left, self.right) if self.transposed else (self.right, self.left)
        return torch.bmm(output_side.float().mT, input_side.float())

    def total(self, factors: Tensor) -> Tensor:
        """Return the weighted sum as one product; the smaller operand takes the factors."""
        if self.kept is not None:
            return HeldGradients(self.kept).total(factors).reshape(self.shape)
        left, right = self.left, self.right
        if left.shape[2] < right.shape[2]:
            left = scaled(left, factors)
        else:
            right = scaled(right, factors)
        output_side, input_side = (left, right) if self.transposed else (right, left)
        product = wide_product(output_side.flatten(0, 1).mT, input_side.flatten(0, 1))
        return product.reshape(self.shape)

    def gradients(self) -> Tensor:
        """Return the gradients, one for each unit."""
        values = self._instantiated() if self.kept is None else self.kept
        return values.reshape(-1, *self.shape)


def wide_product(rows: Tensor, columns: Tensor) -> Tensor:
    """Return a matrix product whose sums and result are float32, whatever the precision of its operands."""
    if rows.dtype == torch.float32:
        return rows @ columns
    if rows.is_cuda:
        return torch.mm(rows, columns, out_dtype=torch.float32)
    return rows.float() @ columns.float()


def gram_squares(left: Tensor, right: Tensor) -> Tensor:
    """Return the squared norms of ``right^T left`` for each unit, without forming these matrices.

    Where the rows cancel almost entirely, rounding could make a long gradient look short. There the norm is
    replaced by a larger one (a fixed small share of the sum of the rows' lengths), which clips too much
    rather than too little.
    """
    if kernels_apply(left):
        return gram_kernel(left, right)
    units, rows = left.shape[:2]
    step = max(1, MAX_ELEMENTS // (rows * rows))
    pieces = [
        _gram_piece(left[start : start + step], right[start : start + step])
        for start in range(0, units, step)
    ]
    return joined(pieces)


def joined(pieces: Sequence[Tensor]) -> Tensor:
    """Return pieces as one tensor, without a copy where there is only one."""
    return pieces[0] if len(pieces) == 1 else torch.cat(list(pieces))


def _gram_piece(left: Tensor, right: Tensor) -> Tensor:
    left_gram, right_gram = (torch.bmm(one, one.mT) for one in (left.float(), right.float()))
    largest = [one.diagonal(dim1=1, dim2=2).amax(1) for one in (left_gram, right_gram)]
    product = left_gram * right_gram
    lengths = product.diagonal(dim1=1, dim2=2).clamp_min(0).sqrt().sum(1)
    squares = torch.maximum(product.sum((1, 2)), CANCELLED * lengths.square())
    return unless_extreme(squares, torch.maximum(*largest))


def safe_product(factor: Tensor, other: Tensor) -> Tensor:
    """Return the product of squared lengths; infinity where one is so large that the other may be lost."""
    return unless_extreme(factor * other, torch.maximum(factor, other))


@dataclass
class LookupJob:
    """The gradient of a table of embeddings: row ``index[t]`` receives ``right[t]``."""

    index: Tensor
    right: Tensor
    shape: torch.Size

    def squares(self) -> Tensor:
        """Return the squared norms: rows that were looked up several times in a unit add up first."""
        right = self.right.float()
        if self.index.shape[1] == 1:
            return squared_norms(right)
        same = self.index.unsqueeze(2) == self.index.unsqueeze(1)
        product = torch.bmm(right, right.mT) * same
        lengths = product.diagonal(dim1=1, dim2=2).clamp_min(0).sqrt().sum(1)
        return torch.maximum(product.sum((1, 2)), 1e-2 * CANCELLED * lengths.square())

    def total(self, factors: Tensor) -> Tensor:
        """Return the weighted sum."""
        rows = scaled(self.right.float(), factors).flatten(0, 1)
        return rows.new_zeros(self.shape).index_add(0, self.index.flatten(), rows)

    def gradients(self) -> Tensor:
        """Return the gradients, one table for each unit."""
        units = self.index.shape[0]
        offset = torch.arange(units, device=self.index.device).unsqueeze(1) * self.shape[0]
        flat = self.right.float().new_zeros(units * self.shape[0], self.shape[1])
        flat = flat.index_add(0, (self.index + offset).flatten(), self.right.float().flatten(0, 1))
        return flat.reshape(units, *self.shape)


@dataclass
class PartJob:
    """The gradient of some rows of a matrix; its other rows have none here."""

    matrix: MatrixJob
    start: int
    shape: torch.Size

    def _whole(self, part: Tensor) -> Tensor:
        after = self.shape[0] - self.start - part.shape[-2]
        return torch.nn.functional.pad(part, (0, 0, self.start, after))

    def squares(self) -> Tensor:
        """Return the squared norms."""
        return self.matrix.squares()

    def total(self, factors: Tensor) -> Tensor:
        """Return the weighted sum."""
        return self._whole(self.matrix.total(factors))

    def gradients(self) -> Tensor:
        """Return the gradients."""
        return self._whole(self.matrix.gradients())


@dataclass
class DisjointParts:
    """The gradients of several parts of a matrix that have no row in common."""

    parts: Sequence[PartJob]

    def squares(self) -> Tensor:
        """Return the squared norms: those of the parts add up."""
        return torch.stack([part.squares() for part in self.parts]).sum(0)

    def total(self, factors: Tensor) -> Tensor:
        """Return the weighted sum."""
        return torch.stack([part.total(factors) for part in self.parts]).sum(0)

    def gradients(self) -> Tensor:
        """Return the gradients."""
        return torch.stack([part.gradients() for part in self.parts]).sum(0)


def _disjoint(jobs: Sequence[GradientJob]) -> DisjointParts | None:
    """Return parts of a matrix as one job, or nothing where they meet or are something else."""
    parts = [job for job in jobs if isinstance(job, PartJob)]
    ends = sorted((part.start, part.start + part.matrix.shape[0]) for part in parts)
    meet = any(first[1] > second[0] for first, second in itertools.pairwise(ends))
    return None if meet or len(parts) < len(jobs) else DisjointParts(parts)


@dataclass
class TiedJob:
    """A table of embeddings that is also the matrix of a linear layer: two jobs, one gradient."""

    lookup: LookupJob
    matrix: MatrixJob

    def squares(self) -> Tensor:
        """Return the squared norms of the sums: both norms and twice the inner product."""
        left, right = self.matrix.left, self.matrix.right
        index = self.lookup.index.unsqueeze(1).expand(-1, right.shape[1], -1)
        meeting = torch.gather(right, 2, index).float()
        inner = (torch.bmm(left.float(), self.lookup.right.float().mT) * meeting).sum((1, 2))
        separate = self.lookup.squares() + gram_squares(left, right)
        return torch.maximum(separate + 2 * inner, CANCELLED * separate)

    def total(self, factors: Tensor) -> Tensor:
        """Return the weighted sum."""
        return self.lookup.total(factors) + self.matrix.total(factors)

    def gradients(self) -> Tensor:
        """Return the gradients."""
        return self.lookup.gradients() + self.matrix.gradients()


def merged(jobs: Sequence[GradientJob]) -> GradientJob:
    """Return one job for a parameter that was used several times: its gradients add up before any norm."""
    if len(jobs) == 1:
        return jobs[0]
    matrices = [job for job in jobs if isinstance(job, MatrixJob)]
    lookups = [job for job in jobs if isinstance(job, LookupJob)]
    matrix = _joined_matrices(matrices)
    if len(matrices) == len(jobs) and matrix is not None:
        return matrix
    lookup = _joined_lookups(lookups)
    if len(lookups) == len(jobs) and lookup is not None:
        return lookup
    if matrix is not None and lookup is not None and len(matrices) + len(lookups) == len(jobs):
        rows, table = lookup.index.shape[1] + matrix.left.shape[1], math.prod(matrix.shape)
        if not matrix.transposed and rows * sum(matrix.shape) <= table:
            return TiedJob(lookup, matrix)
    parts = _disjoint(jobs)
    if parts is not None:
        return parts
    total = jobs[0].gradients()
    for job in jobs[1:]:
        total = total + job.gradients()
    return HeldGradients(total)


def operands_of(job: object) -> list[Tensor]:
    """Return the tensors of a job that have one part for each unit: all but the parameter itself."""
    if isinstance(job, torch.Tensor):
        return [job]
    if isinstance(job, list | tuple):
        return [tensor for one in job for tensor in operands_of(one)]
    operands = {name: value for name, value in getattr(job, "__dict__", {}).items() if name != "weight"}
    return [tensor for value in operands.values() for tensor in operands_of(value)]


def _joined_matrices(jobs: Sequence[MatrixJob]) -> MatrixJob | None:
    if not jobs or len({(job.shape, job.transposed, job.left.dtype) for job in jobs}) != 1:
        return None
    if len(jobs) == 1:
        return jobs[0]
    left, right = (torch.cat([getattr(job, side) for job in jobs], 1) for side in ("left", "right"))
    return MatrixJob(left, right, jobs[0].shape, jobs[0].transposed)


def _joined_lookups(jobs: Sequence[LookupJob]) -> LookupJob | None:
    if len(jobs) < 2:
        return jobs[0] if jobs else None
    return LookupJob(
        torch.cat([job.index for job in jobs], 1), torch.cat([job.right for job in jobs], 1), jobs[0].shape
    )


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
        totals = []
        for number, parameter in enumerate(self.parameters):
            job = self._final[number]
            shape = parameter.shape
            totals.append(
                torch.zeros(shape, device=parameter.device)
                if job is None
                else job.total(factors).reshape(shape)
            )
            self._final[number] = None
        return totals

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
