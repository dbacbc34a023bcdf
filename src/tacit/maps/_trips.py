"""Trips between zones: how many go from each zone to each other one, with the trips of a person bounded."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np

from tacit.core import Dataset, Unit, fixes_of, open_account, plannable, read_identity
from tacit.errors import TacitError, bad_parameter
from tacit.exact import count
from tacit.fixes import Declare, Say, Set
from tacit.maps._areas import Box
from tacit.maps._flows import read_zones
from tacit.maps._map_draft import check_owner
from tacit.maps._point_source import rank_of
from tacit.maps._questions import FLOWS
from tacit.mechanisms import ranking_secret
from tacit.parameters import ColumnName, Listed, Mapped, Needed, Omitted

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from tacit.accounting import Adjacency, Budget
    from tacit.core import JSON, Question
    from tacit.engines import ColumnRole, ReadColumns
    from tacit.ledger import Ledger
    from tacit.maps._areas import BoxGiven
    from tacit.maps._flows import FlowTable, Zones, ZonesGiven

#: An end of a trip: one column of names, or the columns of latitude and longitude.
TripEnd: TypeAlias = str | tuple[str, str]

_PUBLIC_BOX: Needed[BoxGiven] = Needed(
    ((44.88, -93.34), (45.06, -93.19)), "for trips between points",
    why="a box that is read from the data gives away its outermost points",
)  # fmt: skip


def trips(
    source: object,
    *,
    origin: TripEnd,
    destination: TripEnd,
    unit: str | Unit,
    budget: Budget,
    limits: Mapping[str, int] | None = None,
    box: BoxGiven | None = None,
    name: str = "trips",
    version: int = 1,
    adjacency: Adjacency = "add/remove",
    ledger: Ledger | str | os.PathLike[str] | None = None,
    parent: str | None = None,
) -> Trips:
    """Declare trips, one in each row: who is protected, and how many trips of one person count.

    Guarantee
    ---------
    All releases together are private for one unit, with all its trips, within the budget. At most
    ``limits["rows"]`` trips of a unit count; which ones depends on the trips of this unit and on a secret
    alone. The proof is in ``docs/proofs/map_trees.md``, section "Trips".

    Parameters
    ----------
    source
        A path, a data frame or a database table, as in `tacit.protect`.
    origin, destination
        The column with the name of the zone, or the pair of columns with latitude and longitude.
    unit
        The column that says whose trip it is, or ``Unit.row()`` to protect single trips.
    budget
        What may be learned in total.
    limits
        ``{"rows": 4}``: how many trips of one unit count.
    box
        The public box, if ends are points. A trip with an end outside it does not count.
    name, version, adjacency, ledger, parent
        As in `tacit.protect`.

    Examples
    --------
    >>> import pandas as pd
    >>> import tacit as tc
    >>> rides = pd.DataFrame({"who": [1, 1, 2], "from": ["N", "S", "N"], "to": ["S", "N", "N"]})
    >>> made = tc.maps.trips(
    ...     rides, origin="from", destination="to", unit="who", limits={"rows": 2},
    ...     budget=tc.Budget(epsilon=1),
    ... )
    >>> flows = made.flows(["N", "S"]).plan(epsilon=1).release()
    >>> flows.keys["origin"]
    ('N', 'N', 'S', 'S')
    """
    from tacit.ledger import open_books, source_places

    with fixes_of("tc.maps.trips"):
        identity = read_identity(name=name, version=version, unit=unit, adjacency=adjacency)
        max_trips = _max_trips(identity.unit, limits)
    ends = _read_end("origin", origin), _read_end("destination", destination)
    points = {len(end) == 2 for end in ends}
    if len(points) == 2:
        raise bad_parameter(
            "destination", "of the same form as origin", destination, fix=Set(destination="to")
        )
    area = None
    if points == {True}:
        area = Box.read(_PUBLIC_BOX.read("box", box))
    else:
        Omitted("if zones are names").read("box", box)
    reader = TripSource(source, (ends[0], ends[1]), identity.unit, max_trips)
    books = open_books(ledger, identity.name, source)
    declared = Trips(identity, books, area, max_trips, reader)
    with fixes_of("tc.maps.trips"):
        open_account(identity, budget, books, parent=parent, places=source_places(source))
    return declared


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Trips(Dataset):
    """Declared trips; made by `trips`.

    Parameters
    ----------
    box
        The public box; None if zones are names.
    most
        How many trips of one unit count.
    """

    kind: ClassVar[str] = "trips"

    box: Box | None
    most: int
    _source: TripSource

    @plannable
    def flows(self, zones: ZonesGiven) -> Question[FlowTable]:
        """Ask for the number of trips from each zone to each zone: all pairs, also those without a trip.

        Guarantee: one unit moves all numbers together by at most the number of its trips that count, in L1
        and in L2 (all of them may go between the same two zones); twice that under replace.

        Parameters
        ----------
        zones
            The public zones: a list of names, or the rows and columns of a grid over the box. The zones of a
            grid are called "row, column", from "0, 0" in the south-west.

        Examples
        --------
        >>> import pandas as pd
        >>> import tacit as tc
        >>> rides = pd.DataFrame({"a": ["N", "N", "W"], "b": ["S", "W", "S"]})
        >>> made = trips(
        ...     rides, origin="a", destination="b", unit=tc.Unit.row(), budget=tc.Budget(epsilon=1)
        ... )
        >>> len(made.flows(["N", "S", "W"]).plan(epsilon=0.5).release())
        9
        """
        return FLOWS.ask(self, zones=read_zones(zones, self.box))


class TripSource:
    """Where the trips are; opening it reads the names of columns alone."""

    def __init__(
        self, source: object, ends: tuple[tuple[str, ...], tuple[str, ...]], unit: Unit, max_trips: int
    ) -> None:
        from tacit.engines import SourceColumns

        role: ColumnRole = "number" if len(ends[0]) == 2 else "name"
        roles: dict[str, ColumnRole] = {column: role for end in ends for column in end}
        check_owner(unit, tuple(roles))
        roles |= dict.fromkeys(unit.columns, "owner")
        self._ends, self._unit, self.most = ends, unit, max_trips
        self.roles: JSON = [list(end) for end in ends]
        self._columns = SourceColumns(source, roles)
        self._secret = ranking_secret()
        self._lock = threading.Lock()
        self._read: ReadColumns | None = None

    @property
    def missing_file(self) -> str:
        """The path of the file if it does not exist now; empty for every other source."""
        return self._columns.missing_file

    def matrix(self, zones: Zones, box: Box | None) -> NDArray[np.int64]:
        """Return the number of counted trips of each pair of zones.

        Trips with an end that is missing or in no zone are dropped first. Of the others, a unit's first
        trips in the order of a keyed hash of the unit and the pair of zones count: a function of its own
        trips alone, in which no pair comes first for everybody.
        """
        with self._lock:
            if self._read is None:
                self._read = self._columns.read()
        rows = self._read
        start, end = (_zone_codes(rows, columns, zones, box) for columns in self._ends)
        inside = (start >= 0) & (end >= 0)
        pair = (start * len(zones) + end)[inside]
        if self._unit.columns:
            owner = rows.codes[self._unit.columns[0]][inside]
            assert rows.owner_hashes is not None  # noqa: S101 - there are owners
            rank = rank_of(self._secret, pair.astype(np.float64), owner=rows.owner_hashes[inside])
            order = np.lexsort((rank, owner))
            owner = owner[order]
            fresh = np.r_[True, owner[1:] != owner[:-1]] if len(owner) else np.zeros(0, np.bool_)
            starts = np.flatnonzero(fresh)
            ranks = np.arange(len(owner)) - np.repeat(starts, np.diff(np.r_[starts, len(owner)]))
            pair = pair[order[ranks < self.most]]
        return np.bincount(pair, minlength=len(zones) ** 2).astype(np.int64)


def _zone_codes(
    rows: ReadColumns, columns: tuple[str, ...], zones: Zones, box: Box | None
) -> NDArray[np.int64]:
    """Return the zone of one end of each trip, or -1."""
    if box is not None and zones.shape is not None:
        lat, lon = (rows.numbers[column] for column in columns)
        return box.cells(lat, lon, rows=zones.shape[0], columns=zones.shape[1])
    codes = {name: place for place, name in enumerate(zones.names)}
    zone = np.array([*(codes.get(name, -1) for name in rows.names), -1], dtype=np.int64)
    return zone[rows.codes[columns[0]]]


def _max_trips(unit: Unit, limits: Mapping[str, int] | None) -> int:
    """Read how many trips of one unit count."""
    if unit.is_row:
        if limits:
            raise TacitError(
                "not-allowed",
                "limits cannot be given if each trip is protected on its own",
                why="every trip is then one unit and counts once",
                fix=Say("remove limits, or give as unit the column that says whose trip it is"),
            )
        return 1
    check_owner(unit)
    if not limits or "rows" not in limits:
        raise TacitError(
            "missing-limit",
            f"nothing bounds how many trips one {unit.noun} has",
            why="noise can hide one person only if there is a bound on what this person can change",
            fix=Declare("limits", {"rows": 4}),
        )
    allowed = Mapped("the number of trips that count", 'limits={"rows": 4}', names=("rows",))
    return count("rows", allowed.read("limits", limits)["rows"], zero=False)


def _read_end(name: str, columns: object) -> tuple[str, ...]:
    """Read the columns of one end of a trip."""
    names = Listed(
        "columns: the column of names, or the columns of latitude and longitude",
        repr(name),
        most=2,
        each=ColumnName(),
    )
    return tuple(names.read(name, (columns,) if isinstance(columns, str) else columns))
