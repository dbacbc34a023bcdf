"""The check values of the methods: computed once by other code, to eight digits."""

import math

import numpy as np
import pytest

import tacit.inference._sampling_intervals as intervals
from tacit.inference._contingency import _fit, _independence, chi_square_p, independence_p
from tacit.inference._mean_tests import two_means_p
from tacit.mechanisms import LinearNoise, linear_tail, mean_sets, variance_sets

ONE = LinearNoise((1.0,))


def lattice(epsilon):
    q = math.exp(-epsilon)
    return LinearNoise((math.sqrt(q) / (1 - q),))


def test_the_variance_of_the_lattice_law():
    assert lattice(1).variance == pytest.approx(1.84134719, abs=1e-8)
    assert lattice(0.1).variance == pytest.approx(199.833417, abs=1e-6)


@pytest.mark.parametrize(
    ("weights", "normal", "at", "tail"),
    [
        ([0.5, 0.5], 0.0, 2, 0.05494691667),
        ([0.3, 0.7], 0.0, 2, 0.070068616),
        ([1.0, 1.0, 1.0], 0.0, 2, 0.3721720289),
        ([0.5, 0.5], 1.3, 3, 0.06776857558),
    ],
)
def test_one_law_for_all(weights, normal, at, tail):
    assert float(linear_tail(at, weights, normal)) == pytest.approx(tail, abs=2e-6)


@pytest.mark.parametrize(
    ("parts", "noise", "low", "high"),
    [
        ((60.0, 40.0), ONE, 0.378766584, 0.42084968),
        ((5.0, 3.0), ONE, 0.000852672, 0.643815864),
        ((4.0, -2.0), ONE, 0.0, 0.211038416),
        ((60.0, 40.0), LinearNoise(normal=2.0), 0.37137952, 0.42800395),
    ],
)
def test_means_with_noise_alone(parts, noise, low, high):
    _, found_low, found_high = mean_sets(np.array([parts]), noise, 0.05)
    assert (float(found_low[0]), float(found_high[0])) == pytest.approx((low, high), abs=1e-6)


def test_a_variance_with_noise_alone():
    found = [float(end[0]) for end in variance_sets(np.array([[500.0, 400.0, 100.0]]), ONE, 0.05)]
    assert found == pytest.approx([0.01, 0.0084346457, 0.0115591815], abs=1e-7)


def test_a_proportion_with_noise_and_sampling():
    found = intervals.proportion_sets(np.array([30.0]), np.array([70.0]), lattice(1), 0.05)
    assert [float(end[0]) for end in found] == pytest.approx([0.3, 0.216414797, 0.397840474], abs=1e-6)


def test_a_mean_with_noise_and_sampling_and_its_variance_plugged_in():
    parts = np.array([[50.0, 40.0, 10.0]])
    _, low, high = intervals._sampled_means(parts, ONE, 0.05, plugged=True)
    assert (float(low[0]), float(high[0])) == pytest.approx((0.26916867, 0.3297947), abs=1e-6)
    _, lower, higher = intervals.sampled_mean_sets(parts, ONE, 0.05)
    assert lower[0] < low[0] < high[0] < higher[0]  # with the doubt about the variance it is wider


@pytest.mark.parametrize(
    ("noise", "p"),
    [(lattice(1), 8.539e-5), (lattice(0.1), 0.18899604), (LinearNoise((1e-9,)), 4.4557e-5)],
)
def test_a_table_of_two_by_two(noise, p):
    table = np.array([[[30.0, 20], [10, 40]]])
    _, found = chi_square_p(*_independence(table, noise), noise)
    assert float(found[0]) == pytest.approx(p, rel=2e-4)
    assert float(independence_p(table, noise)[1][0]) >= p * (1 - 2e-4)  # Laplace tails are heavier


def test_a_fit():
    noise = lattice(1)
    _, p = chi_square_p(*_fit(np.array([[45.0, 25, 20, 10]]), np.array([0.4, 0.3, 0.2, 0.1]), noise), noise)
    assert float(p[0]) == pytest.approx(0.70962157, abs=1e-7)


def test_few_cases_with_narrow_gaussian_noise_keep_a_share_of_nothing():
    """Of whole noise with sigma 1, 2 or more comes 5.8 % of the time: it must not exclude a share of 0."""
    noise = LinearNoise((), 1.0)
    _, low, _ = intervals.proportion_sets(
        np.array([1.0, 2.0, 4.0]), np.array([50.0, 50.0, 50.0]), noise, 0.05
    )
    assert low[:2].tolist() == [0.0, 0.0]
    assert low[2] > 0


def test_a_small_group_that_misses_rare_large_values_is_not_told_apart():
    """Of 30 rows, 21 % of all draws have none of the values that 5 % of a large group has."""
    none, some = np.array([30.0, 0.0, 0.0]), np.array([950.0, 0.0, 50.0])
    noise = LinearNoise((0.1,))
    assert two_means_p(np.stack([none, some])[None], noise)[0] > 0.05
    assert two_means_p(np.stack([10 * none, some])[None], noise)[0] < 0.01
