"""Broken packings of units into blocks: the kernels that compute a unit depend on who else is there."""

import numpy as np
import torch

from tacit.learn.training._gradient_sums import BlockSlots, GradientSums


def blocks_follow_the_sample(patch):
    """The last block is as long as what is left of the sample."""

    def packed(self, units):
        return [np.arange(start, min(units, start + self.size)) for start in range(0, units, self.size)]

    patch.setattr(BlockSlots, "packed", packed)


def packed_in_order(patch):
    """Units take the slots in order, whatever class the slots have."""

    def packed(self, units):
        held = np.full(-(-units // self.size) * self.size, -1)
        held[:units] = np.arange(units)
        return list(held.reshape(-1, self.size))

    patch.setattr(BlockSlots, "packed", packed)


def values_computed_alone(patch):
    """Where the model fails on a block, each of its units is computed alone, and these values are used."""
    whole = GradientSums._block_sums

    def block_sums(self, block, scale, chance, *, careful):
        if self._tried(block, scale, chance, careful=careful) is not None:
            return whole(self, block, scale, chance, careful=careful)
        sums = [torch.zeros_like(one) for one in self.parameters]
        for unit in np.flatnonzero(block.taken[:, 0]):
            alone = self._tried(block.at(np.array([unit])), scale, chance, careful=careful)
            if alone is not None:
                torch._foreach_add_(sums, [one.detach() for one in alone[0]])
        return sums, torch.zeros(len(block.places))

    patch.setattr(GradientSums, "_block_sums", block_sums)


BROKEN = [blocks_follow_the_sample, packed_in_order, values_computed_alone]
