"""Samples with a tiny rate: common losses on a lattice and rare ones in one sum, against other methods."""

import math

import numpy as np
import pytest

from tacit.accounting import Cost
from tacit.accounting.numeric._arithmetic import NotConverged
from tacit.accounting.numeric._factors import factors_of
from tacit.accounting.numeric._fourier import FourierInversion
from tacit.accounting.numeric._rare_losses import rare_accountant


def gaussian(q, sigma, times):
    return times * Cost.gaussian(sigma=sigma, sensitivity=1).sampled(q)


@pytest.mark.parametrize("add", [0, 1])
@pytest.mark.parametrize(
    ("q", "sigma", "times"),
    [
        (1e-3, 0.8, 100),
        (1e-3, 1.0, 1000),
        (1e-4, 0.56, 1000),
        (1e-4, 1.0, 1000),
        (1e-4, 1.0, 10**5),
        (1e-5, 0.6, 10**5),
    ],
)
def test_it_agrees_with_fourier_inversion_where_that_has_an_answer(q, sigma, times, add):
    parts = gaussian(q, sigma, times).parts
    rare, fourier = rare_accountant(parts, add=add), FourierInversion(factors_of(parts, add=add).loss_sum)
    seen = 0
    for delta in (1e-4, 1e-5, 1e-7):
        try:
            low, high, _ = fourier.epsilon(delta)
        except NotConverged:
            continue
        try:
            found = rare.epsilon(delta).upper
        except NotConverged:
            assert add
            continue
        assert found >= low
        assert found <= high * 1.05 + 1e-3 * q * math.sqrt(times)
        assert rare.delta(found).upper <= delta
        assert rare.delta(high).upper >= fourier.delta(high).lower
        seen += 1
    assert seen or add


def exact_delta(q, sigma, e, steps=3001):
    """Return delta of two sampled answers by quadrature, the larger of both directions."""
    x = np.linspace(-8.5, 9.5, steps)
    without = np.exp(-x * x / 2)
    without /= without.sum()
    loss = np.log1p(q * np.expm1(x / sigma - 1 / (2 * sigma**2)))
    mixed = without * np.exp(loss)
    both = np.add.outer(loss, loss)
    first = float((np.multiply.outer(mixed, mixed) * np.maximum(0, -np.expm1(e - both))).sum())
    second = float((np.multiply.outer(without, without) * np.maximum(0, -np.expm1(e + both))).sum())
    return max(first, second)


@pytest.mark.parametrize(("q", "sigma"), [(1e-3, 0.7), (1e-4, 0.5), (1e-5, 0.5)])
def test_two_answers_against_quadrature(q, sigma):
    cost = gaussian(q, sigma, 2)
    for e in (0.0, q / 2, 10 * q, 0.01, 0.5):
        truth = exact_delta(q, sigma, e)
        if truth < 1e-13:
            continue
        assert cost.delta(epsilon=e) >= truth * (1 - 2e-4)
        rare = max(rare_accountant(cost.parts, add=add).delta(e).upper for add in range(2 if e < q else 1))
        assert truth * (1 - 2e-4) <= rare <= truth * 1.02 + 1e-13


def test_few_tiny_samples_cost_little():
    """Before, a tiny Gaussian was added to such sums, which then read 0.0378 and more than longer ones."""
    short = gaussian(1e-6, 0.56, 1000).epsilon(delta=1e-6)
    assert 7e-4 < short < 7.6e-4
    assert short < gaussian(1e-6, 0.56, 10**5).epsilon(delta=1e-6)
    assert gaussian(1e-6, 0.6, 1000).epsilon(delta=1e-5) < 2e-4


@pytest.mark.parametrize(
    "law",
    [
        Cost.laplace(scale=1, sensitivity=1),
        Cost.exponential(2),
        Cost.discrete_laplace(scale=2, sensitivity=3),
    ],
)
def test_epsilon_and_delta_agree(law):
    cost = 500 * law.sampled(1e-5)
    for delta in (1e-5, 1e-7, 1e-9):
        epsilon = cost.epsilon(delta=delta)
        assert cost.delta(epsilon=epsilon) <= delta
        assert 0 <= epsilon <= 500 * law.sampled(1e-5).epsilon(delta=0)
