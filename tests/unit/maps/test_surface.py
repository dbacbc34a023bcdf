"""Questions to a surface: values, honest intervals, hierarchies, differences and layers."""

import numpy as np
import pytest

import tacit as tc
from tacit import TacitError
from tacit.maps import Box, GridRegions, Surface, consistent
from tacit.maps._areas import Circle
from tacit.mechanisms import MeasurementNoise
from tacit.strategies import variances_of, weights_of

LAW = tc.mechanisms.DiscreteLaplace(epsilon=1, sensitivity=1)
PARENTS = np.array([5, 5, 5, 6, 6, 7, 7, -1])


def surface(counts, box=(0, 0, 4, 4), law=LAW):
    grid = np.array(counts, dtype=float)
    noise = MeasurementNoise.of([(law, grid.size)])
    return Surface(GridRegions(Box(*box), *grid.shape), grid.ravel(), noise, 0.95)


FOUR = surface([[10, 20], [30, -4]])


def test_a_question_along_cell_borders_has_the_narrow_interval():
    answer = FOUR.rectangle((0, 0), (2, 4))
    [wide] = FOUR.noise.half_widths([[0, 1]], 0.05)
    assert (answer.value, answer.low, answer.high) == (30, 30 - wide, 30 + wide)
    assert not answer.notes


def test_a_cut_cell_holds_none_or_all_of_its_points():
    answer = FOUR.rectangle((0, 0), (2, 3))
    assert answer.value == 10 + 20 / 2
    assert answer.low == 10 - LAW.half_width(0.95)
    assert answer.high == 10 + 20 + FOUR.noise.half_widths([[0, 1]], 0.05)[0]
    assert "spread evenly" in answer.notes["n"]


def test_many_questions_equal_single_ones():
    boxes = [((0, 0), (2, 3)), ((1, 1), (3, 3)), ((0, 0), (4, 4))]
    many = FOUR.rectangles(boxes)["n"]
    single = [FOUR.rectangle(*box) for box in boxes]
    assert many.value == tuple(one.value for one in single)
    assert many.high == tuple(one.high for one in single)
    places = [(1.0, 1.0), (3.0, 2.0)]
    assert FOUR.radii(places, km=150)["n"].low == tuple(FOUR.radius(*p, km=150).low for p in places)


def test_a_polygon_that_is_a_rectangle_gives_the_same_answer():
    ring = [[0, 0], [3, 0], [3, 2], [0, 2], [0, 0]]
    polygon = FOUR.polygon({"type": "Polygon", "coordinates": [ring]})
    assert polygon.to_json() == FOUR.rectangle((0, 0), (2, 3)).to_json()


def test_a_circle_takes_cells_inside_and_cuts_those_on_its_border():
    draw = np.random.default_rng(4)
    for _ in range(200):
        circle = Circle(draw.uniform(-89, 89), draw.uniform(-179, 179), draw.uniform(50, 3000))
        low = np.array([draw.uniform(-90, 80), draw.uniform(-180, 170)])
        size = draw.uniform(0.1, 10, 2)
        box = np.array([[*low, *np.minimum(low + size, (90, 180))]])
        [share] = circle.box_shares(box)
        lat, lon = (draw.uniform(box[0, i], box[0, i + 2], 400) for i in (0, 1))
        inside = circle._haversine(lat, np.abs(lon - circle.lon)) <= np.sin(circle.km / 6371.0088 / 2) ** 2
        if share in (0, 1):
            assert (inside == bool(share)).all()
        else:
            assert abs(inside.mean() - share) < 0.3


def test_outside_the_box_nothing_is_known_to_lie():
    answer = FOUR.rectangle((10, 10), (11, 11))
    assert (answer.value, answer.low, answer.high) == (0, 0, 0)


def test_least_squares_up_a_hierarchy():
    y = np.array([22.0, 20, 15, 25, 18, 60, 45, 100])
    found = consistent(y, PARENTS, np.ones(8))
    right = [22.379310, 20.379310, 15.379310, 25.172414, 18.172414, 58.137931, 43.344828, 101.482759]
    assert found == pytest.approx(right, abs=1e-6)
    spread = [0.724138] * 3 + [0.620690] * 2 + [0.517241, 0.482759, 0.586207]
    assert variances_of(PARENTS, np.ones(8)) == pytest.approx(spread, abs=1e-6)


def test_least_squares_equal_the_normal_equations_for_unequal_noise():
    draw = np.random.default_rng(5)
    v, y = draw.uniform(0.5, 4, 8), draw.normal(0, 9, 8)
    leaves = np.eye(5)
    design = np.vstack([leaves, leaves[:3].sum(0), leaves[3:].sum(0), leaves.sum(0)])
    solve = np.linalg.inv(design.T / v @ design) @ (design.T / v)
    assert consistent(y, PARENTS, v)[:5] == pytest.approx(solve @ y)
    for i in range(5):
        assert weights_of(np.eye(8)[i], PARENTS, v) == pytest.approx(solve[i])


def test_regions_that_are_alike_have_the_same_half_width():
    draw = np.random.default_rng(6)
    parents = np.concatenate([np.sort(draw.integers(30, 36, 30)), np.full(6, 36), [-1]])
    parents[:6] = np.arange(30, 36)  # no inner measurement is a leaf
    noise = MeasurementNoise.of(
        [(LAW, 30), (tc.mechanisms.DiscreteLaplace(scale=2, sensitivity=1), 7)], parents
    )
    one_by_one = noise.half_widths([[i] for i in range(30)], 0.05)
    assert noise.each_half_width(0.05) == pytest.approx(one_by_one)
    assert len(np.unique(one_by_one.round(9))) > 1


