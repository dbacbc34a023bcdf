"""Sums of gradients over blocks of examples: gathered, clipped unit by unit, and added up on one device.

The slots of a block are what a unit's bits may depend on, so that they never depend on who else is there.

Training can run on several processes of ``torch.distributed``: the first draws, adds noise and charges; all
of them compute sums. Each holds the same examples. For each step the first one sends the sampled rows and the
weights, every one adds up its part, and the parts are added up. Sample and noise come from the first one
alone, once for each step, so neither depends on how many processes there are.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import distributed

from tacit.core import Release
from tacit.errors import TacitError
from tacit.fixes import Say
from tacit.learn.layers._trials import fixed_chance, invented
from tacit.learn.training._setup import as_model_input, tensor_of
from tacit.mechanisms import generator_seed, random_slots

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray
    from torch import Tensor, nn

    from tacit.learn.training._setup import TrainingSetup


_END, _STEP = 0, 1
_LOOKED_AT = 256  # examples that processes compare


@dataclass(frozen=True, slots=True, eq=False)
class BlockSlots:
    """How the units of a sample are packed into blocks of one fixed shape.

    A float kernel may give the same example other bits in another slot. Slots with equal bits form a class.
    Where there are several classes, each sampled unit draws its class independently, with the class's share
    of the slots. So the class of a unit does not depend on who else is in the sample.

    Parameters
    ----------
    classes
        The class of each slot, from 0.
    fill
        One example for each array, which fills empty slots with weight 0; None stands for zeros.
    threads
        With how many threads blocks are computed, at plan time and in every step.
    tested
        Whether the slots passed the tests on invented examples. Else a block holds one unit.

    Examples
    --------
    >>> slots = BlockSlots(np.zeros(3, dtype=np.int64))
    >>> [block.tolist() for block in slots.packed(4)]
    [[0, 1, 2], [3, -1, -1]]
    """

    classes: NDArray[np.int64]
    fill: tuple[Tensor, ...] | None = None
    threads: int | None = None
    tested: bool = True

    @property
    def size(self) -> int:
        """How many units a block has."""
        return len(self.classes)

    def packed(self, units: int) -> list[NDArray[np.int64]]:
        """Return, for each block, which unit of a sample is in each slot; -1 for an empty slot."""
        members = [np.flatnonzero(self.classes == one) for one in range(int(self.classes.max()) + 1)]
        drawn_classes = np.zeros(units, dtype=np.int64)
        if len(members) > 1:
            drawn_classes = self.classes[random_slots(self.size, units)]
        waiting = [np.flatnonzero(drawn_classes == one) for one in range(len(members))]
        blocks = max(
            -(-len(unit_class) // len(slots)) for unit_class, slots in zip(waiting, members, strict=True)
        )
        packed = np.full((blocks, self.size), -1, dtype=np.int64)
        for unit_class, slots in zip(waiting, members, strict=True):
            filled = np.full(blocks * len(slots), -1, dtype=np.int64)
            filled[: len(unit_class)] = unit_class
            packed[:, slots] = filled.reshape(blocks, len(slots))
        return list(packed)

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Compute with the number of threads of the tests: another number may give other bits."""
        before = torch.get_num_threads()
        if self.threads in {None, before}:
            yield
            return
        torch.set_num_threads(int(self.threads or before))
        try:
            yield
        finally:
            torch.set_num_threads(before)

    def words(self) -> str:
        """Return what a plan and a certificate say about the kernels."""
        if not self.tested:
            return "kernels: each unit alone, because slots could not be tested or rows are not separate"
        kinds = int(self.classes.max()) + 1
        kinds_in_words = f"; {kinds} classes of slots, drawn at random for each unit" if kinds > 1 else ""
        return f"kernels: rows separate (tested){kinds_in_words}"


#: Inputs, targets and weights of the examples of some units.
UnitBlock: TypeAlias = "tuple[tuple[Tensor, ...], tuple[Tensor, ...], Tensor]"


