"""The best sums of ordered cells: check values, certified bounds, whole numbers that all machines share."""

import math

import numpy as np
import pytest

from tacit.errors import TacitError
from tacit.strategies import (
    RangeStrategy,
    Workload,
    factored,
    factorise,
    tree_of_cells,
    trees_for,
    whole_factor,
)

#: Root mean square error at sensitivity 1 and sigma 1: prefixes and all ranges.
CHECKS = {
    4: (1.310929, 1.282220),
    16: (1.689404, 1.742927),
    128: (2.311001, 2.598991),
    256: (2.524414, 2.901435),
}
#: Cells alone and the binary tree with all its levels, for prefixes and for ranges.
OTHERS = {
    4: (1.581, 1.389, 1.414, 1.444),
    16: (2.916, 1.938, 2.450, 2.199),
    128: (8.031, 2.810, 6.583, 3.425),
}
KINDS = ("prefixes", "ranges")


def rmse(strategy, work):
    return math.sqrt(strategy.mean_variance(work) * strategy.column_squared)


def bounds(cells, kind):
    work = Workload(cells, kind)
    found = factorise(work.gram())
    return math.sqrt(found.lower / work.questions), math.sqrt(found.upper / work.questions)


@pytest.mark.parametrize("cells", CHECKS)
@pytest.mark.parametrize("kind", KINDS)
def test_both_bounds_agree_with_the_check_values(cells, kind):
    low, high = bounds(cells, kind)
    wanted = CHECKS[cells][KINDS.index(kind)]
    assert low <= high <= low * (1 + 5e-7)
    assert abs(low - wanted) < 1.5e-6


@pytest.mark.long
@pytest.mark.parametrize(("kind", "wanted"), [("prefixes", 2.95545), ("ranges", 3.515083)])
def test_a_thousand_cells(kind, wanted):
    low, high = bounds(1024, kind)
    assert low <= high <= low * (1 + 5e-7)
    assert abs(low - wanted) < 5e-6
    assert factored(Workload(1024, kind)).lost < 1e-3


@pytest.mark.parametrize("cells", [4, 16, 128])
@pytest.mark.parametrize("kind", KINDS)
def test_cells_alone_and_the_binary_tree_are_worse(cells, kind):
    work = Workload(cells, kind)
    alone, tree = OTHERS[cells][2 * KINDS.index(kind) :][:2]
    levels = int(math.log2(cells)) + 1
    assert rmse(tree_of_cells(cells, 2, 1), work) == pytest.approx(alone, abs=6e-4)
    assert rmse(tree_of_cells(cells, 2, levels), work) == pytest.approx(tree, abs=6e-4)
    assert rmse(factored(work), work) < min(alone, tree)


@pytest.mark.parametrize("cells", [2, 3, 5, 17, 100, 200])
@pytest.mark.parametrize("kind", KINDS)
def test_whole_numbers_lose_less_than_a_thousandth(cells, kind):
    work = Workload(cells, kind)
    low, _ = bounds(cells, kind)
    strategy = factored(work)
    assert rmse(strategy, work) < low * 1.001
    assert strategy.lost < 1e-3
    assert strategy.column_squared == max(int((column**2).sum()) for column in strategy.matrix.T)


def test_no_random_measurements_beat_the_lower_bound():
    rng = np.random.default_rng(7)
    work = Workload(6, "ranges")
    lower = factorise(work.gram()).lower
    for _ in range(300):
        a = rng.normal(size=(8, 6))
        a /= np.sqrt((a**2).sum(axis=0).max())
        assert (work.gram() * np.linalg.inv(a.T @ a)).sum() >= lower


def test_any_questions_can_be_factorised():
    rng = np.random.default_rng(3)
    asked = rng.integers(-1, 3, (40, 12)).astype(float)
    v = asked.T @ asked
    best = factorise(v)
    assert best.upper <= best.lower * (1 + 1e-6)
    matrix, _, lost = whole_factor(best, v)
    gram = (matrix.T @ matrix).astype(float)
    assert gram.diagonal().max() * (v * np.linalg.inv(gram)).sum() < best.lower * 1.002
    assert lost < 1e-3


def test_given_ranges_beat_all_ranges_on_themselves_and_leave_every_cell_readable():
    given = Workload(40, "given", ((0, 10, 1.0), (10, 40, 1.0), (0, 40, 3.0)))
    own, every = factored(given), factored(Workload(40, "ranges"))
    assert rmse(own, given) < 0.8 * rmse(every, given)
    assert np.isfinite(own.inverse).all()


def test_estimates_read_the_cells_back_without_noise():
    x = np.arange(17) ** 2
    for strategy in (factored(Workload(17, "prefixes")), *trees_for(17)):
        assert np.allclose(strategy.inverse @ (strategy.matrix @ x), x)
        assert np.allclose(strategy.sums @ (strategy.matrix @ x), np.r_[0, np.cumsum(x)])


def test_a_stored_strategy_is_read_back_number_by_number():
    for strategy in (factored(Workload(33, "ranges")), tree_of_cells(33, 4, 3)):
        read = RangeStrategy.from_json(strategy.to_json())
        assert (read.matrix == strategy.matrix).all()
        assert read.digest == strategy.digest
        assert read.describe() == strategy.describe()


@pytest.mark.parametrize(
    "change",
    [{"cells": 0}, {"cells": 5000}, {"cells": "4"}, {"cells": 9}, {"triangle": "AAAA"}, {"triangle": ""}],
    ids=str,
)
def test_a_strategy_that_is_none_is_refused(change):
    document = {**factored(Workload(8, "ranges")).to_json(), **change}
    with pytest.raises((ValueError, ArithmeticError, LookupError, Exception)) as found:
        RangeStrategy.from_json(document)
    assert not isinstance(found.value, AssertionError)


def test_distances_of_columns_are_exact():
    for strategy in (factored(Workload(9, "ranges")), tree_of_cells(9, 3, 2)):
        columns = strategy.matrix.T
        pairs = [(a - b) for a in columns for b in columns]
        assert strategy.move_squared == max(int((d**2).sum()) for d in pairs)
        assert strategy.move_sum == max(int(np.abs(d).sum()) for d in pairs)


#: Fingerprints that five kernels of OpenBLAS agree on: the plan of one machine has the same hash on another.
PINNED = {
    (64, "prefixes"): "1035869307f0", (64, "ranges"): "23a896cb1f4d",
    (128, "prefixes"): "8f10cf85c215", (128, "ranges"): "37405dfe76eb",
}  # fmt: skip


@pytest.mark.parametrize("which", PINNED, ids=str)
def test_the_whole_numbers_are_the_same_on_every_machine(which):
    assert factored(Workload(*which)).digest.startswith(PINNED[which])


def test_more_cells_are_refused():
    with pytest.raises(TacitError, match="from 1 to 1,024"):
        factorise(np.eye(1025))


@pytest.mark.parametrize("entry", [-(2**63), 2**62, 2**31, 2**26, -(2**24)])
def test_numbers_whose_squares_would_wrap_around_are_refused(entry):
    """-2^63, which NaN becomes as a whole number, has a square of 0 in 64 bits."""
    matrix = np.eye(4, dtype=np.int64)
    matrix[0, 3] = entry
    with pytest.raises(ValueError, match="exact norms"):
        RangeStrategy(matrix)
    assert RangeStrategy(np.clip(matrix, -1000, 1000)).column_squared == 1000**2 + 1
