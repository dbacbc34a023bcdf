"""The table of flows: trips between zones, shown as a table and drawn as a matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tacit.core import AnswerTable, Cells
from tacit.show import Figure, Matrix

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


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
        sure = f"each pair +/- {half:,.3g} at {self.confidence * 100:g} %"
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
