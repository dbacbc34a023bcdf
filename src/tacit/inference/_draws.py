"""The numbers behind p-values that have no closed form: fixed public draws, the same for everyone.

They are post-processing of a release and add no randomness to it, so a public seed is right: whoever repeats
the test gets the same p-value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.mechanisms import LinearNoise

#: How many draws a p-value takes: its own error is below 0.35 points near 5 %.
DRAWS = 4000
_SEED = 20261116


def generator(*key: int) -> np.random.Generator:
    """Return a generator with a fixed public seed for each key."""
    return np.random.default_rng([_SEED, *key])


def draws_of_noise(
    draw: np.random.Generator, noise: LinearNoise, shape: tuple[int, ...]
) -> NDArray[np.float64]:
    """Return draws from the continuous law of the noise on one released number."""
    made = noise.normal * draw.standard_normal(shape) if noise.normal else np.zeros(shape)
    for scale in noise.laplace:
        made += draw.laplace(0.0, scale, shape)
    return made


def coupled_noise(
    draw: np.random.Generator, noise: LinearNoise, shape: tuple[int, ...]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return draws of the noise, and normal draws of the same variance that rise and fall with them."""
    from scipy.special import ndtri

    gauss = noise.normal * draw.standard_normal(shape) if noise.normal else np.zeros(shape)
    found, normal = gauss.copy(), gauss.copy()
    for scale in noise.laplace:
        u = draw.random(shape)
        found -= scale * np.sign(u - 0.5) * np.log1p(-2 * np.abs(u - 0.5))
        normal += np.sqrt(2.0) * scale * ndtri(u)
    return found, normal


def share_above(found: NDArray[np.float64], drawn: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the p-value of each statistic, given draws along the last axis; the statistic counts as one."""
    return np.asarray((1 + (drawn >= found[..., None]).sum(axis=-1)) / (1 + drawn.shape[-1]))


def corrected(
    p: NDArray[np.float64],
    found: NDArray[np.float64],
    drawn: NDArray[np.float64],
    normal: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Correct the p-value of a normal law by draws of the true law and coupled draws of the normal one.

    The two shares of draws above the statistic have nearly the same error, which cancels. A correction never
    takes a p-value below half of the normal law's, since draws say little about far tails.
    """
    at = found[..., None]
    shift = (drawn >= at).mean(axis=-1) - (normal >= at).mean(axis=-1)
    return np.asarray(np.clip(p + shift, p / 2, 1.0))
