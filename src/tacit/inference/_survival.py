"""Survival curves and the log-rank test from noisy counts on public time bins.

The cells of a group are (event, censored) for each bin and one cell for who is still followed at the end; a
unit is in one of them. At risk in bin j is everyone who is in it or later, less half of those censored in it.
With d events and r at risk, log S = sum log(1 - d/r). Its variance is Greenwood's plus the noise of the cells
through their gradient. A curve ends where the noise hides how many are at risk (docs/proofs/regression.md).
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

_SEEN = 3.0  # a bin is read while those at risk are this many standard deviations of their noise
_FALLEN = 2.0  # half-widths that -log S must have before the log-log scale serves
_LEFT = 5.0  # rows that must be at risk; for a curve, as many must be left after the events of the bin
_START = 5.0  # and a curve only where it starts with so many


@dataclass(frozen=True, slots=True)
class CurveSets:
    """The share without the event after each bin, for many releases; NaN where the curve has ended.

    ``shift`` is the value less what it would be if all who are censored in a bin stayed to the end of it.
    """

    value: _Array
    low: _Array
    high: _Array
    shift: _Array


@dataclass(frozen=True, slots=True)
class LogRank:
    """The log-rank test of many releases; ``shown`` where both groups start with enough rows."""

    statistic: _Array
    p_value: _Array
    shown: NDArray[np.bool_]


def rows_at_start(bins: int, noise: LinearNoise) -> float:
    """Return how many rows a group needs at the start."""
    return float(_START * np.sqrt(2.0) * noise.scale * np.sqrt(2 * bins + 1))


def _at_risk(cells: _Array) -> tuple[_Array, _Array, _Array]:
    """Return events, those at risk, and for each bin the weights of the cells in those at risk."""
    size = cells.shape[-1]
    bins = (size - 1) // 2
    weights = np.zeros((bins, size))
    for j in range(bins):
        weights[j, 2 * j :] = 1.0
        weights[j, 2 * j + 1] = 0.5
    return cells[:, 0:-1:2], cells @ weights.T, weights


def _seen(risk: _Array, weights: _Array, noise: LinearNoise) -> NDArray[np.bool_]:
    """Say which bins are read: up to the first in which the noise hides those at risk, or few are.

    It looks at who is at risk when the bin begins, never at the events in it: a rule that looked at them
    would choose bins by their outcome.
    """
    spread = np.sqrt(2.0) * noise.scale * np.sqrt((weights**2).sum(axis=1))
    clear = risk > np.maximum(_SEEN * spread, _LEFT)
    clear &= (risk[:, 0] > rows_at_start(len(weights), noise))[:, None]
    return np.asarray(np.logical_and.accumulate(clear, axis=1))


def _left(risk: _Array, weights: _Array, events: _Array, noise: LinearNoise) -> NDArray[np.bool_]:
    """Say after which bins a curve is shown: up to the first after which the noise hides those left.

    Where nearly all have had the event, log S is not smooth in the counts, and a share near 0 would be shown
    only where the noise happens to leave somebody.
    """
    left = risk - np.maximum(events, 0.0)
    spread = np.sqrt(2.0) * noise.scale * np.sqrt((weights**2).sum(axis=1))
    clear = _seen(risk, weights, noise) & (left > np.maximum(_SEEN * spread, _LEFT))
    return np.asarray(np.logical_and.accumulate(clear, axis=1))


def curve_sets(cells: _Array, noise: LinearNoise, failing: float) -> CurveSets:
    """Return the curve of one group with pointwise intervals, for each line of noisy cells.

    Guarantee: free post-processing; intervals cover noise and sampling together.

    Parameters
    ----------
    cells
        One line for each release: events and censored of each bin in turn, then who is followed to the end.
    noise
        The noise on each cell.
    failing
        How often the interval at one time may miss.
    """
    events, risk, weights = _at_risk(cells)
    shown = _left(risk, weights, events, noise)
    r, d = np.where(shown, risk, 1.0), np.where(shown, events, 0.0)
    logs = np.cumsum(np.log1p(-d / r), axis=1)
    greenwood = np.maximum(np.cumsum(d / (r * (r - d)), axis=1), 0.0)
    gradient = (d / (r * (r - d)))[:, :, None] * weights
    for j in range(weights.shape[0]):
        gradient[:, j, 2 * j] -= 1 / (r - d)[:, j]
    gradient = np.cumsum(gradient, axis=1)
    laplace = (gradient[..., None] * np.array(noise.laplace)).reshape(*gradient.shape[:2], -1)
    normal = np.sqrt(greenwood + noise.normal**2 * (gradient**2).sum(axis=-1))
    half = linear_half_width(failing, laplace, normal)
    noisy = 2 * noise.scale**2 * (gradient**2).sum(axis=-1)
    factor = half / np.sqrt(np.maximum(greenwood + noisy, 1e-300))
    low, high = _ends(logs, half, factor, noisy, r)
    value = np.minimum(np.exp(logs), 1.0)
    later = np.maximum(cells[:, 1:-1:2], 0.0) / 2  # censored in the bin, who would be at risk to its end
    shift = value - np.minimum(np.exp(np.cumsum(np.log1p(-d / (r + later)), axis=1)), 1.0)
    return CurveSets(*(np.where(shown, one, np.nan) for one in (value, low, high, shift)))


def _ends(logs: _Array, half: _Array, factor: _Array, noisy: _Array, risk: _Array) -> tuple[_Array, _Array]:
    """Return the ends of the intervals of S.

    On the log-log scale where the curve has clearly fallen. Where events are few, Greenwood's variance says
    little; then every -log S is kept from which the estimate differs by no more than its error there, with
    the variance -log S / r of few events.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        x = -logs
        fallen = x > _FALLEN * half
        ratio = np.where(fallen, half / np.where(fallen, x, 1.0), 0.0)
        k2 = factor**2 / risk
        root = factor * np.sqrt(np.maximum(x / risk + k2 / (4 * risk) + noisy, 0.0))
        least, most = np.maximum(x + k2 / 2 - root, 0.0), np.maximum(x + k2 / 2 + root, 0.0)
        low = np.where(fallen, np.exp(-x * np.exp(ratio)), np.exp(-most))
        high = np.where(fallen, np.exp(-x * np.exp(-ratio)), np.exp(-least))
    return low, high


