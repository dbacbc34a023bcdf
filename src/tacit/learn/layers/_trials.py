"""Trial steps on invented examples: where a layer meets the examples, and whether fast sums are right.

They also check that an example's gradient does not depend on the rest of its batch, and refuse models whose
course follows the data. Nothing here sees the data: trial examples have the shapes of real ones and values of
their own. So whatever a trial finds or refuses is the same for every dataset with these shapes.
"""

from __future__ import annotations

import math
import sys
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import torch
from torch.overrides import TorchFunctionMode

from tacit.errors import TacitError
from tacit.fixes import Say
from tacit.learn.layers._bookkeeping import LayoutChangedError
from tacit.learn.layers._clipped_step import UnknownUseError, gradients

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch import Tensor, nn

    from tacit.learn.layers._bookkeeping import BatchLayout
    from tacit.learn.layers._clipped_step import ClippedStep, Tensors


#: Numbers of trial examples. Two that agree on every layout settle it.
TRIAL_SIZES: Final = (3, 5, 7, 11)
#: How far the fast sums may be from the definition, relative to it, in float32.
TRIAL_TOLERANCE: Final = 1e-3
_LABELLED: Final = 32  # examples that try whether the loss knows all labels
_COMPARED: Final = 3  # examples, in a batch and alone
_LABELS: Final = 16  # so many labels are tried; each of them twice in a batch
_LARGE: Final = 1000.0  # by so much the last of the uneven examples is larger than the others
#: Functions that turn a number of a tensor into something that a program decides by.
_DECISIONS: Final = frozenset(
    {
        torch.Tensor.__bool__, torch.Tensor.__float__, torch.Tensor.__int__, torch.Tensor.__index__,
        torch.Tensor.item, torch.Tensor.tolist, torch.Tensor.numpy, torch.equal, torch.Tensor.equal,
        torch.allclose, torch.Tensor.allclose,
    }
)  # fmt: skip
#: Functions whose result has a size that follows from the numbers of a tensor.
_CHOICES: Final = frozenset(
    {
        torch.nonzero, torch.Tensor.nonzero, torch.masked_select, torch.Tensor.masked_select, torch.unique,
        torch.Tensor.unique,
    }
)  # fmt: skip
#: Functions that can bring examples into another order, if they act on the first axis.
_ORDERS: Final = frozenset(
    {
        torch.sort, torch.Tensor.sort, torch.argsort, torch.Tensor.argsort, torch.topk, torch.Tensor.topk,
    }
)  # fmt: skip


def invented(values: Tensors, size: int, seed: int = 0, *, targets: bool = False, labels: int = 2) -> Tensors:
    """Return as many invented examples as asked for, with the shapes and types of the given ones.

    Numbers are drawn from a normal law, for targets from 0 to 1. Whole numbers are 0 and 1, for targets all
    numbers below `labels`, one after the other. Masks are true.

    Examples
    --------
    >>> import torch
    >>> [tuple(v.shape) for v in invented((torch.zeros(8, 3), torch.zeros(8, dtype=torch.long)), 5)]
    [(5, 3), (5,)]
    """
    source = torch.Generator().manual_seed(seed)
    tensors = []
    for value in values:
        shape = (size, *value.shape[1:])
        if value.is_floating_point():
            draw = torch.rand if targets else torch.randn
            tensor = draw(shape, generator=source).to(value.dtype)
        elif value.dtype == torch.bool:
            tensor = torch.ones(shape, dtype=torch.bool)
        else:
            tensor = torch.randint(0, 2, shape, generator=source).to(value.dtype)
            if targets and labels > 2:
                tensor = _labels(shape, labels, seed).to(value.dtype)
            elif tensor.dim() > 1:
                tensor[..., 0] = 1
        tensors.append(tensor.to(value.device))
    return tuple(tensors)


def _targets(step: ClippedStep, values: Tensors, size: int, seed: int) -> Tensors:
    return invented(values, size, seed, targets=True, labels=step.labels)


def _labels(shape: tuple[int, ...], labels: int, seed: int) -> Tensor:
    """Return every label as often as every other, in an order that follows from the seed."""
    order = torch.randperm(labels, generator=torch.Generator().manual_seed(seed))
    return order[torch.arange(math.prod(shape)) % labels].reshape(shape)


