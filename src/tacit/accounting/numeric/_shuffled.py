"""Numeric accounting of shuffled reports (Feldman, McMillan and Talwar 2021, theorem 3.2)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tacit.accounting.numeric._bracket import U

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from tacit.accounting.numeric._mgf import Reals

_BLOCK = 32
_MOST_LISTED = 1 << 21


class HidingCounts(NamedTuple):
    """How many reports hide: counts c, log-probabilities, their granted relative error, what is left out."""

    c: NDArray[np.signedinteger[Any]]
    logs: Reals
    loose: float
    outside: float


class ShuffledRound(NamedTuple):
    """The outcomes of one round with a loss of at least 0; each has a mirror image of the opposite loss."""

    losses: Reals
    masses: Reals
    silent: float  # mass of loss 0
    slack: float
    outside: float


def counts_of(n: int, e0: float, hides: float | None = None) -> HidingCounts:
    """Return the law of the number of hiding reports, Bin(n-1, exp(-e0)) or Bin(n-1, hides), in a window."""
    from scipy.special import gammaln

    share, stays = (math.exp(-e0), -math.expm1(-e0)) if hides is None else (hides, 1 - hides)
    mean, spread = (n - 1) * share, math.sqrt((n - 1) * share * (1 - share))
    first, last = math.floor(mean - 12 * spread - 30), math.ceil(mean + 12 * spread + 60)
    c = np.arange(max(0, first), min(n - 1, last) + 1)
    logs = gammaln(n) - gammaln(c + 1) - gammaln(n - c) + c * math.log(share)
    logs += (n - 1 - c) * math.log(stays) if n > 1 else 0.0
    loose = 1e-10 + 16 * U * float(gammaln(n) + n)  # granted relative error of the binomial laws
    # Outside the window: Chernoff's bound at 12 standard deviations and at 30 or 60 counts.
    outside = 0.0 if len(c) == n else _binomial_tail(n - 1, share, int(c[0]), int(c[-1]))
    return HidingCounts(c, logs, loose, outside)


def shuffled_delta(n: int, e0: float, hides: float | None = None) -> Callable[[Reals, float], Reals]:
    """Return the delta of n shuffled reports: upper values for sign 1, lower values for sign -1.

    C ~ Bin(n-1, exp(-e0)) reports (or with the probability ``hides``) hide the unit's report. Given C = c, x
    of c+1 reports say "one", and the likelihood ratio rises with x: delta = (1 - y) P(B > k) + (p - y (1-p))
    P(B = k) with B ~ Bin(c, 1/2), y = exp(e), p = 1/(1+exp(-e0)) and k = floor((c+1) (y p - (1-p)) / ((2p-1)
    (1+y))). Rare values of c count as infinite loss.
    """
    p = 1 / (1 + math.exp(-e0))
    c, logs, loose, outside = counts_of(n, e0, hides)
    chance = np.exp(logs)
    logs_of = log_factorials(int(c[-1]))

    def one(e: float, sign: float) -> float:
        if e >= e0:
            return 0.0
        if e <= -e0:
            return -math.expm1(e) * (1 + sign * 8 * U)
        best, size = _best_sets(c, math.exp(e), p, logs_of)
        got = best + sign * loose * size
        # Not by BLAS: its threads cost a thousand times the product.
        value = float((chance * np.maximum(got, 0.0)).sum()) * (1 + sign * loose)
        return max(0.0, value) + max(0.0, sign) * outside

    def at(e: Reals, sign: float) -> Reals:
        values: Reals = np.array([one(x, sign) for x in np.atleast_1d(np.asarray(e, dtype=float))])
        return np.minimum(values, 1.0)

    return at


def log_factorials(largest: int) -> Callable[[NDArray[Any]], Reals]:
    """Return the function n -> log n!, as a table if the numbers are not too large."""
    from scipy.special import gammaln

    if largest > _MOST_LISTED:
        return lambda n: gammaln(n + 1)
    table: Reals = gammaln(np.arange(largest + 2) + 1.0)
    return lambda n: table[n.astype(np.int64)]


def _best_sets(
    c: NDArray[np.signedinteger[Any]], y: float, p: float, logs_of: Callable[[NDArray[Any]], Reals]
) -> tuple[Reals, Reals]:
    """Return, for each c, the delta of the best set at exp(epsilon) = y, and the size of its terms.

    Rounding may miss the best set by one. Delta is the largest over all sets, so its two neighbours are tried
    too, and the set of all outcomes.
    """
    k = np.floor((c + 1) * ((y * p - (1 - p)) / ((2 * p - 1) * (1 + y))))
    j = np.clip(k, 0, c)
    point = np.exp(logs_of(c) - logs_of(j) - logs_of(c - j) - c * math.log(2))
    over, moved = tails(c, j, point)
    best = worst = np.zeros(len(c))
    lower, higher = point * j / (c - j + 1), point * (c - j) / (j + 1)
    for above, equal in ((over, point), (over + point, lower), (over - higher, higher)):
        value = (1 - y) * above + (p - y * (1 - p)) * equal
        size = abs(1 - y) * (np.abs(above) + moved) + (p + y) * equal
        best, worst = np.maximum(best, value), np.maximum(worst, size)
    if y < 1:
        best, worst = np.maximum(best, 1 - y), np.maximum(worst, 1 - y)
    return best, worst


def tails(c: NDArray[np.signedinteger[Any]], j: Reals, point: Reals) -> tuple[Reals, Reals]:
    """Return P(B > j), B ~ Bin(c, 1/2), for consecutive c, and the size of the masses added on the way.

    One more coin adds half of P(B = j), and a larger j takes P(B = j) away. So the tail of every 32nd c is
    enough; the others follow from the masses, whose relative error counts for all masses on the way.
    """
    from scipy.special import bdtrc

    rises = np.diff(j)
    if len(c) < 2 * _BLOCK or ((rises != 0) & (rises != 1)).any() or j[-1] >= c[-1]:
        return np.where(j >= c, 0.0, bdtrc(j, c, 0.5)), np.zeros(len(c))
    steps, sizes = np.zeros((2, -(-len(c) // _BLOCK) * _BLOCK))
    half, away = point[:-1] / 2, rises * point[1:]
    steps[1 : len(c)], sizes[1 : len(c)] = half - away, half + away
    steps[::_BLOCK] = bdtrc(j[::_BLOCK], c[::_BLOCK], 0.5)
    sizes[::_BLOCK] = 0.0
    tails, moved = (np.cumsum(x.reshape(-1, _BLOCK), axis=1).ravel()[: len(c)] for x in (steps, sizes))
    return np.maximum(tails, 0.0), 2 * moved


def _binomial_tail(n: int, p: float, low: int, high: int) -> float:
    """Return an upper value of P(B < low) + P(B > high), B ~ Bin(n, p), by Chernoff's bound."""

    def bound(k: int) -> float:
        f = k / n
        divergence = f * math.log(f / p) if f else 0.0
        divergence += (1 - f) * math.log((1 - f) / (1 - p)) if f < 1 else 0.0
        return math.exp(-n * divergence * (1 - 1e-9))

    return (bound(low - 1) if low > 0 else 0.0) + (bound(high + 1) if high < n else 0.0)
