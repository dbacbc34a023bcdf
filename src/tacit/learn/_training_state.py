"""The state of a training run between instalments: weights, optimizer, average and clip, as JSON bytes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import torch

from tacit.learn._arrays import from_document, to_document

if TYPE_CHECKING:
    from torch import Tensor

    from tacit.learn._model_sums import ModelSums


def write_state(sums: ModelSums) -> bytes:
    """Write where the steps stand: a function of noisy sums, but kept secret with the run."""
    state = sums._optimizer.state_dict()["state"]  # noqa: SLF001 - a part of it
    return json.dumps(
        {
            "taken": sums.taken,
            "watched": sums.watched,
            "weights": [_document(one) for one in sums._blocks.parameters],  # noqa: SLF001
            "average": [_document(one) for one in sums._average],  # noqa: SLF001
            "clip": _document(sums._clip),  # noqa: SLF001
            "optimizer": {
                str(place): {n: _value(v) for n, v in held.items()} for place, held in state.items()
            },
        }
    ).encode()


def read_state(sums: ModelSums, state: bytes) -> None:
    """Continue from where the steps stood."""
    held = json.loads(state)
    sums.taken = int(held["taken"])
    sums.watched = [(int(step), float(loss)) for step, loss in held["watched"]]
    with torch.no_grad():
        kept = [*sums._blocks.parameters, *sums._average, sums._clip]  # noqa: SLF001
        for one, document in zip(kept, [*held["weights"], *held["average"], held["clip"]], strict=True):
            one.copy_(_tensor(document))
    optimizer = sums._optimizer  # noqa: SLF001
    states = {int(p): {n: _read(v) for n, v in one.items()} for p, one in held["optimizer"].items()}
    optimizer.load_state_dict({**optimizer.state_dict(), "state": states})


def _document(tensor: Tensor) -> Any:
    """Write a tensor exactly; bfloat16, which NumPy does not have, in single precision."""
    held = tensor.detach().cpu()
    return to_document((held.float() if held.dtype == torch.bfloat16 else held).numpy())


def _tensor(document: Any) -> Tensor:
    return torch.from_numpy(from_document(document))


def _value(value: Any) -> Any:
    return {"tensor": _document(value)} if isinstance(value, torch.Tensor) else {"value": value}


def _read(document: Any) -> Any:
    return _tensor(document["tensor"]) if "tensor" in document else document["value"]
