"""The setup of training: model, loss, optimizer and where they run, as a plan keeps them.

Digests of the model, the loss and the optimizer identify a plan.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import inspect
import json
import warnings
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import torch

from tacit.learn.layers._clipped_sums import ClippedSums

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from torch import Tensor, nn

    from tacit.core import JSON
    from tacit.learn.training._gradient_sums import BlockSlots
    from tacit.learn.training._settings import TrainingSettings


_OURS = ("torch.", "transformers.", "builtins", "functools")


def tensors_digest(tensors: Iterable[tuple[str, torch.Tensor]]) -> str:
    """Return a digest of names, types, shapes and bits of tensors, wherever they are."""
    import torch

    digest = hashlib.sha256()
    for name, tensor in tensors:
        stored = tensor.detach().cpu().contiguous()
        digest.update(json.dumps([name, str(stored.dtype), list(stored.shape)]).encode())
        digest.update(stored.reshape(-1).view(torch.uint8).numpy().tobytes() if stored.numel() else b"")
    return digest.hexdigest()


def model_document(model: nn.Module) -> dict[str, JSON]:
    """Return what identifies a model: its modules, their code and modes, and the weights it starts from."""
    modules = dict(model.named_modules())
    kinds = sorted({type(one) for one in modules.values()}, key=lambda kind: kind.__qualname__)
    frozen = [name for name, parameter in model.named_parameters() if not parameter.requires_grad]
    return {
        "modules": _digest([[name, _name(type(one)), _plain(one)] for name, one in modules.items()]),
        "shown": _digest(repr(model)),
        "code": _digest([_source(kind) for kind in kinds]),
        "frozen": _digest(frozen),
        "start": tensors_digest(model.state_dict().items()),
    }


def callable_document(function: Any) -> JSON:
    """Return what identifies a loss or another function: its name, its code and its settings."""
    if hasattr(function, "named_modules"):
        return {"name": _name(type(function)), "settings": repr(function), **model_document(function)}
    if isinstance(function, functools.partial):
        settled = [*enumerate(function.args), *sorted(function.keywords.items())]
        return {
            "name": "functools.partial",
            "function": callable_document(function.func),
            "values": _digest([[str(name), _shown(value)] for name, value in settled]),
        }
    qualified = function if hasattr(function, "__qualname__") else type(function)
    bound = (
        [_shown(value) for value in inspect.getclosurevars(function).nonlocals.values()]
        if inspect.isfunction(function)
        else []
    )
    return {"name": _name(qualified), "code": _digest(_source(qualified)), "values": _digest(bound)}


def optimizer_document(optimizer: torch.optim.Optimizer) -> dict[str, JSON]:
    """Return what identifies an optimizer: its kind, its settings, and the state it starts from."""
    state = optimizer.state_dict()
    return {
        "kind": _name(type(optimizer)),
        "code": _digest(_source(type(optimizer))),
        "groups": json.loads(json.dumps(state["param_groups"], default=str)),
        "state": tensors_digest(sorted(_tensors(state["state"], ""))),
    }


def _tensors(state: Mapping[Any, Any], prefix: str) -> Iterable[tuple[str, torch.Tensor]]:
    import torch

    for name, value in state.items():
        if isinstance(value, dict):
            yield from _tensors(value, f"{prefix}{name}.")
        elif value is not None:
            yield f"{prefix}{name}", torch.as_tensor(value)


def _plain(module: nn.Module) -> JSON:
    """Return the settings of a module that are plain values, such as a probability or a mode."""
    plain = (bool, int, float, str, tuple, type(None))
    return [[name, repr(value)] for name, value in sorted(vars(module).items()) if isinstance(value, plain)]


def _shown(value: Any) -> str:
    """Return a value as text; a tensor by all its bits, of which its text shows only some."""
    import torch

    return tensors_digest([("", value)]) if isinstance(value, torch.Tensor) else str(value)


def _name(kind: Any) -> str:
    return f"{getattr(kind, '__module__', '')}.{getattr(kind, '__qualname__', kind)}"


def _source(kind: Any) -> str:
    """Return the source of code that is not a library's; empty where nobody has it."""
    if str(getattr(kind, "__module__", "")).startswith(_OURS):
        return ""
    try:
        return inspect.getsource(kind)
    except (OSError, TypeError):
        return ""