def label_width(step: ClippedStep, inputs: Tensors, targets: Tensors) -> int:
    """Return how many labels invented targets may have: the width of the model's output; 2 if unknown."""
    if not any(not one.is_floating_point() and one.dtype != torch.bool for one in targets):
        return 2
    try:
        with fixed_chance(inputs[0].device), torch.no_grad():
            output = step.model(*invented(inputs, 3))
            output = getattr(output, "logits", output)
            words = targets[0].dim() > 1 and output.shape[1:2] == targets[0].shape[1:2]  # classes come last
            width = int(output.shape[-1] if words else output.shape[1]) if output.dim() > 1 else 2
            size = max(3, min(width, _LABELLED))
            labels = invented(targets, size, 1, targets=True, labels=width)
            losses = step.losses(step.model(*invented(inputs, size)), *labels)
    except torch.OutOfMemoryError:
        raise
    except Exception:  # noqa: BLE001 - the trials after this one say what is wrong with a model
        return 2
    return max(2, width) if bool(losses.isfinite().all()) else 2


@contextmanager
def fixed_chance(device: torch.device, seed: int = 0) -> Iterator[None]:
    """Let dropout draw the same values in every block, and leave PyTorch's generators as they were."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


def find_layouts(
    step: ClippedStep, parameters: Sequence[Tensor], inputs: Tensors, targets: Tensors
) -> list[BatchLayout]:
    """Return where the examples are in the input of every layer: the axis that grows with their number."""
    layouts: list[list[BatchLayout]] = []
    single = replace(step, per_unit=1, precision="float32")
    for size in TRIAL_SIZES:
        weights = torch.ones(size, device=parameters[0].device)
        with fixed_chance(parameters[0].device):
            book = single.book(
                parameters, invented(inputs, size), _targets(step, targets, size, 1), weights, None
            )
        if book.seen in layouts:
            return book.seen
        layouts.append(book.seen)
    raise LayoutChangedError(
        "not-allowed",
        "the layout of the examples in the model's layers changes with the size of the batch",
        why="the gradients of the examples could not be separated",
        fix=Say("a model whose layers keep the examples on one axis, or the exact method"),
    )


def check_layers(
    step: ClippedStep,
    parameters: Sequence[Tensor],
    inputs: Tensors,
    targets: Tensors,
    layouts: Sequence[BatchLayout],
) -> None:
    """Compare the fast norms and sums with the gradients of single units, on invented examples."""
    per_unit = min(step.per_unit, 2)
    small = replace(step, per_unit=per_unit, precision="float32")
    size = 3 * per_unit
    device = parameters[0].device
    weights = torch.linspace(0.5, 1.5, size, device=device)
    factors = torch.tensor([0.25, 1.0, 0.5], device=device)
    trial = invented(inputs, size, 2), _targets(step, targets, size, 3)
    with fixed_chance(device):
        exact = gradients_of_units(small, parameters, *trial, weights)
    with fixed_chance(device):
        book = small.book(parameters, *trial, weights, layouts)
    norms = torch.stack([value.reshape(len(value), -1).square().sum(1) for value in exact]).sum(0).sqrt()
    fast = book.squares().clamp_min(0).sqrt()
    close = torch.allclose(fast, norms, rtol=TRIAL_TOLERANCE, atol=1e-6)
    scale = max(float(norms.max()), 1e-6)
    for values, total in zip(exact, book.totals(factors), strict=True):
        expected = torch.tensordot(factors, values, dims=1)
        close = close and bool((expected - total).norm() <= TRIAL_TOLERANCE * scale)
    if not close:
        raise UnknownUseError(
            "not-allowed",
            "the fast gradients of this model differ from its exact ones",
            why="the model uses a layer in a way for which Tacit has no fast rule",
            fix=Say("the exact method, which is slower"),
        )


def gradients_of_units(
    step: ClippedStep,
    parameters: Sequence[Tensor],
    inputs: Tensors,
    targets: Tensors,
    weights: Tensor,
    *,
    units: int | None = None,
) -> list[Tensor]:
    """Return the gradients of the first units of one batch, or of all, by a backward pass for each."""
    losses = (step.losses(step.model(*inputs), *targets) * weights).reshape(-1, step.per_unit).sum(1)
    by_unit = []
    for value in losses[:units]:
        pairs = zip(gradients(value, parameters, again=True), parameters, strict=True)
        by_unit.append([torch.zeros_like(p) if g is None else g for g, p in pairs])
    return [torch.stack(values) for values in zip(*by_unit, strict=True)]


def check_mixing(step: ClippedStep, parameters: Sequence[Tensor], inputs: Tensors, targets: Tensors) -> None:
    """Refuse a model or a loss that mixes examples: change one, and nothing of another may move."""
    device = parameters[0].device
    size = 3
    single = replace(step, per_unit=1, precision="float32")
    weights = torch.ones(size, device=device)
    before, versions = _state_of(step.model)
    examples = invented(inputs, size, 4), _targets(step, targets, size, 5)
    others = invented(inputs, size, 6), _targets(step, targets, size, 7)
    changed = tuple(
        tuple(_exchanged(a, b) for a, b in zip(*p, strict=True)) for p in zip(examples, others, strict=True)
    )
    with fixed_chance(device):
        gradients_before = gradients_of_units(single, parameters, *examples, weights)
    _check_unchanged(step.model, before, versions)
    with fixed_chance(device):
        gradients_after = gradients_of_units(single, parameters, changed[0], changed[1], weights)
    scale = max(float(torch.stack([v[:2].norm() for v in gradients_before]).norm()), 1e-12)
    distance = float(
        torch.stack(
            [(a[:2] - b[:2]).norm() for a, b in zip(gradients_before, gradients_after, strict=True)]
        ).norm()
    )
    if not distance <= 1e-4 * scale:
        raise mixing_refused("the model or the loss mixes the examples of a batch")


def _state_of(model: nn.Module) -> tuple[dict[str, Tensor], dict[str, int]]:
    """Return copies of a model's parameters and buffers, and how often its parameters were written to."""
    state = {
        name: value.detach().clone() for name, value in (*model.named_parameters(), *model.named_buffers())
    }
    return state, {name: value._version for name, value in model.named_parameters()}  # noqa: SLF001