class SampledRows(NamedTuple):
    """The examples of a sample: units x examples, and whether each place is taken."""

    places: NDArray[np.int64]
    taken: NDArray[np.bool_]

    @classmethod
    def of(cls, rows: NDArray[np.int64]) -> SampledRows:
        """Read rows of units that are padded with -1.

        A unit with fewer examples is filled up with its own first one, which then counts with weight 0:
        whatever is strange about an example must not reach other units.
        """
        return cls(np.where(rows < 0, rows[:, :1], rows), rows >= 0)

    def part(self, units: Any) -> SampledRows:
        """Return some of the units."""
        return SampledRows(self.places[units], self.taken[units])

    def at(self, slots: NDArray[np.int64]) -> SampledRows:
        """Return a block with these units in its slots; -1 leaves a slot empty."""
        empty = (slots < 0)[:, None]
        return SampledRows(np.where(empty, -1, self.places[slots]), self.taken[slots] & ~empty)


class SampleSums(NamedTuple):
    """Clipped sums over a sample: for each parameter, norms below 1 minus norms above 1, norms not finite."""

    sums: list[Tensor]
    balance: Tensor
    strange: Tensor


class GradientSums:
    """A model and the examples, and how to add up clipped gradients over them, a block at a time.

    Parameters
    ----------
    setup
        Settings, block size and device.
    model
        The model, on the device.
    arrays
        The examples; the model's inputs first, then what goes to the loss.
    """

    def __init__(self, setup: TrainingSetup, model: nn.Module, arrays: Sequence[Any]) -> None:
        self._setup = setup
        self._slots = setup.slots or BlockSlots(np.zeros(setup.physical, dtype=np.int64))
        self.clipped = setup.clipped_sums(model)
        self._arrays = tuple(tensor_of(one) for one in arrays)
        self._packed: list[NDArray[np.int64]] = []
        self._seed = 0

    @property
    def parameters(self) -> list[nn.Parameter]:
        """The parameters that are trained."""
        return self.clipped.parameters

    def add_up(self, sample: SampledRows, scale: Tensor | None, *, careful: bool) -> SampleSums:
        """Return the sums over a sample; with a scale, each gradient is divided by it before the clip.

        Without care, a gradient that is not finite spoils the sums; `SampleSums.strange` then says so, and
        the same sample must be added up again with care. Slots and random numbers are then the same.
        """
        if not careful:
            self._packed = self._slots.packed(len(sample.places))
            self._seed = generator_seed() >> 1
        sums = [torch.zeros_like(one, dtype=torch.float32) for one in self.parameters]
        balance, strange = torch.zeros(2, device=self._setup.device)
        with self._slots.computing():
            for number, slots in enumerate(self._packed):
                chance = (self._seed + number) % 2**63
                block_sums, norms = self._block_sums(sample.at(slots), scale, chance, careful=careful)
                torch._foreach_add_(sums, [one.detach() for one in block_sums])
                del block_sums  # the next block needs the memory
                good, filled = norms.isfinite(), torch.from_numpy(slots >= 0).to(norms.device)
                below = torch.where(norms <= 1, 1.0, -1.0)
                balance = balance + torch.where(good & filled, below, 0.0).sum()
                strange = strange + (~good).sum()
        return SampleSums(sums, balance, strange)

    def _block_sums(
        self, block: SampledRows, scale: Tensor | None, chance: int, *, careful: bool
    ) -> tuple[list[Tensor], Tensor]:
        """Return clipped sums and norms of a block; a unit on which the model fails adds zero.

        A label that the loss does not know, or a word that a table does not have, would else end the run:
        then the end of a run would tell that one person is in the data. A failure that invented examples
        have too is public, and it is raised. All others are computed in the same slots of the same block as
        if the unit were not there: computed alone, they would have other bits.
        """
        computed = self._tried(block, scale, chance, careful=careful)
        if computed is not None:
            return computed
        self._try_invented()
        failing = self._failing(block, np.flatnonzero(block.taken[:, 0]), scale, chance)
        indices = np.arange(len(block.places))
        indices[failing] = -1
        computed = self._tried(block.at(indices), scale, chance, careful=careful)
        if computed is None:  # it fails on a company of units, and on none of them: none of them counts
            failing, computed = np.arange(len(indices)), self._nothing(len(indices))
        sums, norms = computed
        norms = norms.clone()
        norms[torch.from_numpy(failing).to(norms.device)] = torch.inf
        return sums, norms

    def _tried(
        self, block: SampledRows, scale: Tensor | None, chance: int, *, careful: bool
    ) -> tuple[list[Tensor], Tensor] | None:
        """Return clipped sums and norms of a block, or nothing if the model fails on it."""
        try:
            with fixed_chance(self._setup.device, chance):
                gathered = self._weighed(self.gather(block), scale)
                return (self.clipped if careful else self.clipped.unchecked)(*gathered)
        except torch.OutOfMemoryError:
            raise
        except Exception:  # noqa: BLE001 - whatever the model, the loss or the augmentation raises
            return None  # what it says may quote an example, so nothing is raised from here

    def _nothing(self, units: int) -> tuple[list[Tensor], Tensor]:
        zeros = [torch.zeros_like(one, dtype=torch.float32) for one in self.parameters]
        return zeros, torch.full((units,), torch.inf, device=self._setup.device)

    def _failing(
        self, block: SampledRows, units: NDArray[np.int64], scale: Tensor | None, chance: int
    ) -> NDArray[np.int64]:
        """Return the slots of the units on which the model fails, each in a block without the others.

        Half of the units are tried at once: where a unit fails, every block with it fails.
        """
        only = np.full(len(block.places), -1)
        only[units] = units
        if not len(units) or self._tried(block.at(only), scale, chance, careful=False) is not None:
            return units[:0]
        if len(units) == 1:
            return units
        halves = np.array_split(units, 2)
        return np.concatenate([self._failing(block, one, scale, chance) for one in halves])

    def _weighed(self, gathered: UnitBlock, scale: Tensor | None) -> UnitBlock:
        return gathered if scale is None else (*gathered[:2], gathered[2] / scale)

    def _try_invented(self) -> None:
        """Raise what the model raises on invented examples, in a full block and in one with empty slots."""
        size, cut = self._slots.size, self._setup.inputs
        units = np.arange(size * self._setup.per_unit).reshape(size, -1)
        shapes = tuple(one[:0] for one in self._arrays)
        arrays = (
            *invented(shapes[:cut], units.size),
            *invented(shapes[cut:], units.size, 1, targets=True, labels=self.clipped.step.labels),
        )
        for filled in (size, 1):
            slots = np.where(np.arange(size) < filled, np.arange(size), -1)
            self.clipped(*self.gather(SampledRows.of(units).at(slots), arrays))

    def gather(self, block: SampledRows, arrays: Sequence[Tensor] | None = None) -> UnitBlock:
        """Return inputs, targets and weights of the units of a block; public examples fill empty slots.

        Nobody's example stands in for a missing unit: an infinite value in it would reach the others.
        """
        setup = self._setup
        empty = torch.from_numpy((block.places < 0).reshape(-1))
        places = torch.from_numpy(np.maximum(block.places, 0).reshape(-1))
        weights = _moved(torch.from_numpy(block.taken.reshape(-1).astype(np.float32)), setup.device)
        hidden = _moved(empty, setup.device) if bool(empty.any()) else None
        tensors = []
        for number, array in enumerate(self._arrays if arrays is None else arrays):
            tensor = _moved(array.index_select(0, _moved(places, array.device)), setup.device)
            tensor = as_model_input(tensor, self.parameters[0].dtype)
            if hidden is not None:
                fill = (
                    tensor.new_zeros(1) if self._slots.fill is None else self._slots.fill[number].to(tensor)
                )
                tensor = torch.where(hidden.reshape(-1, *(1,) * (tensor.dim() - 1)), fill, tensor)
            tensors.append(tensor)
        inputs, targets = tuple(tensors[: setup.inputs]), tuple(tensors[setup.inputs :])
        if setup.augment is not None:
            times = setup.augment.times
            inputs = setup.augment(inputs)
            targets = tuple(tensor.repeat_interleave(times, 0) for tensor in targets)
            weights = weights.repeat_interleave(times, 0) / times
        return inputs, targets, weights


