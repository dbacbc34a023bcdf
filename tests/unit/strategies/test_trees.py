"""Trees of measurements: shares of the levels, and whole numbers that add up."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.strategies import consistent, level_shares, variances_of, weights_of, whole_down

DISTRICTS, REGIONS = 12, 3
PARENTS = np.array([12] * 6 + [13] * 4 + [14] * 2 + [15] * 3 + [-1])
LEVELS = [0] * DISTRICTS + [1] * REGIONS + [2]


def largest(shares, weights, *, squared):
    noise = np.array([1 / float(s) ** (2 if squared else 1) for s in shares])[LEVELS]
    return (np.sqrt(variances_of(PARENTS, noise)) * np.array(weights)[LEVELS]).max()


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("weights", [(1.0, 1.0, 1.0), (1.0, 5.0, 1.0), (3.0, 1.0, 1.0)], ids=str)
def test_no_random_shares_do_much_better(squared, weights):
    shares = level_shares(PARENTS, LEVELS, weights, squared=squared)
    assert sum(shares) == 1
    assert all(share > 0 for share in shares)
    own = largest(shares, weights, squared=squared)
    rng = np.random.default_rng(1)
    others = [largest(rng.dirichlet(np.ones(3)) + 1e-9, weights, squared=squared) for _ in range(2000)]
    assert own < min(others) * 1.04
    assert own <= largest([Fraction(1, 3)] * 3, weights, squared=squared)


def test_least_squares_is_that_of_the_whole_matrix():
    rng = np.random.default_rng(2)
    rows = np.zeros((16, DISTRICTS))
    rows[:DISTRICTS] = np.eye(DISTRICTS)
    for node in range(DISTRICTS):
        rows[PARENTS[node], node] = rows[15, node] = 1
    variances = rng.uniform(0.5, 4, 16)
    y = rng.normal(size=16)
    weight = np.diag(1 / variances)
    spread = np.linalg.inv(rows.T @ weight @ rows)
    assert np.allclose(consistent(y, PARENTS, variances), rows @ (spread @ rows.T @ weight @ y))
    assert np.allclose(variances_of(PARENTS, variances), (rows @ spread @ rows.T).diagonal())
    chosen = rng.normal(size=16)
    reads = weights_of(chosen, PARENTS, variances) @ y
    assert np.isclose(reads, chosen @ consistent(y, PARENTS, variances))


@given(st.lists(st.floats(-1e6, 1e6), min_size=16, max_size=16))
def test_whole_numbers_are_not_negative_and_add_up(values):
    made = whole_down(np.array(values), PARENTS)
    assert (made >= 0).all()
    for node in range(DISTRICTS, 16):
        assert made[node == PARENTS].sum() == made[node]


def test_whole_numbers_of_whole_counts_stay_as_they_are():
    counts = np.array([5, 0, 2, 7, 1, 1, 3, 0, 4, 9, 2, 2])
    regions = [counts[:6].sum(), counts[6:10].sum(), counts[10:].sum()]
    truth = np.array([*counts, *regions, counts.sum()])
    assert (whole_down(truth.astype(float), PARENTS) == truth).all()
