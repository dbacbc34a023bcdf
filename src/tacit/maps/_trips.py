"""Trips between zones: how many go from each zone to each other one, with the trips of a person bounded."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tacit.core import Dataset, Forecast, Plan, Goal, Unit, fixes_of, open_account, read_identity
from tacit.engines import SourceColumns
from tacit.errors import TacitError, bad_parameter
from tacit.exact import count
from tacit.fixes import Code, Declare, Say, Set
from tacit.ledger import open_books, source_places
from tacit.maps._box import Box
from tacit.maps._flow_table import FlowTable, flow_table
from tacit.maps._point_source import rank_of
from tacit.maps._task import missing_source
from tacit.mechanisms import ranking_secret

if TYPE_CHECKING:
    import os
    from collections.abc import Generator, Mapping, Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from tacit.accounting import Adjacency, Budget
    from tacit.core import JSON, Noisy
    from tacit.engines import ColumnRole, ReadColumns
    from tacit.exact import Number
    from tacit.ledger import Ledger
    from tacit.maps._box import BoxGiven
    from tacit.mechanisms import DiscreteGaussian, DiscreteLaplace

__all__ = ["Trips", "trips"]

_MOST_PAIRS = 2**22
#: An end of a trip: one column of names, or the columns of latitude and longitude.
TripEnd: TypeAlias = str | tuple[str, str]
#: The public zones: their names, or the rows and columns of a grid over the box.
Zones: TypeAlias = "Sequence[str] | tuple[int, int]"


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
    name, version, adjacency, ledger
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
    >>> flows = made.flows(["N", "S"], epsilon=1).release()
    >>> flows.keys["origin"]
    ('N', 'N', 'S', 'S')
    """
    with fixes_of("tc.maps.trips"):
        identity = read_identity(name=name, version=version, unit=unit, adjacency=adjacency)
        most = _most_trips(identity.unit, limits)
    ends = _read_end("origin", origin), _read_end("destination", destination)
    points = {len(end) == 2 for end in ends}
    if len(points) == 2:
        raise bad_parameter(
            "destination", "of the same form as origin", destination, fix=Set(destination="to")
        )
    area = None
    if points == {True}:
        if box is None:
            raise TacitError(
                "bad-parameter",
                "trips between points need a public box",
                why="a box that is read from the data gives away its outermost points",
                fix=Set(box=((44.88, -93.34), (45.06, -93.19))),
            )
        area = Box.read(box)
    elif box is not None:
        raise bad_parameter("box", "omitted if zones are names", box, fix=Set(box=None))
    opened = TripSource(source, (ends[0], ends[1]), identity.unit, most)
    books = open_books(ledger, identity.name, source)
    made = Trips(identity, books, area, most, opened)
    with fixes_of("tc.maps.trips"):
        open_account(identity, budget, books, places=source_places(source))
    return made


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

    box: Box | None
    most: int
    _source: TripSource

    def flows(
        self,
        zones: Zones,
        *,
        epsilon: Number | None = None,
        delta: Number = 0,
        rho: Number | None = None,
        confidence: Number = 0.95,
    ) -> Plan[FlowTable]:
        """Plan the number of trips from each zone to each zone: all pairs, also those without a trip.

        Guarantee: one unit moves all numbers together by at most the number of its trips that count, in L1
        and in L2 (all of them may go between the same two zones); twice that under replace.

        Parameters
        ----------
        zones
            The public zones: a list of names, or the rows and columns of a grid over the box. The zones of a
            grid are called "row, column", from "0, 0" in the south-west.
        epsilon, delta, rho, confidence
            The promised total cost, and how often intervals cover the noise.

        Examples
        --------
        >>> import pandas as pd
        >>> import tacit as tc
        >>> rides = pd.DataFrame({"a": ["N", "N", "W"], "b": ["S", "W", "S"]})
        >>> made = trips(
        ...     rides, origin="a", destination="b", unit=tc.Unit.row(), budget=tc.Budget(epsilon=1)
        ... )
        >>> len(made.flows(["N", "S", "W"], epsilon=0.5).release())
        9
        """
        goal = Goal.read(epsilon=epsilon, delta=delta, rho=rho, confidence=confidence)
        names, shape = _read_zones(zones, self.box)
        moved = self.most * (2 if self.adjacency == "replace" else 1)
        noise = goal.noise(l1=moved, l2_squared=moved**2, adjacency=self.adjacency)
        task = FlowTask(self._source, names, shape, self.box, noise)
        noun = self.unit.noun
        trips = "1 trip of each" if self.most == 1 else f"{self.most} trips of each"
        counted = f"at most {trips} {noun} count{'s' if self.most == 1 else ''}"
        return Plan.of(
            self,
            task,
            promised=goal.promised,
            confidence=float(goal.confidence),
            forecast=[
                Forecast(
                    "trips", "trips from origin to destination", noise.describe(),
                    noise.half_width(goal.confidence),
                )
            ],
            facts=[
                ("zones", f"{len(names):,} public zones, {len(names) ** 2:,} pairs, all of them released"),
                ("limits", counted),
            ],
            asked=f"trips between {len(names):,} zones",
            request=lambda: {"flows": {"zones": list(shape) if shape else list(names), **goal.to_json()}},
        )  # fmt: skip

    def _rebuild(self, request: Any) -> Plan[Any]:
        given = dict(request["flows"])
        zones = given.pop("zones")
        goal = Goal.from_json(given)
        zones = tuple(zones) if self.box is not None else zones
        return self.flows(
            zones, epsilon=goal.epsilon, delta=goal.delta, rho=goal.rho, confidence=goal.confidence
        )


