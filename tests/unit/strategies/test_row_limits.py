"""Limits from noisy counts of units by their numbers of rows."""

import math

import numpy as np
import pytest

import tacit as tc
from support.repeatable_noise import rng
from tacit.strategies import LIMIT_SHARE, CellNoise, choose_limit, round_numbers

CANDIDATES = round_numbers(1000)


def units_by_rows(rows):
    return np.bincount(np.searchsorted(CANDIDATES, np.minimum(rows, 1000)), minlength=len(CANDIDATES))


def squared_error(rows, limit, epsilon):
    """Return the expected squared error of the count: the variance of its noise, and the cut."""
    return 2 * (limit / epsilon) ** 2 + float(np.maximum(rows - limit, 0).sum()) ** 2


def chosen(rows, epsilon, generator, draws=400):
    scale, answer = 1 / (epsilon * float(LIMIT_SHARE)), epsilon * float(1 - LIMIT_SHARE)
    p = -math.expm1(-1 / scale)
    noise = generator.geometric(p, (draws, len(CANDIDATES))) - generator.geometric(
        p, (draws, len(CANDIDATES))
    )
    return [
        choose_limit(line, CellNoise(scale), CANDIDATES, math.sqrt(2) / answer)
        for line in units_by_rows(rows) + noise
    ]


def populations():
    generator = rng
    return {
        "one row each": np.ones(5000, dtype=int),
        "1 to 5 rows": generator.integers(1, 6, 6000),
        "geometric": generator.geometric(1 / 3, 5000),
        "log-normal": np.ceil(generator.lognormal(2, 1.2, 5000)).astype(int),
    }


@pytest.mark.parametrize("epsilon", [0.1, 1])
@pytest.mark.parametrize("name", ["one row each", "1 to 5 rows", "geometric", "log-normal"])
def test_the_median_error_is_near_that_of_the_best_limit(name, epsilon):
    rows = populations()[name]
    best = min(squared_error(rows, limit, epsilon) for limit in CANDIDATES)
    limits = chosen(rows, epsilon, rng)
    errors = [math.sqrt(squared_error(rows, limit, epsilon * 0.8) / best) for limit in limits]
    assert np.median(errors) < 4.5
    assert np.mean([error > 10 for error in errors]) < 0.05


def test_the_default_of_10_rows_is_far_from_the_best_limit():
    for name, factor in (("one row each", 9), ("log-normal", 40)):
        rows = populations()[name]
        best = min(squared_error(rows, limit, 1) for limit in CANDIDATES)
        assert math.sqrt(squared_error(rows, 10, 1) / best) > factor


def test_one_unit_more_changes_one_count_by_1_however_many_rows_it_has():
    rows = populations()["geometric"]
    for number in (1, 30, 10**6):
        assert np.abs(units_by_rows([*rows, number]) - units_by_rows(rows)).sum() == 1


def test_nobody_and_noise_alone_keep_the_smallest_limit():
    assert choose_limit(np.zeros(len(CANDIDATES)), CellNoise(5), CANDIDATES, 1.8) == 1
    limits = chosen(np.zeros(0, dtype=int), 1, rng, draws=1000)
    assert np.mean([limit == 1 for limit in limits]) > 0.7
    assert np.mean([limit > 10 for limit in limits]) < 0.03


def test_another_number_of_counts_is_refused():
    with pytest.raises(tc.TacitError, match="one for each cell"):
        choose_limit([1, 2], CellNoise(1), CANDIDATES, 1)
