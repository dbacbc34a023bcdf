"""Several units in one sampled Gaussian: the mixture of shifts, against laws that are written out."""

import math
from itertools import product

import numpy as np
import pytest

from tacit.accounting import Cost

X = np.arange(-14.0, 14.0, 1 / 4096)


def density(moves, q, sigma):
    """Return the law of one sampled answer on the grid: each move is in the sample with probability q."""
    total = np.zeros_like(X)
    for chosen in product((0, 1), repeat=len(moves)):
        share = math.prod(q if c else 1 - q for c in chosen)
        shift = sum(m for m, c in zip(moves, chosen, strict=True) if c) / sigma
        total += share * np.exp(-((X - shift) ** 2) / 2) / math.sqrt(2 * math.pi) / 4096
    return total


def exact_delta(p, q, e):
    return float(np.maximum(p - math.exp(e) * q, 0).sum())


@pytest.mark.parametrize(("m", "old"), [(2, 2.23), (3, 3.92)])
def test_a_group_in_a_sample_is_a_mixture_of_shifts(m, old):
    """References by numerical convolution: 1.97 and 2.98; the triangle inequality gives the old figures."""
    run = (100 * Cost.gaussian(sigma=1, sensitivity=1).sampled(0.01)).group(m)
    low, high, _ = run.bounds(delta=1e-6)
    assert (low, high) == pytest.approx({2: (1.9708, 1.9708), 3: (2.9830, 2.9830)}[m], rel=1e-4)
    assert high < old


@pytest.mark.parametrize("m", [2, 3, 5])
@pytest.mark.parametrize(("q", "sigma"), [(0.01, 1.0), (0.3, 2.0), (0.9, 1.5)])
def test_one_answer_is_read_exactly(m, q, sigma):
    cost = Cost.gaussian(sigma=sigma, sensitivity=1).sampled(q).group(m)
    shares = [(density((1,) * (m - b), q, sigma), density((-1,) * b, q, sigma)) for b in range(m + 1)]
    for e in (0.0, 0.1, 0.7, 2.0):
        truth = max(exact_delta(p, r, e) for p, r in shares)
        assert cost.delta(epsilon=e) == pytest.approx(truth, rel=1e-6, abs=1e-11)


@pytest.mark.parametrize(("q", "sigma"), [(0.02, 1.0), (0.4, 1.5), (0.8, 3.0)])
@pytest.mark.parametrize(
    ("removed", "added"),
    [
        ((1, 1), ()),
        ((1, -1), ()),
        ((0.5, -1, 1), ()),
        ((1,), (-1,)),
        ((1, 1), (-1,)),
        ((1,), (1, 0.3)),
        ((), (1, 1, 1)),
    ],
)
def test_any_group_of_units_is_covered(removed, added, q, sigma):
    """Units may move the answer either way, and some may join while others leave."""
    p, r = density(removed, q, sigma), density(added, q, sigma)
    cost = Cost.gaussian(sigma=sigma, sensitivity=1).sampled(q).group(len(removed) + len(added))
    twice = 2 * cost
    p2, r2 = np.multiply.outer(p[::128], p[::128]) * 128**2, np.multiply.outer(r[::128], r[::128]) * 128**2
    for e in (0.0, 0.05, 0.4, 1.0, 2.0):
        assert cost.delta(epsilon=e) >= exact_delta(p, r, e) * (1 - 1e-7) - 1e-15
        assert (
            twice.delta(epsilon=e) >= float(np.maximum(p2 - math.exp(e) * r2, 0).sum()) * (1 - 1e-3) - 1e-12
        )


def test_two_answers_are_read_tightly():
    q, sigma = 0.3, 1.0
    cost = (2 * Cost.gaussian(sigma=sigma, sensitivity=1).sampled(q)).group(2)
    p, r = density((1, 1), q, sigma)[::64] * 64, density((), q, sigma)[::64] * 64
    for e in (0.0, 0.5, 2.0):
        truth = float(np.maximum(np.multiply.outer(p, p) - math.exp(e) * np.multiply.outer(r, r), 0).sum())
        assert cost.delta(epsilon=e) == pytest.approx(truth, rel=1e-4)


def test_renyi_divergence_of_a_group_is_that_of_the_mixture():
    q, sigma, order = 0.05, 1.5, 4
    cost = Cost.gaussian(sigma=sigma, sensitivity=1).sampled(q).group(3)
    truth = 0.0
    for b in range(4):
        p, r = density((1,) * (3 - b), q, sigma), density((-1,) * b, q, sigma)
        truth = max(truth, math.log(float((p**order * r ** (1 - order)).sum())) / (order - 1))
    assert truth * (1 - 1e-9) <= cost.renyi_divergence(order) <= truth * (1 + 1e-6)


def test_groups_beside_other_costs_and_of_different_sizes_still_have_a_reading():
    sampled = Cost.gaussian(sigma=1, sensitivity=1).sampled(0.01)
    beside = (50 * sampled + Cost.laplace(scale=5, sensitivity=1)).group(2)
    assert 0.4 < beside.epsilon(delta=1e-6) < (50 * sampled).group(2).epsilon(delta=1e-6) + 0.4
    mixed = sampled.group(2) + sampled.group(3)
    assert mixed.epsilon(delta=1e-6) >= sampled.group(3).epsilon(delta=1e-6)