@dataclass(frozen=True, slots=True, eq=False)
class FlowTask:
    """The question for all pairs of zones."""

    source: TripSource
    names: tuple[str, ...]
    shape: tuple[int, int] | None
    box: Box | None
    noise: DiscreteLaplace | DiscreteGaussian

    @property
    def question(self) -> JSON:
        """Zones and box; the limit is in the sensitivity and here."""
        return {
            "flows": list(self.shape) if self.shape else list(self.names),
            "ends": self.source.roles,
            "box": None if self.box is None else self.box.to_json(),
            "rows": self.source.most,
        }

    @property
    def mechanisms(self) -> list[DiscreteLaplace | DiscreteGaussian]:
        """One noise for all pairs."""
        return [self.noise]

    def unavailable(self) -> TacitError | None:
        """Return the refusal if the file of trips does not exist."""
        return missing_source(self.source)

    def integers(self) -> Generator[NDArray[np.int64], Noisy, None]:
        """Yield the numbers of trips, pair by pair, row by row of the matrix."""
        yield self.source.matrix(self.names, self.shape, self.box)

    def read(self, noisy: Sequence[Noisy], confidence: Fraction) -> FlowTable:
        """Read the table of pairs."""
        return flow_table(self.names, noisy[0], self.noise.half_width(confidence), float(confidence))


