"""Draws of k-ary randomized response: the true answer with an exact chance, else another, all alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tacit import noise

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray


def respond(truths: NDArray[np.int64], size: int, chance: Fraction) -> NDArray[np.int64]:
    """Return each truth with probability exactly `chance`, else one of the other `size` - 1 answers."""
    honest = noise.bernoulli(chance, truths.size)
    other = noise.uniform_below(size - 1, truths.size)
    other += other >= truths
    return np.where(honest, truths, other)
