"""Numeric accounting of shuffled reports: any reports, and k-ary randomized responses.

Any reports are read by the bound of Feldman, McMillan and Talwar (2021, theorem 3.2).

Shuffled k-ary randomized responses are read by their own privacy blanket. Each report is uniform over the d
answers with probability d/D, D = exp(e0) + d - 1, whatever its truth. Show the others' true reports, and hide
the replaced report among the uniform ones. With s reports of the two answers in question and r uniform
reports of the others, ``(s, r)`` of n reports, W the sum of s random signs and y = exp(e): ``n delta = E[(K W
- (y-1) T)_+]`` with K = (exp(e0) - 1)(1 + y)/2 and T = s (exp(e0) + 1)/2 + r. This is convex in r, so chords
between a few values of r lie above it. The proof is docs/proofs/accounting.md, section 7.
"""

from __future__ import annotations

import contextlib
import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tacit.accounting.numeric._arithmetic import NotConverged, U

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from tacit.accounting.numeric._mgf import Reals


_BLOCK = 32
_MAX_LISTED = 1 << 21
_MAX_CHORDS = 1 << 15
_SMALL = 256  # c below: a table has all probabilities of fair coins


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
    lowest, highest = math.floor(mean - 12 * spread - 30), math.ceil(mean + 12 * spread + 60)
    c = np.arange(max(0, lowest), min(n - 1, highest) + 1)
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

    if largest > _MAX_LISTED:
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
    over, slip = tails(c, j, point)
    best = worst = np.zeros(len(c))
    lower, higher = point * j / (c - j + 1), point * (c - j) / (j + 1)
    for above, equal in ((over, point), (over + point, lower), (over - higher, higher)):
        value = (1 - y) * above + (p - y * (1 - p)) * equal
        size = abs(1 - y) * (np.abs(above) + slip) + (p + y) * equal
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
    tails, slips = (np.cumsum(x.reshape(-1, _BLOCK), axis=1).ravel()[: len(c)] for x in (steps, sizes))
    return np.maximum(tails, 0.0), 2 * slips


def _binomial_tail(n: int, p: float, low: int, high: int) -> float:
    """Return an upper value of P(B < low) + P(B > high), B ~ Bin(n, p), by Chernoff's bound."""

    def bound(k: int) -> float:
        f = k / n
        divergence = f * math.log(f / p) if f else 0.0
        divergence += (1 - f) * math.log((1 - f) / (1 - p)) if f < 1 else 0.0
        return math.exp(-n * divergence * (1 - 1e-9))

    return (bound(low - 1) if low > 0 else 0.0) + (bound(high + 1) if high < n else 0.0)


class Blanket(NamedTuple):
    """The outcomes (s, T) of n reports: c = s - 1, chords' ends T of each s, their weights, errors, leak.

    ``weight`` is the probability of (s, T) over n; its granted relative error is ``loose``, its absolute one
    ``blur`` times ``chance``. ``middle`` and ``least`` are means of T between the ends and lower values of
    their weights. ``leak`` counts as infinite loss.
    """

    c: NDArray[np.signedinteger[Any]]
    drift: Reals
    weight: Reals
    middle: Reals
    least: Reals
    chance: Reals  # the probability of s, over n
    loose: float
    blur: float
    leak: float


class _Chords(NamedTuple):
    """Ends of chords and their weights; the means between the ends and their weights, for lower values."""

    ends: Reals
    weights: Reals
    means: Reals
    least: Reals
    blur: float = 0.0
    outside: float = 0.0


