"""Flows: how many trips go from each public zone to each other one.

Zones are names, or the cells of a grid over the box. The answer is a table, and is drawn as a matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from tacit.core import AnswerTable, Cells, Draft, Forecast, Step, Task
from tacit.errors import bad_parameter
from tacit.maps._map_draft import missing_source
from tacit.maps._regions import GridShape
from tacit.parameters import Listed
from tacit.report import short_percent
from tacit.show import Figure, Matrix

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.core import JSON, Goal
    from tacit.maps._areas import Box
    from tacit.maps._trips import Trips


_MAX_PAIRS = 2**22
#: The names of zones, or the rows and columns of a grid over the box.
ZonesGiven: TypeAlias = Sequence[str] | tuple[int, int]


@dataclass(frozen=True, slots=True)
class Zones:
    """Public zones.

    Parameters
    ----------
    names
        What each is called; those of a grid "row, column", from "0, 0" in the south-west.
    shape
        The rows and columns of the grid; None if zones are names.
    """

    names: tuple[str, ...]
    shape: tuple[int, int] | None = None

    def __len__(self) -> int:
        return len(self.names)

    def __str__(self) -> str:
        return ", ".join(self.names) if self.shape is None else " x ".join(map(str, self.shape))

    def to_json(self) -> JSON:
        """Return the shape of the grid, or the names."""
        return list(self.names if self.shape is None else self.shape)


def read_zones(zones: object, box: Box | None) -> Zones:
    """Read public zones, or refuse them.

    Examples
    --------
    >>> read_zones(["north", 2.0], None).names
    ('north', '2')
    """
    if box is not None:
        rows, columns = GridShape(instead=8).read("zones", zones)
        _check_pairs(rows * columns)
        names = tuple(f"{row}, {column}" for row in range(rows) for column in range(columns))
        return Zones(names, (rows, columns))
    # 1.0 and 1 are one name in every source, so they are here
    texts = [
        str(int(zone)) if isinstance(zone, float) and zone.is_integer() else str(zone)
        for zone in Listed("names", '["north", "south"]').read("zones", zones)
    ]
    different = Listed("names", '["north", "south"]', different=True).read("zones", texts)
    _check_pairs(len(different))
    return Zones(tuple(different))


def _check_pairs(zones: int) -> None:
    if zones**2 > _MAX_PAIRS:
        raise bad_parameter(
            "zones", f"at most {_MAX_PAIRS:,} pairs", f"{zones**2:,} pairs",
            why="most pairs would hold nothing but noise", fix="use fewer and larger zones",
        )  # fmt: skip


@dataclass(frozen=True, slots=True, repr=False)
class FlowTable(AnswerTable):
    """An answer with one line for each pair of zones: origin, destination and the noisy number of trips.

    Examples
    --------
    >>> flow_table(("N", "S"), [5, 0, 2, -1], 3, 0.95).matrix().tolist()
    [[5.0, 0.0], [2.0, -1.0]]
    """

    kind: ClassVar[str] = "flow-table"
    described: ClassVar[str] = "a table of trips between regions"

    @property
    def zones(self) -> tuple[str, ...]:
        """The names of the zones, in their public order."""
        return tuple(dict.fromkeys(str(name) for name in self.keys["origin"]))

    def matrix(self) -> NDArray[np.float64]:
        """Return the trips as a matrix: origins in rows, destinations in columns."""
        size = len(self.zones)
        return np.array(self["trips"].value, dtype=np.float64).reshape(size, size)

    def figures(self, what: Any = None) -> tuple[Figure, ...]:
        """Return the matrix of trips: origins as rows, destinations as columns."""
        del what
        trips, cells = self.matrix(), self["trips"]
        low, high = (np.array(end, np.float64).reshape(trips.shape) for end in (cells.low, cells.high))
        unclear = (low <= 0) & (high >= 0)
        matrix = Matrix(trips, self.zones, self.zones, "origin", "destination", "trips", unclear, "z,.0f")
        half = float(trips[0, 0] - low[0, 0])
        sure = f"each pair +/- {half:,.3g} at {short_percent(self.confidence)}"
        return (Figure("trips", (matrix,), (f"{sure}; hatched: the interval contains 0",)),)


def flow_table(
    names: Sequence[str], noisy: Sequence[int] | NDArray[Any], half_width: float, confidence: float
) -> FlowTable:
    """Return the table of all pairs, origins first, in the order of the zones."""
    values = tuple(int(n) for n in noisy)
    return FlowTable(
        keys={
            "origin": tuple(name for name in names for _ in names),
            "destination": tuple(names) * len(names),
        },
        columns={
            "trips": Cells(
                values, tuple(n - half_width for n in values), tuple(n + half_width for n in values)
            )
        },
        confidence=confidence,
        left_out=("trips with an end in no zone, and trips beyond the limit of a person, are not counted",),
        counts=("trips",),
    )


def draft_flows(trips: Trips, goal: Goal, zones: Zones) -> Draft[FlowTable]:
    """Draft the numbers of trips between all pairs of zones, with at most so many trips of each unit."""
    source, box, max_trips = trips._source, trips.box, trips.most  # noqa: SLF001 - a part of the trips
    sensitivity = max_trips * (2 if trips.adjacency == "replace" else 1)
    noise = goal.noise(l1=sensitivity, l2_squared=sensitivity**2, adjacency=trips.adjacency)
    task = Task(
        document={
            "flows": zones.to_json(),
            "ends": source.roles,
            "box": None if box is None else box.to_json(),
            "rows": max_trips,
        },
        open=lambda _: source,
        steps=(Step(noise, lambda reader, _: reader.matrix(zones, box)),),
        reading=lambda noisy, level: flow_table(zones.names, noisy[0], noise.half_width(level), float(level)),
        unavailable=lambda: missing_source(source),
    )
    limit = "1 trip of each" if max_trips == 1 else f"{max_trips} trips of each"
    return Draft(
        task=task, asked=f"trips between {len(zones):,} zones",
        forecast=[
            Forecast(
                "trips", "trips from origin to destination", noise.describe(),
                noise.half_width(goal.confidence),
            )
        ],
        facts=[
            ("zones", f"{len(zones):,} public zones, {len(zones) ** 2:,} pairs, all of them released"),
            ("limits", f"at most {limit} {trips.unit.noun} count{'s' if max_trips == 1 else ''}"),
        ],
    )  # fmt: skip
