"""The finite pair of numeric accounting: it has finitely many losses and dominates a curve of delta.

Straight lines in exp(epsilon) join the upper values of the curve on a grid. Delta is convex in exp(epsilon),
so the lines lie above it (Doroshenko et al. 2022). The proof is docs/proofs/accounting.md, section 7.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tacit.accounting.numeric._bracket import NotConverged, U

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.accounting.numeric._curve import Curve
    from tacit.accounting.numeric._mgf import Reals

_LARGEST = 700.0  # the exponential of more overflows a double


class FinitePair(NamedTuple):
    """A finite pair that dominates a curve: losses, P-masses, how much they were raised, infinite loss."""

    losses: Reals
    masses: Reals
    slack: float
    infinite: float


def connect_dots(curve: Curve, grid: Reals) -> FinitePair:
    """Return a pair whose delta is at least the curve's, from its upper values on an increasing grid."""
    if not np.abs(grid).max() < _LARGEST:
        raise NotConverged
    x = np.concatenate([[-1.0], np.expm1(grid)])  # exp(epsilon) - 1 keeps the digits of tiny losses
    y = np.concatenate([[1.0], np.clip(curve.upper(grid), 0.0, 1.0)])
    if not np.isfinite(y).all():
        raise NotConverged
    keep = _hull(x, y)  # the hull of upper values of a convex curve lies above the curve, and is convex
    x, y = x[keep], y[keep]
    ratios = 1 + x[1:]
    masses = ratios * np.diff(np.append(np.minimum(np.diff(y) / np.diff(x), 0.0), 0.0))
    # Make up for rounding: delta of the pair on the grid is an accurate sum of positive terms.
    beyond = np.append(np.cumsum((masses / ratios)[::-1])[::-1][1:], 0.0)  # Q-mass above each point
    steps = beyond * np.append(np.diff(x[1:]), 0.0)
    reached = y[-1] + np.cumsum(steps[::-1])[::-1]
    least = y[1:] > 0
    good = masses > 0
    if not good.any() or not (reached[least] > 0).all():  # all that is left lies below the smallest float
        raise NotConverged
    short = float(np.max(y[1:][least] / reached[least], initial=1.0))
    raised = max(1.0, short) * (1 + 4 * len(x) * U)
    losses = grid[keep[1:] - 1]
    return FinitePair(losses[good], raised * masses[good], 2 * (raised - 1), float(y[-1]))


def _hull(x: Reals, y: Reals) -> NDArray[np.integer[Any]]:
    """Return the corners of the lower convex hull of points with increasing x.

    A point on or above the line between its neighbours is not a corner, so all such points go at once. What
    is left after some rounds is walked from left to right.
    """
    left = np.arange(len(x))
    for _ in range(24):
        dx, dy = np.diff(x[left]), np.diff(y[left])
        bent = np.concatenate([[True], dy[:-1] * dx[1:] < dy[1:] * dx[:-1], [True]])
        if bent.all():
            return left
        left = left[bent]
    return left[_walked(x[left], y[left])]


def _walked(x: Reals, y: Reals) -> list[int]:
    keep = [0]
    for i in range(1, len(x)):
        while len(keep) > 1:
            a, b = keep[-2], keep[-1]
            if (y[b] - y[a]) * (x[i] - x[b]) < (y[i] - y[b]) * (x[b] - x[a]):
                break
            keep.pop()
        keep.append(i)
    return keep