def test_nonnegative_keeps_the_total_and_the_intervals_honest():
    made = FOUR.nonnegative()
    assert made.counts.min() == 0
    assert made.counts.sum() == pytest.approx(FOUR.counts.sum())
    corner = made.rectangle((2, 2), (4, 4))
    assert corner.low == 0
    assert corner.high == max(0, -4 + LAW.half_width(0.95))
    assert "set to 0" in made.text()


def test_a_release_marks_what_was_done():
    sites = tc.points(
        tc.maps.example_sites(), unit=tc.Unit.row(), box=tc.maps.EXAMPLE_BOX, budget=tc.Budget(epsilon=1)
    )
    release = sites.grid(8, 8).plan(epsilon=1).release()
    changed = release.nonnegative()
    assert isinstance(changed, tc.Release)
    assert changed.certificate is release.certificate
    assert "set to 0" in changed.marks[0]
    assert str(changed).count("set to 0") == 1


def test_the_difference_of_two_surfaces_has_both_noises():
    change = FOUR.minus(surface([[1, 2], [3, 4]]))
    assert change.counts.tolist() == [9, 18, 27, -8]
    along = change.rectangle((0, 0), (2, 2))
    assert along.value == 9
    assert along.high - along.value > LAW.half_width(0.95)
    cut = change.rectangle((0, 0), (2, 3))
    assert cut.low < 9 - 2
    assert cut.high > 9 + 20
    with pytest.raises(TacitError, match="different regions"):
        FOUR.minus(surface([[1, 2, 3]]))


def test_a_public_layer_beside_the_surface():
    here = {"type": "Polygon", "coordinates": [[[0, 0], [2, 0], [2, 2], [0, 2], [0, 0]]]}
    layer = {"features": [{"properties": {"species": "wallaby"}, "geometry": here}]}
    beside = FOUR.beside(layer, name="species")
    assert beside.keys == {"species": ("wallaby",)}
    assert beside["n"].value == (10,)
    near = FOUR.beside(layer, name="species", within_km=20)
    assert near["n"].high[0] > beside["n"].high[0]
    assert len(FOUR.beside([(1, 1), (3, 3)], within_km=10)) == 2
    with pytest.raises(TacitError, match="no property"):
        FOUR.beside(layer, name="id")


def test_refusals_of_areas_name_what_to_write():
    with pytest.raises(TacitError, match="swapped") as refused:
        FOUR.rectangle((120, -3), (121, -2))
    assert str(refused.value.fix) == "surface.rectangle((-3.0, 120.0), (-2.0, 121.0))"
    with pytest.raises(TacitError, match="within_km"):
        FOUR.beside([(1, 1)])
    with pytest.raises(TacitError, match="crosses itself"):
        FOUR.polygon({"type": "Polygon", "coordinates": [[[0, 0], [2, 2], [2, 0], [0, 2], [0, 0]]]})


def test_top_lists_the_largest_regions():
    assert FOUR.top(2)["n"].value == (30, 20)
    assert "too large on average" in FOUR.top(2).notes["n"]


def test_a_surface_that_was_changed_by_hand_is_not_read():
    document = FOUR.to_json()
    for wrong in (
        {"counts": [1, 2]},
        {"confidence": 2},
        {"regions": {"kind": "grid", "box": [0, 0, 0, 0], "shape": [2, 2]}},
    ):
        with pytest.raises(ValueError):
            Surface.from_json({**document, **wrong})


def test_the_map_of_characters_has_north_at_the_top():
    lines = surface([[0, 0], [100, 0]]).text().splitlines()
    assert lines[2] == "|@@  |"
    assert lines[3] == "|    |"


@pytest.mark.parametrize("scale", [0.3, 0.7, 1.5, 4])
@pytest.mark.parametrize("weights", [(16,), (16, 5), (11, 11, 3), (16, 8, 4, 2)])
def test_half_widths_hold_for_whole_number_noise_with_weights(scale, weights):
    """Exact convolution (docs/proofs/maps.md, section 6); weights are in sixteenths."""
    from tacit.mechanisms.additive._measurements import _continuous

    reach = int(30 * scale) + 12
    law = np.exp(-np.abs(np.arange(-reach, reach + 1)) / scale)
    exact = np.ones(1)
    for weight in weights:
        spread = np.zeros(2 * reach * weight + 1)
        spread[::weight] = law / law.sum()
        exact = np.convolve(exact, spread)
    far = np.abs(np.arange(len(exact)) - len(exact) // 2) / 16
    share = np.array(weights) / 16
    for failing in (0.2, 0.05, 0.01):
        wide = _continuous(failing, share * scale, np.ones(len(share)), 0.0) + share.max() / 2
        assert exact[far > wide + 1e-12].sum() <= failing


def test_a_value_lies_in_its_interval_after_nonnegative_too():
    noisy = surface(np.r_[np.full(30, -9.0), 40.0, np.full(33, 3.0)].reshape(8, 8)).nonnegative()
    cells = noisy.table["n"]
    assert all(low <= n <= high for low, n, high in zip(cells.low, cells.value, cells.high, strict=True))


def test_a_difference_is_drawn_around_white(tmp_path):
    pytest.importorskip("matplotlib")
    picture = FOUR.minus(surface([[90, 2], [3, 4]])).plot()
    picture.savefig(tmp_path / "difference.png")
    assert (tmp_path / "difference.png").stat().st_size > 1000
