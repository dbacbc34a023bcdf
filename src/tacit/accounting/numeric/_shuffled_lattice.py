"""Sums of shuffled reports in numeric accounting: all outcomes of a round, split to one lattice.

**K-ary randomized responses.** With the numbers of `_shuffled`, the outcome (s, r, W) has the masses ``(T + k
W)/n`` and ``(T - k W)/n`` times its probability, k = (exp(e0) - 1)/2. Both are linear in T and in W, so delta
is convex in each: a law that is spread further out with the same mean dominates, at every epsilon at once. So
T, W and s are put on coarse grids (docs/proofs/accounting.md, section 7).

**Any reports.** Given that c reports hide the unit's report, x of m = c + 1 reports say "one". With f = x/m,
the outcome has the P-mass 2 b (p f + (1-p) (1-f)), b the mass of x for m fair coins, and the Q-mass 2 b
((1-p) f + p (1-f)). Its mirror image, m - x, has the opposite loss. Each mass is split to the two lattice
points around its loss, and its P- and Q-mass are kept, which dominates it. The proof is
docs/proofs/accounting.md, section 7.
"""

from __future__ import annotations

import contextlib
import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.accounting._laws import Parts, ShuffledLoss, ShuffledResponseLoss
from tacit.accounting.numeric._accountants import LeakyAccountant
from tacit.accounting.numeric._arithmetic import NotConverged, U, as_float
from tacit.accounting.numeric._atoms import Atoms, LatticeAtoms, connect_dots
from tacit.accounting.numeric._curve import Curve
from tacit.accounting.numeric._fourier import FourierInversion
from tacit.accounting.numeric._mgf import LossLattice, LossSum
from tacit.accounting.numeric._quadrature import dot
from tacit.accounting.numeric._shuffled import ShuffledRound, blanket_of, counts_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.accounting._laws import LossLaw
    from tacit.accounting.numeric._mgf import Reals
    from tacit.accounting.numeric._shuffled import Blanket


_MAX_ROUND_OUTCOMES = 1 << 22
_MAX_LISTED = 1 << 20
_COARSENING = 3e-4  # how much larger s may be made, relative to s
_STEP = 0.03  # of W, in standard deviations
_DRIFTS = np.array([-1.5, 0.0, 1.5])  # of T within a group, in standard deviations
_RARE = 1e-24  # of s: rarer values count as infinite loss
_MAX_OUTCOMES = 1 << 20
_PAIR_STEP = 1e-2  # step of a pair that is summed with other laws, in spreads of its loss
_FINE, _FINER = 2e-3, 6.5e-4  # step: in spreads of one loss, and in spreads of the sum


def blanket_round(n: int, e0: float, categories: int) -> ShuffledRound:
    """Return the outcomes of a pair that dominates one round of n shuffled randomized responses."""
    blanket = blanket_of(n, e0, categories)
    ratio = math.exp(e0)
    total = ratio + categories - 1
    s, drift, weight = _grouped(blanket, n)
    reach = np.ceil(10 * np.sqrt(s) + 30)
    step = 2 * np.maximum(1.0, np.floor(_STEP / 2 * np.sqrt(s)))
    places = int((np.minimum(reach, s) / step).max()) + 2
    if len(s) * places * drift.shape[1] > _MAX_ROUND_OUTCOMES:
        raise NotConverged
    signs = _signs(s, reach, step, places)
    moves = (ratio - 1) / 2 * (s % 2 + step * np.arange(places)[:, None]).T
    high = drift[:, :, None] + moves[:, None, :]
    low = drift[:, :, None] - moves[:, None, :]
    masses = weight[:, :, None] * signs[:, None, :] * high
    positive = masses > 0
    if not (low[positive] > 0).all():
        raise NotConverged
    losses = np.log1p(2 * np.broadcast_to(moves[:, None, :], high.shape)[positive] / low[positive])
    # The masses outside: s (its first value stands for the next lower one), T, and W (Hoeffding).
    frequent = blanket.chance * n >= _RARE
    rare_mass = float(blanket.chance[~frequent].sum()) * n * (ratio + 3) + float(
        blanket.chance[0] * n * (blanket.c[0] > 0)
    )
    missed = 0.0 if (reach >= s).all() else 2 * math.exp(-float((reach**2 / (2 * s)).min()))
    outside = blanket.leak * (ratio + 3) + rare_mass + missed * (ratio + 2)
    silent = (categories - 2) / (total - 2) * math.exp(n * math.log1p(-2 / total))
    # Larger masses at the same losses give a larger delta, so the error of the masses is added to them.
    raised = masses[positive] * (1 + 8 * blanket.loose)
    return ShuffledRound(losses, raised, silent * (1 + 64 * n * U), 256 * U, outside)


