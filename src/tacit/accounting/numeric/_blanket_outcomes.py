"""The outcomes of one round of shuffled k-ary randomized responses, for sums in numeric accounting.

With the numbers of `_response_blanket`, the outcome (s, r, W) has the masses ``(T + k W)/n`` and
``(T - k W)/n`` times its probability, k = (exp(e0) - 1)/2. Both are linear in T and in W, so delta is
convex in each: a law that is spread further out with the same mean dominates, at every epsilon at once. So
T, W and s are put on coarse grids (docs/proofs/accounting.md, section 7).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.accounting.numeric._bracket import NotConverged, U
from tacit.accounting.numeric._response_blanket import blanket_of
from tacit.accounting.numeric._shuffled import ShuffledRound

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.accounting.numeric._mgf import Reals
    from tacit.accounting.numeric._response_blanket import Blanket

_MOST_OUTCOMES = 1 << 22
_MOST_LISTED = 1 << 20
_COARSE = 3e-4  # how much larger s may be made, relative to s
_STEP = 0.03  # of W, in standard deviations
_DRIFTS = np.array([-1.5, 0.0, 1.5])  # of T within a group, in standard deviations
_RARE = 1e-24  # of s: rarer values count as infinite loss


def blanket_round(n: int, e0: float, categories: int) -> ShuffledRound:
    """Return the outcomes of a pair that dominates one round of n shuffled randomized responses."""
    found = blanket_of(n, e0, categories)
    ratio = math.exp(e0)
    whole = ratio + categories - 1
    s, drift, weight = _grouped(found, n)
    reach = np.ceil(10 * np.sqrt(s) + 30)
    step = 2 * np.maximum(1.0, np.floor(_STEP / 2 * np.sqrt(s)))
    places = int((np.minimum(reach, s) / step).max()) + 2
    if len(s) * places * drift.shape[1] > _MOST_OUTCOMES:
        raise NotConverged
    signs = _signs(s, reach, step, places)
    moves = (ratio - 1) / 2 * (s % 2 + step * np.arange(places)[:, None]).T
    high = drift[:, :, None] + moves[:, None, :]
    low = drift[:, :, None] - moves[:, None, :]
    masses = weight[:, :, None] * signs[:, None, :] * high
    kept = masses > 0
    if not (low[kept] > 0).all():
        raise NotConverged
    losses = np.log1p(2 * np.broadcast_to(moves[:, None, :], high.shape)[kept] / low[kept])
    # The masses outside: s (its first value stands for the next lower one), T, and W (Hoeffding).
    listed = found.chance * n >= _RARE
    first = float(found.chance[~listed].sum()) * n * (ratio + 3) + float(
        found.chance[0] * n * (found.c[0] > 0)
    )
    missed = 0.0 if (reach >= s).all() else 2 * math.exp(-float((reach**2 / (2 * s)).min()))
    outside = found.leak * (ratio + 3) + first + missed * (ratio + 2)
    silent = (categories - 2) / (whole - 2) * math.exp(n * math.log1p(-2 / whole))
    # Larger masses at the same losses give a larger delta, so the error of the masses is added to them.
    raised = masses[kept] * (1 + 8 * found.loose)
    return ShuffledRound(losses, raised, silent * (1 + 64 * n * U), 256 * U, outside)


def _grouped(found: Blanket, n: int) -> tuple[Reals, Reals, Reals]:
    """Return the largest s of each group of neighbours, and the groups' T with their weights, on few values.

    With a larger s, W is spread further out. Each T moves to the two grid values around it and keeps its
    mean.
    """
    listed = found.chance >= _RARE / n
    s, chance = found.c[listed] + 1.0, found.chance[listed]
    width = max(1, int(_COARSE * s[0]))
    group = np.arange(len(s)) // width
    tops = s[np.minimum(np.arange(group[-1] + 1) * width + width - 1, len(s) - 1)]
    granted = found.weight[listed] + (found.blur * chance)[:, None]
    few = granted.size * 5 * math.sqrt(float(s[-1])) <= _MOST_LISTED
    if width == 1 and (granted.shape[1] == 1 or few):
        return tops, found.drift[listed], granted
    every = np.broadcast_to(group[:, None], granted.shape).ravel()
    t, w = found.drift[listed].ravel(), granted.ravel()
    total = np.bincount(every, w)
    mean = np.bincount(every, w * t) / np.where(total > 0, total, 1.0)
    spread = np.sqrt(np.bincount(every, w * (t - mean[every]) ** 2) / np.where(total > 0, total, 1.0))
    least, most = np.full(len(tops), np.inf), np.full(len(tops), -np.inf)
    np.minimum.at(least, every, t)
    np.maximum.at(most, every, t)
    inner = np.clip(mean[:, None] + _DRIFTS * spread[:, None], least[:, None], most[:, None])
    grid = np.concatenate([least[:, None], inner, most[:, None]], axis=1)
    return tops, grid, _split(every, t, w, grid)


def _split(rows: NDArray[np.integer[Any]], values: Reals, weights: Reals, grid: Reals) -> Reals:
    """Split each value to the two values around it in its row of the grid, with the same mean."""
    count = grid.shape[1]
    place = np.clip((grid[rows] <= values[:, None]).sum(axis=1) - 1, 0, count - 2)
    low, high = grid[rows, place], grid[rows, place + 1]
    share = np.where(high > low, (values - low) / np.where(high > low, high - low, 1.0), 0.0)
    flat = rows * count + place
    size = len(grid) * count
    found = np.bincount(flat, weights * (1 - share), size) + np.bincount(flat + 1, weights * share, size)
    return found.reshape(grid.shape).astype(float)


def _signs(s: Reals, reach: Reals, step: Reals, places: int) -> Reals:
    """Return the law of W, the sum of s random signs, on s mod 2 and every step from there on.

    Each value moves to the two values around it and keeps its mean. The mass at 0 is halved: it is its own
    mirror image.
    """
    from scipy.special import gammaln

    half = np.floor((s + 1) / 2)  # the first number of plus signs with W >= 0
    count = int(min(float((reach / 2).max()), float((s - half).max()))) + 1
    plus = half[:, None] + np.arange(count)
    inside = plus <= s[:, None]
    plus = np.minimum(plus, s[:, None])
    logs = (
        gammaln(s + 1)[:, None]
        - gammaln(plus + 1)
        - gammaln(s[:, None] - plus + 1)
        - s[:, None] * math.log(2)
    )
    w = 2 * plus - s[:, None]
    masses = np.where(inside, np.exp(logs), 0.0) * np.where(w == 0, 0.5, 1.0)
    at = (w - s[:, None] % 2) / step[:, None]
    place = np.floor(at)
    share = at - place
    rows = np.broadcast_to(np.arange(len(s))[:, None], w.shape)
    flat = (rows * places + np.minimum(place, places - 2).astype(np.int64)).ravel()
    size = len(s) * places
    found = np.bincount(flat, (masses * (1 - share)).ravel(), size)
    found += np.bincount(flat + 1, (masses * share).ravel(), size)
    return found.reshape(len(s), places).astype(float)
