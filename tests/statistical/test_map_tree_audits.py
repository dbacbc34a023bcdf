"""The splitting tree under attack, and its broken twins (docs/proofs/map_trees.md, "The splitting tree")."""

import pytest

import tacit as tc
from support.tree_laws import law, loss
from tacit.accounting import Cost
from tacit.audit import audit
from twins import map_trees

m = tc.mechanisms


def one_cell(depth, points):
    grid = [[0] * 2**depth for _ in range(2**depth)]
    grid[0][0] = points
    return grid


def leaves_as_numbers(tree):
    """Write of each tree whether it splits down to the one cell that holds points."""

    def drawn(value, size):
        return [float([2, 0, 0] in leaves) for leaves in tree.release_many(value, size)]

    return drawn


def exact_loss(tree, points):
    parts = {"depth": 2, "decay": tree.decay, "theta": tree.theta, "scale": tree.scale}
    return loss(law(one_cell(2, points), **parts), law(one_cell(2, points + 1), **parts))


def test_a_decay_rounded_down_is_caught_by_the_exact_law_of_a_path():
    twin = map_trees.DecayRoundedDown(epsilon=2, depth=12)
    assert twin.true_price() > 2
    assert m.SplittingTree(epsilon=2, depth=12).price < 2


@pytest.mark.parametrize(
    ("twin", "a", "b"),
    [
        (map_trees.tree_of_exact_counts, [[3, 2], [0, 0]], [[3, 2], [1, 0]]),
        (map_trees.non_empty_cells, [[3, 2], [0, 0]], [[3, 2], [1, 0]]),
    ],
    ids=["tree of exact counts", "non-empty cells only"],
)
def test_a_broken_map_is_caught(twin, a, b):
    found = audit(twin, a, b, samples=20_000, claimed=Cost.pure(1))
    assert found.at(1 - 1e-9).epsilon_lower > 1
    assert found.holds is False


@pytest.mark.long
def test_an_attack_on_the_tree_finds_no_more_than_its_price():
    tree = m.SplittingTree(epsilon=2, depth=2)
    a, b = tree.worst_pair
    found = audit(leaves_as_numbers(tree), a, b, samples=40_000, claimed=tree.cost)
    assert found.holds, found
    assert found.epsilon_lower > 0.6 * float(tree.price)


def test_no_number_of_points_in_a_cell_costs_more_than_the_price():
    tree = m.SplittingTree(epsilon=2, depth=2)
    losses = [exact_loss(tree, points) for points in range(12)]
    assert max(losses) <= tree.price
    assert float(max(losses)) > float(tree.price) - 1e-9
