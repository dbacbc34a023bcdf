"""Residual plans: the least sum and the least maximum, with figures that a convex solver found as well."""

import time

import numpy as np
import pytest

from tacit.strategies import ResidualSets, replace_cost, tables_up_to, whole_counts

SIZES = (2, 3, 4, 5)
ADULT = (15, 9, 7, 10, 16, 7, 7, 14, 6, 5, 2, 41, 2)


def least_sum(plan):
    return float(plan.cells @ plan.variances(plan.least_sum()))


@pytest.mark.parametrize(
    ("most", "tables", "cells", "total", "rmse", "its_largest", "largest", "replaced"),
    [
        (1, 4, 14, 39.482432, 1.679337, 3.608222, 2.886970, 1.174875),
        (2, 10, 85, 333.790859, 1.981654, 8.172619, 4.494956, 1.035788),
        (3, 14, 239, 866.430055, 1.904004, 12.603980, 5.039896, 1.008223),
    ],
)
def test_all_tables_of_four_columns(most, tables, cells, total, rmse, its_largest, largest, replaced):
    plan = ResidualSets.of(SIZES, tables_up_to(4, most))
    squares = plan.least_sum()
    variances = plan.variances(squares)
    assert (len(plan.tables), plan.cells.sum()) == (tables, cells)
    assert plan.cells @ variances == pytest.approx(total, abs=1e-6)
    assert np.sqrt(plan.cells @ variances / cells) == pytest.approx(rmse, abs=1e-6)
    assert variances.max() == pytest.approx(its_largest, abs=1e-6)
    best = plan.least_largest(gap=1e-9)
    assert plan.variances(best).max() == pytest.approx(largest, rel=3e-7)
    assert plan.certified_gap(gap=1e-9) <= 1e-9
    assert plan.rho(best) == pytest.approx(0.5, abs=1e-12) == plan.rho(squares)
    assert plan.replaced(squares) == pytest.approx(replaced, abs=1e-6)
    assert plan.variances(best).max() < tables  # each table alone, with a tenth of rho: 2 sigma^2 = tables


def test_the_noise_of_each_residual():
    plan = ResidualSets.of(SIZES, tables_up_to(4, 2))
    squares = dict(zip(plan.sets, plan.least_sum(), strict=True))
    expected = {(): 13.342481, (0,): 9.673997, (3,): 5.660735, (0, 1): 7.458673, (2, 3): 4.085284}
    assert {one: squares[one] for one in expected} == pytest.approx(expected, abs=1e-6)
    at = plan.tables.index((2, 3))
    assert plan.variances(plan.least_sum())[at] == pytest.approx(2.9598, abs=5e-5)


def test_small_and_equal_sizes():
    assert least_sum(ResidualSets.of((2, 2), tables_up_to(2, 2))) == pytest.approx(11.223068, abs=1e-6)
    for most, total in ((1, 82.553074), (2, 800.413595), (3, 1000)):
        exactly = [one for one in tables_up_to(3, 3) if len(one) == most]
        assert least_sum(ResidualSets.of((10,) * 3, exactly)) == pytest.approx(total, abs=1e-6)


@pytest.mark.parametrize(("columns", "rmse"), [(20, 26.916653), (50, 107.258104), (100, 303.216108)])
def test_many_columns_up_to_three_way_are_planned_in_five_seconds(columns, rmse):
    start = time.process_time()
    plan = ResidualSets.of((10,) * columns, tables_up_to(columns, 3))
    assert np.sqrt(least_sum(plan) / plan.cells.sum()) == pytest.approx(rmse, abs=1e-6)
    assert plan.certified_gap() <= 1e-4
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    ("most", "rho", "rmse"),
    [(2, 0.000177138, 344.5), (2, 0.014973058, 37.47), (2, 1.090785704, 4.39), (3, 0.014973058, 63.2)],
)
def test_the_columns_of_adult(most, rho, rmse):
    plan = ResidualSets.of(ADULT, tables_up_to(13, most))
    assert np.sqrt(least_sum(plan) / plan.cells.sum() / (2 * rho)) == pytest.approx(rmse, rel=1.5e-3)


def test_weights_move_the_noise_and_the_bound_holds():
    plan = ResidualSets.of((3, 4, 2), tables_up_to(3, 2))
    weights = np.array([1.0, 1, 1, 9, 1, 1])
    plain, moved = plan.variances(plan.least_largest()), plan.variances(plan.least_largest(weights))
    assert moved[3] < plain[3]
    assert moved[5] > plain[5]
    assert plan.certified_gap(weights) <= 1e-4
    assert (weights * moved).max() <= (weights * plain).max()
    summed = plan.least_sum(weights)
    assert plan.cells * weights @ plan.variances(summed) < plan.cells * weights @ moved


def test_no_plan_of_random_noise_is_better():
    rng = np.random.default_rng(3)
    plan = ResidualSets.of((3, 2, 4), tables_up_to(3, 2))
    total, largest = least_sum(plan), plan.variances(plan.least_largest()).max()
    for _ in range(300):
        squares = plan.least_sum() * np.exp(rng.normal(0, 0.4, len(plan.sets)))
        squares *= 2 * plan.rho(squares)
        assert plan.cells @ plan.variances(squares) >= total * (1 - 1e-12)
        assert plan.variances(squares).max() >= largest * (1 - 1e-4)


def test_a_column_of_one_value_changes_nothing():
    one = ResidualSets.of((3, 1, 2), [(0, 1, 2), (1,)])
    assert set(one.sets) == {(), (0,), (2,), (0, 2)}
    same = ResidualSets.of((3, 2), [(0, 1), ()])
    assert np.allclose(one.variances(one.least_largest()), same.variances(same.least_largest()))


def test_very_many_columns_of_a_table_are_planned_too():
    wide = tuple(range(12))
    plan = ResidualSets.of((2,) * 100, [wide, (50, 99)])
    assert len(plan.sets) == 2**12 + 3
    assert plan.certified_gap() <= 1e-4


def test_the_bound_for_many_columns_is_above_the_exact_cost_of_replacing():
    rng = np.random.default_rng(5)
    for _ in range(20):
        sizes = rng.integers(2, 5, 4)
        plan = ResidualSets.of(sizes, tables_up_to(4, 3))
        squares = np.exp(rng.normal(0, 1, len(plan.sets)))
        exact = replace_cost(tuple(sizes), plan.sets, squares)
        bound = replace_cost(
            (*sizes, *(2,) * 12), plan.sets, squares
        )  # 16 columns, of which 12 are in no set
        assert exact <= bound <= 2.1 * exact


def test_whole_counts_keep_the_total():
    rng = np.random.default_rng(2)
    for _ in range(50):
        counts = rng.exponential(2, 9)
        made = whole_counts(counts)
        assert made.sum() == round(counts.sum())
        assert np.abs(made - counts).max() <= 1
