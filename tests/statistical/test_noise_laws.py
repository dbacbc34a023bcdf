"""Draws against their exact laws: chi-square and moments at significance 1e-9; broken copies are caught.

Every test below refuses a right sampler with probability below 1e-9. Its power is shown by mutants: copies
that are wrong by 3 % in scale, 1 % in sign, or double the chance of zero, and must be refused by the same
function.
"""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from tacit import noise

SIGNIFICANCE = 1e-9
CHUNK = 2_000_000
LAWS = {
    "laplace": noise.discrete_laplace,
    "gaussian": noise.discrete_gaussian,
    "rounded": noise.rounded_gaussian,
}
#: The rounded Gaussian shares the tables of the others: what shows the power of a test runs in the long tier.
OR_LONG = ["laplace", "gaussian", pytest.param("rounded", marks=pytest.mark.long)]
# Draws per scale, for a power above 0.999: at 1/3 nearly all draws are zero, and only 2 % of the Gaussian's
# tell a sign.
DRAWS = {
    Fraction(1, 3): 24_000_000,
    Fraction(1): 6_000_000,
    Fraction(10): 6_000_000,
    Fraction(10**6): 6_000_000,
}


def masses(law, scale, values):
    """Unnormalised weights, which doubles hold to 1e-13: far finer than 10^7 draws resolve."""
    x = np.abs(values.astype(np.float64))
    s = float(scale)
    if law == "rounded":
        return stats.norm.sf((x - 0.5) / s) - stats.norm.sf((x + 0.5) / s)
    return np.exp(-x / s) if law == "laplace" else np.exp(-(x * x) / (2 * s * s))


