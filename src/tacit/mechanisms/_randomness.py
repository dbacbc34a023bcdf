"""Random bits of mechanisms that are not the noise of a release.

The ranking secret ranks a unit's rows where there are more than the limit allows. The sampling secret
decides, for each unit by its name, whether it is in a sample. Training takes seeds for generators, slots of
units, and Gaussian numbers in floats. The randomness check is a quick test for fair coins, for reports on an
installation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tacit import noise
from tacit.errors import TacitError

if TYPE_CHECKING:
    from numpy.typing import NDArray


_BITS = 62
_SEED_BITS = 64
_GRID = 2**20


def ranking_secret() -> int:
    """Draw a fresh uniform secret of 62 bits, for ranking the rows of one unit by a keyed hash.

    A dataset keeps at most c rows of a unit. Which ones may be chosen by any rule that looks at the rows of
    this unit alone: the sensitivity holds for every rule and every value of the secret, so the secret is no
    noise and spends no budget. It is random so that nobody who writes rows can arrange which of them are
    kept, and it never leaves the process. Whoever knew it would learn which rows were dropped before the
    noise, and nothing about the rows that remain.

    Examples
    --------
    >>> 0 <= ranking_secret() < 2**62
    True
    """
    return int(noise.uniform_below(2**_BITS))


_WORDS = 4


def sampling_secret() -> str:
    """Draw a fresh uniform secret of 248 bits, as text, for one Poisson sample.

    A unit is in the sample if the SHA-256 of this secret and its name starts with a number below a threshold.
    To whoever does not know the secret, these numbers are independent and uniform (SHA-256 with a secret
    prefix of fixed length as a pseudorandom function, an assumption of the same kind as the one about the
    operating system's generator). Each release draws its own secret, and it never leaves the process:
    amplification by sampling holds only while nobody knows who is in the sample.

    Examples
    --------
    >>> len(sampling_secret())
    64
    """
    return "".join(f"{int(noise.uniform_below(2**_BITS)):016x}" for _ in range(_WORDS))


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


_TOSSES = 100_000
_MARGIN = 1100  # seven standard deviations: one false alarm in 10^11 runs


def check_randomness() -> str:
    """Toss 100,000 coins and return a sentence about them; refuse where they are not fair.

    It finds a generator that is broken or missing. It does not prove that one is secure.

    Examples
    --------
    >>> check_randomness()
    "100,000 fair coins from the operating system's generator"
    """
    heads = int(np.sum(noise.bernoulli(0.5, size=_TOSSES)))
    if abs(heads - _TOSSES // 2) > _MARGIN:
        raise TacitError(
            "randomness-failed",
            f"the random generator gave {heads:,} heads in {_TOSSES:,} tosses",
            why="noise from this generator would not protect anyone",
            fix="check the operating system's random generator before you release anything",
        )
    return f"{_TOSSES:,} fair coins from the operating system's generator"