def _digest(document: JSON) -> str:
    return hashlib.sha256(json.dumps(document).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Augmentation:
    """Several random variants of each example, whose gradients are averaged before the clip.

    Guarantee: the cost is that of training without it, because the clip is applied to the mean over all
    variants of a unit's examples.

    Parameters
    ----------
    function
        Takes the inputs of one example and returns a random variant of them, with the same shapes.
    times
        How many variants each example has in a step.

    Examples
    --------
    >>> Augmentation(lambda image: image + 0.1 * torch.randn_like(image), times=4).times
    4
    """

    function: Callable[..., Any]
    times: int

    def document(self) -> JSON:
        """Return what identifies it."""
        return [callable_document(self.function), self.times]

    def __call__(self, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Return variants of each example, those of one example together; no example sees another."""
        repeated = tuple(one.repeat_interleave(self.times, 0) for one in inputs)
        augmented = torch.func.vmap(self.function, randomness="different")(*repeated)
        return augmented if isinstance(augmented, tuple) else (augmented,)


@dataclass(frozen=True, slots=True, eq=False)
class TrainingSetup:
    """What a plan keeps of a training run: copies of model and optimizer as they were given, and settings.

    Parameters
    ----------
    inputs
        How many of the dataset's arrays the model takes; the others go to the loss.
    physical
        How many units are computed at once: a block that is not full has empty slots.
    schedule
        By what the optimizer's learning rates are multiplied in each step.
    watch
        Public inputs and targets, whose loss may be shown.
    shared
        Whether several processes compute the sums.
    slots
        How units are packed into blocks of `physical` slots, as the tests at plan time found.
    """

    model: nn.Module
    loss: Any
    optimizer: torch.optim.Optimizer
    settings: TrainingSettings
    per_unit: int
    inputs: int
    physical: int
    device: torch.device
    compile: bool = False
    augment: Augmentation | None = None
    schedule: tuple[float, ...] = ()
    watch: tuple[Tensor, ...] = ()
    shared: bool = False
    slots: BlockSlots | None = None

    @property
    def names(self) -> list[str]:
        """The parameters that are trained; tied ones once."""
        return [name for name, one in self.model.named_parameters() if one.requires_grad]

    @property
    def size(self) -> int:
        """How many numbers are trained."""
        return sum(one.numel() for one in self.model.parameters() if one.requires_grad)

    def clipped_sums(self, model: nn.Module) -> ClippedSums:
        """Return what computes the clipped sums of a model."""
        settings = self.settings
        sums = ClippedSums(
            model,
            self.loss,
            clip=float(settings.clip if isinstance(settings.clip, Fraction) else 1),
            per_unit=self.per_unit * (1 if self.augment is None else self.augment.times),
            precision=settings.precision,
            automatic=settings.clip == "automatic",
        )
        sums.strict = True
        return sums.compiled() if self.compile else sums

    def start(self) -> tuple[nn.Module, torch.optim.Optimizer]:
        """Return a fresh model and its optimizer on the device, as they were given."""
        model, optimizer = copy.deepcopy((self.model, self.optimizer))
        model.to(self.device)
        optimizer.load_state_dict(optimizer.state_dict())  # moves the state to where the parameters are
        return model, optimizer

    def document(self) -> dict[str, JSON]:
        """Return what identifies the training; how fast it runs is no part of it."""
        return {
            "model": model_document(self.model),
            "loss": callable_document(self.loss),
            "optimizer": optimizer_document(self.optimizer),
            "settings": self.settings.to_json(),
            "per_unit": self.per_unit,
            "inputs": self.inputs,
            "augment": None if self.augment is None else self.augment.document(),
            "schedule": [repr(factor) for factor in self.schedule],
            "watch": tensors_digest((str(place), one) for place, one in enumerate(self.watch)),
        }  # fmt: skip


def tensor_of(array: Any) -> Tensor:
    """Return an array as a tensor that shares its memory; a file that is mapped for reading will do."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*not writable", category=UserWarning)
        return torch.as_tensor(array)


def as_model_input(values: Tensor, dtype: torch.dtype) -> Tensor:
    """Return values as a model takes them: numbers in its precision, whole numbers with 64 bits.

    Bytes and truth values stay as they are.
    """
    if values.is_floating_point():
        return values.to(dtype)
    return values if values.dtype in {torch.uint8, torch.bool} else values.long()
