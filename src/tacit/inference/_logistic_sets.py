"""Logistic regression from a noisy table of cells and a yes/no outcome.

With y_c noisy yeses and n_c noisy rows in cell c, the coefficients solve sum_c w_c x_c (y_c - p_c n_c) = 0,
p_c = 1/(1 + exp(-x_c'b)). The equations are linear in the noisy counts, so noise does not bias them, whatever
the size of a cell; counts stay negative where the noise made them so. The weights w_c, fixed before, hold
back cells that are mostly noise. The variance is the sandwich with n p (1 - p) for sampling and
tau^2 (p^2 + (1 - p)^2) for noise (docs/proofs/regression.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tacit.mechanisms import linear_half_width, linear_tail

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.mechanisms import LinearNoise

    _Array = NDArray[np.float64]

_ROUNDS = 30  # of Newton's method
_FARTHEST = 12.0  # log-odds beyond which there is no solution
_CLEAR = 3.0  # standard deviations by which the information must be clear of the noise in it
_FEWEST = 3.0  # standard deviations by which yeses and noes must be clear of zero


@dataclass(frozen=True, slots=True)
class LogisticSets:
    """The coefficients of many releases: values, covariances, and where the equations have a solution.

    Parameters
    ----------
    values
        One line of coefficients for each release.
    half
        The half-widths of their intervals.
    p_values
        Of the test that a coefficient is 0.
    solved
        Where the noise leaves a solution that can be trusted.
    """

    values: _Array
    half: _Array
    p_values: _Array
    solved: NDArray[np.bool_]


def logistic_sets(x: _Array, yes: _Array, no: _Array, noise: LinearNoise, failing: float) -> LogisticSets:
    """Fit each line of noisy counts.

    Parameters
    ----------
    x
        The variables of each cell, the first of them 1.
    yes, no
        The noisy counts; one line for each release, one number for each cell.
    noise
        The noise on each count.
    failing
        How often an interval may miss.
    """
    n = yes + no
    tau2 = 2 * noise.scale**2
    share = np.clip(yes.sum(axis=1) / np.maximum(n.sum(axis=1), 1.0), 0.01, 0.99)[:, None]
    sampling = np.maximum(n, 0.0) * share * (1 - share)
    w = sampling / np.maximum(sampling + tau2 * (share**2 + (1 - share) ** 2), 1e-9)
    seen = _FEWEST * np.sqrt(tau2 * x.shape[0])
    solved = (yes.sum(axis=1) > seen) & (no.sum(axis=1) > seen)
    b = np.zeros((len(yes), x.shape[1]))
    b[:, 0] = np.log(share[:, 0] / (1 - share[:, 0]))
    for _ in range(_ROUNDS):
        p = 1 / (1 + np.exp(-np.clip(b @ x.T, -30, 30)))
        score = np.einsum("rc,ca->ra", w * (yes - p * n), x)
        information = _information(w * n * p * (1 - p), x)
        step = np.linalg.solve(_safe(information), score[..., None])[..., 0]
        b = np.clip(b + np.clip(step, -2, 2), -50, 50)
    p = 1 / (1 + np.exp(-np.clip(b @ x.T, -30, 30)))
    information = _information(w * n * p * (1 - p), x)
    score = np.einsum("rc,ca->ra", w * (yes - p * n), x)
    step = np.linalg.solve(_safe(information), score[..., None])[..., 0]
    solved &= (np.abs(step).max(axis=1) < 1e-6) & (np.abs(b @ x.T).max(axis=1) < _FARTHEST)
    solved &= _clear(information, w * p * (1 - p), x, tau2)
    inverse = np.linalg.inv(np.where(solved[:, None, None], information, np.eye(x.shape[1])))
    return _sets(b, inverse, x, (w, n, p), noise, failing, solved)


def _sets(
    b: _Array, inverse: _Array, x: _Array, at: tuple[_Array, _Array, _Array], noise: LinearNoise,
    failing: float, solved: NDArray[np.bool_],
) -> LogisticSets:  # fmt: skip
    """Put the sandwich together, and take the reach of each coefficient from the law of its own noise."""
    w, n, p = at
    half, tails = np.zeros_like(b), np.ones_like(b)
    for a in range(b.shape[1]):
        moved = w * np.einsum("rb,cb->rc", inverse[:, a], x)  # what one yes more than expected moves
        sampling = np.sqrt(np.maximum((moved**2 * n * p * (1 - p)).sum(axis=1), 0.0))
        weights = np.concatenate([moved * (1 - p), -moved * p], axis=1)
        laplace = (weights[:, :, None] * np.array(noise.laplace)).reshape(len(b), -1)
        normal = np.hypot(sampling, noise.normal * np.sqrt((weights**2).sum(axis=1)))
        half[:, a] = linear_half_width(failing, laplace, normal)
        tails[:, a] = linear_tail(b[:, a], laplace, normal)
    return LogisticSets(b, half, tails, solved)


def _information(weights: _Array, x: _Array) -> _Array:
    return np.asarray(np.einsum("rc,ca,cb->rab", weights, x, x, optimize=True))


def _safe(information: _Array) -> _Array:
    """Return matrices that can be solved; those that cannot are found out afterwards."""
    size = np.abs(information).max(axis=(1, 2), initial=1e-9)[:, None, None]
    return np.asarray(information + 1e-9 * size * np.eye(information.shape[-1]))


def _clear(information: _Array, weights: _Array, x: _Array, tau2: float) -> NDArray[np.bool_]:
    """Say where the information is clear of the noise in it, in the directions that matter."""
    values, vectors = np.linalg.eigh(information)
    along = np.einsum("ca,rab->rcb", x, vectors)[:, :, 0]
    blur = np.sqrt(2 * tau2 * ((weights * along**2) ** 2).sum(axis=1))
    return np.asarray(values[:, 0] > _CLEAR * np.maximum(blur, 1e-12))