def _grouped(blanket: Blanket, n: int) -> tuple[Reals, Reals, Reals]:
    """Return the largest s of each group of neighbours, and the groups' T with their weights, on few values.

    With a larger s, W is spread further out. Each T moves to the two grid values around it and keeps its
    mean.
    """
    frequent = blanket.chance >= _RARE / n
    s, chance = blanket.c[frequent] + 1.0, blanket.chance[frequent]
    width = max(1, int(_COARSENING * s[0]))
    group = np.arange(len(s)) // width
    tops = s[np.minimum(np.arange(group[-1] + 1) * width + width - 1, len(s) - 1)]
    granted = blanket.weight[frequent] + (blanket.blur * chance)[:, None]
    few = granted.size * 5 * math.sqrt(float(s[-1])) <= _MAX_LISTED
    if width == 1 and (granted.shape[1] == 1 or few):
        return tops, blanket.drift[frequent], granted
    every = np.broadcast_to(group[:, None], granted.shape).ravel()
    t, w = blanket.drift[frequent].ravel(), granted.ravel()
    total = np.bincount(every, w)
    mean = np.bincount(every, w * t) / np.where(total > 0, total, 1.0)
    spread = np.sqrt(np.bincount(every, w * (t - mean[every]) ** 2) / np.where(total > 0, total, 1.0))
    lowest, highest = np.full(len(tops), np.inf), np.full(len(tops), -np.inf)
    np.minimum.at(lowest, every, t)
    np.maximum.at(highest, every, t)
    inner = np.clip(mean[:, None] + _DRIFTS * spread[:, None], lowest[:, None], highest[:, None])
    grid = np.concatenate([lowest[:, None], inner, highest[:, None]], axis=1)
    return tops, grid, _split(every, t, w, grid)


def _split(rows: NDArray[np.integer[Any]], values: Reals, weights: Reals, grid: Reals) -> Reals:
    """Split each value to the two values around it in its row of the grid, with the same mean."""
    count = grid.shape[1]
    index = np.clip((grid[rows] <= values[:, None]).sum(axis=1) - 1, 0, count - 2)
    low, high = grid[rows, index], grid[rows, index + 1]
    share = np.where(high > low, (values - low) / np.where(high > low, high - low, 1.0), 0.0)
    flat = rows * count + index
    size = len(grid) * count
    masses = np.bincount(flat, weights * (1 - share), size) + np.bincount(flat + 1, weights * share, size)
    return masses.reshape(grid.shape).astype(float)


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
    index = np.floor(at)
    share = at - index
    rows = np.broadcast_to(np.arange(len(s))[:, None], w.shape)
    flat = (rows * places + np.minimum(index, places - 2).astype(np.int64)).ravel()
    size = len(s) * places
    law = np.bincount(flat, (masses * (1 - share)).ravel(), size)
    law += np.bincount(flat + 1, (masses * share).ravel(), size)
    return law.reshape(len(s), places).astype(float)


@lru_cache(maxsize=16)
def shuffled_accountant(parts: Parts, coarser: float = 1.0) -> LeakyAccountant:
    """Return the accountant for sums of shuffled reports of not too many people, on a lattice."""
    laws = [(_rounds(law), times) for law, times in parts]
    variances = [min(2 * dot(one.masses, one.losses**2) for one in rounds) for rounds, _ in laws]
    total = sum(times * var for var, (_, times) in zip(variances, laws, strict=True))
    g = coarser * max(_FINE * math.sqrt(min(variances)), _FINER * math.sqrt(total))
    if not 1e-100 < g < 0.1:
        raise NotConverged
    factors, stays = [], 0.0
    for rounds, times in laws:
        snapped = [_snapped(one, g) for one in rounds]
        leak = rounds[0].outside
        law = snapped[0]
        if len(rounds) > 1:
            law, leak = _smaller(snapped, [one.outside for one in rounds])
        factors.append((law, times))
        stays += times * math.log1p(-min(leak, 0.5))
    inner = FourierInversion(LossSum(tuple(factors), LossLattice(0.0, g)))
    return LeakyAccountant(inner, -math.expm1(stays) * (1 + 64 * U), exact=False)


