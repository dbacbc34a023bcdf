"""The box of a map: the public rectangle of latitudes and longitudes in which points count."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Either, Say, Set

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
_LEAST = 1e-6
_EXAMPLE = Set(box=((46.3, 9.5), (49.1, 17.2)))


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
        both = (
            Box(self.south, self.west, self.north, 180.0),
            Box(self.south, -180.0, self.north, self.east - 360),
        )
        return tuple(part for part in both if part.east - part.west >= _LEAST)

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
            whole = np.where(within, row, 0).astype(np.int64) * columns
            whole += np.where(within, column, 0).astype(np.int64)
        whole[~within] = -1
        return whole

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
    return ordered and min(north - south, east - west) >= _LEAST


def _refusal(name: str, given: object, south: float, west: float, north: float, east: float) -> TacitError:
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
    elif abs(north - south) < _LEAST or abs(east - west) < _LEAST:
        must_be = f"{_FORM}, at least {_LEAST:g} degrees high and wide"
    else:
        why = (
            f"latitudes lie between -90 and 90, and longitudes between -180 and 180; the eastern side of a "
            f"{name} that crosses the 180th meridian lies above 180"
        )
        fix = Say("give the corners in degrees; convert other coordinates first")
    return bad_parameter(name, must_be, given, why=why, fix=fix)
