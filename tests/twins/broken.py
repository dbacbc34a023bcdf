"""The broken twins, as functions ``f(value, size)`` that return `size` independent outputs."""

from __future__ import annotations

import numpy as np

import tacit as tc
from support.repeatable_noise import rng


def integer_laplace(scale: float, size) -> np.ndarray:
    p = -np.expm1(-1 / scale)
    return rng.geometric(p, size) - rng.geometric(p, size)


def cut_laplace(scale: float, reach: int, size) -> np.ndarray:
    support = np.arange(-reach, reach + 1)
    weights = np.exp(-np.abs(support) / scale)
    return rng.choice(support, size, p=weights / weights.sum())


# -- floats --------------------------------------------------------------------------------------------


def float_laplace(value, size):
    """The textbook line: NumPy's floating-point Laplace noise, whose bits tell the input (Mironov 2012)."""
    return value + rng.laplace(0, 1, size)


def float_gaussian(value, size):
    """The same with normal noise."""
    return value + rng.normal(0, 10, size)


# -- too little noise ----------------------------------------------------------------------------------


def half_noise(value, size):
    """Claims epsilon 1 for a count, adds the noise of epsilon 2."""
    return value + integer_laplace(1 / 2, size)


def wrong_sensitivity(value, size):
    """A histogram under replace, where one person moves two cells, with the noise for one."""
    return np.asarray(value) + integer_laplace(1, (size, len(value)))


def no_factor_two(value, size):
    """The exponential mechanism with the monotone scale on scores that are not monotone."""
    weights = np.exp(np.asarray(value, dtype=float) - max(value))
    return rng.choice(len(value), size, p=weights / weights.sum())


def raw_after_clipping(rows, size):
    """The clipped column is computed, the raw one is summed; sensitivity 10 is claimed, epsilon 1."""
    clipped = np.clip(rows, 0, 10)
    del clipped
    return np.sum(rows) + integer_laplace(10, size)


def clip_and_forget(rows) -> float:
    """The query of `raw_after_clipping`, for the neighbour search."""
    np.clip(rows, 0, 10)
    return float(np.sum(rows))


def half_even(rows) -> int:
    """Rounds halves to even: from 0.5 to 1.5 is one step in the data and two on the grid."""
    return round(sum(rows))


# -- selection -----------------------------------------------------------------------------------------


def max_with_value(scores, size):
    """Report noisy max that also reports the winning noisy value."""
    noisy = np.asarray(scores) + integer_laplace(2, (size, len(scores)))
    winner = np.argmax(noisy, axis=1)
    return np.column_stack([winner, noisy[np.arange(size), winner]])


class FlipChargedAsRange(tc.mechanisms.PermuteAndFlip):
    """Permute-and-flip with the bounded-range charge of the exponential mechanism."""

    __slots__ = ()

    @property
    def cost(self):
        return tc.accounting.Cost.exponential(self.epsilon)


# -- sparse vector: the variants of Lyu, Su and Li 2017, figure 1; epsilon 1, sensitivity 1, threshold 0


def _sparse(answers, size, *, bar, noise, c, values=False):
    rho = integer_laplace(bar, size)[:, None]
    noisy = np.broadcast_to(np.asarray(answers), (size, len(answers)))
    if noise is not None:
        noisy = noisy + integer_laplace(noise, (size, len(answers)))
    above = noisy >= rho
    before = np.cumsum(above, axis=1) - above
    shown = np.where(above, 1.0, 0.0)
    if c is not None:
        shown = np.where(before < c, shown, -1.0)
    if values:
        shown = np.column_stack([shown, np.where(shown == 1, noisy, 0)])
    return shown


def sparse_vector_3(answers, size, c=1):
    """Roth 2011: releases the very noisy answer that was compared."""
    return _sparse(answers, size, bar=2, noise=2 * c, c=c, values=True)


def sparse_vector_4(answers, size, c=6):
    """Lee and Clifton 2014: the noise of the answers does not grow with the number of yeses."""
    return _sparse(answers, size, bar=4, noise=4 / 3, c=c)


def sparse_vector_5(answers, size):
    """Stoddard et al. 2014: no noise on the answers, no end."""
    return _sparse(answers, size, bar=2, noise=None, c=None)


def sparse_vector_6(answers, size):
    """Chen et al. 2015: noise on the answers, no end."""
    return _sparse(answers, size, bar=2, noise=2, c=None)