@lru_cache(maxsize=16)
def blanket_of(n: int, e0: float, categories: int) -> Blanket:
    """Return the outcomes of n shuffled randomized responses; `NotConverged` outside the usual range."""
    if not (1e-2 <= e0 <= 25 and categories <= 10**9 and n <= 10**9):
        raise NotConverged
    ratio = math.exp(e0)
    total = ratio + categories - 1
    counts = counts_of(n, e0, 2 / total)
    s = counts.c + 1
    chance = np.exp(counts.logs) * (2 / total) / s
    stays = (categories - 2) / (total - 2)  # a report of neither answer is a uniform one
    rare = min(stays, (ratio - 1) / (total - 2))
    chords = _chords(n - s, rare, counts.loose, sign=1.0 if stays == rare else -1.0)

    def drift(b: Reals) -> Reals:
        others = b if stays == rare else (n - s)[:, None] - b
        drifts: Reals = (s * (ratio + 1) / 2)[:, None] + np.maximum(others, 0.0)
        return drifts

    return Blanket(
        counts.c,
        drift(chords.ends),
        chance[:, None] * chords.weights,
        drift(chords.means),
        chance[:, None] * chords.least,
        chance,
        counts.loose,
        chords.blur,
        2 * (counts.outside + chords.outside),
    )


def _chords(trials: NDArray[Any], p: float, loose: float, *, sign: float) -> _Chords:
    """Return ends of chords for B ~ Bin(trials, p), and means between them.

    The weights are those of the function that joins its values at the ends by straight lines, and is constant
    beyond the ends, where the loss counts as infinite. They follow from E[B - mean; B >= k] =
    k (1-p) P(B = k) (De Moivre). Means between the ends are moved by their error to the side of ``sign``.
    """
    from scipy.special import bdtrc, gammaln

    if p == 0:  # there are only two answers
        nothing, all_ones = np.zeros((len(trials), 1)), np.ones((len(trials), 1))
        return _Chords(nothing, all_ones, nothing, all_ones)
    ends, every = _ends(trials, p)
    mean = (trials * p)[:, None]
    size, k = np.broadcast_to(trials[:, None], ends.shape), ends
    inside = k <= size
    log_mass = gammaln(size + 1.0) - gammaln(k + 1) - gammaln(np.maximum(size - k, 0) + 1)
    log_mass += k * math.log(p) + (size - k) * math.log1p(-p)
    mass = np.where(inside, np.exp(log_mass), 0.0)
    outside = _beyond(trials, p, ends[:, 0], below=True) + _beyond(trials, p, ends[:, -1], below=False)
    if every:
        return _Chords(ends, mass, ends, mass * (1 - loose), 0.0, outside)
    above = np.where(k < 1, 1.0, np.where(inside, bdtrc(np.clip(k - 1, 0, None), size, p), 0.0))
    moment = k * (1 - p) * mass
    beyond = moment - (k - mean) * above
    error = loose * (moment + np.abs(k - mean) * above)
    width = np.diff(ends, axis=1)
    slopes = np.clip(-np.diff(beyond, axis=1) / width, 0.0, 1.0)
    ones, zeros = np.ones((len(trials), 1)), np.zeros((len(trials), 1))
    weights = np.maximum(-np.diff(np.concatenate([ones, slopes, zeros], axis=1), axis=1), 0.0)
    blur = float(((error[:, 1:] + error[:, :-1]) / width).max()) * 2 + 16 * U
    between = -np.diff(above, axis=1) - 2 * loose * above[:, :-1]
    sure = between > 1e-6
    shift = sign * 4 * loose * (moment[:, 1:] + moment[:, :-1] + width) - np.diff(moment, axis=1)
    means = np.where(sure, mean + shift / np.where(sure, between, 1.0), mean)
    return _Chords(ends, weights, means, np.where(sure, between, 0.0), blur, outside)


