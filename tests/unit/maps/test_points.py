"""Declaring points, planning surfaces, and what happens to bad rows."""

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from support.small_maps import BOX, DISTRICTS, declared, integers
from tacit import TacitError
from tacit.core import Limits
from tacit.fixes import Set
from tacit.maps._map_draft import count_regions

BUDGET = tc.Budget(epsilon=100, delta=1e-4)


def single(points, **more):
    return tc.points(np.asarray(points, dtype=float), unit=tc.Unit.row(), box=BOX, budget=BUDGET, **more)


def counts(question):
    return [one.tolist() for one in integers(question, 1)]


def test_points_on_borders_outside_and_nan():
    points = [[0, 0], [1, 1], [4, 4], [3.999, 0], [2, 4], [4.0001, 1], [-1, 1], [np.nan, 1], [1, np.inf]]
    assert counts(single(points).grid(2, 2)) == [[2, 0, 1, 2]]


def test_unreadable_cells_are_missing_and_rows_without_owner_do_not_count():
    rows = pd.DataFrame(
        {"u": ["a", "a", None, "b"], "lat": ["1", "x", "1", "3"], "lon": ["1", "1", "1", None]}
    )
    assert counts(declared(rows, {"rows": 5}).grid(1, 1)) == [[1]]


def test_masked_coordinates_are_missing():
    points = np.ma.masked_array([[1.0, 1.0], [1.0, 2.0]], mask=[[False, True], [False, False]])
    sites = tc.points(points, unit=tc.Unit.row(), box=BOX, budget=BUDGET)
    assert counts(sites.grid(1, 1)) == [[1]]


@pytest.mark.parametrize("kind", ["csv", "parquet", "polars", "arrow", "pandas"])
def test_every_source_gives_the_same_counts(kind, tmp_path):
    rows = pd.DataFrame({"u": [1, 1, 2], "lat": [0.5, 3.0, 1.0], "lon": [0.5, 3.0, 1.0]})
    source = rows
    if kind == "csv":
        source = tmp_path / "p.csv"
        rows.to_csv(source, index=False)
    if kind == "parquet":
        source = tmp_path / "p.parquet"
        rows.to_parquet(source)
    if kind == "polars":
        source = pytest.importorskip("polars").from_pandas(rows)
    if kind == "arrow":
        source = pytest.importorskip("pyarrow").Table.from_pandas(rows)
    assert counts(declared(source, {"rows": 5}).grid(2, 2)) == [[2, 0, 0, 1]]


def test_a_unit_of_two_columns():
    rows = pd.DataFrame({"u": [1, 1, 1], "day": [1, 1, 2], "lat": [1.0] * 3, "lon": [1.0] * 3})
    unit = tc.Unit("u", per="day")
    assert counts(declared(rows, {"rows": 1}, unit=unit).grid(1, 1)) == [[2]]


def test_a_missing_file_is_refused_before_the_charge(tmp_path):
    sites = tc.points(tmp_path / "none.csv", unit=tc.Unit.row(), box=BOX, budget=BUDGET)
    with pytest.raises(TacitError, match="does not exist"):
        sites.grid(2, 2).plan(epsilon=1).release()
    assert sites.remaining.epsilon == 100


@pytest.mark.parametrize(
    ("box", "words", "fix"),
    [
        (((132, -25), (136, -22)), "swapped", "box=((-25.0, 132.0), (-22.0, 136.0))"),
        (((-22, 132), (-25, 136)), "south-western", "box=((-25.0, 132.0), (-22.0, 136.0))"),
        (((0, 0), (0, 1)), "box must be", "degrees"),
        (((500_000, 0), (600_000, 1)), "box must be", "convert other coordinates"),
        ("Vienna", "box must be", "box="),
        (((0, 0), (float("nan"), 1)), "finite", "box="),
    ],
)
def test_a_wrong_box_is_refused_with_a_fix(box, words, fix):
    with pytest.raises(TacitError, match=words) as refused:
        tc.points(np.zeros((1, 2)), unit=tc.Unit.row(), box=box, budget=BUDGET)
    assert fix in str(refused.value.fix)


def test_swapped_columns_are_refused_by_their_names():
    with pytest.raises(TacitError, match="look swapped") as refused:
        tc.points(
            pd.DataFrame({"lat": [], "lng": []}), "lng", "lat", unit=tc.Unit.row(), box=BOX, budget=BUDGET
        )
    assert refused.value.fix == Set(lat="lat", lon="lng")