# -- integer mechanisms: keys, quantiles, several groups; epsilon 1 is claimed ----------------------------


def early_keys(units, size):
    """Keys are shown one unit below the threshold: with 1 % claimed, a key of one unit appears too often."""
    correct = tc.mechanisms.KeySelection(1, delta=0.01, groups=1)
    noisy = units + integer_laplace(1, size)
    return np.where((units > 0) & (noisy >= correct.threshold - 1), noisy, -1)


def short_keys(units, size):
    """The noise of a key is cut off one step too early, and the threshold lies one above its end."""
    reach = tc.mechanisms.KeySelection(1, delta=0.01, groups=1).threshold - 2
    noisy = units + cut_laplace(1, reach, size)
    return np.where((units > 0) & (noisy > reach), noisy, -1)


def cut_keys(units, size):
    """The threshold is right; the noise on large keys, too, must not be cut off earlier."""
    correct = tc.mechanisms.KeySelection(1, delta=0.01, groups=1)
    noisy = units + cut_laplace(1, 2, size)
    return np.where((units > 0) & (noisy >= correct.threshold), noisy, -1)


def keys_for_one(units, size):
    """A person belongs to three keys; threshold and noise allow for one."""
    correct = tc.mechanisms.KeySelection(1, delta=0.01, groups=1)
    noisy = np.asarray(units) + integer_laplace(1, (size, len(units)))
    return np.where((np.asarray(units) > 0) & (noisy >= correct.threshold), noisy, -1)


def floored_keys(units, size):
    """Keys with fewer than three units are dropped before the noise, and the threshold stays where it was."""
    correct = tc.mechanisms.KeySelection(1, delta=0.01, groups=1)
    noisy = units + cut_laplace(1, correct.threshold - 1, size)
    return np.where((units >= 3) & (noisy >= correct.threshold), noisy, -1)


def first_keys(others, size):
    """Of keys of one unit the right number is shown, but the first by name instead of any: 0 is the first."""
    correct = tc.mechanisms.KeySelection(1, delta=0.01, groups=1)
    found = [correct.law.exceedances(len(others), correct.threshold - 1)[0].size for _ in range(size)]
    return np.array([any(key == 0 for key in sorted(others)[:many]) for many in found], dtype=np.int64)


def quantile_of_one_row(counts, size):
    """A person has up to four rows; the noise of the choice is for one."""
    return tc.mechanisms.QuantileChoice(1, level=0.5, rows=1).release_many(counts, size)


def quantile_without_weight(counts, size):
    """The 0.9 quantile with the sensitivity of the median: a row weighs 9 tenths, not one half."""
    scores = tc.mechanisms.QuantileChoice(1, level=0.9, rows=1).scores(counts)
    return tc.mechanisms.Exponential(1, sensitivity=5, grid=1).release_many(scores, size)


def paid_per_group(table, size):
    """Each group's choice has the noise for its own change, and epsilon is charged once for all groups."""
    return tc.mechanisms.Exponential(1, sensitivity=1, grid=1).release_many(table, size)


# -- randomizers at the respondent; epsilon 1 is claimed unless stated -------------------------------------


def _odds(value: float, size: int, k: int) -> np.ndarray:
    """k-ary randomized response with odds exp(1) : 1."""
    honest = rng.random(size) < np.e / (np.e + k - 1)
    return np.where(honest, value, (value + rng.integers(1, k, size)) % k)


def truth_named_first(value, size):
    """Subset selection, 3 of 8 answers, in the order in which they were added: the truth comes first."""
    with_truth = rng.random(size) < 3 * np.e / (3 * np.e + 5)
    keys = rng.random((size, 8))
    keys[:, value] = np.where(with_truth, -1, 2)
    return np.argsort(keys, axis=1)[:, :3]


def truth_with_too_many(value, size):
    """Subset selection, 3 of 8 answers, whose chance 3e/(3e + 1) of the truth forgets 4 of the 5 others."""
    with_truth = rng.random(size) < 3 * np.e / (3 * np.e + 1)
    keys = rng.random((size, 8))
    keys[:, value] = np.where(with_truth, -1, 2)
    return np.sort(np.argsort(keys, axis=1)[:, :3], axis=1)


