"""Sums of many different laws: on a lattice that is not their own, between certified sums, and quickly."""

import itertools
import math
import random
import time
from fractions import Fraction
from functools import reduce
from operator import add

import numpy as np
import pytest

from tacit.accounting import Cost
from tacit.accounting._laws import DiscreteLaplaceLoss, PureLoss
from tacit.accounting.numeric._curve import closed_curve
from tacit.accounting.numeric._lattice import _above, _below, lattice_accountant, snapped_accountant

F = Fraction


def table(n, epsilon=1):
    """The cost of n aggregates with equal shares of epsilon and lattices of 1025 to 2047 steps."""
    rng = random.Random(n)
    steps = rng.sample(range(1025, 2048, 2), n)
    return reduce(add, (Cost.discrete_laplace(scale=F(s * n, epsilon), sensitivity=s) for s in steps))


def mixed_table(n):
    rng = random.Random(n)
    return reduce(
        add,
        (
            Cost.discrete_laplace(scale=rng.randint(3000, 90000), sensitivity=rng.randint(2, 2047))
            for _ in range(n)
        ),
    )


@pytest.mark.parametrize("law", [DiscreteLaplaceLoss(F(7), F(1)), DiscreteLaplaceLoss(F(50), F(9)),
                                 DiscreteLaplaceLoss(F(9000), F(1501)), PureLoss(F(1, 3))])  # fmt: skip
@pytest.mark.parametrize("step", [F(1, 97), F(1, 1000), F(3, 10_000)])
def test_one_law_lies_between_its_snapped_laws(law, step):
    curve = closed_curve(law)
    for e in np.linspace(-0.5, 0.5, 301):
        values = []
        for pmf in (_below(law, step), _above(law, step)):
            losses = float(pmf.offset) + float(pmf.step) * np.arange(len(pmf.masses))
            values.append(float(pmf.masses @ np.maximum(0.0, -np.expm1(e - losses))))
        low, high = values
        assert low <= float(curve.upper(np.array([e]))[0]) + 1e-14
        assert high >= float(curve.lower(np.array([e]))[0]) - 1e-14


def test_a_snapped_sum_contains_the_exact_sum_on_its_own_lattice():
    whole = Cost.discrete_laplace(scale=40, sensitivity=6) + 3 * Cost.discrete_laplace(
        scale=20, sensitivity=1
    )
    whole += 2 * Cost.randomized_response(0.35) + 9 * Cost.discrete_laplace(scale=80, sensitivity=3)
    parts = whole.parts
    exact, snapped = lattice_accountant(parts), snapped_accountant(parts)
    for e in np.linspace(0, 1.3, 40):
        truth, found = exact.delta(float(e)), snapped.delta(float(e))
        assert found.lower <= truth.upper
        assert found.upper >= truth.lower
        assert found.upper <= truth.upper * (1 + 1e-3) + 1e-12
    for delta in (1e-3, 1e-6, 1e-9):
        assert snapped.epsilon(delta).upper >= exact.epsilon(delta).lower


def test_a_sum_of_different_coins_contains_the_sum_written_out():
    epsilons = [0.11 + 0.0137 * i + 0.001 * i * i for i in range(14)]
    cost = reduce(add, (Cost.randomized_response(e) for e in epsilons))
    losses, masses = np.zeros(1), np.ones(1)
    for e in epsilons:
        yes = 1 / (1 + math.exp(-e))
        losses = np.concatenate([losses + e, losses - e])
        masses = np.concatenate([masses * yes, masses * (1 - yes)])
    for e in (0.0, 0.2, 0.9, 1.7, 2.9):
        truth = math.fsum(masses * np.maximum(0.0, -np.expm1(e - losses)))
        found = cost.bounds(epsilon=e)
        assert found.lower <= truth * (1 + 1e-12)
        assert truth * (1 - 1e-12) <= found.upper <= truth * 1.0001


@pytest.mark.parametrize("n", [5, 13, 20, 100])
def test_the_readings_of_tables_are_tight_and_quick(n):
    cost, start = table(n), time.process_time()
    low, high, _ = cost.bounds(delta=1e-6)
    assert low <= high <= low * (1 + 1e-5)
    least, most, _ = cost.bounds(epsilon=0)
    assert least <= cost.advantage == most <= least * (1 + 1e-5)
    assert 0.85 < cost.tradeoff(0.05) < 0.95
    assert time.process_time() - start < 3  # 0.3 s; it was 8 s


def test_uneven_tables_are_bracketed():
    for n, delta in itertools.product((8, 30), (1e-3, 1e-6, 1e-10)):
        low, high, _ = mixed_table(n).bounds(delta=delta)
        assert low <= high <= low * 1.01


def test_many_different_laws_never_crash():
    laws = reduce(add, (Cost.discrete_laplace(scale=1.1 + 0.0137 * i, sensitivity=1) for i in range(100)))
    assert 42.47 < laws.epsilon(delta=1e-6) < 42.48
    assert 0.99 < laws.delta(epsilon=1) < 1
    rng = random.Random(3)
    noise = reduce(add, (Cost.gaussian(sigma=rng.uniform(10, 100), sensitivity=1) for _ in range(200)))
    assert noise.spend.rho >= Fraction(noise.rho) * (1 - F(1, 10**12))
    exact = sum(((law.sensitivity / law.sigma) ** 2 / 2 * times for law, times in noise.parts), F(0))
    assert exact <= noise.spend.rho <= exact * (1 + F(1, 10**28))