def _check_unchanged(model: nn.Module, before: dict[str, Tensor], versions: dict[str, int]) -> None:
    """Refuse a model that wrote to its parameters or buffers, even where the values stayed the same.

    What a model writes while it sees examples has no noise: an embedding with a largest norm shortens exactly
    the rows that the examples of a batch look up.
    """
    now = dict((*model.named_parameters(), *model.named_buffers()))
    changed = [
        name
        for name, value in now.items()
        if name in before
        and (value._version != versions.get(name, value._version) or not torch.equal(value, before[name]))  # noqa: SLF001
    ]
    if changed:
        with torch.no_grad():
            for name, value in before.items():
                now[name].copy_(value)
        raise mixing_refused(f"the model changes {changed[0]} while it runs")


def _exchanged(tensor: Tensor, other: Tensor) -> Tensor:
    """Return the first examples with the last one exchanged."""
    final = other[-1:]
    if not final.is_floating_point() and torch.equal(final, tensor[-1:]):
        final = ~final if final.dtype == torch.bool else (final == 0).to(final.dtype)
        if final.dtype == torch.bool and final.dim() > 1:
            final[..., 0] = True  # a mask that hides everything makes attention fail
    return torch.cat([tensor[:-1], final])


def mixing_refused(sentence: str) -> TacitError:
    """Return the refusal of a model that mixes examples."""
    return TacitError(
        "not-allowed",
        sentence,
        why="clipping a gradient that depends on others does not bound what one person contributes",
        fix=Say("layers and a loss that treat each example separately, such as group normalisation"),
    )