def seed_by_answer(value, size):
    """Linear hashing to 4 values, where the device draws seeds until the hash of the truth is 0."""
    seeds = rng.integers(0, 16, (size, 2))
    while (wrong := np.bitwise_count(seeds & (value + 1)) & 1).any():
        seeds = np.where(wrong, rng.integers(0, 16, (size, 2)), seeds)
    parities = [np.bitwise_count(seeds & code) & 1 for code in range(1, 10)]
    return np.column_stack([seeds, _odds(0, size, 4), *parities])


def window_within_bounds(value, size):
    """A window on -10 .. 10 whose reports stay there: at the ends it holds less weight than in the middle."""
    numbers = np.arange(-10, 11)
    weights = np.where(np.abs(numbers - value) <= 7, np.e, 1)
    return rng.choice(numbers, size, p=weights / weights.sum())


def better_of_both(value, size):
    """The window near 0 and Duchi's coin elsewhere: which one was taken shows where the number lies."""
    made = tc.mechanisms.NumberWindow(epsilon=1, steps=10, half_width=7, duchi=abs(value) > 5)
    return made.release_many(value, size)


def coin_beyond_bounds(value, size):
    """Duchi's coin for numbers that were not clipped to -1 .. 1."""
    tilt = value * (np.e - 1) / (np.e + 1)
    return np.where(rng.random(size) < (1 + tilt) / 2, 1, -1)


def forced_yes_only(value, size):
    """The forced design without a forced no, claimed as the one with both (epsilon ln 5)."""
    return np.where(rng.random(size) < 1 / 3, 1, value)


_MEMO = tc.mechanisms.Memo(epsilon=2, once=1)


def fresh_memo(value, size):
    """A memo that draws its permanent answer again for each of 10 reports; epsilon 2 is claimed for all."""
    return sum(_MEMO.release_many(value, size) for _ in range(10))


def question_by_answer(values, size):
    """One of two questions, where a yes is asked for twice as often as a no: the question itself tells."""
    first, second = values
    weight = np.array([1 + 2 * first, 1 + 2 * second])
    which = rng.random(size) < weight[1] / weight.sum()
    answer = np.where(which, _odds(second, size, 2), _odds(first, size, 2))
    return np.column_stack([which, answer])


# -- a bad day -----------------------------------------------------------------------------------------


def leaks_everything(p):
    """Return a mechanism that is fine but for a chance p to publish the data."""

    def release(value, size):
        fine = value + integer_laplace(1, size)
        return np.where(rng.random(size) < p, 10_000 + value, fine)

    return release


# -- streams -------------------------------------------------------------------------------------------


def noise_after_the_inverse(value, size):
    """Days plus C^-1 z with whole-number z: fractions of a day show the parity of earlier noise."""
    days = np.asarray(value)
    halves = np.cumprod([1, *((2 * k - 3) / (2 * k) for k in range(1, len(days)))])  # of sqrt(1 - x)
    inverse = np.array([[halves[t - j] if t >= j else 0 for j in range(len(days))] for t in range(len(days))])
    norm = sum(one**2 for one in (1, 1 / 2, 3 / 8, 5 / 16)[: len(days)]) ** 0.5
    z = integer_laplace(8 * norm, (size, len(days)))
    return days + z @ inverse.T


def parity_of_the_first_day(days):
    """Read the parity of day 1 off the days: x1 + z1, and the parity of z1 from the fraction of day 2."""
    fraction = np.round(2 * np.abs(days[:, 1] - np.floor(days[:, 1]))) % 2
    return (np.round(days[:, 0]) + fraction) % 2


def person_paid_as_event(days):
    """A person in all days, under the noise of a person who is in one of them."""
    return tc.mechanisms.ToeplitzNoise(days=days, power=0.5, rho=0.05, sensitivity_squared=1)


# -- ranges --------------------------------------------------------------------------------------------


def norm_of_the_real_matrix(cells):
    """Whole-number sums of cells, and the sensitivity of the real matrix that they were rounded from."""
    from tacit.strategies import RangeStrategy, Workload, factorise

    real = np.linalg.cholesky(factorise(Workload(cells, "ranges").gram()).gram).T
    return RangeStrategy(np.rint(3 * real).astype(np.int64)), 9


def rows_of_a_unit_forgotten(cells):
    """Noise for units with one row, where they have three."""
    from tacit.strategies import Workload, factored

    return tc.mechanisms.StrategyNoise(factored(Workload(cells, "ranges")), rho=0.5, rows=1)
