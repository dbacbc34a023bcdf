"""Gauss's rule on panels in numeric accounting, with its certified error.

With n points, the error on [-1, 1] is at most (64/15) M r^(2-2n) / (1 - r^-2), where M is the largest
modulus of the integrand on the ellipse with foci -1 and 1 whose half-axes add up to r (Trefethen 2019,
theorem 19.3).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tacit.accounting.numeric._mgf import Reals

#: Nodes and weights with 16 points on [-1, 1], the positive half.
_GAUSS = np.array([
    (0.09501250983763744, 0.1894506104550685), (0.2816035507792589, 0.18260341504492358),
    (0.45801677765722737, 0.16915651939500254), (0.6178762444026438, 0.14959598881657674),
    (0.755404408355003, 0.12462897125553388), (0.8656312023878318, 0.09515851168249279),
    (0.9445750230732326, 0.062253523938647894), (0.9894009349916499, 0.027152459411754096),
])  # fmt: skip
_NODES = np.concatenate([-_GAUSS[::-1, 0], _GAUSS[:, 0]])
_WEIGHTS = np.concatenate([_GAUSS[::-1, 1], _GAUSS[:, 1]])

#: Logarithms of r of the ellipses on which integrands are bounded, one in each row.
ELLIPSES = np.array([0.8, 1.1, 1.5, 1.9])[:, None]
_FALL = np.log(64 / 15) - 2 * (len(_NODES) - 1) * ELLIPSES - np.log(-np.expm1(-2 * ELLIPSES))


def gauss_rule(edges: Reals) -> tuple[Reals, Reals]:
    """Return the nodes and weights of the rule on the panels between the edges."""
    half, middle = np.diff(edges)[:, None] / 2, (edges[1:] + edges[:-1])[:, None] / 2
    return (middle + half * _NODES).ravel(), (half * _WEIGHTS).ravel()


def gauss_log_error(logs: Reals, half: Reals) -> float:
    """Return the log of the error on all panels, of half-widths ``half``.

    ``logs`` bounds the log of the integrand on each ellipse (rows) of each panel; infinite where unknown.
    """
    best = (logs + _FALL).min(axis=0) + np.log(half)
    top = float(best.max())
    return top + math.log(float(np.exp(best - top).sum())) if math.isfinite(top) else math.inf
