"""Files of a surface: what each format holds, and that each carries the facts of its release."""

import csv
import json

import numpy as np
import pytest

import tacit as tc


@pytest.fixture(scope="module", params=["grid", "tree", "districts"])
def release(request):
    sites = tc.points(
        tc.maps.example_sites(), "lat", "lon", unit=tc.Unit.row(), name="sites", box=tc.maps.EXAMPLE_BOX,
        budget=tc.Budget(epsilon=3),
    )  # fmt: skip
    return {
        "grid": lambda: sites.grid(6, 5).plan(epsilon=1),
        "tree": lambda: sites.tree(depth=4).plan(epsilon=1),
        "districts": lambda: sites.districts(tc.maps.example_districts()).plan(epsilon=1),
    }[request.param]().release()


def check(facts, release):
    assert facts["dataset"] == "sites"
    assert facts["unit"] == "row"
    assert facts["promised"] == {"epsilon": "1"}
    assert facts["plan"] == release.certificate.plan


def test_geojson_has_every_region_with_its_interval(release, tmp_path):
    release.to_geojson(tmp_path / "map.geojson")
    document = json.loads((tmp_path / "map.geojson").read_text())
    check(document["tacit"], release)
    assert len(document["features"]) == len(release.counts)
    values = [one["properties"] for one in document["features"]]
    assert np.array([one["n"] for one in values]) == pytest.approx(release.counts)
    assert all(one["low"] <= one["n"] <= one["high"] for one in values)
    assert document["features"][0]["geometry"]["type"] in {"Polygon", "MultiPolygon"}


def test_parquet_is_geoparquet(release, tmp_path):
    shapely = pytest.importorskip("shapely")
    parquet = pytest.importorskip("pyarrow.parquet")
    release.to_parquet(tmp_path / "map.parquet")
    table = parquet.read_table(tmp_path / "map.parquet")
    geo = json.loads(table.schema.metadata[b"geo"])
    assert geo["columns"][geo["primary_column"]]["encoding"] == "WKB"
    check(json.loads(table.schema.metadata[b"tacit"]), release)
    assert table["n"].to_numpy() == pytest.approx(release.counts)
    shapes = [shapely.from_wkb(one.as_py()) for one in table["geometry"]]
    expected = [shapely.geometry.shape(one) for one in release.regions.outlines()]
    assert all(a.equals(b) for a, b in zip(shapes, expected, strict=True))


def test_csv_has_its_facts_beside_it(release, tmp_path):
    release.to_csv(tmp_path / "map.csv")
    lines = list(csv.DictReader((tmp_path / "map.csv").read_text().splitlines()))
    assert len(lines) == len(release.counts)
    assert {"n", "n_low", "n_high"} <= set(lines[0])
    check(json.loads((tmp_path / "map.csv-metadata.json").read_text())["tacit"], release)


def test_the_picture_carries_its_facts(release, tmp_path):
    image = pytest.importorskip("PIL.Image")
    release.to_png(tmp_path / "map.png")
    with image.open(tmp_path / "map.png") as opened:
        check(json.loads(opened.text["Description"]), release)
        assert min(opened.size) > 200


def test_a_surface_without_a_certificate_says_what_it_knows(release):
    document = release.content.to_geojson()
    assert document["tacit"] == {"confidence": 0.95, "notes": list(release.notes)}
