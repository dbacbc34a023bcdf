"""The regions of a surface: cells of a grid, boxes of any size, public polygons or H3 cells.

Polygons and H3 cells know the larger regions above them.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from tacit.core import needs
from tacit.errors import bad_parameter
from tacit.exact import count
from tacit.fixes import Set
from tacit.maps._areas import EARTH_KM, SAME, Box, Circle, exact_ends

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from tacit.core import JSON, Value
    from tacit.maps._areas import Area
    from tacit.maps._point_source import OwnedPoints


class Regions(ABC):
    """Parts of a map that do not overlap; each has a count in a surface. All of it is public."""

    __slots__ = ()

    def __str__(self) -> str:
        return self.words

    @abstractmethod
    def __len__(self) -> int:
        """Return how many regions there are."""

    @property
    @abstractmethod
    def boxes(self) -> NDArray[np.float64]:
        """South, west, north and east of each region, one line for each."""

    @abstractmethod
    def shares(self, area: Area) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the regions that an area touches, and how much of each lies in it; 1 is all of it."""

    @property
    @abstractmethod
    def keys(self) -> Mapping[str, tuple[Value, ...]]:
        """What names each region in a table."""

    @abstractmethod
    def outlines(self) -> list[Any]:
        """Return each region as a GeoJSON geometry."""

    @property
    @abstractmethod
    def areas(self) -> NDArray[np.float64]:
        """The size of each region in square kilometres."""

    @property
    @abstractmethod
    def words(self) -> str:
        """What the regions are, in the plural: ``64 x 64 cells``."""

    @abstractmethod
    def to_json(self) -> JSON:
        """Return the regions as JSON."""

    @staticmethod
    def from_json(document: Any) -> Regions:
        """Read regions back; raises ``ValueError`` where there are none."""
        match document["kind"]:
            case "grid":
                rows, columns = map(int, document["shape"])
                if not (rows > 0 and columns > 0 and rows * columns <= 2**26):
                    raise ValueError("not a grid")
                return GridRegions(Box.from_json(document["box"]), rows, columns)
            case "boxes":
                boxes = np.array(document["boxes"], dtype=np.float64).reshape(-1, 4)
                south, west, north, east = boxes.T
                if not len(boxes) or not ((south < north) & (west < east)).all():  # NaN is neither
                    raise ValueError("not boxes")
                if not (np.abs(boxes) <= [90, 540, 90, 540]).all() or (east - west > 360).any():
                    raise ValueError("not boxes")
                return BoxRegions(boxes)
            case "polygons" | "h3":
                return PolygonRegions.read_document(document)
            case _:
                raise ValueError("not regions that this version can read")