class TripSource:
    """Where the trips are; opening it reads the names of columns alone."""

    def __init__(
        self, source: object, ends: tuple[tuple[str, ...], tuple[str, ...]], unit: Unit, most: int
    ) -> None:
        role: ColumnRole = "number" if len(ends[0]) == 2 else "name"
        roles: dict[str, ColumnRole] = {column: role for end in ends for column in end}
        if set(unit.columns) & set(roles):
            raise bad_parameter("unit", "a column other than the ends", unit.columns[0], fix=Set(unit="user"))
        roles |= dict.fromkeys(unit.columns, "owner")
        self._ends, self._unit, self.most = ends, unit, most
        self.roles: JSON = [list(end) for end in ends]
        self._columns = SourceColumns(source, roles)
        self._secret = ranking_secret()
        self._lock = threading.Lock()
        self._read: ReadColumns | None = None

    @property
    def missing_file(self) -> str:
        """The path of the file if it does not exist now; empty for every other source."""
        return self._columns.missing_file

    def matrix(
        self, names: tuple[str, ...], shape: tuple[int, int] | None, box: Box | None
    ) -> NDArray[np.int64]:
        """Return the number of counted trips of each pair of zones.

        Trips with an end that is missing or in no zone are dropped first. Of the others, a unit's first
        trips in the order of a keyed hash of the unit and the pair of zones count: a function of its own
        trips alone, in which no pair comes first for everybody.
        """
        with self._lock:
            if self._read is None:
                self._read = self._columns.read()
        rows = self._read
        start, end = (self._zones(rows, columns, names, shape, box) for columns in self._ends)
        known = (start >= 0) & (end >= 0)
        pair = (start * len(names) + end)[known]
        if self._unit.columns:
            owner = rows.codes[self._unit.columns[0]][known]
            assert rows.owner_hashes is not None  # noqa: S101 - there are owners
            rank = rank_of(self._secret, pair.astype(np.float64), owner=rows.owner_hashes[known])
            order = np.lexsort((rank, owner))
            owner = owner[order]
            fresh = np.r_[True, owner[1:] != owner[:-1]] if len(owner) else np.zeros(0, np.bool_)
            starts = np.flatnonzero(fresh)
            place = np.arange(len(owner)) - np.repeat(starts, np.diff(np.r_[starts, len(owner)]))
            pair = pair[order[place < self.most]]
        return np.bincount(pair, minlength=len(names) ** 2).astype(np.int64)

    def _zones(
        self, rows: ReadColumns, columns: tuple[str, ...], names: tuple[str, ...],
        shape: tuple[int, int] | None, box: Box | None,
    ) -> NDArray[np.int64]:  # fmt: skip
        """Return the zone of one end of each trip, or -1."""
        if box is not None and shape is not None:
            lat, lon = (rows.numbers[column] for column in columns)
            return box.cells(lat, lon, rows=shape[0], columns=shape[1])
        known = {name: place for place, name in enumerate(names)}
        zone = np.array([*(known.get(name, -1) for name in rows.names), -1], dtype=np.int64)
        return zone[rows.codes[columns[0]]]


def _most_trips(unit: Unit, limits: Mapping[str, int] | None) -> int:
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
    if unit.kind != "column":
        raise bad_parameter("unit", "a column, or single rows", unit, fix=Code("unit=tc.Unit.row()"))
    if not limits or "rows" not in limits:
        raise TacitError(
            "missing-limit",
            f"nothing bounds how many trips one {unit.noun} has",
            why="noise can hide one person only if there is a bound on what this person can change",
            fix=Declare("limits", {"rows": 4}),
        )
    if set(limits) != {"rows"}:
        raise bad_parameter("limits", "rows alone", sorted(limits), fix=Set(limits={"rows": 4}))
    return count("rows", limits["rows"], zero=False)


def _read_end(name: str, given: object) -> tuple[str, ...]:
    """Read the columns of one end of a trip."""
    columns = (given,) if isinstance(given, str) else given
    if isinstance(columns, tuple) and len(columns) in {1, 2} and all(isinstance(c, str) for c in columns):
        return columns
    raise bad_parameter(
        name, "a column of names, or the columns of latitude and longitude", given, fix=Set(**{name: name})
    )


def _read_zones(zones: object, box: Box | None) -> tuple[tuple[str, ...], tuple[int, int] | None]:
    """Read public zones: their names, and the shape of a grid."""
    if box is not None:
        if not (isinstance(zones, tuple) and len(zones) == 2):
            raise bad_parameter("zones", "rows and columns of a grid", zones, fix=Set(zones=(8, 8)))
        rows, columns = (count("zones", side, zero=False) for side in zones)
        _check_pairs(rows * columns)
        names = tuple(f"{row}, {column}" for row in range(rows) for column in range(columns))
        return names, (rows, columns)
    if isinstance(zones, str) or not isinstance(zones, list | tuple):
        raise bad_parameter("zones", "a list of names", zones, fix=Set(zones=["north", "south"]))
    # 1.0 and 1 are one name in every source, so they are here
    names = tuple(
        str(int(zone)) if isinstance(zone, float) and zone.is_integer() else str(zone) for zone in zones
    )
    if not names or len(set(names)) < len(names):
        raise bad_parameter(
            "zones", "different names, at least one", zones, fix=Set(zones=["north", "south"])
        )
    _check_pairs(len(names))
    return names, None


def _check_pairs(zones: int) -> None:
    if zones**2 > _MOST_PAIRS:
        raise bad_parameter(
            "zones", f"at most {_MOST_PAIRS:,} pairs", f"{zones**2:,} pairs",
            why="most pairs would hold nothing but noise", fix="use fewer and larger zones",
        )  # fmt: skip