def logrank(first: _Array, second: _Array, noise: LinearNoise) -> LogRank:
    """Test whether two groups have the same hazards, for each pair of lines of noisy cells.

    Parameters
    ----------
    first, second
        The noisy cells of the two groups; see `curve_sets`.
    noise
        The noise on each cell.
    """
    (d1, r1, weights), (d0, r0, _) = _at_risk(first), _at_risk(second)
    shown = _seen(r1, weights, noise) & _seen(r0, weights, noise)
    r1, r0 = np.where(shown, r1, 1.0), np.where(shown, r0, 1.0)
    d1, d0 = np.where(shown, d1, 0.0), np.where(shown, d0, 0.0)
    r, d = r1 + r0, d1 + d0
    a, h = r1 / r, d / r
    u = (d1 - a * d).sum(axis=1)
    ties = np.where(
        shown, r / np.maximum(r - 1, 1.0), 1.0
    )  # events in one bin are drawn without putting back
    variance = np.maximum((a * (1 - a) * d * (1 - h) * ties).sum(axis=1), 0.0)
    g1 = np.einsum("rj,jc->rc", np.where(shown, -h * (1 - a), 0.0), weights)
    g0 = np.einsum("rj,jc->rc", np.where(shown, h * a, 0.0), weights)
    g1[:, 0:-1:2] += np.where(shown, 1 - a, 0.0)
    g0[:, 0:-1:2] -= np.where(shown, a, 0.0)
    g = np.concatenate([g1, g0], axis=1)
    laplace = (g[:, :, None] * np.array(noise.laplace)).reshape(len(g), -1)
    normal = np.sqrt(variance + noise.normal**2 * (g**2).sum(axis=1))
    return LogRank(u, linear_tail(u, laplace, normal), shown[:, 0])