def check_batch_independence(
    step: ClippedStep, parameters: Sequence[Tensor], inputs: Tensors, targets: Tensors
) -> None:
    """Refuse a model or a loss that gives an example another gradient alone than in a batch.

    A batch mean, a division by the number of examples or of tokens in a batch, and a scale by the largest
    value of a batch all do so. The last example of the second trial is a thousand times larger than the
    others and has fewer entries, so that what happens for large values alone is seen too. A batch holds each
    label twice, so that a count of any label in the batch differs from the count in a single example.
    """
    single = replace(step, per_unit=1, precision="float32")
    size = max(_COMPARED, 2 * min(step.labels, _LABELS))
    labels = invented(targets, -(-size // 2), 9, targets=True, labels=step.labels)
    even = invented(inputs, size, 8), tuple(torch.cat([one, one])[:size] for one in labels)
    uneven = tuple(_uneven(one) for one in even[0]), even[1]
    with _settled_chance(single, parameters, *even) as settled:
        if not settled:
            return
        _compare(single, parameters, *even)
        try:
            _compare(single, parameters, *uneven)
        except (RuntimeError, ValueError, IndexError):  # it may not take such values at all
            return


def _compare(step: ClippedStep, parameters: Sequence[Tensor], inputs: Tensors, targets: Tensors) -> None:
    batch = _gradients(step, parameters, inputs, targets)
    for index in range(_COMPARED):
        try:
            single = _part(step, parameters, inputs, targets, [index])
        except Exception:  # noqa: BLE001 - some models need two examples: then it keeps itself company
            single = _part(step, parameters, inputs, targets, [index, index])
        pairs = list(zip(batch, single, strict=True))
        scale = torch.stack([a[index].norm() for a, _ in pairs]).norm()
        distance = torch.stack([(a[index] - b[0]).norm() for a, b in pairs]).norm()
        if bool(scale.isfinite()) and not bool(distance <= TRIAL_TOLERANCE * scale.clamp_min(1e-12)):
            raise mixing_refused("an example has another gradient in a batch than alone")


def _part(
    step: ClippedStep, parameters: Sequence[Tensor], inputs: Tensors, targets: Tensors, places: list[int]
) -> list[Tensor]:
    return _gradients(step, parameters, tuple(v[places] for v in inputs), tuple(v[places] for v in targets))


def _gradients(
    step: ClippedStep, parameters: Sequence[Tensor], inputs: Tensors, targets: Tensors, seed: int = 0
) -> list[Tensor]:
    device = parameters[0].device
    with fixed_chance(device, seed):
        weights = torch.ones(len((*inputs, *targets)[0]), device=device)
        return gradients_of_units(step, parameters, inputs, targets, weights, units=_COMPARED)


@contextmanager
def _settled_chance(
    step: ClippedStep, parameters: Sequence[Tensor], inputs: Tensors, targets: Tensors
) -> Iterator[bool]:
    """Let the model draw nothing, in evaluation mode if it must; say whether that was possible."""
    modes = [(submodule, submodule.training) for submodule in step.model.modules()]
    settled = False
    try:
        for module in (None, step.model):
            if module is not None:
                module.eval()
            run, rerun = (_gradients(step, parameters, inputs, targets, seed) for seed in (1, 2))
            settled = all(
                torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(run, rerun, strict=True)
            )
            if settled:
                break
        yield settled
    finally:
        for submodule, mode in modes:
            submodule.training = mode


def _uneven(value: Tensor) -> Tensor:
    """Return examples of which the second is half empty, and the last nearly empty or very large."""
    value = value.clone()
    if value.is_floating_point():
        value[2] *= _LARGE
    elif value.dim() > 1 and value.shape[-1] > 1:
        value[1, ..., value.shape[-1] // 2 :] = 0
        value[2, ..., 1:] = 0
    return value


class _Marked(torch.Tensor):
    """A tensor that depends on examples; PyTorch marks what is computed from it."""


class _Course(TorchFunctionMode):
    """Notes whether a model decides by its examples, or orders them by what they hold."""

    def __init__(self) -> None:
        super().__init__()
        self.found = ""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        options = kwargs or {}
        tensor = args[0] if args else options.get("input")
        if isinstance(tensor, _Marked) and self._follows(func, tensor, args, options):
            self.found = self.found or str(getattr(func, "__name__", func))
        return func(*args, **options)

    @staticmethod
    def _follows(func: Any, tensor: Tensor, args: tuple[Any, ...], options: dict[str, Any]) -> bool:
        if func in _DECISIONS:
            return not _is_library(sys._getframe(2))  # noqa: SLF001
        if func in _ORDERS:
            return _on_first_axis(func, tensor, args, options)
        chosen = func is torch.Tensor.__getitem__ and _masks(args[1])
        return chosen or func in _CHOICES or func is torch.Tensor.register_hook


def _is_library(frame: Any) -> bool:
    """Say whether the library of Hugging Face asked, which decides only between equal ways to attend."""
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith("torch."):
        frame = frame.f_back
    return frame is not None and str(frame.f_globals.get("__name__", "")).startswith("transformers.")


def _on_first_axis(func: Any, tensor: Tensor, args: tuple[Any, ...], options: dict[str, Any]) -> bool:
    position = 2 if func in {torch.topk, torch.Tensor.topk} else 1
    axis = options.get("dim", args[position] if len(args) > position else -1)
    axis = axis if isinstance(axis, int) and not isinstance(axis, bool) else -1
    return tensor.dim() < 2 or axis % tensor.dim() == 0


def _masks(index: Any) -> bool:
    parts = index if isinstance(index, tuple) else (index,)
    return any(isinstance(one, _Marked) and one.dtype == torch.bool for one in parts)


def follows_data(step: ClippedStep, inputs: Tensors, targets: Tensors) -> str:
    """Return by which function a model's or a loss's course follows the examples, or nothing.

    Such a model can treat an example in another way because of its company, for values that no trial tried.
    Then every unit is computed on its own. A hook on gradients sees those of a whole batch, so it counts too.
    """
    for module in step.model.modules():
        if module._backward_hooks or module._backward_pre_hooks:  # noqa: SLF001
            return "a hook on gradients"
    course = _Course()
    marked = tuple(v.as_subclass(_Marked) for v in invented(inputs, 3, 8))
    labels = invented(targets, 3, 9, targets=True, labels=step.labels)
    tracked = tuple(v.as_subclass(_Marked) for v in labels)
    try:
        with fixed_chance(inputs[0].device), course:
            step.losses(step.model(*marked), *tracked)
    except Exception:  # noqa: BLE001 - a model that does not take marked tensors is judged by the other trials
        return course.found
    return course.found