@lru_cache(maxsize=16)
def response_atoms(law: ShuffledResponseLoss) -> tuple[Atoms, float]:
    """Return a finite pair that dominates shuffled randomized responses, and its infinite loss."""
    outcomes = blanket_round(law.n, as_float(law.epsilon0), law.categories)
    g = _PAIR_STEP * math.sqrt(2 * float(outcomes.masses @ outcomes.losses**2))
    if not 1e-100 < g < 0.1:
        raise NotConverged
    atoms = _snapped(outcomes, g)
    positive = atoms.masses > 0
    losses = g * np.arange(-(len(positive) // 2), len(positive) // 2 + 1)
    return Atoms(losses[positive], atoms.masses[positive], atoms.slack), outcomes.outside


def _rounds(law: LossLaw) -> list[ShuffledRound]:
    """Return pairs that dominate one round each; the smaller of their deltas counts."""
    match law:
        case ShuffledLoss(n, epsilon):
            return [_outcomes(n, as_float(epsilon), None, 1.0)]
        case ShuffledResponseLoss(n, epsilon, k):
            e0 = as_float(epsilon)
            with contextlib.suppress(NotConverged):
                return [_of_two(n, e0) if k == 2 else blanket_round(n, e0, k)]
            with contextlib.suppress(NotConverged):
                return [blanket_round(n, e0, k)]
            weight = (1 + math.exp(-e0)) / (1 + (k - 1) * math.exp(-e0))
            two_answers, general = (min(1.0, 2 * weight / (math.exp(e0) + 1)), weight), (None, 1.0)
            return [_outcomes(n, e0, *kind) for kind in (two_answers, general)]
    raise NotConverged


def _of_two(n: int, e0: float) -> ShuffledRound:
    """Return the round of n reports of one bit, for which all outcomes are listed."""
    return _outcomes(n, e0, min(1.0, 2 / (1 + math.exp(e0))), 1.0)


def _smaller(laws: list[LatticeAtoms], leaks: list[float]) -> tuple[LatticeAtoms, float]:
    """Return a pair on the lattice above the smaller of the laws' deltas, and its infinite loss."""
    g, top = laws[0].step, max((len(law.masses) - 1) // 2 for law in laws)
    grid, deltas = g * np.arange(-top, top + 1), np.ones(2 * top + 1)
    for law, leak in zip(laws, leaks, strict=True):
        side = top - (len(law.masses) - 1) // 2
        q_masses = np.pad(law.masses, side) * np.exp(-grid)
        # Between two lattice points delta falls by the Q-mass above them times the step of exp(epsilon).
        above = np.cumsum(q_masses[::-1])[::-1]
        falls = np.exp(grid[:-1]) * math.expm1(g) * above[1:]
        delta = np.append(np.cumsum(falls[::-1])[::-1], 0.0)
        deltas = np.minimum(deltas, delta * (1 + law.slack + 16 * len(grid) * U) + leak)
    pair = connect_dots(Curve(lambda _: deltas, lambda _: deltas, -math.inf, math.inf), grid)
    masses = np.zeros(2 * top + 1)
    masses[np.round(pair.losses / g).astype(np.int64) + top] = pair.masses
    return LatticeAtoms(-g * top, g, 1, masses, 4 * U + pair.slack), pair.infinite


def _outcomes(n: int, e0: float, hides: float | None, weight: float) -> ShuffledRound:
    """List the outcomes of n reports, of which the others hide with probability ``hides`` or exp(-e0)."""
    from scipy.special import gammaln

    if not (1 <= n < 10**6 and 1e-6 < e0 < 25):
        raise NotConverged
    counts = counts_of(n, e0, hides)
    m = counts.c + 1
    reach = min(int(m[-1] + 1) // 2, math.ceil(6 * math.sqrt(float(m[-1])) + 30))
    if len(m) * (reach + 1) > _MAX_OUTCOMES:
        raise NotConverged
    logs = gammaln(np.arange(int(m[-1]) + 2) + 1.0)
    x = (m + 1)[:, None] // 2 + np.arange(reach + 1)
    inside = x <= m[:, None]
    x = np.minimum(x, m[:, None])
    b = np.exp(counts.logs[:, None] + (logs[m] - m * math.log(2))[:, None] - logs[x] - logs[m[:, None] - x])
    f = x / m[:, None]
    truth = 1 / (1 + math.exp(-e0))
    high, low = truth * f + (1 - truth) * (1 - f), (1 - truth) * f + truth * (1 - f)
    # The middle outcome of an even m is its own mirror image.
    masses = np.where(inside, 2 * weight * b * high, 0.0) * np.where(2 * x == m[:, None], 0.5, 1.0)
    losses = np.log1p((2 * truth - 1) * (2 * f - 1) / low)
    # At least 12 standard deviations of the coins lie inside (Hoeffding).
    missed = 0.0 if reach >= int(m[-1] + 1) // 2 else 4 * math.exp(-2 * (reach - 1) ** 2 / float(m[-1]))
    positive = masses > 0
    slack = 2 * counts.loose + 64 * U
    return ShuffledRound(
        losses[positive], masses[positive], 1 - weight, slack, (counts.outside + missed) * weight
    )


def _snapped(outcomes: ShuffledRound, g: float) -> LatticeAtoms:
    """Split the masses to the lattice; keep the P- and Q-mass of each."""
    if not outcomes.losses.max() < _MAX_OUTCOMES * g:
        raise NotConverged
    index = np.floor(outcomes.losses / g)
    index = np.where(index * g > outcomes.losses, index - 1, index)
    beyond = np.clip(outcomes.losses - g * index, 0.0, g)
    upper = outcomes.masses * np.expm1(-beyond) / math.expm1(-g)
    where, top = index.astype(np.int64), int(index.max()) + 1
    half = np.bincount(where, outcomes.masses - upper, top + 1) + np.bincount(where + 1, upper, top + 1)
    half = np.maximum(half, 0.0)
    mirrored = half * np.exp(-g * np.arange(top + 1))
    masses = np.concatenate([mirrored[:0:-1], [half[0] + mirrored[0] + outcomes.silent], half[1:]])
    # An error of x in a loss moves the share x / g of its mass to the next lattice point.
    return LatticeAtoms(-g * top, g, 1, masses, outcomes.slack + 16 * U * (1 + g * top) / g)
