"""Total functions: look-ups and losses that fail on a number out of their range give "not a number" instead.

On a graphics card such a failure ends the whole process. A unit whose gradient is not a number adds zero, so
a label that a loss does not know, or a word that a table does not have, counts as nothing and ends nothing.

What a look-up out of range would read or write is replaced by zero for the call, and what the call returns is
then multiplied by "not a number" in its places, so that gradients through it are not numbers either. Results
that are whole numbers cannot say so; they are those of the number zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

if TYPE_CHECKING:
    from collections.abc import Callable


_WHOLE = frozenset({torch.int64, torch.int32, torch.int16, torch.int8})


def outside(index: Tensor, size: int, *, negative: bool = False) -> Tensor:
    """Return where an index has no place among ``size``; some functions count negative ones from the end."""
    return (index < (-size if negative else 0)) | (index >= size)


def nan_where(output: Any, strange: Tensor) -> Any:
    """Return a result that is not a number, and has no gradient, in some places; whole numbers stay."""
    if not output.is_floating_point():
        return output
    return output * torch.where(strange, torch.nan, 1.0).to(output.dtype)


def _gather(call: Callable[..., Any], input: Tensor, dim: int, index: Tensor, **options: Any) -> Any:  # noqa: A002
    strange = outside(index, input.shape[dim] if input.dim() else 1)
    return nan_where(call(input, dim, index.masked_fill(strange, 0), **options), strange)


def _take_along(call: Callable[..., Any], input: Tensor, indices: Tensor, dim: int | None = None) -> Any:  # noqa: A002
    strange = outside(indices, input.numel() if dim is None else input.shape[dim])
    output = call(input, indices.masked_fill(strange, 0), dim)
    return nan_where(output, strange)


def _take(call: Callable[..., Any], input: Tensor, index: Tensor) -> Any:  # noqa: A002
    strange = outside(index, input.numel(), negative=True)
    return nan_where(call(input, index.masked_fill(strange, 0)), strange)


def _index_select(call: Callable[..., Any], input: Tensor, dim: int, index: Tensor, **options: Any) -> Any:  # noqa: A002
    strange = outside(index, input.shape[dim] if input.dim() else 1)
    output = call(input, dim, index.masked_fill(strange, 0), **options)
    return nan_where(output, _along(strange, dim, output.dim()))


def _one_hot(call: Callable[..., Any], tensor: Tensor, num_classes: int = -1) -> Any:
    """Write ones; a class that does not exist has none."""
    if num_classes < 1:  # as many as the largest class: the form of the result depends on the examples
        return call(tensor, num_classes)
    strange = outside(tensor, num_classes)
    return call(tensor.masked_fill(strange, 0), num_classes).masked_fill(strange.unsqueeze(-1), 0)


def _embedding_bag(
    call: Callable[..., Any],
    input: Tensor,  # noqa: A002
    weight: Tensor,
    offsets: Tensor | None = None,
    *rest: Any,
    **options: Any,
) -> Any:
    """Add up rows of a table; a bag with a row that the table does not have is not a number."""
    strange = outside(input, weight.shape[0])
    output = call(input.masked_fill(strange, 0), weight, offsets, *rest, **options)
    marks = weight.new_zeros(2, 1)
    marks[1] = 1.0
    include_last = options.get("include_last_offset", rest[6] if len(rest) > 6 else False)
    often = functional.embedding_bag(
        strange.long(), marks, offsets, mode="sum", include_last_offset=include_last
    )
    return nan_where(output, often > 0)


def _scatter(
    call: Callable[..., Any],
    input: Tensor,  # noqa: A002
    dim: int,
    index: Tensor,
    src: Any = None,
    **options: Any,
) -> Any:
    """Write to places; what has no place makes the first place not a number."""
    source = options.pop("value", src)
    strange = outside(index, input.shape[dim] if input.dim() else 1)
    if not input.is_floating_point():
        return call(input, dim, index.masked_fill(strange, 0), source, **options)
    if isinstance(source, Tensor):
        part = source[tuple(slice(0, n) for n in index.shape)] if source.dim() else source
    else:
        part = torch.full(index.shape, source, dtype=input.dtype, device=input.device)
    return call(input, dim, index.masked_fill(strange, 0), nan_where(part, strange), **options)


def _index_add(
    call: Callable[..., Any],
    input: Tensor,  # noqa: A002
    dim: int,
    index: Tensor,
    source: Tensor,
    **options: Any,
) -> Any:
    strange = outside(index, input.shape[dim] if input.dim() else 1)
    part = nan_where(source, _along(strange, dim, source.dim()))
    return call(input, dim, index.masked_fill(strange, 0), part, **options)


def _along(strange: Tensor, dim: int, axes: int) -> Tensor:
    """Return a line of marks as a tensor with so many axes, along one of them."""
    return strange.reshape([-1 if axis == dim % axes else 1 for axis in range(axes)]) if axes else strange


def _get(call: Callable[..., Any], input: Tensor, index: Any) -> Any:  # noqa: A002
    safe, marks = _safe_index(input, index)
    return call(input, index) if marks is None else nan_where(call(input, safe), marks)


def _set(call: Callable[..., Any], input: Tensor, index: Any, value: Any) -> Any:  # noqa: A002
    safe, marks = _safe_index(input, index)
    if marks is None or not input.is_floating_point():
        return call(input, index if marks is None else safe, value)
    tensor = torch.as_tensor(value, dtype=input.dtype, device=input.device)
    return call(input, safe, nan_where(tensor, marks))


def _safe_index(input: Tensor, index: Any) -> tuple[Any, Tensor | None]:  # noqa: A002
    """Return an index without numbers out of range, and where the result has them; None if it has no tensors.

    Where these are in the result follows PyTorch's rules for several indices. So the same index reads marks
    from a tensor whose indexed axes have two places, of which the second one is marked.
    """
    parts = list(index) if isinstance(index, tuple) else [index]
    axes = _axes(input, parts)
    if not axes:
        return index, None
    shape = [2 if axis in axes.values() else size for axis, size in enumerate(input.shape)]
    marks = torch.zeros([1] * input.dim(), dtype=torch.bool, device=input.device)
    safe, marked = list(parts), list(parts)
    for position, axis in axes.items():
        strange = outside(parts[position], input.shape[axis], negative=True)
        safe[position] = parts[position].masked_fill(strange, 0)
        marked[position] = strange.long()
        two = torch.arange(2, device=input.device) == 1
        marks = marks | two.reshape([2 if other == axis else 1 for other in range(input.dim())])
    return tuple(safe), marks.expand(shape)[tuple(marked)]


def _axes(input: Tensor, parts: list[Any]) -> dict[int, int]:  # noqa: A002
    """Return the axis of each index that is a tensor of whole numbers; none where a mask makes it unclear."""
    if not any(isinstance(part, Tensor) and part.dtype in _WHOLE for part in parts):
        return {}
    if any(isinstance(part, list | Tensor) and not _is_whole(part) for part in parts):
        return {}
    used = sum(1 for part in parts if part is not None and part is not Ellipsis)
    axes, axis = {}, 0
    for position, part in enumerate(parts):
        if part is Ellipsis:
            axis += input.dim() - used
        elif part is not None:
            if isinstance(part, Tensor):
                axes[position] = axis
            axis += 1
    return axes


def _is_whole(index: Any) -> bool:
    """Say whether an index is a tensor of whole numbers; masks and lists are something else."""
    return isinstance(index, Tensor) and index.dtype in _WHOLE


#: The total form of each look-up: it takes the call and the function's own arguments.
TOTAL_LOOKUPS: dict[Any, Callable[..., Any]] = {
    torch.gather: _gather,
    Tensor.gather: _gather,
    torch.take_along_dim: _take_along,
    Tensor.take_along_dim: _take_along,
    torch.take: _take,
    Tensor.take: _take,
    torch.index_select: _index_select,
    Tensor.index_select: _index_select,
    functional.one_hot: _one_hot,
    functional.embedding_bag: _embedding_bag,
    torch.scatter: _scatter,
    Tensor.scatter: _scatter,
    Tensor.scatter_: _scatter,
    torch.scatter_add: _scatter,
    Tensor.scatter_add: _scatter,
    Tensor.scatter_add_: _scatter,
    torch.index_add: _index_add,
    Tensor.index_add: _index_add,
    Tensor.index_add_: _index_add,
    torch.index_copy: _index_add,
    Tensor.index_copy: _index_add,
    Tensor.index_copy_: _index_add,
    Tensor.__getitem__: _get,
    Tensor.__setitem__: _set,
}


_LOSS_OPTIONS = ("weight", "size_average", "ignore_index", "reduce", "reduction")


def call_totally(call: Callable[..., Any], func: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Call a function of PyTorch, or what stands for it, so that no number of an example makes it fail.

    Examples
    --------
    >>> given = torch.tensor([1, 9]), torch.eye(3)
    >>> call_totally(functional.embedding, functional.embedding, given, {})
    tensor([[0., 1., 0.],
            [nan, nan, nan]])
    """
    total = _TOTAL.get(func)
    return call(*args, **options) if total is None else total(call, *args, **options)


