"""The splitting tree against its exact law (docs/proofs/map_trees.md, section "The splitting tree")."""

import math
import pickle
import random
from fractions import Fraction

import numpy as np
import pytest

import tacit as tc
from support.tree_laws import law, loss, path_loss
from tacit.errors import TacitError
from tacit.mechanisms.choices._thresholds import decay_of, price_of_path

m = tc.mechanisms
rng = random.Random(15)


def grid_of(depth, points):
    size = 2**depth
    grid = [[0] * size for _ in range(size)]
    for _ in range(points):
        grid[rng.randrange(size)][rng.randrange(size)] += 1
    return grid


def parts(tree):
    return {"depth": tree.depth, "decay": tree.decay, "theta": tree.theta, "scale": tree.scale}


@pytest.mark.parametrize(
    ("epsilon", "price"), [(0.1, 0.0934), (1, 0.9074), (2, 1.8105)]
)  # the check values of the literature page
def test_the_exact_price_of_a_deep_tree(epsilon, price):
    tree = m.SplittingTree(epsilon=epsilon, depth=12)
    assert float(tree.price) == pytest.approx(price, abs=5e-5)
    assert tree.cost.epsilon(delta=0) == float(tree.price)


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), 1, 2, 5])
@pytest.mark.parametrize("sensitivity", [1, 2])
@pytest.mark.parametrize("theta", [0, 3])
def test_no_tree_of_any_neighbours_differs_by_more_than_the_price(depth, epsilon, sensitivity, theta):
    tree = m.SplittingTree(epsilon=epsilon, depth=depth, sensitivity=sensitivity, theta=theta)
    largest = 0
    for _ in range(12):
        grid = grid_of(depth, rng.choice([0, 1, 2, 4, 8, 16, 30]))
        more = [line[:] for line in grid]
        for _ in range(sensitivity):
            more[rng.randrange(2**depth)][rng.randrange(2**depth)] += 1
        a, b = law(grid, **parts(tree)), law(more, **parts(tree))
        assert float(sum(a.values())) == pytest.approx(1, abs=1e-12)
        largest = max(largest, loss(a, b))
    assert 0 < largest <= tree.price


@pytest.mark.parametrize("depth", [1, 2, 3, 6, 12])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), 1, 2, 7])
def test_the_worst_pair_costs_the_price_to_the_last_digit(depth, epsilon):
    tree = m.SplittingTree(epsilon=epsilon, depth=depth)
    most = max(tree.theta + 1 + (depth - 2) * tree.decay, 1)
    exact = path_loss([most - 1] * depth, 1, decay=tree.decay, theta=tree.theta, scale=tree.scale)
    assert exact <= tree.price <= float(exact) + 2e-12
    if depth <= 6:
        assert tree.worst_pair[0][0][0] == most


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), 1, 2, 5])
@pytest.mark.parametrize("sensitivity", [1, 3])
def test_long_paths_never_cost_more_than_the_price(epsilon, sensitivity):
    tree = m.SplittingTree(epsilon=epsilon, depth=12, sensitivity=sensitivity)
    for _ in range(300):
        top = rng.randrange(2 * 12 * tree.decay)
        falls = [rng.choice([0, 0, 0, 1, tree.decay, rng.randrange(3 * tree.decay)]) for _ in range(12)]
        counts = [max(0, top - sum(falls[:i])) for i in range(12)]
        exact = path_loss(counts, sensitivity, decay=tree.decay, theta=tree.theta, scale=tree.scale)
        assert exact <= tree.price


def test_a_decay_that_is_rounded_down_costs_more_than_epsilon():
    scale = Fraction(7, 6)  # of epsilon 2
    assert decay_of(scale) == 2
    assert float(price_of_path(scale, 1, 12)) == pytest.approx(2.068, abs=1e-3)
    assert price_of_path(scale, 2, 12) < 2


@pytest.mark.parametrize("epsilon", [0.1, 1, 3.7])
@pytest.mark.parametrize("sensitivity", [1, 4])
def test_the_price_is_at_most_epsilon_and_the_decay_is_rounded_up(epsilon, sensitivity):
    tree = m.SplittingTree(epsilon=epsilon, depth=10, sensitivity=sensitivity)
    assert tree.price <= Fraction(str(epsilon))
    assert tree.scale == Fraction(7 * sensitivity, 3) / Fraction(str(epsilon))
    assert tree.decay - 1 < float(tree.scale) * math.log(4) <= tree.decay


def test_the_leaves_cover_every_cell_once():
    tree = m.SplittingTree(epsilon=1, depth=5)
    counts = np.random.default_rng(3).poisson(5, (32, 32))
    for _ in range(5):
        covered = np.zeros((32, 32), int)
        for level, row, column in tree.release(counts):
            side = 2 ** (5 - level)
            covered[row * side : (row + 1) * side, column * side : (column + 1) * side] += 1
        assert (covered == 1).all()


def test_a_tree_is_fine_where_points_are_and_coarse_elsewhere():
    tree = m.SplittingTree(epsilon=1, depth=6)
    counts = np.zeros((64, 64), np.int64)
    counts[:4, :4] = 1_000
    leaves = tree.release(counts)
    assert sum(level == 6 for level, row, column in leaves if row < 4 and column < 4) == 16
    assert len(leaves) < 300


def test_the_stated_probability_is_the_exact_law():
    tree = m.SplittingTree(epsilon=1, depth=2)
    grid = grid_of(2, 12)
    exact = law(grid, **parts(tree))
    for leaves, chance in exact.items():
        assert tree.probability(leaves, grid) == pytest.approx(float(chance), rel=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("points", [3, 12, 25])
def test_drawn_trees_follow_the_exact_law(points):
    tree = m.SplittingTree(epsilon=2, depth=2)
    grid = grid_of(2, points)
    exact = law(grid, **parts(tree))
    samples = 20_000
    seen: dict[tuple, int] = {}
    for leaves in tree.release_many(grid, samples):
        key = tuple(sorted(tuple(leaf) for leaf in leaves))
        seen[key] = seen.get(key, 0) + 1
    expected = {tree_: float(p) * samples for tree_, p in exact.items() if float(p) * samples >= 5}
    square = sum((seen.get(t, 0) - e) ** 2 / e for t, e in expected.items())
    assert square < len(expected) + 6 * math.sqrt(2 * len(expected)) + 20


def test_the_mechanism_shows_itself_and_refuses_nonsense():
    tree = m.SplittingTree(epsilon=0.5, depth=4, sensitivity=2, adjacency="replace")
    assert "SplittingTree" in repr(tree)
    assert tree.to_json()["decay"] == tree.decay
    assert pickle.loads(pickle.dumps(tree)) == tree
    assert tree.half_width(0.95) > 0
    assert len(tree.release_many(tree.worst_pair[0], 3)) == 3
    for bad in ({"depth": 0}, {"depth": 13}, {"epsilon": 0}, {"sensitivity": 0}, {"theta": -1}):
        with pytest.raises(TacitError):
            m.SplittingTree(**({"epsilon": 1, "depth": 4} | bad))
    with pytest.raises(TacitError, match="square"):
        tree.release([[1, 2], [3, 4]])
