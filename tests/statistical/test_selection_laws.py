"""Draws of the selection mechanisms follow closed forms that are worked out here another way.

Significance 1e-9 for each chi-square; power: the same test refutes a scale that is 10 % off (last test).
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

import tacit as tc

DRAWS = 100_000
SIGNIFICANCE = 1e-9
SCORES = [[0, 0], [0, 3], [2, 0, 1], [5, 5, 4, 0], [1, 7, 7, 3, 6]]


def p_value(observed: np.ndarray, chances: np.ndarray) -> float:
    assert math.isclose(sum(chances), 1, abs_tol=1e-9)
    expected = np.asarray(chances) * observed.sum()
    assert expected.min() > 5
    return float(chi2.sf(((observed - expected) ** 2 / expected).sum(), len(chances) - 1))


def tally(drawn: np.ndarray, size: int) -> np.ndarray:
    return np.bincount(drawn, minlength=size)


def exponential(scores, scale):
    weights = [math.exp(u / scale) for u in scores]
    return [w / sum(weights) for w in weights]


def permute_and_flip(scores, scale):
    """Enumerate every order: the first candidate whose coin falls wins."""
    best = max(scores)
    coin = [math.exp((u - best) / scale) for u in scores]
    chances = [0.0] * len(scores)
    orders = list(itertools.permutations(range(len(scores))))
    for order in orders:
        left = 1.0
        for r in order:
            chances[r] += left * coin[r] / len(orders)
            left *= 1 - coin[r]
    return chances


def noisy_max(scores, scale):
    """Sum over all noise of all candidates, ties to each with the same chance (grid 1)."""
    a = math.exp(-1 / scale)
    reach = range(-int(30 * scale), int(30 * scale) + 1)
    mass = {k: (1 - a) / (1 + a) * a ** abs(k) for k in range(-10_000, 10_001)}
    up_to = dict(zip(mass, itertools.accumulate(mass.values()), strict=True))
    chances = [0.0] * len(scores)
    orders = list(itertools.permutations(range(len(scores))))
    for order in orders:
        for r in range(len(scores)):
            for v in reach:
                p = mass[v - scores[r]]
                for j in range(len(scores)):
                    if j != r:  # earlier in the order wins a tie
                        p *= up_to[v - scores[j] - (order.index(j) < order.index(r))]
                chances[r] += p / len(orders)
    return chances


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("scores", SCORES, ids=str)
def test_exponential(scores, monotone):
    m = tc.mechanisms.Exponential(0.8, sensitivity=1, monotone=monotone)
    chances = exponential(scores, (1 if monotone else 2) / 0.8)
    assert m.probabilities(scores) == pytest.approx(chances, rel=1e-9)
    assert p_value(tally(m.release_many(scores, DRAWS), len(scores)), chances) > SIGNIFICANCE


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("scores", SCORES, ids=str)
def test_permute_and_flip(scores, monotone):
    m = tc.mechanisms.PermuteAndFlip(0.8, sensitivity=1, monotone=monotone)
    chances = permute_and_flip(scores, (1 if monotone else 2) / 0.8)
    assert m.probabilities(scores) == pytest.approx(chances, rel=1e-9)
    assert p_value(tally(m.release_many(scores, DRAWS), len(scores)), chances) > SIGNIFICANCE


@pytest.mark.parametrize("scores", SCORES[:4], ids=str)
def test_noisy_max_on_a_coarse_grid_where_ties_are_common(scores):
    m = tc.mechanisms.NoisyMax(0.8, sensitivity=1, grid=1)
    chances = noisy_max(scores, 2 / 0.8)
    assert m.probabilities(scores) == pytest.approx(chances, rel=1e-9)
    assert p_value(tally(m.release_many(scores, DRAWS), len(scores)), chances) > SIGNIFICANCE


def test_noisy_max_on_the_fine_grid_has_the_continuous_law():
    """Two candidates d apart: P = exp(-d/b) (2 + d/b) / 4 for the one behind."""
    m = tc.mechanisms.NoisyMax(1, sensitivity=1)
    behind = math.exp(-3 / 2) * (2 + 3 / 2) / 4
    assert m.probabilities([0, 3])[0] == pytest.approx(behind, rel=1e-5)
    assert p_value(tally(m.release_many([0, 3], DRAWS), 2), np.array([behind, 1 - behind])) > SIGNIFICANCE


@pytest.mark.parametrize("k", [2, 3, 7])
def test_randomized_response_from_epsilon(k):
    m = tc.mechanisms.RandomizedResponse(epsilon=1, categories=k)
    other = 1 / (math.e + k - 1)
    chances = np.array([1 - (k - 1) * other] + [other] * (k - 1))
    assert p_value(tally(m.release_many(0, DRAWS), k), chances) > SIGNIFICANCE


@pytest.mark.parametrize("p", [0.75, 0.6, 0.2])
def test_randomized_response_from_p(p):
    m = tc.mechanisms.RandomizedResponse(p=p, categories=3)
    chances = np.array([(1 - p) / 2, p, (1 - p) / 2])
    assert p_value(tally(m.release_many(1, DRAWS), 3), chances) > SIGNIFICANCE


@pytest.mark.parametrize("method", ["one-shot", "peeling"])
def test_top_k_by_both_methods(method):
    m = tc.mechanisms.TopK(2, k=2, sensitivity=1, method=method)
    scores = [0, 1, 2, 4]
    weights = [math.exp(u / 2) for u in scores]
    chances = {
        (i, j): weights[i] / sum(weights) * weights[j] / (sum(weights) - weights[i])
        for i, j in itertools.permutations(range(4), 2)
    }
    drawn = m.release_many(scores, 10_000)
    seen = np.array([np.count_nonzero((drawn == pair).all(axis=1)) for pair in chances])
    assert p_value(seen, np.array(list(chances.values()))) > SIGNIFICANCE


def test_real_scores_are_rounded_half_up_on_the_grid():
    m = tc.mechanisms.Exponential(1, sensitivity=1, grid=0.5)
    assert m.probabilities([0.25, 0.74, -0.25]) == pytest.approx(exponential([0.5, 0.5, 0.0], 2))
    odd = tc.mechanisms.Exponential(1, sensitivity=Fraction(3, 4), grid=0.5)
    assert odd.lattice.steps == 2  # ceil(0.75 / 0.5)


def test_a_pick_from_many_candidates_with_few_scores():
    """Weights are computed once for each gap there; the law is that of every candidate on its own."""
    scores = np.arange(40_000) % 5
    chances = np.array(exponential(range(5), 1.0))
    drawn = tc.mechanisms.Exponential(1, sensitivity=1, monotone=True).release_many(scores, DRAWS)
    assert p_value(tally(scores[drawn], 5), chances) > SIGNIFICANCE
    within = tally(drawn[scores[drawn] == 4] // 5 // 400, 20)  # and evenly among those with the same score
    assert p_value(within, np.full(20, 0.05)) > SIGNIFICANCE


def test_these_chi_squares_have_power():
    m = tc.mechanisms.Exponential(0.8, sensitivity=1)
    wrong = exponential([0, 3], 2 / 0.8 * 1.1)
    assert p_value(tally(m.release_many([0, 3], DRAWS), 2), np.array(wrong)) < SIGNIFICANCE
