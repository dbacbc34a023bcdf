"""Sums of gradients over blocks of examples: gathered, clipped unit by unit, and added up on one device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import torch

from tacit.learn._layer_trial import invented
from tacit.learn._training_setup import as_model_input, tensor_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray
    from torch import Tensor, nn

    from tacit.learn._training_setup import TrainingSetup

#: Inputs, targets and weights of the examples of some units.
UnitBlock: TypeAlias = "tuple[tuple[Tensor, ...], tuple[Tensor, ...], Tensor]"

__all__ = ["GradientSums", "SampleSums", "SampledRows"]


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
        self.clipped = setup.clipped_sums(model)
        self._arrays = tuple(tensor_of(one) for one in arrays)

    @property
    def parameters(self) -> list[nn.Parameter]:
        """The parameters that are trained."""
        return self.clipped.parameters

    def add_up(self, sample: SampledRows, scale: Tensor | None, *, careful: bool) -> SampleSums:
        """Return the sums over a sample; with a scale, each gradient is divided by it before the clip.

        Without care, a gradient that is not finite spoils the sums; `SampleSums.strange` then says so.
        """
        sums = [torch.zeros_like(one, dtype=torch.float32) for one in self.parameters]
        balance, strange = torch.zeros(2, device=self._setup.device)
        for block, size in self._blocks(sample):
            found, norms = self._block_sums(block, size, scale, careful=careful)
            torch._foreach_add_(sums, [one.detach() for one in found])
            del found  # the next block needs the memory
            good = norms.isfinite()[: len(block.places)]
            below = torch.where(norms[: len(good)] <= 1, 1.0, -1.0)
            balance = balance + torch.where(good, below, 0.0).sum()
            strange = strange + (~good).sum()
        return SampleSums(sums, balance, strange)

    def _block_sums(
        self, block: SampledRows, size: int, scale: Tensor | None, *, careful: bool
    ) -> tuple[list[Tensor], Tensor]:
        """Return clipped sums and norms of a block; a unit on which the model fails adds zero.

        A label that the loss does not know, or a word that a table does not have, would else end the run:
        then the end of a run would tell that one person is in the data. A failure that invented examples
        have too is public, and it is raised.
        """
        try:
            given = self._weighed(self.gather(block, size), scale)
            return (self.clipped if careful else self.clipped.unchecked)(*given)
        except torch.OutOfMemoryError:
            raise
        except Exception:  # noqa: BLE001, S110 - whatever the model, the loss or the augmentation raises
            pass  # what it says may quote an example, so nothing is raised from here
        self._try_invented(size)
        return self._one_by_one(block, scale)

    def _weighed(self, given: UnitBlock, scale: Tensor | None) -> UnitBlock:
        return given if scale is None else (*given[:2], given[2] / scale)

    def _try_invented(self, size: int) -> None:
        """Raise what the model raises on invented examples."""
        units = np.arange(size * self._setup.per_unit).reshape(size, -1)
        shapes = tuple(one[:0] for one in self._arrays)
        arrays = (
            *invented(shapes[: self._setup.inputs], units.size),
            *invented(shapes[self._setup.inputs :], units.size, 1, targets=True),
        )
        self.clipped(*self.gather(SampledRows.of(units), size, arrays))

    def _one_by_one(self, block: SampledRows, scale: Tensor | None) -> tuple[list[Tensor], Tensor]:
        """Return sums and norms where each unit is computed alone: exactly, or in company of zeros."""
        sums = [torch.zeros_like(one, dtype=torch.float32) for one in self.parameters]
        norms = torch.full((len(block.places),), torch.inf, device=self._setup.device)
        for unit in range(len(block.places)):
            for size, way in ((1, self.clipped.exactly), (2, self.clipped)):
                try:
                    found, norm = way(*self._weighed(self.gather(block.part([unit]), size), scale))
                except torch.OutOfMemoryError:
                    raise
                except Exception:  # noqa: BLE001, S112 - if both ways fail, it adds zero
                    continue
                torch._foreach_add_(sums, [one.detach() for one in found])
                norms[unit] = norm[0]
                break
        return sums, norms

    def _blocks(self, sample: SampledRows) -> Iterator[tuple[SampledRows, int]]:
        """Split a sample into blocks of about equal length, each with the size that is computed at once."""
        units, physical = len(sample.places), self._setup.physical
        if units:
            size = physical if self._setup.compile else -(-units // -(-units // physical))
            size = max(size, min(2, physical))  # some models drop the axis of a single example
            for start in range(0, units, size):
                yield sample.part(slice(start, start + size)), size

    def gather(self, block: SampledRows, size: int, arrays: Sequence[Tensor] | None = None) -> UnitBlock:
        """Return inputs, targets and weights of some units, filled up with zeros to a fixed size.

        Nobody's example stands in for a missing unit: an infinite value in it would reach the others.
        """
        setup, missing = self._setup, (size - len(block.places)) * block.places.shape[1]
        places = torch.from_numpy(block.places.reshape(-1))
        taken = torch.from_numpy(block.taken.reshape(-1).astype(np.float32))
        dtype = self.parameters[0].dtype
        made = []
        for array in self._arrays if arrays is None else arrays:
            one = _moved(array.index_select(0, _moved(places, array.device)), setup.device)
            one = as_model_input(one, dtype)
            made.append(torch.cat([one, one.new_zeros((missing, *one.shape[1:]))]) if missing else one)
        weights = torch.nn.functional.pad(_moved(taken, setup.device), (0, missing))
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
