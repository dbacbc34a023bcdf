"""The check that an example counts the same alone as in company, and of models whose course follows the data.

Nothing here sees the data: all examples are invented, so what it finds is the same for every dataset with
these shapes.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import torch
from torch.overrides import TorchFunctionMode

from tacit.learn._layer_trial import (
    TRIAL_TOLERANCE,
    fixed_chance,
    gradients_of_units,
    invented,
    mixing_refused,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch import Tensor

    from tacit.learn._clipped_step import ClippedStep, Tensors

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


def check_alone(step: ClippedStep, parameters: Sequence[Tensor], inputs: Tensors, targets: Tensors) -> None:
    """Refuse a model or a loss that gives an example another gradient alone than in a batch.

    A batch mean, a division by the number of examples or of tokens in a batch, and a scale by the largest
    value of a batch all do so. The last example of the second trial is a thousand times larger than the
    others and has fewer entries, so that what happens for large values alone is seen too. A batch holds each
    label twice, so that a count of any label in the batch differs from the count in a single example.
    """
    single = replace(step, per_unit=1, precision="float32")
    size = max(_COMPARED, 2 * min(step.labels, _LABELS))
    wanted = invented(targets, -(-size // 2), 9, targets=True, labels=step.labels)
    even = invented(inputs, size, 8), tuple(torch.cat([one, one])[:size] for one in wanted)
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
    together = _gradients(step, parameters, inputs, targets)
    for place in range(_COMPARED):
        try:
            alone = _part(step, parameters, inputs, targets, [place])
        except Exception:  # noqa: BLE001 - some models need two examples: then it keeps itself company
            alone = _part(step, parameters, inputs, targets, [place, place])
        pairs = list(zip(together, alone, strict=True))
        scale = torch.stack([a[place].norm() for a, _ in pairs]).norm()
        moved = torch.stack([(a[place] - b[0]).norm() for a, b in pairs]).norm()
        if bool(scale.isfinite()) and not bool(moved <= TRIAL_TOLERANCE * scale.clamp_min(1e-12)):
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
    modes = [(one, one.training) for one in step.model.modules()]
    settled = False
    try:
        for module in (None, step.model):
            if module is not None:
                module.eval()
            first, second = (_gradients(step, parameters, inputs, targets, seed) for seed in (1, 2))
            settled = all(
                torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(first, second, strict=True)
            )
            if settled:
                break
        yield settled
    finally:
        for one, mode in modes:
            one.training = mode


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
        given = args[0] if args else options.get("input")
        if isinstance(given, _Marked) and self._follows(func, given, args, options):
            self.found = self.found or str(getattr(func, "__name__", func))
        return func(*args, **options)

    @staticmethod
    def _follows(func: Any, given: Tensor, args: tuple[Any, ...], options: dict[str, Any]) -> bool:
        if func in _DECISIONS:
            return not _is_library(sys._getframe(2))  # noqa: SLF001
        if func in _ORDERS:
            return _on_first_axis(func, given, args, options)
        chosen = func is torch.Tensor.__getitem__ and _masks(args[1])
        return chosen or func in _CHOICES or func is torch.Tensor.register_hook


def _is_library(frame: Any) -> bool:
    """Say whether the library of Hugging Face asked, which decides only between equal ways to attend."""
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith("torch."):
        frame = frame.f_back
    return frame is not None and str(frame.f_globals.get("__name__", "")).startswith("transformers.")


def _on_first_axis(func: Any, given: Tensor, args: tuple[Any, ...], options: dict[str, Any]) -> bool:
    place = 2 if func in {torch.topk, torch.Tensor.topk} else 1
    axis = options.get("dim", args[place] if len(args) > place else -1)
    axis = axis if isinstance(axis, int) and not isinstance(axis, bool) else -1
    return given.dim() < 2 or axis % given.dim() == 0


def _masks(index: Any) -> bool:
    parts = index if isinstance(index, tuple) else (index,)
    return any(isinstance(one, _Marked) and one.dtype == torch.bool for one in parts)


def follows_data(step: ClippedStep, inputs: Tensors, targets: Tensors) -> str:
    """Return by which function a model's or a loss's course follows the examples, or nothing.

    Such a model can treat an example in another way because of its company, for values that no trial tried.
    Then every unit is computed on its own. A hook on gradients sees those of a whole batch, so it counts too.
    """
    for one in step.model.modules():
        if one._backward_hooks or one._backward_pre_hooks:  # noqa: SLF001
            return "a hook on gradients"
    course = _Course()
    marked = tuple(v.as_subclass(_Marked) for v in invented(inputs, 3, 8))
    labels = invented(targets, 3, 9, targets=True, labels=step.labels)
    wanted = tuple(v.as_subclass(_Marked) for v in labels)
    try:
        with fixed_chance(inputs[0].device), course:
            step.losses(step.model(*marked), *wanted)
    except Exception:  # noqa: BLE001 - a model that does not take marked tensors is judged by the other trials
        return course.found
    return course.found
