"""Public regions as people give them: districts from GeoJSON, or the H3 cells that cover a box."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.core import needs
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Choose, Code, Say, Set
from tacit.maps._areas import EARTH_KM, as_geometry, read_geojson, wrong_polygons
from tacit.maps._regions import PolygonRegions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.maps._areas import Box

_OVERLAP = 1e-6  # of the smaller polygon; less is a border that was drawn twice
_MAX_CELLS = 2**20
#: Columns that every file of a surface has; a level of this name would hide one or be hidden.
_RESERVED_COLUMNS = frozenset(
    {"n", "low", "high", "n_low", "n_high", "geometry", "south", "west", "north", "east"}
)
_COLLECTION = Code('sites.districts("districts.geojson", name="name")')


def read_districts(
    districts: object, name: str, parents: str | Sequence[str] | None, box: Box
) -> PolygonRegions:
    """Read public polygons from GeoJSON, or refuse what is wrong in them."""
    needs("districts", "shapely", "tacit[maps]")
    features = _features(districts)
    levels = (parents,) if isinstance(parents, str) else tuple(parents or ())
    for level in levels:
        if level in _RESERVED_COLUMNS or level == name or levels.count(level) > 1:
            raise bad_parameter(
                "parents", "properties other than the name, each once, that no column of the answer has",
                level, fix=Say("rename the property in the polygons"),
            )  # fmt: skip
    names = _property(features, name)
    if len(set(names)) != len(names):
        twice = next(one for one in names if names.count(one) > 1)
        fix = Say("join them to one MultiPolygon, or rename one")
        raise wrong_polygons(
            f"two polygons have the name {twice!r}", "each name is one line of the answer", fix
        )
    shapes = [as_geometry(feature.get("geometry")) for feature in features]
    larger = {level: _property(features, level) for level in levels}
    _check_nested([names, *larger.values()], [name, *levels])
    plain = tuple(json.loads(json.dumps(one.__geo_interface__)) for one in shapes)  # lists, as in a file
    regions = PolygonRegions(names, plain, "polygons", larger)
    _check_place(regions, box)
    _check_overlaps(regions)
    return regions


def regions_of_request(request: Mapping[str, Any], box: Box) -> PolygonRegions:
    """Read the polygons in the request of a plan, and check them as if they were new."""
    regions = PolygonRegions.read_document(request["districts"])
    levels = tuple(
        map(str, request.get("levels") or regions.larger)
    )  # a document may lose the order of its keys
    name_key = next(iter(regions.keys))  # a word that no level has
    features = [
        {"properties": {name_key: name, **{level: regions.larger[level][i] for level in levels}},
         "geometry": regions.polygons[i]}
        for i, name in enumerate(regions.names)
    ]  # fmt: skip
    return read_districts({"features": features}, name_key, levels, box)


def _features(districts: object) -> list[dict[str, Any]]:
    document: Any = districts
    if isinstance(districts, str | os.PathLike):
        document = read_geojson("districts", districts)
    features = document.get("features") if isinstance(document, Mapping) else None
    if not isinstance(features, list) or not features or not all(isinstance(f, Mapping) for f in features):
        raise bad_parameter(
            "districts", "a GeoJSON feature collection", type(document).__name__, fix=_COLLECTION
        )
    return [dict(feature) for feature in features]


def _property(features: list[dict[str, Any]], name: str) -> tuple[str, ...]:
    """Return one property of all features as text."""
    listed_properties = [feature.get("properties") for feature in features]
    properties = [dict(one) if isinstance(one, Mapping) else {} for one in listed_properties]
    if any(one.get(name) is None for one in properties):
        raise TacitError(
            "unknown-column", f"a polygon has no property {name!r}",
            why="every polygon needs a name", fix=Choose(tuple(map(str, properties[0])), given=str(name)),
        )  # fmt: skip
    return tuple(str(one[name]) for one in properties)


def _check_nested(levels: list[tuple[str, ...]], names: list[str]) -> None:
    """Refuse larger regions that are not inside one region of the next level."""
    for (below, lower), (above, upper) in pairwise(zip(levels, names, strict=True)):
        parents: dict[str, str] = {}
        for small, large in zip(below, above, strict=True):
            if parents.setdefault(small, large) != large:
                raise wrong_polygons(
                    f"the {lower} {small!r} lies in two of {upper!r}",
                    "in a hierarchy each region is part of one larger region",
                    Say("name the levels from the smallest to the largest"),
                )


def _check_place(regions: PolygonRegions, box: Box) -> None:
    """Refuse polygons of which none is in the box; say so if swapping latitude and longitude would help."""
    s, w, n, e = regions.boxes.T
    for turn in (0, 360) if box.crosses else (0,):
        if ((n > box.south) & (s < box.north) & (e + turn > box.west) & (w + turn < box.east)).any():
            return
    swapped = ((e > box.south) & (w < box.north) & (n > box.west) & (s < box.east)).any()
    raise wrong_polygons(
        "no polygon lies in the box"
        + (", but with latitude and longitude swapped some do" if swapped else ""),
        "GeoJSON writes the longitude first; the box has the latitude first",
        Set(box=((box.west, box.south), (box.east, box.north))) if swapped else Say("check the box"),
    )


def _check_overlaps(regions: PolygonRegions) -> None:
    """Refuse polygons that overlap: a point counts in one of them only, so the other would be wrong."""
    import shapely

    shapes = regions.shapes
    smaller_index, larger_index = shapely.STRtree(shapes).query(shapes, predicate="intersects")
    smaller_index, larger_index = (
        smaller_index[smaller_index < larger_index],
        larger_index[smaller_index < larger_index],
    )
    shared = shapely.area(shapely.intersection(shapes[smaller_index], shapes[larger_index]))
    smaller = np.minimum(shapely.area(shapes[smaller_index]), shapely.area(shapes[larger_index]))
    overlapping = np.flatnonzero(shared > _OVERLAP * smaller)
    if len(overlapping):
        first_name, second_name = (regions.names[i[overlapping[0]]] for i in (smaller_index, larger_index))
        raise wrong_polygons(
            f"the polygons {first_name!r} and {second_name!r} overlap",
            "a point counts in one region only, so the count of the other would be too small",
            Say("give polygons that only share borders; use parents for larger regions"),
        )


def cells_over(box: Box, resolution: int, coarsest: int) -> PolygonRegions:
    """Return the H3 cells that touch a box, in the order of their numbers, with parents by index."""
    needs("H3 cells", "h3", "tacit[maps]")
    needs("H3 cells", "shapely", "tacit[maps]")
    import shapely
    from h3.api import basic_int

    average = basic_int.average_hexagon_area(resolution, unit="km^2") / EARTH_KM**2
    south, north = np.radians([box.south, box.north])
    about = np.radians(box.east - box.west) * (np.sin(north) - np.sin(south)) / average
    if about > _MAX_CELLS:
        raise TacitError(
            "question-too-large", f"about {about:,.0f} H3 cells cover the box",
            why=f"a surface has at most {_MAX_CELLS:,} of them", fix=Set(resolution=max(resolution - 1, 0)),
        )  # fmt: skip
    covering = {cell for part in box.parts for tile in _tiles(part) for cell in _cells_in(tile, resolution)}
    cells = sorted(covering)
    larger = {
        f"resolution {level}": tuple(format(basic_int.cell_to_parent(cell, level), "x") for cell in cells)
        for level in range(resolution - 1, coarsest - 1, -1)
    }
    regions = PolygonRegions.of_cells(cells, larger)
    outline = shapely.union_all([shapely.box(p.west, p.south, p.east, p.north) for p in box.parts])
    touching = np.flatnonzero(shapely.distance(outline, regions.shapes) <= regions.margins)
    return PolygonRegions.of_cells(
        [cells[i] for i in touching], {name: tuple(v[i] for i in touching) for name, v in larger.items()}
    )


def _tiles(box: Box) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Cut a box into tiles of at most 45 degrees: the library takes wider ones for their complements."""
    rows, columns = (max(1, math.ceil(side / 45)) for side in (box.north - box.south, box.east - box.west))
    lat, lon = box.edges(8 * rows, 8 * columns)
    return [
        (lat[8 * i : 8 * i + 9], lon[8 * j : 8 * j + 9]) for i in range(rows) for j in range(columns)
    ]  # fmt: skip