def test_districts_that_fit_only_if_swapped_are_refused():
    turned = {
        "features": [
            {
                "properties": {"name": "a"},
                "geometry": {"type": "Polygon", "coordinates": [[[60, 10], [61, 10], [61, 11], [60, 10]]]},
            }
        ]
    }
    sites = tc.points(np.zeros((1, 2)), unit=tc.Unit.row(), box=((59, 9), (62, 12)), budget=BUDGET)
    with pytest.raises(TacitError, match="swapped some do"):
        sites.districts(turned).plan(epsilon=1)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: single(np.zeros((3, 3))), "two columns"),
        (lambda: single(np.zeros((3, 2)), limits={"rows": 2}), "no limits"),
        (lambda: tc.points(np.zeros((1, 2)), unit="u", box=BOX, budget=BUDGET), "no column 'u'"),
        (lambda: tc.points(np.zeros((1, 2)), unit=tc.Unit.edge(), box=BOX, budget=BUDGET), "unit must be"),
        (lambda: single([[1, 1]]).grid(0, 2).plan(epsilon=1), "rows"),
        (lambda: single([[1, 1]]).grid(5000, 5000).plan(epsilon=1), "cells"),
        (lambda: single([[1, 1]]).grid(2, 2).plan(), "one of epsilon and rho"),
        (lambda: single([[1, 1]]).h3(16).plan(epsilon=1), "resolution"),
        (lambda: single([[1, 1]]).districts({"features": []}).plan(epsilon=1), "feature collection"),
        (lambda: single([[1, 1]]).districts(DISTRICTS, name="id").plan(epsilon=1), "no property 'id'"),
        (
            lambda: single([[1, 1]]).districts(DISTRICTS, parents=["country", "region"]).plan(epsilon=1),
            "two of",
        ),
        (lambda: declared(pd.DataFrame({"lat": [1.0], "lon": [1.0]}), {"rows": 1}), "no column 'u'"),
    ],
)
def test_refusals_before_any_charge(wrong, words):
    with pytest.raises(TacitError, match=words):
        wrong()


@pytest.mark.parametrize("wrong", [{"budget": None}, {"name": ""}, {"unit": "u", "limits": {"rows": 0}}])
def test_fixes_name_the_function_that_declares_points(wrong):
    with pytest.raises(TacitError) as refused:
        tc.points(np.zeros((1, 2)), **({"unit": tc.Unit.row(), "box": BOX, "budget": BUDGET} | wrong))
    assert str(refused.value.fix).startswith("tc.points(...")


def test_overlapping_polygons_are_refused():
    twice = {
        "features": [*DISTRICTS["features"], dict(DISTRICTS["features"][0], properties={"name": "again"})]
    }
    with pytest.raises(TacitError, match="overlap"):
        single([[1, 1]]).districts(twice).plan(epsilon=1)


def test_a_point_on_a_border_belongs_to_the_first_polygon():
    question = single([[2, 2], [1, 2], [3, 3], [2, 4]]).districts(DISTRICTS)
    assert counts(question) == [[2, 0, 1, 1]]  # 00, 02, 20, 22: corner and side go to 00


def test_levels_add_up_exactly_and_consistently():
    sites = single(np.random.default_rng(1).uniform(0, 4, (500, 2)))
    question = sites.districts(DISTRICTS, parents=["region", "country"])
    small, regions, [country] = counts(question)
    assert [small[0] + small[1], small[2] + small[3]] == regions
    assert sum(regions) == country == 500
    plan = question.plan(epsilon=1)
    surface = plan.release()
    assert sum(surface.level("region")["n"].value) == pytest.approx(surface.total.value)
    assert float(plan.cost.epsilon(delta=0)) == pytest.approx(1)


@pytest.mark.parametrize(
    "ask",
    [
        lambda m: m.grid(3, 5).plan(epsilon=0.5),
        lambda m: m.grid(3, 5).plan(rho=0.5, confidence=0.9),
        lambda m: m.grid(3, 5).plan(epsilon=1, delta=1e-6),
        lambda m: m.districts(DISTRICTS).plan(epsilon=1),
        lambda m: m.districts(DISTRICTS, parents=["region", "country"]).plan(rho=1),
        lambda m: m.h3(2).plan(epsilon=1),
        lambda m: m.h3(3, coarsest=2).plan(epsilon=1),
    ],
)
def test_a_plan_survives_json_and_its_text_says_what_counts(ask, tmp_path):
    sites = single([[1, 1], [3, 3]])
    plan = ask(sites)
    assert sites.plan_from(plan.to_json()) == plan
    assert "points outside it" in str(plan)
    release = plan.release()
    release.save(tmp_path / "r.json")
    loaded = tc.Release.load(tmp_path / "r.json")
    assert loaded.counts.tolist() == release.counts.tolist()
    assert loaded.rectangle((0, 0), (4, 4)).to_json() == release.rectangle((0, 0), (4, 4)).to_json()
    assert loaded.text() == release.text()


def test_other_data_give_the_same_plan():
    plans = [
        single(points).h3(3, coarsest=2).plan(epsilon=1) for points in ([[1, 1]], np.full((50, 2), np.nan))
    ]
    assert plans[0] == plans[1]
    assert str(plans[0]) == str(plans[1])


def test_h3_cells_cover_every_point_of_the_box():
    draw = np.random.default_rng(2)
    points = np.concatenate([draw.uniform(0, 4, (3000, 2)), [[0, 0], [4, 4], [0, 4], [4, 0]]])
    for question in (single(points).h3(4), single(points).h3(5, coarsest=3)):
        for level in counts(question):
            assert sum(level) == len(points)


