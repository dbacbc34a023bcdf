"""Sampled discrete Gaussian vectors and sums of shares of noise: check values, and the pairs themselves."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from tacit.accounting import Budget, Cost, Filter
from tacit.accounting._charge import share_leak
from tacit.errors import TacitError


def weights(sigma: float, reach: int) -> np.ndarray:
    """Return the probabilities of a discrete Gaussian within reach steps."""
    mass = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * sigma**2))
    return mass / mass.sum()


@pytest.mark.parametrize(
    ("q", "sigma", "order", "value"),
    [(0.1, 2, 8, 0.01372543010322), (0.05, 0.7, 4, 0.31930470910557)],
)
@pytest.mark.parametrize(("scale", "dimension"), [(1, 1), (1, 30), (2, 30), (1000, 10**6)])
def test_a_sampled_discrete_gaussian_has_the_stated_divergence_in_any_dimension(
    q, sigma, order, value, scale, dimension
):
    cost = Cost.discrete_gaussian(sigma=scale * sigma, sensitivity=scale, dimension=dimension).sampled(q)
    assert cost.renyi_divergence(order) == pytest.approx(value, abs=2e-14)
    assert float(cost.spend_at((Fraction(order),)).curve[0][1]) == pytest.approx(value, abs=2e-14)


@pytest.mark.parametrize(("q", "steps", "sigma", "most"), [(0.05, 400, 4, 1.084), (0.01, 2000, 1, 1.06)])
def test_whole_orders_ask_for_a_few_percent_more_noise_than_the_continuous_law(q, steps, sigma, most):
    target = (steps * Cost.gaussian(sigma=sigma, sensitivity=1).sampled(q)).epsilon(delta=1e-5)
    grid, wider = 2**20, Fraction(str(most)) * sigma
    vector = steps * Cost.discrete_gaussian(sigma=wider * grid, sensitivity=grid, dimension=650).sampled(q)
    assert 0.97 * target < vector.epsilon(delta=1e-5) < 1.01 * target


@pytest.mark.parametrize("sigma", [0.7, 1.0, 1.5])
@pytest.mark.parametrize("shares", [2, 3, 10])
def test_a_sum_of_shares_has_nearly_each_probability_of_one_discrete_gaussian(sigma, shares):
    share = weights(sigma, 40)
    total = share
    for _ in range(shares - 1):
        total = np.convolve(total, share)
    one = weights(sigma * math.sqrt(shares), len(total) // 2)
    middle = slice(len(total) // 2 - 20, len(total) // 2 + 21)
    least = float((total[middle] / one[middle]).min())
    leak = float(share_leak(Fraction(str(sigma)), shares, 1))
    assert 1 - leak <= least + 1e-13
    if sigma < 1:
        assert leak < 20 * (1 - least)  # and it is not far from the truth
        assert least < 1 - 1e-4


def test_the_cost_of_shares_covers_their_sum_at_every_epsilon():
    share, shares = weights(0.7, 40), 3
    total = np.convolve(np.convolve(share, share), share)
    cost = Cost.discrete_gaussian(sigma=0.7, sensitivity=1, shares=shares)
    for q in (1, 0.2):
        charged = cost.sampled(q)
        moved = np.concatenate([np.zeros(1), total])
        still = np.concatenate([total, np.zeros(1)])
        mixture = q * moved + (1 - q) * still
        for epsilon in (0, 0.3, 1, 3):
            for a, b in ((mixture, still), (still, mixture)):
                truth = float(np.maximum(a - math.exp(epsilon) * b, 0).sum())
                assert truth <= charged.delta(epsilon=epsilon)


def test_shares_cost_as_much_as_their_total_variance():
    grid = 2**20
    shared = Cost.discrete_gaussian(sigma=3 * grid, sensitivity=grid, dimension=650, shares=4)
    central = Cost.discrete_gaussian(sigma=6 * grid, sensitivity=grid, dimension=650)
    assert shared.spend.rho == central.spend.rho
    assert shared.spend.delta <= Fraction(1, 10**55)
    run, like = (100 * one.sampled(0.1) for one in (shared, central))
    assert run.epsilon(delta=1e-6) == pytest.approx(like.epsilon(delta=1e-6), rel=1e-6)
    filter_ = Filter.start(Budget(3, 1e-6))
    assert abs(filter_.how_many(shared.sampled(0.1)) - filter_.how_many(central.sampled(0.1))) <= 1
    assert Cost.from_json(run.to_json()) == run
    assert eval(repr(run), {"Cost": Cost, "Fraction": Fraction}) == run
    assert Cost.discrete_gaussian(sigma=3, sensitivity=2, shares=1) == Cost.discrete_gaussian(
        sigma=3, sensitivity=2
    )


def test_shares_of_almost_no_noise_are_refused():
    with pytest.raises(TacitError, match="do not add up"):
        Cost.discrete_gaussian(sigma=0.1, sensitivity=1, shares=3)
