"""Boxes and areas: the public rectangle in which points count, and what a surface is asked about.

Areas are rectangles, circles and polygons, with the share of a box that they cover. They also come from
public layers beside a surface: ranges of a species, roads, stations.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias

import numpy as np

from tacit.core import needs
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Choose, Code, Either, Say, Set
from tacit.parameters import RealNumber, refuse_auto

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tacit.core import JSON
    from tacit.fixes import Fix


#: A place: latitude, then longitude.
LatLon: TypeAlias = tuple[float, float]
#: A box as people write it: the south-western corner, then the north-eastern one. Across the 180th meridian
#: the eastern longitude lies above 180.
BoxGiven: TypeAlias = tuple[LatLon, LatLon]

_FORM = "((south, west), (north, east)) in degrees"
#: The least side in degrees, about a decimetre: the borders of the finest grids still differ as floats.
_MIN_SIDE = 1e-6
_EXAMPLE = Set(box=((46.3, 9.5), (49.1, 17.2)))
#: The mean radius of the earth.
EARTH_KM = 6371.0088
#: Borders that agree within this share of a region are the same border.
SAME = 1e-9
_SAMPLES = 8  # points along each side of a cut box, for the share of a circle
_POLYGON = Say("give a geometry of the type Polygon or MultiPolygon")


@dataclass(frozen=True, slots=True)
class Box:
    """A public rectangle of latitudes and longitudes, in degrees. Points outside it do not count.

    Across the 180th meridian the eastern side lies above 180, as in 165 to 190. A longitude below the western
    side is then read as the same place one turn further east: -170 as 190.

    Examples
    --------
    >>> box = Box.read(((46, 9), (49, 17)))
    >>> box.south, box.east
    (46.0, 17.0)
    >>> box.cells([46.1, 49, 45.9], [9, 17, 10], rows=3, columns=8).tolist()   # -1 is outside
    [0, 23, -1]
    >>> Box.read(((-22, 165), (-12, 190))).inside([-15, -15, -15], [179, -171, 189]).tolist()
    [True, True, True]
    """

    south: float
    west: float
    north: float
    east: float

    @classmethod
    def read(cls, given: object, *, name: str = "box") -> Self:
        """Read a box, or refuse with what is wrong in it; one that looks swapped is named as such."""
        if isinstance(given, cls):
            return given
        refuse_auto("a map", given, Set(**{name: ((45.8, 5.9), (47.9, 10.6))}))
        try:
            (south, west), (north, east) = (tuple(map(float, corner)) for corner in given)  # type: ignore[attr-defined]
        except (TypeError, ValueError, OverflowError):
            south = west = north = east = math.nan
        if not _fits(south, west, north, east):
            raise _refusal(name, given, south, west, north, east)
        return cls(south, west, north, east)

    @property
    def corners(self) -> BoxGiven:
        """The south-western corner and the north-eastern one."""
        return (self.south, self.west), (self.north, self.east)

    @property
    def crosses(self) -> bool:
        """Whether the box crosses the 180th meridian."""
        return self.east > 180

    @property
    def parts(self) -> tuple[Box, ...]:
        """The box between the longitudes -180 and 180: in two parts if it crosses the 180th meridian."""
        if not self.crosses:
            return (self,)
        halves = (
            Box(self.south, self.west, self.north, 180.0),
            Box(self.south, -180.0, self.north, self.east - 360),
        )
        return tuple(part for part in halves if part.east - part.west >= _MIN_SIDE)

    def unwrapped(self, lon: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return longitudes as the box counts them: of a box that crosses 180, from its western side on."""
        if not self.crosses:
            return lon
        with np.errstate(invalid="ignore"):
            return np.where(lon < self.west, lon + 360, lon)

    def inside(
        self, lat: NDArray[np.float64] | Sequence[float], lon: NDArray[np.float64] | Sequence[float]
    ) -> NDArray[np.bool_]:
        """Return which points lie in the box or on its border; NaN lies outside."""
        y, x = np.asarray(lat, dtype=np.float64), self.unwrapped(np.asarray(lon, dtype=np.float64))
        with np.errstate(invalid="ignore"):
            return (y >= self.south) & (y <= self.north) & (x >= self.west) & (x <= self.east)

    def cells(
        self, lat: NDArray[np.float64] | Sequence[float], lon: NDArray[np.float64] | Sequence[float],
        *, rows: int, columns: int,
    ) -> NDArray[np.int64]:  # fmt: skip
        """Return the cell of each point in a grid, row by row from the south-west; -1 outside the box.

        The cell is a function of the point alone. Points on the northern and eastern border of the box
        belong to the last row and column.
        """
        y, x = np.asarray(lat, dtype=np.float64), np.asarray(lon, dtype=np.float64)
        within = self.inside(y, x)
        x = self.unwrapped(x)
        with np.errstate(invalid="ignore", over="ignore"):
            row = np.minimum((y - self.south) * (rows / (self.north - self.south)), rows - 1)
            column = np.minimum((x - self.west) * (columns / (self.east - self.west)), columns - 1)
            codes = np.where(within, row, 0).astype(np.int64) * columns
            codes += np.where(within, column, 0).astype(np.int64)
        codes[~within] = -1
        return codes

    def edges(self, rows: int, columns: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the latitudes and longitudes at which the cells of a grid meet, the border included."""
        lat = self.south + (self.north - self.south) * np.arange(rows + 1) / rows
        lon = self.west + (self.east - self.west) * np.arange(columns + 1) / columns
        lat[-1], lon[-1] = self.north, self.east
        return lat, lon

    def to_json(self) -> JSON:
        """Return the four sides."""
        return [self.south, self.west, self.north, self.east]

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Read the box back; raises ``ValueError`` where it is not one."""
        south, west, north, east = map(float, document)
        if not _fits(south, west, north, east):
            raise ValueError("not a box")
        return cls(south, west, north, east)


def _fits(south: float, west: float, north: float, east: float) -> bool:
    ordered = -90 <= south < north <= 90 and -180 <= west <= 180 and west < east <= west + 360
    return ordered and min(north - south, east - west) >= _MIN_SIDE


def _refusal(name: str, corners: object, south: float, west: float, north: float, east: float) -> TacitError:
    """Say what is wrong with four numbers that are not a box."""
    must_be, why = _FORM, ""
    fix: Fix = Say("give the corners in degrees")
    swapped = ((west, south), (east, north))
    if _fits(west, south, east, north):
        return TacitError(
            "bad-parameter",
            f"the {name} has latitude and longitude swapped",
            why=f"latitudes lie between -90 and 90, and the {name} must be {_FORM}",
            fix=Set(box=swapped),
        )
    if not all(map(math.isfinite, (south, west, north, east))):
        must_be, fix = f"{_FORM}, finite numbers", _EXAMPLE
    elif (
        _fits(north, west, south, east) or _fits(south, east, north, west) or _fits(north, east, south, west)
    ):
        low, high = min(south, north), max(south, north)
        ordered = Set(box=((low, min(west, east)), (high, max(west, east))))
        across = west > east >= -180
        must_be = "the south-western corner, then the north-eastern corner"
        why = f"a {name} that crosses the 180th meridian has its eastern side above 180" if across else ""
        fix = Either(ordered, Set(box=((low, west), (high, east + 360)))) if across else ordered
    elif abs(north - south) < _MIN_SIDE or abs(east - west) < _MIN_SIDE:
        must_be = f"{_FORM}, at least {_MIN_SIDE:g} degrees high and wide"
    else:
        why = (
            f"latitudes lie between -90 and 90, and longitudes between -180 and 180; the eastern side of a "
            f"{name} that crosses the 180th meridian lies above 180"
        )
        fix = Say("give the corners in degrees; convert other coordinates first")
    return bad_parameter(name, must_be, corners, why=why, fix=fix)


class Area(Protocol):
    """A part of the map."""

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """South, west, north and east of the area."""

    def box_shares(self, boxes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the share of each box (south, west, north, east) that the area covers; exact at 0 and 1."""

    def geometry(self, margin: float = 0.0) -> Any:
        """Return the area as a shapely geometry in degrees, x for longitude.

        An area that is only drawn approximately is made smaller or larger by the margin, a share of its size.
        """


@dataclass(frozen=True, slots=True)
class Rectangle:
    """A rectangle of latitudes and longitudes."""

    box: Box

    @classmethod
    def read(cls, corner: object, opposite: object) -> Rectangle:
        """Read two opposite corners."""
        try:
            corners = (_west_of_180(corner, opposite, corner), _west_of_180(corner, opposite, opposite))
            return cls(Box.read(corners, name="rectangle"))
        except TacitError as refusal:
            fix = refusal.fix
            if isinstance(fix, Either):
                fix = Either(*map(_as_rectangle, fix.fixes))
            elif fix is not None:
                fix = _as_rectangle(fix)
            raise refusal.but(fix=fix) from None

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """South, west, north and east."""
        return self.box.south, self.box.west, self.box.north, self.box.east

    def box_shares(self, boxes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the share of each box that lies inside, borders that agree taken as the same."""
        south, west, north, east = boxes.T
        height = np.minimum(north, self.box.north) - np.maximum(south, self.box.south)
        width = np.minimum(east, self.box.east) - np.maximum(west, self.box.west)
        return exact_ends(height / (north - south)) * exact_ends(width / (east - west))

    def geometry(self, margin: float = 0.0) -> Any:
        """Return the rectangle as a polygon."""
        del margin
        from shapely import box, union_all

        parts = [box(part.west, part.south, part.east, part.north) for part in self.box.parts]
        return parts[0] if len(parts) == 1 else union_all(parts)


def _west_of_180(corner: Any, opposite: Any, point: Any) -> Any:
    """Return a corner; one turn less if the whole rectangle lies east of the 180th meridian."""
    try:
        return (point[0], point[1] - 360) if 180 < min(corner[1], opposite[1]) <= 540 else point
    except (TypeError, IndexError, KeyError):
        return point  # `Box.read` says what is wrong


def _as_rectangle(fix: Fix) -> Fix:
    """Write the advice for a box as advice for a rectangle."""
    if isinstance(fix, Set) and "box" in fix.values:
        return Code("surface.rectangle({}, {})".format(*fix.values["box"]))  # type: ignore[misc]
    return fix


@dataclass(frozen=True, slots=True)
class Circle:
    """All places within some kilometres of one place, along the surface of the earth."""

    lat: float
    lon: float
    km: float

    @classmethod
    def read(cls, lat: object, lon: object, km: object) -> Circle:
        """Read a circle, or refuse it."""
        y = x = r = math.nan
        with suppress(TypeError, ValueError, OverflowError):
            y, x, r = float(lat), float(lon), float(km)  # type: ignore[arg-type]
        x = x - 360 if 180 < x <= 360 else x  # as on a map that crosses the 180th meridian
        if not (-90 <= y <= 90 and -180 <= x <= 180):
            swapped = -90 <= x <= 90 and -180 <= y <= 180
            fix = (
                Say("give the latitude first") if swapped else Say("give both in degrees, and km as a number")
            )
            must_be = "a latitude, then a longitude, and a radius in kilometres"
            raise bad_parameter("a circle", must_be, (lat, lon, km), fix=fix)
        RealNumber(above=0, most=5000, instead=5).read("km", r)
        return cls(y, x, r)

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """South, west, north and east; all longitudes if a pole is inside."""
        reach = math.degrees(self.km / EARTH_KM)
        south, north = self.lat - reach, self.lat + reach
        if south <= -90 or north >= 90:
            return max(south, -90), -180, min(north, 90), 180
        sine = math.sin(math.radians(reach)) / math.cos(math.radians(self.lat))
        across = math.degrees(math.asin(min(1.0, sine)))
        if self.lon - across < -180 or self.lon + across > 180:
            return south, -180, north, 180
        return south, self.lon - across, north, self.lon + across

    def box_shares(self, boxes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the share of each box inside: 0 and 1 from distances, those between from sampled points."""
        limit = math.sin(min(self.km / EARTH_KM, math.pi) / 2) ** 2
        nearest, farthest = self._nearest_and_farthest(boxes)
        shares = np.where(farthest <= limit, 1.0, 0.0)
        cut = (nearest < limit) & (farthest > limit)
        if cut.any():
            steps = (np.arange(_SAMPLES) + 0.5) / _SAMPLES
            south, west, north, east = (side[:, None, None] for side in boxes[cut].T)
            lat = south + (north - south) * steps[None, :, None]
            lon = west + (east - west) * steps[None, None, :]
            share = (self._haversine(lat, np.abs(lon - self.lon)) <= limit).mean(axis=(1, 2))
            shares[cut] = np.clip(share, 1e-6, 1 - 1e-6)
        return shares

    def _haversine(self, lat: NDArray[np.float64], across: NDArray[np.float64]) -> NDArray[np.float64]:
        y, y0, x = np.radians(lat), math.radians(self.lat), np.radians(across)
        return np.asarray(np.sin((y - y0) / 2) ** 2 + np.cos(y) * math.cos(y0) * np.sin(x / 2) ** 2)

    def _nearest_and_farthest(
        self, boxes: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the haversines of the nearest and the farthest point of each box.

        At one latitude the distance grows with the difference in longitude. Along one meridian its haversine
        is a sinusoid of the latitude, so its ends lie at the ends of the box or where the sinusoid turns.
        """
        south, west, north, east = boxes.T
        ends = np.abs((np.stack([west, east]) - self.lon + 180) % 360 - 180)
        within = ((self.lon - west) % 360) <= (east - west)
        opposite = ((self.lon + 180 - west) % 360) <= (east - west)
        nearest = np.where(within, 0.0, ends.min(axis=0))
        farthest = np.where(opposite, 180.0, ends.max(axis=0))
        return self._along(south, north, nearest).min(axis=0), self._along(south, north, farthest).max(axis=0)

    def _along(
        self, south: NDArray[np.float64], north: NDArray[np.float64], across: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        y0 = math.radians(self.lat)
        turn = np.degrees(np.arctan2(math.sin(y0), math.cos(y0) * np.cos(np.radians(across))))
        turns = [np.clip((turn + half + 180) % 360 - 180, south, north) for half in (0.0, 180.0)]
        return np.stack([self._haversine(lat, across) for lat in (south, north, *turns)])

    def geometry(self, margin: float = 0.0) -> Any:
        """Return the circle as a polygon of 256 corners."""
        from shapely import Polygon

        angle = np.linspace(0, 2 * np.pi, 256, endpoint=False)
        y0, reach = math.radians(self.lat), self.km * (1 + margin) / EARTH_KM
        y = np.arcsin(math.sin(y0) * math.cos(reach) + math.cos(y0) * math.sin(reach) * np.cos(angle))
        across = np.arctan2(
            np.sin(angle) * math.sin(reach) * math.cos(y0), math.cos(reach) - math.sin(y0) * np.sin(y)
        )
        return Polygon(np.column_stack([self.lon + np.degrees(across), np.degrees(y)]))


@dataclass(frozen=True, slots=True, eq=False)
class PolygonArea:
    """Any polygons, from GeoJSON; edges are straight in degrees, as GeoJSON says."""

    shape: Any

    @classmethod
    def read(cls, polygon: object) -> PolygonArea:
        """Read a GeoJSON geometry, feature or collection, or a shapely geometry."""
        return cls(as_geometry(polygon))

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """South, west, north and east."""
        west, south, east, north = self.shape.bounds
        return south, west, north, east

    def box_shares(self, boxes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the share of each box inside the polygons."""
        import shapely

        south, west, north, east = boxes.T
        shapely.prepare(self.shape)
        boxes_drawn = shapely.box(west, south, east, north)
        shares = np.zeros(len(boxes))
        shares[shapely.covers(self.shape, boxes_drawn)] = 1.0
        cut = (shares < 1) & shapely.intersects(self.shape, boxes_drawn)
        shares[cut] = shapely.area(shapely.intersection(self.shape, boxes_drawn[cut])) / shapely.area(
            boxes_drawn[cut]
        )
        return exact_ends(shares)

    def geometry(self, margin: float = 0.0) -> Any:
        """Return the polygons."""
        del margin
        return self.shape


def as_geometry(polygons: object) -> Any:
    """Read polygons as one shapely geometry (extra ``maps``), or refuse what is none."""
    needs("polygons", "shapely", "tacit[maps]")
    import shapely
    from shapely.geometry import shape

    geometry = None
    with suppress(TypeError, ValueError, KeyError, AttributeError, shapely.errors.ShapelyError):
        if isinstance(polygons, shapely.Geometry):
            geometry = polygons
        elif isinstance(polygons, dict) and polygons.get("type") == "FeatureCollection":
            geometry = shapely.union_all([shape(one["geometry"]) for one in polygons["features"]])
        else:
            geometry = shape(
                polygons["geometry"] if isinstance(polygons, dict) and "geometry" in polygons else polygons
            )
    if geometry is None or geometry.geom_type not in {"Polygon", "MultiPolygon"} or geometry.is_empty:
        got = polygons if geometry is None else geometry.geom_type
        raise bad_parameter("polygon", "a GeoJSON polygon", got, fix=_POLYGON)
    if not geometry.is_valid:
        why = str(shapely.is_valid_reason(geometry))
        raise wrong_polygons("a polygon crosses itself", why, Say("repair the polygon with a tool for maps"))
    return geometry


def wrong_polygons(problem: str, why: str, fix: Fix) -> TacitError:
    """Return the refusal of public polygons that cannot be regions or areas."""
    return TacitError("bad-parameter", problem, why=why, fix=fix)


def read_geojson(name: str, path: str | os.PathLike[str]) -> Any:
    """Read a file of GeoJSON, or refuse one that does not exist or is something else."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError:
        must_be, fix = "a GeoJSON file that exists", "check the path"
    except ValueError:
        must_be, fix = "a GeoJSON file", "check the file"
    raise bad_parameter(name, must_be, os.fspath(path), fix=Say(fix))


def exact_ends(share: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return shares between 0 and 1, exactly 0 or 1 where borders agree."""
    return np.where(share < SAME, 0.0, np.where(share > 1 - SAME, 1.0, share))


def read_layer(layer: object, name: str, within_km: float) -> tuple[tuple[str, ...], Sequence[Area]]:
    """Return the names of a layer's places and the area of each."""
    RealNumber(least=0, most=5000, instead=5).read("within_km", within_km)
    document: Any = layer
    if isinstance(layer, str | os.PathLike):
        document = read_geojson("layer", layer)
    if isinstance(document, Mapping):
        features = document.get("features") if "features" in document else [document]
        listed_features = features if isinstance(features, list | tuple) else ()
        places = [_place(feature, name, within_km) for feature in listed_features]
    else:
        try:
            places = [
                _place(_point(lat, lon, i), name, within_km) for i, (lat, lon) in enumerate(document, 1)
            ]
        except (TypeError, ValueError):
            must_be, fix = "GeoJSON, or pairs of latitude and longitude", "give a list of pairs"
            raise _wrong_layer(must_be, layer, fix) from None
    if not places:
        raise _wrong_layer("at least one place", layer, "give a layer with features")
    return tuple(one.name for one in places), [one.area for one in places]


def _wrong_layer(must_be: str, layer: object, fix: str) -> TacitError:
    return bad_parameter("layer", must_be, layer, fix=Say(fix))


@dataclass(frozen=True, slots=True)
class _Place:
    name: str
    area: Area


def _point(lat: float, lon: float, number: int) -> dict[str, Any]:
    return {"id": number, "geometry": {"type": "Point", "coordinates": [float(lon), float(lat)]}}


def _place(feature: Any, name: str, km: float) -> _Place:
    attributes = feature.get("properties") if isinstance(feature, Mapping) else None
    properties = dict(attributes) if isinstance(attributes, Mapping) else {}
    label = properties.get(name, feature.get("id") if isinstance(feature, Mapping) else None)
    if label is None:
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
            must_be = "points with a longitude and a latitude"
            raise _wrong_layer(must_be, shape, "check the features") from None
        return _Place(str(label), Circle.read(lat, lon, km))
    polygon = as_geometry(shape)
    return _Place(str(label), PolygonArea(_widen(polygon, km) if km else polygon))


def _widen(shape: Any, km: float) -> Any:
    """Return a polygon with what lies near it, degrees of longitude stretched by the middle latitude."""
    needs("beside", "shapely", "tacit[maps]")
    from shapely.affinity import scale

    middle = (shape.bounds[1] + shape.bounds[3]) / 2
    stretch = max(math.cos(math.radians(middle)), 0.05)
    flat = scale(shape, xfact=stretch, origin=(0, 0))
    return scale(flat.buffer(math.degrees(km / EARTH_KM)), xfact=1 / stretch, origin=(0, 0))