def test_the_grid_is_a_function_of_the_point_alone():
    draw = np.random.default_rng(3)
    points = draw.uniform(0, 4, (999, 2))
    box = tc.maps.Box.read(BOX)
    together = box.cells(*points.T, rows=7, columns=9)
    alone = [int(box.cells([y], [x], rows=7, columns=9)[0]) for y, x in points]
    assert together.tolist() == alone


def test_which_place_is_kept_differs_from_person_to_person():
    """All people visit the same two places: neither may vanish from the map."""
    people = np.arange(400)
    rows = pd.DataFrame({"u": np.repeat(people, 2), "lat": [1.0, 3.0] * 400, "lon": [1.0, 3.0] * 400})
    for limits in ({"rows": 1}, {"rows": 2, "groups": 1}):
        [[south, _, _, north]] = counts(declared(rows, limits).grid(2, 2))
        assert south + north == 400
        assert min(south, north) > 130


def test_the_regions_that_count_are_those_with_the_lowest_ranks_of_a_unit():
    draw = np.random.default_rng(8)
    rows = pd.DataFrame({"u": draw.integers(0, 9, 200), "lat": draw.uniform(0, 3.9, 200), "lon": 1.0})
    rows["lat"] = rows["lat"].round(1)  # below 4, so that region 7 is the last
    source = declared(rows, {"rows": 12, "groups": 2, "per_group": 2})._source
    points = source.load()
    expected = np.zeros(8, dtype=int)
    for owner in np.unique(points.owner):
        mine = np.flatnonzero(points.owner == owner)
        cells = [int(points.lat[i] * 2) for i in sorted(mine, key=lambda i: points.rank[i])]
        for cell in list(dict.fromkeys(cells))[:2]:
            expected[cell] += min(cells.count(cell), 2)
    region = (points.lat * 2).astype(np.int64)
    assert count_regions(points, region, 8, Limits(rows=12, groups=2, per_group=2)).tolist() == list(expected)


def test_a_certificate_names_mechanisms_without_a_statistic():
    rows = pd.DataFrame({"lat": [1.0], "lon": [1.0]})
    sites = tc.points(rows, "lat", "lon", unit=tc.Unit.row(), box=BOX, budget=BUDGET)
    page = str(sites.grid(2, 2).plan(epsilon=1).release().certificate)
    assert "discrete-laplace" in page
    assert "None" not in page


def test_the_picture_says_which_dataset_it_shows_and_what_it_cost():
    rows = pd.DataFrame({"lat": [1.0], "lon": [1.0]})
    sites = tc.points(rows, "lat", "lon", unit=tc.Unit.row(), box=BOX, budget=BUDGET, name="sites")
    drawn = sites.grid(2, 2).plan(epsilon=1).release().plot()
    assert "sites: points in 2 x 2 cells, epsilon 1" in drawn.axes[0].get_title(loc="left")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            lambda m: m.grid(3, 5, rho=0.5, confidence=0.9),
            lambda m: m.grid(3, 5).plan(rho=0.5, confidence=0.9),
        ),
        (lambda m: m.tree(epsilon=1, depth=3), lambda m: m.tree(depth=3).plan(epsilon=1)),
        (lambda m: m.hottest(2, epsilon=1), lambda m: m.hottest(2).plan(epsilon=1)),
        (lambda m: m.h3(3, coarsest=2, epsilon=1), lambda m: m.h3(3, coarsest=2).plan(epsilon=1)),
    ],
    ids=["grid", "tree", "hottest", "h3"],
)
def test_a_question_with_a_cost_warns_and_gives_the_same_plan(old, new):
    sites = single([[1, 1], [3, 3]])
    with pytest.warns(DeprecationWarning, match=r"\.plan\(.*=.*\)"):
        plan = old(sites)
    assert plan == new(sites)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda m: m.grid(2, 3), "Count points in the cells of a grid (rows 2, columns 3)"),
        (lambda m: m.districts(DISTRICTS), "Count points in public polygons (districts 4 polygons)"),
        (lambda m: m.hottest(2), "Name the cells with the most units (k 2, cells (64, 64))"),
    ],
    ids=["grid", "districts", "hottest"],
)
def test_a_question_says_what_it_asks(ask, words):
    assert ask(single([[1, 1]])).words == words


@pytest.mark.parametrize(
    ("ask", "wrong"),
    [
        (lambda m: m.grid(2, 2), {"hottest": 1, "cells": [2, 2]}),
        (lambda m: m.grid(2, 2), {"grid": [2]}),
        (lambda m: m.tree(), {"tree": 20, "share": "1/2"}),
        (lambda m: m.tree(), {"tree": 4, "share": "1e999999"}),
        (lambda m: m.districts(DISTRICTS), {"districts": "/etc/passwd"}),
        (lambda m: m.hottest(1), {"ask": "grid", "given": {"rows": 2, "columns": 2}}),
    ],
)
def test_a_changed_request_is_refused(ask, wrong):
    sites = single([[1, 1]])
    document = ask(sites).plan(epsilon=1).to_json()
    request = wrong | {"goal": document["request"]["goal"]}
    with pytest.raises(TacitError) as refused:
        sites.plan_from(document | {"request": request})
    assert refused.value.code == "plan-differs"
