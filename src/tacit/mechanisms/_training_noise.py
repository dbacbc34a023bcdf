"""The training noise of mechanisms: seeds for generators, slots of units, and Gaussian numbers in floats."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tacit import noise

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SEED_BITS = 64
_GRID = 2**20


def generator_seed() -> int:
    """Draw a fresh seed of 64 bits from the operating system's generator, for the noise of one step.

    A graphics card draws training noise with its own generator (Philox), which is not cryptographic. Each
    step takes a new seed, so that whoever worked out the noise of one step would know nothing of another. A
    seed never leaves the process and is never used twice. The certificate calls these numerics idealised.

    Examples
    --------
    >>> 0 <= generator_seed() < 2**64
    True
    """
    return int(noise.uniform_below(2**_SEED_BITS))


def random_slots(slots: int, units: int) -> NDArray[np.int64]:
    """Draw a slot for each unit of a sample, uniformly and independently.

    The draws decide which kernels compute a unit, and are no noise: whatever they are, a unit moves a sum by
    at most the clip. They must not depend on other units.

    Examples
    --------
    >>> random_slots(8, 3).shape
    (3,)
    """
    return np.asarray(noise.uniform_below(slots, units), dtype=np.int64)


def training_noise(count: int) -> NDArray[np.float32]:
    """Draw standard Gaussian numbers for training on a processor, from cryptographic bits.

    They are exact draws of the discrete Gaussian on a grid of 2^-20, and then rounded to single precision.
    PyTorch's own generator for processors is not used: it has 32 bits of seed, and its state can be computed
    from its output.

    Examples
    --------
    >>> training_noise(3).shape
    (3,)
    """
    return (noise.discrete_gaussian(_GRID, count) * (1 / _GRID)).astype(np.float32)