def _embedding(call: Callable[..., Any], input: Tensor, weight: Tensor, *rest: Any, **options: Any) -> Any:  # noqa: A002
    """Look up rows; one that the table does not have is not a number."""
    strange = outside(input, weight.shape[0])
    output = call(input.masked_fill(strange, 0), weight, *rest, **options)
    return output.masked_fill(strange.unsqueeze(-1), torch.nan)


def _class_loss(call: Callable[..., Any], input: Tensor, target: Tensor, *rest: Any, **options: Any) -> Any:  # noqa: A002
    """Compute losses of classes; one that does not exist has a loss that is not a number."""
    options = {**dict(zip(_LOSS_OPTIONS, rest, strict=False)), **options}
    if target.is_floating_point() or input.dim() < 2 or options.get("reduction") != "none":
        return call(input, target, **options)
    ignored = options.get("ignore_index", -100)
    strange = outside(target, input.shape[1]) & (target != ignored)
    return nan_where(call(input, target.masked_fill(strange, 0), **options), strange)


def _margin_loss(call: Callable[..., Any], input: Tensor, target: Tensor, *rest: Any, **options: Any) -> Any:  # noqa: A002
    """Compute margins of classes; one that does not exist has a loss that is not a number."""
    strange = outside(target, input.shape[-1])
    losses = call(input, target.masked_fill(strange, 0), *rest, **options)
    return nan_where(losses, strange) if losses.shape == target.shape else losses


def _chance_loss(
    call: Callable[..., Any],
    input: Tensor,  # noqa: A002
    target: Tensor,
    weight: Tensor | None = None,
    *rest: Any,
    **options: Any,
) -> Any:
    """Compute losses of chances; what is not between 0 and 1 has a loss that is not a number."""
    strange = ~((input >= 0) & (input <= 1))
    losses = call(input.masked_fill(strange, 0.5), target, weight, *rest, **options)
    return nan_where(losses, strange) if losses.shape == input.shape else losses


_TOTAL: dict[Any, Callable[..., Any]] = {
    functional.embedding: _embedding,
    functional.cross_entropy: _class_loss,
    functional.nll_loss: _class_loss,
    functional.multi_margin_loss: _margin_loss,
    functional.binary_cross_entropy: _chance_loss,
    **TOTAL_LOOKUPS,
}


class TotalFunctions(TorchFunctionMode):
    """Inside this block, functions that could fail on a number of an example give "not a number"."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call the function."""
        return call_totally(func, func, args, kwargs or {})
