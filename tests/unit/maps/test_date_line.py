"""Maps across the 180th meridian: the same integers and answers as on a map that does not cross it."""

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from support.exact_integers import exact_of_plan
from tacit import TacitError
from tacit.maps import Surface
from tacit.maps._areas import Box

FIJI = ((-22, 165), (-12, 190))
ELSEWHERE = ((-22, -10), (-12, 15))  # the same box, 175 degrees to the west
EXACT = {"epsilon": 100_000}  # the noise is 0


def quakes(written, count=400):
    """Return points around Fiji, some on borders; longitudes are -180 to 180 or 0 to 360."""
    rng = np.random.default_rng(9)
    lat = np.r_[rng.uniform(-23, -11, count), -15, -15, -15, -15, -15]
    lon = np.r_[rng.uniform(163, 192, count), 165, 180, 190, 164.99, 190.01]
    if written == "0 to 360":
        return lat, lon
    if written == "elsewhere":
        return lat, lon - 175
    return lat, np.where(lon > 180, lon - 360, lon)


def as_map(written, box=FIJI, **facts):
    lat, lon = quakes(written)
    frame = pd.DataFrame({"lat": lat, "lon": lon, "who": np.arange(len(lat)) // 3})
    given = {"unit": tc.Unit.row()} | facts
    return tc.points(frame, box=box, budget=tc.Budget(epsilon=10**7), **given)


ASKED = {
    "grid": lambda m: m.grid(10, 25).plan(**EXACT),
    "tree": lambda m: m.tree().plan(**EXACT),
    "adaptive": lambda m: m.adaptive_grid().plan(**EXACT),
}


def counts(surface):
    return np.round(np.asarray(surface["n"].value, dtype=float)).tolist()


@pytest.mark.parametrize("written", ["-180 to 180", "0 to 360"])
def test_every_cell_counts_the_points_of_both_sides(written):
    maps = as_map(written), as_map("elsewhere", ELSEWHERE)
    [exact], [other] = (exact_of_plan(ASKED["grid"](one)) for one in maps)
    assert np.asarray(exact).tolist() == np.asarray(other).tolist()
    assert np.asarray(exact).sum() > 300


@pytest.mark.parametrize("kind", ASKED)
def test_areas_are_answered_in_either_way_of_writing_longitudes(kind):
    surface = ASKED[kind](as_map("-180 to 180")).release().content
    control = ASKED[kind](as_map("elsewhere", ELSEWHERE)).release().content
    ask = [
        lambda s, turn, shift: s.rectangle((-20, 170 - shift), (-14, 175 - shift)),
        lambda s, turn, shift: s.rectangle((-20, 182 - turn - shift), (-14, 188.5 - turn - shift)),
        lambda s, turn, shift: s.radius(-17, 181 - turn - shift, km=400),
        lambda s, turn, shift: s.radius(-17, 179 - shift, km=400),
    ]
    if kind == "grid":
        wanted = [one(control, 0, 175).value for one in ask]
        for turn in (0, 360):
            assert [one(surface, turn, 0).value for one in ask] == pytest.approx(wanted, abs=0.05)
    across = surface.rectangle((-20, 170), (-14, 188))
    parts = surface.rectangle((-20, 170), (-14, 180)), surface.rectangle((-20, -180), (-14, -172))
    assert across.value == pytest.approx(sum(part.value for part in parts), abs=0.05)
    assert surface.rectangle((-90, -180), (90, 180)).value == pytest.approx(sum(counts(surface)), abs=0.5)
    assert Surface.from_json(surface.to_json()).to_json() == surface.to_json()


def test_one_point_moves_one_cell_by_one():
    box = Box.read(FIJI)
    lat, lon = quakes("-180 to 180")
    cells = box.cells(lat, lon, rows=10, columns=25)
    assert cells.tolist() == box.cells(lat, np.where(lon < 0, lon + 360, lon), rows=10, columns=25).tolist()
    assert cells[-5:].tolist() == [cells[-5], cells[-4], cells[-3], -1, -1]
    assert min(cells[-5:-2]) >= 0
    assert box.cells([-15, -15], [np.nan, np.inf], rows=2, columns=2).tolist() == [-1, -1]


def test_one_person_is_one_owner_on_both_sides():
    """A place is the same place however it is written, so the same points of a unit are kept."""
    maps = [as_map(written, unit="who", limits={"rows": 1}) for written in ("-180 to 180", "0 to 360")]
    points = [m._source.load() for m in maps]
    assert len(points[0]) == len(points[1]) == len(set(points[0].owner.tolist()))
    assert all(165 <= lon <= 190 for one in points for lon in one.lon.tolist())


def test_districts_are_found_on_both_sides():
    def square(name, west, east):
        ring = [[west, -20], [east, -20], [east, -14], [west, -14], [west, -20]]
        return {"type": "Feature", "properties": {"name": name},
                "geometry": {"type": "Polygon", "coordinates": [ring]}}  # fmt: skip

    lat, lon = quakes("0 to 360")
    inside = (lat >= -20) & (lat <= -14)
    truth = [int((inside & (lon >= w) & (lon < e)).sum()) for w, e in ((170, 180), (180, 185))]
    for west, east in ((-180, -175), (180, 185)):
        features = [square("west", 170, 179.999999), square("east", west, east)]
        for written in ("-180 to 180", "0 to 360"):
            plan = (
                as_map(written).districts({"type": "FeatureCollection", "features": features}).plan(**EXACT)
            )
            assert counts(plan.release().content) == truth


def test_h3_cells_lose_no_point():
    quaked = as_map("-180 to 180")
    [exact] = exact_of_plan(quaked.h3(4).plan(**EXACT))
    points = quaked._source.load()
    assert int(np.asarray(exact).sum()) == len(points)


def test_trips_across_the_meridian_count():
    frame = pd.DataFrame({"a": [-15.0, -15], "b": [179.0, -179], "c": [-15.0, -15], "d": [-178.0, 190.5]})
    trips = tc.maps.trips(
        frame,
        origin=("a", "b"),
        destination=("c", "d"),
        unit=tc.Unit.row(),
        box=FIJI,
        budget=tc.Budget(epsilon=10**6),
    )
    [exact] = exact_of_plan(trips.flows(zones=(1, 5)).plan(**EXACT))
    assert np.asarray(exact).reshape(5, 5).sum() == 1
    assert np.asarray(exact).reshape(5, 5)[2, 3] == 1


@pytest.mark.parametrize("given", [((-22, 165), (-12, -170)), ((-12, 165), (-22, -170))])
def test_a_box_whose_sides_look_exchanged_may_cross_the_meridian(given):
    with pytest.raises(TacitError) as refused:
        Box.read(given)
    assert refused.value.code == "bad-parameter"
    assert "((-22.0, 165.0), (-12.0, 190.0))" in str(refused.value.fix)
    surface = as_map("0 to 360").grid(2, 2).plan(**EXACT).release().content
    with pytest.raises(TacitError) as refused:
        surface.rectangle(*given)
    assert "surface.rectangle((-22.0, 165.0), (-12.0, 190.0))" in str(refused.value.fix)


@pytest.mark.parametrize("given", [((0, 170), (1, 531)), ((0, 181), (1, 190)), ((0, 0), (1, 10**400))])
def test_a_box_is_at_most_one_turn_wide_and_starts_on_the_earth(given):
    with pytest.raises(TacitError) as refused:
        Box.read(given)
    assert refused.value.code == "bad-parameter"


def test_boxes_that_do_not_cross_drop_what_they_dropped():
    whole = Box.read(((-90, -180), (90, 180)))
    assert whole.inside([0, 0, 0], [190, -190, 180]).tolist() == [False, False, True]
    assert not whole.crosses
