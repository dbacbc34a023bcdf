"""The slots of a block: what a unit's bits may depend on, so that they never depend on who else is there."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from tacit.mechanisms import random_slots

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray
    from torch import Tensor


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
        drawn = np.zeros(units, dtype=np.int64)
        if len(members) > 1:
            drawn = self.classes[random_slots(self.size, units)]
        waiting = [np.flatnonzero(drawn == one) for one in range(len(members))]
        blocks = max(-(-len(own) // len(slots)) for own, slots in zip(waiting, members, strict=True))
        packed = np.full((blocks, self.size), -1, dtype=np.int64)
        for own, slots in zip(waiting, members, strict=True):
            filled = np.full(blocks * len(slots), -1, dtype=np.int64)
            filled[: len(own)] = own
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
        drawn = f"; {kinds} classes of slots, drawn at random for each unit" if kinds > 1 else ""
        return f"kernels: rows separate (tested){drawn}"
