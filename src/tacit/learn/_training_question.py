"""The question of training: digests of the model, the loss and the optimizer, which identify a plan."""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import torch
    from torch import nn

    from tacit.core import JSON

_OURS = ("torch.", "transformers.", "builtins", "functools")


def tensors_digest(named: Iterable[tuple[str, torch.Tensor]]) -> str:
    """Return a digest of names, types, shapes and bits of tensors, wherever they are."""
    import torch

    digest = hashlib.sha256()
    for name, tensor in named:
        held = tensor.detach().cpu().contiguous()
        digest.update(json.dumps([name, str(held.dtype), list(held.shape)]).encode())
        digest.update(held.reshape(-1).view(torch.uint8).numpy().tobytes() if held.numel() else b"")
    return digest.hexdigest()


def model_document(model: nn.Module) -> dict[str, JSON]:
    """Return what identifies a model: its modules, their code and modes, and the weights it starts from."""
    modules = dict(model.named_modules())
    own = sorted({type(one) for one in modules.values()}, key=lambda kind: kind.__qualname__)
    frozen = [name for name, parameter in model.named_parameters() if not parameter.requires_grad]
    return {
        "modules": _digest([[name, _name(type(one)), _plain(one)] for name, one in modules.items()]),
        "shown": _digest(repr(model)),
        "code": _digest([_source(kind) for kind in own]),
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
    named = function if hasattr(function, "__qualname__") else type(function)
    bound = (
        [_shown(value) for value in inspect.getclosurevars(function).nonlocals.values()]
        if inspect.isfunction(function)
        else []
    )
    return {"name": _name(named), "code": _digest(_source(named)), "values": _digest(bound)}


def optimizer_document(optimizer: torch.optim.Optimizer) -> dict[str, JSON]:
    """Return what identifies an optimizer: its kind, its settings, and the state it starts from."""
    held = optimizer.state_dict()
    return {
        "kind": _name(type(optimizer)),
        "code": _digest(_source(type(optimizer))),
        "groups": json.loads(json.dumps(held["param_groups"], default=str)),
        "state": tensors_digest(sorted(_tensors(held["state"], ""))),
    }


def _tensors(held: Mapping[Any, Any], prefix: str) -> Iterable[tuple[str, torch.Tensor]]:
    import torch

    for name, value in held.items():
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
