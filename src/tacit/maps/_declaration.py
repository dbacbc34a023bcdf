"""The function ``tc.points``: declare points on a map, who is protected, and the public box.

`POINTS` and `TRIPS` say how a service declares them: on their source, and on a stand-in without rows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.accounting import Budget
from tacit.core import Argument, DatasetKind, Unit, budget_of, fixes_of, open_account, read_identity
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Say, Set
from tacit.maps._areas import Box
from tacit.maps._map_draft import check_owner, read_limits
from tacit.maps._point_map import PointMap
from tacit.maps._point_source import PointSource
from tacit.maps._questions import FLOWS, QUESTIONS
from tacit.parameters import ColumnName, Text

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from tacit.accounting import Adjacency
    from tacit.core import LimitGiven, Limits
    from tacit.ledger import Ledger
    from tacit.maps._areas import BoxGiven


_LATITUDES = frozenset({"lat", "latitude", "y", "ycoord", "y_coord", "breite"})
_LONGITUDES = frozenset({"lon", "lng", "long", "longitude", "x", "xcoord", "x_coord", "länge"})


def points(
    source: object,
    lat: str = "lat",
    lon: str = "lon",
    *,
    unit: str | Unit,
    box: BoxGiven,
    budget: Budget,
    name: str = "points",
    version: int = 1,
    limits: Mapping[str, LimitGiven] | Limits | None = None,
    adjacency: Adjacency = "add/remove",
    ledger: Ledger | str | os.PathLike[str] | None = None,
    parent: str | None = None,
) -> PointMap:
    """Declare points on a map.

    Guarantee: all releases together are private for one unit within the budget. Before a charge, only names
    of columns are read. Points outside the box, and those whose coordinates are missing or are not numbers,
    are dropped by this public rule. The proofs are in ``docs/proofs/maps.md``.

    Parameters
    ----------
    source
        A CSV or Parquet file, a pandas, Polars or Arrow frame, a DuckDB connection, as in `tacit.protect`;
        or an array with two columns, latitude and longitude.
    lat, lon
        The columns of latitude and longitude, in degrees.
    unit
        The column that says to whom a point belongs, or ``tc.Unit.row()`` where each point is protected for
        itself (a sacred site, a nest).
    box
        The public part of the earth that the map shows: ``((south, west), (north, east))``. It must come
        from public knowledge, because the outermost points would give themselves away.
    budget
        What may be learned in total.
    name, version
        Declared identity, to which the budget is bound.
    limits
        What one unit may add: ``rows`` in all, ``groups`` (regions of one question), ``per_group`` (in one
        region). By default ten points of each unit count.
    adjacency
        Whether neighbours have one unit more or less, or one replaced.
    ledger
        A `Ledger`, or where to open one; None keeps it in memory.
    parent
        An account that several datasets share, as in `tacit.protect`.

    Examples
    --------
    >>> import tacit as tc
    >>> sites = points(
    ...     tc.maps.example_sites(), "lat", "lon", unit=tc.Unit.row(), name="sites",
    ...     box=tc.maps.EXAMPLE_BOX, budget=tc.Budget(epsilon=1),
    ... )
    >>> surface = sites.grid(32, 32).plan(epsilon=0.5).release()
    >>> answer = surface.radius(-23.7, 133.9, km=50)
    >>> answer.low <= answer.value <= answer.high
    True
    """
    from tacit.ledger import open_books, source_places

    _check_names(lat, lon)
    declared = Box.read(box)
    with fixes_of("tc.points"):
        identity = read_identity(name=name, version=version, unit=unit, adjacency=adjacency)
    check_owner(identity.unit, (lat, lon))
    with fixes_of("tc.points"):
        bounded = read_limits(limits, identity.unit)
    reader = PointSource(source, lat, lon, identity.unit, declared, bounded.rows)
    books = open_books(ledger, identity.name, source)
    point_map = PointMap(identity, books, declared, bounded, reader)
    with fixes_of("tc.points"):
        open_account(identity, budget, books, parent=parent, places=source_places(source))
    return point_map


def _check_names(lat: object, lon: object) -> None:
    """Refuse names that are not different columns, or that say latitude where longitude must stand."""
    for parameter, column in (("lat", lat), ("lon", lon)):
        ColumnName().read(parameter, column)
    if lat == lon:
        raise bad_parameter("lon", "another column than the latitude", lon, fix=Set(lon="lon"))
    if str(lat).lower() in _LONGITUDES and str(lon).lower() in _LATITUDES:
        raise TacitError(
            "bad-parameter",
            f"the latitude is read from {lat!r} and the longitude from {lon!r}, which look swapped",
            why="with the two swapped, most points would lie outside the box and silently be dropped",
            fix=Set(lat=lon, lon=lat),
        )


_DEGREES = re.compile(r"-?[0-9]{1,6}(\.[0-9]{1,20})?|-?[0-9]{1,12}/[0-9]{1,12}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Corners(Text):
    """The public box of a map.

    Examples
    --------
    >>> Corners().from_text("box", "46.5 7 47 9.5") == Corners().read("box", [["46.5", "7"], [47, 9.5]])
    True
    """

    words: str = "two corners in degrees: south, west, north and east"

    def read(self, name: str, value: Any) -> Any:
        """Return the corners; a huge exponent is refused before it becomes a huge number."""
        try:
            texts = [] if isinstance(value, str) else [str(side) for corner in value for side in corner]
        except TypeError:
            texts = []
        if len(texts) != 4 or not all(map(_DEGREES.fullmatch, texts)):
            raise bad_parameter(name, self.words, value, fix=Say("give four numbers, such as 46.5 7 47 9.5"))
        south, west, north, east = map(Fraction, texts)
        return (south, west), (north, east)

    def from_text(self, name: str, text: str) -> Any:
        """Read what somebody typed: four numbers."""
        sides = text.split()
        return self.read(name, (sides[:2], sides[2:]) if len(sides) == 4 else text)


def _declare(
    source: object, *, name: str, policy: Mapping[str, Any], facts: Mapping[str, Any], ledger: Ledger
) -> PointMap:
    """Declare points that belong to the people in one column, or that are each protected by itself."""
    unit = Unit.from_text(policy["unit"])
    if unit.per:
        raise TacitError(
            "not-allowed",
            "points belong to the people in one column, or each point is protected by itself",
            fix="choose one column, or single rows",
        )
    return points(
        source, facts["lat"], facts["lon"], unit=unit, box=facts["box"], budget=budget_of(policy), name=name,
        version=int(policy.get("version", 1)), limits=policy.get("limits") or None,
        adjacency=policy.get("adjacency", "add/remove"), ledger=ledger,
    )  # fmt: skip


def _stand_in(facts: Mapping[str, Any]) -> object:
    """Return a table without rows that has the columns of the points."""
    from tacit.engines import empty_table

    columns = {facts["lat"]: "DOUBLE", facts["lon"]: "DOUBLE"}
    return empty_table(columns if facts["unit"] == "row" else {**columns, facts["unit"]: "VARCHAR"})


def _trial() -> PointMap:
    """Return a few invented points, with budget for one question of each kind."""
    invented = np.array([[0.5, 0.5], [0.2, 0.7]])
    return points(invented, unit=Unit.row(), box=((0, 0), (1, 1)), budget=Budget(epsilon=100))


POINTS = DatasetKind(
    name="points",
    label="points on a map",
    questions=QUESTIONS,
    facts=(
        Argument("box", Corners(), needed=True),
        Argument("lat", ColumnName(), needed=True, words="the column of latitudes"),
        Argument("lon", ColumnName(), needed=True, words="the column of longitudes"),
    ),
    declare=_declare,
    stand_in=_stand_in,
    trial=_trial,
)
TRIPS = DatasetKind(name="trips", label="trips between zones", questions=(FLOWS,))
