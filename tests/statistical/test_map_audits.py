"""Maps under attack, and the coverage of their intervals. Significance of each audit: 1 - 1e-9."""

import numpy as np
import pytest

import tacit as tc
from support.small_maps import BOX, integers
from tacit.audit import audit
from tacit.core import members_of
from tacit.maps import BoxRegions, Surface
from tacit.mechanisms import MeasurementNoise
from twins import maps as twins


def grid_release(cells, size):
    """Release a grid of 4 cells as its plan does: exact integers of the task, noise of its mechanism."""
    points = np.column_stack([np.where(cells < 2, 1.0, 3.0), np.where(cells % 2 == 0, 1.0, 3.0)])
    sites = tc.points(points, unit=tc.Unit.row(), box=BOX, budget=tc.Budget(epsilon=1))
    question = sites.grid(2, 2)
    [exact] = integers(question, 1)
    [law] = members_of(question.plan(epsilon=1))[0].task.mechanisms
    return law.release_many(exact, size)


NEIGHBOURS = np.array([0, 0, 1]), np.array([0, 0, 1, 3])


def test_a_grid_with_all_cells_holds_its_epsilon():
    found = audit(grid_release, *NEIGHBOURS, claimed=tc.Cost.pure(1), samples=20_000)
    assert found.holds


def test_a_map_of_non_empty_cells_only_is_caught():
    found = audit(twins.nonempty_cells_only, *NEIGHBOURS, claimed=tc.Cost.pure(1), samples=20_000)
    assert not found.holds


def largest_move(count, draw, tries=400):
    """Return how far removing one owner moves the counts at most (L1), over random small maps."""
    most = 0
    for _ in range(tries):
        owners = np.sort(draw.integers(0, 4, 12))
        cells = draw.integers(0, twins.CELLS, 12)
        rest = owners != 1
        most = max(most, int(np.abs(count(owners, cells) - count(owners[rest], cells[rest])).sum()))
    return most


@pytest.mark.parametrize(
    ("twin", "stated"),
    [
        (lambda o, c: twins.limit_by_place_in_file(o, c, 2), 2),
        (twins.unlimited, 1),
        (lambda o, c: twins.cell_order_by_all(o, c, 1), 1),
    ],
    ids=["place in file", "no limit", "popular cells"],
)
def test_the_neighbour_search_catches_wrong_limits(twin, stated):
    assert largest_move(twin, np.random.default_rng(1)) > stated


def test_the_neighbour_search_passes_the_true_limits():
    from tacit.maps._map_draft import count_regions, read_limits
    from tacit.maps._point_source import _within_limit, rank_of

    limits = read_limits({"groups": 1, "per_group": 1}, tc.Unit("u"))

    def counted(owners, cells):
        points = _within_limit(cells + 0.5, cells * 0.0, owners, rank_of(7, cells + 0.5), None)
        return count_regions(points, points.lat.astype(np.int64), twins.CELLS, limits)

    assert largest_move(counted, np.random.default_rng(1)) == 1


@pytest.mark.long
def test_honest_intervals_cover_where_noise_alone_does_not():
    """Clustered points, boxes that cut cells: 400 maps and rectangles. A 95 % interval that covers at least
    95 % shows fewer than 0.9 x 400 hits with probability below 1e-4; noise alone covers below 0.85 x 400."""
    draw = np.random.default_rng(8)
    box = tc.maps.Box.read(((0, 0), (1, 1)))
    regions = tc.maps.GridRegions(box, 16, 16)
    law = tc.mechanisms.DiscreteLaplace(epsilon=1, sensitivity=1)
    honest = narrow = 0
    for _ in range(400):
        centres = draw.random((30, 2))
        points = np.clip(centres[draw.integers(0, 30, 4000)] + draw.normal(0, 0.004, (4000, 2)), 0, 1)
        counts = np.bincount(box.cells(*points.T, rows=16, columns=16), minlength=256)
        surface = Surface(regions, law.release(counts).astype(float), MeasurementNoise.of([(law, 256)]), 0.95)
        low, high = np.sort(draw.random((2, 2)), axis=0)
        answer = surface.rectangle(tuple(low), tuple(high))
        truth = int(((points >= low) & (points <= high)).all(axis=1).sum())
        _, share = regions.shares(tc.maps._areas.Rectangle.read(tuple(low), tuple(high)))
        width = 1.96 * np.sqrt(2 * (share**2).sum())
        honest += answer.low <= truth <= answer.high
        narrow += abs(answer.value - truth) <= width
    assert honest >= 0.95 * 400
    assert narrow < 0.85 * 400


@pytest.mark.long
@pytest.mark.parametrize("scale", [0.5, 1, 4])
def test_intervals_of_sums_along_cell_borders_cover_and_are_not_wide(scale):
    """10,000 draws: a cover of 95 % shows below 94.3 % with probability below 1e-3; integers round up."""
    law = tc.mechanisms.DiscreteLaplace(scale=scale, sensitivity=1)
    noise = MeasurementNoise.of([(law, 12)])
    for size in (1, 2, 12):
        [wide] = noise.half_widths([np.arange(size)], 0.05)
        drawn = law.release(np.zeros((10_000, size), dtype=np.int64)).sum(axis=1)
        assert (np.abs(drawn) <= wide).mean() >= 0.943
        assert (np.abs(drawn) <= wide - 2).mean() < 0.955


@pytest.mark.long
def test_intervals_of_a_hierarchy_cover():
    """5,000 draws of a hierarchy: sums of consistent estimates; the threshold is three deviations."""
    from tacit.maps import consistent

    law = tc.mechanisms.DiscreteLaplace(scale=2, sensitivity=1)
    parents = np.array([5, 5, 5, 6, 6, 7, 7, -1])
    noise = MeasurementNoise.of([(law, 8)], parents)
    drawn = law.release(np.zeros((5000, 8), dtype=np.int64)).astype(float)
    estimates = np.array([consistent(one, parents, noise.variances)[:5] for one in drawn])
    for chosen in ([0], [0, 1, 2], [0, 3], [0, 1, 2, 3, 4]):
        [wide] = noise.half_widths([chosen], 0.05)
        covered = (np.abs(estimates[:, chosen].sum(axis=1)) <= wide).mean()
        assert 0.941 <= covered <= 0.985


def test_boxes_of_any_size_are_regions_too():
    law = tc.mechanisms.DiscreteLaplace(epsilon=1, sensitivity=1)
    regions = BoxRegions(np.array([[0.0, 0, 1, 1], [0, 1, 1, 3]]))
    surface = Surface(regions, np.array([10.0, 20.0]), MeasurementNoise.of([(law, 2)]), 0.95)
    answer = surface.rectangle((0, 0), (1, 2))
    assert answer.value == 20
    assert (answer.low, answer.high) == (7, 30 + 5)
