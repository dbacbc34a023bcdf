"""Hostile names, files and boxes: what an attacker or an accident may hand to a map."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from support.small_maps import BOX, DISTRICTS
from tacit import TacitError
from tacit.maps._areas import EARTH_KM, Circle, Rectangle
from tacit.maps._regions import H3Locator

BUDGET = tc.Budget(epsilon=1000, delta=1e-4)
SITES = np.random.default_rng(3).uniform(0, 4, (300, 2))


def sites(points=SITES, box=BOX, **more):
    return tc.points(np.asarray(points, dtype=float), unit=tc.Unit.row(), box=box, budget=BUDGET, **more)


def renamed(**words):
    """Return the districts with further properties, copied from those that they have."""
    features = []
    for one in DISTRICTS["features"]:
        copied = {new: one["properties"][old] for new, old in words.items()}
        features.append({**one, "properties": {**one["properties"], **copied}})
    return {"features": features}


@pytest.mark.parametrize("parents", [("region",), ("region", "country"), ("district",), ("cell",)])
def test_a_level_of_any_name_leaves_the_names_of_the_regions(parents, tmp_path):
    given = renamed(district="region", cell="region")
    surface = sites().districts(given, parents=parents).plan(epsilon=100).release()
    keys = surface.table.keys
    assert next(iter(keys.values())) == ("00", "02", "20", "22")
    assert list(keys)[1:] == list(parents)
    features = surface.to_geojson()["features"]
    assert [one["properties"][next(iter(keys))] for one in features] == ["00", "02", "20", "22"]
    assert '"names":["00","02","20","22"]' in surface.to_html()
    by_name = surface.rate({"00": 1, "02": 2, "20": 4, "22": 8})
    assert by_name["rate"].value == surface.rate([1, 2, 4, 8])["rate"].value


@pytest.mark.parametrize("level", ["n", "low", "geometry", "south", "name"])
def test_a_level_that_would_hide_a_column_is_refused(level):
    given = renamed(**{level: "region"}) if level != "name" else DISTRICTS
    with pytest.raises(TacitError, match="parents must be"):
        sites().districts(given, parents=level).plan(epsilon=1)


@pytest.mark.parametrize(
    "words",
    [{"parents": ("zone", "country")}, {"name": "id", "parents": ("name",)}, {"parents": ("region",)}],
)
def test_a_plan_of_districts_survives_a_document_with_sorted_keys(words):
    given = renamed(zone="region", id="name")
    made = sites()
    plan = made.districts(given, **words).plan(epsilon=1)
    again = made.plan_from(json.loads(json.dumps(plan.to_json(), sort_keys=True)))
    assert again == plan
    assert again.release().regions.names == ("00", "02", "20", "22")


def test_a_missing_file_of_trips_is_refused_before_the_charge(tmp_path):
    made = tc.maps.trips(
        tmp_path / "none.csv", origin="a", destination="b", unit="u", limits={"rows": 2},
        budget=tc.Budget(epsilon=1),
    )  # fmt: skip
    for _ in range(2):  # a charge of the first would leave too little for the second
        with pytest.raises(TacitError, match="does not exist"):
            made.flows(["a"]).plan(epsilon=1).release()


def test_plans_of_other_columns_differ():
    rows = pd.DataFrame({"lat": [1.0], "lon": [1.0], "work_lat": [3.0], "work_lon": [3.0]})
    more = {"unit": tc.Unit.row(), "box": BOX, "budget": BUDGET}
    plans = [tc.points(rows, *names, **more) for names in (("lat", "lon"), ("work_lat", "work_lon"))]
    for ask in (
        lambda m: m.grid(2, 2).plan(epsilon=1), lambda m: m.tree(depth=2).plan(epsilon=1),
        lambda m: m.adaptive_grid().plan(epsilon=1), lambda m: m.hottest(1).plan(epsilon=1),
    ):  # fmt: skip
        assert ask(plans[0]).hash != ask(plans[1]).hash


def test_no_value_of_an_array_makes_a_warning():
    points = np.array([[np.longdouble("1e4000"), 1], [1, 1]], dtype=np.longdouble)
    made = tc.points(points, unit=tc.Unit.row(), box=BOX, budget=BUDGET)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert made.grid(1, 1).plan(epsilon=100).release().counts.tolist() == [1]


def test_unclear_regions_turn_white_only_where_they_are_hidden():
    page = sites().tree(depth=3).plan(epsilon=1).release().to_html()
    style = page.split("<style>")[1].split("</style>")[0]
    white = [rule.strip() for rule in style.splitlines() if "unclear" in rule and "#fff" in rule]
    assert white == ["svg.sure path.unclear { fill: #fff; }"]


@pytest.mark.parametrize(
    ("box", "resolution"),
    [
        (((-90, -180), (90, 180)), 0), (((-90, -180), (90, 180)), 1), (((-20, -180), (20, -170)), 3),
        (((-20, 170), (20, 180)), 3), (((80, -180), (90, 180)), 3), (((-89, -180), (-60, 0)), 2),
    ],
    ids=["earth, 0", "earth, 1", "west of 180", "east of 180", "north pole", "antarctica"],
)  # fmt: skip
def test_h3_cells_at_poles_and_the_180th_meridian_lose_no_point(box, resolution):
    draw = np.random.default_rng(4)
    (south, west), (north, east) = box
    corners = [[y, x] for y in (south, north) for x in (west, east)]
    points = np.concatenate([draw.uniform((south, west), (north, east), (4000, 2)), corners])
    made = sites(points, box)
    surface = made.h3(resolution).plan(epsilon=900).release()
    cell = H3Locator(surface.regions, resolution).locate(made._source.load())
    assert (cell >= 0).all()
    for _ in range(40):
        (y0, y1), (x0, x1) = (np.sort(draw.uniform(*sides, 2)) for sides in ((south, north), (west, east)))
        rectangle = surface.regions.shares(Rectangle.read((y0, x0), (y1, x1)))
        inside = (points[:, 0] >= y0) & (points[:, 0] <= y1) & (points[:, 1] >= x0) & (points[:, 1] <= x1)
        check_shares(rectangle, cell, inside, len(surface))
        circle = Circle.read(y0, x0, draw.uniform(50, 3000))
        y, x = np.radians(points - [circle.lat, circle.lon]).T
        far = (
            np.sin(y / 2) ** 2
            + np.cos(np.radians(points[:, 0])) * np.cos(np.radians(y0)) * np.sin(x / 2) ** 2
        )
        near = 2 * EARTH_KM * np.arcsin(np.sqrt(far)) <= circle.km
        check_shares(surface.regions.shares(circle), cell, near, len(surface))


def check_shares(shares, cell, inside, size):
    """Every point in an area lies in a region that it touches, and all points of a whole region are in it."""
    of = np.zeros(size)
    of[shares[0]] = shares[1]
    assert (of[cell[inside]] > 0).all()
    assert inside[of[cell] == 1].all()


@pytest.mark.parametrize("box", [((0, 0), (5e-324, 1)), ((1, 1), (2, 1.0000000000001)), ((1, 1), (1, 2))])
def test_a_box_without_extent_is_refused(box):
    with pytest.raises(TacitError, match="degrees high and wide"):
        sites(box=box)


@pytest.mark.parametrize("confidence", [1 - 1e-10, 1 - 1e-15, 1e-12])
def test_a_surface_is_readable_at_any_confidence(confidence):
    for plan in (
        sites().grid(2, 2).plan(epsilon=1, confidence=confidence),
        sites().adaptive_grid().plan(epsilon=1, confidence=confidence),
    ):
        surface = plan.release()
        assert surface.table["n"].low[0] <= surface.table["n"].high[0]
        assert str(surface)


def hostile_documents():
    """Saved surfaces in which one thing is wrong."""
    grid = sites().grid(2, 2).plan(epsilon=1).release().to_json()["content"]
    tree = sites().tree(depth=2).plan(epsilon=1).release().to_json()["content"]
    levels = sites().districts(DISTRICTS, parents="region").plan(epsilon=1).release().to_json()["content"]
    cells = sites().h3(2).plan(epsilon=1).release().to_json()["content"]
    adaptive = sites().adaptive_grid(points=9, cells=4).plan(epsilon=1).release().to_json()["content"]
    size = len(adaptive["counts"])
    point = {"type": "Point", "coordinates": [1, 1]}
    thin = {"type": "Polygon", "coordinates": [[[0, 0], [1, float("nan")], [1, 1], [0, 0]]]}
    return {
        "too many": (grid, ("noise", "laplace"), [[1.0, 10**15]]),
        "negative run": (grid, ("noise", "laplace"), [[1.0, -4]]),
        "two noises": (grid, ("noise", "normal"), [[1.0, 4]]),
        "a ring of parents": (levels, ("noise", "parents"), [4, 4, 5, 5, 5, 4]),
        "a region as parent": (levels, ("noise", "parents"), [1, 4, 5, 5, -1, -1]),
        "a parent that is not there": (levels, ("noise", "parents"), [4, 4, 5, 9, -1, -1]),
        "a point": (levels, ("regions", "polygons"), [point] * 4),
        "not finite": (levels, ("regions", "polygons"), [thin] * 4),
        "not a cell": (cells, ("regions", "names"), ["12"] * len(cells["counts"])),
        "a box inside out": (tree, ("regions", "boxes"), [[1, 1, 0, 0]] * len(tree["counts"])),
        "a box off the earth": (tree, ("regions", "boxes"), [[0, 0, 1, 1e300]] * len(tree["counts"])),
        "NaN measured": (adaptive, ("measured",), [float("nan")] * (2 * size)),
        "too few measured": (adaptive, ("measured",), [1.0] * size),
        "nothing measured": (adaptive, ("measured",), None),
    }


def test_a_hostile_surface_is_refused():
    for case, (given, path, wrong) in hostile_documents().items():
        document = json.loads(json.dumps(given))
        assert tc.maps.Surface.from_json(document).total
        inner = document
        for step in path[:-1]:
            inner = inner[step]
        inner[path[-1]] = wrong
        with pytest.raises(ValueError, match=r"^not "):
            pytest.fail(f"{case}: {tc.maps.Surface.from_json(document)}")


@pytest.mark.parametrize(
    "layer",
    [
        {"features": "many"},
        {"features": [{"properties": "x", "id": 1, "geometry": "y"}]},
        {"features": [{"properties": {"name": "a"}, "geometry": {"type": "Point"}}]},
        {"features": [{"properties": {"name": "a"}, "geometry": {"type": "Point", "coordinates": [1]}}]},
        {"features": [7]},
    ],
)
def test_a_malformed_layer_is_refused_with_a_code(layer):
    surface = sites().grid(2, 2).plan(epsilon=1).release()
    with pytest.raises(TacitError):
        surface.beside(layer, within_km=5)
    with pytest.raises(TacitError, match="within_km"):
        surface.beside([(1, 1)], within_km="near")
