"""The regions of a surface: cells of a grid, boxes of any size, public polygons or H3 cells."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.maps._areas import EARTH_KM, Circle, exact_ends
from tacit.maps._box import Box

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from tacit.core import JSON, Value
    from tacit.maps._areas import Area


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
                from tacit.maps._polygon_regions import PolygonRegions

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
        near = np.flatnonzero((n > south) & (s < north))
        if max(east, float(e.max())) <= 180:
            near = np.flatnonzero((n > south) & (s < north) & (e > west) & (w < east))
        share = _box_shares(area, self.boxes[near])
        return near[share > 0], share[share > 0]

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
            near = np.flatnonzero(share > 0)
            return near, share[near]
        if (
            south >= self.box.north
            or north <= self.box.south
            or west >= self.box.east
            or east <= self.box.west
        ):
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        first, last = (int(np.searchsorted(lat, at)) for at in (south, north))
        left, right = (int(np.searchsorted(lon, at)) for at in (west, east))
        rows = np.arange(max(first - 1, 0), min(last + 1, self.rows))
        columns = np.arange(max(left - 1, 0), min(right + 1, self.columns))
        near = (rows[:, None] * self.columns + columns).ravel()
        share = area.box_shares(self.boxes[near])
        return near[share > 0], share[share > 0]

    @property
    def words(self) -> str:
        """The size of the grid."""
        return f"{self.rows} x {self.columns} cells"

    def to_json(self) -> JSON:
        """Return the box and the size of the grid."""
        return {"kind": "grid", "box": self.box.to_json(), "shape": [self.rows, self.columns]}