def _ends(trials: NDArray[Any], p: float) -> tuple[Reals, bool]:
    """Return whole numbers, ascending for each number of trials; and whether they are all that is likely."""
    mean, spread = trials * p, np.sqrt(trials * p * (1 - p))
    low, high = np.floor(mean - 12 * spread - 30), np.ceil(mean + 12 * spread + 60)
    highest = int(min(float(high.max()), float(trials.max())))
    if highest <= 96:
        return np.broadcast_to(np.arange(highest + 1.0), (len(trials), highest + 1)), True
    count = max(1, min(19 if len(trials) < 400 else 10, _MAX_CHORDS // len(trials) // 2 - 1))
    sides = 9 / math.sinh(3.0) * np.sinh(3.0 * np.arange(1, count + 1) / count)
    steps = np.concatenate([-sides[::-1], [0.0], sides])
    inner = np.round(mean[:, None] + steps * spread[:, None])
    ends = np.concatenate([low[:, None], inner, high[:, None]], axis=1)
    rises = np.arange(ends.shape[1])
    ends_above: Reals = np.maximum.accumulate(np.maximum(ends, 0.0) - rises, axis=1) + rises
    return np.maximum(ends_above, rises), False


def _beyond(trials: NDArray[Any], p: float, end: Reals, *, below: bool) -> float:
    """Return an upper value of P(B < end) or of P(B > end), B ~ Bin(trials, p), by Chernoff's bound."""
    some = (end > 0) if below else (end < trials)
    if not some.any():
        return 0.0
    f = end[some] / trials[some]
    rest = np.where(f < 1, 1 - f, 1.0)
    divergence = np.where(f > 0, f * np.log(np.where(f > 0, f, 1.0) / p), 0.0)
    divergence += np.where(f < 1, (1 - f) * np.log(rest / (1 - p)), 0.0)
    return float(np.exp(-trials[some] * divergence * (1 - 1e-9)).max())


def blanket_delta(n: int, e0: float, categories: int) -> Callable[[float, float], float]:
    """Return the delta of the blanket at an epsilon: an upper value for sign 1, a lower value for sign -1.

    Upper values join r by chords; lower values take r at its means between their ends (Jensen).
    """
    blanket = blanket_of(n, e0, categories)
    coins = _SmallCoins(int(blanket.c[-1])) if blanket.c[-1] < _SMALL else _Coins(int(blanket.c[-1]))
    granted = blanket.weight + (blanket.blur * blanket.chance)[:, None]
    sides = {1.0: (blanket.drift, granted), -1.0: (blanket.middle, blanket.least)}
    columns = {sign: _columns(blanket.c, *side) for sign, side in sides.items()}

    def above_zero(e: float, sign: float) -> float:
        if e >= e0:
            return 0.0
        total = 0.0
        for c, drift, weight in columns[sign]:
            best, size = _best_response_sets(c, math.exp(e), e0, drift, coins)
            total += float((weight * np.maximum(best + sign * blanket.loose * size, 0.0)).sum())
        return min(1.0, total * (1 + sign * 4 * blanket.loose) + max(0.0, sign) * blanket.leak)

    def at(e: float, sign: float) -> float:
        if e >= 0:
            return above_zero(e, sign)
        other = above_zero(-e, sign)  # the pair is its own mirror image: H_y = 1 - y + y H_(1/y)
        return min(1.0, (-math.expm1(e) + math.exp(e) * other) * (1 + sign * 8 * U))

    return at


_Column = tuple["NDArray[np.signedinteger[Any]]", "Reals", "Reals"]


def _columns(c: NDArray[np.signedinteger[Any]], drift: Reals, weight: Reals) -> list[_Column]:
    """Return the outcomes as columns of consecutive c, or as one column if c is small."""
    if c[-1] >= _SMALL:
        return [(c, *one) for one in zip(drift.T, weight.T, strict=True)]
    positive = weight > 0
    return [(np.broadcast_to(c[:, None], positive.shape)[positive], drift[positive], weight[positive])]


class _Coins:
    """P(B = j), P(B > j) and the masses added on the way, B ~ Bin(c, 1/2), for consecutive c."""

    def __init__(self, largest: int) -> None:
        self._logs_of = log_factorials(largest)

    def at(self, c: NDArray[np.signedinteger[Any]], j: Reals) -> tuple[Reals, Reals, Reals]:
        logs_of = self._logs_of
        point: Reals = np.exp(logs_of(c) - logs_of(j) - logs_of(c - j) - c * math.log(2))
        return point, *tails(c, j, point)


class _SmallCoins:
    """The same for any small c, from a table."""

    def __init__(self, largest: int) -> None:
        c, j = np.arange(largest + 1)[:, None], np.arange(largest + 1)
        logs_of = log_factorials(largest)
        inside = j <= c
        logs = logs_of(c) - logs_of(j) - logs_of(np.maximum(c - j, 0)) - c * math.log(2)
        self._points: Reals = np.where(inside, np.exp(logs), 0.0)
        self._tails: Reals = np.cumsum(self._points[:, ::-1], axis=1)[:, ::-1] - self._points

    def at(self, c: NDArray[np.signedinteger[Any]], j: Reals) -> tuple[Reals, Reals, Reals]:
        index = j.astype(np.int64)
        return self._points[c, index], np.maximum(self._tails[c, index], 0.0), np.zeros(len(c))


def shuffled_response_delta(n: int, e0: float, categories: int) -> Callable[[Reals, float], Reals]:
    """Return the delta of n shuffled randomized responses with k categories, as `shuffled_delta`.

    The bound for any local report holds too, and the smaller one counts.
    """
    any_report = shuffled_delta(n, e0)
    own_curve = _of_two_answers(n, e0, categories)
    with contextlib.suppress(NotConverged):
        if categories > 2:
            own_curve = np.vectorize(blanket_delta(n, e0, categories), otypes=[float])

    def at(e: Reals, sign: float) -> Reals:
        e = np.atleast_1d(np.asarray(e, dtype=float))
        values: Reals = np.minimum(np.where(e >= e0, 0.0, own_curve(e, sign)), any_report(e, sign))
        return values

    return at


def _of_two_answers(n: int, e0: float, categories: int) -> Callable[[Reals, float], Reals]:
    """Return a bound that shows whether the replaced report is one of the two answers in question.

    Each of the other reports is one of the two answers, with equal chances, with probability
    2 / (exp(e0) + k - 1) whatever its truth. The replaced report is one of the two with probability
    (exp(e0) + 1) / (exp(e0) + k - 1), and else it says nothing. With two categories this is the blanket.
    """
    weight_of_both = math.exp(-e0) / (1 + (categories - 1) * math.exp(-e0))
    weight = (1 + math.exp(-e0)) / (1 + (categories - 1) * math.exp(-e0))
    inner = shuffled_delta(n, e0, min(1.0, 2 * weight_of_both))

    def at(e: Reals, sign: float) -> Reals:
        silent = -(1 - weight) * np.expm1(np.minimum(e, 0.0))
        values: Reals = (weight * inner(e, sign) + silent) * (1 + sign * 16 * U)
        return values

    return at


def _best_response_sets(
    c: NDArray[np.signedinteger[Any]],
    y: float,
    e0: float,
    drift: Reals,
    coins: _Coins | _SmallCoins,
) -> tuple[Reals, Reals]:
    """Return E[(K W - (y-1) T)_+] for each s = c + 1 and T, by its best set, and the size of its terms.

    H of the s reports say "one", and W = 2 H - s. With B ~ Bin(s-1, 1/2), the set H > k has the value
    K s P(B = k)/2 - (y-1) T (P(B > k) + P(B = k)/2). Rounding may miss the best set by one, so its two
    neighbours are tried too.
    """
    s, pull = c + 1.0, math.expm1(e0) * (1 + y) / 2
    push = (y - 1) * drift
    j = np.clip(np.floor((push / pull + s) / 2), 0, c)
    point, over, slip = coins.at(c, j)
    best = worst = np.zeros(len(c))
    lower, higher = point * j / (c - j + 1), point * (c - j) / (j + 1)
    for above, equal in ((over, point), (over + point, lower), (over - higher, higher)):
        value = pull * s * equal / 2 - push * (above + equal / 2)
        size = pull * s * equal / 2 + push * (np.abs(above) + slip + equal / 2)
        best, worst = np.maximum(best, value), np.maximum(worst, size)
    return best, worst