def _moved(tensor: Tensor, device: torch.device) -> Tensor:
    """Move a tensor without waiting for it."""
    if tensor.device.type != "cpu" or device.type != "cuda":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def is_shared() -> bool:
    """Whether this process is one of several that train together."""
    return distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1


class SharedGradientSums(GradientSums):
    """Block sums whose blocks all processes compute; for the first process."""

    def add_up(self, sample: SampledRows, scale: Tensor | None, *, careful: bool) -> SampleSums:
        """Return the sums over a sample, each process taking a part of it."""
        units, per_unit = sample.places.shape
        _send(self._setup, [_STEP, units, per_unit, int(careful), int(scale is not None)])
        _send(self._setup, np.concatenate([sample.places.reshape(-1), sample.taken.reshape(-1)]))
        for tensor in [*self.parameters, *(() if scale is None else (scale,))]:
            distributed.broadcast(tensor.detach(), 0)
        return _summed_over_processes(GradientSums.add_up(self, _own_part(sample), scale, careful=careful))


def _summed_over_processes(part: SampleSums) -> SampleSums:
    """Add up what all processes have."""
    for tensor in part.sums:
        distributed.all_reduce(tensor)
    counts = torch.stack([part.balance, part.strange])
    distributed.all_reduce(counts)
    return SampleSums(part.sums, counts[0], counts[1])


