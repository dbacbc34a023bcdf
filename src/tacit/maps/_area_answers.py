"""Answers about areas: what lies inside surely, what may lie inside, and an honest interval."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tacit.core import AnswerTable, Cells
from tacit.errors import bad_parameter
from tacit.fixes import Code
from tacit.maps._areas import Circle, PolygonArea, Rectangle
from tacit.mechanisms import half_widths_of
from tacit.parameters import Listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from tacit.core import Value
    from tacit.maps._areas import Area, BoxGiven, LatLon
    from tacit.maps._regions import Regions
    from tacit.mechanisms import MeasurementNoise

_PLACE = Listed("numbers: a latitude and a longitude", "(46.9, 7.4)", least=2, most=2)
_CORNERS = Listed("opposite corners", "((46.3, 9.5), (49.1, 17.2))", least=2, most=2)


@dataclass(frozen=True, slots=True)
class AreaEnds:
    """The ends of an interval before the noise: a number, and the measured sums whose noise is in it."""

    low: float
    low_noise: list[tuple[MeasurementNoise, NDArray[np.int64]]]
    high: float
    high_noise: list[tuple[MeasurementNoise, NDArray[np.int64]]]


class AreaQuestions(ABC):
    """Questions about rectangles, polygons and circles, for whatever has a count in every region.

    A region that is wholly inside an area counts fully. A region that the border of the area cuts holds
    between none and all of its points inside, and only the data knows how many. So the interval is from
    `inside - z` to `inside + cut + z`, where z is the half-width of the noise in each sum; the value takes
    points as spread evenly over a region. Along the borders of regions nothing is cut, and only the noise
    remains.
    """

    __slots__ = ()
    regions: Regions
    counts: NDArray[np.float64]
    confidence: float
    notes: tuple[str, ...]

    @abstractmethod
    def _ends(self, inside: NDArray[np.int64], cut: NDArray[np.int64]) -> AreaEnds:
        """Say how the interval of an area is made."""

    @property
    @abstractmethod
    def _is_nonnegative(self) -> bool:
        """Whether intervals stop at 0."""

    def rectangle(self, corner: LatLon, opposite: LatLon) -> AnswerTable:
        """Return how many points lie in a rectangle, with an interval.

        Parameters
        ----------
        corner, opposite
            The south-western and the north-eastern corner, latitude first.
        """
        return self.areas([Rectangle.read(corner, opposite)])

    def rectangles(self, boxes: Iterable[BoxGiven]) -> AnswerTable:
        """Return the answers for many rectangles, one line for each."""
        return self.areas([Rectangle.read(*_CORNERS.read("box", box)) for box in boxes])

    def polygon(self, polygon: object) -> AnswerTable:
        """Return how many points lie in a polygon (extra ``maps``): GeoJSON, or a shapely geometry."""
        return self.areas([PolygonArea.read(polygon)])

    def polygons(self, polygons: Iterable[object]) -> AnswerTable:
        """Return the answers for many polygons, one line for each."""
        return self.areas([PolygonArea.read(one) for one in polygons])

    def radius(self, lat: float, lon: float, *, km: float) -> AnswerTable:
        """Return how many points lie within some kilometres of a place, along the surface of the earth."""
        return self.areas([Circle.read(lat, lon, km)])

    def radii(self, places: Iterable[LatLon], *, km: float) -> AnswerTable:
        """Return the answers for many places, one line for each."""
        pairs = [_PLACE.read("place", place) for place in places]
        return self.areas([Circle.read(lat, lon, km) for lat, lon in pairs])

    def areas(self, areas: Sequence[Area]) -> AnswerTable:
        """Return the answers for many areas of any kind, one line for each."""
        if not areas:
            raise bad_parameter(
                "areas", "at least one area", areas, fix=Code("surface.radius(lat, lon, km=5)")
            )
        return self._answered([self.regions.shares(area) for area in areas])

    def _answered(self, questions: Sequence[tuple[NDArray[np.int64], NDArray[np.float64]]]) -> AnswerTable:
        """Answer each question, given as the regions it touches with their shares."""
        values, ends = [], []
        for touched, share in questions:
            values.append(float((self.counts[touched] * share).sum()))
            ends.append(self._ends(touched[share == 1], touched[share < 1]))
        failing = 1 - self.confidence
        value = np.array(values)
        low = np.array([one.low for one in ends]) - half_widths_of([one.low_noise for one in ends], failing)
        high = np.array([one.high for one in ends]) + half_widths_of(
            [one.high_noise for one in ends], failing
        )
        if self._is_nonnegative:
            low, high = np.maximum(low, 0), np.maximum(high, 0)
        low, high = np.minimum(low, value), np.maximum(high, value)  # a value lies in its interval
        cut = max(int((share < 1).sum()) for _, share in questions)
        key = {} if len(questions) == 1 else {"area": tuple(range(1, len(questions) + 1))}
        spread = f"points are taken as spread evenly inside the {cut:,} regions that the border cuts"
        note = f"{spread}; the interval holds wherever they lie"
        return AnswerTable(
            _keys(key),
            {"n": Cells(tuple(value.tolist()), tuple(low.tolist()), tuple(high.tolist()))},
            self.confidence,
            {"n": note} if cut else {},
            self.notes,
            ("n",) if not self._is_difference else (),
        )

    @property
    def _is_difference(self) -> bool:
        return False


def _keys(keys: dict[str, tuple[int, ...]]) -> dict[str, tuple[Value, ...]]:
    return dict(keys)
