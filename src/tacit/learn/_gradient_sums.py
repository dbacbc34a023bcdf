"""Sums of gradients over blocks of examples: gathered, clipped unit by unit, and added up on one device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import torch

from tacit.learn._block_slots import BlockSlots
from tacit.learn._layer_trial import fixed_chance, invented
from tacit.learn._training_setup import as_model_input, tensor_of
from tacit.mechanisms import generator_seed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from torch import Tensor, nn

    from tacit.learn._training_setup import TrainingSetup

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
                found, norms = self._block_sums(sample.at(slots), scale, chance, careful=careful)
                torch._foreach_add_(sums, [one.detach() for one in found])
                del found  # the next block needs the memory
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
        kept = np.arange(len(block.places))
        kept[failing] = -1
        computed = self._tried(block.at(kept), scale, chance, careful=careful)
        if computed is None:  # it fails on a company of units, and on none of them: none of them counts
            failing, computed = np.arange(len(kept)), self._nothing(len(kept))
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
                given = self._weighed(self.gather(block), scale)
                return (self.clipped if careful else self.clipped.unchecked)(*given)
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

    def _weighed(self, given: UnitBlock, scale: Tensor | None) -> UnitBlock:
        return given if scale is None else (*given[:2], given[2] / scale)

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
        made = []
        for number, array in enumerate(self._arrays if arrays is None else arrays):
            one = _moved(array.index_select(0, _moved(places, array.device)), setup.device)
            one = as_model_input(one, self.parameters[0].dtype)
            if hidden is not None:
                fill = one.new_zeros(1) if self._slots.fill is None else self._slots.fill[number].to(one)
                one = torch.where(hidden.reshape(-1, *(1,) * (one.dim() - 1)), fill, one)
            made.append(one)
        inputs, targets = tuple(made[: setup.inputs]), tuple(made[setup.inputs :])
        if setup.augment is not None:
            times = setup.augment.times
            inputs = setup.augment(inputs)
            targets = tuple(one.repeat_interleave(times, 0) for one in targets)
            weights = weights.repeat_interleave(times, 0) / times
        return inputs, targets, weights


def _moved(tensor: Tensor, device: torch.device) -> Tensor:
    """Move a tensor without waiting for it."""
    if tensor.device.type != "cpu" or device.type != "cuda":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)
