"""Noise on residuals: exact on the integers, charged for the worst row, rounded up."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import tacit as tc
from tacit.errors import TacitError
from tacit.mechanisms import ResidualNoise, residual
from tacit.strategies import ResidualSets, tables_up_to


def table_of(rows, sizes, one):
    made = np.zeros([sizes[i] for i in one], np.int64)
    for row in rows:
        made[tuple(row[i] for i in one)] += 1
    return made


def tables_of(rows, noise):
    return [table_of(rows, noise.sizes, one) for one in noise.sets]


def planned(sizes=(2, 3, 4), most=2, **more):
    plan = ResidualSets.of(sizes, tables_up_to(len(sizes), most))
    return ResidualNoise.planned(plan, plan.least_largest(), **{"rho": Fraction(1, 10), **more})


def test_a_residual_is_the_product_of_its_matrices():
    rng = np.random.default_rng(0)
    table = rng.integers(0, 50, (3, 4, 2))
    matrices = [n * np.eye(n, dtype=int) - 1 for n in table.shape]
    assert (residual(table) == np.einsum("ai,bj,ck,ijk->abc", *matrices, table)).all()
    assert residual(np.array(7)) == 7


@pytest.mark.parametrize(("sizes", "norm"), [((3, 4), 72), ((2, 3, 5), 240)])
def test_column_norms(sizes, norm):
    row = np.zeros(sizes, np.int64)
    row[(0,) * len(sizes)] = 1
    assert (residual(row) ** 2).sum() == norm
    one = tuple(range(len(sizes)))
    assert ResidualNoise(sizes, {one: 5}).norm(one) == norm


def moved(noise, rows, others):
    """Return by how much rho the outputs on two sets of rows differ: the exact zCDP cost of the pair."""
    a, b = noise.residuals(tables_of(rows, noise)), noise.residuals(tables_of(others, noise))
    return sum(
        Fraction(int(((x - y) ** 2).sum())) / (2 * sigma**2)
        for x, y, sigma in zip(a, b, noise.sigmas, strict=True)
    )


@pytest.mark.parametrize("k", [1, 3])
def test_no_neighbour_moves_more_than_is_charged(k):
    rng = np.random.default_rng(k)
    noise = planned(rows=k)
    most = Fraction(0)
    for _ in range(60):
        rows = [tuple(rng.integers(0, noise.sizes)) for _ in range(rng.integers(0, 9))]
        own = [tuple(rng.integers(0, noise.sizes)) for _ in range(rng.integers(1, k + 1))]
        most = max(most, moved(noise, rows, [*rows, *own]), moved(noise, [], [own[0]] * k))
    assert most <= noise.rho <= Fraction(1, 10)
    assert float(most) > 0.0999


def test_no_replaced_row_moves_more_than_is_charged():
    noise = planned(adjacency="replace")
    cells = list(product(*map(range, noise.sizes)))
    rows = [cells[5], cells[5]]
    pairs = [moved(noise, [*rows, a], [*rows, b]) for a in cells for b in cells]
    alone = [moved(noise, rows, [*rows, a]) for a in cells]  # a replaced row may leave all tables
    assert max(*pairs, *alone) <= noise.rho <= Fraction(1, 10)
    assert float(max(pairs)) > 0.0999
    assert noise.cost.adjacency == "replace"


def test_a_norm_that_is_too_small_is_caught_by_the_search():
    honest = planned()

    class SmallNorm(ResidualNoise):
        def norm(self, one):
            return math.prod(self.sizes[i] - 1 for i in one)  # forgets the factor n_i

    twin = SmallNorm(honest.sizes, dict(zip(honest.sets, honest.sigmas, strict=True)))
    assert moved(twin, [], [(0, 0, 0)]) > 1.5 * twin.rho


def test_costs_round_up_and_stay_short():
    noise = ResidualNoise((3, 7), {(): Fraction(10, 3), (0,): Fraction(22, 7), (0, 1): Fraction(355, 113)})
    exact = sum(Fraction(noise.norm(s)) / (2 * g**2) for s, g in zip(noise.sets, noise.sigmas, strict=True))
    assert exact <= noise.rho <= exact + Fraction(1, 2**90)
    assert noise.rho.denominator <= 2**96
    plan = ResidualSets.of((10,) * 20, tables_up_to(20, 3))
    many = ResidualNoise.planned(plan, plan.least_sum(), rho=1)
    assert 1 - Fraction(1, 10**6) < many.rho <= 1
    assert "sigmas" not in many.to_json() or len(many.to_json()["sigmas"]) <= 2000


def test_equal_documents_mean_equal_noise():
    one, same, other = planned(), planned(), planned(rho=Fraction(1, 11))
    assert one.to_json() == same.to_json() != other.to_json()
    assert one.to_json() != planned(rows=2).to_json() != planned(adjacency="replace").to_json()
    assert hash(one) == hash(same)


def test_numbers_beyond_64_bits_stay_exact():
    n = 2**50
    noise = ResidualNoise((40, 60, 70), {(0, 1, 2): 3})
    table = np.zeros((40, 60, 70), np.int64)
    table[1, 2, 3] = n
    [drawn] = noise.release([table])
    exact = n * 39 * 59 * 69
    assert abs(int(drawn[1, 2, 3]) - exact) < 100
    assert abs(int(drawn[0, 0, 0]) + n) < 100


def test_what_is_not_a_table_is_refused():
    noise = ResidualNoise((2, 3), {(): 4, (0, 1): 6})
    for given in ([np.array(3)], [np.array(3), np.zeros((3, 2), int)], [np.array(3), np.zeros((2, 3))]):
        with pytest.raises(TacitError, match="whole numbers"):
            noise.release(given)
    for sigmas in ({(1, 0): 2}, {(2,): 2}, {(0, 0): 2}, {(): 0}, {(): math.nan}):
        with pytest.raises(TacitError):
            ResidualNoise((2, 3), sigmas)
    assert isinstance(tc.mechanisms.ResidualNoise((2,), {(): 1}).cost, tc.Cost)
