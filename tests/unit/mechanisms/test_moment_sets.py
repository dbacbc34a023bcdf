"""Sets for means and variances: known ones, never beyond the range, never empty, the same in any block."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.mechanisms import LinearNoise, mean_sets, variance_sets

ONE = LinearNoise((1.0,))


@pytest.mark.parametrize(
    ("parts", "noise", "low", "high"),
    [
        ((60, 40), ONE, 0.378766584, 0.42084968),
        ((5, 3), ONE, 0.000852672, 0.643815864),
        ((4, -2), ONE, 0.0, 0.211038416),
        ((60, 40), LinearNoise((), 2.0), 0.37137952, 0.42800395),
    ],
)
def test_known_sets_of_means_come_out(parts, noise, low, high):
    _, first, last = mean_sets(np.array([parts], dtype=float), noise, 0.05)
    assert (first.item(), last.item()) == pytest.approx((low, high), abs=1e-7)


def test_a_known_set_of_variances_comes_out():
    value, low, high = variance_sets(np.array([[500.0, 400.0, 100.0]]), ONE, 0.05)
    assert (value.item(), low.item(), high.item()) == pytest.approx(
        (0.01, 0.0084346457, 0.0115591815), abs=1e-7
    )


numbers = st.floats(-50, 1000)


@given(parts=st.lists(st.tuples(numbers, numbers, numbers), min_size=1, max_size=5), many=st.booleans())
def test_sets_stay_in_the_range_hold_the_value_and_show_some_doubt(parts, many):
    noise = LinearNoise((1.0, 0.5, 2.0)) if many else ONE
    given_parts = np.array(parts)
    value, low, high = mean_sets(given_parts, noise, 0.05)
    assert np.all((low >= 0) & (low <= value) & (value <= high) & (high <= 1))
    assert np.all(high > low)
    for sample, most in ((False, 0.25), (True, 0.5)):
        value, low, high = variance_sets(given_parts, noise, 0.05, sample=sample)
        assert np.all((low >= 0) & (low <= value) & (value <= high) & (high <= most + 1e-12))
        assert np.all(high > low)


def test_a_line_is_read_alike_alone_and_among_many():
    parts = np.random.default_rng(1).normal(30, 20, (5_000, 3))
    together = np.stack(variance_sets(parts, ONE, 0.05, sample=True), axis=-1)
    for i in (0, 17, 4_097, 4_999):
        alone = np.concatenate(variance_sets(parts[i : i + 1], ONE, 0.05, sample=True))
        assert alone == pytest.approx(together[i], abs=1e-9)
    assert [len(ends) for ends in mean_sets(np.empty((0, 2)), ONE, 0.05)] == [0, 0, 0]


@pytest.mark.parametrize("n", [2, 3, 10])
def test_the_sample_variance_of_few_rows_is_tested_exactly(n):
    """(n - 1) u, not n u: with n = 2 the two differ by a factor of two."""
    y = np.linspace(0.0, 1.0, n)
    parts = np.array([((1 - y) ** 2).sum(), (2 * y * (1 - y)).sum(), (y**2).sum()])
    noisy = parts + np.random.default_rng(n).laplace(0, 0.02, (4_000, 3))
    _, low, high = variance_sets(noisy, LinearNoise((0.02,)), 0.05, sample=True)
    truth = y.var(ddof=1)
    assert 0.92 <= np.mean((low <= truth + 1e-12) & (truth <= high + 1e-12)) <= 0.985


def test_nearly_exact_parts_give_narrow_sets():
    _, low, high = mean_sets(np.array([[6e8, 4e8]]), ONE, 0.05)
    assert low.item() == pytest.approx(0.4, abs=1e-8)
    assert 0 < high.item() - low.item() < 1e-8
