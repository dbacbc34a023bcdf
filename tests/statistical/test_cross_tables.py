"""Cross tables under attack, their variances and their intervals.

Audits judge at confidence 1 - 1e-9. The other tests say how unlikely a false alarm is; they draw exact noise.
"""

import numpy as np
import pytest

from tacit.audit import audit
from tacit.mechanisms import DiscreteLaplace, ResidualNoise
from tacit.strategies import ResidualSets, tables_up_to
from tacit.tables.workloads._cross_tables import CrossNoise
from twins import cross_tables as twins

NEIGHBOURS = np.array([0, 0, 1]), np.array([0, 0, 1, 2])


@pytest.mark.parametrize("adjacency", ["add/remove", "replace"])
def test_noise_on_residuals_holds_its_rho(adjacency):
    plan = ResidualSets.of((2, 3), tables_up_to(2, 2))
    noise = ResidualNoise.planned(plan, plan.least_largest(), rho=0.5, adjacency=adjacency)
    found = audit(noise, samples=20_000, delta=1e-3, confidence=1 - 1e-9)
    assert found.holds
    assert found.epsilon_lower > 0.5


def test_several_rows_of_one_unit_hold_their_rho():
    plan = ResidualSets.of((2, 2), tables_up_to(2, 2))
    noise = ResidualNoise.planned(plan, plan.least_sum(), rho=0.5, rows=3)
    assert audit(noise, samples=20_000, delta=1e-3, confidence=1 - 1e-9).holds


def test_a_table_with_public_values_and_a_noisy_total_holds():
    found = audit(twins.honest, *NEIGHBOURS, claimed=twins.CLAIMED, samples=20_000, delta=1e-3)
    assert found.holds


@pytest.mark.parametrize("twin", [twins.rows_counted_exactly, twins.categories_from_the_data])
def test_exact_numbers_of_rows_and_values_from_the_data_are_caught(twin):
    found = audit(twin, *NEIGHBOURS, claimed=twins.CLAIMED, samples=20_000, delta=1e-3)
    assert not found.holds


def test_a_column_norm_that_is_too_small_is_caught():
    assert not audit(twins.TOO_CHEAP, samples=60_000, delta=2e-2).holds  # shows about 1.2, claims 0.9
    honest = ResidualNoise(twins.SIZES, dict(zip(twins.TOO_CHEAP.sets, twins.TOO_CHEAP.sigmas, strict=True)))
    assert audit(honest, samples=60_000, delta=2e-2, confidence=1 - 1e-9).holds


SIZES = (2, 3, 4)
DRAWS = 100_000


def drawn(law):
    """Draw all measurements of tables without rows many times; return the noise and the draws."""
    if law == "gaussian":
        plan = ResidualSets.of(SIZES, tables_up_to(3, 2))
        made = ResidualNoise.planned(plan, plan.least_sum(), rho=0.5)
        noise = CrossNoise(SIZES, law, made.sets, made.sigmas)
        return noise, made.release_many([np.zeros([SIZES[i] for i in s], int) for s in made.sets], DRAWS)
    sets = ((0, 1), (0, 2), (1, 2))
    laws = [DiscreteLaplace(scale=b, sensitivity=1) for b in (12, 8, 10)]
    noise = CrossNoise(SIZES, law, sets, tuple(one.scale for one in laws))
    cells = [noise.cells(one) for one in sets]
    parts = [one.release_many(np.zeros(n, int), DRAWS) for one, n in zip(laws, cells, strict=True)]
    return noise, np.concatenate(parts, axis=1)


def rebuilding(noise, table):
    """Return the matrix that rebuilds a table from all numbers that were measured."""
    shapes = [tuple(SIZES[i] for i in one) for one in noise.sets]
    ends = np.cumsum([noise.cells(one) for one in noise.sets])
    lines = []
    for unit in 10**6 * np.eye(ends[-1]):
        parts = [p.reshape(s) for p, s in zip(np.split(unit, ends[:-1]), shapes, strict=True)]
        lines.append(noise.estimate(table, parts).reshape(-1) / 10**6)
    return np.array(lines)


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_variances_and_coverage_are_those_that_the_plan_says(law):
    """The variance over all cells of a table is within 3 %, and 95 % intervals cover 94.5 to 97 %.

    A table has at least two independent directions, so the mean square over its cells has a relative
    standard deviation of at most sqrt(5 / 200,000) = 0.5 % (the 5 stands for the fourth moment of Laplace
    noise; 2 for Gaussian): 3 % are six of them, a false alarm below 1e-8 for all twelve tables together.
    """
    noise, lines = drawn(law)
    for table in tables_up_to(3, 2):
        found = lines @ rebuilding(noise, table)
        assert found.var() == pytest.approx(noise.variance(table), rel=0.03)
        assert 0.945 < (np.abs(found) <= noise.half_width(table, 0.95)).mean() < 0.97


@pytest.mark.parametrize("sigma", [0.3, 0.5, 1.0])
def test_intervals_cover_where_the_noise_is_smaller_than_a_step(sigma):
    """At least 95 % less 1.2 points: the share of 20,000 draws is off by more with a chance below 1e-9."""
    made = ResidualNoise((2, 2), {(): sigma, (0,): 2 * sigma, (1,): 2 * sigma, (0, 1): 4 * sigma})
    noise = CrossNoise((2, 2), "gaussian", made.sets, made.sigmas)
    lines = made.release_many([np.zeros([2] * len(one), int) for one in made.sets], 20_000)
    for table in ((), (0,), (0, 1)):
        wide = noise.half_width(table, 0.95)
        total, first, second, both = np.split(lines, [1, 3, 5], axis=1)
        cell = total[:, 0] / noise.cells(table)
        if 0 in table:
            cell = cell + (first[:, 0] - first[:, 1]) / 2 / 2 / (2 if 1 in table else 1)
        if 1 in table:
            cell = cell + (second[:, 0] - second[:, 1]) / 2 / 2 / 2
            cell = cell + (both @ np.array([1, -1, -1, 1])) / 4 / 4
        assert (np.abs(cell) <= wide + 1e-12).mean() >= 0.938
