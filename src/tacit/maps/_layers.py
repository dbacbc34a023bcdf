"""Public layers beside a surface: ranges of a species, roads, stations; what a question reads from them."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tacit.core import needs
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Choose, Say
from tacit.maps._areas import EARTH_KM, Circle, PolygonArea, as_geometry, read_geojson
from tacit.parameters import RealNumber

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.maps._areas import Area


def read_layer(layer: object, name: str, within_km: float) -> tuple[tuple[str, ...], Sequence[Area]]:
    """Return the names of a layer's places and the area of each."""
    RealNumber(least=0, most=5000, instead=5).read("within_km", within_km)
    document: Any = layer
    if isinstance(layer, str | os.PathLike):
        document = read_geojson("layer", layer)
    if isinstance(document, Mapping):
        features = document.get("features") if "features" in document else [document]
        given = features if isinstance(features, list | tuple) else ()
        found = [_place(feature, name, within_km) for feature in given]
    else:
        try:
            found = [_place(_point(lat, lon, i), name, within_km) for i, (lat, lon) in enumerate(document, 1)]
        except (TypeError, ValueError):
            raise bad_parameter("layer", "GeoJSON, or pairs of latitude and longitude", layer,
                                fix=Say("give a list of pairs")) from None  # fmt: skip
    if not found:
        raise bad_parameter("layer", "at least one place", layer, fix=Say("give a layer with features"))
    return tuple(one.name for one in found), [one.area for one in found]


@dataclass(frozen=True, slots=True)
class _Place:
    name: str
    area: Area


def _point(lat: float, lon: float, number: int) -> dict[str, Any]:
    return {"id": number, "geometry": {"type": "Point", "coordinates": [float(lon), float(lat)]}}


def _place(feature: Any, name: str, km: float) -> _Place:
    given = feature.get("properties") if isinstance(feature, Mapping) else None
    properties = dict(given) if isinstance(given, Mapping) else {}
    called = properties.get(name, feature.get("id") if isinstance(feature, Mapping) else None)
    if called is None:
        raise TacitError(
            "unknown-column", f"a feature of the layer has no property {name!r}",
            fix=Choose(tuple(map(str, properties)), given=str(name)),
        )  # fmt: skip
    shape = feature.get("geometry") or {}
    if isinstance(shape, Mapping) and shape.get("type") == "Point":
        RealNumber(above=0, why="the layer has points", instead=5).read("within_km", km)
        try:
            lon, lat = shape["coordinates"][:2]
        except (KeyError, TypeError, ValueError):
            raise bad_parameter(
                "layer", "points with a longitude and a latitude", shape, fix=Say("check the features")
            ) from None
        return _Place(str(called), Circle.read(lat, lon, km))
    drawn = as_geometry(shape)
    return _Place(str(called), PolygonArea(_widened(drawn, km) if km else drawn))


def _widened(shape: Any, km: float) -> Any:
    """Return a polygon with what lies near it, degrees of longitude stretched by the middle latitude."""
    needs("beside", "shapely", "tacit[maps]")
    from shapely.affinity import scale

    middle = (shape.bounds[1] + shape.bounds[3]) / 2
    wide = max(math.cos(math.radians(middle)), 0.05)
    flat = scale(shape, xfact=wide, origin=(0, 0))
    return scale(flat.buffer(math.degrees(km / EARTH_KM)), xfact=1 / wide, origin=(0, 0))
