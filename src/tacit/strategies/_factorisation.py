"""The best measurements for a set of linear questions, with a certificate that they are the best.

W x are the questions about n cells x, and V = W^T W. Measurements A x with noise of the same size on each
answer them by least squares with the mean variance tr(V X^-1), X = A^T A; one row in cell i moves A x by
sqrt(X_ii). So the best measurements minimise tr(V X^-1) subject to X_ii <= 1. With D = diag(v) and
S = (D^1/2 V D^1/2)^1/2 the fixed point v = diag(S) is the optimum (Denisov et al. 2022), X = D^-1/2 S D^-1/2.
Every v gives two certified bounds: the upper one, tr(S) max(S_ii/v_i), is reached by X / max(X_ii); the lower
one, tr(S)^2 / sum(v), is the value of the dual. docs/proofs/ranges.md writes both out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tacit.parameters import Integer

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_CELLS = 1024
_GAP = 1e-6  # between the bounds on the variance
_STEPS = 60
# Heavy-ball steps in log v. S is a root, so the map has slopes of 1/2 to about 0.9: what is left to go
# shrinks by the factor sqrt(_PULL) in each step. Fixed numbers, not fitted ones, keep rounding errors small.
_LARGEST, _SMALLEST = 0.5, 0.1
_BETA = 4 / (math.sqrt(_LARGEST) + math.sqrt(_SMALLEST)) ** 2
_PULL = ((math.sqrt(_LARGEST / _SMALLEST) - 1) / (math.sqrt(_LARGEST / _SMALLEST) + 1)) ** 2
_LEAST_SCALE, _MOST_SCALE = 2**9, 2**20
_MOST_LOST = 2e-4  # of the root mean square error, by rounding to whole numbers


@dataclass(frozen=True, slots=True, eq=False)
class Factorisation:
    """The matrix X of the best measurements, and the bounds on the sum of variances that it certifies.

    Parameters
    ----------
    gram
        X, with a diagonal of at most 1.
    upper, lower
        tr(V X^-1), and a number that no other measurements can beat.
    """

    gram: NDArray[np.float64]
    upper: float
    lower: float


def factorise(workload: NDArray[np.float64], gap: float = _GAP) -> Factorisation:
    """Return the best measurements for the questions W, given V = W^T W.

    Parameters
    ----------
    workload
        V, symmetric and positive definite, with at most 1,024 rows.
    gap
        Stop when the upper bound is at most this part above the lower one.

    Examples
    --------
    >>> prefixes = np.tril(np.ones((4, 4)))
    >>> best = factorise(prefixes.T @ prefixes)
    >>> round((best.upper / 4) ** 0.5, 5), round((best.lower / 4) ** 0.5, 5)
    (1.31093, 1.31093)
    """
    Integer(1, MOST_CELLS).read("cells", len(workload))
    x = np.log(np.diag(workload)) / 2
    before = x
    best, lower = None, 0.0
    for _ in range(_STEPS):
        v, half = np.exp(x), np.exp(x / 2)
        powers, vectors = np.linalg.eigh(half[:, None] * workload * half)
        roots = np.sqrt(np.maximum(powers, 0.0))
        diagonal = (vectors**2) @ roots
        total, most = roots.sum(), (diagonal / v).max()
        upper, lower = float(total * most), float(total**2 / v.sum())
        if best is None or upper < best.upper:
            root = (vectors * roots) @ vectors.T
            best = Factorisation(
                root / (half[:, None] * half) / most, upper, max(lower, getattr(best, "lower", 0))
            )
        if best.upper <= lower * (1 + gap):
            break
        way = np.log(diagonal / v)
        x, before = x + _BETA * (way - way.mean()) + _PULL * (x - before), x
    assert best is not None  # noqa: S101 - the first step makes one
    return replace(best, lower=max(best.lower, lower))


def whole_factor(best: Factorisation, workload: NDArray[np.float64]) -> tuple[NDArray[np.int64], int, float]:
    """Return whole-number measurements B = round(s A), s and what rounding loses of the error.

    A is the triangular factor of X. s is the smallest power of two at which the root mean square error of
    least squares with B, at the sensitivity of B itself, is less than 0.02 % above that of X.

    Examples
    --------
    >>> prefixes = np.tril(np.ones((4, 4)))
    >>> v = prefixes.T @ prefixes
    >>> matrix, scale, lost = whole_factor(factorise(v), v)
    >>> scale, lost < 2e-4, bool((matrix == np.triu(matrix)).all())
    (2048, True, True)
    """
    real = np.linalg.cholesky(best.gram).T
    scale = _LEAST_SCALE
    while True:
        whole = np.rint(scale * real)
        gram = whole.T @ whole
        inverse = np.linalg.inv(gram)
        lost = math.sqrt(gram.diagonal().max() * float((workload * inverse).sum()) / best.upper) - 1
        if lost < _MOST_LOST or scale >= _MOST_SCALE:
            return whole.astype(np.int64), scale, lost
        scale *= 2