def _cells_in(tile: tuple[NDArray[np.float64], NDArray[np.float64]], resolution: int) -> set[int]:
    """Return the cells whose centres are in a tile, those on its border, and one ring around them."""
    from h3.api import basic_int

    lat, lon = (side.tolist() for side in tile)
    ring = [(y, lon[0]) for y in lat] + [(lat[-1], x) for x in lon[1:]]
    ring += [(y, lon[-1]) for y in lat[::-1][1:]] + [(lat[0], x) for x in lon[::-1][1:-1]]
    cells = set(basic_int.polygon_to_cells(basic_int.LatLngPoly(ring), resolution))
    cells |= {basic_int.latlng_to_cell(y, x, resolution) for y, x in ring}
    return {near for cell in cells for near in basic_int.grid_disk(cell, 1)}


def codes_of(regions: PolygonRegions) -> tuple[NDArray[np.int64], ...]:
    """Return for each level above the number of the larger region of each region."""
    return tuple(
        np.unique(values, return_inverse=True)[1].astype(np.int64) for values in regions.larger.values()
    )


def parents_of(regions: int, codes: Sequence[NDArray[np.int64]]) -> NDArray[np.int64] | None:
    """Return the parent of each measurement: regions first, then one level after the other."""
    if not codes:
        return None
    parent_codes, start = np.arange(regions), 0
    parts = []
    for code in codes:
        size = int(parent_codes.max()) + 1
        up = np.full(size, -1, dtype=np.int64)
        up[parent_codes] = start + size + code
        parts.append(up)
        start, parent_codes = start + size, code
    return np.concatenate([*parts, np.full(int(parent_codes.max()) + 1, -1, dtype=np.int64)])


def digest_of_regions(regions: PolygonRegions) -> str:
    """Return a digest of names, borders and levels, for the identity of a plan."""
    text = json.dumps(regions.to_json(), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
