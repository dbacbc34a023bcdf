"""The function ``tc.points``: declare points on a map, who is protected, and the public box."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.core import fixes_of, open_account, read_identity
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Set
from tacit.maps._box import Box
from tacit.maps._limits import check_owner, read_limits
from tacit.maps._point_map import PointMap
from tacit.maps._point_source import PointSource
from tacit.parameters import ColumnName

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from tacit.accounting import Adjacency, Budget
    from tacit.core import LimitGiven, Limits, Unit
    from tacit.ledger import Ledger
    from tacit.maps._box import BoxGiven

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
    opened = PointSource(source, lat, lon, identity.unit, declared, bounded.rows)
    books = open_books(ledger, identity.name, source)
    made = PointMap(identity, books, declared, bounded, opened)
    with fixes_of("tc.points"):
        open_account(identity, budget, books, parent=parent, places=source_places(source))
    return made


def _check_names(lat: object, lon: object) -> None:
    """Refuse names that are not different columns, or that say latitude where longitude must stand."""
    for called, given in (("lat", lat), ("lon", lon)):
        ColumnName().read(called, given)
    if lat == lon:
        raise bad_parameter("lon", "another column than the latitude", lon, fix=Set(lon="lon"))
    if str(lat).lower() in _LONGITUDES and str(lon).lower() in _LATITUDES:
        raise TacitError(
            "bad-parameter",
            f"the latitude is read from {lat!r} and the longitude from {lon!r}, which look swapped",
            why="with the two swapped, most points would lie outside the box and silently be dropped",
            fix=Set(lat=lon, lon=lat),
        )
