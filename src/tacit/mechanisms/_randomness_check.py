"""The randomness check of mechanisms: a quick test for fair coins, for reports on an installation."""

from __future__ import annotations

import numpy as np

from tacit import noise
from tacit.errors import TacitError

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