def _box_shares(area: Area, boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the share of each box that an area covers; both may cross the 180th meridian.

    Longitudes that differ by one turn are the same place, so a rectangle or a polygon is compared one turn
    further west and east too. A circle already measures distances around the earth.
    """
    share = area.box_shares(boxes)
    if isinstance(area, Circle) or max(area.bounds[3], float(boxes[:, 3].max(initial=0.0))) <= 180:
        return share
    for turn in (-360.0, 360.0):
        share = share + area.box_shares(boxes + np.array([0.0, turn, 0.0, turn]))
    return exact_ends(np.minimum(share, 1.0))


_SIDES = ("south", "west", "north", "east")


class _Boxes(Regions):
    """What all regions that are boxes share."""

    __slots__ = ()

    @property
    @abstractmethod
    def boxes(self) -> NDArray[np.float64]:
        """South, west, north and east of each, one line for each."""

    @property
    def keys(self) -> Mapping[str, tuple[Value, ...]]:
        """The four sides of each box."""
        return {name: tuple(side) for name, side in zip(_SIDES, self.boxes.T.tolist(), strict=True)}

    def outlines(self) -> list[Any]:
        """Return each box as a polygon."""
        return [
            {"type": "Polygon", "coordinates": [[[w, s], [e, s], [e, n], [w, n], [w, s]]]}
            for s, w, n, e in self.boxes.tolist()
        ]

    @property
    def areas(self) -> NDArray[np.float64]:
        """Square kilometres."""
        south, west, north, east = np.radians(self.boxes.T)
        return np.asarray(EARTH_KM**2 * (east - west) * (np.sin(north) - np.sin(south)))


@dataclass(frozen=True, slots=True, eq=False)
class BoxRegions(_Boxes):
    """Boxes that do not overlap, such as the leaves of a tree.

    Parameters
    ----------
    boxes
        South, west, north and east of each, one line for each.

    Examples
    --------
    >>> from tacit.maps._areas import Rectangle
    >>> regions = BoxRegions(np.array([[0.0, 0, 1, 1], [0, 1, 1, 3]]))
    >>> [values.tolist() for values in regions.shares(Rectangle.read((0, 0), (1, 2)))]
    [[0, 1], [1.0, 0.5]]
    """

    boxes: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.boxes)

    def shares(self, area: Area) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the touched boxes and the share of each."""
        south, west, north, east = area.bounds
        s, w, n, e = self.boxes.T
        candidates = np.flatnonzero((n > south) & (s < north))
        if max(east, float(e.max())) <= 180:
            candidates = np.flatnonzero((n > south) & (s < north) & (e > west) & (w < east))
        share = _box_shares(area, self.boxes[candidates])
        return candidates[share > 0], share[share > 0]

    @property
    def words(self) -> str:
        """How many boxes."""
        return f"{len(self):,} boxes"

    def to_json(self) -> JSON:
        """Return the sides of all boxes."""
        return {"kind": "boxes", "boxes": self.boxes.tolist()}


@dataclass(frozen=True, slots=True, eq=False)
class GridRegions(_Boxes):
    """The cells of a grid over a box, row by row from the south-west.

    Examples
    --------
    >>> from tacit.maps._areas import Rectangle
    >>> regions = GridRegions(Box(0, 0, 10, 10), 10, 10)
    >>> [values.tolist() for values in regions.shares(Rectangle.read((0, 0), (1, 2.5)))]
    [[0, 1, 2], [1.0, 1.0, 0.5]]
    """

    box: Box
    rows: int
    columns: int
    _made: dict[str, NDArray[np.float64]] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return self.rows * self.columns

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.rows, self.columns

    @property
    def boxes(self) -> NDArray[np.float64]:
        """South, west, north and east of each cell."""
        if "boxes" not in self._made:
            lat, lon = self.box.edges(self.rows, self.columns)
            south, west = np.meshgrid(lat[:-1], lon[:-1], indexing="ij")
            north, east = np.meshgrid(lat[1:], lon[1:], indexing="ij")
            self._made["boxes"] = np.stack([south, west, north, east], axis=-1).reshape(-1, 4)
        return self._made["boxes"]

    def shares(self, area: Area) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the touched cells and the share of each; only the cells near the area are looked at."""
        lat, lon = self.box.edges(self.rows, self.columns)
        south, west, north, east = area.bounds
        if max(east, self.box.east) > 180:
            share = _box_shares(area, self.boxes)
            candidates = np.flatnonzero(share > 0)
            return candidates, share[candidates]
        if (
            south >= self.box.north
            or north <= self.box.south
            or west >= self.box.east
            or east <= self.box.west
        ):
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        first_row, last_row = (int(np.searchsorted(lat, at)) for at in (south, north))
        first_column, last_column = (int(np.searchsorted(lon, at)) for at in (west, east))
        rows = np.arange(max(first_row - 1, 0), min(last_row + 1, self.rows))
        columns = np.arange(max(first_column - 1, 0), min(last_column + 1, self.columns))
        candidates = (rows[:, None] * self.columns + columns).ravel()
        share = area.box_shares(self.boxes[candidates])
        return candidates[share > 0], share[share > 0]

    @property
    def words(self) -> str:
        """The size of the grid."""
        return f"{self.rows} x {self.columns} cells"

    def to_json(self) -> JSON:
        """Return the box and the size of the grid."""
        return {"kind": "grid", "box": self.box.to_json(), "shape": [self.rows, self.columns]}


@dataclass(frozen=True, slots=True)
class GridShape:
    """Rows and columns of a grid, such as 64x64.

    Examples
    --------
    >>> GridShape().read("cells", [8, 4]), GridShape().from_text("cells", "64x32")
    ((8, 4), (64, 32))
    """

    max_side: int | None = None
    instead: int = 64

    @property
    def words(self) -> str:
        """What may be given."""
        return "rows and columns of a grid" + (f", each at most {self.max_side:,}" if self.max_side else "")

    @property
    def example(self) -> tuple[int, int]:
        """Something that may be given."""
        return self.instead, self.instead

    def read(self, name: str, value: Any) -> tuple[int, int]:
        """Return rows and columns, or refuse them."""
        try:
            rows, columns = (count(name, side, zero=False) for side in value)
        except (TypeError, ValueError):
            rows = columns = 0
        if not rows or (self.max_side is not None and max(rows, columns) > self.max_side):
            raise bad_parameter(name, self.words, value, fix=Set(**{name: self.example}))
        return rows, columns

    def from_text(self, name: str, text: str) -> tuple[int, int]:
        """Read what somebody typed."""
        typed = re.fullmatch(r"\s*([0-9]{1,6})\s*x\s*([0-9]{1,6})\s*", text, re.ASCII)
        return self.read(name, text if typed is None else (int(typed[1]), int(typed[2])))

    def from_json(self, document: Any) -> Any:
        """Return the two numbers; `read` checks them."""
        return tuple(document) if isinstance(document, list) else document

    def to_json(self, value: tuple[int, int]) -> JSON:
        """Return rows and columns as a list."""
        return list(value)


_MARGIN = 1e-3  # by which a drawn circle may differ from the true one


@dataclass(frozen=True, slots=True, eq=False)
class PolygonRegions(Regions):
    """Public polygons, or H3 cells, that do not overlap.

    Parameters
    ----------
    names
        The name of each, or the H3 cell as text.
    polygons
        GeoJSON geometries; those of H3 cells follow from the names.
    kind
        ``polygons`` or ``h3``.
    larger
        For each level above, its name and the larger region of each region.
    """

    names: tuple[str, ...]
    polygons: tuple[Mapping[str, Any], ...]
    kind: Literal["polygons", "h3"] = "polygons"
    larger: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    _made: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of_cells(cls, cells: Sequence[int], larger: Mapping[str, tuple[str, ...]]) -> Self:
        """Return H3 cells as regions (extra ``maps``)."""
        needs("H3 cells", "h3", "tacit[maps]")
        from h3.api import basic_int, basic_str

        names = tuple(basic_str.int_to_str(int(cell)) for cell in cells)
        return cls(names, tuple(_outline(basic_int.cell_to_boundary(int(c))) for c in cells), "h3", larger)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def shapes(self) -> NDArray[Any]:
        """The regions as shapely geometries (extra ``maps``)."""
        if "shapes" not in self._made:
            needs("polygons", "shapely", "tacit[maps]")
            from shapely.geometry import shape

            geometries = np.empty(len(self), dtype=object)
            geometries[:] = [shape(one) for one in self.polygons]
            self._made["shapes"] = geometries
        return np.asarray(self._made["shapes"])

    @property
    def boxes(self) -> NDArray[np.float64]:
        """South, west, north and east of each region."""
        if "boxes" not in self._made:
            import shapely

            self._made["boxes"] = np.asarray(shapely.bounds(self.shapes)[:, [1, 0, 3, 2]])
        return np.asarray(self._made["boxes"])

    @property
    def margins(self) -> NDArray[np.float64]:
        """How far, in degrees, the true border may lie from the drawn one: H3 cells have curved edges.

        The middle of a great circle's arc of length L lies at most L^2 tan(latitude) / 8 beside the chord.
        """
        if self.kind != "h3":
            return np.zeros(len(self))
        if "margins" not in self._made:
            import shapely

            boxes, sides = self.boxes, np.zeros(len(self))
            parts, of = shapely.get_parts(self.shapes, return_index=True)  # two at the 180th meridian
            west, _, east, _ = shapely.bounds(parts).T
            np.add.at(sides, of, east - west)
            long = np.radians(np.hypot(boxes[:, 2] - boxes[:, 0], sides))
            steep = np.tan(np.radians(np.minimum(np.abs(boxes[:, [0, 2]]).max(axis=1), 89)))
            self._made["margins"] = np.degrees(long**2 * np.maximum(steep, 0.1) / 8)
        return np.asarray(self._made["margins"])

    def shares(self, area: Area) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the touched regions and the share of each; a doubtful border counts as a cut."""
        import shapely

        south, west, north, east = area.bounds
        west, east = (-180.0, 180.0) if east > 180 else (west, east)
        boxes, margins = self.boxes, self.margins
        s, w, n, e = boxes.T
        candidates = np.flatnonzero(
            (n + margins > south) & (s - margins < north) & (e + margins > west) & (w - margins < east)
        )
        share = np.ones(len(candidates))
        round_the_edge = isinstance(area, Circle) and (west, east) == (-180, 180)
        if round_the_edge:
            around = boxes[candidates] + margins[candidates, None] * [-1, -1, 1, 1]
            around[:, [0, 2]] = around[:, [0, 2]].clip(-90, 90)
            share = area.box_shares(around)
        else:
            shapes, widened = (
                self.shapes[candidates],
                shapely.buffer(self.shapes[candidates], margins[candidates]),
            )
            widened = np.where(margins[candidates] > 0, widened, shapes)
            inner, outer = area.geometry(-_MARGIN), area.geometry(_MARGIN)
            shapely.prepare([inner, outer])
            part = shapely.area(shapely.intersection(outer, shapes)) / shapely.area(shapes)
            inside = shapely.covers(inner, widened) | (part > 1 - SAME) & (margins[candidates] == 0)
            touched = shapely.intersects(outer, widened) & ((part > SAME) | (margins[candidates] > 0))
            share = np.where(inside, 1.0, np.where(touched, np.clip(part, 1e-6, 1 - 1e-6), 0.0))
        return candidates[share > 0], share[share > 0]

    @property
    def keys(self) -> Mapping[str, tuple[Value, ...]]:
        """The name of each region first, under a word that no level has, then those of the larger ones."""
        words = ("cell",) if self.kind == "h3" else ("region", "district", "polygon")
        name_key = next((word for word in words if word not in self.larger), "name of the region")
        return {name_key: self.names, **self.larger}

    def outlines(self) -> list[Any]:
        """Return each region as a GeoJSON geometry."""
        return [dict(one) for one in self.polygons]

    @property
    def areas(self) -> NDArray[np.float64]:
        """Square kilometres, by the latitude of the middle of each region."""
        import shapely

        lat = np.radians(self.boxes[:, [0, 2]].mean(axis=1))
        return np.asarray(shapely.area(self.shapes) * math.radians(EARTH_KM) ** 2 * np.cos(lat))

    @property
    def words(self) -> str:
        """How many polygons or cells."""
        noun = "polygon" if self.kind == "polygons" else "H3 cell"
        return f"{len(self):,} {noun}{'' if len(self) == 1 else 's'}"

    def to_json(self) -> JSON:
        """Return names, polygons and larger regions; H3 cells are their own polygons."""
        outlines: dict[str, JSON] = (
            {} if self.kind == "h3" else {"polygons": [dict(p) for p in self.polygons]}
        )
        larger = {name: list(values) for name, values in self.larger.items()}
        return {"kind": self.kind, "names": list(self.names), **outlines, "larger": larger}

    @classmethod
    def read_document(cls, document: Any) -> Self:
        """Read polygons or H3 cells back; raises ``ValueError`` where there are none."""
        names = tuple(map(str, document["names"]))
        larger = {str(name): tuple(map(str, values)) for name, values in document["larger"].items()}
        if not names or any(len(values) != len(names) for values in larger.values()):
            raise ValueError("not regions")
        if document["kind"] == "h3":
            cells = [int(name, 16) for name in names]
            _check_cells(cells)
            return cls.of_cells(cells, larger)
        polygons = tuple(dict(one) for one in document["polygons"])
        if len(polygons) != len(names) or not all(map(_is_polygon, polygons)):
            raise ValueError("not regions")
        return cls(names, polygons, "polygons", larger)


def _check_cells(cells: list[int]) -> None:
    """Raise ``ValueError`` unless all numbers are H3 cells."""
    needs("H3 cells", "h3", "tacit[maps]")
    from h3.api.basic_int import is_valid_cell

    if not all(0 <= cell < 2**64 and is_valid_cell(cell) for cell in cells):
        raise ValueError("not H3 cells")


def _is_polygon(outline: Mapping[str, Any]) -> bool:
    """Return whether a document is a polygon, or several, with finite corners."""
    if outline["type"] not in {"Polygon", "MultiPolygon"}:
        return False
    parts = [outline["coordinates"]] if outline["type"] == "Polygon" else outline["coordinates"]
    rings = [np.asarray(ring, dtype=np.float64) for part in parts for ring in part]
    return bool(rings) and all(
        ring.ndim == 2 and ring.shape[0] >= 4 and ring.shape[1] >= 2 and np.isfinite(ring).all()
        for ring in rings
    )


def _outline(boundary: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """Draw an H3 cell between the longitudes -180 and 180.

    One that crosses the 180th meridian is drawn as two parts. One that contains a pole is drawn as all
    places between the pole and its farthest corner: larger than it is, so that nothing of it is missed.
    """
    lat = [y for y, _ in boundary]
    steps = [(b - a + 180) % 360 - 180 for (_, a), (_, b) in pairwise([*boundary, boundary[0]])]
    if abs(sum(steps)) > 180:
        south, north = (min(lat), 90.0) if min(lat) > 0 else (-90.0, max(lat))
        return {
            "type": "Polygon",
            "coordinates": [[[-180, south], [180, south], [180, north], [-180, north], [-180, south]]],
        }
    lon = [boundary[0][1] + turn for turn in accumulate(steps, initial=0.0)]
    ring = [[x, y] for x, y in zip(lon, [*lat, lat[0]], strict=True)]
    if min(lon) >= -180 and max(lon) <= 180:
        return {"type": "Polygon", "coordinates": [[*ring[:-1], ring[0]]]}
    return _halves(ring)


def _halves(ring: list[list[float]]) -> dict[str, Any]:
    """Cut a ring at the 180th meridian."""
    needs("H3 cells at the 180th meridian", "shapely", "tacit[maps]")
    from shapely import Polygon, box
    from shapely.affinity import translate

    parts: list[Any] = []
    for turn in (-360, 0, 360):
        part = box(-180, -90, 180, 90).intersection(translate(Polygon(ring), turn))
        parts += [one for one in getattr(part, "geoms", [part]) if one.area > 0]
    rings = [[[list(corner) for corner in part.exterior.coords]] for part in parts]
    return {"type": "MultiPolygon", "coordinates": rings}


@dataclass(frozen=True, slots=True)
class PolygonLocator:
    """Public polygons; a point on a border belongs to the first one in the public order.

    If the box crosses the 180th meridian, polygons may be drawn on either side of it: with longitudes above
    180, or with those of the same places below 0.
    """

    regions: PolygonRegions
    crosses: bool = False

    def locate(self, points: OwnedPoints) -> NDArray[np.int64]:
        """Return the first polygon that holds each point or has it on its border."""
        import shapely

        tree = shapely.STRtree(self.regions.shapes)
        codes = np.full(len(points), len(self.regions), dtype=np.int64)
        for lon in (points.lon, _normal_longitudes(points.lon)) if self.crosses else (points.lon,):
            point, polygon = tree.query(shapely.points(lon, points.lat), predicate="intersects")
            np.minimum.at(codes, point, polygon)
        codes[codes == len(self.regions)] = -1
        return codes


def _normal_longitudes(lon: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return longitudes from 180 on as the same places below 0."""
    return np.where(lon >= 180, lon - 360, lon)


@dataclass(frozen=True, slots=True)
class H3Locator:
    """Cells of the H3 grid, found by the library's own arithmetic."""

    regions: PolygonRegions
    resolution: int

    def locate(self, points: OwnedPoints) -> NDArray[np.int64]:
        """Return the cell of each point; -1 for a cell that is not listed."""
        from h3.api.basic_int import latlng_to_cell

        level = self.resolution
        pairs = zip(points.lat.tolist(), points.lon.tolist(), strict=True)
        cells = np.fromiter(
            (latlng_to_cell(y, x, level) for y, x in pairs), dtype=np.uint64, count=len(points)
        )
        known_cells = np.array([int(name, 16) for name in self.regions.names], dtype=np.uint64)  # in order
        positions = np.minimum(np.searchsorted(known_cells, cells), len(known_cells) - 1)
        return np.where(known_cells[positions] == cells, positions, -1)
