"""The chance that the true winner of a vote wins, and the lead that is enough: known before spending."""

import math
from itertools import permutations

import mpmath
import numpy as np
import pytest

import tacit as tc

m = tc.mechanisms


def vote(kind, epsilon=0.5, **more):
    return kind(epsilon=epsilon, sensitivity=1, monotone=True, grid=1, **more)


@pytest.mark.parametrize("lead", [0, 1, 3, 10, 40])
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 2])
def test_two_options(lead, epsilon):
    p = math.exp(-epsilon * lead)
    scores = [100 + lead, 100]
    expected = 1.0 if lead == 0 else 1 / (1 + p)
    assert vote(m.Exponential, epsilon).chance_of_best(scores) == pytest.approx(expected, abs=1e-12)
    expected = 1.0 if lead == 0 else 1 - p / 2
    assert vote(m.PermuteAndFlip, epsilon).chance_of_best(scores) == pytest.approx(expected, abs=1e-12)


def by_orders(scores, scale):
    """Return the chance by the definition of permute-and-flip: over all orders."""
    best = max(scores)
    taken = [math.exp((s - best) / scale) for s in scores]
    total = 0.0
    for order in permutations(range(len(scores))):
        stays = 1.0
        for i in order:
            if scores[i] == best:
                total += stays
                break
            stays *= 1 - taken[i]
    return total / math.factorial(len(scores))


@pytest.mark.parametrize("scores", [[5, 4, 4, 1], [7, 7, 3, 2, 2], [9, 8, 7, 6, 5, 4], [3], [2, 2]])
@pytest.mark.parametrize("epsilon", [0.05, 1, 3])
def test_few_options_against_all_orders(scores, epsilon):
    mechanism = vote(m.PermuteAndFlip, epsilon)
    assert mechanism.chance_of_best(scores) == pytest.approx(by_orders(scores, 1 / epsilon), abs=1e-12)
    chances = np.array(mechanism.probabilities(scores))
    assert mechanism.chance_of_best(scores) == pytest.approx(
        chances[np.array(scores) == max(scores)].sum(), abs=1e-9
    )


@pytest.mark.parametrize(("others", "epsilon", "ties"), [(20_000, 0.01, 1), (3000, 0.5, 2), (500, 0.0, 40)])
def test_many_options_against_the_integral_in_fifty_digits(others, epsilon, ties):
    epsilon = epsilon or 0.001
    lead = 5
    scores = [lead] * ties + [0] * others
    with mpmath.workdps(50):
        p = mpmath.exp(-mpmath.mpf(epsilon) * lead)
        cuts = [0, *(mpmath.mpf(2) ** -k for k in range(24, -1, -1))]
        whole = mpmath.quad(lambda x: ties * (1 - x) ** (ties - 1) * (1 - p * x) ** others, cuts)
    assert vote(m.PermuteAndFlip, epsilon).chance_of_best(scores) == pytest.approx(float(whole), rel=1e-9)


@pytest.mark.parametrize("kind", [m.Exponential, m.PermuteAndFlip])
@pytest.mark.parametrize("options", [2, 4, 50])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_the_lead_is_enough_and_the_smallest(kind, options, confidence):
    mechanism = vote(kind, 0.2)
    lead = mechanism.lead_for(confidence, options)
    assert mechanism.chance_of_best([lead] + [0] * (options - 1)) >= confidence * (1 - 1e-12)
    if lead > 1:
        assert mechanism.chance_of_best([lead - 1] + [0] * (options - 1)) < confidence
    spread = [lead, *np.linspace(-30, 0, options - 1).round().tolist()]
    assert mechanism.chance_of_best(spread) >= confidence


def test_the_lead_on_a_fine_grid_covers_the_rounding_of_scores():
    mechanism = m.PermuteAndFlip(epsilon=1, sensitivity=0.3)
    lead = mechanism.lead_for(0.9, 3)
    for shift in (0.0, 1e-12, 0.123456789, 1 / 3):
        assert mechanism.chance_of_best([shift + lead, shift, shift]) >= 0.9 * (1 - 1e-9)


def test_all_picks_are_right_with_their_lead():
    top = m.TopK(epsilon=2, k=3, sensitivity=1, monotone=True, grid=1)
    lead = top.lead_for(0.8, 6)
    scores = [3 * lead, 2 * lead, lead, 0, 0, 0]
    right = (top.release_many(scores, 2000) == [0, 1, 2]).all(axis=1).mean()
    assert right >= 0.75  # 5.6 standard deviations below 80 %; the chance is 95 %
    assert top.chance_of_best(scores) == top.each.chance_of_best(scores)


def test_drawn_winners_follow_the_chance():
    for kind in (m.Exponential, m.PermuteAndFlip, m.NoisyMax):
        mechanism = vote(kind, 0.3)
        scores = [20, 17, 16, 9]
        drawn = (mechanism.release_many(scores, 20_000) == 0).mean()
        assert drawn == pytest.approx(mechanism.chance_of_best(scores), abs=0.023)  # 6.5 deviations


def test_the_exponential_mechanism_in_place_of_permute_and_flip_is_caught():
    """The twin that draws by the other law wins less often than permute-and-flip says."""
    scores = [6, 0, 0, 0]
    said = vote(m.PermuteAndFlip, 0.3).chance_of_best(scores)
    drawn = (vote(m.Exponential, 0.3).release_many(scores, 20_000) == 0).mean()
    assert drawn < said - 0.02


def test_groups_and_names():
    mechanism = vote(m.PermuteAndFlip)
    groups = mechanism.chance_of_best([[3, 1], [1, 3], [2, 2]])
    assert groups.tolist() == pytest.approx([1 - math.exp(-1) / 2, 1 - math.exp(-1) / 2, 1.0])
    assert mechanism.chance_of_best({"a": 3, "b": 1}) == groups[0]
    assert mechanism.lead_for(0.95, 1) == 0


def test_a_chance_too_small_for_a_double():
    assert vote(m.PermuteAndFlip, 100_000).lead_for(0.95, 4) == 1
    assert vote(m.PermuteAndFlip, 100_000).error(0.95, candidates=4) == 1
