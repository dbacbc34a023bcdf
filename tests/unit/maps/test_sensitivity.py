"""Neighbour search: no pair of small maps moves the exact integers further than the mechanism says."""

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from support.small_maps import BOX, DISTRICTS, declared, integers, random_points, random_rows
from tacit.core import members_of

LIMITS = [
    {"rows": 3},
    {"rows": 4, "groups": 2},
    {"groups": 3, "per_group": 1},
    {"rows": 5, "groups": 2, "per_group": 2},
    {"rows": 3, "per_group": 1},
]
QUESTIONS = {
    "grid": lambda m: m.grid(3, 4),
    "districts": lambda m: m.districts(DISTRICTS, parents=["region", "country"]),
}


def moves(question, limits, adjacency, draw):
    """Return how far one random neighbour moves each level: L1, and L2 squared."""
    rows = random_rows(draw, 4, 7)
    without = rows[rows.u != 0]
    if adjacency == "replace":
        other = random_rows(draw, 1, 7)
        without = pd.concat([without, other])
    secret = int(draw.integers(2**62))
    both = (QUESTIONS[question](declared(data, limits, adjacency)) for data in (rows, without))
    pair = [integers(one, secret) for one in both]
    change = [a - b for a, b in zip(*pair, strict=True)]
    return [np.abs(c).sum() for c in change], [(c**2).sum() for c in change]


@pytest.mark.parametrize("adjacency", ["add/remove", "replace"])
@pytest.mark.parametrize("limits", LIMITS, ids=str)
@pytest.mark.parametrize("question", QUESTIONS)
def test_one_unit_moves_the_counts_no_further_than_stated(question, limits, adjacency):
    draw = np.random.default_rng(5)
    asked = QUESTIONS[question](declared(random_rows(draw, 1, 1), limits, adjacency))
    l1 = [int(m.sensitivity) for m in members_of(asked.plan(epsilon=1))[0].task.mechanisms]
    l2 = [int(m.sensitivity_squared) for m in members_of(asked.plan(rho=1))[0].task.mechanisms]
    most1, most2 = np.zeros(len(l1)), np.zeros(len(l2))
    for _ in range(8):
        found1, found2 = moves(question, limits, adjacency, draw)
        most1, most2 = np.maximum(most1, found1), np.maximum(most2, found2)
    assert (most1 <= l1).all()
    assert (most2 <= l2).all()


@pytest.mark.parametrize("limits", LIMITS, ids=str)
def test_thousands_of_neighbours_stay_within_the_bound(limits):
    """A thousand small maps are counted at once, each with regions and people of its own, four times."""
    from tacit.maps._map_draft import contribution_of, count_regions, read_limits
    from tacit.maps._point_source import _within_limit, rank_of

    draw = np.random.default_rng(6)
    read = read_limits(limits, tc.Unit("u"))
    box = tc.maps.Box.read(BOX)
    who = contribution_of(read, "add/remove", 9)
    reached = 0
    for _ in range(4):
        maps = [random_points(draw, 3, 8) for _ in range(1000)]
        rows = np.concatenate([np.c_[one, np.full(len(one), world)] for world, one in enumerate(maps)])
        secret = int(draw.integers(2**62))

        def counted(rows, secret=secret):
            rows = rows[box.inside(rows[:, 1], rows[:, 2])]
            lat, lon = rows[:, 1], rows[:, 2]
            owner = (3 * rows[:, 3] + rows[:, 0]).astype(np.int64)
            rank = rank_of(secret, lat, lon, owner=owner.astype(np.uint64))
            points = _within_limit(lat, lon, owner, rank, read.rows)
            region = box.cells(points.lat, points.lon, rows=3, columns=3) + 9 * (points.owner // 3)
            return count_regions(points, region, 9000, read).reshape(1000, 9)

        change = counted(rows) - counted(rows[rows[:, 0] != 1])
        assert np.abs(change).sum(axis=1).max() <= who.l1(1)
        reached = max(reached, (change**2).sum(axis=1).max())
    assert reached == who.l2_squared(1)


def test_a_single_site_moves_one_cell_by_one_however_fine_the_grid():
    """WORKED_EXAMPLES 15: 1 over the whole map."""
    sites = tc.points(np.zeros((1, 2)), unit=tc.Unit.row(), box=BOX, budget=tc.Budget(epsilon=1))
    for size in (1, 8, 256):
        [law] = members_of(sites.grid(size, size).plan(epsilon=1))[0].task.mechanisms
        assert law.sensitivity == 1


def test_which_points_are_kept_does_not_depend_on_others():
    draw = np.random.default_rng(7)
    one = pd.DataFrame({"u": 0, "lat": draw.uniform(0, 4, 30), "lon": draw.uniform(0, 4, 30)})
    for _ in range(20):
        others = random_rows(draw, 5, 6)
        others.u = others.u - draw.integers(0, 9)  # owners sort before and after
        others = others[others.u != 0]
        both = pd.concat([others, one]).sample(frac=1, random_state=int(draw.integers(99)))
        counts = [
            integers(declared(rows, {"rows": 6, "groups": 2}).grid(4, 4), 99)[0]
            for rows in (one, both, others)
        ]
        assert (counts[1] - counts[2] == counts[0]).all()
