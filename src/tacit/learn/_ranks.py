"""Training on several processes: the first draws, adds noise and charges; all of them compute sums.

The processes are those of ``torch.distributed``. Each holds the same examples. For each step the first one
sends the sampled rows and the weights, every one adds up its part, and the parts are added up. Sample and
noise come from the first one alone, once for each step, so neither depends on how many processes there are.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import distributed

from tacit.core import Release
from tacit.errors import TacitError
from tacit.fixes import Say
from tacit.learn._gradient_sums import GradientSums, SampledRows, SampleSums
from tacit.learn._training_setup import tensor_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from tacit.learn._training_setup import TrainingSetup

_END, _STEP = 0, 1
_LOOKED_AT = 256  # examples that processes compare


def is_shared() -> bool:
    """Whether this process is one of several that train together."""
    return distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1


class SharedGradientSums(GradientSums):
    """Block sums whose blocks all processes compute; for the first process."""

    def add_up(self, sample: SampledRows, scale: Tensor | None, *, careful: bool) -> SampleSums:
        """Return the sums over a sample, each process taking a part of it."""
        units, most = sample.places.shape
        _send(self._setup, [_STEP, units, most, int(careful), int(scale is not None)])
        _send(self._setup, np.concatenate([sample.places.reshape(-1), sample.taken.reshape(-1)]))
        for one in [*self.parameters, *(() if scale is None else (scale,))]:
            distributed.broadcast(one.detach(), 0)
        return _together(GradientSums.add_up(self, _own_part(sample), scale, careful=careful))


def _together(own: SampleSums) -> SampleSums:
    """Add up what all processes have."""
    for one in own.sums:
        distributed.all_reduce(one)
    counts = torch.stack([own.balance, own.strange])
    distributed.all_reduce(counts)
    return SampleSums(own.sums, counts[0], counts[1])


def _own_part(sample: SampledRows) -> SampledRows:
    """Return every n-th unit of a sample, for one of n processes."""
    return sample.part(slice(distributed.get_rank(), None, distributed.get_world_size()))


def _serve(setup: TrainingSetup, arrays: Sequence[Any]) -> None:
    """Compute parts of sums for the first process until it ends."""
    model, _ = setup.start()
    blocks = GradientSums(setup, model, arrays)
    while True:
        [command, units, most, careful, scaled] = _receive(setup, 5)
        if command == _END:
            return
        held = np.array(_receive(setup, 2 * units * most), dtype=np.int64).reshape(2, units, most)
        scale = torch.zeros((), device=setup.device) if scaled else None
        for one in [*blocks.parameters, *(() if scale is None else (scale,))]:
            distributed.broadcast(one.detach(), 0)
        sample = SampledRows(held[0], held[1].astype(bool))
        _together(blocks.add_up(_own_part(sample), scale, careful=bool(careful)))


def release_shared(
    setup: TrainingSetup, arrays: Sequence[Any], plan: str, release: Callable[[], Release[Any]]
) -> Release[Any]:
    """Release on the first process, which charges once, while the others compute; return it on all of them.

    Parameters
    ----------
    setup, arrays
        What is trained, and the examples.
    plan
        The plan's hash, which must be the same on all processes.
    release
        Called on the first process alone.
    """
    _check_same(setup, plan, arrays)
    if distributed.get_rank():
        _serve(setup, arrays)
        outcome = json.loads(bytes(_receive(setup, _receive(setup, 1)[0])))
        if "error" in outcome:
            raise TacitError(outcome["error"], outcome["what"], fix=Say("see the first process"))
        return Release.from_json(outcome["release"])
    outcome = {"error": "release-failed", "what": "the release failed on the first process"}
    try:
        drawn = release()
        outcome = {"release": drawn.to_json()}
    except TacitError as error:
        outcome = {"error": error.code, "what": error.what}
        raise
    finally:
        _send(setup, [_END, 0, 0, 0, 0])
        written = json.dumps(outcome).encode()
        _send(setup, [len(written)])
        _send(setup, list(written))
    return drawn


def _check_same(setup: TrainingSetup, plan: str, arrays: Sequence[Any]) -> None:
    """Refuse processes that do not have the same plan and the same examples, before anything is charged.

    The first process draws places of examples. On another process they would name other people, or nobody.
    With the same examples everywhere, as `Trainer.release` asks for, this never refuses.
    """
    held = bytes.fromhex(plan) + _some_examples(arrays) + _kernels(setup)
    own = torch.tensor(list(held), dtype=torch.int64, device=setup.device)
    every = [torch.zeros_like(own) for _ in range(distributed.get_world_size())]
    distributed.all_gather(every, own)
    if not all(torch.equal(one, own) for one in every):
        raise TacitError(
            "plan-differs",
            "the processes do not train the same model in the same way on the same examples",
            why="their plans, examples, processors or numbers of threads differ; often the model starts from "
            "other weights",
            fix=Say("set the same seed of PyTorch and the same number of threads on all processes before the "
                    "model is built, and give each of them all examples in the same order"),
        )  # fmt: skip


def _kernels(setup: TrainingSetup) -> bytes:
    """Return a digest of what decides how a process rounds: a unit must have the same bits on all."""
    slots = setup.slots
    kind = (
        torch.cuda.get_device_name()
        if setup.device.type == "cuda"
        else torch.backends.cpu.get_cpu_capability()
    )
    found = [torch.__version__, kind, setup.physical]
    if slots is not None:
        found += [slots.classes.tolist(), slots.threads, slots.tested]
    return hashlib.sha256(json.dumps(found).encode()).digest()


def _some_examples(arrays: Sequence[Any]) -> bytes:
    """Return a digest of the number of examples and of some of them, evenly spread; for processes alone."""
    digest = hashlib.sha256()
    for array in arrays:
        places = np.linspace(0, max(0, len(array) - 1), min(len(array), _LOOKED_AT)).astype(np.int64)
        some = tensor_of(array)[torch.from_numpy(places)].detach().cpu().contiguous()
        digest.update(f"{len(array)} {some.dtype} {tuple(some.shape)}".encode())
        digest.update(some.reshape(-1).view(torch.uint8).numpy().tobytes() if some.numel() else b"")
    return digest.digest()


def _send(setup: TrainingSetup, numbers: Sequence[int] | NDArray[np.int64]) -> None:
    distributed.broadcast(torch.from_numpy(np.asarray(numbers, dtype=np.int64)).to(setup.device), 0)


def _receive(setup: TrainingSetup, size: int) -> list[int]:
    held = torch.zeros(size, dtype=torch.int64, device=setup.device)
    distributed.broadcast(held, 0)
    found: list[int] = held.tolist()
    return found
