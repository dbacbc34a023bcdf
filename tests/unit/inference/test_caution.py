"""Where answers about means are cautious, what they name, and what mean and square say about skewness.

Simulated shares of 2,000 releases: 5 standard deviations at 5 % are 2.4 points.
"""

import re

import numpy as np
import pytest
from scipy import stats

from support import fresh_inference_designs as fresh
from tacit.inference._contingency import g_p, independence_p
from tacit.inference._means import caution_words
from tacit.inference._sampling_intervals import plausible, sampled_mean_sets, variance_doubt, variance_slope
from tacit.inference._survival import curve_sets, logrank
from tacit.mechanisms import LinearNoise

RUNS = 2_000


def rejected(law, split, n, epsilon):
    return fresh.two_means_rejected(np.random.default_rng(8), (law, law), split, n, epsilon, RUNS)


@pytest.mark.parametrize(("split", "n", "epsilon"), [(0.5, 200, 1.0), (0.25, 200, 10.0), (0.1, 2_000, 10.0)])
def test_a_cautious_answer_names_the_spread_from_which_it_is_exact(split, n, epsilon):
    """Exact means 4 to 6 %; 1.6 to 8.4 % is within 5 standard deviations of that."""
    narrow = fresh.of(stats.norm(0.5, 0.004))
    parts = fresh.pair_parts(np.random.default_rng(9), (narrow, narrow), split, n, epsilon, 40)
    words = [caution_words(one, LinearNoise((1 / epsilon,)), width=100.0) for one in parts]
    named = [float(found[1]) for one in words if (found := re.search(r"deviation of ([\d.]+) or more", one))]
    assert len(named) >= 20
    sd = np.median(named) / 100
    assert 0.016 < rejected(fresh.of(stats.norm(0.5, sd)), split, n, epsilon) < 0.084
    assert rejected(fresh.of(stats.norm(0.5, sd / 5)), split, n, epsilon) < 0.04
    half = fresh.of(stats.norm(0.5, sd / 2))
    assert 0.016 < rejected(half, split, 4 * n, epsilon) < 0.084
    assert 0.016 < rejected(half, split, n, 4 * epsilon) < 0.084


def test_clear_answers_say_nothing_and_noisy_groups_name_their_rows():
    normal = fresh.of(stats.norm(0.5, 0.15))
    clear = fresh.pair_parts(np.random.default_rng(1), (normal, normal), 0.5, 2_000, 1.0, 50)
    assert not any(caution_words(one, LinearNoise((1.0,))) for one in clear)
    noisy = fresh.pair_parts(np.random.default_rng(1), (normal, normal), 0.5, 200, 0.1, 20)
    for one in noisy:
        assert "150 rows in each group or" in caution_words(one, LinearNoise((10.0,)))


def test_a_small_group_with_a_narrow_spread_is_said_to_borrow():
    pair = fresh.of(stats.norm(0.5, 0.03)), fresh.of(stats.norm(0.5, 0.2))
    parts = fresh.pair_parts(np.random.default_rng(2), pair, 0.1, 200, 100.0, 10)
    assert all("read with rows of both" in caution_words(one, LinearNoise((0.01,))) for one in parts)


def test_mean_and_square_bound_the_third_moment():
    rng = np.random.default_rng(3)
    y = np.linspace(0, 1, 21)
    for law in rng.dirichlet(np.full(21, 0.05), 500):
        m, q = law @ y, law @ y**2
        v, third = q - m**2, law @ (y - m) ** 3
        if v < 1e-6:
            continue
        slope = float(variance_slope(*(np.array(1e6 * x) for x in (1.0, m, q)), LinearNoise((1e-9,))))
        assert (0 <= slope <= third / v + 1e-6) or (third / v - 1e-6 <= slope <= 0)
    two = float(
        variance_slope(*(np.array(x) for x in (100.0, 100 * 0.02 * 0.9, 100 * 0.02 * 0.81)), LinearNoise(()))
    )
    assert two == pytest.approx(0.9 - 2 * 0.018)


def test_rare_large_values_beside_many_zeros_are_covered():
    """12 % were missed without the slope of the variance; of 2,000, 8.5 % is 5 deviations above 5.9 %."""
    law = fresh.points(p0=0.98, p90=0.02)
    assert fresh.mean_missed(np.random.default_rng(4), law, 200, 10.0, RUNS) < 0.085
    assert rejected(law, 0.25, 200, 10.0) < 0.085


def test_values_at_both_bounds_leave_no_doubt_about_their_variance():
    n, m, v = (np.array([x]) for x in (1e4, 0.5, 0.25))
    assert variance_doubt(n, m, v, LinearNoise(()))[0] == 0
    assert variance_doubt(n, m, v / 10, LinearNoise(()))[0] == pytest.approx(0.025 * np.sqrt(2 / 9_999))


def test_plausible_variances_stay_finite_far_below_zero():
    found = np.array(plausible(np.array([-50.0, 0.0, 9.0]), np.ones(3)))
    assert np.isfinite(found).all()
    assert (found >= 0).all()
    assert found.mean(axis=0)[2] == pytest.approx(9, abs=0.01)


def test_a_log_rank_test_does_not_choose_its_bins_by_their_events():
    """Bins chosen by how many are left after their events: 8.6 % of 4,000 at this design."""
    rng = np.random.default_rng(5)
    cells = []
    for n in (50, 20):
        dies, leaves = (rng.exponential(scale, (RUNS, n)) for scale in (5.0, 40.0))
        end = np.minimum(dies, leaves)
        code = np.where(end >= 12, 4, 2 * (end >= 6) + (leaves < dies))
        exact = np.stack([(code == k).sum(axis=1) for k in range(5)], axis=1)
        cells.append(exact + fresh.whole_noise(rng, 1.0, exact.shape).astype(float))
    found = logrank(*cells, LinearNoise((1.0,)))
    assert found.shown.mean() > 0.8
    assert np.mean(found.p_value[found.shown] < 0.05) < 0.065


def test_a_curve_says_where_it_hangs_on_when_people_left():
    exact = np.array([[500.0, 300.0, 240.0, 150.0, 810.0]])
    found = curve_sets(exact, LinearNoise((0.1,)), 0.05)
    assert found.shift[0, 0] == pytest.approx(500 / 2000 - 500 / 1850)
    without = curve_sets(np.array([[500.0, 0, 240, 0, 1260]]), LinearNoise((0.1,)), 0.05)
    assert np.abs(without.shift).max() == 0


def test_g_of_four_cells_has_the_p_value_of_z():
    tables = np.array([[[30.0, 20], [10, 40]], [[3.0, 50], [9, 60]]])
    noise = LinearNoise((1.0,))
    assert g_p(tables, noise)[1] == pytest.approx(independence_p(tables, noise)[1])


def test_the_interval_of_a_mean_only_widens_by_the_slope():
    parts = np.array([[190.0, 4.0, 6.0]])
    value, low, high = (float(end[0]) for end in sampled_mean_sets(parts, LinearNoise((0.1,)), 0.05))
    assert high - value > 1.3 * (value - low)
