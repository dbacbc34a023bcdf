"""The data-dependent reading of votes: check values, monotone bounds, smooth sensitivity, for teaching."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

import tacit as tc
from tacit.errors import TacitError
from tacit.learn.teachers._vote_reading import divergence_of_doubt, log_doubt, published_cost

CLEAR = [250] + [0] * 9
SPLIT = [140, 60, 50] + [0] * 7


@pytest.mark.parametrize(
    ("order", "value"), [(2, 1.527e-5), (10, 2.333e-5), (20, 5.321e-5), (50, 2.08327e-3)]
)
def test_clear_votes_reveal_little_and_split_votes_the_usual(order, value):
    assert log_doubt(CLEAR, 40) == pytest.approx(-10.019228, abs=1e-6)
    assert float(divergence_of_doubt(log_doubt(CLEAR, 40), 40, order)) == pytest.approx(value, rel=4e-4)
    assert float(divergence_of_doubt(log_doubt(CLEAR, 40), 40, order)) == pytest.approx(value, abs=1e-6)
    assert float(divergence_of_doubt(log_doubt(SPLIT, 40), 40, order)) == pytest.approx(
        order / 1600, rel=1e-12
    )


@pytest.mark.parametrize("sigma", [2.0, 10.0, 40.0])
@pytest.mark.parametrize("order", [1.5, 4, 20, 60])
def test_less_doubt_never_reveals_more(sigma, order):
    logs = np.linspace(-200, math.log(0.9), 20_000)
    values = divergence_of_doubt(logs, sigma, order)
    assert (np.diff(values) >= -1e-15).all()
    assert values.max() <= order / sigma**2


@pytest.mark.parametrize("votes", [[30, 2, 1], [25, 9, 1], [20, 14, 0]])
@pytest.mark.parametrize("sigma", [3.0, 6.0])
def test_the_bound_covers_the_divergence_of_noisy_labels(votes, sigma):
    """The law of the label, by integration over the noise of the winner; neighbours in both directions."""
    from scipy.stats import norm

    def law(counts):
        x = np.linspace(min(counts) - 9 * sigma, max(counts) + 9 * sigma, 6001)
        chances = []
        for j in range(3):
            others = np.prod([norm.cdf(x, counts[k], sigma) for k in range(3) if k != j], axis=0)
            chances.append(np.trapezoid(norm.pdf(x, counts[j], sigma) * others, x))
        return np.array(chances)

    here = law(votes)
    for a, b in product(range(3), repeat=2):
        if a == b or votes[a] == 0:
            continue
        moved = list(votes)
        moved[a] -= 1
        moved[b] += 1
        for order in (2, 5, 12):
            truth = math.log(float((here**order * law(moved) ** (1 - order)).sum())) / (order - 1)
            assert truth <= float(divergence_of_doubt(log_doubt(votes, sigma), sigma, order)) + 1e-9


def all_votes(teachers):
    return [(a, b, teachers - a - b) for a in range(teachers + 1) for b in range(teachers + 1 - a)]


def moves(votes):
    for a, b in product(range(3), repeat=2):
        if a != b and votes[a]:
            moved = list(votes)
            moved[a] -= 1
            moved[b] += 1
            yield tuple(moved)


@pytest.mark.parametrize(("sigma", "order", "beta"), [(1.5, 3, 0.1), (1.0, 4, 0.05)])
def test_the_smooth_sensitivity_covers_every_neighbour_and_is_smooth(sigma, order, beta):
    read = {one: tc.learn.VoteReading([one], sigma=sigma, delta=1e-5) for one in all_votes(12)}
    value = {one: reading.divergence(order) for one, reading in read.items()}
    smooth = {one: reading.smooth_sensitivity(order, beta) for one, reading in read.items()}
    largest = 0.0
    for one in read:
        for other in moves(one):
            change = abs(value[one] - value[other])
            largest = max(largest, change)
            assert change <= smooth[one] + 1e-12
            assert smooth[one] <= math.exp(beta) * smooth[other] * (1 + 1e-9)
    assert largest > 0
    assert max(smooth.values()) < 5 * largest


@pytest.mark.parametrize(("order", "beta", "spread"), [(4, 0.02, 3.0), (12, 0.01, 8.0)])
def test_publishing_costs_at_least_the_divergence_of_two_gaussians(order, beta, spread):
    cost = published_cost(order, beta, spread)
    x = np.linspace(-60 * spread, 60 * spread, 200_001)
    worst = 0.0
    for ratio in (math.exp(-beta), 1.0, math.exp(beta)):
        logs = [
            -((x - m) ** 2) / (2 * (s * spread) ** 2) - math.log(s)
            for m, s in ((min(1.0, ratio), 1.0), (0.0, ratio))
        ]
        total = np.trapezoid(np.exp(order * logs[0] + (1 - order) * logs[1]), x)
        worst = max(worst, math.log(float(total) / (spread * math.sqrt(2 * math.pi))) / (order - 1))
    assert 0.6 * cost < worst <= cost * (1 + 1e-9)
    assert published_cost(order, 1.0, spread) == math.inf


def test_a_reading_is_labelled_and_published_only_with_noise():
    reading = tc.learn.VoteReading([CLEAR] * 200 + [SPLIT] * 5, sigma=40, delta=1e-5)
    assert reading.data_independent > 3 * reading.data_dependent
    assert "for teaching: it is itself private" in repr(reading)
    noisy, added = reading.published(20, beta=0.02, spread=10)
    # 12 deviations: less than once in 10^30 runs
    assert abs(noisy - reading.divergence(20)) < 12 * 10 * reading.smooth_sensitivity(20, 0.02)
    assert added == published_cost(20, 0.02, 10)
    with pytest.raises(TacitError, match="beta must be a number above 0 and below"):
        reading.published(20, beta=0.5, spread=10)
    for votes in ([1, 2], [[1.5, 2.0]], [[1]], []):
        with pytest.raises(TacitError):
            tc.learn.VoteReading(votes, sigma=40, delta=1e-5)