def bins(law, scale, draws):
    """Edges of bins and their exact chances; single integers where the scale is small, and two open ends."""
    width = max(1, int(scale) // 16)
    reach = {"laplace": 36, "gaussian": 9, "rounded": 9}[law] * max(scale, Fraction(1))
    count = int(reach / width)
    edges = np.arange(-count, count + 2) * width - width // 2
    chances = np.array([masses(law, scale, np.arange(a, a + width)).sum() for a in edges[:-1]])
    chances = chances / chances.sum()
    # join what is too rare to count
    keep = chances * draws >= 25
    first, last = np.flatnonzero(keep)[[0, -1]]
    inner = edges[first + 1 : last + 1]
    joined = np.concatenate(([chances[: first + 1].sum()], chances[first + 1 : last], [chances[last:].sum()]))
    return inner, joined


def chi_square(law, scale, draw, draws):
    """The p-value of draws against the exact law."""
    inner, chances = bins(law, scale, draws)
    counts = np.zeros(chances.size, np.int64)
    for start in range(0, draws, CHUNK):
        part = draw(min(CHUNK, draws - start))
        counts += np.bincount(np.searchsorted(inner, part, side="right"), minlength=chances.size)
    assert counts.sum() == draws
    return stats.chisquare(counts, chances * draws).pvalue


@pytest.mark.parametrize("scale", DRAWS, ids=str)
@pytest.mark.parametrize("law", LAWS)
def test_draws_follow_the_exact_law(law, scale):
    assert chi_square(law, scale, lambda n: LAWS[law](scale, n), DRAWS[scale]) > SIGNIFICANCE


def off_by_three_percent(law, scale):
    return lambda n: LAWS[law](scale * Fraction(103, 100), n)


def biased_in_sign(law, scale):
    """51 positive draws to 49 negative ones."""

    def draw(n):
        x = LAWS[law](scale, n)
        flip = (x < 0) & noise.bernoulli(Fraction(2, 100), n)
        return np.where(flip, -x, x)

    return draw


def without_the_zero_rejection(law, scale):
    """A magnitude from 0 on, then a sign: zero comes twice as often as it should."""

    def draw(n):
        x = LAWS[law](scale, 3 * n)
        magnitude = x[x >= 0][:n]
        return np.where(noise.bernoulli(Fraction(1, 2), n), magnitude, -magnitude)

    return draw


@pytest.mark.parametrize(
    ("scale", "mutant"),
    [(s, m) for s in DRAWS for m in (off_by_three_percent, biased_in_sign)]
    + [
        (s, without_the_zero_rejection) for s in DRAWS if s < 1000
    ],  # the rare zeros of 10^6 have a test below
)
@pytest.mark.parametrize("law", OR_LONG)
def test_broken_samplers_are_caught(law, scale, mutant):
    assert chi_square(law, scale, mutant(law, scale), DRAWS[scale]) < SIGNIFICANCE


@pytest.mark.long
@pytest.mark.parametrize("law", LAWS)
def test_the_rare_zeros_of_a_wide_law_are_counted(law):
    """At scale 10^6 one draw in two million is zero: 2 * 10^8 draws tell once from twice."""
    draws, scale = 200_000_000, Fraction(10**6)
    weights = masses(law, scale, np.arange(-40 * 10**6, 40 * 10**6 + 1))
    chance = weights[weights.size // 2] / weights.sum()
    right, wrong = 0, 0
    for _ in range(draws // CHUNK):
        right += np.count_nonzero(LAWS[law](scale, CHUNK) == 0)
        wrong += np.count_nonzero(without_the_zero_rejection(law, scale)(CHUNK) == 0)
    assert stats.binomtest(right, draws, chance).pvalue > SIGNIFICANCE
    assert stats.binomtest(wrong, draws, chance).pvalue < SIGNIFICANCE


@pytest.mark.parametrize("law", LAWS)
def test_every_integer_of_a_wide_law_is_counted(law):
    """Scale 1000 is drawn by strips of 8 integers; 5000 single integers would show a step inside a strip."""
    draws, scale = 10_000_000, Fraction(1000)
    values = np.arange(-2500, 2501)
    counts = np.zeros(values.size + 2, np.int64)
    for _ in range(5):
        part = LAWS[law](scale, draws // 5)
        counts += np.bincount(np.clip(part, -2501, 2501) + 2501, minlength=counts.size)
    everything = np.arange(-40_000, 40_001)
    weights = masses(law, scale, everything)
    inside = masses(law, scale, values) / weights.sum()
    chances = np.concatenate(([(1 - inside.sum()) / 2], inside, [(1 - inside.sum()) / 2]))
    assert stats.chisquare(counts, chances * draws).pvalue > SIGNIFICANCE


#: Draws one by one, or with a scale for each: as many as refuse a scale that is 10 % off (see below).
SMALL = 40_000


def singly(draw):
    return lambda scale, n: np.array([draw(scale) for _ in range(n)])


def each(draw):
    """One scale per element, all different but two: the path for many scales."""

    def many(scale, n):
        scales = np.concatenate([np.full(2000, float(scale)), 1 + np.arange(2000) / 7])
        return np.concatenate([draw(scales)[:2000] for _ in range(n // 2000)])

    return many


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(10), Fraction(10**6)], ids=str)
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(
    ("path", "draws"),
    [(singly, SMALL), (each, SMALL), pytest.param(each, 5 * SMALL, marks=pytest.mark.long)],
)
def test_the_other_ways_to_the_same_law(law, scale, path, draws):
    if path is each and scale == Fraction(1, 3):
        scale = Fraction(3, 10)  # a float at its decimal reading is not one third
    sampler = path(LAWS[law])
    assert chi_square(law, scale, lambda n: sampler(scale, n), draws) > SIGNIFICANCE


@pytest.mark.parametrize("path", [singly, each])
@pytest.mark.parametrize("law", OR_LONG)
def test_the_other_ways_are_tested_with_power(law, path):
    """The same test at the same size refuses a scale that is 10 % off."""
    sampler = path(LAWS[law])
    assert chi_square(law, Fraction(10), lambda n: sampler(Fraction(11), n), SMALL) < SIGNIFICANCE


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(7), Fraction(5000)], ids=str)
def test_geometric_draws_follow_their_law(scale):
    draws = 3_000_000
    a = np.exp(-1 / float(scale))
    width = max(1, int(scale) // 16)
    last = int(np.log(25 / draws) / np.log(a)) // width
    counts = np.bincount(np.minimum(noise.geometric(scale, draws) // width, last), minlength=last + 1)
    starts = np.arange(last + 1) * width
    chances = np.append(a ** starts[:-1] * (1 - a**width), a ** float(starts[-1]))
    assert stats.chisquare(counts, chances * draws).pvalue > SIGNIFICANCE


@pytest.mark.parametrize(
    "scale", [Fraction(1, 3), Fraction(1), Fraction(10), Fraction(10**6), Fraction(2**50)], ids=str
)
@pytest.mark.parametrize("law", OR_LONG)
def test_moments(law, scale):
    draws = 2_000_000
    x = LAWS[law](scale, draws).astype(np.float64)
    values = np.arange(-400, 401, dtype=np.float64)
    if scale > 10:  # as good as continuous: the relative difference is below 1e-12
        variance = float(scale) ** 2 * (2 if law == "laplace" else 1)
        fourth = variance**2 * (6 if law == "laplace" else 3)
    else:
        chances = masses(law, scale, values)
        chances /= chances.sum()
        variance, fourth = (chances * values**2).sum(), (chances * values**4).sum()
    z = stats.norm.isf(SIGNIFICANCE / 4)
    assert abs(x.mean()) < z * np.sqrt(variance / draws)
    assert abs((x**2).mean() - variance) < z * np.sqrt((fourth - variance**2) / draws)


@pytest.mark.parametrize("law", LAWS)
def test_neighbouring_draws_are_independent(law):
    """Pairs of draws next to each other, and one block of 2^16 apart, in a contingency table."""
    x = np.clip(LAWS[law](1, 3_000_000), -2, 2) + 2
    for lag in [1, 2, 2**16]:
        table = np.bincount(x[:-lag] * 5 + x[lag:], minlength=25).reshape(5, 5)
        assert stats.chi2_contingency(table).pvalue > SIGNIFICANCE
    shifted = np.where(noise.bernoulli(Fraction(1, 50), x.size), np.roll(x, 1), x)  # a copy in fifty
    table = np.bincount(shifted[:-1] * 5 + shifted[1:], minlength=25).reshape(5, 5)
    assert stats.chi2_contingency(table).pvalue < SIGNIFICANCE


def test_coins_and_uniform_numbers():
    draws = 4_000_000
    for p, coins in [
        (0.3, noise.bernoulli(0.3, draws)),
        (np.exp(-0.7), noise.bernoulli_exp(0.7, draws)),
        (0.3, noise.bernoulli(np.full(draws, 0.3))),
        (np.exp(-0.7), noise.bernoulli_exp(np.full(draws, 0.7))),
    ]:
        assert stats.binomtest(int(coins.sum()), draws, p).pvalue > SIGNIFICANCE
    for n in [3, 10, 641]:
        for drawn in [noise.uniform_below(n, draws), noise.uniform_below(np.full(draws, n))]:
            assert stats.chisquare(np.bincount(drawn, minlength=n)).pvalue > SIGNIFICANCE
    large = noise.uniform_below(3 * 2**60, draws) >> 58
    assert stats.chisquare(np.bincount(large, minlength=12)).pvalue > SIGNIFICANCE


def test_all_orders_are_equally_likely():
    orders = np.array([noise.permutation(4) @ [64, 16, 4, 1] for _ in range(24_000)])
    _, counts = np.unique(orders, return_counts=True)
    assert counts.size == 24
    assert stats.chisquare(counts).pvalue > SIGNIFICANCE


def test_selection_follows_the_exponential_weights():
    scores, scale, draws = np.array([0, 3, 3, -5, 10, 7, -20]), Fraction(7, 2), 2_000_000
    weights = np.exp(scores / float(scale))
    counts = np.bincount(noise.select(scores, scale, draws), minlength=scores.size)
    assert stats.chisquare(counts, draws * weights / weights.sum()).pvalue > SIGNIFICANCE
    wrong = np.exp(scores / float(scale) * 1.01)
    assert stats.chisquare(counts, draws * wrong / wrong.sum()).pvalue < SIGNIFICANCE


def test_the_race_has_the_law_of_selecting_without_replacement():
    """All ordered pairs of five candidates, against the chances of peeling; draws with replacement differ."""
    scores, draws = np.array([0, 1, 2, 4, 4]), 20_000
    weights = np.exp(scores / 2)
    expected, found = np.zeros((5, 5)), np.zeros((5, 5))
    for i in range(5):
        for j in set(range(5)) - {i}:
            expected[i, j] = weights[i] / weights.sum() * weights[j] / (weights.sum() - weights[i])
    for _ in range(draws):
        first, second = noise.select_top(scores, 2, scale=2)
        found[first, second] += 1
    off = ~np.eye(5, dtype=bool)
    assert stats.chisquare(found[off], draws * expected[off]).pvalue > SIGNIFICANCE
    independent = np.outer(weights, weights)[off]
    assert stats.chisquare(found[off], draws * independent / independent.sum()).pvalue < SIGNIFICANCE