def _own_part(sample: SampledRows) -> SampledRows:
    """Return every n-th unit of a sample, for one of n processes."""
    return sample.part(slice(distributed.get_rank(), None, distributed.get_world_size()))


def _serve(setup: TrainingSetup, arrays: Sequence[Any]) -> None:
    """Compute parts of sums for the first process until it ends."""
    model, _ = setup.start()
    blocks = GradientSums(setup, model, arrays)
    while True:
        [command, units, per_unit, careful, scaled] = _receive(setup, 5)
        if command == _END:
            return
        received = np.array(_receive(setup, 2 * units * per_unit), dtype=np.int64).reshape(2, units, per_unit)
        scale = torch.zeros((), device=setup.device) if scaled else None
        for tensor in [*blocks.parameters, *(() if scale is None else (scale,))]:
            distributed.broadcast(tensor.detach(), 0)
        sample = SampledRows(received[0], received[1].astype(bool))
        _summed_over_processes(blocks.add_up(_own_part(sample), scale, careful=bool(careful)))


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
        released = release()
        outcome = {"release": released.to_json()}
    except TacitError as error:
        outcome = {"error": error.code, "what": error.what}
        raise
    finally:
        _send(setup, [_END, 0, 0, 0, 0])
        document = json.dumps(outcome).encode()
        _send(setup, [len(document)])
        _send(setup, list(document))
    return released


def _check_same(setup: TrainingSetup, plan: str, arrays: Sequence[Any]) -> None:
    """Refuse processes that do not have the same plan and the same examples, before anything is charged.

    The first process draws places of examples. On another process they would name other people, or nobody.
    With the same examples everywhere, as `Trainer.release` asks for, this never refuses.
    """
    fingerprint = bytes.fromhex(plan) + _some_examples(arrays) + _kernels(setup)
    numbers = torch.tensor(list(fingerprint), dtype=torch.int64, device=setup.device)
    every = [torch.zeros_like(numbers) for _ in range(distributed.get_world_size())]
    distributed.all_gather(every, numbers)
    if not all(torch.equal(one, numbers) for one in every):
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
    facts = [torch.__version__, kind, setup.physical]
    if slots is not None:
        facts += [slots.classes.tolist(), slots.threads, slots.tested]
    return hashlib.sha256(json.dumps(facts).encode()).digest()


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
    received = torch.zeros(size, dtype=torch.int64, device=setup.device)
    distributed.broadcast(received, 0)
    numbers: list[int] = received.tolist()
    return numbers
